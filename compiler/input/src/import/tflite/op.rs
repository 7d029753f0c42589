//! One operator with its operands resolved. ONNX nodes express what it computes, and they are imported at once. So only
//! `import::ops` deals with shapes, constants and layers.
//!
//! TFLite's images are channels-last, and tensors keep that order here. An operator on images sees them channels-first,
//! which moves nothing. Its output is seen channels-last again.

use std::collections::BTreeMap;

use rten_onnx::onnx::{AttributeProto, DataType, NodeProto};

use super::dilated::Part;
use super::flat::Record;
use super::schema::Tensor as Stated;
use crate::import::attribute::int;
use crate::import::batch;
use crate::import::builder::{Builder, CHANNELS_LAST_TO_FIRST, FROM_LAST, is_channels_last};
use crate::import::constant::{Constant, Data, count};
use crate::import::error::{Fault, fault};
use crate::import::node::{self, Node, Tensor, Value};

/// The version of ONNX's operators that the nodes are of.
const OPSET: i64 = 21;

/// Axes of an image.
const IMAGE: usize = 4;

/// An operator about to be imported.
pub(super) struct Op<'a, 'b> {
    pub builder: &'b mut Builder,
    /// Its place in the graph.
    pub index: usize,
    pub options: Option<Record<'a>>,
    pub custom: &'a [u8],
    /// Its operands; `None` where an optional one is left out.
    pub inputs: Vec<Option<Operand<'a, 'b>>>,
    /// Its outputs as the file states them.
    pub outputs: Vec<&'b Stated<'a>>,
    /// What it becomes as a part of a dilated convolution, if it is one.
    pub part: Option<&'b Part>,
    /// The numbers that tensors of integers stand for, for the tensors that were asked for.
    pub numbers: &'b mut BTreeMap<usize, Value>,
    /// Tensors that the operator keeps for the next frame, and what they are then.
    pub kept: Vec<(usize, Value)>,
}

/// An operand.
pub(super) struct Operand<'a, 'b> {
    pub index: usize,
    pub stated: &'b Stated<'a>,
    pub value: Value,
}

impl<'a, 'b> Op<'a, 'b> {
    /// The first output of an ONNX node.
    pub fn node<V: Into<Option<Value>>>(
        &mut self,
        operator: &str,
        inputs: impl IntoIterator<Item = V>,
        attributes: Vec<AttributeProto>,
    ) -> Result<Value, Fault> {
        let first = self.nodes(operator, inputs, attributes, 1)?.into_iter().next();
        first.map_or_else(|| fault!("csdfc does not compute it"), Ok)
    }

    /// The outputs of an ONNX node.
    pub fn nodes<V: Into<Option<Value>>>(
        &mut self,
        operator: &str,
        inputs: impl IntoIterator<Item = V>,
        attribute: Vec<AttributeProto>,
        outputs: usize,
    ) -> Result<Vec<Value>, Fault> {
        // All of them are wanted, so each has a name.
        let output = (0..outputs).map(|output| format!("output {output}")).collect();
        let proto = NodeProto { attribute, output, ..NodeProto::default() };
        let inputs = inputs.into_iter().map(Into::into).collect();
        let node = Node { proto: &proto, index: self.index, operator, opset: OPSET, inputs };
        batch::import(self.builder, &node)
    }

    fn view<T>(&mut self, make: impl FnOnce(&mut Builder, &Node) -> Result<T, Fault>) -> Result<T, Fault> {
        let proto = NodeProto::default();
        let node = Node { proto: &proto, index: self.index, operator: "", opset: OPSET, inputs: Vec::new() };
        make(self.builder, &node)
    }

    /// Operand `index` as it is.
    pub fn operand(&self, index: usize) -> Result<&Operand<'a, 'b>, Fault> {
        let operand = self.inputs.get(index).and_then(Option::as_ref);
        operand.map_or_else(|| fault!("operand {index} is missing"), Ok)
    }

    /// Keeps a value as operand `index` of the next frame.
    pub fn keep(&mut self, index: usize, value: Value) {
        if let Some(Some(operand)) = self.inputs.get(index) {
            self.kept.push((operand.index, value));
        }
    }

    pub fn has(&self, index: usize) -> bool {
        matches!(self.inputs.get(index), Some(Some(_)))
    }

    /// The integers of operand `index`, which must be known at import. `what` is its name in the operator's
    /// documentation.
    pub fn ints(&self, index: usize, what: &str) -> Result<Vec<i64>, Fault> {
        self.constant(index, what)?.to_ints()
    }

