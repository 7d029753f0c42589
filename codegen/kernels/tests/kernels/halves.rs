//! Kernels of halves compared with the same kernels of floats: given the same numbers, what the one makes is what the
//! other makes, rounded once, to the bit.

use core::slice::from_ref;

use csdfc_kernels::activation::Activation;
use csdfc_kernels::arch::Isa;
use csdfc_kernels::binary::{Binary, BinaryFunction};
use csdfc_kernels::concat::{Concat, ConcatElements, ImageAxis};
use csdfc_kernels::conv::{Conv, Pre};
use csdfc_kernels::convert::{Gather, Scatter, Swap};
use csdfc_kernels::depth_space::{DepthToSpace, SpaceToDepth};
use csdfc_kernels::element_wise::{BatchNorm, ElementWise, PRelu, PReluInPlace};
use csdfc_kernels::elements::{Axes, Elements, ElementsMut, MAX_RANK};
use csdfc_kernels::gemm::Gemm;
use csdfc_kernels::half::F16;
use csdfc_kernels::kernel::{Context, ElementKernel, RowKernel};
use csdfc_kernels::mat_mul::MatMul;
use csdfc_kernels::pad::{Pad, PadElements, PadMode};
use csdfc_kernels::pool::{Pool, PoolKind};
use csdfc_kernels::reduce::{ReduceElements, ReduceFrame, ReduceFunction, ReduceRows};
use csdfc_kernels::resize::{Line, Resize, ResizeMode, Rounding};
use csdfc_kernels::rows::{RowShape, Rows, RowsMut};
use csdfc_kernels::share::share_rows;
use csdfc_kernels::slice::{Slice, SliceElements};
use csdfc_kernels::softmax::{Softmax, SoftmaxElements};
use csdfc_kernels::transpose::Transpose;
use csdfc_kernels::workers::Workers;

use crate::testing::{Random, rounds};

fn halves(values: &[f32]) -> Vec<F16> {
    values.iter().map(|x| F16::from_f32(*x)).collect()
}

fn floats(values: &[F16]) -> Vec<f32> {
    values.iter().map(|x| x.to_f32()).collect()
}

/// Bits; all that is not a number is one.
fn bits(values: &[F16]) -> Vec<u16> {
    values.iter().map(|x| if x.to_f32().is_nan() { 0x7e00 } else { x.to_bits() }).collect()
}

fn dense([height, width, channels]: [usize; 3]) -> RowShape {
    RowShape::dense(height, width, channels, height)
}

/// Numbers from −1 to 1, as halves.
fn random(random: &mut Random, size: usize) -> Vec<F16> {
    halves(&random.floats(size))
}

/// By rows: some at a time, alone and shared among workers.
fn by_rows<K: RowKernel + RowKernel<F16, F16> + Sync>(
    kernel: &K,
    operands: &[(Vec<F16>, [usize; 3])],
    constants: &[Vec<F16>],
    out: [usize; 3],
    what: impl Fn() -> String,
) {
    from(kernel, operands, constants, vec![F16::default(); out.iter().product()], out, what);
}

