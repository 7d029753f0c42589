//! Functions of two tensors element by element, with broadcasting.

use core::ops::Range;

use super::activation::Activation;
use super::arch::{Isa, Job, Simd};
use super::element_wise::activate;
use super::elements::{Elements, ElementsMut};
use super::math;
use super::pixels::{is_dense, pixel, pixels_mut};
use super::rows::{Rows, RowsMut};

/// A function of two elements, by its ONNX definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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

/// A function of two tensors, and what follows it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Binary {
    /// The function.
    pub function: BinaryFunction,
    /// Applied to every output element.
    pub activation: Activation,
}

/// Output rows `y` of a function of two images. Each operand has as many rows, columns and channels as the output,
/// or one, which repeats; a constant is given as rows too.
#[inline]
pub fn binary(
    isa: Isa,
    p: &Binary,
    y: Range<usize>,
    left: Rows<'_>,
    right: Rows<'_>,
    output: &mut RowsMut<'_>,
) {
    match p.function {
        BinaryFunction::Add => zip_rows(isa, y.clone(), left, right, output, |a, b| a + b),
        BinaryFunction::Sub => zip_rows(isa, y.clone(), left, right, output, |a, b| a - b),
        BinaryFunction::Mul => zip_rows(isa, y.clone(), left, right, output, |a, b| a * b),
        BinaryFunction::Div => zip_rows(isa, y.clone(), left, right, output, |a, b| a / b),
        BinaryFunction::Max => zip_rows(isa, y.clone(), left, right, output, larger),
        BinaryFunction::Min => zip_rows(isa, y.clone(), left, right, output, smaller),
        BinaryFunction::Pow => zip_rows(isa, y.clone(), left, right, output, math::pow),
    }
    let shape = output.shape;
    for y in y {
        activate(isa, p.activation, output.row(y), &shape);
    }
}

/// Output rows `y` of a function of two tensors that broadcast to the output.
#[inline]
pub fn binary_elements(
    p: &Binary,
    y: Range<usize>,
    left: &Elements<'_>,
    right: &Elements<'_>,
    output: &mut ElementsMut<'_>,
) {
    let rank = output.shape.dims.rank;
    output.fill(y, |index| {
        let [a, b] = [left, right].map(|x| x.at(&x.seen.broadcast(rank, index)));
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
        let whole_rows = [&a, &b]
            .iter()
            .all(|shape| is_dense(shape) && shape.width == out.width && shape.channels == out.channels);
        for y in y {
            let row_a = left.row(if a.height == 1 { 0 } else { y });
            let row_b = right.row(if b.height == 1 { 0 } else { y });
            let result = output.row(y);
            if whole_rows && is_dense(&out) {
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
