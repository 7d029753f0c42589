//! The row table: which rows of an operand each output row reads, by the definition of the operator.

use crate::operator::{ConvTranspose, Operator, Pad, PadMode};
use crate::shape::{Order, Shape};

use super::resample;
use super::span::{NOTHING, Span};

/// The spans of the output rows in one operand, or `None` if every firing needs the operand whole.
///
/// `own` is the shape of the tensor, and `seen` the shape in which the layer sees it. `operand` is its index among
/// `inputs`, the shapes of all operands as seen. The shapes have been checked against the operator.
pub(super) fn spans(
    operator: &Operator,
    own: &Shape,
    inputs: &[&Shape],
    operand: usize,
    output: &Shape,
) -> Option<Vec<Span>> {
    let seen = inputs[operand];
    // The rows of an operand are those of its tensor only if a view between keeps them as they are.
    let size = |shape: &Shape| (shape.rows(), shape.row_elements());
    let is_kept = size(own) == size(seen)
        && match (own.is_image(), seen.is_image()) {
            (true, true) => own.channels() == seen.channels(),
            _ => lies_in_order(own) && lies_in_order(seen),
        };
    let (Some(axis), Some(_), Some(out_axis)) = (seen.row_axis(), own.row_axis(), output.row_axis()) else {
        return None;
    };
    // A permutation of an image's dimensions keeps its rows, if they stay rows.
    let is_row = match operator {
        Operator::Transpose(transpose) => transpose.perm.get(out_axis) == Some(&axis),
        _ => axis == out_axis,
    };
    if !is_kept || !is_row || output.rows() == 1 {
        return None;
    }
    let (rows, height) = (seen.rows() as i64, output.rows() as i64);
    let same = (rows == height).then(|| (0..height).map(|y| (y, y + 1)).collect());
    match operator {
        Operator::Conv(conv) if conv.residual && operand + 1 == inputs.len() => same,
        Operator::Conv(conv) => {
            Some(windows(height, conv.kernel[0], conv.stride[0], conv.dilation[0], conv.pads[0]))
        }
        Operator::Pool(pool) => {
            Some(windows(height, pool.kernel[0], pool.stride[0], pool.dilation[0], pool.pads[0]))
        }
        Operator::ConvTranspose(conv) => Some(conv_transpose(conv, height)),
        // Neighbours of a channel are other rows.
        Operator::Lrn(_) if seen.channel_axis() == Some(axis) => None,
        // It works on each channel separately, and here a row is one channel.
        Operator::InstanceNorm(_) if seen.channel_axis() == Some(axis) => same,
        Operator::ElementWise(_)
        | Operator::BatchNorm(_)
        | Operator::Lrn(_)
        | Operator::Gemm(_)
        | Operator::Transpose(_)
        | Operator::Convert => same,
        // Dimensions are counted from the last, so that axes of other ranks are not the same.
        Operator::Binary(_) | Operator::Where(_) | Operator::MatMul if seen.rank() != output.rank() => None,
        Operator::Binary(_) | Operator::Where(_) => same,
        Operator::MatMul | Operator::Recurrent(_) if operand == 0 => same,
        Operator::MatMul | Operator::Recurrent(_) => None,
        Operator::Concat(concat) if concat.axis == axis => {
            let before: i64 = inputs[..operand].iter().map(|x| x.rows() as i64).sum();
            let within = |y: i64| before <= y && y < before + rows;
            Some(
                (0..height).map(|y| if within(y) { (y - before, y - before + 1) } else { NOTHING }).collect(),
            )
        }
        Operator::Concat(_) => same,
        Operator::Slice(slice) => {
            let (start, step) = (slice.starts[axis] as i64, slice.steps[axis]);
            Some((0..height).map(|y| (start + y * step, start + y * step + 1)).collect())
        }
        Operator::Pad(pad) => Some((0..height).map(|y| padded(pad, axis, rows, y)).collect()),
        Operator::Resize(resize) => Some((0..height).map(|y| resample::span(resize, rows, y)).collect()),
        Operator::Softmax(softmax) if !softmax.axes.contains(&axis) => same,
        Operator::Reduce(reduce) if !reduce.axes.contains(&axis) => same,
        Operator::ArgMax(arg_max) if arg_max.axis != axis => same,
        Operator::TopK(top) if top.axis != axis => same,
        Operator::GatherElements(gather) if gather.axis != axis => same,
        Operator::DepthToSpace(blocks) => {
            let side = blocks.block as i64;
            Some((0..height).map(|y| (y / side, y / side + 1)).collect())
        }
        Operator::SpaceToDepth(blocks) => {
            let side = blocks.block as i64;
            Some((0..height).map(|y| (y * side, (y + 1) * side)).collect())
        }
        Operator::Input(_)
        | Operator::Softmax(_)
        | Operator::Reduce(_)
        | Operator::ArgMax(_)
        | Operator::TopK(_)
        | Operator::NonMaxSuppression(_)
        | Operator::GridSample(_)
        | Operator::GatherElements(_)
        | Operator::MaxUnpool(_)
        | Operator::InstanceNorm(_) => None,
    }
}

