//! Weights as the micro-kernels read them.
//!
//! Output channels are divided into panels of 16. The last panel of a group has the channels that are left. A panel
//! holds the biases of its channels (32 bits each), their multipliers (floats), and then their weights. For each step
//! of the sum (tap and input channel), it has a byte of each channel. If steps go in fours, it has four bytes of each
//! channel for each four steps, in the order 0, 2, 1, 3, so that numbers of 16 bits hold two consecutive steps in their
//! lower bytes and two in their upper bytes. The last one or two steps go as two, with a zero after an odd number. From
//! a bias, the part that the input's zero point adds to the sum is subtracted, so that sums can use the input's bytes
//! as they are. Numbers are little-endian. In a narrow panel, a vector may be longer than the channels that are left.
//! It may read on into the next data, and these results are discarded. Zeros follow the last panel, so that there is
//! something to read.

use super::super::arch::PANEL;
use super::integers::{LANES, NUMBER};

/// Shape of packed weights: `groups` times `filters` sums of `steps` products.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Panels {
    pub groups: usize,
    /// Output channels of a group.
    pub filters: usize,
    pub steps: usize,
    /// Whether steps go in fours.
    pub in_fours: bool,
}

impl Panels {
    /// Panels of one group.
    pub const fn per_group(&self) -> usize {
        self.filters.div_ceil(PANEL)
    }

    /// Steps that are stored.
    pub const fn stored_steps(&self) -> usize {
        if self.in_fours { self.steps.next_multiple_of(2) } else { self.steps }
    }

    /// The place of the weight of a step and a channel among the weights of a panel of `width` channels.
    #[inline(always)]
    pub const fn place(&self, width: usize, lane: usize, step: usize) -> usize {
        if !self.in_fours {
            return step * width + lane;
        }
        let first = step / 4 * 4;
        match first + 4 <= self.stored_steps() {
            true => first * width + lane * 4 + [0, 2, 1, 3][step % 4],
            false => first * width + lane * 2 + step % 4,
        }
    }

    /// Bytes of an output channel: bias, multiplier, weights. A panel begins at this number times the channels before
    /// it.
    pub const fn channel_bytes(&self) -> usize {
        2 * NUMBER + self.stored_steps()
    }

    /// Bytes that vectors read of the panels of `channels` channels. The last panel may be narrow. Vectors read no
    /// further beyond it than those of the multipliers would if there were no weights.
    pub const fn reach(&self, channels: usize) -> usize {
        channels * self.channel_bytes() + NUMBER * (channels.next_multiple_of(LANES) - channels)
    }

    /// Bytes of all panels, and of the zeros that follow.
    pub const fn len(&self) -> usize {
        (self.groups - 1) * self.filters * self.channel_bytes() + self.reach(self.filters)
    }

    /// Fills `out` with `weight(filter, step)`, filters counted over all groups, for an input of this zero point. The
    /// offset is added to each weight when it is multiplied. Empty `biases` are zeros.
    ///
    /// # Panics
    /// If `out` is not [`Panels::len`] long, or `biases` or `multipliers` are too short.
    pub fn pack(
        &self,
        zero_point: u8,
        (weight, offset): (impl Fn(usize, usize) -> i8, i32),
        biases: &[i32],
        multipliers: &[f32],
        out: &mut [u8],
    ) {
        assert_eq!(out.len(), self.len(), "length of packed weights");
        let (mut next, mut rest) = (0, out);
        while next < self.groups * self.filters {
            let width = PANEL.min(self.filters - next % self.filters);
            let (panel, after) = rest.split_at_mut(width * self.channel_bytes());
            let (numbers, weights) = panel.split_at_mut(2 * NUMBER * width);
            let (sums, scales) = numbers.split_at_mut(NUMBER * width);
            for lane in 0..width {
                let filter = next + lane;
                let mut bias = if biases.is_empty() { 0 } else { biases[filter] };
                // Σ w (q − z) is Σ w q − z Σ w. The last sum is the same for all pixels, also at the border, where
                // pixels beyond the image are z. So it goes into the bias once.
                for step in 0..self.stored_steps() {
                    let (weight, offset) =
                        if step < self.steps { (weight(filter, step), offset) } else { (0, 0) };
                    bias = bias.wrapping_sub(i32::from(zero_point) * (i32::from(weight) + offset));
                    weights[self.place(width, lane, step)] = weight.cast_unsigned();
                }
                sums[NUMBER * lane..][..NUMBER].copy_from_slice(&bias.to_le_bytes());
                scales[NUMBER * lane..][..NUMBER].copy_from_slice(&multipliers[filter].to_le_bytes());
            }
            (next, rest) = (next + width, after);
        }
        rest.fill(0);
    }
}

/// The parts of a panel.
#[derive(Clone, Copy)]
pub(crate) struct Panel<'a> {
    /// Channels.
    pub width: usize,
    /// Biases, multipliers and weights, and what vectors read beyond them.
    pub bytes: &'a [u8],
}

impl<'a> Panel<'a> {
    /// The panel whose first channel is `first`, of those of all groups.
    #[inline(always)]
    pub fn new(panels: &Panels, packed: &'a [u8], first: usize) -> Self {
        let width = PANEL.min(panels.filters - first % panels.filters);
        Panel { width, bytes: &packed[first * panels.channel_bytes()..][..panels.reach(width)] }
    }

    /// The biases of all channels, less the part that the zero point adds, and zeros after them.
    #[inline(always)]
    pub fn biases(&self) -> [i32; PANEL] {
        let bias = |lane| i32::from_le_bytes(self.number(lane));
        core::array::from_fn(|lane| if lane < self.width { bias(lane) } else { 0 })
    }

    /// The multiplier of a channel.
    #[inline(always)]
    pub fn multiplier(&self, lane: usize) -> f32 {
        f32::from_le_bytes(self.number(self.width + lane))
    }

    #[inline(always)]
    fn number(&self, place: usize) -> [u8; NUMBER] {
        let bytes = &self.bytes[NUMBER * place..][..NUMBER];
        [bytes[0], bytes[1], bytes[2], bytes[3]]
    }

    /// The weights.
    #[inline(always)]
    pub fn weights(&self) -> &'a [u8] {
        &self.bytes[2 * NUMBER * self.width..]
    }
}