/// The same, of an output that has been made before.
fn from<K: RowKernel + RowKernel<F16, F16> + Sync>(
    kernel: &K,
    operands: &[(Vec<F16>, [usize; 3])],
    constants: &[Vec<F16>],
    old: Vec<F16>,
    out: [usize; 3],
    what: impl Fn() -> String,
) {
    let wide: Vec<Vec<f32>> = operands.iter().map(|(x, _)| floats(x)).collect();
    let wide_constants: Vec<Vec<f32>> = constants.iter().map(|x| floats(x)).collect();
    for isa in Isa::all() {
        let operand = |(x, (_, size)): (&Vec<f32>, &(_, [usize; 3]))| (x.clone(), dense(*size));
        let wide: Vec<_> = wide.iter().zip(operands).map(operand).collect();
        let x: Vec<_> =
            wide.iter().map(|(x, shape)| Rows { data: x.as_slice().into(), shape: *shape }).collect();
        let c: Vec<_> = wide_constants.iter().map(|c| Rows::line(c)).collect();
        let mut made = floats(&old);
        let mut output = RowsMut { data: made.as_mut_slice().into(), shape: dense(out) };
        kernel.rows(&mut Context::alone(isa), 0..out[0], &x, &c, &mut output);
        let want = bits(&halves(&made));

        let x: Vec<_> = operands
            .iter()
            .map(|(x, size)| Rows { data: x.as_slice().into(), shape: dense(*size) })
            .collect();
        let c: Vec<_> = constants.iter().map(|c| Rows::line(c)).collect();
        for (rows, workers) in [(1, 1), (2, 1), (3, 1), (out[0], 1), (out[0], 2)] {
            let mut made = old.clone();
            let mut output = RowsMut { data: made.as_mut_slice().into(), shape: dense(out) };
            let mut workers = Workers::new(workers);
            for start in (0..out[0]).step_by(rows) {
                let y = start..out[0].min(start + rows);
                let mut context = Context { isa, workers: Some(&mut workers), workspace: &mut [] };
                share_rows(kernel, &mut context, y, &x, &c, &mut output);
            }
            assert!(bits(&made) == want, "{} {rows} rows: {}", isa.name(), what());
        }
    }
}

/// Element by element, of dense tensors.
fn by_elements<K: ElementKernel + ElementKernel<F16, F16>>(
    kernel: &K,
    operands: &[(Vec<F16>, Vec<usize>)],
    constants: &[(Vec<F16>, Vec<usize>)],
    out: &[usize],
    what: impl Fn() -> String,
) {
    let old: Vec<F16> = halves(&Random(3).floats(out.iter().product()));
    let wide = |all: &[(Vec<F16>, Vec<usize>)]| -> Vec<(Vec<f32>, Vec<usize>)> {
        all.iter().map(|(x, dims)| (floats(x), dims.clone())).collect()
    };
    for isa in Isa::all() {
        let (x, c) = (wide(operands), wide(constants));
        let [x, c] =
            [&x, &c].map(|all| all.iter().map(|(x, dims)| Elements::dense(x, dims)).collect::<Vec<_>>());
        let mut made = floats(&old);
        kernel.elements(&mut Context::alone(isa), 0..1, &x, &c, &mut ElementsMut::dense(&mut made, out));
        let want = bits(&halves(&made));
        let [x, c] = [operands, constants]
            .map(|all| all.iter().map(|(x, dims)| Elements::dense(x, dims)).collect::<Vec<_>>());
        let mut made = old.clone();
        kernel.elements(&mut Context::alone(isa), 0..1, &x, &c, &mut ElementsMut::dense(&mut made, out));
        assert!(bits(&made) == want, "{} elements: {}", isa.name(), what());
    }
}

const ACTIVATIONS: [Activation; 6] = [
    Activation::None,
    Activation::Relu,
    Activation::Clip { min: -0.3, max: 0.7 },
    Activation::PRelu,
    Activation::Swish,
    Activation::HardSwish,
];

