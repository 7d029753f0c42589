//! The rings of a plan as a packing problem, from the page of the format alone: which bytes of each ring are in use at
//! which moment, and so how far apart two rings must lie.

use csdfc_plan::plan::Plan;
use serde_json::Value;

use crate::plan_format::replay::model::{self, Cnn, Kind};

/// What lies in the arena.
#[derive(Debug, Clone, Copy)]
enum Place {
    /// The ring of a tensor, by its index.
    Ring(usize),
    /// The workspace of a layer of a CNN.
    Workspace(usize, usize),
    /// A block of weights of a layer of a CNN.
    Block(usize, usize, usize),
}

/// What a plan stores, and how far apart it must lie.
pub struct Problem {
    places: Vec<Place>,
    /// By ring, its size. Workspaces and blocks count as rings.
    pub bytes: Vec<u64>,
    /// Its offset is a multiple of this.
    pub alignment: Vec<u64>,
    /// The first firing of its life.
    pub first: Vec<usize>,
    /// By pair of rings: if the second lies above the first, at least how much higher it lies. `None` if they are never
    /// in use at the same time. A ring never lies above another at one moment and below it at another.
    pub above: Vec<Vec<Option<i64>>>,
    /// What the plan says is its bound.
    pub bound: u64,
}

impl Problem {
    /// The rings of a plan of model `tensors`.
    pub fn of(plan: &Plan) -> Problem {
        let text: Value = serde_json::from_str(&plan.to_json()).unwrap();
        let read = model::Plan::read(&text).unwrap();
        let mut problem = Problem {
            places: Vec::new(),
            bytes: Vec::new(),
            alignment: Vec::new(),
            first: Vec::new(),
            above: Vec::new(),
            bound: plan.memory.bound,
        };
        // By CNN, the first of its rings; what of a CNN is in use together.
        let mut starts = Vec::new();
        for (c, cnn) in read.cnns.iter().enumerate() {
            starts.push(problem.places.len());
            for (s, ring) in cnn.rings.iter().enumerate() {
                let (place, alignment) = place(plan, c, cnn, s);
                problem.places.push(place);
                problem.bytes.push(ring.bytes());
                problem.alignment.push(alignment);
                problem.first.push(ring.life[0]);
            }
        }
        let count = problem.places.len();
        let mut forbidden: Vec<Vec<Vec<[i64; 2]>>> = vec![vec![Vec::new(); count]; count];
        for (c, cnn) in read.cnns.iter().enumerate() {
            each_moment(&read, c, &mut |in_use| {
                for (i, &(a, [a_low, a_high])) in in_use.iter().enumerate() {
                    for &(b, [b_low, b_high]) in &in_use[i + 1..] {
                        let range = [a_low as i64 - b_high as i64, a_high as i64 - b_low as i64];
                        forbidden[starts[c] + a][starts[c] + b].push(range);
                    }
                }
            });
            for (d, other) in read.cnns.iter().enumerate().skip(c) {
                for a in 0..cnn.rings.len() {
                    let from = if c == d { a + 1 } else { 0 };
                    for b in from..other.rings.len() {
                        if never_share(&read, (c, a), (d, b)) {
                            let range = [-(other.rings[b].bytes() as i64), cnn.rings[a].bytes() as i64];
                            forbidden[starts[c] + a][starts[d] + b].push(range);
                        }
                    }
                }
            }
        }
        problem.above = vec![vec![None; count]; count];
        for (a, b) in (0..count).flat_map(|a| (a + 1..count).map(move |b| (a, b))) {
            let ranges = &mut forbidden[a][b];
            ranges.sort_unstable();
            let Some(&[low, mut high]) = ranges.first() else { continue };
            for &[from, to] in ranges.iter() {
                assert!(from < high, "rings {a} and {b} may lie in a third way");
                high = high.max(to);
            }
            (problem.above[a][b], problem.above[b][a]) = (Some(high), Some(-low));
        }
        problem
    }

    /// Number of rings.
    pub fn count(&self) -> usize {
        self.places.len()
    }

    /// The plan with its rings at these offsets, and the sums that follow from them.
    pub fn moved(&self, plan: &Plan, offsets: &[u64]) -> Plan {
        let mut plan = plan.clone();
        for (place, &offset) in self.places.iter().zip(offsets) {
            match *place {
                Place::Ring(tensor) => plan.tensors[tensor].ring.as_mut().unwrap().offset = offset,
                Place::Workspace(cnn, layer) => plan.cnns[cnn].layers[layer].workspace.offset = offset,
                Place::Block(cnn, layer, block) => {
                    plan.cnns[cnn].layers[layer].streamed.as_mut().unwrap().blocks[block].offset = offset;
                }
            }
        }
        let ends = plan.tensors.iter().filter_map(|tensor| tensor.ring).map(|ring| ring.offset + ring.bytes);
        let buffers = ends.max().unwrap_or(0);
        let arena = offsets.iter().zip(&self.bytes).map(|(at, bytes)| at + bytes).max().unwrap_or(0);
        let memory = &mut plan.memory;
        memory.total = memory.total - memory.arena + arena;
        (memory.buffers, memory.arena, memory.proven) = (buffers, arena, arena == memory.bound);
        plan.certificate.claimed = None;
        plan.constraints.met = plan.constraints.memory.is_none_or(|limit| memory.total <= limit);
        plan
    }
}

