//! The result of `csdfc offload`.

use std::fmt::Write;

use csdfc_input::units::grouped;
use csdfc_offload::problem::Cost;
use csdfc_offload::{Answer, Groups, OffloadError, Problem, Stopped, Unit};
use csdfc_planner::explain::table::table;
use serde::Serialize;

/// Maximum number of lines of groups that are shown to people.
const GROUP_LINES: usize = 12;

/// A layer's strategy.
#[derive(Debug, Clone, Serialize)]
pub struct LayerReport {
    /// The layer.
    pub layer: LayerFacts,
    /// Maximum number of patches of a group.
    pub group: usize,
    /// Filters in memory at a time.
    pub filters_at_once: usize,
    /// Passes over the patches, one for each subset of the filters.
    pub passes: u64,
    /// The unit of loads.
    pub unit: Unit,
    /// Whether the duration counts writes.
    pub count_writes: bool,
    /// The method that made the strategy.
    pub strategy: String,
    /// Details of the method, if there are any.
    pub shape: Option<String>,
    /// In cycles: Eq. 15, or Definition 3 with writes.
    pub duration: u64,
    /// No strategy with as many filters at a time takes fewer cycles.
    pub bound: u64,
    /// How far the duration is above the bound, in per cent of the bound.
    pub gap: f64,
    /// Whether the duration equals the bound.
    pub optimal: bool,
    /// Steps, over all passes.
    pub steps: u64,
    /// Pixels loaded, over all passes.
    pub pixels_loaded: u64,
    /// The most often that a pixel is loaded in one pass.
    pub most_loads: u32,
    /// Maximum number of elements in memory in a step.
    pub memory: u64,
    /// Whether the limits on memory and loads are kept.
    pub met: bool,
    /// If limits are exceeded: limits that would be kept.
    pub nearest: Option<String>,
    /// If limits are exceeded: the rule that is broken, and the step that breaks it.
    pub violation: Option<String>,
    /// Whether the strategy was executed on data, and gave the results of the direct convolution.
    pub simulated: bool,
    /// What ended the search, so that another run may find another strategy: `time`, or `asked` after Ctrl-C.
    pub stopped: Option<&'static str>,
    /// The patches of each step of a pass, numbered row by row.
    pub groups: Groups,
}

/// A layer; pairs are height first.
#[derive(Debug, Clone, Serialize)]
pub struct LayerFacts {
    /// Height and width of the input.
    pub input: [usize; 2],
    /// Its channels.
    pub channels: usize,
    /// Zeros at the top, left, bottom and right.
    pub pads: [usize; 4],
    /// Height and width of the filters.
    pub filter: [usize; 2],
    /// Their number.
    pub filters: usize,
    /// The stride.
    pub stride: [usize; 2],
    /// Height and width of the output; its product is the number of patches.
    pub output: [usize; 2],
}

/// The convolutions of an application.
#[derive(Debug, Clone, Serialize)]
pub struct ModelReport {
    /// The application.
    pub application: String,
    /// The accelerator; may have no name.
    pub accelerator: String,
    /// The unit of loads.
    pub unit: Unit,
    /// Cycles of all layers that are mapped.
    pub duration: u64,
    /// The sum of their bounds.
    pub bound: u64,
    /// Steps of all layers that are mapped.
    pub steps: u64,
    /// Whether every layer is mapped.
    pub met: bool,
    /// The layers that are mapped.
    pub layers: Vec<MappedLayer>,
    /// The layers that no strategy fits.
    pub failed: Vec<FailedLayer>,
}

/// A convolution that is mapped.
#[derive(Debug, Clone, Serialize)]
pub struct MappedLayer {
    /// Its CNN.
    pub cnn: String,
    /// Its name.
    pub name: String,
    /// Its strategy.
    #[serde(flatten)]
    pub report: LayerReport,
}

/// A convolution that no strategy fits.
#[derive(Debug, Clone, Serialize)]
pub struct FailedLayer {
    /// Its CNN.
    pub cnn: String,
    /// Its name.
    pub name: String,
    /// Why.
    pub problem: String,
    /// What would fit.
    pub nearest: Option<String>,
}

