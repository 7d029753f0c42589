//! The end of a search, if somebody asks for it.

use std::sync::atomic::{AtomicBool, Ordering};

/// Whether somebody has asked for the end.
pub fn is_asked(stop: Option<&AtomicBool>) -> bool {
    stop.is_some_and(|stop| stop.load(Ordering::Relaxed))
}
