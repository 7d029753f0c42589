//! Reductions, softmax, and the largest elements.

use csdfc_kernels::arch::Isa;
use csdfc_kernels::arg_max::{ArgMax, ArgMaxElements};
use csdfc_kernels::concat::ImageAxis;
use csdfc_kernels::elements::{Axes, Dims, Elements, ElementsMut};
use csdfc_kernels::kernel::{Context, ElementKernel, RowKernel};
use csdfc_kernels::reduce::{ReduceElements, ReduceFrame, ReduceFunction, ReduceRows};
use csdfc_kernels::rows::{RowShape, Rows, RowsMut};
use csdfc_kernels::softmax::{Softmax, SoftmaxElements};
use csdfc_kernels::span::{Span, SpanMut};
use csdfc_kernels::top_k::TopK;

use crate::cases::{Case, Image, Tensor, alone, check_dense};
use crate::testing::{Random, rounds};

const FUNCTIONS: [ReduceFunction; 13] = [
    ReduceFunction::Mean,
    ReduceFunction::Max,
    ReduceFunction::Min,
    ReduceFunction::Sum,
    ReduceFunction::Prod,
    ReduceFunction::L1,
    ReduceFunction::L2,
    ReduceFunction::SumSquare,
    ReduceFunction::LogSum,
    ReduceFunction::LogSumExp,
    ReduceFunction::Lp { p: 1 },
    ReduceFunction::Lp { p: 2 },
    ReduceFunction::Lp { p: 3 },
];

fn reduced(function: ReduceFunction, values: &[f64]) -> f64 {
    let sum = |f: &dyn Fn(f64) -> f64| values.iter().map(|x| f(*x)).sum::<f64>();
    match function {
        ReduceFunction::Mean => sum(&|x| x) / values.len() as f64,
        ReduceFunction::Max => values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        ReduceFunction::Min => values.iter().copied().fold(f64::INFINITY, f64::min),
        ReduceFunction::Sum => sum(&|x| x),
        ReduceFunction::Prod => values.iter().product(),
        ReduceFunction::L1 => sum(&f64::abs),
        ReduceFunction::L2 => sum(&|x| x * x).sqrt(),
        ReduceFunction::SumSquare => sum(&|x| x * x),
        ReduceFunction::LogSum => sum(&|x| x).ln(),
        ReduceFunction::LogSumExp => sum(&f64::exp).ln(),
        ReduceFunction::Lp { p } => sum(&|x| x.abs().powf(p as f64)).powf(1.0 / p as f64),
    }
}

/// The elements of an image that have the given row, column and channel; `None` stands for all.
fn elements(image: &Image, at: [Option<usize>; 3]) -> Vec<f64> {
    let range = |i: usize| at[i].map_or(0..image.size[i], |at| at..at + 1);
    let mut values = Vec::new();
    for y in range(0) {
        for x in range(1) {
            values.extend(range(2).map(|c| image.at(y, x, c)));
        }
    }
    values
}

fn image_for(function: ReduceFunction, random: &mut Random, size: [usize; 3]) -> Image {
    let mut image = Image::random(random, size);
    if function == ReduceFunction::LogSum {
        image.data.iter_mut().for_each(|x| *x = x.abs() + 0.1);
    }
    image
}

