//! Convolution of stride 1 with fewer products: tiles of the input are transformed and multiplied channel by channel by
//! transformed filters; the products are summed, and the sums are transformed back (Winograd; Lavin and Gray, "Fast
//! Algorithms for Convolutional Neural Networks", 2016). F(m, r) makes m outputs of a filter of r taps from m + r − 1
//! products.
//!
//! Tiles of F(m×m, r×r) lie in rows of m rows of the output. Tiles of F(m, r), of one row, are transformed only along
//! x, and summed over the rows of the filter. The values of all tiles at one position are a matrix `[tiles, channels]`,
//! and so each position is a matrix product, or one for each row of the filter.
//!
//! A firing goes strip by strip: transform of the input of a few rows of tiles, then, for 64 filters at a time, the
//! products and the transform of the output.
//!
//! The bits of an output depend only on its tile. So they do not depend on the rows of a firing, if firings consist of
//! whole rows of tiles, counted from row 0. A firing that makes only some of the m rows of a tile takes rows beyond
//! their windows as zeros. Its output is as near to the exact one, but has other bits.
//!
//! # Example
//!
//! ```
//! use csdfc_kernels::conv::Conv;
//! use csdfc_kernels::conv::winograd::Winograd;
//! use csdfc_kernels::layout::Layout;
//! use csdfc_kernels::rows::RowShape;
//! use csdfc_kernels::span::{Span, SpanMut};
//! use csdfc_kernels::{Activation, Context, Isa, RowKernel, Rows, RowsMut};
//!
//! let conv = Conv {
//!     channels: 1, filters: 1, kernel: [3, 3], stride: [1, 1], dilation: [1, 1], pads: [0; 4],
//!     groups: 1, pre: None, residual: false, activation: Activation::None,
//! };
//! // F(2×2, 3×3)
//! let kernel = Winograd {
//!     conv, input: [4, 4], output: [2, 2], layouts: [Layout::Hwc; 2], tile: [2, 2], is_whole: false,
//! };
//! let mut packed = vec![0.0; kernel.packed_len()];
//! kernel.pack(&[1.0; 9], &[], &mut packed);
//! let input = Rows { data: Span::new(&[2.0; 16]), shape: RowShape::dense(4, 4, 1, 4) }; // [4, 4, 1]
//! let mut made = [0.0; 4];
//! let mut output = RowsMut { data: SpanMut::new(&mut made), shape: RowShape::dense(2, 2, 1, 2) }; // [2, 2, 1]
//! let mut room = vec![0.0; kernel.workspace_len()];
//! let context = &mut Context { isa: Isa::PORTABLE, workers: None, workspace: &mut room };
//! kernel.rows(context, 0..2, &[input], &[Rows::line(&packed)], &mut output);
//! assert_eq!(made.map(f32::round), [18.0; 4]);
//! ```

pub mod transform;

use core::ops::Range;

use super::super::activation::Activation;
use super::super::arch::{Isa, PANEL};
use super::super::kernel::{Context, RowKernel, Sharing};
use super::super::layout::{ImageLine, Layout};
use super::super::product::{Left, Product, Right, Start};
use super::super::rows::{RowShape, Rows, RowsMut};
use super::parameters::{Conv, pack_biases};
use transform::{Backward, Forward, Move, filter_factor};

/// A strip has this many tiles or somewhat more. With fewer, the filters would be read too often.
const STRIP: usize = 32;

/// Filters that are summed at a time.
const FILTERS: usize = 64;

/// Tiles of a block that is transformed at a time.
const BLOCK: usize = 8;

/// Values of the largest tile along an axis, and taps of the longest filter.
const MAX_VALUES: usize = 8;
const MAX_TAPS: usize = 5;

