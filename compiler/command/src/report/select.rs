//! The result of `csdfc select`, for people and for machines. Times are in µs and memories in KiB.

use std::collections::BTreeMap;
use std::fmt::Write;

use csdfc_input::units::grouped;
use csdfc_planner::explain::table::table;
use csdfc_planner::selection::Modelled;
use csdfc_select::{Answer, Chosen, FrontAnswer, Method, Problem, Quantity, Query};
use serde::Serialize;

/// Maximum number of points of a front that are shown to people.
const POINTS: usize = 40;

/// What ended a search, if it was Ctrl-C.
const ASKED: &str = "asked";

/// An answer as data.
#[derive(Debug, Serialize)]
pub struct SelectReport {
    /// The quantity that is minimised.
    pub minimised: Quantity,
    /// How the selection was made.
    pub method: &'static str,
    /// Whether the selection keeps to all budgets.
    pub met: bool,
    /// The time, memory or workspace that is minimised; absent if there is no selection that keeps to all budgets.
    pub objective: Option<f64>,
    /// Whether no selection has a lower objective.
    pub optimal: bool,
    /// No selection has an objective below this.
    pub bound: Option<f64>,
    /// Time of layers and conversions.
    pub time: Option<f64>,
    /// Memory, summed over layers.
    pub memory: Option<f64>,
    /// Memory of the layer that takes most.
    pub workspace: Option<f64>,
    /// The budgets.
    pub budgets: Budgets,
    /// The budget that is not kept.
    pub unmet: Option<Unmet>,
    /// Why there is no selection at all.
    pub reason: Option<String>,
    /// Edges that leave no selection.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub blocked: Vec<BlockedEdge>,
    /// The primitive of each layer.
    pub choice: BTreeMap<String, String>,
    /// Layouts and costs of each layer.
    pub layouts: BTreeMap<String, LayerChoice>,
    /// Chains of conversions, on the edges that have one.
    pub conversions: Vec<EdgeConversion>,
    /// The selections of all families.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub bars: Vec<BaselineReport>,
    /// `asked` if Ctrl-C ended the search before all was known, so that another run may find more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stopped: Option<&'static str>,
    /// Layers and edges whose times are modelled, of a network on a device.
    #[serde(skip_serializing_if = "Modelled::is_empty")]
    pub modelled: Modelled,
}

/// Budgets.
#[derive(Debug, Clone, Serialize)]
pub struct Budgets {
    /// Maximum time.
    pub time: Option<f64>,
    /// Maximum memory, summed over layers.
    pub memory: Option<f64>,
    /// Maximum memory of a layer.
    pub workspace: Option<f64>,
}

/// A budget that is not kept.
#[derive(Debug, Serialize)]
pub struct Unmet {
    /// What it limits.
    pub quantity: Quantity,
    /// The budget.
    pub budget: f64,
    /// The least that is feasible under the other budgets; absent for a baseline.
    pub least: Option<f64>,
}

/// An edge without a path between some layouts.
#[derive(Debug, Serialize)]
pub struct BlockedEdge {
    /// The layer that writes.
    pub from: String,
    /// The layer that reads.
    pub to: String,
    /// Layouts written and read between which there is no path of conversions.
    pub no_path: Vec<[String; 2]>,
}

/// The layouts and costs of a layer's primitive.
#[derive(Debug, Serialize)]
pub struct LayerChoice {
    /// The layout that it reads.
    #[serde(rename = "in")]
    pub input: String,
    /// The layout that it writes.
    #[serde(rename = "out")]
    pub output: String,
    /// Its time.
    pub time: f64,
    /// Its memory.
    pub memory: f64,
}

/// A chain of conversions.
#[derive(Debug, Serialize)]
pub struct EdgeConversion {
    /// The layer that writes.
    pub from: String,
    /// The layer that reads.
    pub to: String,
    /// Layouts from the first to the last.
    pub path: Vec<String>,
    /// Time of the chain.
    pub time: f64,
}

/// The selection of a family.
#[derive(Debug, Serialize)]
pub struct BaselineReport {
    /// The family.
    pub family: String,
    /// Its time.
    pub time: Option<f64>,
    /// Its memory, summed over layers.
    pub memory: Option<f64>,
    /// Its memory of the layer that takes most.
    pub workspace: Option<f64>,
    /// Why it has no selection.
    pub reason: Option<String>,
}

/// A front as data.
#[derive(Debug, Serialize)]
pub struct FrontReport {
    /// The quantity that is minimised.
    pub minimised: Quantity,
    /// The budgets.
    pub budgets: Budgets,
    /// Whether there are no other points.
    pub complete: bool,
    /// The points, by rising memory or workspace.
    pub front: Vec<FrontPoint>,
    /// `asked` if Ctrl-C ended the search before all was known, so that another run may find more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stopped: Option<&'static str>,
    /// Layers and edges whose times are modelled, of a network on a device.
    #[serde(skip_serializing_if = "Modelled::is_empty")]
    pub modelled: Modelled,
}

