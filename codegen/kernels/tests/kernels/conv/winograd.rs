//! Every transform against the definition.

use csdfc_kernels::activation::Activation;
use csdfc_kernels::arch::Isa;
use csdfc_kernels::conv::Conv;
use csdfc_kernels::conv::winograd::*;
use csdfc_kernels::kernel::{Context, RowKernel};
use csdfc_kernels::layout::Layout;
use csdfc_kernels::rows::{RowShape, Rows, RowsMut};
use csdfc_kernels::span::{Span, SpanMut};

use crate::testing::{Random, ring};

/// Tile, kernel (0 rows: any number), and how far an output may be from the exact one, relative to the largest Σ|x||w|.
const VARIANTS: [([usize; 2], [usize; 2], f64); 7] = [
    ([2, 2], [3, 3], 2e-5),
    ([4, 4], [3, 3], 1e-4),
    ([6, 6], [3, 3], 1e-3),
    ([2, 2], [5, 5], 1e-4),
    ([1, 2], [0, 3], 2e-5),
    ([1, 4], [0, 3], 1e-4),
    ([1, 2], [0, 5], 2e-5),
];

const LAYOUTS: [[Layout; 2]; 5] = [
    [Layout::Hwc, Layout::Hwc],
    [Layout::Chw, Layout::Chw],
    [Layout::Hcw, Layout::Hcw],
    [Layout::Chw, Layout::Hwc],
    [Layout::Hwc, Layout::Chw],
];

/// A convolution with its operands, `[H, W, C]` and as ONNX has filters.
struct Case {
    winograd: Winograd,
    image: Vec<f32>,
    weights: Vec<f32>,
    bias: Vec<f32>,
    packed: Vec<f32>,
}

impl Case {
    fn random(random: &mut Random, tile: [usize; 2], kernel: [usize; 2]) -> Self {
        let kernel = [if kernel[0] == 0 { random.within(1, 5) } else { kernel[0] }, kernel[1]];
        let few = [1, 1, 2, 3, 7, 16, 17, 21, 32, 35];
        let pads: [usize; 4] = core::array::from_fn(|axis| random.within(0, kernel[axis % 2] - 1));
        let size = |random: &mut Random, axis: usize, most: usize| {
            let least = kernel[axis].saturating_sub(pads[axis] + pads[axis + 2]).max(1);
            least + random.within(0, most)
        };
        let input = [size(random, 0, 14), size(random, 1, 40)];
        let output = [0, 1].map(|axis| input[axis] + pads[axis] + pads[axis + 2] + 1 - kernel[axis]);
        let conv = Conv {
            channels: *random.pick(&few),
            filters: if random.within(0, 9) == 0 { random.within(60, 140) } else { *random.pick(&few) },
            kernel,
            stride: [1, 1],
            dilation: [1, 1],
            pads,
            groups: 1,
            pre: None,
            residual: false,
            activation: *random.pick(&[
                Activation::None,
                Activation::Relu,
                Activation::Clip { min: -0.5, max: 0.75 },
                Activation::Tanh,
            ]),
        };
        let layouts = *random.pick(&LAYOUTS);
        let winograd = Winograd { conv, input, output, layouts, tile, is_whole: false };
        let image = random.floats(input[0] * input[1] * conv.channels);
        let weights = random.floats(conv.filters * conv.channels * kernel[0] * kernel[1]);
        let bias = if random.within(0, 1) == 0 { vec![] } else { random.floats(conv.filters) };
        let mut packed = vec![f32::NAN; winograd.packed_len()];
        winograd.pack(&weights, &bias, &mut packed);
        Case { winograd, image, weights, bias, packed }
    }

    /// The definition in double precision, `[H, W, M]`, and the largest Σ|x||w|.
    fn textbook(&self) -> (Vec<f64>, f64) {
        let Winograd { conv, input, output, .. } = self.winograd;
        let Conv { channels, filters, kernel, pads, activation, .. } = conv;
        let (mut made, mut largest) = (Vec::new(), 0.0_f64);
        for at in 0..output[0] * output[1] * filters {
            let (y, x, filter) = (at / filters / output[1], at / filters % output[1], at % filters);
            let mut sum = self.bias.get(filter).copied().map_or(0.0, f64::from);
            let mut size = sum.abs();
            for tap in 0..kernel[0] * kernel[1] {
                let row = (y + tap / kernel[1]).checked_sub(pads[0]).filter(|row| *row < input[0]);
                let column = (x + tap % kernel[1]).checked_sub(pads[1]).filter(|column| *column < input[1]);
                let Some((row, column)) = row.zip(column) else { continue };
                for channel in 0..channels {
                    let value = self.image[(row * input[1] + column) * channels + channel];
                    let weight = self.weights[(filter * channels + channel) * kernel[0] * kernel[1] + tap];
                    let product = f64::from(value) * f64::from(weight);
                    (sum, size) = (sum + product, size + product.abs());
                }
            }
            made.push(match activation {
                Activation::Relu => sum.max(0.0),
                Activation::Clip { min, max } => sum.clamp(f64::from(min), f64::from(max)),
                Activation::Tanh => sum.tanh(),
                _ => sum,
            });
            largest = largest.max(size);
        }
        (made, largest)
    }

