//! MEC of a batch of images: Algorithm 2 of the paper as it is printed ("MEC: Memory-efficient convolution for deep neural
//! network", Cho and Brand, 2017).
//!
//! For one image in HWC, solutions A and B do the same, and a frame is one image. So this is no kernel of a plan. It
//! serves to measure the algorithm as its authors did.
//!
//! # Example
//!
//! ```
//! use csdfc_kernels::conv::mec_batch::MecBatch;
//! use csdfc_kernels::conv::Conv;
//! use csdfc_kernels::conv::scenario::{Filters, Scenario};
//! use csdfc_kernels::layout::Layout;
//! use csdfc_kernels::{Activation, Isa};
//!
//! let conv = Conv {
//!     channels: 1, filters: 1, kernel: [2, 2], stride: [1, 1], dilation: [1, 1], pads: [0; 4],
//!     groups: 1, pre: None, residual: false, activation: Activation::None,
//! };
//! let scenario = Scenario {
//!     conv, input: [3, 3], output: [2, 2], layouts: [Layout::Hwc; 2], filters: Filters::Steps,
//! };
//! let mut packed = vec![0.0; scenario.packed_len()];
//! scenario.pack(&[1.0; 4], &[], &mut packed);
//! let batch = MecBatch::new(scenario, 2, 100);
//! let images: Vec<f32> = (1..=18).map(|x| x as f32).collect(); // [2, 3, 3, 1]
//! let (mut lowered, mut made) = (vec![0.0; batch.lowered_len()], [0.0; 8]); // [2, 2, 2, 1]
//! batch.convolve(Isa::PORTABLE, &images, &packed, &mut lowered, &mut made);
//! assert_eq!(made, [12.0, 16.0, 24.0, 28.0, 48.0, 52.0, 60.0, 64.0]);
//! ```

use super::super::arch::Isa;
use super::super::layout::Layout;
use super::super::rows::{RowShape, Rows};
use super::super::span::Span;
use super::mec::{Mec, Solution};
use super::scenario::{Patches, Scenario, Steps};

/// A convolution of several images by MEC, `[images, height, width, channels]` → `[images, height', width', filters]`.
#[derive(Debug, Clone, Copy)]
pub struct MecBatch {
    /// The convolution of an image, from HWC to HWC, without dilation of rows, its filters as steps or panels.
    pub scenario: Scenario,
    /// How many images.
    pub images: usize,
    /// The solution that makes the output from L.
    pub solution: Solution,
}

impl MecBatch {
    /// The kernel with the solution that line 8 chooses: A if the output has no more than `t` columns and no more
    /// elements than L, otherwise B. So a `t` of 0 always chooses B.
    pub fn new(scenario: Scenario, images: usize, t: usize) -> Self {
        let is_a = of_image(scenario).suits_a(t);
        MecBatch { scenario, images, solution: if is_a { Solution::A } else { Solution::B } }
    }

    /// Elements of L: i_n · o_w · i_h · k_w · i_c (Eq. 3, with i_c for k_c; i_h is the padded height).
    pub fn lowered_len(&self) -> usize {
        self.images * of_image(self.scenario).workspace_len()
    }

    /// Makes `output` from `images`. `packed` are filters as [`Scenario::pack`] packs them. `lowered` is room for
    /// [`MecBatch::lowered_len`] elements of any value.
    ///
    /// # Panics
    /// If a slice has fewer elements than stated here, if the scenario is not as [`MecBatch::scenario`] states, or if
    /// solution A has an output of more elements than L.
    pub fn convolve(
        &self,
        isa: Isa,
        images: &[f32],
        packed: &[f32],
        lowered: &mut [f32],
        output: &mut [f32],
    ) {
        let MecBatch { scenario, images: count, solution } = *self;
        let Scenario { conv, input: [height, width], output: [rows, columns], layouts, .. } = scenario;
        assert_eq!(
            (layouts, conv.dilation[0]),
            ([Layout::Hwc; 2], 1),
            "images in HWC, without dilation of rows"
        );
        let mec = of_image(scenario);
        let lowered = &mut lowered[..self.lowered_len()];
        // Elements of L from a row to the next of the padded input, for one column, and from column to column.
        let each = conv.kernel[1] * conv.channels;
        let column = mec.padded() * each;
        let shape = RowShape::dense(height, width, conv.channels, height);
        let size = height * shape.row_stride();
        for (image, lowered) in lowered.chunks_exact_mut(columns * column).enumerate() {
            let image = Rows { data: Span::new(&images[image * size..][..size]), shape };
            mec.lower(&image, 0, mec.padded(), lowered, [1, column]);
        }
        let (bias, filters) = scenario.constants(&[Rows::line(packed)]);
        let all = Steps { filters, first: 0, count: scenario.steps(), bias: Some(bias) };
        let line = columns * conv.filters;
        let output = &mut output[..count * rows * line];
        let patches = |lowered, image: usize, row: usize| {
            let elements: &[f32] = lowered;
            let first = image * columns * column + row * conv.stride[0] * each;
            Patches { elements: &elements[first..], step: 1, pixel: column }
        };
        match solution {
            Solution::A => {
                for (row, made) in output.chunks_exact_mut(count * line).enumerate() {
                    let of_all = patches(&*lowered, 0, row);
                    scenario.by_pixels(isa, all, of_all, count * columns, made, conv.filters);
                }
                // From h-n-w-c to n-h-w-c, with L as auxiliary space.
                let copy = &mut lowered[..count * rows * line];
                copy.copy_from_slice(output);
                for (at, to) in output.chunks_exact_mut(line).enumerate() {
                    let (image, row) = (at / rows, at % rows);
                    to.copy_from_slice(&copy[(row * count + image) * line..][..line]);
                }
            }
            Solution::B => {
                for (at, made) in output.chunks_exact_mut(line).enumerate() {
                    let of_image = patches(&*lowered, at / rows, at % rows);
                    scenario.by_pixels(isa, all, of_image, columns, made, conv.filters);
                }
            }
        }
    }
}

/// MEC of one of the images.
const fn of_image(scenario: Scenario) -> Mec {
    Mec { scenario, solution: Solution::B, strip: scenario.output[0] }
}
