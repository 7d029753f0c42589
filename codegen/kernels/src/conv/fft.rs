//! Convolution by spectra of rows: a row of the output is a sum of 1-D convolutions, one for each channel and row of a
//! filter. Their spectra are summed, and then one inverse transform gives the row ("sum of 1-D" in "Optimal DNN
//! primitive selection with partitioned boolean quadratic programming", Anderson and Gregg, 2018).
//!
//! # Example
//!
//! ```
//! use csdfc_kernels::conv::fft::{Fft1d, Spectra};
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
//!     conv, input: [3, 3], output: [2, 2], layouts: [Layout::Hcw; 2], filters: Filters::Planes,
//! };
//! let kernel = Fft1d { scenario, spectra: Spectra::Kept };
//! let mut packed = vec![0.0; kernel.packed_len()];
//! kernel.pack(&[1.0; 4], &[], &mut packed, &mut vec![0.0; 2 * kernel.points()]);
//! let image = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0];
//! let input = Rows { data: Span::new(&image), shape: RowShape::dense(3, 1, 3, 3) }; // an image of 3 × 3 pixels, HCW
//! let mut made = [0.0; 4];
//! let mut output = RowsMut { data: SpanMut::new(&mut made), shape: RowShape::dense(2, 1, 2, 2) }; // 2 × 2
//! let mut room = vec![0.0; kernel.workspace_len()];
//! let context = &mut Context { isa: Isa::PORTABLE, workers: None, workspace: &mut room };
//! kernel.rows(context, 0..2, &[input], &[Rows::line(&packed)], &mut output);
//! assert_eq!(made.map(f32::round), [12.0, 16.0, 24.0, 28.0]);
//! ```

use core::ops::Range;

use super::super::arch::{Job, Simd};
use super::super::kernel::{Context, RowKernel, Sharing};
use super::super::rows::{RowShape, Rows, RowsMut};
use super::parameters::{Conv, pack_biases};
use super::scenario::Scenario;

/// A convolution by spectra of rows. [`Scenario::filters`] has no effect here.
#[derive(Debug, Clone, Copy)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Fft1d {
    /// The convolution.
    pub scenario: Scenario,
    /// Where the spectra of the filters come from.
    pub spectra: Spectra,
}

/// Where the spectra of filters come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub enum Spectra {
    /// They are kept in place of the filters.
    Kept,
    /// They are made at each firing, filter by filter.
    Made,
}

impl Fft1d {
    /// Points of a transform.
    pub const fn points(&self) -> usize {
        points(&self.scenario, 1)
    }

    /// Elements of the spectrum of real numbers: real parts and then imaginary parts.
    const fn spectrum(&self) -> usize {
        self.points() + 2
    }

    /// Rows of all filters, of one channel each.
    const fn lines(&self) -> usize {
        let conv = &self.scenario.conv;
        conv.filters * conv.channels * conv.kernel[0]
    }

    /// Elements of the packed parameters: biases, cosines and sines, and rows of filters or their spectra.
    pub const fn packed_len(&self) -> usize {
        let each = match self.spectra {
            Spectra::Kept => self.spectrum(),
            Spectra::Made => self.scenario.conv.kernel[1],
        };
        self.scenario.conv.filters + self.points() + self.lines() * each
    }

    /// Elements of the workspace: spectra of the rows of the input and of a sum, the spectra of a filter if they are
    /// made, and a transform.
    pub const fn workspace_len(&self) -> usize {
        let Scenario { conv, input, .. } = &self.scenario;
        let filter = match self.spectra {
            Spectra::Kept => 0,
            Spectra::Made => conv.channels * conv.kernel[0],
        };
        self.spectrum() * (input[0] * conv.channels + filter + 1) + 2 * self.points()
    }

    /// Packs `weights` (`[filters, channels, kernel_y, kernel_x]`) and `bias` (`[filters]`, or empty) into `out`, which
    /// holds [`Fft1d::packed_len`] elements. `transform` is room for two transforms.
    ///
    /// # Panics
    /// If a slice has another length than stated here.
    pub fn pack(&self, weights: &[f32], bias: &[f32], out: &mut [f32], transform: &mut [f32]) {
        let conv = &self.scenario.conv;
        assert_eq!(out.len(), self.packed_len(), "length of packed filters");
        let (biases, rest) = out.split_at_mut(conv.filters);
        let (turns, lines) = rest.split_at_mut(self.points());
        pack_biases(bias, biases);
        fill_turns(turns);
        match self.spectra {
            Spectra::Made => lines.copy_from_slice(weights),
            Spectra::Kept => {
                let spectra = lines.chunks_exact_mut(self.spectrum());
                for (line, spectrum) in weights.chunks_exact(conv.kernel[1]).zip(spectra) {
                    analyse(line.iter(), conv.dilation[1], turns, transform, spectrum);
                }
            }
        }
    }
}