impl ModelReport {
    /// No layers yet.
    pub fn new(application: &str, accelerator: &str, unit: Unit) -> Self {
        ModelReport {
            application: application.into(),
            accelerator: accelerator.into(),
            unit,
            duration: 0,
            bound: 0,
            steps: 0,
            met: true,
            layers: Vec::new(),
            failed: Vec::new(),
        }
    }

    /// Adds a layer that is mapped.
    pub fn add(&mut self, cnn: &str, name: &str, report: LayerReport) {
        self.duration = self.duration.saturating_add(report.duration);
        self.bound = self.bound.saturating_add(report.bound);
        self.steps += report.steps;
        self.layers.push(MappedLayer { cnn: cnn.into(), name: name.into(), report });
    }

    /// Adds one that is not.
    pub fn fail(&mut self, cnn: &str, name: &str, error: &OffloadError) {
        self.met = false;
        let (problem, nearest) = (error.to_string(), error.help());
        self.failed.push(FailedLayer { cnn: cnn.into(), name: name.into(), problem, nearest });
    }
}

impl LayerReport {
    /// The figures of an answer.
    pub fn new(problem: &Problem, answer: &Answer) -> Self {
        let cost = problem.cost(&answer.strategy.groups);
        let spec = problem.convolution.spec();
        LayerReport {
            layer: LayerFacts {
                input: spec.input,
                channels: spec.channels,
                pads: spec.pads,
                filter: spec.filter,
                filters: spec.filters,
                stride: spec.stride,
                output: problem.convolution.output(),
            },
            group: problem.group,
            filters_at_once: problem.filters_at_once,
            passes: problem.passes(),
            unit: problem.unit,
            count_writes: problem.count_writes,
            strategy: answer.strategy.name.clone(),
            shape: answer.strategy.shape.clone(),
            duration: cost.duration,
            bound: answer.bound,
            gap: 100.0 * (cost.duration as f64 / answer.bound.max(1) as f64 - 1.0),
            optimal: problem.admits(&cost) && cost.duration == answer.bound,
            steps: cost.steps,
            pixels_loaded: cost.pixels_loaded,
            most_loads: cost.most_loads,
            memory: cost.memory,
            met: problem.admits(&cost),
            nearest: (!problem.admits(&cost)).then(|| nearest(problem, &cost)),
            violation: None,
            simulated: false,
            stopped: answer.stopped.map(|why| match why {
                Stopped::Time => "time",
                Stopped::Asked => "asked",
            }),
            groups: answer.strategy.groups.clone(),
        }
    }

    fn verdict(&self) -> String {
        match (self.met, self.optimal) {
            (_, true) => "optimal (proven)".into(),
            (true, false) => {
                format!(
                    "at most {:.1} % above the optimum, which is {} or more",
                    self.gap,
                    grouped(self.bound)
                )
            }
            (false, false) => "exceeds the limits on memory or loads".into(),
        }
    }
}

/// The options under which a strategy of this cost keeps the limits.
fn nearest(problem: &Problem, cost: &Cost) -> String {
    let mut options = Vec::new();
    if problem.reload.is_some_and(|reload| cost.most_loads > reload) {
        options.push(format!("--reload {}", cost.most_loads));
    }
    if problem.accelerator.mem.is_some_and(|mem| cost.memory > mem) {
        options.push(format!("--mem-elements {}", cost.memory));
    }
    options.join(" ")
}

