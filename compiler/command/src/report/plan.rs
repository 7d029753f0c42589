//! A plan as a short table.

use std::collections::{BTreeMap, BTreeSet};

use csdfc_input::units::{self, grouped};
use csdfc_network::{operators, suggest};
use csdfc_plan::operator::Operator;
use csdfc_plan::plan::{Cnn, Layer, LayerInput, Output, Plan, State, StorageModel, Tensor, TimeBasis};
use csdfc_plan::shape::Shape;
use csdfc_plan::timeline::timeline;
use csdfc_planner::explain::flight::{self, Flight};
use csdfc_planner::explain::limits;
use csdfc_planner::explain::table::table;

use super::analyze::counted;
use super::limits::{self as asked, Limit, basis};

/// Points of the front that the table shows.
const FRONT_LINES: usize = 8;
/// Longest schedule that the table shows whole, in characters.
const SCHEDULE_WIDTH: usize = 160;
/// Longest choice that the table shows whole, in characters.
const CHOICE_WIDTH: usize = 60;

/// The needs of a plan and its speed, in about a screen.
pub fn text(plan: &Plan) -> String {
    let cnns = match plan.cnns.len() {
        1 => "1 CNN".to_owned(),
        count => format!("{count} CNNs"),
    };
    let mut text = format!(
        "{}: {cnns}, storage model {}, device {} ({})\n\n",
        plan.application, plan.storage_model, plan.device.name, plan.device.basis
    );
    text.push_str(&memory(plan));
    text.push('\n');
    text.push_str(&cnn_table(plan));
    text.push('\n');
    text.push_str(&schedules(plan));
    if plan.storage_model == StorageModel::Edges {
        text.push('\n');
        text.push_str(&buffers(plan));
    }
    if plan.pareto.len() > 1 {
        text.push('\n');
        text.push_str(&front(plan));
    }
    let limits = limits::text(plan);
    if !limits.is_empty() {
        text.push('\n');
        text.push_str(&limits);
    }
    text.push('\n');
    text.push_str(&constraints(plan));
    text
}

fn memory(plan: &Plan) -> String {
    let memory = &plan.memory;
    let bound = match (memory.proven, plan.certificate.claimed) {
        (true, _) => "smallest for this schedule (proven)".to_owned(),
        (false, Some(claimed)) if claimed == memory.arena => {
            "smallest for this schedule (by exhaustive search)".to_owned()
        }
        (false, Some(claimed)) => {
            format!("this schedule needs at least {} (by exhaustive search)", grouped(claimed))
        }
        (false, None) => format!("this schedule needs at least {} (proven)", grouped(memory.bound)),
    };
    let shared = match memory.workspace {
        0 => String::new(),
        _ => format!("shares the arena with the buffers: {} in all", grouped(memory.arena)),
    };
    // Blocks of weights lie among the buffers, or above them.
    let buffers = if memory.workspace == 0 { memory.arena } else { memory.buffers };
    let line = |name: &str, bytes: u64, note: String| vec![name.to_owned(), grouped(bytes), note];
    let mut rows = vec![
        vec!["memory".to_owned(), "bytes".to_owned()],
        line(
            "  parameters",
            memory.parameters_resident.unwrap_or(memory.parameters_stored),
            parameters_at(plan),
        ),
        line("  buffers", buffers, format!("{bound}; {} without reuse", grouped(memory.naive))),
        line("  workspace", memory.workspace, shared),
        line("  total", memory.total, units::bytes(memory.total)),
    ];
    let external = &memory.external;
    rows.push(line("  caller's inputs", external.inputs, "whole frames, not in the total".into()));
    rows.push(line("  caller's outputs", external.outputs, "not in the total".into()));
    let mut text = table(&rows, &[1]);
    if !plan.regions.is_empty() {
        text.push('\n');
        text.push_str(&regions(plan));
    }
    text
}

/// The memories of the board, and what the plan takes of each.
fn regions(plan: &Plan) -> String {
    let mut rows = vec![["memories", "bytes", "of", ""].map(str::to_owned).to_vec()];
    for region in &plan.regions {
        let slower = region.ns_per_byte.map(|ns| match ns {
            0.0 => "the fastest".to_owned(),
            _ => format!("{ns} ns a byte longer"),
        });
        let stack = (region.stack > 0).then(|| format!("beside {} of stack", grouped(region.stack)));
        let notes: Vec<String> = slower.into_iter().chain(stack).collect();
        let [bytes, limit] = [region.bytes, region.limit].map(grouped);
        rows.push(vec![format!("  {}", region.name), bytes, limit, notes.join("; ")]);
    }
    table(&rows, &[1, 2])
}

