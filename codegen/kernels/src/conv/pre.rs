//! A convolution's prologue, applied to its input as it is loaded: a batch norm, an activation, or both.
//!
//! The kernel transforms the pixels of a tile into a block on its stack, and the tile's table points to that block. A
//! depthwise convolution transforms them in registers. The arithmetic is that of the layers that the convolution
//! replaces, to the bit. The padding stays zero.
//!
//! # Example
//!
//! ```
//! use csdfc_kernels::conv::{Conv, Pre};
//! use csdfc_kernels::rows::RowShape;
//! use csdfc_kernels::span::{Span, SpanMut};
//! use csdfc_kernels::{Activation, Context, Isa, RowKernel, Rows, RowsMut};
//!
//! let conv = Conv {
//!     channels: 1, filters: 1, kernel: [1, 1], stride: [1, 1], dilation: [1, 1], pads: [0; 4],
//!     groups: 1, pre: Some(Pre { affine: true, activation: Activation::Relu }), residual: false, activation: Activation::None,
//! };
//! let mut packed = vec![0.0; conv.packed_len()];
//! // A weight of 10; before it, the input is doubled and 1 is added.
//! conv.pack(&[10.0], &[], &[], [&[2.0], &[1.0]], &mut packed);
//! let input = Rows { data: Span::new(&[3.0, -4.0]), shape: RowShape::dense(1, 2, 1, 1) }; // [1, 2, 1]
//! let mut made = [0.0; 2];
//! let mut output = RowsMut { data: SpanMut::new(&mut made), shape: RowShape::dense(1, 2, 1, 1) }; // [1, 2, 1]
//! conv.rows(&mut Context::alone(Isa::PORTABLE), 0..1, &[input], &[Rows::line(&packed)], &mut output);
//! assert_eq!(made, [70.0, 0.0]);
//! ```

use core::marker::PhantomData;
use core::mem::MaybeUninit;

use super::super::activation::{Activation, Apply};
use super::super::arch::{Job, PANEL, Simd};
use super::super::element::Element;
use super::super::indirect::{Load, MAX_PIXELS, PADDED_SPAN, Spans, zeros};

/// A batch norm, an activation, or one after the other, applied to the input of a convolution. Zeros beyond the input
/// stay zeros.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Pre {
    /// Whether each channel is multiplied by a scale, and a shift added.
    pub affine: bool,
    /// The activation that follows. It is no PRelu. For a depthwise convolution, it can only be a bound, such as a
    /// Relu.
    pub activation: Activation,
}

impl Pre {
    /// Whether the kernel of a depthwise convolution can do this.
    pub fn suits_depthwise(&self) -> bool {
        self.activation.bounds().is_some()
    }
}

/// [`Pre`] with its constants.
#[derive(Clone, Copy)]
pub(super) struct Prologue<'a, E> {
    pub activation: Activation,
    /// A scale and a shift for each input channel.
    pub constants: Option<[&'a [E]; 2]>,
}

impl<'a, E> Prologue<'a, E> {
    /// No prologue.
    pub const NONE: Self = Prologue { activation: Activation::None, constants: None };

    /// `constants` are scales and equally many shifts, if there are any.
    pub fn new(pre: Pre, constants: &'a [E]) -> Self {
        let halves = constants.split_at(constants.len() / 2);
        Prologue { activation: pre.activation, constants: pre.affine.then_some([halves.0, halves.1]) }
    }

    /// The prologue of `count` channels from `first` on.
    fn channels(&self, first: usize, count: usize) -> Self {
        let constants =
            self.constants.map(|[scale, shift]| [&scale[first..][..count], &shift[first..][..count]]);
        Prologue { constants, ..*self }
    }
}

/// Elements of all pixels of a table.
pub(super) const BLOCK: usize = MAX_PIXELS * PADDED_SPAN;

/// Loads elements by way of a block that stays in the nearest cache.
pub(super) struct Loaded<'a, E> {
    prologue: Prologue<'a, E>,
    /// Channels of a group.
    channels: usize,
    /// The group's first.
    first: usize,
    block: *mut f32,
    used: usize,
    borrow: PhantomData<&'a mut [f32]>,
}

impl<'a, E> Loaded<'a, E> {
    /// For groups of `channels` channels. Spans are those of single pixels.
    pub fn new(prologue: Prologue<'a, E>, channels: usize, block: &'a mut [MaybeUninit<f32>; BLOCK]) -> Self {
        let block = block.as_mut_ptr().cast();
        Loaded { prologue, channels, first: 0, block, used: 0, borrow: PhantomData }
    }
}

impl<E: Element> Load<E> for Loaded<'_, E> {
    const ROOM: usize = PADDED_SPAN;

    /// Whole vectors of any instruction set.
    #[inline(always)]
    fn room(steps: usize) -> usize {
        steps.next_multiple_of(PANEL)
    }

    fn start(&mut self, group: usize) {
        (self.first, self.used) = (group * self.channels, 0);
    }

    #[inline(always)]
    #[allow(unsafe_code, reason = "elements of the block that are loaded while others are in use")]
    unsafe fn load<'a, S: Simd>(
        &mut self,
        step: usize,
        steps: usize,
        spans: &impl Spans<'a, E>,
        span: usize,
        places: &mut [*const f32],
    ) where
        E: 'a,
    {
        let (start, count, stride) = (self.used, places.len(), Self::room(steps));
        assert!(count <= MAX_PIXELS && count * stride <= BLOCK - start, "more than the pixels of a table");
        self.used += count * stride;
        let mut pixel = spans.pixels(span);
        let mut pixels: [&[E]; MAX_PIXELS] = [&[]; MAX_PIXELS];
        for (i, place) in places.iter_mut().enumerate() {
            *place = match pixel(i) {
                Some(elements) => {
                    assert!(steps <= elements.len(), "elements of a pixel");
                    pixels[i] = elements;
                    self.block.wrapping_add(start + i * stride)
                }
                None => zeros(steps),
            };
        }
        let Prologue { activation, constants } =
            self.prologue.channels(self.first + step % self.channels, steps);
        let (pixels, to) = (&pixels[..count], self.block.wrapping_add(start));
        // SAFETY: this is in `Job::run`: `# Safety` of `Load::load`. As asserted, the pixels have `steps` elements, and
        // the block has room for `stride` of each from `start` on. What was loaded before lies below `start`.
        unsafe {
            if constants.is_none() && activation == Activation::None {
                S::call(Widen { pixels, steps, to, stride });
            } else {
                S::call(Transform { activation, constants, pixels, steps, to });
            }
        }
    }
}

