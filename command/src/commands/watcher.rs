//! The user's control while a command works. Ctrl-C ends a search, and a terminal shows the progress. Other long work
//! only shows its progress.

use std::io::{IsTerminal, Write};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use csdfc::search::watch::Progress;
use csdfc::units;
use signal_hook::consts::SIGINT;
use signal_hook::flag;

/// The exit code that shells report for a command that Ctrl-C ended.
const INTERRUPTED: i32 = 130;

/// Ctrl-C and the terminal.
pub(super) struct Watcher {
    /// Whether Ctrl-C was pressed.
    pub stop: Arc<AtomicBool>,
    line: StatusLine,
}

/// The last line of standard error, if that is a terminal.
pub(super) struct StatusLine {
    is_shown: bool,
}

impl StatusLine {
    /// Shown on a terminal only.
    pub fn new() -> Self {
        StatusLine { is_shown: std::io::stderr().is_terminal() && tracing::enabled!(tracing::Level::WARN) }
    }

    /// Shows a text in place of the one before.
    pub fn show(&self, text: &str) {
        if self.is_shown {
            // A terminal that is gone needs no line.
            let _ = write!(std::io::stderr(), "\r\x1b[K{text}");
        }
    }

    /// Leaves the terminal as it was.
    pub fn done(&self) {
        self.show("");
    }
}

impl Watcher {
    /// From now on the first Ctrl-C asks the search to end. A second one ends the process.
    pub fn start() -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        // In this order, the first signal finds the flag unset. If signals are not available, Ctrl-C ends the process.
        let _ = flag::register_conditional_shutdown(SIGINT, INTERRUPTED, Arc::clone(&stop))
            .and_then(|_| flag::register(SIGINT, Arc::clone(&stop)));
        Watcher { stop, line: StatusLine::new() }
    }

    /// Shows how far the search is, on one line of the terminal.
    pub fn show(&self, progress: &Progress<'_>) {
        let Progress { of, evaluations, front, least } = progress;
        if *front == 0 {
            return self.line.show(&format!("{of}: {evaluations} choices"));
        }
        let least = units::bytes(*least);
        self.line.show(&format!(
            "{of}: {evaluations} choices tried, {front} on the front, the smallest of {least}"
        ));
    }

    /// Shows how far measurements of precisions are.
    pub fn show_measured(&self, progress: &csdfc_precision::Progress<'_>) {
        let csdfc_precision::Progress { cnn, done, of } = progress;
        self.line.show(&format!("{cnn}: {done} of {of} measurements of precisions"));
    }

    /// Shows a text on that line.
    pub fn show_text(&self, text: &str) {
        self.line.show(text);
    }

    /// Leaves the terminal as it was.
    pub fn done(&self) {
        self.line.done();
    }
}
