//! The smallest capacities that serve a goal.

use crate::{Budget, Certificate, Error, Graph, Ratio, Throughput};

/// What the capacities are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Goal {
    /// That the graph runs for ever, however slowly.
    DeadlockFree,
    /// That it completes at least so many iterations per unit of time.
    AtLeast(Ratio),
    /// That it runs as fast as with unbounded channels (but for the capacities that channels state).
    Maximal,
}

/// What a total counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Unit {
    /// Tokens of all channels alike.
    #[default]
    Tokens,
    /// Tokens × [`token_bytes`](crate::Channel::token_bytes).
    Bytes,
}

/// How capacities are searched for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StorageOptions {
    /// What the total counts.
    pub unit: Unit,
    /// What the search may cost.
    pub budget: Budget,
    /// By channel, what its capacity must be a multiple of; empty for 1 throughout. A capacity that a channel
    /// states is kept as it is.
    pub granularity: Vec<u64>,
}

/// A storage distribution: capacities, and why no smaller ones do.
///
/// Channels that state a capacity have that one, and it counts. A channel of which its producer is the only
/// reader limits nothing and counts for nothing; its entry is what it holds at most.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Storage {
    /// Capacity in tokens, by channel.
    pub capacities: Vec<u64>,
    /// Sum of the capacities, in the unit asked for.
    pub total: u64,
    /// No distribution that serves the goal has a total below this one.
    pub bound: u64,
    /// Whether `bound` is `total`: it is the smallest.
    pub proven: bool,
    /// What the graph achieves with these capacities.
    pub throughput: Throughput,
    /// Where the bound comes from.
    pub certificate: Certificate,
}

/// The trade-off between storage and throughput.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pareto {
    /// Distributions none of which is both smaller and as fast, or as small and faster, than another; from the
    /// smallest to the fastest. Where the throughput is unbounded or one, there is one point.
    pub points: Vec<Storage>,
    /// Whether all points are there and proven; else the budget ended.
    pub complete: bool,
}

/// The distribution of smallest total that serves `goal`.
///
/// When the budget ends, the best one found, with a bound below; [`Error::Exhausted`] only if none was found.
///
/// # Errors
/// [`Error::Deadlock`] if no capacities serve since the channels lack initial tokens, or for the capacities that
/// channels state; [`Error::OutOfReach`] for a throughput above the maximal one; [`Error::Granularity`]; those of
/// [`throughput`](crate::throughput()) and of [`Expanded::new`](crate::Expanded::new).
pub fn smallest(graph: &Graph, goal: Goal, options: &StorageOptions) -> Result<Storage, Error> {
    let _ = (graph, goal, options);
    Err(Error::Exhausted)
}

/// All trade-offs between the total of the capacities and the throughput, from the smallest total that is
/// deadlock-free to the smallest that achieves the maximal throughput (the storage space of Stuijk, Geilen and
/// Basten, "Throughput-buffering trade-off exploration for cyclo-static and synchronous dataflow graphs", 2008).
///
/// # Errors
/// Those of [`smallest`].
pub fn pareto(graph: &Graph, options: &StorageOptions) -> Result<Pareto, Error> {
    let _ = (graph, options);
    Err(Error::Exhausted)
}