/// F(2×2, 3×3), F(4×4, 3×3), F(6×6, 3×3), F(2×2, 5×5), or F(2, 3), F(4, 3), F(2, 5), along x.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Winograd {
    /// The convolution: of one operand and one group, stride and dilation 1, without [`Conv::pre`], [`Conv::residual`] and a
    /// PRelu. Its filters are of r×r taps, or of any number of rows of r taps.
    pub conv: Conv,
    /// Height and width of the input.
    pub input: [usize; 2],
    /// Height and width of the output.
    pub output: [usize; 2],
    /// Layouts of the input and of the output.
    pub layouts: [Layout; 2],
    /// Rows and columns of the output that a tile makes: m×m, or 1×m.
    pub tile: [usize; 2],
    /// Whether the workspace holds the values of all tiles and the sums of all filters at once, as in "MEC:
    /// Memory-efficient convolution for deep neural network" (Cho and Brand, 2017); otherwise it holds those of a
    /// strip. The bits are the same.
    pub is_whole: bool,
}

impl Winograd {
    /// Whether there is a transform for tiles of this size and this kernel.
    pub const fn is_known(tile: [usize; 2], kernel: [usize; 2]) -> bool {
        match (tile, kernel) {
            ([2, 2] | [4, 4] | [6, 6], [3, 3]) | ([2, 2], [5, 5]) => true,
            ([1, 2 | 4], [rows, 3]) | ([1, 2], [rows, 5]) => rows > 0,
            _ => false,
        }
    }

    /// Rows and columns of the values of a tile, a: as many as the pixels that it reads.
    const fn values(&self) -> [usize; 2] {
        let columns = self.tile[1] + self.conv.kernel[1] - 1;
        [if self.tile[0] == 1 { 1 } else { columns }, columns]
    }

    /// Values of a tile.
    const fn positions(&self) -> usize {
        self.values()[0] * self.values()[1]
    }

    /// Rows of the filter that are summed at each position.
    const fn taps(&self) -> usize {
        if self.tile[0] == 1 { self.conv.kernel[0] } else { 1 }
    }

    /// Tiles side by side.
    const fn tiles(&self) -> usize {
        self.output[1].div_ceil(self.tile[1])
    }

    /// Rows of tiles of a strip: those of 32 tiles, or all.
    pub const fn strip(&self) -> usize {
        let (enough, all) = (STRIP.div_ceil(self.tiles()), self.output[0].div_ceil(self.tile[0]));
        if enough < all && !self.is_whole { enough } else { all }
    }

    /// Elements of the values of a strip's input at each position: `[rows, tiles, channels]`.
    const fn position_len(&self) -> usize {
        (self.strip() + self.taps() - 1) * self.tiles() * self.conv.channels
    }

    /// Filters that are summed at a time.
    const fn filters(&self) -> usize {
        if self.conv.filters < FILTERS || self.is_whole { self.conv.filters } else { FILTERS }
    }

    /// Columns of a block of pixels that is transformed at a time.
    const fn block_width(&self) -> usize {
        BLOCK * self.tile[1] + self.conv.kernel[1] - 1
    }

    /// Elements of the workspace. With a = m + r − 1, T = ⌈o_w / m⌉ tiles side by side, and s rows of them in a strip,
    /// where s = min(⌈32 / T⌉, ⌈o_h / m⌉) for tiles m×m, and min(⌈32 / T⌉, o_h) for tiles 1×m:
    ///
    /// - F(m×m, r×r): `a² · s · T · (C + min(M, 64)) + a · (8 m + r − 1) · 16`,
    /// - F(m, r), k_h rows: `a · T · ((s + k_h − 1) · C + s · min(M, 64)) + (8 m + r − 1) · 16`.
    ///
    /// They are the values of the strip's input, the sums of 64 filters at most, and a block of pixels. With all tiles at once
    /// s is all rows of them, and M stands for min(M, 64).
    pub const fn workspace_len(&self) -> usize {
        let sums = self.strip() * self.tiles() * self.filters();
        self.positions() * (self.position_len() + sums) + self.values()[0] * self.block_width() * PANEL
    }

    /// Elements of the biases and the transformed filters: M + a² · C · M, or M + a · k_h · C · M.
    pub const fn packed_len(&self) -> usize {
        self.conv.filters * (1 + self.positions() * self.taps() * self.conv.channels)
    }

