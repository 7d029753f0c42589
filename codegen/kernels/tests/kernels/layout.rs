//! Kernels that move elements: concat, pad, slice, transpose.

use csdfc_kernels::arch::Isa;
use csdfc_kernels::concat::{ConcatElements, ImageAxis, copy_elements, copy_image};
use csdfc_kernels::convert::Cast;
use csdfc_kernels::elements::{Dims, ElementsMut, MAX_RANK};
use csdfc_kernels::half::F16;
use csdfc_kernels::kernel::{Context, ElementKernel, RowKernel};
use csdfc_kernels::pad::{Pad, PadElements, PadMode};
use csdfc_kernels::rows::{RowShape, Rows, RowsMut};
use csdfc_kernels::slice::{Slice, SliceElements};
use csdfc_kernels::span::{Span, SpanMut};
use csdfc_kernels::transpose::Transpose;

use crate::cases::{Case, Image, Tensor, alone, check_dense};
use crate::testing::{Random, rounds};

#[test]
fn parts_follow_each_other() {
    let mut random = Random(11);
    for round in rounds(90) {
        let (axis, dim) =
            [(ImageAxis::Rows, 0), (ImageAxis::Columns, 1), (ImageAxis::Channels, 2)][round % 3];
        let size = [0; 3].map(|_| random.within(1, 5));
        let images: Vec<Image> = (0..random.within(1, 4))
            .map(|_| {
                let mut size = size;
                size[dim] = random.within(1, 5);
                Image::random(&mut random, size)
            })
            .collect();
        let mut starts = vec![0];
        for image in &images {
            starts.push(starts[starts.len() - 1] + image.size[dim]);
        }
        let mut output = size;
        output[dim] = starts[images.len()];
        let case = Case {
            what: &format!("concat along {axis:?}"),
            inputs: &images.iter().collect::<Vec<_>>(),
            output,
            need: |i: usize, y: usize| {
                if dim != 0 {
                    return y..y + 1;
                }
                if (starts[i]..starts[i + 1]).contains(&y) { y - starts[i]..y - starts[i] + 1 } else { 0..0 }
            },
            want: |y, x, c| {
                let mut at = [y, x, c];
                let i = starts.iter().rposition(|start| *start <= at[dim]).unwrap();
                at[dim] -= starts[i];
                images[i].at(at[0], at[1], at[2])
            },
        };
        case.by_rows(&mut random, |y, inputs, output| {
            // Backwards, so that nothing hides what is written beyond a part.
            for (input, start) in inputs.iter().zip(&starts).rev() {
                copy_image(axis, *start, y.clone(), *input, output);
            }
        });
        case.by_elements(&mut random, |y, inputs, output| {
            for (input, start) in inputs.iter().zip(&starts) {
                copy_elements([2, 3, 1][dim], *start, y.clone(), input, output);
            }
        });
    }
}

#[test]
fn parts_of_any_rank_follow_each_other() {
    let mut random = Random(12);
    for _ in rounds(60) {
        let rank = random.within(1, 6);
        let part = Tensor::random(&mut random, rank);
        let axis = random.within(0, rank - 1);
        let mut dims = part.dims.clone();
        dims[axis] *= 2;
        let half = part.dims[axis];
        let mut order = Random(random.next());
        part.with(&mut order, |x| {
            let run = |output: &mut ElementsMut<'_>| {
                ConcatElements { axis }.elements(&mut alone(), 0..1, &[*x, *x], &[], output);
            };
            check_dense("concat", &dims, run, |index| {
                let mut at = *index;
                at[axis] %= half;
                part.at(&at)
            });
        });
    }
}

/// A start, a step and a length that stay within `size`.
fn sub_grid(random: &mut Random, size: usize) -> (usize, i64, usize) {
    let step = random.within(1, 3);
    let length = random.within(1, size.div_ceil(step));
    let first = random.within(0, size - 1 - (length - 1) * step);
    if random.within(0, 1) == 1 {
        (first, step as i64, length)
    } else {
        (first + (length - 1) * step, -(step as i64), length)
    }
}

fn stepped((start, step, _): (usize, i64, usize), i: usize) -> usize {
    (start as i64 + i as i64 * step) as usize
}

