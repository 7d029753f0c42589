//! Functions of each element, batch normalisation, and PRelu by slopes of any shape.
//!
//! A PRelu is never an [`Activation`] here: where one is fused into an operator it follows in place.
//!
//! # Example
//!
//! ```
//! use csdfc_kernels::element_wise::ElementWise;
//! use csdfc_kernels::Activation;
//! use csdfc_kernels::rows::RowShape;
//! use csdfc_kernels::span::{Span, SpanMut};
//! use csdfc_kernels::{Context, Isa, RowKernel, Rows, RowsMut};
//!
//! let input = Rows { data: Span::new(&[-1.0, 2.0]), shape: RowShape::dense(1, 1, 2, 1) }; // [1, 1, 2]
//! let mut made = [0.0; 2];
//! let mut output = RowsMut { data: SpanMut::new(&mut made), shape: RowShape::dense(1, 1, 2, 1) }; // [1, 1, 2]
//! ElementWise { function: Activation::Abs }.rows(&mut Context::alone(Isa::PORTABLE), 0..1, &[input], &[], &mut output);
//! assert_eq!(made, [1.0, 2.0]);
//! ```

use core::ops::Range;

use super::activation::{Activation, Apply};
use super::arch::{Job, Simd};
use super::binary::zip_rows;
use super::element::{Element, PIECE, pieces};
use super::elements::{Elements, ElementsMut};
use super::kernel::{Context, ElementKernel, RowKernel};
use super::pixels::{pixel, pixels_mut};
use super::rows::{Rows, RowsMut};

/// A function of each element, PRelu excepted.
#[derive(Debug, Clone, Copy)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct ElementWise {
    /// The function.
    pub function: Activation,
}

/// One operand.
impl<E: Element> RowKernel<E, E> for ElementWise {
    #[inline]
    fn rows(
        &self,
        context: &mut Context<'_>,
        y: Range<usize>,
        operands: &[Rows<'_, E>],
        _: &[Rows<'_, E>],
        output: &mut RowsMut<'_, E>,
    ) {
        context.isa.run(ElementWiseWork { function: self.function, y, input: operands[0], output });
    }
}

/// [`ElementWise`] as work for an instruction set.
struct ElementWiseWork<'a, 'o, 'd, E> {
    function: Activation,
    y: Range<usize>,
    input: Rows<'a, E>,
    output: &'o mut RowsMut<'d, E>,
}

impl<E: Element> Job for ElementWiseWork<'_, '_, '_, E> {
    #[inline(always)]
    #[allow(unsafe_code, reason = "vector instructions")]
    fn run<S: Simd>(self) {
        let ElementWiseWork { function: activation, y, input, output } = self;
        let mut room = [0.0; PIECE];
        for y in y {
            let row = input.row(y);
            for (first, piece) in pieces(output.row(y), 1) {
                let from = &row[first..][..piece.len()];
                let values = E::draft(piece, &mut room);
                // SAFETY: this is in `Job::run`, as `copy`, `call` and `keep` ask.
                unsafe {
                    E::copy::<S>(from, values);
                    S::call(Apply { activation, values, slopes: &[] });
                    E::keep::<S>(piece, &room);
                }
            }
        }
    }
}

