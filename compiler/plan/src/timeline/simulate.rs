//! When layers fire and weights are read: a simulation of the plan, with the times of layers that it states.
//!
//! Every partition fires as soon as it can. Partitions that exclude each other follow each other in the order of the
//! plan. Stages of a pipeline wait for each other by the blocking rule of the plan format (its section 8). They go on
//! until the last stage has done some frames, so that its last frames show the pipeline at its rate. The other stages
//! are in the middle of later frames then. All other partitions do one frame.
//!
//! The allocation reads one tile after another, in the order in which layers use them, as in the planner's own model
//! (`streaming/loads.rs` of `explore`). The plan states how long all reads of a frame take. The part of this time that
//! the bytes do not explain is divided evenly among the reads.

use std::ops::Range;

use crate::check::{self, Begin, Index, Resolved, RowOrder, Violation};
use crate::operator::Operator;
use crate::plan::{Plan, TimeBasis};

/// Frames of a pipeline beyond one for each stage.
const MORE_FRAMES: u64 = 2;
/// Longest time of a layer, in nanoseconds: some days. Nobody checks the times that a plan states.
const MAX_NS: f64 = 1e15;

/// Maximum number of rows and firings of all frames of a CNN, and of tiles that all layers read. Less than this is
/// drawn in a moment.
const MAX: u64 = 1 << 22;
/// Maximum number of firings of all CNNs, times partitions.
const MAX_STEPS: u64 = 1 << 30;

/// A firing.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Firing {
    /// The CNN.
    pub cnn: usize,
    /// The layer.
    pub layer: usize,
    /// The partition, by its index in the plan.
    pub partition: usize,
    /// The frame, from 0.
    pub frame: u64,
    /// The number of the layer's firing in this frame.
    pub firing: u64,
    /// When it starts.
    pub start_ns: f64,
    /// When it ends.
    pub end_ns: f64,
}

/// A tile of weights that is read into a block.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Load {
    /// The CNN.
    pub cnn: usize,
    /// The layer.
    pub layer: usize,
    /// The frame, from 0.
    pub frame: u64,
    /// The tile, from 0.
    pub tile: usize,
    /// Its bytes.
    pub bytes: u64,
    /// When the read starts.
    pub start_ns: f64,
    /// When it ends.
    pub end_ns: f64,
}

/// A run.
pub(super) struct Simulated {
    /// By partition, then in its own order.
    pub firings: Vec<Firing>,
    /// In the order of the allocation.
    pub loads: Vec<Load>,
    /// Each partition's firings among `firings`.
    pub of_partition: Vec<Range<usize>>,
    /// When everything has ended.
    pub ns: f64,
}

impl Simulated {
    /// A run that was measured: one frame of each CNN, the firings of each partition in its own order.
    pub fn of_measured(resolved: &Resolved<'_>, mut firings: Vec<Firing>, loads: Vec<Load>) -> Self {
        // The sort is stable.
        firings.sort_by_key(|firing| firing.partition);
        let of = |p: usize| {
            let first = firings.partition_point(|firing| firing.partition < p);
            first..firings.partition_point(|firing| firing.partition <= p)
        };
        let of_partition = (0..resolved.index.partitions.len()).map(of).collect();
        let ns = firings.iter().map(|firing| firing.end_ns).fold(0.0, f64::max);
        Simulated { firings, loads, of_partition, ns }
    }
}

/// Where the times of a plan's layers come from, or the least reliable of them; `None` if some layer has none. Inputs need no
/// time.
pub(super) fn basis(plan: &Plan) -> Option<TimeBasis> {
    let layers = plan.cnns.iter().flat_map(|cnn| &cnn.layers);
    let layers = layers.filter(|layer| !matches!(layer.operator, Operator::Input(_)));
    let bases: Option<Vec<TimeBasis>> = layers.map(|layer| layer.time.map(|time| time.basis)).collect();
    bases?.into_iter().max()
}

/// Lets all partitions run.
pub(super) fn simulate(resolved: &Resolved<'_>, is_timed: bool) -> Simulated {
    let index = &resolved.index;
    let partitions = index.partitions.len();
    let mut run = Run {
        resolved,
        is_timed,
        goals: (0..partitions).map(|p| Goal::new(index, p)).collect(),
        done: vec![Vec::new(); partitions],
        running: vec![None; partitions],
        state: resolved
            .allocations
            .iter()
            .zip(&index.cnns)
            .map(|(allocations, cnn)| State::new(allocations.len(), cnn))
            .collect(),
        overhead_ns: (0..index.cnns.len()).map(|c| overhead_ns(resolved, c)).collect(),
        loads: Vec::new(),
        store_free: 0.0,
    };
    let ns = run.all();
    let mut firings = Vec::new();
    let mut of_partition = Vec::new();
    for done in run.done {
        let first = firings.len();
        firings.extend(done);
        of_partition.push(first..firings.len());
    }
    Simulated { firings, loads: run.loads, of_partition, ns }
}