/// A point of a front: a time, and a memory or a workspace.
#[derive(Debug, Serialize)]
pub struct FrontPoint {
    /// Memory, summed over layers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<f64>,
    /// Memory of the layer that takes most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workspace: Option<f64>,
    /// The least time in it.
    pub time: f64,
}

impl Budgets {
    fn new(query: &Query) -> Budgets {
        Budgets { time: query.time, memory: query.memory, workspace: query.workspace }
    }

    fn limit(&self, quantity: Quantity) -> Option<f64> {
        match quantity {
            Quantity::Time => self.time,
            Quantity::Memory => self.memory,
            Quantity::Workspace => self.workspace,
        }
    }
}

impl SelectReport {
    /// The report on an answer.
    pub fn new(problem: &Problem<'_>, query: &Query, answer: &Answer) -> SelectReport {
        let mut report = SelectReport {
            minimised: query.minimise,
            method: method(query.method),
            met: false,
            objective: None,
            optimal: false,
            bound: None,
            time: None,
            memory: None,
            workspace: None,
            budgets: Budgets::new(query),
            unmet: None,
            reason: None,
            blocked: Vec::new(),
            choice: BTreeMap::new(),
            layouts: BTreeMap::new(),
            conversions: Vec::new(),
            bars: Vec::new(),
            stopped: None,
            modelled: Modelled::default(),
        };
        let is_asked = problem.stop.is_asked();
        let name = |layer: usize| problem.instance.layers[layer].name.clone();
        match answer {
            Answer::Met(chosen) => {
                report.take(problem, chosen);
                let objective = query.minimise.amount(&chosen.cost);
                report.met = true;
                report.objective = Some(value(problem, query.minimise, objective));
                report.bound = Some(value(problem, query.minimise, chosen.bound));
                report.optimal = objective == chosen.bound;
            }
            Answer::Unmet { quantity, nearest } => {
                report.take(problem, nearest);
                // A search that was cut short does not know what is possible.
                let exact = matches!(query.method, Method::Exact | Method::Program) && !is_asked;
                let least = value(problem, *quantity, quantity.amount(&nearest.cost));
                report.unmet = report.budgets.limit(*quantity).map(|budget| Unmet {
                    quantity: *quantity,
                    budget,
                    least: exact.then_some(least),
                });
            }
            Answer::Blocked(edges) => {
                let edge = |blocked: &csdfc_select::blocked::Blocked| {
                    let edge = &problem.instance.edges[blocked.edge];
                    let pairs = blocked.pairs.iter().map(|(from, to)| [from.clone(), to.clone()]);
                    BlockedEdge { from: name(edge.from), to: name(edge.to), no_path: pairs.collect() }
                };
                report.blocked = edges.iter().map(edge).collect();
                report.reason = Some("no selection has a path of conversions on every edge".into());
            }
            Answer::NoBaseline(why) => report.reason = Some(why.to_string()),
            Answer::Unknown => {
                report.reason = Some(
                    "csdfc found no selection, but the graph is too dense to prove that there is none".into(),
                );
            }
            Answer::Stopped => report.reason = Some("no selection was found before Ctrl-C".into()),
        }
        report.stopped = (is_asked && !report.optimal).then_some(ASKED);
        report
    }

    fn take(&mut self, problem: &Problem<'_>, chosen: &Chosen) {
        let instance = problem.instance;
        (self.time, self.memory, self.workspace) = quantities(problem, chosen);
        for (layer, given) in instance.layers.iter().enumerate() {
            let taken = problem.taken(&chosen.selection, layer);
            self.choice.insert(given.name.clone(), given.options[taken.option].primitive.clone());
            let choice = LayerChoice {
                input: instance.layout(taken.input).into(),
                output: instance.layout(taken.output).into(),
                time: problem.times.value(taken.time),
                memory: problem.memories.value(taken.memory),
            };
            self.layouts.insert(given.name.clone(), choice);
        }
        for (edge, paths) in instance.edges.iter().zip(&problem.paths) {
            let from = problem.taken(&chosen.selection, edge.from).output;
            let to = problem.taken(&chosen.selection, edge.to).input;
            if let (true, Some(time)) = (from != to, paths.time(from, to)) {
                let chain = paths.chain(from, to);
                self.conversions.push(EdgeConversion {
                    from: instance.layers[edge.from].name.clone(),
                    to: instance.layers[edge.to].name.clone(),
                    path: chain.into_iter().map(|layout| instance.layout(layout).into()).collect(),
                    time: problem.times.value(time),
                });
            }
        }
        for bar in &chosen.bars {
            let cost = bar.selection.as_ref().ok().and_then(|selection| problem.cost(selection));
            self.bars.push(BaselineReport {
                family: bar.family.clone(),
                time: cost.map(|cost| problem.times.value(cost.time)),
                memory: cost.map(|cost| problem.memories.value(cost.memory)),
                workspace: cost.map(|cost| problem.memories.value(cost.workspace)),
                reason: bar.selection.as_ref().err().map(ToString::to_string),
            });
        }
    }
}

