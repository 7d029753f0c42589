//! Products of matrices that lie interleaved: the elements of one place, one of each matrix, follow each other. So do the
//! heads of attention, which are the channels of an image whose rows are tokens. A vector then multiplies elements of
//! several matrices at a time, and all that is read and written lies without gaps.
//!
//! Each sum is made in the order in which `mat_mul` makes it, so the bytes are the same.
#![allow(unsafe_code, reason = "vector instructions; each block says why it is sound")]

use core::ops::Range;

use super::arch::{Job, PANEL, SMALL_STACK, Simd};
use super::element::Element;
use super::elements::{Elements, ElementsMut, Index, MAX_RANK};
use super::lines::strides;

/// Products that are summed before the sums are stored.
const CHUNK: usize = 16;
/// The longest pattern of a row of the left matrices.
const PERIOD: usize = 5 * PANEL;
/// Rows of the highest tile.
const ROWS: usize = 6;

/// Matrix products `a · b`, as many as one dimension before the last two has elements.
pub(crate) struct Interleaved<'a, 'o, 'd, E> {
    a: Matrices<'a, E>,
    b: Matrices<'a, E>,
    output: &'o mut ElementsMut<'d, E>,
    /// Rows that are made.
    rows: Range<usize>,
    matrices: usize,
}

/// An operand, whose last two dimensions are those of matrices.
#[derive(Clone, Copy)]
struct Matrices<'a, E> {
    tensor: &'a Elements<'a, E>,
    /// Elements from one index to the next in each dimension. In a ring they do not say where a row begins.
    strides: Index,
}

impl<'a, E: Element> Matrices<'a, E> {
    /// The operand; nothing if its elements lie unevenly within a row.
    fn new(tensor: &'a Elements<'a, E>) -> Option<Self> {
        let row_axis = tensor.seen.rank - 2;
        let strides = match tensor.shape.row_axis {
            Some(axis) if axis == row_axis && tensor.seen == tensor.shape.dims => tensor.shape.strides,
            _ => strides(tensor)?,
        };
        Some(Matrices { tensor, strides })
    }

    /// The number of columns.
    fn columns(&self) -> usize {
        self.tensor.seen.sizes[self.tensor.seen.rank - 1]
    }

    /// Elements from one column to the next.
    fn step(&self) -> usize {
        self.strides[self.tensor.seen.rank - 1]
    }

    /// The place of the first element of a row.
    fn row(&self, row: usize) -> usize {
        let (shape, row_axis) = (&self.tensor.shape, self.tensor.seen.rank - 2);
        if self.tensor.seen != shape.dims {
            return shape.offset + row * self.strides[row_axis];
        }
        let mut index = [0; MAX_RANK];
        index[row_axis] = row;
        shape.position(&index)
    }
}

impl<'a, 'o, 'd, E: Element> Interleaved<'a, 'o, 'd, E> {
    /// Rows `rows` of the products; nothing if the operands or the output lie otherwise.
    pub fn new(
        a: &'a Elements<'a, E>,
        b: &'a Elements<'a, E>,
        rows: Range<usize>,
        output: &'o mut ElementsMut<'d, E>,
    ) -> Option<Self> {
        let shape = output.shape;
        let (rank, sizes) = (shape.dims.rank, shape.dims.sizes);
        if SMALL_STACK || rank < 3 || a.seen.rank != rank || b.seen.rank != rank {
            return None;
        }
        let (row_axis, column_axis) = (rank - 2, rank - 1);
        let mut several = (0..row_axis).filter(|axis| sizes[*axis] > 1);
        let (Some(axis), None) = (several.next(), several.next()) else { return None };
        let matrices = sizes[axis];
        let [a, b] = [Matrices::new(a)?, Matrices::new(b)?];
        let lie_so = shape.row_axis.is_none_or(|rows| rows == row_axis)
            && a.columns() > 0
            && (E::IS_FLOAT || a.columns() <= CHUNK)
            && [a, b].iter().all(|operand| operand.tensor.seen.sizes[..row_axis] == sizes[..row_axis])
            && [a.strides, b.strides, shape.strides].iter().all(|strides| strides[axis] == 1)
            && [b.step(), shape.strides[column_axis]] == [matrices; 2]
            && period(matrices, PANEL) <= PERIOD;
        let rows = if shape.row_axis.is_some() { rows } else { 0..sizes[row_axis] };
        lie_so.then_some(Interleaved { a, b, output, rows, matrices })
    }
}

/// Elements after which both the matrices and the lanes of a vector begin again.
const fn period(matrices: usize, lanes: usize) -> usize {
    let (mut gcd, mut rest) = (matrices, lanes);
    while rest > 0 {
        (gcd, rest) = (rest, gcd % rest);
    }
    matrices / gcd * lanes
}