/// Checks that a plan can be simulated in reasonable time.
pub(super) fn check_work(resolved: &Resolved<'_>) -> Result<(), Vec<Violation>> {
    let index = &resolved.index;
    let limit = |what: &str, value: u64, limit: u64| match value > limit {
        true => Err(vec![Violation::TooLarge { what: what.into(), value: value.to_string(), limit }]),
        false => Ok(()),
    };
    let layers = || (0..index.cnns.len()).flat_map(|c| (0..index.cnns[c].layers.len()).map(move |l| (c, l)));
    let times = |c: usize, l: usize| index.cnns[c].layers[l].layer.times_read();
    let loads = layers().map(|(c, l)| (tiles(resolved, c, l).len() as u64).saturating_mul(times(c, l)));
    let loads = loads.fold(0, u64::saturating_add);
    limit("the number of tiles of weights that are read", loads, MAX)?;
    let firings = |p: usize| resolved.schedules[p].len() as u64 * Goal::new(index, p).most;
    let firings: u64 = (0..index.partitions.len()).map(firings).sum();
    let steps = firings.saturating_mul(index.partitions.len() as u64);
    limit("the number of firings, times partitions,", steps, MAX_STEPS)
}

/// The most frames of a CNN that can be simulated in reasonable time.
fn few_frames(index: &Index<'_>, c: usize) -> u64 {
    let size =
        |entry: &check::LayerIndex<'_>| entry.rows() * (1 + entry.inputs.len() as u64) + entry.layer.firings;
    let one = index.cnns[c].layers.iter().map(size).sum::<u64>();
    (MAX / one.max(1)).max(1)
}

/// Until when a partition fires.
struct Goal {
    /// The last stage of its pipeline; the partition itself if it is in no pipeline.
    last: usize,
    /// Frames of that stage.
    frames: u64,
    /// Maximum number of frames of the partition itself: as many as the last stage, plus one for each stage after it.
    most: u64,
}

impl Goal {
    fn new(index: &Index<'_>, p: usize) -> Self {
        let groups = &index.cnns[index.partitions[p].cnn].groups;
        let group = groups.iter().find(|group| group.contains(&p)).map_or(&[][..], Vec::as_slice);
        let last = group.last().copied().unwrap_or(p);
        match (groups.len(), group.len() as u64) {
            (1, stages) if stages > 1 => {
                let few = few_frames(index, index.partitions[p].cnn);
                let frames = few.min(stages + MORE_FRAMES);
                let after = if p == last { 0 } else { stages.min(few) };
                Goal { last, frames, most: frames + after }
            }
            // Groups that follow each other do a frame in turn.
            _ => Goal { last: p, frames: 1, most: 1 },
        }
    }
}

/// Nanoseconds of a CNN's read beyond those of its bytes.
fn overhead_ns(resolved: &Resolved<'_>, c: usize) -> f64 {
    let cnn = &resolved.index.cnns[c];
    let (mut count, mut bytes) = (0u64, 0u64);
    for (l, entry) in cnn.layers.iter().enumerate() {
        let times = entry.layer.times_read();
        for tile in tiles(resolved, c, l) {
            count = count.saturating_add(times);
            bytes = bytes.saturating_add(tile.saturating_mul(times));
        }
    }
    let of_bytes = bytes as f64 * ns_per_byte(resolved.index.plan);
    let all = cnn.cnn.read_ns.map_or(0.0, |ns| (ns as f64).min(MAX_NS));
    (all - of_bytes).max(0.0) / count.max(1) as f64
}

fn ns_per_byte(plan: &Plan) -> f64 {
    let speed = plan.store.as_ref().and_then(|store| store.bytes_per_second).filter(|speed| *speed > 0);
    speed.map_or(0.0, |speed| 1e9 / speed as f64)
}

/// Bytes of the tiles of a layer; none if its weights stay in memory.
fn tiles(resolved: &Resolved<'_>, c: usize, l: usize) -> Vec<u64> {
    let cnn = &resolved.index.cnns[c];
    let layer = cnn.layers[l].layer;
    let streamed = layer.streamed.as_ref();
    // The checker has found them.
    streamed.and_then(|streamed| check::tiles(layer, streamed, &cnn.seen_all(l)).ok()).unwrap_or_default()
}

