//! The boxes of detectors: from the outputs of a network to classes, scores and corners.
//!
//! Outputs are told by their number and their dimensions ([`Form`]), so networks must state boxes and scores as widely
//! used exporters do: scores are from 0 to 1, and coordinates are those of boxes, not offsets from anchors. Corners stay in
//! the network's own units: pixels of the input for YOLO, parts of its width and height for SSD.

use csdfc_plan::operator::Operator;
use csdfc_plan::plan::{Cnn, Layer, Output, Plan};
use csdfc_plan::shape::Shape;
use csdfc_runtime::run::{Data, Value};

use super::outputs::outputs_of;
use crate::error::Error;
use crate::report::run::DetectedBox;

/// Boxes with lower scores are left out.
const SCORE: f64 = 0.25;

/// Of two boxes of a class whose intersection is more than this share of their union, the one with the lower score is left
/// out.
const OVERLAP: f64 = 0.45;

/// Numbers of a box that a network has suppressed itself: x1, y1, x2, y2, score, class.
const FINAL: usize = 6;

/// How the outputs of a CNN state N boxes of C classes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// One output `[1, 4 + C, N]`, more boxes than numbers of each: x and y of the middle, width, height, a score for each
    /// class. YOLOv8 and later.
    Columns {
        /// C.
        classes: usize,
    },
    /// One output `[1, N, 5 + C]`, more boxes than numbers of each: x and y of the middle, width, height, the score that it
    /// is an object, and one for each class if it is. YOLOv5, YOLOX, YOLOv7.
    Rows {
        /// C.
        classes: usize,
    },
    /// One output `[1, N, 6]` of boxes that the network has suppressed itself: x1, y1, x2, y2, score, class. YOLOv10 and
    /// models that were exported with their suppression.
    Final,
    /// Two outputs, `[1, N, 4]` with x1, y1, x2, y2 and `[1, N, C]` with scores, of which class 0 is the background. SSD.
    Pair {
        /// The place of the corners among the two outputs.
        corners: usize,
        /// C.
        classes: usize,
    },
    /// The output of ONNX's `NonMaxSuppression`, `[R, 3]`, and its operands, which are outputs, too: boxes `[1, N, 4]`, with
    /// y1, x1, y2, x2 or, if they are centred, x, y, width, height, and scores `[1, C, N]`.
    Suppressed {
        /// The places of what is kept, the boxes and the scores among the outputs.
        places: [usize; 3],
        /// C.
        classes: usize,
        /// Whether a box is stated by its middle.
        is_centred: bool,
    },
    /// The outputs of TFLite's detection post-processing: `[1, N, 4]` with y1, x1, y2, x2, `[1, N]` with classes, `[1, N]`
    /// with scores, and how many of the N there are.
    Counted,
}

impl Form {
    /// The form of the outputs of a CNN, if they are boxes. The number of labels helps to tell forms apart.
    fn of_cnn(plan: &Plan, cnn: &Cnn, labels: Option<usize>) -> Option<Form> {
        let outputs: Vec<(&Output, &Shape)> = outputs_of(plan, cnn).collect();
        let suppressed = cnn.layers.iter().find_map(|layer| Form::suppressed(layer, &outputs));
        let dims: Vec<&[usize]> = outputs.iter().map(|(_, shape)| &shape.dims[..]).collect();
        suppressed.or_else(|| Form::of(&dims, labels))
    }

    /// The form of outputs that are made by this layer and are its operands.
    fn suppressed(layer: &Layer, outputs: &[(&Output, &Shape)]) -> Option<Form> {
        let (Operator::NonMaxSuppression(suppression), [boxes, scores]) =
            (&layer.operator, &layer.inputs[..])
        else {
            return None;
        };
        let place = |tensor: &String| outputs.iter().position(|(output, _)| output.tensor == *tensor);
        let places = [place(&layer.output)?, place(&boxes.tensor)?, place(&scores.tensor)?];
        match (&outputs[places[1]].1.dims[..], &outputs[places[2]].1.dims[..]) {
            (&[1, n, 4], &[1, classes, of]) if n == of => {
                Some(Form::Suppressed { places, classes, is_centred: suppression.centred })
            }
            _ => None,
        }
    }

