//! The complete search along time: is there a packing of a given height?
//!
//! Blocks come one by one in the order of time. If two blocks conflict, one lies above the other at some distance. So
//! the decisions so far are a system of differences between offsets. The rest of the search depends only on what this
//! system says of the *frontier*: the blocks that still have neighbours to come, the ground and the capacity. These
//! differences form a matrix of least differences, closed under addition: a *zone*, as in timed automata (Dill, Timing
//! assumptions and verification of finite-state concurrent systems, 1989). If one zone allows everything that another
//! allows, the other is superfluous.
//!
//! Offsets that are multiples of alignments differ by multiples of what divides both alignments, so differences are rounded
//! up to these. If sizes are multiples of all alignments, this changes nothing. Otherwise, a zone may still allow what no
//! offsets fulfil: a search that finds nothing proves as much as ever, and what it finds is verified.
//!
//! If few blocks are in use at any time, there are few zones, and the search takes time in proportion to the length of
//! the problem. If there are too many zones, those that allow most are kept. Finding nothing then proves nothing,
//! unless the blocks that came since do not fit even by themselves.

use super::budget::Meter;
use super::problem::Block;
use super::search::Answer;
use super::subproblem::{Subproblem, gcd, next_multiple};

/// Maximum number of nodes of a zone, since each takes one bit. A block can have no more neighbours among the blocks
/// before it.
const MAX_NODES: usize = 64;

/// The most zones into which one zone is divided when a block is added that can lie in more ways than that. The limit
/// varies between these two numbers.
const CHILDREN: std::ops::RangeInclusive<usize> = 8..=64;

/// Maximum number of differences that are stored at once.
const MAX_DIFFERENCES: usize = 1 << 22;

/// Maximum number of steps to find the ways in which a block may lie in one zone.
const MAX_STEPS: u64 = 1 << 18;

/// Looks for a packing of at most `capacity` bytes among all blocks of an unfixed part, which come in this order, keeping up
/// to `width` zones.
pub(super) fn search(
    part: &Subproblem,
    order: &[usize],
    capacity: u64,
    width: usize,
    budget: &mut Meter,
) -> Answer {
    let mut rank = vec![usize::MAX; part.blocks.len()];
    order.iter().enumerate().for_each(|(at, block)| rank[*block] = at);
    let mut first = 0;
    loop {
        match sweep(part, &order[first..], &rank, capacity, width, budget) {
            SweepOutcome::Through(history) if first == 0 => {
                let offsets = offsets(part, order, &rank, &history, capacity);
                return offsets.map_or(Answer::Unknown, Answer::Packed);
            }
            SweepOutcome::Ended { cut: None } => return Answer::Impossible,
            // The blocks that came since may be too many by themselves.
            SweepOutcome::Ended { cut: Some(cut) } if !budget.exhausted() => first += cut + 1,
            SweepOutcome::Through(_) | SweepOutcome::Ended { .. } | SweepOutcome::Unknown => {
                return Answer::Unknown;
            }
        }
    }
}

/// How far a search got.
enum SweepOutcome {
    /// The search came to the end. By block in order, it has for each zone kept the zone before it and which neighbours
    /// lie above.
    Through(Vec<Vec<(u32, u64)>>),
    /// The search came to a block for which there is no place. The last block at which it left out zones is `cut`.
    Ended { cut: Option<usize> },
    /// It was given up.
    Unknown,
}