/// One operand.
impl<E: Element> ElementKernel<E, E> for ElementWise {
    #[inline]
    fn elements(
        &self,
        _: &mut Context<'_>,
        y: Range<usize>,
        operands: &[Elements<'_, E>],
        _: &[Elements<'_, E>],
        output: &mut ElementsMut<'_, E>,
    ) {
        let (function, input) = (self.function, &operands[0]);
        output.fill(y, |index| E::narrow(function.apply(input.at(index).widen(), 0.0)));
    }
}

/// `x·scale + shift`, per channel, with an activation. Its constants are the scale and the shift of each channel.
#[derive(Debug, Clone, Copy)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct BatchNorm {
    /// Applied to every output element.
    pub activation: Activation,
}

/// One operand.
impl<E: Element> RowKernel<E, E> for BatchNorm {
    #[inline]
    fn rows(
        &self,
        context: &mut Context<'_>,
        y: Range<usize>,
        operands: &[Rows<'_, E>],
        constants: &[Rows<'_, E>],
        output: &mut RowsMut<'_, E>,
    ) {
        let [scale, shift] = [0, 1].map(|i| constants[i].row(0));
        let (activation, input) = (self.activation, operands[0]);
        context.isa.run(Norm { activation, y, input, scale, shift, output });
    }
}

/// [`BatchNorm`] as work for an instruction set.
struct Norm<'a, 'o, 'd, E> {
    activation: Activation,
    y: Range<usize>,
    input: Rows<'a, E>,
    scale: &'a [E],
    shift: &'a [E],
    output: &'o mut RowsMut<'d, E>,
}

impl<E: Element> Job for Norm<'_, '_, '_, E> {
    #[inline(always)]
    #[allow(unsafe_code, reason = "vector instructions")]
    fn run<S: Simd>(self) {
        let Norm { activation, y, input, scale, shift, output } = self;
        let channels = output.shape.channels;
        let mut rooms = [[0.0; PIECE]; 4];
        let [room_in, room_scale, room_shift, room] = &mut rooms;
        for y in y {
            let row = input.row(y);
            for (first, piece) in pieces(output.row(y), channels) {
                let from = &row[first..][..piece.len()];
                let part = first % channels..channels.min(first % channels + piece.len());
                let values = E::draft(piece, room);
                // SAFETY: this is in `Job::run`, as `floats`, `scale_and_shift`, `call` and `keep` ask.
                unsafe {
                    let from = E::floats::<S>(from, room_in);
                    let scale = E::floats::<S>(&scale[part.clone()], room_scale);
                    let shift = E::floats::<S>(&shift[part], room_shift);
                    for (from, to) in from.chunks(channels).zip(values.chunks_mut(channels)) {
                        scale_and_shift::<S>(from, scale, shift, to);
                    }
                    if activation != Activation::None {
                        S::call(Apply { activation, values, slopes: &[] });
                    }
                    E::keep::<S>(piece, room);
                }
            }
        }
    }
}

/// Scales and shifts the floats of a pixel.
///
/// # Safety
/// In [`Job::run`].
#[inline(always)]
#[allow(unsafe_code, reason = "vector instructions")]
unsafe fn scale_and_shift<S: Simd>(from: &[f32], scale: &[f32], shift: &[f32], to: &mut [f32]) {
    let len = to.len();
    let (from, scale, shift) = (&from[..len], &scale[..len], &shift[..len]);
    let whole = len / S::LANES * S::LANES;
    for at in (0..whole).step_by(S::LANES) {
        // SAFETY: this is in `Job::run`: `# Safety` of this function. All four slices have `len` elements, and vectors
        // end at `whole`. Rounded twice: −0 leaves a product, and 1 a summand, as it is.
        unsafe {
            let [x, scale, shift] = [from, scale, shift].map(|values| values.as_ptr().add(at));
            let product = S::mul_add(S::load(x), S::load(scale), S::splat(-0.0));
            S::store(to.as_mut_ptr().add(at), S::mul_add(product, S::splat(1.0), S::load(shift)));
        }
    }
    for (i, x) in to.iter_mut().enumerate().skip(whole) {
        *x = from[i] * scale[i] + shift[i];
    }
}

/// One operand, whose dimension 1 counts the channels.
impl<E: Element> ElementKernel<E, E> for BatchNorm {
    #[inline]
    fn elements(
        &self,
        _: &mut Context<'_>,
        y: Range<usize>,
        operands: &[Elements<'_, E>],
        constants: &[Elements<'_, E>],
        output: &mut ElementsMut<'_, E>,
    ) {
        let (activation, input) = (self.activation, &operands[0]);
        let [scale, shift] = [0, 1].map(|i| constants[i].values());
        output.fill(y, |index| {
            let channel = index[1];
            let x = input.at(index).widen() * scale[channel].widen() + shift[channel].widen();
            E::narrow(activation.apply(x, 0.0))
        });
    }
}

/// PRelu in place of the output, as the activation of another kernel that has made the same rows just before. It has no
/// operands; its constant is the slopes, as those of [`PRelu`].
#[derive(Debug, Clone, Copy)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct PReluInPlace;

/// No operands.
impl<E: Element> RowKernel<E, E> for PReluInPlace {
    #[inline]
    fn rows(
        &self,
        _: &mut Context<'_>,
        y: Range<usize>,
        _: &[Rows<'_, E>],
        constants: &[Rows<'_, E>],
        output: &mut RowsMut<'_, E>,
    ) {
        let slopes = constants[0];
        let (shape, out) = (slopes.shape, output.shape);
        for y in y {
            let slopes = slopes.row(if shape.height == 1 { 0 } else { y });
            for (x, result) in pixels_mut(output.row(y), &out).enumerate() {
                let slopes = pixel(slopes, &shape, if shape.width == 1 { 0 } else { x });
                match slopes {
                    &[slope] => result.iter_mut().for_each(|r| *r = p_relu_of(*r, slope)),
                    slopes => result.iter_mut().zip(slopes).for_each(|(r, &slope)| *r = p_relu_of(*r, slope)),
                }
            }
        }
    }
}

/// PRelu. Its constant is the slopes: by rows of one height, width and channel or as many as the output, element by
/// element of dimensions that broadcast to it.
#[derive(Debug, Clone, Copy)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct PRelu;

/// One operand.
impl<E: Element> RowKernel<E, E> for PRelu {
    #[inline]
    fn rows(
        &self,
        context: &mut Context<'_>,
        y: Range<usize>,
        operands: &[Rows<'_, E>],
        constants: &[Rows<'_, E>],
        output: &mut RowsMut<'_, E>,
    ) {
        let (isa, none) = (context.isa, Activation::None);
        let p_relu = |x, slope| p_relu_of::<f32>(x, slope);
        zip_rows(isa, y, operands[0], constants[0], output, none, p_relu);
    }
}

/// One operand.
impl<E: Element> ElementKernel<E, E> for PRelu {
    #[inline]
    fn elements(
        &self,
        _: &mut Context<'_>,
        y: Range<usize>,
        operands: &[Elements<'_, E>],
        constants: &[Elements<'_, E>],
        output: &mut ElementsMut<'_, E>,
    ) {
        let (input, slopes) = (&operands[0], &constants[0]);
        let rank = output.shape.dims.rank;
        output.fill(y, |index| {
            let slope = slopes.at(&slopes.seen.broadcast(rank, index));
            let x = input.at(index);
            p_relu_of(x, slope)
        });
    }
}

/// No operands.
impl<E: Element> ElementKernel<E, E> for PReluInPlace {
    #[inline]
    fn elements(
        &self,
        _: &mut Context<'_>,
        y: Range<usize>,
        _: &[Elements<'_, E>],
        constants: &[Elements<'_, E>],
        output: &mut ElementsMut<'_, E>,
    ) {
        let slopes = &constants[0];
        let shape = output.shape;
        shape.for_each(y, |index| {
            let r = output.at(index);
            *r = p_relu_of(*r, slopes.at(&slopes.seen.broadcast(shape.dims.rank, index)));
        });
    }
}

#[inline]
fn p_relu_of<E: Element>(x: E, slope: E) -> E {
    if x.widen() < 0.0 { E::narrow(x.widen() * slope.widen()) } else { x }
}