/// Writes the first `steps` elements of each pixel that has any to `to`, as floats, with pixels `stride` elements
/// apart. It is a function of its own, since the closures that load tiles are not compiled for the instruction set.
struct Widen<'a, E> {
    pixels: &'a [&'a [E]],
    steps: usize,
    to: *mut f32,
    stride: usize,
}

impl<E: Element> Job for Widen<'_, E> {
    #[inline(always)]
    #[allow(unsafe_code, reason = "vector instructions")]
    fn run<S: Simd>(self) {
        let Widen { pixels, steps, to, stride } = self;
        for (i, pixel) in pixels.iter().enumerate() {
            // SAFETY: this is in `Job::run`. `Loaded::load` has asserted that the block has room for `stride` elements
            // of each pixel, and these are whole vectors.
            unsafe { widen::<S, E>(pixel, to.add(i * stride), steps) }
        }
    }
}

/// Copies the first `steps` elements of a pixel, if it has any, as floats. It writes whole vectors, even if other
/// elements follow.
///
/// # Safety
/// In [`Job::run`]; `to` is good for whole vectors.
#[inline(always)]
#[allow(unsafe_code, reason = "vector instructions")]
unsafe fn widen<S: Simd, E: Element>(pixel: &[E], to: *mut f32, steps: usize) {
    let steps = steps.min(pixel.len());
    let whole = steps.next_multiple_of(S::LANES);
    let whole = if whole <= pixel.len() { whole } else { steps / S::LANES * S::LANES };
    // SAFETY: `to` is good for whole vectors: `# Safety` of this function. No more than the pixel's elements are
    // loaded: `whole` is no more than they are, and nor is `steps`.
    unsafe {
        for at in (0..whole).step_by(S::LANES) {
            S::store(to.add(at), E::load::<S>(pixel.as_ptr().add(at)));
        }
        if whole < steps {
            S::store(to.add(whole), E::load_masked::<S>(pixel.as_ptr().add(whole), steps - whole));
        }
    }
}

/// The prologue of `steps` elements of each pixel at `to`, with as many constants.
struct Transform<'a, E> {
    activation: Activation,
    constants: Option<[&'a [E]; 2]>,
    pixels: &'a [&'a [E]],
    steps: usize,
    to: *mut f32,
}

impl<E: Element> Job for Transform<'_, E> {
    #[inline(always)]
    #[allow(unsafe_code, reason = "vector instructions")]
    fn run<S: Simd>(self) {
        let Transform { activation, constants, pixels, steps, to } = self;
        let bounds = activation.bounds().filter(|_| activation != Activation::None);
        for (i, pixel) in pixels.iter().enumerate() {
            if pixel.is_empty() {
                continue;
            }
            let (from, to) = (pixel.as_ptr(), to.wrapping_add(i * steps.next_multiple_of(PANEL)));
            // SAFETY: this is in `Job::run`. `Loaded::load` has asserted that a pixel that is not empty has `steps`
            // elements, and its part of the block room for them in whole vectors. As many constants have been cut out.
            // `values` have all been stored.
            unsafe {
                let [low, high] = bounds.unwrap_or_default();
                let (low, high) = (S::splat(low), S::splat(high));
                for at in (0..steps).step_by(S::LANES) {
                    let left = steps - at;
                    let mut x = load::<S, E>(from.add(at), left);
                    if let Some([scale, shift]) = constants {
                        // Rounded twice, as the batch norm's own product and sum are: −0 leaves a product, and 1 a
                        // summand, as it is.
                        x = S::mul_add(x, load::<S, E>(scale.as_ptr().add(at), left), S::splat(-0.0));
                        x = S::mul_add(x, S::splat(1.0), load::<S, E>(shift.as_ptr().add(at), left));
                    }
                    if bounds.is_some() {
                        x = S::min(high, S::max(low, x));
                    }
                    S::store(to.add(at), x);
                }
                if activation.bounds().is_none() {
                    let values = core::slice::from_raw_parts_mut(to, steps);
                    Apply { activation, values, slopes: &[] }.run::<S>();
                }
            }
        }
    }
}

/// The elements at `from`, of which `left` exist.
///
/// # Safety
/// In [`Job::run`]. `from` is aligned and good for `left` elements, or for a vector if that is less.
#[inline(always)]
#[allow(unsafe_code, reason = "vector instructions")]
unsafe fn load<S: Simd, E: Element>(from: *const E, left: usize) -> S::V {
    // SAFETY: `from` is aligned and good for `left` elements, or for a vector: `# Safety` of this function.
    unsafe { if left < S::LANES { E::load_masked::<S>(from, left) } else { E::load::<S>(from) } }
}
