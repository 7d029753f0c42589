//! Matrix products of two tensors.
//!
//! # Example
//!
//! ```
//! use csdfc_kernels::mat_mul::MatMul;
//! use csdfc_kernels::{Context, ElementKernel, Elements, ElementsMut, Isa};
//!
//! let a = Elements::dense(&[1.0, 2.0, 3.0, 4.0], &[2, 2]);
//! let b = Elements::dense(&[10.0, 100.0], &[2, 1]);
//! let mut made = [0.0; 2];
//! let mut output = ElementsMut::dense(&mut made, &[2, 1]);
//! MatMul.elements(&mut Context::alone(Isa::PORTABLE), 0..1, &[a, b], &[], &mut output);
//! assert_eq!(made, [210.0, 430.0]);
//! ```
#![allow(unsafe_code, reason = "vector instructions; each block says why it is sound")]

use core::ops::Range;

use super::arch::{Isa, Job, PANEL, Simd};
use super::element::Element;
use super::elements::{Dims, Elements, ElementsMut, Index};
use super::interleaved::Interleaved;
use super::kernel::{Context, ElementKernel};
use super::lines::{LineMut, strides};
use super::tile::{TileWork, accumulate, call, panel_vectors};

/// `a · b` of two operands.
#[derive(Debug, Clone, Copy)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct MatMul;

/// Two operands.
impl<E: Element> ElementKernel<E, E> for MatMul {
    #[inline]
    fn elements(
        &self,
        context: &mut Context<'_>,
        y: Range<usize>,
        operands: &[Elements<'_, E>],
        _: &[Elements<'_, E>],
        output: &mut ElementsMut<'_, E>,
    ) {
        mat_mul(context.isa, y, &operands[0], &operands[1], output);
    }
}

/// Makes rows `y` of `a · b` over the last two dimensions of the operands as seen; the other dimensions broadcast. A
/// first operand of rank 1 is a row, and a second operand of rank 1 is a column; the output lacks that dimension. An
/// output that is one row is made whole.
///
/// # Panics
/// If a slice is shorter than the shapes say.
fn mat_mul<E: Element>(
    isa: Isa,
    y: Range<usize>,
    a: &Elements<'_, E>,
    b: &Elements<'_, E>,
    output: &mut ElementsMut<'_, E>,
) {
    if let Some(product) = Interleaved::new(a, b, y.clone(), output) {
        return isa.run(product);
    }
    let (a_batch, b_batch) = (a.seen.rank.saturating_sub(2), b.seen.rank.saturating_sub(2));
    let batch = a_batch.max(b_batch);
    let shape = output.shape.dims;
    let whole = Dims::new(&shape.sizes[..batch]);
    whole.for_each(|index| {
        // The rows may count matrices, or rows of each.
        let axis = output.shape.row_axis;
        if axis.is_some_and(|axis| axis < batch && !y.contains(&index[axis])) {
            return;
        }
        let outer = |tensor: &Elements<'_, E>, rank: usize| {
            Dims::new(&tensor.seen.sizes[..rank]).broadcast(batch, index)
        };
        let a_axes = [a.seen.rank.checked_sub(2), a.seen.rank.checked_sub(1)];
        let b_axes = if b.seen.rank == 1 { [Some(0), None] } else { [Some(b_batch), Some(b_batch + 1)] };
        let row = a_axes[0].map(|_| batch);
        let column = b_axes[1].map(|_| batch + usize::from(row.is_some()));
        let all =
            |tensor: &Elements<'_, E>, axis: Option<usize>| 0..axis.map_or(1, |axis| tensor.seen.sizes[axis]);
        let rows = if row.is_some() && axis == row { y.clone() } else { all(a, a_axes[0]) };
        let left = Matrix::new(a, outer(a, a_batch), a_axes, rows.clone());
        let right = Matrix::new(b, outer(b, b_batch), b_axes, all(b, b_axes[0]));
        isa.run(Product { a: left, b: right, rows, output, index: *index, axes: [row, column] });
    });
}

/// Products that are summed before the sums are stored.
const CHUNK: usize = 64;

/// Columns of the widest tile.
const COLUMNS: usize = 2 * PANEL;

/// A matrix within a tensor.
#[derive(Clone, Copy)]
struct Matrix<'a, E> {
    tensor: &'a Elements<'a, E>,
    /// Index of its first element.
    index: Index,
    /// The dimensions of its rows and columns; without one there is a single row or column.
    axes: [Option<usize>; 2],
    /// If rows and columns are evenly spaced: the first of the rows that are read, the place of its first element, and
    /// the distances of rows and of columns.
    even: Option<(usize, usize, [usize; 2])>,
}

impl<'a, E: Element> Matrix<'a, E> {
    /// The matrix at this index, of which these rows are read.
    fn new(tensor: &'a Elements<'a, E>, index: Index, axes: [Option<usize>; 2], rows: Range<usize>) -> Self {
        let shape = &tensor.shape;
        let own = tensor.seen == shape.dims;
        // Whether these rows lie in the ring without a break.
        let unbroken = |rows: &Range<usize>| {
            (shape.first + rows.start) % shape.ring_rows + rows.len() <= shape.ring_rows
        };
        let straight = match shape.row_axis {
            axis @ Some(_) if axis == axes[0] => unbroken(&rows),
            Some(axis) if axes[1] == Some(axis) => unbroken(&(0..shape.dims.sizes[axis])),
            _ => true,
        };
        let mut first = index;
        if let Some(axis) = axes[0] {
            first[axis] = rows.start;
        }
        let even = if own && straight {
            Some((shape.position(&first), shape.strides))
        } else {
            // Seen in other dimensions, they may be even, too.
            let place =
                |strides: Index| first.iter().zip(&strides).map(|(i, stride)| i * stride).sum::<usize>();
            strides(tensor).map(|strides| (shape.offset + place(strides), strides))
        };
        let even = even.map(|(start, strides)| {
            (rows.start, start, axes.map(|axis| axis.map_or(0, |axis| strides[axis])))
        });
        Matrix { tensor, index, axes, even }
    }

