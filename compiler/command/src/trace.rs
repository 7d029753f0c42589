//! A frame as a trace: the JSON of events that Perfetto and Chrome's `about:tracing` show. Times are in microseconds.
//!
//! Each partition is a thread of its processor, with a complete event for each firing. The store of streamed weights is a process
//! of its own. A counter has the bytes in use.

use std::collections::BTreeMap;

use csdfc_plan::plan::{Cnn, Plan};
use csdfc_plan::timeline::Timeline;
use serde_json::{Value, json};

use crate::error::Error;

/// The trace of a timeline of a plan.
///
/// # Errors
/// Those of serde. There are none for the plain data of a trace.
pub fn json(plan: &Plan, timeline: &Timeline) -> Result<String, Error> {
    let mut events = Vec::new();
    let mut processes: BTreeMap<&str, usize> = BTreeMap::new();
    for partition in &plan.partitions {
        let next = processes.len() + 1;
        processes.entry(&partition.processor).or_insert(next);
    }
    for (processor, pid) in &processes {
        events.push(named("process_name", *pid, 0, &format!("processor {processor}")));
    }
    let places: Vec<(usize, usize)> = plan
        .partitions
        .iter()
        .enumerate()
        .map(|(p, partition)| (processes.get(partition.processor.as_str()).copied().unwrap_or(0), p + 1))
        .collect();
    for (partition, (pid, tid)) in plan.partitions.iter().zip(&places) {
        events.push(named("thread_name", *pid, *tid, &format!("partition {}", partition.name)));
    }
    let store = processes.len() + 1;
    if !timeline.loads.is_empty() {
        events.push(named("process_name", store, 0, "store of weights"));
        events.push(named("thread_name", store, 1, "loads"));
    }
    for firing in &timeline.firings {
        let (Some(cnn), Some((pid, tid))) = (plan.cnns.get(firing.cnn), places.get(firing.partition)) else {
            continue;
        };
        let layer = &cnn.layers[firing.layer];
        let first = firing.firing * layer.rows_per_firing;
        let last = (first + layer.rows_per_firing).min(rows(plan, cnn, &layer.output)).max(1) - 1;
        events.push(json!({
            "name": layer.name, "cat": layer.operator.kind(), "ph": "X",
            "ts": firing.start_ns / 1e3, "dur": (firing.end_ns - firing.start_ns) / 1e3, "pid": pid, "tid": tid,
            "args": {
                "cnn": cnn.name, "frame": firing.frame, "firing": firing.firing, "firings": layer.firings,
                "first_row": first, "last_row": last, "primitive": layer.primitive, "output": layer.output,
            },
        }));
    }
    for load in &timeline.loads {
        let Some(cnn) = plan.cnns.get(load.cnn) else { continue };
        events.push(json!({
            "name": format!("weights of {}", cnn.layers[load.layer].name), "cat": "load", "ph": "X",
            "ts": load.start_ns / 1e3, "dur": (load.end_ns - load.start_ns) / 1e3, "pid": store, "tid": 1,
            "args": {"cnn": cnn.name, "frame": load.frame, "tile": load.tile, "bytes": load.bytes},
        }));
    }
    let pid = places.first().map_or(0, |(pid, _)| *pid);
    for [ns, bytes] in &timeline.usage {
        events.push(json!({
            "name": "live bytes", "ph": "C", "ts": ns / 1e3, "pid": pid, "args": {"bytes": *bytes as u64},
        }));
    }
    let other = json!({
        "application": plan.application, "device": plan.device.name, "arena_bytes": plan.memory.arena,
        "bound_bytes": plan.memory.bound,
    });
    let trace = json!({"traceEvents": events, "displayTimeUnit": "ns", "otherData": other});
    let text = serde_json::to_string(&trace).map_err(|error| Error::Bug(error.to_string()))?;
    Ok(text + "\n")
}

fn named(what: &str, pid: usize, tid: usize, name: &str) -> Value {
    json!({"name": what, "ph": "M", "pid": pid, "tid": tid, "args": {"name": name}})
}

/// Rows of a tensor.
fn rows(plan: &Plan, cnn: &Cnn, tensor: &str) -> u64 {
    let found = plan.tensors.iter().find(|other| other.cnn == cnn.name && other.name == tensor);
    found.map_or(1, |tensor| tensor.rows() as u64)
}
