//! The problem: blocks, and which of them cannot share an address. Also its solution.

use super::budget::Stopped;

/// Maximum number of pairs of buffers that live at the same time. They take some 800 MB.
pub const MAX_PAIRS: usize = 12_500_000;

/// A buffer to be placed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Block {
    /// Size in bytes; one of 0 lies anywhere.
    pub bytes: u64,
    /// Its offset is a multiple of this, at least 1.
    pub alignment: u64,
    /// Its offset, where it is given.
    pub offset: Option<u64>,
}

impl Block {
    /// A block of this size, free to lie at any byte.
    pub fn of_bytes(bytes: u64) -> Self {
        Block { bytes, alignment: 1, offset: None }
    }
}

/// A block that is in use at the same time as another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Link {
    /// The other block.
    pub other: usize,
    /// If the other block lies above this one: how much higher its offset must be at least, in bytes. This is the size
    /// of this block, or less if one of the two is used in part. It is below 0 if the other block may start lower and
    /// yet lie above the used part of this one.
    pub above: i64,
    /// If the other block lies below this one: how much lower its offset must be at least. This is the size of the
    /// other block, or less.
    pub below: i64,
    /// Whether no third way is possible, in which the other block lies above at one time and below at another. No
    /// search here tries a third way.
    pub is_exact: bool,
}

impl Link {
    /// Whether the two lie clear of each other at these offsets, this one's and the other's.
    pub fn is_clear(&self, at: u64, other: u64) -> bool {
        let (at, other) = (i128::from(at), i128::from(other));
        other >= at + i128::from(self.above) || at >= other + i128::from(self.below)
    }

    /// Whether both blocks are in use as a whole, so that one lies wholly above the other. `bytes` and `other` are
    /// their sizes.
    pub fn is_whole(&self, bytes: u64, other: u64) -> bool {
        let is_whole =
            |distance: i64, bytes: u64| u64::try_from(distance).is_ok_and(|distance| distance >= bytes);
        is_whole(self.above, bytes) && is_whole(self.below, other)
    }
}

/// A block in a clique: blocks that are all in use at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Member {
    /// The block.
    pub block: usize,
    /// The first byte of the block that is in use at that moment.
    pub low: u64,
    /// The end of its bytes that are in use at that moment.
    pub high: u64,
}

/// Blocks, and which of them cannot share an address.
#[derive(Debug, Clone)]
pub struct Problem {
    pub(super) blocks: Vec<Block>,
    /// By block, ascending by the other.
    pub(super) links: Vec<Vec<Link>>,
    /// In the order of time where there is one.
    pub(super) cliques: Vec<Vec<Member>>,
}

/// Why blocks cannot be packed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PackError {
    /// Sums of sizes and offsets must stay below 2^62 bytes.
    #[error("sizes, alignments and offsets add up to 2^62 bytes or more")]
    TooLarge,
    /// The conflicts would take too much memory.
    #[error("more than {} pairs of buffers live at the same time", MAX_PAIRS)]
    TooManyPairs,
    /// Alignments are at least 1.
    #[error("buffer {0} has an alignment of 0; give 1 for any offset")]
    NoAlignment(usize),
    /// A given offset is not a multiple of the alignment.
    #[error("buffer {block} is fixed at {offset}, which is no multiple of its alignment {alignment}")]
    Misaligned {
        /// The block.
        block: usize,
        /// Its offset.
        offset: u64,
        /// Its alignment.
        alignment: u64,
    },
    /// Two buffers with given offsets overlap.
    #[error("buffers {0} and {1} are fixed at addresses that overlap while both are in use")]
    FixedOverlap(usize, usize),
}

/// Offsets, and the bytes that they span.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Packing {
    /// One offset per block, in bytes.
    pub offsets: Vec<u64>,
    /// End of the highest block.
    pub bytes: u64,
}

/// The best packing that was found, and a bound on better ones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Solution {
    /// The packing.
    pub packing: Packing,
    /// No packing takes fewer bytes.
    pub bound: u64,
    /// Why it ended.
    pub stopped: Stopped,
    /// Steps of the complete search. A step looks at a conflict, at a member of a clique, or at a few pairs of members.
    pub work: u64,
}

