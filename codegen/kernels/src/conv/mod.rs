//! Convolution.
//!
//! A convolution does the work of layers beside it, to the bit:
//!
//! - *Before it.* A batch norm or an activation of its input ([`Pre`]).
//! - *A concat.* A convolution of one group may be given its image in parts, which hold its channels one after
//!   another.
//! - *An addition.* Any convolution but a depthwise one may be given a tensor to add to its sums before the
//!   activation.
//!
//! The micro-kernel reads pixels by a table (`indirect`). For a part of the image, only the entries of the table differ
//! (`window`). A residual is read when a tile's sums end.

mod dense;
mod depthwise;
pub mod direct;
pub mod fft;
pub mod fft2d;
pub mod im2row;
pub mod kn2;
pub mod lowered;
pub mod mec;
pub mod mec_batch;
pub mod mixed;
pub mod pointwise;
pub mod pre;
pub mod scaled;
pub mod scenario;
pub mod transpose;
mod uses;
mod window;
pub mod winograd;

pub use pre::Pre;

use core::ops::Range;

use super::activation::Activation;
use super::arch::Isa;
use super::element::F16;
use super::kernel::{Context, RowKernel};
use super::panel::Panels;
use super::rows::{RowShape, Rows, RowsMut};
use super::share::Sharing;
use super::shared::SharedRows;
use super::weight::Weight;
use dense::Pixels;

/// From this number of multiplications on, workers share the rows of a firing. With fewer, waking the other workers
/// takes longer than the work.
const LEAST: usize = 1 << 17;
/// The same for output channels. It is higher, since workers that share a row read pixels from each other's caches.
const LEAST_OF_CHANNELS: usize = 1 << 19;

/// A 2-D convolution, `[H, W, channels]` → `[H', W', filters]`. Its operands are the image or, if it has one group,
/// parts of it, which hold its channels in this order. If there is a [`Conv::residual`], it is the last operand.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Conv {
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
    /// `[top, left, bottom, right]`, zeros. Kernels take bottom and right from the tensors' sizes.
    pub pads: [usize; 4],
    /// Groups.
    pub groups: usize,
    /// The prologue, applied to the input as it is loaded.
    pub pre: Option<Pre>,
    /// Whether the last operand, of the output's shape, is added to the sums. Not of a depthwise convolution.
    pub residual: bool,
    /// Applied to every output element.
    pub activation: Activation,
}

/// The packed parameters of a convolution.
#[derive(Clone, Copy)]
struct Packed<'a, E, W> {
    /// How the weights lie.
    panels: Panels,
    /// Panels of filters, biases and slopes.
    weights: &'a [W],
    /// The scales and shifts of an affine [`Conv::pre`].
    beside: &'a [E],
}

impl Conv {
    /// Whether every channel has one filter of its own.
    pub const fn is_depthwise(&self) -> bool {
        self.groups == self.channels && self.groups == self.filters
    }

    const fn panels(&self) -> Panels {
        let taps = self.kernel[0] * self.kernel[1];
        if self.is_depthwise() {
            Panels::new(1, self.filters, taps, self.activation)
        } else {
            let steps = taps * (self.channels / self.groups);
            Panels::new(self.groups, self.filters / self.groups, steps, self.activation)
        }
    }

    /// Elements of the packed weights, biases and slopes, and of the constants of [`Conv::pre`] after them.
    pub const fn packed_len(&self) -> usize {
        let constants = match self.pre {
            Some(Pre { affine: true, .. }) => 2 * self.channels,
            _ => 0,
        };
        self.panels().len() + constants
    }

    /// Packs `weights` (`[filters, channels / groups, kernel_y, kernel_x]`), `bias` (`[filters]`, or empty), the
    /// `slopes` of a PRelu (`[filters]` or `[1]`, else empty), and the scales and shifts of an affine [`Conv::pre`]
    /// (`[channels]` each, else empty) into `out`, which holds [`Conv::packed_len`] elements.
    ///
    /// # Panics
    /// If a slice has another length than stated here.
    pub fn pack(
        &self,
        weights: &[f32],
        bias: &[f32],
        slopes: &[f32],
        [scale, shift]: [&[f32]; 2],
        out: &mut [f32],
    ) {
        let (out, constants) = out.split_at_mut(self.panels().len());
        let (scales, shifts) = constants.split_at_mut(constants.len() / 2);
        scales.copy_from_slice(scale);
        shifts.copy_from_slice(shift);
        let taps = self.kernel[0] * self.kernel[1];
        let channels = self.channels / self.groups;
        let weight = |filter: usize, step: usize| {
            weights[(filter * channels + step % channels) * taps + step / channels]
        };
        self.panels().pack(weight, bias, slopes, out);
    }

    /// Elements of an output channel among the packed elements: bias, weights and slope.
    pub const fn packed_each(&self) -> usize {
        self.panels().each()
    }

    /// Parts into which the output channels may be divided among workers.
    pub const fn tiles(&self) -> usize {
        self.panels().count()
    }
}

/// Taps `start .. end` of a kernel that, from `at = output · stride`, lie within `size` elements.
#[inline(always)]
pub(crate) fn inside(at: usize, pad: usize, kernel: usize, dilation: usize, size: usize) -> Range<usize> {
    let start = pad.saturating_sub(at).div_ceil(dilation).min(kernel);
    let end = (size + pad).saturating_sub(at).div_ceil(dilation).min(kernel);
    start..end.max(start)
}

