//! The layers of the paper: its Tables 2 and 3.

use csdfc_kernels::Activation;
use csdfc_kernels::conv::Conv;
use csdfc_kernels::conv::scenario::{Filters, Scenario};
use csdfc_kernels::layout::Layout;

/// A layer of Table 2. Its input is square, and padded already.
#[derive(Debug, Clone, Copy)]
pub struct Layer {
    /// Name.
    pub name: &'static str,
    /// Height and width of the input.
    pub size: usize,
    /// Channels of the input.
    pub channels: usize,
    /// Height and width of the filters.
    pub kernel: usize,
    /// Filters.
    pub filters: usize,
    /// Stride along both axes.
    pub stride: usize,
}

const fn layer(
    name: &'static str,
    [size, channels]: [usize; 2],
    [kernel, filters]: [usize; 2],
    stride: usize,
) -> Layer {
    Layer { name, size, channels, kernel, filters, stride }
}

/// Table 2.
pub const TABLE_2: [Layer; 12] = [
    layer("cv1", [227, 3], [11, 96], 4),
    layer("cv2", [231, 3], [11, 96], 4),
    layer("cv3", [227, 3], [7, 64], 2),
    layer("cv4", [224, 64], [7, 64], 2),
    layer("cv5", [24, 96], [5, 256], 1),
    layer("cv6", [12, 256], [3, 512], 1),
    layer("cv7", [224, 3], [3, 64], 1),
    layer("cv8", [112, 64], [3, 128], 1),
    layer("cv9", [56, 64], [3, 64], 1),
    layer("cv10", [28, 128], [3, 128], 1),
    layer("cv11", [14, 256], [3, 256], 1),
    layer("cv12", [7, 512], [3, 512], 1),
];

/// A row of Table 3.
pub struct Occurrences {
    /// The layer.
    pub layer: &'static str,
    /// How often ResNet-101 has it.
    pub count: usize,
    /// Printed MiB of im2col and of MEC.
    pub memory: [f64; 2],
    /// Printed milliseconds of both.
    pub time: [f64; 2],
}

const fn row(layer: &'static str, count: usize, memory: [f64; 2], time: [f64; 2]) -> Occurrences {
    Occurrences { layer, count, memory, time }
}

/// Table 3.
pub const TABLE_3: [Occurrences; 5] = [
    row("cv4", 1, [142.1, 41.7], [1228.9, 1061.3]),
    row("cv9", 3, [19.2, 6.7], [26.8, 16.0]),
    row("cv10", 4, [11.9, 4.3], [126.7, 81.0]),
    row("cv11", 23, [29.1, 11.3], [302.7, 222.9]),
    row("cv12", 3, [1.3, 0.6], [16.5, 10.4]),
];

/// The strides of Figure 4a, and one more, at which no two windows overlap.
pub const STRIDES: std::ops::RangeInclusive<usize> = 1..=11;

/// cv1 with another stride.
pub fn cv1(stride: usize) -> Layer {
    Layer { stride, ..TABLE_2[0] }
}

impl Layer {
    /// Height and width of the output (Eq. 1, rounded down).
    pub fn output(&self) -> usize {
        (self.size - self.kernel) / self.stride + 1
    }

    /// The scenario of the layer from HWC to HWC, as in the paper, with its filters in panels.
    pub fn scenario(&self) -> Scenario {
        let conv = Conv {
            channels: self.channels,
            filters: self.filters,
            kernel: [self.kernel; 2],
            stride: [self.stride; 2],
            dilation: [1; 2],
            pads: [0; 4],
            groups: 1,
            pre: None,
            residual: false,
            activation: Activation::None,
        };
        Scenario {
            conv,
            input: [self.size; 2],
            output: [self.output(); 2],
            layouts: [Layout::Hwc; 2],
            filters: Filters::Panels,
        }
    }
}
