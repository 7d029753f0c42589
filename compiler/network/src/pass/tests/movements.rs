//! Movements of elements as models spell them.

use csdfc_plan::operator::{
    Concat, Coordinates, DepthToSpace, Operator, Ratio, Resize, ResizeMode, Rounding, Scale, SpaceToDepth,
    Transpose,
};
use csdfc_plan::shape::{Order, Shape};

use super::{Builder, Fusion, same};
use crate::{LayerId, Network, NetworkOutput, Operand};

/// A layer of a spelling: the shape in which it sees its operand, and what it does.
enum Moved {
    Transpose(&'static [usize], &'static [usize]),
    /// A nearest resize of an image by whole numbers, as which Expand and Gather are imported.
    Repeat([usize; 4], [usize; 2]),
}

impl Builder {
    /// A layer that sees its operand in this shape.
    pub(super) fn of_view(&mut self, operator: Operator, x: LayerId, seen: Shape) -> LayerId {
        let shape = crate::operators::output_shape(&operator, std::slice::from_ref(&seen)).unwrap();
        let id = self.push(operator, vec![x], Vec::new(), shape);
        self.0.layers[id.0].inputs[0].shape = seen;
        id
    }

    pub(super) fn transpose(&mut self, x: LayerId, seen: Shape, perm: &[usize]) -> LayerId {
        self.of_view(Operator::Transpose(Transpose::new(perm)), x, seen)
    }
}

/// An image of 4 channels, 6 rows and 8 columns that goes through these layers. The output is the last tensor seen in
/// these dimensions. If `last`, the layers find the image channels-last, and the output is channels-first again.
fn spelt(last: bool, layers: &[Moved], seen: &[usize]) -> Network {
    let mut b = Builder::default();
    let x = b.input(&[1, 4, 6, 8]);
    let mut y = b.function(csdfc_plan::operator::Function::Relu, x);
    if last {
        // As importing moves a channels-last image before it is cut into other dimensions.
        let seen = Shape { dims: vec![1, 6, 8, 4], order: Order::ChannelsLast };
        y = b.transpose(y, seen, &[0, 1, 2, 3]);
    }
    for layer in layers {
        y = match layer {
            Moved::Transpose(dims, perm) => b.transpose(y, Shape::new(*dims), perm),
            Moved::Repeat(dims, times) => {
                let ratio = |at: usize| {
                    let under = dims[at + 2] as u32;
                    Scale::Ratio(Ratio { over: under * times[at] as u32, under })
                };
                let resize = Resize {
                    mode: ResizeMode::Nearest { rounding: Rounding::Floor },
                    coordinates: Coordinates::Asymmetric,
                    scales: [ratio(0), ratio(1)],
                    size: [dims[2] * times[0], dims[3] * times[1]],
                };
                b.of_view(Operator::Resize(resize), y, Shape::new(*dims))
            }
        };
    }
    if last {
        y = b.transpose(y, Shape::new(seen), &[0, 3, 1, 2]);
    }
    let shape = if last { b.0.layer(y).shape.clone() } else { Shape::new(seen) };
    let name = b.0.layer(y).output.clone();
    b.0.outputs.push(NetworkOutput::new(name, Operand { layer: y, shape }));
    b.0
}

/// The operators that move elements by rows after the passes.
fn becomes(network: &Network) -> Vec<Operator> {
    let after = same(network, Fusion::Paper);
    let nodes: Vec<&String> = after.layers.iter().flat_map(|layer| &layer.onnx_nodes).collect();
    for node in network.layers.iter().flat_map(|layer| &layer.onnx_nodes) {
        assert!(nodes.contains(&node), "node {node} is lost");
    }
    after.layers.into_iter().map(|layer| layer.operator).skip(2).collect()
}

fn depth_to_space(depth_first: bool) -> Vec<Operator> {
    vec![Operator::DepthToSpace(DepthToSpace { block: 2, depth_first })]
}

#[test]
fn pixel_shuffles_are_depth_to_space() {
    let is = |last, dims: &'static [usize], perm, seen: &[usize], depth_first| {
        let network = spelt(last, &[Moved::Transpose(dims, perm)], seen);
        assert_eq!(becomes(&network), depth_to_space(depth_first), "{dims:?} {perm:?}");
    };
    is(false, &[1, 2, 2, 1, 6, 8], &[0, 3, 4, 1, 5, 2], &[1, 1, 12, 16], false);
    is(false, &[1, 1, 2, 2, 6, 8], &[0, 1, 4, 2, 5, 3], &[1, 1, 12, 16], false);
    is(true, &[1, 6, 8, 2, 2, 1], &[0, 1, 3, 2, 4, 5], &[1, 12, 16, 1], false);
    // Several channels: the order of the modes differs.
    let mut b = Builder::default();
    let x = b.input(&[1, 12, 2, 3]);
    for (dims, perm, depth_first) in
        [([1, 2, 2, 3, 2, 3], [0, 3, 4, 1, 5, 2], true), ([1, 3, 2, 2, 2, 3], [0, 1, 4, 2, 5, 3], false)]
    {
        let mut b = Builder(b.0.clone());
        let y = b.transpose(x, Shape::new(dims), &perm);
        let operand = Operand { layer: y, shape: Shape::image(3, 4, 6) };
        b.0.outputs.push(NetworkOutput::new("y", operand));
        let operator = same(&b.0, Fusion::Paper).layers.pop().unwrap().operator;
        assert_eq!(operator, depth_to_space(depth_first)[0]);
    }
}