    /// The form of outputs of these dimensions.
    fn of(outputs: &[&[usize]], labels: Option<usize>) -> Option<Form> {
        match *outputs {
            [&[1, FINAL, n]] if n > FINAL => Some(Form::Columns { classes: FINAL - 4 }),
            [&[1, n, FINAL]] if n > FINAL && labels != Some(1) => Some(Form::Final),
            [&[1, numbers, n]] if numbers > 4 && n > numbers => Some(Form::Columns { classes: numbers - 4 }),
            [&[1, n, numbers]] if numbers > 5 && n > numbers => Some(Form::Rows { classes: numbers - 5 }),
            [&[1, n, 4], &[1, of, classes]] if n == of && classes > 1 => {
                Some(Form::Pair { corners: 0, classes })
            }
            [&[1, of, classes], &[1, n, 4]] if n == of && classes > 1 => {
                Some(Form::Pair { corners: 1, classes })
            }
            [&[1, n, 4], &[1, classes], &[1, scores], &[1]] if classes == n && scores == n => {
                Some(Form::Counted)
            }
            _ => None,
        }
    }

    /// What is taken to be in the outputs, in words.
    pub(super) fn text(self) -> String {
        match self {
            Form::Columns { classes } => {
                format!("1×(4+{classes})×N: middles, sizes, scores of {classes} classes")
            }
            Form::Rows { classes } => {
                format!("1×N×(5+{classes}): middles, sizes, score of an object, scores of {classes} classes")
            }
            Form::Final => "1×N×6: corners, score, class".into(),
            Form::Pair { classes, .. } => {
                format!(
                    "1×N×4 and 1×N×{classes}: corners, scores of a background and {} classes",
                    classes - 1
                )
            }
            Form::Suppressed { classes, .. } => format!("what NonMaxSuppression kept of {classes} classes"),
            Form::Counted => "1×N×4, 1×N, 1×N, 1: corners, classes, scores, how many there are".into(),
        }
    }

    /// Number of classes; none if the outputs do not show it.
    pub(super) fn classes(self) -> Option<usize> {
        match self {
            Form::Final | Form::Counted => None,
            Form::Columns { classes }
            | Form::Rows { classes }
            | Form::Pair { classes, .. }
            | Form::Suppressed { classes, .. } => Some(classes),
        }
    }

    /// The boxes in these outputs of the last frame, best first, with the names of their classes.
    ///
    /// # Errors
    /// When an output is not there because it goes to a raw file, is not of floats, or has scores or corners that are none.
    pub(super) fn boxes(
        self,
        cnn: &Cnn,
        outputs: &[Option<Value>],
        labels: Option<&[String]>,
    ) -> Result<Vec<DetectedBox>, Error> {
        let wrong = |message: String, help: &str| Error::Input {
            message: format!("--boxes: {message}"),
            help: Some(help.into()),
        };
        let value = |place: usize| {
            let name = cnn.outputs.get(place).map_or("", |output| &output.name);
            outputs.get(place).and_then(Option::as_ref).ok_or_else(|| {
                wrong(format!("output {name} goes to a raw file"), "write it to a .npy file, or to a folder")
            })
        };
        let floats = |place: usize| match value(place)? {
            Value { data: Data::F32(floats), .. } => Ok(&floats[..]),
            Value { data, .. } => {
                let name = cnn.outputs.get(place).map_or("", |output| &output.name);
                let message = format!("output {name} has elements of type {}, not floats", data.element());
                Err(wrong(message, "quantize the model with outputs of floats"))
            }
        };
        let mut found = match self {
            Form::Columns { classes } => of_columns(floats(0)?, classes),
            Form::Rows { classes } => of_rows(floats(0)?, classes),
            Form::Final => of_final(floats(0)?),
            Form::Pair { corners, classes } => of_pair(floats(corners)?, floats(1 - corners)?, classes),
            Form::Counted => of_counted([floats(0)?, floats(1)?, floats(2)?, floats(3)?]),
            Form::Suppressed { places: [kept, boxes, scores], is_centred, .. } => {
                let Value { data: Data::I64(kept), .. } = value(kept)? else { return Ok(Vec::new()) };
                Ok(of_suppressed(kept, floats(boxes)?, floats(scores)?, is_centred))
            }
        }
        .map_err(|score| {
            wrong(
                format!("a box of CNN {} has the score {score}, and scores are from 0 to 1", cnn.name),
                "let the network end with a sigmoid or a softmax of its scores, or these outputs are no boxes",
            )
        })?;
        if let Some(one) = found.iter().find(|one| !is_box(&one.corners)) {
            let message = format!("CNN {} has a box with the corners {:?}", cnn.name, one.corners);
            return Err(wrong(
                message,
                "let the network turn offsets from anchors into corners, or these outputs are no boxes",
            ));
        }
        if matches!(self, Form::Columns { .. } | Form::Rows { .. } | Form::Pair { .. }) {
            found = without_overlaps(found);
        }
        found.sort_by(|a, b| b.score.total_cmp(&a.score));
        for one in &mut found {
            one.name = labels.and_then(|labels| labels.get(one.class).cloned());
        }
        Ok(found)
    }
}

