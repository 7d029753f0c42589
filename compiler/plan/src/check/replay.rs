//! Rule 7, one firing: an arena of tags (tensor, row, frame), read and written row by row.
//!
//! If the ring that a firing writes shares bytes with a ring that it reads, the firing is replayed row by row, as it is
//! run. Before row o of its output is written, exactly the rows below `keep₁(o)` of the operands that it reads by rows
//! are released; `keep₁` is the `keep` of one row per firing. Every row that the firing holds is in the arena when it
//! begins, and none is overwritten before it is released. So each output row finds the rows from which it is made.

use std::collections::BTreeMap;

use super::allocation::{Allocation, Begin, RowOrder};
use super::index::CnnIndex;
use super::rates::Held;
use super::storage::Accesses;
use super::{MAX_WORK, Report, Violation};

/// The tables that a replay of one CNN uses.
pub(super) struct Tables<'a> {
    pub cnn: &'a CnnIndex<'a>,
    pub held: &'a [Vec<Held>],
    pub allocations: &'a [Allocation],
    uses: Accesses,
    /// By layer, whether it makes its rows one by one, because its output ring shares bytes with a ring that it reads.
    follows: Vec<bool>,
    /// Blocks of weights, by the moment from which they may be written.
    begun: BTreeMap<Begin, Vec<usize>>,
    /// Addresses at which some row of some ring starts or ends, ascending. The bytes between two neighbours always
    /// hold the same row, so that one tag stands for all of them.
    bounds: Vec<u64>,
    /// For each allocation and base, where the rows of the ring start in `bounds`, and where the last ends.
    slots: Vec<Vec<Vec<u32>>>,
}

/// The state of a replay. Rows are counted over all frames.
pub(super) struct Replay<'a, 'b> {
    tables: &'b Tables<'a>,
    /// Tag of the bytes from each of `bounds` to the next: allocation and row, or [`EMPTY`].
    tags: Vec<u64>,
    /// The last exclusive allocation that had these bytes to itself, if any.
    owners: Vec<Option<usize>>,
    /// Whether a allocation has its bytes to itself now.
    alive: Vec<bool>,
    /// Rows written of each tensor.
    written: Vec<u64>,
    /// Rows released by each layer of each tensor that it holds.
    released: Vec<Vec<u64>>,
    /// Rows of each allocation that all its readers have released.
    free: Vec<u64>,
    /// Firings of each layer.
    fired: Vec<u64>,
    work: u64,
}

/// A firing to be replayed.
#[derive(Clone, Copy)]
pub(super) struct Firing<'a> {
    pub layer: usize,
    pub partition: &'a str,
    /// Its place in the partition's schedule.
    pub number: u64,
}

const EMPTY: u64 = u64::MAX;
/// Bits of a tag that count rows. They suffice, since frames are few and rows are bounded.
const ROW_BITS: u32 = 40;

impl<'a> Tables<'a> {
    pub fn new(cnn: &'a CnnIndex<'a>, held: &'a [Vec<Held>], allocations: &'a [Allocation]) -> Self {
        let uses = Accesses::new(cnn, held, allocations);
        let follows = (0..cnn.layers.len()).map(|layer| uses.follows(layer, allocations)).collect();
        let mut begun: BTreeMap<Begin, Vec<usize>> = BTreeMap::new();
        for (s, allocation) in allocations.iter().enumerate() {
            if let Some(begin) = allocation.begin() {
                begun.entry(begin).or_default().push(s);
            }
        }
        let starts = |allocation: &Allocation, base: u64| {
            let row_bytes = allocation.row_bytes;
            (0..=allocation.ring_rows).map(move |row| base + row * row_bytes)
        };
        let mut bounds: Vec<u64> = allocations
            .iter()
            .flat_map(|allocation| allocation.bases.iter().flat_map(move |&base| starts(allocation, base)))
            .collect();
        bounds.sort_unstable();
        bounds.dedup();
        let slot = |address: u64| bounds.partition_point(|&bound| bound < address) as u32;
        let slots = allocations
            .iter()
            .map(|allocation| {
                allocation.bases.iter().map(|&base| starts(allocation, base).map(slot).collect()).collect()
            })
            .collect();
        Tables { cnn, held, allocations, uses, follows, begun, bounds, slots }
    }

