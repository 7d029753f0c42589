//! What ends detectors: boxes from their encodings by anchors, the best class of each, and suppression of those that overlap.

use csdfc_plan::operator::NonMaxSuppression;
use rten_onnx::onnx::{AttributeProto, DataType};

use crate::import::attribute::{int, ints};
use crate::import::constant::Constant;
use crate::import::error::{Fault, fault};
use crate::import::node::Value;
use crate::import::tflite::flexbuffer::Map;
use crate::import::tflite::op::{Op, dims, list, scalar};

/// What the options of `TFLite_Detection_PostProcess` say.
struct Options {
    /// Boxes in the output.
    boxes: usize,
    /// The most boxes of a class, if each class is suppressed by itself. Else the best class of each anchor alone counts, and
    /// boxes of all classes suppress each other.
    of_class: Option<usize>,
    classes: usize,
    least_score: f32,
    overlap: f32,
    /// What encodings of boxes are divided by: y, x, height, width.
    scales: [f32; 4],
}

impl Options {
    fn read(custom: &[u8]) -> Result<Self, Fault> {
        let map = Map::root(custom)?;
        let number = |name: &str| match map.number(name)? {
            Some(number) => Ok(number),
            None => fault!("its option {name} is missing"),
        };
        let count = |name: &str, number: f64| match number {
            number if (1.0..=65_536.0).contains(&number) => Ok(number as usize),
            number => fault!("its option {name} is {number}"),
        };
        let counted = |name: &str| count(name, number(name)?);
        let mut scales = [0.0; 4];
        for (scale, name) in scales.iter_mut().zip(["y_scale", "x_scale", "h_scale", "w_scale"]) {
            *scale = number(name)? as f32;
            if *scale <= 0.0 || !scale.is_finite() {
                return fault!("its option {name} is {scale}");
            }
        }
        let overlap = number("nms_iou_threshold")? as f32;
        if !(0.0..=1.0).contains(&overlap) {
            return fault!("boxes overlap by {overlap}, which is not from 0 to 1");
        }
        let each = "detections_per_class";
        let of_class = match map.number("use_regular_nms")? {
            Some(flag) if flag != 0.0 => Some(count(each, map.number(each)?.unwrap_or(100.0))?),
            _ => None,
        };
        if of_class.is_none() && counted("max_classes_per_detection")? != 1 {
            return Err(Fault::new("it gives several classes for each box")
                .help("csdfc needs max_classes_per_detection to be 1, or use_regular_nms"));
        }
        Ok(Options {
            boxes: counted("max_detections")?,
            of_class,
            classes: counted("num_classes")?,
            least_score: number("nms_score_threshold")? as f32,
            overlap,
            scales,
        })
    }
}

