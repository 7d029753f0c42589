//! Packing by address: the rings of an application as a packing problem.

use crate::packing::{self, Block, Budget, Limit, Link, Member, Packing, Problem};

use super::moments::RowByRow;
use super::{Effort, Item, Peak, Storage, Stored, distance};

/// Steps of the complete search for a plan that is one of many, and for one that is kept.
const CANDIDATE_STEPS: u64 = 20_000;
const FINAL_STEPS: u64 = 30_000_000;

/// A packing of rings, and what is known of better ones.
pub(super) struct Placed {
    pub packing: Packing,
    /// No placement takes fewer bytes that makes at once what is costly row by row.
    pub least: u64,
}

/// Places rings so that no two use an address at the same time. `peak` is the liveness bound.
///
/// Offsets are sums of sizes and of bytes of rows, so they are aligned as these are.
pub(super) fn pack(storage: &Storage<'_>, items: &[Item<'_>], peak: &Peak, effort: Effort) -> Placed {
    let steps = match effort {
        Effort::Sketch => 0,
        Effort::Candidate => CANDIDATE_STEPS,
        Effort::Final => FINAL_STEPS,
    };
    let links = distance::links(storage, items);
    // What is in use in part, in use as a whole: a packing of these is one of those.
    let whole = |(i, links): (usize, &Vec<Link>)| {
        let whole = |link: &Link| {
            let sizes = [i, link.other].map(|i| items[i].request.bytes as i64);
            Link { other: link.other, above: sizes[0], below: sizes[1], is_exact: true }
        };
        links.iter().map(whole).collect::<Vec<Link>>()
    };
    let all_whole: Vec<Vec<Link>> = links.iter().enumerate().map(whole).collect();
    let shares = links != all_whole;
    let mut sets: Vec<Vec<Stored>> = (0..storage.executions.len())
        .flat_map(|cnn| {
            let own: Vec<usize> = (0..items.len()).filter(|i| items[*i].cnn == cnn).collect();
            storage.line(items, cnn, RowByRow::Free).fullest(&own)
        })
        .collect();
    if at_once(&peak.stored, &links) {
        sets.push(peak.stored.clone());
    }
    let blocks: Vec<Block> = items.iter().map(|item| Block::of_bytes(item.request.bytes)).collect();
    let members = |in_part: bool| {
        let member = |stored: &Stored| match in_part {
            true => Member { block: stored.item, low: stored.bytes.start, high: stored.bytes.end },
            false => Member { block: stored.item, low: 0, high: items[stored.item].request.bytes },
        };
        sets.iter().map(|set| set.iter().map(member).collect()).collect::<Vec<Vec<Member>>>()
    };
    let solve = |links, in_part| {
        let problem = Problem::from_links(blocks.clone(), links, members(in_part)).ok()?;
        Some(packing::pack(&problem, &mut Budget::new(Limit::Work(steps))))
    };
    let Some(mut best) = solve(links, true) else {
        // Only sizes that no memory has add up to too much.
        return Placed { packing: stacked(items), least: peak.bytes };
    };
    if shares
        && !best.proven()
        && let Some(whole) = solve(all_whole, false).filter(|whole| whole.packing.bytes < best.packing.bytes)
    {
        best.packing = whole.packing;
    }
    Placed { packing: best.packing, least: best.bound.max(peak.bytes) }
}

/// Whether rings are in use at one moment, pair by pair.
fn at_once(stored: &[Stored], links: &[Vec<Link>]) -> bool {
    let meet = |a: usize, b: usize| links[a].iter().any(|link| link.other == b);
    stored.iter().enumerate().all(|(at, one)| stored[at + 1..].iter().all(|other| meet(one.item, other.item)))
}

/// One ring above the other.
fn stacked(items: &[Item<'_>]) -> Packing {
    let mut bytes = 0u64;
    let place = |item: &Item<'_>| {
        let at = bytes;
        bytes = bytes.saturating_add(item.request.bytes);
        at
    };
    let offsets = items.iter().map(place).collect();
    Packing { offsets, bytes }
}
