//! Which blocks can cover the skyline of a partial packing.

use super::partial::{Item, PartialPacking};

/// Which of the blocks in question can lie where, by section, from the first section on.
#[derive(Default)]
pub struct Placements {
    /// For sections in a valley: where the valley begins and ends; both 0 elsewhere.
    pub valley: Vec<(usize, usize)>,
    /// Whether blocks can cover the floor of the valley up to here, and from here on.
    until: Vec<bool>,
    since: Vec<bool>,
    /// How many blocks can cover the skyline.
    pub count: Vec<u64>,
    /// Whether a block can, now or later.
    covered: Vec<bool>,
    /// Blocks that can lie on the skyline now, one of each kind.
    pub blocks: Vec<usize>,
}

impl Placements {
    /// Finds which blocks can lie where. Returns a section that may waste nothing and that no block can cover, if there
    /// is one.
    pub fn find(
        &mut self,
        partial: &mut PartialPacking,
        blocks: &[usize],
        from: usize,
        to: usize,
    ) -> Option<usize> {
        self.valleys(partial, from, to);
        self.reach(partial, blocks, from, to);
        let uncovered = self.cover(partial, blocks, from, to);
        if uncovered.is_none() {
            self.gather(partial, blocks, from, to);
        }
        uncovered
    }

    /// Whether a block ends within the valley in which it begins.
    fn fits(&self, item: Item, from: usize) -> bool {
        item.to <= self.valley[item.from - from].1
    }

    /// Finds the valleys.
    fn valleys(&mut self, partial: &PartialPacking, from: usize, to: usize) {
        let count = to - from;
        self.valley.clear();
        self.valley.resize(count + 1, (0, 0));
        for list in [&mut self.until, &mut self.since, &mut self.covered] {
            list.clear();
            list.resize(count + 1, false);
        }
        let mut start = from;
        while start < to {
            let (skyline, bare) = (partial.skyline[start], partial.bare[start]);
            let mut end = start + 1;
            while end < to && partial.skyline[end] == skyline && partial.bare[end] == bare {
                end += 1;
            }
            let wall =
                |s: usize| partial.skyline[s] > skyline || partial.skyline[s] == skyline && partial.bare[s];
            if !bare && (start == from || wall(start - 1)) && (end == to || wall(end)) {
                self.valley[start - from..end - from].fill((start, end));
                self.until[start - from] = true;
                self.since[end - from] = true;
            }
            start = end;
        }
    }

    /// Finds up to where, and from where on, blocks can cover the skyline of each valley.
    fn reach(&mut self, partial: &PartialPacking, blocks: &[usize], from: usize, to: usize) {
        let mut next = blocks.iter().copied().peekable();
        for section in from..to {
            let at = section - from;
            let reached = self.until[at];
            if reached && partial.spare[section] > 0 && self.valley[at].1 > section {
                self.until[at + 1] = true;
            }
            while let Some(i) = next.next_if(|i| partial.items[*i].from == section) {
                if reached && self.fits(partial.items[i], from) {
                    self.until[partial.items[i].to - from] = true;
                }
            }
        }
        let mut next = blocks.iter().rev().copied().peekable();
        for section in (from..to).rev() {
            let at = section - from;
            let mut reached = self.since[at];
            reached |= self.since[at + 1] && partial.spare[section] > 0 && self.valley[at].1 > section;
            while let Some(i) = next.next_if(|i| partial.items[*i].from == section) {
                reached |= self.fits(partial.items[i], from) && self.since[partial.items[i].to - from];
            }
            self.since[at] = reached;
        }
    }

    /// Finds the sections that blocks can cover, now or later. Returns a section that may waste nothing and that no
    /// block can cover, if there is one.
    fn cover(
        &mut self,
        partial: &mut PartialPacking,
        blocks: &[usize],
        from: usize,
        to: usize,
    ) -> Option<usize> {
        let mut looked = 0;
        for &i in blocks {
            let Item { from: begin, to: end, .. } = partial.items[i];
            looked += end - begin;
            let skyline = partial.skyline[begin..end].iter().copied().max().unwrap_or(0);
            let level = |edge: usize| partial.skyline[edge - 1].saturating_add(partial.level[edge]);
            let levels = (begin + 1..end).filter(|edge| partial.level[*edge] > 0).map(level);
            let lowest = levels.max().unwrap_or(0).max(skyline);
            for section in begin..end {
                self.covered[section - from] |= partial.skyline[section] == lowest;
            }
        }
        partial.spend(looked);
        (from..to).find(|s| partial.spare[*s] == 0 && !self.covered[*s - from])
    }

    /// Gathers the blocks that can lie on the skyline now, and counts them by section.
    fn gather(&mut self, partial: &PartialPacking, blocks: &[usize], from: usize, to: usize) {
        self.count.clear();
        self.count.resize(to - from + 1, 0);
        self.blocks.clear();
        let mut last = usize::MAX;
        for &i in blocks {
            let item = partial.items[i];
            let possible =
                self.fits(item, from) && self.until[item.from - from] && self.since[item.to - from];
            if possible && partial.twin[i] != last {
                last = partial.twin[i];
                self.blocks.push(i);
                for count in &mut self.count[item.from - from..item.to - from] {
                    *count += 1;
                }
            }
        }
    }
}