impl Solution {
    /// Whether no packing is smaller.
    pub fn proven(&self) -> bool {
        self.packing.bytes == self.bound
    }
}

/// 2^62: sums of a few numbers below it fit 64 bits.
const LIMIT: u64 = 1 << 62;

impl Problem {
    /// A problem of blocks. Each block conflicts with the blocks that are listed for it, in both directions, and no
    /// block conflicts with itself. `cliques` are sets of blocks that conflict pair by pair: the more of them, the
    /// tighter the bounds.
    ///
    /// # Errors
    /// When sums would not fit 64 bits, or given offsets contradict alignments or each other.
    pub fn new(
        blocks: Vec<Block>,
        conflicts: &[Vec<usize>],
        cliques: &[Vec<usize>],
    ) -> Result<Self, PackError> {
        let link = |i: usize| {
            let real = conflicts[i].iter().filter(|j| blocks[**j].bytes > 0 && blocks[i].bytes > 0);
            let distance = |i: usize| i64::try_from(blocks[i].bytes).unwrap_or(i64::MAX);
            real.map(|&other| Link { other, above: distance(i), below: distance(other), is_exact: true })
                .collect()
        };
        let links = (0..blocks.len()).map(link).collect();
        let member = |&block: &usize| Member { block, low: 0, high: blocks[block].bytes };
        let cliques = cliques.iter().map(|clique| clique.iter().map(member).collect()).collect();
        Problem::from_links(blocks, links, cliques)
    }

    /// A problem of blocks and the distances that links demand between them. A link is listed for each of its two blocks.
    /// `cliques` are sets of blocks of which some bytes are in use at the same time: the more of them, the tighter the
    /// bounds.
    ///
    /// # Errors
    /// As [`Problem::new`].
    pub fn from_links(
        blocks: Vec<Block>,
        mut links: Vec<Vec<Link>>,
        cliques: Vec<Vec<Member>>,
    ) -> Result<Self, PackError> {
        let mut sum = 0u64;
        for (i, block) in blocks.iter().enumerate() {
            if block.alignment == 0 {
                return Err(PackError::NoAlignment(i));
            }
            if let Some(offset) = block.offset.filter(|offset| offset % block.alignment != 0) {
                return Err(PackError::Misaligned { block: i, offset, alignment: block.alignment });
            }
            let terms = [block.bytes, block.alignment, block.offset.unwrap_or(0)];
            let total = terms.iter().try_fold(sum, |sum, term| sum.checked_add(*term));
            sum = total.filter(|sum| *sum < LIMIT).ok_or(PackError::TooLarge)?;
        }
        for list in &mut links {
            list.sort_unstable_by_key(|link| link.other);
        }
        let problem = Problem { blocks, links, cliques };
        problem.check_fixed()?;
        Ok(problem)
    }

    fn check_fixed(&self) -> Result<(), PackError> {
        for (i, block) in self.blocks.iter().enumerate() {
            let Some(at) = block.offset else { continue };
            for link in &self.links[i] {
                if self.blocks[link.other].offset.is_some_and(|other| !link.is_clear(at, other)) {
                    return Err(PackError::FixedOverlap(i, link.other));
                }
            }
        }
        Ok(())
    }

    /// The blocks.
    pub fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    /// Whether a packing may have these offsets: they are fixed and aligned as the problem asks, and no two blocks that
    /// conflict overlap. It takes O(blocks + conflicts) time.
    pub fn accepts(&self, offsets: &[u64]) -> bool {
        let lawful = |(i, block): (usize, &Block)| {
            let at = offsets[i];
            let clear = |link: &Link| link.is_clear(at, offsets[link.other]);
            at.is_multiple_of(block.alignment)
                && block.offset.is_none_or(|fixed| fixed == at)
                && self.links[i].iter().all(clear)
        };
        offsets.len() == self.blocks.len() && self.blocks.iter().enumerate().all(lawful)
    }
}