#[test]
fn images_reduce_within_rows_and_whole() {
    let mut random = Random(21);
    for round in rounds(130) {
        let function = FUNCTIONS[round % 13];
        let size = [random.within(1, 5), *random.pick(&[1, 3, 7, 40]), *random.pick(&[1, 2, 15, 16, 17, 40])];
        let input = image_for(function, &mut random, size);
        for (columns, channels) in [(true, false), (false, true), (true, true)] {
            let case = Case {
                what: &format!("{function:?} of {size:?} over {columns} {channels}"),
                inputs: &[&input],
                output: [size[0], if columns { 1 } else { size[1] }, if channels { 1 } else { size[2] }],
                need: |_, y| y..y + 1,
                want: |y, x, c| {
                    let at = [Some(y), (!columns).then_some(x), (!channels).then_some(c)];
                    reduced(function, &elements(&input, at))
                },
            };
            case.by_rows(&mut random, |y, inputs, output| {
                ReduceRows { function, columns, channels }.rows(&mut alone(), y, inputs, &[], output);
            });
            let axes: &[usize] = match (columns, channels) {
                (true, true) => &[1, 3],
                (true, false) => &[3],
                _ => &[1],
            };
            case.by_elements(&mut random, |y, inputs, output| {
                let p = ReduceElements { function, axes: Axes::new(axes), keep_dims: true };
                p.elements(&mut alone(), y, inputs, &[], output);
            });
        }
        let case = Case {
            what: &format!("global {function:?} of {size:?}"),
            inputs: &[&input],
            output: [1, 1, size[2]],
            need: |_, _| 0..size[0],
            want: |_, _, c| reduced(function, &elements(&input, [None, None, Some(c)])),
        };
        let frame = ReduceFrame { function };
        for isa in Isa::all() {
            case.by_rows(&mut random, |y, inputs, output| {
                frame.rows(&mut Context::alone(isa), y, inputs, &[], output)
            });
        }
        case.by_elements(&mut random, |y, inputs, output| {
            let p = ReduceElements { function, axes: Axes::new(&[2, 3]), keep_dims: true };
            p.elements(&mut alone(), y, inputs, &[], output);
        });
    }
}

/// Some dimensions of a tensor, ascending, at least one.
fn some_axes(random: &mut Random, rank: usize) -> Vec<usize> {
    let axes: Vec<usize> = (0..rank).filter(|_| random.within(0, 1) == 1).collect();
    if axes.is_empty() { vec![rank - 1] } else { axes }
}

/// The elements of a tensor that agree with `at` but along `axes`.
fn along(x: &Tensor, at: &[usize; 6], axes: &[usize]) -> Vec<f64> {
    let mut values = Vec::new();
    Dims::new(&x.dims).for_each(|index| {
        if (0..x.dims.len()).all(|i| axes.contains(&i) || index[i] == at[i]) {
            values.push(x.at(index));
        }
    });
    values
}

#[test]
fn tensors_of_any_rank_reduce() {
    let mut random = Random(22);
    for round in rounds(130) {
        let function = FUNCTIONS[round % 13];
        let rank = random.within(1, 5);
        let mut x = Tensor::random(&mut random, rank);
        if function == ReduceFunction::LogSum {
            x.values.iter_mut().for_each(|x| *x = x.abs() + 0.1);
        }
        let axes = some_axes(&mut random, rank);
        let log = round % 2 == 0;
        let mut order = Random(random.next());
        x.with(&mut order, |input| {
            let kept: Vec<usize> = (0..rank).map(|i| if axes.contains(&i) { 1 } else { x.dims[i] }).collect();
            let p = ReduceElements { function, axes: Axes::new(&axes), keep_dims: true };
            let run = |output: &mut ElementsMut<'_>| p.elements(&mut alone(), 0..1, &[*input], &[], output);
            check_dense("reduce", &kept, run, |index| reduced(function, &along(&x, index, &axes)));
            let others: Vec<usize> = (0..rank).filter(|i| !axes.contains(i)).collect();
            let dropped: Vec<usize> = others.iter().map(|i| x.dims[*i]).collect();
            let p = ReduceElements { keep_dims: false, ..p };
            let run = |output: &mut ElementsMut<'_>| p.elements(&mut alone(), 0..1, &[*input], &[], output);
            check_dense("reduce", &dropped, run, |index| {
                let mut at = [0; 6];
                others.iter().zip(index).for_each(|(axis, i)| at[*axis] = *i);
                reduced(function, &along(&x, &at, &axes))
            });
            let p = SoftmaxElements { log, axes: Axes::new(&axes) };
            let run = |output: &mut ElementsMut<'_>| p.elements(&mut alone(), 0..1, &[*input], &[], output);
            check_dense("softmax", &x.dims, run, |index| {
                normalised(log, x.at(index), &along(&x, index, &axes))
            });
        });
    }
}

fn normalised(log: bool, x: f64, group: &[f64]) -> f64 {
    let sum: f64 = group.iter().map(|x| x.exp()).sum();
    if log { x - sum.ln() } else { x.exp() / sum }
}

