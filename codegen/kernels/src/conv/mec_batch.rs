//! MEC of a batch of images: Algorithm 2 of the paper as it is printed ("MEC: Memory-efficient convolution for deep neural
//! network", Cho and Brand, 2017).
//!
//! For one image in HWC, solutions A and B do the same, and a frame is one image. So this is no kernel of a plan. It
//! serves to measure the algorithm as its authors did.

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

#[cfg(test)]
mod tests {
    extern crate std;
    use std::vec;
    use std::vec::Vec;

    use super::super::super::activation::Activation;
    use super::super::super::kernel::{Context, RowKernel};
    use super::super::super::rows::RowsMut;
    use super::super::super::span::SpanMut;
    use super::super::super::testing::Random;
    use super::super::Conv;
    use super::super::lowered::{Lowered, PatchMatrix};
    use super::super::scenario::Filters;
    use super::*;

    /// Images of a batch.
    const IMAGES: usize = 4;

    /// A convolution with padding and strides of its own along each axis, the filters of which are packed.
    fn draw(random: &mut Random) -> (Scenario, Vec<f32>) {
        let kernel = [random.within(1, 4), random.within(1, 4)];
        let conv = Conv {
            channels: random.within(1, 9),
            filters: random.within(1, 20),
            kernel,
            stride: [random.within(1, 3), random.within(1, 3)],
            dilation: [1, random.within(1, 2)],
            pads: core::array::from_fn(|axis| random.within(0, kernel[axis % 2])),
            groups: 1,
            pre: None,
            residual: false,
            activation: *random.pick(&[Activation::None, Activation::Relu]),
        };
        let input = [random.within(4, 12), random.within(7, 16)];
        let output = [0, 1].map(|axis| {
            let reach = (kernel[axis] - 1) * conv.dilation[axis] + 1;
            (input[axis] + conv.pads[axis] + conv.pads[axis + 2] - reach) / conv.stride[axis] + 1
        });
        let filters = *random.pick(&[Filters::Steps, Filters::Panels]);
        let scenario = Scenario { conv, input, output, layouts: [Layout::Hwc; 2], filters };
        let weights = random.floats(conv.filters * scenario.steps());
        let mut packed = vec![f32::NAN; scenario.packed_len()];
        scenario.pack(&weights, &random.floats(conv.filters), &mut packed);
        (scenario, packed)
    }

    /// The output of a kernel of single images for each image.
    fn one_by_one(
        kernel: &dyn RowKernel,
        isa: Isa,
        scenario: &Scenario,
        packed: &[f32],
        x: &[f32],
    ) -> Vec<f32> {
        let Scenario { conv, input, output, .. } = *scenario;
        let shape = RowShape::dense(input[0], input[1], conv.channels, input[0]);
        let made = RowShape::dense(output[0], output[1], conv.filters, output[0]);
        let convolve = |image: &[f32]| {
            let mut to = vec![f32::NAN; output[0] * output[1] * conv.filters];
            let context = &mut Context { isa, workers: None, workspace: &mut vec![f32::NAN; 1 << 16] };
            let input = Rows { data: Span::new(image), shape };
            let output_rows = &mut RowsMut { data: SpanMut::new(&mut to), shape: made };
            kernel.rows(context, 0..output[0], &[input], &[Rows::line(packed)], output_rows);
            to
        };
        x.chunks_exact(input[0] * input[1] * conv.channels).flat_map(convolve).collect()
    }

    /// Both solutions, and im2col and MEC image by image, sum in the same order. So all bits are the same.
    #[test]
    fn a_and_b_make_the_same_of_a_batch_of_4() {
        let (mut random, mut both) = (Random(17), 0);
        while both < 60 {
            let (scenario, packed) = draw(&mut random);
            let Scenario { conv, input, output, .. } = scenario;
            let images = random.floats(IMAGES * input[0] * input[1] * conv.channels);
            let batches = [0, usize::MAX].map(|t| MecBatch::new(scenario, IMAGES, t));
            assert_eq!(batches[0].solution, Solution::B);
            if batches[1].solution == Solution::B {
                continue;
            }
            both += 1;
            for isa in Isa::all() {
                let patches = PatchMatrix::Rows;
                let windows = Lowered { scenario, patches, strip: output[0] };
                let want = one_by_one(&windows, isa, &scenario, &packed, &images);
                assert_eq!(want, one_by_one(&of_image(scenario), isa, &scenario, &packed, &images));
                for batch in batches {
                    // Elements beyond the output and L stay as they are.
                    let mut lowered = vec![f32::NAN; batch.lowered_len() + 1];
                    let mut made = vec![f32::NAN; want.len() + 1];
                    batch.convolve(isa, &images, &packed, &mut lowered, &mut made);
                    assert!(made.pop().unwrap().is_nan() && lowered.pop().unwrap().is_nan());
                    assert_eq!(made, want, "{} {batch:?}", isa.name());
                }
            }
        }
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let mut random = Random(18);
        let fits = |batch: MecBatch, lowered: usize, packed: &[f32], images: &[f32]| {
            let mut made = vec![0.0; 1 << 16];
            let mut room = vec![0.0; lowered];
            std::panic::catch_unwind(core::panic::AssertUnwindSafe(|| {
                batch.convolve(Isa::PORTABLE, images, packed, &mut room, &mut made);
            }))
            .is_ok()
        };
        let mut seen = [false; 2];
        while seen != [true; 2] {
            let (scenario, packed) = draw(&mut random);
            let images =
                random.floats(IMAGES * scenario.input[0] * scenario.input[1] * scenario.conv.channels);
            let b = MecBatch::new(scenario, IMAGES, 0);
            assert!(fits(b, b.lowered_len(), &packed, &images));
            assert!(!fits(b, b.lowered_len() - 1, &packed, &images));
            assert!(!fits(b, b.lowered_len(), &packed, &images[1..]));
            let a_is_possible = MecBatch::new(scenario, IMAGES, usize::MAX).solution == Solution::A;
            let a = MecBatch { solution: Solution::A, ..b };
            assert_eq!(fits(a, b.lowered_len(), &packed, &images), a_is_possible, "{scenario:?}");
            seen[usize::from(a_is_possible)] = true;
        }
    }
}
