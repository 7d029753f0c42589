//! The user's control over a search: Ctrl-C ends it, and the status line shows how far it is.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use csdfc_input::units;
use csdfc_planner::search::watch::Progress;
use signal_hook::consts::SIGINT;
use signal_hook::flag;

use super::status;

/// The exit code that shells report for a command that Ctrl-C ended.
const INTERRUPTED: i32 = 130;

/// Whether Ctrl-C was pressed. From now on the first Ctrl-C asks the work to end, and a second one ends the process.
pub(super) fn ctrl_c() -> &'static AtomicBool {
    // The handlers of signals stay for as long as the process.
    let pressed: &'static Arc<AtomicBool> = Box::leak(Box::default());
    // In this order, the first signal finds the flag unset. If signals are not available, Ctrl-C ends the process.
    let _ = flag::register_conditional_shutdown(SIGINT, INTERRUPTED, Arc::clone(pressed))
        .and_then(|_| flag::register(SIGINT, Arc::clone(pressed)));
    pressed
}

/// Shows how far a search is.
pub(super) fn show(progress: &Progress<'_>) {
    let Progress { of, evaluations, front, least } = progress;
    if *front == 0 {
        return status::show(&format!("{of}: {evaluations} choices"));
    }
    let least = units::bytes(*least);
    status::show(&format!(
        "{of}: {evaluations} choices tried, {front} on the front, the smallest of {least}"
    ));
}

/// Shows how far measurements of precisions are.
pub(super) fn show_measured(progress: &csdfc_precision::Progress<'_>) {
    let csdfc_precision::Progress { cnn, done, of } = progress;
    status::show(&format!("{cnn}: {done} of {of} measurements of precisions"));
}
