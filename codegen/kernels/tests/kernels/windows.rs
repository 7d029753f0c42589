//! Pooling, resizing and local response norms.

use csdfc_kernels::arch::Isa;
use csdfc_kernels::kernel::{Context, ElementKernel, RowKernel};
use csdfc_kernels::lrn::Lrn;
use csdfc_kernels::pool::{Pool, PoolKind};
use csdfc_kernels::resize::{Line, Resize, ResizeMode, Rounding};

use crate::cases::{Case, Image, alone};
use crate::testing::{Random, rounds};

/// Every tap of the window, counted one by one.
fn pooled(p: &Pool, input: &Image, y: usize, x: usize, c: usize) -> f64 {
    let (mut values, mut counted) = (std::vec::Vec::new(), 0);
    for ky in 0..p.kernel[0] {
        for kx in 0..p.kernel[1] {
            let iy = (y * p.stride[0] + ky * p.dilation[0]) as i64 - p.pads[0] as i64;
            let ix = (x * p.stride[1] + kx * p.dilation[1]) as i64 - p.pads[1] as i64;
            let (h, w) = (input.size[0] as i64, input.size[1] as i64);
            if iy < h + p.pads[2] as i64 && ix < w + p.pads[3] as i64 {
                counted += 1;
            }
            if (0..h).contains(&iy) && (0..w).contains(&ix) {
                values.push(input.at(iy as usize, ix as usize, c));
            }
        }
    }
    let power = |p: f64| values.iter().map(|x| x.abs().powf(p)).sum::<f64>().powf(1.0 / p);
    match p.kind {
        PoolKind::Max => values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        PoolKind::Average => values.iter().sum::<f64>() / values.len().max(1) as f64,
        PoolKind::AverageWithPad => values.iter().sum::<f64>() / f64::from(counted.max(1)),
        PoolKind::Lp { p } => power(p as f64),
    }
}

#[test]
fn pools_are_those_of_the_textbook() {
    let mut random = Random(1);
    for round in rounds(120) {
        let kernel = [random.within(1, 4), random.within(1, 4)];
        let dilation = [random.within(1, 2), random.within(1, 2)];
        let extent = [0, 1].map(|i| (kernel[i] - 1) * dilation[i] + 1);
        let pads = [0, 1, 0, 1].map(|i| random.within(0, extent[i] - 1));
        let size =
            [0, 1].map(|i: usize| random.within(extent[i].saturating_sub(pads[i] + pads[i + 2]).max(1), 9));
        let stride = [random.within(1, 4), random.within(1, 4)];
        let channels = *random.pick(&[1, 2, 3, 8, 17]);
        let kinds = [PoolKind::Max, PoolKind::Average, PoolKind::AverageWithPad];
        let powers = [1, 2, 3].map(|p| PoolKind::Lp { p });
        let kind = if round % 2 == 0 { *random.pick(&kinds) } else { *random.pick(&powers) };
        let p = Pool { kind, kernel, stride, dilation, pads };
        let ceil = random.within(0, 1) == 1;
        let out = [0, 1].map(|i| {
            let slack = size[i] + pads[i] + pads[i + 2] - extent[i];
            let last = slack / stride[i];
            let hangs = slack % stride[i] != 0 && (last + 1) * stride[i] < size[i] + pads[i];
            1 + last + usize::from(ceil && hangs)
        });
        let input = Image::random(&mut random, [size[0], size[1], channels]);
        let case = Case {
            what: &format!("{p:?} of {size:?}"),
            inputs: &[&input],
            output: [out[0], out[1], channels],
            need: |_, y: usize| {
                let start = (y * stride[0]).saturating_sub(pads[0]).min(size[0]);
                start..(y * stride[0] + extent[0]).saturating_sub(pads[0]).min(size[0])
            },
            want: |y, x, c| pooled(&p, &input, y, x, c),
        };
        for isa in Isa::all() {
            case.by_rows(&mut random, |y, inputs, output| {
                p.rows(&mut Context::alone(isa), y, inputs, &[], output)
            });
        }
        case.by_elements(&mut random, |y, inputs, output| p.elements(&mut alone(), y, inputs, &[], output));
    }
}

