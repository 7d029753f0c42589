use std::collections::BTreeSet;

use csdfc_plan::operator::{Function, Lrn, Operator};
use csdfc_plan::shape::Shape;

use super::*;
use csdfc_network::operators::output_shape;
use csdfc_network::{LayerId, Operand};

/// Parameters and multiply-accumulates, of the convolutions and fully connected layers alone, as published counts have
/// it; by a definition of their own.
fn count(network: &Network) -> (u64, u64) {
    let mut macs = 0;
    for layer in &network.layers {
        let (outputs, filters) = match &layer.operator {
            Operator::Conv(conv) => (layer.shape.elements(), conv.filters),
            Operator::Gemm(gemm) => (layer.shape.elements(), gemm.units),
            _ => continue,
        };
        let own = (outputs * layer.parameters[0].elements() / filters) as u64;
        assert_eq!(own, csdfc_network::operators::macs(&layer.operator, &layer.input_shapes(), &layer.shape));
        macs += own;
    }
    (network.parameters(), macs)
}

/// Parameters once each batch norm has gone into the convolution that it alone follows: that convolution gains or keeps
/// a bias, and scale and shift are gone.
fn folded_parameters(network: &Network) -> u64 {
    let readers = network.readers();
    let folded = |layer: &csdfc_network::Layer| -> u64 {
        let (Operator::BatchNorm(norm), [input]) = (&layer.operator, layer.inputs.as_slice()) else {
            return 0;
        };
        let before = network.layer(input.layer);
        match &before.operator {
            Operator::Conv(conv) if readers[input.layer.0].len() == 1 => {
                (norm.channels * if conv.bias { 2 } else { 1 }) as u64
            }
            _ => 0,
        }
    };
    network.parameters() - network.layers.iter().map(folded).sum::<u64>()
}

/// `macs` as printed, in millions, with the worth of half its last digit.
#[track_caller]
fn check(name: &str, parameters: u64, millions: f64, half_digit: f64) {
    let (counted, macs) = count(&network(name).unwrap());
    assert_eq!(counted, parameters, "{name}");
    let off = macs as f64 / 1e6 - millions;
    assert!(off.abs() <= half_digit, "{name}: {macs} MACs, published {millions} M");
}

#[test]
fn published_parameters_and_macs() {
    // torchvision, the "Table of all available classification weights" and the weights' `_ops`.
    check("alexnet", 61_100_840, 714.0, 0.5);
    check("densenet121", 7_978_856, 2834.0, 0.5);
    check("efficientnet_b0", 5_288_548, 386.0, 0.5);
    check("googlenet", 6_624_904, 1498.0, 0.5);
    // 27 161 264 with the auxiliary classifier's 3 326 696.
    check("inception_v3", 23_834_568, 5713.0, 0.5);
    check("mobilenet_v2", 3_504_872, 301.0, 0.5);
    check("resnet18", 11_689_512, 1814.0, 0.5);
    check("resnet50", 25_557_032, 4089.0, 0.5);
    check("squeezenet1_0", 1_248_424, 819.0, 0.5);
    check("vgg16", 138_357_544, 15_470.0, 5.0);
    // B and E are torchvision's vgg13 and vgg19.
    check("vgg_b", 133_047_848, 11_310.0, 5.0);
    check("vgg_e", 143_667_240, 19_630.0, 5.0);
    // Trainable parameters by Keras' applications; mult-adds by the paper's table 6.
    check("mobilenet_v1", 4_231_976, 569.0, 0.5);
    check("mobilenet_v1_0.75", 2_585_560, 325.0, 0.5);
    check("mobilenet_v1_0.5", 1_331_592, 149.0, 0.5);
    check("mobilenet_v1_0.25", 470_072, 41.0, 0.5);
    // Keras' no-top network has 396 128; 59 M MACs at 224 pixels, 20 M at 128 by its table.
    check("mobilenet_v2_0.35_144", 396_128 + 1_281_000, 26.66, 0.005);
    // imgclsmob's table of models, whose 2 048.06 M count some work outside of convolutions too, under 1 %.
    check("inception_v2", 11_295_240, 2048.06 - 16.0, 16.0);
    // By hand: C1 156, C3 2 416, C5 48 120, F6 10 164, output 850; and 117 600, 240 000, 48 000, 10 080, 840.
    check("lenet5", 61_706, 0.416_520, 0.0);
    // The trainable parameters that MLPerf Tiny's training log prints; its paper says 12.5 M.
    check("resnet8", 78_186, 12.5, 0.05);
    // MLPerf Tiny, the shapes of its trained model.
    check("wake_word", 46_883, 0.826_368, 0.0);
}