    /// Packs `weights` (`[filters, channels, kernel_y, kernel_x]`) and `bias` (`[filters]`, or empty) into `out`, which
    /// holds [`Winograd::packed_len`] elements. Filters are transformed in double precision and rounded once. Those that are
    /// summed together lie together, in the order in which a firing reads them: position by position, in panels.
    ///
    /// # Panics
    /// If a slice has another length than stated here.
    pub fn pack(&self, weights: &[f32], bias: &[f32], out: &mut [f32]) {
        let Conv { channels, filters, kernel, .. } = self.conv;
        let ([rows, columns], taps) = (self.values(), self.taps());
        assert_eq!(out.len(), self.packed_len(), "length of packed filters");
        assert_eq!(weights.len(), filters * channels * kernel[0] * kernel[1], "length of filters");
        let (biases, packed) = out.split_at_mut(filters);
        pack_biases(bias, biases);
        let mut factors = [[0.0; MAX_TAPS]; MAX_VALUES];
        for (at, factors) in factors[..columns].iter_mut().enumerate() {
            for (tap, factor) in factors[..kernel[1]].iter_mut().enumerate() {
                *factor = filter_factor(columns, kernel[1], at, tap);
            }
        }
        let mut along_x = [[0.0; MAX_TAPS]; MAX_VALUES];
        for (i, weights) in weights.chunks_exact(kernel[0] * kernel[1]).enumerate() {
            let (filter, channel) = (i / channels, i % channels);
            // The first filter of those that are summed together, and of its panel among them.
            let some = filter / self.filters() * self.filters();
            let count = self.filters().min(filters - some);
            let first = (filter - some) / PANEL * PANEL;
            let width = PANEL.min(count - first);
            let place = first * channels + channel * width + filter - some - first;
            let packed = &mut packed[some * self.positions() * taps * channels..];
            let mut put = |at: usize, value: f64| packed[at * channels * count + place] = value as f32;
            for (x, factors) in factors[..columns].iter().enumerate() {
                for (ky, weights) in weights.chunks_exact(kernel[1]).enumerate() {
                    let sum = weights.iter().zip(factors).map(|(w, factor)| f64::from(*w) * factor).sum();
                    if rows == 1 {
                        put(x * taps + ky, sum);
                    } else {
                        along_x[x][ky] = sum;
                    }
                }
            }
            if rows > 1 {
                for (y, factors) in factors[..rows].iter().enumerate() {
                    for (x, values) in along_x[..columns].iter().enumerate() {
                        let terms = values[..kernel[0]].iter().zip(factors);
                        put(y * columns + x, terms.map(|(value, factor)| value * factor).sum());
                    }
                }
            }
        }
    }

    /// Copies `channels` of the pixels of a row from column `first` of the padded input on; zeros beyond it.
    fn load(
        &self,
        isa: Isa,
        line: Option<ImageLine<&[f32]>>,
        first: usize,
        channels: Range<usize>,
        to: &mut [f32],
    ) {
        let left = self.conv.pads[1];
        let columns = to.len() / PANEL;
        let (start, end) = match line {
            Some(_) => {
                let start = left.saturating_sub(first).min(columns);
                (start, (left + self.input[1]).saturating_sub(first).clamp(start, columns))
            }
            None => (0, 0),
        };
        to[..start * PANEL].fill(0.0);
        to[end * PANEL..].fill(0.0);
        let Some(ImageLine { data, channel, column }) = line.filter(|_| start < end) else { return };
        let from = &data[channels.start * channel + (first + start - left) * column..];
        let to = &mut to[start * PANEL..end * PANEL];
        if channel == 1 {
            isa.run(Move {
                from,
                to,
                strides: [column, PANEL],
                pixels: end - start,
                channels: channels.len(),
            });
        } else {
            for c in 0..channels.len() {
                let from = &from[c * channel..][..end - start];
                to.iter_mut().skip(c).step_by(PANEL).zip(from).for_each(|(to, from)| *to = *from);
            }
        }
    }

