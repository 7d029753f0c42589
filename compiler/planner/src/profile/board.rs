//! A crate that measures a board as [`measure`](super::measure) measures this machine. It is for boards on which csdfc
//! does not run.
//!
//! Its trials are those of one round, planned here; it runs them in as many rounds as its argument says, and prints a device
//! profile. It does not measure a store.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use csdfc_input::app::resolve::{Application, RowsChoice};
use csdfc_input::device::Processor;
use csdfc_input::device::measured::scenario;
use csdfc_input::device::store::Store;
use csdfc_network::{Layer, Network};
use csdfc_plan::plan::Plan;
use csdfc_runtime::bind::Primitive;
use serde::Serialize;

use super::tally::Tally;
use super::trial::{Planned, Trial};
use super::{MODES, Request, choices, expect, rates, with_primitives};
use crate::error::Error;

/// The trials of a CNN.
struct Trials {
    /// The network with its first primitives.
    reference: Planned,
    /// The network with others, and the names of the layers that are to be timed.
    others: Vec<(Planned, BTreeSet<String>)>,
}

impl Trials {
    fn plan(application: &Application, cnn: usize, request: &Request) -> Result<Self, Error> {
        let network = &application.cnns[cnn].network;
        let plan = |network, rows| Trial::plan(application, cnn, network, rows, request.threads);
        let mut tally = Tally::new(request.threads as u64, 1, &[]);
        expect(network, request, &mut tally);
        let reference = plan(network.clone(), RowsChoice::None)?;
        let mut others = Vec::new();
        for (mode, rows) in MODES {
            while tally.left(mode) > 0 {
                let choices = choices(network, &mut tally, mode);
                others.push((
                    plan(with_primitives(network, &choices), rows.clone())?,
                    tried(network, &choices),
                ));
            }
        }
        Ok(Trials { reference, others })
    }

    /// All plans, that of the reference first.
    fn all(&self) -> impl Iterator<Item = &Planned> {
        [&self.reference].into_iter().chain(self.others.iter().map(|(planned, _)| planned))
    }
}

/// The layers for which something was chosen.
fn tried(network: &Network, choices: &[Option<Primitive>]) -> BTreeSet<String> {
    let chosen = network.layers.iter().zip(choices).filter(|(_, chosen)| chosen.is_some());
    chosen.map(|(layer, _)| layer.name.clone()).collect()
}

/// A crate that measures a board, but for the code of its plans and what comes with it (`csdfc_emit::emit_trials`).
pub struct Board {
    /// The plans of the trials.
    pub plans: Vec<Plan>,
    /// The program's other files, by their paths in the crate's folder.
    pub files: Vec<(PathBuf, Vec<u8>)>,
}

/// Plans the trials of a crate with this name, which measures the layers of an application. Figures that it cannot measure
/// come from `like`, a processor and a store.
///
/// # Errors
/// When a network cannot be planned.
pub fn board(
    application: &Application,
    request: &Request,
    (like, store): (&Processor, Option<&Store>),
    name: &str,
) -> Result<Board, Error> {
    let cnns = (0..application.cnns.len()).map(|cnn| Trials::plan(application, cnn, request));
    let cnns = cnns.collect::<Result<Vec<Trials>, Error>>()?;
    let plans = cnns.iter().flat_map(Trials::all).map(|planned| planned.plan().clone()).collect();
    let mut files: Vec<(PathBuf, Vec<u8>)> = Vec::new();
    let mut add = |path: &str, text: String| files.push((Path::new(path).into(), text.into_bytes()));
    let library = name.replace('-', "_");
    add(
        "src/main.rs",
        include_str!("template/main.rs").replace("use library::", &format!("use {library}::")),
    );
    add("src/frames.rs", include_str!("frames.rs").into());
    add("src/machine.rs", include_str!("machine.rs").into());
    add("src/speeds.rs", include_str!("speeds.rs").into());
    add("src/report.rs", include_str!("template/report.rs").into());
    add("src/tally.rs", include_str!("template/tally.rs").into());
    let networks: Vec<&Network> = application.cnns.iter().map(|cnn| &cnn.network).collect();
    add("src/table.rs", table(&cnns, &networks, request, (like, store)));
    add("README.md", readme(name, &application.name));
    Ok(Board { plans, files })
}

