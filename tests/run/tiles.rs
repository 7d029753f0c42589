//! Convolutions by transformed tiles, executed in plans: near the textbook's results, whichever rows a firing makes.
//! Their sums differ from the sums of products of windows, so their bytes differ, too.

use csdfc_input::app::resolve::RowsChoice;
use csdfc_network::pass::legalise;
use csdfc_network::{Network, NetworkOutput};
use csdfc_plan::operator::{Conv, ElementWise, Function, Operator};
use csdfc_plan::plan::StorageModel;
use csdfc_plan::shape::Shape;
use csdfc_runtime::bind::Primitive;
use csdfc_tests::{generate, plan, random};
use rand::RngExt;
use rand::rngs::ChaCha8Rng;

use super::layouts::application;
use super::{compare, run_plan};

/// Convolutions that each primitive computes.
const EACH: usize = 3;

/// A network of a convolution between other layers, if the primitive computes it.
fn network(primitive: Primitive, random: &mut ChaCha8Rng) -> Option<Network> {
    let mut network = Network::default();
    let mut pick = |low: usize, high: usize| random.random_range(low..=high);
    let image = Shape::image(pick(1, 20), pick(5, 16), pick(5, 16));
    let kernel = [pick(1, 5), *[3, 5].get(pick(0, 1))?];
    let conv = Operator::Conv(Conv {
        filters: pick(1, 20),
        kernel,
        stride: [1, 1],
        dilation: [1, 1],
        pads: [0, 1, 2, 3].map(|axis| pick(0, kernel[axis % 2] - 1)),
        groups: 1,
        bias: pick(0, 1) == 0,
        pre: None,
        residual: false,
        activation: (pick(0, 1) == 0).then_some(Function::Relu),
    });
    let relu = || Operator::ElementWise(ElementWise { function: Function::Relu });
    let mut x = generate::input(&mut network, image);
    x = generate::push(&mut network, relu(), vec![x])?;
    if !primitive.computes(&conv, &[&x.shape]) {
        return None;
    }
    x = generate::push(&mut network, conv, vec![x])?;
    network.layers[x.layer.0].primitive = Some(primitive);
    x = generate::push(&mut network, relu(), vec![x])?;
    network.outputs.push(NetworkOutput::new("y", x));
    Some(network)
}

#[test]
fn convolutions_by_tiles_are_near_the_textbook() {
    let tiled = || Primitive::all().filter(|primitive| primitive.name().starts_with("winograd"));
    assert_eq!(tiled().count(), 29);
    for (stream, primitive) in (0..).zip(tiled()) {
        let mut random = random(stream);
        let networks = std::iter::repeat_with(|| network(primitive, &mut random));
        for network in networks.flatten().take(EACH) {
            let plain = application(&network, false, StorageModel::Tensors, RowsChoice::None);
            let network = legalise(network);
            for (rows, storage, cut) in [
                (RowsChoice::None, StorageModel::Tensors, false),
                (RowsChoice::All, StorageModel::Tensors, false),
                (RowsChoice::All, StorageModel::Tensors, true),
                (RowsChoice::All, StorageModel::Edges, false),
            ] {
                let planned = application(&network, cut, storage, rows);
                let outputs = run_plan(&planned, &plan(&planned)).unwrap();
                compare(&plain, &outputs).unwrap_or_else(|why| panic!("{primitive:?}: {why}"));
            }
        }
    }
}