#[test]
fn softmax_within_rows() {
    let mut random = Random(23);
    for round in rounds(60) {
        let size = match round % 7 {
            6 => [1, 3, 140],
            _ => [random.within(1, 5), *random.pick(&[1, 3, 8, 40]), *random.pick(&[1, 5, 33])],
        };
        let mut input = Image::random(&mut random, size);
        // Far beyond where exp of a float is finite.
        input.data.iter_mut().for_each(|x| *x = if round % 3 == 0 { *x * 8.0 + 300.0 } else { *x });
        let log = round % 2 == 0;
        for (columns, channels) in [(true, false), (false, true), (true, true)] {
            let p = Softmax { log, columns, channels };
            let case = Case {
                what: &format!("{p:?} of {size:?}"),
                inputs: &[&input],
                output: size,
                need: |_, y| y..y + 1,
                want: |y, x, c| {
                    let at = [Some(y), (!columns).then_some(x), (!channels).then_some(c)];
                    normalised(log, input.at(y, x, c), &elements(&input, at))
                },
            };
            case.by_rows(&mut random, |y, inputs, output| {
                p.rows(&mut alone(), y, inputs, &[], output);
            });
        }
        let case = Case {
            what: "softmax over rows",
            inputs: &[&input],
            output: size,
            need: |_, _| 0..size[0],
            want: |y, x, c| normalised(log, input.at(y, x, c), &elements(&input, [None, Some(x), Some(c)])),
        };
        case.by_elements(&mut random, |y, inputs, output| {
            let p = SoftmaxElements { log, axes: Axes::new(&[2]) };
            p.elements(&mut alone(), y, inputs, &[], output);
        });
    }
}

#[test]
fn a_long_sum_stays_exact() {
    let mut random = Random(24);
    let input = Image::random(&mut random, [200, 301, 3]);
    let case = Case {
        what: "global mean",
        inputs: &[&input],
        output: [1, 1, 3],
        need: |_, _| 0..200,
        want: |_, _, c| 3000.0 * reduced(ReduceFunction::Mean, &elements(&input, [None, None, Some(c)])),
    };
    case.by_rows(&mut random, |y, inputs, output| {
        let mean = ReduceFrame { function: ReduceFunction::Mean };
        mean.rows(&mut Context::alone(Isa::detect()), y, inputs, &[], output);
        output.row(0).iter_mut().for_each(|x| *x *= 3000.0);
    });
}

#[test]
fn the_largest_is_found() {
    let mut random = Random(25);
    for round in rounds(80) {
        let size = [random.within(1, 4), random.within(1, 4), random.within(1, 6)];
        let mut input = Image::random(&mut random, size);
        // Few values, so that there are equal ones.
        input.data.iter_mut().for_each(|x| *x = (*x * 2.0).round());
        let last = round % 2 == 0;
        let position = |values: &[f64]| {
            let largest = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let mut places = (0..values.len()).filter(|i| values[*i] == largest);
            (if last { places.next_back() } else { places.next() }).unwrap() as i64
        };
        let [h, w, c] = size;
        let rows = Rows { data: Span::new(&input.data), shape: RowShape::dense(h, w, c, h) };
        for (axis, dim) in [(ImageAxis::Channels, 1), (ImageAxis::Columns, 3)] {
            let (width, channels) = if dim == 1 { (w, 1) } else { (1, c) };
            let mut by_rows = vec![-1; h * width * channels];
            let mut by_elements = by_rows.clone();
            for y in 0..h {
                let shape = RowShape::dense(h, width, channels, h);
                let output = &mut RowsMut { data: SpanMut::new(&mut by_rows), shape };
                ArgMax { axis, select_last: last }.rows(&mut alone(), y..y + 1, &[rows], &[], output);
                let mut output =
                    ElementsMut::channels_first(RowsMut { data: SpanMut::new(&mut by_elements), shape });
                let p = ArgMaxElements { axis: dim, keep_dims: true, select_last: last };
                p.elements(&mut alone(), y..y + 1, &[Elements::channels_first(rows)], &[], &mut output);
            }
            for (i, got) in by_rows.iter().enumerate() {
                let (y, x, channel) = (i / width / channels, i / channels % width, i % channels);
                let at = if dim == 1 { [Some(y), Some(x), None] } else { [Some(y), None, Some(channel)] };
                assert_eq!(*got, position(&elements(&input, at)), "{axis:?}");
            }
            assert_eq!(by_rows, by_elements);
        }
        let rank = random.within(1, 5);
        let x = Tensor::random(&mut random, rank);
        let axis = random.within(0, rank - 1);
        let mut order = Random(random.next());
        x.with(&mut order, |input| {
            let dims: Vec<usize> = (0..rank).filter(|i| *i != axis).map(|i| x.dims[i]).collect();
            let mut data = vec![-1; Dims::new(&dims).elements()];
            let p = ArgMaxElements { axis, keep_dims: false, select_last: last };
            let output = &mut ElementsMut::dense(&mut data, &dims);
            p.elements(&mut alone(), 0..1, &[*input], &[], output);
            for (i, got) in data.iter().enumerate() {
                let mut at: Vec<usize> = Dims::new(&dims).index(i)[..rank - 1].to_vec();
                at.insert(axis, 0);
                at.resize(6, 0);
                let at: [usize; 6] = at.try_into().unwrap();
                assert_eq!(*got, position(&along(&x, &at, &[axis])));
            }
        });
    }
}

