//! Attributes of operators as kernels take them.

use csdfc_kernels::activation::Activation;
use csdfc_kernels::conv;
use csdfc_kernels::{binary, pad, pool, reduce, resize};

use crate::operator::{
    BinaryFunction, Coordinates, Function, PadMode, Pool, PoolKind, Pre, ReduceFunction, Resize, ResizeMode,
    Rounding,
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

pub(super) fn resize(resize: &Resize) -> resize::Resize {
    let mode = match resize.mode {
        ResizeMode::Linear => resize::ResizeMode::Linear,
        ResizeMode::Nearest { rounding } => resize::ResizeMode::Nearest(match rounding {
            Rounding::RoundPreferFloor => resize::Rounding::RoundPreferFloor,
            Rounding::RoundPreferCeil => resize::Rounding::RoundPreferCeil,
            Rounding::Floor => resize::Rounding::Floor,
            Rounding::Ceil => resize::Rounding::Ceil,
        }),
    };
    let coordinates = match resize.coordinates {
        Coordinates::HalfPixel => resize::Coordinates::HalfPixel,
        Coordinates::PytorchHalfPixel => resize::Coordinates::PytorchHalfPixel,
        Coordinates::AlignCorners => resize::Coordinates::AlignCorners,
        Coordinates::Asymmetric => resize::Coordinates::Asymmetric,
        Coordinates::TfHalfPixelForNn => resize::Coordinates::TfHalfPixelForNn,
    };
    resize::Resize { mode, coordinates, scales: resize.scales }
}
