//! MEC on batches, by both solutions.

use csdfc_kernels::activation::Activation;
use csdfc_kernels::arch::Isa;
use csdfc_kernels::conv::Conv;
use csdfc_kernels::conv::lowered::{Lowered, PatchMatrix};
use csdfc_kernels::conv::mec::{Mec, Solution};
use csdfc_kernels::conv::mec_batch::*;
use csdfc_kernels::conv::scenario::{Filters, Scenario};
use csdfc_kernels::kernel::{Context, RowKernel};
use csdfc_kernels::layout::Layout;
use csdfc_kernels::rows::{RowShape, Rows, RowsMut};
use csdfc_kernels::span::{Span, SpanMut};

use crate::testing::Random;

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
fn one_by_one(kernel: &dyn RowKernel, isa: Isa, scenario: &Scenario, packed: &[f32], x: &[f32]) -> Vec<f32> {
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
        let of_image = Mec { scenario, solution: Solution::B, strip: output[0] };
        for isa in Isa::all() {
            let patches = PatchMatrix::Rows;
            let windows = Lowered { scenario, patches, strip: output[0] };
            let want = one_by_one(&windows, isa, &scenario, &packed, &images);
            assert_eq!(want, one_by_one(&of_image, isa, &scenario, &packed, &images));
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
        let images = random.floats(IMAGES * scenario.input[0] * scenario.input[1] * scenario.conv.channels);
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
