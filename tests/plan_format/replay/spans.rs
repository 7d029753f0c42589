//! Section 5: the rows of its operands that a row of a layer is made from.

use serde_json::Value;

use super::model::{Layer, Operand};
use super::rows::{Shape, Span};
use super::{Refusal, list, number, text};

/// The spans of an operand, or `None` where it is needed whole.
pub fn spans(layer: &Layer, own: &Shape, operand: usize) -> Result<Option<Vec<Span>>, Refusal> {
    let Operand { seen, .. } = &layer.operands[operand];
    let output = &layer.shape;
    let (Some(_), Some(axis), Some(output_axis)) = (own.row_axis(), seen.row_axis(), output.row_axis())
    else {
        return Ok(None);
    };
    let height = output.rows() as i64;
    let made_from = match layer.op.as_str() {
        "transpose" => at(&layer.attributes, "perm", output_axis)? as usize,
        _ => output_axis,
    };
    if !keeps_rows(own, seen) || axis != made_from || height == 1 {
        return Ok(None);
    }
    let (attributes, rows) = (&layer.attributes, seen.rows() as i64);
    let by_row = |span: &dyn Fn(i64) -> Span| Some((0..height).map(span).collect::<Vec<Span>>());
    let same = || if rows == height { by_row(&|o| Some([o, o + 1])) } else { None };
    let vertical = |field: &str| at(attributes, field, 0);
    let of_axis = |field: &str| at(attributes, field, axis);
    Ok(match layer.op.as_str() {
        "conv" if layer.is_residual(operand) => same(),
        "conv" | "pool" => {
            let (s, d, k) = (vertical("stride")?, vertical("dilation")?, vertical("kernel")?);
            let t = vertical("pads")?;
            by_row(&|o| Some([o * s - t, o * s - t + (k - 1) * d + 1]))
        }
        "binary" | "where" | "mat_mul" if seen.dims.len() != output.dims.len() => None,
        "lrn" if axis == 1 && !seen.is_image() => None,
        "instance_norm" if axis == 1 && !seen.is_image() => same(),
        "element_wise" | "batch_norm" | "binary" | "where" | "gemm" | "lrn" | "transpose" | "convert" => {
            same()
        }
        "mat_mul" | "recurrent" if operand == 0 => same(),
        "softmax" | "reduce" if !works_on(list(attributes, "axes")?, axis) => same(),
        "arg_max" | "top_k" | "gather_elements" if number(attributes, "axis")? != axis as u64 => same(),
        "conv_transpose" => {
            let (s, d, k) = (vertical("stride")?, vertical("dilation")?, vertical("kernel")?);
            let t = vertical("pads")?;
            let up = |x: i64| -(-x).div_euclid(s);
            by_row(&|o| {
                let [first, end] = [up(o + t - (k - 1) * d), (o + t).div_euclid(s) + 1];
                (first < end).then_some([first, end])
            })
        }
        "concat" if number(attributes, "axis")? == axis as u64 => {
            let before: u64 = layer.operands[..operand].iter().map(|other| other.seen.rows()).sum();
            by_row(&|o| {
                let i = o - before as i64;
                (0..rows).contains(&i).then_some([i, i + 1])
            })
        }
        "concat" => same(),
        "slice" => {
            let (start, step) = (of_axis("starts")?, of_axis("steps")?);
            by_row(&|o| Some([start + o * step, start + o * step + 1]))
        }
        "pad" => {
            let (before, after) = (of_axis("before")?, of_axis("after")?);
            let (low, high) = ((-before).max(0), rows - 1 - (-after).max(0));
            by_row(&|o| {
                let i = o - before;
                let i = match attributes["mode"].as_str() {
                    _ if (low..=high).contains(&i) => i,
                    Some("edge") => i.clamp(low, high),
                    Some("reflect") if i < low => 2 * low - i,
                    Some("reflect") => 2 * high - i,
                    _ => return None,
                };
                Some([i, i + 1])
            })
        }
        "resize" => {
            let span = |o| resized(attributes, rows, o);
            Some((0..height).map(span).collect::<Result<_, _>>()?)
        }
        "depth_to_space" => {
            let block = number(attributes, "block")? as i64;
            by_row(&|o| Some([o / block, o / block + 1]))
        }
        "space_to_depth" => {
            let block = number(attributes, "block")? as i64;
            by_row(&|o| Some([o * block, (o + 1) * block]))
        }
        _ => None,
    })
}

