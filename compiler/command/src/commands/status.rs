//! The status line: the last line of standard error, if that is a terminal. After one second it says what the command is
//! doing. Long work shows there how far it is.
//!
//! A process has one terminal, and so one status line. All that is written to the terminal [clears](clear) it first.

use std::io::{IsTerminal, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// How long a command works before the line says so, and then how often it does.
const SILENCE: Duration = Duration::from_secs(1);

/// The line of this process.
static LINE: Mutex<Line> = Mutex::new(Line::EMPTY);

struct Line {
    /// What the command is doing, and since when.
    work: Option<(&'static str, Instant)>,
    /// When the work itself last said how far it is.
    told: Option<Instant>,
    /// Whether there is text on the line.
    is_shown: bool,
}

impl Line {
    const EMPTY: Line = Line { work: None, told: None, is_shown: false };

    /// The text that stands there at this moment, unless the work itself has said something a short time ago.
    fn text(&self, now: Instant) -> Option<String> {
        let (work, began) = self.work?;
        let is_silent = |since: Instant| now.saturating_duration_since(since) >= SILENCE;
        let is_due = is_silent(began) && self.told.is_none_or(is_silent);
        is_due.then(|| format!("{work}, {} s", now.saturating_duration_since(began).as_secs()))
    }

    fn write(&mut self, text: &str) {
        // A terminal that is gone needs no line.
        let _ = write!(std::io::stderr(), "\r\x1b[K{text}");
        self.is_shown = !text.is_empty();
    }

    fn clear(&mut self) {
        if self.is_shown {
            self.write("");
        }
    }
}

fn line() -> MutexGuard<'static, Line> {
    // Each state of the line is whole, whoever panicked.
    LINE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// While it lives, the status line says what the command is doing. Then the terminal is as it was.
pub(super) struct Working(Option<JoinHandle<()>>);

/// Begins to say what the command is doing, such as "checking the plan".
pub(super) fn begin(work: &'static str) -> Working {
    if !std::io::stderr().is_terminal() || !tracing::enabled!(tracing::Level::WARN) {
        return Working(None);
    }
    *line() = Line { work: Some((work, Instant::now())), ..Line::EMPTY };
    // Without a thread, the line shows only what the work says of itself.
    let ticks = thread::Builder::new().spawn(|| {
        while line().work.is_some() {
            thread::park_timeout(SILENCE);
            let mut line = line();
            if let Some(text) = line.text(Instant::now()) {
                line.write(&text);
            }
        }
    });
    Working(ticks.ok())
}

impl Drop for Working {
    fn drop(&mut self) {
        let mut line = line();
        line.work = None;
        line.clear();
        drop(line);
        if let Some(ticks) = self.0.take() {
            ticks.thread().unpark();
            // It cannot have panicked in a way that matters here.
            let _ = ticks.join();
        }
    }
}

/// Shows how far the work is.
pub(super) fn show(text: &str) {
    let mut line = line();
    if line.work.is_some() {
        line.told = Some(Instant::now());
        line.write(text);
    }
}

/// Leaves the line empty, for what is written next.
pub(super) fn clear() {
    line().clear();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_says_what_is_done_after_a_second_of_silence() {
        let began = Instant::now();
        let at = |milliseconds: u64| began + Duration::from_millis(milliseconds);
        let mut line = Line { work: Some(("packing", began)), ..Line::EMPTY };
        assert_eq!(line.text(at(999)), None);
        assert_eq!(line.text(at(1000)).as_deref(), Some("packing, 1 s"));
        line.told = Some(at(2500));
        assert_eq!(line.text(at(3000)), None, "the work spoke half a second ago");
        assert_eq!(line.text(at(3500)).as_deref(), Some("packing, 3 s"));
        line.work = None;
        assert_eq!(line.text(at(9000)), None);
    }
}