impl<E: Element> Job for Interleaved<'_, '_, '_, E> {
    #[inline(always)]
    fn run<S: Simd>(self) {
        let Interleaved { a, b, output, rows, matrices } = self;
        let (inner, width, step) = (a.columns(), b.columns() * matrices, a.step());
        let period = period(matrices, S::LANES);
        let mut left = [[[0.0; PERIOD]; CHUNK]; ROWS];
        let mut row = rows.start;
        while row < rows.end {
            let height = match rows.end - row {
                ROWS.. => ROWS,
                3.. => 3,
                _ => 1,
            };
            let mut sums = [core::ptr::null_mut(); ROWS];
            for (i, sums) in sums.iter_mut().enumerate().take(height) {
                let mut index = [0; MAX_RANK];
                index[output.shape.dims.rank - 2] = row + i;
                *sums = output.data.slice(output.shape.position(&index), width).as_mut_ptr();
            }
            for first in (0..inner).step_by(CHUNK) {
                let len = CHUNK.min(inner - first);
                for (i, left) in left.iter_mut().enumerate().take(height) {
                    let start = a.row(row + i) + first * step;
                    for (k, pattern) in left.iter_mut().enumerate().take(len) {
                        let elements = a.tensor.data.slice(start + k * step, matrices);
                        for repeated in pattern[..period].chunks_exact_mut(matrices) {
                            repeated.iter_mut().zip(elements).for_each(|(x, from)| *x = from.widen());
                        }
                    }
                }
                let mut right = [core::ptr::null(); CHUNK];
                for (k, right) in right.iter_mut().enumerate().take(len) {
                    *right = b.tensor.data.slice(b.row(first + k), width).as_ptr();
                }
                let block =
                    InterleavedBlock { left: &left, right: &right, len, sums, period, is_first: first == 0 };
                // SAFETY: this is in `Job::run`. `sums` and `right` are good for `width` elements.
                unsafe {
                    match height {
                        1 => block.add::<S, 1>(width),
                        3 => block.add::<S, 3>(width),
                        _ => block.add::<S, ROWS>(width),
                    }
                }
            }
            row += height;
        }
    }
}

/// Some products of a tile's rows, which are added to their sums.
#[derive(Clone, Copy)]
struct InterleavedBlock<'a, E> {
    left: &'a [[[f32; PERIOD]; CHUNK]; ROWS],
    right: &'a [*const E; CHUNK],
    /// Products of a sum.
    len: usize,
    sums: [*mut E; ROWS],
    period: usize,
    /// Whether no sums are there yet.
    is_first: bool,
}

impl<E: Element> InterleavedBlock<'_, E> {
    /// Adds to `M` rows of this many elements.
    ///
    /// # Safety
    /// In [`Job::run`]. `M` sums and `len` rows on the right are good for `width` elements.
    #[inline(always)]
    unsafe fn add<S: Simd, const M: usize>(self, width: usize) {
        let mut at = 0;
        // SAFETY: all vectors lie before `width`: `# Safety` of this function.
        unsafe {
            // With their factors, four vectors of sums for each row take 29 registers, and two take 15.
            while const { S::REGISTERS >= 32 } && width - at >= const { 4 * S::LANES } {
                self.tile::<S, M, 4>(at, S::LANES);
                at += const { 4 * S::LANES };
            }
            while width - at >= const { 2 * S::LANES } {
                self.tile::<S, M, 2>(at, S::LANES);
                at += const { 2 * S::LANES };
            }
            while width > at {
                self.tile::<S, M, 1>(at, S::LANES.min(width - at));
                at += S::LANES;
            }
        }
    }

    /// Adds to `M` rows of `N` vectors from `at` on. The last has `count` elements.
    ///
    /// # Safety
    /// As of [`InterleavedBlock::add`], for all these elements.
    #[inline(always)]
    unsafe fn tile<S: Simd, const M: usize, const N: usize>(self, at: usize, count: usize) {
        // SAFETY: this is in `Job::run`, and the pointers are good for these elements: `# Safety` of this function. The
        // lanes divide the period, which is no more than `PERIOD`, so a vector that begins in it ends in it.
        unsafe {
            let is_whole = N > 1 || count == S::LANES;
            let mut tile = [[S::splat(0.0); N]; M];
            if !self.is_first {
                for (tile, sums) in tile.iter_mut().zip(&self.sums) {
                    for (v, vector) in tile.iter_mut().enumerate() {
                        let sums = sums.add(at + v * S::LANES);
                        *vector =
                            if is_whole { E::load::<S>(sums) } else { E::load_masked::<S>(sums, count) };
                    }
                }
            }
            let mut phase = [0; N];
            for (v, phase) in phase.iter_mut().enumerate() {
                *phase = (at + v * S::LANES) % self.period;
            }
            for (k, right) in self.right.iter().enumerate().take(self.len) {
                let mut vectors = [S::splat(0.0); N];
                for (v, vector) in vectors.iter_mut().enumerate() {
                    let right = right.add(at + v * S::LANES);
                    *vector = if is_whole { E::load::<S>(right) } else { E::load_masked::<S>(right, count) };
                }
                for (i, tile) in tile.iter_mut().enumerate() {
                    let pattern = self.left[i][k].as_ptr();
                    for v in 0..N {
                        tile[v] = S::mul_add(S::load(pattern.add(phase[v])), vectors[v], tile[v]);
                    }
                }
            }
            for (tile, sums) in tile.iter().zip(self.sums) {
                for (v, vector) in tile.iter().enumerate() {
                    let sums = sums.add(at + v * S::LANES);
                    match is_whole {
                        true => E::store::<S>(sums, *vector),
                        false => E::store_masked::<S>(sums, count, *vector),
                    }
                }
            }
        }
    }
}