#[test]
fn slices_step_in_every_direction() {
    let mut random = Random(13);
    for _ in rounds(80) {
        let size = [0; 3].map(|_| random.within(1, 9));
        let grid = size.map(|d| sub_grid(&mut random, d));
        let input = Image::random(&mut random, size);
        let p = Slice { starts: grid.map(|g| g.0), steps: grid.map(|g| g.1) };
        let case = Case {
            what: &format!("{p:?}"),
            inputs: &[&input],
            output: grid.map(|g| g.2),
            need: |_, y| stepped(grid[0], y)..stepped(grid[0], y) + 1,
            want: |y, x, c| input.at(stepped(grid[0], y), stepped(grid[1], x), stepped(grid[2], c)),
        };
        case.by_rows(&mut random, |y, inputs, output| p.rows(&mut alone(), y, inputs, &[], output));
        let [rows, columns, channels] = grid;
        let (starts, steps) =
            ([0, channels.0, rows.0, columns.0, 0, 0], [1, channels.1, rows.1, columns.1, 1, 1]);
        case.by_elements(&mut random, |y, inputs, output| {
            SliceElements { starts, steps }.elements(&mut alone(), y, inputs, &[], output)
        });
    }
}

/// Pads of one dimension, such that something is left and a reflection has what it shows.
fn pads(random: &mut Random, size: usize) -> (i64, i64) {
    let (mut before, mut after) = (random.within(0, 4) as i64 - 2, random.within(0, 4) as i64 - 2);
    let kept = size as i64 + before.min(0) + after.min(0);
    if kept < 1 || before.max(after) >= kept {
        (before, after) = (0, 0);
    }
    (before, after)
}

/// One step at a time: crop, then show.
fn padded(mode: PadMode, (before, after): (i64, i64), size: usize, i: usize) -> Option<usize> {
    let kept: Vec<usize> = (0..size).skip((-before).max(0) as usize).collect();
    let kept = &kept[..kept.len() - (-after).max(0) as usize];
    let at = i as i64 - before.max(0);
    let last = kept.len() as i64 - 1;
    let at = match mode {
        _ if (0..=last).contains(&at) => at,
        PadMode::Constant(_) => return None,
        PadMode::Edge => at.max(0).min(last),
        PadMode::Reflect if at < 0 => -at,
        PadMode::Reflect => last - (at - last),
    };
    Some(kept[at as usize])
}

const MODES: [PadMode; 4] =
    [PadMode::Constant(0.5), PadMode::Constant(f32::NEG_INFINITY), PadMode::Reflect, PadMode::Edge];

fn value_of(mode: PadMode) -> f64 {
    if let PadMode::Constant(value) = mode { f64::from(value) } else { f64::NAN }
}

#[test]
fn padding_in_every_mode() {
    let mut random = Random(14);
    for round in rounds(120) {
        let size = [0; 3].map(|_| random.within(1, 6));
        let mut of = size.map(|d| pads(&mut random, d));
        if round % 3 == 0 {
            of[2] = (0, 0);
        }
        let mode = MODES[round % 4];
        let input = Image::random(&mut random, size);
        let p = Pad { mode, before: of.map(|p| p.0), after: of.map(|p| p.1) };
        let output = [0, 1, 2].map(|i| (size[i] as i64 + of[i].0 + of[i].1) as usize);
        let case = Case {
            what: &format!("{p:?} of {size:?}"),
            inputs: &[&input],
            output,
            need: |_, y| padded(mode, of[0], size[0], y).map_or(0..0, |y| y..y + 1),
            want: |y, x, c| {
                let from = |i: usize, at| padded(mode, of[i], size[i], at);
                match (from(0, y), from(1, x), from(2, c)) {
                    (Some(y), Some(x), Some(c)) => input.at(y, x, c),
                    _ => value_of(mode),
                }
            },
        };
        case.by_rows(&mut random, |y, inputs, output| p.rows(&mut alone(), y, inputs, &[], output));
        let order = |of: [i64; 3]| [0, of[2], of[0], of[1], 0, 0];
        let any = PadElements { mode, before: order(p.before), after: order(p.after) };
        case.by_elements(&mut random, |y, inputs, output| {
            any.elements(&mut alone(), y, inputs, &[], output);
        });
    }
}

/// A value for each dimension, this one beyond the rank.
fn filled<T: Copy>(values: &[T], beyond: T) -> [T; MAX_RANK] {
    core::array::from_fn(|i| values.get(i).copied().unwrap_or(beyond))
}

