//! What `csdfc offload` says.

use std::fmt::Write;

use serde::Serialize;

use crate::offload::{Answer, Groups, Problem, Unit};
use crate::report::table::table;
use crate::units::grouped;

/// Most lines of groups that are shown to people.
const GROUP_LINES: usize = 12;

/// A layer's strategy.
#[derive(Debug, Clone, Serialize)]
pub struct LayerReport {
    /// The layer.
    pub layer: LayerFacts,
    /// Most patches of a group.
    pub group: usize,
    /// Filters in memory at a time.
    pub filters_at_once: usize,
    /// Passes over the patches, one for each subset of the filters.
    pub passes: u64,
    /// What loads are counted in.
    pub unit: Unit,
    /// Whether the duration counts writes.
    pub count_writes: bool,
    /// What made the strategy.
    pub strategy: String,
    /// How, where there is more to say.
    pub shape: Option<String>,
    /// In cycles: Eq. 15, or Definition 3 with writes.
    pub duration: u64,
    /// No strategy takes fewer cycles.
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
    /// Most elements in memory in a step.
    pub memory: u64,
    /// Whether the bounds on memory and loads are kept.
    pub met: bool,
    /// The rule that is broken where they are not, and the step that breaks it.
    pub violation: Option<String>,
    /// Whether the strategy was executed on data, with the results of the direct convolution.
    pub simulated: bool,
    /// `time` where the clock ended the search, so that another run may find another strategy.
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
            violation: None,
            simulated: false,
            stopped: answer.stopped_by_time.then_some("time"),
            groups: answer.strategy.groups.clone(),
        }
    }

    fn verdict(&self) -> String {
        match (self.met, self.optimal) {
            (_, true) => "optimal, proved".into(),
            (true, false) => {
                format!(
                    "at most {:.1} % above the optimum, which is at least {}",
                    self.gap,
                    grouped(self.bound)
                )
            }
            (false, false) => "breaks the bounds on memory or loads".into(),
        }
    }
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
                "{} pixels, each at most {} times; durations count {counted}",
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
    if let Some(violation) = &report.violation {
        rows.push(vec!["violation".into(), violation.clone()]);
    }
    if report.simulated {
        rows.push(vec!["simulated".into(), "step by step: the results are those of the convolution".into()]);
    }
    if report.stopped.is_some() {
        rows.push(vec!["stopped".into(), "by the clock: another run may find another strategy".into()]);
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
    const MOST: usize = 16;
    match numbers.len() {
        ..=MOST => numbers.join(" "),
        more => format!("{} … {} patches", numbers[..MOST].join(" "), more),
    }
}
