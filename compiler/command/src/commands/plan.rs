//! `csdfc plan`: plans an application, checks the plan, prints it, and writes the plan and the front.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use csdfc_emit::footprint::{Footprint, stack};
use csdfc_input::app::resolve::{Application, RowsChoice};
use csdfc_input::app::spec::{RowsSpec, WeightsPlace};
use csdfc_input::device::DeviceProfile;
use csdfc_input::units::MemoryGoal;
use csdfc_network::Network;
use csdfc_network::suggest;
use csdfc_plan::plan::Plan;
use csdfc_planner::driver::{self, Explanation};
use csdfc_planner::explain::{self, primitives, shortfall};
use csdfc_planner::open::{self, Opened};
use csdfc_planner::remedies;
use csdfc_planner::saved::front::{PickError, SavedFront};
use csdfc_planner::saved::identity;
use csdfc_planner::search::budget::Budget;
use csdfc_planner::search::memo::Memo;
use csdfc_planner::search::start::Start;
use csdfc_planner::search::watch::{Scope, Shares, Watch};
use csdfc_precision::{self as precision, Accuracy, Calibration, Chosen};
use tracing::{info, warn};

use super::read::read_text;
use super::{frames, output, status, watcher};
use crate::cli::{Format, PlanArgs};
use crate::error::{Error, Outcome};
use crate::picture::front::FrontPicture;
use crate::report;

/// The file for a plan that our own checker refuses, unless `-o` names a file.
const REFUSED_PLAN: &str = "csdfc-refused-plan.json";

/// The most parts of a saved front for which a warning says why they do not apply.
const MISMATCH_LINES: usize = 4;

/// Random frames on which an error is measured, if neither frames nor their number are given. Large networks have fewer.
const RANDOM_FRAMES: u64 = 4;

/// The most multiply-accumulates of these frames, if there is more than one.
const RANDOM_MACS: u64 = 5_000_000_000;

/// Plans an application.
///
/// # Errors
/// When the application or the front to start from cannot be read or planned, or when a result cannot be written. It is
/// a bug if our checker refuses the plan.
pub fn plan(args: &PlanArgs) -> Result<Outcome, Error> {
    let to_stdout = to_stdout(args)?;
    for file in args.output.iter().chain(&args.front.pareto) {
        output::check(file)?;
    }
    let file = args.output.as_deref().filter(|path| !is_stdout(path));
    let folder = file.and_then(Path::parent).unwrap_or(Path::new(""));
    let chosen = chosen(args, folder, watcher::ctrl_c())?;
    if let Some(why) = &chosen.planned.refused {
        let path = file.unwrap_or(Path::new(REFUSED_PLAN));
        output::write(path, &chosen.planned.plan.to_json())?;
        return Err(Error::Bug(format!("{why}; the plan is saved in {}", path.display())));
    }
    let footprint = report::board::footprint(&chosen.planned.plan, &chosen.device)?;
    let text = unmet(&chosen, footprint.as_ref(), &args.words);
    warn_of(&chosen);
    let Chosen { application, device, planned: driver::Planned { plan, .. }, accuracies, .. } = chosen;
    let lost = precision::explain::errors(&accuracies);
    lost.lines().for_each(|line| info!("{line}"));

    let explanation = match &args.explain {
        None => None,
        Some(layer) => Some(explained(layer, &plan, &application, &device)?),
    };
    save(args, &plan)?;
    // Nothing else may stand where the plan or the front has been printed.
    if !to_stdout {
        output::print(&match (&explanation, args.format) {
            (None, Format::Text) => {
                let board = footprint.as_ref().map(|of| "\n".to_owned() + &report::board::text(&plan, of));
                let left_out = left_out(&application).to_owned() + &unused_memories(&application, &device);
                report::plan::text(&plan) + &board.unwrap_or_default() + &left_out + &lost
            }
            (None, Format::Json) => plan.to_json(),
            (None, Format::Ron) => plan.to_ron(),
            (Some(explanation), Format::Text) => primitives::text(explanation),
            (Some(explanation), Format::Json) => output::json(explanation)?,
            (Some(explanation), Format::Ron) => output::ron(explanation)?,
        })?;
    }
    let Some(text) = text else { return Ok(Outcome::Yes) };
    status::clear();
    // If standard error is closed, nobody reads the message. The exit code says it too.
    let _ = writeln!(std::io::stderr(), "csdfc: {text}");
    Ok(Outcome::No)
}

/// Warns of inputs that the plan does not have, and of workers that the device has no cores for.
pub(crate) fn warn_of(Chosen { application, device, .. }: &Chosen) {
    for cnn in &application.cnns {
        for input in &cnn.model.unused_inputs {
            warn!("no output of {} depends on its input {input}: the plan has no such input", cnn.name);
        }
    }
    let cores = device.processors.values().map(|processor| processor.cores).max().unwrap_or(1);
    if application.threads as u64 > cores {
        warn!(
            "{} workers share each firing, but device {} has {cores} cores",
            application.threads, device.name
        );
    }
}

