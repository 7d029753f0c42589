//! A part of a problem, its blocks numbered from 0.

use super::graph::BitSet;
use super::problem::{Block, Link, Member, Problem};

/// Maximum number of blocks of a part for methods that take more than quadratic time. Larger parts are only packed
/// greedily.
pub(super) const MAX_BLOCKS: usize = 1000;

/// Some of a problem's blocks, with what links them.
#[derive(Debug)]
pub(super) struct Subproblem {
    pub blocks: Vec<Block>,
    pub links: Vec<Vec<Link>>,
    /// Cliques of two blocks or more; in an easy part none lies within another.
    pub cliques: Vec<Vec<Member>>,
    /// Whether, of any two blocks that conflict, one lies above the other, with no third way.
    pub two_ways: bool,
    /// Whether the search by offset knows every way in which two blocks may lie. If not, it proves nothing when it
    /// finds nothing.
    pub exact: bool,
    /// Whether no block has a given offset.
    pub unfixed: bool,
    /// Whether it is unfixed, and every size and distance is a multiple of every alignment. Then all offsets are aligned
    /// without further care.
    pub free: bool,
    /// Whether it is free and every block is in use as a whole. Then all offsets that matter are sums of sizes.
    pub easy: bool,
    /// All offsets worth trying are multiples of this.
    pub unit: u64,
    /// By block: how far its point lies above its start. A search compares the heights of points. Of two blocks that
    /// conflict, the upper one has the higher point. All 0 if the starts of blocks have this property, or if no such
    /// points are known.
    pub rise: Vec<u64>,
}

impl Subproblem {
    /// The part with these blocks, given ascending.
    pub fn new(problem: &Problem, ids: &[usize]) -> Self {
        let local = |id: usize| ids.binary_search(&id).ok();
        let links = ids.iter().map(|i| {
            let near = problem.links[*i].iter();
            let link = |link: &Link| Some(Link { other: local(link.other)?, ..aligned(problem, *i, link) });
            near.filter_map(link).collect()
        });
        let blocks: Vec<Block> = ids.iter().map(|i| problem.blocks[*i]).collect();
        let links: Vec<Vec<Link>> = links.collect();
        let all_links = || links.iter().flatten();
        let sizes = blocks.iter().fold(0, |sizes, block| gcd(sizes, block.bytes));
        let sizes = all_links().fold(sizes, |sizes, link| gcd(sizes, link.above.unsigned_abs()));
        let unfixed = blocks.iter().all(|block| block.offset.is_none());
        let free = unfixed && blocks.iter().all(|block| sizes.is_multiple_of(block.alignment));
        let whole = |(i, block): (usize, &Block)| {
            links[i].iter().all(|link| link.is_whole(block.bytes, blocks[link.other].bytes))
        };
        let easy = free && blocks.iter().enumerate().all(whole);
        let two_ways = all_links().all(|link| link.is_exact);
        let mut exact = two_ways;
        let mut rise = vec![0; ids.len()];
        if all_links().any(|link| link.above <= 0) {
            match rises(&links).filter(|_| unfixed) {
                Some(found) => rise = found,
                None => exact = false,
            }
        }
        let mut cliques: Vec<Vec<Member>> = Vec::new();
        for clique in &problem.cliques {
            let members = clique.iter();
            let here: Vec<Member> =
                members.filter_map(|m| local(m.block).map(|block| Member { block, ..*m })).collect();
            if here.len() > 1 {
                cliques.push(here);
            }
        }
        if easy && ids.len() <= MAX_BLOCKS {
            cliques = maximal(cliques, ids.len());
        }
        let unit = unit(&blocks, sizes);
        Subproblem { links, blocks, cliques, two_ways, exact, unfixed, free, easy, unit, rise }
    }

    /// How much higher the point of a neighbour is than the point of the block, if the neighbour lies above. More than
    /// 0 in an exact part.
    pub fn distance_above(&self, block: usize, link: &Link) -> i64 {
        link.above + self.rise[link.other] as i64 - self.rise[block] as i64
    }

