//! A written network is read as the same network.

use csdfc_plan::format::Quantization;
use csdfc_plan::operator::{Camera, CameraLayout, ColorOrder, InputElement, Operator};

use super::{ExportError, export};
use crate::builtin;
use crate::import::{ImportOptions, import_bytes};
use csdfc_network::pass::{Fusion, normalise};
use csdfc_network::{Network, NetworkOutput};

fn imported(network: &Network) -> Network {
    let bytes = export(network).unwrap();
    import_bytes(&bytes, None, &ImportOptions::default()).unwrap().network
}

/// Checks that both have the same layers, with the same names, and the same weights to the bit.
fn expect_same(one: &Network, other: &Network, name: &str) {
    assert_eq!(one.layers.len(), other.layers.len(), "{name}");
    for (one, other) in one.layers.iter().zip(&other.layers) {
        assert_eq!(
            (&one.name, &one.operator, &one.inputs, &one.shape),
            (&other.name, &other.operator, &other.inputs, &other.shape),
            "{name}"
        );
        for (a, b) in one.parameters.iter().zip(&other.parameters) {
            let bits = |values: Vec<f32>| values.into_iter().map(f32::to_bits).collect::<Vec<_>>();
            assert_eq!(a.dims, b.dims, "{name}: {}", one.name);
            assert!(
                bits(a.values().unwrap()) == bits(b.values().unwrap()),
                "{name}: weights of {}",
                one.name
            );
        }
    }
    assert_eq!(one.outputs, other.outputs, "{name}");
}

#[test]
fn built_in_networks_are_read_as_they_were() {
    for name in builtin::NAMES.iter().chain(builtin::PAPER_NAMES) {
        let network = builtin::network(name).unwrap();
        // The others have the same operators, and more weights than a test should draw.
        if network.parameters() < 15_000_000 {
            let read = imported(&network);
            // ONNX has no Swish in this opset: it is spelled out, and recognised again.
            if *name != "efficientnet_b0" {
                expect_same(&network, &read, name);
            }
            let full = |network| normalise(network, Fusion::Full);
            expect_same(&full(network), &full(read), name);
        }
    }
}

#[test]
fn outputs_of_bytes_are_read_as_bytes() {
    let mut network = builtin::network("lenet5").unwrap();
    network.outputs[0].integers = Some(Quantization::IDENTITY);
    let floats = NetworkOutput { name: "floats".into(), integers: None, ..network.outputs[0].clone() };
    network.outputs.push(floats);
    let read = imported(&network);
    assert_eq!(read.outputs[0].integers, Some(Quantization::IDENTITY));
    assert_eq!(read.outputs[1].integers, None);
    let made = read.layer(read.outputs[0].operand.layer);
    assert_eq!(made.inputs[0].layer, read.outputs[1].operand.layer);
}

#[test]
fn the_same_network_has_the_same_bytes() {
    let network = || export(&builtin::network("squeezenet1_0").unwrap()).unwrap();
    assert!(network() == network());
}

#[test]
fn cameras_and_sizes_beyond_a_file_are_refused() {
    let mut network = builtin::network("lenet5").unwrap();
    let large = &mut network.layers[1].parameters[0];
    large.dims = vec![1 << 30];
    assert!(matches!(export(&network), Err(ExportError::TooLarge)));

    let mut network = builtin::network("lenet5").unwrap();
    let Operator::Input(input) = &mut network.layers[0].operator else { panic!() };
    input.element = InputElement::U8;
    input.camera =
        Some(Camera { layout: CameraLayout::Hwc, order: ColorOrder::Rgb, mean: vec![0.0], scale: vec![1.0] });
    let message = export(&network).unwrap_err().to_string();
    assert!(message.starts_with("layer input cannot be written as ONNX"), "{message}");
}