/// Table 2 of "Very deep convolutional networks": millions of parameters of B to E.
#[test]
fn columns_of_vgg_have_the_printed_parameters() {
    for (name, millions) in [("vgg_b", 133), ("vgg_c", 134), ("vgg16", 138), ("vgg_e", 144)] {
        let parameters = network(name).unwrap().parameters();
        assert_eq!((parameters as f64 / 1e6).round() as u64, millions, "{name}: {parameters}");
    }
    let kernels = |name: &str| -> Vec<usize> {
        let network = network(name).unwrap();
        let convolutions = network.layers.iter().filter_map(|layer| match &layer.operator {
            Operator::Conv(conv) => Some(conv.kernel[0]),
            _ => None,
        });
        convolutions.collect()
    };
    assert_eq!(kernels("vgg_b"), [3; 10]);
    assert_eq!(kernels("vgg_c"), [3, 3, 3, 3, 3, 3, 1, 3, 3, 1, 3, 3, 1]);
    assert_eq!(kernels("vgg16"), [3; 13]);
    assert_eq!(kernels("vgg_e"), [3; 16]);
}

#[test]
fn batch_norms_fold_to_the_published_sizes() {
    #[track_caller]
    fn check(name: &str, parameters: u64) {
        assert_eq!(folded_parameters(&network(name).unwrap()), parameters, "{name}");
    }
    // 13.951, 102.1 and 21.07 MB of fp32.
    check("mobilenet_v2", 3_487_816);
    check("resnet50", 25_530_472);
    check("efficientnet_b0", 5_267_540);
}

#[test]
fn every_network_is_whole() {
    let mut prints = BTreeSet::new();
    for name in [NAMES, VIDEO_NAMES, PAPER_NAMES].concat() {
        let network = network(name).unwrap();
        assert_eq!(network.outputs.len(), 1, "{name}");
        assert_eq!(network.layers.iter().filter(|layer| layer.is_input()).count(), 1, "{name}");
        let names: BTreeSet<_> = network.layers.iter().map(|layer| &layer.name).collect();
        assert_eq!(names.len(), network.layers.len(), "{name}");
        let readers = network.readers();
        for (layer, readers) in network.layers.iter().zip(&readers) {
            let is_output = network.outputs.iter().any(|o| network.layer(o.operand.layer).name == layer.name);
            assert!(is_output || !readers.is_empty(), "{name}: nobody reads {}", layer.name);
            if !layer.is_input() {
                let shape = output_shape(&layer.operator, &layer.input_shapes()).unwrap();
                assert_eq!(shape, layer.shape, "{name}: {}", layer.name);
            }
        }
        assert!(prints.insert(fingerprint(&network)), "{name}: the fingerprint of another network");
        assert_eq!(fingerprint(&network), fingerprint(&super::network(name).unwrap()), "{name}");
    }
}

/// A dense layer of 24 units of 42 features, three gates of products with it and with the state, and one unit.
#[test]
fn voice_activity_has_the_sizes_of_rnnoise() {
    let network = network("voice_activity").unwrap();
    let products = 42 * 24 + 3 * (24 * 24 + 24 * 24) + 24;
    assert_eq!((network.macs(), network.parameters()), (products, products + 24 + 3 * 24 + 1));
    let state = &network.layers[network.find("state").unwrap().0].shape;
    assert_eq!(*state, network.outputs[1].operand.shape);
    let kept = csdfc_network::state::bind(network, &[("next_state".into(), "state".into())]).unwrap();
    assert_eq!(kept.callers_outputs().count(), 1);
}

