//! Corruptions of storage: rings, edges, buffers, and the partitions that run at the same time.

use csdfc_plan::plan::{Plan, StorageModel};
use rand::RngExt;

use super::analysis::{at_once, clash, conflict, overlap, places, rows_held, settle};
use super::{Random, pick};
use csdfc_tests::rates;

/// Invalid because, between two firings, some byte holds data of two rings that is still needed, or belongs to a ring
/// that shares no bytes. All sums are made right.
pub fn ring_moved_onto_a_live_one(plan: &mut Plan, random: &mut Random) -> Option<()> {
    if plan.storage_model != StorageModel::Tensors {
        return None;
    }
    let places = places(plan);
    let pairs: Vec<(usize, usize)> = (0..places.len())
        .flat_map(|a| (0..places.len()).map(move |b| (a, b)))
        .filter(|(a, b)| a != b && conflict(plan, &places[*a], &places[*b]))
        .collect();
    let (a, b) = *pick(&pairs, random)?;
    let (moved, onto) = (&places[a], &places[b]);
    let cnn = plan.cnns[moved.cnn].name.clone();
    let tensor = plan.tensors.iter().position(|t| t.cnn == cnn && t.name == moved.tensor)?;
    let element = plan.tensors[tensor].format.element.bytes();
    let bytes = plan.tensors[tensor].ring?.bytes;
    // From one element of overlap at the low end to one at the high end.
    let low = (onto.ranges[0].start + element).saturating_sub(bytes).next_multiple_of(element);
    let high = onto.ranges[0].end - element;
    let offset = low + random.random_range(0..=(high - low) / element) * element;
    let mut there = moved.clone();
    there.ranges[0] = offset..offset + bytes;
    if !clash(plan, &there, onto) {
        return None;
    }
    plan.tensors[tensor].ring.as_mut()?.offset = offset;
    settle(plan);
    Some(())
}

/// Invalid because at some firing the rows written and not yet released are more than the ring has: two of them are
/// in one place. All sums are made right, so that only a replay can find it.
pub fn ring_below_its_need(plan: &mut Plan, random: &mut Random) -> Option<()> {
    let candidates: Vec<(usize, u64)> = (0..plan.tensors.len())
        .filter_map(|i| {
            let (tensor, cnn) = (&plan.tensors[i], cnn_of(plan, i));
            tensor.ring?;
            let held = match is_cut(plan, i) {
                true => most_at_once(plan, i),
                false => rows_held(plan, &plan.cnns[cnn], &tensor.name, &tensor.consumers)?,
            };
            (held > 1).then_some((i, held))
        })
        .collect();
    let (i, held) = *pick(&candidates, random)?;
    let row_bytes = plan.tensors[i].row_bytes;
    let ring = plan.tensors[i].ring.as_mut()?;
    ring.ring_rows = if random.random_range(0..3) > 0 { held - 1 } else { random.random_range(1..held) };
    ring.bytes = ring.ring_rows * row_bytes;
    settle(plan);
    Some(())
}

/// As [`ring_below_its_need`], for the ring of one edge.
pub fn edge_ring_below_its_need(plan: &mut Plan, random: &mut Random) -> Option<()> {
    let mut candidates = Vec::new();
    for (b, buffer) in plan.buffers.iter().enumerate() {
        for (e, edge) in buffer.holds.iter().enumerate().filter(|(_, edge)| edge.half.is_none()) {
            let cnn = plan.cnns.iter().find(|cnn| cnn.name == edge.cnn)?;
            let held = rows_held(plan, cnn, &edge.tensor, std::slice::from_ref(&edge.consumer))?;
            if held > 1 {
                candidates.push((b, e, held));
            }
        }
    }
    let (b, e, held) = *pick(&candidates, random)?;
    let edge = &mut plan.buffers[b].holds[e];
    let row_bytes = edge.bytes / edge.ring_rows;
    edge.ring_rows = random.random_range(1..held);
    edge.bytes = edge.ring_rows * row_bytes;
    settle(plan);
    Some(())
}

fn cnn_of(plan: &Plan, tensor: usize) -> usize {
    plan.cnns.iter().position(|cnn| cnn.name == plan.tensors[tensor].cnn).unwrap()
}

/// Whether a tensor goes to a partition that runs at the same time as its producer's.
fn is_cut(plan: &Plan, tensor: usize) -> bool {
    let cnn = cnn_of(plan, tensor);
    let name = &plan.tensors[tensor].name;
    places(plan).iter().any(|place| place.cnn == cnn && place.tensor == *name && place.cut)
}

