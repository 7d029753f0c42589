//! Operands of a convolution other than one image: residuals that it adds, and parts of concats that are no longer
//! needed.

use csdfc_plan::operator::{Concat, Conv, Function, Operator, Pool, PoolKind};
use proptest::prelude::*;

use super::BinaryFunction::{Add, Sub};
use super::{Builder, Fusion, becomes, conv, same, text};
use crate::{LayerId, Network};

fn point(filters: usize, groups: usize) -> Operator {
    let Operator::Conv(conv) = conv(filters, groups, true) else { unreachable!() };
    Operator::Conv(Conv { kernel: [1, 1], pads: [0; 4], ..conv })
}

fn pool(kind: PoolKind) -> Operator {
    let (kernel, stride, dilation) = ([3, 3], [2, 1], [1, 1]);
    Operator::Pool(Pool { kind, kernel, stride, dilation, pads: [1; 4], ceil: true })
}

impl Builder {
    fn concat(&mut self, operands: &[LayerId]) -> LayerId {
        self.add(Operator::Concat(Concat { axis: 1 }), operands)
    }
}

/// `network` becomes what is expected of it, one layer a line.
fn check(network: &Network, expected: &str) {
    becomes(network, Fusion::Full, expected);
}

#[test]
fn an_addition_goes_into_the_convolution_before_it() {
    let mut b = Builder::default();
    let x = b.input(&[1, 4, 5, 6]);
    let y = b.add(point(4, 1), &[x]);
    let y = b.norm(y);
    let y = b.function(Function::Relu, y);
    let y = b.add(point(4, 2), &[y]);
    let y = b.norm(y);
    let sum = b.binary(Add, x, y);
    let y = b.function(Function::PRelu { slope: vec![4, 1, 1] }, sum);
    b.output(y);
    check(
        &b.0,
        "0 input [0] () -> t0 0
        1 conv+Relu [1 2 3] (t0) -> t3 2
        4 conv+residual+PRelu { slope: [4, 1, 1] } [4 5 6 7] (t3 t0) -> t7 3",
    );
}

#[test]
fn the_later_of_two_convolutions_adds() {
    let mut b = Builder::default();
    let x = b.input(&[1, 4, 5, 6]);
    let first = b.add(point(4, 1), &[x]);
    let second = b.add(point(4, 1), &[x]);
    let sum = b.binary(Add, first, second);
    let third = b.add(point(4, 1), &[sum]);
    let sum = b.binary(Add, sum, third);
    let sum = b.binary(Add, third, sum);
    let last = b.binary(Add, sum, first);
    b.output(last);
    check(
        &b.0,
        "0 input [0] () -> t0 0
        1 conv [1] (t0) -> t1 2
        2 conv+residual [2 3] (t0 t1) -> t3 2
        4 conv [4] (t3) -> t4 2
        5 binary [5] (t3 t4) -> t5 0
        6 binary [6] (t4 t5) -> t6 0
        7 binary [7] (t6 t1) -> t7 0",
    );
}

#[test]
fn a_convolution_waits_for_what_it_adds_unless_its_image_is_larger() {
    let waits = |channels| {
        let mut b = Builder::default();
        let x = b.input(&[1, channels, 5, 6]);
        let y = b.add(point(4, 1), &[x]);
        let z = b.input(&[1, 4, 5, 6]);
        let tanh = b.function(Function::Tanh, z);
        let sum = b.binary(Add, y, tanh);
        let relu = b.function(Function::Relu, sum);
        b.output(relu);
        text(&same(&b.0, Fusion::Full))
    };
    let expected = "0 input [0] () -> t0 0
        2 input [2] () -> t2 0
        3 Tanh [3] (t2) -> t3 0
        1 conv+residual+Relu [1 4 5] (t0 t3) -> t5 2";
    assert_eq!(waits(4), expected.replace("\n        ", "\n"));
    assert!(waits(5).contains("4 binary+Relu"));
}

