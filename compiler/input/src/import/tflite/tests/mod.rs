//! Small models, written with the reference implementation of flatbuffers, which nothing else here uses.

mod batch;
mod dilated;
mod errors;
mod hostile;
mod integers;
mod names;
mod operators;
mod parts;

use std::fmt::Write;

use flatbuffers::{FlatBufferBuilder, TableFinishedWIPOffset, VOffsetT, WIPOffset};

use crate::import::error::ImportError;
use crate::import::{ImportOptions, import_bytes};
use csdfc_network::Network;

/// Types of elements.
const F32: i8 = 0;
const F16: i8 = 1;
const I32: i8 = 2;
const U8: i8 = 3;
const I64: i8 = 4;
const I8: i8 = 9;

/// A model of one subgraph. A tensor is its index.
#[derive(Clone, Default)]
struct Model {
    tensors: Vec<Tensor>,
    operators: Vec<Operator>,
    inputs: Vec<i32>,
    outputs: Vec<i32>,
}

#[derive(Clone, Default)]
struct Tensor {
    /// `t` and its index if it states none.
    name: Option<&'static str>,
    shape: Vec<i32>,
    signature: Vec<i32>,
    element: i8,
    data: Option<Vec<u8>>,
    scales: Vec<f32>,
    points: Vec<i64>,
    axis: i32,
    is_variable: bool,
    sparsity: Option<Sparsity>,
}

/// Blocks of a constant's dimensions. Each level is a size, and perhaps a list of bounds and of indices.
#[derive(Clone, Default)]
struct Sparsity {
    order: Vec<i32>,
    cut: Vec<i32>,
    levels: Vec<(i32, Option<[Vec<i32>; 2]>)>,
}

#[derive(Clone, Default)]
struct Operator {
    code: i32,
    custom: Option<(String, Vec<u8>)>,
    inputs: Vec<i32>,
    outputs: Vec<i32>,
    options: Vec<(usize, Field)>,
}

/// An option.
#[derive(Clone)]
enum Field {
    Byte(i8),
    Int(i32),
    Float(f32),
    Ints(Vec<i32>),
}

impl Model {
    /// Adds a tensor, which is stored as it is given.
    fn tensor(&mut self, tensor: Tensor) -> i32 {
        self.tensors.push(tensor);
        self.tensors.len() as i32 - 1
    }

    /// Adds a tensor that is computed.
    fn made(&mut self, shape: &[i32]) -> i32 {
        self.tensor(Tensor { shape: shape.to_vec(), ..Tensor::default() })
    }

    fn input(&mut self, shape: &[i32]) -> i32 {
        let index = self.made(shape);
        self.inputs.push(index);
        index
    }

    /// Adds a constant of floats that count up from 1.
    fn floats(&mut self, shape: &[i32]) -> i32 {
        let count = shape.iter().product::<i32>();
        let data = (1..=count).flat_map(|value| (value as f32).to_le_bytes()).collect();
        self.tensor(Tensor { shape: shape.to_vec(), data: Some(data), ..Tensor::default() })
    }

    fn ints(&mut self, shape: &[i32], values: &[i32]) -> i32 {
        let data = Some(values.iter().flat_map(|value| value.to_le_bytes()).collect());
        self.tensor(Tensor { shape: shape.to_vec(), element: I32, data, ..Tensor::default() })
    }

    fn list(&mut self, values: &[i32]) -> i32 {
        self.ints(&[values.len() as i32], values)
    }

    fn operator(&mut self, name: &str, inputs: &[i32], outputs: &[i32], options: &[(usize, Field)]) {
        let code = super::codes::tests::code(name);
        let (inputs, outputs, options) = (inputs.to_vec(), outputs.to_vec(), options.to_vec());
        self.operators.push(Operator { code, custom: None, inputs, outputs, options });
    }

    fn import(&self) -> Result<Network, ImportError> {
        import_bytes(&self.bytes(), None, &ImportOptions::default()).map(|imported| imported.network)
    }

    fn bytes(&self) -> Vec<u8> {
        let mut to = FlatBufferBuilder::new();
        let mut buffers = vec![table(&mut to, &[])];
        let mut tensors = Vec::new();
        for (index, tensor) in self.tensors.iter().enumerate() {
            let buffer = match &tensor.data {
                Some(data) => {
                    let data = to.create_vector(data).as_union_value();
                    buffers.push(with(&mut to, &[(0, data)], |_| {}));
                    buffers.len() as u32 - 1
                }
                None => 0,
            };
            let mut fields = vec![(0, to.create_vector(&tensor.shape).as_union_value())];
            let name = tensor.name.map_or_else(|| format!("t{index}"), str::to_owned);
            fields.push((3, to.create_string(&name).as_union_value()));
            if !tensor.signature.is_empty() {
                fields.push((7, to.create_vector(&tensor.signature).as_union_value()));
            }
            if !tensor.scales.is_empty() {
                let scales = to.create_vector(&tensor.scales).as_union_value();
                let points = to.create_vector(&tensor.points).as_union_value();
                let axis = tensor.axis;
                let stated = with(&mut to, &[(2, scales), (3, points)], |to| to.push_slot(slot(6), axis, 0));
                fields.push((4, stated.as_union_value()));
            }
            if let Some(sparsity) = &tensor.sparsity {
                fields.push((6, sparsity.write(&mut to).as_union_value()));
            }
            tensors.push(with(&mut to, &fields, |to| {
                to.push_slot(slot(1), tensor.element, 0);
                to.push_slot(slot(2), buffer, 0);
                to.push_slot(slot(5), tensor.is_variable, false);
            }));
        }
        let (mut codes, mut operators) = (Vec::new(), Vec::new());
        for (index, operator) in self.operators.iter().enumerate() {
            let mut fields = Vec::new();
            if let Some((name, _)) = &operator.custom {
                fields.push((1, to.create_string(name).as_union_value()));
            }
            codes.push(with(&mut to, &fields, |to| {
                to.push_slot(slot(0), operator.code.min(127) as i8, 0);
                to.push_slot(slot(3), operator.code, 0);
            }));
            let mut fields = vec![
                (1, to.create_vector(&operator.inputs).as_union_value()),
                (2, to.create_vector(&operator.outputs).as_union_value()),
            ];
            let options = table(&mut to, &operator.options);
            fields.push((4, options.as_union_value()));
            if let Some((_, custom)) = &operator.custom {
                fields.push((5, to.create_vector(custom).as_union_value()));
            }
            operators.push(with(&mut to, &fields, |to| to.push_slot(slot(0), index as u32, 0)));
        }
        let graph = [
            (0, to.create_vector(&tensors).as_union_value()),
            (1, to.create_vector(&self.inputs).as_union_value()),
            (2, to.create_vector(&self.outputs).as_union_value()),
            (3, to.create_vector(&operators).as_union_value()),
        ];
        let graph = with(&mut to, &graph, |_| {});
        let model = [
            (1, to.create_vector(&codes).as_union_value()),
            (2, to.create_vector(&[graph]).as_union_value()),
            (4, to.create_vector(&buffers).as_union_value()),
        ];
        let model = with(&mut to, &model, |to| to.push_slot(slot(0), 3u32, 0));
        to.finish(model, Some("TFL3"));
        to.finished_data().to_vec()
    }
}

