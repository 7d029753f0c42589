//! The data that a page draws. Lists of many numbers are flat, which takes a third of the bytes of lists of objects.
//! Times are whole nanoseconds.

use std::collections::BTreeMap;

use csdfc_plan::plan::{Certificate, Constraints, Memory, ParetoPoint, Plan, Region, TimeBasis};
use csdfc_plan::timeline::{Place, Timeline};
use csdfc_planner::saved::front::SavedFront;
use serde::Serialize;

use super::downsample::downsample;
use super::hints::hint;
use super::segments::segments;

/// The data of a page.
#[derive(Debug, Serialize)]
pub struct Data<'a> {
    /// The plans, one or two.
    plans: Vec<PlanData<'a>>,
    /// The front that was handed in.
    front: Option<Front>,
}

/// A plan.
#[derive(Debug, Serialize)]
struct PlanData<'a> {
    application: &'a str,
    csdfc: &'a str,
    device: &'a str,
    device_basis: &'a str,
    storage_model: String,
    threads: usize,
    method: &'a str,
    memory: &'a Memory,
    regions: &'a [Region],
    certificate: &'a Certificate,
    constraints: &'a Constraints,
    store: Option<u64>,
    cnns: Vec<CnnData<'a>>,
    partitions: Vec<PartitionData<'a>>,
    parallel: &'a [Vec<String>],
    places: Vec<PlaceData<'a>>,
    lives: Vec<LifeData>,
    firings: Firings,
    loads: Loads,
    /// A time and the bytes in use from then on, in turn.
    usage: Vec<u64>,
    peak: PeakData,
    ns: u64,
    basis: Option<TimeBasis>,
    /// Whether there is too much to draw, so that several firings share a column.
    thinned: bool,
    front: Front,
}

#[derive(Debug, Serialize)]
struct CnnData<'a> {
    name: &'a str,
    model: &'a str,
    /// Frames of a call, if there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    batch: Option<u64>,
    fps: f64,
    latency_ns: u64,
    bytes_read: Option<u64>,
    read_ns: Option<u64>,
    computing_ns: Option<u64>,
    /// Rows of the input in a hop, if it is a stream.
    hop: Option<u64>,
    layers: Vec<LayerData<'a>>,
}

#[derive(Debug, Serialize)]
struct LayerData<'a> {
    name: &'a str,
    op: &'a str,
    primitive: &'a str,
    /// Index in the plan's partitions.
    partition: usize,
    segment: Option<usize>,
    rows: u64,
    firings: u64,
    ns: Option<f64>,
    basis: Option<TimeBasis>,
    parameters: u64,
    workspace: u64,
    /// Bytes of its blocks of weights.
    blocks: u64,
    /// Bytes of its ring, or of the rings of its edges.
    ring: u64,
    shape: &'a [usize],
    output: &'a str,
    height: u64,
    external: bool,
    /// The layers that it reads.
    inputs: Vec<usize>,
}

#[derive(Debug, Serialize)]
struct PartitionData<'a> {
    name: &'a str,
    cnn: usize,
    processor: &'a str,
    load: Option<f64>,
    cores: Option<u64>,
}

#[derive(Debug, Serialize)]
struct PlaceData<'a> {
    name: &'a str,
    kind: &'static str,
    cnn: usize,
    layer: usize,
    readers: &'a [usize],
    offsets: &'a [u64],
    rows: u64,
    row_bytes: u64,
}

#[derive(Debug, Serialize)]
struct LifeData {
    place: usize,
    frame: u64,
    /// A time, the first row in use from then on, and the row after the last, in turn.
    steps: Vec<u64>,
}

#[derive(Debug, Default, Serialize)]
struct Firings {
    partition: Vec<usize>,
    layer: Vec<usize>,
    frame: Vec<u64>,
    firing: Vec<u64>,
    start: Vec<u64>,
    end: Vec<u64>,
}

