//! The memory of a plan: one allocation. Each firing borrows from it the ring that it writes and the rings that it
//! reads. If these rings share bytes, it borrows single rows of them.
//!
//! A kernel reads no byte that it writes (rules 5 and 7 of the checker). The arena checks this again, so that a mistake
//! ends in an error instead of wrong figures.

use std::ops::Range;

use crate::bytes::{Bytes, LINE};

/// Bytes of known content on both sides of the arena.
const GUARD: usize = LINE;

/// The content of guards. As floats, these are numbers that no kernel makes.
const GUARD_BYTE: u8 = 0x5a;

/// The content of bytes that nothing may read. As floats of any width, it is NaN.
const POISON: u8 = 0xff;

/// Exactly as many bytes as a plan states, from the start of a cache line.
#[derive(Debug)]
pub(super) struct Arena {
    /// Guards on both sides.
    memory: Bytes,
    /// Whether bytes that nothing may read are [`POISON`].
    is_poisoned: bool,
}

/// The arena without the bytes that are being written: the parts below, between and above them, each with its first
/// byte.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rest<'a>([(usize, &'a [u8]); 3]);

impl Arena {
    /// An arena of `bytes` bytes: zeros, or poison.
    pub fn new(bytes: u64, is_poisoned: bool) -> Option<Self> {
        let memory = Bytes::zeros(usize::try_from(bytes).ok()?.checked_add(2 * GUARD)?)?;
        let mut arena = Arena { memory, is_poisoned };
        let end = GUARD + arena.len();
        arena.memory[..GUARD].fill(GUARD_BYTE);
        arena.memory[end..].fill(GUARD_BYTE);
        arena.poison(0..arena.len());
        Some(arena)
    }

    fn len(&self) -> usize {
        self.memory.len() - 2 * GUARD
    }

    /// The bytes of two ranges, to be written, and all others, to be read. None if the ranges overlap.
    pub fn split(&mut self, written: [Range<usize>; 2]) -> Option<([&mut [u8]; 2], Rest<'_>)> {
        let end = GUARD + self.len();
        let arena = self.memory.get_mut(GUARD..end)?;
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

    /// All bytes, to be read.
    pub fn all(&self) -> Rest<'_> {
        let all = self.memory.get(GUARD..GUARD + self.len()).unwrap_or_default();
        Rest([(0, all), (all.len(), &[]), (all.len(), &[])])
    }

    /// Some bytes, to be written.
    pub fn get_mut(&mut self, range: Range<usize>) -> Option<&mut [u8]> {
        let end = GUARD + self.len();
        self.memory.get_mut(GUARD..end)?.get_mut(range)
    }

    /// Copies bytes to a place that does not overlap them.
    pub fn copy(&mut self, from: Range<usize>, to: usize) {
        self.memory.copy_within(GUARD + from.start..GUARD + from.end, GUARD + to);
    }

    /// Makes these bytes NaN in an arena that is poisoned, since nothing may read them before they are written.
    pub fn poison(&mut self, range: Range<usize>) {
        if self.is_poisoned {
            self.memory[GUARD + range.start..GUARD + range.end].fill(POISON);
        }
    }

    /// Whether nothing was written beyond the arena.
    pub fn is_intact(&self) -> bool {
        let (before, rest) = self.memory.split_at(GUARD);
        before.iter().chain(&rest[self.len()..]).all(|byte| *byte == GUARD_BYTE)
    }
}

impl<'a> Rest<'a> {
    /// The bytes of a range, none of which is being written.
    pub fn get(&self, range: Range<usize>) -> Option<&'a [u8]> {
        let part = |(start, bytes): &(usize, &'a [u8])| {
            bytes.get(range.start.checked_sub(*start)?..range.end.checked_sub(*start)?)
        };
        self.0.iter().find_map(part)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_cannot_be_read() {
        let mut arena = Arena::new(40, true).unwrap();
        assert_eq!(arena.all().get(0..40).unwrap().as_ptr().align_offset(64), 0);
        let ([written, room], rest) = arena.split([10..20, 4..6]).unwrap();
        written.fill(1);
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
        assert_eq!(arena.all().get(30..40).unwrap(), [1; 10]);
        assert!(arena.is_intact());
        let end = GUARD + arena.len();
        for beside in [GUARD - 1, end] {
            let held = std::mem::replace(&mut arena.memory[beside], 0);
            assert!(!arena.is_intact());
            arena.memory[beside] = held;
        }
        arena.poison(30..31);
        assert_eq!(arena.all().get(30..32).unwrap(), [POISON, 1]);
        let mut other = Arena::new(1, false).unwrap();
        other.poison(0..1);
        assert_eq!(other.all().get(0..1).unwrap(), [0]);
        for (one, other) in
            [(30..41, 0..0), (10..20, 19..21), (10..20, 9..11), (10..20, 12..13), (0..2, 40..41)]
        {
            assert!(arena.split([one, other]).is_none());
        }
        assert!(arena.split([10..20, 10..10]).is_some());
    }
}
