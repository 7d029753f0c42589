//! How long a search may take.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// When a search gives up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Budget {
    /// After this many steps. The result is the same on every machine.
    Work(u64),
    /// At this moment. The result is the best that this machine finds by then.
    Until(Instant),
}

/// Why a search ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Stopped {
    /// All was searched, or a bound reached.
    Complete,
    /// Its steps were used up.
    Work,
    /// Its time was used up.
    Time,
    /// Somebody asked.
    Asked,
}

/// A limit, and how much of it is used.
#[derive(Debug, Clone, Copy)]
pub struct Meter {
    limit: Budget,
    spent: u64,
    looked: u64,
    late: bool,
    stop: Option<&'static AtomicBool>,
}

/// Steps between looks at the clock, and at whether somebody asked for the end.
const BETWEEN_LOOKS: u64 = 100_000;

impl Meter {
    /// A budget of which nothing is used yet.
    pub fn new(limit: Budget) -> Self {
        Meter {
            limit,
            spent: 0,
            looked: 0,
            late: matches!(limit, Budget::Until(end) if Instant::now() >= end),
            stop: None,
        }
    }

    /// The same, but the search also ends once this is true.
    pub fn stopped_by(self, stop: &'static AtomicBool) -> Self {
        Meter { stop: Some(stop), ..self }
    }

    fn is_asked(&self) -> bool {
        self.stop.is_some_and(|stop| stop.load(Ordering::Relaxed))
    }

    /// Steps done.
    pub fn spent(&self) -> u64 {
        self.spent
    }

    /// Uses some steps.
    pub(crate) fn spend(&mut self, steps: u64) {
        self.spent += steps;
        if self.spent - self.looked > BETWEEN_LOOKS {
            self.looked = self.spent;
            self.late |= self.is_asked() || matches!(self.limit, Budget::Until(end) if Instant::now() >= end);
        }
    }

    /// Whether nothing is left.
    pub fn exhausted(&self) -> bool {
        self.late || self.left() == 0
    }

    /// Steps that are left, as far as steps are counted.
    pub(crate) fn left(&self) -> u64 {
        match self.limit {
            Budget::Work(most) => most.saturating_sub(self.spent),
            Budget::Until(_) => u64::MAX,
        }
    }

    /// Why this budget ends a search.
    pub(crate) fn reason(&self) -> Stopped {
        match self.limit {
            _ if self.is_asked() => Stopped::Asked,
            Budget::Work(_) => Stopped::Work,
            Budget::Until(_) => Stopped::Time,
        }
    }
}
