//! All storage distributions by rising total: this defines the smallest one.

use csdf::{Graph, StorageOptions, Unit};

use crate::oracle::{Model, Speed};

/// Maximum number of distributions that are tried; a graph that needs more has no known truth.
const MAX: usize = 60_000;

/// The truth about a graph.
pub struct Truth {
    /// With unbounded channels, but for those that state a capacity.
    pub maximal: Speed,
    /// The totals at which more throughput becomes possible, with that throughput; empty for a deadlock.
    pub pareto: Vec<(u64, Speed)>,
    /// Distributions tried.
    pub tried: usize,
}

/// The truth about a graph, unless it takes too long.
pub fn truth(graph: &Graph, model: &Model, options: &StorageOptions) -> Option<Truth> {
    let stated = graph.capacities();
    let firings: Vec<u64> = model.actors.iter().map(|actor| actor.firings).collect();
    if !model.is_live(&stated) {
        return Some(Truth { maximal: Speed::STANDSTILL, pareto: Vec::new(), tried: 0 });
    }
    let maximal = crate::cycles::throughput(graph, &firings, &stated);
    let mut search =
        Search { model, free: Vec::new(), capacities: stated.clone(), best: Speed::STANDSTILL, tried: 0 };
    let mut total = 0;
    for (index, channel) in graph.channels().iter().enumerate() {
        let weight = if options.unit == Unit::Bytes { channel.token_bytes } else { 1 };
        if model.channels[index].own {
            continue;
        }
        if let Some(capacity) = stated[index] {
            total += weight * capacity;
            continue;
        }
        // With less the channel by itself is a deadlock, however large the others.
        let step = options.granularity.get(index).copied().unwrap_or(1);
        let alone = |capacity: u64| {
            let mut capacities = stated.clone();
            capacities[index] = Some(capacity);
            capacity >= channel.initial_tokens && model.is_live(&capacities)
        };
        let least = (0..).map(|times| times * step).find(|&capacity| alone(capacity))?;
        total += weight * least;
        search.free.push(Free { channel: index, least, step, cost: weight * step });
    }
    let mut pareto = Vec::new();
    for extra in 0.. {
        let before = search.best;
        search.distribute(0, extra)?;
        if search.best.exceeds(before) {
            pareto.push((total + extra, search.best));
        }
        if search.best == maximal {
            break;
        }
        assert!(!search.best.exceeds(maximal), "the oracle contradicts itself: {graph:?}");
    }
    Some(Truth { maximal, pareto, tried: search.tried })
}

/// A channel whose capacity is to be found.
struct Free {
    channel: usize,
    least: u64,
    step: u64,
    /// Of one step.
    cost: u64,
}

struct Search<'m> {
    model: &'m Model,
    free: Vec<Free>,
    capacities: Vec<Option<u64>>,
    best: Speed,
    tried: usize,
}

impl Search<'_> {
    /// Tries all ways to spend exactly `extra` on the channels from number `from` on.
    fn distribute(&mut self, from: usize, extra: u64) -> Option<()> {
        let Some(free) = self.free.get(from) else {
            if extra > 0 {
                return Some(());
            }
            self.tried += 1;
            let speed = self.model.simulate(&self.capacities);
            if speed.exceeds(self.best) {
                self.best = speed;
            }
            return (self.tried < MAX).then_some(());
        };
        let &Free { channel, least, step, cost } = free;
        let last = from + 1 == self.free.len();
        for steps in 0..=extra / cost {
            // The last channel must take all that is left.
            if !last || steps * cost == extra {
                self.capacities[channel] = Some(least + steps * step);
                self.distribute(from + 1, extra - steps * cost)?;
            }
        }
        Some(())
    }
}