#[test]
fn sums_of_a_convolution_are_rounded_once() {
    let mut source = Random(51);
    for case in rounds(260) {
        let random_in = |source: &mut Random, low, high| source.within(low, high);
        let is_depthwise = case % 3 == 0;
        let mut groups = *source.pick(&[1, 1, 1, 2, 3]);
        let (mut channels, mut filters) =
            (groups * random_in(&mut source, 1, 20), groups * random_in(&mut source, 1, 70));
        if is_depthwise {
            channels = *source.pick(&[1, 5, 16, 23, 48, 130, 304]);
            (filters, groups) = (channels, channels);
        } else if case % 8 == 1 {
            // Several tables: of spans, of many channels, or both.
            channels = groups * random_in(&mut source, 500, 1100);
        }
        if !is_depthwise && groups == channels {
            filters += groups;
        }
        let mut kernel = [source.within(1, if case % 16 == 2 { 9 } else { 4 }), source.within(1, 4)];
        if is_depthwise && case % 2 == 0 {
            // Filters of these widths have code of their own where all channels have panels.
            kernel = [source.within(1, 5), *source.pick(&[3, 5])];
        }
        let dilation = [source.within(1, 2), source.within(1, 2)];
        let mut p = Conv {
            channels,
            filters,
            kernel,
            stride: [source.within(1, 2), source.within(1, 2)],
            dilation,
            pads: core::array::from_fn(|i| source.within(0, (kernel[i % 2] - 1) * dilation[i % 2])),
            groups,
            pre: None,
            residual: !is_depthwise && case % 4 == 1,
            activation: *source.pick(&ACTIVATIONS),
        };
        if case % 5 == 0 {
            let activation = *source.pick(&[Activation::None, Activation::Relu]);
            let activation = if is_depthwise || case % 2 == 0 { activation } else { Activation::Swish };
            p.pre = Some(Pre { affine: case % 10 == 0, activation });
        }
        let reach = |axis: usize| (p.kernel[axis] - 1) * p.dilation[axis] + 1;
        let size = [0, 1].map(|axis| reach(axis) + source.within(0, if channels > 400 { 3 } else { 12 }));
        let out = [0, 1].map(|i| (size[i] + p.pads[i] + p.pads[i + 2] - reach(i)) / p.stride[i] + 1);
        let mut packed = vec![0.0; p.packed_len()];
        let slopes = if p.activation == Activation::PRelu { source.floats(filters) } else { vec![] };
        let affine = p.pre.filter(|pre| pre.affine).map_or(0, |_| channels);
        let [scale, shift] = [0, 1].map(|_| source.floats(affine));
        let weights = source.floats(filters * channels / groups * kernel[0] * kernel[1]);
        p.pack(&weights, &source.floats(filters), &slopes, [&scale, &shift], &mut packed);
        let mut operands = vec![];
        let cut = if groups == 1 && !is_depthwise && case % 2 == 0 { source.within(0, channels) } else { 0 };
        for part in [cut, channels - cut] {
            if part > 0 {
                let image = [size[0], size[1], part];
                operands.push((random(&mut source, image.iter().product()), image));
            }
        }
        let out = [out[0], out[1], filters];
        if p.residual {
            operands.push((random(&mut source, out.iter().product()), out));
        }
        by_rows(&p, &operands, &[halves(&packed)], out, || format!("case {case} {p:?} {size:?}"));
    }
}

#[test]
fn functions_of_elements_are_rounded_once() {
    let mut source = Random(52);
    for case in rounds(120) {
        // Rows that are one piece, several, and pixels of which each is more than one.
        let channels = *source.pick(&[1, 3, 16, 40, 1024, 1500]);
        let size = [source.within(1, 4), source.within(1, if channels > 1000 { 3 } else { 60 }), channels];
        let activation = *source.pick(&[Activation::None, Activation::Relu, Activation::Swish]);
        let function = *source.pick(&[
            BinaryFunction::Add,
            BinaryFunction::Sub,
            BinaryFunction::Mul,
            BinaryFunction::Div,
            BinaryFunction::Max,
            BinaryFunction::Min,
            BinaryFunction::Pow,
            BinaryFunction::Greater,
        ]);
        let mut operand = |whole: bool| {
            let size = size.map(|d| if whole || source.within(0, 1) == 1 { d } else { 1 });
            (random(&mut source, size.iter().product()), size)
        };
        let (left, right) = (operand(case % 2 == 0), operand(case % 3 == 0 || case % 2 == 1));
        let out = [0, 1, 2].map(|i| left.1[i].max(right.1[i]));
        let p = Binary { function, constant_first: false, activation };
        let what = || format!("{p:?} {:?} {:?}", left.1, right.1);
        by_rows(&p, &[left.clone(), right.clone()], &[], out, what);
        let of = |(x, size): &(Vec<F16>, [usize; 3])| (x.clone(), size.to_vec());
        by_elements(&p, &[of(&left), of(&right)], &[], &out, what);

        let x = (random(&mut source, size.iter().product()), size);
        let what = || format!("{activation:?} {size:?}");
        by_rows(&ElementWise { function: activation }, from_ref(&x), &[], size, what);
        by_elements(&ElementWise { function: activation }, &[of(&x)], &[], &size, what);
        let constants = [0, 1].map(|_| random(&mut source, channels));
        by_rows(&BatchNorm { activation }, from_ref(&x), &constants, size, what);
        by_rows(&PRelu, from_ref(&x), &constants[..1], size, what);
        from(&PReluInPlace, &[], &constants[..1], x.0.clone(), size, what);
        let slopes = (constants[0].clone(), vec![channels]);
        by_elements(&PRelu, &[of(&x)], from_ref(&slopes), &size, what);
        by_elements(&PReluInPlace, &[], &[slopes], &size, what);
        let dims = vec![1, channels, size[0], size[1]];
        let constants = constants.map(|c| (c, vec![channels]));
        by_elements(&BatchNorm { activation }, &[(x.0, dims.clone())], &constants, &dims, what);
    }
}

