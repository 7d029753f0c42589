//! Edits that change a plan but leave it safe.

use csdfc_plan::plan::{Plan, Step};
use rand::RngExt;
use rand::seq::SliceRandom;

use super::analysis::{
    conflict, expand, is_disjoint, is_safe, notation, overlap, places, rates_text, set_schedule, settle,
};
use super::{Random, pick};
use csdfc_tests::rates;

/// Harmless because no byte of the new place is in use, by any ring or partition, while the ring is.
pub fn ring_moved_to_free_space(plan: &mut Plan, random: &mut Random) -> Option<()> {
    // Places of workspaces are not among them.
    if plan.memory.workspace > 0 {
        return None;
    }
    let places = places(plan);
    let rings: Vec<usize> = (0..plan.tensors.len()).filter(|i| plan.tensors[*i].ring.is_some()).collect();
    let i = *pick(&rings, random)?;
    let tensor = &plan.tensors[i];
    let cnn = plan.cnns.iter().position(|cnn| cnn.name == tensor.cnn)?;
    let own = places.iter().position(|place| place.cnn == cnn && place.tensor == tensor.name)?;
    let ring = tensor.ring?;
    let others = places.iter().enumerate().filter(|(j, b)| *j != own && conflict(plan, &places[own], b));
    let taken: Vec<_> = others.map(|(_, place)| place.ranges[0].clone()).collect();
    // Anywhere up to a little beyond the arena's end.
    let last = (plan.memory.buffers - ring.bytes) / tensor.format.element.bytes() + 64;
    let anywhere = (0..1000).map(|_| random.random_range(0..=last) * tensor.format.element.bytes());
    // A tight arena has few gaps: they begin and end where other rings do.
    let edges =
        taken.iter().flat_map(|range| [Some(range.end), range.start.checked_sub(ring.bytes)]).flatten();
    let mut offsets: Vec<u64> = anywhere.chain(edges).chain([plan.memory.buffers]).collect();
    offsets.retain(|offset| {
        *offset != ring.offset && taken.iter().all(|range| !overlap(range, &(*offset..*offset + ring.bytes)))
    });
    let offset = *pick(&offsets, random)?;
    plan.tensors[i].ring.as_mut()?.offset = offset;
    settle(plan);
    Some(())
}

/// Harmless because nothing lies beyond the arena's end.
pub fn ring_moved_beyond_the_end(plan: &mut Plan, random: &mut Random) -> Option<()> {
    let rings: Vec<usize> = (0..plan.tensors.len()).filter(|i| plan.tensors[*i].ring.is_some()).collect();
    let element_bytes = 4 * random.random_range(0..3);
    let end = plan.memory.arena;
    plan.tensors[*pick(&rings, random)?].ring.as_mut()?.offset = end + element_bytes;
    settle(plan);
    Some(())
}

/// Harmless because a larger ring keeps rows longer, and its bytes are nobody else's while it lives.
pub fn ring_made_larger(plan: &mut Plan, random: &mut Random) -> Option<()> {
    let rings: Vec<usize> = (0..plan.tensors.len()).filter(|i| plan.tensors[*i].ring.is_some()).collect();
    let i = *pick(&rings, random)?;
    let (row_bytes, end) = (plan.tensors[i].row_bytes, plan.memory.arena);
    let ring = plan.tensors[i].ring.as_mut()?;
    ring.ring_rows += random.random_range(1..4);
    ring.bytes = ring.ring_rows * row_bytes;
    ring.offset = end;
    settle(plan);
    Some(())
}

/// Harmless because the two neighbours do not depend on each other (still no row is read before it is written), every
/// ring still holds the rows that it must, and rings that share addresses still do not live at the same time. The edit
/// checks all this.
pub fn independent_firings_swapped(plan: &mut Plan, random: &mut Random) -> Option<()> {
    let p = random.random_range(0..plan.partitions.len());
    let mut firings: Vec<String> =
        expand(&plan.partitions[p].schedule).into_iter().map(str::to_string).collect();
    let cnn = plan.cnns.iter().find(|cnn| cnn.name == plan.partitions[p].cnn)?;
    let layer = |name: &String| cnn.layers.iter().find(|layer| layer.name == *name).unwrap();
    let reads = |a: &String, b: &String| layer(a).inputs.iter().any(|input| input.tensor == layer(b).output);
    let free: Vec<usize> = (1..firings.len())
        .filter(|i| {
            let (a, b) = (&firings[*i - 1], &firings[*i]);
            a != b && !reads(a, b) && !reads(b, a)
        })
        .collect();
    let i = *pick(&free, random)?;
    firings.swap(i - 1, i);
    set_schedule(&mut plan.partitions[p], &firings);
    if !is_safe(plan) || !is_disjoint(plan) {
        return None;
    }
    settle(plan);
    Some(())
}