/// `TFLite_Detection_PostProcess`: encodings of boxes `[1, N, ≥ 4]`, which are distances from anchors `[N, 4]`, both as y and x
/// of the middle, height and width; and scores `[1, N, C]`, in which a background may come before the classes. It makes
/// corners `[1, B, 4]`, classes and scores `[1, B]`, best first, and how many there are. What is beyond them is 0 (TFLite
/// leaves it as it was).
pub(super) fn post_process(op: &mut Op) -> Result<Vec<Value>, Fault> {
    let options = Options::read(op.custom)?;
    let (encodings, scores) = (op.number(0)?, op.number(1)?);
    let (&[1, count, coordinates], &[1, scored, with_background]) =
        (dims(&encodings).as_slice(), dims(&scores).as_slice())
    else {
        return fault!("its boxes are {:?}, and its scores {:?}", dims(&encodings), dims(&scores));
    };
    let has_background = with_background.checked_sub(options.classes).filter(|background| *background <= 1);
    let (Some(background), true) = (has_background, scored == count && coordinates >= 4) else {
        let classes = options.classes;
        return fault!(
            "its boxes are {count} of {coordinates} numbers; its scores {scored} of {with_background} for {classes} classes"
        );
    };
    if count.saturating_mul(options.classes) > NonMaxSuppression::MAX_BOXES {
        let (classes, most) = (options.classes, NonMaxSuppression::MAX_BOXES);
        return fault!("it has {count} boxes of {classes} classes; csdfc takes at most {most} scores");
    }
    let corners = corners(op, encodings, count, &options.scales)?;
    let scores = columns(op, scores, background, with_background)?;

    // Scores [1, K, N], of which each of K is suppressed by itself, and the best class of each anchor, if K is 1.
    let (scores, best, most) = match options.of_class {
        Some(most) => (op.node("Transpose", [scores], vec![ints("perm", [0, 2, 1])])?, None, most),
        None => {
            let best = op.node("ArgMax", [scores.clone()], vec![int("axis", -1), int("keepdims", 0)])?;
            let best = op.node("Cast", [best], vec![to_floats()])?;
            let highest = op.node("ReduceMax", [scores, list(vec![-1])], Vec::new())?;
            (op.reshaped(highest, vec![1, 1, count])?, Some(op.reshaped(best, vec![count])?), options.boxes)
        }
    };
    // ONNX keeps scores above the least, TFLite this one, too.
    let limits = [list(vec![most as i64]), scalar(options.overlap), scalar(options.least_score.next_down())];
    let operands = [corners.clone(), scores.clone()].into_iter().chain(limits);
    let kept = op.node("NonMaxSuppression", operands, Vec::new())?;
    let kept = op.padded_indices(kept)?;
    let kept = op.node("Cast", [kept], vec![to_floats()])?;
    let rows = dims(&kept)[0];
    let [class, anchor] = [1, 2].map(|at| {
        let column = columns(op, kept.clone(), at, at + 1)?;
        op.reshaped(column, vec![rows])
    });
    let all = dims(&scores).iter().product();
    let scores = op.reshaped(scores, vec![all])?;
    let found = Found { class: class?, anchor: anchor?, anchors: count };
    let found = if best.is_none() { found.best_first(op, &scores, options.boxes)? } else { found };
    let found = found.padded(op, options.boxes)?;

    let boxes = options.boxes;
    let is_box = op.node("GreaterOrEqual", [found.anchor.clone(), scalar(0.0)], Vec::new())?;
    let number = op.node("Cast", [is_box.clone()], vec![to_floats()])?;
    let number = op.node("ReduceSum", [number, list(vec![0])], Vec::new())?;
    let scores = found.scores(op, scores)?;
    let anchor = at_least_0(op, found.anchor)?;
    let classes = match best {
        Some(best) => gathered(op, best, anchor.clone())?,
        None => found.class,
    };
    let wide = |op: &mut Op, x| {
        let x = op.reshaped(x, vec![boxes, 1])?;
        op.node("Expand", [x, list(vec![boxes as i64, 4])], Vec::new())
    };
    let corners = op.reshaped(corners, vec![count, 4])?;
    let anchor = wide(op, anchor)?;
    let corners = gathered(op, corners, anchor)?;
    let mut chosen = |is_box: Value, x: Value, shape: &[usize]| {
        let chosen = op.node("Where", [is_box, x, scalar(0.0)], Vec::new())?;
        op.reshaped(chosen, shape.to_vec())
    };
    let classes = chosen(is_box.clone(), classes, &[1, boxes])?;
    let scores = chosen(is_box.clone(), scores, &[1, boxes])?;
    let is_box = wide(op, is_box)?;
    let corners = op.node("Where", [is_box, corners, scalar(0.0)], Vec::new())?;
    Ok(vec![op.reshaped(corners, vec![1, boxes, 4])?, classes, scores, number])
}

/// Boxes that were kept, as vectors of the same length: the class of each and its anchor, −1 where there is none.
struct Found {
    class: Value,
    anchor: Value,
    /// How many anchors there are.
    anchors: usize,
}

impl Found {
    /// The scores of the boxes, of scores `[K · N]`. Where there is no box, some score.
    fn scores(&self, op: &mut Op, scores: Value) -> Result<Value, Fault> {
        let first = op.node("Mul", [self.class.clone(), scalar(self.anchors as f32)], Vec::new())?;
        let place = op.node("Add", [first, self.anchor.clone()], Vec::new())?;
        let place = at_least_0(op, place)?;
        gathered(op, scores, place)
    }

