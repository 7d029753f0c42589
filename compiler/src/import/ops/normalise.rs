//! Normalisations and softmax.

use csdfc_codegen::operator::{BatchNorm, InstanceNorm, Lrn, Operator, Softmax};

use crate::import::builder::Builder;
use crate::import::error::{Fault, fault};
use crate::import::node::{Node, Tensor, axis};
use crate::network::weights::Weights;

/// `BatchNormalization` at inference: one scale and one shift per channel.
pub(super) fn batch_norm(builder: &mut Builder, node: &Node) -> Result<Tensor, Fault> {
    if node.flag("training_mode", false)? {
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
    let parameters = vec![Weights::of([channels], factors), Weights::of([channels], shifts)];
    builder.layer(node, operator, &[node.tensor(0)?], parameters)
}

pub(super) fn instance_norm(builder: &mut Builder, node: &Node) -> Result<Tensor, Fault> {
    let (scale, shift) = (node.constant(1, "scale")?.weights()?, node.constant(2, "bias")?.weights()?);
    let epsilon = node.float("epsilon", 1e-5)?;
    let operator = Operator::InstanceNorm(InstanceNorm { channels: scale.elements(), epsilon });
    builder.layer(node, operator, &[node.tensor(0)?], vec![scale, shift])
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