#[test]
fn outputs_have_the_original_shapes() {
    for name in NAMES {
        let network = network(name).unwrap();
        let classes = match *name {
            "lenet5" | "resnet8" => 10,
            "wake_word" => 3,
            _ => 1000,
        };
        assert_eq!(network.outputs[0].operand.shape, Shape::new([1, classes]), "{name}");
    }
}

/// 64 filters of 5×5×3, 32 of 3×3×64 and 48 of 3×3×32, with biases, and 540·960 pixels of each.
#[test]
fn espcn_is_as_in_its_paper() {
    let network = network("espcn").unwrap();
    let filters = 64 * 75 + 32 * 576 + 48 * 288;
    assert_eq!(count(&network), (filters + 64 + 32 + 48, filters * 540 * 960));
    assert_eq!(network.outputs[0].operand.shape, Shape::new([1, 3, 2160, 3840]));
}

/// Filters of 3×3 on three levels of 8, 16 and 32 channels, of 2×2 between them, and 8 weights for the mask.
#[test]
fn unet_has_three_levels() {
    let network = network("unet").unwrap();
    let [down, bottom, up] =
        [9 * (3 * 8 + 8 * 8 + 8 * 16 + 16 * 16), 9 * (16 * 32 + 32 * 32), 4 * (32 * 16 + 16 * 8)];
    let merge = 9 * (32 * 16 + 16 * 16 + 16 * 8 + 8 * 8);
    let biases = 2 * (8 + 16 + 32 + 16 + 8) + 16 + 8 + 1;
    assert_eq!(count(&network).0, down + bottom + up + merge + 8 + biases);
    assert_eq!(network.outputs[0].operand.shape, Shape::new([1, 1, 1500, 2000]));
}

#[test]
fn layers_where_pipelines_are_cut_have_the_original_shapes() {
    #[track_caller]
    fn check(name: &str, layer: &str, shape: [usize; 4]) {
        let network = network(name).unwrap();
        let found = network.find(layer).map(|id| network.layer(id).shape.dims.clone());
        assert_eq!(found.as_deref(), Some(shape.as_slice()), "{name}: {layer}");
    }
    check("mobilenet_v2", "expanded_conv_depthwise", [1, 32, 112, 112]);
    check("mobilenet_v2", "block_1_project", [1, 24, 56, 56]);
    check("mobilenet_v2", "block_16_project", [1, 320, 7, 7]);
    check("mobilenet_v2", "Conv_1", [1, 1280, 7, 7]);
    check("efficientnet_b0", "block2a_activation", [1, 96, 56, 56]);
    check("efficientnet_b0", "block2a_se_reduce", [1, 4, 1, 1]);
    check("efficientnet_b0", "block2a_se_expand", [1, 96, 1, 1]);
    check("efficientnet_b0", "block6d_add", [1, 192, 7, 7]);
    check("mobilenet_v1_0.25", "conv_pw_13", [1, 256, 7, 7]);
    check("resnet50", "layer1.0.conv3", [1, 256, 56, 56]);
    check("densenet121", "features.denseblock4.denselayer16.concat", [1, 1024, 7, 7]);
    check("googlenet", "inception4a.concat", [1, 512, 14, 14]);
    check("inception_v2", "inception_3c_output", [1, 576, 14, 14]);
    check("squeezenet1_0", "features.12.concat", [1, 512, 13, 13]);
    check("paper_cnn1", "l5", [1, 16, 32, 32]);
    check("paper_cnn2", "l2", [1, 8, 28, 28]);
    check("paper_pair", "l2", [1, 8, 32, 32]);
}

#[test]
fn unknown_names_get_a_suggestion_and_the_list() {
    #[track_caller]
    fn check(name: &str, expected: Option<&'static str>) {
        let Err(error) = network(name) else { panic!("{name} is built") };
        assert_eq!(error, BuiltinError::Unknown { name: name.into(), suggestion: expected });
        let help = miette::Diagnostic::help(&error).unwrap().to_string();
        assert!(help.contains("alexnet, densenet121") && help.contains("paper_pair"), "{help}");
        assert_eq!(help.contains("did you mean"), expected.is_some(), "{help}");
    }
    check("MobileNetV2", Some("mobilenet_v2"));
    check("mobilenet_v2_0.35_14", Some("mobilenet_v2_0.35_144"));
    check("mobilenet_v1_025", Some("mobilenet_v1_0.25"));
    check("resnet-50", Some("resnet50"));
    check("efficientnet", Some("efficientnet_b0"));
    check("yolo", None);
    check("", None);
    check(&"resnet50".repeat(100_000), None);
}

