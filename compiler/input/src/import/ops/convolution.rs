//! Convolutions, and the padding rules that pooling shares.

use csdfc_plan::operator::{Conv, ConvTranspose, Operator};

use super::layout::{MAX_PARTS, joined, take};
use super::{computed_filters, line};
use crate::import::builder::Builder;
use crate::import::error::{Fault, fault};
use crate::import::fold::index::Range;
use crate::import::node::{Node, Tensor, Value, pair};

/// `Conv`: 1-D or 2-D.
pub(super) fn conv(builder: &mut Builder, node: &Node) -> Result<Tensor, Fault> {
    if line::reads(node) {
        return line::of_windows(builder, node, conv);
    }
    if let Some(made) = one_by_one(builder, node, conv)? {
        return Ok(made);
    }
    if let Some(Value::Tensor(filters)) = node.input(1) {
        return computed_filters::conv(builder, node, filters);
    }
    let x = node.tensor(0)?;
    let input = one_image(x)?;
    let filters = node.constant(1, "filters")?.weights()?;
    let &[count, _, ky, kx] = filters.dims.as_slice() else {
        return fault!("its filters have dimensions {:?}; only 2-D convolutions are supported", filters.dims);
    };
    let Windows { kernel, stride, dilation, pads, groups } = Windows::new(node, input, [ky, kx])?;
    let bias = node.optional(2, "bias")?.map(|bias| bias.weights()).transpose()?;
    let operator = Operator::Conv(Conv {
        filters: count,
        kernel,
        stride,
        dilation,
        pads,
        groups,
        bias: bias.is_some(),
        pre: None,
        residual: false,
        activation: None,
    });
    builder.layer(node, operator, &[x], [filters].into_iter().chain(bias).collect())
}

/// The windows of a convolution, and the groups of its channels.
pub(super) struct Windows {
    kernel: [usize; 2],
    pub stride: [usize; 2],
    pub dilation: [usize; 2],
    /// `[top, left, bottom, right]`.
    pub pads: [usize; 4],
    pub groups: usize,
}

impl Windows {
    /// Those of filters of this height and width on an image of this height and width.
    pub fn new(node: &Node, input: [usize; 2], kernel: [usize; 2]) -> Result<Self, Fault> {
        let kernel = stated_kernel(node, kernel)?;
        let (stride, dilation) = (node.pair("strides", 1)?, node.pair("dilations", 1)?);
        let pads = pads(node, input, kernel, stride, dilation)?;
        Ok(Windows { kernel, stride, dilation, pads, groups: groups(node)? })
    }
}

/// `ConvTranspose`: 1-D or 2-D, by constant filters.
pub(super) fn conv_transpose(builder: &mut Builder, node: &Node) -> Result<Tensor, Fault> {
    if line::reads(node) {
        return line::of_windows(builder, node, conv_transpose);
    }
    if let Some(made) = one_by_one(builder, node, conv_transpose)? {
        return Ok(made);
    }
    let x = node.tensor(0)?;
    let input = one_image(x)?;
    let filters = node.constant(1, "filters")?.weights()?;
    let &[_, per_group, ky, kx] = filters.dims.as_slice() else {
        return fault!("its filters have dimensions {:?}; only 2-D convolutions are supported", filters.dims);
    };
    let groups = groups(node)?;
    let Some(count) = per_group.checked_mul(groups) else { return fault!("{groups} groups") };
    let kernel = stated_kernel(node, [ky, kx])?;
    let (stride, dilation) = (node.pair("strides", 1)?, node.pair("dilations", 1)?);
    let mut output_padding = node.pair("output_padding", 0)?;
    let same = matches!(node.text("auto_pad", "NOTSET")?, "SAME_UPPER" | "SAME_LOWER");
    let wanted = match node.ints("output_shape")? {
        // Some writers give batch and channels too.
        Some([_, _, spatial @ ..]) if spatial.len() == 2 => Some(pair(spatial, "output_shape")?),
        Some(values) if !values.is_empty() => Some(pair(values, "output_shape")?),
        _ if same => {
            let size = |i: usize| input[i].checked_mul(stride[i]);
            size(0).zip(size(1)).map(|(y, x)| [y, x])
        }
        _ => None,
    };
    let pads = match wanted {
        None => pads(node, input, kernel, stride, dilation)?,
        Some(wanted) => {
            let upper = node.text("auto_pad", "NOTSET")? == "SAME_UPPER";
            let mut pads = [0; 4];
            for i in 0..2 {
                let full = (input[i] as i128 - 1) * stride[i] as i128
                    + output_padding[i] as i128
                    + extent(kernel[i], dilation[i])?;
                let surplus = full - wanted[i] as i128;
                if surplus < 0 {
                    // The output reaches beyond what the filters write.
                    output_padding[i] = bounded(output_padding[i] as i128 - surplus)?;
                } else {
                    [pads[i], pads[i + 2]] = halves(bounded(surplus)?, upper);
                }
            }
            pads
        }
    };
    let bias = node.optional(2, "bias")?.map(|bias| bias.weights()).transpose()?;
    let operator = Operator::ConvTranspose(ConvTranspose {
        filters: count,
        kernel,
        stride,
        dilation,
        pads,
        output_padding,
        groups,
        bias: bias.is_some(),
        activation: None,
    });
    builder.layer(node, operator, &[x], [filters].into_iter().chain(bias).collect())
}

