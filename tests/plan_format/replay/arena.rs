//! Sections 8 and 9: firings in an arena whose bytes remember which row they hold.

use super::model::{Cnn, Kind, Plan, Ring};
use super::{Refusal, Replayed};

/// Frames where groups follow each other, and where stages run ahead.
const FRAMES: u64 = 2;
const STAGED: u64 = 3;

/// Checks that rings which may never share a byte share none, whatever they hold.
pub fn check_apart(plan: &Plan<'_>) -> Result<(), Refusal> {
    let rings: Vec<(usize, &Ring)> = plan
        .cnns
        .iter()
        .enumerate()
        .flat_map(|(c, cnn)| cnn.rings.iter().map(move |ring| (c, ring)))
        .collect();
    for (i, &(c, a)) in rings.iter().enumerate() {
        for &(d, b) in rings[i + 1..].iter().filter(|(_, b)| a.meets(b)) {
            let at_once = a.stored_in.iter().any(|&p| b.stored_in.iter().any(|&q| plan.together[p][q]));
            let beside = c == d && a.lives_beside(b);
            let is_cut = beside && (a.is_cut() || b.is_cut());
            let of_one_layer = beside
                && (overwrites_operand(&plan.cnns[c], a, b) || overwrites_operand(&plan.cnns[c], b, a));
            let outlives = c != d && (a.persists() || b.persists());
            if at_once || is_cut || of_one_layer || outlives {
                return Err(format!("{} and {} share bytes", a.name, b.name));
            }
        }
    }
    Ok(())
}

/// Whether a layer writes one of these rings and reads the other, but must not write where it reads.
fn overwrites_operand(cnn: &Cnn, read: &Ring, written: &Ring) -> bool {
    if !read.readers.contains(&written.tensor) {
        return false;
    }
    let mut held = cnn.layers[written.tensor].held.iter();
    let by_rows = held.any(|held| held.tensor == read.tensor && held.keep_1.is_some());
    !(by_rows && read.kind == Kind::Whole && written.kind == Kind::Whole)
}

/// Replays a CNN, in several orders of turns where stages run at the same time.
pub fn replay(plan: &Plan<'_>, c: usize, replayed: &mut Replayed) -> Result<(), Refusal> {
    let cnn = &plan.cnns[c];
    let is_staged = cnn.groups.iter().any(|group| group.len() > 1);
    for order in 0..if is_staged { 8 } else { 1 } {
        let mut arena = Arena::new(cnn)?;
        if let ([group], true) = (cnn.groups.as_slice(), is_staged) {
            arena.run(plan, group, STAGED, order, replayed)?;
        } else {
            for group in (0..FRAMES).flat_map(|_| &cnn.groups) {
                arena.run(plan, group, 1, order, replayed)?;
            }
        }
    }
    Ok(())
}

struct Arena<'a> {
    cnn: &'a Cnn,
    /// Bytes of a cell: all rows begin and end between cells.
    unit: u64,
    /// The ring and row, over all frames, that a cell holds.
    cells: Vec<Option<(usize, u64)>>,
    /// The ring that had a cell to itself last.
    owner: Vec<Option<usize>>,
    /// Whether a ring that has its bytes to itself lives.
    lives: Vec<bool>,
    /// Firings of each layer.
    fired: Vec<u64>,
    /// Rows of each tensor, over all frames.
    written: Vec<u64>,
    /// Rows released of each tensor that a layer holds.
    released: Vec<Vec<u64>>,
    /// Rows of each ring that nobody needs.
    free: Vec<u64>,
}

impl<'a> Arena<'a> {
    fn new(cnn: &'a Cnn) -> Result<Self, Refusal> {
        fn divisor(a: u64, b: u64) -> u64 {
            if b == 0 { a } else { divisor(b, a % b) }
        }
        let sizes = cnn.rings.iter().flat_map(|ring| ring.bases.iter().copied().chain([ring.row_bytes]));
        let unit = sizes.fold(0, divisor).max(1);
        let ends = cnn.rings.iter().flat_map(|r| r.bases.iter().map(|base| base + r.rows * r.row_bytes));
        let cells = (ends.max().unwrap_or(0) / unit) as usize;
        let free = |ring: &Ring| match ring.readers.is_empty() && ring.kind != Kind::Whole {
            true => u64::MAX,
            false => 0,
        };
        let mut arena = Arena {
            cnn,
            unit,
            cells: vec![None; cells],
            owner: vec![None; cells],
            lives: vec![false; cnn.rings.len()],
            fired: vec![0; cnn.layers.len()],
            written: cnn.layers.iter().map(|layer| layer.history).collect(),
            released: cnn.layers.iter().map(|layer| vec![0; layer.held.len()]).collect(),
            free: cnn.rings.iter().map(free).collect(),
        };
        // What a first hop finds of those before it.
        for (s, ring) in cnn.rings.iter().enumerate().filter(|(_, ring)| ring.persists()) {
            arena.begin(s)?;
            let history = if ring.is_ring() { cnn.layers[ring.tensor].history } else { 0 };
            for row in 0..history {
                arena.cells_of(s, 0, row).for_each(|cell| arena.cells[cell] = Some((s, row)));
            }
        }
        Ok(arena)
    }

