//! Why no smaller capacities do, in a form that [`verify_storage`](crate::verify_storage) checks without a search.

use crate::{ActorId, ChannelId, Step};

/// Evidence for the bound of a [`Storage`](crate::Storage), and a schedule for its capacities.
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
