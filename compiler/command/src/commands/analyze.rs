//! `csdfc analyze`: the dataflow analyses on a graph from a file, or on the partitions of an application.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use csdf::{Budget, Channel, Goal, Graph, Missing, Storage, StorageOptions, Unit, sdf3};
use csdfc_input::app::resolve::Application;
use csdfc_plan::plan::StorageModel;
use csdfc_planner::frame::choice::Choice;
use csdfc_planner::frame::lower::{self, RateTable};
use csdfc_planner::frame::task;
use csdfc_planner::open;

use super::{output, watcher};
use crate::cli::Format;
use crate::cli::analyze::AnalyzeArgs;
use crate::cli::budget::SearchBudget;
use crate::error::{Error, Outcome};
use crate::report;
use crate::report::analyze::{
    Analysis, AnalysisReport, Blocked, Distribution, Named, ScheduleReport, StartTimes, TradeOff,
};

/// Largest graph file, in bytes.
const MAX_BYTES: u64 = 64 << 20;

/// Analyses what the command line names.
///
/// # Errors
/// When it cannot be read, the graph is inconsistent or too large, or a file cannot be written.
pub fn analyze(args: &AnalyzeArgs) -> Result<Outcome, Error> {
    let written = args.dot.iter().chain(&args.sdf3).map(PathBuf::as_path);
    output::expect_apart(written, [Path::new(&args.source)])?;
    let (targets, is_application) = targets(args)?;
    let exported = export(args, &targets)?;
    if exported {
        return Ok(Outcome::Yes);
    }
    let stop = watcher::ctrl_c();
    let mut remaining = RemainingBudget::new(args.budget);
    let mut outcome = Outcome::Yes;
    let mut analyses = Vec::new();
    for (place, target) in targets.iter().enumerate() {
        let _span = tracing::info_span!("analyze", graph = target.name).entered();
        let share = remaining.share(targets.len() - place);
        let (analysis, answered) = Analyser { args, target, remaining: share, stop }.analyze()?;
        if !answered {
            outcome = Outcome::No;
        }
        analyses.push(analysis);
    }
    if stop.load(Ordering::Relaxed) {
        tracing::warn!("interrupted: what had no answer by then is left out");
    }
    let report = if is_application {
        AnalysisReport::Application { partitions: analyses }
    } else {
        match analyses.pop() {
            Some(analysis) => AnalysisReport::Graph(Box::new(analysis)),
            None => AnalysisReport::Application { partitions: Vec::new() },
        }
    };
    output::print(&match args.format {
        Format::Text => report::analyze::report(&report),
        Format::Json => output::json(&report)?,
        Format::Ron => output::ron(&report)?,
    })?;
    Ok(outcome)
}

/// A graph to analyse.
struct NamedGraph {
    name: String,
    cnn: Option<String>,
    graph: Graph,
    /// Names of the channels, each different.
    channels: Vec<String>,
}

fn targets(args: &AnalyzeArgs) -> Result<(Vec<NamedGraph>, bool), Error> {
    let read = open::read(&args.source, MAX_BYTES)?;
    if let open::AppSource::Text { name, bytes, .. } = &read
        && is_xml(bytes)
    {
        let document = sdf3::read(bytes, args.concurrency).map_err(|error| Error::Input {
            message: format!("{name}: {error}"),
            help: Some("give a graph of type sdf or csdf as the SDF3 tools write it".into()),
        })?;
        if args.concurrency.get() == 1 {
            tracing::warn!(
                "auto-concurrency is off: an actor's firings never overlap (with --concurrency N, up to N overlap)"
            );
        }
        let synchronises =
            |channel: &&Channel| channel.token_bytes == 0 && channel.name.ends_with(".acquire");
        let synchronising = document.graph.channels().iter().filter(synchronises).count();
        if synchronising > 0 {
            tracing::warn!(
                "{synchronising} channels, named .acquire, only say when a firing may start. They count as storage here, so \
                 totals are larger than those of the layers from which the file was written"
            );
        }
        let channels = document.graph.channels().iter().map(|channel| channel.name.clone()).collect();
        let target = NamedGraph { name: document.name, cnn: None, graph: document.graph, channels };
        return Ok((vec![target], false));
    }
    if args.concurrency.get() > 1 {
        return Err(Error::Input {
            message: "--concurrency is for graphs in SDF3 XML: the firings of a layer never overlap".into(),
            help: None,
        });
    }
    let mut app = open::application(&args.source, read)?;
    args.apply(&mut app.spec, &mut app.origin)?;
    Ok((partitions(&app.resolve()?)?, true))
}

