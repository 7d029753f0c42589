//! The greatest ratio of time to iterations around a cycle of firings that wait for each other.
//!
//! If firing v cannot start before firing u of h iterations earlier has ended, there is an edge from u to v of weight
//! time(u) and distance h. In the long run, an iteration takes the greatest Σ weight / Σ distance of all cycles. A ratio
//! λ is too small exactly if there is a positive cycle when each edge counts weight − λ × distance. Relaxation looks for
//! such a cycle, in the order of an execution. One pass is enough for the edges within an iteration, and only edges that
//! lead to a later iteration need more. If there is a positive cycle, λ becomes its ratio, and the search is repeated
//! until there is none (Cuninghame-Green; Dasdan, "Experimental analysis of the fastest optimum cycle ratio and mean
//! algorithms", 2004). A pass takes O(edges) time. Passes are few in practice, and at most as many as there are nodes
//! for each λ.

use crate::budget::Meter;
use crate::layout::{Layout, Scope};
use crate::{ActorId, ChannelId, Dependency, Error, Ratio, Reason};

/// Maximum number of dependencies that are written out; they take a few hundred megabytes.
const MAX_EDGES: usize = 1 << 24;

/// From this concurrency on, an actor never waits for itself, since this many firings are never under way at once.
const UNLIMITED: u64 = 1 << 40;

/// Firings that wait for each other in a circle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cycle {
    pub(crate) steps: Vec<Dependency>,
    pub(crate) iterations: u64,
    pub(crate) time: u128,
}

impl Cycle {
    /// Time for an iteration; none for a deadlock.
    pub(crate) fn ratio(&self) -> Option<Ratio> {
        Ratio::new(self.time, u128::from(self.iterations))
    }

    /// Channels whose space firings of the cycle wait for, in order.
    pub(crate) fn channels(&self) -> Vec<usize> {
        let mut channels: Vec<usize> = self
            .steps
            .iter()
            .filter_map(|step| match step.reason {
                Reason::Space(channel) => Some(channel.index()),
                _ => None,
            })
            .collect();
        channels.sort_unstable();
        channels.dedup();
        channels
    }
}

/// The waits between the firings of a scope.
///
/// A firing of an actor that fires one at a time is one node, its start. A firing of an actor of greater concurrency is
/// two nodes, its start and its end, since ends are in order too.
pub(crate) struct WaitGraph<'l> {
    layout: &'l Layout,
    scope: &'l Scope,
    /// Edges into node v are `edges[starts[v]..starts[v + 1]]`.
    starts: Vec<u32>,
    edges: Vec<Edge>,
    /// Number of the first end of each actor that has ends.
    ends: Vec<usize>,
    /// Nodes in the order in which they are relaxed.
    order: Vec<u32>,
    /// More than any path weighs.
    weight: u128,
    /// Sum of all distances.
    distance: u128,
}

#[derive(Clone, Copy)]
struct Edge {
    source: u32,
    kind: EdgeKind,
    distance: u64,
    weight: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum EdgeKind {
    Order,
    Starts,
    Ends,
    Execution,
    Tokens(u32),
    Space(u32),
}

impl<'l> WaitGraph<'l> {
    /// The waits of a scope that is live with these capacities, given an order of its firings.
    pub(crate) fn new(
        layout: &'l Layout,
        scope: &'l Scope,
        capacities: &[Option<u64>],
        order: &[u32],
    ) -> Result<WaitGraph<'l>, Error> {
        let mut ends = vec![usize::MAX; layout.actors.len()];
        let mut nodes = scope.firings;
        for &actor in scope.actors.iter().filter(|&&actor| layout.actors[actor].concurrency > 1) {
            ends[actor] = nodes;
            nodes += layout.actors[actor].firings;
        }
        let mut constraints = WaitGraph {
            layout,
            scope,
            starts: Vec::with_capacity(nodes + 1),
            edges: Vec::with_capacity(4 * nodes.min(MAX_EDGES / 4)),
            ends,
            order: Vec::with_capacity(nodes),
            weight: 0,
            distance: 0,
        };
        for &actor in &scope.actors {
            constraints.add_starts(actor, capacities)?;
        }
        for &actor in &scope.actors {
            constraints.add_ends(actor);
        }
        constraints.starts.push(constraints.edges.len() as u32);
        for &number in order {
            constraints.order.push(number);
            let (actor, firing) = scope.firing(number as usize);
            if constraints.ends[actor] != usize::MAX {
                constraints.order.push((constraints.ends[actor] + firing) as u32);
            }
        }
        for node in 0..nodes {
            let (mut weight, mut distance) = (0, 0);
            for edge in constraints.incoming(node) {
                weight = weight.max(edge.weight);
                distance += u128::from(edge.distance);
            }
            constraints.weight += u128::from(weight);
            constraints.distance += distance;
        }
        // Numbers of firings around a cycle.
        if constraints.distance * scope.firings as u128 >= 1 << 63 {
            return Err(constraints.overflow("distance"));
        }
        Ok(constraints)
    }

