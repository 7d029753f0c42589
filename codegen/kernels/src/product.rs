//! A matrix product, C = A · B, the building block of primitives of convolutions.
//!
//! An element of C is the sum of k products in ascending order. [`Start`] says with what the sum begins. Each product
//! is added fused (with the portable instruction set, it is rounded and then added). Neither the tile nor the blocks of
//! steps and columns change the order. So an element's bits depend only on the instruction set and on its own operands.
//!
//! # Example
//!
//! ```
//! use csdfc_kernels::product::{Left, Product, Right, Start};
//! use csdfc_kernels::{Activation, Isa};
//!
//! let (a, b) = ([1.0, 2.0, 3.0, 4.0], [10.0, 100.0]);
//! let product = Product {
//!     size: [2, 1, 2], // 2 × 2 times 2 × 1
//!     left: Left { elements: &a, row: 2, step: 1 },
//!     right: Right::Rows { elements: &b, row: 1 },
//!     start: Start::Columns(&[0.5]),
//!     activation: Activation::None,
//! };
//! let mut c = [0.0; 2];
//! product.make(Isa::detect(), &mut c, 1);
//! assert_eq!(c, [210.5, 430.5]);
//! ```
#![allow(unsafe_code, reason = "vector instructions; each block says why it is sound")]

use core::mem::MaybeUninit;
use core::ops::Range;

use super::activation::{Activation, Apply};
use super::arch::{Isa, Job, PANEL, Simd};
use super::tile::{
    Ahead, Ending, Tile, TileWork, call, finish, finish_whole, full_vectors, keep, kept, most_panels,
    panel_vectors,
};

/// The left matrix: element (i, p) lies at `i · row + p · step`. Rows may overlap, and a transposed matrix has `row` 1.
#[derive(Debug, Clone, Copy)]
pub struct Left<'a> {
    /// The matrix.
    pub elements: &'a [f32],
    /// Elements from a row to the next.
    pub row: usize,
    /// Elements from a step to the next.
    pub step: usize,
}

/// The right matrix.
#[derive(Debug, Clone, Copy)]
pub enum Right<'a> {
    /// Element (p, j) lies at `p · row + j`.
    Rows {
        /// The matrix.
        elements: &'a [f32],
        /// Elements from a row to the next.
        row: usize,
    },
    /// Columns are divided into panels of 16; the last panel has the columns that are left. In a panel of `width`
    /// columns from `first` on, element (p, j) lies at `first · each + (before + p) · width + j − first`. So
    /// `panel::Panels` lie with one step, the biases, before the others. If `before` is 0 and `each` is k, only the
    /// matrix is stored.
    Panels {
        /// The matrix, and what else the panels have.
        elements: &'a [f32],
        /// Numbers of each column before the first step.
        before: usize,
        /// Numbers of each column, those of the steps and others.
        each: usize,
    },
}

impl Right<'_> {
    /// The distance in elements from columns to the columns that come `count` after them. Beyond the last column, it
    /// leads to the data after the matrix.
    #[inline(always)]
    fn stride(&self, columns: usize) -> usize {
        match self {
            Right::Rows { .. } => columns,
            Right::Panels { each, .. } => columns * each,
        }
    }
}

/// The values with which the sums begin.
#[derive(Debug, Clone, Copy)]
pub enum Start<'a> {
    /// Zero.
    Zero,
    /// The content of C.
    Old,
    /// A number for each row.
    Rows(&'a [f32]),
    /// A number for each column.
    Columns(&'a [f32]),
}

/// C = `start` + A · B, and then the activation.
#[derive(Debug, Clone, Copy)]
pub struct Product<'a> {
    /// Rows m and columns n of C, and the products of a sum, k.
    pub size: [usize; 3],
    /// A.
    pub left: Left<'a>,
    /// B.
    pub right: Right<'a>,
    /// What the sums begin with.
    pub start: Start<'a>,
    /// Not a PRelu.
    pub activation: Activation,
}

/// Steps of a block. The parts of A and B for this many steps stay in a near cache.
const DEEP: usize = 512;

/// Elements of B that should stay in a cache while the kernel goes over all rows of A.
const CACHE_ELEMENTS: usize = 64 * 1024;

/// Steps whose lines are brought together.
const STRETCH: usize = 4;

/// Columns of the widest tile.
const WIDEST: usize = 8 * PANEL;

