//! Normalisations and softmax.

use csdfc_plan::operator::{
    BatchNorm, Function, InstanceNorm, Lrn, Operator, Reduce, ReduceFunction, Softmax,
};

use super::parts::{number, part, tensor};
use super::{binary, element_wise, reduce};
use crate::import::builder::{Builder, is_channels_last};
use crate::import::constant::Constant;
use crate::import::error::{Fault, fault};
use crate::import::node::{Node, Tensor, Value, axis};
use csdfc_network::weights::Weights;

/// `BatchNormalization` at inference: one scale and one shift per channel.
pub(super) fn batch_norm(builder: &mut Builder, node: &Node) -> Result<Tensor, Fault> {
    // Before opset 14, outputs of statistics say that the node is in training mode.
    let statistics = node.proto.output.iter().skip(1).any(|name| !name.is_empty());
    if node.flag("training_mode", false)? || (node.opset < 14 && statistics) {
        return Err(Fault::new("it is in training mode").help("export the model for inference"));
    }
    if node.opset < 9 && !node.flag("spatial", true)? {
        return fault!("spatial = 0 is not supported");
    }
    let epsilon = f64::from(node.float("epsilon", 1e-5)?);
    let mut vectors = Vec::with_capacity(4);
    for (i, what) in ["scale", "bias", "mean", "variance"].into_iter().enumerate() {
        vectors.push(node.constant(i + 1, what)?.to_floats()?);
    }
    let [scale, bias, mean, variance] = vectors.as_slice() else { return fault!("it needs four vectors") };
    let channels = scale.len();
    if vectors.iter().any(|vector| vector.len() != channels) {
        return fault!("its scale, bias, mean and variance differ in length");
    }
    let factor = |c: usize| f64::from(scale[c]) / (f64::from(variance[c]) + epsilon).sqrt();
    let factors: Vec<f32> = (0..channels).map(|c| factor(c) as f32).collect();
    let shifts: Vec<f32> =
        (0..channels).map(|c| (f64::from(bias[c]) - f64::from(mean[c]) * factor(c)) as f32).collect();
    let operator = Operator::BatchNorm(BatchNorm { channels, activation: None });
    let parameters = vec![Weights::new([channels], factors), Weights::new([channels], shifts)];
    builder.layer(node, operator, &[node.tensor(0)?], parameters)
}

pub(super) fn instance_norm(builder: &mut Builder, node: &Node) -> Result<Tensor, Fault> {
    let (scale, shift) = (node.constant(1, "scale")?.weights()?, node.constant(2, "bias")?.weights()?);
    let epsilon = node.float("epsilon", 1e-5)?;
    let operator = Operator::InstanceNorm(InstanceNorm { channels: scale.elements(), epsilon });
    builder.layer(node, operator, &[node.tensor(0)?], vec![scale, shift])
}

/// `LayerNormalization`: elements over the dimensions from an axis on get mean 0 and variance 1. Then they get a scale
/// and a bias. Its other outputs are not computed.
pub(super) fn layer_norm(builder: &mut Builder, node: &Node) -> Result<Tensor, Fault> {
    let x = node.tensor(0)?;
    let axes: Vec<usize> = (axis(node.int("axis", -1)?, x.rank())?..x.rank()).collect();
    let (scale, bias) = (node.constant(1, "scale")?, node.optional(2, "bias")?);
    let epsilon = node.float("epsilon", 1e-5)?;
    // Channels are normalised where they lie.
    let first = if axes == [3] && is_channels_last(&x.operand.shape) { builder.reordered(x) } else { None };
    let Some(first) = first else {
        let y = standardised(builder, node, x, &axes, epsilon)?;
        let mut y = binary::of_two_operands(builder, node, "Mul", &y, scale.clone())?;
        if let Some(bias) = bias {
            y = binary::of_two_operands(builder, node, "Add", &y, bias.clone())?;
        }
        return if y.dims() == x.dims() {
            Ok(y)
        } else {
            fault!("its scale or bias is larger than its input")
        };
    };
    let y = standardised(builder, node, &first, &[1], epsilon)?;
    let y = per_channel(builder, node, &y, scale, bias)?;
    Ok(builder.reordered(&y).unwrap_or(y))
}