    fn incoming(&self, node: usize) -> &[Edge] {
        &self.edges[self.starts[node] as usize..self.starts[node + 1] as usize]
    }

    /// Waits for earlier firings of the actor itself, for tokens, for space.
    fn add_starts(&mut self, actor: usize, capacities: &[Option<u64>]) -> Result<(), Error> {
        let (layout, scope) = (self.layout, self.scope);
        let part = &layout.actors[actor];
        let links = part.inputs.iter().map(|&link| &layout.links[link]);
        let mut tokens: Vec<Pointer> = links
            .filter(|link| scope.has(layout.channels[link.channel].producer))
            .map(|link| {
                let channel = &layout.channels[link.channel];
                Pointer {
                    other: channel.producer,
                    kind: EdgeKind::Tokens(channel.id as u32),
                    offset: -i128::from(channel.initial),
                    own: &link.acquired,
                    others: &channel.produced,
                    at: 0,
                    last: None,
                }
            })
            .collect();
        for channel in part.outputs.iter().map(|&channel| &layout.channels[channel]) {
            let Some(capacity) = capacities[channel.id] else { continue };
            for link in layout.links[channel.links.clone()].iter().filter(|link| scope.has(link.reader)) {
                tokens.push(Pointer {
                    other: link.reader,
                    kind: EdgeKind::Space(channel.id as u32),
                    offset: i128::from(channel.initial) - i128::from(capacity),
                    own: &channel.produced,
                    others: &link.released,
                    at: 0,
                    last: None,
                });
            }
        }
        for firing in 0..part.firings {
            self.starts.push(self.edges.len() as u32);
            if part.concurrency == 1 {
                self.add_edge(actor, EdgeKind::Order, preceding_firing(firing, 1, part.firings));
            } else {
                self.add_edge(actor, EdgeKind::Starts, preceding_firing(firing, 1, part.firings));
                if part.concurrency < UNLIMITED {
                    self.add_edge(
                        actor,
                        EdgeKind::Order,
                        preceding_firing(firing, part.concurrency, part.firings),
                    );
                }
            }
            for pointer in &mut tokens {
                if let Some(needed) = pointer.next(firing) {
                    self.add_edge(pointer.other, pointer.kind, needed);
                }
            }
            if self.edges.len() > MAX_EDGES {
                let count = self.edges.len() as u128;
                return Err(Error::TooLong {
                    what: "a number of dependencies",
                    count,
                    limit: MAX_EDGES as u64,
                });
            }
        }
        Ok(())
    }

    fn add_ends(&mut self, actor: usize) {
        let part = &self.layout.actors[actor];
        if self.ends[actor] == usize::MAX {
            return;
        }
        for firing in 0..part.firings {
            self.starts.push(self.edges.len() as u32);
            self.add_edge(actor, EdgeKind::Execution, (firing, 0));
            self.add_edge(actor, EdgeKind::Ends, preceding_firing(firing, 1, part.firings));
        }
    }

    /// An edge to the node being made, from a firing `distance` iterations before.
    fn add_edge(&mut self, from: usize, kind: EdgeKind, (firing, distance): (usize, u64)) {
        let part = &self.layout.actors[from];
        let from_start =
            self.ends[from] == usize::MAX || matches!(kind, EdgeKind::Starts | EdgeKind::Execution);
        let base = if from_start { self.scope.first[from] } else { self.ends[from] };
        let weight = if from_start && kind != EdgeKind::Starts { part.time(firing) } else { 0 };
        self.edges.push(Edge { source: (base + firing) as u32, kind, distance, weight });
    }

