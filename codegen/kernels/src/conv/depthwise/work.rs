//! A depthwise convolution of one image, and what all of its code needs.
#![allow(unsafe_code, reason = "vector instructions; each block says why it is sound")]

use core::ops::Range;

use super::super::super::activation::{Activation, Apply};
use super::super::super::arch::{PANEL, Simd};
use super::super::super::element::Element;
use super::super::super::panel::Panels;
use super::super::super::rows::Rows;
use super::super::super::shared::SharedRows;
use super::super::super::tile::panel_vectors;
use super::super::super::weight::Lanes;
use super::super::parameters::{Conv, inside};
use super::super::pre::Prologue;

/// The convolution's rows `y` and panels `tiles`.
pub(in super::super) struct Depthwise<'a, E, W> {
    pub p: &'a Conv,
    pub panels: Panels,
    pub y: Range<usize>,
    pub tiles: Range<usize>,
    pub input: Rows<'a, E>,
    /// The prologue, applied to the input as it is loaded.
    pub prologue: Option<Prologue<'a, E>>,
    pub weights: &'a [W],
    pub output: SharedRows<'a, E>,
}

/// Columns of the filters that lie within the input for the window of column `x`.
#[inline(always)]
pub(super) fn columns(p: &Conv, x: usize, size: usize) -> Range<usize> {
    inside(x * p.stride[1], p.pads[1], p.kernel[1], p.dilation[1], size)
}

/// The weights of the vector from `channel` on, for this many channels with these panels. Vectors that span several
/// panels have full ones: they begin at a multiple of their channels.
#[inline(always)]
pub(super) fn lanes<S: Simd, W>(weights: &[W], panels: &Panels, channels: usize, channel: usize) -> Lanes<W> {
    let (vector, per_panel) = (channel / S::LANES, const { panel_vectors::<S>() });
    Lanes {
        panel: weights.as_ptr().wrapping_add(vector / per_panel * panels.stride()),
        width: PANEL.min(channels - channel / PANEL * PANEL),
        first: vector % per_panel * S::LANES,
    }
}

/// Applies the activation to the floats of `count` pixels of `channels`, which are `between` elements apart.
///
/// # Safety
/// In [`Job::run`](super::super::super::arch::Job::run); no one else reads or writes these elements of the output.
#[inline(always)]
pub(super) unsafe fn activate<S: Simd, E: Element>(
    output: &SharedRows<'_, E>,
    start: usize,
    [count, between, channels]: [usize; 3],
    activation: Activation,
) {
    let is_dense = between == channels;
    let len = if is_dense { count * channels } else { channels };
    for i in (0..count).step_by(if is_dense { count } else { 1 }) {
        // SAFETY: this is in `Job::run`, and no one else uses these elements: `# Safety` of this function. `elements`
        // asserts that they are in the ring.
        unsafe {
            let values = E::draft(output.elements(start + i * between, len), &mut []);
            S::call(Apply { activation, values, slopes: &[] });
        }
    }
}
