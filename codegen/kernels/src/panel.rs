//! Weights as the micro-kernels read them.
//!
//! Output channels are dealt into panels of 16. A panel holds the 16 biases, then for each step of the sum (tap and
//! input channel) the 16 weights, then, with a PRelu, the 16 slopes; what lies beyond the last channel is zero.

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

    /// Elements of a panel.
    pub const fn stride(&self) -> usize {
        PANEL * (1 + self.steps + self.slopes as usize)
    }

    /// Elements of all panels.
    pub const fn len(&self) -> usize {
        self.count() * self.stride()
    }

    /// Fills `out` with `weight(filter, step)`, filters counted over all groups. An empty `bias` is all zeros.
    ///
    /// # Panics
    /// If `out` is not [`Panels::len`] long, or `bias` or the slopes are too short.
    pub fn pack(&self, weight: impl Fn(usize, usize) -> f32, bias: &[f32], slopes: &[f32], out: &mut [f32]) {
        assert_eq!(out.len(), self.len(), "length of packed weights");
        for (index, panel) in out.chunks_exact_mut(self.stride()).enumerate() {
            let (group, first) = (index / self.per_group(), index % self.per_group() * PANEL);
            for lane in 0..PANEL {
                let filter = group * self.filters + first + lane;
                let inside = first + lane < self.filters;
                panel[lane] = if inside && !bias.is_empty() { bias[filter] } else { 0.0 };
                for step in 0..self.steps {
                    panel[PANEL * (1 + step) + lane] = if inside { weight(filter, step) } else { 0.0 };
                }
                if self.slopes {
                    panel[PANEL * (1 + self.steps) + lane] =
                        if !inside { 0.0 } else { slopes[if slopes.len() == 1 { 0 } else { filter }] };
                }
            }
        }
    }
}
