//! Attributes of operators as kernels take them.

use csdfc_kernels::activation::Activation;
use csdfc_kernels::conv;
use csdfc_kernels::{binary, pad, pool, reduce, resize};

use crate::operator::{
    BinaryFunction, Coordinates, Function, PadMode, Pool, PoolKind, Pre, Ratio, ReduceFunction, Resize,
    ResizeMode, Rounding, Scale,
};

/// A function of one element; a PRelu's slopes are beside it.
pub(crate) fn activation(function: Option<&Function>) -> Activation {
    let Some(function) = function else { return Activation::None };
    match *function {
        Function::Relu => Activation::Relu,
        Function::Clip { min, max } => {
            Activation::Clip { min: min.unwrap_or(f32::NEG_INFINITY), max: max.unwrap_or(f32::INFINITY) }
        }
        Function::LeakyRelu { alpha } => Activation::LeakyRelu { alpha },
        Function::PRelu { .. } => Activation::PRelu,
        Function::Elu { alpha } => Activation::Elu { alpha },
        Function::Selu { alpha, gamma } => Activation::Selu { alpha, gamma },
        Function::Sigmoid => Activation::Sigmoid,
        Function::HardSigmoid { alpha, beta } => Activation::HardSigmoid { alpha, beta },
        Function::HardSwish => Activation::HardSwish,
        Function::Swish => Activation::Swish,
        Function::Tanh => Activation::Tanh,
        Function::Erf => Activation::Erf,
        Function::Gelu { tanh } => Activation::Gelu { tanh },
        Function::Mish => Activation::Mish,
        Function::Softplus => Activation::Softplus,
        Function::Softsign => Activation::Softsign,
        Function::Sqrt => Activation::Sqrt,
        Function::Exp => Activation::Exp,
        Function::Log => Activation::Log,
        Function::Abs => Activation::Abs,
        Function::Neg => Activation::Neg,
        Function::Reciprocal => Activation::Reciprocal,
        Function::Floor => Activation::Floor,
        Function::Ceil => Activation::Ceil,
        Function::Round => Activation::Round,
        Function::ThresholdedRelu { alpha } => Activation::ThresholdedRelu { alpha },
    }
}

/// A function that follows an operator within its kernel: none where a PRelu follows in place.
pub(super) fn fused(function: Option<&Function>) -> Activation {
    match function {
        Some(Function::PRelu { .. }) => Activation::None,
        function => activation(function),
    }
}

/// What becomes of a convolution's input.
pub(crate) fn pre(pre: &Pre) -> conv::Pre {
    conv::Pre { affine: pre.affine, activation: activation(pre.activation.as_ref()) }
}

pub(super) fn binary(function: BinaryFunction) -> binary::BinaryFunction {
    match function {
        BinaryFunction::Add => binary::BinaryFunction::Add,
        BinaryFunction::Sub => binary::BinaryFunction::Sub,
        BinaryFunction::Mul => binary::BinaryFunction::Mul,
        BinaryFunction::Div => binary::BinaryFunction::Div,
        BinaryFunction::Max => binary::BinaryFunction::Max,
        BinaryFunction::Min => binary::BinaryFunction::Min,
        BinaryFunction::Pow => binary::BinaryFunction::Pow,
    }
}

pub(super) fn pool(pool: &Pool) -> pool::Pool {
    let kind = match pool.kind {
        PoolKind::Max => pool::PoolKind::Max,
        PoolKind::Average { count_include_pad: false } => pool::PoolKind::Average,
        PoolKind::Average { count_include_pad: true } => pool::PoolKind::AverageWithPad,
        PoolKind::Lp { p } => pool::PoolKind::Lp { p },
    };
    let Pool { kernel, stride, dilation, pads, .. } = *pool;
    pool::Pool { kind, kernel, stride, dilation, pads }
}