/// Whether the elements of a tensor lie in the order of its dimensions. Those of an image of several channels do only
/// if the channels are last.
fn lies_in_order(shape: &Shape) -> bool {
    !shape.is_image() || shape.order == Order::ChannelsLast || shape.channels() == 1
}

/// Windows count from their first to their last row, padding and the gaps of a dilation included.
fn windows(height: i64, kernel: usize, stride: usize, dilation: usize, top: usize) -> Vec<Span> {
    let extent = (kernel as i64 - 1) * dilation as i64 + 1;
    (0..height).map(|y| y * stride as i64 - top as i64).map(|first| (first, first + extent)).collect()
}

/// Input row i adds to output rows `i·stride − top + k·dilation`. As with windows, the gaps of a dilation count. Where
/// strides are wider than the kernel, no input row adds to some output rows.
fn conv_transpose(conv: &ConvTranspose, height: i64) -> Vec<Span> {
    let [stride, dilation, kernel] =
        [conv.stride[0], conv.dilation[0], conv.kernel[0]].map(|value| value as i64);
    let span = |y: i64| {
        let at = y + conv.pads[0] as i64;
        let first = (at - (kernel - 1) * dilation + stride - 1).div_euclid(stride);
        let end = at.div_euclid(stride) + 1;
        if first < end { (first, end) } else { NOTHING }
    };
    (0..height).map(span).collect()
}

