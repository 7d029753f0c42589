//! Functions of one element, alone and as the end of a convolution.

use super::arch::{Isa, Job, Simd};
use super::math;

/// A function of one element, by its ONNX definition. Kernels apply it to each element that they have made.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[allow(missing_docs, reason = "each is the ONNX operator, or the usual function, of that name")]
pub enum Activation {
    /// `x`.
    None,
    Relu,
    /// Bounds that are absent are infinite.
    Clip {
        min: f32,
        max: f32,
    },
    LeakyRelu {
        alpha: f32,
    },
    /// `x < 0 ? slope·x : x`; slopes are handed over beside the elements.
    PRelu,
    Elu {
        alpha: f32,
    },
    Selu {
        alpha: f32,
        gamma: f32,
    },
    Sigmoid,
    HardSigmoid {
        alpha: f32,
        beta: f32,
    },
    HardSwish,
    Swish,
    Tanh,
    Erf,
    /// Exact with `erf`, or approximated with `tanh`.
    Gelu {
        tanh: bool,
    },
    Mish,
    Softplus,
    Softsign,
    Sqrt,
    Exp,
    Log,
    Abs,
    Neg,
    Reciprocal,
    Floor,
    Ceil,
    Round,
    ThresholdedRelu {
        alpha: f32,
    },
}

impl Activation {
    /// The function of `x`; `slope` is that of a PRelu, else without effect.
    #[inline]
    pub fn apply(self, x: f32, slope: f32) -> f32 {
        let mut value = [x];
        self.apply_portable(&mut value, &[slope]);
        value[0]
    }

    /// Applies the function to every element. `slopes` are those of a PRelu, repeated along `values` (per channel for a
    /// row of pixels, or a single one); else they are not looked at. The bits do not depend on `isa`.
    pub fn apply_all(self, isa: Isa, values: &mut [f32], slopes: &[f32]) {
        isa.run(Apply { activation: self, values, slopes });
    }

    /// Lower and upper bound, if the function consists only of bounds.
    #[inline(always)]
    pub(crate) fn bounds(self) -> Option<[f32; 2]> {
        match self {
            Activation::None => Some([f32::NEG_INFINITY, f32::INFINITY]),
            Activation::Relu => Some([0.0, f32::INFINITY]),
            Activation::Clip { min, max } => Some([min, max]),
            _ => None,
        }
    }

    /// [`Activation::apply_all`] in whatever instruction set the caller is compiled for.
    #[inline(always)]
    fn apply_portable(self, values: &mut [f32], slopes: &[f32]) {
        match self {
            Activation::None => {}
            Activation::Relu => each(values, |x| clip(x, 0.0, f32::INFINITY)),
            Activation::Clip { min, max } => each(values, |x| clip(x, min, max)),
            Activation::LeakyRelu { alpha } => each(values, |x| if x < 0.0 { alpha * x } else { x }),
            Activation::PRelu => {
                for values in values.chunks_mut(slopes.len().max(1)) {
                    for (x, &slope) in values.iter_mut().zip(slopes) {
                        *x = if *x < 0.0 { slope * *x } else { *x };
                    }
                }
            }
            Activation::Elu { alpha } => {
                each(values, |x| if x < 0.0 { alpha * (math::exp(x) - 1.0) } else { x });
            }
            Activation::Selu { alpha, gamma } => {
                each(values, |x| gamma * if x > 0.0 { x } else { alpha * math::exp(x) - alpha });
            }
            Activation::Sigmoid => each(values, math::sigmoid),
            Activation::HardSigmoid { alpha, beta } => each(values, |x| clip(alpha * x + beta, 0.0, 1.0)),
            Activation::HardSwish => each(values, |x| x * clip(x * (1.0 / 6.0) + 0.5, 0.0, 1.0)),
            Activation::Swish => each(values, |x| x * math::sigmoid(x)),
            Activation::Tanh => each(values, math::tanh),
            Activation::Erf => each(values, math::erf),
            Activation::Gelu { tanh: false } => {
                each(values, |x| 0.5 * x * (1.0 + math::erf(x * core::f32::consts::FRAC_1_SQRT_2)));
            }
            Activation::Gelu { tanh: true } => {
                const SQRT_2_OVER_PI: f32 = 0.797_884_6;
                each(values, |x| {
                    0.5 * x * (1.0 + math::tanh(SQRT_2_OVER_PI * (x + 0.044_715 * (x * x * x))))
                });
            }
            Activation::Mish => each(values, |x| x * math::tanh_softplus(x)),
            Activation::Softplus => each(values, math::softplus),
            Activation::Softsign => each(values, |x| x / (1.0 + x.abs())),
            Activation::Sqrt => each(values, math::sqrt),
            Activation::Exp => each(values, math::exp),
            Activation::Log => each(values, math::log),
            Activation::Abs => each(values, f32::abs),
            Activation::Neg => each(values, |x| -x),
            Activation::Reciprocal => each(values, |x| 1.0 / x),
            Activation::Floor => each(values, math::floor),
            Activation::Ceil => each(values, math::ceil),
            Activation::Round => each(values, math::round_half_even),
            Activation::ThresholdedRelu { alpha } => each(values, |x| if x > alpha { x } else { 0.0 }),
        }
    }
}