/// The zeros with which sums begin that have no start.
static ZEROS: [f32; WIDEST] = [0.0; WIDEST];

impl Product<'_> {
    /// Makes C, whose element (i, j) lies at `i · row + j` of `output`. The elements between its rows stay as they are.
    ///
    /// # Panics
    /// If a matrix or the numbers of `start` reach beyond their slices, if rows of C overlap, or if the activation is a
    /// PRelu.
    pub fn make(&self, isa: Isa, output: &mut [f32], row: usize) {
        let [m, n, k] = self.size;
        if m == 0 || n == 0 {
            return;
        }
        let reach = |rows: usize, row: usize, last: usize| match rows {
            0 => 0,
            rows => (rows - 1) * row + last,
        };
        assert!(row >= n || m == 1, "overlapping rows of a product");
        assert!(reach(m, row, n) <= output.len(), "product beyond the output");
        assert!(k == 0 || reach(m, self.left.row, reach(k, self.left.step, 1)) <= self.left.elements.len());
        match self.right {
            Right::Rows { elements, row } => assert!(reach(k, row, n) <= elements.len(), "right matrix"),
            Right::Panels { elements, before, each } => {
                let width = (n - 1) % PANEL + 1;
                assert!(before + k <= each, "steps beyond a panel");
                assert!((n - width) * each + (before + k) * width <= elements.len(), "panels");
            }
        }
        match self.start {
            Start::Rows(start) => assert!(start.len() >= m, "starts of rows"),
            Start::Columns(start) => assert!(start.len() >= n, "starts of columns"),
            Start::Zero | Start::Old => {}
        }
        assert!(self.activation != Activation::PRelu, "a product has no slopes");
        isa.run(Work { product: self, output, row });
    }
}

/// A product whose operands have been checked to be long enough.
struct Work<'a> {
    product: &'a Product<'a>,
    output: &'a mut [f32],
    row: usize,
}

impl Job for Work<'_> {
    #[inline(always)]
    fn run<S: Simd>(self) {
        let Work { product, output, row } = self;
        let [m, n, k] = product.size;
        let (tiles, depths) = (m.div_ceil(S::PIXELS), k.div_ceil(DEEP).max(1));
        for depth in 0..depths {
            let steps = [depth * k / depths, (depth + 1) * k / depths];
            let run = (CACHE_ELEMENTS / (steps[1] - steps[0]).max(1) / PANEL * PANEL).max(WIDEST);
            for first in (0..n).step_by(run) {
                let end = n.min(first + run);
                for tile in 0..tiles {
                    let (i, count) = (tile * m / tiles, (tile + 1) * m / tiles - tile * m / tiles);
                    let mut j = first;
                    while j < end {
                        // The largest power of two that is left.
                        let panels = 1 << most_panels::<S>(count).min((end - j).div_ceil(PANEL)).ilog2();
                        let columns = (panels * PANEL).min(end - j);
                        let block = Block {
                            product,
                            at: [i, j],
                            columns,
                            steps,
                            is_first: depth == 0,
                            is_last: depth + 1 == depths,
                            ahead: Ahead { tile, distance: product.right.stride(end - first) },
                            // SAFETY: `Product::make` has asserted that row `i` of C, which is less than `m`, begins
                            // within `output`.
                            output: unsafe { output.as_mut_ptr().add(i * row) },
                            row,
                        };
                        // SAFETY: this is in `Job::run`, as `call` asks.
                        unsafe { call::<S, _>(block, count, panels) }
                        j += columns;
                    }
                    if depth + 1 == depths && !Ending::new(product.activation).is_all(product.activation) {
                        for i in i..i + count {
                            let values = &mut output[i * row + first..i * row + end];
                            // SAFETY: this is in `Job::run`, as `Simd::call` asks.
                            unsafe { S::call(Apply { activation: product.activation, values, slopes: &[] }) }
                        }
                    }
                }
            }
        }
    }
}

/// A tile of C and some steps of its sums.
#[derive(Clone, Copy)]
struct Block<'a> {
    product: &'a Product<'a>,
    /// First row and column.
    at: [usize; 2],
    columns: usize,
    /// First step, and that after the last.
    steps: [usize; 2],
    /// Whether these are the first steps, and whether they are the last steps.
    is_first: bool,
    is_last: bool,
    ahead: Ahead,
    /// Row `at[0]` of C.
    output: *mut f32,
    row: usize,
}

