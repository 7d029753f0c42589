//! Nodes of constants that csdfc's own kernels compute: the node becomes a network of its own, which runs at import.

use csdfc_network::{Layer, Network, NetworkOutput, operators};
use csdfc_plan::operator::{Input, InputElement, Operator};
use csdfc_plan::shape::Shape;
use csdfc_runtime::bind::{Operand as Seen, Site};
use csdfc_runtime::bytes::Bytes;
use csdfc_runtime::run::{self, RunError, whole};
use rten_onnx::onnx::DataType;

use super::index::{Range, take};
use crate::import::builder::{Builder, NodeName};
use crate::import::constant::{Constant, Data};
use crate::import::error::{Fault, fault};
use crate::import::graph::without_dead_layers;
use crate::import::node::{Node, Value};
use crate::import::ops::integers;

/// Floats hold every integer up to this absolute value.
const MAX: f32 = 16_777_216.0;

/// Multiply-accumulates that count as much as one element against the budget of what is computed at import.
const MACS_OF_ELEMENT: u64 = 256;

/// How the operators import a node.
type Import<'a> = dyn Fn(&mut Builder, &Node) -> Result<Vec<Value>, Fault> + 'a;

/// The outputs of a node of constants. Its first operand is the input of the network into which `import` turns the node.
pub(in crate::import) fn compute(
    builder: &mut Builder,
    node: &Node,
    import: &Import,
) -> Result<Vec<Value>, Fault> {
    let Some(Value::Constant(first)) = node.input(0) else { return fault!("operand 0 is missing") };
    if matches!(node.operator, "Conv" | "ConvTranspose") && first.dims.len() > 2 && first.dims[0] > 1 {
        return one_by_one(builder, node, first, import);
    }
    let name = NodeName { label: node.operator.into(), output: node.operator.into() };
    let mut own = Builder::new(vec![name]);
    let operator = Operator::Input(Input { element: InputElement::F32, camera: None });
    let x = own.input("x", operator, Shape::new(first.dims.clone()))?;
    let x = match &first.data {
        Data::Floats(_) => x,
        Data::Ints(_) => x.as_integers(first.stored.unwrap_or(DataType::INT64)),
        Data::Bools(_) => x.as_integers(DataType::BOOL),
    };
    let mut inputs = node.inputs.clone();
    inputs[0] = Some(x.into());
    let node = Node { index: 0, inputs, ..*node };
    let mut made = import(&mut own, &node)?;

    let mut elements = Vec::new();
    let mut outputs = Vec::new();
    for value in &made {
        let Value::Tensor(tensor) = value else { continue };
        let held = integers::as_floats(&mut own, &node, tensor, tensor.integers == Some(DataType::INT8))?;
        elements.push(held.integers);
        outputs.push(NetworkOutput::new(String::new(), held.operand));
    }
    let network = without_dead_layers(Network { outputs, ..own.network });
    charge(builder, &network)?;
    let values = first.to_floats()?;
    if !matches!(first.data, Data::Floats(_)) && values.iter().any(|value| value.abs() > MAX) {
        return fault!("its integers exceed {MAX}, up to which csdfc computes with integers exactly");
    }
    let mut results = outputs_of(&network, values)?.into_iter().zip(elements);
    for value in &mut made {
        if matches!(value, Value::Tensor(_))
            && let Some((result, element)) = results.next()
        {
            *value = Value::Constant(constant(result, element));
        }
    }
    Ok(made)
}

/// A convolution of a batch of constant images, each by itself.
fn one_by_one(
    builder: &mut Builder,
    node: &Node,
    batch: &Constant,
    import: &Import,
) -> Result<Vec<Value>, Fault> {
    let mut values = Vec::new();
    let mut dims = Vec::new();
    for start in 0..batch.dims[0] {
        let mut ranges = Range::whole(&batch.dims);
        ranges[0] = Range { start, step: 1, length: 1 };
        let mut inputs = node.inputs.clone();
        inputs[0] = Some(take(builder, batch, &ranges)?.into());
        for made in compute(builder, &Node { inputs, ..*node }, import)? {
            let Value::Constant(made) = made else { continue };
            values.extend(made.to_floats()?);
            dims = made.dims;
        }
    }
    if let Some(images) = dims.first_mut() {
        *images = batch.dims[0];
    }
    Ok(vec![Constant::floats(dims, values).into()])
}

