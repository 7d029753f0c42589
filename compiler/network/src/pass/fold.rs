//! Constants move into filters and biases, zero padding into the attributes of its reader.

use csdfc_plan::operator::{BinaryFunction, ConvTranspose, Operator, Pad, PadMode, PoolKind};
use csdfc_plan::shape::Shape;

use super::rewrite::{Rewrite, drop_dead};
use crate::operators::output_shape;
use crate::weights::Weights;
use crate::{Layer, LayerId, Network};

/// Turns zero padding of height and width into an attribute of its reader, if the only reader is a convolution or a
/// mean.
pub(super) fn pads(network: Network) -> Network {
    let mut rewrite = Rewrite::new(network);
    for id in rewrite.network.ids() {
        rewrite.visit(id);
        // One padding may follow another.
        while let Some(producer) = rewrite.sole_producer(id) {
            let Some(operator) = with_pad(rewrite.network.layer(producer), rewrite.network.layer(id)) else {
                break;
            };
            let pad = &mut rewrite.network.layers[producer.0];
            let (inputs, mut nodes) = (pad.inputs.clone(), std::mem::take(&mut pad.onnx_nodes));
            let layer = &mut rewrite.network.layers[id.0];
            nodes.append(&mut layer.onnx_nodes);
            (layer.operator, layer.inputs, layer.onnx_nodes) = (operator, inputs, nodes);
        }
    }
    rewrite.finish()
}

/// The operator of `layer` that also does what `pad`, its producer, does.
fn with_pad(pad: &Layer, layer: &Layer) -> Option<Operator> {
    let Operator::Pad(attributes) = &pad.operator else { return None };
    let operator = padded(&layer.operator, zeros(attributes)?)?;
    // A pool may round its size differently, or refuse padding as wide as its window.
    let shape = output_shape(&operator, &pad.input_shapes()).ok()?;
    (shape == layer.shape).then_some(operator)
}

/// `[top, left, bottom, right]` of a padding by zeros of height and width alone.
fn zeros(pad: &Pad) -> Option<[usize; 4]> {
    let ([0, 0, top, left], [0, 0, bottom, right]) = (pad.before.as_slice(), pad.after.as_slice()) else {
        return None;
    };
    let zero = pad.mode == PadMode::Constant { value: Some(0.0) };
    let sides = [*top, *left, *bottom, *right].map(|side| usize::try_from(side).ok());
    match sides {
        [Some(top), Some(left), Some(bottom), Some(right)] if zero => Some([top, left, bottom, right]),
        _ => None,
    }
}

/// The operator with zeros added around its input.
fn padded(operator: &Operator, added: [usize; 4]) -> Option<Operator> {
    let mut operator = operator.clone();
    let pads = match &mut operator {
        // The prologue would change the zeros as it changes the input.
        Operator::Conv(conv) if conv.pre.is_none() => &mut conv.pads,
        Operator::Pool(pool) => {
            // The zeros counted in the mean. So the pool's own padding, if there is any, must count too.
            let PoolKind::Average { count_include_pad } = &mut pool.kind else { return None };
            if !*count_include_pad && pool.pads != [0; 4] {
                return None;
            }
            *count_include_pad = true;
            &mut pool.pads
        }
        _ => return None,
    };
    for (pad, added) in pads.iter_mut().zip(added) {
        *pad = pad.checked_add(added)?;
    }
    Some(operator)
}

/// Moves batch norms, and additions, subtractions, multiplications and divisions by per-channel or scalar constants,
/// into the filters and the bias of the layer before them, if nothing else reads that layer's tensor.
///
/// Filters are scaled when their values are read, except that those of grouped transposed convolutions are scaled at
/// once. Constants that cannot be read, or are not finite, stay where they are.
pub(super) fn affine(network: Network) -> Network {
    let mut rewrite = Rewrite::new(network);
    for id in rewrite.network.ids() {
        rewrite.visit(id);
        let Some(producer) = rewrite.sole_producer(id) else { continue };
        let (before, layer) = (rewrite.network.layer(producer), rewrite.network.layer(id));
        if before.operator.activation().is_some() || layer.operator.activation().is_some() {
            continue;
        }
        if let Some(folded) = folded(before, layer) {
            let before = &mut rewrite.network.layers[producer.0];
            (before.operator, before.parameters) = folded;
            rewrite.fuse_with_reader(producer, id);
        }
    }
    rewrite.finish()
}

