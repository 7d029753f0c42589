//! How many bytes rings occupy at each moment of a CNN's frame, its partitions one after another.
//!
//! `bound` defines a moment, and what a ring occupies at it. Here, rings that occupy all their bytes are called
//! exclusive.

use std::ops::Range;

use super::allocation::Allocation;
use super::index::CnnIndex;
use super::rates::Held;
use super::storage::Accesses;
use super::streamed;

/// The firings of a CNN's frame, and the allocations that they touch.
pub(crate) struct TimeLine<'a> {
    cnn: &'a CnnIndex<'a>,
    held: &'a [Vec<Held>],
    allocations: &'a [Allocation],
    uses: Accesses,
    /// Layers, in the order in which they fire.
    firings: Vec<u32>,
    /// Blocks, each with the firing at whose beginning its life begins, ascending.
    blocks: Vec<(usize, usize)>,
}

/// What happens along the firings of a frame, in their order.
pub(crate) enum Event {
    /// From now on, a ring occupies these rows: all rows of an exclusive ring, and none once its life has ended.
    Occupies {
        /// The ring, by allocation.
        allocation: usize,
        /// The rows.
        rows: Range<u64>,
    },
    /// A moment of a firing.
    Moment {
        /// The firing, by its place in the frame.
        firing: usize,
        /// Bytes that the rings counted occupy.
        bytes: u64,
    },
    /// A firing has ended, and its releases are done.
    Fired,
}

/// The rows that some of a CNN's rings allocation.
struct Occupied<'l> {
    line: &'l TimeLine<'l>,
    /// Which rings count, by allocation.
    counted: &'l [bool],
    see: &'l mut dyn FnMut(Event),
    bytes: u64,
    /// Firings so far, by layer.
    fired: Vec<u64>,
    /// By allocation, the firings of its users that are still to come.
    left: Vec<u64>,
    /// Rows begun, by allocation.
    begun: Vec<u64>,
    /// Rows that all readers have released, by allocation, and how many readers have released no more.
    free: Vec<(u64, usize)>,
    /// Rows released, by layer and tensor held.
    released: Vec<Vec<u64>>,
}

impl<'a> TimeLine<'a> {
    pub fn new(
        cnn: &'a CnnIndex<'a>,
        held: &'a [Vec<Held>],
        allocations: &'a [Allocation],
        schedules: &[Vec<u32>],
    ) -> Self {
        let firings = cnn.partitions.iter().flat_map(|&p| schedules[p].iter().copied()).collect();
        let begun = |(s, allocation): (usize, &Allocation)| {
            Some((streamed::begun_at(allocation.begin()?, allocation, cnn, schedules)?, s))
        };
        let mut blocks: Vec<(usize, usize)> = allocations.iter().enumerate().filter_map(begun).collect();
        blocks.sort_unstable();
        TimeLine { cnn, held, allocations, uses: Accesses::new(cnn, held, allocations), firings, blocks }
    }

    /// The layer that fires at this place of the frame.
    pub fn layer(&self, firing: usize) -> usize {
        self.firings[firing] as usize
    }

    /// Number of its rings.
    pub fn rings(&self) -> usize {
        self.allocations.len()
    }

    /// Steps of a walk along all of it.
    pub fn work(&self) -> u64 {
        let layers = self.cnn.layers.iter();
        layers.map(|entry| entry.rows() * (1 + entry.inputs.len() as u64)).sum::<u64>()
            + self.allocations.len() as u64
    }

    /// Maximum number of bytes that the rings counted occupy at a moment of these firings.
    pub fn peak(&self, counted: &[bool], window: &Range<usize>) -> u64 {
        let mut most = 0;
        self.walk(counted, window.end, &mut |event| {
            if let Event::Moment { firing, bytes } = event
                && window.start <= firing
            {
                most = bytes.max(most);
            }
        });
        most
    }

    /// Walks along the firings before `end`, and tells what the counted rings occupy.
    pub fn walk(&self, counted: &[bool], end: usize, see: &mut dyn FnMut(Event)) {
        let layers = &self.cnn.layers;
        let users = |allocation: &Allocation| {
            let all = allocation.readers.iter().chain([&allocation.tensor]);
            // What stays is still to be used when the frame has ended.
            u64::from(allocation.stays()) + all.map(|&layer| layers[layer].layer.firings).sum::<u64>()
        };
        let mut occupied = Occupied {
            line: self,
            counted,
            see,
            bytes: 0,
            fired: vec![0; layers.len()],
            left: self.allocations.iter().map(users).collect(),
            begun: vec![0; self.allocations.len()],
            free: self.allocations.iter().map(|allocation| (0, allocation.readers.len())).collect(),
            released: self.held.iter().map(|held| vec![0; held.len()]).collect(),
        };
        let persisting = (0..self.allocations.len()).filter(|&s| self.allocations[s].persists());
        persisting.for_each(|s| occupied.take_all(s));
        let mut blocks = self.blocks.iter().peekable();
        for (at, &layer) in self.firings.iter().enumerate().take(end) {
            while let Some((_, block)) = blocks.next_if(|(begun, _)| *begun <= at) {
                occupied.take_all(*block);
            }
            occupied.fire(at, layer as usize);
            (occupied.see)(Event::Fired);
        }
    }
}