/// Counts all that the layers compute.
fn charge(builder: &mut Builder, network: &Network) -> Result<(), Fault> {
    for layer in &network.layers {
        let macs = operators::macs(&layer.operator, &layer.input_shapes(), &layer.shape);
        builder.charge(usize::try_from(macs / MACS_OF_ELEMENT).unwrap_or(usize::MAX))?;
        builder.charge(layer.shape.elements())?;
    }
    Ok(())
}

/// Runs a network of one input, layer by layer. Tensors are kept until their last reader has run.
fn outputs_of(network: &Network, values: Vec<f32>) -> Result<Vec<run::Value>, Fault> {
    let mut uses = vec![0usize; network.layers.len()];
    let operands = network.layers.iter().flat_map(|layer| &layer.inputs);
    for operand in operands.chain(network.outputs.iter().map(|output| &output.operand)) {
        uses[operand.layer.0] += 1;
    }
    let mut values = Some(values);
    let mut tensors: Vec<Bytes> = Vec::with_capacity(network.layers.len());
    for id in network.ids() {
        let layer = network.layer(id);
        let made = match &layer.operator {
            Operator::Input(_) => whole::store(&layer.shape, values.take().unwrap_or_default()),
            _ => {
                let read: Vec<&[u8]> = layer.inputs.iter().map(|input| &*tensors[input.layer.0]).collect();
                let parameter = |index: usize| network.parameter(id.0, index);
                whole::make(layer.primitive(), &site(network, layer), layer.tensor_bytes(), &read, &parameter)
            }
        };
        tensors.push(made.map_err(in_words)?);
        for input in &layer.inputs {
            uses[input.layer.0] -= 1;
            if uses[input.layer.0] == 0 {
                tensors[input.layer.0] = Bytes::default();
            }
        }
    }
    let output = |output: &NetworkOutput| {
        let layer = network.layer(output.operand.layer);
        let rows = &tensors[output.operand.layer.0];
        run::read(rows, layer.format().element, &layer.shape, &output.operand.shape)
    };
    Ok(network.outputs.iter().map(output).collect())
}

fn site<'a>(network: &'a Network, layer: &'a Layer) -> Site<'a> {
    let operand = |operand: &'a csdfc_network::Operand| {
        let read = network.layer(operand.layer);
        Seen {
            own: &read.shape,
            seen: &operand.shape,
            layout: read.format().layout,
            quantization: read.quantization,
            ring_rows: read.rows(),
        }
    };
    Site {
        operator: &layer.operator,
        inputs: layer.inputs.iter().map(operand).collect(),
        output: &layer.shape,
        layout: layer.format().layout,
        elements: layer.primitive().elements(),
        quantization: layer.quantization,
        ring_rows: layer.rows(),
    }
}

fn in_words(error: RunError) -> Fault {
    match error {
        RunError::Layer { why, .. } => Fault::new(why.to_string()),
        other => Fault::new(other.to_string()),
    }
}

/// A result as a constant. `element` is the type of its elements in the model, if they are integers that floats hold.
fn constant(result: run::Value, element: Option<DataType>) -> Constant {
    let run::Value { dims, data } = result;
    match (data, element) {
        (run::Data::F32(values), None) => Constant::floats(dims, values),
        (run::Data::F32(values), Some(DataType::BOOL)) => {
            Constant::bools(dims, values.into_iter().map(|value| value != 0.0).collect())
        }
        (run::Data::F32(values), stored) => Constant {
            stored,
            ..Constant::ints(dims, values.into_iter().map(|value| value as i64).collect())
        },
        (run::Data::I64(values), _) => Constant::ints(dims, values),
        (run::Data::U8(values), stored) => {
            Constant { stored, ..Constant::ints(dims, values.into_iter().map(i64::from).collect()) }
        }
        (run::Data::I8(values), stored) => {
            Constant { stored, ..Constant::ints(dims, values.into_iter().map(i64::from).collect()) }
        }
    }
}