/// Moves the same operations on the last dimension into the weights and the bias of the fully connected layers after them, if
/// these are all that read the result: a layer normalization ends in such constants.
///
/// Weights that the model's file has as 16-bit floats or as integers stay as they are.
pub(super) fn affine_before_products(mut network: Network) -> Network {
    let mut is_folded = vec![false; network.layers.len()];
    for id in (0..network.layers.len()).rev().map(LayerId) {
        let layer = network.layer(id);
        let Some(axis) = layer.shape.rank().checked_sub(1) else { continue };
        let [x] = layer.inputs.as_slice() else { continue };
        if x.shape != layer.shape || layer.operator.activation().is_some() {
            continue;
        }
        let Some(affine) = affine_of(layer, &layer.shape, axis) else { continue };
        let is_output = network.outputs.iter().any(|output| output.operand.layer == id);
        let reads = |other: &LayerId| network.layer(*other).inputs.iter().any(|operand| operand.layer == id);
        let readers: Vec<LayerId> =
            network.ids().filter(|other| !is_folded[other.0] && reads(other)).collect();
        let into =
            |reader: &LayerId| Some((*reader, with_affine_before(network.layer(*reader), layer, &affine)?));
        let Some(folded) = readers.iter().map(into).collect::<Option<Vec<_>>>() else { continue };
        if is_output || folded.is_empty() {
            continue;
        }
        is_folded[id.0] = true;
        let (x, nodes) = (x.clone(), layer.onnx_nodes.clone());
        for (reader, (operator, parameters)) in folded {
            let reader = &mut network.layers[reader.0];
            (reader.operator, reader.parameters) = (operator, parameters);
            reader.inputs = vec![x.clone()];
            let nodes = nodes.iter().filter(|node| !reader.onnx_nodes.contains(node)).cloned();
            let nodes: Vec<String> = nodes.collect();
            reader.onnx_nodes.splice(..0, nodes);
        }
    }
    drop_dead(network)
}

/// Operator and parameters of a fully connected layer that also does what `layer`, which it reads, does.
fn with_affine_before(reader: &Layer, layer: &Layer, affine: &Affine) -> Option<(Operator, Vec<Weights>)> {
    let (Operator::Gemm(gemm), [operand]) = (&reader.operator, reader.inputs.as_slice()) else { return None };
    let [inner, outer] = if gemm.transposed { [1, 0] } else { [0, 1] };
    let weights = reader.parameters.first()?;
    let is_narrow = weights.scales(outer).is_some() || weights.half_scales(outer).is_some();
    let is_scaled = weights.scale.as_ref().is_some_and(|scale| scale.axis != inner);
    if operand.shape != layer.shape || is_narrow || is_scaled {
        return None;
    }
    let mut parameters = reader.parameters.clone();
    let mut gemm = gemm.clone();
    if let Some(shift) = &affine.shift {
        let mut bias =
            if gemm.bias { values(reader.parameters.get(1)?, gemm.units)? } else { vec![0.0; gemm.units] };
        let weights = values(weights, gemm.inner * gemm.units)?;
        let place = |k: usize, unit: usize| {
            if gemm.transposed { unit * gemm.inner + k } else { k * gemm.units + unit }
        };
        for (unit, bias) in bias.iter_mut().enumerate() {
            let product = |(k, shift): (usize, &f32)| f64::from(*shift) * f64::from(weights[place(k, unit)]);
            *bias = (f64::from(*bias) + shift.iter().enumerate().map(product).sum::<f64>()) as f32;
        }
        let places = 1..1 + usize::from(gemm.bias);
        parameters.splice(places, [Weights::new([gemm.units], bias)]);
        gemm.bias = true;
    }
    if let Some(scale) = &affine.scale {
        parameters[0] = weights.clone().scaled(inner, scale);
    }
    Some((Operator::Gemm(gemm), parameters))
}

/// `scale · x + shift`, one of each per channel where present.
pub(super) struct Affine {
    pub scale: Option<Vec<f32>>,
    pub shift: Option<Vec<f32>>,
}

/// Operator and parameters of `before` that also do what `layer`, its reader, does.
fn folded(before: &Layer, layer: &Layer) -> Option<(Operator, Vec<Weights>)> {
    let mut operator = before.operator.clone();
    let (axis, bias) = match &mut operator {
        // A residual is added to the sums and cannot be scaled by the filters.
        Operator::Conv(conv) if !conv.residual => (1, &mut conv.bias),
        Operator::ConvTranspose(conv) => (1, &mut conv.bias),
        Operator::Gemm(gemm) => (before.shape.rank().checked_sub(1)?, &mut gemm.bias),
        _ => return None,
    };
    if layer.shape != before.shape {
        return None;
    }
    let channels = *before.shape.dims.get(axis)?;
    let Affine { scale, shift } = affine_of(layer, &before.shape, axis)?;
    let filters = before.parameters.first()?;
    let mut parameters = vec![match &scale {
        Some(scale) => scaled_filters(&before.operator, filters, scale)?,
        None => filters.clone(),
    }];
    let old = if *bias { Some(values(before.parameters.get(1)?, channels)?) } else { None };
    let scaled = match (old, scale) {
        (Some(old), Some(scale)) => Some(old.iter().zip(scale).map(|(bias, scale)| bias * scale).collect()),
        (old, _) => old,
    };
    let new: Option<Vec<f32>> = match (scaled, shift) {
        (Some(bias), Some(shift)) => Some(bias.iter().zip(shift).map(|(bias, shift)| bias + shift).collect()),
        (bias, shift) => bias.or(shift),
    };
    let others = before.parameters.iter().skip(1 + usize::from(*bias));
    *bias = new.is_some();
    parameters.extend(new.map(|new| Weights::new([channels], new)));
    parameters.extend(others.cloned());
    Some((operator, parameters))
}

