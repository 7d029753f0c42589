//! `RotaryEmbedding`: the positions of tokens, as angles.

use super::layout::{joined, take};
use super::parts::{cut, dims, part, reshaped, tensor, transposed};
use crate::import::builder::Builder;
use crate::import::error::{Fault, fault};
use crate::import::fold::index::Range;
use crate::import::node::{Node, Tensor, Value};

/// `RotaryEmbedding`: pairs of elements of each head, turned by the angles of their position.
pub(super) fn rotary_embedding(builder: &mut Builder, node: &Node) -> Result<Tensor, Fault> {
    let x = node.tensor(0)?.clone();
    let own = x.dims().to_vec();
    let is_line = own.len() == 3;
    let x = match own[..] {
        [batch, rows, all] => {
            let heads = usize::try_from(node.int("num_heads", 0)?).unwrap_or(0);
            if heads == 0 || all % heads != 0 {
                return fault!("its operand has {all} elements for {heads} heads");
            }
            let x = builder.reshape(node, &x, vec![batch, rows, heads, all / heads])?;
            transposed(builder, node, &x.into(), vec![0, 2, 1, 3])?
        }
        [_, _, _, _] => x.into(),
        _ => return fault!("its operand has dimensions {own:?}, not three or four"),
    };
    let &[batch, heads, rows, size] = dims(&x) else { return fault!("its operand has no heads") };
    let turned = match usize::try_from(node.int("rotary_embedding_dim", 0)?) {
        Ok(0) => size,
        Ok(turned) if turned <= size && turned % 2 == 0 => turned,
        _ => return fault!("it cannot turn these elements of {size}"),
    };
    let half = turned / 2;
    let first = cut(builder, node, &x, 3, [0, turned])?;
    let [a, b] = match node.flag("interleaved", false)? {
        true => [0, 1].map(|start| every_second(builder, node, &first, start)),
        false => [[0, half], [half, turned]].map(|range| cut(builder, node, &first, 3, range)),
    };
    let (a, b) = (a?, b?);
    let mut angles = |index: usize| {
        let Some(table) = node.input(index).cloned() else { return fault!("operand {index} is missing") };
        let of_rows = match node.input(3).cloned() {
            Some(positions) => part(builder, node, "Gather", [table, positions])?,
            None => table,
        };
        let count = dims(&of_rows).first().copied().unwrap_or(1);
        reshaped(builder, node, &of_rows, vec![count, 1, rows, half])
    };
    let (cosines, sines) = (angles(1)?, angles(2)?);
    let mut product = |x: &Value, by: &Value| part(builder, node, "Mul", [x.clone(), by.clone()]);
    let [along_a, across_a, across_b, along_b] =
        [product(&a, &cosines)?, product(&b, &sines)?, product(&a, &sines)?, product(&b, &cosines)?];
    let a = tensor(part(builder, node, "Sub", [along_a, across_a])?)?;
    let b = tensor(part(builder, node, "Add", [across_b, along_b])?)?;
    let mut made = match node.flag("interleaved", false)? {
        true => {
            let pairs = [a, b].map(|x| builder.reshape(node, &x, vec![batch, heads, rows, half, 1]));
            let [a, b] = pairs;
            let joined = joined(builder, node, 4, &[a?, b?])?;
            builder.reshape(node, &joined, vec![batch, heads, rows, turned])?
        }
        false => joined(builder, node, 3, &[a, b])?,
    };
    if turned < size {
        let rest = tensor(cut(builder, node, &x, 3, [turned, size])?)?;
        made = joined(builder, node, 3, &[made, rest])?;
    }
    match is_line {
        true => {
            let made = tensor(transposed(builder, node, &made.into(), vec![0, 2, 1, 3])?)?;
            builder.reshape(node, &made, own)
        }
        false => Ok(made),
    }
}

/// Every second element of the last of four dimensions.
fn every_second(builder: &mut Builder, node: &Node, x: &Value, start: usize) -> Result<Value, Fault> {
    let x = tensor(x.clone())?;
    let mut ranges = Range::whole(x.dims());
    let length = (x.dims()[3] - start).div_ceil(2);
    ranges[3] = Range { start, step: 2, length };
    Ok(take(builder, node, &x, &ranges)?.into())
}
