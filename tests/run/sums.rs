//! Sums of arbitrary real numbers whose terms cancel: the result is as near the truth as additions in 32 bits allow.
//!
//! The model of errors: a sum of n products is within γₙ Σ|x||w| of the truth, in whatever order it is added up and
//! with fused multiply-add or without; γₙ = n·u / (1 − n·u), u = 2⁻²⁴ (Higham, Accuracy and Stability of Numerical
//! Algorithms, 2nd edition, inequality 3.5). A bias counts as one more term, a division by the number of terms as two
//! more. An error that is small in relation to the largest element of a tensor may be large for an element whose terms
//! cancel; this bound holds for every element.

use csdfc_input::app::resolve::{Application, RowsChoice};
use csdfc_network::operators::{output_shape, parameter_dims};
use csdfc_network::weights::{WeightSource, Weights};
use csdfc_network::{Network, NetworkOutput};
use csdfc_plan::operator::{Conv, ConvTranspose, Gemm, Operator, Pool, PoolKind, Reduce, ReduceFunction};
use csdfc_plan::plan::StorageModel;
use csdfc_plan::shape::Shape;
use csdfc_runtime::run::{Data, Runner, Value};
use csdfc_tests::{generate, plan, random};
use rand::RngExt;

use super::{floats, textbook};

/// Half the distance from 1 to the next number of 32 bits.
const ROUNDING: f64 = 1.0 / (1 << 24) as f64;

/// Outputs that cancel almost completely are below this share of Σ|x||w|.
const CANCELLED: f64 = 1e-3;

/// An operator, its operand's shape, the dimensions of its weights over which it sums, and how many terms a sum has.
struct Case {
    operator: Operator,
    input: Shape,
    summed: &'static [usize],
    terms: usize,
}

fn cases() -> Vec<Case> {
    let conv = |filters: usize, kernel: [usize; 2], stride: usize, groups: usize| {
        Operator::Conv(Conv {
            filters,
            kernel,
            stride: [stride; 2],
            dilation: [1; 2],
            pads: [0; 4],
            groups,
            bias: false,
            pre: None,
            residual: false,
            activation: None,
        })
    };
    let transposed = Operator::ConvTranspose(ConvTranspose {
        filters: 5,
        kernel: [3, 2],
        stride: [2, 1],
        dilation: [1; 2],
        pads: [1, 0, 0, 1],
        output_padding: [0; 2],
        groups: 1,
        bias: false,
        activation: None,
    });
    let gemm = |transposed: bool| {
        Operator::Gemm(Gemm { inner: 1000, units: 19, transposed, bias: false, activation: None })
    };
    let pool = Operator::Pool(Pool {
        kind: PoolKind::Average { count_include_pad: false },
        kernel: [5, 4],
        stride: [1; 2],
        dilation: [1; 2],
        pads: [0; 4],
        ceil: false,
    });
    let mean = Operator::Reduce(Reduce { function: ReduceFunction::Mean, axes: vec![2, 3], keep_dims: true });
    let image = || Shape::image(24, 13, 11);
    [
        (conv(17, [3, 3], 1, 1), image(), &[1, 2, 3][..], 24 * 9),
        (conv(16, [1, 1], 1, 1), image(), &[1, 2, 3], 24),
        (conv(6, [5, 3], 2, 3), image(), &[1, 2, 3], 8 * 15),
        (conv(24, [3, 3], 1, 24), image(), &[1, 2, 3], 9),
        // It depends on the pixel which taps meet, but all channels do.
        (transposed, image(), &[0], 24 * 6),
        (gemm(false), Shape::new([1, 1000]), &[0], 1000),
        (gemm(true), Shape::new([1, 1000]), &[1], 1000),
        (pool, image(), &[], 20),
        (mean, image(), &[], 13 * 11),
    ]
    .into_iter()
    .map(|(operator, input, summed, terms)| Case { operator, input, summed, terms })
    .collect()
}

