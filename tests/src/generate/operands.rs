//! Random layers that passes turn into operands of convolutions: concats, whose parts the convolutions read, and
//! additions, which the convolutions compute.

use csdfc_network::{Network, Operand};
use csdfc_plan::operator::{
    BatchNorm, Binary, BinaryFunction, Concat, Conv, ElementWise, Function, Operator, Pool, PoolKind,
};

use super::{Choices, columns, operand, partner, push};

/// Adds a convolution that reads a concat, or whose sums are added to another tensor, or both, as far as they fit.
pub(super) fn grow(network: &mut Network, random: &mut Choices<'_>) -> Option<()> {
    let x = operand(network, random);
    if x.shape.rank() != 4 {
        return None;
    }
    let (in_parts, adds) = [(true, false), (false, true), (true, true)][random.pick(0, 2)];
    let mut image = x.clone();
    if in_parts {
        image = concat(network, random, &x)?;
        if random.flag() && !adds {
            image = pool(network, random, image.clone()).unwrap_or(image);
        }
    }
    if random.pick(0, 4) == 0 {
        let activation = random.flag().then_some(Function::Relu);
        let norm = BatchNorm { channels: image.shape.channels(), activation };
        image = push(network, Operator::BatchNorm(norm), vec![image])?;
    }
    if !adds {
        let stride = random.pick(1, 2);
        for _ in 0..random.pick(1, 2) {
            let (filters, side) = (random.pick(1, 4), 2 * random.pick(0, 1) + 1);
            convolution(network, image.clone(), filters, side, stride, random.flag());
        }
        return Some(());
    }
    addition(network, random, &x, image)
}

/// A concat of two to four tensors: existing ones, perhaps the same one twice, and new branches of `x`.
fn concat(network: &mut Network, random: &mut Choices<'_>, x: &Operand) -> Option<Operand> {
    let mut parts = Vec::new();
    for _ in 0..random.pick(2, 4) {
        let part = match random.pick(0, 5) {
            0 => x.clone(),
            1 => partner(network, x, random, columns),
            // If concats follow each other, the convolution reads all their parts.
            2 if parts.len() > 1 => push(network, Operator::Concat(Concat { axis: 1 }), parts.split_off(0))?,
            3 => {
                let (kind, side) = (PoolKind::Max, 3);
                let same = Pool {
                    kind,
                    kernel: [side; 2],
                    stride: [1; 2],
                    dilation: [1; 2],
                    pads: [1; 4],
                    ceil: false,
                };
                push(network, Operator::Pool(same), vec![x.clone()])?
            }
            other => {
                let (filters, side) = (random.pick(1, 3), 2 * (other % 2) + 1);
                convolution(network, x.clone(), filters, side, 1, random.flag())?
            }
        };
        parts.push(part);
    }
    push(network, Operator::Concat(Concat { axis: 1 }), parts)
}

fn pool(network: &mut Network, random: &mut Choices<'_>, x: Operand) -> Option<Operand> {
    let kind = if random.flag() { PoolKind::Max } else { PoolKind::Average { count_include_pad: false } };
    let (side, stride, pad, ceil) = (random.pick(2, 3), random.pick(1, 2), random.pick(0, 1), random.flag());
    let pool = Pool { kind, kernel: [side; 2], stride: [stride; 2], dilation: [1; 2], pads: [pad; 4], ceil };
    push(network, Operator::Pool(pool), vec![x])
}

/// A dense convolution whose padding keeps the size, but for its stride.
fn convolution(
    network: &mut Network,
    image: Operand,
    filters: usize,
    side: usize,
    stride: usize,
    rectified: bool,
) -> Option<Operand> {
    let conv = Conv {
        filters,
        kernel: [side; 2],
        stride: [stride; 2],
        dilation: [1; 2],
        pads: [side / 2; 4],
        groups: 1,
        bias: side == 1,
        pre: None,
        residual: false,
        activation: rectified.then_some(Function::Relu),
    };
    push(network, Operator::Conv(conv), vec![image])
}

/// A convolution of the image and the addition of its sums to `x`, to another convolution's of `x`, or to any tensor of
/// its shape; perhaps rectified, by itself or by a layer behind.
fn addition(network: &mut Network, random: &mut Choices<'_>, x: &Operand, image: Operand) -> Option<()> {
    let (what, side) = (random.pick(0, 2), 2 * random.pick(0, 1) + 1);
    let stride = if what == 1 { random.pick(1, 2) } else { 1 };
    let filters = if what == 1 { random.pick(1, 4) } else { x.shape.channels() };
    let other = match what {
        0 => x.clone(),
        1 => convolution(network, x.clone(), filters, 1, stride, random.flag())?,
        _ => partner(network, x, random, |a, b| a == b),
    };
    let sums = convolution(network, image, filters, side, stride, false)?;
    let operands = if random.flag() { vec![sums, other] } else { vec![other, sums] };
    let activation = random.flag().then_some(Function::Relu);
    let add = Binary { function: BinaryFunction::Add, constant: None, activation };
    let sum = push(network, Operator::Binary(add), operands)?;
    if random.flag() {
        push(network, Operator::ElementWise(ElementWise { function: Function::Relu }), vec![sum]);
    }
    Some(())
}
