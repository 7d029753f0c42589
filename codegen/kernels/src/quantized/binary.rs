//! Functions of two tensors of bytes element by element, with broadcasting.
//!
//! # Example
//!
//! ```
//! use csdfc_kernels::quantized::binary::{QBinary, QFunction};
//! use csdfc_kernels::rows::RowShape;
//! use csdfc_kernels::span::{Span, SpanMut};
//! use csdfc_kernels::{Context, Isa, RowKernel, Rows, RowsMut};
//!
//! let shape = RowShape::dense(1, 1, 2, 1); // [1, 1, 2]
//! let [a, b] = [&[1, 2], &[30, 200]].map(|data| Rows { data: Span::new(data), shape });
//! let mut made = [0_u8; 2];
//! let mut output = RowsMut { data: SpanMut::new(&mut made), shape };
//! let add = QBinary {
//!     function: QFunction::Sum,
//!     constant_first: false,
//!     scales: [1.0, 0.5, 1.0],
//!     zero_points: [0, 0, 0],
//!     low: 0,
//!     high: 100,
//! };
//! add.rows(&mut Context::alone(Isa::PORTABLE), 0..1, &[a, b], &[], &mut output);
//! assert_eq!(made, [16, 100]);
//! ```

use core::ops::Range;

use super::super::arch::{Job, Simd};
use super::super::elements::{Elements, ElementsMut};
use super::super::kernel::{Context, ElementKernel, RowKernel};
use super::super::pixels::pixel;
use super::super::rows::{Rows, RowsMut};
use super::integers::{Integers, ScaledSum};
use super::{Baseline, Requantize};

/// A function of the numbers that two elements stand for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub enum QFunction {
    /// Left and right.
    Sum,
    /// Left less right.
    Difference,
    /// Left times right.
    Product,
}

/// A function of two tensors of bytes. The tensors are two operands, or an operand and a constant. The constant comes
/// second or, if [`QBinary::constant_first`], first.
///
/// With `a` and `b` the elements of left and right, and `s` and `z` the scales and zero points:
///
/// - *Sum.* `clamp(round_half_even(fixed + a·ra + b·rb), low, high)`, where `ra = s0 / s2`, `rb = s1 / s2` and `fixed =
///   z2 − (ra·z0 + rb·z1)`: floats, with each operation rounded, from left to right, except `ra·z0`, which is rounded
///   only with the sum. ONNX Runtime does the same.
/// - *Difference.* The same with −`rb` for `rb`.
/// - *Product.* As [`Requantize`] makes an element of `(a − z0)·(b − z1)`, with the multiplier `s0·s1 / s2`.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct QBinary {
    /// The function.
    pub function: QFunction,
    /// Whether the constant, if there is one, is on the left.
    pub constant_first: bool,
    /// Scales of left, right and output.
    pub scales: [f32; 3],
    /// Zero points of left, right and output.
    pub zero_points: [u8; 3],
    /// Smallest element of the output.
    pub low: u8,
    /// Largest element of the output, at least `low`.
    pub high: u8,
}

impl QBinary {
    /// Left and right.
    #[inline]
    fn sides<X: Copy>(&self, operands: &[X], constants: &[X]) -> [X; 2] {
        match (operands, constants) {
            (&[operand], &[constant]) if self.constant_first => [constant, operand],
            (&[operand], &[constant]) => [operand, constant],
            _ => [operands[0], operands[1]],
        }
    }

    /// The function, if it is a sum or a difference.
    #[inline]
    fn sum(&self) -> ScaledSum {
        let [a, b, c] = self.scales;
        let sign = if self.function == QFunction::Difference { -1.0 } else { 1.0 };
        let [left, right] = [a / c, sign * (b / c)];
        let [za, zb, zc] = self.zero_points.map(f32::from);
        // The product is exact in 64 bits.
        let zeros = (f64::from(left) * f64::from(za) + f64::from(right * zb)) as f32;
        let how = Requantize { zero_point: 0, low: self.low, high: self.high };
        ScaledSum { fixed: zc - zeros, left, right, how }
    }

    /// The function, if it is a product.
    #[inline]
    fn product(&self) -> Product {
        let ([a, b, c], [za, zb, zc]) = (self.scales, self.zero_points);
        let how = Requantize { zero_point: zc, low: self.low, high: self.high };
        Product { zero_points: [za, zb].map(i32::from), multiplier: a * b / c, how }
    }
}

/// A function of two bytes.
trait Function: Copy {
    fn apply(self, a: u8, b: u8) -> u8;

