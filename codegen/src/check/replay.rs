//! Rule 7, one firing: an arena of tags (tensor, row, frame), read and written row by row.

use super::index::CnnIndex;
use super::rates::Held;
use super::storage::{Kind, Store};
use super::{MAX_WORK, Report, Violation};

/// What a replay of one CNN looks up.
pub(super) struct Tables<'a> {
    pub cnn: &'a CnnIndex<'a>,
    pub held: &'a [Vec<Held>],
    pub stores: &'a [Store],
    /// Stores that a layer writes.
    written_to: Vec<Vec<usize>>,
    /// For each layer and tensor held, the store that it is read from; `None` for the caller's copy.
    read_from: Vec<Vec<Option<usize>>>,
    /// Addresses at which some row of some ring starts or ends, ascending. The bytes between two neighbours always
    /// hold the same row, so that one tag stands for all of them.
    bounds: Vec<u64>,
    /// For each store and base, where the rows of the ring start in `bounds`, and where the last ends.
    slots: Vec<Vec<Vec<u32>>>,
}

/// The state of a replay. Rows are counted over all frames.
pub(super) struct Replay<'a, 'b> {
    tables: &'b Tables<'a>,
    /// Tag of the bytes from each of `bounds` to the next: store and row, or [`EMPTY`].
    tags: Vec<u64>,
    /// Rows written of each tensor.
    written: Vec<u64>,
    /// Rows released by each layer of each tensor that it holds.
    released: Vec<Vec<u64>>,
    /// Rows of each store that all its readers have released.
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
/// Bits of a tag that count rows; frames are few and rows bounded, so that they suffice.
const ROW_BITS: u32 = 40;

impl<'a> Tables<'a> {
    pub fn new(cnn: &'a CnnIndex<'a>, held: &'a [Vec<Held>], stores: &'a [Store]) -> Self {
        let mut written_to = vec![Vec::new(); cnn.layers.len()];
        let mut read_from: Vec<Vec<Option<usize>>> = held.iter().map(|held| vec![None; held.len()]).collect();
        for (s, store) in stores.iter().enumerate() {
            written_to[store.tensor].push(s);
            for &reader in &store.readers {
                for (from, _) in read_from[reader]
                    .iter_mut()
                    .zip(&held[reader])
                    .filter(|(_, held)| held.tensor == store.tensor)
                {
                    *from = Some(s);
                }
            }
        }
        let starts = |store: &Store, base: u64| {
            let row_bytes = store.row_bytes;
            (0..=store.ring_rows).map(move |row| base + row * row_bytes)
        };
        let mut bounds: Vec<u64> = stores
            .iter()
            .flat_map(|store| store.bases.iter().flat_map(move |&base| starts(store, base)))
            .collect();
        bounds.sort_unstable();
        bounds.dedup();
        let slot = |address: u64| bounds.partition_point(|&bound| bound < address) as u32;
        let slots = stores
            .iter()
            .map(|store| store.bases.iter().map(|&base| starts(store, base).map(slot).collect()).collect())
            .collect();
        Tables { cnn, held, stores, written_to, read_from, bounds, slots }
    }

