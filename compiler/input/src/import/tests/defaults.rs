//! The value of an attribute that a node lacks: the standard's default, and nothing else.

use rten_onnx::onnx::AttributeProto;

use super::operators::list;
use super::*;

/// A node, and the layers that it becomes.
struct Case {
    operator: &'static str,
    opset: i64,
    input: &'static [i64],
    constants: fn(Model) -> Model,
    /// Operands left out before the constants.
    absent: usize,
    /// Attributes that it must have.
    required: Vec<AttributeProto>,
}

fn none(model: Model) -> Model {
    model
}

fn case(operator: &'static str, opset: i64, constants: fn(Model) -> Model) -> Case {
    Case { operator, opset, input: &[1, 4, 6, 8], constants, absent: 0, required: Vec::new() }
}

impl Case {
    fn with(self, attribute: AttributeProto) -> Self {
        Case { required: [self.required, vec![attribute]].concat(), ..self }
    }

    fn of(self, input: &'static [i64]) -> Self {
        Case { input, ..self }
    }

    /// The network of the node with these attributes and the required ones, or why there is none. Its first
    /// operand is another node's, so that there is a layer even if it becomes none; its constants follow.
    fn network(&self, more: &[AttributeProto]) -> Result<String, String> {
        let mut model = (self.constants)(Model::new(self.opset, self.input, &["y"]));
        let names: Vec<String> =
            model.graph().initializer.iter().filter_map(|tensor| tensor.name.clone()).collect();
        let mut inputs = vec!["a"];
        inputs.extend(vec![""; self.absent]);
        inputs.extend(names.iter().map(String::as_str));
        let attributes = [self.required.as_slice(), more].concat();
        let model =
            model.node("Relu", &["x"], &["a"], vec![]).node(self.operator, &inputs, &["y"], attributes);
        let network = model.import().map_err(|error| error.to_string())?;
        let values = |weights: &csdfc_network::weights::Weights| weights.values().unwrap();
        let layer = |layer: &csdfc_network::Layer| {
            let parameters: Vec<Vec<f32>> = layer.parameters.iter().map(values).collect();
            format!("{:?} of {:?} makes {:?} by {parameters:?}\n", layer.operator, layer.inputs, layer.shape)
        };
        let layers: String = network.layers.iter().map(layer).collect();
        Ok(format!("{layers}{:?}", network.outputs))
    }

    /// Checks that the node without an attribute is imported like the node with this default, and not like one with
    /// another value.
    fn defaults(self, table: &[(AttributeProto, AttributeProto)]) -> Self {
        let plain = self.network(&[]).unwrap();
        for (default, other) in table {
            let name = format!("{} of opset {}, {:?}", self.operator, self.opset, default.name);
            assert_eq!(self.network(std::slice::from_ref(default)).as_ref(), Ok(&plain), "{name}");
            assert_ne!(self.network(std::slice::from_ref(other)).as_ref(), Ok(&plain), "{name}");
        }
        self
    }
}

#[test]
fn of_functions() {
    case("Elu", 13, none).defaults(&[(float("alpha", 1.0), float("alpha", 1.1))]);
    case("LeakyRelu", 13, none).defaults(&[(float("alpha", 0.01), float("alpha", 0.1))]);
    case("ThresholdedRelu", 13, none).defaults(&[(float("alpha", 1.0), float("alpha", 0.5))]);
    case("HardSigmoid", 13, none).defaults(&[
        (float("alpha", 0.2), float("alpha", 1.0 / 6.0)),
        (float("beta", 0.5), float("beta", 0.6)),
    ]);
    // As the standard prints them.
    case("Selu", 13, none).defaults(&[
        (float("alpha", 1.673_263_2), float("alpha", 1.67)),
        (float("gamma", 1.050_701), float("gamma", 1.05)),
    ]);
    case("Gelu", 20, none).defaults(&[(text("approximate", "none"), text("approximate", "tanh"))]);
    case("Swish", 24, none).defaults(&[(float("alpha", 1.0), float("alpha", 2.0))]);
}

