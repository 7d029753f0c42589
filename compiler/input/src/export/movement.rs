//! Operators that move elements, and the conversions to and from 8-bit integers.

use csdfc_plan::format::Quantization;
use csdfc_plan::operator::{Pad, PadMode, Slice};

use super::nodes::Nodes;
use super::{ExportError, constants};
use crate::import::attribute::text;

pub(super) fn slice(nodes: &mut Nodes, slice: &Slice, x: String) -> String {
    let read = nodes.layer.inputs[0].shape.dims.clone();
    let end = |i: usize| {
        let last = slice.starts[i] as i64 + (slice.lengths[i] as i64 - 1) * slice.steps[i];
        match last + slice.steps[i].signum() {
            // Before the first element: a negative end counts from the dimension's size.
            -1 => -1 - read[i] as i64,
            end => end,
        }
    };
    let ends: Vec<i64> = (0..read.len()).map(end).collect();
    let axes: Vec<usize> = (0..read.len()).collect();
    let lists = [
        nodes.list("starts", &slice.starts),
        nodes.list("ends", &ends),
        nodes.list("axes", &axes),
        nodes.list("steps", &slice.steps),
    ];
    nodes.node("Slice", std::iter::once(x).chain(lists), Vec::new())
}

pub(super) fn pad(nodes: &mut Nodes, pad: &Pad, x: String) -> Result<String, ExportError> {
    if nodes.read[0].is_some() {
        return Err(nodes.refused("it pads 8-bit integers".into()));
    }
    let pads: Vec<i64> = pad.before.iter().chain(&pad.after).copied().collect();
    let mut inputs = vec![x, nodes.list("pads", &pads)];
    let mode = match pad.mode {
        PadMode::Constant { value } => {
            inputs.push(nodes.number("value", value.unwrap_or(f32::NEG_INFINITY)));
            "constant"
        }
        PadMode::Reflect => "reflect",
        PadMode::Edge => "edge",
    };
    Ok(nodes.node("Pad", inputs, vec![text("mode", mode)]))
}

/// A conversion between floats and integers, from some integers to others, or between layouts, of which ONNX knows
/// nothing.
pub(super) fn convert(nodes: &mut Nodes, mut x: String) -> String {
    let (read, made) = (nodes.read[0], nodes.layer.quantization);
    if read.is_none() && made.is_none() {
        return nodes.node("Identity", [x], Vec::new());
    }
    for (operator, quantization) in [("DequantizeLinear", read), ("QuantizeLinear", made)] {
        let Some(Quantization { scale, zero_point }) = quantization else { continue };
        let scale = nodes.number("scale", scale);
        let zero_point = constants::of_byte(&nodes.called("zero_point"), zero_point);
        let zero_point = nodes.constant(zero_point);
        x = nodes.node(operator, [x, scale, zero_point], Vec::new());
    }
    x
}
