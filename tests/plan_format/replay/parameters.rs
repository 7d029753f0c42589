//! Section 5: how many parameters a layer has, and how many bytes it keeps of them.

use serde_json::Value;

use super::model::{Layer, Tiles, floats, tiles};
use super::rows::Shape;
use super::{Refusal, families, number};

/// Channels of the image that a layer reads; for a convolution, those of all parts together.
pub fn channels(layer: &Layer) -> u64 {
    let seen = |operand: usize| layer.operands[operand].seen.channels();
    match layer.op.as_str() {
        "conv" => (0..layer.operands.len()).filter(|&i| !layer.is_residual(i)).map(seen).sum(),
        _ if layer.operands.is_empty() => 1,
        _ => seen(0),
    }
}

/// The gates of a recurrent layer's cell, and how many vectors it keeps.
pub fn cell(attributes: &Value) -> Result<[u64; 2], Refusal> {
    let cell = &attributes["cell"];
    match [cell == "rnn", cell["gru"].is_object(), cell["lstm"].is_object()] {
        [true, _, _] => Ok([1, 1]),
        [_, true, _] => Ok([3, 2]),
        [_, _, true] => Ok([4, 2]),
        _ => Err("an unknown cell".to_owned()),
    }
}

fn product(dims: &Value) -> Result<u64, Refusal> {
    let dims = dims.as_array().ok_or("no dimensions")?;
    dims.iter().map(|dim| dim.as_u64().ok_or_else(|| "no dimension".to_owned())).product()
}

/// The slopes of a `p_relu`.
pub fn slopes(layer: &Layer) -> Result<Option<&Value>, Refusal> {
    let function = match layer.op.as_str() {
        "element_wise" => &layer.attributes,
        _ => &layer.attributes["activation"],
    };
    Ok((function["function"] == "p_relu").then_some(&function["slope"]))
}

/// Weights and the like of a layer, in elements.
fn parameters(layer: &Layer) -> Result<u64, Refusal> {
    let a = &layer.attributes;
    let bias = |units: &str| Ok::<u64, Refusal>(if a["bias"] == true { number(a, units)? } else { 0 });
    let window = || product(&a["kernel"]);
    let own = match layer.op.as_str() {
        "conv" => {
            let pre = if a["pre"]["affine"] == true { 2 * channels(layer) } else { 0 };
            let filters = number(a, "filters")?;
            filters * (channels(layer) / number(a, "groups")?) * window()? + bias("filters")? + pre
        }
        "conv_transpose" => {
            let filters = number(a, "filters")?;
            channels(layer) * (filters / number(a, "groups")?) * window()? + bias("filters")?
        }
        "gemm" => number(a, "inner")? * number(a, "units")? + bias("units")?,
        "recurrent" => {
            let (size, [gates, _]) = (number(a, "size")?, cell(a)?);
            let beside =
                [(&a["cell"]["gru"]["linear_before_reset"], 1), (&a["cell"]["lstm"]["peepholes"], 3)];
            let beside: u64 =
                beside.iter().filter(|(has, _)| **has == true).map(|(_, vectors)| vectors).sum();
            size * (gates * size + beside)
        }
        "batch_norm" | "instance_norm" => 2 * number(a, "channels")?,
        "binary" if !a["constant"].is_null() => product(&a["constant"]["dims"])?,
        "where" => {
            let constants = ["condition", "x", "y"].into_iter().filter(|name| !a[*name].is_null());
            constants.map(|name| product(&a[name])).sum::<Result<u64, Refusal>>()?
        }
        _ => 0,
    };
    Ok(own + slopes(layer)?.map_or(Ok(0), product)?)
}

/// Whether a layer's weights are integers.
pub fn is_of_integers(layer: &Layer) -> bool {
    floats(&layer.primitive)[0] == "u8"
}

/// Output channels of a layer that has weights.
fn units(layer: &Layer) -> Option<u64> {
    let field = match layer.op.as_str() {
        "conv" => "filters",
        "gemm" => "units",
        _ => return None,
    };
    layer.attributes[field].as_u64()
}

/// Bytes of weights and the like of a layer.
pub fn parameter_bytes(layer: &Layer) -> Result<u64, Refusal> {
    let numbers = parameters(layer)?;
    if layer.primitive.contains("-mixed-") {
        let units = units(layer).ok_or("mixed precision without weights")?;
        let weights = units * products(layer, &layer.attributes)?;
        return Ok(weights + 4 * units + 2 * (numbers - weights));
    }
    if let Some(each) = scaled(layer) {
        let units = units(layer).ok_or("scales without weights")?;
        let weights = units * products(layer, &layer.attributes)?;
        return Ok(each * weights + 4 * units + 4 * (numbers - weights));
    }
    if !is_of_integers(layer) {
        return Ok(width(layer) * numbers);
    }
    let has_integers = !layer.attributes["constant"]["quantization"].is_null();
    Ok(match units(layer) {
        Some(units) => {
            let biases = if layer.attributes["bias"] == true { units } else { 0 };
            let floats = biases + before(layer);
            numbers - floats + 4 * floats + 4 * units + offset(layer)
        }
        None if has_integers => numbers,
        None => 4 * numbers,
    })
}

