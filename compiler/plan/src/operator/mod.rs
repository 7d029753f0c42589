//! The operators of a network, with every attribute normalised: defaults filled in, axes counted from 0, padding
//! explicit. A plan holds them as they stand here, so that it can be checked, run and emitted without the model.
//!
//! ```
//! use csdfc_plan::operator::{Function, Operator};
//!
//! let mut gemm: Operator = serde_json::from_str(
//!     r#"{"op": "gemm", "attributes": {"inner": 84, "units": 10, "transposed": true, "bias": true}}"#,
//! )?;
//! assert_eq!((gemm.kind(), gemm.activation()), ("gemm", None));
//! // A Relu after it becomes its epilogue.
//! *gemm.activation_mut().ok_or("it takes none")? = Some(Function::Relu);
//! assert_eq!(gemm.activation(), Some(&Function::Relu));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod recurrent;
mod search;
mod windows;

pub use recurrent::{Cell, Recurrent};
pub use search::{ArgMax, GatherElements, NonMaxSuppression, TopK};
pub use windows::{
    Conv, ConvTranspose, Coordinates, Crop, Filter, GridSample, MaxUnpool, Pool, PoolKind, Pre, Ratio,
    RatioError, Resize, ResizeMode, Rounding, SampleMode, SamplePadding, Scale,
};

use serde::{Deserialize, Serialize};

use crate::format::Quantization;
use crate::shape::{Order, Shape};

/// What a layer computes. Shapes are those of ONNX; `[y, x]` pairs are height first; `pads` are
/// `[top, left, bottom, right]`. In a plan: `"op": "conv", "attributes": {…}`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "op", content = "attributes", rename_all = "snake_case")]
pub enum Operator {
    /// The seat of a network input: it reads nothing and delivers rows of the caller's frame.
    Input(Input),
    /// 2-D convolution, `[1, C, H, W]` → `[1, filters, H', W']`.
    Conv(Conv),
    /// 2-D transposed convolution.
    ConvTranspose(ConvTranspose),
    /// Fully connected on the last dimension: `[…, inner]` → `[…, units]`.
    Gemm(Gemm),
    /// Matrix product of two tensors over their last two dimensions, the others broadcast.
    MatMul,
    /// A recurrent network whose steps are the rows of an image: each row is made from a row of products of the inputs,
    /// and from the state that the row before left.
    Recurrent(Recurrent),
    /// One scale and one shift per channel: batch norm at inference, or a multiplication and addition by
    /// per-channel constants.
    BatchNorm(BatchNorm),
    /// A function of each element.
    ElementWise(ElementWise),
    /// A function of two tensors element by element, with ONNX broadcasting.
    Binary(Binary),
    /// Each element of one tensor where a condition is not 0, and of another where it is, with ONNX broadcasting.
    Where(Where),
    /// Pooling over a window.
    Pool(Pool),
    /// An image `[N, C, H, W]` of zeros, but for the elements of the first operand at the places that the second holds: integers
    /// as floats, as [`PoolKind::MaxIndex`] makes them.
    MaxUnpool(MaxUnpool),
    /// Reduction over whole dimensions; global pooling is a reduction over H and W that keeps them.
    Reduce(Reduce),
    /// Index of the largest element along a dimension, as 64-bit integers or as floats.
    ArgMax(ArgMax),
    /// The largest or the least elements along a dimension, in order, or their indices, as 64-bit
    /// integers or as floats.
    TopK(TopK),
    /// The boxes that overlap no box with a higher score, from boxes `[N, B, 4]` and scores `[N, C, B]`, the second
    /// operand. The output has n, c and b of each box, as 64-bit integers `[N · C · most, 3]`. Rows of −1 follow.
    NonMaxSuppression(NonMaxSuppression),
    /// Samples of an image `[N, C, H, W]` at the places `[N, H', W', 2]` of a second operand: x and y from −1 to 1. Likewise
    /// of a volume `[N, C, D, H, W]` at places `[N, D', H', W', 3]`.
    GridSample(GridSample),
    /// Elements of a tensor at the indices along a dimension that a second operand holds: integers, as floats. Negative ones
    /// count from the end.
    GatherElements(GatherElements),
    /// Concatenation along a dimension.
    Concat(Concat),
    /// A regular sub-grid of the input: `output[i] = input[starts[i] + i·steps[i]]` per dimension.
    Slice(Slice),
    /// Padding that could not become an attribute of its reader.
    Pad(Pad),
    /// Resampling of height and width.
    Resize(Resize),
    /// Permutation of dimensions that moves data: `output.dims[i] = input.dims[perm[i]]`.
    Transpose(Transpose),
    /// Softmax or log-softmax.
    Softmax(Softmax),
    /// Local response normalisation across channels.
    Lrn(Lrn),
    /// Instance normalisation: per-channel statistics over H and W, then scale and shift.
    InstanceNorm(InstanceNorm),
    /// Blocks of channels become blocks of pixels.
    DepthToSpace(DepthToSpace),
    /// Blocks of pixels become blocks of channels.
    SpaceToDepth(SpaceToDepth),
    /// The same tensor in another layout: from that of its input to that of its output.
    Convert,
}