/// `RMSNormalization`: elements over the dimensions from an axis on get a mean square of 1, and then a scale.
pub(super) fn rms_norm(builder: &mut Builder, node: &Node) -> Result<Tensor, Fault> {
    let x = node.tensor(0)?;
    let axes: Vec<usize> = (axis(node.int("axis", -1)?, x.rank())?..x.rank()).collect();
    let epsilon = node.float("epsilon", 1e-5)?;
    let Some(scale) = node.input(1) else { return fault!("operand 1, its scale, is missing") };
    // Channels are normalised where they lie.
    let first = if axes == [3] && is_channels_last(&x.operand.shape) { builder.reordered(x) } else { None };
    match (first, scale) {
        (Some(first), Value::Constant(scale)) if scale.elements() == x.dims()[3] => {
            let y = of_unit_square(builder, node, &first, &[1], epsilon)?;
            let y = per_channel(builder, node, &y, scale, None)?;
            Ok(builder.reordered(&y).unwrap_or(y))
        }
        _ => {
            let y = of_unit_square(builder, node, x, &axes, epsilon)?;
            binary::of_two_operands(builder, node, "Mul", &y, scale.clone())
        }
    }
}

/// `GroupNormalization`: an instance normalisation whose channels are the groups, and then a scale and a bias.
pub(super) fn group_norm(builder: &mut Builder, node: &Node) -> Result<Tensor, Fault> {
    let x = node.tensor(0)?;
    let (scale, bias) = (node.constant(1, "scale")?, node.constant(2, "bias")?);
    let groups = usize::try_from(node.int("num_groups", 0)?).unwrap_or(0);
    let &[batch, channels, ref image @ ..] = x.dims() else {
        return fault!("its input has rank {} ({}) and no channels", x.rank(), x.operand.shape);
    };
    if groups == 0 || channels % groups != 0 {
        return fault!("{groups} groups of {channels} channels");
    }
    let elements = channels / groups * image.iter().product::<usize>();
    let seen = builder.reshape(node, x, vec![batch, groups, elements])?;
    let operator =
        Operator::InstanceNorm(InstanceNorm { channels: groups, epsilon: node.float("epsilon", 1e-5)? });
    let parameters = [1.0, 0.0].map(|value| Weights::new([groups], vec![value; groups]));
    let y = builder.layer(node, operator, &[&seen], parameters.into())?;
    let y = builder.reshape(node, &y, x.dims().to_vec())?;
    // Before opset 21 there is one for each group.
    let each = |vector: &Constant| -> Result<Constant, Fault> {
        match vector.elements() {
            count if node.opset < 21 && count == groups => {
                let values = vector.to_floats()?;
                let values = (0..channels).map(|channel| values[channel / (channels / groups)]).collect();
                Ok(Constant::floats([channels], values))
            }
            _ => Ok(vector.clone()),
        }
    };
    per_channel(builder, node, &y, &each(scale)?, Some(&each(bias)?))
}

/// `MeanVarianceNormalization`: mean 0 and variance 1 over some dimensions.
pub(super) fn mean_variance(builder: &mut Builder, node: &Node) -> Result<Tensor, Fault> {
    const EPSILON: f32 = 1e-9;
    let x = Value::from(node.tensor(0)?.clone());
    let axes = node.ints("axes")?.unwrap_or(&[0, 2, 3]);
    let axes = Value::from(Constant::ints([axes.len()], axes.to_vec()));
    let mean = part(builder, node, "ReduceMean", [x.clone(), axes.clone()])?;
    let centred = part(builder, node, "Sub", [x, mean])?;
    let squares = part(builder, node, "Mul", [centred.clone(), centred.clone()])?;
    let variance = part(builder, node, "ReduceMean", [squares, axes])?;
    let deviation = part(builder, node, "Sqrt", [variance])?;
    let deviation = part(builder, node, "Add", [deviation, number(EPSILON)])?;
    tensor(part(builder, node, "Div", [centred, deviation])?)
}