#[test]
fn of_norms() {
    let norm = |model: Model| model.floats("s", &[4]).floats("b", &[4]).floats("m", &[4]).floats("v", &[4]);
    case("BatchNormalization", 15, norm).defaults(&[
        (float("epsilon", 1e-5), float("epsilon", 1e-3)),
        (int("training_mode", 0), int("training_mode", 1)),
    ]);
    case("BatchNormalization", 8, norm).defaults(&[(int("spatial", 1), int("spatial", 0))]);
    case("InstanceNormalization", 13, |model| model.floats("s", &[4]).floats("b", &[4]))
        .defaults(&[(float("epsilon", 1e-5), float("epsilon", 1e-3))]);
    case("LRN", 13, none).with(int("size", 3)).defaults(&[
        (float("alpha", 1e-4), float("alpha", 1e-3)),
        (float("beta", 0.75), float("beta", 0.5)),
        (float("bias", 1.0), float("bias", 2.0)),
    ]);
    for operator in ["Softmax", "LogSoftmax"] {
        case(operator, 12, none).defaults(&[(int("axis", 1), int("axis", -1))]);
        case(operator, 13, none).defaults(&[(int("axis", -1), int("axis", 1))]);
    }
}

/// The attributes of all windows: default and another.
fn window() -> [(AttributeProto, AttributeProto); 4] {
    [
        (text("auto_pad", "NOTSET"), text("auto_pad", "SAME_UPPER")),
        (ints("pads", &[0; 4]), ints("pads", &[1, 0, 0, 0])),
        (ints("strides", &[1, 1]), ints("strides", &[1, 2])),
        (ints("dilations", &[1, 1]), ints("dilations", &[2, 1])),
    ]
}

#[test]
fn of_windows() {
    let filters = |model: Model| model.floats("w", &[4, 4, 3, 3]);
    // In two groups there are filters of half the channels.
    let halves = |model: Model| model.floats("w", &[4, 2, 3, 3]);
    case("Conv", 13, filters).defaults(&window()).defaults(&[(int("group", 1), int("group", 2))]);
    assert!(case("Conv", 13, halves).with(int("group", 2)).network(&[]).is_ok());
    case("ConvTranspose", 13, filters).defaults(&window()).defaults(&[
        (int("group", 1), int("group", 2)),
        (ints("output_padding", &[0, 0]), ints("output_padding", &[1, 0])),
    ]);
    let ceil = [(int("ceil_mode", 0), int("ceil_mode", 1))];
    let padded = || ints("pads", &[1, 1, 1, 1]);
    let kernel = || ints("kernel_shape", &[3, 3]);
    case("MaxPool", 13, none).with(kernel()).defaults(&window()).defaults(&ceil);
    case("AveragePool", 19, none).with(kernel()).defaults(&window()).defaults(&ceil);
    case("AveragePool", 13, none)
        .with(kernel())
        .with(padded())
        .defaults(&[(int("count_include_pad", 0), int("count_include_pad", 1))]);
    case("LpPool", 18, none)
        .with(kernel())
        .defaults(&window())
        .defaults(&ceil)
        .defaults(&[(int("p", 2), int("p", 1))]);
    case("GlobalLpPool", 13, none).defaults(&[(int("p", 2), int("p", 1))]);
}

#[test]
fn of_products() {
    case("Gemm", 13, |model| model.floats("b", &[3, 3]).floats("c", &[3])).of(&[1, 3]).defaults(&[
        (float("alpha", 1.0), float("alpha", 0.5)),
        (float("beta", 1.0), float("beta", 0.5)),
        (int("transA", 0), int("transA", 1)),
        (int("transB", 0), int("transB", 1)),
    ]);
}

