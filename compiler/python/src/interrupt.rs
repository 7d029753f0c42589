//! Long work that Ctrl-C ends: it goes on in a thread of its own, and Python looks for signals while it waits.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;

use super::errors::Error;

/// How often Python looks for signals.
const LOOK: Duration = Duration::from_millis(20);
/// How long work that was interrupted may take to hand over what it has.
const GRACE: Duration = Duration::from_millis(600);
/// The stack of a thread: as large as that of the command.
const STACK: usize = 8 << 20;

/// Work that did not end by itself.
pub struct Interrupted<T> {
    /// What Python raises.
    pub error: PyErr,
    /// What the work had by then.
    pub answer: Option<T>,
}

impl<T> From<Interrupted<T>> for PyErr {
    fn from(interrupted: Interrupted<T>) -> Self {
        interrupted.error
    }
}

/// Does work without the interpreter's lock. If Python has a signal, the work sees it by its flag.
///
/// # Errors
/// What the handler of a signal raises, such as `KeyboardInterrupt`, with the answer if it comes soon.
pub fn work<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce(&AtomicBool) -> T + Send + 'static,
) -> Result<T, Interrupted<T>> {
    let stop = Arc::new(AtomicBool::new(false));
    let (sender, answer) = mpsc::channel();
    let seen = Arc::clone(&stop);
    spawn(move || {
        // If nobody waits any more, the answer is not needed.
        let _ = sender.send(work(&seen));
    })
    .map_err(|error| Interrupted { error, answer: None })?;
    wait(py, answer, &stop)
}

/// Starts a thread.
pub fn spawn(work: impl FnOnce() + Send + 'static) -> PyResult<()> {
    thread::Builder::new().stack_size(STACK).spawn(work).map(drop).map_err(PyOSError::new_err)
}

/// Waits for the answer of a thread. If Python has a signal, `stop` becomes true.
///
/// # Errors
/// As [`work`].
pub fn wait<T: Send>(py: Python<'_>, answer: Receiver<T>, stop: &AtomicBool) -> Result<T, Interrupted<T>> {
    // A receiver belongs to one thread at a time.
    let answer = std::sync::Mutex::new(answer);
    let within = |time| {
        py.detach(|| {
            answer.lock().map_or(Err(RecvTimeoutError::Disconnected), |answer| answer.recv_timeout(time))
        })
    };
    loop {
        match within(LOOK) {
            Ok(answer) => return Ok(answer),
            Err(RecvTimeoutError::Disconnected) => {
                let error = Error::new_err("csdfc panicked; the message on standard error says where");
                return Err(Interrupted { error, answer: None });
            }
            Err(RecvTimeoutError::Timeout) => {
                if let Err(error) = py.check_signals() {
                    stop.store(true, Ordering::Relaxed);
                    return Err(Interrupted { error, answer: within(GRACE).ok() });
                }
            }
        }
    }
}
