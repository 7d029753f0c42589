//! Makes the channels of a tensor alike in size, so that one scale serves all of them (Nagel, van Baalen, Blankevoort
//! and Welling, *Data-free quantization through weight equalization and bias correction*, ICCV 2019, section 4.1).
//!
//! Suppose that one convolution follows another, and one of them is depthwise. A channel between them may be divided by
//! a number if the filters that read it are multiplied by the same number. This leaves the function as it is if nothing
//! or a Relu is between the two: Relu(s·x) = s·Relu(x) for positive s. A bound, as of a Relu6, would have to differ
//! from channel to channel.

use csdfc_network::weights::Weights;
use csdfc_network::{Layer, LayerId, Network};
use csdfc_plan::operator::{Conv, Function, Operator};
use csdfc_planner::error::Error as PlannerError;

use crate::error::Error;

/// How often all pairs are equalised. More than once, because equalising a pair changes the neighbouring pairs.
const ROUNDS: usize = 8;

/// A convolution, and the convolution that is the only reader of its output.
struct Pair {
    first: LayerId,
    second: LayerId,
}

/// Makes channels alike in size. For channel i of a pair, with r₁ and r₂ the largest weights that make it and that read it,
/// the divisor is √(r₁·r₂) / r₂ (Eq. 11), so that both are √(r₁·r₂).
pub(super) fn equalise(mut network: Network) -> Result<Network, Error> {
    let pairs = pairs(&network);
    for _ in 0..ROUNDS {
        for pair in &pairs {
            equalise_pair(&mut network, pair)?;
        }
    }
    Ok(network)
}

fn pairs(network: &Network) -> Vec<Pair> {
    let mut uses = vec![Vec::new(); network.layers.len()];
    for id in network.ids() {
        network.layer(id).inputs.iter().for_each(|operand| uses[operand.layer.0].push(Some(id)));
    }
    network.outputs.iter().for_each(|output| uses[output.operand.layer.0].push(None));
    let sole = |id: LayerId| match uses[id.0].as_slice() {
        &[Some(reader)] if network.layer(reader).inputs[0].shape == network.layer(id).shape => Some(reader),
        _ => None,
    };
    let pair = |first: LayerId| {
        let mut second = sole(first)?;
        if is_relu(network.layer(second)) {
            second = sole(second)?;
        }
        let (one, other) = (conv(network.layer(first))?, conv(network.layer(second))?);
        let lawful = is_depthwise(one) != is_depthwise(other) && (other.groups == 1 || is_depthwise(other));
        lawful.then_some(Pair { first, second })
    };
    network.ids().filter_map(pair).collect()
}

fn is_relu(layer: &Layer) -> bool {
    matches!(&layer.operator, Operator::ElementWise(element_wise) if element_wise.function == Function::Relu)
}

/// The attributes of a convolution that does nothing else.
fn conv(layer: &Layer) -> Option<&Conv> {
    match &layer.operator {
        Operator::Conv(conv) if conv.pre.is_none() && !conv.residual && conv.activation.is_none() => {
            Some(conv)
        }
        _ => None,
    }
}

/// Whether each filter reads the channel of its own number.
fn is_depthwise(conv: &Conv) -> bool {
    conv.groups > 1 && conv.groups == conv.filters
}

fn equalise_pair(network: &mut Network, pair: &Pair) -> Result<(), Error> {
    let [first, second] = [pair.first, pair.second].map(|id| network.layer(id));
    let (mut before, mut after) = (values(first, 0)?, values(second, 0)?);
    let mut bias = if first.parameters.len() > 1 { Some(values(first, 1)?) } else { None };
    let dims = &second.parameters[0].dims;
    let channels = first.parameters[0].dims[0];
    // In a depthwise convolution, filter i reads channel i. In any other, the i-th part of every filter does.
    let window: usize = dims[2..].iter().product();
    let channel = |at: usize| at / window % channels;
    let own = before.len() / channels;
    let (mut r1, mut r2) = (vec![0.0_f32; channels], vec![0.0_f32; channels]);
    before.iter().enumerate().for_each(|(at, w)| r1[at / own] = r1[at / own].max(w.abs()));
    after.iter().enumerate().for_each(|(at, w)| r2[channel(at)] = r2[channel(at)].max(w.abs()));
    let divisor = |(r1, r2): (&f32, &f32)| {
        let divisor = (r1 / r2).sqrt();
        // A channel that nothing makes, or nothing reads, stays as it is.
        if divisor.is_normal() { divisor } else { 1.0 }
    };
    let divisors: Vec<f32> = r1.iter().zip(&r2).map(divisor).collect();
    before.iter_mut().enumerate().for_each(|(at, w)| *w /= divisors[at / own]);
    after.iter_mut().enumerate().for_each(|(at, w)| *w *= divisors[channel(at)]);
    bias.iter_mut().flatten().zip(&divisors).for_each(|(b, divisor)| *b /= divisor);
    let of = |old: &Weights, values: Vec<f32>| Weights::new(old.dims.clone(), values);
    let first = &mut network.layers[pair.first.0].parameters;
    first[0] = of(&first[0], before);
    if let Some(bias) = bias {
        first[1] = of(&first[1], bias);
    }
    let second = &mut network.layers[pair.second.0].parameters;
    second[0] = of(&second[0], after);
    Ok(())
}

/// The values of a layer's parameter, which are finite.
pub(super) fn values(layer: &Layer, parameter: usize) -> Result<Vec<f32>, Error> {
    let values =
        layer.parameters[parameter].values().map_err(|error| PlannerError::weights(&layer.name, &error))?;
    match values.iter().find(|value| !value.is_finite()) {
        Some(&value) => Err(Error::InfiniteWeight { layer: layer.name.clone(), value }),
        None => Ok(values),
    }
}