/// Attributes of [`Operator::Input`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Element type of the caller's frame.
    pub element: InputElement,
    /// How bytes of a camera become elements. Without it, bytes are the 8-bit integers of a quantized network.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub camera: Option<Camera>,
}

/// Element type of a network input as the caller hands it over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InputElement {
    /// 32-bit floats in the network's own order.
    F32,
    /// Bytes, converted row by row as they are read.
    U8,
    /// Signed 8-bit integers of a quantized network.
    I8,
}

impl Input {
    /// Whether the caller hands over the integers of a quantized network.
    pub fn is_of_integers(&self) -> bool {
        self.element != InputElement::F32 && self.camera.is_none()
    }

    /// Whether the tensor can be of 8-bit integers: those of the caller, or those that bytes of a camera become.
    pub fn makes_integers(&self) -> bool {
        self.element != InputElement::F32
    }
}

/// How camera bytes become the network's rows: `(byte − mean) · scale` per channel. Of a tensor of 8-bit integers, the element is
/// the nearest integer from 0 to 255, and of two equally near ones the even one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Camera {
    /// Order of the dimensions of the bytes.
    pub layout: CameraLayout,
    /// Order of the color channels of the bytes; the network's is RGB.
    pub order: ColorOrder,
    /// Subtracted from each byte, per channel of the network.
    pub mean: Vec<f32>,
    /// Multiplied afterwards, per channel of the network.
    pub scale: Vec<f32>,
}

impl Camera {
    /// Whether elements of 8-bit integers are the bytes themselves.
    pub fn keeps_bytes(&self) -> bool {
        self.mean.iter().all(|mean| *mean == 0.0) && self.scale.iter().all(|scale| *scale == 1.0)
    }
}

/// Order of the dimensions of camera bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum CameraLayout {
    /// Interleaved: `[H, W, C]`.
    Hwc,
    /// Planar: `[C, H, W]`.
    Chw,
}

/// Order of color channels of camera bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum ColorOrder {
    /// As the network expects its channels.
    Rgb,
    /// Reversed.
    Bgr,
}

/// Attributes of [`Operator::Gemm`]. Parameters: weights `[inner, units]` or, `transposed`, `[units, inner]`; bias `[units]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gemm {
    /// Size of the last input dimension.
    pub inner: usize,
    /// Size of the last output dimension.
    pub units: usize,
    /// Whether the weights are stored `[units, inner]`.
    pub transposed: bool,
    /// Whether there is one bias per unit.
    pub bias: bool,
    /// Applied to every output element.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub activation: Option<Function>,
}

/// Attributes of [`Operator::BatchNorm`]. Parameters: scale `[C]`, shift `[C]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BatchNorm {
    /// Channels.
    pub channels: usize,
    /// Applied to every output element.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub activation: Option<Function>,
}

/// Attributes of [`Operator::ElementWise`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ElementWise {
    /// The function.
    #[serde(flatten)]
    pub function: Function,
}

