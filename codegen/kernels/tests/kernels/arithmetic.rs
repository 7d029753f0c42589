//! Element-wise functions, norms and binary operators.

use csdfc_kernels::activation::Activation;
use csdfc_kernels::arch::Isa;
use csdfc_kernels::binary::{Binary, BinaryFunction};
use csdfc_kernels::element_wise::{BatchNorm, ElementWise, PRelu, PReluInPlace};
use csdfc_kernels::elements::{Elements, ElementsMut};
use csdfc_kernels::instance_norm::InstanceNorm;
use csdfc_kernels::kernel::{Context, ElementKernel, RowKernel};
use csdfc_kernels::rows::Rows;

use crate::cases::{Case, Image, Tensor, alone, check_dense};
use crate::testing::{Random, rounds};

fn binary_of(function: BinaryFunction, a: f64, b: f64) -> f64 {
    match function {
        BinaryFunction::Add => a + b,
        BinaryFunction::Sub => a - b,
        BinaryFunction::Mul => a * b,
        BinaryFunction::Div => a / b,
        BinaryFunction::Max => a.max(b),
        BinaryFunction::Min => a.min(b),
        BinaryFunction::Pow => a.powf(b),
        BinaryFunction::Mod => a - b * (a / b).floor(),
        BinaryFunction::Fmod => a - b * (a / b).trunc(),
        BinaryFunction::Equal => f64::from(a == b),
        BinaryFunction::Greater => f64::from(a > b),
        BinaryFunction::GreaterOrEqual => f64::from(a >= b),
    }
}

const FUNCTIONS: [BinaryFunction; 12] = [
    BinaryFunction::Add,
    BinaryFunction::Sub,
    BinaryFunction::Mul,
    BinaryFunction::Div,
    BinaryFunction::Max,
    BinaryFunction::Min,
    BinaryFunction::Pow,
    BinaryFunction::Mod,
    BinaryFunction::Fmod,
    BinaryFunction::Equal,
    BinaryFunction::Greater,
    BinaryFunction::GreaterOrEqual,
];

/// Away from 0 for divisors, positive for bases, often equal for comparisons. What a division leaves over jumps where it is
/// exact, and of multiples of 1/4 it is exact.
fn tame(function: BinaryFunction, image: &mut [f32]) {
    if matches!(function, BinaryFunction::Equal | BinaryFunction::Greater | BinaryFunction::GreaterOrEqual) {
        image.iter_mut().for_each(|x| *x = (2.0 * *x).round());
    }
    if matches!(function, BinaryFunction::Mod | BinaryFunction::Fmod) {
        image.iter_mut().for_each(|x| *x = (4.0 * *x).round() / 4.0);
        image.iter_mut().filter(|x| **x == 0.0).for_each(|x| *x = -1.5);
    }
    if matches!(function, BinaryFunction::Div | BinaryFunction::Pow) {
        image.iter_mut().for_each(|x| *x = x.abs() + 0.25);
    }
}

#[test]
fn operands_broadcast_by_rows() {
    let mut random = Random(4);
    for round in rounds(200) {
        let size = [random.within(1, 5), random.within(1, 5), *random.pick(&[1, 3, 16])];
        let mut operand = |whole: bool| {
            let size = size.map(|d| if whole || random.within(0, 1) == 1 { d } else { 1 });
            Image::random(&mut random, size)
        };
        // One operand whole, or both such that together they are.
        let (mut left, mut right) = (operand(round % 3 == 0), operand(round % 3 == 1));
        let out = [0, 1, 2].map(|i| left.size[i].max(right.size[i]));
        let function = FUNCTIONS[round % FUNCTIONS.len()];
        tame(function, &mut left.data);
        tame(function, &mut right.data);
        let activation = *random.pick(&[Activation::None, Activation::Relu]);
        let p = Binary { function, constant_first: false, activation };
        let inputs = [&left, &right];
        let case = Case {
            what: &format!("{p:?} of {:?} and {:?}", left.size, right.size),
            inputs: &inputs,
            output: out,
            need: |i: usize, y| if inputs[i].size[0] == 1 { 0..1 } else { y..y + 1 },
            want: |y, x, c| {
                let value = binary_of(function, left.broadcast([y, x, c]), right.broadcast([y, x, c]));
                if activation == Activation::Relu { value.max(0.0) } else { value }
            },
        };
        case.by_rows(&mut random, |y, inputs, output| {
            p.rows(&mut Context::alone(Isa::compiled()), y, inputs, &[], output);
        });
        case.by_elements(&mut random, |y, inputs, output| {
            p.elements(&mut alone(), y, inputs, &[], output);
        });
    }
}

