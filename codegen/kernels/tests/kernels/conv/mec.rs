//! MEC against its paper.

use csdfc_kernels::activation::Activation;
use csdfc_kernels::arch::Isa;
use csdfc_kernels::conv::Conv;
use csdfc_kernels::conv::mec::*;
use csdfc_kernels::conv::scenario::{Filters, Scenario};
use csdfc_kernels::kernel::{Context, RowKernel};
use csdfc_kernels::layout::Layout;
use csdfc_kernels::rows::{RowShape, Rows, RowsMut};
use csdfc_kernels::span::{Span, SpanMut};

/// A scenario in HWC with an input that is already padded: height and width, channels, filters, size and stride of
/// the kernel.
fn scenario(input: [usize; 2], channels: usize, filters: usize, kernel: usize, stride: usize) -> Mec {
    let conv = Conv {
        channels,
        filters,
        kernel: [kernel; 2],
        stride: [stride; 2],
        dilation: [1, 1],
        pads: [0; 4],
        groups: 1,
        pre: None,
        residual: false,
        activation: Activation::None,
    };
    let output = input.map(|size| (size - kernel) / stride + 1);
    let layouts = [Layout::Hwc; 2];
    let scenario = Scenario { conv, input, output, layouts, filters: Filters::Steps };
    Mec { scenario, solution: Solution::B, strip: output[0] }
}

type Layer = (&'static str, usize, [usize; 4], usize, usize, bool);

/// Table 2, with the elements of L by Eq. 3, the elements of a patch matrix by Eq. 2, and whether solution A is
/// possible.
const TABLE_2: [Layer; 12] = [
    ("cv1", 227, [3, 96, 11, 4], 412_005, 1_098_075, true),
    ("cv2", 231, [3, 96, 11, 4], 426_888, 1_138_368, true),
    ("cv3", 227, [3, 64, 7, 2], 529_137, 1_811_187, false),
    ("cv4", 224, [64, 64, 7, 2], 10_938_368, 37_258_816, false),
    ("cv5", 24, [96, 256, 5, 1], 230_400, 960_000, true),
    ("cv6", 12, [256, 512, 3, 1], 92_160, 230_400, true),
    ("cv7", 224, [3, 64, 3, 1], 447_552, 1_330_668, false),
    ("cv8", 112, [64, 128, 3, 1], 2_365_440, 6_969_600, false),
    ("cv9", 56, [64, 64, 3, 1], 580_608, 1_679_616, true),
    ("cv10", 28, [128, 128, 3, 1], 279_552, 778_752, true),
    ("cv11", 14, [256, 256, 3, 1], 129_024, 331_776, true),
    ("cv12", 7, [512, 512, 3, 1], 53_760, 115_200, true),
];

#[test]
fn lowered_sizes_are_those_of_the_paper() {
    for (name, size, [channels, filters, kernel, stride], lowered, windows, a) in TABLE_2 {
        let mec = scenario([size; 2], channels, filters, kernel, stride);
        assert_eq!(mec.workspace_len(), lowered, "{name}");
        assert_eq!(mec.suits_a(T), a, "{name}");
        let patches = csdfc_kernels::conv::lowered::PatchMatrix::Columns;
        let whole =
            csdfc_kernels::conv::lowered::Lowered { scenario: mec.scenario, patches, strip: mec.strip };
        assert_eq!(whole.workspace_len(), windows, "{name}");
        // For strips: the elements that their rows read.
        let strip = Mec { strip: 2, ..mec };
        let [_, width] = mec.scenario.output;
        assert_eq!(strip.workspace_len(), width * (stride + kernel) * kernel * channels, "{name}");
    }
    // The bound on columns is the caller's: without one, only the size of the output counts.
    let [cv3, cv8] = [scenario([227; 2], 3, 64, 7, 2), scenario([112; 2], 64, 128, 3, 1)];
    assert_eq!([cv3.suits_a(usize::MAX), cv8.suits_a(usize::MAX)], [false, true]);
    assert!(!scenario([56; 2], 64, 64, 3, 1).suits_a(53));
}

/// The example of Figures 1 and 2: an image 7×7, a kernel 3×3 of stride 1. L is 5×21, where a patch matrix is 25×9.
/// Its elements are whole numbers, so every sum is exact.
#[test]
fn the_example_of_the_paper() {
    #[rustfmt::skip]
    let image = [
        0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0,
        0.0, 2.0, 2.0, 1.0, 1.0, 2.0, 0.0,
        0.0, 2.0, 0.0, 1.0, 1.0, 0.0, 0.0,
        0.0, 2.0, 0.0, 1.0, 2.0, 0.0, 0.0,
        0.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.0,
        0.0, 0.0, 0.0, 1.0, 0.0, 2.0, 0.0,
        0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0,
    ];
    let kernel = [1.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0, 0.0, -1.0];
    let mec = scenario([7, 7], 1, 1, 3, 1);
    assert_eq!(mec.workspace_len(), 5 * 21);
    let mut packed = vec![f32::NAN; mec.scenario.packed_len()];
    mec.scenario.pack(&kernel, &[], &mut packed);
    let input = Rows { data: Span::new(&image), shape: RowShape::dense(7, 7, 1, 7) };
    #[rustfmt::skip]
    let want = [
        4.0, 6.0, 3.0, 5.0, 4.0,
        2.0, 6.0, 2.0, 4.0, 4.0,
        1.0, 5.0, 3.0, 4.0, 4.0,
        2.0, 4.0, 3.0, 3.0, 4.0,
        0.0, 2.0, 2.0, 4.0, 3.0,
    ];
    for isa in Isa::all() {
        let (mut made, mut lowered) = (vec![f32::NAN; 25], vec![f32::NAN; 5 * 21]);
        let mut output = RowsMut { data: SpanMut::new(&mut made), shape: RowShape::dense(5, 5, 1, 5) };
        let mut context = Context { isa, workers: None, workspace: &mut lowered };
        mec.rows(&mut context, 0..5, &[input], &[Rows::line(&packed)], &mut output);
        // Row w of L is the columns w to w + 3 of the image, row by row: partition A of Figure 2 and those after it.
        for (w, row) in lowered.chunks_exact(21).enumerate() {
            let columns: Vec<f32> = (0..7).flat_map(|h| &image[h * 7 + w..][..3]).copied().collect();
            assert_eq!(row, columns);
        }
        assert_eq!(made, want, "{}", isa.name());
    }
}
