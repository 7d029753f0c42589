//! Fully connected layers, by rows and by elements.

use csdfc_kernels::activation::Activation;
use csdfc_kernels::arch::Isa;
use csdfc_kernels::elements::{Elements, ElementsMut};
use csdfc_kernels::gemm::*;
use csdfc_kernels::kernel::{Context, ElementKernel, RowKernel};
use csdfc_kernels::rows::{RowShape, Rows, RowsMut};
use csdfc_kernels::span::SpanMut;

use crate::testing::{Random, close};

#[test]
fn rows_and_permuted_inputs() {
    let mut random = Random(3);
    for case in 0..60 {
        let (rows, inner, units) = (random.within(1, 9), random.within(1, 70), random.within(1, 50));
        let p = Gemm { inner, units, activation: Activation::None };
        let (input, weights) = (random.floats(rows * inner), random.floats(inner * units));
        let bias = random.floats(units);
        // The element at place k in memory is the logical element `order(k)`.
        let order = |k: usize| (inner - 1) - k;
        let mut packed = vec![f32::NAN; p.packed_len()];
        p.pack(|unit, k| weights[order(k) * units + unit], &bias, &[], &mut packed);
        let mut want = Vec::new();
        for row in input.chunks(inner) {
            want.extend((0..units).map(|unit| {
                let sum = |(k, x): (usize, &f32)| f64::from(*x) * f64::from(weights[order(k) * units + unit]);
                (row.iter().enumerate().map(sum).sum::<f64>() + f64::from(bias[unit])) as f32
            }));
        }
        for isa in Isa::all() {
            let context = &mut Context::alone(isa);
            let mut got = vec![f32::NAN; rows * units];
            let x = Rows { data: input.as_slice().into(), shape: RowShape::dense(1, rows, inner, 1) };
            let shape = RowShape::dense(1, rows, units, 1);
            let output = &mut RowsMut { data: SpanMut::new(&mut got), shape };
            p.as_conv().rows(context, 0..1, &[x], &[Rows::line(&packed)], output);
            close(&got, &want, || format!("case {case} {}", isa.name()));

            let mut by_elements = vec![f32::NAN; rows * units];
            let output = &mut ElementsMut::dense(&mut by_elements, &[rows, units]);
            let x = Elements::dense(&input, &[rows, inner]);
            p.elements(context, 0..1, &[x], &[Elements::dense(&packed, &[packed.len()])], output);
            close(&by_elements, &want, || format!("case {case} {}, elements", isa.name()));
        }
    }
}
