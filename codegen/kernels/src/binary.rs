//! Functions of two tensors element by element, with broadcasting.

use core::ops::Range;

use super::activation::Activation;
use super::arch::{Isa, Job, Simd};
use super::element_wise::activate;
use super::elements::{Elements, ElementsMut};
use super::kernel::{Context, ElementKernel, RowKernel};
use super::math;
use super::pixels::{pixel, pixels_mut};
use super::rows::{Rows, RowsMut};

/// A function of two elements, by its ONNX definition.
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
}

/// A function of two tensors, and what follows it. They are two operands, or one operand and one constant, which
/// comes second or, if [`Binary::constant_first`], first.
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
impl RowKernel for Binary {
    #[inline]
    fn rows(
        &self,
        context: &mut Context<'_>,
        y: Range<usize>,
        operands: &[Rows<'_>],
        constants: &[Rows<'_>],
        output: &mut RowsMut<'_>,
    ) {
        let (p, isa, [left, right]) = (self, context.isa, self.sides(operands, constants));
        match p.function {
            BinaryFunction::Add => zip_rows(isa, y.clone(), left, right, output, |a, b| a + b),
            BinaryFunction::Sub => zip_rows(isa, y.clone(), left, right, output, |a, b| a - b),
            BinaryFunction::Mul => zip_rows(isa, y.clone(), left, right, output, |a, b| a * b),
            BinaryFunction::Div => zip_rows(isa, y.clone(), left, right, output, |a, b| a / b),
            BinaryFunction::Max => zip_rows(isa, y.clone(), left, right, output, larger),
            BinaryFunction::Min => zip_rows(isa, y.clone(), left, right, output, smaller),
            BinaryFunction::Pow => zip_rows(isa, y.clone(), left, right, output, math::pow),
        }
        for y in y {
            activate(isa, p.activation, output.row(y));
        }
    }
}

/// Tensors of any rank that broadcast to the output.
impl ElementKernel for Binary {
    #[inline]
    fn elements(
        &self,
        _: &mut Context<'_>,
        y: Range<usize>,
        operands: &[Elements<'_>],
        constants: &[Elements<'_>],
        output: &mut ElementsMut<'_>,
    ) {
        let (p, [left, right]) = (self, self.sides(operands, constants));
        let rank = output.shape.dims.rank;
        output.fill(y, |index| {
            let [a, b] = [&left, &right].map(|x| x.at(&x.seen.broadcast(rank, index)));
            let value = match p.function {
                BinaryFunction::Add => a + b,
                BinaryFunction::Sub => a - b,
                BinaryFunction::Mul => a * b,
                BinaryFunction::Div => a / b,
                BinaryFunction::Max => larger(a, b),
                BinaryFunction::Min => smaller(a, b),
                BinaryFunction::Pow => math::pow(a, b),
            };
            p.activation.apply(value, 0.0)
        });
    }
}

/// `f` of each element of the left and the element of the right operand that broadcasts to it.
#[inline]
pub(crate) fn zip_rows(
    isa: Isa,
    y: Range<usize>,
    left: Rows<'_>,
    right: Rows<'_>,
    output: &mut RowsMut<'_>,
    f: impl Fn(f32, f32) -> f32 + Copy,
) {
    isa.run(Zip { y, left, right, output, f });
}

/// [`zip_rows`] as work for an instruction set.
struct Zip<'a, 'o, 'd, F> {
    y: Range<usize>,
    left: Rows<'a>,
    right: Rows<'a>,
    output: &'o mut RowsMut<'d>,
    f: F,
}

impl<F: Fn(f32, f32) -> f32 + Copy> Job for Zip<'_, '_, '_, F> {
    #[inline(always)]
    fn run<S: Simd>(self) {
        let Zip { y, left, right, output, f } = self;
        let (a, b, out) = (left.shape, right.shape, output.shape);
        let whole_rows =
            [&a, &b].iter().all(|shape| shape.width == out.width && shape.channels == out.channels);
        for y in y {
            let row_a = left.row(if a.height == 1 { 0 } else { y });
            let row_b = right.row(if b.height == 1 { 0 } else { y });
            let result = output.row(y);
            if whole_rows {
                zip(row_a, row_b, result, f);
                continue;
            }
            for (x, result) in pixels_mut(result, &out).enumerate() {
                let pixel_a = pixel(row_a, &a, if a.width == 1 { 0 } else { x });
                let pixel_b = pixel(row_b, &b, if b.width == 1 { 0 } else { x });
                zip(pixel_a, pixel_b, result, f);
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
