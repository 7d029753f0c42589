//! Convolution by spectra of planes: the spectra of all channels of the input are multiplied by those of a filter and
//! summed, and then one inverse transform gives the output ("Fast training of convolutional networks through FFTs",
//! Mathieu et al., 2014).
//!
//! It needs the whole image, and makes the whole output.
//!
//! # Example
//!
//! ```
//! use csdfc_kernels::conv::fft::Spectra;
//! use csdfc_kernels::conv::fft2d::Fft2d;
//! use csdfc_kernels::conv::Conv;
//! use csdfc_kernels::conv::scenario::{Filters, Scenario};
//! use csdfc_kernels::layout::Layout;
//! use csdfc_kernels::rows::RowShape;
//! use csdfc_kernels::span::{Span, SpanMut};
//! use csdfc_kernels::{Activation, Context, Isa, RowKernel, Rows, RowsMut};
//!
//! let conv = Conv {
//!     channels: 1, filters: 1, kernel: [2, 2], stride: [1, 1], dilation: [1, 1], pads: [0; 4],
//!     groups: 1, pre: None, residual: false, activation: Activation::None,
//! };
//! let scenario = Scenario {
//!     conv, input: [3, 3], output: [2, 2], layouts: [Layout::Chw; 2], filters: Filters::Planes,
//! };
//! let kernel = Fft2d { scenario, spectra: Spectra::Kept };
//! let mut packed = vec![0.0; kernel.packed_len()];
//! kernel.pack(&[1.0; 4], &[], &mut packed, &mut vec![0.0; kernel.room()]);
//! let image = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0];
//! let input = Rows { data: Span::new(&image), shape: RowShape::dense(1, 1, 9, 1) }; // an image of 3 × 3 pixels, CHW
//! let mut made = [0.0; 4];
//! let mut output = RowsMut { data: SpanMut::new(&mut made), shape: RowShape::dense(1, 1, 4, 1) }; // 2 × 2
//! let mut room = vec![0.0; kernel.workspace_len()];
//! let context = &mut Context { isa: Isa::PORTABLE, workers: None, workspace: &mut room };
//! kernel.rows(context, 0..1, &[input], &[Rows::line(&packed)], &mut output);
//! assert_eq!(made.map(f32::round), [12.0, 16.0, 24.0, 28.0]);
//! ```

use core::ops::Range;

use super::super::arch::{Job, Simd};
use super::super::kernel::{Context, RowKernel};
use super::super::rows::{Rows, RowsMut};
use super::fft::{
    Spectra, Work, add_product, analyse, fill_turns, point, points, synthesise, transform, write,
};
use super::parameters::pack_biases;
use super::scenario::Scenario;

/// A convolution by spectra of planes. Its output is CHW. [`Scenario::filters`] has no effect here.
#[derive(Debug, Clone, Copy)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Fft2d {
    /// The convolution.
    pub scenario: Scenario,
    /// Where the spectra of the filters come from.
    pub spectra: Spectra,
}

impl Fft2d {
    /// Points of the transforms along y and x.
    const fn points(&self) -> [usize; 2] {
        [points(&self.scenario, 0), points(&self.scenario, 1)]
    }

    /// The larger of the two. This many cosines and sines serve both.
    const fn most(&self) -> usize {
        let [rows, columns] = self.points();
        if rows > columns { rows } else { columns }
    }

    /// Elements of a row of a spectrum: real parts and then imaginary parts. The other half of the row follows from these, as
    /// the plane is of real numbers.
    const fn line(&self) -> usize {
        self.points()[1] + 2
    }

    /// Elements of a spectrum.
    const fn spectrum(&self) -> usize {
        self.points()[0] * self.line()
    }

    /// Elements of the packed parameters: biases, cosines and sines, and filters or their spectra.
    pub const fn packed_len(&self) -> usize {
        let conv = &self.scenario.conv;
        let each = match self.spectra {
            Spectra::Kept => self.spectrum(),
            Spectra::Made => conv.kernel[0] * conv.kernel[1],
        };
        conv.filters * (1 + conv.channels * each) + self.most()
    }

    /// Elements of the workspace: spectra of the channels of the input and of a sum, the spectrum of a filter's channel
    /// if filters' spectra are made, and a transform.
    pub const fn workspace_len(&self) -> usize {
        let filter = match self.spectra {
            Spectra::Kept => 0,
            Spectra::Made => 1,
        };
        self.spectrum() * (self.scenario.conv.channels + 1 + filter) + self.room()
    }

    /// Elements of a transform.
    pub const fn room(&self) -> usize {
        2 * self.most()
    }

    /// Packs `weights` (`[filters, channels, kernel_y, kernel_x]`) and `bias` (`[filters]`, or empty) into `out`, which
    /// holds [`Fft2d::packed_len`] elements. `transform` is room for a transform, [`Fft2d::room`].
    ///
    /// # Panics
    /// If a slice has another length than stated here.
    pub fn pack(&self, weights: &[f32], bias: &[f32], out: &mut [f32], transform: &mut [f32]) {
        let conv = &self.scenario.conv;
        assert_eq!(out.len(), self.packed_len(), "length of packed filters");
        let (biases, rest) = out.split_at_mut(conv.filters);
        let (turns, filters) = rest.split_at_mut(self.most());
        pack_biases(bias, biases);
        fill_turns(turns);
        match self.spectra {
            Spectra::Made => filters.copy_from_slice(weights),
            Spectra::Kept => {
                let planes = weights.chunks_exact(conv.kernel[0] * conv.kernel[1]);
                for (plane, spectrum) in planes.zip(filters.chunks_exact_mut(self.spectrum())) {
                    self.of_filter(plane, turns, transform, spectrum);
                }
            }
        }
    }