/// A function of one element, by its ONNX definition.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "function", rename_all = "snake_case")]
#[allow(missing_docs, reason = "each is the ONNX operator, or the usual function, of that name")]
pub enum Function {
    Relu,
    /// `min` or `max` absent: unbounded on that side.
    Clip {
        min: Option<f32>,
        max: Option<f32>,
    },
    LeakyRelu {
        alpha: f32,
    },
    /// `x < 0 ? slope·x : x`; the slope is a parameter of this shape, broadcast to the input.
    PRelu {
        slope: Vec<usize>,
    },
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
    /// `x · clip(x/6 + 1/2, 0, 1)`.
    HardSwish,
    /// `x · sigmoid(x)`.
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
    /// −1, 0 or 1.
    Sign,
    Sin,
    Cos,
    Reciprocal,
    Floor,
    Ceil,
    /// To the nearest integer; of two equally near ones, to the even one.
    Round,
    /// `x > alpha ? x : 0`.
    ThresholdedRelu {
        alpha: f32,
    },
}

impl Function {
    /// Whether this is an activation, which fuses into the layer before it (`docs/design.md`, "Networks").
    pub fn is_activation(&self) -> bool {
        use Function::*;
        match self {
            Relu | Clip { .. } | LeakyRelu { .. } | PRelu { .. } | Elu { .. } | Selu { .. } => true,
            Sigmoid | HardSigmoid { .. } | HardSwish | Swish | Tanh | Gelu { .. } | Mish => true,
            Softplus | Softsign | ThresholdedRelu { .. } => true,
            Erf | Sqrt | Exp | Log | Abs | Neg | Sign | Sin | Cos | Reciprocal | Floor | Ceil | Round => {
                false
            }
        }
    }
}

/// Attributes of [`Operator::Binary`]. With a constant operand the layer has one input and one parameter.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Binary {
    /// The function.
    pub function: BinaryFunction,
    /// The operand that is a parameter of the layer, if one is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub constant: Option<ConstantOperand>,
    /// Applied to every output element.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub activation: Option<Function>,
}

/// A constant operand of a [`Binary`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConstantOperand {
    /// Dimensions, broadcast as ONNX does.
    pub dims: Vec<usize>,
    /// Whether it is the left operand.
    pub left: bool,
    /// Its quantization, if it is kept as 8-bit integers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quantization: Option<Quantization>,
}

/// A function of two elements. A comparison makes 1 where it holds, else 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "each is the ONNX operator of that name")]
pub enum BinaryFunction {
    Add,
    Sub,
    Mul,
    Div,
    Max,
    Min,
    Pow,
    /// What a division leaves over, with the sign of the divisor: ONNX's `Mod`.
    Mod,
    /// The same, with the sign of the dividend: ONNX's `Mod` with `fmod`.
    Fmod,
    Equal,
    Greater,
    GreaterOrEqual,
}

impl BinaryFunction {
    /// Whether it makes a truth value.
    pub fn is_comparison(self) -> bool {
        matches!(self, BinaryFunction::Equal | BinaryFunction::Greater | BinaryFunction::GreaterOrEqual)
    }
}

/// Attributes of [`Operator::Where`]: the dimensions of the condition, of what is taken where it is not 0, and of what is
/// taken elsewhere, if they are constants. Constants are parameters of the layer, in this order. The others are its operands.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Where {
    /// Of the condition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub condition: Option<Vec<usize>>,
    /// Of what is taken where it is not 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub x: Option<Vec<usize>>,
    /// Of what is taken elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub y: Option<Vec<usize>>,
}

impl Where {
    /// The dimensions of the constants.
    pub fn constants(&self) -> impl Iterator<Item = &[usize]> {
        self.condition.iter().chain(&self.x).chain(&self.y).map(Vec::as_slice)
    }
}

/// Attributes of [`Operator::Reduce`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reduce {
    /// The reduction.
    pub function: ReduceFunction,
    /// Dimensions reduced, ascending.
    pub axes: Vec<usize>,
    /// Whether reduced dimensions stay, with size 1.
    pub keep_dims: bool,
}

