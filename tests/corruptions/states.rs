//! Corruptions of states: inputs that are outputs of the frame before.

use csdfc_input::app::resolve::RowsChoice;
use csdfc_plan::operator::{InputElement, Operator};
use csdfc_plan::plan::{Plan, Ring, Tensor};
use csdfc_plan::shape::Shape;
use csdfc_tests::random;
use rand::RngExt;

use super::{Edit, Random, pick};
use crate::run::state;

pub const CORRUPTIONS: &[(&str, Edit)] = &[
    ("state unsaid", state_unsaid),
    ("state twice", state_twice),
    ("state of another tensor", state_of_another_tensor),
    ("state of no input", state_of_no_input),
    ("state delivered", state_delivered),
    ("state by rows", state_by_rows),
    ("ring of a state on another ring", ring_on_another),
    ("ring of a state lost", ring_lost),
    ("ring of a state with other rows", ring_with_other_rows),
    ("state in a stream", state_in_a_stream),
];

/// Networks with states, by rows and whole.
pub fn subjects() -> Vec<(String, Plan)> {
    let drawn = |number: u64| {
        let (network, pairs) = state::network(&mut random(number));
        let rows = if number.is_multiple_of(2) { RowsChoice::All } else { RowsChoice::None };
        (format!("drawn {number}"), state::kept(&network, &pairs, rows).1)
    };
    (0..16).map(drawn).collect()
}

/// A tensor of a state: of its input or of its output.
fn of_state<'p>(plan: &'p mut Plan, random: &mut Random) -> Option<&'p mut Tensor> {
    let state = pick(&plan.cnns[0].states, random)?.clone();
    let is_input = random.random();
    plan.tensors.iter_mut().find(|tensor| match is_input {
        true => tensor.producer == state.input,
        false => tensor.name == state.tensor,
    })
}

fn state_unsaid(plan: &mut Plan, random: &mut Random) -> Option<()> {
    let place = random.random_range(0..plan.cnns[0].states.len());
    plan.cnns[0].states.remove(place);
    Some(())
}

fn state_twice(plan: &mut Plan, random: &mut Random) -> Option<()> {
    let mut state = pick(&plan.cnns[0].states, random)?.clone();
    if random.random() {
        state.output.push('x');
    }
    plan.cnns[0].states.push(state);
    Some(())
}

/// Its elements are not those of the input, or a state is in its place when the frame ends. Where neither is so, it may
/// well be safe there: then it is the plan of another network.
fn state_of_another_tensor(plan: &mut Plan, random: &mut Random) -> Option<()> {
    let other = pick(&plan.tensors, random)?;
    let place = random.random_range(0..plan.cnns[0].states.len());
    let states = &plan.cnns[0].states;
    let own = plan.tensors.iter().find(|tensor| tensor.name == states[place].tensor)?;
    let stays = |tensor: &&Tensor| states.iter().any(|state| state.tensor == tensor.name);
    let is_over = |ring: Ring| {
        let kept = plan.tensors.iter().filter(stays).filter_map(|tensor| tensor.ring);
        kept.filter(|kept| *kept != ring)
            .any(|kept| ring.offset < kept.offset + kept.bytes && kept.offset < ring.offset + ring.bytes)
    };
    let differs = own.shape.elements() != other.shape.elements();
    let is_lost = !stays(&other) && other.ring.is_some_and(is_over);
    let name = (other.name != own.name && (differs || is_lost)).then(|| other.name.clone())?;
    plan.cnns[0].states[place].tensor = name;
    Some(())
}

fn state_of_no_input(plan: &mut Plan, random: &mut Random) -> Option<()> {
    let layers: Vec<String> = plan.cnns[0].layers.iter().map(|layer| layer.name.clone()).collect();
    let place = random.random_range(0..plan.cnns[0].states.len());
    let name = pick(&layers, random)?.clone();
    let state = &mut plan.cnns[0].states[place];
    (state.input != name).then(|| state.input = name)
}

fn state_delivered(plan: &mut Plan, random: &mut Random) -> Option<()> {
    let state = pick(&plan.cnns[0].states, random)?.clone();
    match random.random_range(0..3) {
        0 => plan.cnns[0].inputs.push(state.input),
        1 => {
            let layer = plan.cnns[0].layers.iter_mut().find(|layer| layer.name == state.input)?;
            let Operator::Input(input) = &mut layer.operator else { return None };
            input.element = InputElement::U8;
        }
        _ => plan.tensors.iter_mut().find(|tensor| tensor.producer == state.input)?.external = true,
    }
    Some(())
}

/// All of a state is there when a frame begins.
fn state_by_rows(plan: &mut Plan, random: &mut Random) -> Option<()> {
    let state = pick(&plan.cnns[0].states, random)?.clone();
    let layer = plan.cnns[0].layers.iter_mut().find(|layer| layer.name == state.input)?;
    layer.rows_per_firing = layer.rows_per_firing.checked_sub(1).filter(|rows| *rows > 0)?;
    layer.firings = (layer.output_shape.rows() as u64).div_ceil(layer.rows_per_firing);
    Some(())
}

/// A ring that is kept shares no byte with any other that lives meanwhile: the input of a state lives all the time.
fn ring_on_another(plan: &mut Plan, random: &mut Random) -> Option<()> {
    let rings: Vec<Ring> = plan.tensors.iter().filter_map(|tensor| tensor.ring).collect();
    let other = *pick(&rings, random)?;
    let (arena, state) = (plan.memory.arena, pick(&plan.cnns[0].states, random)?.clone());
    let tensor = plan.tensors.iter_mut().find(|tensor| tensor.producer == state.input)?;
    let ring = tensor.ring.as_mut()?;
    if *ring == other || other.offset + ring.bytes > arena {
        return None;
    }
    ring.offset = other.offset;
    Some(())
}

fn ring_lost(plan: &mut Plan, random: &mut Random) -> Option<()> {
    of_state(plan, random)?.ring.take().map(|_| ())
}

fn ring_with_other_rows(plan: &mut Plan, random: &mut Random) -> Option<()> {
    let tensor = of_state(plan, random)?;
    let (row_bytes, ring) = (tensor.row_bytes, tensor.ring.as_mut()?);
    ring.ring_rows = match random.random() {
        true => ring.ring_rows + 1,
        false => ring.ring_rows.checked_sub(1).filter(|rows| *rows > 0)?,
    };
    ring.bytes = ring.ring_rows * row_bytes;
    Some(())
}

fn state_in_a_stream(plan: &mut Plan, _random: &mut Random) -> Option<()> {
    plan.cnns[0].stream = Some(csdfc_plan::plan::Stream { frame: 32, window: None });
    let is_image = |shape: &Shape| shape.is_image();
    plan.tensors.iter_mut().filter(|tensor| is_image(&tensor.shape)).for_each(|tensor| {
        tensor.stream = Some(csdfc_plan::plan::StreamRows::default());
    });
    Some(())
}
