//! Functions of two tensors element by element, with broadcasting.
//!
//! # Example
//!
//! ```
//! use csdfc_kernels::binary::{Binary, BinaryFunction};
//! use csdfc_kernels::{Activation, Context, ElementKernel, Elements, ElementsMut, Isa};
//!
//! let a = Elements::dense(&[1.0, 2.0, 3.0, 4.0], &[2, 2]);
//! let b = Elements::dense(&[10.0, -10.0], &[1, 2]); // repeats for each row
//! let mut made = [0.0; 4];
//! let mut output = ElementsMut::dense(&mut made, &[2, 2]);
//! let add = Binary { function: BinaryFunction::Add, constant_first: false, activation: Activation::Relu };
//! add.elements(&mut Context::alone(Isa::PORTABLE), 0..1, &[a, b], &[], &mut output);
//! assert_eq!(made, [11.0, 0.0, 13.0, 0.0]);
//! ```

use core::ops::Range;

use super::activation::{Activation, Apply};
use super::arch::{Isa, Job, Simd};
use super::element::{Element, PIECE, pieces};
use super::elements::{Elements, ElementsMut};
use super::kernel::{Context, ElementKernel, RowKernel};
use super::lines::{LineMut, LineRef, Lines, for_each_line};
use super::math;
use super::pixels::pixel;
use super::rows::{Rows, RowsMut};

/// A function of two elements, by its ONNX definition. A comparison makes 1 where it holds, else 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
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

/// A function of two tensors, and the activation that follows it. The tensors are two operands, or an operand and a
/// constant. The constant comes second or, if [`Binary::constant_first`], first.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Binary {
    /// The function.
    pub function: BinaryFunction,
    /// Whether the constant, if there is one, is on the left.
    pub constant_first: bool,
    /// Applied to every output element.
    pub activation: Activation,
}

impl Binary {
    /// Left and right.
    #[inline]
    fn sides<X: Copy>(&self, operands: &[X], constants: &[X]) -> [X; 2] {
        match (operands, constants) {
            (&[operand], &[constant]) if self.constant_first => [constant, operand],
            (&[operand], &[constant]) => [operand, constant],
            _ => [operands[0], operands[1]],
        }
    }
}

