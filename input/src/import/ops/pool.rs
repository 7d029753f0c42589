//! Pooling over windows and over whole images.

use csdfc_plan::operator::{Operator, Pool, PoolKind, Reduce, ReduceFunction};

use super::convolution::{pads, spatial};
use super::line;
use crate::import::builder::Builder;
use crate::import::error::{Fault, fault};
use crate::import::node::{Node, Tensor, pair};

/// `MaxPool`, `AveragePool` and `LpPool` over 2-D or 1-D windows; the indices of MaxPool are not computed.
pub(super) fn pool(builder: &mut Builder, node: &Node) -> Result<Tensor, Fault> {
    if line::reads(node) {
        return line::of_windows(builder, node, pool);
    }
    let x = node.tensor(0)?;
    let input = spatial(x)?;
    let Some(kernel) = node.ints("kernel_shape")? else { return fault!("it has no kernel_shape") };
    let kernel = pair(kernel, "kernel_shape")?;
    let (stride, dilation) = (node.pair("strides", 1)?, node.pair("dilations", 1)?);
    let kind = match node.operator {
        "AveragePool" => PoolKind::Average { count_include_pad: node.flag("count_include_pad", false)? },
        "LpPool" => PoolKind::Lp { p: exponent(node)? },
        _ => PoolKind::Max,
    };
    let pads = pads(node, input, kernel, stride, dilation)?;
    let ceil = node.flag("ceil_mode", false)?;
    let operator = Operator::Pool(Pool { kind, kernel, stride, dilation, pads, ceil });
    builder.layer(node, operator, &[x], Vec::new())
}

/// `GlobalAveragePool`, `GlobalMaxPool` and `GlobalLpPool`: reductions over all dimensions but batch and channels.
pub(super) fn global_pool(builder: &mut Builder, node: &Node) -> Result<Tensor, Fault> {
    if line::reads_images(builder, node) {
        return line::of_windows(builder, node, global_pool);
    }
    let x = node.tensor(0)?;
    if x.rank() < 3 {
        return fault!("its input has rank {} ({}) and no height or width", x.rank(), x.operand.shape);
    }
    let function = match node.operator {
        "GlobalAveragePool" => ReduceFunction::Mean,
        "GlobalMaxPool" => ReduceFunction::Max,
        _ => ReduceFunction::Lp { p: exponent(node)? },
    };
    let axes = (2..x.rank()).collect();
    let operator = Operator::Reduce(Reduce { function, axes, keep_dims: true });
    builder.layer(node, operator, &[x], Vec::new())
}

fn exponent(node: &Node) -> Result<i64, Fault> {
    match node.int("p", 2)? {
        p if p > 0 => Ok(p),
        p => fault!("p is {p}"),
    }
}
