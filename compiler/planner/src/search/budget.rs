//! When a search ends, and why it ended.
//!
//! ```
//! use csdfc_ga::StopReason;
//! use csdfc_planner::search::budget::{Budget, Stopped};
//!
//! // A search that may evaluate so many choices ends by that; without a budget, it ends when it is done.
//! assert_eq!(Stopped::new(StopReason::Evaluations, Budget::Evaluations(100)), Stopped::Evaluations);
//! assert_eq!(Stopped::new(StopReason::Evaluations, Budget::Default), Stopped::Complete);
//! ```

use std::time::Duration;

use csdfc_ga::StopReason;

/// When a search ends.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Budget {
    /// When further search would hardly improve the result.
    #[default]
    Default,
    /// After this many choices for each CNN. The result is the same on every machine.
    Evaluations(u64),
    /// After this much time. The result is the best that this machine finds by then.
    Time(Duration),
}

/// Why a search ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stopped {
    /// It was done.
    Complete,
    /// All choices that it was allowed were evaluated.
    Evaluations,
    /// Its time was over.
    Time,
    /// Somebody asked.
    Asked,
}

impl Stopped {
    /// Why a genetic search with this budget ended. If it ended by a budget of its own, as on generations, it is
    /// complete.
    pub fn new(reason: StopReason, budget: Budget) -> Self {
        match (reason, budget) {
            (StopReason::Asked, _) => Stopped::Asked,
            (StopReason::Time, _) => Stopped::Time,
            (StopReason::Evaluations, Budget::Evaluations(_)) => Stopped::Evaluations,
            (StopReason::Evaluations | StopReason::Generations | StopReason::Stale, _) => Stopped::Complete,
        }
    }

    /// As a plan has it.
    pub fn name(self) -> &'static str {
        match self {
            Stopped::Complete => "complete",
            Stopped::Evaluations => "evaluations",
            Stopped::Time => "time",
            Stopped::Asked => "asked",
        }
    }
}
