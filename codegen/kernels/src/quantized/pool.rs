//! Pooling of bytes over a window.
//!
//! # Example
//!
//! ```
//! use csdfc_kernels::pool::{Pool, PoolKind};
//! use csdfc_kernels::quantized::Requantize;
//! use csdfc_kernels::quantized::pool::QPool;
//! use csdfc_kernels::rows::RowShape;
//! use csdfc_kernels::span::{Span, SpanMut};
//! use csdfc_kernels::{Context, Isa, RowKernel, Rows, RowsMut};
//!
//! let kind = PoolKind::Average;
//! let pool = QPool {
//!     pool: Pool { kind, kernel: [2, 2], stride: [2, 2], dilation: [1, 1], pads: [0; 4] },
//!     zero_point: 0,
//!     multiplier: 1.0,
//!     requantize: Requantize { zero_point: 0, low: 0, high: 255 },
//! };
//! let input = Rows { data: Span::new(&[1, 2, 3, 4]), shape: RowShape::dense(2, 2, 1, 2) }; // [2, 2, 1]
//! let mut made = [0_u8; 1];
//! let mut output = RowsMut { data: SpanMut::new(&mut made), shape: RowShape::dense(1, 1, 1, 1) }; // [1, 1, 1]
//! pool.rows(&mut Context::alone(Isa::PORTABLE), 0..1, &[input], &[], &mut output);
//! assert_eq!(made, [2]); // 2.5, of two equally near integers the even one
//! ```

use core::ops::Range;

use super::super::arch::{Job, PANEL, Simd};
use super::super::elements::{Elements, ElementsMut};
use super::super::kernel::{Context, ElementKernel, RowKernel};
use super::super::pixels::{pixel, pixel_mut};
use super::super::pool::{Pool, PoolKind, Taps, divisor};
use super::super::rows::{Rows, RowsMut};
use super::integers::Integers;
use super::{Baseline, Requantize};

/// A pooling window of bytes. Of kind [`PoolKind::Max`] it makes the largest element of the window, in the scale and
/// with the zero point of the input. For an average, [`Requantize`] makes an element from the exact sum of `q −
/// zero_point` over the window, with the multiplier `multiplier / count`, a quotient of floats. A window as large as
/// the image makes the mean of every channel.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct QPool {
    /// The window. Not of kind [`PoolKind::Lp`].
    pub pool: Pool,
    /// The input's element that stands for 0.
    pub zero_point: u8,
    /// The input's scale divided by the output's.
    pub multiplier: f32,
    /// How sums become elements.
    pub requantize: Requantize,
}

impl QPool {
    /// Whether the window's largest element is made, and not its mean.
    ///
    /// # Panics
    /// If it is neither.
    #[inline]
    fn is_max(&self) -> bool {
        assert!(!matches!(self.pool.kind, PoolKind::Lp { .. }), "the kind of a pooling of bytes");
        self.pool.kind == PoolKind::Max
    }

    /// The multiplier of a window.
    #[inline]
    fn multiplier(&self, rows: &Taps, columns: &Taps) -> f32 {
        self.multiplier / divisor(self.pool.kind, rows, columns).max(1) as f32
    }

    /// The correction of a sum for the zero points of `taps` taps.
    #[inline]
    fn start(&self, taps: usize) -> i32 {
        (taps as i32).wrapping_mul(-i32::from(self.zero_point))
    }
}

/// One operand, by rows.
impl RowKernel<u8, u8> for QPool {
    /// # Panics
    /// Also if the window is of another kind.
    fn rows(
        &self,
        context: &mut Context<'_>,
        y: Range<usize>,
        operands: &[Rows<'_, u8>],
        _: &[Rows<'_, u8>],
        output: &mut RowsMut<'_, u8>,
    ) {
        let input = operands[0];
        match self.is_max() {
            true => context.isa.run(Largest { p: self, y, input, output }),
            false => context.isa.run(Mean { p: self, y, input, output }),
        }
    }
}

/// The largest elements as work for an instruction set.
struct Largest<'a, 'o, 'd> {
    p: &'a QPool,
    y: Range<usize>,
    input: Rows<'a, u8>,
    output: &'o mut RowsMut<'d, u8>,
}

impl Job for Largest<'_, '_, '_> {
    #[inline(always)]
    fn run<S: Simd>(self) {
        let Largest { p: QPool { pool, .. }, y, input, output } = self;
        let (shape, out) = (input.shape, output.shape);
        for y in y {
            let rows = Taps::of(pool, 0, y, shape.height);
            let row_out = output.row(y);
            for x in 0..out.width {
                let columns = Taps::of(pool, 1, x, shape.width);
                let result = pixel_mut(row_out, &out, x);
                result.fill(0);
                for ky in rows.inside.clone() {
                    let row = input.row(rows.at(ky));
                    for kx in columns.inside.clone() {
                        let pixel = pixel(row, &shape, columns.at(kx));
                        // SAFETY: every processor has the instructions of the baseline.
                        unsafe { Baseline::keep_largest(result, pixel) };
                    }
                }
            }
        }
    }
}

