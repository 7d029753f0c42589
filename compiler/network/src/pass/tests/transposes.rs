//! Transposes that keep rows.

use csdfc_plan::operator::{Function, Gemm, Operator, Transpose};
use csdfc_plan::shape::{Order, Shape};

use super::{Builder, Fusion, same};
use crate::operators::{RowAccess, row_access};
use crate::{LayerId, Network, NetworkOutput, Operand};

/// For each Transpose, whether it reads row by row, and the order of what it makes.
fn read_by_rows(network: &Network) -> Vec<(bool, Order)> {
    let transposes = network.layers.iter().filter(|layer| matches!(layer.operator, Operator::Transpose(_)));
    transposes
        .map(|layer| {
            let own = &network.layer(layer.inputs[0].layer).shape;
            let access = row_access(&layer.operator, own, &layer.input_shapes(), &layer.shape, 0);
            (access != RowAccess::Whole, layer.shape.order)
        })
        .collect()
}

/// Six tokens of two heads, from `[1, 6, 8]` to `[1, 2, 6, 4]`, and after a function of it, back.
fn heads() -> (Builder, [LayerId; 2]) {
    let mut b = Builder::default();
    let x = b.input(&[1, 6, 8]);
    let gemm = Gemm { inner: 8, units: 8, transposed: false, bias: false, activation: None };
    let x = b.add(Operator::Gemm(gemm), &[x]);
    let to = b.transpose(x, Shape::new([1, 6, 2, 4]), &[0, 2, 1, 3]);
    let y = b.function(Function::Tanh, to);
    let back = b.transpose(y, Shape::new([1, 2, 6, 4]), &[0, 2, 1, 3]);
    (b, [to, back])
}

fn output(b: &mut Builder, layer: LayerId, shape: Shape) {
    b.0.outputs.push(NetworkOutput::new("y", Operand { layer, shape }));
}

#[test]
fn heads_go_by_rows() {
    let (mut b, [_, back]) = heads();
    output(&mut b, back, Shape::new([1, 6, 8]));
    let network = same(&b.0, Fusion::Paper);
    assert_eq!(read_by_rows(&network), [(true, Order::ChannelsFirst), (true, Order::ChannelsLast)]);
}

/// If somebody sees the image, its rows are those of the dimensions that it has.
#[test]
fn images_that_are_seen_keep_their_order() {
    let (mut b, [_, back]) = heads();
    output(&mut b, back, Shape::new([1, 6, 8]));
    let z = b.function(Function::Tanh, back);
    output(&mut b, z, Shape::new([1, 6, 2, 4]));
    let network = same(&b.0, Fusion::Paper);
    assert_eq!(read_by_rows(&network), [(true, Order::ChannelsFirst), (false, Order::ChannelsFirst)]);
}

/// Keys whose tokens become columns are read whole; so is an image that is seen in other dimensions.
#[test]
fn what_leaves_its_row_is_read_whole() {
    let (mut b, [to, _]) = heads();
    b.0.layers[to.0].operator = Operator::Transpose(Transpose::new([0, 2, 3, 1]));
    b.0.layers[to.0].shape = Shape::new([1, 2, 4, 6]);
    output(&mut b, to, Shape::new([1, 2, 4, 6]));
    assert_eq!(read_by_rows(&same(&b.0, Fusion::Paper)), [(false, Order::ChannelsFirst)]);
    let mut b = Builder::default();
    let x = b.input(&[1, 4, 6, 3]);
    let x = b.function(Function::Tanh, x);
    let y = b.transpose(x, Shape::new([1, 6, 4, 3]), &[0, 2, 1, 3]);
    output(&mut b, y, Shape::new([1, 4, 6, 3]));
    assert_eq!(read_by_rows(&same(&b.0, Fusion::Paper)), [(false, Order::ChannelsFirst)]);
}