    /// Operand `index`, which must be known at import.
    pub fn constant(&self, index: usize, what: &str) -> Result<&Constant, Fault> {
        match &self.operand(index)?.value {
            Value::Constant(constant) => Ok(constant),
            Value::Tensor(_) => Err(Fault::new(format!(
                "operand {index}, its {what} ({}), is computed by the network",
                self.operand(index)?.stated.name
            ))
            .help("csdfc needs a constant there; convert the model with fixed shapes")),
        }
    }

    /// The numbers of operand `index`: those that its integers stand for, if it is quantized.
    pub fn number(&mut self, index: usize) -> Result<Value, Fault> {
        let operand = self.operand(index)?;
        let (tensor, stated, value) = (operand.index, operand.stated, operand.value.clone());
        match &value {
            Value::Constant(constant) if !stated.is_quantized() || !is_integer(constant) => return Ok(value),
            Value::Tensor(x)
                if self.builder.quantization(x).is_none()
                    && (x.integers.is_none() || stated.quantization.is_none()) =>
            {
                return Ok(value);
            }
            _ => {}
        }
        if let Some(known) = self.numbers.get(&tensor) {
            return Ok(known.clone());
        }
        let number = self.dequantized(value, stated, Some)?;
        self.numbers.insert(tensor, number.clone());
        Ok(number)
    }

    /// The numbers of all operands.
    pub fn all_numbers(&mut self) -> Result<Vec<Value>, Fault> {
        (0..self.inputs.len()).map(|index| self.number(index)).collect()
    }

    /// Constant operand `index` as parameters of a layer, with its dimensions permuted. Quantized parameters, including
    /// biases of 32 bits, stay integers.
    pub fn weights(&mut self, index: usize, perm: &[usize]) -> Result<Value, Fault> {
        let stated = self.operand(index)?.stated;
        let constant = self.constant(index, "weights")?;
        if constant.dims.len() != perm.len() {
            return fault!("its operand {index} has rank {}, not {}", constant.dims.len(), perm.len());
        }
        let is_integer = is_integer(constant);
        let moved = if perm.is_sorted() { constant.clone() } else { constant.transposed(perm)? };
        if !is_integer || stated.quantization.is_none() {
            return Ok(moved.into());
        }
        // With activations of 16 bits, biases are beyond the integers of weights.
        if stated.element == DataType::INT64 {
            return self.wide(&moved, stated);
        }
        let place = |axis| perm.iter().position(|from| *from == axis);
        self.dequantized(moved.into(), stated, place)
    }

    /// The numbers that integers of 64 bits stand for: one dimension, with a scale for all or for each.
    fn wide(&mut self, x: &Constant, stated: &Stated) -> Result<Value, Fault> {
        let Some(quantization) = &stated.quantization else { return Ok(x.clone().into()) };
        let [scales, _] = quantization.operands(self.builder, stated.element)?;
        let (scales, values) = (scales.to_floats()?, x.to_ints()?);
        if ![1, values.len()].contains(&scales.len()) {
            return fault!(
                "tensor {} has {} scales for {} integers",
                stated.name,
                scales.len(),
                values.len()
            );
        }
        self.builder.charge(values.len())?;
        let numbers = values.iter().zip(scales.iter().cycle()).map(|(value, scale)| *value as f32 * scale);
        Ok(Constant::floats(x.dims.clone(), numbers.collect()).into())
    }

    /// The numbers that integers stand for. `place` maps the dimension that the file states for the scales.
    fn dequantized(
        &mut self,
        value: Value,
        stated: &Stated,
        place: impl Fn(usize) -> Option<usize>,
    ) -> Result<Value, Fault> {
        let Some(quantization) = &stated.quantization else {
            return fault!("tensor {} holds integers without a scale", stated.name);
        };
        let [scales, points] = quantization.operands(self.builder, stated.element)?;
        let rank = dims(&value).len();
        // A vector's scales lie along it, whatever dimension the file states: TFLite does not look.
        let axis = match quantization.count() {
            1 => Some(0),
            _ if rank == 1 => Some(0),
            _ => usize::try_from(quantization.axis).ok().and_then(place).filter(|axis| *axis < rank),
        };
        let Some(axis) = axis else {
            let (name, stated) = (&stated.name, quantization.axis);
            return fault!("tensor {name} has rank {rank}, but scales along dimension {stated}");
        };
        let attributes = vec![int("axis", axis as i64)];
        match value {
            Value::Constant(_) => {
                self.node("DequantizeLinear", [value, scales.into(), points.into()], attributes)
            }
            Value::Tensor(x) => {
                let (x, is_first) = self.first_if_last(x.into())?;
                let y = self.node("DequantizeLinear", [x, scales.into(), points.into()], attributes)?;
                self.last_if(is_first, y)
            }
        }
    }

