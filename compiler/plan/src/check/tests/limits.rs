//! The limits of the checker, and the number of mistakes that it reports.

use super::plans;
use crate::check::occupied::TimeLine;
use crate::check::{Findings, MAX_NAMES, MAX_RANK, MAX_ROWS, MAX_TABLE, MAX_VIOLATIONS, Violation, resolve};
use crate::operator::{ElementWise, Function, Operator};
use crate::plan::Plan;
use crate::shape::Shape;

fn wrong() -> Violation {
    Violation::Structure { place: "here".into(), why: "it is wrong".into() }
}

#[test]
fn the_first_mistakes_are_told() {
    let mut findings = Findings::default();
    (0..=MAX_VIOLATIONS).for_each(|_| findings.push(wrong()));
    assert_eq!(findings.or(()).unwrap_err().len(), MAX_VIOLATIONS);
}

#[test]
fn limits_may_be_reached() {
    for (value, is_wrong) in [(Some(6), false), (Some(7), false), (Some(8), true), (None, true)] {
        let mut findings = Findings::default();
        findings.limit("it", value, 7);
        assert_eq!(findings.or(()).is_err(), is_wrong, "{value:?}");
    }
}

/// The parts of a plan that exceed a limit, in words.
fn beyond(plan: &Plan) -> Vec<String> {
    let found = resolve(plan).err().unwrap_or_default();
    found.iter().map(ToString::to_string).filter(|found| found.contains(", beyond the ")).collect()
}

#[test]
fn names_are_limited() {
    for (count, operands, edges) in [
        (2 * MAX_NAMES, None, None),
        (
            2 * MAX_NAMES + 1,
            Some("the number of operands is 40001, beyond the 40000 that can be checked"),
            Some("the number of edges is 40001, beyond the 40000 that can be checked"),
        ),
    ] {
        let mut plan = plans::pair();
        let layer = &mut plan.cnns[0].layers[1];
        layer.inputs = vec![layer.inputs[0].clone(); count - 1];
        assert_eq!(beyond(&plan).first().map(String::as_str), operands);
        let mut plan = plans::edges();
        let edge = plan.buffers[0].holds[0].clone();
        plan.buffers[0].holds = vec![edge; count - 3];
        assert_eq!(beyond(&plan).first().map(String::as_str), edges);
    }
}

#[test]
fn shapes_are_limited() {
    for (dims, found) in [
        (vec![1; MAX_RANK], None),
        (vec![1; MAX_RANK + 1], Some("rank of tensor `pair/t_l1` is 17, beyond the 16 that can be checked")),
        (vec![1, 1, MAX_ROWS as usize, 1], None),
        (
            vec![1, 1, MAX_ROWS as usize + 1, 1],
            Some("rows of tensor `pair/t_l1` is 1000001, beyond the 1000000 that can be checked"),
        ),
        (vec![1, 1 << 24, 1, 1 << 24], None),
        (
            vec![1, 1, 1 << 24, 1 << 24],
            Some("rows of tensor `pair/t_l1` is 16777216, beyond the 1000000 that can be checked"),
        ),
        (
            vec![1, 1 << 24, 2, 1 << 24],
            Some(
                "elements of tensor `pair/t_l1` is 562949953421312, beyond the 281474976710656 that can be checked",
            ),
        ),
    ] {
        let mut plan = plans::pair();
        plan.tensors[1].shape = Shape::new(dims);
        assert_eq!(beyond(&plan).first().map(String::as_str), found);
    }
}

/// Of each row, the layer's own and those that it reads; and the rings.
#[test]
fn the_work_on_a_frame_is_known() {
    let plan = plans::pair();
    let resolved = resolve(&plan).unwrap();
    let (cnn, rates) = (&resolved.index.cnns[0], &resolved.rates[0]);
    let line = TimeLine::new(cnn, rates, &resolved.allocations[0], &resolved.schedules);
    assert_eq!(line.work(), 32 + 2 * 32 + 2 * 32 + 2);
}

/// Ten layers of a million rows each: their tables are not made.
#[test]
fn tables_are_limited() {
    const ROWS: u64 = 1_000_000;
    let mut plan = plans::pair();
    let relu = || Operator::ElementWise(ElementWise { function: Function::Relu });
    let rates = format!("{ROWS}*1");
    let mut before = "t_in".to_owned();
    let shape = Shape::image(1, ROWS as usize, 1);
    plan.tensors.truncate(1);
    plan.tensors[0].consumers.clear();
    (plan.tensors[0].shape, plan.tensors[0].row_bytes) = (shape.clone(), 4);
    let cnn = &mut plan.cnns[0];
    (cnn.layers[0].output_shape, cnn.layers[0].firings) = (shape.clone(), ROWS);
    cnn.layers.truncate(1);
    cnn.outputs.clear();
    for name in ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"] {
        plan.add(name, "p", relu(), &[(&before, &rates, &rates)], shape.clone(), 1, 0, Some((1, 0)));
        before = format!("t_{name}");
    }
    plan.output(&before);
    plan.tensors[10].ring = None;
    let found: Vec<String> = resolve(&plan).err().unwrap().iter().map(ToString::to_string).collect();
    let beyond =
        |what: &str, value: u64| format!("{what} is {value}, beyond the {MAX_TABLE} that can be checked");
    let expected = [("the number of rows of all operands", 10 * ROWS), ("the number of firings", 21 * ROWS)];
    assert_eq!(found, expected.map(|(what, value)| beyond(what, value)));
}
