//! Images of one row as images of one column.
//!
//! Some exporters write a line, such as sound over time, as an image of one row. That would be a single token of the
//! dataflow graph. The same elements as an image of one column are many rows, so that layers can go by parts.

use csdfc_plan::operator::{Coordinates, Function, Operator, Resize, Slice};
use csdfc_plan::shape::Shape;

use super::integers::of_moved_integers;
use super::names::Names;
use crate::weights::{WeightSource, Weights};
use crate::{Layer, LayerId, Network, Operand, operators};

/// Turns images of one row, as which some exporters write lines, into images of one column: `[1, C, 1, L]` into
/// `[1, C, L, 1]`, which has the same elements in memory and goes by rows. Windows begin with columns, and so do operators
/// that lead to windows. Operators behind them go on with columns.
pub(super) fn of_rows(network: Network) -> Network {
    let names = Names::new(&network);
    let leads = leads(&network);
    let Network { layers, outputs, states, .. } = network;
    let result = Network { states, ..Network::default() };
    let mut pass = Pass { network: result, names, places: Vec::new(), turned: Vec::new() };
    for (mut layer, leads) in layers.into_iter().zip(leads) {
        for operand in &mut layer.inputs {
            operand.layer = pass.places[operand.layer.0];
        }
        let (layer, is_turned) = match pass.column(&layer, leads) {
            Some(column) => (pass.with_columns(column), true),
            None => (pass.as_it_was(layer), false),
        };
        let id = pass.add(layer, is_turned);
        pass.places.push(id);
    }
    for mut output in outputs {
        output.operand.layer = pass.places[output.operand.layer.0];
        output.operand = pass.in_its_order(output.operand);
        pass.network.outputs.push(output);
    }
    pass.network
}

struct Pass {
    network: Network,
    names: Names,
    /// The new place of each layer.
    places: Vec<LayerId>,
    /// For each new layer, whether its tensor was an image of one row.
    turned: Vec<bool>,
}

impl Pass {
    fn add(&mut self, layer: Layer, is_turned: bool) -> LayerId {
        self.turned.push(is_turned);
        self.network.add(layer)
    }

    /// The layer with its operands and its output turned, if it is a layer on images of one row that goes on with columns
    /// or begins with them, perhaps since it leads to windows.
    fn column(&self, layer: &Layer, leads: bool) -> Option<Layer> {
        let shape = turned(&layer.shape)?;
        let seen: Vec<Shape> =
            layer.inputs.iter().map(|operand| turned(&operand.shape)).collect::<Option<_>>()?;
        let is_long = seen.iter().chain([&shape]).any(|shape| shape.rows() > 1);
        let begins = leads || has_windows(layer);
        let goes_on = layer.inputs.iter().any(|operand| self.turned[operand.layer.0]);
        if !is_long || !(begins || goes_on) {
            return None;
        }
        let (operator, parameters) = turned_operator(layer)?;
        let mut column = Layer { operator, parameters, shape, ..layer.clone() };
        column.inputs.iter_mut().zip(seen).for_each(|(operand, seen)| operand.shape = seen);
        Some(column)
    }

    /// The layer with copies of those operands that it cannot see as columns where they lie.
    fn with_columns(&mut self, mut layer: Layer) -> Layer {
        for operand in &mut layer.inputs {
            let own = self.network.layer(operand.layer).shape.clone();
            let is_other = own.rank() == 4 && own.order != operand.shape.order;
            if let (true, false, Some(column)) = (is_other, self.turned[operand.layer.0], turned(&own)) {
                operand.layer = self.copy(operand.layer, column, &layer.name);
            }
        }
        layer
    }