/// The plan of an application, with all that was chosen for it, and what it would take if constraints are not met. Paths of
/// models in it are relative to `folder`. Once `stop` is true, the search ends with the best plan so far.
///
/// # Errors
/// When the application or the front to start from cannot be read or planned.
pub(crate) fn chosen(args: &PlanArgs, folder: &Path, stop: &AtomicBool) -> Result<Chosen, Error> {
    let saved = args.front.from.as_deref().map(read_front).transpose()?;
    let mut app = open::open_all(&args.app)?;
    let models: Vec<PathBuf> = app.spec.cnns.iter().map(|cnn| app.folder.join(&cnn.model)).collect();
    let read = args.app.iter().map(Path::new).chain(models.iter().map(PathBuf::as_path));
    output::expect_apart(args.output.iter().chain(&args.front.pareto).map(PathBuf::as_path), read)?;
    args.apply(&mut app.spec, &mut app.origin)?;
    if let (Some((saved, _)), Some(_)) = (&saved, args.front.pick) {
        // A picked plan leaves nothing to a method or to the rows of the file.
        (app.spec.search.method, app.spec.rows) = (None, RowsSpec::Default);
        app.spec.storage = Some(args.storage.unwrap_or(saved.storage_model));
    }
    let memo = Memo::default();
    let watch = Watch {
        budget: args.budget.map_or(Budget::Default, Budget::from),
        began: Instant::now(),
        scope: if args.budget.is_some() || args.front.pareto.is_some() { Scope::Front } else { Scope::Plan },
        without: &args.without,
        memo: Some(&memo),
        stop,
        progress: &watcher::show,
    };
    let paths = |application: &Application| {
        application.cnns.iter().map(|cnn| identity::path_from(folder, &cnn.model)).collect()
    };
    let mut chosen = match app.spec.has_auto_precision() {
        true => choose(&app, saved.is_some(), &paths, &watch, &watcher::show_measured),
        false => as_stated(args, &app, saved.as_ref(), &paths, &watch),
    }?;
    if watch.is_stopped() {
        let what = if app.spec.has_auto_precision() { "the choice of precisions" } else { "the search" };
        warn!("interrupted: {what} ended early, and this is the best plan so far");
    }
    if let (Some((saved, _)), Some(number)) = (&saved, args.front.pick) {
        compare(saved, number, &chosen.planned.plan);
    }
    if chosen.planned.shortfall.is_some() && saved.is_none() {
        let target = chosen.device.target.as_deref();
        let another = |application: &Application| {
            let watch = Watch { scope: Scope::Figures, ..watch };
            driver::with_stack(application, &|plan| stack(plan, target), |application| {
                let (start, paths) = (Start::default(), paths(application));
                driver::plan_from(&start, application, &chosen.device, paths, &watch, &driver::validate)
            })
        };
        chosen.planned.plan.constraints.remedies =
            remedies::remedies(&app, &chosen.planned.plan, &chosen.device, &another, &watch)?;
        if watch.is_over() {
            warn!("no time was left to look for more that can be done");
        }
    }
    Ok(chosen)
}

/// What the plan, with this footprint if it is known, misses of what was asked, and what can be reached, by commands that have
/// the `words` of this one; `None` if it misses nothing.
pub(crate) fn unmet(chosen: &Chosen, footprint: Option<&Footprint>, words: &[String]) -> Option<String> {
    let Chosen { planned, accuracies, sufficient, .. } = chosen;
    let Some(nearest) = &planned.shortfall else {
        if !accuracies.iter().all(Accuracy::is_within) {
            let lost = precision::explain::errors(accuracies);
            let text = "the outputs have too large an error with the chosen primitives; plan with --primitives fixed";
            return Some(format!("{text}\n  {}", lost.trim_end()));
        }
        return report::board::lacks(&planned.plan, footprint?).map(|lack| format!("not met: {lack}"));
    };
    let mut lines = vec![shortfall::text(&planned.plan, nearest)];
    if !accuracies.is_empty() {
        lines.push(format!("  {}", precision::explain::sufficient(sufficient.as_deref())));
    }
    lines.extend(
        explain::remedies::text(&planned.plan.constraints.remedies, words).lines().map(str::to_owned),
    );
    Some(lines.join("\n"))
}

/// What the smallest plan leaves out, if `min` is asked for.
fn left_out(application: &Application) -> &'static str {
    let is_min = application.constraints.memory == Some(MemoryGoal::Min);
    match is_min && application.may_be_streamed.is_some() {
        true => "all weights are in memory: --weights streamed takes less of it, and more time\n",
        false => "",
    }
}

