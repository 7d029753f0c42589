//! How much an analysis may cost.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::Error;

/// What an analysis may spend. When it is spent, the analysis returns the best answer so far, or
/// [`Error::Exhausted`] if there is none.
///
/// A bound on work gives the same answer on any machine; one on time does not.
#[derive(Debug, Clone, Copy)]
pub struct Budget {
    /// Steps: about one for each firing simulated and each dependency followed.
    pub work: u64,
    /// Wall time; unbounded if none.
    pub time: Option<Duration>,
    /// Once this is true, nothing is left.
    pub stop: Option<&'static AtomicBool>,
}

impl Default for Budget {
    /// 2^34 steps, a minute or so, and no bound on time.
    fn default() -> Budget {
        Budget { work: 1 << 34, time: None, stop: None }
    }
}

/// What is left of a budget.
#[derive(Debug, Clone)]
pub(crate) struct Meter {
    left: u64,
    deadline: Option<Instant>,
    stop: Option<&'static AtomicBool>,
}

impl Meter {
    pub(crate) fn new(budget: &Budget) -> Meter {
        Meter {
            left: budget.work,
            // A time that is too long for the clock does not limit anything.
            deadline: budget.time.and_then(|time| Instant::now().checked_add(time)),
            stop: budget.stop,
        }
    }

    /// Takes `work` steps. Each call reads the clock, so callers should take many steps at once.
    pub(crate) fn spend(&mut self, work: u64) -> Result<(), Error> {
        let is_asked = self.stop.is_some_and(|stop| stop.load(Ordering::Relaxed));
        if work > self.left || is_asked || self.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            self.left = 0;
            return Err(Error::Exhausted);
        }
        self.left -= work;
        Ok(())
    }

    /// Sets aside `share / of` of what is left. The caller gives back what it does not spend.
    pub(crate) fn part(&mut self, share: u64, of: u64) -> Meter {
        let part = |whole: u128| (whole * u128::from(share) / u128::from(of.max(1))) as u64;
        let left = part(u128::from(self.left));
        self.left -= left;
        let time = self.deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let time = time.map(|time| Duration::from_nanos(part(time.as_nanos())));
        let deadline = time.and_then(|time| Instant::now().checked_add(time));
        Meter { left, deadline, stop: self.stop }
    }

    /// Takes back a part.
    pub(crate) fn give_back(&mut self, part: Meter) {
        self.left += part.left;
    }
}