/// Lets these blocks come, which have consecutive ranks.
fn sweep(
    part: &Subproblem,
    order: &[usize],
    rank: &[usize],
    capacity: u64,
    width: usize,
    budget: &mut Meter,
) -> SweepOutcome {
    let Some(start) = order.first().map(|block| rank[*block]) else { return SweepOutcome::Unknown };
    let last = |block: usize| part.links[block].iter().map(|link| rank[link.other]).max().unwrap_or(0);
    let mut frontier: Vec<usize> = Vec::new();
    let mut zones = vec![Zone { least: vec![0], parent: 0, above: 0, tightness: 0 }];
    let mut history = Vec::with_capacity(order.len());
    let mut cut = None;
    for (now, &block) in order.iter().enumerate() {
        let Some(room) = capacity.checked_sub(part.blocks[block].bytes) else {
            return SweepOutcome::Ended { cut: None };
        };
        let nodes = frontier.len() + 1;
        if nodes > MAX_NODES || budget.exhausted() {
            return SweepOutcome::Unknown;
        }
        let links = links(part, block, &frontier);
        frontier.push(block);
        let alignments = || frontier.iter().map(|block| part.blocks[*block].alignment);
        // Where sizes are multiples of all alignments, there is nothing to round.
        let steps: Vec<u64> =
            if part.free { Vec::new() } else { [0].into_iter().chain(alignments()).collect() };
        let stays = |at: &usize| last(frontier[*at]) > start + now;
        let kept: Vec<usize> = (0..frontier.len()).filter(stays).map(|at| at + 1).collect();
        frontier = kept.iter().map(|node| frontier[node - 1]).collect();
        let most = MAX_DIFFERENCES / (nodes * nodes * zones.len());
        let most = most.min(width.clamp(*CHILDREN.start(), *CHILDREN.end())).max(1);
        let mut children = Vec::new();
        for (parent, zone) in (0..).zip(&zones) {
            let mut coming = Expansion {
                least: &zone.least,
                nodes,
                links: &links,
                steps: &steps,
                kept: &kept,
                parent,
                most,
                children: Vec::new(),
                work: 0,
            };
            coming.decide(Between {
                below: (0..nodes)
                    .map(|node| coming.rounded_difference(node, nodes, zone.least[node * nodes]))
                    .collect(),
                above: (0..nodes)
                    .map(|node| coming.rounded_difference(node, nodes, zone.least[node] - room as i64))
                    .collect(),
            });
            if coming.is_over() {
                cut = Some(now);
            }
            budget.spend(coming.work);
            children.append(&mut coming.children);
        }
        let (most_allowing, is_cut) = undominated(children, width, budget);
        zones = most_allowing;
        if is_cut {
            cut = Some(now);
        }
        if zones.is_empty() {
            return if cut == Some(now) { SweepOutcome::Unknown } else { SweepOutcome::Ended { cut } };
        }
        history.push(zones.iter().map(|zone| (zone.parent, zone.above)).collect());
    }
    SweepOutcome::Through(history)
}

/// The decisions so far, as far as they matter.
#[derive(Debug)]
struct Zone {
    /// By two nodes: how much higher the second is than the first at least. The nodes are the ground and then the
    /// frontier.
    least: Vec<i64>,
    /// The zone before the last block came.
    parent: u32,
    /// By neighbour that came before the last block, whether it lies above it.
    above: u64,
    /// Sum of the differences.
    tightness: i128,
}

/// How far a block must lie from one of the frontier.
#[derive(Debug, Clone, Copy)]
struct Separation {
    node: usize,
    above: i64,
    below: i64,
}

/// The links of a block to those before it, by their order in the frontier.
fn links(part: &Subproblem, block: usize, frontier: &[usize]) -> Vec<Separation> {
    let all = &part.links[block];
    let link = |(at, other): (usize, &usize)| {
        let link = all[all.binary_search_by_key(other, |link| link.other).ok()?];
        Some(Separation { node: at + 1, above: link.above, below: link.below })
    };
    frontier.iter().enumerate().filter_map(link).collect()
}

/// A block that comes to a zone.
struct Expansion<'a> {
    least: &'a [i64],
    nodes: usize,
    links: &'a [Separation],
    /// By node and for the block, what its offset is a multiple of. Empty if that says nothing new.
    steps: &'a [u64],
    /// The nodes that remain beside the ground. The block's own node comes after the others.
    kept: &'a [usize],
    parent: u32,
    /// Maximum number of children.
    most: usize,
    children: Vec<Zone>,
    work: u64,
}

/// What is decided of a block's place: by node, how much higher the block is than the node at least, and how much
/// higher the node is than the block.
#[derive(Debug, Clone)]
struct Between {
    below: Vec<i64>,
    above: Vec<i64>,
}