    /// The spectrum of a channel of a filter.
    #[inline(always)]
    fn of_filter(&self, plane: &[f32], turns: &[f32], room: &mut [f32], spectrum: &mut [f32]) {
        let conv = &self.scenario.conv;
        let lines = plane.chunks_exact(conv.kernel[1]).map(|line| line.iter());
        self.of_plane(lines, conv.dilation, turns, room, spectrum);
    }

    /// The spectrum of a plane. `distance` has the points from line to line, and from number to number within a line.
    #[inline(always)]
    fn of_plane<'a, L: Iterator<Item = &'a f32>>(
        &self,
        lines: impl Iterator<Item = L>,
        distance: [usize; 2],
        turns: &[f32],
        room: &mut [f32],
        spectrum: &mut [f32],
    ) {
        spectrum.fill(0.0);
        let columns = &mut room[..2 * self.points()[1]];
        let rows = spectrum.chunks_exact_mut(self.line()).step_by(distance[0]);
        for (line, row) in lines.zip(rows) {
            analyse(line, distance[1], turns, columns, row);
        }
        self.along_y(spectrum, turns, room, -1.0);
    }

    /// Transforms the columns of a spectrum.
    #[inline(always)]
    fn along_y(&self, spectrum: &mut [f32], turns: &[f32], room: &mut [f32], sign: f32) {
        let (rows, line) = (self.points()[0], self.line());
        let (re, im) = room[..2 * rows].split_at_mut(rows);
        for column in 0..line / 2 {
            for (row, values) in spectrum.chunks_exact(line).enumerate() {
                (re[row], im[row]) = (values[column], values[line / 2 + column]);
            }
            transform(re, im, turns, sign);
            for (row, values) in spectrum.chunks_exact_mut(line).enumerate() {
                (values[column], values[line / 2 + column]) = (re[row], im[row]);
            }
        }
    }
}

/// One operand; the constant is packed by [`Fft2d::pack`]. The workspace has [`Fft2d::workspace_len`] elements.
impl RowKernel for Fft2d {
    #[inline]
    fn rows(
        &self,
        context: &mut Context<'_>,
        y: Range<usize>,
        operands: &[Rows<'_>],
        constants: &[Rows<'_>],
        output: &mut RowsMut<'_>,
    ) {
        let rows = self.scenario.output_rows(y.clone());
        let constants = &constants[0].row(0)[..self.packed_len()];
        let workspace = &mut context.workspace[..self.workspace_len()];
        context.isa.run(Work { p: self, rows, input: operands[0], constants, workspace, output });
        self.scenario.activate(context.isa, y, output);
    }
}

impl Job for Work<'_, '_, '_, Fft2d> {
    #[inline(always)]
    fn run<S: Simd>(self) {
        let Work { p, rows, input, constants, workspace, output } = self;
        let Scenario { conv, input: [height, read], layouts, .. } = p.scenario;
        let (each, line, [high, wide]) = (p.spectrum(), p.line(), p.points());
        let (bias, rest) = constants.split_at(conv.filters);
        let (turns, filters) = rest.split_at(p.most());
        let (spectra, rest) = workspace.split_at_mut(each * conv.channels);
        let (room, rest) = rest.split_at_mut(p.room());
        let (sum, made) = rest.split_at_mut(each);
        for (channel, spectrum) in spectra.chunks_exact_mut(each).enumerate() {
            let lines = (0..height).map(|row| {
                let line = layouts[0].line(&input, read, row);
                line.data[channel * line.channel..].iter().step_by(line.column).take(read)
            });
            p.of_plane(lines, [1, 1], turns, room, spectrum);
        }
        let scale = 1.0 / (high * wide) as f32;
        let taps = conv.kernel[0] * conv.kernel[1];
        for (filter, bias) in bias.iter().enumerate() {
            sum.fill(0.0);
            for (channel, of_image) in spectra.chunks_exact(each).enumerate() {
                let at = filter * conv.channels + channel;
                let of_filter: &[f32] = match p.spectra {
                    Spectra::Kept => &filters[at * each..][..each],
                    Spectra::Made => {
                        p.of_filter(&filters[at * taps..][..taps], turns, room, made);
                        made
                    }
                };
                let lines = of_image.chunks_exact(line).zip(of_filter.chunks_exact(line));
                for (sum, (of_image, of_filter)) in sum.chunks_exact_mut(line).zip(lines) {
                    add_product(sum, of_image, of_filter);
                }
            }
            p.along_y(sum, turns, room, 1.0);
            let (re, im) = room[..2 * wide].split_at_mut(wide);
            for y in rows.clone() {
                let row = point(&p.scenario, 0, y, high);
                if let Some(row) = row {
                    synthesise(&sum[row * line..][..line], re, im, turns);
                }
                write(&p.scenario, output, [filter, y], *bias, row.map(|_| (&*re, scale)));
            }
        }
    }
}