/// Points of a transform along an axis, enough that no two places of a whole convolution coincide.
pub(super) const fn points(scenario: &Scenario, axis: usize) -> usize {
    let Scenario { conv, input, .. } = scenario;
    let whole = (input[axis] + (conv.kernel[axis] - 1) * conv.dilation[axis]).next_power_of_two();
    if whole < 2 { 2 } else { whole }
}

/// The point at which a transform of `points` points along an axis has the sums of a place of the output. Windows that
/// begin before the input have their sums at the end. If a window covers nothing of the input, there is none.
#[inline(always)]
pub(super) fn point(scenario: &Scenario, axis: usize, place: usize, points: usize) -> Option<usize> {
    let Conv { stride, pads, .. } = scenario.conv;
    let at = place * stride[axis];
    let sees_some = !scenario.taps(axis, place).is_empty();
    sees_some.then(|| at.checked_sub(pads[axis]).unwrap_or_else(|| points + at - pads[axis]))
}

/// Cosines and then sines of half a circle.
pub(super) fn fill_turns(turns: &mut [f32]) {
    let (cosines, sines) = turns.split_at_mut(turns.len() / 2);
    let half = cosines.len() as f64;
    for (k, (cosine, sine)) in cosines.iter_mut().zip(sines).enumerate() {
        [*cosine, *sine] = cosine_and_sine(core::f64::consts::PI * k as f64 / half).map(|x| x as f32);
    }
}

/// The spectrum of numbers that are placed `distance` points from each other. `room` is the room of a transform.
#[inline(always)]
pub(super) fn analyse<'a>(
    numbers: impl Iterator<Item = &'a f32>,
    distance: usize,
    turns: &[f32],
    room: &mut [f32],
    spectrum: &mut [f32],
) {
    let (re, im) = room.split_at_mut(spectrum.len() - 2);
    re.fill(0.0);
    im.fill(0.0);
    re.iter_mut().step_by(distance).zip(numbers).for_each(|(point, number)| *point = *number);
    transform(re, im, turns, -1.0);
    let (real, imaginary) = spectrum.split_at_mut(spectrum.len() / 2);
    real.copy_from_slice(&re[..real.len()]);
    imaginary.copy_from_slice(&im[..imaginary.len()]);
}

/// Cosine and sine of an angle from 0 to π, by their series. They are the same on every machine, and exact to 14
/// digits.
fn cosine_and_sine(angle: f64) -> [f64; 2] {
    let (mut sums, mut term) = ([0.0; 2], 1.0);
    for n in 0..32_u32 {
        sums[n as usize % 2] += if n % 4 < 2 { term } else { -term };
        term *= angle / f64::from(n + 1);
    }
    sums
}

/// The discrete Fourier transform in place, with exponents of this sign (Cooley and Tukey, 1965). The number of points
/// is a power of two. `turns` are cosines and sines of half a circle, in the number of steps that the transform needs
/// or in a multiple of it.
#[inline(always)]
pub(super) fn transform(re: &mut [f32], im: &mut [f32], turns: &[f32], sign: f32) {
    let points = re.len();
    let (cosines, sines) = turns.split_at(turns.len() / 2);
    let bits = points.trailing_zeros();
    // Each pass below makes transforms of twice the points, from those of even and of odd places, which lie side by
    // side. That is in place if the numbers begin in the order of their reversed bits.
    for i in 0..points {
        let j = i.reverse_bits() >> (usize::BITS - bits);
        if i < j {
            re.swap(i, j);
            im.swap(i, j);
        }
    }
    let mut half = 1;
    while half < points {
        // The angles of this pass are every so many of those of half a circle.
        let stride = cosines.len() / half;
        for (re, im) in re.chunks_exact_mut(2 * half).zip(im.chunks_exact_mut(2 * half)) {
            let ((low_re, high_re), (low_im, high_im)) = (re.split_at_mut(half), im.split_at_mut(half));
            for k in 0..half {
                let (cosine, sine) = (cosines[k * stride], sign * sines[k * stride]);
                let turned_re = high_re[k] * cosine - high_im[k] * sine;
                let turned_im = high_re[k] * sine + high_im[k] * cosine;
                (high_re[k], high_im[k]) = (low_re[k] - turned_re, low_im[k] - turned_im);
                (low_re[k], low_im[k]) = (low_re[k] + turned_re, low_im[k] + turned_im);
            }
        }
        half *= 2;
    }
}

/// One operand; the constant is packed by [`Fft1d::pack`]. The workspace has [`Fft1d::workspace_len`] elements.
impl RowKernel for Fft1d {
    /// If workers shared rows, each would transform filters, and rows that other workers read too.
    fn sharing(&self, _: usize, _: usize, _: &RowShape) -> Sharing {
        Sharing::Alone
    }

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

/// Rows of the output of a convolution by spectra as work for an instruction set.
pub(super) struct Work<'a, 'o, 'd, P> {
    pub p: &'a P,
    pub rows: Range<usize>,
    pub input: Rows<'a>,
    pub constants: &'a [f32],
    pub workspace: &'a mut [f32],
    pub output: &'o mut RowsMut<'d>,
}

