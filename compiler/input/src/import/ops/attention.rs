//! `Attention`: products of queries and keys, softmax, and the product with values.

use rten_onnx::onnx::DataType;

use super::layout::joined;
use super::logic;
use super::parts::{dims, number, part, reshaped, transposed};
use crate::import::builder::Builder;
use crate::import::constant::{Constant, Data};
use crate::import::error::{Fault, fault};
use crate::import::node::{Node, Value};

/// `Attention`: its output, the keys and values with those of the past, and the scores.
pub(super) fn attention(builder: &mut Builder, node: &Node) -> Result<Vec<Value>, Fault> {
    if node.input(6).is_some() {
        return fault!("the number of its keys is known only at run time (nonpad_kv_seqlen)");
    }
    let is_line = node.input(0).is_some_and(|q| dims(q).len() == 3);
    let [heads_of_q, heads_of_kv] = ["q_num_heads", "kv_num_heads"].map(|name| node.int(name, 0));
    let q = heads(builder, node, 0, heads_of_q?)?;
    let heads_of_kv = heads_of_kv?;
    let k = heads(builder, node, 1, heads_of_kv)?;
    let k = after_past(builder, node, 4, k)?;
    let v = heads(builder, node, 2, heads_of_kv)?;
    let v = after_past(builder, node, 5, v)?;
    let ([batch, count, rows, size], [_, groups, columns, _]) = (four(&q)?, four(&k)?);
    if groups == 0 || count % groups != 0 {
        return fault!("{count} heads of queries and {groups} of keys");
    }
    let scale = match node.float("scale", 0.0)? {
        0.0 => 1.0 / (size as f32).sqrt(),
        scale => scale,
    };
    let q = part(builder, node, "Mul", [q, number(scale)])?;
    // Queries of heads that share their keys are more rows of one matrix.
    let shared = vec![batch, groups, count / groups * rows, size];
    let q = reshaped(builder, node, &q, shared)?;
    let turned = transposed(builder, node, &k, vec![0, 1, 3, 2])?;
    let scores = part(builder, node, "MatMul", [q, turned])?;
    let scores = reshaped(builder, node, &scores, vec![batch, count, rows, columns])?;
    let capped = match node.float("softcap", 0.0)? {
        0.0 => scores.clone(),
        cap => {
            let x = part(builder, node, "Div", [scores.clone(), number(cap)])?;
            let x = part(builder, node, "Tanh", [x])?;
            part(builder, node, "Mul", [x, number(cap)])?
        }
    };
    let past = node.input(4).map_or(0, |past| dims(past).get(2).copied().unwrap_or(0));
    let (masked, reached) = masked(builder, node, capped.clone(), past)?;
    let mut shares = part(builder, node, "Softmax", [masked.clone()])?;
    if let Some(reached) = reached {
        // A row that may see no key has no shares.
        shares = part(builder, node, "Where", [reached, shares, number(0.0)])?;
    }
    let asked = match node.int("qk_matmul_output_mode", 0)? {
        0 => scores,
        1 => capped,
        2 => masked,
        _ => shares.clone(),
    };
    let [_, _, _, depth] = four(&v)?;
    let shares = reshaped(builder, node, &shares, vec![batch, groups, count / groups * rows, columns])?;
    let y = part(builder, node, "MatMul", [shares, v.clone()])?;
    let mut y = reshaped(builder, node, &y, vec![batch, count, rows, depth])?;
    if is_line {
        y = transposed(builder, node, &y, vec![0, 2, 1, 3])?;
        y = reshaped(builder, node, &y, vec![batch, rows, count * depth])?;
    }
    Ok(vec![y, k, v, asked])
}

fn four(x: &Value) -> Result<[usize; 4], Fault> {
    let own = dims(x);
    own.try_into().map_err(|_| Fault::new(format!("an operand has dimensions {own:?}, not three or four")))
}