    fn size(&self, axis: usize) -> usize {
        self.axes[axis].map_or(1, |axis| self.tensor.seen.sizes[axis])
    }

    #[inline(always)]
    fn get(&self, row: usize, column: usize) -> E {
        if let Some((first, start, strides)) = self.even {
            return self.tensor.element(start + (row - first) * strides[0] + column * strides[1]);
        }
        let mut index = self.index;
        for (axis, at) in self.axes.into_iter().zip([row, column]) {
            if let Some(axis) = axis {
                index[axis] = at;
            }
        }
        self.tensor.at(&index)
    }

    /// Writes the elements of rows from `row` on and of `columns` as floats, a row into each array.
    #[inline(never)]
    fn widen<const N: usize>(&self, into: &mut [[f32; N]], row: usize, columns: Range<usize>) {
        for (i, to) in into.iter_mut().enumerate() {
            if let Some((first, start, [down, 1])) = self.even {
                let from = start + (row + i - first) * down + columns.start;
                let from = self.tensor.data.slice(from, columns.len());
                to.iter_mut().zip(from).for_each(|(x, from)| *x = from.widen());
                continue;
            }
            for (x, column) in to.iter_mut().zip(columns.clone()) {
                *x = self.get(row + i, column).widen();
            }
        }
    }
}

/// One matrix product.
struct Product<'a, 'o, 'd, E> {
    a: Matrix<'a, E>,
    b: Matrix<'a, E>,
    /// Rows that are made.
    rows: Range<usize>,
    output: &'o mut ElementsMut<'d, E>,
    /// Index of the first output element, and the dimensions of rows and columns.
    index: Index,
    axes: [Option<usize>; 2],
}

impl<E: Element> Job for Product<'_, '_, '_, E> {
    #[inline(always)]
    fn run<S: Simd>(self) {
        let inner = self.a.size(1);
        let (mut left, mut right) = ([[0.0; CHUNK]; MAX_ROWS], [[0.0; COLUMNS]; CHUNK]);
        for column in (0..self.b.size(1)).step_by(const { S::VECTORS * S::LANES }) {
            let columns = (self.b.size(1) - column).min(const { S::VECTORS * S::LANES });
            for row in self.rows.clone().step_by(S::PIXELS) {
                let rows = S::PIXELS.min(self.rows.end - row);
                let mut sums = [[0.0; COLUMNS]; MAX_ROWS];
                for first in (0..inner).step_by(CHUNK) {
                    let len = CHUNK.min(inner - first);
                    self.a.widen(&mut left[..rows], row, first..first + len);
                    // What fits stays for all rows.
                    if inner > CHUNK || row == self.rows.start {
                        self.b.widen(&mut right[..len], first, column..column + columns);
                    }
                    let block = Block { left: &left, right: &right, len, sums: &mut sums };
                    // SAFETY: this is in `Job::run`, as `call` asks.
                    unsafe { call::<S, _>(block, rows, const { S::VECTORS / panel_vectors::<S>() }) }
                }
                for (i, sums) in sums.iter().enumerate().take(rows) {
                    let mut index = self.index;
                    for (axis, at) in self.axes.into_iter().zip([row + i, column]) {
                        if let Some(axis) = axis {
                            index[axis] = at;
                        }
                    }
                    let mut made = LineMut::new(self.output, &index, self.axes[1].unwrap_or(0), columns);
                    made.iter_mut().zip(sums).for_each(|(r, sum)| *r = E::narrow(*sum));
                }
            }
        }
    }
}

/// Rows of the highest tile.
const MAX_ROWS: usize = 12;

/// Some products of a tile, which are added to its sums.
#[derive(Clone, Copy)]
struct Block<'a> {
    left: &'a [[f32; CHUNK]; MAX_ROWS],
    right: &'a [[f32; COLUMNS]; CHUNK],
    /// Products of a sum.
    len: usize,
    sums: *mut [[f32; COLUMNS]; MAX_ROWS],
}

impl TileWork for Block<'_> {
    const ANY_WIDTH: bool = false;

    #[inline(always)]
    fn run<S: Simd, const M: usize, const N: usize>(self) {
        let Block { left, right, len, sums } = self;
        // SAFETY: this is in `Job::run`. `M` is no more than `MAX_ROWS`, `N` vectors are no more than `COLUMNS`, and
        // `len` is no more than `CHUNK`. `Product::run` lends `sums` to this alone.
        unsafe {
            let sums = &mut *sums;
            let (mut tile, mut pixels) = ([[S::splat(0.0); N]; M], [left[0].as_ptr(); M]);
            let mut weights = [right[0].as_ptr(); N];
            for (v, weights) in weights.iter_mut().enumerate() {
                *weights = right[0][v * S::LANES..].as_ptr();
            }
            for (i, tile) in tile.iter_mut().enumerate() {
                pixels[i] = left[i].as_ptr();
                for (v, vector) in tile.iter_mut().enumerate() {
                    *vector = S::load(sums[i][v * S::LANES..].as_ptr());
                }
            }
            accumulate::<S, M, N, f32>(&mut tile, &pixels, &weights, [COLUMNS; 2], len, weights[0]);
            for (tile, sums) in tile.iter().zip(sums) {
                for (v, vector) in tile.iter().enumerate() {
                    S::store(sums[v * S::LANES..].as_mut_ptr(), *vector);
                }
            }
        }
    }
}
