//! `csdfc select`: primitives and layouts for the layers of a CNN, or of a bare table of costs.

use std::path::{Path, PathBuf};

use csdfc_input::app::resolve::{Application, Cnn, RowsChoice};
use csdfc_input::app::spec::Primitives;
use csdfc_input::device::DeviceProfile;
use csdfc_network::suggest;
use csdfc_plan::plan::{Plan, StorageModel};
use csdfc_planner::driver;
use csdfc_planner::open;
use csdfc_planner::saved::identity;
use csdfc_planner::search::start::Start;
use csdfc_planner::search::watch::Watch;
use csdfc_planner::selection::{CostTable, Modelled, cost_table};
use csdfc_select::stop::Stop;
use csdfc_select::{
    Answer, Instance, InstanceError, Method, Problem, ProgramError, Quantity, Query, answer, front,
};
use serde::Serialize;

use super::{output, read, watcher};
use crate::cli::Format;
use crate::cli::select::SelectArgs;
use crate::error::{Error, Outcome};
use crate::report::select as report;

/// Bytes of a KiB, in which instances state memories.
const KIB: f64 = 1024.0;

/// Nanoseconds of a microsecond, in which instances state times.
const MICROSECOND: f64 = 1000.0;

/// Selects primitives for a network, and prints the selection. Ctrl-C ends the search with the best selection so far. The
/// answer is no if no selection keeps to a budget, or layouts cannot be converted.
///
/// # Errors
/// When the application or the instance cannot be read or contradicts itself, or the result cannot be written.
pub fn select(args: &SelectArgs) -> Result<Outcome, Error> {
    if args.method == Method::Greedy && args.objective != Quantity::Time {
        return Err(Error::Input {
            message: "--method greedy replaces primitives of the time optimum: it minimises nothing but time"
                .into(),
            help: Some("leave --objective out, and give --mem or --workspace".into()),
        });
    }
    let written = args.output.iter().chain(&args.plan_out).chain(&args.instance_out).map(PathBuf::as_path);
    output::expect_apart(written, args.app.iter().map(Path::new).chain(args.instance.as_deref()))?;
    let (table, target, name) = match (&args.app, &args.instance) {
        (Some(app), _) => {
            let target = target(args, app)?;
            let SelectionTarget { application, cnn, device } = &target;
            (cost_table(application, &application.cnns[*cnn], device)?, Some(target), app.clone())
        }
        (None, Some(file)) => {
            let (text, name) = read::read_text(file, "give an instance in JSON")?;
            let name = name.display().to_string();
            let instance = Instance::parse(&text).map_err(|error| wrong(&name, &error))?;
            (CostTable { instance, modelled: Modelled::default() }, None, name)
        }
        (None, None) => return Err(Error::Bug("neither an application nor a table of costs".into())),
    };
    if let Some(path) = &args.instance_out {
        let json = table.instance.to_json().map_err(|error| wrong(&name, &error))?;
        output::write(path, &json)?;
        return Ok(Outcome::Yes);
    }
    let instance = &table.instance;
    let stop = watcher::ctrl_c();
    let problem = Problem::new(instance, args.pass_converts).map_err(|error| wrong(&name, &error))?;
    let problem = problem.stopped_by(Stop::by(stop));
    let query = query(args, instance);
    let _span = tracing::info_span!("select").entered();
    if args.front {
        match front(&problem, &query) {
            Ok(front) => {
                let mut report = report::FrontReport::new(&problem, &query, &front);
                report.modelled = table.modelled;
                write_result(args, &report, report::front_text)?;
                return Ok(Outcome::Yes);
            }
            Err(why) => return report_answer(args, &problem, &query, &why, table.modelled),
        }
    }
    let answer = match query.method {
        Method::Program => {
            // The solver knows nothing of Ctrl-C, and has nothing before its end.
            let (instance, name, pass_converts) = (instance.clone(), name.clone(), args.pass_converts);
            watcher::unless_stopped(stop, move || {
                let problem = Problem::new(&instance, pass_converts).map_err(|error| wrong(&name, &error))?;
                answer(&problem, &query).map_err(program_failed)
            })?
        }
        _ => answer(&problem, &query).map_err(program_failed)?,
    };
    if let (Some(path), Some(target), Answer::Met(chosen)) = (&args.plan_out, target, &answer) {
        let cnn = &target.application.cnns[target.cnn];
        let selected = table.selected(cnn, &problem, &chosen.selection).cnn;
        output::write(path, &planned(target, selected, path)?.to_json())?;
    }
    report_answer(args, &problem, &query, &answer, table.modelled)
}

