//! Finding a plan: which layers process their data by parts.
//!
//! A search method makes variants of each CNN; [`select`] picks one for each within the budgets. Today there is one
//! method, [`simple`], which enumerates; a genetic search will be a file beside it.

pub mod choice;
pub mod code;
pub mod select;
pub mod simple;

use crate::execution::Execution;
use crate::search::choice::Choice;

/// One way to run a CNN, and what it costs on its own.
#[derive(Debug, Clone)]
pub struct Variant {
    /// What was chosen: `none`, `all`, `prefix 12`, `given`.
    pub name: String,
    /// One frame under this choice.
    pub execution: Execution,
    /// Bytes of buffers if the CNN were alone.
    pub buffers: u64,
    /// Modelled time between frames, in nanoseconds: that of the slowest stage.
    pub period_ns: f64,
    /// Modelled time of one frame through all partitions, in nanoseconds.
    pub latency_ns: f64,
}

impl Variant {
    /// What was chosen, as [`execute`](crate::execution::execute) takes it.
    pub fn choice(&self) -> Choice {
        Choice {
            name: self.name.clone(),
            rows: self.execution.rows.clone(),
            barriers: self.execution.barriers.clone(),
        }
    }

    /// Modelled frames per second.
    pub fn fps(&self) -> f64 {
        1e9 / self.period_ns
    }
}