    /// Those with the highest scores, at most this many.
    fn best_first(self, op: &mut Op, scores: &Value, most: usize) -> Result<Self, Fault> {
        let own = self.scores(op, scores.clone())?;
        let is_box = op.node("GreaterOrEqual", [self.anchor.clone(), scalar(0.0)], Vec::new())?;
        let own = op.node("Where", [is_box, own, scalar(f32::MIN)], Vec::new())?;
        let count = list(vec![dims(&own)[0].min(most) as i64]);
        let [_, order] = &op.nodes("TopK", [own, count], Vec::new(), 2)?[..] else {
            return fault!("csdfc does not sort its scores");
        };
        let order = op.node("Cast", [order.clone()], vec![to_floats()])?;
        let class = gathered(op, self.class, order.clone())?;
        Ok(Found { class, anchor: gathered(op, self.anchor, order)?, ..self })
    }

    /// As many as `most`, the last of which are no boxes.
    fn padded(self, op: &mut Op, most: usize) -> Result<Self, Fault> {
        let lacking = most.saturating_sub(dims(&self.anchor)[0]);
        let mut pad = |x: Value| match lacking {
            0 => Ok(x),
            _ => op.node("Pad", [x, list(vec![0, lacking as i64]), scalar(-1.0)], Vec::new()),
        };
        Ok(Found { class: pad(self.class)?, anchor: pad(self.anchor)?, ..self })
    }
}

/// Corners `[1, N, 4]` of boxes, y before x, from their encodings and anchors.
fn corners(op: &mut Op, encodings: Value, count: usize, scales: &[f32; 4]) -> Result<Value, Fault> {
    let Value::Constant(anchors) = op.number(2)? else {
        return fault!("its anchors are computed by the network");
    };
    if anchors.dims != [count, 4] {
        return fault!("its anchors are {:?}, for {count} boxes", anchors.dims);
    }
    let anchors = anchors.to_floats()?;
    // Two of the four numbers of each anchor.
    let of_anchors = |first: usize, factor: f32| -> Value {
        let of =
            anchors.chunks_exact(4).flat_map(|anchor| [anchor[first] * factor, anchor[first + 1] * factor]);
        Constant::floats([count, 2], of.collect()).into()
    };
    let mut scaled = |first: usize| {
        let part = columns(op, encodings.clone(), first, first + 2)?;
        let scale = Constant::floats([2], scales[first..first + 2].to_vec());
        op.node("Div", [part, scale.into()], Vec::new())
    };
    let [middle, size] = [scaled(0)?, scaled(2)?];
    let middle = op.node("Mul", [middle, of_anchors(2, 1.0)], Vec::new())?;
    let middle = op.node("Add", [middle, of_anchors(0, 1.0)], Vec::new())?;
    let size = op.node("Exp", [size], Vec::new())?;
    let half = op.node("Mul", [size, of_anchors(2, 0.5)], Vec::new())?;
    let low = op.node("Sub", [middle.clone(), half.clone()], Vec::new())?;
    let high = op.node("Add", [middle, half], Vec::new())?;
    op.node("Concat", [low, high], vec![int("axis", -1)])
}

/// The elements from `start` to before `end` along the last dimension.
fn columns(op: &mut Op, x: Value, start: usize, end: usize) -> Result<Value, Fault> {
    let [start, end] = [start, end].map(|at| list(vec![at as i64]));
    op.node("Slice", [x, start, end, list(vec![-1])], Vec::new())
}

/// The elements of the first dimension at these indices.
fn gathered(op: &mut Op, x: Value, indices: Value) -> Result<Value, Fault> {
    op.node("GatherElements", [x, indices], Vec::new())
}

fn at_least_0(op: &mut Op, x: Value) -> Result<Value, Fault> {
    op.node("Max", [x, scalar(0.0)], Vec::new())
}

fn to_floats() -> AttributeProto {
    int("to", i64::from(DataType::FLOAT.0))
}
