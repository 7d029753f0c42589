//! The table of primitives and the checker's own, which shares no code with it, know the same.

use std::collections::BTreeMap;

use csdfc_plan::check::parameters;
use csdfc_plan::check::primitives::all;
use csdfc_plan::format::Quantization;
use csdfc_plan::operator::{Conv, ConvTranspose, Function, Gemm, Operator, Pre};
use csdfc_plan::shape::Shape;
use csdfc_runtime::bind;
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};

/// No name is in one table and not in the other.
#[test]
fn all_primitives_are_known() {
    let names: Vec<&str> = all().map(|row| row.name).collect();
    let bound: Vec<&str> = bind::Primitive::all().map(bind::Primitive::name).collect();
    assert_eq!(names, bound);
}

/// What a layer keeps, by operator, groups and slopes: as many bytes as it is packed into.
#[test]
fn both_tables_keep_the_same() {
    let slopes = [None, Some(vec![1]), Some(vec![12, 1, 1]), Some(vec![12, 5, 5]), Some(vec![12])];
    let mut compared = 0;
    for slope in slopes {
        let activation = slope.map(|slope| Function::PRelu { slope });
        for (groups, channels, affine) in
            [(1, 8, false), (1, 8, true), (4, 8, false), (6, 6, false), (12, 24, false), (12, 12, true)]
        {
            let (kernel, stride, dilation, pads) = ([3, 2], [1, 1], [1, 1], [0; 4]);
            let pre = affine.then_some(Pre { affine, ..Pre::default() });
            let (filters, bias, residual) = (12, true, false);
            let conv = Operator::Conv(Conv {
                filters,
                kernel,
                stride,
                dilation,
                pads,
                groups,
                bias,
                pre,
                residual,
                activation: activation.clone(),
            });
            let transposed = Operator::ConvTranspose(ConvTranspose {
                filters,
                kernel,
                stride,
                dilation,
                pads,
                output_padding: [0; 2],
                groups,
                bias,
                activation: activation.clone(),
            });
            let (inner, units, transposed_weights) = (8, 12, true);
            let gemm = Operator::Gemm(Gemm {
                inner,
                units,
                transposed: transposed_weights,
                bias,
                activation: activation.clone(),
            });
            let (image, vector) = (Shape::image(channels, 7, 6), Shape::new([1, 8]));
            for (operator, seen) in [(conv, &image), (transposed, &image), (gemm, &vector)] {
                let count = parameters::elements(&operator, &[seen]).unwrap();
                let bound = bind::Primitive::new(&operator, &[seen]);
                let row = all().find(|row| row.name == bound.name()).unwrap();
                let kept = bound.stored_bytes(&operator, &[seen], count);
                assert_eq!((row.stored)(&operator, &[seen]), Some(kept), "{operator:?}");
                compared += 1;
            }
        }
    }
    assert_eq!(compared, 90);
}

/// Of convolutions of all kinds, whatever is fused: the primitives that compute them, and their workspace.
#[test]
fn both_tables_take_the_same_convolutions() {
    let image = Shape::image(4, 7, 6);
    let output = Shape::image(4, 5, 5);
    let mut lowered = 0;
    for (channels, filters, groups) in [(4, 4, 1), (4, 4, 4), (4, 8, 4), (4, 4, 2), (1, 1, 1), (1, 4, 1)] {
        for (count, residual, affine) in (1..4)
            .flat_map(|count| [false, true].map(|is| (count, is)))
            .flat_map(|(count, is)| [false, true].map(|affine| (count, is, affine)))
        {
            let pre = affine.then_some(Pre { affine, ..Pre::default() });
            let conv = Operator::Conv(Conv {
                filters,
                kernel: [3, 2],
                stride: [1, 1],
                dilation: [1, 1],
                pads: [0; 4],
                groups,
                bias: true,
                pre,
                residual,
                activation: None,
            });
            let first = Shape::image(channels, 7, 6);
            let mut inputs = vec![&first];
            inputs.resize(count, if residual { &output } else { &image });
            // Refused by the rule on shapes, before primitives are looked at.
            let is_depthwise = groups == channels && groups == filters;
            if residual && (count == 1 || is_depthwise) || groups > 1 && count > 1 + usize::from(residual) {
                continue;
            }
            for row in all() {
                let bound = bind::Primitive::find(row.name).unwrap();
                let computes = (row.computes)(&conv, &inputs);
                assert_eq!(computes, bound.computes(&conv, &inputs), "{} {conv:?}", row.name);
                if computes {
                    let bytes = bound.workspace_bytes(&conv, &inputs, &output);
                    assert_eq!((row.workspace)(&conv, &inputs, &output), Some(bytes));
                    lowered += usize::from(bytes > 0);
                }
            }
        }
    }
    assert!(lowered > 0);
}