impl TileWork for Block<'_> {
    #[inline(always)]
    fn run<S: Simd, const M: usize, const N: usize>(self) {
        let Block { product, at: [i, j], columns, steps: [from, to], .. } = self;
        let Left { elements: left, row: left_row, step: left_step } = product.left;
        let full = const { full_vectors::<S>(N) };
        // The first elements of full panels and of the last one, and from step to step.
        let last_column = full * S::LANES;
        let (right, starts, each, strides) = match product.right {
            Right::Rows { elements, row } => {
                (elements, [from * row + j, from * row + j + last_column], PANEL, [row; 2])
            }
            Right::Panels { elements, before, each } => {
                let width = columns - last_column;
                let start = |column: usize, width: usize| (j + column) * each + (before + from) * width;
                (elements, [start(0, PANEL), start(last_column, width)], PANEL * each, [PANEL, width])
            }
        };
        // The number of steps that have whole vectors of the last panel. In the other steps, only the columns are read.
        let whole = match right.len().checked_sub(starts[1] + PANEL) {
            None => 0,
            Some(_) if strides[1] == 0 => to - from,
            Some(beyond) => (to - from).min(beyond / strides[1] + 1),
        };
        // SAFETY: this is in `Job::run`. `Product::make` has asserted that the rows, columns and steps of all matrices
        // are within their slices, and these are some of them. Full panels have whole vectors. Those of the last panel
        // are whole in `whole` steps, and parts of vectors touch the columns alone. The room is a tile's.
        unsafe {
            let mut at = [right.as_ptr(); N];
            for (v, at) in at.iter_mut().enumerate() {
                let (part, v) = if v < full { (0, v) } else { (1, v - full) };
                let panel = v / const { panel_vectors::<S>() } * each;
                *at = at.wrapping_add(starts[part] + panel + v % const { panel_vectors::<S>() } * S::LANES);
            }
            let place = |row: usize| self.output.add(row * self.row + j);
            let is_whole = columns >= N * S::LANES;
            let mut room = MaybeUninit::<Tile<S, M, N>>::uninit();
            let room: *mut f32 = room.as_mut_ptr().cast();
            let mut sums = [[S::splat(0.0); N]; M];
            match product.start {
                Start::Rows(start) if self.is_first => {
                    for (row, sums) in sums.iter_mut().enumerate() {
                        *sums = [S::splat(start[i + row]); N];
                    }
                }
                start => {
                    let (first, stride) = match start {
                        Start::Columns(start) if self.is_first => (start.as_ptr().add(j), 0),
                        Start::Zero if self.is_first => (ZEROS.as_ptr(), 0),
                        _ => (place(0).cast_const(), self.row),
                    };
                    if is_whole {
                        for (row, sums) in sums.iter_mut().enumerate() {
                            [*sums] = kept::<S, 1, N>(first.add(row * stride));
                        }
                    } else {
                        S::call(NarrowStart { first, stride, columns, room, size: [M, N] });
                        sums = kept::<S, M, N>(room);
                    }
                }
            }
            let mut rows = [left.as_ptr().wrapping_add(i * left_row + from * left_step); M];
            for (row, at) in rows.iter_mut().enumerate() {
                *at = at.wrapping_add(row * left_row);
            }
            let ahead = self.ahead.next_panel(at[0], const { N / panel_vectors::<S>() }, each);
            accumulate::<S, M, N>(&mut sums, &rows, left_step, &at, strides, whole, ahead);
            let ending = if self.is_last { Ending::new(product.activation) } else { Ending::NONE };
            if let Some(bounds) = ending.bounds().filter(|_| is_whole && whole == to - from) {
                return finish_whole::<S, M, N, f32>(&sums, bounds, place);
            }
            keep::<S, M, N>(&sums, room);
            S::call(Rest {
                block: &self,
                left: rows[0],
                right: &at,
                strides,
                steps: whole..to - from,
                ending,
                room,
                rows: M,
            });
        }
    }
}

/// Writes what the sums of a tile begin with into its room, where the last of its vectors are not whole.
struct NarrowStart {
    /// The first row of what they begin with, and the elements from row to row.
    first: *const f32,
    stride: usize,
    columns: usize,
    room: *mut f32,
    /// Rows and vectors of the tile.
    size: [usize; 2],
}