/// How to use the memories of a board, if none is named.
fn unused_memories(application: &Application, device: &DeviceProfile) -> String {
    let names: Vec<&str> = device.memories.iter().map(|memory| memory.name.as_str()).collect();
    match names.is_empty() || !application.constraints.memories.is_empty() {
        true => String::new(),
        false => format!(
            "parameters are in RAM here: --ram {} names the memories of device {}, and leaves parameters in flash\n",
            names.join(","),
            device.name
        ),
    }
}

/// Plans an application whose precisions are stated.
fn as_stated(
    args: &PlanArgs,
    app: &Opened,
    saved: Option<&(SavedFront, String)>,
    paths: &dyn Fn(&Application) -> Vec<String>,
    watch: &Watch<'_>,
) -> Result<Chosen, Error> {
    let mut application = app.resolve()?;
    if let (Some((saved, _)), Some(number)) = (saved, args.front.pick) {
        application = saved.application_for(number, application);
        let contradicted = match application.streamed {
            Some(_) => WeightsPlace::Resident,
            None => WeightsPlace::Streamed,
        };
        if args.weights == Some(contradicted) {
            warn!("--weights has no effect: weights are where those of plan {number} are");
        }
    }
    let device = DeviceProfile::find(&application.device, &app.folder)?;
    let start = match saved {
        None => Start::default(),
        Some((saved, name)) => start(saved, name, args.front.pick, &application)?,
    };
    let target = device.target.as_deref();
    let planned = driver::with_stack(&application, &|plan| stack(plan, target), |application| {
        driver::plan_from(&start, application, &device, paths(application), watch, &driver::validate)
    })?;
    Ok(Chosen { application, device, planned, accuracies: Vec::new(), sufficient: None })
}

