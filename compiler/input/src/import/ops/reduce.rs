//! Reductions over dimensions.

use csdfc_plan::operator::{ArgMax, Function, NonMaxSuppression, Operator, Reduce, ReduceFunction, TopK};

use super::{element_wise, layout, line, logic};
use crate::import::builder::{Builder, FROM_LAST, is_channels_last};
use crate::import::constant::Constant;
use crate::import::error::{Fault, fault};
use crate::import::node::{Node, Tensor, Value, axes, axis, with_operands};

/// `ReduceMean` and its kin.
pub(super) fn reduce(builder: &mut Builder, node: &Node) -> Result<Tensor, Fault> {
    let x = node.tensor(0)?;
    let function = of_node(node)?;
    let Some(axes) = reduced_axes(node, x.rank())? else { return builder.identity(node, x) };
    let keep_dims = node.flag("keepdims", true)?;
    // Integers whose sums, least and greatest are integers again.
    let is_exact = matches!(function, ReduceFunction::Sum | ReduceFunction::Max | ReduceFunction::Min);
    let whole = logic::whole_numbers(builder, x).filter(|_| is_exact);
    let x = if whole.is_some() { &builder.without_indices(x)?.as_floats() } else { x };
    let made = in_either_order(builder, node, x, &axes, keep_dims, |axes, keep_dims| {
        Operator::Reduce(Reduce { function: function.clone(), axes, keep_dims })
    })?;
    Ok(Tensor { integers: whole.or(made.integers), ..made })
}

/// `ArgMin`: where the greatest of all negated elements is.
pub(super) fn arg_min(builder: &mut Builder, node: &Node) -> Result<Tensor, Fault> {
    let negated = element_wise::layer(builder, node, node.tensor(0)?, Function::Neg)?;
    arg_max(builder, &with_operands(node, "ArgMax", [Some(negated.into())], None))
}

/// `ArgMax`: indices of 64 bits.
pub(super) fn arg_max(builder: &mut Builder, node: &Node) -> Result<Tensor, Fault> {
    let x = node.tensor(0)?;
    let axis = axis(node.int("axis", 0)?, x.rank())?;
    let keep_dims = node.flag("keepdims", true)?;
    let select_last = node.flag("select_last_index", false)?;
    in_either_order(builder, node, x, &[axis], keep_dims, |axes, keep_dims| {
        Operator::ArgMax(ArgMax { axis: axes[0], keep_dims, select_last, floats: false })
    })
}

/// Where the first of the greatest elements along a dimension are, which stays.
pub(super) fn greatest(builder: &mut Builder, node: &Node, x: &Tensor, axis: usize) -> Result<Tensor, Fault> {
    in_either_order(builder, node, x, &[axis], true, |axes, keep_dims| {
        Operator::ArgMax(ArgMax { axis: axes[0], keep_dims, select_last: false, floats: false })
    })
}

/// `TopK`: the elements, and their indices of 64 bits. They are sorted, whether or not the model asks for that.
pub(super) fn top_k(builder: &mut Builder, node: &Node) -> Result<Vec<Value>, Fault> {
    let x = node.tensor(0)?;
    let axis = axis(node.int("axis", -1)?, x.rank())?;
    let largest = node.flag("largest", true)?;
    let given = match node.opset {
        10.. => node.constant(1, "count")?.to_ints()?,
        _ => vec![node.int("k", 0)?],
    };
    let count = match given[..] {
        [count] if count > 0 => usize::try_from(count).unwrap_or(usize::MAX),
        _ => return fault!("it takes {given:?} elements"),
    };
    let whole = logic::whole_numbers(builder, x);
    let x = if whole.is_some() { &builder.without_indices(x)?.as_floats() } else { x };
    let mut made = |indices| {
        let operator = Operator::TopK(TopK { axis, count, largest, indices, floats: false });
        builder.layer(node, operator, &[x], Vec::new())
    };
    let (elements, indices) = (made(false)?, made(true)?);
    Ok([Tensor { integers: whole.or(elements.integers), ..elements }, indices].map(Value::Tensor).into())
}

/// `NonMaxSuppression`. The output has the largest possible number of rows. Rows beyond the boxes that it keeps are −1.
pub(super) fn non_max_suppression(builder: &mut Builder, node: &Node) -> Result<Tensor, Fault> {
    let operand = |builder: &mut Builder, at: usize, other: usize| match node.input(at) {
        Some(Value::Constant(constant)) => layout::tensor_of(builder, node, node.tensor(other)?, constant),
        _ => node.tensor(at).cloned(),
    };
    let (boxes, scores) = (operand(builder, 0, 1)?, operand(builder, 1, 0)?);
    let [_, count, _] = boxes.dims()[..] else { return fault!("its boxes are {}", boxes.operand.shape) };
    let most = match node.optional(2, "most boxes of a class")? {
        Some(most) => most.scalar_int()?,
        None => 0,
    };
    if most < 1 {
        return fault!("it keeps {most} boxes of a class");
    }
    let overlap = node.optional(3, "threshold of overlaps")?.map_or(Ok(0.0), Constant::scalar)?;
    if !(0.0..=1.0).contains(&overlap) {
        return fault!("boxes overlap by {overlap}, which is not from 0 to 1");
    }
    let score = node.optional(4, "threshold of scores")?.map(Constant::scalar).transpose()?;
    if let Some(score) = score.filter(|score| !score.is_finite()) {
        return fault!("the least score of a box is {score}");
    }
    let suppression = NonMaxSuppression {
        most: usize::try_from(most).unwrap_or(usize::MAX).min(count),
        overlap,
        score,
        centred: node.flag("center_point_box", false)?,
        floats: false,
    };
    builder.layer(node, Operator::NonMaxSuppression(suppression), &[&boxes, &scores], Vec::new())
}