/// The means as work for an instruction set.
struct Mean<'a, 'o, 'd> {
    p: &'a QPool,
    y: Range<usize>,
    input: Rows<'a, u8>,
    output: &'o mut RowsMut<'d, u8>,
}

impl Job for Mean<'_, '_, '_> {
    #[inline(always)]
    fn run<S: Simd>(self) {
        let Mean { p, y, input, output } = self;
        let (shape, out) = (input.shape, output.shape);
        for y in y {
            let rows = Taps::of(&p.pool, 0, y, shape.height);
            let row_out = output.row(y);
            for x in 0..out.width {
                let columns = Taps::of(&p.pool, 1, x, shape.width);
                let multiplier = p.multiplier(&rows, &columns);
                let start = p.start(rows.inside.len() * columns.inside.len());
                let between = p.pool.dilation[1] * shape.channels;
                let result = pixel_mut(row_out, &out, x);
                for (block, result) in result.chunks_mut(PANEL).enumerate() {
                    let channels = result.len();
                    let mut sums = [start; PANEL];
                    if !columns.inside.is_empty() {
                        let first = columns.at(columns.inside.start) * shape.channels + block * PANEL;
                        let reach = (columns.inside.len() - 1) * between + channels;
                        let rows = rows.inside.clone().map(|ky| &input.row(rows.at(ky))[first..][..reach]);
                        // SAFETY: every processor has the instructions of the baseline.
                        unsafe {
                            Baseline::add_pixels(&mut sums, rows, (columns.inside.len(), between), channels)
                        };
                    }
                    let mut made = [0; PANEL];
                    requantize::<Baseline>(p.requantize, &sums, multiplier, &mut made, channels);
                    result.copy_from_slice(&made[..channels]);
                }
            }
        }
    }
}

/// Makes elements of the first sums.
#[inline(always)]
fn requantize<S: Integers>(
    how: Requantize,
    sums: &[i32; PANEL],
    multiplier: f32,
    made: &mut [u8; PANEL],
    count: usize,
) {
    // Vectors are loaded with the lowest byte of each number first.
    let (sums, multipliers) = (sums.map(i32::to_le), [multiplier.to_bits().to_le(); PANEL]);
    for first in (0..count).step_by(S::LANES) {
        let (sums, scales) = (sums[first..].as_ptr().cast(), multipliers.as_ptr().cast());
        // SAFETY: every processor has the instructions of the baseline, and a vector of sums is there, as many multipliers, and
        // room for as many elements, since vectors divide a panel.
        unsafe {
            let (sums, scales) = (S::sums(sums, S::LANES), S::scales(scales, S::LANES));
            S::requantize(sums, scales, &S::clamp(how), made[first..].as_mut_ptr(), S::LANES);
        }
    }
}

/// One operand, `[N, C, H, W]`, whatever the batch; the output may be without its last dimensions if these are 1.
impl ElementKernel<u8, u8> for QPool {
    /// # Panics
    /// Also if the window is of another kind.
    fn elements(
        &self,
        _: &mut Context<'_>,
        y: Range<usize>,
        operands: &[Elements<'_, u8>],
        _: &[Elements<'_, u8>],
        output: &mut ElementsMut<'_, u8>,
    ) {
        let (input, is_max) = (&operands[0], self.is_max());
        output.fill(y, |index| {
            let rows = Taps::of(&self.pool, 0, index[2], input.seen.sizes[2]);
            let columns = Taps::of(&self.pool, 1, index[3], input.seen.sizes[3]);
            let (mut largest, mut sum) = (0, self.start(rows.inside.len() * columns.inside.len()));
            let mut at = *index;
            for ky in rows.inside.clone() {
                at[2] = rows.at(ky);
                for kx in columns.inside.clone() {
                    at[3] = columns.at(kx);
                    let q = input.at(&at);
                    largest = q.max(largest);
                    sum = sum.wrapping_add(i32::from(q));
                }
            }
            if is_max { largest } else { self.requantize.apply(sum, self.multiplier(&rows, &columns)) }
        });
    }
}
