//! The parameters of a convolution, and how they are packed.

use core::ops::Range;

use super::super::activation::Activation;
use super::super::panel::Panels;
use super::pre::Pre;

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

/// Packs biases, one for each filter, or none; without any, they are zeros.
///
/// # Panics
/// If there are some, but not one for each filter.
pub(super) fn pack_biases(bias: &[f32], to: &mut [f32]) {
    if bias.is_empty() {
        to.fill(0.0);
    } else {
        to.copy_from_slice(bias);
    }
}

impl Conv {
    /// Whether every channel has one filter of its own.
    pub const fn is_depthwise(&self) -> bool {
        self.groups == self.channels && self.groups == self.filters
    }

    pub(super) const fn panels(&self) -> Panels {
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
        self.panels().len() + self.constants()
    }

    /// Scales and shifts of [`Conv::pre`].
    pub(super) const fn constants(&self) -> usize {
        match self.pre {
            Some(Pre { affine: true, .. }) => 2 * self.channels,
            _ => 0,
        }
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
        self.panels().channel_len()
    }

    /// Parts into which the output channels may be divided among workers.
    pub const fn tiles(&self) -> usize {
        self.panels().count()
    }
}

/// Taps `start .. end` of a kernel that, from `at = output · stride`, lie within `size` elements.
#[inline(always)]
pub(super) fn inside(at: usize, pad: usize, kernel: usize, dilation: usize, size: usize) -> Range<usize> {
    let start = pad.saturating_sub(at).div_ceil(dilation).min(kernel);
    let end = (size + pad).saturating_sub(at).div_ceil(dilation).min(kernel);
    start..end.max(start)
}
