//! Convolutions whose filters the network computes.

use csdfc_plan::operator::{Operator, Pad, PadMode};

use super::convolution::{Windows, one_image};
use super::layout::{MAX_PARTS, take};
use super::parts::{part, reshaped, tensor};
use crate::import::builder::Builder;
use crate::import::error::{Fault, fault};
use crate::import::fold::index::Range;
use crate::import::node::{Node, Tensor, Value};

/// `Conv` by filters `[filters, C / groups, y, x]` that the network computes: the sum over all places of a window, each of which
/// is a product of the filters' elements at that place and the pixels that windows have there.
pub(super) fn conv(builder: &mut Builder, node: &Node, filters: &Tensor) -> Result<Tensor, Fault> {
    let x = node.tensor(0)?;
    let input = one_image(x)?;
    let &[count, inner, ky, kx] = filters.dims() else {
        return fault!("its filters are {}; only 2-D convolutions are supported", filters.operand.shape);
    };
    let Windows { stride, dilation, pads, groups, .. } = Windows::new(node, input, [ky, kx])?;
    let channels = x.dims()[1];
    if inner * groups != channels || count % groups != 0 || ky * kx > MAX_PARTS {
        return fault!("filters {} in {groups} groups for {channels} channels", filters.operand.shape);
    }
    let [top, left, bottom, right] = pads.map(|pad| pad as i64);
    let padded = match pads {
        [0, 0, 0, 0] => x.clone(),
        _ => {
            let mode = PadMode::Constant { value: Some(0.0) };
            let (before, after) = (vec![0, 0, top, left], vec![0, 0, bottom, right]);
            builder.layer(node, Operator::Pad(Pad { mode, before, after }), &[x], Vec::new())?
        }
    };
    let size = [0, 1].map(|axis| {
        let room = padded.dims()[axis + 2].checked_sub((([ky, kx][axis]) - 1) * dilation[axis] + 1);
        room.map(|room| room / stride[axis].max(1) + 1)
    });
    let [Some(height), Some(width)] = size else { return fault!("its windows are larger than its input") };
    let is_depthwise = inner == 1 && count == channels;
    let mut sum: Option<Value> = None;
    for (y, x) in (0..ky).flat_map(|y| (0..kx).map(move |x| (y, x))) {
        let range = |start, step: usize, length| Range { start, step: step as i64, length };
        let mut ranges = Range::whole(padded.dims());
        (ranges[2], ranges[3]) =
            (range(y * dilation[0], stride[0], height), range(x * dilation[1], stride[1], width));
        let pixels = Value::from(take(builder, node, &padded, &ranges)?);
        let mut ranges = Range::whole(filters.dims());
        (ranges[2], ranges[3]) = (range(y, 1, 1), range(x, 1, 1));
        let taps = Value::from(take(builder, node, filters, &ranges)?);
        let product = if is_depthwise {
            let taps = reshaped(builder, node, &taps, vec![1, channels, 1, 1])?;
            part(builder, node, "Mul", [pixels, taps])?
        } else {
            let pixels = reshaped(builder, node, &pixels, vec![groups, inner, height * width])?;
            let taps = reshaped(builder, node, &taps, vec![groups, count / groups, inner])?;
            part(builder, node, "MatMul", [taps, pixels])?
        };
        sum = Some(match sum {
            Some(sum) => part(builder, node, "Add", [sum, product])?,
            None => product,
        });
    }
    let Some(sum) = sum else { return fault!("its filters are empty") };
    let mut sum = reshaped(builder, node, &sum, vec![1, count, height, width])?;
    if let Some(bias) = node.input(2) {
        let bias = reshaped(builder, node, bias, vec![count, 1, 1])?;
        sum = part(builder, node, "Add", [sum, bias])?;
    }
    tensor(sum)
}