/// A reduction.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "each is the ONNX reduction of that name")]
pub enum ReduceFunction {
    Mean,
    Max,
    Min,
    Sum,
    Prod,
    L1,
    L2,
    SumSquare,
    LogSum,
    LogSumExp,
    /// `(Σ |x|^p)^(1/p)`, of GlobalLpPool.
    Lp {
        p: i64,
    },
}

/// Attributes of [`Operator::Concat`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Concat {
    /// The dimension along which inputs follow each other.
    pub axis: usize,
}

/// Attributes of [`Operator::Slice`]; one entry per dimension.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Slice {
    /// First index taken.
    pub starts: Vec<usize>,
    /// Distance between indices taken; negative walks backwards.
    pub steps: Vec<i64>,
    /// Elements taken: the output's dimensions.
    pub lengths: Vec<usize>,
}

/// Attributes of [`Operator::Pad`]; one entry per dimension.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pad {
    /// The values of the new elements.
    pub mode: PadMode,
    /// Elements added before; negative crops.
    pub before: Vec<i64>,
    /// Elements added after; negative crops.
    pub after: Vec<i64>,
}

/// The values of padded elements.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PadMode {
    /// A constant. `None` stands for −∞, which JSON cannot hold.
    Constant {
        /// The value.
        value: Option<f32>,
    },
    /// The mirror image without the edge.
    Reflect,
    /// The nearest element.
    Edge,
}

/// Attributes of [`Operator::Transpose`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Transpose {
    /// `output.dims[i] = input.dims[perm[i]]`.
    pub perm: Vec<usize>,
    /// Which dimension of the output counts the rows, if the output is an image.
    #[serde(default, skip_serializing_if = "is_channels_first")]
    pub order: Order,
}

impl Transpose {
    /// To an output that is channels-first.
    pub fn new(perm: impl Into<Vec<usize>>) -> Self {
        Transpose { perm: perm.into(), order: Order::ChannelsFirst }
    }
}

fn is_channels_first(order: &Order) -> bool {
    *order == Order::ChannelsFirst
}

/// Attributes of [`Operator::Softmax`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Softmax {
    /// Dimensions normalised together, ascending: one since opset 13, all from `axis` before.
    pub axes: Vec<usize>,
    /// Whether the logarithm is taken.
    pub log: bool,
}

/// Attributes of [`Operator::Lrn`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "each is ONNX's attribute of that name")]
pub struct Lrn {
    pub size: usize,
    pub alpha: f32,
    pub beta: f32,
    pub bias: f32,
}

/// Attributes of [`Operator::InstanceNorm`]. Parameters: scale `[C]`, shift `[C]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InstanceNorm {
    /// Channels.
    pub channels: usize,
    /// Added to the variance.
    pub epsilon: f32,
}

/// Attributes of [`Operator::DepthToSpace`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DepthToSpace {
    /// Side of the square of pixels that `block²` channels become.
    pub block: usize,
    /// Whether the block index varies slower than the channel (ONNX mode DCR) or faster (CRD).
    pub depth_first: bool,
}

/// Attributes of [`Operator::SpaceToDepth`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SpaceToDepth {
    /// Side of the square of pixels that becomes `block²` channels.
    pub block: usize,
}

impl Operator {
    /// The activation that is fused into this operator, if there is one.
    pub fn activation(&self) -> Option<&Function> {
        match self {
            Operator::Conv(conv) => conv.activation.as_ref(),
            Operator::ConvTranspose(conv) => conv.activation.as_ref(),
            Operator::Gemm(gemm) => gemm.activation.as_ref(),
            Operator::BatchNorm(norm) => norm.activation.as_ref(),
            Operator::Binary(binary) => binary.activation.as_ref(),
            _ => None,
        }
    }

