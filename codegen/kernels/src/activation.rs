//! Functions of one element, alone and as the end of a convolution.
//!
//! # Example
//!
//! ```
//! use csdfc_kernels::{Activation, Isa};
//!
//! let mut x = [-1.0, 0.5, 8.0];
//! Activation::Clip { min: 0.0, max: 6.0 }.apply_all(Isa::detect(), &mut x, &[]);
//! assert_eq!(x, [0.0, 0.5, 6.0]);
//! ```

use super::arch::{Isa, Job, Simd};
use super::features;
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
    /// `x < 0 ? slope·x : x`; slopes are handed over together with the elements.
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
    /// `x·tanh(ln(1 + eˣ))`.
    Mish,
    Softplus,
    Softsign,
    Sqrt,
    Exp,
    Log,
    Abs,
    Neg,
    /// −1, 0 or 1.
    Sign,
    Sin,
    Cos,
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

    /// Lower and upper bound, if the function only clamps.
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
        use features::{EXPONENTIALS, LOGARITHMS, SINES};
        match self {
            Activation::None => {}
            Activation::Relu => for_each_value(values, |x| clip(x, 0.0, f32::INFINITY)),
            Activation::Clip { min, max } => for_each_value(values, |x| clip(x, min, max)),
            Activation::LeakyRelu { alpha } => {
                for_each_value(values, |x| if x < 0.0 { alpha * x } else { x })
            }
            Activation::PRelu => {
                for values in values.chunks_mut(slopes.len().max(1)) {
                    for (x, &slope) in values.iter_mut().zip(slopes) {
                        *x = if *x < 0.0 { slope * *x } else { *x };
                    }
                }
            }
            Activation::Elu { alpha } => {
                for_each_value_with(EXPONENTIALS, values, |x| {
                    if x < 0.0 { alpha * (math::exp(x) - 1.0) } else { x }
                });
            }
            Activation::Selu { alpha, gamma } => {
                for_each_value_with(EXPONENTIALS, values, |x| {
                    gamma * if x > 0.0 { x } else { alpha * math::exp(x) - alpha }
                });
            }
            Activation::Sigmoid => for_each_value_with(EXPONENTIALS, values, math::sigmoid),
            Activation::HardSigmoid { alpha, beta } => {
                for_each_value(values, |x| clip(alpha * x + beta, 0.0, 1.0))
            }
            Activation::HardSwish => for_each_value(values, |x| x * clip(x * (1.0 / 6.0) + 0.5, 0.0, 1.0)),
            Activation::Swish => for_each_value_with(EXPONENTIALS, values, |x| x * math::sigmoid(x)),
            Activation::Tanh => for_each_value_with(EXPONENTIALS, values, math::tanh),
            Activation::Erf => for_each_value_with(EXPONENTIALS, values, math::erf),
            Activation::Gelu { tanh: false } => {
                for_each_value_with(EXPONENTIALS, values, |x| {
                    0.5 * x * (1.0 + math::erf(x * core::f32::consts::FRAC_1_SQRT_2))
                });
            }
            Activation::Gelu { tanh: true } => {
                const SQRT_2_OVER_PI: f32 = 0.797_884_6;
                for_each_value_with(EXPONENTIALS, values, |x| {
                    0.5 * x * (1.0 + math::tanh(SQRT_2_OVER_PI * (x + 0.044_715 * (x * x * x))))
                });
            }
            Activation::Mish => for_each_value_with(EXPONENTIALS, values, |x| x * math::tanh_softplus(x)),
            Activation::Softplus => for_each_value_with(LOGARITHMS, values, math::softplus),
            Activation::Softsign => for_each_value(values, |x| x / (1.0 + x.abs())),
            Activation::Sqrt => for_each_value(values, math::sqrt),
            Activation::Exp => for_each_value_with(EXPONENTIALS, values, math::exp),
            Activation::Log => for_each_value_with(LOGARITHMS, values, math::log),
            Activation::Abs => for_each_value(values, f32::abs),
            Activation::Neg => for_each_value(values, |x| -x),
            Activation::Sign => {
                for_each_value(values, |x| if x == 0.0 || x.is_nan() { x } else { 1f32.copysign(x) })
            }
            Activation::Sin => for_each_value_with(SINES, values, math::sin),
            Activation::Cos => for_each_value_with(SINES, values, math::cos),
            Activation::Reciprocal => for_each_value(values, |x| 1.0 / x),
            Activation::Floor => for_each_value(values, math::floor),
            Activation::Ceil => for_each_value(values, math::ceil),
            Activation::Round => for_each_value(values, math::round_half_even),
            Activation::ThresholdedRelu { alpha } => {
                for_each_value(values, |x| if x > alpha { x } else { 0.0 })
            }
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
fn for_each_value(values: &mut [f32], f: impl Fn(f32) -> f32) {
    for x in values {
        *x = f(*x);
    }
}

/// [`for_each_value`] with a function that only crates of some models have. Each arm of a `match` asks for itself: if one test
/// before it asks for all, it depends on the compiler's version and on chance whether it leaves the arms' code out.
#[inline(always)]
fn for_each_value_with(is_in_crate: bool, values: &mut [f32], f: impl Fn(f32) -> f32) {
    assert!(is_in_crate, "an activation of another crate");
    for_each_value(values, f);
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
        for_each_value(rest, |x| made(x, math::sigmoid(x)));
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
        if features::EXPONENTIALS && matches!(activation, Activation::Sigmoid | Activation::Swish) {
            let is_swish = activation == Activation::Swish;
            // SAFETY: this is in `Job::run`, as `Simd::call` asks.
            return unsafe { S::call(Sigmoids { values, is_swish }) };
        }
        let Some([low, high]) = activation.bounds() else {
            return activation.apply_portable(values, slopes);
        };
        let mut vectors = values.chunks_exact_mut(S::LANES);
        for vector in &mut vectors {
            let p = vector.as_mut_ptr();
            // SAFETY: this is in `Job::run`, and `vector` has `LANES` floats.
            unsafe {
                let x = S::max(S::splat(low), S::load(p));
                S::store(p, S::min(S::splat(high), x));
            }
        }
        for_each_value(vectors.into_remainder(), |x| clip(x, low, high));
    }
}