/// Whether a view has the rows of its tensor.
pub fn keeps_rows(own: &Shape, seen: &Shape) -> bool {
    let alike = match own.is_image() && seen.is_image() {
        true => own.channels() == seen.channels(),
        false => own.is_in_order() && seen.is_in_order(),
    };
    alike && (own.rows(), own.row_elements()) == (seen.rows(), seen.row_elements())
}

/// A number of a list; of a pair, 0 is in y.
pub fn at(attributes: &Value, field: &str, place: usize) -> Result<i64, Refusal> {
    attributes[field][place].as_i64().ok_or_else(|| format!("no `{field}`"))
}

/// Whether a dimension is one of those that a layer works on.
pub fn works_on(axes: &[Value], axis: usize) -> bool {
    axes.iter().any(|other| other.as_u64() == Some(axis as u64))
}

/// The rows that row `o` of a resize is made from: its coordinate is a fraction.
fn resized(attributes: &Value, rows: i64, o: i64) -> Result<Span, Refusal> {
    let [over, under] = scale(&attributes["scales"][0])?;
    let (rows, o) = (i128::from(rows), i128::from(o));
    // Numerator and denominator; the numerators of halves are even.
    let size = i128::from(attributes["size"][0].as_u64().ok_or("no size")?);
    let crop = &attributes["coordinates"]["tf_crop_and_resize"];
    let (top, bottom) = match attributes["coordinates"].as_str().unwrap_or_default() {
        _ if crop.is_object() => {
            // Floats times a power of two that makes them whole.
            let corner =
                |end: &str| crop[end][0].as_f64().map(|at| (f64::from(at as f32) * 2f64.powi(40)) as i128);
            let (from, to) = corner("from").zip(corner("to")).ok_or("no crop")?;
            let (part, parts) = if size == 1 { (1, 2) } else { (o, size - 1) };
            ((rows - 1) * (from * parts + (to - from) * part), parts << 40)
        }
        _ if over == under => (o, 1),
        "half_pixel" => ((2 * o + 1) * under - over, 2 * over),
        "pytorch_half_pixel" if over * rows == under => (0, 1),
        "pytorch_half_pixel" => ((2 * o + 1) * under - over, 2 * over),
        "asymmetric" => (o * under, over),
        "tf_half_pixel_for_nn" => ((2 * o + 1) * under, 2 * over),
        "align_corners" if over * rows > under => (o * (rows - 1) * under, over * rows - under),
        "align_corners" => (0, 1),
        "half_pixel_symmetric" => (rows * over - size * under + (2 * o + 1) * under - over, 2 * over),
        other => return Err(format!("no coordinates `{other}`")),
    };
    let floor = |top: i128, bottom: i128| top.div_euclid(bottom);
    let ceil = |top: i128, bottom: i128| -(-top).div_euclid(bottom);
    let last = rows - 1;
    if let Some(filter) = attributes["mode"].get("filter") {
        let radius = if filter.get("cubic").is_some() { 2 } else { 1 };
        let shrinks = filter["antialias"] == true && over < under;
        let reach = if shrinks { ceil(radius * under, over) } else { radius };
        let [first, end] =
            [floor(top, bottom) - reach + 1, floor(top, bottom) + reach].map(|at| at.clamp(0, last));
        return Ok(Some([first as i64, end as i64 + 1]));
    }
    let row = match attributes["mode"].as_str() {
        Some("linear") => floor(top, bottom),
        _ => match text(&attributes["mode"]["nearest"], "rounding")? {
            "floor" => floor(top, bottom),
            "ceil" => ceil(top, bottom),
            "round_prefer_floor" => ceil(2 * top - bottom, 2 * bottom),
            "round_prefer_ceil" => floor(2 * top + bottom, 2 * bottom),
            other => return Err(format!("no rounding `{other}`")),
        },
    };
    let row = row.clamp(0, last);
    let end = if attributes["mode"] == "linear" { (row + 1).min(last) + 1 } else { row + 1 };
    Ok(Some([row as i64, end as i64]))
}

/// A scale as a fraction.
fn scale(stated: &Value) -> Result<[i128; 2], Refusal> {
    if let Some((over, under)) = stated.as_str().and_then(|text| text.split_once('/')) {
        let number = |text: &str| text.parse().map_err(|_| format!("no scale: `{text}`"));
        return Ok([number(over)?, number(under)?]);
    }
    let mut over = f64::from(stated.as_f64().ok_or("no scale")? as f32);
    let mut under = 1;
    // Powers of two are exact.
    while over.fract() != 0.0 && under < 1 << 60 {
        (over, under) = (2.0 * over, 2 * under);
    }
    Ok([over as i128, under])
}