/// How often a frame reads weights of a layer.
fn loads(layer: &Layer) -> u64 {
    let of = |run: &str| match run.split_once('*') {
        Some((times, _)) => times.parse().unwrap_or(1),
        None => 1,
    };
    let tiles = layer.streamed.iter().flat_map(|streamed| streamed.tiles.split(',')).map(of).sum::<u64>();
    tiles.saturating_mul(layer.times_read())
}

/// Where the parameters are that are not in memory.
fn parameters_at(plan: &Plan) -> String {
    let Some(store) = &plan.store else {
        return if plan.regions.is_empty() { String::new() } else { "in flash, not in the total".into() };
    };
    let layers = || plan.cnns.iter().flat_map(|cnn| &cnn.layers).filter_map(|layer| layer.streamed.as_ref());
    let largest = layers().flat_map(|streamed| &streamed.blocks).map(|block| block.bytes).max().unwrap_or(0);
    format!(
        "{} more in the store, of {} layers, read into blocks of up to {} among the buffers",
        grouped(store.bytes),
        layers().count(),
        grouped(largest)
    )
}

fn cnn_table(plan: &Plan) -> String {
    let fps = format!("fps ({})", basis(plan.cnns.iter().flat_map(|cnn| &cnn.layers)));
    let header = ["cnn", "layers", "by parts", "firings", &fps, "latency"];
    let mut rows = vec![header.map(str::to_owned).to_vec()];
    for cnn in &plan.cnns {
        let by_parts = cnn.layers.iter().filter(|layer| layer.firings > 1).count();
        let firings: u64 = cnn.layers.iter().map(|layer| layer.firings).sum();
        rows.push(vec![
            cnn.name.clone(),
            cnn.layers.len().to_string(),
            by_parts.to_string(),
            grouped(firings),
            format!("{:.1}", cnn.fps),
            format!("{:.2} ms", cnn.latency_ns as f64 / 1e6),
        ]);
    }
    let mut text = table(&rows, &[1, 2, 3, 4, 5]);
    for cnn in plan.cnns.iter().filter(|cnn| cnn.batch > 1) {
        text += &format!(
            "a call of {} takes {} frames, one after another: rates and times are those of one frame\n",
            cnn.name, cnn.batch
        );
    }
    let streamed = plan.cnns.iter().enumerate().filter_map(|(c, cnn)| Some((c, cnn, cnn.bytes_read?)));
    for (c, cnn, read) in streamed {
        text += &format!("each frame of {} reads {} of weights from the store", cnn.name, units::bytes(read));
        let bandwidth = plan.store.as_ref().and_then(|store| store.bytes_per_second);
        text += &match (cnn.read_ns, bandwidth) {
            (Some(ns), Some(bandwidth)) => {
                let loads = cnn.layers.iter().map(loads).fold(0, u64::saturating_add);
                let computing = cnn.computing_ns.unwrap_or(0);
                let frame = (1e9 / cnn.fps).round() as u64;
                let slower = if ns > computing { "the store" } else { "computing" };
                format!(
                    ": {} in {loads} reads at {} MB/s, beside {} of computing; the two overlap for {}; {slower} \
                     limits the rate\n",
                    units::time(ns),
                    bandwidth / 1_000_000,
                    units::time(computing),
                    units::time((ns + computing).saturating_sub(frame))
                )
            }
            _ => "; the times above leave this out, since the device profile has no store\n".into(),
        };
        text += &read_again(&cnn.layers);
        text += &in_flight(plan, c);
    }
    text.extend(plan.cnns.iter().filter(|cnn| cnn.stream.is_some()).map(|cnn| stream(plan, cnn)));
    text.extend(plan.cnns.iter().filter(|cnn| !cnn.states.is_empty()).map(|cnn| states(plan, cnn)));
    text + &primitives(plan)
}

