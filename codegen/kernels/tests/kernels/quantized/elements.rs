//! Functions of elements and windows, and what only moves elements.

use core::slice::from_ref;

use csdfc_kernels::arch::Isa;
use csdfc_kernels::concat::{Concat, ConcatElements, ImageAxis};
use csdfc_kernels::convert::{Gather, Scatter, Swap};
use csdfc_kernels::depth_space::{DepthToSpace, SpaceToDepth};
use csdfc_kernels::elements::{Dims, Elements, ElementsMut, MAX_RANK};
use csdfc_kernels::kernel::{Context, ElementKernel, RowKernel};
use csdfc_kernels::pad::{Pad, PadElements, PadMode};
use csdfc_kernels::pool::{Pool, PoolKind};
use csdfc_kernels::quantized::Requantize;
use csdfc_kernels::quantized::binary::{QBinary, QFunction};
use csdfc_kernels::quantized::cast::{Dequantize, Quantize};
use csdfc_kernels::quantized::pool::QPool;
use csdfc_kernels::quantized::table::Table;
use csdfc_kernels::resize::{Line, Resize, ResizeMode, Rounding};
use csdfc_kernels::slice::{Slice, SliceElements};
use csdfc_kernels::transpose::Transpose;

use super::{Case, Image, bytes, element, how, requantized};
use crate::testing::{Random, rounds};

/// A float rounded from doubles: products and quotients of floats are rounded right by way of doubles, and so are sums.
fn rounded(x: f64) -> f64 {
    f64::from(x as f32)
}

/// The definition of a function of two elements.
fn combined(p: &QBinary, a: u8, b: u8) -> u8 {
    let [sa, sb, sy] = p.scales.map(f64::from);
    let ([za, zb, zy], how) = (p.zero_points, Requantize { zero_point: 0, low: p.low, high: p.high });
    if p.function == QFunction::Product {
        let product = (i64::from(a) - i64::from(za)) * (i64::from(b) - i64::from(zb));
        let multiplier = rounded(rounded(sa * sb) / sy) as f32;
        return requantized(product, multiplier, Requantize { zero_point: zy, ..how });
    }
    let ra = rounded(sa / sy);
    let rb = if p.function == QFunction::Sum { rounded(sb / sy) } else { -rounded(sb / sy) };
    // The left one of these products is not rounded before the sum.
    let zeros = rounded(ra * f64::from(za) + rounded(rb * f64::from(zb)));
    let fixed = rounded(f64::from(zy) - zeros);
    let left = rounded(fixed + rounded(ra * f64::from(a)));
    element(rounded(left + rounded(rb * f64::from(b))), how)
}

fn random_binary(random: &mut Random) -> QBinary {
    let Requantize { low, high, .. } = how(random);
    QBinary {
        function: *random.pick(&[QFunction::Sum, QFunction::Difference, QFunction::Product]),
        constant_first: random.within(0, 1) == 0,
        // Also such that many sums lie between two integers.
        scales: core::array::from_fn(|_| *random.pick(&[0.5, 0.25, 1.0, 0.37, 0.011, 0.123_4])),
        zero_points: core::array::from_fn(|_| *random.pick(&[0, 128, 255, 13])),
        low,
        high,
    }
}