    /// Makes the output, `[H, W, M]`, `rows` rows at a time. The rings hold exactly what these rows need. The workspace
    /// has exactly the stated length, and holds NaN before.
    fn run(&self, random: &mut Random, isa: Isa, rows: usize) -> Vec<f32> {
        let Winograd { conv: Conv { channels, filters, kernel, pads, .. }, input, output, layouts, .. } =
            self.winograd;
        let mut made = Vec::new();
        // Planes are made whole.
        let rows = if layouts[1] == Layout::Chw { output[0] } else { rows };
        for from in (0..output[0]).step_by(rows) {
            let to = output[0].min(from + rows);
            let first = from.saturating_sub(pads[0]).min(input[0] - 1);
            let end = (to + kernel[0] - 1).saturating_sub(pads[0]).min(input[0]).max(first + 1);
            let [height, width] = input;
            let (data, shape) = match layouts[0] {
                Layout::Hwc => ring(random, &self.image, [height, width, channels], first, end - first),
                Layout::Hcw => {
                    let turned = turn(&self.image, [width, channels]);
                    ring(random, &turned, [height, channels, width], first, end - first)
                }
                Layout::Chw => {
                    let planes = turn(&self.image, [height * width, channels]);
                    (planes, RowShape::dense(1, channels, height * width, 1))
                }
            };
            let [height, width] = output;
            let (shape_made, y) = match layouts[1] {
                Layout::Hwc => {
                    (RowShape::dense(height, width, filters, height).stored(&(from..to)), from..to)
                }
                Layout::Hcw => {
                    (RowShape::dense(height, filters, width, height).stored(&(from..to)), from..to)
                }
                Layout::Chw => (RowShape::dense(1, filters, height * width, 1), 0..1),
            };
            let len = shape_made.ring_rows * shape_made.row_stride();
            let mut storage = vec![f32::NAN; len + 2];
            let mut workspace = vec![f32::NAN; self.winograd.workspace_len() + 2];
            for all in [&mut storage, &mut workspace] {
                let last = all.len() - 1;
                (all[0], all[last]) = (7.5, 7.5);
            }
            let end_of_room = workspace.len() - 1;
            self.winograd.rows(
                &mut Context { isa, workers: None, workspace: &mut workspace[1..end_of_room] },
                y,
                &[Rows { data: Span::new(&data), shape }],
                &[Rows::line(&self.packed)],
                &mut RowsMut { data: SpanMut::new(&mut storage[1..=len]), shape: shape_made },
            );
            for all in [&storage, &workspace] {
                assert_eq!((all[0], all[all.len() - 1]), (7.5, 7.5), "a guard of {:?}", self.winograd);
            }
            let storage = &storage[1..=len];
            match layouts[1] {
                Layout::Hwc => made.extend_from_slice(storage),
                Layout::Hcw => made.extend(turn(storage, [filters, width])),
                Layout::Chw => return turn(storage, [filters, height * width]),
            }
        }
        made
    }
}

/// Each matrix `[a, b]` of many as `[b, a]`.
fn turn(matrices: &[f32], [a, b]: [usize; 2]) -> Vec<f32> {
    let of = |matrix: &[f32]| (0..a * b).map(|at| matrix[at % a * b + at / a]).collect::<Vec<_>>();
    matrices.chunks_exact(a * b).flat_map(of).collect()
}

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|x| x.to_bits()).collect()
}

#[test]
fn tiles_of_every_size_are_near_the_definition() {
    compare(200);
}

/// The same for a few, which do not take long under valgrind.
#[test]
fn a_few_tiles_are_near_the_definition() {
    compare(4);
}

