//! A partial packing of blocks on a line: where blocks lie, how much may still be wasted, and how to take placements back.

use super::joins::Piece;
use super::table::{Table, mix};

/// Maximum number of sums of sizes that are listed to find levels.
const MAX_SUMS: usize = 4096;

/// A block: its sections and size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Item {
    /// The first.
    pub from: usize,
    /// The one after the last.
    pub to: usize,
    /// In bytes.
    pub size: u64,
}

/// Blocks on a line, some of them placed.
pub struct PartialPacking {
    /// Ascending by their sections, then by size.
    pub items: Vec<Item>,
    /// By block: the first one of the same sections and size.
    pub twin: Vec<usize>,
    /// By end of sections: the blocks that begin there, and that end there.
    begins: Vec<Vec<usize>>,
    ends: Vec<Vec<usize>>,
    /// By end of sections: how many blocks that are not yet placed are in use on both sides of it.
    pub crossing: Vec<usize>,
    /// By section: the bytes it may still waste.
    pub spare: Vec<u64>,
    /// By section: the end of the blocks that lie there.
    pub skyline: Vec<u64>,
    /// By section: whether no block shall cover it at this level.
    pub bare: Vec<bool>,
    /// By boundary of two sections, neither of which may waste bytes: the least height above the skyline before it at
    /// which both sides can be level.
    pub level: Vec<u64>,
    /// By block: where it was placed last.
    pub offsets: Vec<u64>,
    placed: Vec<bool>,
    trail: Vec<Change>,
    levels: Table,
    /// Steps that are left.
    pub left: u64,
}

/// What can be taken back.
#[derive(Debug, Clone, Copy)]
enum Change {
    Placed(usize),
    /// A section, and by how much it was raised.
    Raised(usize, u64),
    /// A section that no block shall cover at its level.
    Bared(usize),
    /// An end of sections, and its level before.
    Level(usize, u64),
}

impl PartialPacking {
    /// An empty partial packing of at most `height` bytes. `loads` is what each section needs. The pieces are sorted by their
    /// sections, then by size.
    pub fn new(pieces: &[Piece], loads: &[u64], height: u64) -> Self {
        let item = |piece: &Piece| Item { from: piece.span.0, to: piece.span.1, size: piece.size };
        let items: Vec<Item> = pieces.iter().map(item).collect();
        let sections = loads.len();
        let mut twin = vec![0; items.len()];
        for i in 1..items.len() {
            twin[i] = if items[i] == items[i - 1] { twin[i - 1] } else { i };
        }
        let mut begins = vec![Vec::new(); sections + 1];
        let mut ends = vec![Vec::new(); sections + 1];
        let mut crossing = vec![0; sections + 1];
        for (i, item) in items.iter().enumerate() {
            begins[item.from].push(i);
            ends[item.to].push(i);
            crossing[item.from + 1..item.to].iter_mut().for_each(|crossing| *crossing += 1);
        }
        PartialPacking {
            spare: loads.iter().map(|load| height.saturating_sub(*load)).collect(),
            skyline: vec![0; sections],
            bare: vec![false; sections],
            level: vec![0; sections + 1],
            offsets: vec![0; items.len()],
            placed: vec![false; items.len()],
            twin,
            begins,
            ends,
            crossing,
            trail: Vec::new(),
            levels: Table::default(),
            left: 0,
            items,
        }
    }

    /// Uses some steps.
    pub fn spend(&mut self, steps: usize) {
        self.left = self.left.saturating_sub(steps as u64);
    }

    /// A mark with which [`PartialPacking::take_back`] comes back to this state.
    pub fn mark(&self) -> usize {
        self.trail.len()
    }

    /// Decides that no block shall cover a section at its level.
    pub fn leave_bare(&mut self, section: usize) {
        self.bare[section] = true;
        self.trail.push(Change::Bared(section));
    }