/// The definition of Resize in one direction: pairs of index and weight.
fn resampled(p: &Resize, axis: usize, position: usize, size: usize) -> [(usize, f64); 2] {
    let Line { start, step, over } = [p.rows, p.columns][axis];
    let at = start + position as i64 * step;
    let last = size as i64 - 1;
    let below = (-9..99).take_while(|whole| whole * over <= at).last().unwrap();
    let part = at - below * over;
    let inside = |i: i64| i.clamp(0, last) as usize;
    match p.mode {
        ResizeMode::Nearest(rounding) => {
            let up = match rounding {
                Rounding::RoundPreferFloor => part + part > over,
                Rounding::RoundPreferCeil => part + part >= over,
                Rounding::Floor => false,
                Rounding::Ceil => part > 0,
            };
            [(inside(below + i64::from(up)), 1.0), (inside(below), 0.0)]
        }
        ResizeMode::Linear => {
            let part = part as f64 / over as f64;
            [(inside(below), 1.0 - part), (inside(below + 1), part)]
        }
    }
}

#[test]
fn resizes_are_those_of_the_textbook() {
    let mut random = Random(2);
    for round in rounds(300) {
        let size = [random.within(1, 8), random.within(1, 8), *random.pick(&[1, 3, 9])];
        let out = [random.within(1, 9), random.within(1, 9)];
        let roundings =
            [Rounding::RoundPreferFloor, Rounding::RoundPreferCeil, Rounding::Floor, Rounding::Ceil];
        let mode =
            if round % 2 == 0 { ResizeMode::Linear } else { ResizeMode::Nearest(*random.pick(&roundings)) };
        // From before the image to behind it, with many ties.
        let [rows, columns] = [0, 1].map(|axis: usize| {
            let over = *random.pick(&[1, 2, 3, 4, 7]);
            let most = 2 * (over * size[axis]) / out[axis];
            let (start, step) = (random.within(0, 4 * over), random.within(0, most));
            Line { start: start as i64 - 2 * over as i64, step: step as i64, over: over as i64 }
        });
        let p = Resize { mode, rows, columns };
        let input = Image::random(&mut random, size);
        let case = Case {
            what: &format!("{p:?} of {size:?}"),
            inputs: &[&input],
            output: [out[0], out[1], size[2]],
            need: |_, y| {
                // The row below and the one above it, as the planner has it.
                let [(a, _), (b, _)] = resampled(&p, 0, y, size[0]);
                if mode == ResizeMode::Linear { a..(a + 2).min(size[0]).max(b + 1) } else { a..a + 1 }
            },
            want: |y, x, c| {
                let mut sum = 0.0;
                for (iy, wy) in resampled(&p, 0, y, size[0]) {
                    for (ix, wx) in resampled(&p, 1, x, size[1]) {
                        sum += wy * wx * input.at(iy, ix, c);
                    }
                }
                sum
            },
        };
        case.by_rows(&mut random, |y, inputs, output| p.rows(&mut alone(), y, inputs, &[], output));
        case.by_elements(&mut random, |y, inputs, output| p.elements(&mut alone(), y, inputs, &[], output));
    }
}

#[test]
fn local_responses_are_normalised_across_channels() {
    let mut random = Random(3);
    for _ in rounds(40) {
        let size = [random.within(1, 4), random.within(1, 4), random.within(1, 9)];
        let p = Lrn {
            size: random.within(1, 6),
            alpha: 0.7,
            beta: *random.pick(&[0.5, 0.75, 0.8, 1.0]),
            bias: 1.5,
        };
        let input = Image::random(&mut random, size);
        let case = Case {
            what: &format!("{p:?}"),
            inputs: &[&input],
            output: size,
            need: |_, y| y..y + 1,
            want: |y, x, c| {
                // ONNX: from c − ⌊(size − 1) / 2⌋ to c + ⌈(size − 1) / 2⌉.
                let (low, high) = (c as i64 - (p.size as i64 - 1) / 2, c + p.size / 2);
                let squares: f64 = (0..size[2])
                    .filter(|i| low <= *i as i64 && *i <= high)
                    .map(|i| input.at(y, x, i).powi(2))
                    .sum();
                let base = f64::from(p.bias) + f64::from(p.alpha) / p.size as f64 * squares;
                input.at(y, x, c) / base.powf(f64::from(p.beta))
            },
        };
        case.by_rows(&mut random, |y, inputs, output| p.rows(&mut alone(), y, inputs, &[], output));
        case.by_elements(&mut random, |y, inputs, output| p.elements(&mut alone(), y, inputs, &[], output));
    }
}
