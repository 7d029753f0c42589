//! Batch norms and activations move into the convolutions after them.
//!
//! If a convolution made the tensor that they read, [`super::fold::affine`] and [`super::fuse::activations`] have
//! already moved them into that convolution. They remain after a concat, a pool or a sum that others read too, as in
//! DenseNet and in ResNet's second version. There, their output is as large as the tensor that they read. A convolution
//! that does their work as it loads its input makes this output unnecessary. (For quantized models, which have them
//! between conversions, see `integer_prologues`.)

use csdfc_plan::operator::{Conv, Function, Operator, Pre};

use super::fold::{Affine, affine_of};
use super::rewrite::drop_dead;
use crate::operators::is_depthwise;
use crate::weights::Weights;
use crate::{Layer, Network, Operand};

/// Moves element-wise layers into all convolutions that read them, if only convolutions read them and it saves more
/// than it costs. The layers are batch norms, activations, and additions, subtractions, multiplications or divisions by
/// per-channel or scalar constants. The zeros with which a convolution pads stay zeros.
pub(super) fn into_convolutions(mut network: Network) -> Network {
    let mut is_output = vec![false; network.layers.len()];
    for output in &network.outputs {
        is_output[output.operand.layer.0] = true;
    }
    let mut readers = network.readers();
    // Go from the last layer to the first, since a layer may be removed once the layer after it has been removed.
    for id in network.ids().collect::<Vec<_>>().into_iter().rev() {
        if is_output[id.0] || readers[id.0].is_empty() {
            continue;
        }
        let Some((step, operand)) = step_of(network.layer(id)) else { continue };
        let (operand, many) = (operand.clone(), readers[id.0].len());
        let own = Operand { layer: id, shape: operand.shape.clone() };
        let folded = readers[id.0].iter().map(|reader| step.joined_to(network.layer(*reader), &own, many));
        let Some(folded) = folded.collect::<Option<Vec<_>>>() else { continue };
        let nodes = std::mem::take(&mut network.layers[id.0].onnx_nodes);
        let own = std::mem::take(&mut readers[id.0]);
        for (reader, (conv, parameters)) in own.iter().zip(folded) {
            let reader = &mut network.layers[reader.0];
            (reader.operator, reader.parameters) = (Operator::Conv(conv), parameters);
            reader.inputs = vec![operand.clone()];
            reader.onnx_nodes.splice(0..0, nodes.iter().cloned());
        }
        let of_producer = &mut readers[operand.layer.0];
        of_producer.retain(|reader| *reader != id);
        of_producer.extend(own);
    }
    drop_dead(network)
}

/// What a layer does to each element: a product and a sum per channel, then a function.
struct Prologue {
    /// Scales and shifts, one of each per channel.
    affine: Option<[Weights; 2]>,
    activation: Option<Function>,
}

/// The prologue that a layer amounts to, and its image, if the layer does nothing else.
fn step_of(layer: &Layer) -> Option<(Prologue, &Operand)> {
    let [operand] = layer.inputs.as_slice() else { return None };
    if layer.shape.rank() != 4 || layer.shape.channel_axis() != Some(1) || layer.shape != operand.shape {
        return None;
    }
    let channels = layer.shape.channels();
    let affine = match &layer.operator {
        Operator::BatchNorm(_) => {
            let [scale, shift] = layer.parameters.as_slice() else { return None };
            Some([scale.clone(), shift.clone()])
        }
        Operator::Binary(_) => {
            let Affine { scale, shift } = affine_of(layer, &layer.shape, 1)?;
            let of = |values: Option<Vec<f32>>, all: f32| {
                Weights::new([channels], values.unwrap_or_else(|| vec![all; channels]))
            };
            Some([of(scale, 1.0), of(shift, 0.0)])
        }
        Operator::ElementWise(_) => None,
        _ => return None,
    };
    let activation = match &layer.operator {
        Operator::ElementWise(element_wise) => Some(&element_wise.function),
        other => other.activation(),
    };
    // A PRelu has slopes, for which a convolution has no place.
    if activation.is_some_and(|f| !f.is_activation() || matches!(f, Function::PRelu { .. })) {
        return None;
    }
    Some((Prologue { affine, activation: activation.cloned() }, operand))
}

impl Prologue {
    /// The reader of the layer's tensor with this step as its prologue. It is one of `many` readers. `None` if it
    /// cannot or should not do the step.
    fn joined_to(&self, reader: &Layer, own: &Operand, many: usize) -> Option<(Conv, Vec<Weights>)> {
        let (Operator::Conv(conv), [operand]) = (&reader.operator, reader.inputs.as_slice()) else {
            return None;
        };
        let is_depthwise = is_depthwise(conv, operand.shape.channels());
        if operand != own || !self.pays(conv, is_depthwise, many) {
            return None;
        }
        let place = 1 + usize::from(conv.bias);
        let (then, own, next) = match &conv.pre {
            Some(_) if self.activation.is_some() => return None,
            Some(pre) if pre.affine => {
                let own = [reader.parameters.get(place)?, reader.parameters.get(place + 1)?];
                (pre.activation.clone(), Some(own), place + 2)
            }
            Some(pre) => (pre.activation.clone(), None, place),
            None => (self.activation.clone(), None, place),
        };
        let affine = match (&self.affine, own) {
            (Some(first), Some(then)) => Some(one_after_the_other(first, then)?),
            (Some(first), None) => Some(first.clone()),
            (None, own) => own.map(|own| own.map(Weights::clone)),
        };
        let pre = Some(Pre { affine: affine.is_some(), activation: then, quantization: None });
        let mut parameters = reader.parameters.get(..place)?.to_vec();
        parameters.extend(affine.into_iter().flatten());
        parameters.extend(reader.parameters.get(next..)?.iter().cloned());
        Some((Conv { pre, ..conv.clone() }, parameters))
    }

    /// Whether it costs little to do this step each time that an element is loaded, instead of once.
    fn pays(&self, conv: &Conv, is_depthwise: bool, many: usize) -> bool {
        match self.activation {
            None | Some(Function::Relu | Function::Clip { .. }) => true,
            // A depthwise convolution can only apply bounds while its sums are in registers.
            _ if is_depthwise => false,
            Some(Function::LeakyRelu { .. } | Function::HardSigmoid { .. } | Function::HardSwish) => true,
            // Exponentials take long, and a window of several pixels loads each element several times.
            _ => many == 1 && conv.kernel == [1, 1],
        }
    }
}

/// `(x·a + b)·c + d` as one scale and one shift.
fn one_after_the_other([a, b]: &[Weights; 2], [c, d]: [&Weights; 2]) -> Option<[Weights; 2]> {
    let values = |weights: &Weights| weights.values().ok();
    let (a, b, c, d) = (values(a)?, values(b)?, values(c)?, values(d)?);
    if [&b, &c, &d].iter().any(|values| values.len() != a.len()) {
        return None;
    }
    let scale: Vec<f32> = a.iter().zip(&c).map(|(a, c)| a * c).collect();
    let shift: Vec<f32> = b.iter().zip(&c).zip(&d).map(|((b, c), d)| b * c + d).collect();
    Some([scale, shift].map(|values| Weights::new([values.len()], values)))
}
