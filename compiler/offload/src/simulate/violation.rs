//! Ways to break the rules.

use serde::Serialize;

/// A rule that is broken, and where. Steps count from 1, as in the paper.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Violation {
    /// The step. `None` for what follows the last step.
    pub step: Option<usize>,
    /// What is wrong.
    pub fault: Fault,
}

impl std::fmt::Display for Violation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.step {
            Some(step) => write!(f, "step {step}: {}", self.fault),
            None => write!(f, "after the last step: {}", self.fault),
        }
    }
}

impl std::error::Error for Violation {}

/// What can be wrong with a step. Pixels, filters and patches have numbers, which count from 0, row by row.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    /// Something that the layer has not.
    #[error("there is no {kind} {number}")]
    Unknown {
        /// `pixel`, `filter` or `patch`.
        kind: &'static str,
        /// Its number.
        number: u32,
    },
    /// Forgets what is not there.
    #[error("{kind} {number} is freed but not in memory")]
    FreesAbsent {
        /// `pixel` or `filter`.
        kind: &'static str,
        /// Its number.
        number: u32,
    },
    /// Writes what is not there.
    #[error("the result of patch {patch} with filter {filter} is written back but not in memory")]
    WritesAbsent {
        /// The patch.
        patch: u32,
        /// The filter.
        filter: u32,
    },
    /// Loads what is there.
    #[error("{kind} {number} is loaded but in memory already")]
    LoadsHeld {
        /// `pixel` or `filter`.
        kind: &'static str,
        /// Its number.
        number: u32,
    },
    /// Loads too often.
    #[error("pixel {pixel} has been loaded {loads} times, the most is {most}")]
    LoadsAgain {
        /// The pixel.
        pixel: u32,
        /// Loads, with this one.
        loads: u64,
        /// The bound.
        most: u64,
    },
    /// Computes nothing.
    #[error("nothing is computed")]
    Idle,
    /// Computes more patches than a group may have.
    #[error("{patches} patches are computed, the most is {most}")]
    Group {
        /// The patches.
        patches: usize,
        /// The bound.
        most: usize,
    },
    /// Computes more than the accelerator can.
    #[error("{macs} multiply-accumulates are computed, the most is {most}")]
    Macs {
        /// What is computed.
        macs: u64,
        /// nbop_PE.
        most: u64,
    },
    /// Computes what was computed.
    #[error("the result of patch {patch} with filter {filter} is computed again")]
    ComputesAgain {
        /// The patch.
        patch: u32,
        /// The filter.
        filter: u32,
    },
    /// Needs what is not there.
    #[error("patch {patch} needs {kind} {number}, which is not in memory")]
    Needs {
        /// The patch.
        patch: u32,
        /// `pixel` or `filter`.
        kind: &'static str,
        /// Its number.
        number: u32,
    },
    /// Holds what it does not use.
    #[error("{kind} {number} is in memory but not used")]
    Unused {
        /// `pixel` or `filter`.
        kind: &'static str,
        /// Its number.
        number: u32,
    },
    /// Does not fit.
    #[error("{elements} elements are in memory, the most is {most}")]
    Memory {
        /// Elements in memory.
        elements: u64,
        /// size_MEM.
        most: u64,
    },
    /// Something is left in the end.
    #[error("{kind} {number} is still in memory")]
    Left {
        /// `pixel` or `filter`, or `a result of patch`.
        kind: &'static str,
        /// Its number.
        number: u32,
    },
    /// A result is missing in the end.
    #[error("the result of patch {patch} with filter {filter} was never computed")]
    Missing {
        /// The patch.
        patch: u32,
        /// The filter.
        filter: u32,
    },
}