    /// Cycles that take longer than `period` for an iteration; none if an iteration takes no longer.
    pub(crate) fn slower_than(&self, period: Ratio, meter: &mut Meter) -> Result<Vec<Cycle>, Error> {
        let (numerator, denominator) = (period.numerator(), period.denominator());
        let fits =
            |left: u128, right: u128| left.checked_mul(right).is_some_and(|product| product < 1 << 125);
        if !fits(self.weight.max(1), denominator) || !fits(self.distance.max(1), numerator.max(1)) {
            return Err(self.overflow("time of an iteration"));
        }
        let (numerator, denominator) = (numerator as i128, denominator as i128);
        let nodes = self.starts.len() - 1;
        let mut potentials = vec![0i128; nodes];
        let mut parents = vec![u32::MAX; nodes];
        loop {
            meter.spend(self.edges.len() as u64)?;
            let mut changed = false;
            for &node in &self.order {
                let node = node as usize;
                let mut best = potentials[node];
                let from = self.starts[node] as usize;
                for (index, edge) in self.incoming(node).iter().enumerate() {
                    let cost = i128::from(edge.weight) * denominator - numerator * i128::from(edge.distance);
                    let candidate = potentials[edge.source as usize] + cost;
                    if candidate > best {
                        best = candidate;
                        parents[node] = (from + index) as u32;
                        changed = true;
                    }
                }
                potentials[node] = best;
            }
            if !changed {
                return Ok(Vec::new());
            }
            let cycles = self.cycles(&parents);
            if !cycles.is_empty() {
                return Ok(cycles);
            }
        }
    }

    /// Cycles that take at least `period` for an iteration; none if an iteration takes less.
    ///
    /// Ratios of cycles have denominators up to the sum of all distances, D. So a ratio below p/q is at most p/q −
    /// 1/(Dq), and the cycles sought are those with ratios above p/q − 1/(2Dq).
    pub(crate) fn as_slow_as(&self, period: Ratio, meter: &mut Meter) -> Result<Vec<Cycle>, Error> {
        let just_below = || {
            let scale = self.distance.max(1).checked_mul(2)?;
            let numerator = period.numerator().checked_mul(scale)?.checked_sub(1)?;
            Ratio::new(numerator, period.denominator().checked_mul(scale)?).filter(|&ratio| self.fits(ratio))
        };
        if let Some(just_below) = just_below() {
            return self.slower_than(just_below, meter);
        }
        Ok(self
            .greatest(Ratio::ZERO, meter)?
            .filter(|&(ratio, _)| ratio >= period)
            .map(|(_, cycle)| cycle)
            .into_iter()
            .collect())
    }

    /// Whether sums over paths for a period fit the arithmetic.
    fn fits(&self, period: Ratio) -> bool {
        let fits =
            |left: u128, right: u128| left.checked_mul(right).is_some_and(|product| product < 1 << 125);
        fits(self.weight.max(1), period.denominator())
            && fits(self.distance.max(1), period.numerator().max(1))
    }

    /// The greatest ratio above `floor` with its cycle; none if all are at most that.
    pub(crate) fn greatest(&self, floor: Ratio, meter: &mut Meter) -> Result<Option<(Ratio, Cycle)>, Error> {
        let mut best: Option<(Ratio, Cycle)> = None;
        loop {
            let ratio = best.as_ref().map_or(floor, |&(ratio, _)| ratio);
            let cycles = self.slower_than(ratio, meter)?;
            let slowest = cycles
                .into_iter()
                .filter_map(|cycle| Some((cycle.ratio()?, cycle)))
                .max_by(|left, right| left.0.cmp(&right.0));
            match slowest {
                Some(slowest) if slowest.0 > ratio => best = Some(slowest),
                _ => return Ok(best),
            }
        }
    }

    /// The cycles of the edges that last improved their nodes. Each is positive, or it would not have closed.
    fn cycles(&self, parents: &[u32]) -> Vec<Cycle> {
        let mut found = Vec::new();
        let mut met = vec![u32::MAX; parents.len()];
        for root in 0..parents.len() {
            let mut node = root;
            while met[node] == u32::MAX && parents[node] != u32::MAX {
                met[node] = root as u32;
                node = self.edges[parents[node] as usize].source as usize;
            }
            if met[node] == root as u32 && parents[node] != u32::MAX {
                found.push(self.cycle(parents, node));
            }
        }
        found
    }

