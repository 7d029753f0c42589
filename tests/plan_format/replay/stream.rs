//! Section 13: streams, whose rows follow each other in time from hop to hop.

use serde_json::Value;

use super::model::Layer;
use super::rows::Span;
use super::spans::{at, keeps_rows, works_on};
use super::{Refusal, list, number, same, text};

/// Whether a CNN is a stream; that its plan may have one.
pub fn is_stream(plan: &Value, cnn: &Value) -> Result<bool, Refusal> {
    let Some(stream) = cnn.get("stream") else { return Ok(false) };
    two_numbers(stream, "frame", "window")?;
    let name = text(cnn, "name")?;
    let partitions = list(plan, "partitions")?.iter().filter(|partition| partition["cnn"] == name);
    let takes_turns = |element: &Value| element.as_array().is_some_and(|members| members.len() == 1);
    let is_alone = partitions.count() == 1 && list(plan, "parallel")?.iter().all(takes_turns);
    if !is_alone || text(plan, "storage_model")? != "tensors" {
        return Err("a stream in a plan that can have none".into());
    }
    Ok(true)
}

/// The delay and the history that a tensor states: 0 and 0 where there is no stream.
pub fn stated(tensor: &Value, is_stream: bool) -> Result<[u64; 2], Refusal> {
    same("whether a tensor is one of a stream", tensor.get("stream").is_some(), is_stream)?;
    let Some(stream) = tensor.get("stream") else { return Ok([0; 2]) };
    match two_numbers(stream, "delay", "history")? {
        (_, Some(0)) => Err("a history of no rows".into()),
        (delay, history) => Ok([delay, history.unwrap_or(0)]),
    }
}

/// The two fields of an object: a number that is there, and one that may be left out.
fn two_numbers(value: &Value, first: &str, second: &str) -> Result<(u64, Option<u64>), Refusal> {
    let fields = value.as_object().ok_or("a stream that is no object")?;
    if let Some(other) = fields.keys().find(|field| *field != first && *field != second) {
        return Err(format!("a stream with a field `{other}`"));
    }
    let second = value.get(second).map(|_| number(value, second)).transpose()?;
    Ok((number(value, first)?, second))
}

/// How a layer over time reads an operand: `up` output rows are made of each row, or `reach` rows make an output row.
#[derive(Debug)]
pub struct Reads {
    up: i64,
    stride: i64,
    reach: i64,
    /// Rows of padding above a signal; of a hop, rows before it that its first output row is made from.
    pub top: i64,
}

impl Reads {
    /// The rows of hops before that the first output row of a hop is made from.
    pub fn history(&self) -> u64 {
        self.top.max(0) as u64
    }

    /// The rows that an output row of a hop is made from, counted from the first of these.
    pub fn span(&self, row: u64) -> Span {
        let first = self.history() as i64 + row as i64 * self.stride / self.up - self.top;
        Some([first, first + self.reach])
    }
}

/// How a layer of a stream reads its operands, if it is over time; that its delay and the rows of a hop are right.
pub fn reads(layer: &Layer, layers: &[Layer]) -> Result<Option<Vec<Reads>>, Refusal> {
    if layer.layout == "CHW" || layer.op == "input" && !layer.shape.is_image() {
        return Err(format!("{} can be in no stream", layer.name));
    }
    let tensors = || layer.operands.iter().map(|operand| &layers[operand.tensor]);
    let all = (0..layer.operands.len()).map(|operand| over_time(layer, layers, operand));
    let Some(mut all) = all.collect::<Result<Option<Vec<Reads>>, _>>()?.filter(|all| !all.is_empty()) else {
        if tensors().any(|tensor| tensor.in_time && tensor.rows() != 1) {
            return Err(format!("{} computes each hop by itself, but reads several rows of it", layer.name));
        }
        same("delay", layer.delay, tensors().map(|tensor| tensor.delay).max().unwrap_or(0))?;
        return Ok(None);
    };
    let up = |tensor: &Layer, reads: &Reads| tensor.delay as i64 * reads.up;
    let late = tensors().zip(&all).map(|(tensor, reads)| {
        let beyond = up(tensor, reads) + reads.reach - reads.stride - reads.top;
        (beyond.max(0) as u64).div_ceil(reads.stride as u64)
    });
    same("delay", layer.delay, late.max().unwrap_or(0))?;
    for (tensor, reads) in tensors().zip(&mut all) {
        same("rows of a hop", layer.rows() as i64 * reads.stride, tensor.rows() as i64 * reads.up)?;
        reads.top += layer.delay as i64 * reads.stride - up(tensor, reads);
    }
    Ok(Some(all))
}

/// How rows of an operand make rows of the layer, as far as this operand lets the layer be over time.
fn over_time(layer: &Layer, layers: &[Layer], operand: usize) -> Result<Option<Reads>, Refusal> {
    let (own, seen) = (&layers[layer.operands[operand].tensor], &layer.operands[operand].seen);
    let is_image = seen.is_image() && keeps_rows(&own.shape, seen) && layer.shape.is_image();
    let Some(axis) = seen.row_axis().filter(|_| own.in_time && is_image) else { return Ok(None) };
    let attributes = &layer.attributes;
    let block = || number(attributes, "block").map(|block| block as i64);
    let vertical = |field: &str| at(attributes, field, 0);
    let of_axis = |field: &str| at(attributes, field, axis);
    let (row, mut top) = ((1, 1, 1), 0);
    let (up, stride, reach) = match layer.op.as_str() {
        "conv" if layer.is_residual(operand) => row,
        "pool" if attributes["kind"] == "max_index" => return Ok(None),
        "conv" | "pool" => {
            top = vertical("pads")?;
            let kernel = vertical("kernel")?;
            (1, vertical("stride")?, (kernel - 1) * vertical("dilation")? + 1)
        }
        "space_to_depth" => (1, block()?, block()?),
        "depth_to_space" => (block()?, 1, 1),
        "element_wise" | "batch_norm" | "convert" | "gemm" | "lrn" => row,
        "recurrent" if attributes["initial"] != true => row,
        "binary" if seen.rows() == layer.rows() => row,
        "softmax" | "reduce" if !works_on(list(attributes, "axes")?, axis) => row,
        "concat" if number(attributes, "axis")? != axis as u64 => row,
        "slice" if [of_axis("starts")?, of_axis("steps")?] == [0, 1] && seen.rows() == layer.rows() => row,
        "pad" if [of_axis("before")?, of_axis("after")?] == [0, 0] => row,
        _ => return Ok(None),
    };
    Ok(Some(Reads { up, stride, reach, top }))
}
