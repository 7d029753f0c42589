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

/// The arena but for what is being written: what lies below, between and above, each with its first element.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rest<'a>([(usize, &'a [f32]); 3]);

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

    /// The elements of two ranges, to be written, and all others, to be read. None if the ranges overlap.
    pub fn split(&mut self, written: [Range<usize>; 2]) -> Option<([&mut [f32]; 2], Rest<'_>)> {
        let arena = self.memory.get_mut(self.start..self.start + self.elements)?;
        let [one, other] = &written;
        let is_ordered = (one.start, one.end) <= (other.start, other.end);
        let [low, high] = if is_ordered { [one, other] } else { [other, one] };
        let (below, rest) = arena.split_at_mut_checked(low.start)?;
        let (first, rest) = rest.split_at_mut_checked(low.len())?;
        let (between, rest) = rest.split_at_mut_checked(high.start.checked_sub(low.end)?)?;
        let (second, above) = rest.split_at_mut_checked(high.len())?;
        let rest = Rest([(0, below), (low.end, between), (high.end, above)]);
        Some((if is_ordered { [first, second] } else { [second, first] }, rest))
    }

    /// All elements, to be read.
    pub fn all(&self) -> Rest<'_> {
        let all = self.memory.get(self.start..self.start + self.elements).unwrap_or_default();
        Rest([(0, all), (self.elements, &[]), (self.elements, &[])])
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
        let part = |(start, elements): &(usize, &'a [f32])| {
            elements.get(range.start.checked_sub(*start)?..range.end.checked_sub(*start)?)
        };
        self.0.iter().find_map(part)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_cannot_be_read() {
        let mut arena = Arena::new(4 * 40).unwrap();
        assert_eq!(arena.all().get(0..40).unwrap().as_ptr().align_offset(64), 0);
        let ([written, room], rest) = arena.split([10..20, 4..6]).unwrap();
        written.fill(1.0);
        assert_eq!((written.len(), room.len()), (10, 2));
        for (range, readable) in [
            (0..4, true),
            (6..10, true),
            (20..40, true),
            (3..5, false),
            (5..11, false),
            (15..16, false),
            (19..21, false),
            (30..41, false),
        ] {
            assert_eq!(rest.get(range.clone()).is_some(), readable, "{range:?}");
        }
        arena.copy(10..20, 30);
        assert_eq!(arena.all().get(30..40).unwrap(), [1.0; 10]);
        assert!(arena.is_intact());
        arena.poison(30..31);
        assert_eq!(arena.all().get(30..31).unwrap()[0].is_nan(), cfg!(debug_assertions));
        for (one, other) in
            [(30..41, 0..0), (10..20, 19..21), (10..20, 9..11), (10..20, 12..13), (0..2, 40..41)]
        {
            assert!(arena.split([one, other]).is_none());
        }
        assert!(arena.split([10..20, 10..10]).is_some());
    }
}