/// The forms of all CNNs, in their order.
///
/// # Errors
/// When no CNN has outputs that are boxes.
pub(super) fn forms(plan: &Plan, labels: Option<usize>) -> Result<Vec<Option<Form>>, Error> {
    let forms: Vec<Option<Form>> = plan.cnns.iter().map(|cnn| Form::of_cnn(plan, cnn, labels)).collect();
    if forms.iter().any(Option::is_some) {
        return Ok(forms);
    }
    let of_cnn = |cnn| outputs_of(plan, cnn).map(|(output, shape)| format!("{} is {shape}", output.name));
    let have: Vec<String> = plan.cnns.iter().flat_map(of_cnn).collect();
    Err(Error::Input {
        message: format!("--boxes: the outputs are not known to be boxes: {}", have.join(", ")),
        help: Some(
            "boxes are an output of 1×(4+C)×N or 1×N×(5+C) or 1×N×6, outputs of 1×N×4 and 1×N×C, those of TFLite's \
             detection post-processing, or those of NonMaxSuppression with its operands; the guide's page on images says more"
                .into(),
        ),
    })
}

/// A box without a name, if its score is high enough.
fn scored(class: usize, score: f64, corners: [f64; 4]) -> Option<DetectedBox> {
    (score >= SCORE).then_some(DetectedBox { class, name: None, score, corners })
}

/// The score of an output, or what is none.
fn score(number: f32) -> Result<f64, f32> {
    // What a softmax adds up to may be a little more.
    if (0.0..=1.001).contains(&number) { Ok(number.into()) } else { Err(number) }
}

/// The first class with the best of these scores.
fn best(scores: impl Iterator<Item = f32>) -> Result<(usize, f64), f32> {
    let mut best = (0, 0.0);
    for (class, number) in scores.enumerate() {
        let score = score(number)?;
        if score > best.1 {
            best = (class, score);
        }
    }
    Ok(best)
}

/// The corners of a box with this middle, width and height.
fn around([x, y, width, height]: [f32; 4]) -> [f64; 4] {
    let [x, y, width, height] = [x, y, width, height].map(f64::from);
    [x - width / 2.0, y - height / 2.0, x + width / 2.0, y + height / 2.0]
}

/// Boxes of [`Form::Columns`], or a score that is none.
fn of_columns(output: &[f32], classes: usize) -> Result<Vec<DetectedBox>, f32> {
    let count = output.len() / (4 + classes);
    let at = |number: usize, i: usize| output[number * count + i];
    let mut found = Vec::new();
    for i in 0..count {
        let (class, score) = best((0..classes).map(|class| at(4 + class, i)))?;
        found.extend(scored(class, score, around([0, 1, 2, 3].map(|number| at(number, i)))));
    }
    Ok(found)
}