/// What a hop of a stream takes and makes, and what it keeps for the next one.
fn stream(plan: &Plan, cnn: &Cnn) -> String {
    let tensors = || plan.tensors.iter().filter(|tensor| tensor.cnn == cnn.name);
    let rows = |name: &String| tensors().find(|tensor| tensor.producer == *name).map_or(0, Tensor::rows);
    let hop = cnn.inputs.first().map_or(0, rows);
    let lag = |output: &Output| tensors().find(|tensor| tensor.name == output.tensor)?.stream;
    let lags: Vec<String> = cnn
        .outputs
        .iter()
        .filter_map(|output| Some((output, lag(output)?.delay)))
        .map(|(output, delay)| format!("{} lags {}", output.name, counted(delay.into(), "row")))
        .collect();
    let kept: Vec<u64> =
        tensors().filter(|tensor| tensor.history() > 0).filter_map(|t| Some(t.ring?.bytes)).collect();
    let shape = |input: &LayerInput| {
        let own = tensors().find(|tensor| tensor.name == input.tensor).map(|tensor| &tensor.shape);
        input.view.as_ref().or(own).cloned()
    };
    let macs = |layer: &Layer| {
        let inputs: Vec<Shape> = layer.inputs.iter().filter_map(shape).collect();
        operators::macs(&layer.operator, &inputs, &layer.output_shape)
    };
    let states: Vec<u64> = cnn
        .layers
        .iter()
        .filter(|layer| layer.operator.has_state())
        .map(|layer| layer.workspace.bytes)
        .collect();
    let and_states = match states.len() {
        0 => String::new(),
        count => {
            format!(", and {} in {}", units::bytes(states.iter().sum()), counted(count as u128, "state"))
        }
    };
    format!(
        "{} is a stream: a hop takes {} and makes {} multiplications; {}; {} of its buffers stay from hop to hop, in {}{and_states}\n",
        cnn.name,
        counted(hop as u128, "row"),
        grouped(cnn.layers.iter().map(macs).sum()),
        lags.join(", "),
        units::bytes(kept.iter().sum()),
        counted(kept.len() as u128, "ring"),
    )
}

/// What a CNN keeps from frame to frame as states.
fn states(plan: &Plan, cnn: &Cnn) -> String {
    let is_state = |tensor: &&Tensor| cnn.states.iter().any(|state| state.input == tensor.producer);
    let rings = plan.tensors.iter().filter(|tensor| tensor.cnn == cnn.name).filter(is_state);
    let kept = rings.filter_map(|tensor| tensor.ring).map(|ring| ring.bytes).sum();
    let pair = |state: &State| {
        format!("{} is {} of the frame before, {} in the first", state.input, state.output, state.initial)
    };
    let pairs: Vec<String> = cnn.states.iter().map(pair).collect();
    format!("{} keeps {} from frame to frame: {}\n", cnn.name, units::bytes(kept), pairs.join("; "))
}

/// How many layers read their weights more than once a frame.
fn read_again(layers: &[Layer]) -> String {
    let again: Vec<&Layer> = layers.iter().filter(|layer| layer.times_read() > 1).collect();
    match again.as_slice() {
        [] => String::new(),
        [one] => format!("{} reads its weights again at each of its {} firings\n", one.name, one.firings),
        several => format!(
            "{} layers read their weights again at each of their {} firings, since memory has no room to keep them\n",
            several.len(),
            grouped(several.iter().map(|layer| layer.firings).sum())
        ),
    }
}

/// The effect of room for more weight tiles in flight: the greatest number that helps, and the two least numbers.
fn in_flight(plan: &Plan, cnn: usize) -> String {
    let flights = timeline(plan).map(|timeline| flight::flights(plan, &timeline, cnn)).unwrap_or_default();
    let [fewer @ .., most] = flights.as_slice() else { return String::new() };
    let time = |flight: &Flight| format!("; with {}, {}", flight.tiles, units::time(flight.ns));
    format!(
        "with room for {} at a time, a frame would take {}; more room would not help{}\n",
        counted(u128::from(most.tiles), "weight tile"),
        units::time(most.ns),
        fewer.iter().take(2).map(time).collect::<String>()
    )
}

/// On a device that was measured: the layers whose time was not, and the primitives of convolutions.
fn primitives(plan: &Plan) -> String {
    let layers: Vec<&Layer> = plan.cnns.iter().flat_map(|cnn| &cnn.layers).collect();
    let of = |basis: TimeBasis| {
        layers.iter().filter(|layer| layer.time.is_some_and(|time| time.basis == basis)).count()
    };
    let (measured, interpolated, modelled) =
        (of(TimeBasis::Measured), of(TimeBasis::Interpolated), of(TimeBasis::Modelled));
    if measured + interpolated == 0 {
        return String::new();
    }
    let mut convolutions: BTreeMap<&str, usize> = BTreeMap::new();
    for layer in layers.iter().filter(|layer| matches!(layer.operator, Operator::Conv(_))) {
        *convolutions.entry(&layer.primitive).or_default() += 1;
    }
    let listed: Vec<String> =
        convolutions.iter().map(|(primitive, count)| format!("{count} by {primitive}")).collect();
    format!(
        "times of layers: {measured} measured, {interpolated} interpolated, {modelled} modelled\n\
         convolutions: {}\n",
        if listed.is_empty() { "none".into() } else { listed.join(", ") }
    )
}