    /// A layer that makes no columns, and reads tensors that may be columns now.
    fn as_it_was(&mut self, mut layer: Layer) -> Layer {
        if let [operand] = layer.inputs.as_mut_slice()
            && self.turned[operand.layer.0]
            && let Some(seen) = turned(&operand.shape)
        {
            let operator = match &layer.operator {
                Operator::Transpose(transpose) => {
                    let mut transpose = transpose.clone();
                    transpose.perm.iter_mut().for_each(|axis| *axis = turned_axis(&operand.shape, *axis));
                    Some(Operator::Transpose(transpose))
                }
                Operator::Reduce(_) | Operator::ArgMax(_) => {
                    turned_operator(&layer).map(|(operator, _)| operator)
                }
                _ => None,
            };
            if let Some(operator) = operator
                && operators::output_shape(&operator, std::slice::from_ref(&seen)) == Ok(layer.shape.clone())
            {
                layer.inputs[0].shape = seen;
                layer.operator = operator;
                return layer;
            }
        }
        layer.inputs = layer.inputs.into_iter().map(|operand| self.in_its_order(operand)).collect();
        layer
    }

    /// The operand, or a copy of it if it is a column that is seen in the other order.
    fn in_its_order(&mut self, operand: Operand) -> Operand {
        let own = &self.network.layer(operand.layer).shape;
        let is_other = operand.shape.rank() == 4 && own.order != operand.shape.order;
        match turned(&operand.shape) {
            Some(column) if self.turned[operand.layer.0] && is_other => {
                let name = self.network.layer(operand.layer).name.clone();
                Operand { layer: self.copy(operand.layer, column, &name), ..operand }
            }
            _ => operand,
        }
    }

    /// Adds a layer that copies a tensor, seen in this shape.
    fn copy(&mut self, layer: LayerId, shape: Shape, reader: &str) -> LayerId {
        let of = self.network.layer(layer);
        let (rank, lengths) = (shape.rank(), shape.dims.clone());
        let mut copy = Layer {
            name: self.names.unique(format!("{reader}_copy")),
            output: self.names.unique(format!("{}_copy", of.output)),
            onnx_nodes: Vec::new(),
            operator: Operator::Slice(Slice { starts: vec![0; rank], steps: vec![1; rank], lengths }),
            inputs: vec![Operand { layer, shape: shape.clone() }],
            parameters: Vec::new(),
            shape,
            primitive: None,
            quantization: of.quantization,
        };
        if copy.quantization.is_some() {
            copy.primitive = of_moved_integers(&copy);
        }
        self.add(copy, false)
    }
}

fn has_windows(layer: &Layer) -> bool {
    matches!(
        layer.operator,
        Operator::Conv(_) | Operator::ConvTranspose(_) | Operator::Pool(_) | Operator::Resize(_)
    )
}

/// For each layer, whether windows read its image of one row, perhaps through operators that compute the same on columns.
fn leads(network: &Network) -> Vec<bool> {
    let mut leads = vec![false; network.layers.len()];
    for (at, layer) in network.layers.iter().enumerate().rev() {
        let goes_on = leads[at] && turned_operator(layer).is_some();
        for operand in layer.inputs.iter().filter(|_| goes_on || has_windows(layer)) {
            let is_whole = network.layer(operand.layer).shape == operand.shape;
            leads[operand.layer.0] |= is_whole && turned(&operand.shape).is_some();
        }
    }
    leads
}

/// An image of one row as one of one column.
fn turned(shape: &Shape) -> Option<Shape> {
    let (row, column) = (shape.row_axis()?, shape.column_axis()?);
    let mut turned = shape.clone();
    turned.dims.swap(row, column);
    (shape.rows() == 1).then_some(turned)
}

/// The axis of a turned image.
fn turned_axis(seen: &Shape, axis: usize) -> usize {
    match (seen.row_axis(), seen.column_axis()) {
        (Some(row), Some(column)) if axis == row => column,
        (Some(row), Some(column)) if axis == column => row,
        _ => axis,
    }
}