    /// The same of as many pairs.
    #[inline(always)]
    fn apply_all(self, left: &[u8], right: &[u8], made: &mut [u8]) {
        made.iter_mut().zip(left).zip(right).for_each(|((made, &a), &b)| *made = self.apply(a, b));
    }
}

impl Function for ScaledSum {
    #[inline(always)]
    fn apply(self, a: u8, b: u8) -> u8 {
        self.of(a, b)
    }

    #[inline(always)]
    fn apply_all(self, left: &[u8], right: &[u8], made: &mut [u8]) {
        // SAFETY: every processor has the instructions of the baseline.
        unsafe { Baseline::add_scaled(&self, left, right, made) }
    }
}

/// `round((a − z0) · (b − z1) · multiplier)`.
#[derive(Clone, Copy)]
struct Product {
    zero_points: [i32; 2],
    multiplier: f32,
    how: Requantize,
}

impl Function for Product {
    #[inline(always)]
    fn apply(self, a: u8, b: u8) -> u8 {
        let [za, zb] = self.zero_points;
        self.how.apply((i32::from(a) - za) * (i32::from(b) - zb), self.multiplier)
    }
}

/// Images: each side has as many rows, columns and channels as the output, or one, which repeats.
impl RowKernel<u8, u8> for QBinary {
    fn rows(
        &self,
        context: &mut Context<'_>,
        y: Range<usize>,
        operands: &[Rows<'_, u8>],
        constants: &[Rows<'_, u8>],
        output: &mut RowsMut<'_, u8>,
    ) {
        let [left, right] = self.sides(operands, constants);
        match self.function {
            QFunction::Product => context.isa.run(Zip { y, left, right, output, f: self.product() }),
            _ => context.isa.run(Zip { y, left, right, output, f: self.sum() }),
        }
    }
}

/// Tensors of any rank that broadcast to the output.
impl ElementKernel<u8, u8> for QBinary {
    fn elements(
        &self,
        _: &mut Context<'_>,
        y: Range<usize>,
        operands: &[Elements<'_, u8>],
        constants: &[Elements<'_, u8>],
        output: &mut ElementsMut<'_, u8>,
    ) {
        let [left, right] = self.sides(operands, constants);
        match self.function {
            QFunction::Product => zip_elements(y, &left, &right, output, self.product()),
            _ => zip_elements(y, &left, &right, output, self.sum()),
        }
    }
}

fn zip_elements(
    y: Range<usize>,
    left: &Elements<'_, u8>,
    right: &Elements<'_, u8>,
    output: &mut ElementsMut<'_, u8>,
    f: impl Function,
) {
    let rank = output.shape.dims.rank;
    output.fill(y, |index| {
        let [a, b] = [left, right].map(|x| x.at(&x.seen.broadcast(rank, index)));
        f.apply(a, b)
    });
}

/// A function of rows as work for an instruction set.
struct Zip<'a, 'o, 'd, F> {
    y: Range<usize>,
    left: Rows<'a, u8>,
    right: Rows<'a, u8>,
    output: &'o mut RowsMut<'d, u8>,
    f: F,
}

impl<F: Function> Job for Zip<'_, '_, '_, F> {
    #[inline(always)]
    fn run<S: Simd>(self) {
        let Zip { y, left, right, output, f } = self;
        let (a, b, out) = (left.shape, right.shape, output.shape);
        let whole_rows =
            [&a, &b].iter().all(|shape| shape.width == out.width && shape.channels == out.channels);
        for y in y {
            let row_a = left.row(if a.height == 1 { 0 } else { y });
            let row_b = right.row(if b.height == 1 { 0 } else { y });
            let row = output.row(y);
            if whole_rows {
                zip(row_a, row_b, row, f);
                continue;
            }
            for (x, result) in row.chunks_exact_mut(out.channels).enumerate() {
                let [a, b] = [(row_a, &a), (row_b, &b)]
                    .map(|(row, shape)| pixel(row, shape, if shape.width == 1 { 0 } else { x }));
                zip(a, b, result, f);
            }
        }
    }
}

/// Slices of one element repeat.
#[inline(always)]
fn zip(left: &[u8], right: &[u8], output: &mut [u8], f: impl Function) {
    match (left, right) {
        (&[a], right) if right.len() == output.len() => {
            output.iter_mut().zip(right).for_each(|(r, &b)| *r = f.apply(a, b));
        }
        (left, &[b]) if left.len() == output.len() => {
            output.iter_mut().zip(left).for_each(|(r, &a)| *r = f.apply(a, b));
        }
        (&[a], &[b]) => output.fill(f.apply(a, b)),
        (left, right) => f.apply_all(left, right, output),
    }
}
