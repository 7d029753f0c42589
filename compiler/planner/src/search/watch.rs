//! How a search goes: what ends it, what it leaves out, and whom it tells how far it is.
//!
//! ```
//! use std::path::Path;
//!
//! use csdfc_input::device::DeviceProfile;
//! use csdfc_planner::driver;
//! use csdfc_planner::open::open;
//! use csdfc_planner::search::budget::Budget;
//! use csdfc_planner::search::start::Start;
//! use csdfc_planner::search::watch::Watch;
//!
//! let application = open("builtin:resnet8")?.resolve()?;
//! let device = DeviceProfile::find("generic", Path::new(""))?;
//! let watch = Watch {
//!     budget: Budget::Evaluations(100),
//!     progress: &|now| eprintln!("{}: {} choices evaluated", now.of, now.evaluations),
//!     ..Watch::unwatched()
//! };
//! let (start, paths) = (Start::default(), vec!["builtin:resnet8".into()]);
//! let plan = driver::plan_from(&start, &application, &device, paths, &watch, &driver::validate)?.plan;
//! assert_eq!(plan.search.stopped, "evaluations");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::budget::Budget;
use super::memo::Memo;
use crate::strategy::Strategy;

/// The aim of a search.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Scope {
    /// The bytes and rates of one plan. There is no search if the answer is known without it.
    Figures,
    /// One plan, with the others that its search saw. There is no search if the answer is known without it.
    Plan,
    /// Also the plans that take less memory and more time, or more memory and less time.
    #[default]
    Front,
}

/// How far a search is.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress<'a> {
    /// The CNN, or the application if the search covers all its CNNs at once.
    pub of: &'a str,
    /// Choices evaluated.
    pub evaluations: u64,
    /// Choices on the front: none of them is better than another in both memory and time.
    pub front: usize,
    /// Bytes of buffers of the smallest choice.
    pub least: u64,
}

/// How a search goes: what ends it, what it leaves out, and whom it tells how far it is.
#[derive(Clone, Copy)]
pub struct Watch<'a> {
    /// When it ends by itself.
    pub budget: Budget,
    /// When its time began.
    pub began: Instant,
    /// What it is for.
    pub scope: Scope,
    /// The strategies that it leaves out.
    pub without: &'a [Strategy],
    /// Searches that were made before, if there may be any. None of them is made again.
    pub memo: Option<&'a Memo>,
    /// Once this is true, the search ends with the best plan so far.
    pub stop: &'a AtomicBool,
    /// Told now and then.
    pub progress: &'a (dyn Fn(&Progress<'_>) + Sync),
}

static NEVER: AtomicBool = AtomicBool::new(false);

impl Watch<'_> {
    /// A watch for a search for a whole front, which nobody watches and which ends by itself.
    pub fn unwatched() -> Self {
        Watch {
            budget: Budget::Default,
            began: Instant::now(),
            scope: Scope::Front,
            without: &[],
            memo: None,
            stop: &NEVER,
            progress: &|_| (),
        }
    }

    /// Whether it is to end now.
    pub fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Whether the search must end now, because somebody asked for it or its time is over.
    pub fn is_over(&self) -> bool {
        self.is_stopped() || self.left().is_some_and(|left| left.is_zero())
    }

    /// The time that is left, if there is a limit on it.
    pub fn left(&self) -> Option<Duration> {
        match self.budget {
            Budget::Default | Budget::Evaluations(_) => None,
            Budget::Time(time) => Some(time.saturating_sub(self.began.elapsed())),
        }
    }

    /// The share of one of `parts` searches that are yet to come, from now on.
    pub fn share(&self, parts: usize) -> Self {
        let parts = u32::try_from(parts.max(1)).unwrap_or(u32::MAX);
        let budget = self.left().map_or(self.budget, |left| Budget::Time(left / parts));
        Watch { budget, began: Instant::now(), ..*self }
    }
}

/// Searches that come one after another under one watch. Each has an equal share of the time that the ones before have
/// left.
pub struct Shares<'a> {
    watch: Watch<'a>,
    /// Searches that are yet to come.
    left: Cell<usize>,
}

impl<'a> Shares<'a> {
    /// Shares for at most `searches` searches.
    pub fn new(watch: &Watch<'a>, searches: usize) -> Self {
        Shares { watch: *watch, left: Cell::new(searches) }
    }

    /// The watch of the next search. After the last one that was announced, each has all the remaining time.
    pub fn next(&self) -> Watch<'a> {
        let left = self.left.get();
        self.left.set(left.saturating_sub(1));
        self.watch.share(left)
    }
}