fn is_xml(bytes: &[u8]) -> bool {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    bytes.trim_ascii_start().first() == Some(&b'<')
}

/// The graph of each partition under the application's choice of rows.
fn partitions(application: &Application) -> Result<Vec<NamedGraph>, Error> {
    let tasks = task::tasks(application);
    let mut targets = Vec::new();
    for (index, (cnn, task)) in application.cnns.iter().zip(&tasks).enumerate() {
        let rates = RateTable::new(task.network);
        let choice = Choice::given(application, index).unwrap_or_else(|| Choice::all(task.network));
        for (partition, layers) in cnn.partitions.iter().zip(task.partitions.iter().map(|p| &p.layers)) {
            let lowering = lower::lower(&rates, layers, &choice.rows, application.storage)?;
            let name = |origin: &lower::ChannelOrigin| {
                let tensor = &task.network.layer(origin.tensor).name;
                match origin.consumer.filter(|_| application.storage == StorageModel::Edges) {
                    Some(consumer) => format!("{tensor}→{}", task.network.layer(consumer).name),
                    None => tensor.clone(),
                }
            };
            targets.push(NamedGraph {
                name: partition.name.clone(),
                cnn: Some(cnn.name.clone()),
                channels: lowering.channels.iter().map(name).collect(),
                graph: lowering.graph,
            });
        }
    }
    Ok(targets)
}

/// Writes the graphs as files, if asked to. Returns whether one of them went to standard output.
fn export(args: &AnalyzeArgs, targets: &[NamedGraph]) -> Result<bool, Error> {
    let is_stdout = |path: &Path| path.as_os_str() == "-";
    if let Some(path) = &args.dot {
        let graphs: String = targets.iter().map(|target| sdf3::dot(&target.graph, &target.name)).collect();
        output::write(path, &graphs)?;
        return Ok(is_stdout(path));
    }
    if let Some(path) = &args.sdf3 {
        let [target] = targets else {
            return Err(Error::Input {
                message: format!("a file in SDF3 XML holds one graph, but there are {}", targets.len()),
                help: Some("give an application of one CNN and one partition".into()),
            });
        };
        output::write(path, &sdf3::write(&target.graph, &target.name))?;
        let channels = target.graph.channels();
        let is_plain =
            |channel: &Channel| matches!(&channel.readers[..], [reader] if reader.acquire == reader.release);
        if !channels.iter().all(is_plain) {
            tracing::warn!(
                "a channel of SDF3 XML has one reader and one rate. So a window became two channels, and a tensor of \
                 several readers one channel for each: `analyze` finds larger totals for the file than for these {} \
                 channels",
                channels.len()
            );
        }
        return Ok(is_stdout(path));
    }
    Ok(false)
}

/// The rest of the budget, for the analyses to come.
#[derive(Debug, Clone, Copy)]
enum RemainingBudget {
    Until(Instant),
    Steps(u64),
}

impl RemainingBudget {
    fn new(effort: Option<SearchBudget>) -> RemainingBudget {
        match effort {
            None => RemainingBudget::Steps(Budget::default().work),
            Some(SearchBudget::Steps(steps)) => RemainingBudget::Steps(steps),
            Some(SearchBudget::Time(time)) => {
                let now = Instant::now();
                // A time that is too long for the clock is no limit.
                now.checked_add(time).map_or(RemainingBudget::Steps(u64::MAX), RemainingBudget::Until)
            }
        }
    }

