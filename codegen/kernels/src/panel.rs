//! Weights as the micro-kernels read them.
//!
//! Output channels are dealt into panels of 16, the last of a group into one of as many as are left. A panel holds the
//! biases of its channels, then for each step of the sum (tap and input channel) their weights, then, with a PRelu, their
//! slopes. A vector that is longer than what is left of a narrow panel reads on into what follows, and nobody looks at
//! what becomes of that; zeros follow the last panel, so that there is something to read.

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

    /// Elements of an output channel: bias, weights, slope.
    const fn each(&self) -> usize {
        1 + self.steps + self.slopes as usize
    }

    /// Elements of a panel of 16 channels.
    pub const fn stride(&self) -> usize {
        PANEL * self.each()
    }

    /// First output channel of a panel, within its group.
    pub const fn first(&self, panel: usize) -> usize {
        panel % self.per_group() * PANEL
    }

    /// Output channels of a panel.
    pub const fn width(&self, panel: usize) -> usize {
        let left = self.filters - self.first(panel);
        if left < PANEL { left } else { PANEL }
    }

    /// First element of a panel.
    pub const fn start(&self, panel: usize) -> usize {
        (panel / self.per_group() * self.filters + self.first(panel)) * self.each()
    }

    /// Elements that whole vectors read of `count` panels of a group, from the first element of the first of them on.
    pub const fn reach(&self, panel: usize, count: usize) -> usize {
        let last = self.width(panel + count - 1);
        (count - 1) * self.stride() + last * self.each() + (PANEL - last)
    }

    /// Elements of all panels, and of the zeros that follow.
    pub const fn len(&self) -> usize {
        self.groups * self.filters * self.each() + (self.per_group() * PANEL - self.filters)
    }

    /// Fills `out` with `weight(filter, step)`, filters counted over all groups. An empty `bias` is all zeros.
    ///
    /// # Panics
    /// If `out` is not [`Panels::len`] long, or `bias` or the slopes are too short.
    pub fn pack(&self, weight: impl Fn(usize, usize) -> f32, bias: &[f32], slopes: &[f32], out: &mut [f32]) {
        assert_eq!(out.len(), self.len(), "length of packed weights");
        let (mut next, mut rest) = (0, out);
        for panel in 0..self.count() {
            let width = self.width(panel);
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
        assert_eq!([0, 1, 2, 3].map(|panel| panels.start(panel)), [0, 64, 72, 136]);
        // The last element of the last panel, and a vector from there on.
        assert_eq!(panels.start(2) + panels.reach(2, 2), panels.len());
        assert_eq!(panels.start(3) + panels.reach(3, 1), panels.len());
        assert_eq!(panels.reach(0, 1), 64);
    }

    #[test]
    fn whole_panels_have_nothing_beside() {
        let panels = Panels { groups: 3, filters: 32, steps: 5, slopes: false };
        assert_eq!(panels.len(), 3 * 32 * 6);
        assert_eq!(panels.reach(2, 2), panels.len() / 3);
    }
}
