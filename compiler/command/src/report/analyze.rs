//! The results of the dataflow analyses, for people and for machines.

use std::fmt::Write;

use csdf::Throughput;
use csdfc_input::units::grouped;
use csdfc_planner::explain::table::table;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

/// Actors whose firings the text lists.
const ACTORS: usize = 12;
/// Channels that the text lists.
const CHANNEL_LINES: usize = 24;
/// Longest schedule that the text shows whole, in characters.
const SCHEDULE_WIDTH: usize = 400;

/// The results of all analyses: of one graph from a file, or of the partitions of an application.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum AnalysisReport {
    /// A graph from a file.
    Graph(Box<Analysis>),
    /// An application.
    Application {
        /// Its partitions.
        partitions: Vec<Analysis>,
    },
}

/// The results for a graph. Throughputs are iterations per unit of time, as reduced fractions. A throughput is
/// `unbounded` if the firings that limit the graph take no time. Capacities that the graph states are kept.
#[derive(Debug, Serialize)]
pub struct Analysis {
    /// The graph, or the partition.
    pub name: String,
    /// The CNN that the partition is of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cnn: Option<String>,
    /// The unit of totals: `tokens` or `bytes`.
    pub unit: &'static str,
    /// Firings of each actor in one iteration.
    pub repetition: Named<u64>,
    /// Channels. No total includes channels from an actor to itself.
    pub channels: usize,
    /// Channels from an actor to itself.
    pub self_loops: usize,
    /// Whether it runs for ever with unbounded channels.
    pub live: bool,
    /// With unbounded channels; `None` if the budget ended.
    #[serde(serialize_with = "optional_text")]
    pub throughput: Option<Throughput>,
    /// If it is not live: the actors that wait for each other, each for the next one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blocked: Option<Vec<Blocked>>,
    /// The smallest storage with which it runs for ever; `None` if the budget ended or it is not live.
    pub deadlock_free: Option<Distribution>,
    /// The smallest storage with which it is as fast as with unbounded channels. `None` in the same cases.
    pub max_throughput: Option<Distribution>,
    /// The smallest storage at the throughput asked for, if one was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_throughput: Option<Distribution>,
    /// Trade-offs from the smallest storage to the fastest, if asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pareto: Option<Vec<TradeOff>>,
    /// Whether these are all trade-offs, each of them proven; if asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pareto_complete: Option<bool>,
}

/// An actor that cannot fire.
#[derive(Debug, Serialize)]
pub struct Blocked {
    /// The actor.
    pub actor: String,
    /// The channel that it reads or writes.
    pub channel: String,
    /// What is missing there so that the actor can fire: `tokens` or `space`.
    pub lacks: &'static str,
    /// How many tokens or places.
    pub missing: u64,
    /// The actor that would have to fire first. It is the actor itself if no firing helps.
    pub waits_for: String,
}

/// A storage distribution.
#[derive(Debug, Serialize)]
pub struct Distribution {
    /// Sum of the capacities.
    pub total: u64,
    /// No smaller total suffices.
    pub bound: u64,
    /// Whether the two are the same.
    pub proven: bool,
    /// Capacities in tokens, by channel. Channels from an actor to itself are left out.
    pub capacities: Named<u64>,
    /// With these capacities.
    #[serde(serialize_with = "text")]
    pub throughput: Throughput,
    /// How it runs, if asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schedule: Option<ScheduleReport>,
}

/// How a graph runs in given capacities.
#[derive(Debug, Serialize)]
pub struct ScheduleReport {
    /// One iteration on one processor, as loops.
    pub sequential: String,
    /// Maximum number of bytes of tokens that are stored at a time in that order.
    pub peak_bytes: u64,
    /// Start times on as many processors as there are firings at a time. `None` if the budget ended.
    pub self_timed: Option<StartTimes>,
}

/// Start times of a self-timed execution.
#[derive(Debug, Serialize)]
pub struct StartTimes {
    /// Time after which the periodic part repeats.
    pub period: u64,
    /// By actor, start times before the periodic part.
    pub transient: Named<Vec<u64>>,
    /// By actor, start times in the first period.
    pub periodic: Named<Vec<u64>>,
}

/// A trade-off.
#[derive(Debug, Serialize)]
pub struct TradeOff {
    /// Sum of the capacities.
    pub total: u64,
    /// With these capacities.
    #[serde(serialize_with = "text")]
    pub throughput: Throughput,
    /// Capacities in tokens, by channel.
    pub capacities: Named<u64>,
}

/// Values by name, in an order of their own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named<T>(pub Vec<(String, T)>);