#[test]
fn the_convolution_of_the_smaller_image_adds() {
    let mut b = Builder::default();
    let x = b.input(&[1, 4, 5, 6]);
    let y = b.add(point(2, 1), &[x]);
    let y = b.add(point(4, 1), &[y]);
    let z = b.add(point(4, 1), &[x]);
    let sum = b.binary(Add, z, y);
    b.output(sum);
    check(
        &b.0,
        "0 input [0] () -> t0 0
        1 conv [1] (t0) -> t1 2
        3 conv [3] (t0) -> t3 2
        2 conv+residual [2 4] (t1 t3) -> t4 2",
    );
}

#[test]
fn what_cannot_be_added_is_not() {
    let left = |change: fn(&mut Builder, LayerId, LayerId)| {
        let mut b = Builder::default();
        let x = b.input(&[1, 4, 5, 6]);
        let y = b.add(point(4, 1), &[x]);
        change(&mut b, x, y);
        let last = LayerId(b.0.layers.len() - 1);
        b.output(last);
        let after = same(&b.0, Fusion::Full);
        assert!(!text(&after).contains("residual"), "{}", text(&after));
    };
    left(|b, x, y| {
        b.binary(Sub, y, x);
    });
    left(|b, _, y| {
        b.binary(Add, y, y);
    });
    left(|b, _, y| {
        b.constant(Add, y, &[4, 5, 6], false);
    });
    // An activation of its own, a depthwise one, another reader, an output, a smaller or larger operand.
    left(|b, x, y| {
        let y = b.function(Function::Relu, y);
        b.binary(Add, y, x);
    });
    left(|b, x, _| {
        let y = b.add(point(4, 4), &[x]);
        b.binary(Add, x, y);
    });
    left(|b, x, y| {
        let sum = b.binary(Add, x, y);
        b.binary(Add, sum, y);
    });
    left(|b, x, y| {
        b.output(y);
        b.binary(Add, x, y);
    });
    left(|b, _, y| {
        let one = b.input(&[1, 4, 1, 1]);
        b.binary(Add, y, one);
    });
    left(|b, x, _| {
        let y = b.add(point(1, 1), &[x]);
        b.binary(Add, y, x);
    });
}

#[test]
fn dense_convolutions_read_the_operands_of_concats() {
    let mut b = Builder::default();
    let x = b.input(&[1, 4, 5, 6]);
    let y = b.add(point(2, 1), &[x]);
    let first = b.concat(&[x, y]);
    let norm = b.norm(first);
    let relu = b.function(Function::Relu, norm);
    let z = b.add(conv(2, 1, true), &[relu]);
    let w = b.add(point(2, 1), &[first]);
    let second = b.concat(&[first, z, w, w]);
    let last = b.add(point(3, 1), &[second]);
    b.output(last);
    check(
        &b.0,
        "0 input [0] () -> t0 0
        1 conv [1] (t0) -> t1 2
        5 affine+Some(Relu)+conv [2 3 4 5] (t0 t1) -> t5 4
        6 conv [2 6] (t0 t1) -> t6 2
        8 conv [2 7 8] (t0 t1 t5 t6 t6) -> t8 2",
    );
}

#[test]
fn pools_before_convolutions_are_of_each_part() {
    let mut b = Builder::default();
    let x = b.input(&[1, 4, 5, 6]);
    let y = b.add(point(2, 1), &[x]);
    let both = b.concat(&[x, y]);
    let max = b.add(pool(PoolKind::Max), &[both]);
    let mean = b.add(pool(PoolKind::Average { count_include_pad: false }), &[max]);
    let z = b.add(point(3, 1), &[max]);
    let w = b.add(point(3, 1), &[mean]);
    b.output(z);
    b.output(w);
    check(
        &b.0,
        "0 input [0] () -> t0 0
        1 conv [1] (t0) -> t1 2
        3 pool [3] (t0) -> t3 0
        3.1 pool [3] (t1) -> t3.1 0
        4 pool [4] (t3) -> t4 0
        4.1 pool [4] (t3.1) -> t4.1 0
        5 conv [2 5] (t3 t3.1) -> t5 2
        6 conv [2 6] (t4 t4.1) -> t6 2",
    );
}

