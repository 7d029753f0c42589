//! Activations against their definitions, in every instruction set.

use csdfc_kernels::activation::*;
use csdfc_kernels::arch::Isa;
use csdfc_kernels::math;

use crate::testing::{Random, close};

/// Checks a function against its definition, and that every instruction set makes the same bits.
fn check(activation: Activation, definition: fn(f64) -> f64) {
    let mut inputs = Random(1).floats(1003);
    inputs.iter_mut().for_each(|x| *x *= 8.0);
    let want: Vec<f32> = inputs.iter().map(|x| definition(f64::from(*x)) as f32).collect();
    let alone: Vec<f32> = inputs.iter().map(|x| activation.apply(*x, 0.25)).collect();
    let defined =
        |values: &[f32]| -> Vec<f32> { values.iter().map(|x| if x.is_nan() { 99.0 } else { *x }).collect() };
    close(&defined(&alone), &defined(&want), || format!("{activation:?}"));
    for isa in Isa::all() {
        let mut values = inputs.clone();
        activation.apply_all(isa, &mut values, &[0.25]);
        let bits = |values: &[f32]| values.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
        assert_eq!(bits(&values), bits(&alone), "{activation:?} {}", isa.name());
    }
}

#[test]
fn functions_are_those_of_onnx_in_every_instruction_set() {
    check(Activation::None, |x| x);
    check(Activation::Relu, |x| x.max(0.0));
    check(Activation::Clip { min: -1.5, max: 6.0 }, |x| x.clamp(-1.5, 6.0));
    check(Activation::LeakyRelu { alpha: 0.1 }, |x| if x < 0.0 { f64::from(0.1_f32) * x } else { x });
    check(Activation::PRelu, |x| if x < 0.0 { 0.25 * x } else { x });
    check(Activation::Elu { alpha: 2.0 }, |x| if x < 0.0 { 2.0 * x.exp_m1() } else { x });
    check(Activation::Selu { alpha: 1.5, gamma: 1.25 }, |x| {
        1.25 * if x > 0.0 { x } else { 1.5 * x.exp_m1() }
    });
    check(Activation::Sigmoid, |x| 1.0 / (1.0 + (-x).exp()));
    check(Activation::HardSigmoid { alpha: 0.25, beta: 0.5 }, |x| (0.25 * x + 0.5).clamp(0.0, 1.0));
    check(Activation::HardSwish, |x| x * (x / 6.0 + 0.5).clamp(0.0, 1.0));
    check(Activation::Swish, |x| x / (1.0 + (-x).exp()));
    check(Activation::Tanh, f64::tanh);
    check(Activation::Gelu { tanh: true }, |x| {
        0.5 * x * (1.0 + (std::f64::consts::FRAC_2_PI.sqrt() * (x + 0.044_715 * x.powi(3))).tanh())
    });
    check(Activation::Gelu { tanh: false }, |x| {
        0.5 * x * (1.0 + f64::from(math::erf((x / 2_f64.sqrt()) as f32)))
    });
    check(Activation::Erf, |x| f64::from(math::erf(x as f32)));
    check(Activation::Mish, |x| x * x.exp().ln_1p().tanh());
    check(Activation::Softplus, |x| x.exp().ln_1p());
    check(Activation::Softsign, |x| x / (1.0 + x.abs()));
    check(Activation::Sqrt, f64::sqrt);
    check(Activation::Exp, f64::exp);
    check(Activation::Log, f64::ln);
    check(Activation::Abs, f64::abs);
    check(Activation::Neg, |x| -x);
    check(Activation::Sign, |x| if x == 0.0 { x } else { x.signum() });
    check(Activation::Sin, f64::sin);
    check(Activation::Cos, f64::cos);
    check(Activation::Reciprocal, f64::recip);
    check(Activation::Floor, f64::floor);
    check(Activation::Ceil, f64::ceil);
    check(Activation::Round, f64::round_ties_even);
    check(Activation::ThresholdedRelu { alpha: 0.5 }, |x| if x > 0.5 { x } else { 0.0 });
}

#[test]
fn slopes_repeat() {
    let mut values = [-1.0, -2.0, 3.0, -4.0];
    Activation::PRelu.apply_all(Isa::PORTABLE, &mut values, &[0.5, 0.25]);
    assert_eq!(values, [-0.5, -0.5, 3.0, -1.0]);
}