/// The progress of a CNN's layers, over all frames.
struct State {
    /// Firings that have ended, by layer.
    fired: Vec<u64>,
    /// Rows written, by layer.
    written: Vec<u64>,
    /// Rows released, by layer and tensor held.
    released: Vec<Vec<u64>>,
    /// When each firing ended, by layer.
    ends: Vec<Vec<f64>>,
    /// For each allocation between stages, its readers, and its index among the tensors that they hold.
    held_by: Vec<Vec<(usize, usize)>>,
    /// The allocations between stages that each layer writes.
    cuts: Vec<Vec<usize>>,
}

impl State {
    fn new(allocations: usize, cnn: &check::CnnIndex<'_>) -> Self {
        let layers = cnn.layers.len();
        State {
            fired: vec![0; layers],
            written: vec![0; layers],
            released: vec![Vec::new(); layers],
            ends: vec![Vec::new(); layers],
            held_by: vec![Vec::new(); allocations],
            cuts: vec![Vec::new(); layers],
        }
    }
}

struct Run<'r, 'a> {
    resolved: &'r Resolved<'a>,
    is_timed: bool,
    goals: Vec<Goal>,
    /// Firings that have started, by partition.
    done: Vec<Vec<Firing>>,
    /// The end of each partition's firing under way.
    running: Vec<Option<f64>>,
    state: Vec<State>,
    overhead_ns: Vec<f64>,
    loads: Vec<Load>,
    /// When the allocation is free.
    store_free: f64,
}

impl Run<'_, '_> {
    fn all(&mut self) -> f64 {
        for (c, state) in self.state.iter_mut().enumerate() {
            for (released, held) in state.released.iter_mut().zip(&self.resolved.rates[c]) {
                released.resize(held.len(), 0);
            }
            for (s, allocation) in
                self.resolved.allocations[c].iter().enumerate().filter(|(_, allocation)| allocation.is_cut())
            {
                state.cuts[allocation.tensor].push(s);
                for &reader in &allocation.readers {
                    let held = self.resolved.rates[c][reader].iter();
                    let places = held.enumerate().filter(|(_, held)| held.tensor == allocation.tensor);
                    state.held_by[s].extend(places.map(|(i, _)| (reader, i)));
                }
            }
        }
        let partitions = self.resolved.index.partitions.len();
        let mut now = 0.0f64;
        loop {
            for p in 0..partitions {
                if self.running[p].is_none() && self.may_start(p) {
                    self.start(p, now);
                }
            }
            let next = self.running.iter().flatten().copied().min_by(f64::total_cmp);
            // The checker has found that nothing waits for ever.
            let Some(next) = next else { return now };
            now = next;
            for p in 0..partitions {
                if self.running[p].is_some_and(|end| end <= now) {
                    self.end(p);
                }
            }
        }
    }

    /// Whether the last stage of its pipeline has done its frames, and the partition no longer fires.
    fn has_ended(&self, p: usize) -> bool {
        let last = self.goals[p].last;
        let all = self.resolved.schedules[last].len() as u64 * self.goals[p].frames;
        self.running[p].is_none() && self.running[last].is_none() && self.done[last].len() as u64 >= all
    }

    /// The next firing of a partition: its layer, and its number over all frames.
    fn next(&self, p: usize) -> Option<(usize, u64)> {
        let schedule = &self.resolved.schedules[p];
        let done = self.done[p].len() as u64;
        let layer = *schedule.get((done % schedule.len().max(1) as u64) as usize)? as usize;
        let c = self.resolved.index.partitions[p].cnn;
        let most = schedule.len() as u64 * self.goals[p].most;
        (done < most && !self.has_ended(p)).then(|| (layer, self.state[c].fired[layer]))
    }

