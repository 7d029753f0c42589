//! The kernels, and what they are called with.

use std::ops::Range;
use std::sync::Arc;

use csdfc_kernels::elements::ElementShape;
use csdfc_kernels::kernel::{ElementKernel, RowKernel};
use csdfc_kernels::rows::RowShape;
use serde::Serialize;

use crate::format::Layout;
use crate::operator::Operator;
use crate::shape::Shape;

use super::constants::Packing;
use super::literal::Literal;
use super::seen::{Input, View};

/// A layer as it stands among the rings that it reads and writes.
#[derive(Debug, Clone)]
pub struct Site<'a> {
    /// What it computes.
    pub operator: &'a Operator,
    /// Its operands.
    pub inputs: Vec<Operand<'a>>,
    /// Shape of its output.
    pub output: &'a Shape,
    /// Layout of its output.
    pub layout: Layout,
    /// Rows of the ring that it writes.
    pub ring_rows: usize,
}

impl<'a> Site<'a> {
    /// A layer of which every tensor is stored whole, as HWC. The operands are tensors as they are, and as they are seen.
    pub fn whole(
        operator: &'a Operator,
        operands: impl Iterator<Item = (&'a Shape, &'a Shape)>,
        output: &'a Shape,
    ) -> Self {
        let layout = Layout::Hwc;
        let operand = |(own, seen): (&'a Shape, _)| Operand { own, seen, layout, ring_rows: own.rows() };
        let inputs = operands.map(operand).collect();
        Site { operator, inputs, output, layout, ring_rows: output.rows() }
    }
}

/// An operand of a layer.
#[derive(Debug, Clone, Copy)]
pub struct Operand<'a> {
    /// Shape of the tensor.
    pub own: &'a Shape,
    /// The shape in which the layer sees it.
    pub seen: &'a Shape,
    /// Layout of the tensor.
    pub layout: Layout,
    /// Rows of the ring that it is read from.
    pub ring_rows: usize,
}

/// A layer bound to a kernel.
#[derive(Debug, Clone)]
pub struct Call {
    /// What computes it, and how that sees its tensors.
    pub form: Form,
    /// The parts of the layer's packed parameters.
    pub constants: Vec<Constant>,
    /// Whether the last constant is the slopes of a [`csdfc_kernels::element_wise::PReluInPlace`] that follows the kernel.
    pub slopes: bool,
}

/// How tensors are seen: all of a layer by rows, or all element by element.
#[derive(Debug, Clone)]
pub enum Form {
    /// By rows.
    Rows(RowCall),
    /// Element by element.
    Elements(ElementCall),
}

/// A kernel that sees tensors by rows.
#[derive(Debug, Clone)]
pub struct RowCall {
    /// The kernel.
    pub kernel: Kernel<dyn RowKernel + Send + Sync, dyn RowKernel<i64> + Send + Sync>,
    /// How it sees the operands.
    pub inputs: Vec<Input<RowShape>>,
    /// How it sees the output.
    pub output: RowShape,
}

/// A kernel that sees tensors element by element.
#[derive(Debug, Clone)]
pub struct ElementCall {
    /// The kernel.
    pub kernel: Kernel<dyn ElementKernel + Send + Sync, dyn ElementKernel<i64> + Send + Sync>,
    /// How it sees the operands.
    pub inputs: Vec<Input<View>>,
    /// How it sees the output.
    pub output: ElementShape,
}

/// A kernel by what it makes.
pub enum Kernel<F: ?Sized, I: ?Sized> {
    /// Floats.
    F32(Bound<F>),
    /// Indices.
    I64(Bound<I>),
}

/// A kernel with its parameters: `run` calls it, `emit` prints it.
pub struct Bound<K: ?Sized> {
    /// The kernel.
    pub kernel: Arc<K>,
    /// The kernel as Rust writes it.
    pub literal: Literal,
}

/// What parameters of kernels are.
pub trait Parameters: Serialize + Send + Sync + 'static {}

impl<K: Serialize + Send + Sync + 'static> Parameters for K {}

impl<T: 'static> Bound<dyn RowKernel<T> + Send + Sync> {
    /// A kernel by rows.
    pub fn rows(kernel: impl RowKernel<T> + Parameters) -> Self {
        Bound { literal: Literal::of(&kernel), kernel: Arc::new(kernel) }
    }
}

impl<T: 'static> Bound<dyn ElementKernel<T> + Send + Sync> {
    /// A kernel by elements.
    pub fn elements(kernel: impl ElementKernel<T> + Parameters) -> Self {
        Bound { literal: Literal::of(&kernel), kernel: Arc::new(kernel) }
    }
}

impl Call {
    /// The kernel as Rust writes it.
    pub fn literal(&self) -> &Literal {
        match &self.form {
            Form::Rows(call) => call.kernel.literal(),
            Form::Elements(call) => call.kernel.literal(),
        }
    }

    /// Whether the kernel sees an operand as other rows than it is made of, and so takes it in one piece.
    pub fn folds(&self, operand: usize) -> bool {
        let rows = match &self.form {
            Form::Rows(call) => call.inputs.get(operand).map(|input| [input.fold, input.into]),
            Form::Elements(call) => call.inputs.get(operand).map(|input| [input.fold, input.into]),
        };
        rows.is_some_and(|rows| rows != [1, 1])
    }

    /// Whether it makes indices.
    pub fn makes_indices(&self) -> bool {
        match &self.form {
            Form::Rows(call) => matches!(call.kernel, Kernel::I64(_)),
            Form::Elements(call) => matches!(call.kernel, Kernel::I64(_)),
        }
    }
}

impl<F: ?Sized, I: ?Sized> Kernel<F, I> {
    /// The kernel as Rust writes it.
    pub fn literal(&self) -> &Literal {
        match self {
            Kernel::F32(bound) => &bound.literal,
            Kernel::I64(bound) => &bound.literal,
        }
    }
}

impl<F: ?Sized, I: ?Sized> Clone for Kernel<F, I> {
    fn clone(&self) -> Self {
        match self {
            Kernel::F32(bound) => Kernel::F32(bound.clone()),
            Kernel::I64(bound) => Kernel::I64(bound.clone()),
        }
    }
}

impl<K: ?Sized> Clone for Bound<K> {
    fn clone(&self) -> Self {
        Bound { kernel: self.kernel.clone(), literal: self.literal.clone() }
    }
}

impl<F: ?Sized, I: ?Sized> std::fmt::Debug for Kernel<F, I> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.literal().fmt(f)
    }
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