/// What `layer` does to each index along `axis` of its input, of this shape.
pub(super) fn affine_of(layer: &Layer, shape: &Shape, axis: usize) -> Option<Affine> {
    let channels = shape.dims[axis];
    let binary = match &layer.operator {
        Operator::BatchNorm(norm) => {
            if shape.channel_axis() != Some(axis) || norm.channels != channels {
                return None;
            }
            let [scale, shift] = layer.parameters.as_slice() else { return None };
            return Some(Affine {
                scale: Some(values(scale, channels)?),
                shift: Some(values(shift, channels)?),
            });
        }
        Operator::Binary(binary) => binary,
        _ => return None,
    };
    let constant = per_channel(layer.parameters.first()?, shape, axis)?;
    let left = binary.constant.as_ref()?.left;
    let affine = match (binary.function, left) {
        (BinaryFunction::Add, _) => Affine { shift: Some(constant), scale: None },
        (BinaryFunction::Mul, _) => Affine { scale: Some(constant), shift: None },
        (BinaryFunction::Sub, false) => {
            Affine { shift: Some(constant.iter().map(|c| -c).collect()), scale: None }
        }
        (BinaryFunction::Sub, true) => Affine { scale: Some(vec![-1.0; channels]), shift: Some(constant) },
        (BinaryFunction::Div, false) => {
            Affine { scale: Some(constant.iter().map(|c| c.recip()).collect()), shift: None }
        }
        _ => return None,
    };
    let finite = |values: &Option<Vec<f32>>| values.iter().flatten().all(|value| value.is_finite());
    (finite(&affine.scale) && finite(&affine.shift)).then_some(affine)
}

/// The values of a constant that varies along no dimension of `shape` but `axis`, one for each index of that dimension.
fn per_channel(constant: &Weights, shape: &Shape, axis: usize) -> Option<Vec<f32>> {
    let channels = shape.dims[axis];
    // Dimensions count from the last, as in broadcasting.
    let from_last = shape.rank() - 1 - axis;
    let varies = |(i, dim): (usize, &usize)| *dim != 1 && (i != from_last || *dim != channels);
    if constant.dims.len() > shape.rank() || constant.dims.iter().rev().enumerate().any(varies) {
        return None;
    }
    match constant.elements() {
        1 => Some(vec![values(constant, 1)?[0]; channels]),
        _ => values(constant, channels),
    }
}

fn values(weights: &Weights, count: usize) -> Option<Vec<f32>> {
    if weights.elements() != count {
        return None;
    }
    // Planning does not need the values. If the file cannot be read, the first caller that needs them gets the error.
    weights.values().ok().filter(|values| values.len() == count)
}

/// The filters with each output channel multiplied by its factor.
fn scaled_filters(operator: &Operator, filters: &Weights, factors: &[f32]) -> Option<Weights> {
    let axis = match operator {
        Operator::Conv(_) => 0,
        Operator::ConvTranspose(conv) if conv.groups == 1 => 1,
        Operator::ConvTranspose(conv) => return scaled_groups(conv, filters, factors),
        Operator::Gemm(gemm) => usize::from(!gemm.transposed),
        _ => return None,
    };
    let fits = filters.dims.get(axis) == Some(&factors.len());
    let lazy = filters.scale.as_ref().is_none_or(|scale| scale.axis == axis);
    (fits && lazy).then(|| filters.clone().scaled(axis, factors))
}

/// The filters of a grouped transposed convolution, `[C, filters / groups, …]`, have no dimension for the output
/// channel.
fn scaled_groups(conv: &ConvTranspose, filters: &Weights, factors: &[f32]) -> Option<Weights> {
    let &[channels, per_group, height, width] = filters.dims.as_slice() else { return None };
    let mut scaled = values(filters, filters.elements())?;
    let (area, group) = (height * width, channels / conv.groups.max(1));
    if area == 0 || per_group == 0 || group == 0 {
        return None;
    }
    for (i, filter) in scaled.chunks_mut(area).enumerate() {
        let factor = factors.get(i / per_group / group * per_group + i % per_group)?;
        filter.iter_mut().for_each(|value| *value *= factor);
    }
    Some(Weights::new(filters.dims.clone(), scaled))
}
