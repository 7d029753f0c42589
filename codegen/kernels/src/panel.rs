//! Weights as the micro-kernels read them.
//!
//! Output channels are dealt into panels of 16. The last panel of a group has as many channels as are left. A panel
//! holds the biases of its channels, then for each step of the sum (tap and input channel) their weights, then, with
//! a PRelu, their slopes. A vector that is longer than what is left of a narrow panel reads on into what follows, and
//! the results are discarded. Zeros follow the last panel, so that there is something to read.

use super::activation::Activation;
use super::arch::PANEL;

/// Shape of packed weights: `groups` times `filters` sums of `steps` products.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Panels {
    pub groups: usize,
    /// Output channels of a group.
    pub filters: usize,
    pub steps: usize,
    /// Whether slopes follow the weights.
    pub slopes: bool,
}

impl Panels {
    pub const fn new(groups: usize, filters: usize, steps: usize, activation: Activation) -> Self {
        Panels { groups, filters, steps, slopes: matches!(activation, Activation::PRelu) }
    }

    /// Panels of one group.
    pub const fn per_group(&self) -> usize {
        self.filters.div_ceil(PANEL)
    }

    /// All panels.
    pub const fn count(&self) -> usize {
        self.groups * self.per_group()
    }

    /// Elements of an output channel: bias, weights, slope. As many times the channels before it precede a panel.
    pub const fn each(&self) -> usize {
        1 + self.steps + self.slopes as usize
    }

    /// Elements of a panel of 16 channels.
    pub const fn stride(&self) -> usize {
        PANEL * self.each()
    }

    /// Elements that whole vectors read of the panels of so many channels, the last of which may be narrow.
    #[inline(always)]
    pub const fn reach(&self, channels: usize) -> usize {
        channels * self.each() + (channels.div_ceil(PANEL) * PANEL - channels)
    }

    /// Elements of all panels, and of the zeros that follow.
    pub const fn len(&self) -> usize {
        (self.groups - 1) * self.filters * self.each() + self.reach(self.filters)
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
            let (elements, after) = rest.split_at_mut(width * self.each());
            let (biases, elements) = elements.split_at_mut(width);
            let (weights, last) = elements.split_at_mut(width * self.steps);
            for lane in 0..width {
                let filter = next + lane;
                biases[lane] = if bias.is_empty() { 0.0 } else { bias[filter] };
                for step in 0..self.steps {
                    weights[width * step + lane] = weight(filter, step);
                }
                if self.slopes {
                    last[lane] = slopes[if slopes.len() == 1 { 0 } else { filter }];
                }
            }
            (next, rest) = (next + width, after);
        }
        rest.fill(0.0);
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use std::vec;
    use std::vec::Vec;

    use super::*;

    #[test]
    fn a_panel_is_as_wide_as_the_channels_that_are_left() {
        // Two groups of 18: panels of 16 and 2 channels, of a bias, two weights and a slope each.
        let panels = Panels { groups: 2, filters: 18, steps: 2, slopes: true };
        let value = |filter: usize, place: usize| (10 * filter + place) as f32;
        let [bias, slopes] = [0, 3].map(|place| (0..36).map(|f| value(f, place)).collect::<Vec<_>>());
        let mut packed = vec![f32::NAN; panels.len()];
        panels.pack(|filter, step| value(filter, 1 + step), &bias, &slopes, &mut packed);
        let mut want = Vec::new();
        for channels in [0..16, 16..18, 18..34, 34..36] {
            want.extend((0..4).flat_map(|place| channels.clone().map(move |filter| value(filter, place))));
        }
        want.extend([0.0; 14]);
        assert_eq!(packed, want);
        // Of a narrow panel, vectors reach beyond its end as far as they are longer.
        assert_eq!([16, 18, 2].map(|channels| panels.reach(channels)), [64, 72 + 14, 8 + 14]);
    }

    #[test]
    fn whole_panels_have_nothing_beside() {
        let panels = Panels { groups: 3, filters: 32, steps: 5, slopes: false };
        assert_eq!((panels.len(), panels.reach(32)), (3 * 32 * 6, 32 * 6));
    }
}
