//! Attributes of operators as kernels take them.

use csdfc_kernels::activation::Activation;
use csdfc_kernels::conv;
use csdfc_kernels::{binary, grid_sample, pad, pool, recurrent, reduce, resample, resize};

use csdfc_plan::operator::{
    BinaryFunction, Cell, Conv, Coordinates, Crop, Filter, Function, GridSample, Operator, PadMode, Pool,
    PoolKind, Pre, Ratio, Recurrent, ReduceFunction, Resize, ResizeMode, Rounding, SampleMode, SamplePadding,
    Scale,
};
use csdfc_plan::shape::Shape;

/// The value of one of the kernels' types that has the same name, and the same fields, as one of the plan's. Values that
/// differ are translated by the arms that follow.
macro_rules! same_name {
    (
        $value:expr, $from:ident => $to:ident:
        $($name:ident $({ $($field:ident),+ })?),+
        $(; $($other:pat => $made:expr),+)?
    ) => {
        match $value {
            $($from::$name $({ $($field),+ })? => $to::$name $({ $($field),+ })?,)+
            $($($other => $made,)+)?
        }
    };
}

/// A function of one element; a PRelu's slopes are kept apart from it.
pub(crate) fn activation(function: Option<&Function>) -> Activation {
    let Some(function) = function else { return Activation::None };
    same_name!(
        *function, Function => Activation:
        Relu, LeakyRelu { alpha }, Elu { alpha }, Selu { alpha, gamma }, Sigmoid, HardSigmoid { alpha, beta },
        HardSwish, Swish, Tanh, Erf, Gelu { tanh }, Mish, Softplus, Softsign, Sqrt, Exp, Log, Abs, Neg, Sign, Sin, Cos,
        Reciprocal, Floor, Ceil, Round, ThresholdedRelu { alpha };
        Function::PRelu { .. } => Activation::PRelu,
        Function::Clip { min, max } => Activation::Clip {
            min: min.unwrap_or(f32::NEG_INFINITY),
            max: max.unwrap_or(f32::INFINITY),
        }
    )
}

/// The function that follows an operator within its kernel; none if a PRelu follows in place.
pub(super) fn fused(function: Option<&Function>) -> Activation {
    match function {
        Some(Function::PRelu { .. }) => Activation::None,
        function => activation(function),
    }
}

/// A convolution's prologue.
pub(crate) fn pre(pre: &Pre) -> conv::Pre {
    conv::Pre { affine: pre.affine, activation: activation(pre.activation.as_ref()) }
}

pub(super) fn binary(function: BinaryFunction) -> binary::BinaryFunction {
    use binary::BinaryFunction as Kernel;
    same_name!(
        function, BinaryFunction => Kernel:
        Add, Sub, Mul, Div, Max, Min, Pow, Mod, Fmod, Equal, Greater, GreaterOrEqual
    )
}

pub(super) fn pool(pool: &Pool) -> pool::Pool {
    let kind = match pool.kind {
        // Indices have a kernel of their own, which only looks at the window.
        PoolKind::Max | PoolKind::MaxIndex => pool::PoolKind::Max,
        PoolKind::Average { count_include_pad: false } => pool::PoolKind::Average,
        PoolKind::Average { count_include_pad: true } => pool::PoolKind::AverageWithPad,
        PoolKind::Lp { p } => pool::PoolKind::Lp { p },
    };
    let Pool { kernel, stride, dilation, pads, .. } = *pool;
    pool::Pool { kind, kernel, stride, dilation, pads }
}

pub(super) fn reduce(function: &ReduceFunction) -> reduce::ReduceFunction {
    use reduce::ReduceFunction as Kernel;
    same_name!(
        *function, ReduceFunction => Kernel:
        Mean, Max, Min, Sum, Prod, L1, L2, SumSquare, LogSum, LogSumExp, Lp { p }
    )
}

pub(super) fn pad_mode(mode: &PadMode) -> pad::PadMode {
    match *mode {
        PadMode::Constant { value } => pad::PadMode::Constant(value.unwrap_or(f32::NEG_INFINITY)),
        PadMode::Reflect => pad::PadMode::Reflect,
        PadMode::Edge => pad::PadMode::Edge,
    }
}

/// The kernel of a recurrent network.
pub(super) fn recurrent(recurrent: &Recurrent) -> recurrent::Recurrent {
    let cell = match recurrent.cell {
        Cell::Rnn => recurrent::Cell::Rnn,
        Cell::Gru { linear_before_reset } => recurrent::Cell::Gru { linear_before_reset },
        Cell::Lstm { input_forget, .. } => recurrent::Cell::Lstm { input_forget },
    };
    let activations = std::array::from_fn(|i| activation(recurrent.activations.get(i)));
    recurrent::Recurrent { cell, size: recurrent.size, activations, clip: recurrent.clip }
}

/// The kernel that samples an image.
pub(super) fn grid_sample(sample: &GridSample) -> grid_sample::GridSample {
    use grid_sample::{SampleMode as KernelMode, SamplePadding as KernelPadding};
    grid_sample::GridSample {
        mode: same_name!(sample.mode, SampleMode => KernelMode: Nearest, Linear, Cubic),
        padding: same_name!(sample.padding, SamplePadding => KernelPadding: Zeros, Border, Reflection),
        align_corners: sample.align_corners,
    }
}