    /// The tags of a row of a frame.
    fn cells(&self, s: usize, frame: u64, row: u64) -> std::ops::Range<usize> {
        let allocation = &self.allocations[s];
        let (half, at) = match allocation.kind {
            RowOrder::Restarts
            | RowOrder::State
            | RowOrder::Kept
            | RowOrder::Workspace
            | RowOrder::Recurrent
            | RowOrder::Block(_) => (0, row),
            RowOrder::RunsOn | RowOrder::Persists => {
                (0, frame * self.cnn.layers[allocation.tensor].rows() + row)
            }
            RowOrder::Halves => ((frame % 2) as usize, row),
        };
        let slots = &self.slots[s][half];
        let slot = (at % allocation.ring_rows) as usize;
        slots[slot] as usize..slots[slot + 1] as usize
    }
}

impl<'a, 'b> Replay<'a, 'b> {
    pub fn new(tables: &'b Tables<'a>) -> Self {
        let layers = tables.cnn.layers.len();
        let free = |allocation: &Allocation| {
            if allocation.readers.is_empty() && allocation.exclusive { u64::MAX } else { 0 }
        };
        let history = tables.cnn.layers.iter().map(|entry| entry.tensor.history());
        let mut replay = Replay {
            tables,
            tags: vec![EMPTY; tables.bounds.len()],
            owners: vec![None; tables.bounds.len()],
            alive: vec![false; tables.allocations.len()],
            written: history.collect(),
            released: tables.held.iter().map(|held| vec![0; held.len()]).collect(),
            free: tables.allocations.iter().map(free).collect(),
            fired: vec![0; layers],
            work: 0,
        };
        for s in (0..tables.allocations.len()).filter(|&s| tables.allocations[s].persists()) {
            replay.persist(s);
        }
        replay
    }

    /// Gives its bytes to what lives from frame to frame, before the first frame. In a ring of a stream, its history is
    /// there: rows before the start, which count as padding.
    fn persist(&mut self, s: usize) {
        self.alive[s] = true;
        let tables = self.tables;
        for row in 0..tables.allocations[s].ring_rows {
            tables.cells(s, 0, row).for_each(|cell| self.owners[cell] = Some(s));
        }
        if tables.allocations[s].is_workspace() {
            return;
        }
        for row in 0..tables.cnn.layers[tables.allocations[s].tensor].tensor.history() {
            tables.cells(s, 0, row).for_each(|cell| self.tags[cell] = tag(s, row));
        }
    }

    /// The frame of a layer's next firing, and its number within the frame.
    pub fn next(&self, layer: usize) -> (u64, u64) {
        let firings = self.tables.cnn.layers[layer].layer.firings;
        (self.fired[layer] / firings, self.fired[layer] % firings)
    }

    /// Whether the blocking rule lets a layer fire: its rows of tensors cut between partitions that run at the same
    /// time are written, and those that it writes have room. `is_cut` tells for a tensor held whether it comes from
    /// another partition.
    pub fn is_ready(&self, layer: usize, is_cut: impl Fn(usize) -> bool) -> bool {
        let (frame, p) = self.next(layer);
        let entry = &self.tables.cnn.layers[layer];
        let arrived = self.tables.held[layer].iter().filter(|held| is_cut(held.tensor)).all(|held| {
            let before = frame * self.tables.cnn.layers[held.tensor].rows();
            before + u64::from(held.need[p as usize]) <= self.written[held.tensor]
        });
        let room = self.tables.uses.written_to[layer].iter().all(|&s| {
            let allocation = &self.tables.allocations[s];
            let end = frame * entry.rows() + entry.rows_of_firing(p).end;
            match allocation.kind {
                RowOrder::Restarts
                | RowOrder::Persists
                | RowOrder::State
                | RowOrder::Kept
                | RowOrder::Workspace
                | RowOrder::Recurrent
                | RowOrder::Block(_) => true,
                RowOrder::RunsOn => end <= self.free[s].saturating_add(allocation.ring_rows),
                RowOrder::Halves => frame * entry.rows() <= self.free[s].saturating_add(entry.rows()),
            }
        });
        arrived && room
    }

