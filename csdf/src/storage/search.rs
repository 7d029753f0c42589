//! The search for the smallest total. It finds one conflict after another, and answers each with the cheapest capacities
//! that break all conflicts so far (an implicit hitting set, as Davies and Bacchus 2011 use it for MaxSAT).
//!
//! A point is a capacity for each channel. Throughput never falls when a capacity grows. So the points that meet a goal
//! are all points above some minimal ones. At any other point, some cycle of firings waits for itself and is too slow.
//! The cycle waits for the space of some channels. A point that has no more space in *these* channels misses the goal
//! too, so one of them has to grow.
//!
//! Such a conflict is first made as strong as it can be. Channels are left out, and the capacities of the others are
//! raised, as long as there still is a cycle. The conflict then covers a maximal box of points that miss the goal. The
//! cheapest point outside of all known boxes bounds the optimum from below. If it meets the goal, it is the optimum.
//! Otherwise there is another conflict. Cycles are found in the graph of all firings, so none is missed.

use super::conflict::Target;
use super::cover::{Clause, Cover};
use super::problem::SizingProblem;
use super::strengthen::strengthen;
use crate::budget::Meter;
use crate::throughput::cycle_ratio::Cycle;
use crate::{ChannelId, Conflict, Error};

/// The knowledge of a problem so far. From one search to the next, targets may become harder, never easier.
pub(crate) struct CapacitySearch<'p, 'g> {
    pub(crate) problem: &'p SizingProblem<'g>,
    pub(crate) cover: Cover,
    pub(crate) conflicts: Vec<Conflict>,
    /// The channels' bounds before any conflict.
    low: u128,
    /// Whether channels by themselves have been bounded for a throughput.
    bounded: bool,
}

/// The best values of the channels to size, and a bound on smaller ones.
pub(crate) struct Best {
    pub(crate) values: Vec<u64>,
    /// Cost of the channels to size, at least.
    pub(crate) bound: u128,
    /// Cost of `values`.
    pub(crate) cost: u128,
}

impl<'p, 'g> CapacitySearch<'p, 'g> {
    pub(crate) fn new(problem: &'p SizingProblem<'g>) -> Result<CapacitySearch<'p, 'g>, Error> {
        let variables = problem.variables()?;
        let low = variables.iter().map(|of| u128::from(of.low) * u128::from(of.cost)).sum();
        Ok(CapacitySearch {
            problem,
            cover: Cover::new(variables),
            conflicts: Vec::new(),
            low,
            bounded: false,
        })
    }

    /// Bounds of each channel by itself for a throughput, if nothing else hinders its producer and readers.
    fn bound_channels(&mut self, target: Target, meter: &mut Meter) -> Result<(), Error> {
        let problem = self.problem;
        for pipe in &problem.layout.channels {
            let Some(variable) = problem.variable_of[pipe.id] else { continue };
            let mut values = vec![None; problem.channels.len()];
            values[variable] = Some(self.cover.variables[variable].low);
            let scope = problem.scope_of_channel(pipe);
            let found = problem.conflicts(&scope, &values, target, meter)?;
            if let Some(cycle) = found.into_iter().next() {
                self.learn(cycle, &values, target, meter)?;
            }
        }
        Ok(())
    }

    /// All conflicts. The first ones justify the lower bound that each channel has by itself.
    pub(crate) fn evidence(&self, meter: &mut Meter) -> Result<Vec<Conflict>, Error> {
        let problem = self.problem;
        let mut conflicts = Vec::new();
        for pipe in &problem.layout.channels {
            let Some(variable) = problem.variable_of[pipe.id] else { continue };
            let below = self.cover.variables[variable].low.checked_sub(problem.steps[variable]);
            if let Some(limit) = below.filter(|&limit| limit >= pipe.initial) {
                let mut values = vec![None; problem.channels.len()];
                values[variable] = Some(limit);
                let scope = problem.scope_of_channel(pipe);
                let found = problem.conflicts(&scope, &values, Target::Live, meter)?.into_iter().next();
                conflicts.extend(found.map(|cycle| Conflict {
                    limits: vec![(ChannelId(pipe.id as u32), limit)],
                    cycle: cycle.steps,
                    iterations: cycle.iterations,
                }));
            }
        }
        conflicts.extend(self.conflicts.iter().cloned());
        Ok(conflicts)
    }

    /// The values of least cost that meet the target.
    ///
    /// # Errors
    /// [`Error::Exhausted`] if the budget ends before any values are known that do.
    pub(crate) fn optimum(&mut self, target: Target, meter: &mut Meter) -> Result<Best, Error> {
        let mut best: Option<(u128, Vec<u64>)> = None;
        let mut most = meter.part(7, 8);
        let mut outcome = self.improve(target, &mut best, &mut most);
        meter.give_back(most);
        if best.is_none() && outcome == Err(Error::Exhausted) {
            outcome = self.enlarge(target, &mut best, meter);
        }
        let bound = self.low + self.cover.bound();
        match (outcome, best) {
            (Ok(()) | Err(Error::Exhausted), Some((cost, values))) => {
                Ok(Best { values, bound: bound.min(cost), cost })
            }
            (Ok(()), None) => Err(Error::Exhausted),
            (Err(error), _) => Err(error),
        }
    }

