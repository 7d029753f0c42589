//! Weights as the micro-kernels read them.
//!
//! Output channels are divided into panels of 16. The last panel of a group has the channels that are left. A panel
//! holds the biases of its channels, then for each step of the sum (tap and input channel) their weights, then, with a
//! PRelu, their slopes. In a narrow panel, a vector may be longer than the channels that are left. It reads on into the
//! next data, and these results are discarded. Zeros follow the last panel, so that there is something to read.
//!
//! Panels of narrower weights are made from such panels of floats: see `weight`.
//!
//! # Example
//!
//! ```
//! use csdfc_kernels::Activation;
//! use csdfc_kernels::panel::Panels;
//!
//! // Two output channels, each a sum of three products.
//! let panels = Panels::new(1, 2, 3, Activation::None);
//! let mut packed = vec![0.0; panels.len()];
//! panels.pack(|filter, step| (10 * filter + step) as f32, &[7.0, 8.0], &[], &mut packed);
//! // The biases, and then step by step the weights of both channels.
//! assert_eq!(packed[..8], [7.0, 8.0, 0.0, 10.0, 1.0, 11.0, 2.0, 12.0]);
//! ```

use super::activation::Activation;
use super::arch::PANEL;
use super::half::F16;
use super::weight::{Scaled, Weight};

/// Steps of a panel that are packed at a time: 4 KiB.
const STEPS: usize = 64;

/// Shape of packed weights: `groups` times `filters` sums of `steps` products.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Panels {
    /// Groups of output channels.
    pub groups: usize,
    /// Output channels of a group.
    pub filters: usize,
    /// Products of a sum.
    pub steps: usize,
    /// Whether slopes follow the weights.
    pub slopes: bool,
    /// What weights are.
    pub kind: Kind,
}

/// What the weights of a panel are, which may differ from the tensors' elements. All of a panel is counted in weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Elements like those of the tensors.
    Elements,
    /// Integers of 8 bits for tensors of halves, with a scale for each output channel.
    Mixed,
    /// Integers of 8 bits for tensors of floats, with a scale for each output channel.
    Bytes,
    /// Halves for tensors of floats, with a scale for each output channel.
    Halves,
}

impl Panels {
    /// Panels of floats, with slopes if the activation has them.
    pub const fn new(groups: usize, filters: usize, steps: usize, activation: Activation) -> Self {
        let slopes = matches!(activation, Activation::PRelu);
        Panels { groups, filters, steps, slopes, kind: Kind::Elements }
    }

    /// Panels of one group.
    pub const fn per_group(&self) -> usize {
        self.filters.div_ceil(PANEL)
    }

    /// All panels.
    pub const fn count(&self) -> usize {
        self.groups * self.per_group()
    }

    /// The same of weights of this kind.
    pub const fn with_kind(self, kind: Kind) -> Self {
        Panels { kind, ..self }
    }

    /// The same in mixed precision.
    pub const fn mixed(self) -> Self {
        self.with_kind(Kind::Mixed)
    }

    /// Elements of an output channel: bias, weights, slope. A panel begins at this number times the channels before it.
    pub const fn channel_len(&self) -> usize {
        let [before, slope] = match self.kind {
            Kind::Elements => [<f32 as Weight>::BEFORE, <f32 as Weight>::SLOPE],
            Kind::Mixed => [<i8 as Weight>::BEFORE, <i8 as Weight>::SLOPE],
            Kind::Bytes => [<Scaled<i8> as Weight>::BEFORE, <Scaled<i8> as Weight>::SLOPE],
            Kind::Halves => [<Scaled<F16> as Weight>::BEFORE, <Scaled<F16> as Weight>::SLOPE],
        };
        before + self.steps + slope * self.slopes as usize
    }

    /// Elements of a panel of 16 channels.
    pub const fn stride(&self) -> usize {
        PANEL * self.channel_len()
    }

    /// Elements that whole vectors read of the panels of `channels` channels. The last panel may be narrow.
    #[inline(always)]
    pub const fn reach(&self, channels: usize) -> usize {
        channels * self.channel_len() + (channels.div_ceil(PANEL) * PANEL - channels)
    }

    /// Elements of all panels, and of the zeros that follow; as many as make whole elements of the tensors.
    #[allow(clippy::len_without_is_empty, reason = "no kernel has empty weights")]
    pub const fn len(&self) -> usize {
        let len = (self.groups - 1) * self.filters * self.channel_len() + self.reach(self.filters);
        match self.kind {
            Kind::Elements => len,
            Kind::Mixed | Kind::Halves => len.next_multiple_of(2),
            Kind::Bytes => len.next_multiple_of(4),
        }
    }

    /// Fills `out` with `weight(filter, step)`, filters counted over all groups. An empty `bias` is all zeros.
    ///
    /// # Panics
    /// If `out` is not [`Panels::len`] long, or `bias` or the slopes are too short.
    pub fn pack(&self, weight: impl Fn(usize, usize) -> f32, bias: &[f32], slopes: &[f32], out: &mut [f32]) {
        assert_eq!(out.len(), self.len(), "length of packed weights");
        let (mut next, mut rest) = (0, out);
        while next < self.groups * self.filters {
            let width = PANEL.min(self.filters - next % self.filters);
            let (elements, after) = rest.split_at_mut(width * self.channel_len());
            let (biases, elements) = elements.split_at_mut(width);
            let (weights, last) = elements.split_at_mut(width * self.steps);
            // Some steps of all channels at a time, so that the lines that they are written to stay in the cache.
            for (block, weights) in weights.chunks_mut(width * STEPS).enumerate() {
                for lane in 0..width {
                    for (step, to) in (STEPS * block..).zip(weights.iter_mut().skip(lane).step_by(width)) {
                        *to = weight(next + lane, step);
                    }
                }
            }
            for lane in 0..width {
                let filter = next + lane;
                biases[lane] = if bias.is_empty() { 0.0 } else { bias[filter] };
                if self.slopes {
                    last[lane] = slopes[if slopes.len() == 1 { 0 } else { filter }];
                }
            }
            (next, rest) = (next + width, after);
        }
        rest.fill(0.0);
    }

