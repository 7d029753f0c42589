//! What becomes of a convolution's input as it is loaded: a batch norm, an activation, or both.
//!
//! The kernel transforms the pixels of a tile into a block on its stack, and the tile's table points to that block. A
//! depthwise convolution transforms them in registers. The arithmetic is that of the layers that the convolution
//! replaces, to the bit. The padding stays zero.

use core::marker::PhantomData;

use super::super::activation::{Activation, Apply, clip};
use super::super::arch::{Job, Simd};
use super::super::indirect::{Load, MOST_PIXELS, PADDED_SPAN, zeros};

/// A batch norm, an activation, or one after the other, of the input of a convolution: zeros beyond the input stay zeros.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Pre {
    /// Whether each channel is multiplied by a scale, and a shift added.
    pub affine: bool,
    /// What follows. Not a PRelu, and for a depthwise convolution nothing but bounds (a Relu, say).
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
pub(super) struct Before<'a> {
    pub activation: Activation,
    /// A scale and a shift for each input channel.
    pub constants: Option<[&'a [f32]; 2]>,
}

impl<'a> Before<'a> {
    /// `constants` are scales and shifts, as many of each, if there are any.
    pub fn new(pre: Pre, constants: &'a [f32]) -> Self {
        let halves = constants.split_at(constants.len() / 2);
        Before { activation: pre.activation, constants: pre.affine.then_some([halves.0, halves.1]) }
    }

    /// That of `count` channels from `first` on.
    fn channels(&self, first: usize, count: usize) -> Self {
        let constants =
            self.constants.map(|[scale, shift]| [&scale[first..][..count], &shift[first..][..count]]);
        Before { constants, ..*self }
    }
}

/// Elements of all pixels of a table.
pub(super) const BLOCK: usize = MOST_PIXELS * PADDED_SPAN;

/// Loads elements by way of a block that stays near the core.
pub(super) struct Loaded<'a> {
    before: Before<'a>,
    /// Channels of a group.
    channels: usize,
    /// The group's first.
    first: usize,
    block: *mut f32,
    used: usize,
    borrow: PhantomData<&'a mut [f32; BLOCK]>,
}

impl<'a> Loaded<'a> {
    /// For groups of so many channels. Spans are of single pixels.
    pub fn new(before: Before<'a>, channels: usize, block: &'a mut [f32; BLOCK]) -> Self {
        Loaded { before, channels, first: 0, block: block.as_mut_ptr(), used: 0, borrow: PhantomData }
    }
}

impl Load for Loaded<'_> {
    const STEPS: usize = PADDED_SPAN;

    fn start(&mut self, group: usize) {
        (self.first, self.used) = (group * self.channels, 0);
    }

    #[inline(always)]
    #[allow(unsafe_code, reason = "elements of the block that are loaded while others are in use")]
    unsafe fn load<'a, S: Simd>(
        &mut self,
        step: usize,
        steps: usize,
        mut pixel: impl FnMut(usize) -> Option<&'a [f32]>,
        places: &mut [*const f32],
    ) {
        let (start, count) = (self.used, places.len());
        assert!(count <= MOST_PIXELS && count * steps <= BLOCK - start, "more than the pixels of a table");
        self.used += count * steps;
        let mut pixels = [None; MOST_PIXELS];
        for (i, place) in places.iter_mut().enumerate() {
            pixels[i] = pixel(i).map(|elements| &elements[..steps]);
            *place = match pixels[i] {
                Some(_) => self.block.wrapping_add(start + i * steps),
                None => zeros(steps),
            };
        }
        let Before { activation, constants } = self.before.channels(self.first + step % self.channels, steps);
        // SAFETY: the caller's; these elements are within the block, and no others that have been loaded are touched.
        unsafe {
            let to = core::slice::from_raw_parts_mut(self.block.add(start), count * steps);
            S::call(Transform { activation, constants, pixels: &pixels[..count], steps, to });
        }
    }
}

/// What is to become of so many elements of each pixel in `to`, with as many constants.
struct Transform<'a> {
    activation: Activation,
    constants: Option<[&'a [f32]; 2]>,
    pixels: &'a [Option<&'a [f32]>],
    steps: usize,
    to: &'a mut [f32],
}

impl Job for Transform<'_> {
    #[inline(always)]
    fn run<S: Simd>(self) {
        let Transform { activation, constants, pixels, steps, to } = self;
        let [low, high] = activation.bounds().unwrap_or([f32::NEG_INFINITY, f32::INFINITY]);
        for (pixel, to) in pixels.iter().zip(to.chunks_exact_mut(steps.max(1))) {
            let Some(from) = pixel else { continue };
            match constants {
                Some([scale, shift]) => {
                    for (((to, x), scale), shift) in to.iter_mut().zip(*from).zip(scale).zip(shift) {
                        *to = clip(x * scale + shift, low, high);
                    }
                }
                None => to.iter_mut().zip(*from).for_each(|(to, x)| *to = clip(*x, low, high)),
            }
            if activation.bounds().is_none() {
                Apply { activation, values: to, slopes: &[] }.run::<S>();
            }
        }
    }
}