#[test]
fn what_others_read_is_put_together() {
    let kept = |change: fn(&mut Builder, LayerId)| {
        let mut b = Builder::default();
        let x = b.input(&[1, 4, 5, 6]);
        let y = b.function(Function::Tanh, x);
        let both = b.concat(&[x, y]);
        let z = b.add(point(8, 1), &[both]);
        b.output(z);
        change(&mut b, both);
        let after = same(&b.0, Fusion::Full);
        let concats = after.layers.iter().filter(|layer| layer.operator.kind() == "concat");
        (concats.count(), after.layers.iter().map(|layer| layer.inputs.len()).max())
    };
    assert_eq!(kept(|_, _| ()), (0, Some(2)));
    // A grouped convolution, what is added, another function, a pool that is an output, the output itself.
    let group = |b: &mut Builder, both| {
        let y = b.add(point(4, 2), &[both]);
        b.output(y);
    };
    let residual = |b: &mut Builder, both| {
        let y = b.add(point(8, 1), &[both]);
        let sum = b.binary(Add, y, both);
        b.output(sum);
    };
    let tanh = |b: &mut Builder, both| {
        let y = b.function(Function::Tanh, both);
        b.output(y);
    };
    let pooled = |b: &mut Builder, both| {
        let y = b.add(pool(PoolKind::Max), &[both]);
        b.output(y);
    };
    for change in [group, residual, tanh, pooled, |b: &mut Builder, both| b.output(both)] {
        assert_eq!(kept(change), (1, Some(2)));
    }
    // A concat that remains reads the operands of one that does not.
    let again = |b: &mut Builder, both| {
        let y = b.concat(&[both, both]);
        b.output(y);
    };
    assert_eq!(kept(again), (1, Some(4)));
}

/// Concats of one tensor with itself double its parts. This has a limit, and the layers that are left are right.
#[test]
fn parts_are_counted() {
    let mut b = Builder::default();
    let x = b.input(&[1, 1, 2, 2]);
    let y = (0..10).fold(x, |y, _| b.concat(&[y, y]));
    let y = b.add(pool(PoolKind::Max), &[y]);
    let y = b.add(point(2, 1), &[y]);
    b.output(y);
    let after = same(&b.0, Fusion::Full);
    let widths: Vec<usize> = after.layers.iter().map(|layer| layer.inputs.len()).collect();
    assert_eq!(widths, [0, 256, 2, 1, 1, 2]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Any small network of what these passes touch computes the same.
    #[test]
    fn random_networks(
        layers in prop::collection::vec(
            (0usize..10, any::<prop::sample::Index>(), any::<prop::sample::Index>()), 1..16),
        outputs in prop::collection::vec(any::<prop::sample::Index>(), 1..3),
    ) {
        let mut b = Builder::default();
        b.input(&[1, 2, 4, 3]);
        for (kind, x, y) in layers {
            let count = b.0.layers.len();
            let x = LayerId((count - 1).saturating_sub(x.index(count) / 2));
            let same_size = |id: &LayerId| b.0.layer(*id).shape.dims[2..] == b.0.layer(x).shape.dims[2..];
            let same_shape = |id: &LayerId| b.0.layer(*id).shape == b.0.layer(x).shape;
            let others: Vec<LayerId> = match kind {
                0..3 => b.0.ids().filter(same_size).collect(),
                _ => b.0.ids().filter(same_shape).collect(),
            };
            let y = others[y.index(others.len())];
            let channels = b.0.layer(x).shape.channels();
            match kind {
                0..3 if channels < 24 => b.concat(&[x, y]),
                3..5 => b.binary(Add, x, y),
                5 => b.function(Function::Relu, x),
                6 => b.add(pool(PoolKind::Max), &[x]),
                7 if channels.is_multiple_of(2) => b.add(point(2 + y.0 % 2 * 2, 2), &[x]),
                8 => b.norm(x),
                _ => b.add(point(1 + y.0 % 4, 1), &[x]),
            };
        }
        for output in outputs {
            let id = LayerId(output.index(b.0.layers.len()));
            b.output(id);
        }
        same(&b.0, Fusion::Full);
    }
}