    /// Replays one firing of a layer.
    pub fn fire(&mut self, firing: Firing<'_>, report: &mut Report) -> Result<(), Box<Violation>> {
        let tables = self.tables;
        let layer = firing.layer;
        let (frame, p) = self.next(layer);
        if firing.number == 0 {
            // The frame before has ended.
            let kept = |s: &usize| tables.allocations[*s].kind == RowOrder::Kept;
            (0..self.alive.len()).filter(kept).for_each(|s| self.alive[s] = false);
            self.begin_blocks(Begin::Frame, tables.cnn.layers[layer].partition)?;
        }
        self.read(firing, frame, p as usize, report)?;
        let rows = tables.cnn.layers[layer].rows_of_firing(p);
        if p == 0 {
            let begun = tables.uses.begun_by(layer);
            begun
                .filter(|&s| {
                    let allocation = &tables.allocations[s];
                    allocation.exclusive && !allocation.is_cut() && !allocation.persists()
                })
                .try_for_each(|s| self.claim(s))?;
        }
        for &s in &tables.uses.written_to[layer] {
            if tables.follows[layer] {
                for row in rows.clone() {
                    self.release(layer, frame, |held| held.rows.get(row as usize).map(|window| window.start));
                    self.write(firing, s, frame, row..row + 1, rows.start)?;
                }
            } else {
                // Rows of the hops before come first.
                let history = tables.cnn.layers[layer].tensor.history();
                let rows = rows.start + history..rows.end + history;
                self.write(firing, s, frame, rows.clone(), rows.start)?;
            }
        }
        self.written[layer] += rows.end - rows.start;
        self.release(layer, frame, |held| held.keep.get(p as usize + 1).copied());
        self.fired[layer] += 1;
        if p + 1 == tables.cnn.layers[layer].layer.firings {
            self.end(layer, frame);
        }
        self.begin_blocks(Begin::After { layer, firing: p }, tables.cnn.layers[layer].partition)?;
        report.firings += 1;
        report.rows_written += rows.end - rows.start;
        if self.work > MAX_WORK {
            let what = "the number of tags of one replay".into();
            return Err(Box::new(Violation::TooLarge {
                what,
                value: self.work.to_string(),
                limit: MAX_WORK,
            }));
        }
        Ok(())
    }

    /// Gives their bytes to the blocks of a partition that may be written from here on, since their loads may start at
    /// once.
    fn begin_blocks(&mut self, begin: Begin, partition: usize) -> Result<(), Box<Violation>> {
        let tables = self.tables;
        let is_here = |s: usize| tables.cnn.layers[tables.allocations[s].tensor].partition == partition;
        let blocks = tables.begun.get(&begin).into_iter().flatten();
        blocks.copied().filter(|&s| is_here(s)).try_for_each(|s| self.claim(s))
    }

    fn read(
        &mut self,
        firing: Firing<'_>,
        frame: u64,
        p: usize,
        report: &mut Report,
    ) -> Result<(), Box<Violation>> {
        let tables = self.tables;
        for (held, &allocation) in tables.held[firing.layer].iter().zip(&tables.uses.read_from[firing.layer])
        {
            let before = frame * tables.cnn.layers[held.tensor].rows();
            let rows = u64::from(held.keep[p])..u64::from(held.need[p]);
            if before + rows.end > self.written[held.tensor] {
                return Err(Box::new(Violation::NotWritten {
                    partition: firing.partition.into(),
                    firing: firing.number,
                    layer: tables.cnn.layers[firing.layer].layer.name.clone(),
                    tensor: tables.cnn.tensor_name(held.tensor),
                    row: self.written[held.tensor].saturating_sub(before),
                }));
            }
            report.rows_read += rows.end - rows.start;
            let Some(s) = allocation else { continue };
            for row in rows {
                let cells = tables.cells(s, frame, row);
                self.work += cells.len() as u64;
                let own = tag(s, before + row);
                if let Some(cell) = cells.clone().find(|&cell| self.tags[cell] != own) {
                    return Err(Box::new(Violation::Overwritten {
                        partition: firing.partition.into(),
                        firing: firing.number,
                        layer: tables.cnn.layers[firing.layer].layer.name.clone(),
                        tensor: tables.allocations[s].name.clone(),
                        row,
                        addresses: tables.bounds[cell]..tables.bounds[cell + 1],
                        found: self.describe(self.tags[cell]),
                    }));
                }
            }
        }
        Ok(())
    }