/// Compares this many random convolutions of each variant with the definition: whole by every instruction set, and in
/// firings of several sizes by one of them in turn.
fn compare(cases: usize) {
    let mut random = Random(11);
    for (tile, kernel, bar) in VARIANTS {
        let mut worst = 0.0_f64;
        for case in 0..cases {
            let scenario = Case::random(&mut random, tile, kernel);
            let (want, largest) = scenario.textbook();
            let what = |isa: Isa| format!("case {case} {} {:?}", isa.name(), scenario.winograd);
            let mut fused: Option<Vec<u32>> = None;
            let all = Isa::all().count();
            for (turn, isa) in Isa::all().enumerate() {
                let height = scenario.winograd.output[0];
                let whole = scenario.run(&mut random, isa, height);
                if isa != Isa::PORTABLE {
                    let fused = fused.get_or_insert_with(|| bits(&whole));
                    assert_eq!(*fused, bits(&whole), "instruction sets: {}", what(isa));
                }
                let parts = [1, random.within(2, 7), tile[0], 2 * tile[0], 24];
                let parts = if case % all == turn { &parts[..] } else { &[] };
                for &rows in [height].iter().chain(parts) {
                    let made =
                        if rows == height { whole.clone() } else { scenario.run(&mut random, isa, rows) };
                    assert_eq!(made.len(), want.len());
                    for (got, want) in made.iter().zip(&want) {
                        let error = (f64::from(*got) - want).abs() / largest;
                        assert!(error <= bar, "{error:e}, {rows} rows: {}", what(isa));
                        worst = worst.max(error);
                    }
                    if rows.is_multiple_of(tile[0]) {
                        assert_eq!(bits(&made), bits(&whole), "{rows} rows: {}", what(isa));
                    }
                }
            }
        }
        assert!(worst > 0.0);
        eprintln!("{tile:?} {kernel:?}: {worst:.1e}");
    }
}

#[test]
fn all_tiles_at_once_make_the_same_bits() {
    let mut random = Random(14);
    for (tile, kernel, _) in VARIANTS {
        for _ in 0..12 {
            let mut case = Case::random(&mut random, tile, kernel);
            let height = case.winograd.output[0];
            for isa in Isa::all() {
                let [strips, at_once] = [false, true].map(|is_whole| {
                    case.winograd.is_whole = is_whole;
                    case.winograd.pack(&case.weights, &case.bias, &mut case.packed);
                    bits(&case.run(&mut random, isa, height))
                });
                assert_eq!(strips, at_once, "{:?}", case.winograd);
            }
        }
    }
}

#[test]
fn a_workspace_that_is_too_small_is_refused() {
    let mut random = Random(12);
    for (tile, kernel, _) in VARIANTS {
        let case = Case::random(&mut random, tile, kernel);
        let winograd = Winograd { layouts: [Layout::Hwc; 2], ..case.winograd };
        let Winograd { conv, input, output, .. } = winograd;
        let fires = |len: usize| {
            let mut made = vec![0.0; output[0] * output[1] * conv.filters];
            let shape = RowShape::dense(output[0], output[1], conv.filters, output[0]);
            let image = RowShape::dense(input[0], input[1], conv.channels, input[0]);
            std::panic::catch_unwind(core::panic::AssertUnwindSafe(|| {
                winograd.rows(
                    &mut Context { isa: Isa::PORTABLE, workers: None, workspace: &mut vec![0.0; len] },
                    0..output[0],
                    &[Rows { data: Span::new(&case.image), shape: image }],
                    &[Rows::line(&case.packed)],
                    &mut RowsMut { data: SpanMut::new(&mut made), shape },
                );
            }))
            .is_ok()
        };
        assert!(fires(winograd.workspace_len()));
        assert!(!fires(winograd.workspace_len() - 1), "{winograd:?}");
    }
}

/// The formulas of the documentation, in numbers: F(4×4, 3×3) of 64 channels and 128 filters at 56×56, where 14 tiles lie
/// side by side and a strip has 3 rows of them; and F(2, 5) of 3 rows.
#[test]
fn lengths_are_those_of_the_formulas() {
    let mut random = Random(13);
    let mut case = Case::random(&mut random, [4, 4], [3, 3]).winograd;
    (case.conv.channels, case.conv.filters) = (64, 128);
    (case.input, case.output) = ([56, 56], [56, 56]);
    assert_eq!(case.workspace_len(), 36 * 3 * 14 * (64 + 64) + 6 * (32 + 2) * 16);
    let at_once = Winograd { is_whole: true, ..case };
    assert_eq!(at_once.workspace_len(), 36 * 14 * 14 * (64 + 128) + 6 * (32 + 2) * 16);
    assert_eq!(case.packed_len(), 128 + 36 * 64 * 128);
    case.tile = [1, 2];
    case.conv.kernel = [3, 5];
    assert_eq!(case.workspace_len(), 6 * 28 * ((2 + 2) * 64 + 2 * 64) + (16 + 4) * 16);
    assert_eq!(case.packed_len(), 128 + 6 * 3 * 64 * 128);
}
