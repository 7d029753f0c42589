//! Integers: a layer between 8-bit integers computes on them.
//!
//! A quantized model states its integers by pairs of conversions around operators on floats: QuantizeLinear turns
//! numbers into integers, and DequantizeLinear turns the integers into numbers again. Suppose that a layer reads only
//! dequantized integers, and that its output is only quantized. If a primitive can, such a layer then reads the
//! integers and writes the quantized integers itself. A layer that only moves elements moves integers as they are.
//! Layers that no primitive computes on integers keep floats between the conversions.
//!
//! ```text
//! q → dequantize → conv → quantize → dequantize → pool → quantize → …        q → conv → pool → …
//! ```

use csdfc_plan::format::{Element, Quantization};
use csdfc_plan::operator::{BinaryFunction, Operator, PadMode, PoolKind, ResizeMode};
use csdfc_plan::shape::Shape;
use csdfc_runtime::bind::{self, Primitive};

use super::names::Names;
use super::{copies, rewrite};
use crate::weights::Weights;
use crate::{Layer, LayerId, Network, Operand};

/// Lets layers compute on integers where they can, and makes outputs bytes whose callers get these. Other networks stay as
/// they are.
pub fn integers(network: Network) -> Network {
    let has_integers = network.layers.iter().any(|layer| layer.quantization.is_some());
    if !has_integers && network.outputs.iter().all(|output| output.integers.is_none()) {
        return network;
    }
    let mut pass = Pass {
        readers: readers(&network),
        names: Names::new(&network),
        result: Network {
            outputs: network.outputs.clone(),
            states: network.states.clone(),
            ..Network::default()
        },
        places: Vec::new(),
        seen: Vec::new(),
        source: network,
    };
    for id in pass.source.ids() {
        pass.visit(id);
    }
    for output in &mut pass.result.outputs {
        output.operand.layer = pass.places[output.operand.layer.0];
    }
    super::legalise(rewrite::drop_dead(pass.result))
}

/// How often each tensor is read, network outputs counted, and the last layer that reads it.
fn readers(network: &Network) -> Vec<(usize, Option<LayerId>)> {
    let mut readers = vec![(0, None); network.layers.len()];
    for id in network.ids() {
        for operand in &network.layer(id).inputs {
            readers[operand.layer.0] = (readers[operand.layer.0].0 + 1, Some(id));
        }
    }
    for output in &network.outputs {
        readers[output.operand.layer.0].0 += 1;
    }
    readers
}

struct Pass {
    source: Network,
    readers: Vec<(usize, Option<LayerId>)>,
    names: Names,
    result: Network,
    /// The new place of each layer.
    places: Vec<LayerId>,
    /// The integers that stand for a layer's tensor, if there are any: a tensor of the result, seen in the layer's shape.
    seen: Vec<Option<Operand>>,
}

impl Pass {
    fn visit(&mut self, id: LayerId) {
        let mut layer = self.source.layer(id).clone();
        let integers: Option<Vec<Operand>> = layer.inputs.iter().map(|x| self.as_integers(x)).collect();
        for operand in &mut layer.inputs {
            operand.layer = self.places[operand.layer.0];
        }
        let integers = integers.filter(|integers| !integers.is_empty());
        let seen = match (&layer.operator, integers) {
            (_, None) => None,
            (Operator::Convert, Some(integers)) => {
                let seen = self.convert(&mut layer, &integers[0]);
                let is_same = layer.quantization.is_some() && seen.layer.0 < self.result.layers.len();
                if is_same && self.result.layer(seen.layer).shape == seen.shape {
                    // The integers that it would make exist already.
                    self.places.push(seen.layer);
                    self.seen.push(Some(seen));
                    return;
                }
                Some(seen)
            }
            (_, Some(integers)) => self.compute(id, &mut layer, integers),
        };
        let made = Operand { shape: layer.shape.clone(), layer: self.result.add(layer) };
        let is_integer = self.result.layer(made.layer).quantization.is_some();
        self.places.push(made.layer);
        self.seen.push(seen.or(is_integer.then_some(made)));
    }

    /// An operand of a layer, as integers.
    fn as_integers(&self, operand: &Operand) -> Option<Operand> {
        let seen = self.seen[operand.layer.0].as_ref()?;
        if operand.shape == self.source.layer(operand.layer).shape {
            return Some(seen.clone());
        }
        // A view of a view cannot always be stated as a single view.
        let is_whole = seen.shape == self.result.layer(seen.layer).shape;
        is_whole.then(|| Operand { layer: seen.layer, shape: operand.shape.clone() })
    }

    fn quantization(&self, operand: &Operand) -> Option<Quantization> {
        self.result.layer(operand.layer).quantization
    }

    /// Converts integers. If need be, the layer becomes a conversion from these integers to others. Otherwise nobody
    /// reads the layer any more.
    fn convert(&self, layer: &mut Layer, integers: &Operand) -> Operand {
        layer.inputs = vec![integers.clone()];
        let made = layer.quantization.filter(|made| self.quantization(integers) != Some(*made));
        if made.is_some() {
            layer.primitive = requantize();
            return Operand { layer: LayerId(self.result.layers.len()), shape: layer.shape.clone() };
        }
        Operand { layer: integers.layer, shape: layer.shape.clone() }
    }

