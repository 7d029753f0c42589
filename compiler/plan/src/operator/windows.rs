//! Attributes of the operators that see an image through windows: convolutions, pooling, and resampling.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::Function;
use crate::format::Quantization;

/// Attributes of [`super::Operator::Conv`]. Operands: the image, or its parts, which hold its channels in this order
/// (`[N, Cᵢ, H, W]`, the Cᵢ adding up to C; several only where `groups` is 1); then, if there is a `residual`, what is
/// added, of the output's shape. Parameters: filters `[filters, C / groups, kernel_y, kernel_x]`, then the bias
/// `[filters]` if any, then scale `[C]` and shift `[C]` of an affine `pre`, then the slopes of a PRelu activation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Conv {
    /// Output channels.
    pub filters: usize,
    /// Height and width of the filters.
    pub kernel: [usize; 2],
    /// Stride in y and x.
    pub stride: [usize; 2],
    /// Dilation in y and x.
    pub dilation: [usize; 2],
    /// `[top, left, bottom, right]`, zeros.
    pub pads: [usize; 4],
    /// Groups; equal to the input channels for a depthwise convolution.
    pub groups: usize,
    /// Whether there is one bias per filter.
    pub bias: bool,
    /// Applied to every input element as it is loaded; the zeros of the padding come after it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pre: Option<Pre>,
    /// Whether the last operand is added to the sums, before the activation. Not of a depthwise convolution.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub residual: bool,
    /// Applied to every output element.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub activation: Option<Function>,
}

impl Conv {
    /// The number of operands that are the image or its parts: all operands except a residual.
    pub fn parts(&self, operands: usize) -> usize {
        operands.saturating_sub(usize::from(self.residual))
    }
}

/// A batch norm, an activation, or one after the other, that a convolution applies to its input.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pre {
    /// Whether each channel is multiplied by a scale, and a shift added: parameters of the convolution.
    pub affine: bool,
    /// Applied after that. It is no PRelu. In a depthwise convolution, it can only be a bound, like Relu and Clip.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub activation: Option<Function>,
    /// The quantization of the results, if the convolution is of integers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quantization: Option<Quantization>,
}

/// Attributes of [`super::Operator::ConvTranspose`]. Parameters: filters `[C, filters / groups, kernel_y, kernel_x]`, bias.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConvTranspose {
    /// Output channels.
    pub filters: usize,
    /// Height and width of the filters.
    pub kernel: [usize; 2],
    /// Stride in y and x.
    pub stride: [usize; 2],
    /// Dilation in y and x.
    pub dilation: [usize; 2],
    /// `[top, left, bottom, right]`, cropped from the full result. The output height is
    /// `(H − 1)·stride − top − bottom + (kernel − 1)·dilation + 1 + output_padding`.
    pub pads: [usize; 4],
    /// Rows and columns added at the bottom and right of the output.
    pub output_padding: [usize; 2],
    /// Groups.
    pub groups: usize,
    /// Whether there is one bias per filter.
    pub bias: bool,
    /// Applied to every output element.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub activation: Option<Function>,
}

/// Attributes of [`super::Operator::Pool`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pool {
    /// The function of a window.
    pub kind: PoolKind,
    /// Height and width of the window.
    pub kernel: [usize; 2],
    /// Stride in y and x.
    pub stride: [usize; 2],
    /// Dilation in y and x.
    pub dilation: [usize; 2],
    /// `[top, left, bottom, right]`.
    pub pads: [usize; 4],
    /// Whether the output size is rounded up, so that the last window may hang over the edge.
    pub ceil: bool,
}

/// The function of a pooling window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PoolKind {
    /// Largest element; padding counts as −∞.
    Max,
    /// The place of the first largest element in the row-major order of the whole operand: an integer, as a float.
    MaxIndex,
    /// Mean, over the padding too if `count_include_pad`.
    Average {
        /// Whether padded elements count in the divisor.
        count_include_pad: bool,
    },
    /// `(Σ |x|^p)^(1/p)`.
    Lp {
        /// The exponent.
        p: i64,
    },
}

/// Attributes of [`super::Operator::MaxUnpool`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MaxUnpool {
    /// Height and width of the output.
    pub size: [usize; 2],
}