    fn cycle(&self, parents: &[u32], node: usize) -> Cycle {
        let mut edges = Vec::new();
        let mut at = node;
        loop {
            let edge = self.edges[parents[at] as usize];
            edges.push(edge);
            at = edge.source as usize;
            if at == node {
                break;
            }
        }
        edges.reverse();
        // A run of firings in order is one step; it must not lie across the place where the list begins.
        if let Some(start) = edges.iter().position(|edge| edge.kind != EdgeKind::Order) {
            edges.rotate_left(start + 1);
        }
        let mut steps: Vec<Dependency> = Vec::new();
        let (mut iterations, mut time) = (0, 0);
        for edge in &edges {
            let (actor, firing) = self.firing(edge.source as usize);
            let part = &self.layout.actors[actor];
            let step = |reason| Dependency {
                actor: ActorId(part.id as u32),
                firing: firing as u64 + iterations * part.firings as u64,
                reason,
            };
            match edge.kind {
                EdgeKind::Order => {
                    let goes_on = part.concurrency == 1
                        && steps.last().is_some_and(|last| {
                            last.reason == Reason::Order && last.actor.index() == part.id
                        });
                    if !goes_on {
                        steps.push(step(Reason::Order));
                    }
                }
                EdgeKind::Starts => steps.push(step(Reason::Starts)),
                EdgeKind::Ends => steps.push(step(Reason::Ends)),
                EdgeKind::Execution => {}
                EdgeKind::Tokens(channel) => steps.push(step(Reason::Tokens(ChannelId(channel)))),
                EdgeKind::Space(channel) => steps.push(step(Reason::Space(ChannelId(channel)))),
            }
            iterations += edge.distance;
            time += u128::from(edge.weight);
        }
        Cycle { steps, iterations, time }
    }

    /// Actor and firing of a node.
    fn firing(&self, node: usize) -> (usize, usize) {
        if node < self.scope.firings {
            return self.scope.firing(node);
        }
        let ends = self.scope.actors.iter().filter(|&&actor| self.ends[actor] <= node);
        let actor = ends.copied().max_by_key(|&actor| self.ends[actor]).unwrap_or(0);
        (actor, node - self.ends[actor])
    }

    fn overflow(&self, what: &'static str) -> Error {
        let first = self.scope.actors.first().map_or(0, |&actor| self.layout.actors[actor].id);
        Error::Overflow { what, of: format!("part of actor number {first}") }
    }
}

/// Finds, for each firing of an actor, the firing of another actor for which it has to wait.
struct Pointer<'l> {
    other: usize,
    kind: EdgeKind,
    /// The need is `own` plus this.
    offset: i128,
    /// Tokens that the first k firings need.
    own: &'l [u64],
    /// Tokens that the first k firings of the other actor bring.
    others: &'l [u64],
    at: usize,
    last: Option<(usize, u64)>,
}

impl Pointer<'_> {
    /// The firing of the other actor for which `firing` waits, and how many iterations earlier that one is. `None` if an
    /// earlier firing has already waited for it, or if nothing is needed.
    fn next(&mut self, firing: usize) -> Option<(usize, u64)> {
        if self.own[firing + 1] == self.own[firing] {
            return None;
        }
        let total = i128::from(*self.others.last()?);
        let needed = i128::from(self.own[firing + 1]) + self.offset;
        // Most needs concern this iteration or the one before, and a division takes longer than everything else.
        let (needed, distance) = if needed > 0 {
            (needed, 0)
        } else if needed + total > 0 {
            (needed + total, 1)
        } else {
            let distance = (total - needed) / total;
            (needed + distance * total, distance)
        };
        if i128::from(self.others[self.at]) >= needed {
            self.at = 0;
        }
        while i128::from(self.others[self.at + 1]) < needed {
            self.at += 1;
        }
        // It is at most the initial tokens or the capacity.
        let wanted = (self.at, distance as u64);
        (self.last.replace(wanted) != Some(wanted)).then_some(wanted)
    }
}

/// The firing of the same actor that comes `by` firings before, and how many iterations earlier it is.
fn preceding_firing(firing: usize, by: u64, firings: usize) -> (usize, u64) {
    let (firing, firings) = (firing as u64, firings as u64);
    if by <= firing {
        return ((firing - by) as usize, 0);
    }
    let distance = (by - firing).div_ceil(firings);
    // Less than one iteration: the rest of the last iteration.
    ((firings - 1 - (by - firing - 1) % firings) as usize, distance)
}