    /// The part of one analysis, with `of` analyses still to come, including this one.
    fn share(&mut self, of: usize) -> RemainingBudget {
        match self {
            RemainingBudget::Steps(steps) => {
                let share = *steps / of.max(1) as u64;
                *steps -= share;
                RemainingBudget::Steps(share)
            }
            RemainingBudget::Until(end) => {
                let now = Instant::now();
                RemainingBudget::Until(now + end.saturating_duration_since(now) / of.max(1) as u32)
            }
        }
    }

    /// The same as what one analysis may spend, unless `stop` becomes true.
    fn budget(&mut self, of: usize, stop: &'static AtomicBool) -> Budget {
        match self.share(of) {
            RemainingBudget::Steps(work) => Budget { work, time: None, stop: Some(stop) },
            RemainingBudget::Until(end) => {
                let time = end.saturating_duration_since(Instant::now());
                Budget { work: u64::MAX, time: Some(time), stop: Some(stop) }
            }
        }
    }
}

struct Analyser<'a> {
    args: &'a AnalyzeArgs,
    target: &'a NamedGraph,
    remaining: RemainingBudget,
    /// Whether the analyses are to end.
    stop: &'static AtomicBool,
}

impl Analyser<'_> {
    /// The analysis, and whether every question has an answer and the graph runs.
    fn analyze(mut self) -> Result<(Analysis, bool), Error> {
        let graph = &self.target.graph;
        let repetition = csdf::repetition_vector(graph)?;
        let names = graph.actors().iter().map(|actor| actor.name.clone());
        let own = (0..graph.channels().len()).filter(|&channel| is_own(graph, channel)).count();
        let mut analysis = Analysis {
            name: self.target.name.clone(),
            cnn: self.target.cnn.clone(),
            unit: if self.args.bytes { "bytes" } else { "tokens" },
            repetition: Named(names.zip(repetition.firings).collect()),
            channels: graph.channels().len() - own,
            self_loops: own,
            live: true,
            throughput: None,
            blocked: None,
            deadlock_free: None,
            max_throughput: None,
            at_throughput: None,
            pareto: None,
            pareto_complete: None,
        };
        if let Some(blocked) = self.blocked()? {
            analysis.live = false;
            analysis.throughput = Some(csdf::Throughput::Finite(csdf::Ratio::ZERO));
            analysis.blocked = Some(blocked);
            return Ok((analysis, false));
        }
        // The first analyses may leave more to the later ones, which are harder.
        let mut to_come = 3 + usize::from(self.args.at.is_some()) + usize::from(self.args.pareto);
        let budget = self.remaining.budget(to_come, self.stop);
        analysis.throughput = answered(csdf::throughput(graph, &stated(graph), &budget))?;
        to_come -= 1;
        analysis.deadlock_free = self.smallest(Goal::DeadlockFree, to_come)?;
        to_come -= 1;
        analysis.max_throughput = self.smallest(Goal::Maximal, to_come)?;
        to_come -= 1;
        let mut complete = analysis.throughput.is_some()
            && analysis.deadlock_free.is_some()
            && analysis.max_throughput.is_some();
        if let Some(at) = self.args.at {
            analysis.at_throughput = self.smallest(Goal::AtLeast(at), to_come)?;
            complete &= analysis.at_throughput.is_some();
            to_come -= 1;
        }
        if self.args.pareto {
            let options = self.options(to_come);
            let pareto = answered(csdf::pareto(graph, &options))?;
            complete &= pareto.is_some();
            analysis.pareto_complete = pareto.as_ref().map(|pareto| pareto.complete);
            analysis.pareto =
                pareto.map(|pareto| pareto.points.iter().map(|point| self.point(point)).collect());
        }
        Ok((analysis, complete))
    }

    fn blocked(&self) -> Result<Option<Vec<Blocked>>, Error> {
        let graph = &self.target.graph;
        let unlimited = |(index, capacity): (usize, Option<u64>)| capacity.filter(|_| !is_own(graph, index));
        let capacities: Vec<Option<u64>> =
            graph.capacities().into_iter().enumerate().map(unlimited).collect();
        match csdf::check_liveness(graph, &capacities) {
            Ok(()) => Ok(None),
            Err(csdf::Error::Deadlock { cycle }) => Ok(Some(
                cycle
                    .into_iter()
                    .map(|wait| {
                        let (lacks, missing) = match wait.missing {
                            Missing::Tokens(count) => ("tokens", count),
                            Missing::Space(count) => ("space", count),
                        };
                        let (actor, channel) = (wait.actor, wait.channel);
                        Blocked { actor, channel, lacks, missing, waits_for: wait.waits_for }
                    })
                    .collect(),
            )),
            Err(error) => Err(error.into()),
        }
    }

    fn options(&mut self, to_come: usize) -> StorageOptions {
        let unit = if self.args.bytes { Unit::Bytes } else { Unit::Tokens };
        StorageOptions {
            unit,
            budget: self.remaining.budget(to_come, self.stop),
            ..StorageOptions::default()
        }
    }

    fn smallest(&mut self, goal: Goal, to_come: usize) -> Result<Option<Distribution>, Error> {
        // The same amount again for its schedule, if that is asked for.
        let parts = if self.args.schedule { 2 * to_come } else { to_come };
        let options = self.options(parts);
        let Some(storage) = answered(csdf::smallest(&self.target.graph, goal, &options))? else {
            return Ok(None);
        };
        let schedule = self.args.schedule.then(|| self.schedule(&storage, parts - 1)).transpose()?;
        Ok(Some(Distribution {
            total: storage.total,
            bound: storage.bound,
            proven: storage.proven,
            capacities: self.capacities(&storage),
            throughput: storage.throughput,
            schedule,
        }))
    }

    fn schedule(&mut self, storage: &Storage, to_come: usize) -> Result<ScheduleReport, Error> {
        let graph = &self.target.graph;
        let steps = &storage.certificate.schedule;
        let bounded = |(index, capacity): (usize, &u64)| Some(*capacity).filter(|_| !is_own(graph, index));
        let capacities: Vec<Option<u64>> = storage.capacities.iter().enumerate().map(bounded).collect();
        let times =
            answered(csdf::self_timed(graph, &capacities, &self.remaining.budget(to_come, self.stop)))?;
        let by_actor = |times: Vec<Vec<u64>>| {
            Named(graph.actors().iter().map(|actor| actor.name.clone()).zip(times).collect())
        };
        Ok(ScheduleReport {
            sequential: csdf::notation(steps, &graph.actor_names()),
            peak_bytes: csdf::peak_bytes(graph, steps)?,
            self_timed: times.map(|times| StartTimes {
                period: times.period,
                transient: by_actor(times.transient),
                periodic: by_actor(times.periodic),
            }),
        })
    }

    fn point(&self, storage: &Storage) -> TradeOff {
        TradeOff {
            total: storage.total,
            throughput: storage.throughput,
            capacities: self.capacities(storage),
        }
    }

    fn capacities(&self, storage: &Storage) -> Named<u64> {
        let named = self.target.channels.iter().cloned().zip(storage.capacities.iter().copied());
        let counted = named.enumerate().filter(|(index, _)| !is_own(&self.target.graph, *index));
        Named(counted.map(|(_, entry)| entry).collect())
    }
}

/// The capacities that channels state, except channels from an actor to itself.
fn stated(graph: &Graph) -> Vec<Option<u64>> {
    let capacities = graph.capacities().into_iter().enumerate();
    capacities.map(|(index, capacity)| capacity.filter(|_| !is_own(graph, index))).collect()
}

/// Whether a channel's producer is its only reader.
fn is_own(graph: &Graph, channel: usize) -> bool {
    let channel = &graph.channels()[channel];
    channel.readers.iter().all(|reader| reader.actor == channel.producer)
}

/// The answer. `None` if the budget ended before there was an answer, or if the request is out of reach; the log says
/// which.
fn answered<T>(result: Result<T, csdf::Error>) -> Result<Option<T>, Error> {
    match result {
        Ok(answer) => Ok(Some(answer)),
        Err(error @ (csdf::Error::Exhausted | csdf::Error::OutOfReach { .. })) => {
            tracing::warn!("{error}");
            Ok(None)
        }
        Err(error) => Err(error.into()),
    }
}
