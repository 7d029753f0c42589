//! The problem: the channels whose capacities are to be chosen, and bounds for each of them by itself.

use super::conflict::{Target, conflicts};
use super::cover::Variable;
use super::distribution::{StorageOptions, Unit};
use crate::budget::Meter;
use crate::layout::{Layout, Pipe, Scope};
use crate::throughput::cycle_ratio::Cycle;
use crate::throughput::throughput_within;
use crate::{Error, Graph, Method, Ratio, Throughput, check_liveness, repetition_vector};

/// A graph whose channels are to be sized.
pub(crate) struct SizingProblem<'g> {
    pub(crate) graph: &'g Graph,
    pub(crate) layout: Layout,
    pub(crate) scope: Scope,
    /// Time of an iteration with no capacities but those that are fixed.
    pub(crate) floor: Ratio,
    /// Channels to size, by place in the graph.
    pub(crate) channels: Vec<usize>,
    /// The capacity of each of `channels` is a multiple of this number.
    pub(crate) steps: Vec<u64>,
    /// The place in `channels` of each channel of the graph that is to be sized.
    pub(crate) variable_of: Vec<Option<usize>>,
    /// Capacities that the search may not choose.
    pub(crate) fixed: Vec<Option<u64>>,
    pub(crate) unit: Unit,
}

impl<'g> SizingProblem<'g> {
    pub(crate) fn new(
        graph: &'g Graph,
        options: &StorageOptions,
        meter: &mut Meter,
    ) -> Result<SizingProblem<'g>, Error> {
        let channels = graph.channels();
        let granularity = &options.granularity;
        let fits = granularity.is_empty() || granularity.len() == channels.len();
        if !fits || granularity.contains(&0) {
            return Err(Error::Granularity { channels: channels.len() });
        }
        let repetition = repetition_vector(graph)?;
        let layout = Layout::of_graph(graph, &repetition)?;
        let scope = layout.scope();
        let fixed = graph.capacities();
        let floor = match throughput_within(Method::CycleRatio, graph, &fixed, meter)? {
            Throughput::Unbounded => Ratio::ZERO,
            Throughput::Finite(ratio) => match ratio.inverse() {
                Some(period) => period,
                None => {
                    check_liveness(graph, &fixed)?;
                    return Err(Error::Exhausted);
                }
            },
        };
        let mut problem = SizingProblem {
            graph,
            layout,
            scope,
            floor,
            channels: Vec::new(),
            steps: Vec::new(),
            variable_of: vec![None; channels.len()],
            fixed,
            unit: options.unit,
        };
        for (id, channel) in channels.iter().enumerate() {
            let own = is_own(graph, id);
            if channel.capacity.is_none() && !own {
                problem.variable_of[id] = Some(problem.channels.len());
                problem.channels.push(id);
                problem.steps.push(granularity.get(id).copied().unwrap_or(1));
            }
        }
        Ok(problem)
    }

    /// The amount that one more token of a channel adds to the total.
    pub(crate) fn cost(&self, channel: usize) -> u64 {
        match self.unit {
            Unit::Tokens => 1,
            Unit::Bytes => self.graph.channels()[channel].token_bytes,
        }
    }

    /// For each channel, the least capacity with which an execution can go on at all, however large the others are.
    pub(crate) fn variables(&self) -> Result<Vec<Variable>, Error> {
        let mut low: Vec<u64> =
            self.channels.iter().map(|&id| self.graph.channels()[id].initial_tokens).collect();
        for pipe in &self.layout.channels {
            if let Some(variable) = self.variable_of[pipe.id] {
                low[variable] = least_alone(&self.layout, pipe);
            }
        }
        let rounded = low.into_iter().zip(&self.steps).zip(&self.channels);
        rounded
            .map(|((low, step), &id)| {
                let low = low.checked_next_multiple_of(*step).ok_or_else(|| self.overflow(id))?;
                Ok(Variable { low, cost: self.cost(id) })
            })
            .collect()
    }

    /// Capacities by channel of the graph, from those of `channels`.
    pub(crate) fn spread(&self, values: &[Option<u64>]) -> Vec<Option<u64>> {
        let mut capacities = self.fixed.clone();
        for (&channel, &value) in self.channels.iter().zip(values) {
            capacities[channel] = value;
        }
        capacities
    }

    /// The channels to size whose space a cycle waits for.
    pub(crate) fn variables_of(&self, cycle: &Cycle) -> Vec<usize> {
        cycle.channels().into_iter().filter_map(|channel| self.variable_of[channel]).collect()
    }

    /// The actors of a cycle.
    pub(crate) fn scope_around(&self, cycle: &Cycle) -> Scope {
        let mut marked = vec![false; self.layout.actors.len()];
        // The layout has all actors, in the graph's order.
        cycle.steps.iter().for_each(|step| marked[step.actor.index()] = true);
        self.layout.scope_of(&marked)
    }

    /// The producer and the readers of a channel.
    pub(crate) fn scope_of_channel(&self, pipe: &Pipe) -> Scope {
        let mut marked = vec![false; self.layout.actors.len()];
        marked[pipe.producer] = true;
        self.layout.links[pipe.links.clone()].iter().for_each(|link| marked[link.reader] = true);
        self.layout.scope_of(&marked)
    }

    /// The conflicts in a scope because of which these capacities miss the target.
    pub(crate) fn conflicts(
        &self,
        scope: &Scope,
        values: &[Option<u64>],
        target: Target,
        meter: &mut Meter,
    ) -> Result<Vec<Cycle>, Error> {
        conflicts(&self.layout, scope, &self.spread(values), target, meter)
    }

    /// The total of these capacities.
    pub(crate) fn total(&self, capacities: &[u64]) -> Result<u64, Error> {
        let mut total = 0u64;
        for (id, &capacity) in capacities.iter().enumerate().filter(|&(id, _)| !is_own(self.graph, id)) {
            total = capacity
                .checked_mul(self.cost(id))
                .and_then(|cost| total.checked_add(cost))
                .ok_or_else(|| self.overflow(id))?;
        }
        Ok(total)
    }

    /// Capacities of all channels, from those of `channels`: also the fixed ones, and for a channel that only its
    /// producer reads, the most that it holds.
    pub(crate) fn all_capacities(&self, values: &[u64]) -> Vec<u64> {
        let channels = self.graph.channels();
        let mut capacities: Vec<u64> =
            channels.iter().map(|channel| channel.capacity.unwrap_or(channel.initial_tokens)).collect();
        for (&channel, &value) in self.channels.iter().zip(values) {
            capacities[channel] = value;
        }
        for pipe in self.layout.channels.iter().filter(|pipe| is_own(self.graph, pipe.id)) {
            if channels[pipe.id].capacity.is_none() {
                capacities[pipe.id] = most_of_own(&self.layout, pipe);
            }
        }
        capacities
    }

    fn overflow(&self, channel: usize) -> Error {
        Error::Overflow { what: "storage", of: self.graph.channels()[channel].name.clone() }
    }
}

