//! MEC: "MEC: Memory-efficient convolution for deep neural network" (Cho and Brand, 2017).
//!
//! The lowered matrix L holds, for each column of the output, the columns of the padded input that it reads, from the
//! first row to the last: o_w · i_h · k_w · i_c elements, where a patch matrix has k_h / s times as many rows. The windows
//! of an output row are a part of it, which lies with a leading dimension of its own (Algorithm 2, lines 12 and 25).

use core::ops::Range;

use super::super::kernel::{Context, RowKernel};
use super::super::layout::{Layout, copy};
use super::super::rows::{Rows, RowsMut};
use super::scenario::{Patches, Scenario, Steps};

/// A convolution by MEC, of one image, without dilation of rows.
#[derive(Debug, Clone, Copy)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Mec {
    /// The convolution.
    pub scenario: Scenario,
    /// The solution that makes the output from L.
    pub solution: Solution,
    /// Rows of the output for which L is made at a time; with all of them, it is as in the paper.
    pub strip: usize,
}

/// How the output is made from the lowered matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub enum Solution {
    /// Solution A: the output is made pixel by pixel, whatever its layout. Then it is copied into L, which is no longer
    /// needed, and from there into its layout. (In the paper, it goes from h-n-w-c to n-h-w-c, which are the same for
    /// one image. So A is useful if the output is not HWC.)
    A,
    /// Solution B: the output is made in its layout. If that is not HWC, L is transposed, so that the columns of the
    /// output are contiguous.
    B,
}

/// The paper's bound T on the columns of the output of solution A (section 3.3).
pub const T: usize = 100;

impl Mec {
    /// Rows of the padded input that `rows` rows of the output read.
    const fn read(&self, rows: usize) -> usize {
        let conv = &self.scenario.conv;
        (rows - 1) * conv.stride[0] + conv.kernel[0]
    }

    /// Rows of the padded input, i_h.
    pub(super) const fn padded(&self) -> usize {
        let Scenario { conv, input, .. } = &self.scenario;
        input[0] + conv.pads[0] + conv.pads[2]
    }

    /// Elements of the workspace, L: for the whole padded input (Eq. 3, with i_c for k_c), or for the rows that a strip
    /// reads.
    pub fn workspace_len(&self) -> usize {
        let Scenario { conv, output: [height, width], .. } = self.scenario;
        let rows = if self.strip < height { self.read(self.strip) } else { self.padded() };
        width * rows * conv.kernel[1] * conv.channels
    }

    /// Whether solution A is possible: the output has no more than `t` columns and no more elements than L (Algorithm 2,
    /// line 8).
    pub fn suits_a(&self, t: usize) -> bool {
        let Scenario { conv, output: [height, width], .. } = self.scenario;
        width <= t && height * width * conv.filters <= self.workspace_len()
    }
}

/// One operand; the constant is packed by [`Scenario::pack`], its filters as steps or, for solution B of an output that is
/// not HWC, as lines or steps. The workspace has [`Mec::workspace_len`] elements.
impl RowKernel for Mec {
    /// # Panics
    /// Also if solution A has to bring an output of more elements than L into its layout.
    #[inline]
    fn rows(
        &self,
        context: &mut Context<'_>,
        y: Range<usize>,
        operands: &[Rows<'_>],
        constants: &[Rows<'_>],
        output: &mut RowsMut<'_>,
    ) {
        let scenario = &self.scenario;
        let Scenario { conv, output: [_, width], layouts: [_, layout], .. } = *scenario;
        let (bias, filters) = scenario.constants(constants);
        let all = Steps { filters, first: 0, count: scenario.steps(), bias: Some(bias) };
        let lowered = &mut context.workspace[..self.workspace_len()];
        // Elements of L from a row to the next of the padded input, for one column.
        let each = conv.kernel[1] * conv.channels;
        let image = scenario.output_rows(y.clone());
        for start in image.clone().step_by(self.strip) {
            let strip = start..image.end.min(start + self.strip);
            let rows = self.read(strip.len());
            let is_transposed = layout != Layout::Hwc && self.solution == Solution::B;
            let [step, pixel] = if is_transposed { [width, 1] } else { [1, rows * each] };
            self.lower(&operands[0], strip.start, rows, lowered, [step, pixel]);
            for y in strip.clone() {
                let elements = &lowered[(y - strip.start) * conv.stride[0] * each * step..];
                let patches = Patches { elements, step, pixel };
                match self.solution {
                    Solution::B => {
                        let line = layout.line_mut(output, width, y);
                        scenario.multiply(context.isa, all, patches, width, line);
                    }
                    Solution::A => {
                        let made = row_elements(layout, output, width * conv.filters, y);
                        scenario.by_pixels(context.isa, all, patches, width, made, conv.filters);
                    }
                }
            }
            if self.solution == Solution::A && layout != Layout::Hwc {
                let len = width * conv.filters;
                assert!(strip.len() * len <= lowered.len(), "an output larger than L");
                for (y, to) in strip.clone().zip(lowered.chunks_exact_mut(len)) {
                    to.copy_from_slice(row_elements(layout, output, len, y));
                }
                for (y, from) in strip.zip(lowered.chunks_exact(len)) {
                    let line = layout.line_mut(output, width, y);
                    let strides = [line.channel, line.column];
                    copy(from, [1, conv.filters], line.data, strides, [conv.filters, width]);
                }
            }
        }
    }
}

impl Mec {
    /// Makes L from `rows` rows of the padded input on, the first of which output row `y` reads.
    pub(super) fn lower(&self, input: &Rows<'_>, y: usize, rows: usize, to: &mut [f32], strides: [usize; 2]) {
        let Scenario { conv, input: [height, width], layouts: [layout, _], .. } = self.scenario;
        for row in 0..rows {
            let place = (y * conv.stride[0] + row).checked_sub(conv.pads[0]).filter(|row| *row < height);
            let line = place.map(|row| layout.line(input, width, row));
            for kx in 0..conv.kernel[1] {
                let first = (row * conv.kernel[1] + kx) * conv.channels;
                self.scenario.lower(line, kx, &mut to[first * strides[0]..], strides);
            }
        }
    }
}

/// As many elements of the output as its row `y` has, regardless of their meaning.
fn row_elements<'a>(layout: Layout, output: &'a mut RowsMut<'_>, len: usize, y: usize) -> &'a mut [f32] {
    match layout {
        Layout::Chw => &mut output.row(0)[y * len..][..len],
        Layout::Hcw | Layout::Hwc => output.row(y),
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use std::vec;
    use std::vec::Vec;

    use super::super::super::activation::Activation;
    use super::super::super::arch::Isa;
    use super::super::super::layout::Layout;
    use super::super::super::rows::RowShape;
    use super::super::super::span::{Span, SpanMut};
    use super::super::Conv;
    use super::super::scenario::Filters;
    use super::*;

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
            let patches = super::super::lowered::PatchMatrix::Columns;
            let whole = super::super::lowered::Lowered { scenario: mec.scenario, patches, strip: mec.strip };
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
}
