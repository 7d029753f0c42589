//! Explains why a capacity is too small, by a few buffers that already do not fit.
//!
//! ```
//! use csdfc_packing::{Block, Budget, Life, Meter, infeasible, lives};
//!
//! let life = |bytes, lower, upper| Life { block: Block::of_bytes(bytes), lower, upper, gaps: Vec::new() };
//! let problem = lives::problem(&[life(300, 0, 5), life(200, 3, 8), life(400, 6, 9)])?;
//! // 500 bytes do not hold the last two, which are in use together.
//! let core = infeasible::core(&problem, 500, &mut Meter::new(Budget::Work(1_000))).ok_or("they may fit")?;
//! assert_eq!(core.blocks, [1, 2]);
//! assert!(core.irreducible);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use super::budget::Meter;
use super::decompose::{Fit, fit};
use super::problem::{Member, Problem};

/// Buffers that cannot be packed into a capacity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InfeasibleCore {
    /// The blocks, ascending.
    pub blocks: Vec<usize>,
    /// Whether they fit as soon as any one of them is left out. If not, the budget ended before this was known.
    pub irreducible: bool,
}

/// A few buffers of a problem that do not fit `capacity` bytes. They are found by leaving out one buffer after another.
/// `None` if the budget ends before it is known that the buffers do not fit.
///
/// If more bytes than that are in use at one moment, the answer is as few of the buffers of that moment as exceed it.
pub fn core(problem: &Problem, capacity: u64, budget: &mut Meter) -> Option<InfeasibleCore> {
    let heaviest = |clique: &Vec<Member>| fewest(clique, capacity);
    let mut blocks = match problem.cliques.iter().filter_map(heaviest).min_by_key(Vec::len) {
        Some(blocks) => blocks,
        None => {
            let all: Vec<usize> = (0..problem.blocks.len()).collect();
            if fit(problem, &all, capacity, budget) != Fit::No {
                return None;
            }
            all
        }
    };
    blocks.sort_unstable();
    // Large pieces are left out before small ones, so that a few trials remove most blocks.
    let mut size = blocks.len() / 2;
    let mut irreducible = true;
    while size > 0 {
        let mut from = 0;
        while from < blocks.len() {
            let to = blocks.len().min(from + size);
            let rest = [&blocks[..from], &blocks[to..]].concat();
            match fit(problem, &rest, capacity, budget) {
                Fit::No => blocks = rest,
                known => {
                    irreducible &= size > 1 || known != Fit::Unknown;
                    from = to;
                }
            }
        }
        size /= 2;
    }
    Some(InfeasibleCore { blocks, irreducible })
}

/// The fewest blocks of a clique that need more than `capacity`, the largest first.
fn fewest(clique: &[Member], capacity: u64) -> Option<Vec<usize>> {
    let mut members: Vec<&Member> = clique.iter().collect();
    members.sort_by_key(|m| (std::cmp::Reverse(m.high - m.low), m.block));
    let mut sum = 0;
    for (count, member) in members.iter().enumerate() {
        sum += member.high - member.low;
        if sum > capacity {
            return Some(members[..=count].iter().map(|m| m.block).collect());
        }
    }
    None
}
