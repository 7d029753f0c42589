//! Quantized models with an error in them: every one is imported or refused, and every imported one can be planned.

use std::cell::RefCell;

use csdfc_input::app::resolve::RowsChoice;
use csdfc_network::Network;
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use rten_onnx::onnx::{AttributeProto, AttributeType, DataType, NodeProto, TensorProto};

use super::hostile::changed;
use super::quantized::{scale, stored, zero};
use super::{Model, float, int, ints, run, text};
use crate::import::error::ImportError;
use crate::import::{ImportOptions, import_bytes};

/// Mutated files of each sample.
const CASES: usize = 4000;

/// Elements of a tensor up to which a mutated network is planned and run. More of them take time and are nothing new.
const MAX_ELEMENTS: usize = 10_000;

/// A name, and what makes the model anew.
type Sample = (&'static str, fn() -> Model);

/// Small models. The names of scales begin with `s_`, those of zero points with `z_`; those of constants go on
/// with `w`.
const SAMPLES: [Sample; 4] =
    [("conversions", conversions), ("operators", operators), ("dynamic", dynamic), ("dealt out", dealt_out)];

/// A model of an image of 2 channels, with a scale and zero points of tensors, and with filters, a bias and a matrix.
fn parameters() -> Model {
    let bytes = |count: u8| (0..count).map(|i| i.wrapping_mul(37)).collect::<Vec<u8>>();
    Model::new(13, &[1, 2, 6, 6], &["y"])
        .tensor(scale("s_x", &[0.05]))
        .tensor(scale("s_y", &[0.5]))
        .tensor(zero("z_u", DataType::UINT8, 3))
        .tensor(zero("z_i", DataType::INT8, 253))
        .tensor(stored("w", DataType::INT8, &[3, 2, 3, 3], &bytes(54)))
        .tensor(scale("s_w", &[0.02, 0.01, 0.03]))
        .tensor(stored("z_w", DataType::INT8, &[3], &[0; 3]))
        .tensor(stored("b", DataType::INT32, &[3], &[1, 0, 0, 0, 255, 255, 255, 255, 7, 1, 0, 0]))
        .tensor(scale("s_wb", &[0.001, 0.0005, 0.0015]))
        .tensor(stored("m", DataType::UINT8, &[4, 3], &bytes(12)))
        .tensor(scale("s_wm", &[0.02]))
        .tensor(zero("z_wm", DataType::UINT8, 128))
}

/// The model, whose last node is one of ONNX Runtime's own operators.
fn of_microsoft(mut model: Model) -> Model {
    if let Some(last) = model.graph().node.last_mut() {
        last.domain = Some("com.microsoft".into());
    }
    model
}

/// Conversions around operators of floats.
fn conversions() -> Model {
    let there_and_back = |model: Model, from: &str, zero: &str| {
        let [q, d] = [format!("{from}_q"), format!("{from}_d")];
        model.node("QuantizeLinear", &[from, "s_x", zero], &[&q], vec![]).node(
            "DequantizeLinear",
            &[&q, "s_x", zero],
            &[&d],
            vec![],
        )
    };
    let model = there_and_back(parameters(), "x", "z_u")
        .node("DequantizeLinear", &["w", "s_w", "z_w"], &["dw"], vec![int("axis", 0)])
        .node("DequantizeLinear", &["b", "s_wb"], &["db"], vec![int("axis", 0)])
        .node("Conv", &["x_d", "dw", "db"], &["c"], vec![ints("pads", &[1, 1, 1, 1])])
        .node("Relu", &["c"], &["r"], vec![]);
    let model = there_and_back(model, "r", "z_i").node(
        "MaxPool",
        &["r_d"],
        &["p"],
        vec![ints("kernel_shape", &[2, 2]), ints("strides", &[2, 2])],
    );
    let model = there_and_back(model, "p", "z_i").node("Add", &["p_d", "p_d"], &["a"], vec![]);
    let model = there_and_back(model, "a", "z_i").node("GlobalAveragePool", &["a_d"], &["g"], vec![]);
    let model = there_and_back(model, "g", "z_i")
        .node("Flatten", &["g_d"], &["f"], vec![int("axis", 1)])
        .node("DequantizeLinear", &["m", "s_wm", "z_wm"], &["dm"], vec![])
        .node("Gemm", &["f", "dm"], &["o"], vec![int("transB", 1), float("alpha", 1.0)]);
    model.node("QuantizeLinear", &["o", "s_y", "z_u"], &["o_q"], vec![]).node(
        "DequantizeLinear",
        &["o_q", "s_y", "z_u"],
        &["y"],
        vec![],
    )
}

/// Operators of integers.
fn operators() -> Model {
    let model = parameters()
        .node("QuantizeLinear", &["x", "s_x", "z_u"], &["q"], vec![])
        .node(
            "QLinearConv",
            &["q", "s_x", "z_u", "w", "s_w", "z_w", "s_y", "z_i", "b"],
            &["c"],
            vec![text("auto_pad", "SAME_UPPER")],
        )
        .node("QLinearSigmoid", &["c", "s_y", "z_i", "s_x", "z_i"], &["h"], vec![]);
    let model = of_microsoft(model).node(
        "QLinearAdd",
        &["c", "s_y", "z_i", "h", "s_x", "z_i", "s_y", "z_u"],
        &["a"],
        vec![],
    );
    let model = of_microsoft(model).node(
        "QLinearConcat",
        &["s_y", "z_u", "a", "s_y", "z_u", "c", "s_y", "z_i"],
        &["t"],
        vec![int("axis", 1)],
    );
    let model = of_microsoft(model).node(
        "QLinearGlobalAveragePool",
        &["a", "s_y", "z_u", "s_x", "z_u"],
        &["g"],
        vec![int("channels_last", 0)],
    );
    let model = of_microsoft(model).node("Flatten", &["g"], &["f"], vec![]).node(
        "QGemm",
        &["f", "s_x", "z_u", "m", "s_wm", "z_wm", "", "s_y", "z_i"],
        &["e"],
        vec![int("transB", 1)],
    );
    let mut model = of_microsoft(model).node("DequantizeLinear", &["e", "s_y", "z_i"], &["y"], vec![]).node(
        "DequantizeLinear",
        &["t", "s_y", "z_u"],
        &["z"],
        vec![],
    );
    model.graph().output.push(super::value("z", DataType::FLOAT, &[]));
    model
}

/// Scales that the network computes.
fn dynamic() -> Model {
    Model::new(13, &[1, 2, 6, 6], &["y"])
        .tensor(stored("w", DataType::UINT8, &[3, 2, 1, 1], &[1, 250, 3, 128, 0, 77]))
        .tensor(zero("z_w", DataType::UINT8, 120))
        .tensor(stored("m", DataType::INT8, &[6, 2], &[1, 2, 3, 4, 5, 6, 250, 251, 252, 253, 254, 255]))
        .tensor(scale("factor", &[0.02]))
        .node("DynamicQuantizeLinear", &["x"], &["q", "s", "z"], vec![])
        .node("ConvInteger", &["q", "w", "z", "z_w"], &["c"], vec![])
        .node("Cast", &["c"], &["f"], vec![int("to", 1)])
        .node("Mul", &["s", "factor"], &["t"], vec![])
        .node("Mul", &["f", "t"], &["n"], vec![])
        .node("DynamicQuantizeLinear", &["n"], &["q2", "s2", "z2"], vec![])
        .node("MatMulInteger", &["q2", "m", "z2"], &["i"], vec![])
        .node("Cast", &["i"], &["g"], vec![int("to", 1)])
        .node("Mul", &["g", "s2"], &["y"], vec![])
}

/// An input of integers, scales for each channel of a tensor, integers of 16 bits, and a product of matrices.
fn dealt_out() -> Model {
    let sixteen = |name: &str| stored(name, DataType::INT16, &[], &[1, 0]);
    Model::of(13, DataType::UINT8, &[1, 2, 6, 6], &["y"])
        .tensor(scale("s_x", &[0.5]))
        .tensor(zero("z_u", DataType::UINT8, 3))
        .tensor(scale("s_c", &[0.5, 0.25]))
        .tensor(stored("z_c", DataType::INT8, &[2], &[1, 255]))
        .tensor(scale("s_l", &[0.01]))
        .tensor(sixteen("z_l"))
        .tensor(stored("m", DataType::INT8, &[6, 2], &[1, 2, 3, 4, 5, 6, 250, 251, 252, 253, 254, 255]))
        .tensor(scale("s_wm", &[0.5, 0.25]))
        .tensor(stored("z_wm", DataType::INT8, &[2], &[0, 0]))
        .node("DequantizeLinear", &["x", "s_x", "z_u"], &["d"], vec![])
        .node("QuantizeLinear", &["d", "s_c", "z_c"], &["p"], vec![int("axis", 1)])
        .node("DequantizeLinear", &["p", "s_c", "z_c"], &["e"], vec![int("axis", 1)])
        .node("QuantizeLinear", &["e", "s_l", "z_l"], &["l"], vec![])
        .node("DequantizeLinear", &["l", "s_l", "z_l"], &["f"], vec![])
        .node("QuantizeLinear", &["f", "s_x", "z_u"], &["q"], vec![])
        .node("QLinearMatMul", &["q", "s_x", "z_u", "m", "s_wm", "z_wm", "s_x", "z_u"], &["o"], vec![])
        .node("DequantizeLinear", &["o", "s_x", "z_u"], &["y"], vec![])
}

fn import(model: &Model) -> Result<Network, ImportError> {
    import_bytes(&model.bytes(), None, &ImportOptions::default()).map(|imported| imported.network)
}

#[test]
fn a_bad_scale_or_zero_point_is_an_error_that_names_a_node_that_reads_it() {
    let mut bad = 0;
    for (sample, model) in SAMPLES {
        for at in 0..model().graph().initializer.len() {
            for (what, change) in wrongs(&model().graph().initializer[at]) {
                let mut model = model();
                model.graph().initializer[at] = change;
                let name = model.graph().initializer[at].name.clone().unwrap_or_default();
                let nodes = &model.graph().node;
                let readers: Vec<NodeProto> =
                    nodes.iter().filter(|node| node.input.contains(&name)).cloned().collect();
                if readers.is_empty() {
                    continue;
                }
                let wrong = format!("{sample}: {name}, {what}");
                let error = import(&model).map(|_| ()).expect_err(&wrong);
                let ImportError::Node { node, reason, .. } = &error else { panic!("{wrong}: {error}") };
                assert!(readers.iter().any(|reader| reader.name.as_ref() == Some(node)), "{wrong}: {error}");
                assert!(!reason.is_empty());
                bad += 1;
            }
        }
    }
    assert!(bad > 100, "{bad}");
}

/// The errors that a scale or a zero point may have, each with the wrong tensor. There are none for other constants.
fn wrongs(tensor: &TensorProto) -> Vec<(String, TensorProto)> {
    let name = tensor.name.clone().unwrap_or_default();
    let elements = tensor.dims.iter().product::<i64>();
    let mut all = Vec::new();
    if name.starts_with("s_") {
        for value in [0.0, -0.0, -0.5, f32::NAN, f32::INFINITY] {
            let mut values = vec![0.5; elements as usize];
            *values.last_mut().unwrap() = value;
            all.push((format!("{value}"), scale(&name, &values)));
        }
        all.push(("another length".into(), scale(&name, &vec![0.5; elements as usize + 4])));
    } else if let (true, Some(element)) = (name.starts_with("z_"), tensor.data_type) {
        let stated = |data_type, value: i32| TensorProto {
            raw_data: None,
            int32_data: vec![value; elements as usize],
            data_type: Some(data_type),
            ..tensor.clone()
        };
        let beyond: &[i32] = match element {
            DataType::UINT8 => &[-1, 256],
            DataType::INT8 => &[-129, 128],
            _ => &[-32_769, 32_768],
        };
        for &value in beyond {
            all.push((format!("{value}"), stated(element, value)));
        }
        let bytes = if element == DataType::INT16 { 2 } else { 1 };
        let longer = vec![0; (elements as usize + 4) * bytes];
        all.push(("another length".into(), stored(&name, element, &[elements + 4], &longer)));
        all.push(("floats".into(), scale(&name, &vec![1.0; elements as usize])));
        if name.starts_with("z_w") {
            let other = if element == DataType::INT8 { DataType::UINT8 } else { DataType::INT8 };
            all.push(("another type than the weights".into(), stated(other, 0)));
        }
    }
    all
}

#[test]
fn mutated_models_are_errors_or_other_models() {
    for (number, (sample, model)) in SAMPLES.into_iter().enumerate() {
        let whole = import(&model()).unwrap_or_else(|error| panic!("{sample}: {error}"));
        run(whole, RowsChoice::None).unwrap_or_else(|error| panic!("{sample}: {error}"));
        let mut random = ChaCha8Rng::seed_from_u64(number as u64);
        let (mut refused, mut accepted, mut ran) = (0, 0, 0);
        for case in 0..CASES {
            let mut model = model();
            // In one case of four only bytes are changed, and in one of four of the others bytes are changed, too.
            let structures = if case % 4 == 3 { 0 } else { random.random_range(1..3) };
            (0..structures).for_each(|_| mutate(&mut model, &mut random));
            let mut bytes = model.bytes();
            if structures == 0 || random.random_ratio(1, 4) {
                bytes = changed(&bytes, case / 4, &mut random);
            }
            match import_bytes(&bytes, None, &ImportOptions::default()) {
                Ok(imported) => {
                    accepted += 1;
                    let network = imported.network;
                    if network.layers.iter().all(|layer| layer.shape.elements() <= MAX_ELEMENTS) {
                        ran += usize::from(run(network, RowsChoice::None).is_ok());
                    }
                }
                Err(error) => {
                    refused += 1;
                    assert!(!error.to_string().is_empty());
                }
            }
        }
        println!(
            "{sample}: of {CASES} mutated models {refused} are refused, {accepted} still models; {ran} ran"
        );
        assert!(refused > CASES / 3 && accepted > CASES / 20 && ran > accepted / 2);
    }
}

/// Changes one thing in a model.
fn mutate(model: &mut Model, random: &mut ChaCha8Rng) {
    let graph = model.graph();
    let (nodes, tensors) = (graph.node.len(), graph.initializer.len());
    match random.random_range(0..16) {
        0..8 => {
            let other = graph.initializer[random.random_range(0..tensors)].clone();
            mutate_tensor(&mut graph.initializer[random.random_range(0..tensors)], &other, random);
        }
        8..11 => {
            let other = graph.node[random.random_range(0..nodes)].clone();
            mutate_operands(&mut graph.node[random.random_range(0..nodes)], &other, random);
        }
        11..14 => mutate_attribute(&mut graph.node[random.random_range(0..nodes)], random),
        14 => {
            let dims = [0, -1, -2, 1, 2, 3, 7, 300].map(|dim| vec![1, dim, 6, 6]);
            let element = DataType(random.random_range(0..17));
            graph.input = vec![super::value("x", element, &dims[random.random_range(0..dims.len())])];
        }
        _ => {
            let removed = random.random_range(0..nodes);
            let node = graph.node.remove(removed);
            // Gone, or where another node was.
            if random.random() {
                graph.node.insert(random.random_range(0..nodes), node);
            }
        }
    }
}

fn mutate_tensor(tensor: &mut TensorProto, other: &TensorProto, random: &mut ChaCha8Rng) {
    const FLOATS: [f32; 9] =
        [0.0, -1.0, f32::NAN, f32::INFINITY, 1e-45, f32::MIN_POSITIVE, f32::MAX, 1e-20, 1e20];
    let bytes = || tensor.raw_data.as_ref().map(|raw| raw.borrow().clone()).unwrap_or_default();
    match random.random_range(0..8) {
        0 => {
            let mut bytes = bytes();
            let start = random.random_range(0..bytes.len().div_ceil(4).max(1)) * 4;
            let value = FLOATS[random.random_range(0..FLOATS.len())].to_le_bytes();
            bytes.iter_mut().skip(start).zip(value).for_each(|(byte, new)| *byte = new);
            tensor.raw_data = Some(RefCell::new(bytes));
        }
        1 => {
            let mut bytes = bytes();
            bytes.iter_mut().for_each(|byte| *byte = random.random());
            tensor.raw_data = Some(RefCell::new(bytes));
        }
        2 => tensor.data_type = Some(DataType(random.random_range(-1..25))),
        3 => {
            const DIMS: [i64; 9] = [0, 1, 2, 3, 5, -1, 1 << 20, i64::MAX, i64::MIN];
            let dim = DIMS[random.random_range(0..DIMS.len())];
            let at = random.random_range(0..=tensor.dims.len());
            match tensor.dims.get_mut(at) {
                Some(place) => *place = dim,
                None => tensor.dims.push(dim),
            }
        }
        4 => drop(tensor.dims.pop()),
        5 => {
            let mut bytes = bytes();
            bytes.resize(random.random_range(0..bytes.len() + 9), 1);
            tensor.raw_data = Some(RefCell::new(bytes));
        }
        6 => {
            // Another length, which its dimensions say, too.
            let elements = random.random_range(0..6);
            let data_type = tensor.data_type.unwrap_or(DataType::FLOAT);
            let width = match data_type {
                DataType::FLOAT | DataType::INT32 => 4,
                DataType::INT16 => 2,
                _ => 1,
            };
            let name = tensor.name.clone().unwrap_or_default();
            let of = if data_type == DataType::FLOAT { 0.5f32.to_le_bytes() } else { [1, 0, 0, 0] };
            let bytes: Vec<u8> = (0..elements * width).map(|at| of[at % width]).collect();
            *tensor = stored(&name, data_type, &[elements as i64], &bytes);
        }
        _ => *tensor = TensorProto { name: tensor.name.clone(), ..other.clone() },
    }
}

fn mutate_operands(node: &mut NodeProto, other: &NodeProto, random: &mut ChaCha8Rng) {
    let name = |random: &mut ChaCha8Rng| {
        let names = [&other.input[..], &other.output[..]].concat();
        names[random.random_range(0..names.len())].clone()
    };
    if node.input.is_empty() {
        // Mutations before this one removed them.
        return node.input.push(name(random));
    }
    let at = random.random_range(0..node.input.len());
    match random.random_range(0..7) {
        0 => drop(node.input.remove(at)),
        1 => node.input[at] = String::new(),
        2 => node.input[at] = name(random),
        3 => node.input.insert(at, name(random)),
        4 => {
            let to = random.random_range(0..node.input.len());
            node.input.swap(at, to);
        }
        5 => node.output[0] = name(random),
        _ => (node.op_type, node.domain) = (other.op_type.clone(), other.domain.clone()),
    }
}

fn mutate_attribute(node: &mut NodeProto, random: &mut ChaCha8Rng) {
    const NAMES: [&str; 12] = [
        "axis",
        "block_size",
        "output_dtype",
        "saturate",
        "transA",
        "transB",
        "group",
        "strides",
        "dilations",
        "pads",
        "kernel_shape",
        "channels_last",
    ];
    const VALUES: [i64; 10] = [0, 1, 2, 3, -1, -5, 7, 1 << 40, i64::MAX, i64::MIN];
    let value = VALUES[random.random_range(0..VALUES.len())];
    let name = NAMES[random.random_range(0..NAMES.len())];
    let count = node.attribute.len();
    match (random.random_range(0..5), count) {
        (0, 1..) => drop(node.attribute.remove(random.random_range(0..count))),
        (1, 1..) => {
            let attribute = &mut node.attribute[random.random_range(0..count)];
            let element = attribute.ints.first_mut().or(attribute.i.as_mut());
            element.into_iter().for_each(|element| *element = value);
        }
        (2, 1..) => {
            let kind = AttributeType(random.random_range(0..15));
            node.attribute[random.random_range(0..count)].r#type = Some(kind);
        }
        (3, _) => node.attribute.push(ints(name, &vec![value; random.random_range(0..5)])),
        _ => {
            let number: AttributeProto = int(name, value);
            node.attribute.push(number);
        }
    }
}
