//! Why no smaller capacities do, in a form that is checked without a search.
//!
//! The check has an execution and arithmetic of its own. It uses nothing of the search for capacities. There is one
//! exception: it takes the maximal throughput from the library, by the method that the search does not use
//! ([`Method::StateSpace`]).

mod cycle;
mod execute;
mod grid;

use crate::budget::Meter;
use crate::{
    ActorId, ChannelId, Error, Goal, Graph, Method, Ratio, Step, Storage, StorageOptions, Throughput,
    throughput_by, verify,
};
use grid::Grid;

/// Evidence for the bound of a [`Storage`], and a schedule for its capacities.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Certificate {
    /// Sets of limits that cannot all be kept; the bound is the least total that breaks one limit of each.
    pub conflicts: Vec<Conflict>,
    /// One iteration on one processor within the capacities.
    pub schedule: Vec<Step>,
}

/// Channels that are too small together. While all of them stay within their limits, the goal is out of reach, however
/// large the other channels are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    /// Channels with the most tokens that they may hold for the cycle to exist.
    pub limits: Vec<(ChannelId, u64)>,
    /// Firings in order: each must end before the next one starts. The last one must end before the first one starts
    /// again, `iterations` iterations later.
    pub cycle: Vec<Dependency>,
    /// Iterations around the cycle. If it is 0, the cycle is a deadlock. Otherwise, this many iterations take at least
    /// the sum of the firings' times.
    pub iterations: u64,
}

/// A firing of a cycle, and why the next one has to wait for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dependency {
    /// The actor that fires.
    pub actor: ActorId,
    /// Which firing, from 0 since the start of the execution.
    pub firing: u64,
    /// Why the next one waits.
    pub reason: Reason,
}

/// Why a firing waits for another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// It reads tokens that the other one makes.
    Tokens(ChannelId),
    /// It needs space that the other one frees.
    Space(ChannelId),
    /// It is a later firing of the same actor, later by at least the actor's concurrency. If the concurrency is 1, it
    /// also waits for all firings between the two.
    Order,
    /// It is a later firing of the same actor. It starts no earlier than the other one, which may still be running.
    Starts,
    /// It is a later firing of the same actor, whose end takes effect no earlier.
    Ends,
}

/// Checks a storage distribution and its certificate by means that share nothing with the search.
///
/// It replays the schedule, and measures the throughput by an execution with counters of its own. It adds up the cycle
/// of each conflict, dependency by dependency, and derives the bound from the conflicts again. For one claim it relies
/// on the library: the maximal throughput comes from [`Method::StateSpace`], which the search does not use.
///
/// Cost: O(rates of one iteration) for the replay, O(firings) for each dependency of a conflict, and a search over the
/// conflicts that are tied by common channels, which is exponential in their number at worst.
///
/// # Errors
/// [`Error::BadCertificate`] says which claim does not hold; those of [`verify`] and [`throughput_by`];
/// [`Error::Exhausted`] if the budget of the options is not enough, which may happen if there are many conflicts.
pub fn verify_storage(
    graph: &Graph,
    goal: Goal,
    options: &StorageOptions,
    storage: &Storage,
) -> Result<(), Error> {
    let mut meter = Meter::new(&options.budget);
    verify(graph, &storage.capacities, &storage.certificate.schedule)?;
    let grid = Grid::new(graph, options)?;
    grid.check_capacities(&storage.capacities, storage.total)?;
    let measured = execute::throughput(graph, &storage.capacities, &mut meter)?;
    if measured != storage.throughput {
        return bad(format!("the throughput is {measured}, not {}", storage.throughput));
    }
    let required = match goal {
        Goal::DeadlockFree => Throughput::Finite(Ratio::ZERO),
        Goal::AtLeast(ratio) => Throughput::Finite(ratio),
        Goal::Maximal => throughput_by(Method::StateSpace, graph, &graph.capacities(), &options.budget)?,
    };
    if measured < required || measured == Throughput::Finite(Ratio::ZERO) {
        return bad(format!("the throughput is {measured}, below the goal"));
    }
    let mut conflicts = Vec::new();
    for (index, conflict) in storage.certificate.conflicts.iter().enumerate() {
        let named = |error| match error {
            Error::BadCertificate { reason } => {
                Error::BadCertificate { reason: format!("conflict {index}: {reason}") }
            }
            other => other,
        };
        cycle::check(graph, conflict, required).map_err(named)?;
        conflicts.push(grid.ways_out(conflict)?);
    }
    let least = grid.least_total(&conflicts, &mut meter)?;
    if least < u128::from(storage.bound) {
        return bad(format!("the conflicts allow a total of {least}, below the bound of {}", storage.bound));
    }
    if storage.bound > storage.total || storage.proven != (storage.bound == storage.total) {
        return bad("the bound contradicts the total".to_owned());
    }
    Ok(())
}

fn bad<T>(reason: String) -> Result<T, Error> {
    Err(Error::BadCertificate { reason })
}