#[test]
fn functions_of_two_tensors() {
    let mut random = Random(81);
    for case in rounds(90) {
        let size = [random.within(1, 4), random.within(1, 6), *random.pick(&[1, 3, 16, 19, 40])];
        let p = random_binary(&mut random);
        let mut operand = |whole: bool| {
            let size = size.map(|d| if whole || random.within(0, 1) == 1 { d } else { 1 });
            Image::random(&mut random, size)
        };
        let (left, right) = (operand(case % 2 == 0), operand(case % 3 == 0 || case % 2 == 1));
        let out = [0, 1, 2].map(|i| left.size[i].max(right.size[i]));
        let broadcast = |image: &Image, at: [usize; 3]| {
            let [y, x, c] = [0, 1, 2].map(|i| if image.size[i] == 1 { 0 } else { at[i] });
            image.at(y, x, c)
        };
        let want =
            Image::of(out, |y, x, c| combined(&p, broadcast(&left, [y, x, c]), broadcast(&right, [y, x, c])));
        let what = || format!("{p:?} {:?} {:?}", left.size, right.size);
        let (a, b) = ((&left.data[..], left.size), (&right.data[..], right.size));
        let need = |height: usize| move |y: usize| if height == 1 { 0..1 } else { y..y + 1 };
        let (of_left, of_right) = (need(left.size[0]), need(right.size[0]));
        let both = Case { what: &what, inputs: &[a, b], constants: &[], output: out, want: &want.data };
        both.by_rows(&mut random, &p, |i, y| if i == 0 { of_left(y) } else { of_right(y) });
        both.by_elements(&mut random, &p);
        // One of them a constant.
        let (inputs, constants) = if p.constant_first { ([b], [a]) } else { ([a], [b]) };
        let one = Case { what: &what, inputs: &inputs, constants: &constants, output: out, want: &want.data };
        one.by_rows(&mut random, &p, |_, y| if p.constant_first { of_right(y) } else { of_left(y) });
        one.by_elements(&mut random, &p);
    }
}

/// Every pair of bytes.
#[test]
fn functions_of_all_bytes() {
    let mut random = Random(82);
    for _ in 0..12 {
        let p = random_binary(&mut random);
        let left = Image::of([1, 256, 1], |_, x, _| x as u8);
        let right = Image::of([1, 1, 256], |_, _, c| c as u8);
        let want = Image::of([1, 256, 256], |_, x, c| combined(&p, x as u8, c as u8));
        let case = Case {
            what: &|| format!("{p:?}"),
            inputs: &[(&left.data, left.size), (&right.data, right.size)],
            constants: &[],
            output: want.size,
            want: &want.data,
        };
        case.by_rows(&mut random, &p, |_, y| y..y + 1);
    }
}

#[test]
fn tables() {
    let mut random = Random(83);
    for _ in 0..20 {
        let size = [random.within(1, 4), random.within(1, 9), random.within(1, 40)];
        let (input, table) = (Image::random(&mut random, size), bytes(&mut random, 256));
        let want = Image::of(size, |y, x, c| table[usize::from(input.at(y, x, c))]);
        let case = Case {
            what: &|| format!("{size:?}"),
            inputs: &[(&input.data, size)],
            constants: &[(&table, [1, 1, 256])],
            output: size,
            want: &want.data,
        };
        case.by_rows(&mut random, &Table, |_, y| y..y + 1);
        case.by_elements(&mut random, &Table);
    }
}

/// Every tap of the window, counted one by one.
fn pooled(q: &QPool, input: &Image, y: usize, x: usize, c: usize) -> u8 {
    let (p, mut values, mut counted) = (&q.pool, vec![], 0_i32);
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
    let count = match p.kind {
        PoolKind::Max => return values.iter().copied().max().unwrap_or(0),
        PoolKind::AverageWithPad => counted.max(1),
        _ => values.len().max(1) as i32,
    };
    let sum = values.iter().map(|&x| i64::from(x) - i64::from(q.zero_point)).sum();
    requantized(sum, rounded(f64::from(q.multiplier) / f64::from(count)) as f32, q.requantize)
}