/// Images: each side has as many rows, columns and channels as the output, or one, which repeats.
impl<E: Element> RowKernel<E, E> for Binary {
    // Where the function is known, as it is in an emitted crate, no code is made for the others.
    #[inline(always)]
    fn rows(
        &self,
        context: &mut Context<'_>,
        y: Range<usize>,
        operands: &[Rows<'_, E>],
        constants: &[Rows<'_, E>],
        output: &mut RowsMut<'_, E>,
    ) {
        let (isa, activation, [left, right]) =
            (context.isa, self.activation, self.sides(operands, constants));
        match self.function {
            BinaryFunction::Add => zip_rows(isa, y, left, right, output, activation, |a, b| a + b),
            BinaryFunction::Sub => zip_rows(isa, y, left, right, output, activation, |a, b| a - b),
            BinaryFunction::Mul => zip_rows(isa, y, left, right, output, activation, |a, b| a * b),
            BinaryFunction::Div => zip_rows(isa, y, left, right, output, activation, |a, b| a / b),
            BinaryFunction::Max => zip_rows(isa, y, left, right, output, activation, larger),
            BinaryFunction::Min => zip_rows(isa, y, left, right, output, activation, smaller),
            BinaryFunction::Pow => zip_rows(isa, y, left, right, output, activation, math::pow),
            BinaryFunction::Mod => zip_rows(isa, y, left, right, output, activation, math::modulo),
            BinaryFunction::Fmod => zip_rows(isa, y, left, right, output, activation, |a, b| a % b),
            BinaryFunction::Equal => zip_rows(isa, y, left, right, output, activation, equal),
            BinaryFunction::Greater => zip_rows(isa, y, left, right, output, activation, greater),
            BinaryFunction::GreaterOrEqual => {
                zip_rows(isa, y, left, right, output, activation, greater_or_equal);
            }
        }
    }
}

/// Tensors of any rank that broadcast to the output.
impl<E: Element> ElementKernel<E, E> for Binary {
    #[inline(always)]
    fn elements(
        &self,
        _: &mut Context<'_>,
        y: Range<usize>,
        operands: &[Elements<'_, E>],
        constants: &[Elements<'_, E>],
        output: &mut ElementsMut<'_, E>,
    ) {
        let sides = self.sides(operands, constants);
        let (lines, rank) = (sides.each_ref().map(|side| Lines::new(side)), output.shape.dims.rank);
        for_each_line(output, y, |index, axis, line| {
            let operands = lines.map(|side| side.broadcast(rank, index, axis));
            match self.function {
                BinaryFunction::Add => self.zip_line(operands, line, |a, b| a + b),
                BinaryFunction::Sub => self.zip_line(operands, line, |a, b| a - b),
                BinaryFunction::Mul => self.zip_line(operands, line, |a, b| a * b),
                BinaryFunction::Div => self.zip_line(operands, line, |a, b| a / b),
                BinaryFunction::Max => self.zip_line(operands, line, larger),
                BinaryFunction::Min => self.zip_line(operands, line, smaller),
                BinaryFunction::Pow => self.zip_line(operands, line, math::pow),
                BinaryFunction::Mod => self.zip_line(operands, line, math::modulo),
                BinaryFunction::Fmod => self.zip_line(operands, line, |a, b| a % b),
                BinaryFunction::Equal => self.zip_line(operands, line, equal),
                BinaryFunction::Greater => self.zip_line(operands, line, greater),
                BinaryFunction::GreaterOrEqual => self.zip_line(operands, line, greater_or_equal),
            }
        });
    }
}

impl Binary {
    /// `f` of each element of two lines, and then the activation.
    #[inline(always)]
    fn zip_line<E: Element>(
        &self,
        [left, right]: [LineRef<'_, '_, E>; 2],
        mut line: LineMut<'_, E>,
        f: impl Fn(f32, f32) -> f32,
    ) {
        let value = |a: E, b: E| E::narrow(self.activation.apply(f(a.widen(), b.widen()), 0.0));
        let count = line.len();
        if let (Some(line), Some(left), Some(right)) = (line.slice(), left.slice(count), right.slice(count)) {
            line.iter_mut().zip(left).zip(right).for_each(|((r, a), b)| *r = value(*a, *b));
            return;
        }
        for (i, r) in line.iter_mut().enumerate() {
            *r = value(left.get(i), right.get(i));
        }
    }
}

/// `f` of each element of the left and the element of the right operand that broadcasts to it, and then the activation.
#[inline(never)]
pub(crate) fn zip_rows<E: Element>(
    isa: Isa,
    y: Range<usize>,
    left: Rows<'_, E>,
    right: Rows<'_, E>,
    output: &mut RowsMut<'_, E>,
    activation: Activation,
    f: impl Fn(f32, f32) -> f32 + Copy,
) {
    isa.run(Zip { y, left, right, output, activation, f });
}

/// [`zip_rows`] as work for an instruction set.
struct Zip<'a, 'o, 'd, E, F> {
    y: Range<usize>,
    left: Rows<'a, E>,
    right: Rows<'a, E>,
    output: &'o mut RowsMut<'d, E>,
    activation: Activation,
    f: F,
}

impl<E: Element, F: Fn(f32, f32) -> f32 + Copy> Job for Zip<'_, '_, '_, E, F> {
    #[inline(always)]
    #[allow(unsafe_code, reason = "vector instructions")]
    fn run<S: Simd>(self) {
        let Zip { y, left, right, output, activation, f } = self;
        let (a, b, out) = (left.shape, right.shape, output.shape);
        let whole_rows =
            [&a, &b].iter().all(|shape| shape.width == out.width && shape.channels == out.channels);
        let mut rooms = [[0.0; PIECE]; 3];
        let [room_a, room_b, room] = &mut rooms;
        // Rows that are whole on both sides are one pixel.
        let channels = if whole_rows { out.row_stride() } else { out.channels };
        for y in y {
            let row_a = left.row(if a.height == 1 { 0 } else { y });
            let row_b = right.row(if b.height == 1 { 0 } else { y });
            for (first, piece) in pieces(output.row(y), channels) {
                let values = E::draft(piece, room);
                let (first, channel) = (first / channels, first % channels);
                for (x, values) in (first..).zip(values.chunks_mut(channels)) {
                    let [a, b] = [(row_a, &a), (row_b, &b)].map(|(row, shape)| {
                        let x = if shape.width == 1 { 0 } else { x };
                        let pixel = if whole_rows { row } else { pixel(row, shape, x) };
                        let is_whole = E::IS_FLOAT || pixel.len() == 1;
                        if is_whole { pixel } else { &pixel[channel..][..values.len()] }
                    });
                    // SAFETY: this is in `Job::run`, as `floats` asks.
                    let [a, b] = unsafe { [E::floats::<S>(a, room_a), E::floats::<S>(b, room_b)] };
                    zip(a, b, values, f);
                }
                // SAFETY: this is in `Job::run`, as `call` and `keep` ask.
                unsafe {
                    if activation != Activation::None {
                        S::call(Apply { activation, values, slopes: &[] });
                    }
                    E::keep::<S>(piece, room);
                }
            }
        }
    }
}

/// Slices of one element repeat.
#[inline(always)]
fn zip(left: &[f32], right: &[f32], output: &mut [f32], f: impl Fn(f32, f32) -> f32) {
    match (left, right) {
        (&[a], right) if right.len() == output.len() => {
            output.iter_mut().zip(right).for_each(|(r, &b)| *r = f(a, b));
        }
        (left, &[b]) if left.len() == output.len() => {
            output.iter_mut().zip(left).for_each(|(r, &a)| *r = f(a, b));
        }
        (&[a], &[b]) => output.fill(f(a, b)),
        (left, right) => {
            output.iter_mut().zip(left).zip(right).for_each(|((r, &a), &b)| *r = f(a, b));
        }
    }
}

#[inline]
fn larger(a: f32, b: f32) -> f32 {
    if a > b || a.is_nan() { a } else { b }
}

#[inline]
fn smaller(a: f32, b: f32) -> f32 {
    if a < b || a.is_nan() { a } else { b }
}

#[inline]
#[allow(clippy::float_cmp, reason = "as ONNX compares")]
fn equal(a: f32, b: f32) -> f32 {
    f32::from(a == b)
}

#[inline]
fn greater(a: f32, b: f32) -> f32 {
    f32::from(a > b)
}

#[inline]
fn greater_or_equal(a: f32, b: f32) -> f32 {
    f32::from(a >= b)
}