    /// Raises sections that shall stay bare to the lower of their walls, if these are known. Returns whether the
    /// sections may waste that much.
    pub fn raise(&mut self, from: usize, to: usize) -> bool {
        let mut start = from;
        while start < to {
            let skyline = self.skyline[start];
            let alike = |s: &usize| self.bare[*s] == self.bare[start] && self.skyline[*s] == skyline;
            let end = (start..to).take_while(alike).last().unwrap_or(start) + 1;
            let left = if start > from { self.skyline[start - 1] } else { u64::MAX };
            let right = if end < to { self.skyline[end] } else { u64::MAX };
            let wall = left.min(right);
            if self.bare[start] && wall > skyline {
                if wall == u64::MAX || (start..end).any(|s| self.spare[s] < wall - skyline) {
                    return false;
                }
                for section in start..end {
                    self.bare[section] = false;
                    self.trail.push(Change::Bared(section));
                    self.skyline[section] = wall;
                    self.spare[section] -= wall - skyline;
                    self.trail.push(Change::Raised(section, wall - skyline));
                }
                for edge in start..=end {
                    self.find_level(edge);
                }
                // A raised section may now be the wall of the section before it.
                start = from;
            } else {
                start = end;
            }
        }
        true
    }

    /// Places a block on the skyline, which must be flat there.
    pub fn put(&mut self, i: usize) {
        let Item { from, to, size } = self.items[i];
        self.offsets[i] = self.skyline[from];
        self.placed[i] = true;
        self.crossing[from + 1..to].iter_mut().for_each(|crossing| *crossing -= 1);
        for skyline in &mut self.skyline[from..to] {
            *skyline += size;
        }
        self.trail.push(Change::Placed(i));
        self.spend(to - from);
        self.find_level(from);
        self.find_level(to);
    }

    /// Takes back all since a mark.
    pub fn take_back(&mut self, mark: usize) {
        while self.trail.len() > mark {
            match self.trail.pop() {
                Some(Change::Placed(i)) => {
                    let Item { from, to, size } = self.items[i];
                    self.placed[i] = false;
                    self.crossing[from + 1..to].iter_mut().for_each(|crossing| *crossing += 1);
                    for skyline in &mut self.skyline[from..to] {
                        *skyline -= size;
                    }
                }
                Some(Change::Raised(section, by)) => {
                    self.skyline[section] -= by;
                    self.spare[section] += by;
                }
                Some(Change::Bared(section)) => self.bare[section] = !self.bare[section],
                Some(Change::Level(edge, level)) => self.level[edge] = level,
                None => {}
            }
        }
    }

    /// Finds the least level of a boundary between two sections. If neither section may waste anything, a block across
    /// the boundary lies where both sides are level: on some of the blocks that end there, and on some that begin
    /// there.
    fn find_level(&mut self, edge: usize) {
        if edge == 0 || edge == self.skyline.len() {
            return;
        }
        self.trail.push(Change::Level(edge, self.level[edge]));
        let [before, after] = [edge - 1, edge].map(|s| self.skyline[s]);
        self.level[edge] = 0;
        if before == after || self.spare[edge - 1] > 0 || self.spare[edge] > 0 {
            return;
        }
        let open = |list: &Vec<usize>| list.iter().copied().filter(|i| !self.placed[*i]).collect::<Vec<_>>();
        let [ends, begins] = [&self.ends[edge], &self.begins[edge]].map(open);
        let blocks = ends.iter().chain(&begins);
        let key = blocks.fold(mix(!(edge as u64)), |key, i| key.wrapping_add(mix(self.twin[*i] as u64)));
        if let Some(level) = self.levels.get(key) {
            self.level[edge] = level;
            return;
        }
        let sums = [&ends, &begins].map(|list| sums(list.iter().map(|i| self.items[*i].size)));
        if let [Some(ends), Some(begins)] = sums {
            self.spend(ends.len() + begins.len());
            let mut begins = begins.into_iter().map(|sum| after + sum).peekable();
            let level = |sum: &u64| {
                while begins.next_if(|level| *level < before + sum).is_some() {}
                begins.peek() == Some(&(before + sum))
            };
            self.level[edge] = ends.into_iter().find(level).unwrap_or(u64::MAX);
        }
        self.levels.insert(key, self.level[edge]);
    }
}

/// The sums of all subsets of these sizes, ascending. `None` if there are too many.
fn sums(sizes: impl Iterator<Item = u64>) -> Option<Vec<u64>> {
    let mut sums = vec![0];
    for size in sizes {
        sums.extend(sums.clone().iter().map(|sum| sum + size));
        sums.sort_unstable();
        sums.dedup();
        if sums.len() > MAX_SUMS {
            return None;
        }
    }
    Some(sums)
}
