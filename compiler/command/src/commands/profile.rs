//! `csdfc profile`: measures this machine with the layers of an application.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

use csdfc_emit::{Options, module_name};
use csdfc_input::app::resolve::Application;
use csdfc_input::device::{DeviceProfile, HOST, Origin, Processor, host_path};
use csdfc_network::Network;
use csdfc_plan::plan::Plan;
use csdfc_planner::open;
use csdfc_planner::profile::{self, Progress, Request, machine};
use tracing::info;

use super::{output, status, watcher};
use crate::cli::Format;
use crate::cli::profile::ProfileArgs;
use crate::error::{Error, Outcome};
use crate::report;

/// The processor of partitions, unless their application names another.
const CPU: &str = "cpu";
/// How often the file is written while csdfc measures.
const SAVED_EVERY: Duration = Duration::from_secs(10);

/// Measures the layers of an application, and writes what it finds into a device profile.
///
/// # Errors
/// When the application or the profile cannot be read, a layer cannot be run, or the profile cannot be written.
pub fn profile(args: &ProfileArgs) -> Result<Outcome, Error> {
    if let Some(folder) = &args.emit {
        let (application, request) = asked(args)?;
        return emit(&application, &request, folder);
    }
    let Measured { application, profile, path, reading, is_complete } = measured(args, watcher::ctrl_c())?;
    info!(file = %path.display(), "saved");
    let cpu: &Processor = profile.processor(CPU)?;
    output::print(&match args.format {
        Format::Text => report::profile::text(&application, cpu, &profile, &path, reading.as_ref()),
        Format::Json => output::json(&profile)?,
        Format::Ron => output::ron(&profile)?,
    })?;
    Ok(if is_complete { Outcome::Yes } else { Outcome::No })
}

/// What was measured, and where it is saved.
pub(crate) struct Measured {
    application: Application,
    /// The profile, with what was measured before.
    pub profile: DeviceProfile,
    /// Its file.
    pub path: PathBuf,
    reading: Option<profile::Reading>,
    /// Whether nothing was left out.
    pub is_complete: bool,
}

/// The application whose layers are to be measured, and how.
fn asked(args: &ProfileArgs) -> Result<(Application, Request), Error> {
    let mut app = open::open(&args.app)?;
    args.load.apply(&mut app.spec, &mut app.origin)?;
    if let Some(threads) = args.threads {
        app.spec.threads = threads;
        app.origin.replaced.push(("threads", "--threads"));
    }
    let application = app.resolve()?;
    let request =
        Request { threads: application.threads, rounds: usize::from(args.rounds), only: args.only.clone() };
    Ok((application, request))
}

/// Measures the layers of an application on this machine, and saves what it finds in a device profile. Once `stop` is
/// true, what has been measured so far is saved.
///
/// # Errors
/// As [`profile`].
pub(crate) fn measured(args: &ProfileArgs, stop: &AtomicBool) -> Result<Measured, Error> {
    let (application, request) = asked(args)?;
    let path = file(args)?;
    let processor = machine::processor_name().unwrap_or_else(|| "an unknown processor".into());
    let mut found = starting_profile(&path, &processor)?;
    let networks: Vec<&Network> = application.cnns.iter().map(|cnn| &cnn.network).collect();

    let reading = args.store.as_deref().map(profile::store).transpose()?;
    if let Some(reading) = &reading {
        found.store = Some(reading.store.clone());
    }
    let caches = machine::caches();
    let mut is_stopped = false;
    for (c, cnn) in application.cnns.iter().enumerate() {
        let (begun, mut saved) = (Instant::now(), Instant::now());
        let mut measured = found.processors.get(CPU).map(|cpu| cpu.measured.clone()).unwrap_or_default();
        let mut tell = |progress: Progress, known: &[_]| {
            status::show(&line(&cnn.name, progress, begun.elapsed()));
            if saved.elapsed() > SAVED_EVERY {
                saved = Instant::now();
                if let Some(cpu) = found.processors.get_mut(CPU) {
                    cpu.measured = known.to_vec();
                }
                output::write_file(&path, output::ron(&found)?.as_bytes())?;
            }
            is_stopped = stop.load(Ordering::Relaxed);
            Ok(!is_stopped)
        };
        profile::measure(&application, c, &request, &mut measured, &mut tell)?;
        let like = found.processor(CPU)?.clone();
        let cpu = profile::processor(&networks, measured, &caches, &like);
        found.processors.insert(CPU.into(), cpu);
        if is_stopped {
            break;
        }
    }

    let date = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
    let version = env!("CARGO_PKG_VERSION").into();
    found.origin = Some(Origin { csdfc: version, date, cache_bytes: caches });
    output::write_file(&path, output::ron(&found)?.as_bytes())?;
    Ok(Measured { application, profile: found, path, reading, is_complete: !is_stopped })
}

/// Writes the crate that measures a board.
fn emit(application: &Application, request: &Request, folder: &Path) -> Result<Outcome, Error> {
    let generic = DeviceProfile::find("generic", Path::new(""))?;
    let like = (generic.processor(CPU)?, generic.store.as_ref());
    let name = format!("profile-{}", module_name(&application.name).replace('_', "-"));
    let profile::Board { plans, files } = profile::board(application, request, like, &name)?;
    let plans: Vec<&Plan> = plans.iter().collect();
    let code = csdfc_emit::emit_trials(&plans, &Options { crate_name: Some(name), ..Options::default() })?;
    let files = csdfc_emit::listed(code.into_iter().chain(files).collect());
    super::emit::write_crate(folder, &files)?;
    info!(folder = %folder.display(), files = files.len(), "emitted");
    Ok(Outcome::Yes)
}

/// The file of the profile.
fn file(args: &ProfileArgs) -> Result<PathBuf, Error> {
    args.device_out.clone().or_else(host_path).ok_or_else(|| Error::Input {
        message: "there is no place for this machine's device profile: neither XDG_DATA_HOME nor HOME is set"
            .into(),
        help: Some("name a file with --device-out FILE.ron".into()),
    })
}

/// The profile with which the measurement begins: the content of the file, or the profile of a machine of which nothing
/// is known.
fn starting_profile(path: &Path, processor: &str) -> Result<DeviceProfile, Error> {
    let generic = DeviceProfile::find("generic", Path::new(""))?;
    let basis = DeviceProfile::basis_of(processor);
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let name = path.file_stem().map_or(HOST.into(), |stem| stem.to_string_lossy().into_owned());
            let processors = generic.processors.into_iter().filter(|(name, _)| name == CPU).collect();
            return Ok(DeviceProfile { name, basis, processors, ..generic });
        }
        Err(error) => return Err(Error::read(path, error)),
    };
    let known = DeviceProfile::parse(&text, &path.display().to_string())?;
    if known.basis != basis || !known.processors.contains_key(CPU) {
        return Err(Error::Input {
            message: format!(
                "{} is a profile {}, and this machine has {processor}",
                path.display(),
                if known.basis.is_empty() { "of no machine" } else { &known.basis }
            ),
            help: Some("remove it, or name another file with --device-out".into()),
        });
    }
    Ok(known)
}

/// A line on the progress of a measurement, and the time that it has taken so far.
fn line(cnn: &str, progress: Progress, elapsed: Duration) -> String {
    let Progress { done, left } = progress;
    let seconds = elapsed.as_secs_f64() * left as f64 / done.max(1) as f64;
    format!("{cnn}: {done} measurements done, {left} to go, {} s at most", seconds.ceil())
}