fn schedules(plan: &Plan) -> String {
    let mut rows = Vec::new();
    for partition in &plan.partitions {
        let notation = &partition.notation;
        let shown = match notation.char_indices().nth(SCHEDULE_WIDTH) {
            Some((end, _)) => format!("{} …", &notation[..end]),
            None => notation.clone(),
        };
        let load = match (partition.load, plan.device.cores.get(&partition.processor)) {
            (Some(load), Some(cores)) => format!("{load:.2} of {}", cores_text(*cores)),
            _ => String::new(),
        };
        let on = format!("on {}", partition.processor);
        rows.push(vec![format!("schedule {}", partition.name), on, load, shown]);
    }
    table(&rows, &[])
}

fn cores_text(cores: u64) -> String {
    if cores == 1 { "1 core".into() } else { format!("{cores} cores") }
}

fn buffers(plan: &Plan) -> String {
    let mut rows = vec![["buffer", "bytes", "edges"].map(str::to_owned).to_vec()];
    for buffer in &plan.buffers {
        let edges = buffer.holds.iter().map(|edge| {
            let producer = plan.tensors.iter().find(|t| t.cnn == edge.cnn && t.name == edge.tensor);
            let producer = producer.map_or(edge.tensor.as_str(), |tensor| tensor.producer.as_str());
            let half = edge.half.map(|half| format!(" ({half})")).unwrap_or_default();
            format!("{}/{producer}→{}{half}", edge.cnn, edge.consumer)
        });
        rows.push(vec![buffer.name.clone(), grouped(buffer.bytes), edges.collect::<Vec<_>>().join(", ")]);
    }
    table(&rows, &[1])
}

fn front(plan: &Plan) -> String {
    let mut rows = vec![["plans seen", "total", "fps", "rows per firing"].map(str::to_owned).to_vec()];
    let step = plan.pareto.len().div_ceil(FRONT_LINES);
    let last = plan.pareto.len() - 1;
    for (i, point) in plan.pareto.iter().enumerate().filter(|(i, _)| i % step == 0 || *i == last) {
        let fps: Vec<String> = point.fps.values().map(|fps| format!("{fps:.1}")).collect();
        let choices: Vec<&str> = point.choices.values().map(String::as_str).collect();
        rows.push(vec![
            (i + 1).to_string(),
            grouped(point.memory),
            fps.join(" / "),
            suggest::clip_to(&choices.join(" / "), CHOICE_WIDTH),
        ]);
    }
    table(&rows, &[0, 1, 2])
}

/// What CNNs that take turns would have of the time at the rates that are asked for, if it is more than there is.
fn share_of_turns(plan: &Plan) -> Option<String> {
    // CNNs of which partitions run at the same time do not wait for each other.
    let mut groups: Vec<BTreeSet<&str>> = plan.cnns.iter().map(|cnn| [cnn.name.as_str()].into()).collect();
    for names in &plan.parallel {
        let of = plan.partitions.iter().filter(|partition| names.contains(&partition.name));
        let cnns: BTreeSet<&str> = of.map(|partition| partition.cnn.as_str()).collect();
        let (met, mut apart): (Vec<_>, Vec<_>) =
            groups.into_iter().partition(|group| !group.is_disjoint(&cnns));
        apart.extend((!met.is_empty()).then(|| met.into_iter().flatten().collect()));
        groups = apart;
    }
    let share = |name: &str| {
        let cnn = plan.cnns.iter().find(|cnn| cnn.name == name)?;
        Some(plan.constraints.fps.get(name)? / cnn.fps)
    };
    let of_group = |group: &BTreeSet<&str>| group.iter().filter_map(|name| share(name)).fold(0.0, f64::max);
    let all: f64 = groups.iter().map(of_group).sum();
    (groups.len() > 1 && all > 1.0).then(|| {
        format!(
            "each rate holds while the other CNNs wait: taking turns at the rates asked for, they need {:.0} % of the time",
            100.0 * all
        )
    })
}

fn constraints(plan: &Plan) -> String {
    let line = |limit: Limit| format!("{}: {}", limit.asked, if limit.met { "met" } else { "NOT met" });
    let mut lines: Vec<String> = asked::limits(plan).into_iter().map(line).collect();
    lines.extend(share_of_turns(plan));
    if lines.is_empty() {
        lines.push("no constraint was given".into());
    }
    lines.join("\n") + "\n"
}