    /// Lets the partitions of a group work on this many frames.
    fn run(
        &mut self,
        plan: &Plan<'_>,
        group: &[usize],
        frames: u64,
        order: u64,
        replayed: &mut Replayed,
    ) -> Result<(), Refusal> {
        let length = |p: usize| plan.partitions[p].schedule.len() as u64;
        let mut done = vec![0; group.len()];
        // Any sequence of turns will do.
        let mut random = order;
        while (0..group.len()).any(|i| done[i] < frames * length(group[i])) {
            random = random.wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(17).wrapping_add(order);
            let turn = |i: usize| match order {
                0 => i,
                1 => group.len() - 1 - i,
                _ => (i + random as usize % group.len()) % group.len(),
            };
            let next = |i: usize| plan.partitions[group[i]].schedule[(done[i] % length(group[i])) as usize];
            let is_ready =
                |&i: &usize| done[i] < frames * length(group[i]) && self.is_ready(plan, group[i], next(i));
            let ready = (0..group.len()).map(turn).find(is_ready);
            let Some(i) = ready else { return Err(format!("{}: all wait for each other", self.cnn.name)) };
            let layer = next(i);
            for s in 0..self.cnn.rings.len() {
                // The frame before has ended.
                self.lives[s] &=
                    self.cnn.rings[s].kind != Kind::Kept || !done[i].is_multiple_of(length(group[i]));
                let Kind::Block(begun) = self.cnn.rings[s].kind else { continue };
                if self.cnn.rings[s].partitions.contains(&group[i])
                    && begun as u64 == done[i] % length(group[i])
                {
                    self.begin(s)?;
                }
            }
            self.fire(layer, replayed)?;
            done[i] += 1;
        }
        Ok(())
    }

    fn frame(&self, l: usize) -> (u64, u64) {
        (self.fired[l] / self.cnn.layers[l].firings, self.fired[l] % self.cnn.layers[l].firings)
    }

    /// The blocking rule.
    fn is_ready(&self, plan: &Plan<'_>, own: usize, l: usize) -> bool {
        let (frame, p) = self.frame(l);
        let layers = &self.cnn.layers;
        let arrived = layers[l].held.iter().all(|held| {
            let producer = &layers[held.tensor];
            !plan.together[own][producer.partition]
                || frame * producer.rows() + held.need[p as usize] <= self.written[held.tensor]
        });
        let height = layers[l].rows();
        let has_room = |(s, ring): (usize, &Ring)| match ring.kind {
            _ if ring.tensor != l => true,
            Kind::Cut => frame * height + layers[l].end(p) <= self.free[s].saturating_add(ring.rows),
            Kind::Halves => frame * height <= self.free[s].saturating_add(height),
            Kind::Whole
            | Kind::Wraps
            | Kind::Persists
            | Kind::State
            | Kind::Kept
            | Kind::Workspace
            | Kind::Recurrent
            | Kind::Block(_) => true,
        };
        arrived && self.cnn.rings.iter().enumerate().all(has_room)
    }

    /// The ring in which a layer reads a tensor.
    fn read_from(&self, tensor: usize, reader: usize) -> Option<usize> {
        self.cnn.rings.iter().position(|ring| ring.tensor == tensor && ring.readers.contains(&reader))
    }

    fn cells_of(&self, s: usize, frame: u64, row: u64) -> std::ops::Range<usize> {
        let ring = &self.cnn.rings[s];
        let start = ring.address(self.cnn.layers[ring.tensor].rows(), frame, row) / self.unit;
        start as usize..(start + ring.row_bytes / self.unit) as usize
    }

