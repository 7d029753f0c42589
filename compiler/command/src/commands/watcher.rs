//! The user's control over a search: Ctrl-C ends it, and the status line shows how far it is.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use csdfc_input::units;
use csdfc_planner::search::watch::Progress;
use signal_hook::consts::SIGINT;
use signal_hook::flag;

use super::status;
use crate::error::{Error, INTERRUPTED};

/// How often work is asked whether Ctrl-C was pressed.
const LOOK: Duration = Duration::from_millis(20);

/// The stack of a thread: as large as that of the process.
const STACK: usize = 8 << 20;

/// Whether Ctrl-C was pressed. From now on the first Ctrl-C asks the work to end, and a second one ends the process.
pub(super) fn ctrl_c() -> &'static AtomicBool {
    // The handlers of signals stay for as long as the process.
    let pressed: &'static Arc<AtomicBool> = Box::leak(Box::default());
    // In this order, the first signal finds the flag unset. If signals are not available, Ctrl-C ends the process.
    let _ = flag::register_conditional_shutdown(SIGINT, i32::from(INTERRUPTED), Arc::clone(pressed))
        .and_then(|_| flag::register(SIGINT, Arc::clone(pressed)));
    pressed
}

/// Does work that has no half result. It goes on in a thread of its own, which is left behind once Ctrl-C is pressed. So the
/// work must not write anything.
///
/// # Errors
/// [`Error::Interrupted`] once `stop` is true, and as the work has.
pub(super) fn unless_stopped<T: Send + 'static>(
    stop: &AtomicBool,
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    let (sender, answer) = mpsc::channel();
    // If nobody waits any more, the answer is not needed.
    let worker = thread::Builder::new().stack_size(STACK).spawn(move || drop(sender.send(work())));
    let worker = worker.map_err(|error| Error::Bug(format!("no thread can be started: {error}")))?;
    loop {
        match answer.recv_timeout(LOOK) {
            _ if stop.load(Ordering::Relaxed) => return Err(Error::Interrupted),
            Ok(done) => return done,
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => match worker.join() {
                Ok(()) => return Err(Error::Bug("a thread ended without an answer".into())),
                Err(panic) => std::panic::resume_unwind(panic),
            },
        }
    }
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
