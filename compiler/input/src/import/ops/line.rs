//! Turns lines `[N, C, L]` into images of one column, `[N, C, L, 1]`. Then windows slide over rows, and a firing reads
//! few rows.

use csdfc_plan::operator::{Function, Operator, Softmax};
use csdfc_plan::shape::Shape;

use crate::import::builder::Builder;
use crate::import::error::Fault;
use crate::import::node::{Node, Tensor, Value};
use csdfc_network::weights::Weights;

/// The dimension of an image that a line lacks.
#[derive(Clone, Copy, PartialEq)]
pub(in crate::import) enum AddedDimension {
    Row,
    Column,
}

impl AddedDimension {
    /// The added dimension of the image, if a tensor is seen as lines and is an image itself.
    fn new(own: &Shape, seen: &Shape) -> Option<AddedDimension> {
        match (own.dims.as_slice(), seen.dims.as_slice()) {
            (&[n, c, l, 1], seen) if seen == [n, c, l] => Some(AddedDimension::Column),
            (&[n, c, 1, l], seen) if seen == [n, c, l] => Some(AddedDimension::Row),
            _ => None,
        }
    }

    /// A list with an entry for each dimension of lines, or for the last ones, completed with the entry for the added
    /// dimension.
    fn with_added<T: Copy>(self, of_line: &[T], of_other: T) -> Vec<T> {
        let mut all = of_line.to_vec();
        all.insert(all.len().saturating_sub(usize::from(self == AddedDimension::Row)), of_other);
        all
    }

    /// The dimension of the image in place of one of lines.
    pub(super) fn axis(self, of_line: usize) -> usize {
        if self == AddedDimension::Row && of_line == 2 { 3 } else { of_line }
    }
}

/// The same on a channels-last image of an operator on a tensor of these dimensions, the last of which are the image's
/// channels, if it computes each pixel by itself, and as many channels as it reads.
pub(in crate::import) fn on_pixels(operator: &Operator, dims: &[usize]) -> Option<Operator> {
    let (rank, channels) = (dims.len(), *dims.last()?);
    let is_of_channels = |dims: &Vec<usize>| {
        let last = dims.last().copied().unwrap_or(1);
        dims.len() <= rank && dims.iter().product::<usize>() == last && (last == 1 || last == channels)
    };
    match operator {
        Operator::ElementWise(element_wise) => {
            let has_slopes = matches!(element_wise.function, Function::PRelu { .. });
            (!has_slopes).then(|| operator.clone())
        }
        Operator::Binary(binary) => {
            let constant = binary.constant.as_ref()?;
            is_of_channels(&constant.dims).then(|| operator.clone())
        }
        Operator::Softmax(softmax) if softmax.axes.iter().copied().eq([rank.checked_sub(1)?]) => {
            Some(Operator::Softmax(Softmax { axes: vec![3], ..softmax.clone() }))
        }
        _ => None,
    }
}

/// Whether a node reads lines.
pub(super) fn reads(node: &Node) -> bool {
    matches!(node.input(0), Some(Value::Tensor(x)) if x.rank() == 3)
}

/// Whether the lines that a node reads are images.
pub(super) fn reads_images(builder: &Builder, node: &Node) -> bool {
    matches!(node.input(0), Some(Value::Tensor(x)) if reads(node) && added(builder, x).is_some())
}