    /// Fills `out`, in mixed precision, with what is packed in `wide`. The scale of an output channel is the absolute
    /// value of its largest weight divided by 127. Its integers are the nearest ones; of two equally near ones, the
    /// even one.
    ///
    /// # Panics
    /// If `out` is not as long as [`Panels::mixed`] says, or `wide` is not [`Panels::len`] long.
    pub fn quantize(&self, wide: &[f32], out: &mut [u8]) {
        let mixed = self.mixed();
        assert_eq!([wide.len(), out.len()], [self.len(), mixed.len()], "lengths of packed weights");
        let (mut next, mut rest, mut wide) = (0, out, wide);
        while next < self.groups * self.filters {
            let width = PANEL.min(self.filters - next % self.filters);
            let (from, beyond) = wide.split_at(width * self.channel_len());
            let (to, after) = rest.split_at_mut(width * mixed.channel_len());
            let (biases, from) = from.split_at(width);
            let (weights, slopes) = from.split_at(width * self.steps);
            let (scales, to) = to.split_at_mut(size_of::<f32>() * width);
            let (half_biases, to) = to.split_at_mut(size_of::<F16>() * width);
            let (integers, half_slopes) = to.split_at_mut(width * self.steps);
            let mut by = [0.0f32; PANEL];
            for step in weights.chunks_exact(width) {
                by.iter_mut().zip(step).for_each(|(most, w)| *most = most.max(w.abs()));
            }
            by.iter_mut().for_each(|most| *most /= 127.0);
            for (scale, to) in by.iter().zip(scales.chunks_exact_mut(size_of::<f32>())) {
                to.copy_from_slice(&scale.to_ne_bytes());
            }
            for (step, to) in weights.chunks_exact(width).zip(integers.chunks_exact_mut(width)) {
                to.iter_mut().zip(step).zip(&by).for_each(|((to, w), scale)| *to = integer(w / scale) as u8);
            }
            narrow(biases, half_biases);
            narrow(slopes, half_slopes);
            (next, rest, wide) = (next + width, after, beyond);
        }
        rest.fill(0);
    }

    /// Fills `out`, as panels of bytes or halves, with what is packed in `wide`, divided by these scales, one for each
    /// output channel. It says whether the weights are such numbers.
    ///
    /// # Panics
    /// If `out` is not as long as [`Panels::with_kind`] of this kind says, `wide` is not [`Panels::len`] long, or `scales` is too short.
    pub fn scale(&self, kind: Kind, wide: &[f32], scales: &[f32], out: &mut [u8]) -> bool {
        let (narrow, size) =
            (self.with_kind(kind), if matches!(kind, Kind::Halves) { size_of::<F16>() } else { 1 });
        assert_eq!([wide.len(), out.len()], [self.len(), size * narrow.len()], "lengths of packed weights");
        let (mut next, mut rest, mut wide, mut is_exact) = (0, out, wide, true);
        while next < self.groups * self.filters {
            let width = PANEL.min(self.filters - next % self.filters);
            let (from, beyond) = wide.split_at(width * self.channel_len());
            let (to, after) = rest.split_at_mut(size * width * narrow.channel_len());
            let (biases, from) = from.split_at(width);
            let (weights, slopes) = from.split_at(width * self.steps);
            let (numbers, to) = to.split_at_mut(2 * size_of::<f32>() * width);
            let (to, last) = to.split_at_mut(size * width * self.steps);
            let before = scales[next..][..width].iter().chain(biases);
            for (x, to) in before.zip(numbers.chunks_exact_mut(size_of::<f32>())) {
                to.copy_from_slice(&x.to_ne_bytes());
            }
            for (at, (w, to)) in weights.iter().zip(to.chunks_exact_mut(size)).enumerate() {
                let scale = scales[next + at % width];
                let x = if *w == 0.0 { 0.0 } else { w / scale };
                let found = if let [byte] = to {
                    *byte = (x + if x < 0.0 { -0.5 } else { 0.5 }) as i8 as u8;
                    f32::from(byte.cast_signed())
                } else {
                    let half = F16::from_f32(x);
                    to.copy_from_slice(&half.to_bits().to_ne_bytes());
                    half.to_f32()
                };
                is_exact &= (found * scale - w).abs() <= w.abs() * 1e-5;
            }
            for (x, to) in slopes.iter().zip(last.chunks_exact_mut(size_of::<f32>())) {
                to.copy_from_slice(&x.to_ne_bytes());
            }
            (next, rest, wide) = (next + width, after, beyond);
        }
        rest.fill(0);
        is_exact
    }
}

/// The nearest integer from −127 to 127; of two equally near ones, the even one. 0 divided by 0 gives 0.
fn integer(x: f32) -> i8 {
    // Of a sum of this size the last bit counts ones.
    const ONES: f32 = (1 << 23) as f32 * 1.5;
    (x.clamp(-127.0, 127.0) + ONES - ONES) as i8
}

/// Floats as the bytes of halves.
fn narrow(from: &[f32], to: &mut [u8]) {
    for (x, to) in from.iter().zip(to.chunks_exact_mut(size_of::<F16>())) {
        to.copy_from_slice(&F16::from_f32(*x).to_bits().to_ne_bytes());
    }
}
