//! The end of a search, if somebody asks for it.
//!
//! ```
//! use std::sync::atomic::{AtomicBool, Ordering};
//!
//! use csdfc_select::stop::Stop;
//!
//! let asked = AtomicBool::new(false);
//! let stop = Stop::by(&asked);
//! assert!(!stop.is_asked());
//! asked.store(true, Ordering::Relaxed);
//! assert!(stop.is_asked() && !Stop::never().is_asked());
//! ```

use std::sync::atomic::{AtomicBool, Ordering};

/// Whether a search is to end with the best that it has. Searches look at it at least every few hundredths of a second.
#[derive(Debug, Clone, Copy, Default)]
pub struct Stop<'s>(Option<&'s AtomicBool>);

impl<'s> Stop<'s> {
    /// Nobody asks.
    pub fn never() -> Self {
        Stop(None)
    }

    /// Once this is true.
    pub fn by(flag: &'s AtomicBool) -> Self {
        Stop(Some(flag))
    }

    /// Whether somebody has asked for the end.
    pub fn is_asked(self) -> bool {
        self.0.is_some_and(|flag| flag.load(Ordering::Relaxed))
    }
}
