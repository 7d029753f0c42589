//! What is asked of a plan, and which of two plans is better.
//!
//! Every step of the planner that compares plans or design points does so here.
//!
//! ```
//! use std::cmp::Ordering;
//!
//! use csdfc_input::app::resolve::{Application, RowsChoice};
//! use csdfc_input::builtin;
//! use csdfc_input::units::MemoryGoal;
//! use csdfc_planner::objective::{Figures, Objective};
//!
//! let mut application = Application::of_network("lenet5", builtin::network("lenet5")?, RowsChoice::Default);
//! let small = Figures { memory: 1000, time: Figures::time([2e6]) };
//! let fast = Figures { memory: 2000, time: Figures::time([1e6]) };
//!
//! // Unless the least memory is asked for, a plan shall be fast.
//! application.constraints.memory = Some(MemoryGoal::Bytes(4000));
//! assert_eq!(Objective::new(&application).least.compare(&fast, &small), Ordering::Less);
//! application.constraints.memory = Some(MemoryGoal::Min);
//! assert_eq!(Objective::new(&application).least.compare(&fast, &small), Ordering::Greater);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::cmp::Ordering;

use csdfc_input::app::resolve::{Application, Demand};
use csdfc_input::app::spec::Prefer;
use csdfc_input::device::memory::Memory;
use csdfc_input::units::MemoryGoal;

use crate::search::Rate;

/// What is asked of a plan.
#[derive(Debug, Clone, PartialEq)]
pub struct Objective {
    /// Maximum number of bytes in total; of a board with several memories, what they have together.
    pub limit: Option<u64>,
    /// What is least in the best of the plans that meet the limit and the demands.
    pub least: Least,
    /// How fast each CNN shall be.
    pub demands: Vec<Demand>,
}

/// The quantity that is least in the best plan. The other one decides between plans that are equal in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Least {
    /// Bytes in total.
    Memory,
    /// The time between frames. If there are several CNNs, the product of their times.
    Time,
}

/// The figures by which plans are compared.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Figures {
    /// Bytes in total.
    pub memory: u64,
    /// [`Figures::time`] of the CNNs.
    pub time: f64,
}

impl Objective {
    /// What an application asks for. `--mem min` and `--prefer memory` ask for the least memory.
    pub fn new(application: &Application) -> Self {
        let constraints = &application.constraints;
        let (limit, is_min) = match constraints.memory {
            Some(MemoryGoal::Bytes(bytes)) => (Some(bytes), false),
            Some(MemoryGoal::Min) => (None, true),
            None if constraints.memories.is_empty() => (None, false),
            None => {
                let bytes = constraints.memories.iter().map(Memory::room);
                (Some(bytes.fold(0, u64::saturating_add)), false)
            }
        };
        let least = if is_min || application.prefer == Prefer::Memory { Least::Memory } else { Least::Time };
        let demands = application.cnns.iter().map(|cnn| constraints.demand_of(&cnn.name)).collect();
        Objective { limit, least, demands }
    }

    /// The most bytes that a plan may take: `u64::MAX` if there is no limit.
    pub fn most_bytes(&self) -> u64 {
        self.limit.unwrap_or(u64::MAX)
    }

    /// Whether so many bytes are within the limit.
    pub fn fits(&self, bytes: u64) -> bool {
        bytes <= self.most_bytes()
    }

    /// Whether CNNs of these rates are as fast as is demanded.
    pub fn is_fast_enough(&self, rates: impl IntoIterator<Item = Rate>) -> bool {
        rates.into_iter().zip(&self.demands).all(|(rate, demand)| demand.is_met(rate.fps, rate.latency_ns))
    }
}

impl Least {
    /// Compares plans that equally meet the limit and the demands. The better one is less.
    pub fn compare(self, one: &Figures, other: &Figures) -> Ordering {
        let by_memory = one.memory.cmp(&other.memory);
        let by_time = one.time.total_cmp(&other.time);
        match self {
            Least::Memory => by_memory.then(by_time),
            Least::Time => by_time.then(by_memory),
        }
    }
}

impl Figures {
    /// The times between frames of several CNNs as one number: the sum of the logarithms of their nanoseconds. So the
    /// answer does not depend on which CNN is the slowest, and halving the time of any of them counts alike.
    pub fn time(periods_ns: impl IntoIterator<Item = f64>) -> f64 {
        periods_ns.into_iter().map(f64::ln).sum()
    }
}