    /// Gives an exclusive allocation all its bytes.
    fn claim(&mut self, s: usize) -> Result<(), Box<Violation>> {
        let tables = self.tables;
        for cells in tables.slots[s].iter().map(|slots| slots.first().zip(slots.last())) {
            let Some((&start, &end)) = cells else { continue };
            self.work += u64::from(end - start);
            for cell in start as usize..end as usize {
                if self.tags[cell] != EMPTY {
                    let (lost, lost_row) = untag(self.tags[cell]);
                    if lost_row >= self.free[lost] {
                        return Err(self.overlap(s, lost, cell));
                    }
                }
                self.owners[cell] = Some(s);
            }
        }
        self.alive[s] = true;
        Ok(())
    }

    /// Writes rows of a firing whose first is row `begun`.
    fn write(
        &mut self,
        firing: Firing<'_>,
        s: usize,
        frame: u64,
        rows: std::ops::Range<u64>,
        begun: u64,
    ) -> Result<(), Box<Violation>> {
        let tables = self.tables;
        let height = tables.cnn.layers[firing.layer].rows();
        let begun = frame * height + begun;
        for row in rows {
            let cells = tables.cells(s, frame, row);
            self.work += cells.len() as u64;
            for cell in cells {
                if self.tags[cell] != EMPTY {
                    let (lost, lost_row) = untag(self.tags[cell]);
                    // The rows of this firing itself are needed too: at its end, all of them must be intact.
                    if lost_row >= self.free[lost] || (lost == s && lost_row >= begun) {
                        let lost_tensor = &tables.allocations[lost];
                        return Err(Box::new(Violation::OverwritesNeeded {
                            partition: firing.partition.into(),
                            firing: firing.number,
                            layer: tables.cnn.layers[firing.layer].layer.name.clone(),
                            tensor: tables.allocations[s].name.clone(),
                            row,
                            addresses: tables.bounds[cell]..tables.bounds[cell + 1],
                            lost_tensor: lost_tensor.name.clone(),
                            lost_row: lost_row % tables.cnn.layers[lost_tensor.tensor].rows(),
                        }));
                    }
                }
                if let Some(owner) = self.owners[cell].filter(|&owner| owner != s && self.alive[owner]) {
                    return Err(self.overlap(owner, s, cell));
                }
                self.tags[cell] = tag(s, frame * height + row);
            }
        }
        Ok(())
    }

    /// Notes that a layer has released the rows of this frame below `keep` of each tensor that it holds; if `keep` is
    /// `None`, no more rows than before.
    fn release(&mut self, layer: usize, frame: u64, keep: impl Fn(&Held) -> Option<u32>) {
        let tables = self.tables;
        for (i, held) in tables.held[layer].iter().enumerate() {
            let Some(keep) = keep(held) else { continue };
            let before = frame * tables.cnn.layers[held.tensor].rows();
            self.released[layer][i] = before + u64::from(keep);
            let Some(s) = tables.uses.read_from[layer][i] else { continue };
            let held_by = &tables.uses.held_by[s];
            self.work += held_by.len() as u64;
            let free = held_by.iter().map(|&(reader, i)| self.released[reader][i]).min();
            self.free[s] = free.unwrap_or(u64::MAX);
        }
    }

    /// A layer has fired for the last time in this frame: allocations without any more users give up their bytes.
    fn end(&mut self, layer: usize, frame: u64) {
        let tables = self.tables;
        let layers = &tables.cnn.layers;
        for s in tables.uses.used_by(layer) {
            let allocation = &tables.allocations[s];
            let is_done = |&user: &usize| self.fired[user] >= (frame + 1) * layers[user].layer.firings;
            if !(is_done(&allocation.tensor) && allocation.readers.iter().all(is_done)) {
                continue;
            }
            if allocation.stays() {
                continue;
            }
            if allocation.exclusive {
                self.alive[s] = false;
            } else {
                self.free[s] = (frame + 1) * layers[allocation.tensor].rows();
            }
        }
    }

    fn overlap(&self, first: usize, second: usize, cell: usize) -> Box<Violation> {
        let [first, second] = [first, second].map(|s| self.tables.allocations[s].name.clone());
        let addresses = self.tables.bounds[cell]..self.tables.bounds[cell + 1];
        Box::new(Violation::Overlap { first, second, addresses })
    }

