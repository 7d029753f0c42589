//! The rules that a computation must keep, and what happened when it was executed.

use serde::Serialize;

use crate::problem::Problem;
use crate::steps::{Closing, Step};

/// The rules that a computation must keep.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rules {
    /// Maximum number of patches of a group.
    pub group: usize,
    /// Multiply-accumulates of a step.
    pub pe: Option<u64>,
    /// Elements that the memory holds.
    pub mem: Option<u64>,
    /// Maximum number of loads of a pixel.
    pub reload: Option<u64>,
}

impl Rules {
    /// The rules of a problem. Its bound on loads holds for each pass.
    pub fn new(problem: &Problem) -> Self {
        Rules {
            group: problem.group,
            pe: problem.accelerator.pe,
            mem: problem.accelerator.mem,
            reload: problem.reload.map(|reload| u64::from(reload) * problem.passes()),
        }
    }
}

/// What happened in a step. Elements of memory are counted during its computation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StepTrace {
    /// What it did.
    #[serde(flatten)]
    pub step: Step,
    /// Multiply-accumulates.
    pub macs: u64,
    /// Elements of M_inp.
    pub input_elements: u64,
    /// Elements of M_ker.
    pub filter_elements: u64,
    /// Elements of M_out, the step's results among them.
    pub output_elements: u64,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Trace {
    /// The steps.
    pub steps: Vec<StepTrace>,
    /// What followed them.
    pub closing: Closing,
    /// Maximum number of elements in memory.
    pub memory: u64,
    /// Pixels loaded.
    pub pixels_loaded: u64,
    /// Filters loaded.
    pub filters_loaded: u64,
    /// Results written.
    pub outputs_written: u64,
}