/// Attributes of [`super::Operator::Resize`], of height and width.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Resize {
    /// How an output element is made.
    pub mode: ResizeMode,
    /// How an output coordinate becomes an input coordinate.
    pub coordinates: Coordinates,
    /// Scale in y and x, output over input, as the model states it (not always the ratio of sizes).
    pub scales: [Scale; 2],
    /// Height and width of the output.
    pub size: [usize; 2],
}

impl Resize {
    /// Whether it makes numbers that are neither in the image nor between two neighbours: weighted means, or numbers
    /// from outside the image.
    pub fn is_weighted(&self) -> bool {
        matches!(self.mode, ResizeMode::Filter(_))
            || matches!(self.coordinates, Coordinates::TfCropAndResize(_))
    }
}

/// Output over input of a resize. Coordinates are computed from it without rounding: a float counts as the fraction that
/// it is.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Scale {
    /// As the model states it.
    Float(f32),
    /// The ratio of sizes, if the model states sizes.
    Ratio(Ratio),
}

/// A fraction, above zero. In files it is text: `"19/14"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Ratio {
    /// Numerator.
    pub over: u32,
    /// Denominator.
    pub under: u32,
}

impl fmt::Display for Scale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Scale::Float(scale) => write!(f, "{scale}"),
            Scale::Ratio(Ratio { over, under }) => write!(f, "{over}/{under}"),
        }
    }
}

impl From<Ratio> for String {
    fn from(Ratio { over, under }: Ratio) -> String {
        format!("{over}/{under}")
    }
}

/// A text that is no ratio.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no ratio like \"3/2\"")]
pub struct RatioError(String);

impl TryFrom<String> for Ratio {
    type Error = RatioError;

    fn try_from(text: String) -> Result<Self, RatioError> {
        let parts = text.split_once('/').and_then(|(a, b)| Some([a.parse().ok()?, b.parse().ok()?]));
        match parts {
            Some([over, under]) if over > 0 && under > 0 => Ok(Ratio { over, under }),
            _ => Err(RatioError(text)),
        }
    }
}

/// How a resize makes an output element.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResizeMode {
    /// The nearest input element, ties and fractions by this rule.
    Nearest {
        /// The rounding.
        rounding: Rounding,
    },
    /// Between the two nearest in each direction.
    Linear,
    /// A weighted mean of the elements around.
    Filter(Filter),
}

/// The weights of a resize. An input element at distance d in one direction weighs `1 − d` if d < 1, or what the cubic
/// convolution makes of d if d < 2. Weights are divided by their sum.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Filter {
    /// The coefficient a of the cubic convolution; if there is none, weights are linear.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cubic: Option<f32>,
    /// Whether distances shrink by a scale below 1, so that every input element has a weight.
    pub antialias: bool,
    /// Whether elements outside the image have no weight. Otherwise they are the element at the edge.
    pub exclude_outside: bool,
}

/// Rounding of a nearest-neighbour coordinate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "each is ONNX's nearest_mode of that name")]
pub enum Rounding {
    RoundPreferFloor,
    RoundPreferCeil,
    Floor,
    Ceil,
}

/// How a resize's output coordinate becomes an input coordinate.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "each is ONNX's coordinate_transformation_mode of that name")]
pub enum Coordinates {
    HalfPixel,
    PytorchHalfPixel,
    AlignCorners,
    Asymmetric,
    TfHalfPixelForNn,
    HalfPixelSymmetric,
    TfCropAndResize(Crop),
}

/// The part of an image that is resized.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Crop {
    /// Where it begins in y and x: 0 is the first pixel, 1 the last.
    pub from: [f32; 2],
    /// Where it ends; no less.
    pub to: [f32; 2],
    /// The value of output elements that lie outside the image.
    pub outside: f32,
}

/// Attributes of [`super::Operator::GridSample`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GridSample {
    /// How a sample is made.
    pub mode: SampleMode,
    /// The values outside the image.
    pub padding: SamplePadding,
    /// Whether −1 and 1 are the middles of the outermost pixels, instead of their outer edges.
    pub align_corners: bool,
}

/// How a sample of an image is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "each is ONNX's mode of that name")]
pub enum SampleMode {
    Nearest,
    Linear,
    Cubic,
}

/// The values outside an image that is sampled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "each is ONNX's padding_mode of that name")]
pub enum SamplePadding {
    Zeros,
    Border,
    Reflection,
}