/// `x` within bounds. If the bounds cross, the upper one counts. NaN stays.
#[inline(always)]
pub(crate) fn clip(x: f32, min: f32, max: f32) -> f32 {
    let x = if min > x { min } else { x };
    if max < x { max } else { x }
}

#[inline(always)]
fn each(values: &mut [f32], f: impl Fn(f32) -> f32) {
    for x in values {
        *x = f(*x);
    }
}

/// Sigmoids, or what [`Activation::Swish`] makes of them: a function of its own, so that no other has the groups on its stack.
struct Sigmoids<'a> {
    values: &'a mut [f32],
    is_swish: bool,
}

impl Job for Sigmoids<'_> {
    #[inline(always)]
    fn run<S: Simd>(self) {
        let made = |x: f32, sigmoid: f32| if self.is_swish { x * sigmoid } else { sigmoid };
        let (groups, rest) = self.values.as_chunks_mut::<64>();
        for group in groups {
            let sigmoids = math::sigmoids(*group);
            for (x, sigmoid) in group.iter_mut().zip(sigmoids) {
                *x = made(*x, sigmoid);
            }
        }
        each(rest, |x| made(x, math::sigmoid(x)));
    }
}

/// [`Activation::apply_all`] as work for an instruction set.
pub(crate) struct Apply<'a> {
    pub activation: Activation,
    pub values: &'a mut [f32],
    pub slopes: &'a [f32],
}

impl Job for Apply<'_> {
    #[inline(always)]
    #[allow(unsafe_code, reason = "vector instructions")]
    fn run<S: Simd>(self) {
        let Apply { activation, values, slopes } = self;
        if matches!(activation, Activation::Sigmoid | Activation::Swish) {
            let is_swish = activation == Activation::Swish;
            // SAFETY: this is within a job of this instruction set.
            return unsafe { S::call(Sigmoids { values, is_swish }) };
        }
        let Some([low, high]) = activation.bounds() else {
            return activation.apply_portable(values, slopes);
        };
        let mut vectors = values.chunks_exact_mut(S::LANES);
        for vector in &mut vectors {
            let p = vector.as_mut_ptr();
            // SAFETY: this is within a job of this instruction set, and the slice is a vector long.
            unsafe {
                let x = S::at_least(S::splat(low), S::load(p));
                S::store(p, S::at_most(S::splat(high), x));
            }
        }
        each(vectors.into_remainder(), |x| clip(x, low, high));
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use std::vec::Vec;

    use super::super::testing::{Random, close};
    use super::*;

    /// Checks a function against its definition, and that every instruction set makes the same bits.
    fn check(activation: Activation, definition: fn(f64) -> f64) {
        let mut inputs = Random(1).floats(1003);
        inputs.iter_mut().for_each(|x| *x *= 8.0);
        let want: Vec<f32> = inputs.iter().map(|x| definition(f64::from(*x)) as f32).collect();
        let alone: Vec<f32> = inputs.iter().map(|x| activation.apply(*x, 0.25)).collect();
        let defined = |values: &[f32]| -> Vec<f32> {
            values.iter().map(|x| if x.is_nan() { 99.0 } else { *x }).collect()
        };
        close(&defined(&alone), &defined(&want), || std::format!("{activation:?}"));
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
}
