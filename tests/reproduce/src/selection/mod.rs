//! Papers on the choice of primitives: the answers of `csdfc select` for their networks on a device profile, compared
//! with the printed figures. All times are predicted from the profile.

pub mod pbqp;
pub mod taso;

use std::collections::BTreeSet;

use csdfc_command::error::Error;
use csdfc_input::device::DeviceProfile;
use csdfc_plan::plan::StorageModel;
use csdfc_planner::open;
use csdfc_planner::selection::{CostTable, cost_table};
use csdfc_select::baselines::SUM2D;
use csdfc_select::instance::{LayerKind, Layout, PrimitiveOption};
use csdfc_select::{Answer, Instance, InstanceError, Method, Problem, Quantity, Query, answer};

/// The profile unless another is given.
pub const DEVICE: &str = "epyc-vm";

/// The processor on which the networks run.
const CPU: &str = "cpu";

/// The family of the first primitive of a convolution, which every profile has.
const FIRST: &str = "indirect";

/// A network and its costs.
struct CostedNetwork {
    /// Its name in the papers.
    name: &'static str,
    /// The costs of every layer as csdfc executes it.
    executed: Instance,
    /// The costs as the papers count them: a layer that is not a convolution costs nothing, in any layout.
    counted: Instance,
    /// The primitive of every convolution if nothing is chosen: [`SUM2D`], or [`FIRST`] if [`SUM2D`] was not measured
    /// for all of them.
    plain: &'static str,
}

impl CostedNetwork {
    /// A built-in network: with concats and additions as layers of their own, as in the papers, or else as csdfc plans
    /// it by default. `None` if, in both forms, some convolution was not measured with this number of workers.
    fn of(
        (name, model): (&'static str, &str),
        device: &DeviceProfile,
        threads: u64,
    ) -> Result<Option<CostedNetwork>, Error> {
        for storage in [StorageModel::Edges, StorageModel::Tensors] {
            let mut opened = open::open(&format!("builtin:{model}"))?;
            opened.spec.threads = threads as usize;
            opened.spec.storage = Some(storage);
            let application = opened.resolve()?;
            let CostTable { instance: executed, modelled } =
                cost_table(&application, &application.cnns[0], device)?;
            let convolutions = || executed.layers.iter().filter(|layer| layer.kind == LayerKind::Conv);
            if convolutions().any(|layer| modelled.layers.contains(&layer.name)) {
                continue;
            }
            let is_plain = |option: &PrimitiveOption| option.primitive.split('-').any(|part| part == SUM2D);
            let has_plain = convolutions().all(|layer| layer.options.iter().any(is_plain));
            let plain = if has_plain { SUM2D } else { FIRST };
            let counted = as_counted(executed.clone());
            return Ok(Some(CostedNetwork { name, executed, counted, plain }));
        }
        Ok(None)
    }

    /// Its name in tables.
    fn title(&self) -> String {
        if self.plain == SUM2D { self.name.into() } else { format!("{} (over {FIRST})", self.name) }
    }
}

/// The table with all layouts, without time and memory, for each layer that is not a convolution.
fn as_counted(mut instance: Instance) -> Instance {
    let layouts = 0..instance.layouts.len() as u8;
    for layer in instance.layers.iter_mut().filter(|layer| layer.kind == LayerKind::Pass) {
        let free = |layout: u8| PrimitiveOption {
            primitive: "free".into(),
            input: Layout(layout),
            output: Layout(layout),
            time: 0.0,
            memory: 0.0,
        };
        layer.options = layouts.clone().map(free).collect();
    }
    instance
}

/// The command that makes a page from this profile.
fn command(paper: &str, device: &DeviceProfile) -> String {
    match device.name.as_str() {
        DEVICE => format!("cargo run --release -p csdfc-reproduce -- {paper} -o docs/{paper}"),
        other => format!(
            "cargo run --release -p csdfc-reproduce -- {paper} -o docs/{paper}/{other} --device {other}.ron"
        ),
    }
}

/// Numbers of workers with which anything was measured.
fn threads(device: &DeviceProfile) -> Result<BTreeSet<u64>, Error> {
    Ok(device.processor(CPU)?.measured.iter().map(|measured| measured.threads).collect())
}

/// A bound problem.
fn problem<'a>(
    subject: &CostedNetwork,
    instance: &'a Instance,
    pass_converts: bool,
) -> Result<Problem<'a>, Error> {
    Problem::new(instance, pass_converts).map_err(|error| wrong(subject, &error))
}

fn wrong(subject: &CostedNetwork, error: &InstanceError) -> Error {
    Error::Bug(format!("the table of {} contradicts itself: {error}", subject.name))
}

/// The fastest selection with no other budget than one of memory, in KiB. `None` if there is no selection.
fn fastest(problem: &Problem<'_>, method: Method, memory: Option<f64>) -> Option<csdfc_select::Chosen> {
    let query = Query { minimise: Quantity::Time, time: None, memory, workspace: None, method };
    match answer(problem, &query) {
        Ok(Answer::Met(chosen)) => Some(chosen),
        _ => None,
    }
}

/// Why some tables are over [`FIRST`].
const OVER_FIRST: &str = "If the profile has measured them so, concats and additions are layers of
their own, as in the papers. By default, csdfc makes them part of convolutions, and only its first primitive,
`indirect-gemm-hwc-hwc`, computes such convolutions. The profile may have a network only in this form, or it may lack
sum2d for some convolution of a network. Such a network is *over indirect*: the first primitive takes the place of
sum2d. That primitive has vector code and needs no workspace, so ratios to it are not comparable with ratios to sum2d.
";

/// The sentence about networks with convolutions that were not measured. It gives their built-in names.
fn left_out(missing: &[&str], page: &str) -> String {
    if missing.is_empty() {
        return String::new();
    }
    format!(
        "\nThese networks are left out, since the profile lacks some of their convolutions: {}.\n\
         `csdfc profile NAME.ron --device-out FILE.ron` measures these convolutions for an application\n\
         `(cnns: [(model: \"builtin:NAME\")], storage: edges)`. Then\n\
         `csdfc-reproduce {page} -o DIR --device FILE.ron` includes the networks.\n",
        missing.join(", ")
    )
}

/// A value in the unit of the instance, or a dash.
fn cell(value: Option<f64>, text: impl Fn(f64) -> String) -> String {
    value.map_or_else(|| "–".into(), text)
}