#[test]
fn weights_repeat_and_differ_from_layer_to_layer() {
    let values = || {
        let network = network("paper_cnn1").unwrap();
        network
            .layers
            .iter()
            .flat_map(|layer| &layer.parameters)
            .map(|w| w.values().unwrap())
            .collect::<Vec<_>>()
    };
    let first = values();
    assert_eq!(first, values());
    let distinct: BTreeSet<Vec<u32>> =
        first.iter().map(|v| v.iter().map(|x| x.to_bits()).collect()).collect();
    assert_eq!(distinct.len(), 4);
    // He: variance 2 / fan-in.
    let filters = &first[2];
    let variance = filters.iter().map(|x| f64::from(x * x)).sum::<f64>() / filters.len() as f64;
    assert!((variance * 200.0 / 2.0 - 1.0).abs() < 0.1, "{variance}");
}

#[test]
fn the_fingerprint_sees_every_change() {
    let original = network("lenet5").unwrap();
    let print = fingerprint(&original);
    let differs = |change: &dyn Fn(&mut Network)| {
        let mut network = original.clone();
        change(&mut network);
        fingerprint(&network) != print
    };
    assert!(!differs(&|_| ()));
    assert!(differs(&|n| n.layers[1].name.push('x')));
    assert!(differs(&|n| n.layers[1].operator = Operator::MatMul));
    assert!(differs(&|n| n.layers[2].inputs[0].layer = LayerId(0)));
    assert!(differs(&|n| n.layers[2].inputs[0].shape = Shape::new([1, 6 * 28 * 28])));
    assert!(differs(&|n| n.layers[2].shape = Shape::new([1, 6 * 28 * 28])));
    assert!(
        differs(&|n| n.layers[1].parameters[1] = csdfc_network::weights::Weights::new([6], vec![0.0; 6]))
    );
    assert!(differs(&|n| n.layers[1].parameters[0] = n.layers[1].parameters[0].clone().scaled(0, &[2.0; 6])));
    assert!(differs(&|n| n.outputs[0].name.push('x')));
    assert!(differs(&|n| n.outputs.clear()));
    // The tensor's name is no part of what a network computes.
    assert!(!differs(&|n| n.layers[1].output.push('x')));
}

#[test]
fn same_padding_is_tensorflows() {
    #[track_caller]
    fn check(size: usize, kernel: usize, stride: usize, dilation: usize, expected: [usize; 2], out: usize) {
        let mut b = Builder::new(0);
        let x = b.input("x", [1, 1, size, 32]).unwrap();
        let options = ConvOptions {
            stride: [stride, 1],
            pads: Padding::Same,
            dilation: [dilation, 1],
            ..ConvOptions::default()
        };
        let y = b.conv(&x, 1, [kernel, 4], options).unwrap();
        let network = b.finish();
        let Operator::Conv(conv) = &network.layers[1].operator else { panic!("no convolution") };
        assert_eq!(conv.pads, [expected[0], 1, expected[1], 2]);
        assert_eq!(y.shape.dims, [1, 1, out, 32]);
    }
    check(224, 3, 2, 1, [0, 1], 112);
    check(225, 3, 2, 1, [1, 1], 113);
    check(224, 3, 1, 1, [1, 1], 224);
    check(56, 5, 2, 1, [1, 2], 28);
    check(7, 1, 2, 1, [0, 0], 4);
    check(16, 3, 1, 2, [2, 2], 16);
}