    /// Makes a layer compute on integers, if it can, and returns its output.
    fn compute(&mut self, id: LayerId, layer: &mut Layer, integers: Vec<Operand>) -> Option<Operand> {
        let quantize = self.sole_quantize(id);
        let own = quantize.and_then(|reader| self.source.layer(reader).quantization);
        let mut by = Layer { inputs: integers, ..layer.clone() };
        quantize_constant(&mut by);
        by.primitive = primitive(&by);
        by.primitive?;
        by.quantization = if moves(&by.operator) {
            // All operands have the integers of the first one, or are converted to them.
            let first = by.inputs.first().and_then(|x| self.quantization(x));
            let is_one = by.inputs.iter().all(|x| self.quantization(x) == first);
            let all = own.filter(|_| by.inputs.len() > 1).or(first.filter(|_| is_one))?;
            if rounds(&by.operator) && own != Some(all) {
                return None;
            }
            for at in 0..by.inputs.len() {
                by.inputs[at] = self.requantized(by.inputs[at].clone(), all);
            }
            Some(all)
        } else {
            own
        };
        by.quantization?;
        if let Some((scales, has_offset)) = scales(&by)? {
            by.parameters.push(scales);
            if has_offset {
                by.primitive = Some(by.primitive?.with_offset()?);
            }
        }
        bind::bind(by.primitive(), &copies::site(&self.result, &by)).ok()?;
        if let Some(reader) = quantize.filter(|_| by.quantization == own) {
            // The layer takes over the reader's tensor and nodes. Nobody reads the old reader any more.
            let reader = self.source.layer(reader);
            by.onnx_nodes.extend(reader.onnx_nodes.iter().cloned());
            by.output.clone_from(&reader.output);
        }
        *layer = by;
        Some(Operand { layer: LayerId(self.result.layers.len()), shape: layer.shape.clone() })
    }

    /// The conversion to integers that is the only reader of a layer's tensor, without a view.
    fn sole_quantize(&self, id: LayerId) -> Option<LayerId> {
        let (1, Some(reader)) = self.readers[id.0] else { return None };
        let by = self.source.layer(reader);
        let is_quantize = matches!(by.operator, Operator::Convert) && by.quantization.is_some();
        (is_quantize && by.inputs[0].shape == self.source.layer(id).shape).then_some(reader)
    }

    /// The numbers of an operand as other integers.
    fn requantized(&mut self, operand: Operand, to: Quantization) -> Operand {
        let read = self.result.layer(operand.layer);
        if read.quantization == Some(to) {
            return operand;
        }
        let [name, output] = [&read.name, &read.output].map(|name| format!("{name}_requantized"));
        let shape = operand.shape.clone();
        let layer = Layer {
            name: self.names.unique(name),
            output: self.names.unique(output),
            onnx_nodes: Vec::new(),
            operator: Operator::Convert,
            inputs: vec![operand],
            parameters: Vec::new(),
            shape: shape.clone(),
            primitive: requantize(),
            quantization: Some(to),
        };
        Operand { layer: self.result.add(layer), shape }
    }
}

fn requantize() -> Option<Primitive> {
    Primitive::find("convert-requantize-hwc-hwc")
}

/// The primitive that computes a layer on integers, if one does.
fn primitive(layer: &Layer) -> Option<Primitive> {
    let inputs: Vec<&Shape> = layer.inputs.iter().map(|operand| &operand.shape).collect();
    Primitive::all().find(|primitive| {
        primitive.elements() == [Element::U8; 2] && primitive.computes(&layer.operator, &inputs)
    })
}

/// Whether an operator that moves elements also adds others, between two of them or around them, which are rounded.
fn rounds(operator: &Operator) -> bool {
    match operator {
        Operator::Resize(resize) => resize.mode == ResizeMode::Linear,
        Operator::Pad(pad) => matches!(pad.mode, PadMode::Constant { value } if value != Some(0.0)),
        _ => false,
    }
}

/// The primitive that computes a layer whose operands are all integers, if there is one.
pub fn of_integers(layer: &Layer) -> Option<Primitive> {
    let mut by = layer.clone();
    quantize_constant(&mut by);
    primitive(&by)
}

/// The primitive that computes a layer that only moves elements on integers, if one does.
pub fn of_moved_integers(layer: &Layer) -> Option<Primitive> {
    primitive(layer).filter(|_| moves(&layer.operator))
}

/// Whether an operator's output consists of elements of its inputs, or of values between two of them.
fn moves(operator: &Operator) -> bool {
    match operator {
        Operator::Pool(pool) => pool.kind == PoolKind::Max,
        Operator::Concat(_)
        | Operator::Slice(_)
        | Operator::Transpose(_)
        | Operator::DepthToSpace(_)
        | Operator::SpaceToDepth(_)
        | Operator::Pad(_) => true,
        Operator::Resize(resize) => !resize.is_weighted(),
        _ => false,
    }
}

/// Whether an operator's output consists only of elements of its inputs, and zeros.
pub fn moves_exactly(operator: &Operator) -> bool {
    moves(operator) && !rounds(operator)
}

/// Keeps a constant operand as 8-bit integers, if the model stores it so and there is a kernel.
fn quantize_constant(layer: &mut Layer) {
    if let (Operator::Binary(binary), [values]) = (&mut layer.operator, layer.parameters.as_slice())
        && let BinaryFunction::Add | BinaryFunction::Sub | BinaryFunction::Mul = binary.function
        && let Some(constant) = &mut binary.constant
    {
        constant.quantization = values.quantization();
    }
}

/// The scales of a layer's weights, if it has weights, and whether these need an offset. None at all if they are no
/// integers.
#[allow(
    clippy::option_option,
    reason = "the outer one refuses, the inner one says that there is nothing to add"
)]
fn scales(layer: &Layer) -> Option<Option<(Weights, bool)>> {
    let axis = match &layer.operator {
        Operator::Conv(_) => 0,
        Operator::Gemm(gemm) => usize::from(!gemm.transposed),
        _ => return Some(None),
    };
    let (scales, has_offset) = layer.parameters.first()?.scales(axis)?;
    Some(Some((Weights::new([scales.len()], scales), has_offset)))
}