    /// Indices that a `NonMaxSuppression` made, padded with −1.
    pub fn padded_indices(&mut self, x: Value) -> Result<Value, Fault> {
        match x {
            Value::Tensor(x) => Ok(self.builder.padded_indices(&x)?.into()),
            x => Ok(x),
        }
    }

    /// Output `index` in the elements that the file states for it: integers, if it is quantized.
    pub fn output(&mut self, index: usize, value: Value) -> Result<Value, Fault> {
        let Some(stated) = self.outputs.get(index).copied() else { return Ok(value) };
        let is_done = match &value {
            Value::Tensor(x) => self.builder.quantization(x).is_some() || x.integers.is_some(),
            Value::Constant(x) => is_integer(x),
        };
        let Some(quantization) = stated.quantization.filter(|_| stated.is_quantized() && !is_done) else {
            return Ok(value);
        };
        let [scales, points] = quantization.operands(self.builder, stated.element)?;
        let (x, is_first) = self.first_if_last(value)?;
        let y = self.node("QuantizeLinear", [x, scales.into(), points.into()], Vec::new())?;
        self.last_if(is_first, y)
    }

    /// Operand `index` for an operator that makes a view of it. It stays integers, if the output is to be the same integers.
    pub fn viewed_operand(&mut self, index: usize) -> Result<Value, Fault> {
        let operand = self.operand(index)?;
        let (read, value) = (operand.stated, operand.value.clone());
        let is_same = match (&read.quantization, self.outputs.first().and_then(|made| made.quantization)) {
            (Some(read), Some(made)) => {
                let mut all = |stated: &super::schema::Quantization| {
                    let [scales, points] = stated.operands(self.builder, DataType::INT8)?;
                    Ok::<_, Fault>((scales.to_floats()?, points.to_ints()?))
                };
                all(read)? == all(&made)?
            }
            _ => false,
        };
        if is_same { Ok(value) } else { self.number(index) }
    }

    /// An image channels-first. Nothing moves, if it is an image of the network.
    pub fn first(&mut self, x: Value) -> Result<Value, Fault> {
        match x {
            Value::Tensor(x) if x.rank() == IMAGE => {
                let first = is_channels_last(&x.operand.shape).then(|| self.builder.reordered(&x)).flatten();
                match first {
                    Some(first) => Ok(first.into()),
                    None => Ok(self
                        .view(|builder, node| builder.transpose(node, &x, CHANNELS_LAST_TO_FIRST.to_vec()))?
                        .into()),
                }
            }
            Value::Constant(x) if x.dims.len() == IMAGE => Ok(x.transposed(&CHANNELS_LAST_TO_FIRST)?.into()),
            x => Ok(x),
        }
    }

    /// A channels-first value as TFLite sees it.
    pub fn last(&mut self, y: Value) -> Result<Value, Fault> {
        match y {
            Value::Tensor(y) if y.rank() == IMAGE => match self.builder.reordered(&y) {
                Some(last) => Ok(last.into()),
                None => {
                    Ok(self.view(|builder, node| builder.transpose(node, &y, FROM_LAST.to_vec()))?.into())
                }
            },
            Value::Constant(y) if y.dims.len() == IMAGE => Ok(y.transposed(&FROM_LAST)?.into()),
            y => Ok(y),
        }
    }

    /// An image of the network channels-first; anything else as it is. The flag says which.
    pub fn first_if_last(&mut self, x: Value) -> Result<(Value, bool), Fault> {
        let is_image = matches!(&x, Value::Tensor(x) if is_channels_last(&x.operand.shape));
        Ok((if is_image { self.first(x)? } else { x }, is_image))
    }

    pub fn last_if(&mut self, is_first: bool, y: Value) -> Result<Value, Fault> {
        if is_first { self.last(y) } else { Ok(y) }
    }