/// What a node makes of a batch of images or volumes, if its first operand is one that the network computes: of each by itself, and
/// joined. All share their filters.
pub(super) fn one_by_one(
    builder: &mut Builder,
    node: &Node,
    operator: fn(&mut Builder, &Node) -> Result<Tensor, Fault>,
) -> Result<Option<Tensor>, Fault> {
    let Some(Value::Tensor(x)) = node.input(0) else { return Ok(None) };
    let &[images, _, _, _, ..] = x.dims() else { return Ok(None) };
    if !(2..=MAX_PARTS).contains(&images) {
        return Ok(None);
    }
    let mut made = Vec::with_capacity(images);
    for start in 0..images {
        let mut ranges = Range::whole(x.dims());
        ranges[0] = Range { start, step: 1, length: 1 };
        let image = take(builder, node, x, &ranges)?;
        let mut inputs = node.inputs.clone();
        inputs[0] = Some(image.into());
        made.push(operator(builder, &Node { inputs, ..*node })?);
    }
    Ok(Some(joined(builder, node, 0, &made)?))
}

/// Height and width of the image that a convolution reads. An input has a batch of 1, but a view may have another
/// batch.
pub(super) fn one_image(x: &Tensor) -> Result<[usize; 2], Fault> {
    let size = spatial(x)?;
    match x.dims() {
        [1, ..] => Ok(size),
        dims => Err(Fault::new(format!("its input is a batch of {} images; csdfc convolves one", dims[0]))
            .help("csdfc plans one frame at a time: export the model for one image of that batch, and loop over them")),
    }
}

/// Height and width of an image.
pub(super) fn spatial(x: &Tensor) -> Result<[usize; 2], Fault> {
    match x.dims() {
        &[_, _, height, width] => Ok([height, width]),
        _ => Err(Fault::new(format!("its input has rank {} ({})", x.rank(), x.operand.shape))
            .help("csdfc takes lines, images and volumes: tensors of rank 3, 4 and 5")),
    }
}

/// `[top, left, bottom, right]` by `auto_pad` or `pads`.
pub(super) fn pads(
    node: &Node,
    input: [usize; 2],
    kernel: [usize; 2],
    stride: [usize; 2],
    dilation: [usize; 2],
) -> Result<[usize; 4], Fault> {
    let auto_pad = node.text("auto_pad", "NOTSET")?;
    match auto_pad {
        "NOTSET" | "" => match node.ints("pads")? {
            None => Ok([0; 4]),
            Some(pads) => match <[i64; 4]>::try_from(pads) {
                Ok([top, left, bottom, right]) => {
                    let ([top, left], [bottom, right]) =
                        (pair(&[top, left], "pads")?, pair(&[bottom, right], "pads")?);
                    Ok([top, left, bottom, right])
                }
                Err(_) => fault!("pads has {} numbers; only 2-D images are supported", pads.len()),
            },
        },
        "VALID" => Ok([0; 4]),
        "SAME_UPPER" | "SAME_LOWER" => {
            let mut pads = [0; 4];
            for i in 0..2 {
                if stride[i] == 0 {
                    return fault!("a stride of 0 is not supported");
                }
                // There are as many windows as strides that begin within the input.
                let windows = input[i].div_ceil(stride[i]) as i128;
                let needed = (windows - 1) * stride[i] as i128 + extent(kernel[i], dilation[i])?;
                let missing = bounded((needed - input[i] as i128).max(0))?;
                [pads[i], pads[i + 2]] = halves(missing, auto_pad == "SAME_UPPER");
            }
            Ok(pads)
        }
        other => fault!("auto_pad {other} is unknown"),
    }
}

/// The larger half after (upper) or before (lower).
fn halves(total: usize, upper: bool) -> [usize; 2] {
    let (small, large) = (total / 2, total - total / 2);
    if upper { [small, large] } else { [large, small] }
}

/// Elements from the first to the last that a window of this kernel reads.
pub(super) fn extent(kernel: usize, dilation: usize) -> Result<i128, Fault> {
    if kernel == 0 || dilation == 0 {
        return fault!("a kernel of size {kernel} with dilation {dilation} reads nothing");
    }
    Ok((kernel as i128 - 1) * dilation as i128 + 1)
}

fn bounded(value: i128) -> Result<usize, Fault> {
    match u32::try_from(value) {
        Ok(value) => Ok(value as usize),
        Err(_) => fault!("a padding of {value} is out of range"),
    }
}

fn groups(node: &Node) -> Result<usize, Fault> {
    match usize::try_from(node.int("group", 1)?) {
        Ok(groups) if groups > 0 => Ok(groups),
        _ => fault!("{} groups", node.int("group", 1)?),
    }
}

/// The size of the filters, which the attribute may repeat.
fn stated_kernel(node: &Node, kernel: [usize; 2]) -> Result<[usize; 2], Fault> {
    match node.ints("kernel_shape")? {
        Some(values) if !values.is_empty() && pair(values, "kernel_shape")? != kernel => {
            fault!("kernel_shape {values:?} contradicts filters of {}×{}", kernel[0], kernel[1])
        }
        _ => Ok(kernel),
    }
}
