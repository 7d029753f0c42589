//! `csdfc offload`: maps a layer, or every convolution of a model, onto an accelerator that computes it in steps.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use csdfc_input::app::resolve::Cnn;
use csdfc_network::suggest;
use csdfc_offload::files::{self, FORMS, Form};
use csdfc_offload::model::{self as mapping, NamedLayer, convolutions};
use csdfc_offload::optimise::{self, Answer, Budget, Effort};
use csdfc_offload::problem::Options;
use csdfc_offload::shapes::{self, HEURISTICS};
use csdfc_offload::simulate::{Data, Rules, Trace, convolve, simulate};
use csdfc_offload::steps::Computation;
use csdfc_offload::{Accelerator, Convolution, OffloadError, Problem, Spec, Strategy, Unit, bound, program};
use csdfc_planner::open;
use csdfc_planner::search::budget::Budget as SearchBudget;
use csdfc_planner::search::watch::Watch;

use super::{output, watcher};
use crate::cli::Format;
use crate::cli::offload::OffloadArgs;
use crate::error::{Error, Outcome};
use crate::picture::strategy;
use crate::report::offload::{self as report, LayerReport, ModelReport};

/// Strategies that are no heuristics.
const METHODS: [&str; 3] = ["best", "exact", "program"];

/// Largest file of an accelerator, in bytes.
const MAX_FILE: u64 = 1 << 20;

/// Maximum number of results of a layer that is replayed.
const MAX_RESULTS: u64 = 1 << 26;

/// Maximum number of multiply-accumulates of a layer that is computed.
const MAX_MACS: u64 = 1 << 33;

/// A layer with at most this many pixels, summed over its patches, is always replayed.
const ALWAYS_REPLAYED: u64 = 1 << 20;

/// Offloads the layer or model that the arguments name.
///
/// # Errors
/// When a file cannot be read or written, or the layer cannot be offloaded at all.
pub fn offload(args: &OffloadArgs) -> Result<Outcome, Error> {
    let written = args.output.iter().chain(&args.trace).chain(&args.picture).map(PathBuf::as_path);
    output::expect_apart(
        written,
        args.app.iter().map(Path::new).chain(args.accelerator.accelerator.as_deref()),
    )?;
    let accelerator = accelerator(args)?;
    if args.group.is_none() && accelerator.pe.is_none() {
        return Err(Error::Input {
            message: "the number of patches that a step computes is missing".into(),
            help: Some("give --group, or --pe for the multiply-accumulates of a step".into()),
        });
    }
    match &args.app {
        None => layer(args, accelerator),
        Some(app) => model(args, app, accelerator),
    }
}

/// Maps every convolution of an application.
fn model(args: &OffloadArgs, app: &str, accelerator: Accelerator) -> Result<Outcome, Error> {
    if args.strategy != "best" {
        return Err(Error::Input {
            message: "--strategy is for one layer: csdfc takes the best for each layer of a model".into(),
            help: Some("leave it out, or give a layer by --input and --filter".into()),
        });
    }
    let mut app = open::open(app)?;
    args.load.apply(&mut app.spec, &mut app.origin)?;
    let application = app.resolve()?;
    let options = options(args, Unit::Elements);
    let mut report = ModelReport::new(&application.name, &accelerator.name, options.unit);
    let budget = args.budget.map_or(SearchBudget::Default, SearchBudget::from);
    let watch = Watch { budget, stop: watcher::ctrl_c(), ..Watch::unwatched() };
    let of_cnn =
        |cnn: &Cnn| convolutions(&cnn.network).into_iter().map(|named| (cnn.name.clone(), named)).collect();
    let layers: Vec<(String, NamedLayer)> = application.cnns.iter().flat_map::<Vec<_>, _>(of_cnn).collect();
    for (done, (cnn, named)) in layers.iter().enumerate() {
        // Each layer has an equal share of the time that the ones before have left. After Ctrl-C, the rest have their best
        // heuristic.
        let budget = match watch.share(layers.len() - done).budget {
            _ if watch.is_stopped() => Budget::Work(1),
            SearchBudget::Default => mapping::BUDGET,
            SearchBudget::Evaluations(steps) => Budget::Work(steps),
            SearchBudget::Time(time) => Budget::Time(time),
        };
        let effort = Effort { budget, stop: Some(watch.stop) };
        match mapping::map(&named.spec, &accelerator, &options, effort, args.seed) {
            Ok((problem, answer)) => report.add(cnn, &named.name, LayerReport::new(&problem, &answer)),
            Err(error) => report.fail(cnn, &named.name, &error),
        }
        tracing::info!(cnn, layer = named.name, "mapped");
    }
    if watch.is_stopped() {
        tracing::warn!("interrupted: layers that were still to come have their best heuristic");
    }
    output::print(&match args.format {
        Format::Text => report::model_text(&report),
        Format::Json => output::json(&report)?,
        Format::Ron => output::ron(&report)?,
    })?;
    Ok(if report.met { Outcome::Yes } else { Outcome::No })
}