    /// Operands that broadcast to each other: channels-first, if one of them is an image of the network.
    pub fn aligned(&mut self, values: Vec<Value>) -> Result<(Vec<Value>, bool), Fault> {
        let is_image =
            |value: &Value| matches!(value, Value::Tensor(x) if is_channels_last(&x.operand.shape));
        let highest = values.iter().map(|value| dims(value).len()).max();
        if !values.iter().any(is_image) || highest != Some(IMAGE) {
            return Ok((values, false));
        }
        let mut aligned = Vec::with_capacity(values.len());
        for value in values {
            let own = dims(&value);
            if batch::batched(&value).is_some() && own.len() < IMAGE {
                return fault!("its operands have the batch in different dimensions");
            }
            let is_scalar = own.iter().all(|dim| *dim == 1) && matches!(value, Value::Constant(_));
            if is_scalar {
                aligned.push(self.reshaped(value, Vec::new())?);
                continue;
            }
            let whole = std::iter::repeat_n(1, IMAGE - own.len()).chain(own).collect();
            let image = self.reshaped(value, whole)?;
            aligned.push(self.first(image)?);
        }
        Ok((aligned, true))
    }

    /// The same elements, in the order in which TFLite has them, in other dimensions.
    pub fn reshaped(&mut self, x: Value, wanted: Vec<usize>) -> Result<Value, Fault> {
        let x = match x {
            Value::Constant(x) if count(&wanted)? == x.elements() => {
                return Ok(x.reshaped(wanted).into());
            }
            Value::Constant(x) => return fault!("{:?} cannot be seen as {wanted:?}", x.dims),
            Value::Tensor(x) => x,
        };
        if dims_of(&x) == wanted {
            return Ok(x.into());
        }
        // Channels-first the elements have the same order, and nothing moves.
        let is_one = matches!(x.dims(), [_, 1, 1, _] | [.., 1]) && is_channels_last(&x.operand.shape);
        let x = if is_one { self.builder.reordered(&x).unwrap_or(x) } else { x };
        Ok(self.view(|builder, node| builder.reshape(node, &x, wanted))?.into())
    }

    /// The activation that is fused into the operator, its option `id`.
    pub fn activated(&mut self, y: Value, id: usize) -> Result<Value, Fault> {
        let code = self.options.map_or(Ok(0), |options| options.code(id))?;
        match code {
            0 => Ok(y),
            1 => self.node("Relu", [y], Vec::new()),
            2 => self.clipped(y, -1.0, 1.0),
            3 => self.clipped(y, 0.0, 6.0),
            4 => self.node("Tanh", [y], Vec::new()),
            other => fault!("its activation {other} is not supported"),
        }
    }

    pub fn clipped(&mut self, x: Value, low: f32, high: f32) -> Result<Value, Fault> {
        self.node("Clip", [x, scalar(low), scalar(high)], Vec::new())
    }

    /// Option `id`, an integer.
    pub fn int(&self, id: usize, default: i32) -> Result<i64, Fault> {
        Ok(i64::from(self.options.map_or(Ok(default), |options| options.int(id, default))?))
    }

    /// Option `id`, an enumerator.
    pub fn code(&self, id: usize) -> Result<i8, Fault> {
        self.options.map_or(Ok(0), |options| options.code(id))
    }

    /// Option `id`, a truth value.
    pub fn flag(&self, id: usize) -> Result<bool, Fault> {
        self.options.map_or(Ok(false), |options| options.flag(id))
    }

    /// Option `id`, a float.
    pub fn float(&self, id: usize, default: f32) -> Result<f32, Fault> {
        self.options.map_or(Ok(default), |options| options.float(id, default))
    }

    /// The axis that an option or an operand states for a tensor of this rank. In an image that is seen channels-first it
    /// is another.
    pub fn axis(&self, axis: i64, rank: usize, is_first: bool) -> Result<usize, Fault> {
        let axis = node::axis(axis, rank)?;
        Ok(if is_first && rank == IMAGE { FROM_LAST[axis] } else { axis })
    }
}

/// The dimensions of a value.
pub(super) fn dims(value: &Value) -> Vec<usize> {
    match value {
        Value::Constant(constant) => constant.dims.clone(),
        Value::Tensor(tensor) => dims_of(tensor),
    }
}

fn dims_of(tensor: &Tensor) -> Vec<usize> {
    tensor.dims().to_vec()
}

/// A list with an entry for each dimension of an image, in channels-first order.
pub(super) fn reordered<T: Copy>(of_last: &[T], is_first: bool) -> Vec<T> {
    match of_last {
        &[batch, row, column, channel] if is_first => vec![batch, channel, row, column],
        other => other.to_vec(),
    }
}

/// Whether a constant still has the integers of the file.
fn is_integer(constant: &Constant) -> bool {
    matches!(constant.data, Data::Ints(_))
}

pub(super) fn scalar(value: f32) -> Value {
    Constant::floats([], vec![value]).into()
}

pub(super) fn list(values: Vec<i64>) -> Value {
    Constant::ints([values.len()], values).into()
}
