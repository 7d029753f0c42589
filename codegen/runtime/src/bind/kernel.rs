//! The kernels, and the arguments of their calls.

use std::ops::Range;
use std::sync::Arc;

use csdfc_kernels::elements::ElementShape;
use csdfc_kernels::kernel::{ElementKernel, RowKernel};
use csdfc_kernels::rows::RowShape;
use serde::Serialize;

use csdfc_plan::format::{Element, Layout, Quantization};
use csdfc_plan::operator::Operator;
use csdfc_plan::shape::Shape;

use super::constants::Packing;
use super::literal::Literal;
use super::typed::{ByElements, ByRows, Stored, Typed};
use super::views::{Input, View};

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
    /// Elements that its primitive reads, and elements that its primitive makes.
    pub elements: [Element; 2],
    /// The quantization of its output, if that has 8-bit integers.
    pub quantization: Option<Quantization>,
    /// Rows of the ring that it writes.
    pub ring_rows: usize,
}

impl<'a> Site<'a> {
    /// A layer of 32-bit floats whose tensors are all stored whole, in HWC. For each operand, the shape of its tensor
    /// and the shape in which it is seen are given.
    pub fn whole(
        operator: &'a Operator,
        operands: impl Iterator<Item = (&'a Shape, &'a Shape)>,
        output: &'a Shape,
    ) -> Self {
        let layout = Layout::Hwc;
        let operand = |(own, seen): (&'a Shape, _)| {
            let ring_rows = own.rows();
            Operand { own, seen, layout, quantization: None, ring_rows }
        };
        let (inputs, elements, ring_rows) =
            (operands.map(operand).collect(), [Element::F32; 2], output.rows());
        Site { operator, inputs, output, layout, elements, quantization: None, ring_rows }
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
    /// Its quantization, if it has 8-bit integers.
    pub quantization: Option<Quantization>,
    /// Rows of the ring that it is read from.
    pub ring_rows: usize,
}

/// A layer bound to a kernel.
#[derive(Debug, Clone)]
pub struct Call {
    /// The kernel that computes it, and how the kernel sees its tensors.
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
    pub kernel: Kernel<ByRows>,
    /// How it sees the operands.
    pub inputs: Vec<Input<RowShape>>,
    /// How it sees the output.
    pub output: RowShape,
}

/// A kernel that sees tensors element by element.
#[derive(Debug, Clone)]
pub struct ElementCall {
    /// The kernel.
    pub kernel: Kernel<ByElements>,
    /// How it sees the operands.
    pub inputs: Vec<Input<View>>,
    /// How it sees the output.
    pub output: ElementShape,
}

/// A kernel with its parameters: `run` calls it, `emit` prints it.
pub struct Kernel<K: ?Sized> {
    calls: Arc<K>,
    /// The kernel as Rust writes it.
    pub literal: Literal,
    /// The element type of its operands and its constants.
    pub reads: Element,
    /// The element type of its output.
    pub makes: Element,
}

/// The traits that parameters of kernels have.
pub trait Parameters: Serialize + Send + Sync + 'static {}

impl<K: Serialize + Send + Sync + 'static> Parameters for K {}

impl Kernel<ByRows> {
    /// A kernel by rows.
    pub fn rows<O: Stored, I: Stored>(kernel: impl RowKernel<O, I> + Parameters) -> Self {
        let literal = Literal::new(&kernel);
        let calls = Arc::new(Typed::<_, O, I>::new(kernel));
        Kernel { calls, literal, reads: I::ELEMENT, makes: O::ELEMENT }
    }
}

impl Kernel<ByElements> {
    /// A kernel by elements.
    pub fn elements<O: Stored, I: Stored>(kernel: impl ElementKernel<O, I> + Parameters) -> Self {
        let literal = Literal::new(&kernel);
        let calls = Arc::new(Typed::<_, O, I>::new(kernel));
        Kernel { calls, literal, reads: I::ELEMENT, makes: O::ELEMENT }
    }
}

impl Call {
    /// The kernel as Rust writes it.
    pub fn literal(&self) -> &Literal {
        match &self.form {
            Form::Rows(call) => &call.kernel.literal,
            Form::Elements(call) => &call.kernel.literal,
        }
    }

    /// Whether the kernel sees an operand as other rows than those of its tensor, and so takes it in one piece.
    pub fn folds(&self, operand: usize) -> bool {
        let rows = match &self.form {
            Form::Rows(call) => call.inputs.get(operand).map(|input| [input.fold, input.into]),
            Form::Elements(call) => call.inputs.get(operand).map(|input| [input.fold, input.into]),
        };
        rows.is_some_and(|rows| rows != [1, 1])
    }

    /// The elements that it reads, those of its constants among them, and the elements that it makes.
    pub fn elements(&self) -> [Element; 2] {
        self.form.elements()
    }
}

impl Form {
    /// The elements that the kernel reads, and those that it makes.
    pub(super) fn elements(&self) -> [Element; 2] {
        match self {
            Form::Rows(call) => [call.kernel.reads, call.kernel.makes],
            Form::Elements(call) => [call.kernel.reads, call.kernel.makes],
        }
    }
}

impl<K: ?Sized> Kernel<K> {
    /// The kernel, to call it.
    pub(super) fn calls(&self) -> &K {
        &self.calls
    }
}

impl<K: ?Sized> Clone for Kernel<K> {
    fn clone(&self) -> Self {
        Kernel { calls: Clone::clone(&self.calls), literal: self.literal.clone(), ..*self }
    }
}

impl<K: ?Sized> std::fmt::Debug for Kernel<K> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.literal.fmt(f)
    }
}

/// A part of a layer's packed parameters.
#[derive(Debug, Clone)]
pub struct Constant {
    /// How it is packed.
    pub packing: Packing,
    /// The parameters that it is packed from.
    pub parameters: Range<usize>,
    /// Its bytes among those of the layer.
    pub range: Range<usize>,
}
