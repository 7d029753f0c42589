//! Kernels for elements of any type, as one type. The caller sees tensors as bytes, and the kernel sees elements of
//! their type.

use std::marker::PhantomData;
use std::ops::Range;

use csdfc_kernels::elements::{ElementShape, Elements, ElementsMut};
use csdfc_kernels::half::F16;
use csdfc_kernels::kernel::{Context, ElementKernel, RowKernel};
use csdfc_kernels::rows::{RowShape, Rows, RowsMut};
use csdfc_kernels::share::share_rows;
use csdfc_kernels::span::{Plain, Span, SpanMut};

use csdfc_plan::format::Element;

use super::views::View;

/// Elements that tensors are stored as.
pub trait Stored: Plain {
    /// Their name in a plan.
    const ELEMENT: Element;
}

impl Stored for f32 {
    const ELEMENT: Element = Element::F32;
}

impl Stored for F16 {
    const ELEMENT: Element = Element::F16;
}

impl Stored for u8 {
    const ELEMENT: Element = Element::U8;
}

impl Stored for i64 {
    const ELEMENT: Element = Element::I64;
}

/// The bytes of a tensor's storage, and where in it the elements are.
pub type StridedView<'a, S> = (&'a [u8], S);

/// A kernel for elements of any type. It sees operands and constants as `S`, and its output as `T`.
pub trait OnBytes<S, T>: Send + Sync {
    /// Makes rows of the output. Where a kernel sees rows, all workers of the context share them; see [`share_rows`].
    ///
    /// # Panics
    /// As the kernel, or if the bytes are not those of whole elements.
    fn call(
        &self,
        context: &mut Context<'_>,
        y: Range<usize>,
        operands: &[StridedView<'_, S>],
        constants: &[StridedView<'_, S>],
        output: (&mut [u8], T),
    );
}

/// A kernel that sees tensors by rows.
pub type ByRows = dyn OnBytes<RowShape, RowShape>;

/// A kernel that sees tensors element by element.
pub type ByElements = dyn OnBytes<View, ElementShape>;

/// A kernel that makes elements `O` of elements `I`.
pub struct Typed<K, O, I>(K, PhantomData<fn(I) -> O>);

impl<K, O, I> Typed<K, O, I> {
    /// This kernel.
    pub const fn new(kernel: K) -> Self {
        Typed(kernel, PhantomData)
    }
}

impl<O: Stored, I: Stored, K: RowKernel<O, I> + Send + Sync> OnBytes<RowShape, RowShape> for Typed<K, O, I> {
    fn call(
        &self,
        context: &mut Context<'_>,
        y: Range<usize>,
        operands: &[StridedView<'_, RowShape>],
        constants: &[StridedView<'_, RowShape>],
        (output, shape): (&mut [u8], RowShape),
    ) {
        // One function for all kernels.
        let kernel: &(dyn RowKernel<O, I> + Sync) = &self.0;
        let mut output = RowsMut { data: SpanMut::of_bytes(output), shape };
        share_rows(kernel, context, y, &rows(operands), &rows(constants), &mut output);
    }
}

impl<O: Stored, I: Stored, K: ElementKernel<O, I> + Send + Sync> OnBytes<View, ElementShape>
    for Typed<K, O, I>
{
    fn call(
        &self,
        context: &mut Context<'_>,
        y: Range<usize>,
        operands: &[StridedView<'_, View>],
        constants: &[StridedView<'_, View>],
        (output, shape): (&mut [u8], ElementShape),
    ) {
        let mut output = ElementsMut { data: SpanMut::of_bytes(output), shape };
        self.0.elements(context, y, &elements(operands), &elements(constants), &mut output);
    }
}

fn rows<'a, T: Plain>(tensors: &[StridedView<'a, RowShape>]) -> Vec<Rows<'a, T>> {
    tensors.iter().map(|&(bytes, shape)| Rows { data: Span::of_bytes(bytes), shape }).collect()
}

fn elements<'a, T: Plain>(tensors: &[StridedView<'a, View>]) -> Vec<Elements<'a, T>> {
    let tensor = |&(bytes, View { shape, seen }): &StridedView<'a, View>| Elements {
        data: Span::of_bytes(bytes),
        shape,
        seen,
    };
    tensors.iter().map(tensor).collect()
}