/// `LpNormalization`: elements divided by their norm along an axis; zeros stay.
pub(super) fn lp_norm(builder: &mut Builder, node: &Node) -> Result<Tensor, Fault> {
    let x = node.tensor(0)?;
    let axis = axis(node.int("axis", -1)?, x.rank())?;
    let function = match node.int("p", 2)? {
        1 => ReduceFunction::L1,
        2 => ReduceFunction::L2,
        p => return fault!("p is {p}; 1 and 2 are lawful"),
    };
    let norm = reduced(builder, node, x, function, &[axis])?;
    let least = Function::Clip { min: Some(f32::MIN_POSITIVE), max: None };
    let norm = element_wise::layer(builder, node, &norm, least)?;
    binary::of_two_operands(builder, node, "Div", x, norm)
}

/// The tensor with mean 0 and variance 1 over these dimensions.
fn standardised(
    builder: &mut Builder,
    node: &Node,
    x: &Tensor,
    axes: &[usize],
    epsilon: f32,
) -> Result<Tensor, Fault> {
    let mean = reduced(builder, node, x, ReduceFunction::Mean, axes)?;
    let centred = binary::of_two_operands(builder, node, "Sub", x, mean)?;
    of_unit_square(builder, node, &centred, axes, epsilon)
}

/// The tensor divided by the root of the mean of its squares over these dimensions.
pub(super) fn of_unit_square(
    builder: &mut Builder,
    node: &Node,
    x: &Tensor,
    axes: &[usize],
    epsilon: f32,
) -> Result<Tensor, Fault> {
    let count: usize = axes.iter().map(|axis| x.dims()[*axis]).product();
    let number = |value: f32| Constant::floats([], vec![value]);
    let squares = reduced(builder, node, x, ReduceFunction::SumSquare, axes)?;
    let mean = binary::of_two_operands(builder, node, "Div", &squares, number(count as f32))?;
    let mean = binary::of_two_operands(builder, node, "Add", &mean, number(epsilon))?;
    let root = element_wise::layer(builder, node, &mean, Function::Sqrt)?;
    binary::of_two_operands(builder, node, "Div", x, root)
}

fn reduced(
    builder: &mut Builder,
    node: &Node,
    x: &Tensor,
    function: ReduceFunction,
    axes: &[usize],
) -> Result<Tensor, Fault> {
    reduce::in_either_order(builder, node, x, axes, true, |axes, keep_dims| {
        Operator::Reduce(Reduce { function: function.clone(), axes, keep_dims })
    })
}

/// A scale and a bias of each channel.
fn per_channel(
    builder: &mut Builder,
    node: &Node,
    x: &Tensor,
    scale: &Constant,
    bias: Option<&Constant>,
) -> Result<Tensor, Fault> {
    let channels = scale.elements();
    let scale = Weights { dims: vec![channels], ..scale.weights()? };
    let shift = match bias {
        Some(bias) => Weights { dims: vec![bias.elements()], ..bias.weights()? },
        None => Weights::new([channels], vec![0.0; channels]),
    };
    let operator = Operator::BatchNorm(BatchNorm { channels, activation: None });
    builder.layer(node, operator, &[x], vec![scale, shift])
}

pub(super) fn lrn(builder: &mut Builder, node: &Node) -> Result<Tensor, Fault> {
    let operator = Operator::Lrn(Lrn {
        size: match usize::try_from(node.int("size", 0)?) {
            Ok(size) if size > 0 => size,
            _ => return fault!("size is {}", node.int("size", 0)?),
        },
        alpha: node.float("alpha", 1e-4)?,
        beta: node.float("beta", 0.75)?,
        bias: node.float("bias", 1.0)?,
    });
    builder.layer(node, operator, &[node.tensor(0)?], Vec::new())
}

/// `Softmax` and `LogSoftmax`. Since opset 13 they go over one dimension. Before, they go over all dimensions from that
/// one to the last.
pub(super) fn softmax(builder: &mut Builder, node: &Node) -> Result<Tensor, Fault> {
    let x = node.tensor(0)?;
    let log = node.operator == "LogSoftmax";
    let axes = if node.opset < 13 {
        (axis(node.int("axis", 1)?, x.rank())?..x.rank()).collect()
    } else {
        vec![axis(node.int("axis", -1)?, x.rank())?]
    };
    builder.layer(node, Operator::Softmax(Softmax { axes, log }), &[x], Vec::new())
}