impl Sparsity {
    fn write(&self, to: &mut FlatBufferBuilder) -> Table {
        let mut levels = Vec::new();
        for (size, listed) in &self.levels {
            let mut fields = Vec::new();
            for (id, list) in [3, 5].into_iter().zip(listed.iter().flatten()) {
                let values = to.create_vector(list).as_union_value();
                fields.push((id, with(to, &[(0, values)], |_| {}).as_union_value()));
            }
            levels.push(with(to, &fields, |to| {
                to.push_slot(slot(0), i8::from(listed.is_some()), 0);
                to.push_slot(slot(1), *size, 0);
                for id in [2, 4] {
                    to.push_slot(slot(id), u8::from(listed.is_some()), 0);
                }
            }));
        }
        let fields = [
            (0, to.create_vector(&self.order).as_union_value()),
            (1, to.create_vector(&self.cut).as_union_value()),
            (2, to.create_vector(&levels).as_union_value()),
        ];
        with(to, &fields, |_| {})
    }
}

type Table = WIPOffset<TableFinishedWIPOffset>;

/// A table of these fields by id, offsets and others.
fn with<'a, O>(
    to: &mut FlatBufferBuilder<'a>,
    fields: &[(usize, WIPOffset<O>)],
    others: impl FnOnce(&mut FlatBufferBuilder<'a>),
) -> Table {
    let table = to.start_table();
    for (id, field) in fields {
        to.push_slot_always(slot(*id), *field);
    }
    others(to);
    to.end_table(table)
}

/// A table of options.
fn table(to: &mut FlatBufferBuilder, options: &[(usize, Field)]) -> Table {
    let mut lists = Vec::new();
    for (id, field) in options {
        if let Field::Ints(values) = field {
            lists.push((*id, to.create_vector(values).as_union_value()));
        }
    }
    with(to, &lists, |to| {
        for (id, field) in options {
            match field {
                Field::Byte(value) => to.push_slot(slot(*id), *value, 0),
                Field::Int(value) => to.push_slot(slot(*id), *value, 0),
                Field::Float(value) => to.push_slot(slot(*id), *value, 0.0),
                Field::Ints(_) => {}
            }
        }
    })
}

/// Where a table says where a field is.
fn slot(id: usize) -> VOffsetT {
    4 + 2 * id as VOffsetT
}

/// A model of a convolution with an activation, a mean and a fully connected layer.
fn small() -> Model {
    let mut model = Model::default();
    let x = model.input(&[1, 5, 6, 2]);
    let (filters, bias) = (model.floats(&[3, 2, 2, 2]), model.floats(&[3]));
    let y = model.made(&[1, 3, 3, 3]);
    let strides = [(1, Field::Int(2)), (2, Field::Int(2)), (3, Field::Byte(1))];
    model.operator("CONV_2D", &[x, filters, bias], &[y], &strides);
    let (axes, mean) = (model.list(&[1, 2]), model.made(&[1, 3]));
    model.operator("MEAN", &[y, axes], &[mean], &[]);
    let (weights, z) = (model.floats(&[4, 3]), model.made(&[1, 4]));
    model.operator("FULLY_CONNECTED", &[mean, weights, -1], &[z], &[]);
    model.outputs = vec![z];
    model
}

/// Layers as text: the operator of each, its operands, and the shapes in which it sees them.
fn text(network: &Network) -> String {
    let mut text = String::new();
    for layer in &network.layers {
        let inputs: Vec<String> =
            layer.inputs.iter().map(|x| format!("{}:{:?}", x.layer.0, x.shape)).collect();
        let parameters: Vec<&[usize]> =
            layer.parameters.iter().map(|weights| weights.dims.as_slice()).collect();
        let inputs = inputs.join(" ").replace("Shape ", "");
        writeln!(text, "  {:?} of {inputs} {parameters:?}", layer.operator).unwrap();
    }
    for output in &network.outputs {
        writeln!(text, "  → {}:{:?}", output.operand.layer.0, output.operand.shape).unwrap();
    }
    text
}
