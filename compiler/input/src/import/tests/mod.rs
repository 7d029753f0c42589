//! Small models, written with the decoder's own writer.

mod arithmetic;
mod batch;
mod bodies;
mod bytes;
mod constants;
mod defaults;
mod errors;
mod folding;
mod fused;
mod graphs;
mod hostile;
mod inputs;
mod integers;
mod layers;
mod lines;
mod messages;
mod models;
mod mutated;
mod operators;
mod parts;
mod products;
mod quantized;
mod selection;
mod spellings;
mod stored;
mod views;

use std::cell::RefCell;
use std::path::Path;

use csdfc_input::app::resolve::{Application, RowsChoice};
use csdfc_input::device::DeviceProfile;
use csdfc_network::Network;
use csdfc_network::pass::{Fusion, normalise};
use csdfc_planner::driver;
use csdfc_planner::error::Error;
use csdfc_runtime::run::{Data as Elements, Runner, Value as Frame};
use rten_onnx::onnx::{
    AttributeProto, AttributeType, DataType, Dimension, GraphProto, ModelProto, NodeProto,
    OperatorSetIdProto, TensorProto, TensorShapeProto, TypeProto, TypeProtoTensor, ValueInfoProto,
};

use super::builder::Builder;
use super::constant::{Constant, Data};
use super::error::ImportError;
use super::node::{Node, Value};
use super::{ImportOptions, import_bytes, ops};

/// A model of one input `x` and the outputs named; constants are added as they are needed.
pub(super) struct Model {
    pub proto: ModelProto,
}

impl Model {
    pub fn new(opset: i64, input: &[i64], outputs: &[&str]) -> Self {
        Model::of(opset, DataType::FLOAT, input, outputs)
    }

    /// A model whose input has elements of this type.
    pub fn of(opset: i64, element: DataType, input: &[i64], outputs: &[&str]) -> Self {
        let graph = GraphProto {
            input: vec![value("x", element, input)],
            output: outputs.iter().map(|name| value(name, DataType::FLOAT, &[])).collect(),
            ..Default::default()
        };
        let opset = OperatorSetIdProto { domain: Some(String::new()), version: Some(opset) };
        let proto = ModelProto {
            ir_version: Some(8),
            graph: Some(graph),
            opset_import: vec![opset],
            ..Default::default()
        };
        Model { proto }
    }

    pub fn graph(&mut self) -> &mut GraphProto {
        self.proto.graph.as_mut().unwrap()
    }

    /// A node named after its first output.
    pub fn node(
        mut self,
        operator: &str,
        inputs: &[&str],
        outputs: &[&str],
        attribute: Vec<AttributeProto>,
    ) -> Self {
        let text = |names: &[&str]| names.iter().map(|name| (*name).to_string()).collect();
        self.graph().node.push(NodeProto {
            op_type: Some(operator.into()),
            name: Some(format!("node_{}", outputs[0])),
            input: text(inputs),
            output: text(outputs),
            attribute,
            ..Default::default()
        });
        self
    }

    /// States the type of the outputs' elements.
    pub fn with_outputs_of(mut self, element: DataType) -> Self {
        for output in &mut self.graph().output {
            *output = value(output.name.as_deref().unwrap_or_default(), element, &[]);
        }
        self
    }

    /// Raw floats counting up from 1.
    pub fn floats(self, name: &str, dims: &[i64]) -> Self {
        let count = dims.iter().product::<i64>();
        let raw: Vec<u8> = (0..count).flat_map(|i| (i as f32 + 1.0).to_le_bytes()).collect();
        self.tensor(TensorProto {
            name: Some(name.into()),
            dims: dims.to_vec(),
            data_type: Some(DataType::FLOAT),
            raw_data: Some(RefCell::new(raw)),
            ..Default::default()
        })
    }

    pub fn ints(self, name: &str, values: &[i64]) -> Self {
        self.tensor(TensorProto {
            name: Some(name.into()),
            dims: vec![values.len() as i64],
            data_type: Some(DataType::INT64),
            int64_data: values.to_vec(),
            ..Default::default()
        })
    }

    pub fn tensor(mut self, tensor: TensorProto) -> Self {
        self.graph().initializer.push(tensor);
        self
    }

    pub fn bytes(&self) -> Vec<u8> {
        self.proto.write_buf().unwrap()
    }

    pub fn import(&self) -> Result<Network, ImportError> {
        self.import_with(&ImportOptions::default())
    }

    pub fn import_with(&self, options: &ImportOptions) -> Result<Network, ImportError> {
        import_bytes(&self.bytes(), None, options).map(|imported| imported.network)
    }
}