/// Boxes of [`Form::Rows`], or a score that is none.
fn of_rows(output: &[f32], classes: usize) -> Result<Vec<DetectedBox>, f32> {
    let mut found = Vec::new();
    for row in output.chunks_exact(5 + classes) {
        let (class, of_class) = best(row[5..].iter().copied())?;
        let score = score(row[4])? * of_class;
        found.extend(scored(class, score, around([row[0], row[1], row[2], row[3]])));
    }
    Ok(found)
}

/// Boxes of [`Form::Final`], or a score that is none.
fn of_final(output: &[f32]) -> Result<Vec<DetectedBox>, f32> {
    let mut found = Vec::new();
    for [corners @ .., number, class] in output.as_chunks::<FINAL>().0 {
        let corners: [f32; 4] = *corners;
        found.extend(scored(class.round() as usize, score(*number)?, corners.map(f64::from)));
    }
    Ok(found)
}

/// Boxes of [`Form::Pair`], or a score that is none.
fn of_pair(corners: &[f32], scores: &[f32], classes: usize) -> Result<Vec<DetectedBox>, f32> {
    let mut found = Vec::new();
    for (corners, scores) in corners.as_chunks::<4>().0.iter().zip(scores.chunks_exact(classes)) {
        score(scores[0])?;
        let (class, score) = best(scores[1..].iter().copied())?;
        found.extend(scored(class + 1, score, corners.map(f64::from)));
    }
    Ok(found)
}

/// Boxes of [`Form::Counted`], or a score that is none.
fn of_counted([corners, classes, scores, count]: [&[f32]; 4]) -> Result<Vec<DetectedBox>, f32> {
    let all = corners.as_chunks::<4>().0.iter().zip(classes).zip(scores);
    let mut found = Vec::new();
    for (([y1, x1, y2, x2], class), number) in all.take(count[0] as usize) {
        let corners = [x1, y1, x2, y2].map(|side| f64::from(*side));
        found.push(DetectedBox { class: *class as usize, name: None, score: score(*number)?, corners });
    }
    Ok(found)
}

/// Boxes of [`Form::Suppressed`].
fn of_suppressed(kept: &[i64], boxes: &[f32], scores: &[f32], is_centred: bool) -> Vec<DetectedBox> {
    let (boxes, mut found) = (boxes.as_chunks::<4>().0, Vec::new());
    for [_, class, place] in kept.as_chunks::<3>().0 {
        // Rows of -1 follow what is kept.
        let (Ok(class), Ok(place)) = (usize::try_from(*class), usize::try_from(*place)) else { break };
        let (Some(own), Some(score)) = (boxes.get(place), scores.get(class * boxes.len() + place)) else {
            break;
        };
        let corners = if is_centred {
            around(*own)
        } else {
            let [y1, x1, y2, x2] = own.map(f64::from);
            [x1.min(x2), y1.min(y2), x1.max(x2), y1.max(y2)]
        };
        found.push(DetectedBox { class, name: None, score: f64::from(*score), corners });
    }
    found
}

/// The boxes, best first, that overlap no better box of their class which stays.
fn without_overlaps(mut boxes: Vec<DetectedBox>) -> Vec<DetectedBox> {
    // The sort is stable: of equal scores, the first comes first.
    boxes.sort_by(|a, b| b.score.total_cmp(&a.score));
    let mut kept: Vec<DetectedBox> = Vec::new();
    for one in boxes {
        if !kept
            .iter()
            .any(|better| better.class == one.class && overlap(&better.corners, &one.corners) > OVERLAP)
        {
            kept.push(one);
        }
    }
    kept
}

/// Whether these corners are left, top, right and bottom.
fn is_box([left, top, right, bottom]: &[f64; 4]) -> bool {
    left <= right && top <= bottom
}

