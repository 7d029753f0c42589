//! Finding a plan: which layers process their data by parts.
//!
//! Most search methods make variants of each CNN, and [`select`] picks one for each within the budgets: [`extended`], the
//! default, [`simple`], which enumerates, and [`baseline`], what the main paper compares itself with. [`paper`], its
//! Algorithm 2, searches for all CNNs at once.

pub mod baseline;
pub mod choice;
pub mod code;
pub mod compare;
pub mod evaluate;
pub mod extended;
pub mod known;
pub mod paper;
pub mod select;
pub mod simple;
pub mod watch;
pub mod ways;

use std::collections::BTreeMap;

use csdfc_codegen::plan::ParetoPoint;

use crate::execution::Execution;
use crate::search::choice::Choice;
use crate::search::watch::Stopped;

/// What a method found.
#[derive(Debug)]
pub struct Found {
    /// The variant chosen for each CNN.
    pub variants: Vec<Variant>,
    /// What there is instead, where constraints cannot be met.
    pub shortfall: Option<Shortfall>,
    /// The plans seen from which none is worse in both memory and frame rates, by falling memory.
    pub pareto: Vec<ParetoPoint>,
    /// Choices that were evaluated.
    pub evaluations: u64,
    /// Why no more were.
    pub stopped: Stopped,
}

/// The nearest that can be reached where the constraints can't.
#[derive(Debug, Clone, PartialEq)]
pub struct Shortfall {
    /// The least total memory of any plan found, in bytes; `None` if none was searched for, since no plan can meet what is
    /// asked.
    pub least_memory: Option<u64>,
    /// The least total memory at the frame rates asked, in bytes; `None` if they can't be reached at all.
    pub memory_at_fps: Option<u64>,
    /// The best frame rates, by CNN, in the memory asked; `None` if nothing fits.
    pub fps_in_memory: Option<BTreeMap<String, f64>>,
    /// The best frame rates, by CNN, in any memory.
    pub best_fps: BTreeMap<String, f64>,
}

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
            one_by_one: Some(self.execution.one_by_one.clone()),
        }
    }

    /// Modelled frames per second.
    pub fn fps(&self) -> f64 {
        1e9 / self.period_ns
    }
}