/// Whether the producer of a channel is its only reader.
pub(crate) fn is_own(graph: &Graph, channel: usize) -> bool {
    let channel = &graph.channels()[channel];
    channel.readers.iter().all(|reader| reader.actor == channel.producer)
}

/// The least capacity with which a channel by itself lets its producer and readers go on. It is found by an execution in
/// which each firing of the producer claims its space after the readers have done all that the earlier tokens allow. It
/// takes O(firings) time.
fn least_alone(layout: &Layout, pipe: &Pipe) -> u64 {
    let firings = pipe.produced.len() - 1;
    let needs = (0..firings).filter(|&firing| pipe.produced[firing + 1] > pipe.produced[firing]);
    let needs = needs.map(|firing| {
        let available = pipe.initial + pipe.produced[firing];
        let released = pipe.links.clone().map(|link| {
            let link = &layout.links[link];
            if link.reader == pipe.producer {
                return link.released[firing];
            }
            let rest = available % pipe.total;
            let fired = link.acquired.partition_point(|&acquired| acquired <= rest) - 1;
            available - rest + link.released[fired]
        });
        (pipe.initial + pipe.produced[firing + 1]).saturating_sub(released.min().unwrap_or(0))
    });
    needs.max().unwrap_or(0).max(pipe.initial)
}

/// The most that a channel which only its producer reads can hold: with as many firings under way as the tokens
/// and the actor's concurrency allow, long after the start.
fn most_of_own(layout: &Layout, pipe: &Pipe) -> u64 {
    let part = &layout.actors[pipe.producer];
    let (firings, total) = (part.firings as i128, i128::from(pipe.total));
    let most = (0..part.firings).map(|firing| {
        let stored = i128::from(pipe.initial) + i128::from(pipe.produced[firing + 1]);
        let freed = layout.links[pipe.links.clone()].iter().map(|link| {
            // Firings that must have ended before this one starts: for its tokens, for a place. Those of earlier
            // iterations are negative.
            let needed = i128::from(link.acquired[firing + 1]) - i128::from(pipe.initial) - 1;
            let rest = needed.rem_euclid(total) as u64;
            let for_tokens = pipe.produced.partition_point(|&produced| produced <= rest) as i128
                + needed.div_euclid(total) * firings;
            let for_place = firing as i128 + 1 - i128::from(part.concurrency);
            let ended = for_tokens.max(for_place).min(firing as i128);
            i128::from(link.released[ended.rem_euclid(firings) as usize]) + ended.div_euclid(firings) * total
        });
        u64::try_from(stored - freed.min().unwrap_or(0)).unwrap_or(u64::MAX)
    });
    most.max().unwrap_or(0).max(pipe.initial)
}