/// Plans a network and runs a frame: its outputs, and the bytes of its buffers.
fn run(network: Network, rows: RowsChoice) -> Result<(Vec<Frame>, u64), Error> {
    let network = normalise(network, Fusion::Full);
    let inputs: Vec<Frame> = network
        .layers
        .iter()
        .filter(|layer| layer.is_input())
        .map(|layer| {
            let values = (0..layer.shape.elements()).map(|i| (i % 7) as f32 - 3.0).collect();
            Frame { dims: layer.shape.dims.clone(), data: Elements::F32(values) }
        })
        .collect();
    let application = Application::of_network("model", network, rows);
    let generic = DeviceProfile::find("generic", Path::new("")).unwrap();
    let plan = driver::plan(&application, &generic, vec!["model".into()])?.plan;
    let network = &application.cnns[0].network;
    let parameters = |_: usize, layer: usize, parameter: usize| network.parameter(layer, parameter);
    let outputs = Runner::new(&plan, &parameters)?.infer(0, &inputs)?;
    Ok((outputs, plan.memory.buffers))
}

/// A graph input or output; a dimension of −1 is the symbol `?`, 0 the symbol `batch`, −2 the number 0.
pub(super) fn value(name: &str, element: DataType, dims: &[i64]) -> ValueInfoProto {
    let dim = dims.iter().map(|&dim| match dim {
        -1 => Dimension { dim_param: Some("side".into()), dim_value: None },
        0 => Dimension { dim_param: Some("batch".into()), dim_value: None },
        -2 => Dimension { dim_value: Some(0), dim_param: None },
        dim => Dimension { dim_value: Some(dim), dim_param: None },
    });
    let shape = Some(TensorShapeProto { dim: dim.collect() });
    let tensor_type = Some(TypeProtoTensor { elem_type: Some(element), shape });
    ValueInfoProto { name: Some(name.into()), r#type: Some(TypeProto { tensor_type, ..Default::default() }) }
}

pub(super) fn int(name: &str, value: i64) -> AttributeProto {
    AttributeProto {
        name: Some(name.into()),
        i: Some(value),
        r#type: Some(AttributeType::INT),
        ..Default::default()
    }
}

pub(super) fn ints(name: &str, values: &[i64]) -> AttributeProto {
    AttributeProto {
        name: Some(name.into()),
        ints: values.to_vec(),
        r#type: Some(AttributeType::INTS),
        ..Default::default()
    }
}

pub(super) fn float(name: &str, value: f32) -> AttributeProto {
    AttributeProto {
        name: Some(name.into()),
        f: Some(value),
        r#type: Some(AttributeType::FLOAT),
        ..Default::default()
    }
}

pub(super) fn text(name: &str, value: &str) -> AttributeProto {
    AttributeProto {
        name: Some(name.into()),
        s: Some(value.into()),
        r#type: Some(AttributeType::STRING),
        ..Default::default()
    }
}

/// The `outputs` outputs of a node of constants, or the reason why it has none.
pub(super) fn fold_all(
    opset: i64,
    operator: &str,
    inputs: &[Constant],
    attribute: Vec<AttributeProto>,
    outputs: usize,
) -> Result<Vec<Constant>, String> {
    let output = (0..outputs).map(|i| format!("y{i}")).collect();
    let proto = NodeProto { op_type: Some(operator.into()), attribute, output, ..Default::default() };
    let inputs = inputs.iter().map(|constant| Some(Value::Constant(constant.clone()))).collect();
    let node = Node { proto: &proto, index: 0, operator, opset, inputs };
    let values = ops::import(&mut Builder::new(Vec::new()), &node).map_err(|fault| fault.reason)?;
    let constant = |value| match value {
        Value::Constant(constant) => constant,
        Value::Tensor(tensor) => panic!("{operator} makes a tensor of {:?}", tensor.dims()),
    };
    Ok(values.into_iter().map(constant).collect())
}

/// The output of a node of constants as text: dimensions and elements, where 1 is an integer and 1.0 a float.
pub(super) fn fold(
    opset: i64,
    operator: &str,
    inputs: &[Constant],
    attributes: Vec<AttributeProto>,
) -> Result<String, String> {
    let values = fold_all(opset, operator, inputs, attributes, 1)?;
    Ok(shown(&values[0]))
}

pub(super) fn shown(constant: &Constant) -> String {
    let dims = &constant.dims;
    match &constant.data {
        Data::Floats(_) => format!("{dims:?} {:?}", constant.to_floats().unwrap()),
        Data::Ints(values) => format!("{dims:?} {values:?}"),
        Data::Bools(values) => format!("{dims:?} {values:?}"),
    }
}

/// A list of integers.
pub(super) fn of_ints(values: &[i64]) -> Constant {
    Constant::ints([values.len()], values.to_vec())
}

/// A list of floats.
pub(super) fn of_floats(values: &[f32]) -> Constant {
    Constant::floats([values.len()], values.to_vec())
}

/// A list of truth values.
pub(super) fn of_bools(values: &[bool]) -> Constant {
    Constant::bools([values.len()], values.to_vec())
}

/// Checks that a model is refused with these words.
pub(super) fn refused(model: &Model, words: &str) {
    let error = model.import().unwrap_err().to_string();
    assert!(error.contains(words), "{error}\nwithout: {words}");
}