/// Harmless because the firings are the same.
pub fn loops_unrolled(plan: &mut Plan, random: &mut Random) -> Option<()> {
    fn unroll(steps: &[Step], random: &mut Random) -> Vec<Step> {
        let one = |step: &Step| match step {
            Step::Repeat { repeat, body } if *repeat > 1 && random.random_range(0..2) == 0 => {
                let rest = Step::Repeat { repeat: repeat - 1, body: body.clone() };
                body.iter().cloned().chain([rest]).collect()
            }
            Step::Repeat { repeat, body } => {
                vec![Step::Repeat { repeat: *repeat, body: unroll(body, random) }]
            }
            fire => vec![fire.clone()],
        };
        steps.iter().flat_map(one).collect()
    }
    let p = random.random_range(0..plan.partitions.len());
    let partition = &mut plan.partitions[p];
    let schedule = match random.random_range(0..2) {
        0 => unroll(&partition.schedule, random),
        _ => {
            let firings = expand(&partition.schedule);
            firings.into_iter().map(|layer| Step::Fire { fire: layer.to_string() }).collect()
        }
    };
    if schedule == partition.schedule {
        return None;
    }
    partition.notation = notation(&schedule);
    partition.schedule = schedule;
    Some(())
}

/// Harmless because `parallel` lists sets, and the other lists are looked up by name.
pub fn lists_reordered(plan: &mut Plan, random: &mut Random) -> Option<()> {
    let before = plan.clone();
    plan.parallel.shuffle(random);
    plan.parallel.iter_mut().for_each(|element| element.shuffle(random));
    plan.tensors.shuffle(random);
    plan.tensors.iter_mut().for_each(|tensor| tensor.consumers.shuffle(random));
    plan.buffers.shuffle(random);
    plan.buffers.iter_mut().for_each(|buffer| buffer.holds.shuffle(random));
    (*plan != before).then_some(())
}

/// Harmless because these are remarks.
pub fn remarks_changed(plan: &mut Plan, random: &mut Random) -> Option<()> {
    match random.random_range(0..8) {
        0 => plan.cnns[0].layers.iter_mut().for_each(|layer| layer.onnx_nodes.push("another".into())),
        1 => plan.application.push_str(" once more"),
        2 => plan.device.basis = "guessed".into(),
        3 => plan.search.evaluations += 1,
        4 => plan.pareto.clear(),
        5 => plan.cnns[0].latency_ns += 1,
        6 => plan.cnns[0].model.path.push('x'),
        _ => plan.certificate.rings.clear(),
    }
    Some(())
}

/// Harmless because the same rates can be coded in many ways.
pub fn rates_written_out(plan: &mut Plan, random: &mut Random) -> Option<()> {
    let c = random.random_range(0..plan.cnns.len());
    let before = plan.cnns[c].clone();
    for input in plan.cnns[c].layers.iter_mut().flat_map(|layer| &mut layer.inputs) {
        for text in [&mut input.acquire, &mut input.release] {
            if random.random_range(0..2) == 0 {
                *text = rates_text(&rates(text));
            }
        }
    }
    (plan.cnns[c] != before).then_some(())
}

/// Harmless because the total is within the budget, or the constraints are honestly said not to be met.
pub fn honest_constraints(plan: &mut Plan, random: &mut Random) -> Option<()> {
    let total = plan.memory.total;
    let within = random.random_range(0..2) == 0;
    plan.constraints.memory =
        Some(if within { total + random.random_range(0..9) } else { total - random.random_range(1..9) });
    plan.constraints.fps.clear();
    plan.constraints.met = within;
    Some(())
}
