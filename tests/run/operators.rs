//! Operators of ONNX models that become other operators, or that floats compute: the outputs are ONNX Runtime's. So are those
//! of the models that csdfc writes of them.

use csdfc_input::app::resolve::{Application, RowsChoice};
use csdfc_input::export::export;
use csdfc_input::import::{ImportOptions, import_bytes};
use csdfc_network::Network;
use csdfc_network::pass::{Fusion, normalise};
use csdfc_runtime::run::{Data, Runner, Value};
use csdfc_tests::plan;
use rten_onnx::onnx::{
    AttributeProto, AttributeType, DataType, Dimension, GraphProto, ModelProto, NodeProto,
    OperatorSetIdProto, TensorProto, TensorShapeProto, TypeProto, TypeProtoTensor, ValueInfoProto,
};

use super::floats;

/// A model of one input, `x`.
pub struct Model {
    opset: i64,
    dims: Vec<usize>,
    graph: GraphProto,
}

impl Model {
    /// A model of one output, `y`.
    fn new(opset: i64, dims: &[usize]) -> Self {
        Model::of(opset, dims, &["y"])
    }

    pub fn of(opset: i64, dims: &[usize], outputs: &[&str]) -> Self {
        let value = |name: &str, dims: &[usize]| {
            let dim = |dim: &usize| Dimension { dim_value: Some(*dim as i64), dim_param: None };
            let shape = Some(TensorShapeProto { dim: dims.iter().map(dim).collect() });
            let tensor_type = Some(TypeProtoTensor { elem_type: Some(DataType::FLOAT), shape });
            ValueInfoProto {
                name: Some(name.into()),
                r#type: Some(TypeProto { tensor_type, ..Default::default() }),
            }
        };
        let graph = GraphProto {
            input: vec![value("x", dims)],
            output: outputs.iter().map(|name| value(name, &[])).collect(),
            ..Default::default()
        };
        Model { opset, dims: dims.to_vec(), graph }
    }

    pub fn node(
        mut self,
        operator: &str,
        inputs: &[&str],
        outputs: &[&str],
        attribute: Vec<AttributeProto>,
    ) -> Self {
        let text = |names: &[&str]| names.iter().map(|name| (*name).to_string()).collect();
        self.graph.node.push(NodeProto {
            op_type: Some(operator.into()),
            input: text(inputs),
            output: text(outputs),
            attribute,
            ..Default::default()
        });
        self
    }

    fn constant(mut self, name: &str, dims: &[i64], of: DataType, stored: TensorProto) -> Self {
        let (name, dims) = (Some(name.into()), dims.to_vec());
        self.graph.initializer.push(TensorProto { name, dims, data_type: Some(of), ..stored });
        self
    }

    pub fn floats(self, name: &str, dims: &[i64], values: &[f32]) -> Self {
        let stored = TensorProto { float_data: values.to_vec(), ..Default::default() };
        self.constant(name, dims, DataType::FLOAT, stored)
    }

    pub fn ints(self, name: &str, dims: &[i64], values: &[i64]) -> Self {
        let stored = TensorProto { int64_data: values.to_vec(), ..Default::default() };
        self.constant(name, dims, DataType::INT64, stored)
    }

    fn bools(self, name: &str, dims: &[i64], values: &[i32]) -> Self {
        let stored = TensorProto { int32_data: values.to_vec(), ..Default::default() };
        self.constant(name, dims, DataType::BOOL, stored)
    }

    /// The network that import makes of it.
    pub fn network(&self) -> Network {
        let opset = OperatorSetIdProto { domain: Some(String::new()), version: Some(self.opset) };
        let proto = ModelProto {
            ir_version: Some(10),
            graph: Some(self.graph.clone()),
            opset_import: vec![opset],
            ..Default::default()
        };
        read(&proto.write_buf().unwrap())
    }