/// The dimensions that a node reduces, ascending; `None` if it does nothing.
pub(in crate::import) fn reduced_axes(node: &Node, rank: usize) -> Result<Option<Vec<usize>>, Fault> {
    let since = if node.operator == "ReduceSum" { 13 } else { 18 };
    match node.ints_since("axes", since, 1)? {
        Some(list) if !list.is_empty() => Ok(Some(axes(&list, rank)?)),
        _ if node.flag("noop_with_empty_axes", false)? => match node.operator {
            "ReduceSum" | "ReduceMean" | "ReduceMax" | "ReduceMin" | "ReduceProd" => Ok(None),
            other => fault!("noop_with_empty_axes of {other} is not supported"),
        },
        _ => Ok(Some((0..rank).collect())),
    }
}

/// The reduction of a node.
pub(in crate::import) fn of_node(node: &Node) -> Result<ReduceFunction, Fault> {
    Ok(match node.operator {
        "ReduceL1" => ReduceFunction::L1,
        "ReduceL2" => ReduceFunction::L2,
        "ReduceLogSum" => ReduceFunction::LogSum,
        "ReduceLogSumExp" => ReduceFunction::LogSumExp,
        "ReduceMax" => ReduceFunction::Max,
        "ReduceMean" => ReduceFunction::Mean,
        "ReduceMin" => ReduceFunction::Min,
        "ReduceProd" => ReduceFunction::Prod,
        "ReduceSum" => ReduceFunction::Sum,
        "ReduceSumSquare" => ReduceFunction::SumSquare,
        other => return fault!("{other} is no reduction"),
    })
}

/// Reduces a channels-last operand as the channels-first tensor that has the same elements in memory, if the result is
/// the same. `operator` reduces over axes, and keeps their dimensions or does not.
pub(super) fn in_either_order(
    builder: &mut Builder,
    node: &Node,
    x: &Tensor,
    axes: &[usize],
    keep_dims: bool,
    operator: impl Fn(Vec<usize>, bool) -> Operator,
) -> Result<Tensor, Fault> {
    if is_channels_last(&x.operand.shape)
        && let Some(first) = builder.reordered(x)
    {
        // `axes` are below the rank, 4.
        let mut mapped: Vec<usize> = axes.iter().map(|axis| FROM_LAST[*axis]).collect();
        mapped.sort_unstable();
        let left: Vec<usize> = FROM_LAST.iter().copied().filter(|axis| !mapped.contains(axis)).collect();
        if keep_dims || left.is_sorted() {
            let reduced = over_axes(builder, node, &first, &mapped, keep_dims, operator)?;
            let back = if keep_dims { builder.reordered(&reduced) } else { None };
            return Ok(back.unwrap_or(reduced));
        }
    }
    over_axes(builder, node, x, axes, keep_dims, operator)
}

/// Reduces over axes. If these leave the rows, or the operand is a view of an image as lines, the layer keeps all
/// dimensions, so that the rows stay in their dimension, and the others are taken out of its result.
fn over_axes(
    builder: &mut Builder,
    node: &Node,
    x: &Tensor,
    axes: &[usize],
    keep_dims: bool,
    operator: impl Fn(Vec<usize>, bool) -> Operator,
) -> Result<Tensor, Fault> {
    // A reduction of a transposed image becomes one of the image itself, since its passes look through Transposes.
    let is_moved = matches!(builder.network.layer(x.operand.layer).operator, Operator::Transpose(_));
    let reduced = if let Some(added) = line::added(builder, x).filter(|_| !is_moved) {
        let image = line::image(builder, node, x, added)?;
        let axes = axes.iter().map(|axis| added.axis(*axis)).collect();
        builder.layer(node, operator(axes, true), &[&image], Vec::new())?
    } else {
        let leaves_rows = x.operand.shape.row_axis().is_some_and(|row| !axes.contains(&row));
        let operator = operator(axes.to_vec(), keep_dims || leaves_rows);
        let reduced = builder.layer(node, operator, &[x], Vec::new())?;
        if keep_dims || !leaves_rows {
            return Ok(reduced);
        }
        reduced
    };
    let dims = x.dims().iter().enumerate();
    let dims =
        dims.filter_map(|(axis, dim)| if axes.contains(&axis) { keep_dims.then_some(1) } else { Some(*dim) });
    builder.reshape(node, &reduced, dims.collect())
}