#[test]
fn names_are_given_or_after_the_kind() {
    let mut b = Builder::new(0);
    let x = b.input("conv1", [1, 4, 8, 8]).unwrap();
    let y = b.conv(&x, 4, [1, 1], ConvOptions::default()).unwrap();
    let y = b.named("mine").activation(&y, Function::PRelu { slope: vec![4, 1, 1] }).unwrap();
    let y = b.lrn(&y, Lrn { size: 3, alpha: 1e-4, beta: 0.75, bias: 1.0 }).unwrap();
    let y = b.add(&x, &y).unwrap();
    let y = b.mul(&x, &y).unwrap();
    let y = b.average_pool(&y, PoolWindow::new(3, 2).pads(Padding::Same), false).unwrap();
    let y = b.concat(&[&y, &y]).unwrap();
    let y = b.softmax(&flatten(&y)).unwrap();
    b.output("out", &y).unwrap();
    let network = b.finish();
    let names: Vec<_> = network.layers.iter().map(|layer| layer.name.as_str()).collect();
    assert_eq!(
        names,
        ["conv1", "conv2", "mine", "lrn1", "binary1", "binary2", "pool1", "concat1", "softmax1"]
    );
    assert_eq!(network.parameters(), 16 + 4);
    assert_eq!(y.shape, Shape::new([1, 8 * 4 * 4]));
}

#[test]
fn nonsense_is_an_error() {
    #[track_caller]
    fn check(build: impl Fn(&mut Builder, &Operand) -> Result<Operand, BuilderError>, expected: &str) {
        let mut b = Builder::new(0);
        let x = b.input("x", [1, 4, 8, 8]).unwrap();
        let error = build(&mut b, &x).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
        assert_eq!(b.finish().layers.len(), 1);
    }
    let options = ConvOptions::default;
    let wide = ConvOptions { pads: Padding::Each(usize::MAX), ..options() };
    let still = ConvOptions { stride: [0, 1], pads: Padding::Same, ..options() };
    let far = ConvOptions { dilation: [usize::MAX; 2], pads: Padding::Same, ..options() };
    check(|b, x| b.conv(x, 4, [9, 9], options()), "conv1: ");
    check(|b, x| b.conv(x, 0, [1, 1], options()), "conv1: ");
    check(|b, x| b.conv(x, 4, [0, 1], options()), "conv1: ");
    check(|b, x| b.conv(x, 4, [1, 1], wide.clone()), "conv1: ");
    check(|b, x| b.conv(x, 4, [1, 1], still.clone()), "conv1: ");
    check(|b, x| b.conv(x, 4, [3, 3], far.clone()), "conv1: ");
    check(|b, x| b.conv(x, 4, [usize::MAX; 2], ConvOptions { pads: Padding::Same, ..options() }), "conv1: ");
    check(|b, x| b.conv(x, 4, [1, 1], ConvOptions { groups: 0, ..options() }), "conv1: ");
    check(|b, x| b.conv(x, 4, [1, 1], ConvOptions { groups: 3, ..options() }), "conv1: ");
    check(|b, x| b.conv(&flatten(x), 4, [1, 1], options()), "conv1: ");
    check(|b, x| b.conv(x, usize::MAX, [1, 1], options()), "conv1: ");
    check(|b, x| b.gemm(&flatten(x), usize::MAX / 4, true), "gemm1: ");
    check(|b, x| b.gemm(&flatten(x), 1 << 35, true), "gemm1: ");
    check(|b, x| b.max_pool(x, PoolWindow::new(9, 1)), "pool1: ");
    check(|b, _| b.concat(&[]), "concat1: ");
    check(|b, x| b.add(x, &flatten(x)), "binary1: ");
    check(|b, x| b.global_average_pool(&flatten(x)), "reduce1: ");
    check(|b, _| b.input("x", [1]), "two layers");
    check(|b, _| b.input("y", [1 << 20; 4]), "layer y: ");
    check(|b, x| b.named("x").softmax(x), "two layers");
    check(|b, x| b.softmax(&Operand { layer: LayerId(7), shape: x.shape.clone() }), "not made");
    check(|b, _| b.softmax(&Operand { layer: LayerId(0), shape: Shape::new([usize::MAX; 2]) }), "not made");

    let mut b = Builder::new(0);
    let x = b.input("x", [1, 2]).unwrap();
    b.output("y", &x).unwrap();
    assert_eq!(b.output("y", &x), Err(BuilderError::Name { name: "y".into() }));
}
