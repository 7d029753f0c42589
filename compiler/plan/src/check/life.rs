//! When a ring lives.

use super::allocation::Allocation;

/// The life of one ring.
pub(super) struct Life<'a> {
    pub allocation: &'a Allocation,
    pub cnn: usize,
    /// Its number among the CNN's allocations.
    pub number: usize,
    /// First and last firing of the CNN's frame, its partitions one after another, at which it lives.
    pub first: usize,
    pub last: usize,
    /// The partitions that write or read it.
    pub partitions: Vec<usize>,
    /// The partitions during which it is stored: those that write or read it, and those of its CNN that fire while it
    /// lives.
    pub stored_in: Vec<usize>,
}