    /// Compares the outputs for the numbers of [`inputs`], by all rows and by few, with these.
    #[track_caller]
    fn check(self, expected: &[&[f32]]) {
        let network = self.network();
        // A recurrent network without its inputs' weights cannot be written.
        let again = match network.layers.iter().any(|layer| layer.operator.has_state()) {
            true => None,
            false => Some(read(&export(&network).unwrap())),
        };
        let x = Value { data: Data::F32(inputs(self.dims.iter().product())), dims: self.dims };
        for network in [network].into_iter().chain(again) {
            for rows in [RowsChoice::None, RowsChoice::All] {
                let made = outputs(network.clone(), rows, &x);
                assert_eq!(made.len(), expected.len());
                for (made, expected) in made.iter().zip(expected) {
                    let (made, largest) = (floats(made), expected.iter().fold(1.0f32, |a, b| a.max(b.abs())));
                    let is_near =
                        |(a, b): (&f32, &f32)| (a - b).abs() < 1e-5 * largest || a.is_nan() && b.is_nan();
                    let same = made.len() == expected.len() && made.iter().zip(*expected).all(is_near);
                    assert!(same, "{made:?} instead of {expected:?}");
                }
            }
        }
    }
}

fn read(bytes: &[u8]) -> Network {
    import_bytes(bytes, None, &ImportOptions::default()).unwrap().network
}

/// Eighths from −2.5 to 2.5.
pub fn inputs(count: usize) -> Vec<f32> {
    (0..count).map(|i| ((i * 37 + 11) % 41) as f32 / 8.0 - 2.5).collect()
}

pub fn outputs(network: Network, rows: RowsChoice, x: &Value) -> Vec<Value> {
    let application = Application::of_network("a", normalise(network, Fusion::Full), rows);
    let network = &application.cnns[0].network;
    let parameters = |_: usize, layer: usize, parameter: usize| network.parameter(layer, parameter);
    Runner::poisoned(&plan(&application), &parameters).unwrap().infer(0, std::slice::from_ref(x)).unwrap()
}

