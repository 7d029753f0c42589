//! Primitives, rows and segments chosen together, compared with the same chosen one after the other: the time of a
//! frame at several budgets.

use std::fmt::Write;
use std::path::Path;

use csdfc_command::error::Error;
use csdfc_input::app::MemoryGoal;
use csdfc_input::app::resolve::Application;
use csdfc_input::device::DeviceProfile;
use csdfc_input::units::grouped;
use csdfc_plan::check;
use csdfc_planner::driver::{self, Planned, SeparatePlans};
use csdfc_planner::open::{self, AppSource};

use super::Tell;

/// The profile, which comes with csdfc.
pub(crate) const DEVICE: &str = "epyc-vm";

/// Applications: their names, and their text if they are not built-in networks.
const APPLICATIONS: &[(&str, Option<&str>)] = &[
    ("builtin:mobilenet_v2", None),
    ("builtin:googlenet", None),
    ("builtin:resnet50", None),
    ("apps/three_cnns.ron", Some(include_str!("../../../apps/three_cnns.ron"))),
    ("apps/pipelines/resnet50.ron", Some(include_str!("../../../apps/pipelines/resnet50.ron"))),
];

/// Budgets: this many quarters of the way from the least memory to the memory of the plan without a limit.
const QUARTERS: [u64; 4] = [0, 1, 2, 3];

const INTRODUCTION: &str = "# Primitives, layouts, rows and segments together

Made by `cargo run --release -p csdfc-reproduce -- joint -o docs/joint`; do not edit.
Three ways to plan an application, all on the device profile
`epyc-vm` and so with one table of costs, and all modelled from the times measured there:

- *joint*: `csdfc plan --primitives auto`, which looks for all of it at once;
- *primitives first, then memory*: the time optimum of `csdfc select --objective time`, conversions charged, whose rows and
  segments are then planned within the budget;
- *memory first, then primitives*: `csdfc plan --primitives fixed`, whose rows and segments stay, and whose primitives are
  then replaced by faster ones where the plan still fits.

The first budget is the least memory for which the joint search finds a plan (`--mem min`), and the last row has no
budget. The budgets between are a quarter, a half and three quarters of the way to the memory of the joint plan without
a limit. A time is the time from one frame to the next; for several CNNs it is their geometric mean. A dash: no plan
fits. Within a budget, the joint search goes on from the best plan so far, with the primitives that it has already
chosen. If few layers have several useful primitives, as in MobileNetV2, the joint plan gains mainly by this. *Saved* is
how much less time the joint plan takes than the better one of the others.

";

/// The page. `tell` receives the progress.
///
/// # Errors
/// When an application cannot be planned. No such application is known.
pub fn files(tell: Tell<'_>) -> Result<Vec<(String, String)>, Error> {
    let device = DeviceProfile::find(DEVICE, Path::new(""))?;
    let mut page = String::from(INTRODUCTION);
    let mut findings = String::new();
    for (name, text) in APPLICATIONS {
        let rows = rows(name, &application(name, *text)?, &device, tell)?;
        // Writing to a string cannot fail.
        let _ = write!(page, "## `{name}`\n\n{}\n", table(&rows));
        let _ = writeln!(findings, "- `{name}`: {}", finding(&rows));
    }
    let _ = write!(page, "## In short\n\n{findings}");
    Ok(vec![("README.md".into(), page)])
}

fn application(name: &str, text: Option<&str>) -> Result<Application, Error> {
    let mut opened = match text {
        None => open::open(name)?,
        Some(text) => {
            let bytes = text.as_bytes().to_vec();
            open::application(name, AppSource::Text { name: name.into(), folder: "".into(), bytes })?
        }
    };
    opened.spec.device = Some(DEVICE.into());
    opened.spec.constraints.memory = None;
    Ok(opened.resolve()?)
}

/// The times at a budget, in nanoseconds.
struct Row {
    budget: Option<u64>,
    joint: (Option<f64>, u64),
    primitives_first: Option<f64>,
    memory_first: Option<f64>,
}