fn options(args: &OffloadArgs, unit: Unit) -> Options {
    Options {
        group: args.group,
        filters_at_once: args.filters_at_once,
        reload: args.reload,
        unit: args.count.unit.unwrap_or(unit),
        count_writes: args.count.count_writes,
    }
}

fn layer(args: &OffloadArgs, accelerator: Accelerator) -> Result<Outcome, Error> {
    let (Some(input), Some(filter)) = (args.input, args.filter) else {
        return Err(Error::Bug("a layer without sizes passed the command line".into()));
    };
    let spec = Spec {
        pads: args.pad,
        stride: args.stride,
        ..Spec::new(input.plane, input.depth, filter.plane, filter.depth)
    };
    let convolution = Convolution::new(spec)?;
    let problem = Problem::new(convolution, accelerator, &options(args, Unit::Pixels))?;
    let stop = watcher::ctrl_c();
    let budget = args.budget.map_or(Budget::Default, Budget::from);
    let answer = by_name(&problem, &args.strategy, Effort { budget, stop: Some(stop) }, args.seed)?;
    let mut report = LayerReport::new(&problem, &answer);
    let replayed = replay_unless_stopped(args, &problem, &answer, report.met, stop)?;
    if let Some(Replayed { violation, simulated, .. }) = &replayed {
        (report.violation, report.simulated) = (violation.clone(), *simulated);
    }
    if let Some(path) = &args.output {
        output::write(path, &files::print(&answer.strategy.groups, form(path)?)?)?;
    }
    if let (Some(path), Some(trace)) = (&args.trace, replayed.and_then(|replayed| replayed.trace)) {
        output::write(path, &output::json(&trace)?)?;
    }
    if let Some(path) = &args.picture {
        let picture = match path.extension().and_then(|end| end.to_str()) {
            Some("svg") => strategy::steps(&problem, &answer.strategy),
            Some("html") => strategy::player(&problem, &answer.strategy),
            _ => {
                return Err(Error::Input {
                    message: format!("{}: a picture's name ends in .svg or .html", path.display()),
                    help: None,
                });
            }
        };
        output::write(path, &picture)?;
    }
    output::print(&match args.format {
        Format::Text => report::layer_text(&problem, &report),
        Format::Json => output::json(&report)?,
        Format::Ron => output::ron(&report)?,
    })?;
    Ok(if report.met { Outcome::Yes } else { Outcome::No })
}

/// [`replay`], which Ctrl-C ends. After a search that it has cut short, only what takes no time is replayed.
fn replay_unless_stopped(
    args: &OffloadArgs,
    problem: &Problem,
    answer: &Answer,
    met: bool,
    stop: &AtomicBool,
) -> Result<Option<Replayed>, Error> {
    if stop.load(Ordering::Relaxed) && !args.simulate && args.trace.is_none() {
        return replay(args, problem, answer, met);
    }
    let (args, problem, answer) = (args.clone(), problem.clone(), answer.clone());
    match watcher::unless_stopped(stop, move || replay(&args, &problem, &answer, met)) {
        Err(Error::Interrupted) => {
            tracing::warn!("interrupted: the strategy was not replayed");
            Ok(None)
        }
        replayed => replayed,
    }
}

/// The result of the simulator for a strategy.
struct Replayed {
    trace: Option<Trace>,
    violation: Option<String>,
    /// Whether it computed on data, and its results are those of the direct convolution.
    simulated: bool,
}

/// Replays a strategy in the simulator, on data if asked to. A large layer is replayed only if asked to.
fn replay(
    args: &OffloadArgs,
    problem: &Problem,
    answer: &Answer,
    met: bool,
) -> Result<Option<Replayed>, Error> {
    let convolution = &problem.convolution;
    let spec = convolution.spec();
    let asked = args.simulate || args.trace.is_some();
    let patches = convolution.patches() as u64;
    let macs = convolution.macs_per_patch(spec.filters).saturating_mul(patches);
    let results = patches * spec.filters as u64;
    let too_large = results > MAX_RESULTS || args.simulate && macs > MAX_MACS;
    if asked && too_large {
        return Err(Error::Input {
            message: format!(
                "the layer is too large to simulate: {results} results, {macs} multiply-accumulates"
            ),
            help: Some(format!(
                "csdfc simulates at most {MAX_RESULTS} results and {MAX_MACS} multiply-accumulates"
            )),
        });
    }
    if too_large || !asked && patches * convolution.pixels_per_patch() as u64 > ALWAYS_REPLAYED {
        return Ok(None);
    }
    let computation = Computation::new(problem, &answer.strategy.groups);
    let data = args.simulate.then(|| Data::random(convolution, args.seed));
    match simulate(convolution, &Rules::new(problem), &computation, data.as_ref()) {
        Ok((trace, results)) => {
            if data.as_ref().is_some_and(|data| convolve(convolution, data) != results) {
                return Err(Error::Bug("a strategy's results are not those of the convolution".into()));
            }
            Ok(Some(Replayed { trace: Some(trace), violation: None, simulated: data.is_some() }))
        }
        Err(violation) if met => {
            Err(Error::Bug(format!("csdfc's own simulator refuses its strategy: {violation}")))
        }
        Err(violation) => {
            Ok(Some(Replayed { trace: None, violation: Some(violation.to_string()), simulated: false }))
        }
    }
}