/// Numbers of these dimensions whose sum over some dimensions is zero except for rounding.
fn without_mean(dims: &[usize], summed: &[usize], mut draw: impl FnMut() -> f32) -> Vec<f32> {
    let count: usize = dims.iter().product();
    let values: Vec<f32> = (0..count).map(|_| draw()).collect();
    // Where an element would be if the dimensions that are summed over had length 1.
    let group = |index: usize| {
        let (mut rest, mut at, mut stride) = (index, 0, 1);
        for (axis, &dim) in dims.iter().enumerate().rev() {
            if !summed.contains(&axis) {
                at += rest % dim * stride;
                stride *= dim;
            }
            rest /= dim;
        }
        at
    };
    let members: usize = summed.iter().map(|&axis| dims[axis]).product();
    let mut sums = vec![0.0f64; count / members];
    values.iter().enumerate().for_each(|(i, &value)| sums[group(i)] += f64::from(value));
    let less = |(i, &value): (usize, &f32)| (f64::from(value) - sums[group(i)] / members as f64) as f32;
    values.iter().enumerate().map(less).collect()
}

#[test]
fn what_is_left_of_sums_that_cancel() {
    let (mut cancelled, mut all) = (0, 0);
    for (stream, Case { operator, input, summed, terms }) in (0..).zip(cases()) {
        let mut random = random(stream);
        let mut network = Network::default();
        let x = generate::input(&mut network, input.clone());
        let shape = output_shape(&operator, std::slice::from_ref(&input)).unwrap();
        let operand = generate::add(&mut network, operator.clone(), vec![x], shape);
        network.outputs.push(NetworkOutput::new("out", operand));
        let weights = parameter_dims(&operator, std::slice::from_ref(&input))
            .into_iter()
            .map(|dims| without_mean(&dims, summed, || random.random_range(-1.0..1.0)))
            .collect::<Vec<_>>();
        for (parameter, values) in network.layers[1].parameters.iter_mut().zip(&weights) {
            parameter.source = WeightSource::Values(values.clone().into());
        }
        // If there are no weights, terms have both signs; otherwise all terms are nearly equal.
        let values: Vec<f32> = match weights.is_empty() {
            true => without_mean(&input.dims, &[2, 3], || random.random_range(-1.0..1.0)),
            false => (0..input.elements()).map(|_| 1.0 + random.random_range(-1e-3f32..1e-3)).collect(),
        };
        let [truth, magnitudes] = [false, true].map(|absolute| {
            let real = |x: &f32| if absolute { f64::from(x.abs()) } else { f64::from(*x) };
            let mut network = network.clone();
            for Weights { source, .. } in network.layers.iter_mut().flat_map(|layer| &mut layer.parameters) {
                if let (WeightSource::Values(values), true) = (&source, absolute) {
                    *source = WeightSource::Values(values.iter().map(|x| x.abs()).collect());
                }
            }
            textbook::evaluate(&network, &[values.iter().map(real).collect()]).remove(1)
        });
        let roundings = (terms + 2) as f64 * ROUNDING;
        let model = roundings / (1.0 - roundings);
        let frame = Value { dims: input.dims.clone(), data: Data::F32(values) };
        for (threads, rows) in [(1, RowsChoice::None), (3, RowsChoice::None), (1, RowsChoice::All)] {
            let application = generate::of_one(network.clone(), StorageModel::Tensors, rows);
            let application = Application { threads, ..application };
            let parameters = |_: usize, layer: usize, parameter: usize| {
                application.cnns[0].network.parameter(layer, parameter)
            };
            let plan = plan(&application);
            let outputs =
                Runner::poisoned(&plan, &parameters).unwrap().infer(0, std::slice::from_ref(&frame)).unwrap();
            for (i, &found) in floats(&outputs[0]).iter().enumerate() {
                let error = (f64::from(found) - truth[i]).abs();
                let most = model * magnitudes[i];
                assert!(error <= most, "{operator:?} [{i}]: {found}, not {}: {error:e} > {most:e}", truth[i]);
                cancelled += usize::from(truth[i].abs() < CANCELLED * magnitudes[i]);
                all += 1;
            }
        }
    }
    assert!(2 * cancelled > all, "{cancelled} of {all} sums cancel");
}
