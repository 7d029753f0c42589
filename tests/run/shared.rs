//! Layers that use the parameters of others: parameters are kept once, and all layers compute as they would alone.

use std::collections::BTreeSet;

use csdfc_input::app::resolve::{Application, RowsChoice, Streamed};
use csdfc_network::pass::{Precision, in_precisions};
use csdfc_network::weights::Weights;
use csdfc_network::{Network, NetworkOutput, Operand};
use csdfc_plan::check::check;
use csdfc_plan::operator::{Conv, Function, Gemm, Operator, Pool, PoolKind, Reduce, ReduceFunction};
use csdfc_plan::plan::{Layer, Plan, StorageModel};
use csdfc_plan::shape::Shape;
use csdfc_tests::crates::emitted;
use csdfc_tests::{generate, plan};

use super::layouts::application;
use super::{bits, run_plan};

/// Adds a layer with these parameters.
fn push(network: &mut Network, operator: Operator, x: &Operand, parameters: &[Weights]) -> Operand {
    let shape = csdfc_network::operators::output_shape(&operator, std::slice::from_ref(&x.shape)).unwrap();
    let made = generate::add(network, operator, vec![x.clone()], shape);
    network.layers[made.layer.0].parameters = parameters.to_vec();
    made
}

fn conv(filters: usize, kernel: usize, stride: usize, bias: bool, activation: Option<Function>) -> Operator {
    Operator::Conv(Conv {
        filters,
        kernel: [kernel; 2],
        stride: [stride; 2],
        dilation: [1; 2],
        pads: [kernel / 2; 4],
        groups: 1,
        bias,
        pre: None,
        residual: false,
        activation,
    })
}

/// A head of two convolutions, of a mean and of a product, at these levels of a pyramid of an image and smaller ones. The last
/// level has other strides and activations.
pub fn heads(levels: &[usize]) -> Network {
    let mut drawn = generate::sixteenths(11);
    let mut weights = |dims: &[usize]| {
        let count = dims.iter().product();
        Weights::new(dims, drawn.by_ref().take(count).collect::<Vec<f32>>())
    };
    let (first, second) = ([weights(&[24, 4, 3, 3])], [weights(&[6, 24, 1, 1]), weights(&[6])]);
    let product = [weights(&[6, 7]), weights(&[7])];
    let mut network = Network::default();
    let image = generate::input(&mut network, Shape::image(4, 12, 8));
    for &level in levels {
        let (kernel, stride) = ([1 << level; 2], [1 << level; 2]);
        let (dilation, pads, ceil) = ([1; 2], [0; 4], false);
        let smaller = Operator::Pool(Pool { kind: PoolKind::Max, kernel, stride, dilation, pads, ceil });
        let x = push(&mut network, smaller, &image, &[]);
        let activation = if level == 2 { None } else { Some(Function::Relu) };
        let x = push(&mut network, conv(24, 3, 1 + level / 2, false, activation), &x, &first);
        let x = push(&mut network, conv(6, 1, 1, true, None), &x, &second);
        let mean = Reduce { function: ReduceFunction::Mean, axes: vec![2, 3], keep_dims: false };
        let y = push(&mut network, Operator::Reduce(mean), &x, &[]);
        let gemm = Gemm { inner: 6, units: 7, transposed: false, bias: true, activation: None };
        let y = push(&mut network, Operator::Gemm(gemm), &y, &product);
        for operand in [x, y] {
            network.outputs.push(NetworkOutput::new(format!("y{}", operand.layer.0), operand));
        }
    }
    network
}

/// Names of the layers that keep parameters, and of those that use the parameters of others.
fn kept_and_used(plan: &Plan) -> [BTreeSet<&str>; 2] {
    let layers = || plan.cnns[0].layers.iter().filter(|layer| layer.parameters > 0);
    [false, true].map(|is_used| {
        let of = layers().filter(|layer| layer.parameters_of.is_some() == is_used);
        of.map(|layer| layer.name.as_str()).collect()
    })
}