/// The report of a layer for people.
pub fn layer_text(problem: &Problem, report: &LayerReport) -> String {
    let facts = &report.layer;
    let by = |pair: [usize; 2]| format!("{}x{}", pair[0], pair[1]);
    let mut text = format!(
        "input {}x{}, {} filters {}, stride {}, output {}: {} patches in groups of up to {}\n",
        by(facts.input),
        facts.channels,
        facts.filters,
        by(facts.filter),
        by(facts.stride),
        by(facts.output),
        grouped(problem.convolution.patches() as u64),
        report.group,
    );
    let counted = match report.unit {
        Unit::Pixels => "pixels",
        Unit::Elements => "elements",
    };
    let shape = report.shape.as_ref().map(|shape| format!(" ({shape})")).unwrap_or_default();
    let mut rows = vec![
        vec!["strategy".to_owned(), format!("{}{shape}", report.strategy)],
        vec!["duration".into(), format!("{} cycles: {}", grouped(report.duration), report.verdict())],
        vec!["steps".into(), grouped(report.steps)],
        vec![
            "loads".into(),
            format!(
                "{} pixels, each at most {} times; the duration counts {counted}",
                grouped(report.pixels_loaded),
                report.most_loads
            ),
        ],
        vec!["memory".into(), format!("{} elements at most", grouped(report.memory))],
    ];
    if report.passes > 1 {
        let passes = format!("{}, with {} filters in memory in each", report.passes, report.filters_at_once);
        rows.insert(3, vec!["passes".into(), passes]);
    }
    if let Some(nearest) = &report.nearest {
        rows.push(vec!["nearest".into(), format!("{nearest} would do")]);
    }
    if let Some(violation) = &report.violation {
        rows.push(vec!["violation".into(), violation.clone()]);
    }
    if report.simulated {
        rows.push(vec!["simulated".into(), "step by step: the results are those of the convolution".into()]);
    }
    if let Some(why) = report.stopped {
        let when = if why == "asked" { "by Ctrl-C" } else { "when the time was up" };
        rows.push(vec!["stopped".into(), format!("{when}: another run may find another strategy")]);
    }
    text.push_str(&table(&rows, &[]));
    text.push('\n');
    for (step, group) in report.groups.iter().enumerate().take(GROUP_LINES) {
        let patches: Vec<String> = group.iter().map(u32::to_string).collect();
        // Writing to a string cannot fail.
        let _ = writeln!(text, "step {:>3}: {}", step + 1, shown(&patches));
    }
    if report.groups.len() > GROUP_LINES {
        let _ = writeln!(
            text,
            "and {} more steps; --format json has them all",
            report.groups.len() - GROUP_LINES
        );
    }
    text
}

/// A list of numbers on a line of a screen.
fn shown(numbers: &[String]) -> String {
    const MAX: usize = 16;
    match numbers.len() {
        ..=MAX => numbers.join(" "),
        more => format!("{} … {} patches", numbers[..MAX].join(" "), more),
    }
}

/// The report of a model for people.
pub fn model_text(report: &ModelReport) -> String {
    let on =
        if report.accelerator.is_empty() { String::new() } else { format!(" on {}", report.accelerator) };
    let counted = match report.unit {
        Unit::Pixels => "pixels",
        Unit::Elements => "elements",
    };
    let mut text = format!("{}{on}: durations in cycles, loads counted in {counted}\n\n", report.application);
    let header = ["layer", "input", "filters", "at once", "group", "steps", "duration", "bound", "strategy"];
    let mut rows = vec![header.map(str::to_owned).to_vec()];
    for MappedLayer { name, report, .. } in &report.layers {
        let facts = &report.layer;
        let optimal = if report.optimal { " (optimal)" } else { "" };
        rows.push(vec![
            name.clone(),
            format!("{}x{}x{}", facts.input[0], facts.input[1], facts.channels),
            format!("{} of {}x{}", facts.filters, facts.filter[0], facts.filter[1]),
            report.filters_at_once.to_string(),
            report.group.to_string(),
            grouped(report.steps),
            grouped(report.duration),
            grouped(report.bound),
            format!("{}{optimal}", report.strategy),
        ]);
    }
    let mut total = vec![String::new(); header.len()];
    total[0] = "total".into();
    for (column, figure) in [(5, report.steps), (6, report.duration), (7, report.bound)] {
        total[column] = grouped(figure);
    }
    rows.push(total);
    text.push_str(&table(&rows, &[3, 4, 5, 6, 7]));
    for FailedLayer { name, problem, nearest, .. } in &report.failed {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "\nno strategy fits {name}: {problem}");
        if let Some(nearest) = nearest {
            let _ = writeln!(text, "  {nearest}");
        }
    }
    text
}