impl Job for Work<'_, '_, '_, Fft1d> {
    #[inline(always)]
    fn run<S: Simd>(self) {
        let Work { p, rows, input, constants, workspace, output } = self;
        let Scenario { conv, input: [height, read], layouts, .. } = p.scenario;
        let (each, points) = (p.spectrum(), p.points());
        let (bias, rest) = constants.split_at(conv.filters);
        let (turns, filters) = rest.split_at(points);
        let (spectra, rest) = workspace.split_at_mut(each * height * conv.channels);
        let (room, rest) = rest.split_at_mut(2 * points);
        let (sum, made) = rest.split_at_mut(each);
        // The rows of the input that are read.
        let place = |y: usize, ky: usize| y * conv.stride[0] + ky * conv.dilation[0];
        let Some(last) = rows.clone().last() else { return };
        let first = place(rows.start, 0).saturating_sub(conv.pads[0]);
        let end = (place(last, conv.kernel[0] - 1) + 1).saturating_sub(conv.pads[0]).min(height);
        for row in first..end {
            let line = layouts[0].line(&input, read, row);
            for channel in 0..conv.channels {
                let numbers = line.data[channel * line.channel..].iter().step_by(line.column).take(read);
                let spectrum = &mut spectra[(row * conv.channels + channel) * each..][..each];
                analyse(numbers, 1, turns, room, spectrum);
            }
        }
        let lines = conv.channels * conv.kernel[0];
        for filter in 0..conv.filters {
            let own: &[f32] = match p.spectra {
                Spectra::Kept => &filters[filter * lines * each..][..lines * each],
                Spectra::Made => {
                    let numbers = filters.chunks_exact(conv.kernel[1]).skip(filter * lines);
                    for (line, spectrum) in numbers.zip(made.chunks_exact_mut(each)) {
                        analyse(line.iter(), conv.dilation[1], turns, room, spectrum);
                    }
                    made
                }
            };
            for y in rows.clone() {
                sum.fill(0.0);
                for (channel, ky) in
                    (0..conv.channels).flat_map(|c| p.scenario.taps(0, y).map(move |ky| (c, ky)))
                {
                    let row = place(y, ky) - conv.pads[0];
                    let of_image = &spectra[(row * conv.channels + channel) * each..][..each];
                    let of_filter = &own[(channel * conv.kernel[0] + ky) * each..][..each];
                    add_product(sum, of_image, of_filter);
                }
                let (re, im) = room.split_at_mut(points);
                synthesise(sum, re, im, turns);
                // To transform and transform back multiplies by the number of points.
                let scale = 1.0 / points as f32;
                write(&p.scenario, output, [filter, y], bias[filter], Some((re, scale)));
            }
        }
    }
}

/// Writes row `y` of a filter: the bias and the sums, which are at the points of a transform along x, times a factor.
/// Without them, the sums are 0.
#[inline(always)]
pub(super) fn write(
    scenario: &Scenario,
    output: &mut RowsMut<'_>,
    [filter, y]: [usize; 2],
    bias: f32,
    sums: Option<(&[f32], f32)>,
) {
    let width = scenario.output[1];
    let line = scenario.layouts[1].line_mut(output, width, y);
    let made = line.data[filter * line.channel..].iter_mut().step_by(line.column);
    for (x, made) in made.take(width).enumerate() {
        let sum = sums.and_then(|(points, scale)| {
            point(scenario, 1, x, points.len()).map(|point| points[point] * scale)
        });
        *made = bias + sum.unwrap_or(0.0);
    }
}

/// Adds the product of a spectrum and the conjugate of another. This is a correlation, as are the convolutions of
/// networks.
#[inline(always)]
pub(super) fn add_product(sum: &mut [f32], image: &[f32], filter: &[f32]) {
    let half = sum.len() / 2;
    let ((re, im), (a, b), (c, d)) = (sum.split_at_mut(half), image.split_at(half), filter.split_at(half));
    for ((re, im), ((a, b), (c, d))) in re.iter_mut().zip(im).zip(a.iter().zip(b).zip(c.iter().zip(d))) {
        *re += a * c + b * d;
        *im += b * c - a * d;
    }
}

/// The real numbers of a spectrum, times the number of points, in `re`.
#[inline(always)]
pub(super) fn synthesise(spectrum: &[f32], re: &mut [f32], im: &mut [f32], turns: &[f32]) {
    let points = re.len();
    let (real, imaginary) = spectrum.split_at(spectrum.len() / 2);
    for (k, (real, imaginary)) in real.iter().zip(imaginary).enumerate() {
        (re[k], im[k]) = (*real, *imaginary);
        // Of real numbers, the spectrum at −k is the conjugate of that at k, so only half of it is kept.
        if k > 0 && 2 * k < points {
            (re[points - k], im[points - k]) = (*real, -*imaginary);
        }
    }
    transform(re, im, turns, 1.0);
}
