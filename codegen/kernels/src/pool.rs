//! Pooling over a window.
//!
//! # Example
//!
//! ```
//! use csdfc_kernels::pool::{Pool, PoolKind};
//! use csdfc_kernels::rows::RowShape;
//! use csdfc_kernels::span::{Span, SpanMut};
//! use csdfc_kernels::{Context, Isa, RowKernel, Rows, RowsMut};
//!
//! let pool = Pool { kind: PoolKind::Max, kernel: [2, 2], stride: [2, 2], dilation: [1, 1], pads: [0; 4] };
//! let input = Rows { data: Span::new(&[1.0, 2.0, 3.0, 4.0]), shape: RowShape::dense(2, 2, 1, 2) }; // [2, 2, 1]
//! let mut made = [0.0; 1];
//! let mut output = RowsMut { data: SpanMut::new(&mut made), shape: RowShape::dense(1, 1, 1, 1) }; // [1, 1, 1]
//! pool.rows(&mut Context::alone(Isa::PORTABLE), 0..1, &[input], &[], &mut output);
//! assert_eq!(made, [4.0]);
//! ```

use core::ops::Range;

use super::arch::{Job, Simd};
use super::element::{Element, PIECE};
use super::elements::{Elements, ElementsMut};
use super::kernel::{Context, ElementKernel, RowKernel};
use super::math;
use super::pixels::{pixel, pixel_mut};
use super::rows::{Rows, RowsMut};

/// A pooling window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Pool {
    /// What becomes of a window.
    pub kind: PoolKind,
    /// Height and width of the window.
    pub kernel: [usize; 2],
    /// Stride in y and x.
    pub stride: [usize; 2],
    /// Dilation in y and x.
    pub dilation: [usize; 2],
    /// `[top, left, bottom, right]`.
    pub pads: [usize; 4],
}

/// What becomes of a pooling window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub enum PoolKind {
    /// Largest element.
    Max,
    /// Mean of the elements that lie in the input.
    Average,
    /// Mean over the padding too, but not over what hangs beyond it because the output size was rounded up.
    AverageWithPad,
    /// `(Σ |x|^p)^(1/p)`.
    Lp {
        /// The exponent.
        p: i64,
    },
}

/// One operand, by rows.
impl<E: Element> RowKernel<E, E> for Pool {
    // Inlined, its loops would be unrolled anew for each layer.
    #[inline(never)]
    fn rows(
        &self,
        context: &mut Context<'_>,
        y: Range<usize>,
        operands: &[Rows<'_, E>],
        _: &[Rows<'_, E>],
        output: &mut RowsMut<'_, E>,
    ) {
        context.isa.run(PoolRows { p: self, y, input: operands[0], output });
    }
}

/// A pooling by rows as work for an instruction set.
struct PoolRows<'a, 'o, 'd, E> {
    p: &'a Pool,
    y: Range<usize>,
    input: Rows<'a, E>,
    output: &'o mut RowsMut<'d, E>,
}

impl<E: Element> Job for PoolRows<'_, '_, '_, E> {
    #[inline(always)]
    #[allow(unsafe_code, reason = "vector instructions")]
    fn run<S: Simd>(self) {
        let PoolRows { p, y, input, output } = self;
        let (shape, out) = (input.shape, output.shape);
        let (mut room, mut room_in) = ([0.0; PIECE], [0.0; PIECE]);
        for y in y {
            let rows = Taps::of(p, 0, y, shape.height);
            let row_out = output.row(y);
            for x in 0..out.width {
                let columns = Taps::of(p, 1, x, shape.width);
                let mut first = 0;
                while first < out.channels {
                    let part = first..out.channels.min(first.saturating_add(E::MAX_PIECE));
                    let result = &mut pixel_mut(row_out, &out, x)[part.clone()];
                    let values = E::draft(result, &mut room);
                    values.fill(p.kind.start());
                    for ky in rows.inside.clone() {
                        let row = input.row(rows.at(ky));
                        for kx in columns.inside.clone() {
                            let pixel = pixel(row, &shape, columns.at(kx));
                            let pixel = &pixel[part.clone()];
                            // SAFETY: this is in `Job::run`, as `floats` asks.
                            p.kind.accumulate(values, unsafe { E::floats::<S>(pixel, &mut room_in) });
                        }
                    }
                    p.kind.finish(values, divisor(p.kind, &rows, &columns));
                    // SAFETY: this is in `Job::run`, as `keep` asks.
                    unsafe { E::keep::<S>(result, &room) }
                    first = part.end;
                }
            }
        }
    }
}