pub(super) fn reduce(function: &ReduceFunction) -> reduce::ReduceFunction {
    match *function {
        ReduceFunction::Mean => reduce::ReduceFunction::Mean,
        ReduceFunction::Max => reduce::ReduceFunction::Max,
        ReduceFunction::Min => reduce::ReduceFunction::Min,
        ReduceFunction::Sum => reduce::ReduceFunction::Sum,
        ReduceFunction::Prod => reduce::ReduceFunction::Prod,
        ReduceFunction::L1 => reduce::ReduceFunction::L1,
        ReduceFunction::L2 => reduce::ReduceFunction::L2,
        ReduceFunction::SumSquare => reduce::ReduceFunction::SumSquare,
        ReduceFunction::LogSum => reduce::ReduceFunction::LogSum,
        ReduceFunction::LogSumExp => reduce::ReduceFunction::LogSumExp,
        ReduceFunction::Lp { p } => reduce::ReduceFunction::Lp { p },
    }
}

pub(super) fn pad_mode(mode: &PadMode) -> pad::PadMode {
    match *mode {
        PadMode::Constant { value } => pad::PadMode::Constant(value.unwrap_or(f32::NEG_INFINITY)),
        PadMode::Reflect => pad::PadMode::Reflect,
        PadMode::Edge => pad::PadMode::Edge,
    }
}

/// The kernel of a resize of an image of this height and width, unless its coordinates are beyond 64 bits.
pub(super) fn resize(resize: &Resize, size: [usize; 2]) -> Option<resize::Resize> {
    let mode = match resize.mode {
        ResizeMode::Linear => resize::ResizeMode::Linear,
        ResizeMode::Nearest { rounding } => resize::ResizeMode::Nearest(match rounding {
            Rounding::RoundPreferFloor => resize::Rounding::RoundPreferFloor,
            Rounding::RoundPreferCeil => resize::Rounding::RoundPreferCeil,
            Rounding::Floor => resize::Rounding::Floor,
            Rounding::Ceil => resize::Rounding::Ceil,
        }),
    };
    let [rows, columns] =
        [0, 1].map(|axis| line(resize.coordinates, resize.scales[axis], size[axis], resize.size[axis]));
    Some(resize::Resize { mode, rows: rows?, columns: columns? })
}

/// Where the coordinates 0 to `made` of an axis lie among those of its `size` input coordinates.
fn line(coordinates: Coordinates, scale: Scale, size: usize, made: usize) -> Option<resize::Line> {
    let (over, under) = fraction(scale)?;
    let size = i128::try_from(size).ok()?;
    // The scaled size is length / under; only what a model calls size is that, rounded.
    let length = over.checked_mul(size)?;
    let twice = |x: i128| x.checked_mul(2);
    let [start, step, divisor] = match coordinates {
        _ if over == under => [0, 1, 1],
        Coordinates::PytorchHalfPixel | Coordinates::AlignCorners if length == under => [0, 0, 1],
        Coordinates::HalfPixel | Coordinates::PytorchHalfPixel => {
            [under.checked_sub(over)?, twice(under)?, twice(over)?]
        }
        Coordinates::AlignCorners => [0, (size - 1).checked_mul(under)?, length.checked_sub(under)?],
        Coordinates::Asymmetric => [0, under, over],
        Coordinates::TfHalfPixelForNn => [under, twice(under)?, twice(over)?],
    };
    // Corners less than a pixel apart: there is one output coordinate only.
    let [start, step, divisor] = if divisor > 0 { [start, step, divisor] } else { [0, 0, 1] };
    let common = [start, step].iter().fold(divisor, |a, &b| greatest_common_divisor(a, b.abs()));
    let [start, step, over] = [start, step, divisor].map(|x| x / common);
    let end = step.checked_mul(i128::try_from(made).ok()?)?.checked_add(start.abs())?;
    (end.max(over) <= i128::from(i64::MAX / 2)).then_some(resize::Line {
        start: start as i64,
        step: step as i64,
        over: over as i64,
    })
}

/// A scale as the fraction that it is, both parts above zero.
fn fraction(scale: Scale) -> Option<(i128, i128)> {
    match scale {
        Scale::Ratio(Ratio { over, under }) => Some((over.into(), under.into())),
        Scale::Float(scale) => {
            // Beyond these bounds no image has a size. A float of 24 bits is whole after 24 doublings from 1 on.
            let (mut over, mut under) = (f64::from(scale), 1);
            if !(2f64.powi(-40)..=2f64.powi(40)).contains(&over) {
                return None;
            }
            while over.fract() != 0.0 {
                (over, under) = (over * 2.0, under * 2);
            }
            Some((over as i128, under))
        }
    }
}

fn greatest_common_divisor(a: i128, b: i128) -> i128 {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}