impl FrontReport {
    /// The report on a front.
    pub fn new(problem: &Problem<'_>, query: &Query, front: &FrontAnswer) -> FrontReport {
        let is_workspace = query.minimise == Quantity::Workspace;
        let point = |(memory, time): &(u64, u64)| {
            let memory = problem.memories.value(*memory);
            FrontPoint {
                memory: (!is_workspace).then_some(memory),
                workspace: is_workspace.then_some(memory),
                time: problem.times.value(*time),
            }
        };
        FrontReport {
            minimised: query.minimise,
            budgets: Budgets::new(query),
            complete: front.complete,
            front: front.points.iter().map(point).collect(),
            stopped: (problem.stop.is_asked() && !front.complete).then_some(ASKED),
            modelled: Modelled::default(),
        }
    }
}

fn quantities(problem: &Problem<'_>, chosen: &Chosen) -> (Option<f64>, Option<f64>, Option<f64>) {
    let of = |quantity: Quantity| Some(value(problem, quantity, quantity.amount(&chosen.cost)));
    (of(Quantity::Time), of(Quantity::Memory), of(Quantity::Workspace))
}

fn value(problem: &Problem<'_>, quantity: Quantity, whole: u64) -> f64 {
    match quantity {
        Quantity::Time => problem.times.value(whole),
        Quantity::Memory | Quantity::Workspace => problem.memories.value(whole),
    }
}

fn method(method: Method) -> &'static str {
    match method {
        Method::Exact => "exact",
        Method::Program => "program",
        Method::Greedy => "greedy",
        Method::LocalOptimal => "local-optimal",
        Method::Families => "families",
        Method::Sum2d => "sum2d",
    }
}

fn named(quantity: Quantity) -> &'static str {
    match quantity {
        Quantity::Time => "time",
        Quantity::Memory => "memory",
        Quantity::Workspace => "workspace",
    }
}

/// A number with its digits in groups, and up to three decimals.
fn number(value: f64) -> String {
    let text = format!("{value:.3}");
    let (whole, decimals) = text.split_once('.').unwrap_or((&text, ""));
    let whole = whole.parse().map_or_else(|_| whole.to_owned(), grouped);
    match decimals.trim_end_matches('0') {
        "" => whole,
        decimals => format!("{whole}.{decimals}"),
    }
}

/// A time or a memory with its unit.
fn amount(quantity: Quantity, value: f64) -> String {
    let unit = if quantity == Quantity::Time { "µs" } else { "KiB" };
    format!("{} {unit}", number(value))
}