/// Operand `index` as `[batch, heads, rows, size]`. If it has three dimensions, the last has all heads.
fn heads(builder: &mut Builder, node: &Node, index: usize, count: i64) -> Result<Value, Fault> {
    let Some(x) = node.input(index) else { return fault!("operand {index} is missing") };
    let &[batch, rows, all] = dims(x) else { return Ok(x.clone()) };
    match usize::try_from(count) {
        Ok(count) if count > 0 && all % count == 0 => {
            let heads = reshaped(builder, node, x, vec![batch, rows, count, all / count])?;
            transposed(builder, node, &heads, vec![0, 2, 1, 3])
        }
        _ => fault!("its operand {index} has {all} elements for {count} heads"),
    }
}

/// Keys or values after those of the past, if operand `index` is there.
fn after_past(builder: &mut Builder, node: &Node, index: usize, x: Value) -> Result<Value, Fault> {
    match (node.input(index), &x) {
        (None, _) => Ok(x),
        (Some(Value::Tensor(past)), Value::Tensor(now)) => {
            Ok(joined(builder, node, 2, &[past.clone(), now.clone()])?.into())
        }
        _ => fault!("some of its keys or values are constants, and some are not"),
    }
}

/// The scores, with −∞ where the mask or the order of rows excludes a key; and whether each row may see any key, unless all may.
fn masked(
    builder: &mut Builder,
    node: &Node,
    mut scores: Value,
    past: usize,
) -> Result<(Value, Option<Value>), Fault> {
    let &[.., rows, columns] = dims(&scores) else { return Ok((scores, None)) };
    let mut allowed = in_order(builder, node, [rows, columns], past)?;
    if let Some(mask) = node.input(3) {
        if dims(mask).last().is_none_or(|last| *last != columns) {
            return fault!("its mask has dimensions {:?} for {columns} keys", dims(mask));
        }
        let is_truth = match mask {
            Value::Tensor(mask) => mask.integers == Some(DataType::BOOL),
            Value::Constant(mask) => matches!(mask.data, Data::Bools(_)),
        };
        match (is_truth, &allowed) {
            (true, None) => allowed = Some(mask.clone()),
            (true, Some(ordered)) => {
                allowed = Some(part(builder, node, "And", [mask.clone(), ordered.clone()])?);
            }
            (false, _) => scores = part(builder, node, "Add", [scores, mask.clone()])?,
        }
    }
    let Some(allowed) = allowed else { return Ok((scores, None)) };
    let masked = part(builder, node, "Where", [allowed.clone(), scores, number(f32::NEG_INFINITY)])?;
    let last = Constant::ints([1], vec![-1]);
    let held = logic::as_floats(builder, &allowed)?;
    let reached = part(builder, node, "ReduceMax", [held, last.into()])?;
    let all_reach = match &reached {
        Value::Constant(reached) => !reached.to_floats()?.contains(&0.0),
        Value::Tensor(_) => false,
    };
    Ok((masked, (!all_reach).then_some(reached)))
}

/// Whether the order of rows allows each a key: none after it, or those within a window.
fn in_order(
    builder: &mut Builder,
    node: &Node,
    [rows, columns]: [usize; 2],
    past: usize,
) -> Result<Option<Value>, Fault> {
    let is_causal = node.flag("is_causal", false)?;
    let (left, right) = (node.int("left_window_size", -1)?, node.int("right_window_size", -1)?);
    if !is_causal && left < 0 && right < 0 {
        return Ok(None);
    }
    builder.charge(rows.saturating_mul(columns))?;
    let is_in = |at: usize| {
        let ahead = (at / columns + past) as i64 - (at % columns) as i64;
        (!is_causal || ahead >= 0) && (left < 0 || ahead <= left) && (right < 0 || -ahead <= right)
    };
    let allowed = Constant::bools([rows, columns], (0..rows * columns).map(is_in).collect());
    Ok(Some(allowed.into()))
}
