//! The convolution that is offloaded: its patches and the pixels that each covers (the paper's section 3).
//!
//! The input is taken as already padded (Remark 2): padding lies in the DRAM and is loaded like any other pixel. Slices
//! are never cut along the channels (Remark 6), so a *pixel* is a place of the padded input with all its channels.

use super::error::OffloadError;
use super::limits::{MAX_CHANNELS, MAX_PATCHES, MAX_PIXELS, MAX_TAPS};

/// The description of a convolution. In pairs, the height comes first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spec {
    /// Height and width of the input, without padding.
    pub input: [usize; 2],
    /// C_in.
    pub channels: usize,
    /// Rows and columns of zeros: top, left, bottom, right.
    pub pads: [usize; 4],
    /// H_K and W_K.
    pub filter: [usize; 2],
    /// N = C_out.
    pub filters: usize,
    /// s_h and s_w.
    pub stride: [usize; 2],
    /// Distance of a filter's elements.
    pub dilation: [usize; 2],
    /// Groups of channels that are convolved on their own; C_in for a depthwise convolution.
    pub channel_groups: usize,
}

/// A checked convolution: within the limits of this module, and with at least one patch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Convolution {
    spec: Spec,
    /// Height and width of the padded input.
    padded: [usize; 2],
    /// H_out and W_out.
    output: [usize; 2],
}

impl Spec {
    /// A square-strided convolution without dilation.
    pub fn new(input: [usize; 2], channels: usize, filter: [usize; 2], filters: usize) -> Self {
        let (pads, stride, dilation) = ([0; 4], [1; 2], [1; 2]);
        Spec { input, channels, pads, filter, filters, stride, dilation, channel_groups: 1 }
    }
}

impl Convolution {
    /// Checks a convolution.
    ///
    /// # Errors
    /// When a size is 0, the filter is larger than the padded input, channels do not divide into their groups, or the
    /// layer is larger than this module's limits.
    pub fn new(spec: Spec) -> Result<Self, OffloadError> {
        let sizes = [
            ("input height", spec.input[0]),
            ("input width", spec.input[1]),
            ("number of channels", spec.channels),
            ("filter height", spec.filter[0]),
            ("filter width", spec.filter[1]),
            ("number of filters", spec.filters),
            ("stride in height", spec.stride[0]),
            ("stride in width", spec.stride[1]),
            ("dilation in height", spec.dilation[0]),
            ("dilation in width", spec.dilation[1]),
            ("number of channel groups", spec.channel_groups),
        ];
        if let Some((what, _)) = sizes.iter().find(|(_, size)| *size == 0) {
            return Err(OffloadError::Zero { what });
        }
        let largest = sizes.iter().map(|(_, size)| *size).chain(spec.pads).max().unwrap_or(0);
        if largest > MAX_PIXELS || spec.channels.max(spec.filters) > MAX_CHANNELS {
            return Err(OffloadError::TooLarge { size: largest });
        }
        if !spec.channels.is_multiple_of(spec.channel_groups)
            || !spec.filters.is_multiple_of(spec.channel_groups)
        {
            return Err(OffloadError::ChannelGroups {
                channels: spec.channels,
                filters: spec.filters,
                groups: spec.channel_groups,
            });
        }
        let padded = [0, 1].map(|axis| spec.input[axis] + spec.pads[axis] + spec.pads[axis + 2]);
        let extent = [0, 1].map(|axis| (spec.filter[axis] - 1) * spec.dilation[axis] + 1);
        if (0..2).any(|axis| extent[axis] > padded[axis]) {
            return Err(OffloadError::Filter { filter: extent, input: padded });
        }
        let output = [0, 1].map(|axis| (padded[axis] - extent[axis]) / spec.stride[axis] + 1);
        let convolution = Convolution { spec, padded, output };
        // No factor is above 2^25: the first two products fit, the third is taken of what passed.
        let (pixels, patches) = (convolution.pixels(), convolution.patches());
        if pixels > MAX_PIXELS || patches > MAX_PATCHES {
            return Err(OffloadError::TooLarge { size: pixels.max(patches) });
        }
        let taps = patches.saturating_mul(convolution.pixels_per_patch());
        if taps > MAX_TAPS {
            return Err(OffloadError::TooLarge { size: taps });
        }
        Ok(convolution)
    }

    /// What it was made from.
    pub fn spec(&self) -> &Spec {
        &self.spec
    }

    /// Height and width of the padded input.
    pub fn padded(&self) -> [usize; 2] {
        self.padded
    }

    /// H_out and W_out.
    pub fn output(&self) -> [usize; 2] {
        self.output
    }

    /// |X| = H_out · W_out. Patches are numbered row by row (Remark 4).
    pub fn patches(&self) -> usize {
        self.output[0] * self.output[1]
    }

