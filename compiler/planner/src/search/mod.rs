//! Finding a plan: which layers process their data by parts.
//!
//! Most search methods make design points of each CNN, and `select` picks one for each within the budgets. These methods
//! are [`extended`], the default; [`simple`], which enumerates; and [`baseline`], the methods with which the main paper
//! compares itself. `paper`, Algorithm 2 of that paper, searches for all CNNs at once.
//!
//! Often no search is needed. A layer is never slower if it fires once and makes all its rows at once, so the plan
//! without parts is the fastest. Only that plan and the one with all layers by parts are made in these cases:
//!
//! - The fastest plan fits the memory, and is fast enough. It is the answer, unless the least memory is asked for.
//! - The fastest plan fits the memory, and is too slow. Every other plan is too slow as well.
//! - The parameters alone exceed the memory. No plan fits.
//!
//! If a front is asked for (`--pareto`), there always is a search ([`watch::Scope`]).
//!
//! ```
//! use std::path::Path;
//!
//! use csdfc_input::device::DeviceProfile;
//! use csdfc_planner::cost::timing::Timing;
//! use csdfc_planner::frame::task;
//! use csdfc_planner::open::open;
//! use csdfc_planner::search::evaluate::Evaluator;
//! use csdfc_planner::search::watch::Watch;
//! use csdfc_planner::search::{extended, simple};
//!
//! let application = open("builtin:lenet5")?.resolve()?;
//! let (tasks, device) = (task::tasks(&application), DeviceProfile::find("generic", Path::new(""))?);
//! let timing = Timing::alone(device.processor("cpu")?, 1);
//! let evaluator = Evaluator::new(&tasks[0], &timing, application.storage);
//!
//! // The fastest comes first, and the smallest last.
//! let simple = simple::front(&evaluator)?.design_points;
//! let extended = extended::front(&evaluator, 1, "lenet5", &[], &Watch::unwatched())?.design_points;
//! assert!(extended[extended.len() - 1].buffers <= simple[simple.len() - 1].buffers);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod baseline;
pub mod budget;
pub mod code;
pub mod compare;
pub mod evaluate;
pub(crate) mod execution_variants;
pub mod extended;
pub(crate) mod joint;
pub mod memo;
pub(crate) mod paper;
pub(crate) mod problem;
pub(crate) mod select;
pub mod simple;
pub mod start;
pub mod watch;

use std::collections::BTreeMap;

use csdfc_plan::plan::ParetoPoint;

use crate::frame::choice::Choice;
use crate::frame::execution::Execution;
use crate::search::budget::Stopped;

/// What a method found.
#[derive(Debug)]
pub struct Found {
    /// The design point chosen for each CNN.
    pub design_points: Vec<DesignPoint>,
    /// What can be reached instead, if the constraints cannot be met.
    pub shortfall: Option<Shortfall>,
    /// The front of the plans seen: none of them is worse than another in both memory and frame rates. Sorted by
    /// falling memory.
    pub pareto: Vec<ParetoPoint>,
    /// Choices that were evaluated.
    pub evaluations: u64,
    /// Why the search ended.
    pub stopped: Stopped,
}

/// What can be reached if the constraints cannot be met.
#[derive(Debug, Clone, PartialEq)]
pub struct Shortfall {
    /// The least total memory of any plan found, in bytes. `None` if there was no search, because no plan can meet the
    /// constraints.
    pub least_memory: Option<u64>,
    /// The least total memory at the frame rates and latencies that are asked for, in bytes. `None` if they cannot be
    /// reached.
    pub memory_at_rates: Option<u64>,
    /// The rates, by CNN, of the fastest plan in the memory that is asked for. `None` if no plan fits.
    pub rates_in_memory: Option<BTreeMap<String, Rate>>,
    /// The best frame rate and the best latency in any memory, by CNN. They may belong to two different plans.
    pub best_rates: BTreeMap<String, Rate>,
}

impl Shortfall {
    /// Takes into account what another plan reaches.
    pub(crate) fn reaches(&mut self, rates: &BTreeMap<String, Rate>) {
        for (cnn, best) in &mut self.best_rates {
            if let Some(other) = rates.get(cnn) {
                best.fps = best.fps.max(other.fps);
                best.latency_ns = best.latency_ns.min(other.latency_ns);
            }
        }
    }
}

/// How fast a CNN is, as modelled.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rate {
    /// Frames per second.
    pub fps: f64,
    /// Nanoseconds from a frame's first input to its last output.
    pub latency_ns: u64,
}

/// One way to run a CNN, and what it costs on its own.
#[derive(Debug, Clone)]
pub struct DesignPoint {
    /// What was chosen: `none`, `all`, `prefix 12`, `given`.
    pub name: String,
    /// One frame under this choice.
    pub execution: Execution,
    /// Bytes of buffers if the CNN were alone.
    pub buffers: u64,
    /// Modelled time between frames, in nanoseconds ([`timing`](crate::cost::timing)).
    pub period_ns: f64,
    /// Modelled time of one frame through all partitions, in nanoseconds, if it comes no sooner than `period_ns` after the
    /// one before it.
    pub latency_ns: f64,
}

impl DesignPoint {
    /// What was chosen, as [`execute`](crate::frame::execution::execute) takes it.
    pub fn choice(&self) -> Choice {
        Choice {
            name: self.name.clone(),
            rows: self.execution.rows.clone(),
            barriers: self.execution.barriers.clone(),
            one_by_one: Some(self.execution.one_by_one.clone()),
        }
    }

    /// Bytes of buffers that stay in use while other CNNs run: the rings that live from hop to hop.
    pub fn state(&self) -> u64 {
        let persisting = self.execution.requests.iter().filter(|request| request.persists());
        persisting.map(|request| request.bytes).sum()
    }

    /// Modelled frames per second.
    pub fn fps(&self) -> f64 {
        1e9 / self.period_ns
    }

    /// Modelled whole nanoseconds of one frame, as a plan states them.
    pub fn latency(&self) -> u64 {
        self.latency_ns.round() as u64
    }

    /// Both.
    pub fn rate(&self) -> Rate {
        Rate { fps: self.fps(), latency_ns: self.latency() }
    }
}