/// What computes the same on turned images, if there is an operator that does.
fn turned_operator(layer: &Layer) -> Option<(Operator, Vec<Weights>)> {
    let seen = &layer.inputs.first()?.shape;
    let (row, column) = (seen.row_axis()?, seen.column_axis()?);
    if layer.inputs.iter().any(|operand| operand.shape.order != seen.order) {
        return None;
    }
    let axes = |axes: &mut Vec<usize>| {
        axes.iter_mut().for_each(|axis| *axis = turned_axis(seen, *axis));
        axes.sort_unstable();
    };
    // Dimensions that are broadcast, from the last one on. That of the only row is 1.
    let broadcast = |dims: &mut Vec<usize>| {
        let mut all = [vec![1; seen.rank().saturating_sub(dims.len())], dims.clone()].concat();
        all.swap(row, column);
        *dims = all.into_iter().skip_while(|dim| *dim == 1).collect();
    };
    let (mut operator, mut parameters) = (layer.operator.clone(), layer.parameters.clone());
    match &mut operator {
        Operator::Conv(conv) => {
            windows([&mut conv.kernel, &mut conv.stride, &mut conv.dilation], &mut conv.pads);
            filters(&mut parameters);
        }
        Operator::ConvTranspose(conv) => {
            windows([&mut conv.kernel, &mut conv.stride, &mut conv.dilation], &mut conv.pads);
            conv.output_padding.swap(0, 1);
            filters(&mut parameters);
        }
        Operator::Pool(pool) => {
            windows([&mut pool.kernel, &mut pool.stride, &mut pool.dilation], &mut pool.pads)
        }
        Operator::Resize(Resize { scales, size, coordinates, .. }) => {
            scales.swap(0, 1);
            size.swap(0, 1);
            if let Coordinates::TfCropAndResize(crop) = coordinates {
                crop.from.swap(0, 1);
                crop.to.swap(0, 1);
            }
        }
        Operator::ElementWise(element_wise) => {
            if let Function::PRelu { slope } = &mut element_wise.function {
                broadcast(slope);
                parameters.iter_mut().for_each(|weights| broadcast(&mut weights.dims));
            }
        }
        Operator::Binary(binary) => {
            if let Some(constant) = &mut binary.constant {
                broadcast(&mut constant.dims);
                parameters.iter_mut().for_each(|weights| broadcast(&mut weights.dims));
            }
        }
        Operator::BatchNorm(_) | Operator::InstanceNorm(_) | Operator::Lrn(_) | Operator::Convert => {}
        Operator::Softmax(softmax) => axes(&mut softmax.axes),
        Operator::Reduce(reduce) => axes(&mut reduce.axes),
        Operator::ArgMax(arg_max) => arg_max.axis = turned_axis(seen, arg_max.axis),
        Operator::TopK(top) => top.axis = turned_axis(seen, top.axis),
        Operator::Concat(concat) => concat.axis = turned_axis(seen, concat.axis),
        Operator::Slice(slice) => {
            slice.starts.swap(row, column);
            slice.steps.swap(row, column);
            slice.lengths.swap(row, column);
        }
        Operator::Pad(pad) => {
            pad.before.swap(row, column);
            pad.after.swap(row, column);
        }
        _ => return None,
    }
    Some((operator, parameters))
}

fn windows(pairs: [&mut [usize; 2]; 3], pads: &mut [usize; 4]) {
    pairs.into_iter().for_each(|pair| pair.swap(0, 1));
    *pads = [pads[1], pads[0], pads[3], pads[2]];
}

/// Turns the filters of a convolution, its first parameter.
fn filters(parameters: &mut [Weights]) {
    let Some(filters) = parameters.first_mut() else { return };
    let of = filters.clone();
    filters.dims.swap(2, 3);
    if of.dims[2] > 1 && of.dims[3] > 1 {
        (filters.source, filters.scale) =
            (WeightSource::Transposed { of: Box::new(of), perm: vec![0, 1, 3, 2] }, None);
    }
}