/// Plans an application with precisions that csdfc is to choose.
fn choose(
    app: &Opened,
    is_from_front: bool,
    paths: &dyn Fn(&Application) -> Vec<String>,
    watch: &Watch<'_>,
    tell: &dyn Fn(&precision::Progress<'_>),
) -> Result<Chosen, Error> {
    if is_from_front {
        return Err(Error::Input {
            message: "--from needs stated precisions, since precision auto may choose other layers than the front has"
                .into(),
            help: Some("leave out --from, or state a precision".into()),
        });
    }
    let frames = |cnn: usize, network: &Network| {
        let accuracy = &app.spec.cnns[cnn].accuracy;
        let files: Vec<PathBuf> = accuracy.calibrate.iter().map(|path| app.folder.join(path)).collect();
        let few = || (RANDOM_MACS / network.macs().max(1)).clamp(1, RANDOM_FRAMES);
        let count = accuracy.random.unwrap_or_else(few);
        let is_random = files.is_empty();
        let frames = match is_random {
            true => frames::random(network, count, app.spec.search.seed),
            false => frames::read(network, &files)?,
        };
        Ok(Calibration { frames, is_random })
    };
    let shares = Shares::new(watch, precision::PLANS);
    let plan = |application: &Application, device: &DeviceProfile| {
        let (watch, target) = (shares.next(), device.target.as_deref());
        driver::with_stack(application, &|plan| stack(plan, target), |application| {
            let paths = paths(application);
            driver::plan_from(&Start::default(), application, device, paths, &watch, &driver::validate)
        })
    };
    Ok(precision::plan(app, &frames, &plan, watch, tell)?)
}

/// Explains the primitive of `[CNN/]LAYER`. The names of layers may have slashes too.
fn explained(
    name: &str,
    plan: &Plan,
    application: &Application,
    device: &DeviceProfile,
) -> Result<Explanation, Error> {
    let mut meant = Vec::new();
    for cnn in &plan.cnns {
        let of_cnn = name.strip_prefix(cnn.name.as_str()).and_then(|rest| rest.strip_prefix('/'));
        meant.extend([Some(name), of_cnn].into_iter().flatten().map(|layer| (cnn, layer)));
    }
    let mut found = Vec::new();
    for (cnn, layer) in meant {
        found.extend(driver::explain(plan, application, device, &cnn.name, layer)?);
    }
    let help = match found.as_slice() {
        [_] => return Ok(found.remove(0)),
        [] => {
            let layers = plan.cnns.iter().flat_map(|cnn| {
                let layers = cnn.layers.iter().filter(|layer| !layer.inputs.is_empty());
                layers.map(|layer| layer.name.as_str())
            });
            suggest::help(name, "the layers are", layers)
        }
        several => {
            let names: Vec<String> = several.iter().map(|one| format!("{}/{}", one.cnn, one.layer)).collect();
            format!("say which: {}", names.join(", "))
        }
    };
    let message = match found.len() {
        0 => format!("--explain: the plan has no layer `{}` that is computed", suggest::clip(name)),
        _ => format!("--explain: several CNNs have a layer `{}`", suggest::clip(name)),
    };
    Err(Error::Input { message, help: Some(help) })
}

fn is_stdout(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// Whether the plan or the front goes to standard output instead of the table.
fn to_stdout(args: &PlanArgs) -> Result<bool, Error> {
    let files = [&args.output, &args.front.pareto].into_iter().flatten();
    match files.filter(|path| is_stdout(path)).count() {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(Error::Input {
            message: "--output and --pareto both go to standard output".into(),
            help: Some("give one of them a file".into()),
        }),
    }
}

/// Writes the plan and the front to the files that are named for them.
fn save(args: &PlanArgs, plan: &Plan) -> Result<(), Error> {
    if let Some(path) = &args.output {
        write(path, plan)?;
    }
    match args.front.pareto.as_deref() {
        Some(path) if path.extension().is_some_and(|extension| extension == "svg") => {
            output::write(path, &picture(plan).svg())?;
        }
        Some(path) => output::write(path, &output::json(&SavedFront::new(plan))?)?,
        None => {}
    }
    Ok(())
}

/// Writes a plan: RON if the name ends in `.ron`, JSON otherwise.
pub(crate) fn write(path: &Path, plan: &Plan) -> Result<(), Error> {
    let is_ron = path.extension().is_some_and(|extension| extension == "ron");
    Ok(output::write(path, &if is_ron { plan.to_ron() } else { plan.to_json() })?)
}

/// A saved front and the name of its file.
fn read_front(path: &Path) -> Result<(SavedFront, String), Error> {
    let (text, name) = read_text(path, "give a front that `csdfc plan --pareto FILE.json` wrote, or a plan")?;
    let name = name.display().to_string();
    Ok((SavedFront::parse(&text, &name)?, name))
}

/// Where a search starts, or the plan that is picked. Warns of old plans that do not apply.
fn start(
    saved: &SavedFront,
    name: &str,
    pick: Option<usize>,
    application: &Application,
) -> Result<Start, Error> {
    if let Some(number) = pick {
        return saved.pick(number, application).map(Start::Picked).map_err(|error| Error::Input {
            help: Some(match error {
                PickError::Number { .. } => "give the number of a plan as `csdfc plan` lists it".into(),
                _ => "plan the application again, with --from and without --pick".into(),
            }),
            message: format!("{name}: {error}"),
        });
    }
    let method = application.search.method.unwrap_or_default();
    if application.rows != RowsChoice::Default || !method.is_search() {
        warn!("{name} has no effect: with the given rows or method there is nothing to search");
    }
    let (known, mismatches) = saved.choices_for(application);
    for mismatch in mismatches.iter().take(MISMATCH_LINES) {
        warn!("{name}: {mismatch}; the search starts without this entry");
    }
    if mismatches.len() > MISMATCH_LINES {
        warn!("{name}: {} more entries do not apply", mismatches.len() - MISMATCH_LINES);
    }
    Ok(Start::Search(known))
}

/// Warns if the figures of a picked plan differ from the saved ones, for instance on another device.
fn compare(saved: &SavedFront, number: usize, plan: &Plan) {
    let Some(point) = number.checked_sub(1).and_then(|index| saved.pareto.get(index)) else { return };
    if point.memory != plan.memory.total {
        warn!(
            "plan {number} took {} bytes when it was saved, and now takes {}",
            point.memory, plan.memory.total
        );
    }
    for cnn in &plan.cnns {
        let then = point.fps.get(&cnn.name).copied().unwrap_or(0.0);
        // A file keeps a number with slightly less precision.
        if (then - cnn.fps).abs() > 1e-9 * then.abs() {
            warn!(
                "{} had {then:.1} fps on device {} when plan {number} was saved, and now has {:.1} on {}",
                cnn.name, saved.device.name, cnn.fps, plan.device.name
            );
        }
    }
}

/// The front of a plan as a chart.
fn picture(plan: &Plan) -> FrontPicture {
    let panel = |name: &String| {
        let point = |point: &csdfc_plan::plan::ParetoPoint| {
            [point.memory as f64, point.fps.get(name).copied().unwrap_or(0.0)]
        };
        (name.clone(), plan.pareto.iter().map(point).collect())
    };
    FrontPicture {
        title: format!(
            "{}: the plans seen, storage model {}, device {}",
            plan.application, plan.storage_model, plan.device.name
        ),
        panels: plan.cnns.iter().map(|cnn| panel(&cnn.name)).collect(),
        chosen: plan.cnns.iter().map(|cnn| [plan.memory.total as f64, cnn.fps]).collect(),
        limit: plan.constraints.memory.map(|bytes| bytes as f64),
    }
}
