//! Transposed convolution, each output pixel gathering the input pixels that reach it.
#![allow(unsafe_code, reason = "vector instructions; each block says why it is sound")]

use core::ops::Range;

use super::super::activation::Activation;
use super::super::arch::{Isa, Job, PANEL, Simd};
use super::super::panel::{Block, Panels};
use super::super::rows::{Rows, RowsMut};
use super::super::shared::SharedRows;
use super::super::tile::{TileWork, accumulate, call, finish, most_panels, panel_pointers, slopes};
use super::ZEROS;

/// A 2-D transposed convolution, `[H, W, channels]` → `[H', W', filters]`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ConvTranspose {
    /// Input channels.
    pub channels: usize,
    /// Output channels.
    pub filters: usize,
    /// Height and width of the filters.
    pub kernel: [usize; 2],
    /// Stride in y and x.
    pub stride: [usize; 2],
    /// Dilation in y and x.
    pub dilation: [usize; 2],
    /// `[top, left, bottom, right]`, cropped from the full result; bottom and right are taken from the tensors' sizes,
    /// and so is what the output has beyond it.
    pub pads: [usize; 4],
    /// Groups.
    pub groups: usize,
    /// Applied to every output element.
    pub activation: Activation,
}

impl ConvTranspose {
    const fn panels(&self) -> Panels {
        let steps = self.kernel[0] * self.kernel[1] * (self.channels / self.groups);
        Panels::new(self.groups, self.filters / self.groups, steps, self.activation)
    }

    /// Elements of the packed weights, biases and slopes.
    pub const fn packed_len(&self) -> usize {
        self.panels().len()
    }

    /// Packs `weights` (`[channels, filters / groups, kernel_y, kernel_x]`), `bias` (`[filters]`, or empty) and the
    /// `slopes` of a PRelu (`[filters]` or `[1]`, else empty) into `out`, which holds [`ConvTranspose::packed_len`]
    /// elements.
    ///
    /// # Panics
    /// If a slice has another length than is said here.
    pub fn pack(&self, weights: &[f32], bias: &[f32], slopes: &[f32], out: &mut [f32]) {
        let taps = self.kernel[0] * self.kernel[1];
        let (channels, filters) = (self.channels / self.groups, self.filters / self.groups);
        let weight = |filter: usize, step: usize| {
            let channel = filter / filters * channels + step % channels;
            weights[(channel * filters + filter % filters) * taps + step / channels]
        };
        self.panels().pack(weight, bias, slopes, out);
    }

    /// Parts into which the output channels may be divided among workers.
    pub const fn tiles(&self) -> usize {
        self.panels().count()
    }
}

/// Makes rows `y` of the transposed convolution. `weights` are packed by [`ConvTranspose::pack`].
///
/// # Panics
/// If a slice is shorter than the shapes say.
#[inline]
pub fn conv_transpose(
    isa: Isa,
    p: &ConvTranspose,
    y: Range<usize>,
    input: Rows<'_>,
    weights: &[f32],
    output: &mut RowsMut<'_>,
) {
    // SAFETY: no one else has the rows.
    unsafe { conv_transpose_shared(isa, p, y, 0..p.tiles(), input, weights, SharedRows::new(output)) }
}

/// Makes those output channels of rows `y` that belong to `tiles`, of [`ConvTranspose::tiles`]. The bytes are those of
/// [`conv_transpose`] however rows and tiles are divided.
///
/// # Safety
/// No one else reads or writes these elements of `output` at the same time.
///
/// # Panics
/// As [`conv_transpose`].
pub unsafe fn conv_transpose_shared(
    isa: Isa,
    p: &ConvTranspose,
    y: Range<usize>,
    tiles: Range<usize>,
    input: Rows<'_>,
    weights: &[f32],
    output: SharedRows<'_>,
) {
    let weights = &weights[..p.packed_len()];
    isa.run(Gather { p, y, tiles, input, weights, output });
}