    fn improve(
        &mut self,
        target: Target,
        best: &mut Option<(u128, Vec<u64>)>,
        meter: &mut Meter,
    ) -> Result<(), Error> {
        if target != Target::Live && !self.bounded {
            self.bounded = true;
            self.bound_channels(target, meter)?;
        }
        loop {
            let mut values = self.cover.solve(meter)?;
            let bound = self.low + self.cover.bound();
            if best.as_ref().is_some_and(|&(cost, _)| cost <= bound) {
                return Ok(());
            }
            // Start at the cheapest point. Learn the conflicts there and break them, until there are none.
            loop {
                let point: Vec<Option<u64>> = values.iter().copied().map(Some).collect();
                let cycles = self.problem.conflicts(&self.problem.scope, &point, target, meter)?;
                if cycles.is_empty() {
                    break;
                }
                for cycle in cycles {
                    let clause = self.learn(cycle, &point, target, meter)?;
                    self.break_cheaply(&clause, &mut values);
                }
            }
            let cost = self.cost(&values);
            if best.as_ref().is_none_or(|&(least, _)| cost < least) {
                *best = Some((cost, values));
                if cost > bound {
                    self.shrink(target, best, meter)?;
                }
            }
        }
    }

    /// Values that meet the target, found fast: every channel that is in the way grows.
    fn enlarge(
        &self,
        target: Target,
        best: &mut Option<(u128, Vec<u64>)>,
        meter: &mut Meter,
    ) -> Result<(), Error> {
        let problem = self.problem;
        let mut values: Vec<u64> = self.cover.variables.iter().map(|variable| variable.low).collect();
        loop {
            let point: Vec<Option<u64>> = values.iter().copied().map(Some).collect();
            let cycles = problem.conflicts(&problem.scope, &point, target, meter)?;
            if cycles.is_empty() {
                break;
            }
            for variable in cycles.iter().flat_map(|cycle| problem.variables_of(cycle)) {
                let step = problem.steps[variable];
                let growth = (values[variable] / 2).div_ceil(step).max(1).saturating_mul(step);
                values[variable] = values[variable].checked_add(growth).ok_or(Error::Exhausted)?;
            }
        }
        *best = Some((self.cost(&values), values));
        self.shrink(target, best, meter)
    }

    /// Lowers the best values one by one, each as far as possible.
    fn shrink(
        &self,
        target: Target,
        best: &mut Option<(u128, Vec<u64>)>,
        meter: &mut Meter,
    ) -> Result<(), Error> {
        let problem = self.problem;
        for (variable, of) in self.cover.variables.iter().enumerate() {
            let Some((_, values)) = best.clone() else { return Ok(()) };
            let step = problem.steps[variable];
            // Numbers of steps above the bound: one that is too small, and one that is enough.
            let (mut few, mut enough) = (0, (values[variable] - of.low) / step);
            let mut tried_least = false;
            while few < enough {
                // Most values that can be lowered go down to their bounds.
                let middle = if tried_least { few + (enough - few) / 2 } else { 0 };
                tried_least = true;
                let mut lower = values.clone();
                lower[variable] = of.low + middle * step;
                let point: Vec<Option<u64>> = lower.iter().copied().map(Some).collect();
                if problem.conflicts(&problem.scope, &point, target, meter)?.is_empty() {
                    enough = middle;
                    *best = Some((self.cost(&lower), lower));
                } else {
                    few = middle + 1;
                }
            }
        }
        Ok(())
    }

    pub(crate) fn cost(&self, values: &[u64]) -> u128 {
        let priced = values.iter().zip(&self.cover.variables);
        priced.map(|(&value, of)| u128::from(value) * u128::from(of.cost)).sum()
    }

    fn break_cheaply(&self, clause: &Clause, values: &mut [u64]) {
        if clause.iter().any(|&(variable, threshold)| values[variable] >= threshold) {
            return;
        }
        let price = |&&(variable, threshold): &&(usize, u64)| {
            u128::from(threshold - values[variable]) * u128::from(self.cover.variables[variable].cost)
        };
        if let Some(&(variable, threshold)) = clause.iter().min_by_key(price) {
            values[variable] = threshold;
        }
    }

    /// Makes the conflict of a cycle that exists at a point as strong as it can be, and adds it.
    fn learn(
        &mut self,
        cycle: Cycle,
        point: &[Option<u64>],
        target: Target,
        meter: &mut Meter,
    ) -> Result<Clause, Error> {
        let problem = self.problem;
        let strong = strengthen(problem, cycle, point, target, meter)?;
        let limits: Vec<(usize, u64)> = strong.limits().collect();
        let above =
            |&(variable, limit): &(usize, u64)| Some((variable, limit.checked_add(problem.steps[variable])?));
        let clause: Clause = limits.iter().filter_map(above).collect();
        self.conflicts.push(Conflict {
            limits: limits
                .into_iter()
                .map(|(variable, limit)| (ChannelId(problem.channels[variable] as u32), limit))
                .collect(),
            cycle: strong.cycle.steps,
            iterations: strong.cycle.iterations,
        });
        self.cover.add(clause.clone());
        Ok(clause)
    }
}