/// The kernel of a resize of an image of this height and width that is not weighted, unless its coordinates are beyond 64
/// bits.
pub(super) fn resize(resize: &Resize, size: [usize; 2]) -> Option<resize::Resize> {
    let mode = match resize.mode {
        ResizeMode::Nearest { rounding } => resize::ResizeMode::Nearest(self::rounding(rounding)),
        ResizeMode::Linear => resize::ResizeMode::Linear,
        ResizeMode::Filter(_) => return None,
    };
    Some(resize::Resize { mode, rows: line(resize, 0, size)?, columns: line(resize, 1, size)? })
}

/// The same for a resize that is weighted.
pub(super) fn resample(resize: &Resize, size: [usize; 2]) -> Option<resample::Resample> {
    let linear = Filter { cubic: None, antialias: false, exclude_outside: false };
    let (weight, filter) = match resize.mode {
        ResizeMode::Nearest { rounding } => (resample::Weight::Nearest(self::rounding(rounding)), linear),
        ResizeMode::Linear => (resample::Weight::Linear, linear),
        ResizeMode::Filter(filter) => {
            (filter.cubic.map_or(resample::Weight::Linear, resample::Weight::Cubic), filter)
        }
    };
    let axis = |axis: usize| {
        let (over, under) = fraction(resize.scales[axis])?;
        let shrinks = filter.antialias && over < under;
        let radius: i128 = if filter.cubic.is_some() { 2 } else { 1 };
        let reach = if shrinks { -(-radius * under).div_euclid(over) } else { radius };
        let scale = if shrinks { over as f32 / under as f32 } else { 1.0 };
        Some(resample::Axis { line: line(resize, axis, size)?, reach: reach.try_into().ok()?, scale })
    };
    let outside = match resize.coordinates {
        Coordinates::TfCropAndResize(Crop { outside, .. }) => Some(outside),
        _ => None,
    };
    let (rows, columns) = (axis(0)?, axis(1)?);
    Some(resample::Resample { weight, exclude_outside: filter.exclude_outside, outside, rows, columns })
}

fn rounding(rounding: Rounding) -> resize::Rounding {
    use resize::Rounding as Kernel;
    same_name!(rounding, Rounding => Kernel: RoundPreferFloor, RoundPreferCeil, Floor, Ceil)
}

/// The input coordinates of an axis's output coordinates, for an image of this height and width.
fn line(resize: &Resize, axis: usize, size: [usize; 2]) -> Option<resize::Line> {
    let (over, under) = fraction(resize.scales[axis])?;
    let [size, made] = [size[axis], resize.size[axis]].map(i128::try_from);
    let (size, made) = (size.ok()?, made.ok()?);
    // The scaled size is length / under; only what a model calls size is that, rounded.
    let length = over.checked_mul(size)?;
    let twice = |x: i128| x.checked_mul(2);
    let [start, step, divisor] = match resize.coordinates {
        Coordinates::TfCropAndResize(Crop { from, to, .. }) => {
            // Corners have 24 bits from 2^-16 up. One output coordinate is in the middle.
            let [from, to] = [from[axis], to[axis]].map(|at| (f64::from(at) * 2f64.powi(40)) as i128);
            let (first, parts) = if made > 1 { (from, made - 1) } else { ((from + to) / 2, 1) };
            let start = (size - 1).checked_mul(first.checked_mul(parts)?)?;
            [start, (size - 1).checked_mul(to - from)?, parts << 40]
        }
        _ if over == under => [0, 1, 1],
        Coordinates::PytorchHalfPixel | Coordinates::AlignCorners if length == under => [0, 0, 1],
        Coordinates::HalfPixel | Coordinates::PytorchHalfPixel => {
            [under.checked_sub(over)?, twice(under)?, twice(over)?]
        }
        Coordinates::AlignCorners => [0, (size - 1).checked_mul(under)?, length.checked_sub(under)?],
        Coordinates::Asymmetric => [0, under, over],
        Coordinates::TfHalfPixelForNn => [under, twice(under)?, twice(over)?],
        Coordinates::HalfPixelSymmetric => {
            let outer = length.checked_sub(made.checked_mul(under)?)?;
            [under.checked_sub(over)?.checked_add(outer)?, twice(under)?, twice(over)?]
        }
    };
    // Corners less than a pixel apart: there is one output coordinate only.
    let [start, step, divisor] = if divisor > 0 { [start, step, divisor] } else { [0, 0, 1] };
    let common = [start, step].iter().fold(divisor, |a, &b| greatest_common_divisor(a, b.abs()));
    let [start, step, over] = [start, step, divisor].map(|x| x / common);
    let end = step.checked_mul(made)?.checked_add(start.abs())?;
    (end.max(over) <= i128::from(i64::MAX / 2)).then_some(resize::Line {
        start: start as i64,
        step: step as i64,
        over: over as i64,
    })
}

/// A scale as an exact fraction, with both parts above zero.
fn fraction(scale: Scale) -> Option<(i128, i128)> {
    match scale {
        Scale::Ratio(Ratio { over, under }) => Some((over.into(), under.into())),
        Scale::Float(scale) => {
            // Beyond these bounds, no image has a size. A 24-bit float that is at least 1 is whole after 24 doublings.
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

/// Whether this is a convolution, depthwise or not.
pub(super) fn is_conv(operator: &Operator, inputs: &[&Shape], depthwise: bool) -> bool {
    let Operator::Conv(conv) = operator else { return false };
    let &Conv { filters, groups, .. } = conv;
    let parts = inputs.get(..conv.parts(inputs.len())).unwrap_or_default();
    let channels: usize = parts.iter().map(|part| part.channels()).sum();
    depthwise == (groups == channels && groups == filters)
}