impl<T: Serialize> Serialize for Named<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, value) in &self.0 {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

fn text<S: Serializer>(throughput: &Throughput, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(throughput)
}

fn optional_text<S: Serializer>(throughput: &Option<Throughput>, serializer: S) -> Result<S::Ok, S::Error> {
    match throughput {
        Some(throughput) => serializer.collect_str(throughput),
        None => serializer.serialize_none(),
    }
}

/// The report as a few tables.
pub fn report(report: &AnalysisReport) -> String {
    match report {
        AnalysisReport::Graph(analysis) => graph(analysis),
        AnalysisReport::Application { partitions } => {
            partitions.iter().map(graph).collect::<Vec<_>>().join("\n")
        }
    }
}

fn graph(analysis: &Analysis) -> String {
    let name = match &analysis.cnn {
        Some(cnn) if *cnn != analysis.name => format!("{cnn}/{}", analysis.name),
        _ => analysis.name.clone(),
    };
    let firings: u128 = analysis.repetition.0.iter().map(|(_, count)| u128::from(*count)).sum();
    let mut text = format!(
        "{name}: {}, {}, {} in an iteration\n",
        counted(analysis.repetition.0.len() as u128, "actor"),
        counted(analysis.channels as u128, "channel"),
        counted(firings, "firing")
    );
    let vector = &analysis.repetition.0;
    let firings_of: Vec<String> =
        vector.iter().take(ACTORS).map(|(actor, count)| format!("{actor} {}", grouped(*count))).collect();
    let _ = write!(text, "repetition vector: {}", firings_of.join(", "));
    text.push_str(&match vector.len().saturating_sub(ACTORS) {
        0 => "\n".to_owned(),
        more => format!(", and {more} more (--format json has all)\n"),
    });
    match analysis.self_loops {
        0 => {}
        1 => text.push_str("1 channel from an actor to itself is not counted\n"),
        count => {
            let _ = writeln!(text, "{count} channels from an actor to itself are not counted");
        }
    }
    if let Some(blocked) = &analysis.blocked {
        text.push_str("DEADLOCK: these actors wait for each other in a circle\n");
        let rows: Vec<Vec<String>> = blocked
            .iter()
            .map(|wait| {
                let lacks = format!("lacks {} {} of {}", wait.missing, wait.lacks, wait.channel);
                vec![format!("  {}", wait.actor), lacks, format!("and waits for {}", wait.waits_for)]
            })
            .collect();
        return text + &table(&rows, &[]);
    }
    let unknown = || "unknown: the budget ended".to_owned();
    let throughput = analysis.throughput.map_or_else(unknown, |throughput| throughput.to_string());
    let _ = writeln!(text, "throughput, unbounded channels: {throughput}\n");

    let mut distributions =
        vec![("deadlock-free", &analysis.deadlock_free), ("full throughput", &analysis.max_throughput)];
    if analysis.at_throughput.is_some() {
        distributions.insert(1, ("as asked", &analysis.at_throughput));
    }
    text.push_str(&totals(analysis.unit, &distributions));
    text.push_str(&capacities(&distributions));
    if let Some(points) = &analysis.pareto {
        text.push_str(&pareto(analysis, points));
    }
    for (name, distribution) in distributions {
        if let Some(schedule) = distribution.as_ref().and_then(|distribution| distribution.schedule.as_ref())
        {
            text.push_str(&schedule_lines(name, schedule));
        }
    }
    text
}

pub(super) fn counted(count: u128, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

type Columns<'a> = [(&'static str, &'a Option<Distribution>)];

fn totals(unit: &str, distributions: &Columns) -> String {
    let mut rows =
        vec![vec![format!("storage, {unit}"), "total".into(), "bound".into(), "throughput".into()]];
    for (name, distribution) in distributions {
        let mut row = vec![format!("  {name}")];
        match distribution {
            Some(found) => {
                let proven = if found.proven { "proven".to_owned() } else { grouped(found.bound) };
                row.extend([grouped(found.total), proven, found.throughput.to_string()]);
            }
            None => row.extend(["?".to_owned(), "the budget ended".to_owned()]),
        }
        rows.push(row);
    }
    table(&rows, &[1, 2])
}

fn capacities(distributions: &Columns) -> String {
    let found: Vec<(&str, &Distribution)> =
        distributions.iter().filter_map(|(name, found)| Some((*name, found.as_ref()?))).collect();
    let Some((_, first)) = found.first() else { return String::new() };
    let names: Vec<&String> = first.capacities.0.iter().map(|(name, _)| name).collect();
    let mut header = vec!["capacities, tokens".to_owned()];
    header.extend(found.iter().map(|(name, _)| (*name).to_owned()));
    let mut rows = vec![header];
    for (place, name) in names.iter().enumerate().take(CHANNEL_LINES) {
        let mut row = vec![format!("  {name}")];
        row.extend(found.iter().filter_map(|(_, found)| Some(grouped(found.capacities.0.get(place)?.1))));
        rows.push(row);
    }
    let mut text = format!("\n{}", table(&rows, &[1, 2, 3]));
    if let Some(more) = names.len().checked_sub(CHANNEL_LINES).filter(|more| *more > 0) {
        let _ = writeln!(text, "  and {more} more (--format json lists all)");
    }
    text
}

fn pareto(analysis: &Analysis, points: &[TradeOff]) -> String {
    let mut rows = vec![vec![format!("trade-offs, {}", analysis.unit), "throughput".to_owned()]];
    rows.extend(points.iter().map(|point| vec![grouped(point.total), point.throughput.to_string()]));
    let mut text = format!("\n{}", table(&rows, &[0]));
    if analysis.pareto_complete == Some(false) {
        text.push_str("the budget ended: there may be more trade-offs, with less storage\n");
    }
    text
}

fn schedule_lines(name: &str, schedule: &ScheduleReport) -> String {
    let notation = &schedule.sequential;
    let shown = match notation.char_indices().nth(SCHEDULE_WIDTH) {
        Some((end, _)) => format!("{} …", &notation[..end]),
        None => notation.clone(),
    };
    let peak = grouped(schedule.peak_bytes);
    let mut text = format!("\nschedule, {name}\n  one processor, at most {peak} bytes stored: {shown}\n");
    match &schedule.self_timed {
        None => text.push_str("  start times: unknown, the budget ended\n"),
        Some(times) => {
            let _ = writeln!(text, "  self-timed: repeats every {} units of time", grouped(times.period));
        }
    }
    text
}