/// The most rows that a single firing needs of a tensor, whatever the order of firings.
fn most_at_once(plan: &Plan, tensor: usize) -> u64 {
    let cnn = &plan.cnns[cnn_of(plan, tensor)];
    let inputs = cnn.layers.iter().flat_map(|layer| &layer.inputs);
    let of_one = |acquire: &str, release: &str| {
        let (mut held, mut most) = (0, 0);
        for (acquired, released) in rates(acquire).into_iter().zip(rates(release)) {
            held += acquired;
            most = most.max(held);
            held -= released;
        }
        most
    };
    let own = inputs.filter(|input| input.tensor == plan.tensors[tensor].name);
    own.map(|input| of_one(&input.acquire, &input.release)).max().unwrap_or(0)
}

/// Invalid because an edge joins a buffer of which another edge is in use at the same time. Sums are made right.
pub fn edge_moved_to_a_busy_buffer(plan: &mut Plan, random: &mut Random) -> Option<()> {
    let mut candidates = Vec::new();
    let places = places(plan);
    let place = |edge: &csdfc_plan::plan::Edge| {
        let reads = |p: &&super::analysis::Place| {
            plan.cnns[p.cnn].name == edge.cnn && p.tensor == edge.tensor && p.reader == edge.consumer
        };
        places.iter().find(reads).unwrap()
    };
    for (from, buffer) in plan.buffers.iter().enumerate() {
        for (e, edge) in buffer.holds.iter().enumerate() {
            for (to, other) in plan.buffers.iter().enumerate().filter(|(to, _)| *to != from) {
                if other.holds.iter().any(|held| conflict(plan, place(edge), place(held))) {
                    candidates.push((from, e, to));
                }
            }
        }
    }
    let (from, e, to) = *pick(&candidates, random)?;
    let edge = plan.buffers[from].holds.remove(e);
    plan.buffers[to].holds.push(edge);
    plan.buffers.retain(|buffer| !buffer.holds.is_empty());
    settle(plan);
    Some(())
}

/// Invalid because both halves of a double buffer are busy throughout in both partitions: one that has become the
/// other's place, another edge's of these partitions, another number or no half at all is no double buffer.
pub fn double_buffer_broken(plan: &mut Plan, random: &mut Random) -> Option<()> {
    let mut halves = Vec::new();
    for (b, buffer) in plan.buffers.iter().enumerate() {
        let held = buffer.holds.iter().enumerate().filter(|(_, edge)| edge.half.is_some());
        halves.extend(held.map(|(e, _)| (b, e)));
    }
    let &(b, e) = pick(&halves, random)?;
    let twin = *halves.iter().find(|(other, _)| {
        let (one, two) = (&plan.buffers[b].holds[e], &plan.buffers[*other].holds);
        *other != b && two.iter().any(|edge| edge.half.is_some() && edge.tensor == one.tensor)
    })?;
    match random.random_range(0..5) {
        0 => plan.buffers[b].holds[e].half = None,
        1 => plan.buffers[b].holds[e].half = plan.buffers[twin.0].holds[twin.1].half,
        2 => drop(plan.buffers[b].holds.remove(e)),
        3 => plan.buffers[b].holds[e].half = Some(random.random_range(3..=255)),
        _ => {
            let edge = plan.buffers[b].holds.remove(e);
            plan.buffers[twin.0].holds.push(edge);
        }
    }
    plan.buffers.retain(|buffer| !buffer.holds.is_empty());
    settle(plan);
    Some(())
}

/// Invalid because an edge that its reader reads has no place, or two, or one whose sizes contradict each other.
pub fn edge_lost_or_doubled(plan: &mut Plan, random: &mut Random) -> Option<()> {
    let b = random.random_range(0..plan.buffers.len().max(1));
    let buffer = plan.buffers.get_mut(b)?;
    let e = random.random_range(0..buffer.holds.len());
    match random.random_range(0..5) {
        0 => drop(buffer.holds.remove(e)),
        1 => buffer.holds.push(buffer.holds[e].clone()),
        2 => buffer.holds[e].bytes += 4,
        3 => {
            buffer.holds[e].consumer.push('x');
            return Some(());
        }
        _ => buffer.holds[e].half = Some(if buffer.holds[e].half == Some(1) { 2 } else { 1 }),
    }
    plan.buffers.retain(|buffer| !buffer.holds.is_empty());
    settle(plan);
    Some(())
}

/// Invalid because two buffers share bytes, a buffer is not as large as its largest edge, or leaves the arena.
pub fn buffer_off(plan: &mut Plan, random: &mut Random) -> Option<()> {
    if plan.buffers.len() < 2 {
        return None;
    }
    let b = random.random_range(1..plan.buffers.len());
    let arena = plan.memory.arena;
    let buffer = &mut plan.buffers[b];
    match random.random_range(0..4) {
        0 => buffer.offset -= 4,
        1 => buffer.bytes += 4,
        2 => buffer.bytes -= 4,
        _ => buffer.offset = arena - buffer.bytes + 4,
    }
    Some(())
}