/// One operand, `[N, C, H, W]`, whatever the batch.
impl<E: Element> ElementKernel<E, E> for Pool {
    #[inline]
    fn elements(
        &self,
        _: &mut Context<'_>,
        y: Range<usize>,
        operands: &[Elements<'_, E>],
        _: &[Elements<'_, E>],
        output: &mut ElementsMut<'_, E>,
    ) {
        let input = &operands[0];
        output.fill(y, |index| {
            let rows = Taps::of(self, 0, index[2], input.seen.sizes[2]);
            let columns = Taps::of(self, 1, index[3], input.seen.sizes[3]);
            let mut result = [self.kind.start()];
            let mut at = *index;
            for ky in rows.inside.clone() {
                at[2] = rows.at(ky);
                for kx in columns.inside.clone() {
                    at[3] = columns.at(kx);
                    self.kind.accumulate(&mut result, &[input.at(&at).widen()]);
                }
            }
            self.kind.finish(&mut result, divisor(self.kind, &rows, &columns));
            E::narrow(result[0])
        });
    }
}

/// The taps of a window in one direction.
pub(crate) struct Taps {
    /// Those that lie in the input.
    pub inside: Range<usize>,
    /// How many lie in the input or its padding.
    padded: usize,
    /// Input coordinate of tap 0, plus the padding.
    start: usize,
    dilation: usize,
    before: usize,
}

impl Taps {
    /// Those of an output position; `axis` is 0 for rows and 1 for columns.
    #[inline]
    pub fn of(p: &Pool, axis: usize, position: usize, size: usize) -> Self {
        let (kernel, dilation) = (p.kernel[axis], p.dilation[axis]);
        let (before, after) = (p.pads[axis], p.pads[axis + 2]);
        let start = position * p.stride[axis];
        // Tap k lies at `start + k·dilation` of the padded input.
        let below = |end: usize| end.saturating_sub(start).div_ceil(dilation).min(kernel);
        Taps {
            inside: below(before)..below(before + size),
            padded: below(before + size + after),
            start,
            dilation,
            before,
        }
    }

    /// Where a tap that lies in the input lies there.
    #[inline]
    pub fn at(&self, tap: usize) -> usize {
        self.start + tap * self.dilation - self.before
    }
}

/// Elements that the mean of a window is taken of.
#[inline]
pub(crate) fn divisor(kind: PoolKind, rows: &Taps, columns: &Taps) -> usize {
    match kind {
        PoolKind::AverageWithPad => rows.padded * columns.padded,
        _ => rows.inside.len() * columns.inside.len(),
    }
}

impl PoolKind {
    #[inline]
    fn start(self) -> f32 {
        match self {
            PoolKind::Max => f32::NEG_INFINITY,
            PoolKind::Average | PoolKind::AverageWithPad | PoolKind::Lp { .. } => 0.0,
        }
    }

    #[inline(always)]
    fn accumulate(self, result: &mut [f32], pixel: &[f32]) {
        let pairs = result.iter_mut().zip(pixel);
        match self {
            PoolKind::Max => pairs.for_each(|(r, &x)| *r = if x > *r { x } else { *r }),
            PoolKind::Average | PoolKind::AverageWithPad => pairs.for_each(|(r, &x)| *r += x),
            PoolKind::Lp { p: 1 } => pairs.for_each(|(r, &x)| *r += x.abs()),
            PoolKind::Lp { p: 2 } => pairs.for_each(|(r, &x)| *r += x * x),
            PoolKind::Lp { p } => pairs.for_each(|(r, &x)| *r += math::pow(x.abs(), p as f32)),
        }
    }

    #[inline]
    fn finish(self, result: &mut [f32], divisor: usize) {
        match self {
            PoolKind::Max | PoolKind::Lp { p: 1 } => {}
            PoolKind::Average | PoolKind::AverageWithPad => {
                let divisor = divisor.max(1) as f32;
                result.iter_mut().for_each(|r| *r /= divisor);
            }
            PoolKind::Lp { p: 2 } => result.iter_mut().for_each(|r| *r = math::sqrt(*r)),
            PoolKind::Lp { p } => result.iter_mut().for_each(|r| *r = math::pow(*r, 1.0 / p as f32)),
        }
    }
}