/// The tables of the program: scenarios, trials, the work from which rates follow, and the figures that are not
/// measured.
fn table(
    cnns: &[Trials],
    networks: &[&Network],
    request: &Request,
    (like, store): (&Processor, Option<&Store>),
) -> String {
    let mut scenarios = Scenarios::default();
    let mut trials = String::new();
    let mut number = 0;
    let mut trial = |planned: &Planned, tried: &BTreeSet<String>| {
        let mut text = format!("Trial {{ number: {number}, layers: &[\n");
        number += 1;
        for (layer, name, rows) in planned.layers() {
            let scenario = scenarios.number(layer);
            let (primitive, is_tried) = (layer.primitive().name(), tried.contains(name));
            // Writing to a string does not fail.
            let _ = writeln!(
                text,
                "    Layer {{ name: {name:?}, scenario: {scenario}, primitive: {primitive:?}, rows: {rows}, \
                 is_tried: {is_tried} }},"
            );
        }
        text + "]}"
    };
    for cnn in cnns {
        let _ = writeln!(trials, "({}, &[", trial(&cnn.reference, &BTreeSet::new()));
        for (planned, tried) in &cnn.others {
            let _ = writeln!(trials, "{},", trial(planned, tried));
        }
        trials += "]),\n";
    }
    let mut work = String::new();
    for layer in networks.iter().flat_map(|network| &network.layers).filter(|layer| !layer.is_input()) {
        let (kind, amount) = rates::work(layer);
        let (scenario, primitive) = (scenarios.number(layer), layer.primitive().name());
        let _ = writeln!(
            work,
            "    Work {{ scenario: {scenario}, primitive: {primitive:?}, rows: {}, kind: Rate::{kind:?}, \
             amount: {amount:?} }},",
            layer.rows()
        );
    }
    let scenarios =
        scenarios.names.iter().fold(String::new(), |text, name| text + &format!("    {name:?},\n"));
    let speeds = rates::like_speeds(&like.core);
    format!(
        "//! What is measured.\n\n\
         use crate::report::Work;\nuse crate::speeds::{{Rate, Speeds}};\nuse crate::tally::{{Layer, Trial}};\n\n\
         /// The version of csdfc that wrote this.\npub const CSDFC: &str = {:?};\n\
         /// How often each layer is timed with each primitive.\npub const ROUNDS: usize = {};\n\
         /// Workers that share each firing.\npub const THREADS: usize = {};\n\
         /// Rates that are not measured.\npub const LIKE: Speeds = Speeds {{ macs_per_second: {:?}, \
         depthwise_efficiency: {:?}, elements_per_second: {:?}, firing_ns: {:?} }};\n\
         /// How many times as fast a core computes layers of 16-bit floats.\npub const HALF_SPEED: f64 = {:?};\n\
         /// How cores share a firing.\npub const WORKERS: &str = {:?};\n\
         /// Bytes per second of all cores.\npub const MEMORY: &str = {:?};\n\
         /// Bytes of a core's cache, if the system tells none.\npub const CACHE_BYTES: u64 = {};\n\
         /// What streamed weights are read from.\npub const STORE: &str = {:?};\n\
         /// What is computed.\npub const SCENARIOS: &[&str] = &[\n{scenarios}];\n\
         /// Of each network, the reference and the trials.\n\
         pub const CNNS: &[(Trial, &[Trial])] = &[\n{trials}];\n\
         /// The work of each layer.\npub const WORK: &[Work] = &[\n{work}];\n",
        env!("CARGO_PKG_VERSION"),
        request.rounds,
        request.threads,
        speeds.macs_per_second,
        speeds.depthwise_efficiency,
        speeds.elements_per_second,
        speeds.firing_ns,
        like.core.half_speed,
        ron(&like.workers),
        ron(&like.memory_bytes_per_second),
        like.cache_bytes,
        ron(&store),
    )
}

/// Plain data as RON, which can always be written.
fn ron(data: &impl Serialize) -> String {
    ron::to_string(data).unwrap_or_default()
}

/// Scenarios and their numbers.
#[derive(Default)]
struct Scenarios {
    names: Vec<String>,
}

impl Scenarios {
    fn number(&mut self, layer: &Layer) -> usize {
        let name = scenario(layer);
        self.names.iter().position(|known| *known == name).unwrap_or_else(|| {
            self.names.push(name);
            self.names.len() - 1
        })
    }
}

fn readme(name: &str, application: &str) -> String {
    format!(
        "# {name}\n\n\
         Written by csdfc {} to measure how long a board takes for the layers of `{application}`, with each primitive\n\
         that computes them. It needs nothing but Rust 1.89, and neither csdfc nor the model.\n\n    \
         cargo build --release\n    \
         target/release/{name} >board.ron\n\n\
         `csdfc plan … --device board.ron` plans on what was measured. `--rounds N` says how often each layer is timed.\n\
         Nothing else should run meanwhile. The program prints its progress to standard error, and all times at the\n\
         end.\n\n\
         Weights and inputs are made up. The program measures no store of streamed weights, and not how cores share a\n\
         firing and the memory: for these, `board.ron` has the figures of csdfc's profile `generic`.\n\n\
         ## On a Jetson, or another 64-bit Arm\n\n\
         On the PC, with Debian's or Ubuntu's `gcc-aarch64-linux-gnu` as the linker:\n\n    \
         rustup target add aarch64-unknown-linux-gnu\n    \
         cargo build --release --target aarch64-unknown-linux-gnu\n    \
         scp target/aarch64-unknown-linux-gnu/release/{name} board:\n    \
         ssh board ./{name} >board.ron\n\n\
         The program is linked statically (`.cargo/config.toml`). Built on the board itself it needs nothing but Rust.\n\n\
         ## Licence\n\n\
         The trials' code is yours. The kernels and what surrounds them are under MIT or Apache-2.0, at your choice.\n",
        env!("CARGO_PKG_VERSION"),
    )
}
