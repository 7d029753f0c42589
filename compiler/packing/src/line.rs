//! Lives on one line of time. In a section of the line, the same blocks are in use, and each block spans some sections.

use super::problem::Member;
use super::subproblem::Subproblem;

/// Blocks of a part that are each in use from one section to another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TimeLine {
    /// By block: its first section, and the one after its last.
    pub spans: Vec<(usize, usize)>,
    /// By block: its bytes.
    pub sizes: Vec<u64>,
    /// By section: bytes in use.
    pub loads: Vec<u64>,
}

impl TimeLine {
    /// The line of a part. `None` if it has no line, because of lives with gaps, several partitions, blocks that are in
    /// use in part, or given offsets and alignments that matter.
    pub fn new(part: &Subproblem) -> Option<TimeLine> {
        if !part.easy {
            return None;
        }
        let sizes: Vec<u64> = part.blocks.iter().map(|block| block.bytes).collect();
        let mut spans = vec![(usize::MAX, 0); sizes.len()];
        let mut cliques_of = vec![0; sizes.len()];
        for (at, clique) in part.cliques.iter().enumerate() {
            for member in clique {
                let (from, to) = &mut spans[member.block];
                (*from, *to) = (at.min(*from), at + 1);
                cliques_of[member.block] += 1;
            }
        }
        // Blocks that are in use at the same section conflict. There must be no other conflicts.
        let within =
            |(span, cliques): (&(usize, usize), &usize)| span.1.checked_sub(span.0) == Some(*cliques);
        if !spans.iter().zip(&cliques_of).all(within) {
            return None;
        }
        let meet = |(a, b): ((usize, usize), (usize, usize))| a.0 < b.1 && b.0 < a.1;
        let linked = |i: usize| part.links[i].iter().all(|link| meet((spans[i], spans[link.other])));
        if !(0..sizes.len()).all(linked) {
            return None;
        }
        let load = |clique: &Vec<Member>| clique.iter().map(|member| sizes[member.block]).sum();
        let loads = part.cliques.iter().map(load).collect();
        Some(TimeLine { spans, sizes, loads })
    }
}
