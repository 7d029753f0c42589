//! Products of one pixel each, whose operands lie in many ways.

use csdfc_plan::operator::{self, Operator};
use csdfc_plan::shape::{Order, Shape};
use csdfc_runtime::bind::{Packing, Primitive, Site, bind};

/// Binds a 1×1 convolution to these operands, given by the shapes of their tensors and the shapes in which they are
/// seen. The last operand is added.
fn check(operands: &[[Shape; 2]], expected: Result<usize, &str>) {
    let conv = operator::Conv {
        filters: 4,
        kernel: [1, 1],
        stride: [1, 1],
        dilation: [1, 1],
        pads: [0; 4],
        groups: 1,
        bias: false,
        pre: None,
        residual: true,
        activation: None,
    };
    let (operator, output) = (Operator::Conv(conv), Shape::image(4, 3, 5));
    let site = Site::whole(&operator, operands.iter().map(|[own, seen]| (own, seen)), &output);
    let seen: Vec<&Shape> = operands.iter().map(|[_, seen]| seen).collect();
    let channels =
        bind(Primitive::new(&operator, &seen), &site).map(|call| match call.constants[0].packing {
            Packing::Conv { conv, .. } => conv.channels,
            ref other => panic!("{other:?}"),
        });
    assert_eq!(channels.map_err(|why| why.to_string()), expected.map_err(String::from));
}

#[test]
fn every_operand_is_read_as_it_lies_or_not_at_all() {
    let image = |c| Shape::image(c, 3, 5);
    let plain = |c| [image(c), image(c)];
    let last = Shape { dims: vec![1, 3, 5, 2], order: Order::ChannelsLast };
    check(&[plain(3), plain(4)], Ok(3));
    check(&[plain(3), [last.clone(), image(2)], plain(1), plain(4)], Ok(6));
    let cut = [Shape::image(2, 5, 3), image(2)];
    let why = "no kernel computes a conv from 1×3×3×5 and 1×2×5×3 seen as 1×2×3×5 and 1×4×3×5 to 1×4×3×5";
    check(&[plain(3), cut, plain(4)], Err(why));
    let vector = [Shape::new([1, 60]), image(4)];
    let why = "no kernel computes a conv from 1×3×3×5 and 1×60 seen as 1×4×3×5 to 1×4×3×5";
    check(&[plain(3), vector], Err(why));
}