#[test]
fn squares_that_become_channels_are_space_to_depth() {
    let block = || Operator::SpaceToDepth(SpaceToDepth { block: 2 });
    let dims: &[usize] = &[1, 4, 3, 2, 4, 2];
    let by = |perm| becomes(&spelt(false, &[Moved::Transpose(dims, perm)], &[1, 16, 3, 4]));
    assert_eq!(by(&[0, 3, 5, 1, 2, 4]), [block()]);
    // The channels vary slowest, or columns before rows: channels are put into that order afterwards.
    for perm in [&[0, 1, 3, 5, 2, 4], &[0, 5, 3, 1, 2, 4]] {
        let operators = by(perm);
        assert_eq!(operators[0], block());
        assert_eq!(operators.last(), Some(&Operator::Concat(Concat { axis: 1 })));
        assert_eq!(operators.len(), 1 + 4 + 1);
    }
    let last = spelt(true, &[Moved::Transpose(&[1, 3, 2, 4, 2, 4], &[0, 1, 3, 2, 4, 5])], &[1, 3, 4, 16]);
    assert_eq!(becomes(&last), [block()]);
    // In two steps.
    let steps = [
        Moved::Transpose(&[1, 4, 3, 2, 4, 2], &[0, 1, 2, 4, 3, 5]),
        Moved::Transpose(&[1, 4, 12, 4], &[0, 3, 1, 2]),
    ];
    assert_eq!(becomes(&spelt(false, &steps, &[1, 16, 3, 4])), [block()]);
}

#[test]
fn channel_shuffles_are_slices_of_channels() {
    for (last, dims, perm, seen) in [
        (false, [1, 2, 2, 6, 8].as_slice(), [0, 2, 1, 3, 4].as_slice(), [1, 4, 6, 8]),
        (false, &[2, 2, 6, 8], &[1, 0, 2, 3], [1, 4, 6, 8]),
        (false, &[2, 2, 48], &[1, 0, 2], [1, 4, 6, 8]),
        (true, &[1, 6, 8, 2, 2], &[0, 1, 2, 4, 3], [1, 6, 8, 4]),
    ] {
        let operators = becomes(&spelt(last, &[Moved::Transpose(dims, perm)], &seen));
        let kinds: Vec<&str> = operators.iter().map(Operator::kind).collect();
        assert_eq!(kinds, ["slice", "slice", "concat"], "{dims:?} {perm:?}");
    }
}

#[test]
fn repeated_rows_and_columns_are_a_resize() {
    let steps = [Moved::Repeat([1, 24, 1, 8], [2, 1]), Moved::Repeat([1, 384, 1, 1], [1, 3])];
    let last = [Moved::Repeat([1, 6, 1, 32], [2, 1]), Moved::Repeat([1, 96, 1, 4], [3, 1])];
    for network in [spelt(false, &steps, &[1, 4, 12, 24]), spelt(true, &last, &[1, 12, 24, 4])] {
        let operators = becomes(&network);
        let [Operator::Resize(resize)] = operators.as_slice() else { panic!("{operators:?}") };
        assert_eq!(resize.size, [12, 24]);
    }
    // Channels are repeated too: 0, 0 1, 1 2, 2 3, 3.
    let steps = [Moved::Repeat([1, 1, 4, 48], [2, 1])];
    let kinds: Vec<&str> = becomes(&spelt(false, &steps, &[1, 8, 6, 8])).iter().map(Operator::kind).collect();
    assert_eq!(kinds, ["slice"; 5].into_iter().chain(["concat"]).collect::<Vec<_>>());
}

/// What mixes rows stays, and so does what goes by rows already.
#[test]
fn other_movements_stay() {
    for (dims, perm, seen) in [
        // Rows and columns change places.
        (&[1, 4, 6, 8][..], &[0, 1, 3, 2][..], &[1, 4, 8, 6][..]),
        // Channels become columns only.
        (&[1, 2, 2, 6, 8], &[0, 1, 3, 4, 2], &[1, 2, 6, 16]),
        // The halves of the rows change places.
        (&[1, 4, 2, 3, 8], &[0, 1, 3, 2, 4], &[1, 4, 6, 8]),
    ] {
        let operators = becomes(&spelt(false, &[Moved::Transpose(dims, perm)], seen));
        assert_eq!(operators, [Operator::Transpose(Transpose::new(perm))]);
    }
    let resized = becomes(&spelt(false, &[Moved::Repeat([1, 4, 6, 8], [2, 2])], &[1, 4, 12, 16]));
    assert!(matches!(resized.as_slice(), [Operator::Resize(_)]));
}