    /// The tags of a row of a frame.
    fn cells(&self, s: usize, frame: u64, row: u64) -> std::ops::Range<usize> {
        let store = &self.stores[s];
        let (half, at) = match store.kind {
            Kind::Restarts => (0, row),
            Kind::RunsOn => (0, frame * self.cnn.layers[store.tensor].rows() + row),
            Kind::Halves => ((frame % 2) as usize, row),
        };
        let slots = &self.slots[s][half];
        let slot = (at % store.ring_rows) as usize;
        slots[slot] as usize..slots[slot + 1] as usize
    }
}

impl<'a, 'b> Replay<'a, 'b> {
    pub fn new(tables: &'b Tables<'a>) -> Self {
        let layers = tables.cnn.layers.len();
        let free = |store: &Store| if store.readers.is_empty() { u64::MAX } else { 0 };
        Replay {
            tables,
            tags: vec![EMPTY; tables.bounds.len()],
            written: vec![0; layers],
            released: tables.held.iter().map(|held| vec![0; held.len()]).collect(),
            free: tables.stores.iter().map(free).collect(),
            fired: vec![0; layers],
            work: 0,
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
        let room = self.tables.written_to[layer].iter().all(|&s| {
            let store = &self.tables.stores[s];
            let end = frame * entry.rows() + entry.rows_of_firing(p).end;
            match store.kind {
                Kind::Restarts => true,
                Kind::RunsOn => end <= self.free[s].saturating_add(store.ring_rows),
                Kind::Halves => frame * entry.rows() <= self.free[s].saturating_add(entry.rows()),
            }
        });
        arrived && room
    }

    /// Replays one firing of a layer.
    pub fn fire(&mut self, firing: Firing<'_>, report: &mut Report) -> Result<(), Box<Violation>> {
        let (frame, p) = self.next(firing.layer);
        self.read(firing, frame, p as usize, report)?;
        let rows = self.tables.cnn.layers[firing.layer].rows_of_firing(p);
        for i in 0..self.tables.written_to[firing.layer].len() {
            self.write(firing, self.tables.written_to[firing.layer][i], frame, rows.clone())?;
        }
        self.written[firing.layer] += rows.end - rows.start;
        self.release(firing.layer, frame, p as usize);
        self.fired[firing.layer] += 1;
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

    fn read(
        &mut self,
        firing: Firing<'_>,
        frame: u64,
        p: usize,
        report: &mut Report,
    ) -> Result<(), Box<Violation>> {
        let tables = self.tables;
        for (held, &store) in tables.held[firing.layer].iter().zip(&tables.read_from[firing.layer]) {
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
            let Some(s) = store else { continue };
            for row in rows {
                let cells = tables.cells(s, frame, row);
                self.work += cells.len() as u64;
                let own = tag(s, before + row);
                if let Some(cell) = cells.clone().find(|&cell| self.tags[cell] != own) {
                    return Err(Box::new(Violation::Overwritten {
                        partition: firing.partition.into(),
                        firing: firing.number,
                        layer: tables.cnn.layers[firing.layer].layer.name.clone(),
                        tensor: tables.stores[s].name.clone(),
                        row,
                        addresses: tables.bounds[cell]..tables.bounds[cell + 1],
                        found: self.describe(self.tags[cell]),
                    }));
                }
            }
        }
        Ok(())
    }

    fn write(
        &mut self,
        firing: Firing<'_>,
        s: usize,
        frame: u64,
        rows: std::ops::Range<u64>,
    ) -> Result<(), Box<Violation>> {
        let tables = self.tables;
        let height = tables.cnn.layers[firing.layer].rows();
        let begun = frame * height + rows.start;
        for row in rows {
            let cells = tables.cells(s, frame, row);
            self.work += cells.len() as u64;
            for cell in cells {
                if self.tags[cell] != EMPTY {
                    let (lost, lost_row) = untag(self.tags[cell]);
                    // The rows of this firing itself are needed too: all of them are there at its end.
                    if lost_row >= self.free[lost] || (lost == s && lost_row >= begun) {
                        let lost_tensor = &tables.stores[lost];
                        return Err(Box::new(Violation::OverwritesNeeded {
                            partition: firing.partition.into(),
                            firing: firing.number,
                            layer: tables.cnn.layers[firing.layer].layer.name.clone(),
                            tensor: tables.stores[s].name.clone(),
                            row,
                            addresses: tables.bounds[cell]..tables.bounds[cell + 1],
                            lost_tensor: lost_tensor.name.clone(),
                            lost_row: lost_row % tables.cnn.layers[lost_tensor.tensor].rows(),
                        }));
                    }
                }
                self.tags[cell] = tag(s, frame * height + row);
            }
        }
        Ok(())
    }

    fn release(&mut self, layer: usize, frame: u64, p: usize) {
        let tables = self.tables;
        for (i, held) in tables.held[layer].iter().enumerate() {
            let before = frame * tables.cnn.layers[held.tensor].rows();
            self.released[layer][i] = before + u64::from(held.keep[p + 1]);
            let Some(s) = tables.read_from[layer][i] else { continue };
            let by = |reader: usize| {
                let held = tables.held[reader].iter().position(|held| held.tensor == tables.stores[s].tensor);
                held.map(|i| self.released[reader][i])
            };
            let free = tables.stores[s].readers.iter().filter_map(|&reader| by(reader)).min();
            self.free[s] = free.unwrap_or(u64::MAX);
        }
    }

    fn describe(&self, tag: u64) -> String {
        if tag == EMPTY {
            return "nothing".into();
        }
        let (s, row) = untag(tag);
        let store = &self.tables.stores[s];
        let rows = self.tables.cnn.layers[store.tensor].rows();
        format!("row {} of `{}`, frame {},", row % rows, store.name, row / rows)
    }
}

fn tag(store: usize, row: u64) -> u64 {
    ((store as u64) << ROW_BITS) | row
}

fn untag(tag: u64) -> (usize, u64) {
    ((tag >> ROW_BITS) as usize, tag & ((1 << ROW_BITS) - 1))
}