#[test]
fn pools() {
    let mut random = Random(84);
    for case in rounds(90) {
        let kernel = [random.within(1, 4), random.within(1, 4)];
        let dilation = [random.within(1, 2), random.within(1, 2)];
        let extent = [0, 1].map(|i| (kernel[i] - 1) * dilation[i] + 1);
        let pads = [0, 1, 0, 1].map(|i| random.within(0, extent[i] - 1));
        let size =
            [0, 1].map(|i: usize| random.within(extent[i].saturating_sub(pads[i] + pads[i + 2]).max(1), 9));
        let stride = [random.within(1, 3), random.within(1, 3)];
        let channels = *random.pick(&[1, 3, 8, 16, 17, 33, 48]);
        let kind = [PoolKind::Max, PoolKind::Average, PoolKind::AverageWithPad][case % 3];
        let mut pool = Pool { kind, kernel, stride, dilation, pads };
        if case % 7 == 0 {
            // All of it.
            pool = Pool { kernel: size, stride: [1, 1], dilation: [1, 1], pads: [0; 4], ..pool };
        }
        let q = QPool {
            pool,
            zero_point: *random.pick(&[0, 128, 255]),
            multiplier: *random.pick(&[1.0, 0.5, 0.83, 1.7]),
            requantize: how(&mut random),
        };
        let ceil = random.within(0, 1) == 1;
        let extent = [0, 1].map(|i| (pool.kernel[i] - 1) * pool.dilation[i] + 1);
        let out = [0, 1].map(|i| {
            let slack = size[i] + pool.pads[i] + pool.pads[i + 2] - extent[i];
            let last = slack / pool.stride[i];
            let hangs =
                !slack.is_multiple_of(pool.stride[i]) && (last + 1) * pool.stride[i] < size[i] + pool.pads[i];
            1 + last + usize::from(ceil && hangs)
        });
        let input = Image::random(&mut random, [size[0], size[1], channels]);
        let want = Image::of([out[0], out[1], channels], |y, x, c| pooled(&q, &input, y, x, c));
        let case = Case {
            what: &|| format!("{q:?} of {size:?}"),
            inputs: &[(&input.data, input.size)],
            constants: &[],
            output: want.size,
            want: &want.data,
        };
        case.by_rows(&mut random, &q, |_, y| {
            let start = (y * pool.stride[0]).saturating_sub(pool.pads[0]).min(size[0]);
            start..(y * pool.stride[0] + extent[0]).saturating_sub(pool.pads[0]).min(size[0])
        });
        case.by_elements(&mut random, &q);
        if out == [1, 1] {
            let image = planes_of(&input);
            let mut made = vec![0; channels];
            let output = &mut ElementsMut::dense(&mut made, &[1, channels]);
            let x = Elements::dense(&image, &[1, channels, size[0], size[1]]);
            q.elements(&mut Context::alone(Isa::compiled()), 0..1, &[x], &[], output);
            assert_eq!(made, want.data, "without the last dimensions");
        }
    }
}

fn planes_of(image: &Image) -> Vec<u8> {
    super::planes(&image.data, image.size)
}

#[test]
fn floats_become_bytes_and_bytes_floats() {
    let mut random = Random(85);
    for _ in 0..30 {
        let p =
            Quantize { scale: *random.pick(&[0.5, 0.037, 1.0, 3.0, 1e-30]), zero_point: random.next() as u8 };
        let size = [random.within(1, 4), random.within(1, 7), random.within(1, 40)];
        let special = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, f32::MAX, f32::MIN_POSITIVE, -0.0, 1e-40];
        let input: Vec<f32> = (0..size.iter().product())
            .map(|_| match random.within(0, 9) {
                0 => *random.pick(&special),
                1..3 => p.scale * (random.within(0, 600) as f32 - 300.0) / 2.0,
                _ => p.scale * 300.0 * random.floats(1)[0],
            })
            .collect();
        let how = Requantize { zero_point: p.zero_point, low: 0, high: 255 };
        let want: Vec<u8> = input
            .iter()
            .map(|&x| {
                if x.is_nan() {
                    p.zero_point
                } else {
                    element(rounded(f64::from(x) / f64::from(p.scale)), how)
                }
            })
            .collect();
        let case = Case {
            what: &|| format!("{p:?}"),
            inputs: &[(&input[..], size)],
            constants: &[],
            output: size,
            want: &want,
        };
        case.by_rows(&mut random, &p, |_, y| y..y + 1);
        case.by_elements(&mut random, &p);

        let p = Dequantize { scale: p.scale, zero_point: p.zero_point };
        let input = bytes(&mut random, size.iter().product());
        let value = |q: &u8| (f64::from(p.scale) * (f64::from(*q) - f64::from(p.zero_point))) as f32;
        let want: Vec<f32> = input.iter().map(value).collect();
        let case = Case {
            what: &|| format!("{p:?}"),
            inputs: &[(&input[..], size)],
            constants: &[],
            output: size,
            want: &want,
        };
        case.by_rows(&mut random, &p, |_, y| y..y + 1);
        case.by_elements(&mut random, &p);
    }
}