#[test]
fn heads_keep_their_parameters_once_and_compute_as_they_do_alone() {
    for precision in [Precision::Fp32, Precision::Half, Precision::Mixed] {
        let of = |levels: &[usize]| {
            let network = heads(levels);
            in_precisions(network.clone(), &vec![precision; network.layers.len()])
        };
        let run_all = |network: &Network, streamed: bool, storage| {
            let is_cut = network.layers.len() > 15;
            let resident = application(network, is_cut, storage, RowsChoice::All);
            let streamed = streamed.then(Streamed::default);
            let planned = Application { streamed, ..resident };
            let plan = plan(&planned);
            let outputs: Vec<_> = run_plan(&planned, &plan).unwrap();
            (bits(&outputs), plan)
        };
        let places =
            [(false, StorageModel::Tensors), (true, StorageModel::Tensors), (false, StorageModel::Edges)];
        for (streamed, storage) in places {
            let alone: Vec<_> = (0..3).map(|level| run_all(&of(&[level]), streamed, storage)).collect();
            let (together, plan) = run_all(&of(&[0, 1, 2]), streamed, storage);
            for (i, found) in together.iter().enumerate() {
                // Two outputs of each head, in each frame.
                let (frame, level, output) = (i / 6, i / 2 % 3, i % 2);
                assert_eq!(
                    alone[level].0[frame * 2 + output],
                    *found,
                    "{precision:?}, {streamed}, {storage}"
                );
            }
            let one = &alone[0].1.memory;
            assert_eq!(plan.memory.parameters, one.parameters, "{precision:?}, {streamed}, {storage}");
            assert_eq!(plan.memory.parameters_stored, one.parameters_stored);
            let bytes = |plan: &Plan| plan.store.as_ref().map(|store| store.bytes);
            assert_eq!(bytes(&plan), bytes(&alone[0].1));
            assert_eq!(kept_and_used(&plan).map(|names| names.len()), [3, 6]);
        }
    }
}

#[test]
fn an_emitted_crate_has_them_once() {
    let of = |levels: &[usize], streamed: bool| {
        let network = heads(levels);
        let resident = application(&network, false, StorageModel::Tensors, RowsChoice::All);
        let planned = Application { streamed: streamed.then(Streamed::default), ..resident };
        let plan = plan(&planned);
        let files = emitted(&planned, &plan);
        let name = if streamed { "store.bin" } else { "weights.bin" };
        let of_weights = files.into_iter().find(|(path, _)| path.ends_with(name));
        of_weights.unwrap().1
    };
    for streamed in [false, true] {
        assert_eq!(of(&[0, 1, 2], streamed), of(&[0], streamed), "streamed: {streamed}");
    }
}

#[test]
fn the_checker_refuses_other_layers() {
    let network = heads(&[0, 1]);
    let planned = application(&network, false, StorageModel::Tensors, RowsChoice::All);
    let good = plan(&planned);
    assert!(check(&good).is_ok());
    let refused = |words: &str, edit: &dyn Fn(&mut [Layer])| {
        let mut plan = good.clone();
        edit(&mut plan.cnns[0].layers);
        let violations = check(&plan).unwrap_err();
        let all: Vec<String> = violations.iter().map(ToString::to_string).collect();
        assert!(all.iter().any(|violation| violation.contains(words)), "{all:?}");
    };
    let own: Vec<usize> =
        (0..good.cnns[0].layers.len()).filter(|&l| good.cnns[0].layers[l].parameters > 0).collect();
    let name = |l: usize| good.cnns[0].layers[l].name.clone();
    let &[first, second, .., user, _, last] = own.as_slice() else { panic!("{own:?}") };
    refused("memory.parameters is", &|layers| layers[user].parameters_of = None);
    refused("kept in another form", &|layers| layers[user].parameters_of = Some(name(second)));
    refused("it is no earlier layer", &|layers| layers[first].parameters_of = Some(name(last)));
    refused("it is no earlier layer", &|layers| layers[user].parameters_of = Some(name(user)));
    refused("keeps none of its own", &|layers| layers[first].parameters_of = Some(name(first)));
    refused("does not have", &|layers| layers[user].parameters_of = Some("nobody".into()));
}