#[test]
fn windows_are_rounded_once() {
    let mut source = Random(53);
    for case in rounds(60) {
        let channels = *source.pick(&[1, 3, 16, 40, 1100]);
        let size = [source.within(3, 6), source.within(3, 7), channels];
        let x = (random(&mut source, size.iter().product()), size);
        let kinds = [PoolKind::Max, PoolKind::Average, PoolKind::AverageWithPad, PoolKind::Lp { p: 2 }];
        let p = Pool {
            kind: kinds[case % 4],
            kernel: [source.within(1, 3), source.within(1, 3)],
            stride: [source.within(1, 2), source.within(1, 2)],
            dilation: [1, 1],
            pads: [0; 4],
        };
        let out = [0, 1].map(|i| (size[i] - p.kernel[i]) / p.stride[i] + 1);
        by_rows(&p, from_ref(&x), &[], [out[0], out[1], channels], || format!("{p:?} {size:?}"));
        let dims = vec![1, channels, size[0], size[1]];
        let image = (x.0.clone(), dims);
        let made = [1, channels, out[0], out[1]];
        by_elements(&p, from_ref(&image), &[], &made, || format!("{p:?} {size:?}"));

        let modes = [ResizeMode::Linear, ResizeMode::Nearest(Rounding::Floor)];
        let line = Line { start: -1, step: 2, over: 4 };
        let p = Resize { mode: modes[case % 2], rows: line, columns: line };
        let out = [2 * size[0], 2 * size[1], channels];
        by_rows(&p, &[x], &[], out, || format!("{p:?} {size:?}"));
        by_elements(&p, &[image], &[], &[1, channels, out[0], out[1]], || format!("{p:?} {size:?}"));
    }
}

#[test]
fn reductions_are_rounded_once() {
    let mut source = Random(54);
    for case in rounds(60) {
        let channels = *source.pick(&[1, 3, 16, 40, 1300]);
        let size = [source.within(1, 5), source.within(1, 7), channels];
        let x = (random(&mut source, size.iter().product()), size);
        let functions =
            [ReduceFunction::Mean, ReduceFunction::Max, ReduceFunction::L2, ReduceFunction::LogSumExp];
        let function = functions[case % 4];
        let [columns, over_channels] = [case % 3 > 0, case % 3 < 2];
        let what = || format!("{function:?} {columns} {over_channels} {size:?}");
        by_rows(&ReduceFrame { function }, from_ref(&x), &[], [1, 1, channels], what);
        let out = [size[0], if columns { 1 } else { size[1] }, if over_channels { 1 } else { channels }];
        by_rows(&ReduceRows { function, columns, channels: over_channels }, from_ref(&x), &[], out, what);
        let softmax = Softmax { log: case % 2 == 0, columns, channels: over_channels };
        by_rows(&softmax, from_ref(&x), &[], size, what);
        let (x, axes) = ((x.0, size.to_vec()), Axes::new(&[1]));
        let reduce = ReduceElements { function, axes, keep_dims: false };
        by_elements(&reduce, from_ref(&x), &[], &[size[0], channels], what);
        by_elements(&SoftmaxElements { log: case % 2 == 0, axes }, &[x], &[], &size, what);
    }
}

