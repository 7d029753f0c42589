//! What each strategy of the planner is worth: plans with all strategies, compared with plans without one of them.

use std::fmt::Write;
use std::path::Path;
use std::time::Instant;

use csdfc_command::error::Error;
use csdfc_input::app::MemoryGoal;
use csdfc_input::app::resolve::Application;
use csdfc_input::app::spec::WeightsPlace;
use csdfc_input::device::DeviceProfile;
use csdfc_input::units::grouped;
use csdfc_planner::driver;
use csdfc_planner::open;
use csdfc_planner::search::start::Start;
use csdfc_planner::search::watch::{Scope, Watch};
use csdfc_planner::strategy::Strategy;

use super::Tell;
use super::joint::DEVICE as MEASURED;

const MODELLED: &str = "generic";

const NETWORKS: [&str; 2] = ["resnet8", "mobilenet_v2"];

const INTRODUCTION: &str = "# What each strategy of the planner is worth

Made by `cargo run -p csdfc-reproduce -- strategies -o docs/strategies`; do not edit.
Each network is planned with all strategies, and then without one of them (`csdfc plan --without NAME`). The tables list
the strategies whose absence changes the plan's bytes or frames per second. Bytes, frames per
second and planning time are relative to the plan with all strategies: 1.20 × bytes means that the plan is a fifth larger
without the strategy. A dash means *the same*. Rates are modelled, or follow from measured times where the device was
measured. Planning times differ from run to run, and from machine to machine.

";

/// What is asked of a plan.
struct Request {
    /// As one would ask for it on the command line.
    words: String,
    memory: MemoryGoal,
    weights: WeightsPlace,
    device: &'static str,
}

/// The figures of a plan.
struct Figures {
    bytes: u64,
    fps: f64,
    seconds: f64,
}

/// The page. `tell` receives the progress.
///
/// # Errors
/// When a network cannot be planned. No such network is known.
pub fn files(tell: Tell<'_>) -> Result<Vec<(String, String)>, Error> {
    let mut page = without_plans();
    for network in NETWORKS {
        let _ = write!(page, "\n## `builtin:{network}`\n");
        for request in requests(network)? {
            tell(&format!("{network}: {}", request.words));
            page += &table(network, &request)?;
        }
    }
    Ok(vec![("README.md".into(), page)])
}

/// The beginning of the page, which needs no plan: the list of the strategies.
pub fn without_plans() -> String {
    let mut page = format!("{INTRODUCTION}## The strategies\n\n| name | what it does |\n| --- | --- |\n");
    for strategy in Strategy::all() {
        // Writing to a string cannot fail.
        let _ = writeln!(page, "| `{}` | {} |", strategy.name(), strategy.about());
    }
    page
}

/// The least memory, with weights in memory and with streamed weights; and budgets halfway, on a modelled and on a
/// measured device, and with weights that may be streamed.
fn requests(network: &str) -> Result<Vec<Request>, Error> {
    let ask = |words: &str, memory, weights, device| Request { words: words.into(), memory, weights, device };
    let least = ask("--mem min", MemoryGoal::Min, WeightsPlace::Resident, MODELLED);
    let streamed = ask("--mem min --weights streamed", MemoryGoal::Min, WeightsPlace::Streamed, MODELLED);
    let fastest = MemoryGoal::Bytes(u64::MAX);
    let fastest = ask("", fastest, WeightsPlace::Resident, MODELLED);
    let bytes = |request: &Request| Ok::<_, Error>(planned(network, request, &[])?.bytes);
    let halfway = bytes(&least)?.midpoint(bytes(&fastest)?);
    let between = bytes(&streamed)?.midpoint(bytes(&least)?);
    let within = |bytes: u64, more: &str, weights, device| {
        ask(&format!("--mem {bytes}{more}"), MemoryGoal::Bytes(bytes), weights, device)
    };
    let on_measured = format!(" --device {MEASURED}");
    Ok(vec![
        within(halfway, "", WeightsPlace::Resident, MODELLED),
        within(halfway, &on_measured, WeightsPlace::Resident, MEASURED),
        within(between, " --weights auto", WeightsPlace::Auto, MODELLED),
        least,
        streamed,
    ])
}

fn planned(network: &str, request: &Request, without: &[Strategy]) -> Result<Figures, Error> {
    let mut opened = open::open(&format!("builtin:{network}"))?;
    opened.spec.constraints.memory = Some(request.memory);
    opened.spec.weights = request.weights;
    let application: Application = opened.resolve()?;
    let device = DeviceProfile::find(request.device, Path::new(""))?;
    let watch = Watch { scope: Scope::Plan, without, ..Watch::unwatched() };
    let (started, start, paths) = (Instant::now(), Start::default(), vec![String::new()]);
    let plan = driver::plan_from(&start, &application, &device, paths, &watch, &driver::validate)?.plan;
    let seconds = started.elapsed().as_secs_f64();
    Ok(Figures { bytes: plan.memory.total, fps: plan.cnns[0].fps, seconds })
}

/// The strategies that change something.
fn table(network: &str, request: &Request) -> Result<String, Error> {
    let all = planned(network, request, &[])?;
    let mut text = format!(
        "\n`{}`: {} bytes, {:.1} fps, planned in {:.2} s\n\n| without | bytes | fps | planning time |\n| --- | ---: | \
         ---: | ---: |\n",
        request.words,
        grouped(all.bytes),
        all.fps,
        all.seconds
    );
    for strategy in Strategy::all() {
        let other = planned(network, request, &[strategy])?;
        let slower = other.seconds / all.seconds;
        if other.bytes == all.bytes && other.fps == all.fps {
            continue;
        }
        let ratio = |other: f64, all: f64| match other == all {
            true => "–".to_owned(),
            false => format!("{:.4} ×", other / all),
        };
        let (bytes, fps) = (ratio(other.bytes as f64, all.bytes as f64), ratio(other.fps, all.fps));
        // Writing to a string cannot fail.
        let _ = writeln!(text, "| `{}` | {bytes} | {fps} | {slower:.2} × |", strategy.name());
    }
    Ok(text)
}
