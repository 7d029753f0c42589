//! Corruptions of streams: what a hop keeps of the hops before, how far tensors lag behind, and what makes a CNN a
//! stream.

use csdfc_input::app::resolve::RowsChoice;
use csdfc_network::stream::of_hops;
use csdfc_plan::operator::Operator;
use csdfc_plan::plan::{Plan, Ring, StorageModel, StreamRows, Tensor};
use csdfc_tests::{application, generate, plan, random};
use rand::RngExt;

use super::{Edit, Random, pick};
use crate::run::stream::network;

pub const CORRUPTIONS: &[(&str, Edit)] = &[
    ("history off", history_off),
    ("delay off", delay_off),
    ("rows of a tensor unsaid", rows_unsaid),
    ("stream unsaid", stream_unsaid),
    ("kept ring below its need", kept_ring_below_its_need),
    ("kept ring on another ring", kept_ring_on_another),
    ("kept ring on a ring of another CNN", kept_ring_on_one_of_another_cnn),
    ("kept ring lost", kept_ring_lost),
    ("window moved in time", window_moved_in_time),
    ("rows of a hop off", hop_off),
];

/// Streams by rows and whole, of one row a hop and of several, with and without a window at the end.
pub fn subjects() -> Vec<(String, Plan)> {
    let texts = [
        ("wake word", r#"cnns: [(model: "builtin:wake_word", stream: ())]"#),
        ("window", r#"cnns: [(model: "builtin:resnet8", stream: (hop: 4, window: 32))], rows: all"#),
        (
            "wake word beside another CNN",
            r#"cnns: [(name: "wake", model: "builtin:wake_word", stream: ()), (name: "net", model: "builtin:lenet5")],
                rows: all"#,
        ),
        (
            "two streams",
            r#"cnns: [(name: "lines", model: "builtin:paper_pair", stream: (hop: 3)),
                (name: "wake", model: "builtin:wake_word", stream: ())]"#,
        ),
        ("lines", r#"cnns: [(model: "builtin:paper_pair", stream: (hop: 3))], rows: none"#),
    ];
    let of_text = |(name, text): (&str, &str)| (name.into(), plan(&application(&format!("({text})"))));
    let mut all: Vec<(String, Plan)> = texts.into_iter().map(of_text).collect();
    for number in 0..20 {
        let Ok(hop) = of_hops(network(&mut random(number)), None, Some(32)) else { continue };
        let drawn = plan(&generate::of_one(hop, StorageModel::Tensors, RowsChoice::All));
        if drawn.tensors.iter().any(|tensor| tensor.history() > 0) {
            all.push((format!("drawn {number}"), drawn));
        }
    }
    all
}

/// A tensor of which rows stay from hop to hop.
fn kept<'p>(plan: &'p mut Plan, random: &mut Random) -> Option<&'p mut Tensor> {
    let places: Vec<usize> = (0..plan.tensors.len()).filter(|&t| plan.tensors[t].history() > 0).collect();
    let place = *pick(&places, random)?;
    plan.tensors.get_mut(place)
}

fn stream(tensor: &mut Tensor) -> Option<&mut StreamRows> {
    tensor.stream.as_mut()
}

fn history_off(plan: &mut Plan, random: &mut Random) -> Option<()> {
    let rows = stream(kept(plan, random)?)?;
    rows.history = if random.random() { rows.history + random.random_range(1..4) } else { rows.history - 1 };
    Some(())
}

fn delay_off(plan: &mut Plan, random: &mut Random) -> Option<()> {
    let place = random.random_range(0..plan.tensors.len());
    let rows = stream(&mut plan.tensors[place])?;
    rows.delay = match rows.delay {
        0 => random.random_range(1..4),
        delay if random.random() => delay + 1,
        delay => delay - 1,
    };
    Some(())
}

fn rows_unsaid(plan: &mut Plan, random: &mut Random) -> Option<()> {
    let place = random.random_range(0..plan.tensors.len());
    plan.tensors[place].stream.take().map(|_| ())
}

/// Then each hop would be a frame of its own, without what came before.
fn stream_unsaid(plan: &mut Plan, random: &mut Random) -> Option<()> {
    kept(plan, random)?;
    plan.cnns[0].stream = None;
    if random.random() {
        plan.tensors.iter_mut().for_each(|tensor| tensor.stream = None);
    }
    Some(())
}

/// The rings of these schedules have no row to spare.
fn kept_ring_below_its_need(plan: &mut Plan, random: &mut Random) -> Option<()> {
    let tensor = kept(plan, random)?;
    let (row_bytes, ring) = (tensor.row_bytes, tensor.ring.as_mut()?);
    ring.ring_rows = ring.ring_rows.checked_sub(1).filter(|rows| *rows > 0)?;
    ring.bytes = ring.ring_rows * row_bytes;
    Some(())
}

/// A ring that lives all the time shares no byte with any other.
fn kept_ring_on_another(plan: &mut Plan, random: &mut Random) -> Option<()> {
    let rings: Vec<Ring> = plan.tensors.iter().filter_map(|tensor| tensor.ring).collect();
    let other = *pick(&rings, random)?;
    let arena = plan.memory.arena;
    let ring = kept(plan, random)?.ring.as_mut()?;
    if *ring == other || other.offset + ring.bytes > arena {
        return None;
    }
    ring.offset = other.offset;
    Some(())
}

/// A ring that stays from hop to hop shares no byte with a ring that another CNN uses meanwhile.
fn kept_ring_on_one_of_another_cnn(plan: &mut Plan, random: &mut Random) -> Option<()> {
    let cnn = kept(plan, random)?.cnn.clone();
    let others = plan.tensors.iter().filter(|tensor| tensor.cnn != cnn).filter_map(|tensor| tensor.ring);
    let others: Vec<Ring> = others.collect();
    let (other, arena) = (*pick(&others, random)?, plan.memory.arena);
    let ring = kept(plan, random).filter(|tensor| tensor.cnn == cnn)?.ring.as_mut()?;
    if other.offset + ring.bytes > arena || other.offset % 4 != 0 {
        return None;
    }
    ring.offset = other.offset;
    Some(())
}

fn kept_ring_lost(plan: &mut Plan, random: &mut Random) -> Option<()> {
    kept(plan, random)?.ring.take().map(|_| ())
}

/// Other padding above, or another stride, reads other rows of the hops before.
fn window_moved_in_time(plan: &mut Plan, random: &mut Random) -> Option<()> {
    let layers = &mut plan.cnns[0].layers;
    let place = random.random_range(0..layers.len());
    match &mut layers[place].operator {
        Operator::Conv(conv) if conv.kernel[0] > 1 => {
            // Without as much padding above as a stride, the tensor lags one row further behind. Less than a stride may
            // move nothing that the plan says: rows that another layer needs stay anyhow.
            conv.pads[0] = conv.pads[0].checked_sub(conv.stride[0])?;
            Some(())
        }
        Operator::Conv(conv) if random.random() => {
            conv.stride[0] += 1;
            Some(())
        }
        _ => None,
    }
}

fn hop_off(plan: &mut Plan, _random: &mut Random) -> Option<()> {
    let name = plan.cnns[0].inputs.first()?.clone();
    let layer = plan.cnns[0].layers.iter_mut().find(|layer| layer.name == name)?;
    let axis = layer.output_shape.row_axis()?;
    layer.output_shape.dims[axis] += 1;
    let shape = layer.output_shape.clone();
    plan.tensors.iter_mut().find(|tensor| tensor.producer == name)?.shape = shape;
    Some(())
}
