//! States: inputs that are outputs of the frame before.
//!
//! All rows of a state are in the ring of its input when a frame begins. When the frame has ended, the bytes of its
//! output's tensor are copied there. So both have a ring of all rows, and their elements lie alike.

use crate::format::{Element, Format, Layout};
use crate::operator::{InputElement, Operator};
use crate::plan::{State, StorageModel};
use crate::shape::{Order, Shape};

use super::index::{CnnIndex, Index, LayerIndex};
use super::{Findings, Violation};

/// Checks the states of all CNNs.
pub(super) fn check(index: &Index<'_>) -> Result<(), Vec<Violation>> {
    let mut findings = Findings::default();
    for cnn in index.cnns.iter().filter(|cnn| !cnn.cnn.states.is_empty()) {
        let mut wrong = |why: &str| {
            let place = format!("CNN `{}`, which has states", cnn.cnn.name);
            findings.push(Violation::Structure { place, why: why.into() });
        };
        if cnn.cnn.stream.is_some() {
            wrong("is a stream");
        }
        if cnn.partitions.len() > 1 {
            wrong("has several partitions");
        }
        if index.plan.storage_model != StorageModel::Tensors {
            wrong("is in storage model `edges`");
        }
        for state in &cnn.cnn.states {
            check_state(cnn, state, &mut findings);
        }
    }
    findings.or(())
}

fn check_state(cnn: &CnnIndex<'_>, state: &State, findings: &mut Findings) {
    let input = cnn.layers.iter().find(|entry| entry.layer.name == state.input);
    let output = cnn.layers.iter().find(|entry| entry.tensor.name == state.tensor);
    // Rule 1 has found both.
    let (Some(input), Some(output)) = (input, output) else { return };
    let mut wrong = |entry: &LayerIndex<'_>, why: String| {
        let (name, tensor) = (cnn.cnn.name.clone(), entry.tensor.name.clone());
        findings.push(Violation::Tensor { cnn: name, tensor, why });
    };
    match &input.layer.operator {
        Operator::Input(input) if input.element == InputElement::F32 => {}
        _ => wrong(input, "it is a state, but no input of floats".into()),
    }
    if matches!(output.layer.operator, Operator::Input(_)) {
        wrong(output, "it is an input, and the output of a state".into());
    }
    let floats = Format { layout: Layout::Hwc, element: Element::F32 };
    for entry in [input, output] {
        if entry.tensor.format != floats {
            wrong(entry, format!("it is kept as a state, but is {}, not {floats}", entry.tensor.format));
        }
        let rows = entry.tensor.ring.map(|ring| ring.ring_rows);
        if rows != Some(entry.rows()) {
            let rows = rows.map_or("no ring".into(), |rows| format!("a ring of {rows} rows"));
            wrong(entry, format!("a state needs a ring of {} rows, and it has {rows}", entry.rows()));
        }
    }
    if !state.initial.is_finite() {
        wrong(input, format!("its elements would be {} in the first frame", state.initial));
    }
    if input.tensor.external {
        wrong(input, "it is a state, but the caller holds it".into());
    }
    if input.layer.rows_per_firing < input.rows() {
        let rows = input.layer.rows_per_firing;
        wrong(input, format!("it is a state, all of which is there, but a firing makes {rows} rows"));
    }
    let [own, expected] = [&output.tensor.shape, &input.tensor.shape];
    if !lie_alike(own, expected) {
        wrong(output, format!("its elements do not lie as those of the state of shape {expected}"));
    }
}

/// Whether each element of a whole tensor lies at the same place in both shapes.
fn lie_alike(a: &Shape, b: &Shape) -> bool {
    let lies_in_order = |shape: &Shape| match (shape.dims.as_slice(), shape.order) {
        ([1, channels, _, _], Order::ChannelsFirst) => *channels == 1,
        _ => true,
    };
    let image = |shape: &Shape| match (shape.dims.as_slice(), shape.order) {
        (&[1, c, h, w], Order::ChannelsFirst) | (&[1, h, w, c], Order::ChannelsLast) => Some([c, h, w]),
        _ => None,
    };
    match (image(a), image(b)) {
        (Some(a), Some(b)) => a == b,
        _ => lies_in_order(a) && lies_in_order(b) && a.elements() == b.elements(),
    }
}