#[derive(Debug, Default, Serialize)]
struct Loads {
    cnn: Vec<usize>,
    layer: Vec<usize>,
    frame: Vec<u64>,
    tile: Vec<usize>,
    bytes: Vec<u64>,
    start: Vec<u64>,
    end: Vec<u64>,
}

#[derive(Debug, Serialize)]
struct PeakData {
    /// A CNN, a layer and one of its firings each.
    firings: Vec<[usize; 3]>,
    occupied: Vec<OccupiedData>,
}

#[derive(Debug, Serialize)]
struct OccupiedData {
    place: usize,
    rows: [u64; 2],
    bytes: u64,
    hint: String,
}

/// The plans that a search saw.
#[derive(Debug, Serialize)]
struct Front {
    application: String,
    device: String,
    /// Bytes, and frames per second by CNN.
    points: Vec<(u64, BTreeMap<String, f64>)>,
}

/// The data of plans, and of a front that was handed in.
pub fn data<'a>(plans: &'a [(Plan, Timeline)], front: Option<&SavedFront>) -> Data<'a> {
    let front = front.map(|front| Front {
        application: front.application.clone(),
        device: front.device.name.clone(),
        points: points(&front.pareto),
    });
    Data { plans: plans.iter().map(|(plan, timeline)| of_plan(plan, timeline)).collect(), front }
}

fn points(pareto: &[ParetoPoint]) -> Vec<(u64, BTreeMap<String, f64>)> {
    pareto.iter().map(|point| (point.memory, point.fps.clone())).collect()
}

fn of_plan<'a>(plan: &'a Plan, timeline: &'a Timeline) -> PlanData<'a> {
    let segments = segments(plan, timeline);
    let mut drawn = timeline.clone();
    let thinned = downsample(&mut drawn);
    let life = |life: &csdfc_plan::timeline::Life| LifeData {
        place: life.place,
        frame: life.frame,
        steps: life.steps.iter().flat_map(|(ns, rows)| [whole(*ns), rows.start, rows.end]).collect(),
    };
    let partition = |partition: &'a csdfc_plan::plan::Partition| PartitionData {
        name: &partition.name,
        cnn: plan.cnns.iter().position(|cnn| cnn.name == partition.cnn).unwrap_or(0),
        processor: &partition.processor,
        load: partition.load,
        cores: plan.device.cores.get(&partition.processor).copied(),
    };
    let occupied = |occupied: &csdfc_plan::timeline::Occupied| OccupiedData {
        place: occupied.place,
        rows: [occupied.rows.start, occupied.rows.end],
        bytes: occupied.bytes,
        hint: {
            let place = &timeline.places[occupied.place];
            hint(plan, &segments[place.cnn], place)
        },
    };
    PlanData {
        application: &plan.application,
        csdfc: &plan.csdfc,
        device: &plan.device.name,
        device_basis: &plan.device.basis,
        storage_model: plan.storage_model.to_string(),
        threads: plan.threads,
        method: &plan.search.method,
        memory: &plan.memory,
        regions: &plan.regions,
        certificate: &plan.certificate,
        constraints: &plan.constraints,
        store: plan.store.as_ref().map(|store| store.bytes),
        cnns: (0..plan.cnns.len()).map(|c| of_cnn(plan, c, &segments[c], &timeline.places)).collect(),
        partitions: plan.partitions.iter().map(partition).collect(),
        parallel: &plan.parallel,
        places: timeline.places.iter().map(of_place).collect(),
        lives: drawn.lives.iter().map(life).collect(),
        firings: firings(&drawn),
        loads: loads(&drawn),
        usage: drawn.usage.iter().flat_map(|[ns, bytes]| [whole(*ns), whole(*bytes)]).collect(),
        peak: PeakData {
            firings: timeline.peak.firings.clone(),
            occupied: timeline.peak.occupied.iter().map(occupied).collect(),
        },
        ns: whole(timeline.ns),
        basis: timeline.basis,
        thinned,
        front: Front {
            application: plan.application.clone(),
            device: plan.device.name.clone(),
            points: points(&plan.pareto),
        },
    }
}

