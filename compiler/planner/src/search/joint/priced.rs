//! Shortest paths over segments, with prices for stored bytes and workspace.

use std::ops::Range;

use csdfc_runtime::bind::Primitive;
use rayon::prelude::*;

use crate::search::extended::segment::Segment;

/// Caps on the arena that are tried.
const CAPS: usize = 24;
/// Prices of a stored byte, and of a byte of workspace, that are tried between nothing and everything.
const PRICES: [usize; 2] = [10, 5];
/// More than any byte is worth, in nanoseconds.
const EVERYTHING: f64 = 1e9;

/// A way to compute a layer.
#[derive(Debug, Clone)]
pub(super) struct Layered {
    /// `None` for the primitive that the layer has.
    pub(super) primitive: Option<Primitive>,
    /// Bytes that it stores.
    pub(super) stored: u64,
    /// Bytes of workspace of all workers.
    pub(super) workspace: u64,
    /// Nanoseconds of all its firings, by the step on the ladder of numbers of firings.
    pub(super) times: Vec<f64>,
}

/// The options that no other option matches or beats in everything.
pub(super) fn undominated(options: Vec<Layered>) -> Vec<Layered> {
    let beats = |a: &Layered, b: &Layered| {
        a.stored <= b.stored
            && a.workspace <= b.workspace
            && a.times.iter().zip(&b.times).all(|(a, b)| a <= b)
    };
    let stays = |at: usize| {
        let one = &options[at];
        // Of equals, the first stays.
        !options.iter().enumerate().any(|(o, other)| beats(other, one) && (o < at || !beats(one, other)))
    };
    let stays: Vec<bool> = (0..options.len()).map(stays).collect();
    options.into_iter().zip(stays).filter_map(|(option, stays)| stays.then_some(option)).collect()
}

/// Segments one after another, with an option for each layer.
#[derive(Debug, Clone)]
pub(super) struct PathOffer {
    /// Nanoseconds of all segments.
    pub(super) time_ns: f64,
    /// Stored bytes of all segments.
    pub(super) stored: u64,
    /// Bytes of the segment that takes the most memory, with its workspace.
    pub(super) arena: u64,
    /// The segments, as indices, each with the options of its layers.
    pub(super) segments: Vec<(usize, Vec<usize>)>,
}

/// The time and bytes of layers, summed from the first layer on.
#[derive(Debug, Clone, Copy, Default)]
struct Sum {
    time_ns: f64,
    stored: u64,
    workspace: u64,
}

/// The options at a pair of prices, by the step on the ladder and the layer, and their sums.
struct Priced {
    chosen: Vec<Vec<usize>>,
    sums: Vec<Vec<Sum>>,
}

/// The time and bytes of a segment at a pair of prices.
#[derive(Debug, Clone, Copy)]
struct SegmentCost {
    time_ns: f64,
    stored: u64,
    bytes: u64,
}

/// The best chains of segments from the first layer to the last cut, at some caps and prices. None of them beats
/// another. The fastest comes first. `options` are the options of each layer, at least one.
pub(super) fn paths(
    segments: &[Segment],
    cuts: &[usize],
    ladder: &[u64],
    options: &[Vec<Layered>],
) -> Vec<PathOffer> {
    let search = PathSearch::new(segments, cuts, ladder, options);
    let prices = 0..search.prices.len();
    let tried: Vec<(u64, usize)> = caps(segments, &search.into, options)
        .iter()
        .flat_map(|cap| prices.clone().map(move |price| (*cap, price)))
        .collect();
    let mut offers: Vec<PathOffer> =
        tried.par_iter().filter_map(|(cap, price)| search.path(*cap, *price)).collect();
    offers
        .sort_by(|a, b| a.time_ns.total_cmp(&b.time_ns).then((a.arena, a.stored).cmp(&(b.arena, b.stored))));
    let mut kept: Vec<PathOffer> = Vec::new();
    for offer in offers {
        if kept.iter().all(|faster| faster.stored > offer.stored || faster.arena > offer.arena) {
            kept.push(offer);
        }
    }
    kept
}

