//! What is asked of a storage distribution, and the answer.

use crate::{Budget, Certificate, Ratio, Throughput};

/// The goal of the capacities.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Goal {
    /// That the graph runs for ever, however slowly.
    DeadlockFree,
    /// That it completes at least this many iterations per unit of time.
    AtLeast(Ratio),
    /// That it runs as fast as with unbounded channels (except for the capacities that channels state).
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
#[derive(Debug, Clone, Default)]
pub struct StorageOptions {
    /// What the total counts.
    pub unit: Unit,
    /// What the search may cost.
    pub budget: Budget,
    /// By channel, a number of tokens of which its capacity must be a multiple. An empty list stands for 1 throughout. A
    /// capacity that a channel states is kept as it is.
    pub granularity: Vec<u64>,
}

/// A storage distribution: capacities, and the reason why no smaller ones suffice.
///
/// A channel that states a capacity keeps it, and it counts. A channel whose only reader is its producer limits nothing
/// and does not count. Its entry is the most that it holds.
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
    /// Distributions from the smallest to the fastest. Each is larger and faster than the one before. There is a single
    /// point if all distributions have the same throughput, or if the throughput is unbounded.
    pub points: Vec<Storage>,
    /// Whether all points are there and proven. Otherwise the budget ended.
    pub complete: bool,
}
