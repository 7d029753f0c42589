//! Sections 4 to 6: shapes, the rows that a firing reads, and rates.

use serde_json::Value;

use super::model::{Layer, Operand};
use super::{Refusal, list, number, text};

/// A shape: its dimensions, and whether it is channels last.
#[derive(Debug, Clone, PartialEq)]
pub struct Shape {
    pub dims: Vec<u64>,
    pub last: bool,
}

impl Shape {
    pub fn read(value: &Value) -> Result<Shape, Refusal> {
        let (dims, last) = match value {
            Value::Array(dims) => (dims, false),
            other => (
                other["dims"].as_array().ok_or("a shape without `dims`")?,
                match text(other, "order")? {
                    "channels_last" => true,
                    "channels_first" => false,
                    order => return Err(format!("no order `{order}`")),
                },
            ),
        };
        let dims = dims.iter().map(|dim| dim.as_u64().ok_or("a dimension that is no number"));
        Ok(Shape { dims: dims.collect::<Result<_, _>>()?, last })
    }

    pub fn elements(&self) -> u64 {
        self.dims.iter().product()
    }

    pub fn is_image(&self) -> bool {
        self.dims.len() == 4 && self.dims[0] == 1
    }

    /// The row axis of an image or of lines.
    pub fn row_axis(&self) -> Option<usize> {
        match self.dims[..] {
            [1, _, _, _] => Some(if self.last { 1 } else { 2 }),
            [1, lines, _] if (2..=4096).contains(&lines) => Some(1),
            [lines, _] if (2..=4096).contains(&lines) => Some(0),
            _ => None,
        }
    }

    /// Whether the elements lie in memory in the row-major order of the dimensions.
    fn is_in_order(&self) -> bool {
        !self.is_image() || self.last || self.channels() == 1
    }

    pub fn rows(&self) -> u64 {
        self.row_axis().map_or(1, |axis| self.dims[axis])
    }

    /// Elements of a row.
    pub fn row_elements(&self) -> u64 {
        self.elements() / self.rows()
    }

    /// The size of the dimension that counts channels.
    pub fn channels(&self) -> u64 {
        match self.dims.len() {
            0 | 1 => 1,
            4 if self.last => self.dims[3],
            _ => self.dims[1],
        }
    }
}

/// Rates as text, written out.
pub fn rates(text: &str) -> Result<Vec<u64>, Refusal> {
    let number = |text: &str| {
        let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse::<u64>().ok().filter(|_| is_number).ok_or_else(|| format!("no rates: `{text}`"))
    };
    let mut all = Vec::new();
    let mut rest = text;
    loop {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let (times, body) = match rest[digits..].strip_prefix('*') {
            Some(body) => (number(&rest[..digits])?, body),
            None => (1, rest),
        };
        let (pattern, after) = match body.strip_prefix('(') {
            Some(body) => body.split_once(')').ok_or_else(|| format!("no rates: `{text}`"))?,
            None => body.split_at(body.find(',').unwrap_or(body.len())),
        };
        let pattern: Vec<u64> = pattern.split(',').map(number).collect::<Result<_, _>>()?;
        if times == 0 || times > 1 << 24 {
            return Err(format!("no rates: `{text}`"));
        }
        (0..times).for_each(|_| all.extend_from_slice(&pattern));
        match after.strip_prefix(',') {
            Some(next) => rest = next,
            None if after.is_empty() => return Ok(all),
            None => return Err(format!("no rates: `{text}`")),
        }
    }
}

/// The rows of a tensor that a layer holds.
#[derive(Debug, Clone)]
pub struct Held {
    /// The layer that writes the tensor.
    pub tensor: usize,
    /// By firing.
    pub need: Vec<u64>,
    /// By firing, and one more.
    pub keep: Vec<u64>,
    /// By output row; `None` where the tensor is needed whole.
    pub keep_1: Option<Vec<u64>>,
}