/// An operator of windows on lines, computed on images.
pub(super) fn of_windows(
    builder: &mut Builder,
    node: &Node,
    operator: fn(&mut Builder, &Node) -> Result<Tensor, Fault>,
) -> Result<Tensor, Fault> {
    let x = node.tensor(0)?;
    let added = added(builder, x).unwrap_or(AddedDimension::Column);
    let mut inputs = node.inputs.clone();
    inputs[0] = Some(Value::Tensor(image(builder, node, x, added)?));
    // Filters, or places of elements.
    match inputs.get_mut(1) {
        Some(Some(Value::Constant(filters))) => {
            *filters = filters.reshaped(added.with_added(&filters.dims, 1))
        }
        Some(Some(Value::Tensor(lines))) if lines.rank() == 3 => *lines = image(builder, node, lines, added)?,
        _ => {}
    }
    let mut proto = node.proto.clone();
    for attribute in &mut proto.attribute {
        let pairs = |of_other: i64, each: &[i64]| -> Vec<i64> {
            each.iter().flat_map(|of_line| added.with_added(&[*of_line], of_other)).collect()
        };
        attribute.ints = match attribute.name.as_deref() {
            Some("kernel_shape" | "strides" | "dilations") => pairs(1, &attribute.ints),
            Some("output_padding" | "pads") => pairs(0, &attribute.ints),
            Some("output_shape") if !attribute.ints.is_empty() => added.with_added(&attribute.ints, 1),
            _ => continue,
        };
    }
    let made = operator(builder, &Node { proto: &proto, inputs, ..*node })?;
    line(builder, node, &made, added)
}

/// The dimension that images have in addition to those of the lines as which a tensor is seen.
pub(super) fn added(builder: &Builder, x: &Tensor) -> Option<AddedDimension> {
    AddedDimension::new(&builder.network.layer(x.operand.layer).shape, &x.operand.shape)
}

/// Lines as images.
pub(in crate::import) fn image(
    builder: &mut Builder,
    node: &Node,
    x: &Tensor,
    added: AddedDimension,
) -> Result<Tensor, Fault> {
    builder.reshape(node, x, added.with_added(x.dims(), 1))
}

/// Images of one row or column as lines.
pub(in crate::import) fn line(
    builder: &mut Builder,
    node: &Node,
    x: &Tensor,
    added: AddedDimension,
) -> Result<Tensor, Fault> {
    let mut dims = x.dims().to_vec();
    dims.remove(if added == AddedDimension::Row { 2 } else { 3 });
    builder.reshape(node, x, dims)
}

/// If the lines that an operator reads are views of images, the operator on these images, if it computes the same: a
/// function of elements or of channels, or one that moves elements. Each operand has the shape of its tensor and the shape
/// in which the operator sees it.
pub(in crate::import) fn on_images(
    operator: &Operator,
    parameters: &[Weights],
    operands: &[[&Shape; 2]],
) -> Option<(Operator, Vec<Weights>, AddedDimension)> {
    let mut all = operands.iter().map(|[own, seen]| AddedDimension::new(own, seen));
    let added = all.next()??;
    if !all.all(|other| other == Some(added)) {
        return None;
    }
    let mut operator = operator.clone();
    match &mut operator {
        Operator::ElementWise(element_wise) => {
            if let Function::PRelu { slope } = &mut element_wise.function {
                *slope = added.with_added(slope, 1);
            }
        }
        Operator::Binary(binary) => {
            if let Some(constant) = &mut binary.constant {
                // With a constant of more dimensions than lines have, the result is no lines.
                if constant.dims.len() > 3 {
                    return None;
                }
                constant.dims = added.with_added(&constant.dims, 1);
            }
        }
        Operator::Where(choice) => {
            for dims in [&mut choice.condition, &mut choice.x, &mut choice.y].into_iter().flatten() {
                if dims.len() > 3 {
                    return None;
                }
                *dims = added.with_added(dims, 1);
            }
        }
        // They have one parameter for each channel.
        Operator::BatchNorm(_) | Operator::InstanceNorm(_) => {
            return Some((operator, parameters.to_vec(), added));
        }
        Operator::Softmax(softmax) => softmax.axes.iter_mut().for_each(|axis| *axis = added.axis(*axis)),
        Operator::Concat(concat) => concat.axis = added.axis(concat.axis),
        Operator::Slice(slice) => {
            slice.starts = added.with_added(&slice.starts, 0);
            slice.steps = added.with_added(&slice.steps, 1);
            slice.lengths = added.with_added(&slice.lengths, 1);
        }
        Operator::Pad(pad) => {
            pad.before = added.with_added(&pad.before, 0);
            pad.after = added.with_added(&pad.after, 0);
        }
        _ => return None,
    }
    let beside = |weights: &Weights| Weights { dims: added.with_added(&weights.dims, 1), ..weights.clone() };
    Some((operator, parameters.iter().map(beside).collect(), added))
}