/// The operands of [`Conv`]; the constant is packed by [`Conv::pack`].
impl RowKernel for Conv {
    /// Makes rows `y`. Workers share the output channels.
    ///
    /// # Panics
    /// Also if the convolution is depthwise and [`Conv::pre`] does not suit it.
    fn rows(
        &self,
        context: &mut Context<'_>,
        y: Range<usize>,
        operands: &[Rows<'_>],
        constants: &[Rows<'_>],
        output: &mut RowsMut<'_>,
    ) {
        self.make(self.packed(constants), context, y, operands, output);
    }

    fn sharing(&self, rows: usize, workers: usize, output: &RowShape) -> Sharing {
        self.shared(rows, workers, output)
    }
}

/// The same for halves. The weights, and everything that is packed with them, are halves too. Sums are floats until
/// each is rounded, once, after the activation. (The code for floats is generated here, so that crates without
/// optimisation can use it.)
impl RowKernel<F16, F16> for Conv {
    #[inline]
    fn rows(
        &self,
        context: &mut Context<'_>,
        y: Range<usize>,
        operands: &[Rows<'_, F16>],
        constants: &[Rows<'_, F16>],
        output: &mut RowsMut<'_, F16>,
    ) {
        self.make(self.packed(constants), context, y, operands, output);
    }

    #[inline]
    fn sharing(&self, rows: usize, workers: usize, output: &RowShape) -> Sharing {
        self.shared(rows, workers, output)
    }
}

impl Conv {
    /// The packed parameters, as elements of the tensors' type.
    #[inline]
    fn packed<'a, E>(&self, constants: &[Rows<'a, E>]) -> Packed<'a, E, E> {
        let panels = self.panels();
        let (weights, beside) = constants[0].row(0)[..self.packed_len()].split_at(panels.len());
        Packed { panels, weights, beside }
    }

    /// What the kernel does.
    #[inline]
    fn make<E: Pixels, W: Weight>(
        &self,
        packed: Packed<'_, E, W>,
        context: &mut Context<'_>,
        y: Range<usize>,
        operands: &[Rows<'_, E>],
        output: &mut RowsMut<'_, E>,
    ) {
        let (isa, output) = (context.isa, SharedRows::new(output));
        self.deal(context, |tiles| {
            #[allow(unsafe_code, reason = "several workers write one tensor")]
            // SAFETY: output channels are each of one call only, and the caller's borrow of the output lasts until all
            // are done.
            unsafe {
                conv_shared(isa, self, y.clone(), tiles, operands, packed, output);
            }
        });
    }

    /// Divides the output channels among the workers, in parts of [`Conv::tiles`].
    pub(crate) fn deal(&self, context: &mut Context<'_>, make: impl Fn(Range<usize>) + Sync) {
        let all = self.tiles();
        match &mut context.workers {
            Some(workers) if workers.count() > 1 && all > 1 => {
                // At least four panels, if there are as many, since registers hold the sums of several panels.
                let pieces = workers.count() * (all / (4 * workers.count())).clamp(1, 2);
                workers.deal(pieces, &|_, piece| {
                    make(all * piece / pieces..all * (piece + 1) / pieces);
                });
            }
            _ => make(0..all),
        }
    }

    /// Workers share rows, so each worker reads its part of the pixels and all weights. If there are more weights than
    /// pixels, or fewer rows than workers, workers share output channels.
    pub(crate) fn shared(&self, rows: usize, workers: usize, output: &RowShape) -> Sharing {
        let pixels = rows * output.width;
        let steps = self.kernel[0] * self.kernel[1] * (self.channels / self.groups.max(1));
        let products = pixels * self.filters * steps;
        let read = pixels * self.stride[0] * self.stride[1] * self.channels;
        let is_light = self.panels().len() <= read || self.tiles() < workers;
        match rows >= workers && is_light {
            true if products >= LEAST => Sharing::Rows(1),
            false if products >= LEAST_OF_CHANNELS => Sharing::Kernel,
            _ => Sharing::Alone,
        }
    }
}

/// Makes those output channels of rows `y` that belong to `tiles`, of [`Conv::tiles`]. The bytes do not depend on how
/// rows and tiles are divided.
///
/// # Safety
/// No one else reads or writes these elements of `output` at the same time.
///
/// # Panics
/// As the kernel.
#[allow(unsafe_code, reason = "several workers write one tensor")]
unsafe fn conv_shared<E: Pixels, W: Weight>(
    isa: Isa,
    p: &Conv,
    y: Range<usize>,
    tiles: Range<usize>,
    inputs: &[Rows<'_, E>],
    Packed { panels, weights, beside }: Packed<'_, E, W>,
    output: SharedRows<'_, E>,
) {
    assert!(uses::PROLOGUES || p.pre.is_none(), "a convolution with a prologue");
    assert!(uses::DEPTHWISE || !p.is_depthwise(), "a depthwise convolution");
    let before = p.pre.map(|pre| pre::Before::new(pre, beside));
    if uses::DEPTHWISE && p.is_depthwise() {
        assert!(inputs.len() == 1, "operands of a depthwise convolution");
        let input = inputs[0];
        isa.run(depthwise::Depthwise { p, panels, y, tiles, input, before, weights, output });
    } else {
        let (parts, residual) = match inputs.split_last() {
            Some((&residual, parts)) if p.residual => (parts, Some(residual)),
            _ => (inputs, None),
        };
        let channels: usize = parts.iter().map(|part| part.shape.channels).sum();
        assert!(
            parts.len() == 1 || uses::PARTS && p.groups == 1 && channels == p.channels,
            "parts of an image"
        );
        isa.run(dense::Dense { p, panels, y, tiles, parts, residual, before, weights, output });
    }
}