impl Row {
    /// The better of the other times.
    fn other(&self) -> Option<f64> {
        let others = [self.primitives_first, self.memory_first].into_iter().flatten();
        others.min_by(f64::total_cmp)
    }

    /// The share of the better other time that the joint choice saves.
    fn saved(&self) -> Option<f64> {
        Some(1.0 - self.joint.0? / self.other()?)
    }
}

fn rows(
    name: &str,
    application: &Application,
    device: &DeviceProfile,
    tell: Tell<'_>,
) -> Result<Vec<Row>, Error> {
    let with = |memory: Option<MemoryGoal>| {
        let mut application = application.clone();
        application.constraints.memory = memory;
        application
    };
    let paths = || vec![String::new(); application.cnns.len()];
    let joint = |memory: Option<MemoryGoal>| driver::plan(&with(memory), device, paths());
    tell(&format!("{name}: the least memory"));
    let least = joint(Some(MemoryGoal::Min))?.plan.memory.total;
    tell(&format!("{name}: no limit"));
    let most = joint(None)?.plan.memory.total.max(least);
    let budgets = QUARTERS.map(|quarters| Some(least + (most - least) / 4 * quarters));
    let mut rows = Vec::new();
    for budget in budgets.into_iter().chain([None]) {
        let limit = budget.map(MemoryGoal::Bytes);
        let told = budget.map_or_else(|| "no limit".into(), |bytes| format!("{} bytes", grouped(bytes)));
        tell(&format!("{name}: {told}"));
        let planned = joint(limit)?;
        let SeparatePlans { fixed, primitives_first, memory_first } =
            driver::separate_plans(&with(limit), device, paths())?;
        // If no other primitives are faster, or if they do not fit, the plan stays as it is.
        rows.push(Row {
            budget,
            joint: (time(&planned), planned.plan.memory.total),
            primitives_first: time(primitives_first.as_ref().unwrap_or(&fixed)),
            memory_first: time(memory_first.as_ref().unwrap_or(&fixed)),
        });
    }
    Ok(rows)
}

/// Nanoseconds between two frames of a plan that meets its budget and that our checker accepts.
fn time(planned: &Planned) -> Option<f64> {
    let plan = &planned.plan;
    let logarithms = plan.cnns.iter().map(|cnn| (1e9 / cnn.fps).ln());
    let mean = logarithms.sum::<f64>() / plan.cnns.len() as f64;
    (plan.constraints.met && check::check(plan).is_ok()).then(|| mean.exp())
}

fn table(rows: &[Row]) -> String {
    let mut text = String::from(
        "| budget, bytes | joint, ms | primitives first, ms | memory first, ms | saved | joint plan, bytes |\n\
         | --- | --- | --- | --- | --- | --- |\n",
    );
    let ms = |time: Option<f64>| time.map_or_else(|| "–".into(), |ns| format!("{:.3}", ns / 1e6));
    for row in rows {
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} | {} |",
            row.budget.map_or_else(|| "none".into(), grouped),
            ms(row.joint.0),
            ms(row.primitives_first),
            ms(row.memory_first),
            row.saved().map_or_else(|| "–".into(), |saved| format!("{:.1} %", 100.0 * saved)),
            grouped(row.joint.1),
        );
    }
    text
}

/// At how many budgets the joint plan is faster, and by how much at most.
fn finding(rows: &[Row]) -> String {
    let compared: Vec<f64> = rows.iter().filter_map(Row::saved).collect();
    let faster = compared.iter().filter(|saved| **saved > 1e-9).count();
    let slower = compared.iter().filter(|saved| **saved < -1e-9).count();
    let most = compared.iter().copied().fold(0.0, f64::max);
    format!(
        "faster than both at {faster} of {} budgets, by {:.1} % at most, and slower at {slower}",
        rows.len(),
        100.0 * most
    )
}