fn attribute(name: &str, of: AttributeType) -> AttributeProto {
    AttributeProto { name: Some(name.into()), r#type: Some(of), ..Default::default() }
}

pub fn int(name: &str, value: i64) -> AttributeProto {
    AttributeProto { i: Some(value), ..attribute(name, AttributeType::INT) }
}

pub fn ints(name: &str, values: &[i64]) -> AttributeProto {
    AttributeProto { ints: values.to_vec(), ..attribute(name, AttributeType::INTS) }
}

fn float(name: &str, value: f32) -> AttributeProto {
    AttributeProto { f: Some(value), ..attribute(name, AttributeType::FLOAT) }
}

pub fn text(name: &str, value: &str) -> AttributeProto {
    AttributeProto { s: Some(value.into()), ..attribute(name, AttributeType::STRING) }
}

fn strings(name: &str, values: &[&str]) -> AttributeProto {
    let strings = values.iter().map(|value| (*value).into()).collect();
    AttributeProto { strings, ..attribute(name, AttributeType::STRINGS) }
}

#[test]
fn functions_of_each_element() {
    let model = Model::new(17, &[1, 2, 3, 4])
        .node("Sign", &["x"], &["s"], vec![])
        .node("Sin", &["x"], &["i"], vec![])
        .node("Cos", &["x"], &["o"], vec![])
        .node("Celu", &["x"], &["c"], vec![float("alpha", 1.5)])
        .node("Shrink", &["x"], &["h"], vec![float("lambd", 1.0), float("bias", 0.25)])
        .node("Add", &["s", "i"], &["a"], vec![])
        .node("Add", &["a", "o"], &["b"], vec![])
        .node("Add", &["b", "c"], &["d"], vec![])
        .node("Add", &["d", "h"], &["y"], vec![]);
    model.check(&[&[
        -3.137541, -4.42001, -5.387805, 5.547328, 5.243151, 4.818232, 3.381773, 2.857008, 1.0, -1.027046,
        -2.031043, -4.124938, -5.180048, -5.866302, 5.324054, 4.944354, 4.333444, 3.02106, 2.241872,
        -0.767564, -1.789494, -3.811571, -4.948862, -5.731029,
    ]]);
}

#[test]
fn a_division_by_zero_that_is_not_chosen() {
    let model = Model::new(17, &[1, 2, 3, 4])
        .floats("zero", &[1], &[0.0])
        .node("Relu", &["x"], &["r"], vec![])
        .node("Equal", &["r", "zero"], &["e"], vec![])
        .node("Div", &["x", "r"], &["d"], vec![])
        .node("Where", &["e", "zero", "d"], &["y"], vec![]);
    model.check(&[&[
        0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.0,
        0.0, 0.0, 0.0, 0.0,
    ]]);
}

#[test]
fn truth_values() {
    let model = Model::new(17, &[1, 2, 3, 4])
        .floats("half", &[2, 1, 1], &[0.5, -0.5])
        .floats("one", &[], &[1.0])
        .node("Greater", &["x", "half"], &["g"], vec![])
        .node("LessOrEqual", &["x", "one"], &["l"], vec![])
        .node("And", &["g", "l"], &["a"], vec![])
        .node("Not", &["g"], &["n"], vec![])
        .node("Or", &["n", "a"], &["o"], vec![])
        .node("Xor", &["o", "l"], &["q"], vec![])
        .node("Cast", &["q"], &["f"], vec![int("to", 1)])
        .node("Mul", &["f", "x"], &["m"], vec![])
        .node("Cast", &["a"], &["k"], vec![int("to", 7)])
        .node("Cast", &["k"], &["kf"], vec![int("to", 1)])
        .node("Sub", &["m", "kf"], &["y"], vec![]);
    model.check(&[&[
        -0.0, -0.0, -0.0, 0.0, 0.0, 0.0, -1.0, 0.0, 0.0, -0.0, -0.0, -0.0, -0.0, -0.0, 0.0, 0.0, 0.0, -1.0,
        -1.0, -1.0, -0.0, -0.0, -0.0, -0.0,
    ]]);
}

#[test]
fn a_constant_condition() {
    let model = Model::new(17, &[1, 2, 3, 4])
        .bools("c", &[3, 4], &[1, 0, 0, 1, 1, 1, 0, 0, 1, 0, 1, 0])
        .floats("low", &[], &[-9.0])
        .node("Where", &["c", "x", "low"], &["y"], vec![]);
    model.check(&[&[
        -1.125, -9.0, -9.0, 2.5, 2.0, 1.5, -9.0, -9.0, 0.0, -9.0, -1.0, -9.0, -2.0, -9.0, -9.0, 1.625, 1.125,
        0.625, -9.0, -9.0, -0.875, -9.0, -1.875, -9.0,
    ]]);
}

#[test]
fn numbers_without_their_fractions() {
    let model = Model::new(17, &[1, 2, 3, 4]).node("Cast", &["x"], &["i"], vec![int("to", 6)]).node(
        "Cast",
        &["i"],
        &["y"],
        vec![int("to", 1)],
    );
    model.check(&[&[
        -1.0, -1.0, -2.0, 2.0, 2.0, 1.0, 1.0, 0.0, 0.0, 0.0, -1.0, -1.0, -2.0, -2.0, 2.0, 1.0, 1.0, 0.0, 0.0,
        0.0, 0.0, -1.0, -1.0, -2.0,
    ]]);
}

#[test]
fn bounds_that_are_computed() {
    let model = Model::new(17, &[1, 2, 3, 4])
        .floats("half", &[], &[0.5])
        .node("ReduceMax", &["x"], &["m"], vec![int("keepdims", 0)])
        .node("Mul", &["m", "half"], &["u"], vec![])
        .node("Neg", &["u"], &["l"], vec![])
        .node("Clip", &["x", "l", "u"], &["y"], vec![]);
    model.check(&[&[
        -1.125, -1.25, -1.25, 1.25, 1.25, 1.25, 1.0, 0.5, 0.0, -0.5, -1.0, -1.25, -1.25, -1.25, 1.25, 1.25,
        1.125, 0.625, 0.125, -0.375, -0.875, -1.25, -1.25, -1.25,
    ]]);
}

#[test]
fn slopes_that_are_computed() {
    let model = Model::new(17, &[1, 2, 3, 4])
        .node("ReduceMean", &["x"], &["m"], vec![ints("axes", &[2, 3]), int("keepdims", 1)])
        .node("PRelu", &["x", "m"], &["y"], vec![]);
    model.check(&[&[
        0.035156, 0.050781, 0.066406, 2.5, 2.0, 1.5, 1.0, 0.5, 0.0, 0.015625, 0.03125, 0.046875, 0.958333,
        1.197917, 2.125, 1.625, 1.125, 0.625, 0.125, 0.179688, 0.419271, 0.658854, 0.898438, 1.138021,
    ]]);
}

#[test]
fn tiles() {
    let model = Model::new(17, &[1, 2, 3, 4])
        .ints("n", &[4], &[1, 2, 1, 2])
        .node("ReduceMax", &["x"], &["m"], vec![ints("axes", &[2]), int("keepdims", 1)])
        .node("Tile", &["m", "n"], &["y"], vec![]);
    model.check(&[&[
        2.0, 1.5, 1.0, 2.5, 2.0, 1.5, 1.0, 2.5, 1.125, 0.625, 2.125, 1.625, 1.125, 0.625, 2.125, 1.625, 2.0,
        1.5, 1.0, 2.5, 2.0, 1.5, 1.0, 2.5, 1.125, 0.625, 2.125, 1.625, 1.125, 0.625, 2.125, 1.625,
    ]]);
}

#[test]
fn elements_at_computed_places() {
    let model = Model::new(17, &[1, 6, 2])
        .ints("k", &[1], &[2])
        .ints("a", &[1], &[-1])
        .ints("n", &[3], &[1, 1, 2])
        .node("ReduceMax", &["x"], &["m"], vec![ints("axes", &[-1]), int("keepdims", 0)])
        .node("TopK", &["m", "k"], &["t", "p"], vec![int("axis", 1)])
        .node("Unsqueeze", &["p", "a"], &["u"], vec![])
        .node("Tile", &["u", "n"], &["w"], vec![])
        .node("GatherElements", &["x", "w"], &["y"], vec![int("axis", 1)]);
    model.check(&[&[-2.125, 2.5, 2.0, 1.5]]);
}

#[test]
fn rows_at_computed_places() {
    let model = Model::new(17, &[1, 6, 2])
        .ints("k", &[1], &[3])
        .ints("s", &[2], &[6, 2])
        .ints("z1", &[2], &[0, 2])
        .node("ReduceSum", &["x", "z1"], &["m"], vec![int("keepdims", 0)])
        .node("TopK", &["m", "k"], &["t", "p"], vec![int("axis", 0)])
        .node("Reshape", &["x", "s"], &["r"], vec![])
        .node("Gather", &["r", "p"], &["y"], vec![int("axis", 0)]);
    model.check(&[&[2.0, 1.5, 1.0, 0.5, -2.125, 2.5]]);
}

#[test]
fn where_the_largest_is() {
    let model = Model::new(17, &[1, 4, 3])
        .ints("two", &[1], &[2])
        .node("ArgMax", &["x"], &["p"], vec![int("axis", 2), int("keepdims", 1)])
        .node("Equal", &["p", "two"], &["e"], vec![])
        .node("Cast", &["e"], &["f"], vec![int("to", 1)])
        .node("Cast", &["p"], &["q"], vec![int("to", 1)])
        .node("Add", &["f", "q"], &["a"], vec![])
        .node("Mul", &["x", "a"], &["y"], vec![]);
    model.check(&[&[-0.0, -0.0, -0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, -0.0, -0.0, -0.0]]);
}

#[test]
fn an_assignment_to_a_slice() {
    let model = Model::new(17, &[1, 3, 2, 4])
        .ints("at", &[1, 2, 2, 3], &[0, 2, 0, 0, 2, 1, 0, 0, 0, 0, 0, 1])
        .floats(
            "u",
            &[1, 2, 2, 4],
            &[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0, 13.0, 14.0, 15.0],
        )
        .node("ScatterND", &["x", "at", "u"], &["y"], vec![]);
    model.check(&[&[
        8.0, 9.0, 10.0, 11.0, 12.0, 13.0, 14.0, 15.0, 0.0, -0.5, -1.0, -1.5, -2.0, -2.5, 2.125, 1.625, 0.0,
        1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0,
    ]]);
}

#[test]
fn scaled_by_the_mean_square() {
    let model = Model::new(23, &[1, 3, 4]).floats("s", &[4], &[1.0, 2.0, -1.0, 0.5]).node(
        "RMSNormalization",
        &["x", "s"],
        &["y"],
        vec![int("axis", -1), float("epsilon", 0.00001)],
    );
    model.check(&[&[
        -0.587407, -1.696954, 1.109547, 0.652674, 1.46059, 2.190884, -0.730295, 0.182574, 0.0, -1.069039,
        1.069039, -0.801779,
    ]]);
}

#[test]
fn attention_of_shared_keys() {
    let model = Model::new(23, &[1, 4, 8])
        .floats(
            "wk",
            &[8, 4],
            &[
                -0.375, 0.25, 0.0, -0.25, 0.375, 0.125, -0.125, -0.375, 0.25, 0.0, -0.25, 0.375, 0.125,
                -0.125, -0.375, 0.25, 0.0, -0.25, 0.375, 0.125, -0.125, -0.375, 0.25, 0.0, -0.25, 0.375,
                0.125, -0.125, -0.375, 0.25, 0.0, -0.25,
            ],
        )
        .bools("m", &[4, 4], &[1, 1, 0, 1, 1, 0, 1, 1, 0, 1, 1, 1, 1, 1, 1, 0])
        .node("MatMul", &["x", "wk"], &["k"], vec![])
        .node(
            "Attention",
            &["x", "k", "k", "m"],
            &["y"],
            vec![int("q_num_heads", 4), int("kv_num_heads", 2), int("is_causal", 1)],
        );
    model.check(&[&[
        -1.03125, -1.359375, -1.03125, -1.359375, 1.046875, 0.71875, 1.046875, 0.71875, -1.03125, -1.359375,
        -1.03125, -1.359375, 1.046875, 0.71875, 1.046875, 0.71875, 0.53625, 0.675664, 0.591347, 0.61778,
        -0.382804, -1.104251, -0.317301, -1.272004, 0.465916, 0.736134, 0.459442, 0.591786, 0.027984,
        -0.305557, -0.318839, -0.98515,
    ]]);
}

#[test]
fn attention_of_heads() {
    let model = Model::new(23, &[1, 2, 3, 4]).node(
        "Attention",
        &["x", "x", "x"],
        &["y"],
        vec![float("scale", 0.25), float("softcap", 2.0)],
    );
    model.check(&[&[
        -0.887042, -1.387042, -1.887042, 2.004514, 1.608603, 1.108603, 0.608603, 0.405353, 0.047484,
        -0.452516, -0.952516, -0.30264, -1.773676, -2.273676, 1.762323, 1.262323, 0.124472, -0.375528,
        -0.142416, -0.642416, -0.752689, -1.252689, -1.384334, -1.884334,
    ]]);
}

#[test]
fn sums_over_named_dimensions() {
    let model = Model::new(17, &[1, 2, 3, 4])
        .floats("w", &[4, 2], &[1.0, 2.0, 3.0, 4.0, -1.0, -2.0, -3.0, -4.0])
        .node("Einsum", &["x", "x"], &["a"], vec![text("equation", "bhcn,bhcm->bhnm")])
        .node("Einsum", &["x", "w"], &["b"], vec![text("equation", "...n,nk->...k")])
        .node("Einsum", &["b"], &["d"], vec![text("equation", "bhck->hk")])
        .node("Einsum", &["a", "d", "w"], &["y"], vec![text("equation", "bhnm,hk,mk->bnk")]);
    model.check(&[&[
        -359.18945, -721.03125, -401.00977, -805.4375, 275.95117, 727.41406, 430.8828, 828.78906,
    ]]);
}

#[test]
fn filters_that_are_computed() {
    let model = Model::new(17, &[1, 2, 5, 4])
        .floats(
            "w",
            &[2, 24],
            &[
                -0.625, 0.0, 0.625, -0.125, 0.5, -0.25, 0.375, -0.375, 0.25, -0.5, 0.125, -0.625, 0.0, 0.625,
                -0.125, 0.5, -0.25, 0.375, -0.375, 0.25, -0.5, 0.125, -0.625, 0.0, 0.625, -0.125, 0.5, -0.25,
                0.375, -0.375, 0.25, -0.5, 0.125, -0.625, 0.0, 0.625, -0.125, 0.5, -0.25, 0.375, -0.375,
                0.25, -0.5, 0.125, -0.625, 0.0, 0.625, -0.125,
            ],
        )
        .ints("s", &[4], &[2, 2, 3, 2])
        .floats("b", &[2], &[0.5, -1.0])
        .node("GlobalAveragePool", &["x"], &["g"], vec![])
        .node("Flatten", &["g"], &["f"], vec![])
        .node("MatMul", &["f", "w"], &["m"], vec![])
        .node("Reshape", &["m", "s"], &["k"], vec![])
        .node("Conv", &["x", "k", "b"], &["y"], vec![ints("strides", &[2, 1]), ints("pads", &[1, 0, 0, 1])]);
    model.check(&[&[
        0.519336, 0.516992, 0.486621, 0.538867, 0.498047, 0.431934, 0.517969, 0.498145, -1.019922, -1.014453,
        -0.936914, -0.980469, -1.00332, -0.958496, -1.025781, -1.003613,
    ]]);
}

#[test]
fn depthwise_filters_that_are_computed() {
    let model = Model::new(17, &[1, 2, 5, 4])
        .ints("a", &[1], &[0])
        .ints("o", &[1], &[2])
        .ints("ax", &[1], &[2])
        .node("Slice", &["x", "a", "o", "ax"], &["c"], vec![])
        .node("Transpose", &["c"], &["k"], vec![ints("perm", &[1, 0, 2, 3])])
        .node("Conv", &["x", "k"], &["y"], vec![int("group", 2)]);
    model.check(&[&[22.171875, -8.0625, -5.625, 8.984375, 22.0625, -10.25, 1.0, 0.71875]]);
}

#[test]
fn elements_back_at_their_places() {
    let model = Model::new(17, &[1, 1, 4, 6])
        .node("MaxPool", &["x"], &["m", "p"], vec![ints("kernel_shape", &[2, 2]), ints("strides", &[2, 2])])
        .node("Mul", &["m", "m"], &["q"], vec![])
        .node(
            "MaxUnpool",
            &["q", "p"],
            &["y"],
            vec![ints("kernel_shape", &[2, 2]), ints("strides", &[2, 2])],
        );
    model.check(&[&[
        0.0, 0.0, 0.0, 6.25, 4.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 4.515625, 0.0, 1.265625, 0.0,
        0.015625, 0.0, 0.0, 0.0, 0.0, 0.0,
    ]]);
}

#[test]
fn steps_of_an_lstm() {
    let model = Model::of(17, &[3, 1, 2], &["y", "h", "c"])
        .floats(
            "w",
            &[2, 8, 2],
            &[
                -0.75, 0.125, -0.625, 0.25, -0.5, 0.375, -0.375, 0.5, -0.25, 0.625, -0.125, 0.75, 0.0, -0.75,
                0.125, -0.625, 0.25, -0.5, 0.375, -0.375, 0.5, -0.25, 0.625, -0.125, 0.75, 0.0, -0.75, 0.125,
                -0.625, 0.25, -0.5, 0.375,
            ],
        )
        .floats(
            "r",
            &[2, 8, 2],
            &[
                -0.625, 0.0, 0.625, -0.125, 0.5, -0.25, 0.375, -0.375, 0.25, -0.5, 0.125, -0.625, 0.0, 0.625,
                -0.125, 0.5, -0.25, 0.375, -0.375, 0.25, -0.5, 0.125, -0.625, 0.0, 0.625, -0.125, 0.5, -0.25,
                0.375, -0.375, 0.25, -0.5,
            ],
        )
        .floats(
            "b",
            &[2, 16],
            &[
                -0.375, 0.0, 0.375, -0.125, 0.25, -0.25, 0.125, -0.375, 0.0, 0.375, -0.125, 0.25, -0.25,
                0.125, -0.375, 0.0, 0.375, -0.125, 0.25, -0.25, 0.125, -0.375, 0.0, 0.375, -0.125, 0.25,
                -0.25, 0.125, -0.375, 0.0, 0.375, -0.125,
            ],
        )
        .node(
            "LSTM",
            &["x", "w", "r", "b"],
            &["y", "h", "c"],
            vec![int("hidden_size", 2), text("direction", "bidirectional")],
        );
    model.check(&[
        &[
            0.22016, 0.128758, 0.18996, 0.055169, -0.344747, -0.501737, 0.023902, 0.012752, -0.179593,
            -0.348086, -0.147879, -0.076618,
        ],
        &[-0.179593, -0.348086, 0.18996, 0.055169],
        &[-0.431573, -0.754301, 0.440862, 0.161171],
    ]);
}

/// Numbers from -0.75 to 0.75.
pub fn weights(count: usize, start: usize, step: usize) -> Vec<f32> {
    (0..count).map(|i| ((start + i * step) % 13) as f32 / 8.0 - 0.75).collect()
}

/// Three steps in both directions of an operator with this many matrices, which starts from a state.
fn recurrent(operator: &str, matrices: usize, more: Vec<AttributeProto>) -> Model {
    let rows = matrices * 2;
    Model::of(17, &[3, 1, 2], &["y", "h"])
        .floats("w", &[2, rows as i64, 2], &weights(4 * rows, 0, 7))
        .floats("r", &[2, rows as i64, 2], &weights(4 * rows, 1, 5))
        .floats("b", &[2, 2 * rows as i64], &weights(4 * rows, 3, 5))
        .floats("start", &[2, 1, 2], &[0.5, -0.25, 0.125, 0.75])
        .node(
            operator,
            &["x", "w", "r", "b", "", "start"],
            &["y", "h"],
            [vec![int("hidden_size", 2), text("direction", "bidirectional")], more].concat(),
        )
}

#[test]
fn steps_of_a_gru_and_an_rnn() {
    recurrent("GRU", 3, vec![]).check(&[
        &[
            -0.096453, -0.348865, -0.588268, -0.681543, 0.064713, -0.289541, -0.708887, -0.646896, 0.242679,
            0.008466, 0.567478, 0.78103,
        ],
        &[0.242679, 0.008466, -0.588268, -0.681543],
    ]);
    recurrent("GRU", 3, vec![int("linear_before_reset", 1), float("clip", 0.25)]).check(&[
        &[
            0.142082, -0.247775, -0.075462, -0.069924, 0.187107, -0.032062, -0.053443, 0.066362, 0.219607,
            0.089207, 0.192415, 0.466055,
        ],
        &[0.219607, 0.089207, -0.075462, -0.069924],
    ]);
    recurrent("RNN", 1, vec![strings("activations", &["Tanh", "Softsign"])]).check(&[
        &[
            -0.662286, 0.679468, 0.176966, 0.115357, 0.832178, 0.887366, 0.694849, 0.715761, -0.994618,
            -0.509942, -0.255814, 0.378641,
        ],
        &[-0.994618, -0.509942, 0.176966, 0.115357],
    ]);
}