    /// Transforms the pixels that rows `lines` of tiles read, into `[position, row, tile, channel]`. Rows beyond the
    /// windows of the output's rows `y` are zeros.
    fn transform_input(
        &self,
        isa: Isa,
        lines: Range<usize>,
        y: &Range<usize>,
        input: &Rows<'_>,
        values: &mut [f32],
        block: &mut [f32],
    ) {
        let Conv { channels, kernel, pads, .. } = self.conv;
        let (tiles, position, [rows, _]) = (self.tiles(), self.position_len(), self.values());
        for (line, first) in lines
            .enumerate()
            .flat_map(|(i, line)| (0..tiles).step_by(BLOCK).map(move |first| ((i, line), first)))
        {
            let (i, top) = (line.0, line.1 * self.tile[0]);
            let count = BLOCK.min(tiles - first);
            let width = count * self.tile[1] + kernel[1] - 1;
            for channel in (0..channels).step_by(PANEL) {
                let some = channel..channels.min(channel + PANEL);
                let block = &mut block[..rows * width * PANEL];
                for (row, pixels) in block.chunks_exact_mut(width * PANEL).enumerate() {
                    let padded = top + row;
                    let is_read = (y.start..y.end + kernel[0] - 1).contains(&padded);
                    let row = padded.checked_sub(pads[0]).filter(|row| is_read && *row < self.input[0]);
                    let line = row.map(|row| self.layouts[0].line(input, self.input[1], row));
                    self.load(isa, line, first * self.tile[1], some.clone(), pixels);
                }
                let to = &mut values[(i * tiles + first) * channels + channel..];
                self.forward(isa, block, [width, count], some.len(), to, position);
            }
        }
    }

    /// Transforms a block of pixels.
    fn forward(
        &self,
        isa: Isa,
        block: &[f32],
        [width, tiles]: [usize; 2],
        channels: usize,
        to: &mut [f32],
        position: usize,
    ) {
        let (step, tile) = (self.tile[1], self.conv.channels);
        macro_rules! run {
            ($rows:literal, $columns:literal) => {
                isa.run(Forward::<$rows, $columns> {
                    block,
                    width,
                    step,
                    tiles,
                    channels,
                    to,
                    position,
                    tile,
                })
            };
        }
        match self.values() {
            [1, 4] => run!(1, 4),
            [1, 6] => run!(1, 6),
            [4, 4] => run!(4, 4),
            [6, 6] => run!(6, 6),
            _ => run!(8, 8),
        }
    }

    /// Transforms values of tiles into a block of pixels, and adds the biases.
    fn backward(
        &self,
        isa: Isa,
        from: &[f32],
        [position, tile]: [usize; 2],
        bias: &[f32],
        block: &mut [f32],
        [width, tiles]: [usize; 2],
    ) {
        macro_rules! run {
            ($rows:literal, $columns:literal, $high:literal, $wide:literal) => {{
                isa.run(Backward::<$rows, $columns, $high, $wide> {
                    from,
                    position,
                    tile,
                    tiles,
                    bias,
                    block,
                    width,
                })
            }};
        }
        match (self.values(), self.tile[1]) {
            ([1, 4], _) => run!(1, 4, 1, 2),
            ([1, 6], 2) => run!(1, 6, 1, 2),
            ([1, 6], _) => run!(1, 6, 1, 4),
            ([4, 4], _) => run!(4, 4, 2, 2),
            ([6, 6], 2) => run!(6, 6, 2, 2),
            ([6, 6], _) => run!(6, 6, 4, 4),
            _ => run!(8, 8, 6, 6),
        }
    }

    /// Transforms the sums of rows `lines` of tiles, `[row, tile, position, filter]`, into `filters` of the output's rows
    /// `y`.
    #[allow(clippy::too_many_arguments, reason = "a step of a firing: where all of it is")]
    fn transform_output(
        &self,
        isa: Isa,
        lines: Range<usize>,
        y: &Range<usize>,
        sums: &[f32],
        bias: &[f32],
        filters: Range<usize>,
        block: &mut [f32],
        output: &mut RowsMut<'_>,
    ) {
        let (tiles, [high, wide]) = (self.tiles(), self.tile);
        let strides = [filters.len(), self.positions() * filters.len()];
        for (i, line) in lines.enumerate() {
            for first in (0..tiles).step_by(BLOCK) {
                let count = BLOCK.min(tiles - first);
                let (width, column) = (count * wide, first * wide);
                let columns = width.min(self.output[1] - column);
                let block = &mut block[..high * width * PANEL];
                for some in (0..filters.len()).step_by(PANEL) {
                    let from = &sums[(i * tiles + first) * strides[1] + some..];
                    let end = filters.len().min(some + PANEL);
                    let bias = &bias[filters.start + some..filters.start + end];
                    self.backward(isa, from, strides, bias, block, [width, count]);
                    if self.conv.activation != Activation::None {
                        self.conv.activation.apply_all(isa, block, &[]);
                    }
                    for (row, pixels) in block.chunks_exact(width * PANEL).enumerate() {
                        let row = line * high + row;
                        if y.contains(&row) {
                            let line = self.layouts[1].line_mut(output, self.output[1], row);
                            let pixels = &pixels[..columns * PANEL];
                            store(isa, pixels, line, column, filters.start + some, end - some);
                        }
                    }
                }
            }
        }
    }
}