/// The intersection of two boxes as a share of their union.
fn overlap(a: &[f64; 4], b: &[f64; 4]) -> f64 {
    let area = |corners: [f64; 4]| (corners[2] - corners[0]).max(0.0) * (corners[3] - corners[1]).max(0.0);
    let both = area([a[0].max(b[0]), a[1].max(b[1]), a[2].min(b[2]), a[3].min(b[3])]);
    if both > 0.0 { both / (area(*a) + area(*b) - both) } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use rand::rngs::ChaCha8Rng;
    use rand::{RngExt, SeedableRng};

    use super::*;

    fn found(class: usize, score: f64, corners: [f64; 4]) -> DetectedBox {
        DetectedBox { class, name: None, score, corners }
    }

    #[test]
    fn forms_are_told_by_their_dimensions() {
        let of = |outputs: &[&[usize]]| Form::of(outputs, None);
        assert_eq!(of(&[&[1, 84, 8400]]), Some(Form::Columns { classes: 80 }));
        assert_eq!(of(&[&[1, 5, 2100]]), Some(Form::Columns { classes: 1 }));
        assert_eq!(of(&[&[1, 6, 2100]]), Some(Form::Columns { classes: 2 }));
        assert_eq!(of(&[&[1, 25200, 85]]), Some(Form::Rows { classes: 80 }));
        assert_eq!(of(&[&[1, 300, 6]]), Some(Form::Final));
        assert_eq!(Form::of(&[&[1, 300, 6]], Some(1)), Some(Form::Rows { classes: 1 }));
        assert_eq!(of(&[&[1, 3000, 21], &[1, 3000, 4]]), Some(Form::Pair { corners: 1, classes: 21 }));
        assert_eq!(of(&[&[1, 3000, 4], &[1, 3000, 2]]), Some(Form::Pair { corners: 0, classes: 2 }));
        assert_eq!(of(&[&[1, 10, 4], &[1, 10], &[1, 10], &[1]]), Some(Form::Counted));
        for other in [
            &[&[1, 10, 4][..], &[1, 10], &[1, 9], &[1]][..],
            &[&[1, 10][..]][..],
            &[&[1, 4, 8400]],
            &[&[1, 8400, 5]],
            &[&[1, 7, 7]],
            &[&[2, 84, 8400]],
            &[&[1, 84, 80, 80]],
            &[&[1, 116, 8400], &[1, 32, 160, 160]],
            &[&[1, 3000, 4], &[1, 2000, 21]],
            &[],
        ] {
            assert_eq!(of(other), None, "{other:?}");
        }
    }

    /// One box, stated in each form.
    #[test]
    fn each_form_states_the_same_box() {
        let expected = [found(1, 0.75, [8.0, 16.0, 12.0, 24.0])];
        let columns = [0.0, 10.0, 0.0, 20.0, 0.0, 4.0, 0.0, 8.0, 0.125, 0.5, 0.0, 0.75];
        assert_eq!(of_columns(&columns, 2).unwrap(), expected);
        let rows = [10.0, 20.0, 4.0, 8.0, 0.75, 0.5, 1.0, 1.0, 2.0, 3.0, 4.0, 0.25, 0.5, 0.75];
        assert_eq!(of_rows(&rows, 2).unwrap(), expected);
        let last = [8.0, 16.0, 12.0, 24.0, 0.75, 1.0, 1.0, 2.0, 3.0, 4.0, 0.125, 0.0];
        assert_eq!(of_final(&last).unwrap(), expected);
        let corners = [1.0, 2.0, 3.0, 4.0, 8.0, 16.0, 12.0, 24.0];
        // The first box is background.
        assert_eq!(of_pair(&corners, &[0.875, 0.125, 0.25, 0.75], 2).unwrap(), expected);
        let boxes = [16.0, 8.0, 24.0, 12.0, 0.0, 0.0, 0.0, 0.0];
        assert_eq!(of_counted([&boxes, &[1.0, 0.0], &[0.75, 0.0], &[1.0]]).unwrap(), expected);
        let scores = [0.5, 0.5, 0.0, 0.75];
        let kept = [0, 1, 1, -1, -1, -1];
        let yx = [0.0, 0.0, 1.0, 1.0, 24.0, 12.0, 16.0, 8.0];
        assert_eq!(of_suppressed(&kept, &yx, &scores, false), expected);
        let centred = [0.0, 0.0, 1.0, 1.0, 10.0, 20.0, 4.0, 8.0];
        assert_eq!(of_suppressed(&kept, &centred, &scores, true), expected);
    }

    #[test]
    fn scores_are_from_0_to_1() {
        for wrong in [-0.5, 1.5, f32::INFINITY] {
            assert_eq!(of_columns(&[1.0, 1.0, 1.0, 1.0, wrong], 1), Err(wrong));
            assert_eq!(of_rows(&[1.0, 1.0, 1.0, 1.0, wrong, 0.5], 1), Err(wrong));
            assert_eq!(of_final(&[1.0, 1.0, 1.0, 1.0, wrong, 0.0]), Err(wrong));
            assert_eq!(of_pair(&[1.0; 4], &[wrong, 0.5], 2), Err(wrong));
            assert_eq!(of_counted([&[1.0; 4], &[0.0], &[wrong], &[1.0]]), Err(wrong));
        }
        assert!(of_columns(&[1.0, 1.0, 1.0, 1.0, f32::NAN], 1).is_err());
    }

    /// Of cells of a grid, shares can be counted.
    #[test]
    fn overlaps_are_shares_of_cells() {
        let mut random = ChaCha8Rng::seed_from_u64(1);
        for _ in 0..500 {
            let mut side = |from: usize| random.random_range(from..16);
            let mut draw = || [(); 2].map(|()| [side(0), side(0)]).map(|[a, b]| [a.min(b), a.max(b)]);
            let boxes = [draw(), draw()];
            let has = |[x, y]: &[[usize; 2]; 2], column, row| {
                (x[0]..x[1]).contains(&column) && (y[0]..y[1]).contains(&row)
            };
            let cells = || (0..16).flat_map(|row| (0..16).map(move |column| (column, row)));
            let count = |of: &dyn Fn(bool, bool) -> bool| {
                cells().filter(|&(x, y)| of(has(&boxes[0], x, y), has(&boxes[1], x, y))).count() as f64
            };
            let (both, any) = (count(&|a, b| a && b), count(&|a, b| a || b));
            let expected = if both > 0.0 { both / any } else { 0.0 };
            let corners = boxes.map(|[x, y]| [x[0], y[0], x[1], y[1]].map(|side| side as f64));
            assert!((overlap(&corners[0], &corners[1]) - expected).abs() < 1e-12, "{boxes:?}");
        }
    }

    /// What stays is the only set of boxes such that a box is left out exactly if it overlaps a better one in the set: all
    /// sets are tried.
    #[test]
    fn suppression_is_that_of_its_definition() {
        let mut random = ChaCha8Rng::seed_from_u64(2);
        let mut left_out = 0;
        for _ in 0..60 {
            // Scores differ, so that there is one answer.
            let mut scores: Vec<u32> = (0..9).map(|i| 300 + i * 70).collect();
            let boxes: Vec<DetectedBox> = (0..9)
                .map(|_| {
                    let score = scores.swap_remove(random.random_range(0..scores.len()));
                    let [x, y] = [(); 2].map(|()| f64::from(random.random_range(0..8)));
                    found(random.random_range(0..2), f64::from(score) / 1000.0, [x, y, x + 8.0, y + 8.0])
                })
                .collect();
            let is_over = |a: &DetectedBox, b: &DetectedBox| {
                let side = |i: usize| (8.0 - (a.corners[i] - b.corners[i]).abs()).max(0.0);
                let both = side(0) * side(1);
                a.class == b.class && a.score > b.score && both > 0.45 * (128.0 - both)
            };
            let is_answer = |set: u32| {
                let has = |i: usize| set >> i & 1 == 1;
                (0..9).all(|i| has(i) != (0..9).any(|j| has(j) && is_over(&boxes[j], &boxes[i])))
            };
            let answers: Vec<u32> = (0..1 << 9).filter(|set| is_answer(*set)).collect();
            assert_eq!(answers.len(), 1);
            let mut expected: Vec<DetectedBox> =
                (0..9).filter(|i| answers[0] >> i & 1 == 1).map(|i| boxes[i].clone()).collect();
            expected.sort_by(|a, b| b.score.total_cmp(&a.score));
            left_out += 9 - expected.len();
            assert_eq!(without_overlaps(boxes), expected);
        }
        assert!(left_out > 60, "{left_out}");
    }
}