impl Held {
    pub fn new(tensor: usize, rows: u64, spans: Option<&[Span]>, r: u64, firings: u64) -> Held {
        let Some(spans) = spans else {
            let mut keep = vec![0; firings as usize];
            keep.push(rows);
            return Held { tensor, need: vec![rows; firings as usize], keep, keep_1: None };
        };
        let keep = |row: u64, is_end: bool| match row {
            _ if is_end => rows,
            0 => 0,
            row => spans[row as usize..]
                .iter()
                .flatten()
                .map(|span| span[0])
                .min()
                .map_or(rows, |first| first.clamp(0, rows as i64) as u64),
        };
        let keeps: Vec<u64> = (0..=firings).map(|p| keep(p * r, p == firings)).collect();
        let need = |p: u64| {
            if p + 1 == firings {
                return rows;
            }
            let ends = spans[..((p + 1) * r) as usize].iter().flatten().map(|span| span[1]);
            (ends.max().unwrap_or(0).clamp(0, rows as i64) as u64).max(keeps[p as usize + 1])
        };
        let height = spans.len() as u64;
        Held {
            tensor,
            need: (0..firings).map(need).collect(),
            keep_1: Some((0..height).map(|o| keep(o, o == height)).collect()),
            keep: keeps,
        }
    }

    /// The same tensor held for two operands.
    pub fn joined(&mut self, other: &Held) {
        self.need.iter_mut().zip(&other.need).for_each(|(a, b)| *a = (*a).max(*b));
        self.keep.iter_mut().zip(&other.keep).for_each(|(a, b)| *a = (*a).min(*b));
        self.keep_1 = match (self.keep_1.take(), &other.keep_1) {
            (Some(mut a), Some(b)) => {
                a.iter_mut().zip(b).for_each(|(a, b)| *a = (*a).min(*b));
                Some(a)
            }
            _ => None,
        };
    }

    pub fn acquire(&self) -> Vec<u64> {
        (0..self.need.len()).map(|p| self.need[p] - if p == 0 { 0 } else { self.need[p - 1] }).collect()
    }

    pub fn release(&self) -> Vec<u64> {
        self.keep.windows(2).map(|pair| pair[1] - pair[0]).collect()
    }
}

/// The first row and the one after the last that an output row is made from; `None` if there is none.
pub type Span = Option<[i64; 2]>;

/// The spans of an operand, or `None` where it is needed whole.
pub fn spans(layer: &Layer, own: &Shape, operand: usize) -> Result<Option<Vec<Span>>, Refusal> {
    let Operand { seen, .. } = &layer.operands[operand];
    let output = &layer.shape;
    let (Some(_), Some(axis), Some(output_axis)) = (own.row_axis(), seen.row_axis(), output.row_axis())
    else {
        return Ok(None);
    };
    let alike = match own.is_image() && seen.is_image() {
        true => own.channels() == seen.channels(),
        false => own.is_in_order() && seen.is_in_order(),
    };
    let kept = alike && (own.rows(), own.row_elements()) == (seen.rows(), seen.row_elements());
    let height = output.rows() as i64;
    if !kept || axis != output_axis || height == 1 {
        return Ok(None);
    }
    let (attributes, rows) = (&layer.attributes, seen.rows() as i64);
    let by_row = |span: &dyn Fn(i64) -> Span| Some((0..height).map(span).collect::<Vec<Span>>());
    let same = || if rows == height { by_row(&|o| Some([o, o + 1])) } else { None };
    // Of a pair, in y.
    let vertical = |field: &str| -> Result<i64, Refusal> {
        attributes[field][0].as_i64().ok_or_else(|| format!("no `{field}`"))
    };
    let of_axis = |field: &str| -> Result<i64, Refusal> {
        attributes[field][axis].as_i64().ok_or_else(|| format!("no `{field}`"))
    };
    let works_on_rows = |axes: &[Value]| axes.iter().any(|other| other.as_u64() == Some(axis as u64));
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
        "element_wise" | "batch_norm" | "binary" | "where" | "gemm" | "lrn" | "convert" => same(),
        "mat_mul" if operand == 0 => same(),
        "softmax" | "reduce" if !works_on_rows(list(attributes, "axes")?) => same(),
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