/// What searches for paths share.
struct PathSearch<'a> {
    segments: &'a [Segment],
    cuts: &'a [usize],
    options: &'a [Vec<Layered>],
    /// By segment: its step on the ladder of numbers of firings.
    steps: Vec<usize>,
    /// Prices of a stored byte.
    prices: Vec<f64>,
    /// By price of a stored byte, and by price of a byte of workspace, which rises: the options.
    priced: Vec<Vec<Priced>>,
    /// By cut, and 0 for the start: the segments that end there.
    into: Vec<Vec<usize>>,
}

impl<'a> PathSearch<'a> {
    fn new(
        segments: &'a [Segment],
        cuts: &'a [usize],
        ladder: &[u64],
        options: &'a [Vec<Layered>],
    ) -> PathSearch<'a> {
        let step = |segment: &Segment| ladder.partition_point(|often| *often < segment.firings);
        let bytes = [|option: &Layered| option.stored, |option: &Layered| option.workspace];
        let [prices, of_workspace] = [0, 1].map(|kind| ladder_of_prices(options, bytes[kind], PRICES[kind]));
        let at_price = |stored: &f64| {
            let priced = |workspace: &f64| priced(options, ladder.len(), *stored, *workspace);
            of_workspace.iter().map(priced).collect()
        };
        let priced = prices.par_iter().map(at_price).collect();
        let mut into: Vec<Vec<usize>> = vec![Vec::new(); cuts.len() + 1];
        for (index, segment) in segments.iter().enumerate() {
            into[segment.to].push(index);
        }
        PathSearch {
            segments,
            cuts,
            options,
            steps: segments.iter().map(step).collect(),
            prices,
            priced,
            into,
        }
    }

    /// The layers of a segment.
    fn layers(&self, segment: &Segment) -> Range<usize> {
        let first = |cut: usize| cut.checked_sub(1).map_or(0, |cut| self.cuts[cut] + 1);
        first(segment.from)..first(segment.to)
    }

    /// What a segment costs with the cheapest options with which it fits under a cap, and at which price of workspace
    /// these are chosen.
    fn segment_cost(&self, index: usize, cap: u64, price: usize) -> Option<(SegmentCost, usize)> {
        // The price of workspace rises, so the first options that fit are the cheapest.
        let mut all = self.priced[price].iter().map(|priced| self.cost_at(index, priced)).enumerate();
        all.find(|(_, cost)| cost.bytes <= cap).map(|(at, cost)| (cost, at))
    }

    /// What a segment costs with the options of some prices.
    fn cost_at(&self, index: usize, priced: &Priced) -> SegmentCost {
        let (segment, step) = (&self.segments[index], self.steps[index]);
        let layers = self.layers(segment);
        let [before, after] = [layers.start, layers.end].map(|layer| &priced.sums[step][layer]);
        let workspace = if segment.firings == 1 {
            let chosen = priced.chosen[step][layers.clone()].iter().zip(&self.options[layers]);
            chosen.map(|(chosen, options)| options[*chosen].workspace).max().unwrap_or(0)
        } else {
            after.workspace - before.workspace
        };
        SegmentCost {
            time_ns: after.time_ns - before.time_ns,
            stored: after.stored - before.stored,
            bytes: segment.bytes + workspace,
        }
    }

    /// The cheapest path whose segments fit under a cap, at a price of a stored byte.
    fn path(&self, cap: u64, price: usize) -> Option<PathOffer> {
        // By cut: the cost of the way there, and its last segment.
        let mut best: Vec<Option<(f64, usize)>> = vec![None; self.into.len()];
        best[0] = Some((0.0, usize::MAX));
        for (to, list) in self.into.iter().enumerate().skip(1) {
            for &index in list {
                let Some((before, _)) = best[self.segments[index].from] else { continue };
                if self.segments[index].bytes > cap {
                    continue;
                }
                let Some((taken, _)) = self.segment_cost(index, cap, price) else { continue };
                let cost = before + taken.time_ns + self.prices[price] * taken.stored as f64;
                if best[to].is_none_or(|(least, _)| cost < least) {
                    best[to] = Some((cost, index));
                }
            }
        }
        let mut offer = PathOffer { time_ns: 0.0, stored: 0, arena: 0, segments: Vec::new() };
        let mut cut = self.cuts.len();
        while cut > 0 {
            let (_, index) = best[cut]?;
            let (taken, at) = self.segment_cost(index, cap, price)?;
            let segment = &self.segments[index];
            offer.time_ns += taken.time_ns;
            offer.stored += taken.stored;
            offer.arena = offer.arena.max(taken.bytes);
            let chosen = &self.priced[price][at].chosen[self.steps[index]];
            offer.segments.push((index, chosen[self.layers(segment)].to_vec()));
            cut = segment.from;
        }
        offer.segments.reverse();
        Some(offer)
    }
}