/// The nearest whole number.
fn whole(number: f64) -> u64 {
    number.round() as u64
}

fn of_cnn<'a>(plan: &'a Plan, c: usize, segments: &[Option<usize>], places: &[Place]) -> CnnData<'a> {
    let cnn = &plan.cnns[c];
    let producer: BTreeMap<&str, usize> =
        cnn.layers.iter().enumerate().map(|(l, layer)| (layer.output.as_str(), l)).collect();
    let tensors: BTreeMap<&str, _> = plan
        .tensors
        .iter()
        .filter(|tensor| tensor.cnn == cnn.name)
        .map(|tensor| (tensor.name.as_str(), tensor))
        .collect();
    let mut rings = vec![0u64; cnn.layers.len()];
    let rings_of = |place: &&Place| place.cnn == c && place.is_ring();
    places.iter().filter(rings_of).for_each(|place| rings[place.layer] += place.bytes());
    let layer = |(l, layer): (usize, &'a csdfc_plan::plan::Layer)| {
        let tensor = tensors.get(layer.output.as_str());
        let inputs = layer.inputs.iter().filter_map(|input| producer.get(input.tensor.as_str()).copied());
        let mut inputs: Vec<usize> = inputs.collect();
        inputs.dedup();
        LayerData {
            name: &layer.name,
            op: layer.operator.kind(),
            primitive: &layer.primitive,
            partition: plan.partitions.iter().position(|p| p.name == layer.partition).unwrap_or(0),
            segment: segments[l],
            rows: layer.rows_per_firing,
            firings: layer.firings,
            ns: layer.time.map(|time| time.ns).filter(|ns| ns.is_finite()),
            basis: layer.time.map(|time| time.basis),
            parameters: layer.parameters,
            workspace: layer.workspace.bytes,
            blocks: layer
                .streamed
                .iter()
                .flat_map(|streamed| &streamed.blocks)
                .map(|block| block.bytes)
                .sum(),
            ring: rings[l],
            shape: &layer.output_shape.dims,
            output: &layer.output,
            height: tensor.map_or(1, |tensor| tensor.rows() as u64),
            external: tensor.is_some_and(|tensor| tensor.external),
            inputs,
        }
    };
    CnnData {
        name: &cnn.name,
        model: &cnn.model.path,
        batch: (cnn.batch > 1).then_some(cnn.batch),
        fps: cnn.fps,
        latency_ns: cnn.latency_ns,
        bytes_read: cnn.bytes_read,
        read_ns: cnn.read_ns,
        computing_ns: cnn.computing_ns,
        hop: cnn.stream.and_then(|_| Some(tensors.get(cnn.inputs.first()?.as_str())?.rows() as u64)),
        layers: cnn.layers.iter().enumerate().map(layer).collect(),
    }
}

fn of_place(place: &Place) -> PlaceData<'_> {
    PlaceData {
        name: &place.name,
        kind: place.kind.name(),
        cnn: place.cnn,
        layer: place.layer,
        readers: &place.readers,
        offsets: &place.offsets,
        rows: place.rows,
        row_bytes: place.row_bytes,
    }
}

fn firings(timeline: &Timeline) -> Firings {
    let mut all = Firings::default();
    for firing in &timeline.firings {
        all.partition.push(firing.partition);
        all.layer.push(firing.layer);
        all.frame.push(firing.frame);
        all.firing.push(firing.firing);
        all.start.push(whole(firing.start_ns));
        all.end.push(whole(firing.end_ns));
    }
    all
}

fn loads(timeline: &Timeline) -> Loads {
    let mut all = Loads::default();
    for load in &timeline.loads {
        all.cnn.push(load.cnn);
        all.layer.push(load.layer);
        all.frame.push(load.frame);
        all.tile.push(load.tile);
        all.bytes.push(load.bytes);
        all.start.push(whole(load.start_ns));
        all.end.push(whole(load.end_ns));
    }
    all
}