    fn may_start(&self, p: usize) -> bool {
        let index = &self.resolved.index;
        let Some((l, number)) = self.next(p) else { return false };
        let c = index.partitions[p].cnn;
        if self.done[p].is_empty() {
            // The partitions that exclude it and come before it, by CNN and then by order, have ended.
            let is_first = |q: usize| (index.partitions[q].cnn, q) < (c, p);
            let waits = |q: usize| is_first(q) && !index.concurrent[p][q] && !self.has_ended(q);
            if (0..index.partitions.len()).any(waits) {
                return false;
            }
        }
        let (cnn, state) = (&index.cnns[c], &self.state[c]);
        let entry = &cnn.layers[l];
        let (frame, firing) = (number / entry.layer.firings, number % entry.layer.firings);
        let mut cut = self.resolved.rates[c][l].iter().filter(|held| index.is_cut_edge(c, held.tensor, l));
        let has_rows = cut.all(|held| {
            let before = frame * cnn.layers[held.tensor].rows();
            before + u64::from(held.need[firing as usize]) <= state.written[held.tensor]
        });
        let has_room = state.cuts[l].iter().all(|&s| {
            let allocation = &self.resolved.allocations[c][s];
            let free = state.held_by[s].iter().map(|&(reader, i)| state.released[reader][i]).min();
            let free = free.unwrap_or(u64::MAX / 2);
            match allocation.kind {
                RowOrder::Halves => frame * entry.rows() <= free + entry.rows(),
                _ => frame * entry.rows() + entry.rows_of_firing(firing).end <= free + allocation.ring_rows,
            }
        });
        has_rows && has_room
    }

    fn start(&mut self, p: usize, now: f64) {
        let Some((l, number)) = self.next(p) else { return };
        let resolved = self.resolved;
        let c = resolved.index.partitions[p].cnn;
        let layer = resolved.index.cnns[c].layers[l].layer;
        let (frame, firing) = (number / layer.firings, number % layer.firings);
        let ns = match layer.time {
            _ if !self.is_timed => 1.0,
            Some(time) if time.ns.is_finite() => time.ns.clamp(0.0, MAX_NS) / layer.firings as f64,
            _ => 0.0,
        };
        let (start_ns, end_ns) = match firing == 0 || firing < layer.times_read() {
            true => self.load([p, c, l], [frame, firing], now, ns),
            false => (now, now + ns),
        };
        self.done[p].push(Firing { cnn: c, layer: l, partition: p, frame, firing, start_ns, end_ns });
        self.running[p] = Some(end_ns);
    }

    /// Reads the tiles of a layer that is about to fire in a frame for the first time, or `again`, and uses them. Returns
    /// when it starts and ends.
    fn load(&mut self, [p, c, l]: [usize; 3], [frame, again]: [u64; 2], now: f64, ns: f64) -> (f64, f64) {
        let resolved = self.resolved;
        let tiles = tiles(resolved, c, l);
        let of_layer = resolved.allocations[c].iter().filter(|allocation| allocation.tensor == l);
        let begins: Vec<Begin> = of_layer.filter_map(|allocation| allocation.begin()).collect();
        let all = tiles.iter().sum::<u64>().max(1) as f64;
        let frame_ns = match self.done[p].len() % resolved.schedules[p].len().max(1) {
            0 => now,
            at => self.done[p][self.done[p].len() - at].start_ns,
        };
        let (mut start, mut end) = (None, now);
        let mut used = Vec::new();
        for (k, &bytes) in tiles.iter().enumerate() {
            let may = match (k.checked_sub(begins.len()), begins.get(k)) {
                (Some(before), _) => used[before],
                // The blocks are free since the layer's last firing.
                (None, _) if again > 0 => self.state[c].ends[l].last().copied().unwrap_or(now),
                (None, Some(Begin::After { layer, firing })) => {
                    let firings = resolved.index.cnns[c].layers[*layer].layer.firings;
                    let ends = &self.state[c].ends[*layer];
                    ends.get((frame * firings + firing) as usize).copied().unwrap_or(now)
                }
                (None, _) => frame_ns,
            };
            let start_ns = self.store_free.max(may);
            self.store_free =
                start_ns + bytes as f64 * ns_per_byte(resolved.index.plan) + self.overhead_ns[c];
            let load = Load { cnn: c, layer: l, frame, tile: k, bytes, start_ns, end_ns: self.store_free };
            self.loads.push(load);
            end = self.store_free.max(end);
            start.get_or_insert(end);
            end += ns * bytes as f64 / all;
            used.push(end);
        }
        (start.unwrap_or(now), if tiles.is_empty() { now + ns } else { end })
    }

    fn end(&mut self, p: usize) {
        self.running[p] = None;
        let Some(&Firing { cnn: c, layer: l, frame, firing, end_ns, .. }) = self.done[p].last() else {
            return;
        };
        let (index, state) = (&self.resolved.index, &mut self.state[c]);
        let entry = &index.cnns[c].layers[l];
        state.fired[l] += 1;
        state.ends[l].push(end_ns);
        state.written[l] = frame * entry.rows() + entry.rows_of_firing(firing).end;
        for (released, held) in state.released[l].iter_mut().zip(&self.resolved.rates[c][l]) {
            let before = frame * index.cnns[c].layers[held.tensor].rows();
            *released = before + u64::from(held.keep[firing as usize + 1]);
        }
    }
}