    /// The place of a fused activation, for the operators into which one may fuse: Conv, ConvTranspose, Gemm,
    /// BatchNorm, and Add or Mul (`docs/design.md`, "Networks").
    pub fn activation_mut(&mut self) -> Option<&mut Option<Function>> {
        match self {
            Operator::Conv(conv) => Some(&mut conv.activation),
            Operator::ConvTranspose(conv) => Some(&mut conv.activation),
            Operator::Gemm(gemm) => Some(&mut gemm.activation),
            Operator::BatchNorm(norm) => Some(&mut norm.activation),
            Operator::Binary(binary)
                if matches!(binary.function, BinaryFunction::Add | BinaryFunction::Mul) =>
            {
                Some(&mut binary.activation)
            }
            _ => None,
        }
    }

    /// Whether it leaves a state in its workspace from each row to the next.
    pub fn has_state(&self) -> bool {
        matches!(self, Operator::Recurrent(_))
    }

    /// Whether it makes 64-bit integers, not floats.
    pub fn makes_indices(&self) -> bool {
        match self {
            Operator::ArgMax(arg_max) => !arg_max.floats,
            Operator::TopK(top) => top.indices && !top.floats,
            Operator::NonMaxSuppression(suppression) => !suppression.floats,
            _ => false,
        }
    }

    /// The name of the operator's kind, as in a plan's `op`.
    pub fn kind(&self) -> &'static str {
        match self {
            Operator::Input(_) => "input",
            Operator::Conv(_) => "conv",
            Operator::ConvTranspose(_) => "conv_transpose",
            Operator::Gemm(_) => "gemm",
            Operator::MatMul => "mat_mul",
            Operator::Recurrent(_) => "recurrent",
            Operator::BatchNorm(_) => "batch_norm",
            Operator::ElementWise(_) => "element_wise",
            Operator::Binary(_) => "binary",
            Operator::Where(_) => "where",
            Operator::Pool(_) => "pool",
            Operator::MaxUnpool(_) => "max_unpool",
            Operator::Reduce(_) => "reduce",
            Operator::ArgMax(_) => "arg_max",
            Operator::TopK(_) => "top_k",
            Operator::NonMaxSuppression(_) => "non_max_suppression",
            Operator::GridSample(_) => "grid_sample",
            Operator::GatherElements(_) => "gather_elements",
            Operator::Concat(_) => "concat",
            Operator::Slice(_) => "slice",
            Operator::Pad(_) => "pad",
            Operator::Resize(_) => "resize",
            Operator::Transpose(_) => "transpose",
            Operator::Softmax(_) => "softmax",
            Operator::Lrn(_) => "lrn",
            Operator::InstanceNorm(_) => "instance_norm",
            Operator::DepthToSpace(_) => "depth_to_space",
            Operator::SpaceToDepth(_) => "space_to_depth",
            Operator::Convert => "convert",
        }
    }

    /// The dimension of an operand that becomes the one that counts the output's rows, if the operator moves no rows
    /// itself: the same one, but for a Transpose. `None` if the output is not made of rows.
    pub fn row_source(&self, output: &Shape) -> Option<usize> {
        let row = output.row_axis()?;
        match self {
            Operator::Transpose(transpose) => transpose.perm.get(row).copied(),
            _ => Some(row),
        }
    }

    /// Whether inputs keep their order of dimensions through this operator. They do in functions of each element, fully
    /// connected layers, softmax, reductions that keep the dimensions, slices, padding and conversions, and, if all inputs
    /// have the same order, in functions of several elements, in concats and in recurrent networks. Every other operator
    /// expects and yields channels-first tensors.
    pub fn keeps_order(&self, inputs: &[Shape]) -> bool {
        let same =
            inputs.windows(2).all(|pair| pair[0].order == pair[1].order && pair[0].rank() == pair[1].rank());
        match self {
            Operator::ElementWise(_)
            | Operator::Gemm(_)
            | Operator::Softmax(_)
            | Operator::Slice(_)
            | Operator::Pad(_)
            | Operator::Convert => true,
            Operator::Reduce(reduce) => reduce.keep_dims,
            Operator::Binary(_) | Operator::Where(_) | Operator::Concat(_) | Operator::Recurrent(_) => same,
            _ => false,
        }
    }
}