impl Occupied<'_> {
    /// Fires a layer.
    fn fire(&mut self, at: usize, layer: usize) {
        let line = self.line;
        let (entry, held, p) = (&line.cnn.layers[layer], &line.held[layer], self.fired[layer]);
        let begins = |s: &usize| line.allocations[*s].exclusive && !line.allocations[*s].persists();
        for s in line.uses.begun_by(layer).filter(|s| p == 0 && begins(s)) {
            self.take_all(s);
        }
        let rows = entry.rows_of_firing(p);
        if held.iter().any(|held| !held.rows.is_empty()) {
            for row in rows {
                for (i, held) in held.iter().enumerate() {
                    if let Some(window) = held.rows.get(row as usize) {
                        self.release(layer, i, window.start.into());
                    }
                }
                self.begin(layer, row + 1);
                (self.see)(Event::Moment { firing: at, bytes: self.bytes });
            }
        } else {
            self.begin(layer, rows.end);
            (self.see)(Event::Moment { firing: at, bytes: self.bytes });
        }
        for (i, held) in held.iter().enumerate() {
            self.release(layer, i, held.keep[p as usize + 1].into());
        }
        self.fired[layer] += 1;
        for s in line.uses.used_by(layer) {
            self.left[s] -= 1;
            if self.left[s] == 0 {
                self.end(s);
            }
        }
    }

    /// An exclusive ring begins to live.
    fn take_all(&mut self, s: usize) {
        self.bytes += self.share(s, self.line.allocations[s].bytes());
        self.record(s, 0..self.line.allocations[s].ring_rows);
    }

    /// Rows of the layer's tensor up to `end` are begun.
    fn begin(&mut self, layer: usize, end: u64) {
        for &s in &self.line.uses.written_to[layer] {
            self.count(s, |occupied| occupied.begun[s] = end);
        }
    }

    /// A layer has released a tensor's rows below `row`.
    fn release(&mut self, layer: usize, i: usize, row: u64) {
        let before = std::mem::replace(&mut self.released[layer][i], row);
        let Some(s) = self.line.uses.read_from[layer][i].filter(|_| before < row) else { return };
        let (free, behind) = &mut self.free[s];
        if before == *free {
            *behind -= 1;
            if *behind == 0 {
                let released = self.line.uses.held_by[s].iter().map(|&(reader, i)| self.released[reader][i]);
                let free = released.clone().min().unwrap_or(row);
                let behind = released.filter(|&other| other == free).count();
                self.count(s, |occupied| occupied.free[s] = (free, behind));
            }
        }
    }

    /// A ring has no user any more.
    fn end(&mut self, s: usize) {
        if self.line.allocations[s].exclusive {
            self.bytes -= self.share(s, self.line.allocations[s].bytes());
            self.record(s, 0..0);
        } else {
            self.count(s, |occupied| occupied.free[s].0 = occupied.begun[s]);
        }
    }

    /// Counts a ring that is not exclusive anew, after a change.
    fn count(&mut self, s: usize, change: impl FnOnce(&mut Self)) {
        // A schedule that has not been replayed yet may read rows before they are written.
        let rows = |occupied: &Self| occupied.free[s].0.min(occupied.begun[s])..occupied.begun[s];
        let allocation = &self.line.allocations[s];
        let bytes = |rows: &Range<u64>| match allocation.exclusive {
            true => 0,
            false => (rows.end - rows.start) * allocation.row_bytes,
        };
        let before = self.share(s, bytes(&rows(self)));
        change(self);
        let after = rows(self);
        self.bytes = self.bytes + self.share(s, bytes(&after)) - before;
        if !allocation.exclusive {
            self.record(s, after);
        }
    }

    /// Tells what a ring occupies, if it counts.
    fn record(&mut self, allocation: usize, rows: Range<u64>) {
        if self.counted[allocation] {
            (self.see)(Event::Occupies { allocation, rows });
        }
    }

    /// The bytes that count for a ring.
    fn share(&self, s: usize, bytes: u64) -> u64 {
        if self.counted[s] { bytes } else { 0 }
    }
}
