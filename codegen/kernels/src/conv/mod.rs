//! Convolution.
//!
//! A convolution does the work of neighbouring layers, to the bit:
//!
//! - *Before it.* A batch norm or an activation of its input ([`Pre`]).
//! - *A concat.* A convolution of one group may be given its image in parts, which hold its channels one after
//!   another.
//! - *An addition.* Any convolution but a depthwise one may be given a tensor to add to its sums before the
//!   activation.
//!
//! The micro-kernel reads pixels by a table (`indirect`). For a part of the image, only the entries of the table differ
//! (`window`). A residual is read when a tile's sums end.
//!
//! # Example
//!
//! ```
//! use csdfc_kernels::conv::Conv;
//! use csdfc_kernels::rows::RowShape;
//! use csdfc_kernels::span::{Span, SpanMut};
//! use csdfc_kernels::{Activation, Context, Isa, RowKernel, Rows, RowsMut};
//!
//! let conv = Conv {
//!     channels: 1, filters: 1, kernel: [2, 2], stride: [1, 1], dilation: [1, 1], pads: [0; 4],
//!     groups: 1, pre: None, residual: false, activation: Activation::None,
//! };
//! let mut packed = vec![0.0; conv.packed_len()];
//! conv.pack(&[1.0; 4], &[], &[], [&[], &[]], &mut packed); // four weights of 1, no biases
//! let image = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0];
//! let input = Rows { data: Span::new(&image), shape: RowShape::dense(3, 3, 1, 3) }; // an image of 3 × 3 pixels, HWC
//! let mut made = [0.0; 4];
//! let mut output = RowsMut { data: SpanMut::new(&mut made), shape: RowShape::dense(2, 2, 1, 2) }; // 2 × 2
//! let context = &mut Context::alone(Isa::PORTABLE);
//! conv.rows(context, 0..2, &[input], &[Rows::line(&packed)], &mut output);
//! assert_eq!(made, [12.0, 16.0, 24.0, 28.0]);
//! ```

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
mod parameters;
pub mod pointwise;
pub mod pre;
pub mod scaled;
pub mod scenario;
pub mod transpose;
mod window;
pub mod winograd;

pub use parameters::Conv;
pub use pre::Pre;

use core::ops::Range;

use super::arch::Isa;
use super::features;
use super::half::F16;
use super::kernel::{Context, RowKernel, Sharing};
use super::panel::Panels;
use super::rows::{RowShape, Rows, RowsMut};
use super::shared::SharedRows;
use super::weight::Weight;
use dense::Pixels;

/// From this number of multiplications on, workers share the rows of a firing. With fewer, waking the other workers
/// takes longer than the work.
const MIN_PRODUCTS: usize = 1 << 17;
/// The same for output channels. It is higher, since workers that share a row read pixels from each other's caches.
const MIN_OF_CHANNELS: usize = 1 << 19;

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
            // SAFETY: `deal` gives each output channel to one call, and returns when all calls have. As long, `output`
            // borrows the rows.
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
            true if products >= MIN_PRODUCTS => Sharing::Rows(1),
            false if products >= MIN_OF_CHANNELS => Sharing::Kernel,
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
    assert!(features::PROLOGUES || p.pre.is_none(), "a convolution with a prologue");
    assert!(features::DEPTHWISE || !p.is_depthwise(), "a depthwise convolution");
    let prologue = p.pre.map(|pre| pre::Prologue::new(pre, beside));
    if features::DEPTHWISE && p.is_depthwise() {
        assert!(inputs.len() == 1, "operands of a depthwise convolution");
        let input = inputs[0];
        isa.run(depthwise::Depthwise { p, panels, y, tiles, input, prologue, weights, output });
    } else {
        let (parts, residual) = match inputs.split_last() {
            Some((&residual, parts)) if p.residual => (parts, Some(residual)),
            _ => (inputs, None),
        };
        let channels: usize = parts.iter().map(|part| part.shape.channels).sum();
        assert!(
            parts.len() == 1 || features::PARTS && p.groups == 1 && channels == p.channels,
            "parts of an image"
        );
        isa.run(dense::Dense { p, panels, y, tiles, parts, residual, prologue, weights, output });
    }
}