/// Copies pixels of 16 channels, of which `channels` are taken, to a row, from this column and channel on.
fn store(
    isa: Isa,
    pixels: &[f32],
    line: ImageLine<&mut [f32]>,
    column: usize,
    first: usize,
    channels: usize,
) {
    let to = &mut line.data[first * line.channel + column * line.column..];
    if line.channel == 1 {
        let (strides, count) = ([PANEL, line.column], pixels.len() / PANEL);
        isa.run(Move { from: pixels, to, strides, pixels: count, channels });
    } else {
        for c in 0..channels {
            let from = pixels.iter().skip(c).step_by(PANEL);
            to[c * line.channel..].iter_mut().zip(from).for_each(|(to, from)| *to = *from);
        }
    }
}

/// One operand; the constant is packed by [`Winograd::pack`], the workspace of [`Winograd::workspace_len`] elements.
impl RowKernel for Winograd {
    /// A tile's rows are made together.
    fn sharing(&self, rows: usize, _: usize, output: &RowShape) -> Sharing {
        match Sharing::by_elements(rows, output) {
            Sharing::Rows(_) if !self.is_whole => Sharing::Rows(self.tile[0]),
            _ => Sharing::Alone,
        }
    }

    /// # Panics
    /// Also if there is no transform for such tiles and this kernel.
    fn rows(
        &self,
        context: &mut Context<'_>,
        y: Range<usize>,
        operands: &[Rows<'_>],
        constants: &[Rows<'_>],
        output: &mut RowsMut<'_>,
    ) {
        let Conv { channels, filters, kernel, .. } = self.conv;
        assert!(Winograd::is_known(self.tile, kernel), "a transform of such tiles");
        let (isa, taps, tiles, positions) = (context.isa, self.taps(), self.tiles(), self.positions());
        let (bias, packed) = constants[0].row(0)[..self.packed_len()].split_at(filters);
        let workspace = &mut context.workspace[..self.workspace_len()];
        let (values, workspace) = workspace.split_at_mut(positions * self.position_len());
        let (sums, block) = workspace.split_at_mut(positions * self.strip() * tiles * self.filters());
        let y = self.layouts[1].image_rows(self.output[0], y);
        let all = y.start / self.tile[0]..y.end.div_ceil(self.tile[0]);
        for first in all.clone().step_by(self.strip()) {
            let lines = first..all.end.min(first + self.strip());
            let read = first..lines.end + taps - 1;
            self.transform_input(isa, read, &y, &operands[0], values, block);
            for from in (0..filters).step_by(self.filters()) {
                let some = from..filters.min(from + self.filters());
                let row = positions * some.len();
                let packed = &packed[some.start * positions * taps * channels..];
                for at in 0..positions * taps {
                    let (position, tap) = (at / taps, at % taps);
                    let elements = &values[position * self.position_len() + tap * tiles * channels..];
                    let filters = &packed[at * channels * some.len()..];
                    let product = Product {
                        size: [lines.len() * tiles, some.len(), channels],
                        left: Left { elements, row: channels, step: 1 },
                        right: Right::Panels { elements: filters, before: 0, each: channels },
                        start: if tap == 0 { Start::Zero } else { Start::Old },
                        activation: Activation::None,
                    };
                    product.make(isa, &mut sums[position * some.len()..], row);
                }
                self.transform_output(isa, lines.clone(), &y, sums, bias, some, block, output);
            }
        }
    }
}