/// Where the plan says where a ring lies, and what its offset is a multiple of.
fn place(plan: &Plan, c: usize, cnn: &Cnn, s: usize) -> (Place, u64) {
    let layer = cnn.rings[s].tensor;
    match cnn.rings[s].kind {
        Kind::Workspace => (Place::Workspace(c, layer), 4),
        Kind::Block(_) => {
            let before = cnn.rings[..s].iter().filter(|ring| ring.tensor == layer);
            let block = before.filter(|ring| matches!(ring.kind, Kind::Block(_))).count();
            (Place::Block(c, layer, block), 4)
        }
        _ => {
            let made = |tensor: &csdfc_plan::plan::Tensor| {
                tensor.cnn == cnn.name && tensor.producer == cnn.layers[layer].name
            };
            let tensor = plan.tensors.iter().position(made).unwrap();
            (Place::Ring(tensor), plan.tensors[tensor].format.element.bytes())
        }
    }
}

/// Whether two rings share no byte, whatever is in use.
fn never_share(plan: &model::Plan<'_>, (c, a): (usize, usize), (d, b): (usize, usize)) -> bool {
    let (cnn, one, other) = (&plan.cnns[c], &plan.cnns[c].rings[a], &plan.cnns[d].rings[b]);
    let at_once = one.stored_in.iter().any(|&p| other.stored_in.iter().any(|&q| plan.together[p][q]));
    let beside = c == d && one.lives_beside(other);
    // A layer may write over what it reads only if it reads that by rows, and both rings are whole.
    let over = |read: &model::Ring, written: &model::Ring| {
        let reads = read.is_ring() && written.is_ring() && read.readers.contains(&written.tensor);
        let mut held = cnn.layers[written.tensor].held.iter();
        let by_rows = held.any(|held| held.tensor == read.tensor && held.keep_1.is_some());
        reads && !(by_rows && read.kind == Kind::Whole && written.kind == Kind::Whole)
    };
    at_once || beside && (one.is_cut() || other.is_cut() || over(one, other) || over(other, one))
}

/// A ring of a CNN, and the first byte of it in use and the one after the last.
type InUse = (usize, [u64; 2]);

/// Tells what is in use at each moment of a frame of a CNN, its partitions one after another.
fn each_moment(plan: &model::Plan<'_>, c: usize, see: &mut dyn FnMut(&[InUse])) {
    let cnn = &plan.cnns[c];
    let mut fired = vec![0; cnn.layers.len()];
    let mut begun = vec![0; cnn.layers.len()];
    let mut released: Vec<Vec<u64>> = cnn.layers.iter().map(|layer| vec![0; layer.held.len()]).collect();
    for (at, &l) in plan.line(&plan.partitions_of(c)).iter().enumerate() {
        let (layer, firing) = (&cnn.layers[l], fired[l]);
        let rows = firing * layer.r..layer.end(firing);
        let by_rows = layer.held.iter().any(|held| held.keep_1.is_some());
        for row in if by_rows { rows } else { rows.end - 1..rows.end } {
            for (held, released) in layer.held.iter().zip(&mut released[l]) {
                if let Some(keep) = &held.keep_1 {
                    *released = keep[row as usize];
                }
            }
            begun[l] = row + 1;
            let in_use = |s: usize| in_use(cnn, s, at, &begun, &released).map(|bytes| (s, bytes));
            see(&(0..cnn.rings.len()).filter_map(in_use).collect::<Vec<InUse>>());
        }
        for (held, released) in layer.held.iter().zip(&mut released[l]) {
            *released = held.keep[firing as usize + 1];
        }
        fired[l] += 1;
    }
}

fn in_use(cnn: &Cnn, s: usize, at: usize, begun: &[u64], released: &[Vec<u64>]) -> Option<[u64; 2]> {
    let ring = &cnn.rings[s];
    if at < ring.life[0] || ring.life[1] < at {
        return None;
    }
    if ring.kind != Kind::Whole {
        return Some([0, ring.bytes()]);
    }
    let of = |&reader: &usize| {
        let held = cnn.layers[reader].held.iter().position(|held| held.tensor == ring.tensor)?;
        Some(released[reader][held])
    };
    let low = ring.readers.iter().filter_map(of).min().unwrap_or(0);
    let high = begun[ring.tensor];
    (low < high).then_some([low * ring.row_bytes, high * ring.row_bytes])
}