/// Along every dimension of tensors of every rank, with equal elements and zeros of both signs.
#[test]
fn the_largest_and_the_least_are_those_of_a_sort() {
    let mut random = Random(13);
    for round in rounds(100) {
        let rank = random.within(1, 5);
        let mut x = Tensor::random(&mut random, rank);
        for value in &mut x.values {
            *value = *random.pick(&[-1.0, -0.0, 0.0, 0.5, *value, f32::INFINITY]);
        }
        let axis = random.within(0, rank - 1);
        let p = TopK { axis, largest: round % 2 == 0, indices: false };
        let mut dims = x.dims.to_vec();
        dims[axis] = random.within(1, dims[axis]);
        let mut order = Random(random.next());
        x.with(&mut order, |input| {
            let count = Dims::new(&dims).elements();
            let (mut values, mut indices, mut floats) =
                (vec![0.0; count], vec![-1; count], vec![-1.0; count]);
            let output = &mut ElementsMut::dense(&mut values, &dims);
            ElementKernel::<f32>::elements(&p, &mut alone(), 0..1, &[*input], &[], output);
            let output = &mut ElementsMut::dense(&mut indices, &dims);
            ElementKernel::<i64>::elements(&p, &mut alone(), 0..1, &[*input], &[], output);
            let output = &mut ElementsMut::dense(&mut floats, &dims);
            let of_floats = TopK { indices: true, ..p };
            ElementKernel::<f32>::elements(&of_floats, &mut alone(), 0..1, &[*input], &[], output);
            assert!(floats.iter().zip(&indices).all(|(float, index)| *float == *index as f32));
            for (i, (value, index)) in values.iter().zip(&indices).enumerate() {
                let mut at = Dims::new(&dims).index(i);
                let place = std::mem::replace(&mut at[axis], 0);
                let line = along(&x, &at, &[axis]);
                let mut sorted: Vec<usize> = (0..line.len()).collect();
                // Of equal elements the first comes first.
                sorted.sort_by(|a, b| {
                    let order = line[*a].partial_cmp(&line[*b]).unwrap();
                    if p.largest { order.reverse() } else { order }
                });
                assert_eq!(*index, sorted[place] as i64, "{p:?} of {:?}", x.dims);
                assert_eq!(f64::from(*value), line[sorted[place]]);
            }
        });
    }
}

/// NaN counts as larger than any number, so that the order is total.
#[test]
fn a_line_with_what_is_no_number_has_an_order() {
    let mut made = [-1; 3];
    let output = &mut ElementsMut::dense(&mut made, &[3]);
    let input = Elements::dense(&[3.0, f32::NAN, f32::NAN], &[3]);
    ElementKernel::<i64>::elements(
        &TopK { axis: 0, largest: true, indices: false },
        &mut alone(),
        0..1,
        &[input],
        &[],
        output,
    );
    assert_eq!(made, [1, 2, 0]);
}
