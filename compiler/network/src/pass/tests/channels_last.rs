//! Tensors that layers along the last dimension make channels-last.

use csdfc_plan::operator::{Function, Gemm, Operator, Reduce, ReduceFunction, Transpose};
use csdfc_plan::shape::{Order, Shape};

use super::{Add, Builder, Fusion, Mul, same};
use crate::{LayerId, Network};

fn gemm(b: &mut Builder, x: LayerId, inner: usize, units: usize) -> LayerId {
    b.add(Operator::Gemm(Gemm { inner, units, transposed: false, bias: true, activation: None }), &[x])
}

fn orders(network: &Network) -> Vec<(&str, Order)> {
    network.layers.iter().map(|layer| (layer.operator.kind(), layer.shape.order)).collect()
}

/// The layer of a block of ConvNeXt or EdgeNeXt: tokens `[1, 30, 4]` as an image `[1, 5, 6, 4]`, whose channels are weighed by
/// their mean and go through two fully connected layers. Then it is an image of channels first.
fn block() -> (Builder, LayerId) {
    let mut b = Builder::default();
    let x = b.input(&[1, 30, 4]);
    let x = b.function(Function::Tanh, x);
    let mean = Reduce { function: ReduceFunction::Mean, axes: vec![3], keep_dims: true };
    let y = b.of_view(Operator::Reduce(mean), x, Shape::new([1, 5, 6, 4]));
    let y = b.function(Function::Sigmoid, y);
    let y = gemm(&mut b, y, 1, 8);
    let y = b.constant(Mul, y, &[8], false);
    let y = gemm(&mut b, y, 8, 3);
    let first = b.add(Operator::Transpose(Transpose::new([0, 3, 1, 2])), &[y]);
    (b, first)
}

#[test]
fn tokens_of_an_image_have_their_channels_last() {
    let (mut b, first) = block();
    let y = b.function(Function::Tanh, first);
    b.output(y);
    let network = same(&b.0, Fusion::None);
    use Order::{ChannelsFirst, ChannelsLast};
    let expected = [
        ("input", ChannelsFirst),
        ("element_wise", ChannelsFirst),
        ("reduce", ChannelsLast),
        ("element_wise", ChannelsLast),
        ("gemm", ChannelsLast),
        ("binary", ChannelsLast),
        ("gemm", ChannelsLast),
        // It reads what the Transpose before it would only have named otherwise.
        ("element_wise", ChannelsFirst),
    ];
    assert_eq!(orders(&network), expected);
}

/// What the caller sees, and what somebody reads in other dimensions, stays; and with it all that must have its order.
#[test]
fn what_others_see_stays_as_it_is() {
    let (mut b, first) = block();
    b.output(first);
    let last = LayerId(first.0 - 1);
    b.output(last);
    let network = same(&b.0, Fusion::None);
    assert!(orders(&network).iter().all(|(_, order)| *order == Order::ChannelsFirst));

    let (mut b, first) = block();
    let last = LayerId(first.0 - 1);
    let reduce = Reduce { function: ReduceFunction::Max, axes: vec![1], keep_dims: true };
    let y = b.add(Operator::Reduce(reduce), &[last]);
    let y = b.add(Operator::Transpose(Transpose::new([0, 2, 3, 1])), &[y]);
    let twice = b.transpose(last, Shape::new([1, 5, 3, 6]), &[0, 1, 3, 2]);
    b.output(y);
    b.output(twice);
    let network = same(&b.0, Fusion::None);
    assert!(orders(&network).iter().all(|(_, order)| *order == Order::ChannelsFirst));
}

/// The scale and the shift in which a layer normalization ends go into all fully connected layers that read them.
#[test]
fn products_take_scales_and_shifts_before_them() {
    let mut b = Builder::default();
    let x = b.input(&[1, 30, 4]);
    let x = b.function(Function::Tanh, x);
    let scaled = b.constant(Mul, x, &[4], false);
    let shifted = b.constant(Add, scaled, &[1, 1, 4], false);
    let (left, right) = (gemm(&mut b, shifted, 4, 3), gemm(&mut b, shifted, 4, 3));
    let sum = b.binary(Mul, left, right);
    b.output(sum);
    let kinds =
        |network: &Network| network.layers.iter().map(|layer| layer.operator.kind()).collect::<Vec<_>>();
    let after = same(&b.0, Fusion::Paper);
    assert_eq!(kinds(&after), ["input", "element_wise", "gemm", "gemm", "binary"]);
    assert_eq!(after.layers[2].onnx_nodes, ["2", "3", "4"]);
    // Somebody else reads the sums.
    b.output(shifted);
    let after = same(&b.0, Fusion::Paper);
    assert_eq!(kinds(&after), ["input", "element_wise", "binary", "binary", "gemm", "gemm", "binary"]);
}