/// Bytes of a weight, if a scale for each output channel multiplies it.
fn scaled(layer: &Layer) -> Option<u64> {
    let is = |kind: &str| layer.primitive.contains(kind);
    if is("-w8-") { Some(1) } else { is("-w16-").then_some(2) }
}

/// Bytes of the offset of a layer's weights.
fn offset(layer: &Layer) -> u64 {
    if layer.primitive.contains("-uint8-") { 4 } else { 0 }
}

/// Numbers of scales and shifts of a convolution's `pre`.
fn before(layer: &Layer) -> u64 {
    if layer.attributes["pre"]["affine"] == true { 2 * channels(layer) } else { 0 }
}

/// Bytes that a layer of integers keeps.
fn stored_integers(layer: &Layer, a: &Value) -> Result<u64, Refusal> {
    let pairs = |count: u64| count.next_multiple_of(2);
    let sums = |groups: u64, filters: u64, products: u64| {
        groups * filters * (products + 8) + 4 * (filters.next_multiple_of(8) - filters)
    };
    let bytes = match layer.op.as_str() {
        "conv" => {
            let (groups, filters, window) =
                (number(a, "groups")?, number(a, "filters")?, product(&a["kernel"])?);
            let kept = match channels(layer) == groups && filters == groups {
                true => sums(1, filters, window),
                false => sums(groups, filters / groups, pairs(window * channels(layer) / groups)),
            };
            kept + 4 * before(layer)
        }
        "gemm" => sums(1, number(a, "units")?, pairs(number(a, "inner")?)),
        "element_wise" => 256,
        "convert" if layer.primitive.starts_with("convert-requantize") => 256,
        "binary" if !a["constant"].is_null() => match product(&a["constant"]["dims"])? {
            1 => 256,
            _ => parameters(layer)?,
        },
        _ => 0,
    };
    Ok((bytes + offset(layer)).next_multiple_of(64))
}

/// Products of a sum of a layer that has weights.
fn products(layer: &Layer, a: &Value) -> Result<u64, Refusal> {
    match layer.op.as_str() {
        "conv" => Ok(product(&a["kernel"])? * channels(layer) / number(a, "groups")?),
        _ => number(a, "inner"),
    }
}

/// Bytes of a number that a layer keeps.
fn width(layer: &Layer) -> u64 {
    if floats(&layer.primitive)[0] == "f16" { 2 } else { 4 }
}

/// Bytes that a layer keeps of its parameters.
pub fn stored(layer: &Layer) -> Result<u64, Refusal> {
    stored_with(layer, &layer.attributes)
}

/// The same if it had other attributes.
pub fn stored_with(layer: &Layer, a: &Value) -> Result<u64, Refusal> {
    if let Some(bytes) = families::stored(layer)? {
        return Ok(bytes);
    }
    if is_of_integers(layer) {
        return stored_integers(layer, a);
    }
    if layer.primitive.starts_with("winograd") {
        let Tiles { high, v, .. } = tiles(&layer.primitive)?;
        let rows = a["kernel"].get(0).and_then(Value::as_u64).ok_or("a kernel without rows")?;
        let k = if high == 1 { rows } else { 1 };
        return Ok((4 * number(a, "filters")? * (1 + v * k * channels(layer))).next_multiple_of(64));
    }
    let (groups, filters, products) = match layer.op.as_str() {
        "conv" | "conv_transpose" => {
            let (groups, filters, channels) = (number(a, "groups")?, number(a, "filters")?, channels(layer));
            let window = product(&a["kernel"])?;
            match layer.op == "conv" && groups == channels && groups == filters {
                true => (1, filters, window),
                false => (groups, filters / groups, window * channels / groups),
            }
        }
        "gemm" => (1, number(a, "units")?, number(a, "inner")?),
        _ => return Ok((width(layer) * parameters(layer)?).next_multiple_of(64)),
    };
    let (mut in_panels, mut beside) = (0, 0);
    if let Some(slope) = slopes(layer)? {
        let dims = Shape::read(slope)?.dims;
        // Per channel: all in the dimension of the channels, two before the last, of a gemm's units the last.
        let from_end = if layer.op == "gemm" { 1 } else { 3 };
        let all = groups * filters;
        let of_channels = dims.len().checked_sub(from_end).map(|at| dims[at]);
        let count = dims.iter().product::<u64>();
        let suits = count == 1 || of_channels == Some(all) && count == all;
        (in_panels, beside) = if suits { (1, 0) } else { (0, count) };
    }
    if a["pre"]["affine"] == true {
        beside += 2 * channels(layer);
    }
    let zeros = filters.next_multiple_of(16) - filters;
    if layer.primitive.contains("-mixed-") {
        let panels = groups * filters * (products + 6 + 2 * in_panels) + zeros;
        return Ok((panels.next_multiple_of(2) + 2 * beside).next_multiple_of(64));
    }
    if let Some(each) = scaled(layer) {
        let weights = each * (groups * filters * products + zeros);
        let bytes = weights.next_multiple_of(4) + 8 * groups * filters + 4 * beside;
        return Ok(bytes.next_multiple_of(64));
    }
    let panels = groups * filters * (products + 1 + in_panels);
    Ok((width(layer) * (panels + zeros + beside)).next_multiple_of(64))
}