    /// How much lower a neighbour's point is, if the neighbour lies below.
    pub fn distance_below(&self, block: usize, link: &Link) -> i64 {
        link.below + self.rise[block] as i64 - self.rise[link.other] as i64
    }

    /// How far above a block's point there is room for the point of any neighbour.
    pub fn reach(&self, block: usize) -> u64 {
        let above = self.links[block].iter().map(|link| self.distance_above(block, link));
        above.max().map_or(0, |above| above.max(0).unsigned_abs())
    }

    /// The lowest point from this one on at which a block's offset is aligned.
    pub fn aligned(&self, block: usize, point: u64) -> u64 {
        let rise = self.rise[block];
        point.saturating_sub(rise).next_multiple_of(self.blocks[block].alignment) + rise
    }
}

/// Points of blocks, as [`Subproblem::rise`] wants them: the lowest points such that each is higher than the point of
/// any neighbour above which the block may lie although it starts lower. `None` if there are no such points.
fn rises(links: &[Vec<Link>]) -> Option<Vec<u64>> {
    let mut rise = vec![0i64; links.len()];
    // Each round settles one more block of a chain of neighbours.
    for _ in 0..=links.len() {
        let mut settled = true;
        for (i, links) in links.iter().enumerate() {
            for link in links {
                let least = rise[i] - link.above + 1;
                if least > rise[link.other] {
                    rise[link.other] = least;
                    settled = false;
                }
            }
        }
        if settled {
            return Some(rise.into_iter().map(i64::unsigned_abs).collect());
        }
    }
    None
}

/// The cliques that lie within no other.
fn maximal(cliques: Vec<Vec<Member>>, count: usize) -> Vec<Vec<Member>> {
    let set = |clique: &Vec<Member>| {
        let mut set = BitSet::new(count);
        clique.iter().for_each(|member| set.insert(member.block));
        set
    };
    let sets: Vec<BitSet> = cliques.iter().map(set).collect();
    let lost = |i: usize| {
        let covers = |j: usize| {
            let (a, b) = (cliques[i].len(), cliques[j].len());
            // Of equals the first stays.
            (a < b || a == b && j < i) && sets[i].is_subset(&sets[j])
        };
        (0..cliques.len()).any(|j| j != i && covers(j))
    };
    let lost: Vec<bool> = (0..cliques.len()).map(lost).collect();
    cliques.into_iter().zip(lost).filter(|(_, lost)| !lost).map(|(clique, _)| clique).collect()
}

/// `sizes` divides all sizes and distances.
fn unit(blocks: &[Block], sizes: u64) -> u64 {
    let mut unit = blocks.iter().fold(sizes, |unit, block| gcd(unit, block.offset.unwrap_or(0)));
    // A block whose alignment divides the unit is aligned at every multiple of the unit.
    while let Some(block) =
        blocks.iter().find(|block| unit > 0 && unit % block.alignment != 0 && block.alignment % unit != 0)
    {
        unit = gcd(unit, block.alignment);
    }
    unit.max(1)
}

/// A link at the distances that alignments leave: two offsets differ by a multiple of what divides both alignments.
fn aligned(problem: &Problem, block: usize, link: &Link) -> Link {
    let step = gcd(problem.blocks[block].alignment, problem.blocks[link.other].alignment);
    Link { above: next_multiple(link.above, step), below: next_multiple(link.below, step), ..*link }
}

/// The least multiple of `step`, which may be 0, that is at least this distance.
pub(super) fn next_multiple(distance: i64, step: u64) -> i64 {
    match i64::try_from(step) {
        Ok(step) if step > 1 => distance.saturating_add(step - 1).div_euclid(step) * step,
        _ => distance,
    }
}

/// The greatest common divisor, and the other number if one is 0.
pub(super) fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}
