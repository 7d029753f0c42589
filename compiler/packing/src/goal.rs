//! How low a packing is to be.

/// How low a packing is to be.
#[derive(Debug, Clone, Copy)]
pub(super) struct Goal {
    /// No lower than this.
    pub enough: u64,
    /// A packing that must be higher than this is of no use.
    pub give_up: u64,
}

impl Goal {
    /// As low as can be.
    pub const MINIMUM: Goal = Goal { enough: 0, give_up: u64::MAX };
}