#[test]
fn tensors_of_any_rank_move() {
    let mut random = Random(15);
    for round in rounds(120) {
        let rank = random.within(1, 6);
        let x = Tensor::random(&mut random, rank);
        let mut order = Random(random.next());
        let mut perm: Vec<usize> = (0..rank).collect();
        for i in (1..rank).rev() {
            perm.swap(i, random.within(0, i));
        }
        let grid: Vec<_> = x.dims.iter().map(|&d| sub_grid(&mut random, d)).collect();
        let of: Vec<_> = x.dims.iter().map(|&d| pads(&mut random, d)).collect();
        x.with(&mut order, |input| {
            let moved: Vec<usize> = perm.iter().map(|axis| x.dims[*axis]).collect();
            let transpose = Transpose { perm: filled(&perm, 0) };
            let run =
                |output: &mut ElementsMut<'_>| transpose.elements(&mut alone(), 0..1, &[*input], &[], output);
            check_dense("transpose", &moved, run, |index| {
                let mut at = [0; 6];
                (0..rank).for_each(|i| at[perm[i]] = index[i]);
                x.at(&at)
            });
            let lengths: Vec<usize> = grid.iter().map(|g| g.2).collect();
            let starts: Vec<usize> = grid.iter().map(|g| g.0).collect();
            let steps: Vec<i64> = grid.iter().map(|g| g.1).collect();
            let slice = SliceElements { starts: filled(&starts, 0), steps: filled(&steps, 1) };
            let run =
                |output: &mut ElementsMut<'_>| slice.elements(&mut alone(), 0..1, &[*input], &[], output);
            check_dense("slice", &lengths, run, |index| {
                let mut at = [0; 6];
                (0..rank).for_each(|i| at[i] = stepped(grid[i], index[i]));
                x.at(&at)
            });
            let mode = MODES[round % 4];
            let before: Vec<i64> = of.iter().map(|p| p.0).collect();
            let after: Vec<i64> = of.iter().map(|p| p.1).collect();
            let pad = PadElements { mode, before: filled(&before, 0), after: filled(&after, 0) };
            let padded_dims: Vec<usize> =
                (0..rank).map(|i| (x.dims[i] as i64 + before[i] + after[i]) as usize).collect();
            let run = |output: &mut ElementsMut<'_>| pad.elements(&mut alone(), 0..1, &[*input], &[], output);
            check_dense("pad", &padded_dims, run, |index| {
                let mut at = [0; 6];
                for i in 0..rank {
                    match padded(mode, of[i], x.dims[i], index[i]) {
                        Some(from) => at[i] = from,
                        None => return value_of(mode),
                    }
                }
                x.at(&at)
            });
            assert_eq!(Dims::new(&x.dims).elements(), x.values.len());
        });
    }
}

/// An image whose rows become columns, its output by rows.
#[test]
fn a_transpose_is_made_by_rows() {
    let mut random = Random(16);
    let size = [4, 5, 3];
    let input = Image::random(&mut random, size);
    let case = Case {
        what: "transpose of height and width",
        inputs: &[&input],
        output: [5, 4, 3],
        need: |_, _| 0..4,
        want: |y, x, c| input.at(x, y, c),
    };
    case.by_elements(&mut random, |y, inputs, output| {
        Transpose { perm: [0, 1, 3, 2, 0, 0] }.elements(&mut alone(), y, inputs, &[], output);
    });
}

/// From floats to halves and back, whatever the number of rows at a time and the instruction set.
#[test]
fn elements_are_cast_row_by_row() {
    let mut random = Random(15);
    for _ in 0..30 {
        let size = [random.within(1, 5), random.within(1, 9), random.within(1, 9)];
        let input = Image::random(&mut random, size);
        let halves: Vec<F16> = input.data.iter().map(|x| F16::from_f32(*x)).collect();
        let [height, width, channels] = size;
        let shape = RowShape::dense(height, width, channels, height);
        for (isa, rows) in Isa::all().flat_map(|isa| [(isa, 1), (isa, 2), (isa, height)]) {
            let mut narrowed = vec![F16::default(); halves.len()];
            let mut widened = vec![f32::NAN; halves.len()];
            for y in (0..height).step_by(rows).map(|y| y..height.min(y + rows)) {
                let context = &mut Context::alone(isa);
                let x = Rows { data: Span::new(&input.data), shape };
                let mut output = RowsMut { data: SpanMut::new(&mut narrowed), shape };
                Cast.rows(context, y.clone(), &[x], &[], &mut output);
                let x = Rows { data: Span::new(&halves), shape };
                let mut output = RowsMut { data: SpanMut::new(&mut widened), shape };
                Cast.rows(context, y, &[x], &[], &mut output);
            }
            assert_eq!(narrowed, halves, "{} {rows}", isa.name());
            assert!(
                widened.iter().zip(&halves).all(|(x, half)| *x == half.to_f32()),
                "{} {rows}",
                isa.name()
            );
        }
    }
}
