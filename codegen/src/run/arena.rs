//! The memory of a plan: one allocation, from which each firing borrows the ring that it writes and the rings that
//! it reads, or the row and the rows, where these rings share bytes.
//!
//! A kernel reads no byte that it writes (rules 5 and 7 of the checker). The arena still asks, so that a mistake ends
//! in an error instead of in wrong figures.

use std::ops::Range;

/// Elements of a cache line; the arena begins at the start of one.
const LINE: usize = 16;

/// Elements of known content on both sides of the arena, in debug builds.
const GUARD: usize = if cfg!(debug_assertions) { LINE } else { 0 };

/// What guards hold: a number that is not a number, and that no kernel makes.
const GUARD_BITS: u32 = 0x7fc5_afe5;

/// Exactly as many bytes as a plan states, aligned to a cache line.
#[derive(Debug)]
pub(super) struct Arena {
    memory: Vec<f32>,
    start: usize,
    elements: usize,
}

/// The arena but for what is being written.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rest<'a> {
    below: &'a [f32],
    above: &'a [f32],
    above_start: usize,
}

impl Arena {
    /// An arena of so many bytes, all of which hold "not a number" in debug builds.
    pub fn new(bytes: u64) -> Option<Self> {
        let elements = usize::try_from(bytes.div_ceil(4)).ok()?;
        let all = elements.checked_add(LINE + 2 * GUARD)?;
        let mut memory = Vec::new();
        memory.try_reserve_exact(all).ok()?;
        memory.resize(all, if cfg!(debug_assertions) { f32::from_bits(GUARD_BITS) } else { 0.0 });
        let aligned = memory.as_ptr().align_offset(LINE * size_of::<f32>());
        let mut arena = Arena { memory, start: aligned.min(LINE - 1) + GUARD, elements };
        arena.poison(0..elements);
        Some(arena)
    }

    /// The elements of a range, to be written, and all others, to be read.
    pub fn split(&mut self, written: Range<usize>) -> Option<(&mut [f32], Rest<'_>)> {
        let arena = self.memory.get_mut(self.start..self.start + self.elements)?;
        let (below, rest) = arena.split_at_mut_checked(written.start)?;
        let (written_elements, above) = rest.split_at_mut_checked(written.len())?;
        Some((written_elements, Rest { below, above, above_start: written.end }))
    }

    /// All elements, to be read.
    pub fn all(&self) -> Rest<'_> {
        let below = self.memory.get(self.start..self.start + self.elements).unwrap_or_default();
        Rest { below, above: &[], above_start: self.elements }
    }

    /// Copies elements that do not overlap with where they go.
    pub fn copy(&mut self, from: Range<usize>, to: usize) {
        self.memory.copy_within(self.start + from.start..self.start + from.end, self.start + to);
    }

    /// Makes these elements "not a number", in debug builds: nothing may read them before they are written.
    pub fn poison(&mut self, range: Range<usize>) {
        if cfg!(debug_assertions) {
            self.memory[self.start + range.start..self.start + range.end].fill(f32::NAN);
        }
    }

    /// Whether nothing was written beyond the arena; always, as far as release builds know.
    pub fn is_intact(&self) -> bool {
        let end = self.start + self.elements;
        let guards = [self.start - GUARD..self.start, end..end + GUARD];
        guards.into_iter().flatten().all(|i| self.memory[i].to_bits() == GUARD_BITS)
    }
}

impl<'a> Rest<'a> {
    /// The elements of a range, none of which is being written.
    pub fn get(&self, range: Range<usize>) -> Option<&'a [f32]> {
        if range.start >= self.above_start {
            self.above.get(range.start - self.above_start..range.end - self.above_start)
        } else {
            self.below.get(range)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_cannot_be_read() {
        let mut arena = Arena::new(4 * 40).unwrap();
        assert_eq!(arena.all().get(0..40).unwrap().as_ptr().align_offset(64), 0);
        let (written, rest) = arena.split(10..20).unwrap();
        written.fill(1.0);
        assert_eq!(written.len(), 10);
        for (range, readable) in
            [(0..10, true), (20..40, true), (5..11, false), (15..16, false), (19..21, false), (30..41, false)]
        {
            assert_eq!(rest.get(range.clone()).is_some(), readable, "{range:?}");
        }
        arena.copy(10..20, 30);
        assert_eq!(arena.all().get(30..40).unwrap(), [1.0; 10]);
        assert!(arena.is_intact());
        arena.poison(30..31);
        assert_eq!(arena.all().get(30..31).unwrap()[0].is_nan(), cfg!(debug_assertions));
        assert!(arena.split(30..41).is_none());
    }
}