    /// Pixels of the padded input, numbered row by row. Some may be covered by no patch.
    pub fn pixels(&self) -> usize {
        self.padded[0] * self.padded[1]
    }

    /// H_K · W_K.
    pub fn pixels_per_patch(&self) -> usize {
        self.spec.filter[0] * self.spec.filter[1]
    }

    /// The pixels of a patch (Definition 10, its ranges read as half-open), in the order of the filter's elements.
    pub fn pixels_of(&self, patch: u32) -> impl Iterator<Item = u32> + use<> {
        let [_, width] = self.padded;
        let [dy, dx] = self.spec.dilation;
        let [height_k, width_k] = self.spec.filter;
        let (row, column) = (patch as usize / self.output[1], patch as usize % self.output[1]);
        let corner = row * self.spec.stride[0] * width + column * self.spec.stride[1];
        // Below MAX_PIXELS, as the patch lies in the padded input.
        (0..height_k).flat_map(move |y| (0..width_k).map(move |x| (corner + y * dy * width + x * dx) as u32))
    }

    /// Multiply-accumulates of one patch with `filters` filters: `nb_op_value · filters` (Definition 13, Property 1).
    pub fn macs_per_patch(&self, filters: usize) -> u64 {
        // At most 2^16 · 2^23 · 2^16.
        let value = self.spec.channels / self.spec.channel_groups * self.pixels_per_patch();
        (value as u64).saturating_mul(filters as u64)
    }

    /// Elements of one filter.
    pub fn filter_elements(&self) -> u64 {
        (self.spec.channels / self.spec.channel_groups) as u64 * self.pixels_per_patch() as u64
    }

    /// Pixels that at least one patch covers. Every strategy must load them.
    pub fn covered_pixels(&self) -> usize {
        let covered = |axis: usize| {
            let mut hit = vec![false; self.padded[axis]];
            for place in 0..self.output[axis] {
                for tap in 0..self.spec.filter[axis] {
                    hit[place * self.spec.stride[axis] + tap * self.spec.dilation[axis]] = true;
                }
            }
            hit.into_iter().filter(|hit| *hit).count()
        };
        covered(0) * covered(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn example_3_of_the_paper() {
        let convolution = Convolution::new(Spec::new([5, 5], 2, [3, 3], 2)).unwrap();
        assert_eq!((convolution.patches(), convolution.pixels()), (9, 25));
        assert_eq!(convolution.pixels_of(0).collect::<Vec<_>>(), [0, 1, 2, 5, 6, 7, 10, 11, 12]);
        assert_eq!(convolution.pixels_of(8).last(), Some(24));
        assert_eq!(convolution.macs_per_patch(2), 36);
    }

    /// Strides, padding and dilation against the definition of a convolution's output size and a plain count.
    #[test]
    fn sizes_follow_the_definition() {
        let check = |stride, pads, dilation, output: [usize; 2]| {
            let spec = Spec { pads, stride, dilation, ..Spec::new([7, 9], 1, [3, 2], 1) };
            let convolution = Convolution::new(spec).unwrap();
            assert_eq!(convolution.output(), output);
            let mut covered: Vec<u32> =
                (0..convolution.patches() as u32).flat_map(|patch| convolution.pixels_of(patch)).collect();
            covered.sort_unstable();
            covered.dedup();
            assert_eq!(convolution.covered_pixels(), covered.len());
            assert!(covered.last().is_some_and(|last| (*last as usize) < convolution.pixels()));
        };
        check([1, 1], [0; 4], [1, 1], [5, 8]);
        check([2, 3], [0; 4], [1, 1], [3, 3]);
        check([1, 1], [1, 2, 1, 0], [1, 1], [7, 10]);
        check([2, 4], [1, 0, 0, 3], [2, 3], [2, 3]);
        check([4, 4], [0; 4], [1, 1], [2, 2]);
    }

    #[test]
    fn what_is_no_layer_is_refused() {
        let refused = |change: fn(&mut Spec)| {
            let mut spec = Spec::new([5, 5], 2, [3, 3], 2);
            change(&mut spec);
            Convolution::new(spec).unwrap_err().to_string()
        };
        assert!(refused(|spec| spec.filter = [6, 3]).contains("larger than the padded input"));
        assert!(refused(|spec| spec.stride = [0, 1]).contains("stride in height is 0"));
        assert!(refused(|spec| spec.channel_groups = 3).contains("3 groups"));
        assert!(refused(|spec| spec.input = [100_000, 100_000]).contains("too large"));
        assert!(refused(|spec| spec.input = [usize::MAX, 1]).contains("too large"));
        assert!(refused(|spec| spec.pads = [usize::MAX; 4]).contains("too large"));
        assert!(refused(|spec| spec.filter = [usize::MAX, usize::MAX]).contains("too large"));
    }
}
