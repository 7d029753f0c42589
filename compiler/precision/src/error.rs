//! Why precisions cannot be chosen, or a network cannot be quantized.
//!
//! ```
//! use csdfc_input::builtin;
//! use csdfc_precision::error::Error;
//! use csdfc_precision::quantize::{Options, quantize};
//!
//! let refused = quantize(builtin::network("lenet5")?, &[], Options::default());
//! assert!(matches!(refused, Err(Error::NoFrame)));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use csdfc_input::app::AppError;
use csdfc_input::device::DeviceError;
use csdfc_planner::error::Error as PlannerError;
use csdfc_runtime::run::RunError;
use miette::Diagnostic;

/// Why precisions cannot be chosen, or a network cannot be quantized. Frames are numbered from 1.
#[derive(Debug, thiserror::Error, Diagnostic)]
#[non_exhaustive]
pub enum Error {
    /// The application cannot be read, planned or run.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Planner(#[from] PlannerError),
    /// There is nothing to measure on.
    #[error("there is no frame to calibrate with")]
    #[diagnostic(code(csdfc::input))]
    NoFrame,
    /// A frame has too few or too many tensors.
    #[error("frame {frame} has {found} tensors, but the model has {inputs} inputs")]
    #[diagnostic(code(csdfc::input))]
    Tensors {
        /// The frame.
        frame: usize,
        /// Its tensors.
        found: usize,
        /// Inputs of the model.
        inputs: usize,
    },
    /// A tensor of a frame has another element type than the input.
    #[error("frame {frame}: input {input} takes {expected}, not {found}")]
    #[diagnostic(code(csdfc::input))]
    Element {
        /// The frame.
        frame: usize,
        /// The input.
        input: String,
        /// The element type of the input.
        expected: &'static str,
        /// That of the tensor.
        found: &'static str,
    },
    /// A tensor of a frame has other dimensions than the input.
    #[error("frame {frame}: input {input} takes {expected:?}, not {found:?}")]
    #[diagnostic(code(csdfc::input))]
    Dimensions {
        /// The frame.
        frame: usize,
        /// The input.
        input: String,
        /// The dimensions of the input.
        expected: Vec<usize>,
        /// Those of the tensor.
        found: Vec<usize>,
    },
    /// A tensor of a frame has an element that is infinite or not a number.
    #[error("frame {frame}: input {input} has an element that is {value}")]
    #[diagnostic(code(csdfc::input))]
    InfiniteInput {
        /// The frame.
        frame: usize,
        /// The input.
        input: String,
        /// The element.
        value: f32,
    },
    /// A network of 32-bit floats makes an element that is infinite or not a number.
    #[error("CNN {cnn}: output {output} of frame {frame} has an element that is {value}")]
    #[diagnostic(code(csdfc::input), help("give frames that the network is made for"))]
    InfiniteOutput {
        /// The CNN.
        cnn: String,
        /// The output.
        output: String,
        /// The frame.
        frame: usize,
        /// The element.
        value: f32,
    },
    /// A layer that is to be quantized makes an element that is infinite or not a number.
    #[error("in frame {frame}, layer {layer} makes an element that is {value}")]
    #[diagnostic(code(csdfc::input))]
    InfiniteLayer {
        /// The frame.
        frame: usize,
        /// The layer.
        layer: String,
        /// The element.
        value: f32,
    },
    /// The same of a layer of the quantized network.
    #[error("in frame {frame}, layer {layer} of the quantized network makes an element that is {value}")]
    #[diagnostic(
        code(csdfc::input),
        help("let layers that err much stay with floats: --keep-above 0.05, for instance")
    )]
    InfiniteQuantized {
        /// The frame.
        frame: usize,
        /// The layer.
        layer: String,
        /// The element.
        value: f32,
    },
    /// A weight is infinite or not a number.
    #[error("layer {layer} has a weight that is {value}")]
    #[diagnostic(code(csdfc::input))]
    InfiniteWeight {
        /// The layer.
        layer: String,
        /// The weight.
        value: f32,
    },
    /// There is nothing left to quantize.
    #[error("the model is quantized already: layer {layer} makes 8-bit integers")]
    #[diagnostic(code(csdfc::input))]
    Quantized {
        /// A quantized layer.
        layer: String,
    },
    /// The precisions that the application states cause a larger error than it allows.
    #[error(
        "CNN {cnn}: the layers whose precision is stated err by {error:.1e}, more than the {allowance:.1e} allowed"
    )]
    #[diagnostic(code(csdfc::input), help("raise --max-error, or state fp32 or auto for these layers"))]
    StatedPrecisions {
        /// The CNN.
        cnn: String,
        /// Its error.
        error: f64,
        /// Its allowance.
        allowance: f64,
    },
}

impl From<Box<AppError>> for Error {
    fn from(error: Box<AppError>) -> Self {
        PlannerError::from(error).into()
    }
}

impl From<DeviceError> for Error {
    fn from(error: DeviceError) -> Self {
        PlannerError::from(error).into()
    }
}

impl From<RunError> for Error {
    fn from(error: RunError) -> Self {
        PlannerError::from(error).into()
    }
}
