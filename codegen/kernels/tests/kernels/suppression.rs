//! Suppression compared with its definition on sorted lists.

use csdfc_kernels::arch::Isa;
use csdfc_kernels::elements::{ElementShape, Elements, ElementsMut};
use csdfc_kernels::kernel::{Context, ElementKernel};
use csdfc_kernels::span::SpanMut;
use csdfc_kernels::suppression::NonMaxSuppression;

use crate::testing::Random;

/// The part of their union that two boxes have in common: boxes as low and high corners.
fn common(a: [f64; 4], b: [f64; 4]) -> f64 {
    let length = |side: usize| (a[side + 2].min(b[side + 2]) - a[side].max(b[side])).max(0.0);
    let area = |x: [f64; 4]| (x[2] - x[0]) * (x[3] - x[1]);
    let both = length(0) * length(1);
    if both > 0.0 { both / (area(a) + area(b) - both) } else { 0.0 }
}

fn expected(p: &NonMaxSuppression, boxes: &[[f64; 4]], scores: &[f32]) -> Vec<usize> {
    let mut order: Vec<usize> =
        (0..scores.len()).filter(|b| p.score.is_none_or(|s| scores[*b] > s)).collect();
    order.sort_by(|a, b| scores[*b].partial_cmp(&scores[*a]).unwrap());
    let mut kept: Vec<usize> = Vec::new();
    for b in order {
        if kept.len() < p.most && kept.iter().all(|k| common(boxes[*k], boxes[b]) <= f64::from(p.overlap)) {
            kept.push(b);
        }
    }
    kept
}

/// Boxes of eighths, so that equal scores, equal boxes and boxes that touch are among them, and no area is rounded.
#[test]
fn kept_boxes_are_those_of_the_definition() {
    let mut random = Random(17);
    let mut kept = [0; 2];
    for round in 0..300 {
        let [batches, classes, count] = [random.within(1, 2), random.within(1, 3), random.within(1, 12)];
        let p = NonMaxSuppression {
            most: random.within(1, count),
            overlap: *random.pick(&[0.0, 0.25, 0.5, 1.0]),
            score: *random.pick(&[None, Some(0.0), Some(0.5)]),
            centred: round % 2 == 0,
        };
        let mut eighths = |n: usize| (0..n).map(|_| random.within(0, 8) as f32 / 8.0).collect::<Vec<_>>();
        let (boxes, scores) = (eighths(batches * count * 4), eighths(batches * classes * count));
        let sides: Vec<[f64; 4]> = boxes
            .chunks(4)
            .map(|of| {
                let [a, b, c, d] = [0, 1, 2, 3].map(|i| f64::from(of[i]));
                match p.centred {
                    true => [a - c / 2.0, b - d / 2.0, a + c / 2.0, b + d / 2.0],
                    false => [a.min(c), b.min(d), a.max(c), b.max(d)],
                }
            })
            .collect();
        let mut want = Vec::new();
        for n in 0..batches {
            for c in 0..classes {
                let scores = &scores[(n * classes + c) * count..][..count];
                let found = expected(&p, &sides[n * count..][..count], scores);
                want.extend(found.into_iter().flat_map(|b| [n as i64, c as i64, b as i64]));
            }
        }
        let rows = batches * classes * p.most;
        kept = [kept[0] + want.len() / 3, kept[1] + rows];
        want.resize(rows * 3, -1);
        let operands = [
            Elements::dense(&boxes, &[batches, count, 4]),
            Elements::dense(&scores, &[batches, classes, count]),
        ];
        let mut workspace = vec![f32::NAN; p.most];
        let mut context = Context { workspace: &mut workspace, ..Context::alone(Isa::detect()) };
        let mut made = vec![7; rows * 3];
        p.elements(&mut context, 0..1, &operands, &[], &mut ElementsMut::dense(&mut made, &[rows, 3]));
        assert_eq!(made, want, "{p:?} of {boxes:?} with {scores:?}");
        // Row by row, in any order.
        made.fill(7);
        for row in (0..rows).rev() {
            let mut output = ElementsMut {
                data: SpanMut::new(&mut made),
                shape: ElementShape::by_rows(&[rows, 3], 0, rows),
            };
            p.elements(&mut context, row..row + 1, &operands, &[], &mut output);
        }
        assert_eq!(made, want, "{p:?} of {boxes:?} with {scores:?}, row by row");
        let mut floats = vec![f32::NAN; rows * 3];
        let mut context = Context { workspace: &mut workspace, ..Context::alone(Isa::detect()) };
        p.elements(&mut context, 0..1, &operands, &[], &mut ElementsMut::dense(&mut floats, &[rows, 3]));
        assert_eq!(floats, want.iter().map(|index| *index as f32).collect::<Vec<_>>(), "{p:?}, as floats");
    }
    // Boxes, and rows without one.
    assert!(kept[0] > 1000 && kept[1] - kept[0] > 300, "{kept:?}");
}
