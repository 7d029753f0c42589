//! What goes to standard error while a command works.

use tracing::level_filters::LevelFilter;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::format::FmtSpan;

use crate::cli::{Global, LogFormat};
use crate::error::Error;

/// The variable whose filter, as of `tracing`, replaces `-v` and `-q`.
const VARIABLE: &str = "CSDFC_LOG";

/// Starts the log. A second start in one process has no effect.
///
/// # Errors
/// When `CSDFC_LOG` is no filter.
pub fn start(global: &Global) -> Result<(), Error> {
    let level = match (global.quiet, global.verbose) {
        (true, _) => LevelFilter::ERROR,
        (false, 0) => LevelFilter::WARN,
        (false, 1) => LevelFilter::INFO,
        (false, 2) => LevelFilter::DEBUG,
        (false, _) => LevelFilter::TRACE,
    };
    let filter = match std::env::var(VARIABLE) {
        Ok(filter) if !filter.is_empty() => EnvFilter::try_new(&filter).map_err(|error| Error::Input {
            message: format!("{VARIABLE} is no filter: {error}"),
            help: Some(
                "give a level (`debug`) or levels by module (`csdfc::frame::lower=trace,warn`)".into(),
            ),
        })?,
        _ => EnvFilter::default().add_directive(level.into()),
    };
    // With -vv each pass says on its end how long it took.
    let spans = if level >= LevelFilter::DEBUG { FmtSpan::CLOSE } else { FmtSpan::NONE };
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(global.colour())
        .with_span_events(spans);
    // The error says no more than that a log was started before.
    let _ = match global.log_format {
        LogFormat::Text => log.with_timer(()).with_target(false).try_init(),
        LogFormat::Json => log.json().try_init(),
    };
    Ok(())
}
