//! Global pools that begin with rows.

use csdfc_plan::operator::{Function, Operator, Reduce, ReduceFunction, Transpose};
use csdfc_plan::shape::{Order, Shape};

use super::super::{pools, rewrite};
use super::{Builder, Fusion, becomes, normalise, same, text};
use crate::{Network, Operand};

/// A global pool of an image of a ReLU, and whether its map is another output.
fn pooled(function: ReduceFunction, [channels, height, width]: [usize; 3], is_output: bool) -> Network {
    let mut b = Builder::default();
    let x = b.input(&[1, channels, height, width]);
    let x = b.function(Function::Relu, x);
    let y = b.add(Operator::Reduce(Reduce { function, axes: vec![2, 3], keep_dims: true }), &[x]);
    b.output(y);
    if is_output {
        b.output(x);
    }
    b.0
}

#[test]
fn large_images_are_pooled_by_rows() {
    for function in [ReduceFunction::Mean, ReduceFunction::Max, ReduceFunction::Lp { p: 2 }] {
        becomes(
            &pooled(function, [2, 24, 32], false),
            Fusion::Paper,
            "0 input [0] () -> t0 0
            1 Relu [1] (t0) -> t1 0
            2_rows pool [] (t1) -> t2_rows 0
            2 reduce [2] (t2_rows) -> t2 0",
        );
    }
    // Over the rows of one column alone.
    let mut network = pooled(ReduceFunction::Mean, [2, 480, 1], false);
    network.layers[2].operator =
        Operator::Reduce(Reduce { function: ReduceFunction::Mean, axes: vec![2], keep_dims: true });
    assert!(text(&same(&network, Fusion::Full)).contains("2_rows pool"));
    // Of a line, several rows at a time; of a very large image, in steps.
    for (image, windows) in [([2, 480, 1], vec![[20, 1]]), ([1, 600, 800], vec![[1, 800], [24, 1]])] {
        let network = same(&pooled(ReduceFunction::Mean, image, false), Fusion::Full);
        let kernel = |operator: &Operator| match operator {
            Operator::Pool(pool) => Some(pool.kernel),
            _ => None,
        };
        let kernels: Vec<[usize; 2]> =
            network.layers.iter().filter_map(|layer| kernel(&layer.operator)).collect();
        assert_eq!(kernels, windows);
    }
}

#[test]
fn images_in_the_other_order_are_pooled_by_rows() {
    let mut b = Builder::default();
    let x = b.input(&[1, 2, 24, 32]);
    let x = b.function(Function::Relu, x);
    let y = b.add(Operator::Transpose(Transpose::new([0, 2, 3, 1])), &[x]);
    let reduce = Reduce { function: ReduceFunction::Mean, axes: vec![1, 2], keep_dims: true };
    let y = b.add(Operator::Reduce(reduce), &[y]);
    b.output(y);
    let of_view = |network: &mut Network| {
        // The transpose is a view, as import leaves it.
        let shape = Shape { dims: vec![1, 24, 32, 2], order: Order::ChannelsLast };
        network.layers[3].inputs[0] = Operand { layer: x, shape };
        network.layers[3].shape.order = Order::ChannelsLast;
        network.outputs[0].operand.shape.order = Order::ChannelsLast;
    };
    of_view(&mut b.0);
    let network = pools::in_two(rewrite::drop_dead(b.0));
    let [pool, reduce] = &network.layers[2..] else { panic!("{}", text(&network)) };
    assert_eq!((&pool.inputs[0].shape, &pool.shape), (&Shape::image(2, 24, 32), &Shape::image(2, 24, 1)));
    let seen = Shape { dims: vec![1, 24, 1, 2], order: Order::ChannelsLast };
    assert_eq!((reduce.inputs[0].layer.0, &reduce.inputs[0].shape), (2, &seen));
}

#[test]
fn other_pools_stay() {
    let mean = || ReduceFunction::Mean;
    for network in [
        pooled(mean(), [2, 24, 32], true),
        pooled(ReduceFunction::LogSum, [2, 24, 32], false),
        pooled(mean(), [2, 14, 14], false),
        pooled(mean(), [2, 479, 1], false),
    ] {
        let kinds = text(&normalise(network, Fusion::Full));
        assert!(!kinds.contains("pool"), "{kinds}");
    }
}
