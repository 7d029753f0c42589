//! Streamed weights: memory and frame rate with slow and fast stores, compared with loading layer by layer.

use std::fmt::Write;
use std::path::Path;

use csdfc_command::error::Error;
use csdfc_input::app::MemoryGoal;
use csdfc_input::app::resolve::{Application, RowsChoice};
use csdfc_input::app::spec::WeightsPlace;
use csdfc_input::device::DeviceProfile;
use csdfc_input::device::store::Store;
use csdfc_input::units::grouped;
use csdfc_network::LayerId;
use csdfc_plan::check;
use csdfc_plan::plan::Plan;
use csdfc_planner::cost::ProcessorShare;
use csdfc_planner::driver;
use csdfc_planner::open;

use super::Tell;

/// The profile whose store is replaced.
const DEVICE: &str = "generic";

const NETWORKS: [&str; 2] = ["mobilenet_v2", "resnet50"];

/// Bytes per second of the stores, and their names.
const STORES: [(u64, &str); 3] =
    [(50_000_000, "50 MB/s"), (250_000_000, "250 MB/s"), (2_000_000_000, "2 GB/s")];

/// The number of steps between budgets, from the least memory to the memory of the fastest plan. Each step multiplies
/// the budget by the same factor.
const STEPS: i32 = 6;

const INTRODUCTION: &str = "# Streamed weights: memory and frame rate

Made by `cargo run --release -p csdfc-reproduce -- streaming -o docs/streaming`; do not edit.
Each network is planned on the device profile `generic`, with
three stores that differ in their bandwidth (latency 80 µs, blocks of 4096 bytes), in budgets from the least memory (`--mem
min --weights streamed`) to what the plan without a limit takes. csdfc chooses which weights stay in memory
(`--weights auto`). Rates are modelled. *Bound by* says what takes longer in a frame, computing or reading.

The page compares these plans with two forms of demand layering (Ji et al., RTSS 2022), which loads layer by layer: *one
by one*, where a layer is loaded, computed and forgotten; and *the next one meanwhile*, where a layer is loaded while
the one before is computed, so that two of them are in memory. Both have the buffers of our plan without parts, and the
modelled times of the same profile. No figure here is that paper's: it has other networks, on other hardware.

";

/// The page. `tell` receives the progress.
///
/// # Errors
/// When a network cannot be planned. No such network is known.
pub fn files(tell: Tell<'_>) -> Result<Vec<(String, String)>, Error> {
    let mut page = String::from(INTRODUCTION);
    for name in NETWORKS {
        // Writing to a string cannot fail.
        let _ = write!(page, "## `builtin:{name}`\n\n");
        for (bytes_per_second, label) in STORES {
            let mut device = DeviceProfile::find(DEVICE, Path::new(""))?;
            device.store = Some(Store { bytes_per_second, latency_ns: 80_000, block: 4096 });
            tell(&format!("{name}: {label}"));
            let _ = write!(page, "A store of {label}:\n\n{}\n", table(name, &device)?);
        }
    }
    Ok(vec![("README.md".into(), page)])
}

fn application(name: &str, memory: Option<MemoryGoal>, weights: WeightsPlace) -> Result<Application, Error> {
    let mut opened = open::open(&format!("builtin:{name}"))?;
    (opened.spec.constraints.memory, opened.spec.weights) = (memory, weights);
    Ok(opened.resolve()?)
}

fn planned(application: &Application, device: &DeviceProfile) -> Result<Plan, Error> {
    Ok(driver::plan(application, device, vec![String::new()])?.plan)
}

fn table(name: &str, device: &DeviceProfile) -> Result<String, Error> {
    let least = planned(&application(name, Some(MemoryGoal::Min), WeightsPlace::Streamed)?, device)?;
    let fastest = planned(&application(name, None, WeightsPlace::Resident)?, device)?;
    let [low, high] = [&least, &fastest].map(|plan| plan.memory.total);
    let ratio = (high as f64 / low as f64).powf(1.0 / f64::from(STEPS));
    let mut text = String::from(
        "| budget, bytes | total, bytes | fps | read a frame, bytes | bound by |\n\
         | ---: | ---: | ---: | ---: | --- |\n",
    );
    for step in 0..=STEPS {
        let budget = if step == STEPS { high } else { (low as f64 * ratio.powi(step)) as u64 };
        let application = application(name, Some(MemoryGoal::Bytes(budget)), WeightsPlace::Auto)?;
        let plan = planned(&application, device)?;
        let is_sound = plan.constraints.met && check::check(&plan).is_ok();
        let cnn = &plan.cnns[0];
        let bound = match (cnn.read_ns, cnn.computing_ns) {
            (Some(read), Some(computing)) if read > computing => "the store",
            _ => "computing",
        };
        // Writing to a string cannot fail.
        let _ = match is_sound {
            false => writeln!(text, "| {} | none found | | | |", grouped(budget)),
            true => writeln!(
                text,
                "| {} | {} | {:.1} | {} | {bound} |",
                grouped(budget),
                grouped(plan.memory.total),
                cnn.fps,
                grouped(cnn.bytes_read.unwrap_or(0))
            ),
        };
    }
    for (name, (bytes, ns)) in ["one by one", "the next one meanwhile"].iter().zip(layering(name, device)?) {
        let read: u64 = least.cnns[0].layers.iter().map(|layer| layer.parameters).sum();
        let _ = writeln!(
            text,
            "| demand layering, {name} | {} | {:.1} | {} | |",
            grouped(bytes),
            1e9 / ns,
            grouped(read)
        );
    }
    Ok(text)
}

/// Bytes, and nanoseconds per frame, of demand layering: with one layer after another, and with the next layer loaded
/// while a layer computes.
fn layering(name: &str, device: &DeviceProfile) -> Result<[(u64, f64); 2], Error> {
    let mut application = application(name, None, WeightsPlace::Resident)?;
    application.rows = RowsChoice::None;
    let plan = planned(&application, device)?;
    let network = &application.cnns[0].network;
    let processor = device.processor("cpu")?;
    let (seat, store) = (ProcessorShare::alone(processor, 1), device.store.as_ref());
    let layers: Vec<(u64, f64, f64)> = (0..network.layers.len())
        .map(|l| {
            let layer = &network.layers[l];
            let bytes = plan.cnns[0].layers[l].parameters;
            let read = store.filter(|_| bytes > 0).map_or(0.0, |store| store.read_ns(bytes));
            (bytes, read, seat.layer(network, LayerId(l), layer.rows() as u64, false).wall_ns)
        })
        .collect();
    let largest = layers.iter().map(|(bytes, ..)| *bytes).max().unwrap_or(0);
    let weighty: Vec<u64> = layers.iter().map(|(bytes, ..)| *bytes).filter(|bytes| *bytes > 0).collect();
    let pair = weighty.windows(2).map(|pair| pair[0] + pair[1]).max().unwrap_or(largest);
    let alone = layers.iter().map(|(_, read, computing)| read + computing).sum();
    // A load waits for the load before it, and for the layer whose place it takes: the last but one layer with weights.
    let (mut loaded, mut computed, mut freed) = (0.0f64, 0.0f64, [0.0f64; 2]);
    for &(bytes, read, computing) in &layers {
        if bytes > 0 {
            loaded = loaded.max(freed[0]) + read;
            computed = computed.max(loaded);
        }
        computed += computing;
        if bytes > 0 {
            freed = [freed[1], computed];
        }
    }
    let buffers = plan.memory.arena;
    Ok([(buffers + largest, alone), (buffers + pair, computed)])
}
