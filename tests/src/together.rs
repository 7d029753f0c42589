//! Rings pushed together as far as the checker accepts it: a packer that does not know the rules itself.

use csdfc_plan::check::Violation;
use csdfc_plan::plan::{Plan, Ring};

/// Places tried for each ring.
const TRIES: usize = 48;

/// Corrects every sum that depends on where rings lie. The bound, and the moment of the most bytes, are those of the
/// checker.
pub fn settle(plan: &mut Plan) {
    (plan.certificate.bound, plan.certificate.claimed) = (None, None);
    resize(plan);
    for violation in csdfc_plan::check(plan).err().into_iter().flatten() {
        match violation {
            Violation::Sum { what, expected, .. } if what == "memory.bound" => {
                plan.memory.bound = expected.parse().unwrap_or(plan.memory.bound);
            }
            Violation::Witness { moment } => plan.certificate.bound = Some(moment),
            _ => {}
        }
    }
    plan.memory.proven = plan.memory.arena == plan.memory.bound;
}

/// The same plan with rings and workspaces that have all their bytes to themselves, later tensors below earlier ones.
pub fn apart(plan: &Plan) -> Plan {
    let (mut plan, mut end) = with_rings_apart(plan);
    // Above a ring of a layer that follows its operands come these operands.
    end = end.next_multiple_of(4);
    let layers = plan.cnns.iter_mut().flat_map(|cnn| &mut cnn.layers);
    for workspace in layers.map(|layer| &mut layer.workspace).filter(|workspace| workspace.bytes > 0) {
        (workspace.offset, end) = (end, end + workspace.bytes);
    }
    settle(&mut plan);
    plan
}

/// The same plan, each of whose rings has its bytes for no other ring, and where the last of them ends.
fn with_rings_apart(plan: &Plan) -> (Plan, u64) {
    let mut plan = plan.clone();
    let mut end = 0;
    for ring in plan.tensors.iter_mut().rev().filter_map(|tensor| tensor.ring.as_mut()) {
        (ring.offset, end) = (end, end + ring.bytes);
    }
    settle(&mut plan);
    (plan, end)
}

/// The plan, whose rings are [`apart`], with the ring of a tensor moved up until the checker refuses the next step: as
/// close as the ring may follow its operands. Also returns the number of bytes.
pub fn follow(plan: &Plan, tensor: usize) -> (Plan, u64) {
    let moved = |bytes: u64| {
        let mut plan = plan.clone();
        if let Some(ring) = &mut plan.tensors[tensor].ring {
            ring.offset += bytes;
        }
        resize(&mut plan);
        plan
    };
    let element = plan.tensors[tensor].format.element.bytes();
    let size = plan.tensors[tensor].ring.map_or(0, |ring| ring.bytes);
    let (mut yes, mut no) = (0, size / element + 1);
    while yes + 1 < no {
        let middle = (yes + no) / 2;
        match csdfc_plan::check(&moved(middle * element)) {
            Ok(_) => yes = middle,
            Err(_) => no = middle,
        }
    }
    (moved(yes * element), yes * element)
}

/// A plan with the same rings and firings as this one of model `tensors`, one ring after another as low as the checker
/// lets it be among those before it. `draw` gives a number below its argument.
pub fn pushed(plan: &Plan, draw: &mut dyn FnMut(usize) -> usize) -> Plan {
    let (mut plan, _) = with_rings_apart(plan);
    let mut rings: Vec<usize> = (0..plan.tensors.len()).filter(|&t| plan.tensors[t].ring.is_some()).collect();
    for i in (1..rings.len()).rev() {
        rings.swap(i, draw(i + 1));
    }
    for (i, &t) in rings.iter().enumerate() {
        let Some(own) = plan.tensors[t].ring else { continue };
        let mut places = vec![0];
        for _ in 0..TRIES {
            // A row of this ring begins or ends where a row of another does.
            let other = rings[draw(i.max(1))];
            let Some(Ring { ring_rows, offset, .. }) = plan.tensors[other].ring else { continue };
            let at = offset + draw(ring_rows as usize + 1) as u64 * plan.tensors[other].row_bytes;
            let before = draw(own.ring_rows as usize + 1) as u64 * plan.tensors[t].row_bytes;
            places.extend(at.checked_sub(before));
        }
        places.retain(|&at| at < own.offset);
        places.sort_unstable();
        places.dedup();
        for at in places {
            let mut moved = plan.clone();
            moved.tensors[t].ring = Some(Ring { offset: at, ..own });
            resize(&mut moved);
            if csdfc_plan::check(&moved).is_ok() {
                plan = moved;
                break;
            }
        }
    }
    plan
}

/// Sets the sums that follow from where rings lie, the bound left as it is.
fn resize(plan: &mut Plan) {
    let ends = plan.tensors.iter().filter_map(|tensor| tensor.ring).map(|ring| ring.offset + ring.bytes);
    let buffers = plan.buffers.iter().map(|buffer| buffer.offset + buffer.bytes);
    plan.memory.buffers = ends.chain(buffers).max().unwrap_or(0);
    let layers = plan.cnns.iter().flat_map(|cnn| &cnn.layers);
    let workspaces = layers.map(|layer| layer.workspace.offset + layer.workspace.bytes);
    let blocks = plan.cnns.iter().flat_map(|cnn| &cnn.layers).filter_map(|layer| layer.streamed.as_ref());
    let blocks =
        blocks.flat_map(|streamed| &streamed.blocks).map(|block| block.offset.saturating_add(block.bytes));
    plan.memory.arena = workspaces.chain(blocks).fold(plan.memory.buffers, u64::max);
    // In memory regions there is nothing but the arena.
    let resident = plan.memory.parameters_resident.unwrap_or(plan.memory.parameters_stored);
    plan.memory.total = plan.memory.arena + if plan.regions.is_empty() { resident } else { 0 };
    plan.constraints.met = plan.constraints.memory.is_none_or(|limit| plan.memory.total <= limit);
    plan.memory.proven = plan.memory.arena == plan.memory.bound;
}

/// The layers, CNN and index, whose ring shares addresses with one that they read.
pub fn followers(plan: &Plan) -> Vec<(usize, usize)> {
    let range = |cnn: &str, name: &str| {
        let tensor = plan.tensors.iter().find(|tensor| tensor.cnn == cnn && tensor.name == name)?;
        tensor.ring.map(|ring| ring.offset..ring.offset + ring.bytes)
    };
    let mut all = Vec::new();
    for (c, cnn) in plan.cnns.iter().enumerate() {
        for (l, layer) in cnn.layers.iter().enumerate() {
            let Some(own) = range(&cnn.name, &layer.output) else { continue };
            let meets = |read: std::ops::Range<u64>| own.start < read.end && read.start < own.end;
            if layer.inputs.iter().any(|input| range(&cnn.name, &input.tensor).is_some_and(meets)) {
                all.push((c, l));
            }
        }
    }
    all
}