/// The answer as text.
pub fn text(problem: &Problem<'_>, report: &SelectReport) -> String {
    let mut text = String::new();
    let counted = |count: usize, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
    let (layers, edges) = (problem.instance.layers.len(), problem.instance.edges.len());
    let _ = write!(text, "{}, {}: ", counted(layers, "layer"), counted(edges, "edge"));
    match (&report.objective, &report.unmet) {
        (Some(objective), _) => {
            let proof = match (report.optimal, report.bound) {
                (true, _) => "the optimum".to_owned(),
                (false, Some(bound)) if bound > 0.0 => {
                    format!("the optimum is {} or more", amount(report.minimised, bound))
                }
                (false, _) => "perhaps not the optimum".to_owned(),
            };
            let _ = writeln!(
                text,
                "{} {}, {proof}",
                named(report.minimised),
                amount(report.minimised, *objective)
            );
        }
        (None, Some(unmet)) => {
            let budget = amount(unmet.quantity, unmet.budget);
            let _ = match unmet.least {
                Some(least) => writeln!(
                    text,
                    "no selection keeps to a {} of {budget}; the smallest possible is {}",
                    named(unmet.quantity),
                    amount(unmet.quantity, least)
                ),
                None => {
                    writeln!(text, "this selection does not keep to a {} of {budget}", named(unmet.quantity))
                }
            };
        }
        (None, None) => {
            let _ = writeln!(text, "{}", report.reason.as_deref().unwrap_or("no selection"));
        }
    }
    text.push_str(stopped_text(report.stopped));
    for edge in &report.blocked {
        let pairs: Vec<String> =
            edge.no_path.iter().map(|[from, to]| format!("from {from} to {to}")).collect();
        let _ = writeln!(text, "  {} → {}: no path {}", edge.from, edge.to, pairs.join(", "));
    }
    if let (Some(time), Some(memory), Some(workspace)) = (report.time, report.memory, report.workspace) {
        let totals = [
            (Quantity::Time, time, ""),
            (Quantity::Memory, memory, "summed over layers"),
            (Quantity::Workspace, workspace, "of the layer that takes most"),
        ];
        let mut lines = Vec::new();
        for (quantity, value, what) in totals {
            let budget = report.budgets.limit(quantity);
            let budget = budget.map(|budget| format!("of {}", amount(quantity, budget)));
            let notes: Vec<&str> =
                budget.iter().map(String::as_str).chain((!what.is_empty()).then_some(what)).collect();
            lines.push(vec![named(quantity).into(), amount(quantity, value), notes.join(", ")]);
        }
        let _ = write!(text, "\n{}\n{}", table(&lines, &[1]), layer_table(problem, report));
    }
    if !report.conversions.is_empty() {
        let mut lines = vec![["from", "to", "conversions", "time, µs"].map(str::to_owned).to_vec()];
        for conversion in &report.conversions {
            let (from, to) = (conversion.from.clone(), conversion.to.clone());
            lines.push(vec![from, to, conversion.path.join("→"), number(conversion.time)]);
        }
        let _ = write!(text, "\n{}", table(&lines, &[3]));
    }
    if !report.bars.is_empty() {
        let header = ["family", "time, µs", "memory, KiB", "workspace, KiB", ""];
        let mut lines = vec![header.map(str::to_owned).to_vec()];
        for bar in &report.bars {
            let cell = |value: Option<f64>| value.map_or_else(|| "-".into(), number);
            let (time, memory, workspace) = (cell(bar.time), cell(bar.memory), cell(bar.workspace));
            lines.push(vec![
                bar.family.clone(),
                time,
                memory,
                workspace,
                bar.reason.clone().unwrap_or_default(),
            ]);
        }
        let _ = write!(text, "\n{}", table(&lines, &[1, 2, 3]));
    }
    text.push_str(&modelled_text(&report.modelled));
    text
}

/// Says that there may be more.
fn stopped_text(stopped: Option<&'static str>) -> &'static str {
    match stopped {
        Some(_) => "stopped by Ctrl-C: another run may find more\n",
        None => "",
    }
}

/// Says that times were not measured.
fn modelled_text(modelled: &Modelled) -> String {
    let Modelled { layers, edges } = modelled;
    match modelled.is_empty() {
        true => String::new(),
        false => format!(
            "\nmodelled, not measured: times of layers ({}), and of conversions on edges ({})\n",
            layers.len(),
            edges.len()
        ),
    }
}

/// The layers in the order of the instance.
fn layer_table(problem: &Problem<'_>, report: &SelectReport) -> String {
    let header = ["layer", "primitive", "in", "out", "time, µs", "memory, KiB"];
    let mut lines = vec![header.map(str::to_owned).to_vec()];
    for layer in &problem.instance.layers {
        if let (Some(primitive), Some(choice)) =
            (report.choice.get(&layer.name), report.layouts.get(&layer.name))
        {
            let (input, output) = (choice.input.clone(), choice.output.clone());
            let (time, memory) = (number(choice.time), number(choice.memory));
            lines.push(vec![layer.name.clone(), primitive.clone(), input, output, time, memory]);
        }
    }
    table(&lines, &[4, 5])
}

/// A front as text. A long front shows points at even distances.
pub fn front_text(report: &FrontReport) -> String {
    let count = report.front.len();
    let all = if report.complete { "these are all" } else { "there may be more between them" };
    let memory = if report.minimised == Quantity::Workspace { "workspace" } else { "memory" };
    let mut text = format!("{count} trade-offs of {memory} and time; {all}\n");
    text.push_str(stopped_text(report.stopped));
    let shown = count.min(POINTS);
    if shown < count {
        let _ = writeln!(text, "{shown} of them follow; --format json prints all");
    }
    let mut lines = vec![vec![format!("{memory}, KiB"), "time, µs".to_owned()]];
    for at in 0..shown {
        let point = &report.front[if shown == count { at } else { at * (count - 1) / (shown - 1) }];
        let memory = point.memory.or(point.workspace).unwrap_or_default();
        lines.push(vec![number(memory), number(point.time)]);
    }
    let _ = write!(text, "\n{}", table(&lines, &[0, 1]));
    text.push_str(&modelled_text(&report.modelled));
    text
}