#[test]
fn of_reductions() {
    for operator in ["ReduceMean", "ReduceSum", "ReduceMax", "ReduceL2", "ReduceLogSumExp"] {
        let keep = [(int("keepdims", 1), int("keepdims", 0))];
        case(operator, 11, none).with(ints("axes", &[2])).defaults(&keep);
        case(operator, 18, |model| model.ints("axes", &[2])).defaults(&keep);
        let noop = [(int("noop_with_empty_axes", 0), int("noop_with_empty_axes", 1))];
        case(operator, 18, none).defaults(&noop);
    }
    case("ArgMax", 13, none).of(&[1, 4, 6]).with(int("axis", 1)).defaults(&[
        (int("keepdims", 1), int("keepdims", 0)),
        (int("select_last_index", 0), int("select_last_index", 1)),
    ]);
    case("ArgMax", 13, none).of(&[1, 6]).defaults(&[(int("axis", 0), int("axis", 1))]);
}

#[test]
fn of_layout() {
    case("Gather", 13, |model| model.ints("i", &[0]))
        .of(&[1, 4])
        .defaults(&[(int("axis", 0), int("axis", 1))]);
    // With one part, the part is the whole axis.
    case("Split", 13, |model| model.ints("split", &[1]))
        .of(&[1, 4])
        .defaults(&[(int("axis", 0), int("axis", 1))]);
    case("Flatten", 13, none).defaults(&[(int("axis", 1), int("axis", 2))]);
    case("Transpose", 13, none)
        .of(&[1, 4, 6])
        .defaults(&[(ints("perm", &[2, 1, 0]), ints("perm", &[0, 2, 1]))]);
    case("Reshape", 14, |model| model.ints("shape", &[0, 4, -1]))
        .defaults(&[(int("allowzero", 0), int("allowzero", 1))]);
    case("DepthToSpace", 13, none)
        .with(int("blocksize", 2))
        .defaults(&[(text("mode", "DCR"), text("mode", "CRD"))]);
    case("Pad", 10, none).with(ints("pads", &[0, 0, 1, 1, 0, 0, 1, 1])).defaults(&[
        (text("mode", "constant"), text("mode", "edge")),
        (float("value", 0.0), float("value", 1.0)),
    ]);
    case("Pad", 13, |model| model.ints("pads", &[0, 0, 1, 1, 0, 0, 1, 1]))
        .defaults(&[(text("mode", "constant"), text("mode", "reflect"))]);
}

#[test]
fn of_resizing() {
    let sizes = case("Resize", 18, |model| model.ints("sizes", &[1, 4, 9, 9]));
    Case { absent: 2, ..sizes }.defaults(&[
        (text("mode", "nearest"), text("mode", "linear")),
        (text("nearest_mode", "round_prefer_floor"), text("nearest_mode", "round_prefer_ceil")),
        (
            text("coordinate_transformation_mode", "half_pixel"),
            text("coordinate_transformation_mode", "align_corners"),
        ),
        (text("keep_aspect_ratio_policy", "stretch"), text("keep_aspect_ratio_policy", "not_larger")),
    ]);
    let smaller = || Case { absent: 2, ..case("Resize", 18, |model| model.ints("sizes", &[1, 4, 5, 5])) };
    smaller().with(text("mode", "linear")).defaults(&[(int("antialias", 0), int("antialias", 1))]);
    smaller().with(text("mode", "cubic")).defaults(&[
        (float("cubic_coeff_a", -0.75), float("cubic_coeff_a", -0.5)),
        (int("exclude_outside", 0), int("exclude_outside", 1)),
    ]);
    let cropped = case("Resize", 18, |model| {
        let region = list("region", &[0.0, 0.0, 0.25, 0.25, 1.0, 1.0, 1.5, 0.5]);
        model.tensor(region).floats("none", &[0]).ints("sizes", &[1, 4, 5, 5])
    });
    cropped
        .with(text("coordinate_transformation_mode", "tf_crop_and_resize"))
        .defaults(&[(float("extrapolation_value", 0.0), float("extrapolation_value", 1.0))]);
    let scales = |model: Model| {
        model.tensor(TensorProto {
            name: Some("scales".into()),
            dims: vec![4],
            data_type: Some(DataType::FLOAT),
            float_data: vec![1.0, 1.0, 2.0, 2.0],
            ..Default::default()
        })
    };
    case("Upsample", 9, scales).defaults(&[(text("mode", "nearest"), text("mode", "linear"))]);
}