/// Invalid because partitions that run at the same time share no memory but the channel between them, and the two that
/// are put together here have rings at the same addresses. Sums are made right.
pub fn partitions_that_share_put_together(plan: &mut Plan, random: &mut Random) -> Option<()> {
    let places = places(plan);
    let mut candidates: Vec<[String; 2]> = Vec::new();
    for (i, a) in places.iter().enumerate() {
        for b in places[i + 1..].iter().filter(|b| a.cnn != b.cnn) {
            let share = a.ranges.iter().any(|x| b.ranges.iter().any(|y| overlap(x, y)));
            let (p, q) = (&a.partitions[0], &b.partitions[0]);
            if share && !at_once(plan, p, q) {
                candidates.push([p.clone(), q.clone()]);
            }
        }
    }
    let [p, q] = pick(&candidates, random)?.clone();
    match plan.parallel.iter_mut().find(|element| element.contains(&p)) {
        Some(element) if random.random_range(0..2) == 0 => element.push(q),
        _ => plan.parallel.push(vec![p, q]),
    }
    settle(plan);
    Some(())
}

/// Invalid because a ring or buffer reaches beyond the arena, or the arena is stated larger than it is.
pub fn arena_off(plan: &mut Plan, random: &mut Random) -> Option<()> {
    let step = 4 * random.random_range(1..=plan.memory.arena / 4);
    match random.random_range(0..2) {
        0 => plan.memory.arena -= step,
        _ => plan.memory.arena += step,
    }
    plan.memory.buffers = plan.memory.buffers.min(plan.memory.arena);
    plan.memory.total = plan.memory.parameters_stored + plan.memory.arena;
    plan.memory.proven = plan.memory.arena == plan.memory.bound;
    Some(())
}

/// Invalid because `bytes` is `ring_rows · row_bytes`, no ring has no rows, and elements lie at multiples of their size.
pub fn ring_sizes_disagree(plan: &mut Plan, random: &mut Random) -> Option<()> {
    let with: Vec<usize> = (0..plan.tensors.len()).filter(|i| plan.tensors[*i].ring.is_some()).collect();
    let ring = plan.tensors[*pick(&with, random)?].ring.as_mut()?;
    match random.random_range(0..5) {
        0 => ring.bytes += random.random_range(1..100),
        1 => ring.bytes -= random.random_range(1..=ring.bytes),
        2 => ring.ring_rows += 1,
        3 => (ring.ring_rows, ring.bytes) = (0, 0),
        _ => ring.offset += random.random_range(1..4),
    }
    Some(())
}

/// Invalid because a tensor that is neither input nor output has no other place than its ring; a network output is
/// external; in model `edges` no tensor has a ring.
pub fn tensor_without_a_place(plan: &mut Plan, random: &mut Random) -> Option<()> {
    let i = random.random_range(0..plan.tensors.len());
    let tensor = &plan.tensors[i];
    let is_output = plan
        .cnns
        .iter()
        .any(|cnn| cnn.name == tensor.cnn && cnn.outputs.iter().any(|output| output.tensor == tensor.name));
    let is_input =
        plan.cnns.iter().any(|cnn| cnn.name == tensor.cnn && cnn.inputs.contains(&tensor.producer));
    let tensors_model = plan.storage_model == StorageModel::Tensors;
    let row_bytes = tensor.row_bytes;
    let tensor = &mut plan.tensors[i];
    match (is_output, is_input) {
        (true, _) => tensor.external = false,
        (_, false) if random.random_range(0..2) == 0 => tensor.external = true,
        (_, false) if tensors_model => tensor.ring = None,
        _ if !tensors_model => {
            tensor.ring = Some(csdfc_plan::plan::Ring { ring_rows: 1, offset: 0, bytes: row_bytes });
        }
        _ => return None,
    }
    Some(())
}

/// Invalid because a layer fires in another partition than the one that it says it belongs to.
pub fn layer_in_a_wrong_partition(plan: &mut Plan, random: &mut Random) -> Option<()> {
    let names: Vec<String> = plan.partitions.iter().map(|partition| partition.name.clone()).collect();
    let c = random.random_range(0..plan.cnns.len());
    let l = random.random_range(0..plan.cnns[c].layers.len());
    let layer = &mut plan.cnns[c].layers[l];
    let other: Vec<&String> = names.iter().filter(|name| **name != layer.partition).collect();
    layer.partition = match pick(&other, random) {
        Some(name) => (*name).clone(),
        None => "nowhere".into(),
    };
    Some(())
}