impl Expansion<'_> {
    /// Whether there may be more ways than were looked at.
    fn is_over(&self) -> bool {
        self.children.len() >= self.most || self.work >= MAX_STEPS
    }

    /// A difference of two nodes' offsets, rounded up to the next one that can be.
    fn rounded_difference(&self, one: usize, other: usize, least: i64) -> i64 {
        match (self.steps.get(one), self.steps.get(other)) {
            (Some(one), Some(other)) => next_multiple(least, gcd(*one, *other)),
            _ => least,
        }
    }

    /// Makes the zones of all ways in which the block may lie.
    fn decide(&mut self, mut between: Between) {
        // Neighbours for which one way is left are decided first, since that may leave one way for others too.
        let open = loop {
            self.work += self.links.len() as u64;
            let is_open = |link: &&Separation| {
                between.above[link.node] < link.above && between.below[link.node] < link.below
            };
            // Whether it goes above, whether it goes below.
            let ways = |link: &Separation| {
                let above = between.below[link.node] + link.above <= 0;
                (above, between.above[link.node] + link.below <= 0)
            };
            let open = || self.links.iter().filter(is_open);
            match open().find(|link| ways(link) != (true, true)).copied() {
                Some(link) => match ways(&link) {
                    (false, false) => return,
                    (is_above, _) => self.put(&mut between, link, is_above),
                },
                None => break open().next().copied(),
            }
        };
        let Some(link) = open else { return self.close(&between) };
        for is_above in [true, false] {
            if self.is_over() {
                return;
            }
            let mut between = between.clone();
            self.put(&mut between, link, is_above);
            self.decide(between);
        }
    }

    /// Decides that the neighbour of a link lies above the block, or below.
    fn put(&mut self, between: &mut Between, link: Separation, is_above: bool) {
        self.work += self.nodes as u64;
        // The matrix is closed, so what follows for a node follows by one addition: by way of the neighbour.
        for node in 0..self.nodes {
            if is_above {
                let least = link.above + self.least[link.node * self.nodes + node];
                between.above[node] =
                    between.above[node].max(self.rounded_difference(node, self.nodes, least));
            } else {
                let least = link.below + self.least[node * self.nodes + link.node];
                between.below[node] =
                    between.below[node].max(self.rounded_difference(node, self.nodes, least));
            }
        }
    }

    /// Makes the zone of these decisions.
    fn close(&mut self, between: &Between) {
        let kept = || std::iter::once(0).chain(self.kept.iter().copied());
        let mut least = Vec::with_capacity((self.kept.len() + 1).pow(2));
        for from in kept() {
            least.extend(kept().map(|to| match (from == self.nodes, to == self.nodes) {
                (true, true) => 0,
                (true, false) => between.above[to],
                (false, true) => between.below[from],
                (false, false) => {
                    // The matrix was closed before, so a longer way between two nodes can only lead by way of the
                    // block.
                    let by_way_of_block =
                        self.rounded_difference(from, to, between.below[from] + between.above[to]);
                    self.least[from * self.nodes + to].max(by_way_of_block)
                }
            }));
        }
        self.work += least.len() as u64;
        let is_above =
            |(bit, link): (usize, &Separation)| u64::from(between.above[link.node] >= link.above) << bit;
        let above = self.links.iter().enumerate().map(is_above).sum();
        let tightness = least.iter().map(|least| i128::from(*least)).sum();
        self.children.push(Zone { least, parent: self.parent, above, tightness });
    }
}

/// The zones that no other zone makes superfluous, at most `width` of them, and whether there are more.
fn undominated(mut zones: Vec<Zone>, width: usize, budget: &mut Meter) -> (Vec<Zone>, bool) {
    zones.sort_by_key(|zone| zone.tightness);
    let mut kept: Vec<Zone> = Vec::new();
    let mut work = 0;
    for zone in zones {
        let allows_all = |other: &Zone| {
            let more = other.least.iter().zip(&zone.least).position(|(other, own)| other > own);
            work += more.unwrap_or(zone.least.len()) / 4 + 1;
            more.is_none()
        };
        if kept.iter().any(allows_all) {
            continue;
        }
        if kept.len() == width {
            budget.spend(work as u64);
            return (kept, true);
        }
        kept.push(zone);
    }
    budget.spend(work as u64);
    (kept, false)
}

/// The lowest offsets that the decisions of the first zone at the end allow. `None` if these exceed the capacity, once
/// aligned.
fn offsets(
    part: &Subproblem,
    order: &[usize],
    rank: &[usize],
    history: &[Vec<(u32, u64)>],
    capacity: u64,
) -> Option<Vec<u64>> {
    let mut apart: Vec<(usize, usize, i64)> = Vec::new();
    let mut zone = 0;
    for (&block, zones) in order.iter().zip(history).rev() {
        let (parent, above) = zones[zone];
        zone = parent as usize;
        let mut before: Vec<_> =
            part.links[block].iter().filter(|link| rank[link.other] < rank[block]).collect();
        // As they lie in the frontier.
        before.sort_by_key(|link| rank[link.other]);
        apart.extend(before.into_iter().enumerate().map(|(bit, link)| match above >> bit & 1 {
            1 => (block, link.other, link.above),
            _ => (link.other, block, link.below),
        }));
    }
    apart.reverse();
    let mut offsets = vec![0u64; part.blocks.len()];
    // Each round settles one more block of those that lie one on the other. Rounding up may undo that.
    for _ in 0..=2 * order.len() {
        let mut settled = true;
        for &(lower, upper, least) in &apart {
            let Block { bytes, alignment, .. } = part.blocks[upper];
            let at = offsets[lower].saturating_add_signed(least);
            if at > offsets[upper] {
                offsets[upper] = at.next_multiple_of(alignment);
                settled = false;
            }
            if offsets[upper] + bytes > capacity {
                return None;
            }
        }
        if settled {
            return Some(offsets);
        }
    }
    None
}