#[test]
fn products_are_rounded_once() {
    let mut source = Random(55);
    for _ in rounds(40) {
        let [m, n, k] = [source.within(1, 20), source.within(1, 50), source.within(1, 150)];
        let x = (random(&mut source, m * k), vec![m, k]);
        let y = (random(&mut source, k * n), vec![k, n]);
        by_elements(&MatMul, &[x.clone(), y.clone()], &[], &[m, n], || format!("{m}×{n}×{k}"));
        let p = Gemm { inner: k, units: n, activation: *source.pick(&ACTIVATIONS) };
        let weights = floats(&y.0);
        let slopes = if p.activation == Activation::PRelu { source.floats(n) } else { vec![] };
        let mut packed = vec![0.0; p.packed_len()];
        p.pack(|unit, k| weights[k * n + unit], &source.floats(n), &slopes, &mut packed);
        let constant = (halves(&packed), vec![packed.len()]);
        by_elements(&p, &[x], &[constant], &[m, n], || format!("{p:?}"));
    }
}

#[test]
fn copies_are_what_they_are_of_floats() {
    let mut source = Random(56);
    for case in rounds(40) {
        let size = [2 * source.within(1, 3), 2 * source.within(1, 3), 4 * source.within(1, 5)];
        let [h, w, c] = size;
        let x = (random(&mut source, h * w * c), size);
        let what = || format!("{size:?}");
        by_rows(&Swap, from_ref(&x), &[], [h, c, w], what);
        by_rows(&Scatter, &[(x.0.clone(), [h, c, w])], &[], [1, c, h * w], what);
        by_rows(&Gather, &[(x.0.clone(), [1, c, h * w])], &[], [h, c, w], what);
        by_rows(
            &DepthToSpace { block: 2, depth_first: case % 2 == 0 },
            from_ref(&x),
            &[],
            [2 * h, 2 * w, c / 4],
            what,
        );
        by_rows(&SpaceToDepth { block: 2 }, from_ref(&x), &[], [h / 2, w / 2, 4 * c], what);
        by_rows(&Concat { axis: ImageAxis::Channels }, &[x.clone(), x.clone()], &[], [h, w, 2 * c], what);
        by_rows(
            &Slice { starts: [1, 0, 1], steps: [1, 2, 1] },
            from_ref(&x),
            &[],
            [h - 1, w / 2, c - 1],
            what,
        );
        let mode = [PadMode::Constant(0.1), PadMode::Edge, PadMode::Reflect][case % 3];
        let pad = Pad { mode, before: [1, 0, 0], after: [0, 1, 0] };
        by_rows(&pad, from_ref(&x), &[], [h + 1, w + 1, c], what);

        let x = (x.0, vec![1, c, h, w]);
        by_elements(
            &DepthToSpace { block: 2, depth_first: true },
            from_ref(&x),
            &[],
            &[1, c / 4, 2 * h, 2 * w],
            what,
        );
        by_elements(&SpaceToDepth { block: 2 }, from_ref(&x), &[], &[1, 4 * c, h / 2, w / 2], what);
        by_elements(&ConcatElements { axis: 2 }, &[x.clone(), x.clone()], &[], &[1, c, 2 * h, w], what);
        let slice = SliceElements { starts: [0, 1, 0, 0, 0, 0], steps: [1; MAX_RANK] };
        by_elements(&slice, from_ref(&x), &[], &[1, c - 1, h, w], what);
        let pad = PadElements { mode, before: [0, 0, 1, 0, 0, 0], after: [0; MAX_RANK] };
        by_elements(&pad, from_ref(&x), &[], &[1, c, h + 1, w], what);
        by_elements(&Transpose { perm: [0, 2, 3, 1, 0, 0] }, &[x], &[], &[1, h, w, c], what);
    }
}
