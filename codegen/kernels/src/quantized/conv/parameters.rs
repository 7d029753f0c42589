//! The parameters of a convolution of bytes, and how they are packed.

use super::super::super::conv::Conv;
use super::super::Requantize;
use super::super::integers::NUMBER;
use super::super::panels::Panels;
use super::super::pre::QPre;

/// A convolution of bytes: `[H, W, channels]` → `[H', W', filters]`. Beyond the image, pixels are the zero point. Its
/// operands are the image or, if it has one group, parts of it, which hold its channels in this order. Its only
/// activation is the bounds of [`Requantize`].
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct QConv {
    /// The convolution, without [`Conv::pre`], [`Conv::residual`] and [`Conv::activation`].
    pub conv: Conv,
    /// The prologue. A depthwise convolution has none.
    pub pre: Option<QPre>,
    /// The element that stands for 0 among the elements that are multiplied: those of the input or, if there is a
    /// [`QConv::pre`], those that it makes.
    pub zero_point: u8,
    /// Whether one number is added to each weight before it is multiplied.
    pub has_offset: bool,
    /// How sums become elements.
    pub requantize: Requantize,
}

impl QConv {
    pub(in super::super) const fn panels(&self) -> Panels {
        let Conv { channels, filters, kernel, groups, .. } = self.conv;
        let taps = kernel[0] * kernel[1];
        if self.conv.is_depthwise() {
            Panels { groups: 1, filters, steps: taps, in_fours: false }
        } else {
            let steps = taps * (channels / groups);
            Panels { groups, filters: filters / groups, steps, in_fours: true }
        }
    }

    /// Bytes of the packed weights, biases and multipliers, and of what is [beside](Self::extra_bytes) them.
    pub const fn packed_len(&self) -> usize {
        self.panels().len() + self.extra_bytes()
    }

    /// Bytes of the constants of [`QConv::pre`], and of the offset of the weights after them.
    pub const fn extra_bytes(&self) -> usize {
        let before = match &self.pre {
            Some(pre) => pre.len(self.conv.channels),
            None => 0,
        };
        before + if self.has_offset { NUMBER } else { 0 }
    }

    /// The offset of the weights, from the packed bytes.
    #[inline(always)]
    pub(in super::super) fn offset(&self, packed: &[u8]) -> i32 {
        match packed.last_chunk() {
            Some(offset) if self.has_offset => i32::from_le_bytes(*offset),
            _ => 0,
        }
    }

    /// Bytes of an output channel among the packed bytes: bias, multiplier and weights.
    pub const fn packed_each(&self) -> usize {
        self.panels().channel_bytes()
    }

    /// Packs `weights` (`[filters, channels / groups, kernel_y, kernel_x]`) with the offset that is added to each of them (0
    /// without [`QConv::has_offset`]), `biases` (`[filters]`, or empty) in units of the
    /// input's scale times that of the filter, `multipliers` (`[filters]`), these units divided by the output's scale, and the
    /// scales and shifts of an affine [`QConv::pre`] (`[channels]` each, else empty) into `out`, which holds
    /// [`QConv::packed_len`] bytes.
    ///
    /// # Panics
    /// If a slice has another length than stated here.
    pub fn pack(
        &self,
        (weights, offset): (&[i8], i32),
        biases: &[i32],
        multipliers: &[f32],
        constants: [&[f32]; 2],
        out: &mut [u8],
    ) {
        let Conv { channels, kernel, groups, .. } = self.conv;
        let (taps, channels) = (kernel[0] * kernel[1], channels / groups);
        let weight = |filter: usize, step: usize| {
            weights[(filter * channels + step % channels) * taps + step / channels]
        };
        let (panels, beside) = out.split_at_mut(self.panels().len());
        self.panels().pack(self.zero_point, (weight, offset), biases, multipliers, panels);
        let end = beside.len() - if self.has_offset { NUMBER } else { 0 };
        let (before, last) = beside.split_at_mut(end);
        if let Some(pre) = &self.pre {
            pre.pack(constants, before);
        }
        last.copy_from_slice(&offset.to_le_bytes()[..last.len()]);
    }

    /// Parts into which the output channels may be divided among workers.
    pub const fn tiles(&self) -> usize {
        self.conv.tiles()
    }
}