/// The rows `y` and panels `tiles`.
struct Gather<'a> {
    p: &'a ConvTranspose,
    y: Range<usize>,
    tiles: Range<usize>,
    input: Rows<'a>,
    weights: &'a [f32],
    output: SharedRows<'a>,
}

impl Job for Gather<'_> {
    #[inline(always)]
    fn run<S: Simd>(self) {
        let step = self.p.stride[1];
        for block in self.p.panels().blocks(self.tiles.clone(), most_panels::<S>()) {
            for y in self.y.clone() {
                // Pixels a stride apart are reached by the same taps.
                for phase in 0..step.min(self.output.width()) {
                    let pixels = (self.output.width() - phase).div_ceil(step);
                    let tiles = pixels.div_ceil(S::PIXELS);
                    for tile in 0..tiles {
                        let (from, to) = (tile * pixels / tiles, (tile + 1) * pixels / tiles);
                        let work = Pixels { conv: &self, block: &block, y, x: phase + from * step };
                        // SAFETY: this is within a job of this instruction set.
                        unsafe { call::<S, _>(work, to - from, block.panels.len()) }
                    }
                }
            }
        }
    }
}

/// The place, in steps of `stride`, from which a tap reaches `at`; it may lie before the input, which wraps.
#[inline(always)]
fn source(at: usize, pad: usize, tap: usize, stride: usize) -> Option<usize> {
    let distance = (at + pad) as isize - tap as isize;
    (distance.rem_euclid(stride as isize) == 0).then(|| distance.div_euclid(stride as isize) as usize)
}

/// Pixels a stride apart, from column `x` of row `y`.
#[derive(Clone, Copy)]
struct Pixels<'a> {
    conv: &'a Gather<'a>,
    block: &'a Block,
    y: usize,
    x: usize,
}

impl TileWork for Pixels<'_> {
    #[inline(always)]
    fn run<S: Simd, const M: usize, const N: usize>(self) {
        let Gather { p, input, output, .. } = self.conv;
        let panels = p.panels();
        let channels = p.channels / p.groups;
        let shape = &input.shape;
        let offset = shape.channel_offset + self.block.group * channels;
        let stride = panels.stride();
        let weights = &self.conv.weights[self.block.panels.start * stride..self.block.panels.end * stride];
        // SAFETY: this is within a job of this instruction set; the slices have the lengths that the micro-kernel reads.
        unsafe {
            let bias = panel_pointers::<S, N>(weights, stride, 0, PANEL).map(|b| S::load(b));
            let mut sums = [bias; M];
            for ky in 0..p.kernel[0] {
                let row = source(self.y, p.pads[0], ky * p.dilation[0], p.stride[0]);
                let Some(iy) = row.filter(|iy| *iy < shape.height) else { continue };
                let row = input.row(iy);
                for kx in 0..p.kernel[1] {
                    let Some(ix) = source(self.x, p.pads[1], kx * p.dilation[1], p.stride[1]) else {
                        continue;
                    };
                    for c in (0..channels).step_by(ZEROS.len()) {
                        let len = ZEROS.len().min(channels - c);
                        let pixels = core::array::from_fn(|i| {
                            let ix = ix.wrapping_add(i);
                            let pixel = if ix < shape.width {
                                &row[ix * shape.pixel_stride + offset + c..][..len]
                            } else {
                                &ZEROS[..len]
                            };
                            pixel.as_ptr()
                        });
                        let step = (ky * p.kernel[1] + kx) * channels + c;
                        let w = panel_pointers::<S, N>(weights, stride, PANEL * (1 + step), PANEL * len);
                        accumulate::<S, M, N>(&mut sums, &pixels, &w, PANEL, len);
                    }
                }
            }
            let count = (panels.filters - self.block.first).min(N * S::LANES);
            let first = self.block.group * panels.filters + self.block.first;
            let slopes = slopes(&panels, weights);
            let start = output.start(self.y);
            for (i, sums) in sums.iter().enumerate() {
                let out = output.channels(start, self.x + i * p.stride[1], first, count);
                finish::<S, N>(sums, p.activation, &slopes[..count], out);
            }
        }
    }
}