/// Prices at which layers change their options, from nothing to everything: some of the slopes of time over bytes.
fn ladder_of_prices(options: &[Vec<Layered>], bytes: fn(&Layered) -> u64, count: usize) -> Vec<f64> {
    let mut slopes: Vec<f64> = Vec::new();
    for options in options {
        for (a, b) in options.iter().flat_map(|a| options.iter().map(move |b| (a, b))) {
            let (less, saved) = (bytes(b).saturating_sub(bytes(a)), a.times[0] - b.times[0]);
            if less > 0 && saved > 0.0 {
                slopes.push(saved / less as f64);
            }
        }
    }
    slopes.sort_by(f64::total_cmp);
    let middle = (0..count).filter_map(|at| slopes.get((2 * at + 1) * slopes.len() / (2 * count)).copied());
    let mut prices: Vec<f64> = std::iter::once(0.0).chain(middle).chain([EVERYTHING]).collect();
    prices.dedup();
    prices
}

/// The cheapest option of each layer at each step.
fn priced(options: &[Vec<Layered>], steps: usize, stored: f64, workspace: f64) -> Priced {
    let mut priced = Priced { chosen: Vec::new(), sums: Vec::new() };
    for step in 0..steps {
        let mut sum = Sum::default();
        let (mut chosen, mut sums) = (Vec::new(), vec![sum]);
        for options in options {
            let cost = |at: &usize| {
                let option = &options[*at];
                option.times[step] + stored * option.stored as f64 + workspace * option.workspace as f64
            };
            let at = (0..options.len()).min_by(|a, b| cost(a).total_cmp(&cost(b))).unwrap_or(0);
            sum.time_ns += options[at].times[step];
            sum.stored += options[at].stored;
            sum.workspace += options[at].workspace;
            chosen.push(at);
            sums.push(sum);
        }
        priced.chosen.push(chosen);
        priced.sums.push(sums);
    }
    priced
}

/// Sizes of the arena from the least that any chain takes, each some percent larger, and one in which everything fits.
fn caps(segments: &[Segment], into: &[Vec<usize>], options: &[Vec<Layered>]) -> Vec<u64> {
    let mut least = vec![0u64; into.len()];
    for (to, list) in into.iter().enumerate().skip(1) {
        let through = list.iter().map(|index| least[segments[*index].from].max(segments[*index].bytes));
        least[to] = through.min().unwrap_or(u64::MAX);
    }
    let least = least.last().copied().unwrap_or(0);
    let workspace = options.iter().flat_map(|options| options.iter().map(|option| option.workspace)).max();
    let most = segments.iter().map(|segment| segment.bytes).max().unwrap_or(0);
    let top = (most + workspace.unwrap_or(0)).max(least) as f64;
    let bottom = least.max(1) as f64;
    let at = |step: usize| (bottom * (top / bottom).powf(step as f64 / (CAPS - 1) as f64)).ceil() as u64;
    let mut caps: Vec<u64> = (0..CAPS).map(at).chain([u64::MAX]).collect();
    caps.dedup();
    caps
}
