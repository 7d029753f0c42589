//! The kernels, and what they are called with.

use std::ops::Range;

use csdfc_kernels::activation::Activation;
use csdfc_kernels::binary::Binary;
use csdfc_kernels::concat::ImageAxis;
use csdfc_kernels::conv::Conv;
use csdfc_kernels::conv::transpose::ConvTranspose;
use csdfc_kernels::depth_space::DepthToSpace;
use csdfc_kernels::gemm::Gemm;
use csdfc_kernels::lrn::Lrn;
use csdfc_kernels::pad::{Pad, PadMode};
use csdfc_kernels::pool::Pool;
use csdfc_kernels::reduce::ReduceFunction;
use csdfc_kernels::resize::Resize;
use csdfc_kernels::slice::Slice;
use csdfc_kernels::softmax::Softmax;

use crate::operator::Operator;
use crate::shape::Shape;
use crate::weights::Packing;

use super::access::{Access, Input};

/// A layer as it stands among the rings that it reads and writes.
#[derive(Debug, Clone)]
pub struct Site<'a> {
    /// What it computes.
    pub operator: &'a Operator,
    /// Its operands.
    pub inputs: Vec<Operand<'a>>,
    /// Shape of its output.
    pub output: &'a Shape,
    /// Rows of the ring that it writes.
    pub ring_rows: usize,
}

/// An operand of a layer.
#[derive(Debug, Clone, Copy)]
pub struct Operand<'a> {
    /// Shape of the tensor.
    pub own: &'a Shape,
    /// The shape in which the layer sees it.
    pub seen: &'a Shape,
    /// Rows of the ring that it is read from.
    pub ring_rows: usize,
}

/// A layer bound to a kernel.
#[derive(Debug, Clone)]
pub struct Call {
    /// What computes it.
    pub kernel: Kernel,
    /// How the kernel sees the operands: all by rows, or all element by element, and the output alike.
    pub inputs: Vec<Input>,
    /// How it sees the output.
    pub output: Access,
    /// The parts of the layer's packed parameters.
    pub constants: Vec<Constant>,
    /// Whether the last constant is the slopes of a PRelu that follows in place.
    pub p_relu: bool,
}

/// A part of a layer's packed parameters.
#[derive(Debug, Clone)]
pub struct Constant {
    /// How it is packed.
    pub packing: Packing,
    /// The parameters that it is packed from.
    pub parameters: Range<usize>,
    /// Its elements among those of the layer.
    pub range: Range<usize>,
}

/// A kernel, named after its function in the kernels' crate, and its constants.
#[derive(Debug, Clone)]
#[allow(missing_docs, reason = "the fields are the arguments of the kernel")]
pub enum Kernel {
    /// A convolution, or a matrix product by constants as a convolution of single pixels; it takes all operands. Constant
    /// 0: panels.
    Conv(Conv),
    /// Constant 0: panels.
    ConvTranspose(ConvTranspose),
    /// Constant 0: panels.
    GemmElements(Gemm),
    /// A product of two tensors.
    MatMul,
    ElementWise(Activation),
    /// Constant 0: slopes.
    PRelu,
    /// Constants 0 and 1: scale and shift.
    BatchNorm(Activation),
    Binary(Binary),
    /// A function of an operand and constant 0.
    BinaryConstant {
        binary: Binary,
        left: bool,
    },
    Pool(Pool),
    ReduceRows {
        function: ReduceFunction,
        columns: bool,
        channels: bool,
    },
    ReduceFrame(ReduceFunction),
    ReduceElements {
        function: ReduceFunction,
        axes: Vec<usize>,
        keep_dims: bool,
    },
    ArgMax {
        axis: ImageAxis,
        select_last: bool,
    },
    ArgMaxElements {
        axis: usize,
        keep_dims: bool,
        select_last: bool,
    },
    /// One call for each operand.
    Concat {
        axis: ImageAxis,
        starts: Vec<usize>,
    },
    /// One call for each operand.
    ConcatElements {
        axis: usize,
        starts: Vec<usize>,
    },
    Slice(Slice),
    SliceElements {
        starts: Vec<usize>,
        steps: Vec<i64>,
    },
    Pad(Pad),
    PadElements {
        mode: PadMode,
        before: Vec<i64>,
        after: Vec<i64>,
    },
    Resize(Resize),
    TransposeElements {
        perm: Vec<usize>,
    },
    Softmax(Softmax),
    SoftmaxElements {
        log: bool,
        axes: Vec<usize>,
    },
    Lrn(Lrn),
    /// Constants 0 and 1: scale and shift.
    InstanceNorm {
        epsilon: f32,
    },
    DepthToSpace(DepthToSpace),
    SpaceToDepth {
        block: usize,
    },
}