/// Cropped rows need no care: the rows that are left begin and end at them, and nothing is mirrored beyond these (rule
/// 2).
fn padded(pad: &Pad, axis: usize, rows: i64, y: i64) -> Span {
    let (at, last) = (y - pad.before[axis], rows - 1);
    let row = match pad.mode {
        PadMode::Constant { .. } if !(0..rows).contains(&at) => return NOTHING,
        PadMode::Constant { .. } | PadMode::Edge => at.clamp(0, last),
        PadMode::Reflect => last - (last - at.abs()).abs(),
    };
    (row, row + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operator::{
        ArgMax, Binary, BinaryFunction, Concat, DepthToSpace, InstanceNorm, Lrn, Reduce, ReduceFunction,
        Slice, Softmax, SpaceToDepth, Transpose,
    };

    fn table(operator: &Operator, inputs: &[&Shape], operand: usize, output: &Shape) -> Option<Vec<Span>> {
        spans(operator, inputs[operand], inputs, operand, output)
    }

    /// Every input row and filter row, scattered.
    #[test]
    fn transposed_convolutions_scatter() {
        for (kernel, stride, dilation, top, rows) in [
            (3, 2, 1, 1, 5),
            (2, 2, 1, 0, 4),
            (4, 2, 1, 1, 6),
            (2, 3, 1, 0, 4),
            (1, 3, 1, 2, 5),
            (3, 2, 3, 2, 7),
            (2, 2, 2, 0, 5),
        ] {
            let conv = ConvTranspose {
                filters: 1,
                kernel: [kernel; 2],
                stride: [stride; 2],
                dilation: [dilation; 2],
                pads: [top; 4],
                output_padding: [0; 2],
                groups: 1,
                bias: false,
                activation: None,
            };
            let height = (rows - 1) * stride + (kernel - 1) * dilation + 1 - 2 * top;
            let mut expected = vec![NOTHING; height];
            for i in 0..rows {
                for k in 0..kernel {
                    let at = (i * stride + k * dilation).checked_sub(top);
                    if let Some(span) = at.and_then(|y| expected.get_mut(y)) {
                        *span = (span.0.min(i as i64), span.1.max(i as i64 + 1));
                    }
                }
            }
            for (made, read) in conv_transpose(&conv, height as i64).into_iter().zip(expected) {
                let clipped = (made.0.clamp(0, rows as i64), made.1.clamp(0, rows as i64));
                let covers = clipped.0 <= read.0 && read.1 <= clipped.1;
                // The gaps of a dilation count.
                let in_gaps = dilation > 1 && (covers || read == NOTHING);
                assert!(made == read || clipped == read || in_gaps, "{conv:?}");
            }
        }
    }

    #[test]
    fn other_operators_read_what_onnx_says() {
        let image = |h| Shape::image(4, h, 6);
        let concat = Operator::Concat(Concat { axis: 2 });
        let inputs = [&image(2), &image(3)];
        assert_eq!(table(&concat, &inputs, 1, &image(5)).unwrap()[1..], [NOTHING, (0, 1), (1, 2), (2, 3)]);
        let second = table(&concat, &[&image(2), &image(1), &image(2)], 1, &image(5)).unwrap();
        assert_eq!(second, [NOTHING, NOTHING, (0, 1), NOTHING, NOTHING]);
        let slice = |start, step, length| {
            let (starts, steps, lengths) = (vec![0, 0, start, 0], vec![1, 1, step, 1], vec![1, 4, length, 6]);
            Operator::Slice(Slice { starts, steps, lengths })
        };
        assert_eq!(table(&slice(1, 2, 3), &[&image(7)], 0, &image(3)).unwrap(), [(1, 2), (3, 4), (5, 6)]);
        assert_eq!(table(&slice(6, -3, 3), &[&image(7)], 0, &image(3)).unwrap(), [(6, 7), (3, 4), (0, 1)]);
        let pad = |mode| Operator::Pad(Pad { mode, before: vec![0, 0, 2, 0], after: vec![0, 0, -1, 0] });
        let rows = |mode| table(&pad(mode), &[&image(4)], 0, &image(5)).unwrap();
        assert_eq!(rows(PadMode::Constant { value: None }), [NOTHING, NOTHING, (0, 1), (1, 2), (2, 3)]);
        assert_eq!(rows(PadMode::Edge)[..3], [(0, 1), (0, 1), (0, 1)]);
        assert_eq!(rows(PadMode::Reflect)[..3], [(2, 3), (1, 2), (0, 1)]);
        // Two rows are cropped at one end, and rows are made again from what is left.
        let pad = |mode, before, after| {
            let (before, after) = (vec![0, 0, before, 0], vec![0, 0, after, 0]);
            let height = (6 + before[2] + after[2]) as usize;
            table(&Operator::Pad(Pad { mode, before, after }), &[&image(6)], 0, &image(height)).unwrap()
        };
        let read = |rows: &[i64]| rows.iter().map(|row| (*row, row + 1)).collect::<Vec<_>>();
        assert_eq!(pad(PadMode::Edge, -2, 2), read(&[2, 3, 4, 5, 5, 5]));
        assert_eq!(pad(PadMode::Reflect, -2, 2), read(&[2, 3, 4, 5, 4, 3]));
        assert_eq!(pad(PadMode::Edge, 2, -2), read(&[0, 0, 0, 1, 2, 3]));
        assert_eq!(pad(PadMode::Reflect, 2, -2), read(&[2, 1, 0, 1, 2, 3]));
        assert_eq!(pad(PadMode::Constant { value: None }, -2, -1), read(&[2, 3, 4]));
        let blocks = Operator::DepthToSpace(DepthToSpace { block: 2, depth_first: true });
        let finer = Shape::image(1, 4, 12);
        assert_eq!(table(&blocks, &[&image(2)], 0, &finer).unwrap(), [(0, 1), (0, 1), (1, 2), (1, 2)]);
        let blocks = Operator::SpaceToDepth(SpaceToDepth { block: 3 });
        assert_eq!(table(&blocks, &[&image(6)], 0, &Shape::image(36, 2, 2)).unwrap(), [(0, 3), (3, 6)]);
        assert_eq!(windows(3, 3, 2, 4, 1), [(-1, 8), (1, 10), (3, 12)]);
        // Rows of a reshape that mixes rows are not those of its tensor.
        let (own, seen) = (Shape::image(4, 6, 3), Shape::image(2, 6, 6));
        assert_eq!(spans(&concat, &own, &[&seen], 0, &seen), None);
    }

    /// Over the rows, all are read for each; over another axis, each row by itself.
    #[test]
    fn what_is_reduced_over_another_axis_keeps_its_rows() {
        let (image, function) = (Shape::image(4, 3, 6), ReduceFunction::Sum);
        let each = Some(vec![(0, 1), (1, 2), (2, 3)]);
        for axis in 1..4 {
            let expected = each.clone().filter(|_| axis != 2);
            let reduce = Reduce { function: function.clone(), axes: vec![axis], keep_dims: true };
            let arg_max = ArgMax { axis, keep_dims: true, select_last: false, floats: false };
            for operator in [Operator::Reduce(reduce), Operator::ArgMax(arg_max)] {
                assert_eq!(table(&operator, &[&image], 0, &image), expected, "{operator:?}");
            }
        }
    }

    /// By the definition: a row of the output has elements of one row of the input alone.
    #[test]
    fn transposes_keep_rows_that_stay_rows() {
        let shape = |dims: &[usize], order| Shape { dims: dims.to_vec(), order };
        let orders = [Order::ChannelsFirst, Order::ChannelsLast];
        for (perm, from, to) in
            [[0, 1, 2, 3], [0, 1, 3, 2], [0, 2, 1, 3], [0, 2, 3, 1], [0, 3, 1, 2], [0, 3, 2, 1]]
                .into_iter()
                .flat_map(|perm| orders.map(|from| orders.map(|to| (perm, from, to))).concat())
        {
            let x = shape(&[1, 2, 3, 4], from);
            let y = shape(&perm.map(|axis| x.dims[axis]), to);
            let (row, made) = (x.row_axis().unwrap(), y.row_axis().unwrap());
            let mut read = vec![NOTHING; y.rows()];
            for index in 0..24 {
                let at = [0, index / 12, index / 4 % 3, index % 4];
                let span = &mut read[at[perm[made]]];
                let from = at[row] as i64;
                *span = if *span == NOTHING {
                    (from, from + 1)
                } else {
                    (span.0.min(from), span.1.max(from + 1))
                };
            }
            let expected = Some(read).filter(|rows| rows.iter().all(|(start, end)| start + 1 == *end));
            let transpose = Operator::Transpose(Transpose { perm: perm.to_vec(), order: to });
            assert_eq!(table(&transpose, &[&x], 0, &y), expected, "{transpose:?} of {x:?}");
        }
    }

    #[test]
    fn rows_of_other_ranks() {
        let softmax = |axis| Operator::Softmax(Softmax { axes: vec![axis], log: false });
        let lines = Shape::new([1, 3, 8]);
        let each = Some(vec![(0, 1), (1, 2), (2, 3)]);
        let spans = |operator: &Operator, own: &Shape, seen: &Shape| spans(operator, own, &[seen], 0, seen);
        assert_eq!(spans(&softmax(2), &lines, &lines), each);
        assert_eq!(spans(&softmax(1), &lines, &lines), None);
        assert_eq!(spans(&softmax(1), &Shape::new([3, 8]), &Shape::new([3, 8])), each);
        // Seen as the image of one channel that it is, seen as an image of three channels, and the other way round.
        assert_eq!(spans(&softmax(3), &lines, &Shape::image(1, 3, 8)), each);
        assert_eq!(spans(&softmax(3), &lines, &Shape::image(8, 3, 1)), None);
        assert_eq!(spans(&softmax(2), &Shape::image(1, 3, 8), &lines), each);
        assert_eq!(spans(&softmax(2), &Shape::image(8, 3, 1), &lines), None);
        let last = Shape { dims: vec![1, 3, 2, 4], order: Order::ChannelsLast };
        assert_eq!(spans(&softmax(2), &last, &lines), each);
        assert_eq!(spans(&softmax(2), &Shape::new([3, 8]), &lines), each);
        // A tensor of fewer dimensions repeats over the rows of an image; its own dimension is the image's columns.
        let image = Shape { dims: vec![1, 3, 3, 8], order: Order::ChannelsLast };
        let add = Binary { function: BinaryFunction::Add, constant: None, activation: None };
        let operands = [&image, &lines];
        for operator in [Operator::Binary(add), Operator::MatMul] {
            assert_eq!(super::spans(&operator, &lines, &operands, 1, &image), None);
            assert_eq!(super::spans(&operator, &image, &operands, 0, &image), each);
        }
        // Channels of rank 3 are rows.
        let lrn = Operator::Lrn(Lrn { size: 3, alpha: 1.0, beta: 1.0, bias: 1.0 });
        assert_eq!(spans(&lrn, &lines, &lines), None);
        let norm = Operator::InstanceNorm(InstanceNorm { channels: 3, epsilon: 1e-5 });
        assert_eq!(spans(&norm, &lines, &lines), each);
        let image = Shape::image(3, 4, 5);
        assert_eq!(spans(&norm, &image, &image), None);
    }
}