/// The definition of a linear resize in one direction, whose coordinates are fractions of 4: pairs of index and quarters.
fn between(line: Line, position: usize, size: usize) -> [(usize, i64); 2] {
    let at = line.start + position as i64 * line.step;
    let (below, part) = (at.div_euclid(line.over), at.rem_euclid(line.over));
    let inside = |i: i64| i.clamp(0, size as i64 - 1) as usize;
    [(inside(below), line.over - part), (inside(below + 1), part)]
}

#[test]
fn resizes_round_half_to_even() {
    let mut random = Random(86);
    for case in rounds(40) {
        let size = [random.within(1, 6), random.within(1, 6), *random.pick(&[1, 3, 16, 21])];
        let line = [Line { start: -1, step: 2, over: 4 }, Line { start: 0, step: 1, over: 2 }][case % 2];
        let out = [2 * size[0], 2 * size[1], size[2]];
        let input = Image::random(&mut random, size);
        let mode =
            if case % 3 == 0 { ResizeMode::Nearest(Rounding::RoundPreferFloor) } else { ResizeMode::Linear };
        let p = Resize { mode, rows: line, columns: line };
        let want = Image::of(out, |y, x, c| {
            let (rows, columns) = (between(line, y, size[0]), between(line, x, size[1]));
            if mode != ResizeMode::Linear {
                let nearest = |pair: [(usize, i64); 2]| pair[usize::from(pair[1].1 > pair[0].1)].0;
                return input.at(nearest(rows), nearest(columns), c);
            }
            // In sixteenths or quarters, so that floats are exact too.
            let mut sum = 0;
            for (iy, wy) in rows {
                for (ix, wx) in columns {
                    sum += wy * wx * i64::from(input.at(iy, ix, c));
                }
            }
            element(
                sum as f64 / (line.over * line.over) as f64,
                Requantize { zero_point: 0, low: 0, high: 255 },
            )
        });
        let case = Case {
            what: &|| format!("{p:?} of {size:?}"),
            inputs: &[(&input.data, size)],
            constants: &[],
            output: out,
            want: &want.data,
        };
        case.by_rows(&mut random, &p, |_, y| {
            let [(a, _), (b, _)] = between(line, y, size[0]);
            a..b + 1
        });
        case.by_elements(&mut random, &p);
    }
}

/// A kernel moves bytes as it moves floats of the same values.
fn moves<K: RowKernel<u8, u8> + RowKernel + Sync>(
    kernel: &K,
    inputs: &[(Vec<u8>, [usize; 3])],
    out: [usize; 3],
) {
    use csdfc_kernels::rows::{RowShape, Rows, RowsMut};
    let shape = |[h, w, c]: [usize; 3]| RowShape::dense(h, w, c, h);
    let wide: Vec<Vec<f32>> = inputs.iter().map(|(x, _)| x.iter().map(|&b| b.into()).collect()).collect();
    let floats: Vec<_> = wide
        .iter()
        .zip(inputs)
        .map(|(x, (_, size))| Rows { data: x[..].into(), shape: shape(*size) })
        .collect();
    let mut want = vec![0.0; out.iter().product()];
    let output = &mut RowsMut { data: (&mut want[..]).into(), shape: shape(out) };
    kernel.rows(&mut Context::alone(Isa::compiled()), 0..out[0], &floats, &[], output);
    let x: Vec<_> = inputs.iter().map(|(x, size)| Rows { data: x[..].into(), shape: shape(*size) }).collect();
    let mut made = vec![1_u8; want.len()];
    let output = &mut RowsMut { data: (&mut made[..]).into(), shape: shape(out) };
    kernel.rows(&mut Context::alone(Isa::compiled()), 0..out[0], &x, &[], output);
    assert!(made.iter().map(|&b| f32::from(b)).eq(want), "{out:?}");
}

