//! The log, which goes to standard error while a command works; warnings as data, for other programs.

use std::fmt::Debug;
use std::sync::{Arc, Mutex, PoisonError};

use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::{Event, Subscriber, subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::format::FmtSpan;
use tracing_subscriber::layer::{Context, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;

use super::status;
use crate::cli::{Global, LogFormat};
use crate::error::Error;

/// The environment variable that replaces `-v` and `-q`. It holds a level, or levels by module.
const VARIABLE: &str = "CSDFC_LOG";

/// Starts the log. A second start in one process has no effect.
///
/// # Errors
/// When `CSDFC_LOG` is not a valid list of levels.
pub fn start(global: &Global) -> Result<(), Error> {
    let level = match (global.quiet, global.verbose) {
        (true, _) => LevelFilter::ERROR,
        (false, 0) => LevelFilter::WARN,
        (false, 1) => LevelFilter::INFO,
        (false, 2) => LevelFilter::DEBUG,
        (false, _) => LevelFilter::TRACE,
    };
    let filter = match std::env::var(VARIABLE) {
        Ok(filter) if !filter.is_empty() => filter.parse::<Targets>().map_err(|error| Error::Input {
            message: format!("{VARIABLE} is not a log filter: {error}"),
            help: Some(
                "give a level (`debug`) or levels by module (`csdfc_planner::frame::lower=trace,warn`)"
                    .into(),
            ),
        })?,
        _ => Targets::new().with_default(level),
    };
    // With -vv, each pass logs at its end how long it took.
    let spans = if level >= LevelFilter::DEBUG { FmtSpan::CLOSE } else { FmtSpan::NONE };
    let log = tracing_subscriber::fmt::layer()
        .with_writer(|| {
            status::clear();
            std::io::stderr()
        })
        .with_ansi(global.color())
        .with_span_events(spans);
    let log = match global.log_format {
        LogFormat::Text => log.with_timer(()).with_target(false).boxed(),
        LogFormat::Json => log.json().boxed(),
    };
    // The only error is that a log was started before.
    let _ = tracing_subscriber::registry().with(filter).with(log).try_init();
    Ok(())
}

/// The warnings of a piece of work.
#[derive(Debug, Clone, Default)]
struct Warnings(Arc<Mutex<Vec<String>>>);

impl<S: Subscriber> Layer<S> for Warnings {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut message = Message(String::new());
        event.record(&mut message);
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(message.0);
    }
}

/// The text of an event.
struct Message(String);

impl Visit for Message {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if field.name() == "message" {
            self.0 = format!("{value:?}");
        }
    }
}

/// Does work, and returns what it warns of besides what it returns. Only warnings of this thread count.
pub fn with_warnings<T>(work: impl FnOnce() -> T) -> (T, Vec<String>) {
    let warnings = Warnings::default();
    let log = tracing_subscriber::registry().with(LevelFilter::WARN).with(warnings.clone());
    let done = subscriber::with_default(log, work);
    let texts = std::mem::take(&mut *warnings.0.lock().unwrap_or_else(PoisonError::into_inner));
    (done, texts)
}