impl Job for NarrowStart {
    #[inline(always)]
    fn run<S: Simd>(self) {
        let NarrowStart { first, stride, columns, room, size: [rows, vectors] } = self;
        for row in 0..rows {
            for v in 0..vectors {
                // SAFETY: this is in `Job::run`. `Block::run` makes this: from `first` on, each row has `columns`
                // columns, of which no more are loaded, and `room` has room for a tile of this size.
                unsafe {
                    let at = first.add(row * stride).wrapping_add(v * S::LANES);
                    let sum = S::load_masked(at, columns.saturating_sub(v * S::LANES));
                    S::store(room.add((row * vectors + v) * S::LANES), sum);
                }
            }
        }
    }
}

/// The rest of a tile whose sums are kept on the stack: the products of the steps whose last vector is not whole, and
/// what is done with complete sums. (One function does this for tiles of all sizes.)
struct Rest<'b> {
    block: &'b Block<'b>,
    /// The first row's element of the block's first step.
    left: *const f32,
    /// The vectors of that step.
    right: &'b [*const f32],
    strides: [usize; 2],
    steps: Range<usize>,
    ending: Ending,
    room: *mut f32,
    rows: usize,
}

impl Job for Rest<'_> {
    #[inline(always)]
    fn run<S: Simd>(self) {
        let Rest { block, left, right, strides, steps, ending, room, rows } = self;
        let (Left { row: left_row, step: left_step, .. }, columns) = (block.product.left, block.columns);
        let full = right.len().saturating_sub(const { panel_vectors::<S>() });
        // SAFETY: this is in `Job::run`. `Block::run` makes this: the rows, steps and columns are within the matrices
        // and C, of which no more than `count` columns are touched, and `room` has the tile that it kept.
        unsafe {
            for row in 0..rows {
                let out = block.output.add(row * block.row + block.at[1]);
                for (v, at) in right.iter().enumerate() {
                    let Some(count) = columns.checked_sub(v * S::LANES).filter(|count| *count > 0) else {
                        break;
                    };
                    let mut sum = S::load(room.add((row * right.len() + v) * S::LANES));
                    for step in steps.clone() {
                        let x = S::splat(*left.add(row * left_row + step * left_step));
                        let w = at.wrapping_add(step * strides[usize::from(v >= full)]);
                        sum = S::mul_add(x, S::load_masked(w, count), sum);
                    }
                    finish::<S, 1, f32>(&[sum], ending, &[S::splat(0.0)], out.add(v * S::LANES), count);
                }
            }
        }
    }
}

/// Adds `steps` products to every sum: elements of the rows, `step` from each other, times vectors that are whole,
/// `strides` of full panels and of the last one from each other. Brings a line at each of them from `ahead` on. (A copy of the
/// sums is what stays in registers.)
///
/// # Safety
/// In [`Job::run`]. Each row is good for an element, and each pointer of `vectors` for a vector, at each of the steps.
#[inline(always)]
unsafe fn accumulate<S: Simd, const M: usize, const N: usize>(
    tile: &mut Tile<S, M, N>,
    rows: &[*const f32; M],
    step: usize,
    vectors: &[*const f32; N],
    strides: [usize; 2],
    steps: usize,
    ahead: *const f32,
) {
    let mut sums = *tile;
    for first in (0..steps).step_by(STRETCH) {
        let some = first..steps.min(first + STRETCH);
        // SAFETY: this is in `Job::run`, and `p` is less than `steps`, at each of which rows have an element and
        // `vectors` a vector: `# Safety` of this function. A prefetch takes any address.
        unsafe {
            // Not among the products: there the compiler would keep some sums in memory.
            for p in some.clone() {
                S::prefetch(ahead.wrapping_add(p * strides[0]).cast());
            }
            for p in some {
                let mut w = [S::splat(0.0); N];
                for v in 0..N {
                    w[v] = S::load(
                        vectors[v].add(p * strides[usize::from(v >= const { full_vectors::<S>(N) })]),
                    );
                }
                for i in 0..M {
                    let x = S::factor(rows[i], p * step);
                    for v in 0..N {
                        sums[i][v] = S::mul_add_factor(x, w[v], sums[i][v]);
                    }
                }
            }
        }
    }
    *tile = sums;
}