/// The same element by element.
fn moves_elements<K: ElementKernel<u8, u8> + ElementKernel>(
    kernel: &K,
    inputs: &[(Vec<u8>, [usize; 4])],
    out: &[usize],
) {
    let wide: Vec<Vec<f32>> = inputs.iter().map(|(x, _)| x.iter().map(|&b| b.into()).collect()).collect();
    let floats: Vec<_> = wide.iter().zip(inputs).map(|(x, (_, dims))| Elements::dense(x, dims)).collect();
    let mut want = vec![0.0; Dims::new(out).elements()];
    let context = &mut Context::alone(Isa::compiled());
    kernel.elements(context, 0..1, &floats, &[], &mut ElementsMut::dense(&mut want, out));
    let x: Vec<_> = inputs.iter().map(|(x, dims)| Elements::dense(x, dims)).collect();
    let mut made = vec![1_u8; want.len()];
    kernel.elements(context, 0..1, &x, &[], &mut ElementsMut::dense(&mut made, out));
    assert!(made.iter().map(|&b| f32::from(b)).eq(want), "{out:?}");
}

#[test]
fn what_moves_elements_moves_bytes() {
    let mut random = Random(87);
    for case in 0..20 {
        let [h, w, c] = [2 * random.within(1, 3), 2 * random.within(1, 3), 4 * random.within(1, 5)];
        let data = bytes(&mut random, h * w * c);
        let x = (data.clone(), [h, w, c]);
        moves(&Swap, from_ref(&x), [h, c, w]);
        moves(&Scatter, &[(data.clone(), [h, c, w])], [1, c, h * w]);
        moves(&Gather, &[(data.clone(), [1, c, h * w])], [h, c, w]);
        let block = DepthToSpace { block: 2, depth_first: case % 2 == 0 };
        moves(&block, from_ref(&x), [2 * h, 2 * w, c / 4]);
        moves(&SpaceToDepth { block: 2 }, from_ref(&x), [h / 2, w / 2, 4 * c]);
        moves(&Concat { axis: ImageAxis::Channels }, &[x.clone(), x.clone()], [h, w, 2 * c]);
        moves(&Slice { starts: [1, 0, 1], steps: [1, 2, 1] }, from_ref(&x), [h - 1, w / 2, c - 1]);
        // The constant is a byte, as it is.
        let mode = [PadMode::Constant(131.0), PadMode::Edge, PadMode::Reflect][case % 3];
        moves(&Pad { mode, before: [1, 0, 0], after: [0, 1, 0] }, from_ref(&x), [h + 1, w + 1, c]);

        let x = (data, [1, c, h, w]);
        moves_elements(&block, from_ref(&x), &[1, c / 4, 2 * h, 2 * w]);
        moves_elements(&SpaceToDepth { block: 2 }, from_ref(&x), &[1, 4 * c, h / 2, w / 2]);
        moves_elements(&ConcatElements { axis: 2 }, &[x.clone(), x.clone()], &[1, c, 2 * h, w]);
        let slice = SliceElements { starts: [0, 1, 0, 0, 0, 0], steps: [1; MAX_RANK] };
        moves_elements(&slice, from_ref(&x), &[1, c - 1, h, w]);
        let pad = PadElements { mode, before: [0, 0, 1, 0, 0, 0], after: [0; MAX_RANK] };
        moves_elements(&pad, from_ref(&x), &[1, c, h + 1, w]);
        moves_elements(&Transpose { perm: [0, 2, 3, 1, 0, 0] }, &[x], &[1, h, w, c]);
    }
}