    fn fire(&mut self, l: usize, replayed: &mut Replayed) -> Result<(), Refusal> {
        let cnn = self.cnn;
        let layer = &cnn.layers[l];
        let (frame, p) = self.frame(l);
        for held in &layer.held {
            let before = frame * cnn.layers[held.tensor].rows();
            let rows = held.keep[p as usize]..held.need[p as usize];
            if self.written[held.tensor] < before + rows.end {
                return Err(format!("{} reads rows that are not written", layer.name));
            }
            replayed.rows_read += rows.end - rows.start;
            let Some(s) = self.read_from(held.tensor, l) else { continue };
            for row in rows {
                if self.cells_of(s, frame, row).any(|cell| self.cells[cell] != Some((s, before + row))) {
                    return Err(format!("{}: row {row} of {} is lost", layer.name, cnn.rings[s].name));
                }
            }
        }
        let made = p * layer.r..layer.end(p);
        // Rows of a hop are counted from the first that stays.
        let before = frame * layer.rows() + layer.history;
        let own = || (0..cnn.rings.len()).filter(|&s| cnn.rings[s].tensor == l);
        for s in own() {
            if p == 0 && matches!(cnn.rings[s].kind, Kind::Wraps | Kind::Kept | Kind::Workspace) {
                self.begin(s)?;
            }
        }
        let written = || own().filter(|&s| cnn.rings[s].is_ring());
        let mut read = layer.held.iter().filter_map(|held| self.read_from(held.tensor, l));
        if read.any(|s| written().any(|own| cnn.rings[own].meets(&cnn.rings[s]))) {
            for row in made.clone() {
                self.release(l, frame, |held| held.keep_1.as_ref().map(|keep| keep[row as usize]));
                for s in written() {
                    self.write(s, frame, layer.history + row, before + made.start)?;
                }
            }
        } else {
            for s in written() {
                for row in made.clone() {
                    self.write(s, frame, layer.history + row, before + made.start)?;
                }
            }
        }
        self.written[l] = before + made.end;
        self.release(l, frame, |held| Some(held.keep[p as usize + 1]));
        self.fired[l] += 1;
        replayed.firings += 1;
        for (s, ring) in cnn.rings.iter().enumerate() {
            let is_user = |user: usize| ring.tensor == user || ring.readers.contains(&user);
            let is_done = |user: usize| self.fired[user] >= (frame + 1) * cnn.layers[user].firings;
            if is_user(l) && (0..cnn.layers.len()).all(|user| !is_user(user) || is_done(user)) {
                match ring.kind {
                    Kind::Wraps | Kind::Workspace | Kind::Block(_) => self.lives[s] = false,
                    Kind::Whole => self.free[s] = (frame + 1) * cnn.layers[ring.tensor].rows(),
                    Kind::Cut
                    | Kind::Halves
                    | Kind::Persists
                    | Kind::State
                    | Kind::Recurrent
                    | Kind::Kept => {}
                }
            }
        }
        Ok(())
    }

    /// A ring that does not share them has its bytes to itself from here on.
    fn begin(&mut self, s: usize) -> Result<(), Refusal> {
        let ring = &self.cnn.rings[s];
        for &base in &ring.bases {
            for cell in base / self.unit..(base + ring.rows * ring.row_bytes) / self.unit {
                let cell = cell as usize;
                let is_needed = self.cells[cell].is_some_and(|(other, row)| row >= self.free[other]);
                if is_needed || self.owner[cell].is_some_and(|other| other != s && self.lives[other]) {
                    return Err(format!("{} begins where others are", ring.name));
                }
                self.owner[cell] = Some(s);
            }
        }
        self.lives[s] = true;
        Ok(())
    }

    /// Writes a row, of a firing that began with row `first`, counted over all frames.
    fn write(&mut self, s: usize, frame: u64, row: u64, first: u64) -> Result<(), Refusal> {
        let row = (row, frame * self.cnn.layers[self.cnn.rings[s].tensor].rows() + row);
        for cell in self.cells_of(s, frame, row.0) {
            let is_needed =
                |(other, old): (usize, u64)| old >= self.free[other] || other == s && old >= first;
            if self.cells[cell].is_some_and(is_needed) {
                return Err(format!(
                    "row {} of {} is written over one that is needed",
                    row.0, self.cnn.rings[s].name
                ));
            }
            if self.owner[cell].is_some_and(|other| other != s && self.lives[other]) {
                return Err(format!("{} is written into a ring that lives", self.cnn.rings[s].name));
            }
            self.cells[cell] = Some((s, row.1));
        }
        Ok(())
    }

    fn release(&mut self, l: usize, frame: u64, keep: impl Fn(&super::rows::Held) -> Option<u64>) {
        let cnn = self.cnn;
        for (i, held) in cnn.layers[l].held.iter().enumerate() {
            let Some(keep) = keep(held) else { continue };
            self.released[l][i] = frame * cnn.layers[held.tensor].rows() + keep;
            let Some(s) = self.read_from(held.tensor, l) else { continue };
            let of = |&reader: &usize| {
                let at = cnn.layers[reader].held.iter().position(|other| other.tensor == held.tensor);
                at.map(|at| self.released[reader][at])
            };
            self.free[s] = cnn.rings[s].readers.iter().filter_map(of).min().unwrap_or(0);
        }
    }
}