/// The strategy that `--strategy` names. If no strategy of that kind keeps the bounds, the nearest one.
fn by_name(problem: &Problem, name: &str, effort: Effort<'_>, seed: u64) -> Result<Answer, Error> {
    match name {
        "best" => match optimise::optimise(problem, effort, seed) {
            Err(OffloadError::Unmet { .. }) => return Ok(heuristic(problem, optimise::nearest(problem))),
            answer => return Ok(answer?),
        },
        "exact" => return Ok(optimise::prove(problem, effort)?),
        "program" => {
            let patches = problem.convolution.patches();
            if (program::SOLVED_PATCHES + 1..=program::MAX_PATCHES).contains(&patches) {
                tracing::warn!(
                    "the integer program may not end in time for more than {} patches, and this layer has {patches}: \
                     `--strategy exact` proves optima of larger layers",
                    program::SOLVED_PATCHES
                );
            }
            return Ok(optimise::by_program(problem, effort)?);
        }
        _ => {}
    }
    if let Some((_, kind)) = HEURISTICS.iter().find(|(known, _)| *known == name) {
        let strategy = shapes::best_until(problem, *kind, effort.stop)
            .unwrap_or_else(|_| shapes::unbounded(problem, *kind));
        return Ok(heuristic(problem, strategy));
    }
    let path = Path::new(name);
    if let Ok(form) = form(path) {
        let in_file = |error: OffloadError| Error::Input {
            message: format!("{name}: {error}"),
            help: Some("a strategy's file lists the patches of every step, each patch once".into()),
        };
        let groups = files::parse(&read(path)?, form, problem).map_err(in_file)?;
        let (rules, computation) = (Rules::new(problem), Computation::new(problem, &groups));
        simulate(&problem.convolution, &rules, &computation, None)
            .map_err(|violation| in_file(violation.into()))?;
        let strategy = Strategy { name: "file".into(), shape: None, groups };
        return Ok(heuristic(problem, strategy));
    }
    let names = HEURISTICS.iter().map(|(name, _)| *name).chain(METHODS);
    Err(Error::Input {
        message: format!("there is no strategy `{}`", suggest::clip(name)),
        help: Some(
            suggest::help(name, "strategies", names) + "; or give the file of a strategy (.json, .ron, .csv)",
        ),
    })
}

fn heuristic(problem: &Problem, strategy: Strategy) -> Answer {
    Answer { strategy, bound: bound::lower_bound(problem), stopped: None }
}

/// The form of a strategy's file, by its name.
fn form(path: &Path) -> Result<Form, Error> {
    let end = path.extension().and_then(|end| end.to_str());
    let form = FORMS.iter().find(|(known, _)| Some(*known) == end).map(|(_, form)| *form);
    form.ok_or_else(|| Error::Input {
        message: format!("{}: a strategy's file ends in .json, .ron or .csv", path.display()),
        help: None,
    })
}

/// The accelerator of the file, if one is given, changed by the options.
fn accelerator(args: &OffloadArgs) -> Result<Accelerator, Error> {
    let args = &args.accelerator;
    let mut accelerator = match &args.accelerator {
        None => Accelerator::default(),
        Some(path) => Accelerator::parse(&read(path)?).map_err(|error| Error::Input {
            message: format!("{}: {error}", path.display()),
            help: Some(
                "an accelerator is (name: \"vta\", pe: 1024, mem_elements: 65536, tl: 1, tw: 1, tacc: 1)"
                    .into(),
            ),
        })?,
    };
    accelerator.pe = args.pe.or(accelerator.pe);
    accelerator.mem = args.mem_elements.or(accelerator.mem);
    accelerator.tl = args.tl.unwrap_or(accelerator.tl);
    accelerator.tw = args.tw.unwrap_or(accelerator.tw);
    accelerator.tacc = args.tacc.unwrap_or(accelerator.tacc);
    accelerator.check()?;
    Ok(accelerator)
}

fn read(path: &Path) -> Result<String, Error> {
    let size = std::fs::metadata(path).map_err(|error| Error::read(path, error))?.len();
    if size > MAX_FILE {
        return Err(Error::Input { message: format!("{} is too large", path.display()), help: None });
    }
    std::fs::read_to_string(path).map_err(|error| Error::read(path, error))
}
