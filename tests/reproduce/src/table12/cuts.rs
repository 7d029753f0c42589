//! Applications 3 and 4 under other cuts, since the paper does not say where it cuts their CNNs.

use std::fmt::Write;

use csdfc_command::error::Error;
use csdfc_input::app::spec::Method;
use csdfc_input::units::MemoryGoal;
use csdfc_planner::search::budget::Budget;
use csdfc_planner::search::watch::Watch;

use super::plans::{checked, opened, size};
use super::printed::Application;
use crate::Tell;

/// The last layers of other first partitions, by CNN.
const OTHERS: [(&str, &[&str]); 2] = [
    ("mobilenet_v2", &["expanded_conv_project", "block_3_project", "block_6_project", "block_10_project"]),
    (
        "efficientnet_b0",
        &["block1a_project_conv", "block2a_project_conv", "block3a_project_conv", "block4c_project_conv"],
    ),
];

/// Chromosomes that Algorithm 2 may try for each cut.
pub const EVALUATIONS: u64 = 2000;

/// A cut, and the megabytes and frames per second that result from it.
pub struct Cut {
    /// The last layer of the first partition.
    pub upto: String,
    /// Whether it is the cut of the table.
    pub is_ours: bool,
    /// Megabytes without reduction, by \[17\], and by Algorithm 2 at its least.
    pub megabytes: [f64; 3],
    /// Frames per second without reduction.
    pub fps: f64,
}

/// The cuts of an application, with the cut of the table first. There are none if the application is not cut.
///
/// # Errors
/// When it cannot be planned.
pub fn cuts(application: &Application, seed: u64, tell: Tell<'_>) -> Result<Vec<Cut>, Error> {
    let spec = opened(application.file)?.spec;
    let ours = spec.cnns.first().and_then(|cnn| cnn.partitions.first()?.upto.clone());
    let Some(ours) = ours else { return Ok(Vec::new()) };
    let others = OTHERS.iter().filter(|(cnn, _)| application.cnns.contains(cnn)).flat_map(|(_, cuts)| *cuts);
    let all = std::iter::once(ours.clone()).chain(others.map(|cut| (*cut).to_owned()));
    let cut = |upto: String| {
        tell(&format!("application {}: cut after {upto}", application.name));
        let plan = |method, memory| {
            let mut opened = opened(application.file)?;
            opened.spec.cnns[0].partitions[0].upto = Some(upto.clone());
            opened.spec.search.seed = seed;
            opened.spec.search.method = Some(method);
            opened.spec.constraints.memory = memory;
            let watch = Watch { budget: Budget::Evaluations(EVALUATIONS), ..Watch::unwatched() };
            checked(&opened, &watch)
        };
        let none = plan(Method::None, None)?;
        let parts = plan(Method::Parts, None)?;
        let paper = plan(Method::Paper, Some(MemoryGoal::Min))?;
        let megabytes = [&none, &parts, &paper].map(size);
        Ok(Cut { is_ours: upto == ours, upto, megabytes, fps: none.cnns.iter().map(|cnn| cnn.fps).sum() })
    };
    all.map(cut).collect()
}

/// The table of an application's cuts, and by how much the figures vary with them.
pub fn table(application: &Application, cuts: &[Cut]) -> String {
    let mut text = String::new();
    for cut in cuts {
        let [none, parts, paper] = cut.megabytes;
        let ours = if cut.is_ours { ", the table's" } else { "" };
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "| {} | {}{ours} | {none:.2} | {parts:.2} | {paper:.2} | {:.1} |",
            application.name, cut.upto, cut.fps
        );
    }
    text
}

/// By how many per cent the least and the greatest value of a figure, over all cuts, differ from the table's.
pub fn spread(cuts: &[Cut], figure: impl Fn(&Cut) -> f64) -> [f64; 2] {
    let ours = cuts.iter().find(|cut| cut.is_ours).map_or(f64::NAN, &figure);
    let off = |cut: &Cut| 100.0 * (figure(cut) / ours - 1.0);
    [cuts.iter().map(off).fold(0.0, f64::min), cuts.iter().map(off).fold(0.0, f64::max)]
}