    fn describe(&self, tag: u64) -> String {
        if tag == EMPTY {
            return "nothing".into();
        }
        let (s, row) = untag(tag);
        let allocation = &self.tables.allocations[s];
        let rows = self.tables.cnn.layers[allocation.tensor].rows();
        format!("row {} of `{}`, frame {},", row % rows, allocation.name, row / rows)
    }
}

fn tag(allocation: usize, row: u64) -> u64 {
    ((allocation as u64) << ROW_BITS) + row
}

fn untag(tag: u64) -> (usize, u64) {
    ((tag >> ROW_BITS) as usize, tag & ((1 << ROW_BITS) - 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::tests::plans;
    use crate::check::{rates, schedule, storage, structure};
    use crate::plan::{Plan, Ring};

    /// Replays a frame of a plan of one partition. Before each firing, `before` changes the replay.
    fn replayed(plan: &Plan, before: impl Fn(&mut Replay<'_, '_>)) -> Result<(), Box<Violation>> {
        let index = structure::check(plan).unwrap();
        let rates = rates::check(&index).unwrap();
        let allocations = storage::check(&index).unwrap();
        let schedules = schedule::check(&index).unwrap();
        let tables = Tables::new(&index.cnns[0], &rates[0], &allocations[0]);
        let mut replay = Replay::new(&tables);
        for (number, &layer) in (0..).zip(&schedules[0]) {
            before(&mut replay);
            let firing = Firing { layer: layer as usize, partition: "p", number };
            replay.fire(firing, &mut Report::default())?;
        }
        Ok(())
    }

    /// A ring of four rows whose reader's windows have five.
    fn short() -> Plan {
        let mut plan = plans::pair();
        let row_bytes = plan.tensors[1].row_bytes;
        let ring = plan.tensors[1].ring.as_mut().unwrap();
        *ring = Ring { ring_rows: 4, bytes: 4 * row_bytes, ..*ring };
        plan
    }

    /// A row that is overwritten while it is still needed would be read wrongly later. Either check finds this mistake,
    /// and each must find it without the other.
    #[test]
    fn what_is_read_is_checked_even_if_what_is_written_is_not() {
        assert_eq!(replayed(&plans::pair(), |_| ()), Ok(()));
        let found = replayed(&short(), |_| ()).unwrap_err();
        assert_eq!(
            found.to_string(),
            "partition `p`, firing 13: layer `l1` writes row 4 of `pair/t_l1` at 1920..2944 over row 0 of \
             `pair/t_l1`, which is still needed"
        );
        // No row that is overwritten counts as needed.
        let blind = |replay: &mut Replay<'_, '_>| replay.free.fill(u64::MAX);
        assert_eq!(replayed(&plans::pair(), blind), Ok(()));
        let found = replayed(&short(), blind).unwrap_err();
        assert_eq!(
            found.to_string(),
            "partition `p`, firing 14: layer `l2` reads row 0 of `pair/t_l1` at 1920..2944, where row 4 of \
             `pair/t_l1`, frame 0, lies"
        );
    }

    /// A producer that has fired for the last time frees nothing that is still to be read.
    #[test]
    fn rows_are_free_once_their_last_reader_has_released_them() {
        let seen = std::cell::RefCell::new(Vec::new());
        let see = |replay: &mut Replay<'_, '_>| {
            seen.borrow_mut().push(([replay.free[0], replay.free[1]], [replay.alive[0], replay.alive[1]]));
        };
        replayed(&plans::pair(), see).unwrap();
        let (seen, alive): (Vec<_>, Vec<_>) = seen.into_inner().into_iter().unzip();
        // The released rows of the input and of the first layer, whose readers have windows of five rows, before each
        // firing of [in]×3,[l1],([in],[l1])×2,[l2],[in].
        assert_eq!(seen[..8], vec![[0, 0]; 8]);
        assert_eq!(seen[8..10], [[1, 0], [1, 0]]);
        // Before the last four: [l1],[l2]×3.
        assert_eq!(seen[92..], [[29, 27], [32, 27], [32, 28], [32, 29]]);
        assert_eq!(alive[92..], [[true, true], [false, true], [false, true], [false, true]]);
    }
}
