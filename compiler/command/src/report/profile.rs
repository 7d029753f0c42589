//! The text of `csdfc profile`: the layers that it measured, and the fastest primitive of each.

use std::collections::BTreeMap;
use std::path::Path;

use csdfc_input::app::resolve::Application;
use csdfc_input::device::measured::Sample;
use csdfc_input::device::{DeviceProfile, Processor};
use csdfc_network::Layer;
use csdfc_planner::cost::ProcessorShare;
use csdfc_planner::cost::measured::{fastest, samples};
use csdfc_planner::explain::table::table;
use csdfc_planner::profile::Reading;

/// One line for each convolution for which several primitives were measured, the speed of the store, and the file of
/// the profile.
pub fn text(
    application: &Application,
    cpu: &Processor,
    profile: &DeviceProfile,
    path: &Path,
    reading: Option<&Reading>,
) -> String {
    let threads = ProcessorShare::alone(cpu, application.threads).workers;
    let head = ["layer", "first primitive", "ms", "fastest primitive", "ms", "ratio"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    let whole = |layer: &Layer| -> Option<Sample> { samples(cpu, layer, threads).last().copied() };
    let mut chosen: BTreeMap<&str, usize> = BTreeMap::new();
    for cnn in &application.cnns {
        for layer in &cnn.network.layers {
            let Some(best) = fastest(cpu, layer, threads, application.max_primitive_error) else { continue };
            let of_best = Layer { primitive: Some(best), ..layer.clone() };
            let (Some(first), Some(sample)) = (whole(layer), whole(&of_best)) else { continue };
            *chosen.entry(best.name()).or_default() += 1;
            let name = match application.cnns.len() {
                1 => layer.name.clone(),
                _ => format!("{}/{}", cnn.name, layer.name),
            };
            rows.push(vec![
                name,
                layer.primitive().name().into(),
                format!("{:.3}", first.ns / 1e6),
                best.name().into(),
                format!("{:.3}", sample.ns / 1e6),
                format!("{:.2}", sample.ns / first.ns),
            ]);
        }
    }
    let mut text = if rows.len() > 1 { table(&rows, &[2, 4, 5]) + "\n" } else { String::new() };
    let times: usize = cpu.measured.iter().flat_map(|measured| measured.times.values()).map(Vec::len).sum();
    text.extend(reading.map(store));
    text.push_str(&format!(
        "{}, {}: {} scenarios, {times} times, in {}\n",
        profile.name,
        profile.basis,
        cpu.measured.len(),
        path.display()
    ));
    text
}

fn store(Reading { store, is_cached }: &Reading) -> String {
    let megabytes = store.bytes_per_second as f64 / 1e6;
    let how = match is_cached {
        true => "through the page cache, so the store itself may be slower",
        false => "around the page cache",
    };
    format!("store: {megabytes:.0} MB/s, {:.1} µs a read, {how}\n", store.latency_ns as f64 / 1e3)
}