#[test]
fn operands_of_any_rank_broadcast() {
    let mut random = Random(5);
    for round in rounds(200) {
        let rank = random.within(1, 5);
        let mut left = Tensor::random(&mut random, rank);
        let dims = left.dims.clone();
        let skip = random.within(0, dims.len());
        let right_dims: std::vec::Vec<usize> =
            dims[skip..].iter().map(|&d| if random.within(0, 1) == 1 { d } else { 1 }).collect();
        let mut right = random.floats(right_dims.iter().product());
        let function = FUNCTIONS[round % FUNCTIONS.len()];
        tame(function, &mut left.values);
        tame(function, &mut right);
        let p = Binary { function, constant_first: false, activation: Activation::None };
        let constant_first = Binary { constant_first: true, ..p };
        let what = format!("{p:?} of {dims:?} and {right_dims:?}");
        let constant = Elements::dense(&right, &right_dims);
        let of_right = |index: &[usize; 6]| {
            // Row-major place, dimension by dimension.
            let mut at = 0;
            for (i, &d) in right_dims.iter().enumerate() {
                at = at * d + if d == 1 { 0 } else { index[i + skip] };
            }
            f64::from(right[at])
        };
        let mut order = Random(round as u64);
        left.with(&mut order, |x| {
            let run =
                |output: &mut ElementsMut<'_>| p.elements(&mut alone(), 0..1, &[*x], &[constant], output);
            check_dense(&what, &dims, run, |i| binary_of(function, left.at(i), of_right(i)));
            let run = |output: &mut ElementsMut<'_>| {
                constant_first.elements(&mut alone(), 0..1, &[*x], &[constant], output)
            };
            check_dense(&what, &dims, run, |i| binary_of(function, of_right(i), left.at(i)));
            let p_relu_of = |x: f64, slope: f64| if x < 0.0 { x * slope } else { x };
            let run =
                |output: &mut ElementsMut<'_>| PRelu.elements(&mut alone(), 0..1, &[*x], &[constant], output);
            check_dense(&what, &dims, run, |i| p_relu_of(left.at(i), of_right(i)));
            let run = |output: &mut ElementsMut<'_>| {
                ElementWise { function: Activation::Neg }.elements(&mut alone(), 0..1, &[*x], &[], output);
                PReluInPlace.elements(&mut alone(), 0..1, &[], &[constant], output);
            };
            check_dense(&what, &dims, run, |i| p_relu_of(-left.at(i), of_right(i)));
        });
    }
}

#[test]
fn functions_of_each_element() {
    let mut random = Random(6);
    for round in rounds(60) {
        let size = [random.within(1, 5), random.within(1, 5), *random.pick(&[1, 3, 16])];
        let input = Image::random(&mut random, size);
        let [scale, shift] = [0, 1].map(|_| random.floats(size[2]));
        let slopes = Image::random(&mut random, size.map(|d| if round % 2 == 0 { 1 } else { d }));
        let need = |i: usize, y| if i == 1 && slopes.size[0] == 1 { 0..1 } else { y..y + 1 };
        let relu = |x: f64, slope: f64| if x < 0.0 { x * slope } else { x };
        let of_each = Case {
            what: "abs",
            inputs: &[&input],
            output: size,
            need,
            want: |y, x, c| input.at(y, x, c).abs(),
        };
        let isa = Isa::compiled();
        let [abs, copy] = [Activation::Abs, Activation::None].map(|function| ElementWise { function });
        let batch_norm = BatchNorm { activation: Activation::Relu };
        let by_channel = [&scale, &shift].map(|c| Rows::line(c));
        let by_element = [&scale, &shift].map(|c| Elements::dense(c, &[c.len()]));
        of_each.by_rows(&mut random, |y, x, output| abs.rows(&mut Context::alone(isa), y, x, &[], output));
        of_each.by_elements(&mut random, |y, x, output| {
            abs.elements(&mut alone(), y, x, &[], output);
        });
        let norm = Case {
            what: "batch norm",
            inputs: &[&input],
            output: size,
            need,
            want: |y, x, c| (input.at(y, x, c) * f64::from(scale[c]) + f64::from(shift[c])).max(0.0),
        };
        norm.by_rows(&mut random, |y, x, output| {
            batch_norm.rows(&mut Context::alone(isa), y, x, &by_channel, output);
        });
        norm.by_elements(&mut random, |y, x, output| {
            batch_norm.elements(&mut alone(), y, x, &by_element, output);
        });
        let slope = Case {
            what: "PRelu",
            inputs: &[&input, &slopes],
            output: size,
            need,
            want: |y, x, c| relu(input.at(y, x, c), slopes.broadcast([y, x, c])),
        };
        for isa in Isa::all() {
            slope.by_rows(&mut random, |y, x, output| {
                PRelu.rows(&mut Context::alone(isa), y, &x[..1], &x[1..], output)
            });
        }
        slope.by_rows(&mut random, |y, x, output| {
            copy.rows(&mut Context::alone(isa), y.clone(), &x[..1], &[], output);
            PReluInPlace.rows(&mut Context::alone(isa), y, &[], &x[1..], output);
        });
    }
}

#[test]
fn instances_are_normalised() {
    let mut random = Random(7);
    for _ in rounds(40) {
        let size = [random.within(1, 6), random.within(1, 6), *random.pick(&[1, 3, 16, 19])];
        let input = Image::random(&mut random, size);
        let [scale, shift] = [0, 1].map(|_| random.floats(size[2]));
        let pixels = (size[0] * size[1]) as f64;
        let over = |f: &dyn Fn(f64) -> f64, c: usize| {
            let places = (0..size[0]).flat_map(|y| (0..size[1]).map(move |x| (y, x)));
            places.map(|(y, x)| f(input.at(y, x, c))).sum::<f64>() / pixels
        };
        let case = Case {
            what: "instance norm",
            inputs: &[&input],
            output: size,
            need: |_, _| 0..size[0],
            want: |y, x, c| {
                let mean = over(&|x| x, c);
                let variance = over(&|x| (x - mean).powi(2), c);
                f64::from(scale[c]) * (input.at(y, x, c) - mean) / (variance + 0.01).sqrt()
                    + f64::from(shift[c])
            },
        };
        let norm = InstanceNorm { epsilon: 0.01 };
        let by_channel = [&scale, &shift].map(|c| Rows::line(c));
        let by_element = [&scale, &shift].map(|c| Elements::dense(c, &[c.len()]));
        case.by_rows(&mut random, |y, x, output| norm.rows(&mut alone(), y, x, &by_channel, output));
        case.by_elements(&mut random, |y, x, output| {
            norm.elements(&mut alone(), y, x, &by_element, output);
        });
    }
}