fn program_failed(error: ProgramError) -> Error {
    match error {
        ProgramError::Infeasible => {
            Error::Bug("the exact method finds what the integer program denies".into())
        }
        other => Error::Input {
            message: other.to_string(),
            help: Some("`--method exact` needs no integer program".into()),
        },
    }
}

fn wrong(name: &str, error: &InstanceError) -> Error {
    Error::Input { message: format!("{name}: {error}"), help: Some(error.help().into()) }
}

/// The CNN whose primitives are selected.
struct SelectionTarget {
    application: Application,
    /// Which of its CNNs.
    cnn: usize,
    device: DeviceProfile,
}

/// The plan of an application whose CNN has the primitives of a selection, and conversions. Each layer fires once, as
/// selections assume. The plan is in storage model `tensors`, in which layouts may change.
fn planned(target: SelectionTarget, selected: Cnn, path: &Path) -> Result<Plan, Error> {
    let SelectionTarget { mut application, cnn, device } = target;
    application.cnns[cnn] = selected;
    let application = Application {
        rows: RowsChoice::None,
        storage: StorageModel::Tensors,
        primitives: Primitives::Fixed,
        streamed: None,
        may_be_streamed: None,
        ..application
    };
    let folder = path.parent().unwrap_or(Path::new(""));
    let models = application.cnns.iter().map(|cnn| identity::path_from(folder, &cnn.model)).collect();
    let watch = Watch::unwatched();
    let planned =
        driver::plan_from(&Start::default(), &application, &device, models, &watch, &driver::validate)?;
    match planned.refused {
        Some(why) => Err(Error::Bug(why.to_string())),
        None => Ok(planned.plan),
    }
}

/// The application, its device, and the CNN that the arguments name.
fn target(args: &SelectArgs, app: &str) -> Result<SelectionTarget, Error> {
    let mut opened = open::open(app)?;
    args.apply(&mut opened.spec, &mut opened.origin)?;
    let application = opened.resolve()?;
    let device = DeviceProfile::find(&application.device, &opened.folder)?;
    let names = || application.cnns.iter().map(|cnn| cnn.name.as_str());
    let cnn = match (&args.cnn, application.cnns.as_slice()) {
        (None, [_]) => 0,
        (None, _) => {
            return Err(Error::Input {
                message: "the application has several CNNs, but csdfc selects primitives for one CNN".into(),
                help: Some(format!("name it with --cnn: {}", names().collect::<Vec<_>>().join(", "))),
            });
        }
        (Some(name), cnns) => {
            let place = cnns.iter().position(|cnn| cnn.name == *name);
            place.ok_or_else(|| Error::Input {
                message: format!("--cnn: the application has no CNN `{}`", suggest::clip(name)),
                help: Some(suggest::help(name, "its CNNs", names())),
            })?
        }
    };
    Ok(SelectionTarget { application, cnn, device })
}

/// The query of the arguments and the instance.
fn query(args: &SelectArgs, instance: &Instance) -> Query {
    let kib = |bytes: u64| bytes as f64 / KIB;
    let is_time = args.objective == Quantity::Time;
    Query {
        minimise: args.objective,
        time: args
            .max_time
            .map(|time| time.0 as f64 / MICROSECOND)
            .or(instance.time_budget.filter(|_| !is_time)),
        memory: args.mem.map(kib).or(instance.memory_budget.filter(|_| is_time)),
        workspace: args.workspace.map(kib),
        method: args.method,
    }
}

fn report_answer(
    args: &SelectArgs,
    problem: &Problem<'_>,
    query: &Query,
    answer: &Answer,
    modelled: Modelled,
) -> Result<Outcome, Error> {
    let mut report = report::SelectReport::new(problem, query, answer);
    report.modelled = modelled;
    write_result(args, &report, |report| report::text(problem, report))?;
    Ok(if report.met { Outcome::Yes } else { Outcome::No })
}

/// Writes and prints a result.
fn write_result<R: Serialize>(
    args: &SelectArgs,
    report: &R,
    text: impl Fn(&R) -> String,
) -> Result<(), Error> {
    if let Some(path) = &args.output {
        let is_ron = path.extension().is_some_and(|end| end == "ron");
        output::write(path, &if is_ron { output::ron(report)? } else { output::json(report)? })?;
    }
    // Nothing else may stand where the result or the plan has been printed.
    if [&args.output, &args.plan_out].into_iter().flatten().any(|path| path == Path::new("-")) {
        return Ok(());
    }
    let printed = match args.format {
        Format::Text => text(report),
        Format::Json => output::json(report)?,
        Format::Ron => output::ron(report)?,
    };
    Ok(output::print(&printed)?)
}