/// Of random convolutions, small and large: the primitives that compute them, what these keep, and their workspace.
#[test]
fn both_tables_know_the_same_of_random_convolutions() {
    let mut random = ChaCha8Rng::seed_from_u64(13);
    let mut counts = BTreeMap::new();
    for _ in 0..3000 {
        let mut up_to = |most: usize| match random.random_range(0..3) {
            0 => 1,
            _ => random.random_range(1..=most),
        };
        let (channels, filters) = (up_to(100), up_to(300));
        let mut kernel = [up_to(6), up_to(6)];
        let [mut stride, mut dilation] = [[up_to(2), up_to(2)], [up_to(2), up_to(2)]];
        let mut pads = [0; 4].map(|_: usize| up_to(3) - 1);
        let (height, width) = (up_to(90), up_to(150));
        let parts = if up_to(6) == 6 { 2 } else { 1 };
        let groups = if up_to(6) == 6 && parts == 1 && filters == channels { channels } else { 1 };
        match random.random_range(0..4) {
            0 => {
                kernel = [[3, 3], [5, 5], [4, 3], [2, 5]][random.random_range(0..4)];
                (stride, dilation) = ([1, 1], [1, 1]);
            }
            1 => (kernel, pads) = ([1, 1], [0; 4]),
            _ => {}
        }
        let activation = match random.random_range(0..4) {
            0 => Some(Function::PRelu { slope: vec![1] }),
            1 => Some(Function::Relu),
            _ => None,
        };
        let pre = (random.random_range(0..8) == 0).then(|| Pre {
            affine: random.random_range(0..4) > 0,
            activation: [None, Some(Function::Relu), Some(Function::HardSwish)][random.random_range(0..3)]
                .clone(),
            quantization: [None, Some(Quantization { scale: 0.1, zero_point: 3 })][random.random_range(0..2)],
        });
        let (bias, residual) = (random.random_range(0..2) == 0, false);
        let size = [height, width];
        let made = [0, 1].map(|axis| {
            let reach = (kernel[axis] - 1) * dilation[axis] + 1;
            (size[axis] + pads[axis] + pads[axis + 2]).checked_sub(reach).map(|rest| rest / stride[axis] + 1)
        });
        let [Some(rows), Some(columns)] = made else { continue };
        let conv = Operator::Conv(Conv {
            filters,
            kernel,
            stride,
            dilation,
            pads,
            groups,
            bias,
            pre,
            residual,
            activation,
        });
        let (image, output) = (Shape::image(channels, height, width), Shape::image(filters, rows, columns));
        let seen = vec![&image; parts];
        let Some(elements) = parameters::elements(&conv, &seen) else { continue };
        for row in all() {
            let bound = bind::Primitive::find(row.name).unwrap();
            let computes = (row.computes)(&conv, &seen);
            assert_eq!(computes, bound.computes(&conv, &seen), "{} {conv:?} of {image}", row.name);
            if computes {
                let kept = bound.stored_bytes(&conv, &seen, elements);
                assert_eq!((row.stored)(&conv, &seen), Some(kept), "{} {conv:?} of {image}", row.name);
                let bytes = bound.workspace_bytes(&conv, &seen, &output);
                let stated = (row.workspace)(&conv, &seen, &output);
                assert_eq!(stated, Some(bytes), "{} {conv:?} of {image}", row.name);
                *counts.entry(row.name).or_insert(0) += 1;
            }
        }
    }
    let few: Vec<_> = counts.iter().filter(|(_, count)| **count < 20).collect();
    assert!(counts.len() >= 160 && few.is_empty(), "{} primitives, {few:?}", counts.len());
}
