//! Checks that no smaller capacities do, by the certificate and without a search.
//!
//! The check has an execution and arithmetic of its own. It uses nothing of the search for capacities. There is one
//! exception: it takes the maximal throughput from the library, by the method that the search does not use
//! ([`Method::StateSpace`]).

mod cycle;
mod execute;
mod grid;

use crate::budget::Meter;
use crate::{Error, Goal, Graph, Method, Ratio, Storage, StorageOptions, Throughput, throughput_by, verify};
use grid::Grid;

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
        return Error::bad_certificate(format!("the throughput is {measured}, not {}", storage.throughput));
    }
    let required = match goal {
        Goal::DeadlockFree => Throughput::Finite(Ratio::ZERO),
        Goal::AtLeast(ratio) => Throughput::Finite(ratio),
        Goal::Maximal => throughput_by(Method::StateSpace, graph, &graph.capacities(), &options.budget)?,
    };
    if measured < required || measured == Throughput::Finite(Ratio::ZERO) {
        return Error::bad_certificate(format!("the throughput is {measured}, below the goal"));
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
        conflicts.push(grid.escapes(conflict)?);
    }
    let least = grid.least_total(&conflicts, &mut meter)?;
    if least < u128::from(storage.bound) {
        return Error::bad_certificate(format!(
            "the conflicts allow a total of {least}, below the bound of {}",
            storage.bound
        ));
    }
    if storage.bound > storage.total || storage.proven != (storage.bound == storage.total) {
        return Error::bad_certificate("the bound contradicts the total");
    }
    Ok(())
}
