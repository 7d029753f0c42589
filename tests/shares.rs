//! Partitions that run at the same time on a processor share its cores. These tests compare the rates and latencies of
//! random applications with a simulation of their stages, which shares no arithmetic with the planner.
//!
//! Stages fire by the plan's own schedules, through the plan's own rings. Every firing takes a time of its own, one that
//! workers share longer and on several cores. Whoever has work goes on: while more cores are wanted than there are, all
//! are slowed down alike, as an operating system does.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a panic is how a test fails")]

use csdfc_input::app::Application;
use csdfc_input::device::{Core, DeviceProfile, Processor, WorkerSharing};
use csdfc_plan::operator::Operator;
use csdfc_plan::plan::{Cnn, Layer, Plan, Step, StorageModel};
use csdfc_planner::driver;
use csdfc_planner::search::start::Start;
use csdfc_planner::search::watch::Watch;
use csdfc_tests::{generate, rates};
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};

/// Random applications, half of them in each storage model.
const APPLICATIONS: u64 = 800;
/// Frames that are simulated.
const FRAMES: usize = 24;
/// By how much a simulated time may exceed the planned one: rings are sized by whole nanoseconds of a firing.
const TOLERANCE: f64 = 0.005;
/// Multiplications from which on workers share a firing of several rows of a convolution.
const SHARED: f64 = (1 << 17) as f64;
/// The same for a single row.
const SHARED_ROW: f64 = (1 << 19) as f64;
/// Elements from which on they share a firing of several rows of another layer.
const SHARED_ELEMENTS: f64 = (1 << 14) as f64;

/// A device on which all firings take equally long, whatever they do, except for the cost of sharing a firing.
fn device(random: &mut ChaCha8Rng) -> DeviceProfile {
    let mut processor = |cores: u64, workers: Option<WorkerSharing>| {
        let core = Core {
            macs_per_second: 1e300,
            depthwise_efficiency: 1.0,
            elements_per_second: 1e300,
            bytes_per_second: 1e300,
            firing_ns: f64::from(random.random_range(1..=9) * 1000),
            half_speed: 1.0,
        };
        Processor {
            cores,
            core,
            workers,
            memory_bytes_per_second: None,
            cache_bytes: 0,
            measured: Vec::new(),
        }
    };
    let gpu = processor(1, None);
    let cpu = processor(0, Some(WorkerSharing { efficiency: 1.0, handover_ns: 500.0 }));
    let cpu = Processor { cores: random.random_range(1..=4), ..cpu };
    DeviceProfile::new("constant", "analytic", [("cpu".to_owned(), cpu), ("gpu".to_owned(), gpu)].into())
}

fn plan(application: &Application, device: &DeviceProfile) -> Plan {
    let paths = application.cnns.iter().map(|cnn| cnn.model.name.clone()).collect();
    let watch = Watch::unwatched();
    let plan = driver::plan_from(&Start::default(), application, device, paths, &watch, &|_| Ok(()));
    let plan = plan.unwrap().plan;
    if let Err(violations) = csdfc_plan::check(&plan) {
        panic!("check refuses the plan: {}", violations[0]);
    }
    plan
}

/// The nanoseconds of a layer's firing, and the cores that it keeps busy.
fn firing(plan: &Plan, cnn: &Cnn, layer: &Layer, processor: &Processor) -> (f64, f64) {
    let ring = |name: &str| {
        let tensor = plan.tensors.iter().find(|tensor| tensor.cnn == cnn.name && tensor.name == name);
        tensor.and_then(|tensor| tensor.ring).map(|ring| ring.offset..ring.offset + ring.bytes)
    };
    let own = ring(&layer.output);
    // Then it makes its rows one by one.
    let follows = own.is_some_and(|own| {
        let meets = |read: std::ops::Range<u64>| own.start < read.end && read.start < own.end;
        layer.inputs.iter().any(|input| ring(&input.tensor).is_some_and(meets))
    });
    let rows = layer.output_shape.rows() as f64;
    let is_row = follows || layer.rows_per_firing == 1;
    let macs = match &layer.operator {
        Operator::Input(_) => return (0.0, 1.0),
        Operator::Conv(conv) => {
            let channels = |input: &csdfc_plan::plan::LayerInput| {
                let of = |t: &&csdfc_plan::plan::Tensor| t.cnn == cnn.name && t.name == input.tensor;
                let shape =
                    input.view.clone().unwrap_or_else(|| plan.tensors.iter().find(of).unwrap().shape.clone());
                shape.dims[1]
            };
            let image = &layer.inputs[..layer.inputs.len() - usize::from(conv.residual)];
            let channels: usize = image.iter().map(channels).sum();
            Some(layer.output_shape.elements() * conv.kernel[0] * conv.kernel[1] * channels / conv.groups)
        }
        Operator::Gemm(gemm) => Some(layer.output_shape.elements() * gemm.inner),
        _ => None,
    };
    let elements = layer.output_shape.elements() as f64;
    let is_shared = match macs {
        Some(macs) if is_row => macs as f64 / rows >= SHARED_ROW,
        Some(macs) => macs as f64 / layer.firings as f64 >= SHARED,
        None => !is_row && elements / layer.firings as f64 >= SHARED_ELEMENTS,
    };
    let workers = processor.cores.min(plan.threads as u64);
    match processor.workers {
        Some(sharing) if workers > 1 && is_shared => {
            // Each row that is made by itself is handed over.
            let times = if follows { rows / layer.firings as f64 } else { 1.0 };
            let handover = (workers - 1) as f64 * sharing.handover_ns;
            (processor.core.firing_ns + times * handover, workers as f64)
        }
        _ => (processor.core.firing_ns, 1.0),
    }
}

/// A tensor between stages that run at the same time: rows counted over all frames.
struct Ring {
    capacity: u64,
    written: u64,
    /// By reader, an operand of a layer.
    acquired: Vec<u64>,
    released: Vec<u64>,
}

/// A firing of a stage, and its effect on the rings: ring, reader, rows.
struct Firing {
    ns: f64,
    cores: f64,
    acquires: Vec<(usize, usize, u64)>,
    releases: Vec<(usize, usize, u64)>,
    writes: Vec<(usize, u64)>,
}

/// A partition that runs.
struct Stage {
    cnn: usize,
    processor: usize,
    firings: Vec<Firing>,
    frame: usize,
    at: usize,
    /// Nanoseconds left of the firing that is on.
    left: Option<f64>,
}

/// The simulation of one element of J.
struct Element<'a> {
    cores: Vec<f64>,
    stages: Vec<Stage>,
    rings: Vec<Ring>,
    /// For each CNN of the plan, whether its partitions in other elements take turns with those in this one.
    takes_turns: Vec<bool>,
    /// For each CNN, the nanoseconds between arriving frames. If it is 0, frames arrive without waiting.
    pace: &'a [f64],
    now: f64,
    /// For each CNN, the times at which its frames were done.
    done: Vec<Vec<f64>>,
}

fn flatten(steps: &[Step], order: &mut Vec<String>) {
    for step in steps {
        match step {
            Step::Fire { fire } => order.push(fire.clone()),
            Step::Repeat { repeat, body } => (0..*repeat).for_each(|_| flatten(body, order)),
        }
    }
}

impl<'a> Element<'a> {
    fn new(plan: &Plan, device: &DeviceProfile, members: &[String], pace: &'a [f64]) -> Self {
        let processors: Vec<(&String, &Processor)> = device.processors.iter().collect();
        let mut rings: Vec<Ring> = Vec::new();
        let mut stages = Vec::new();
        let of = |partition: &str| plan.partitions.iter().find(|p| p.name == partition).unwrap();
        // Each ring's place, by CNN, tensor and, where each reader has its own, reader.
        let mut known: Vec<(String, String, Option<String>)> = Vec::new();
        // The readers of each ring, by layer and operand.
        let mut readers: Vec<Vec<(String, usize)>> = Vec::new();
        let in_edges = plan.storage_model == StorageModel::Edges;
        for cnn in &plan.cnns {
            let partition =
                |layer: &str| cnn.layers.iter().find(|l| l.name == layer).unwrap().partition.clone();
            for tensor in plan.tensors.iter().filter(|tensor| tensor.cnn == cnn.name) {
                let from = partition(&tensor.producer);
                let here: Vec<String> =
                    tensor.consumers.iter().filter(|c| members.contains(&partition(c))).cloned().collect();
                let is_cut = |c: &String| partition(c) != from;
                if !members.contains(&from) || !here.iter().any(is_cut) {
                    continue;
                }
                let height = tensor.shape.rows() as u64;
                let mut add = |capacity: u64, of: Vec<String>, reader: Option<String>| {
                    known.push((cnn.name.clone(), tensor.name.clone(), reader));
                    let layers = cnn.layers.iter().filter(|layer| of.contains(&layer.name));
                    let operands = layers.flat_map(|layer| {
                        let inputs = layer.inputs.iter().enumerate();
                        let of_tensor = inputs.filter(|(_, input)| input.tensor == tensor.name);
                        of_tensor.map(|(operand, _)| (layer.name.clone(), operand)).collect::<Vec<_>>()
                    });
                    let operands: Vec<(String, usize)> = operands.collect();
                    let none = vec![0; operands.len()];
                    rings.push(Ring { capacity, written: 0, acquired: none.clone(), released: none });
                    readers.push(operands);
                };
                match tensor.ring {
                    _ if in_edges => {
                        for reader in here.iter().filter(|c| is_cut(c)) {
                            add(2 * height, vec![reader.clone()], Some(reader.clone()));
                        }
                    }
                    Some(ring) => add(ring.ring_rows, here, None),
                    None => panic!("{} is cut and has no ring", tensor.name),
                }
            }
        }
        for member in members {
            let partition = of(member);
            let c = plan.cnns.iter().position(|cnn| cnn.name == partition.cnn).unwrap();
            let cnn = &plan.cnns[c];
            let mut order = Vec::new();
            flatten(&partition.schedule, &mut order);
            let mut fired = vec![0usize; cnn.layers.len()];
            let place = processors.iter().position(|(name, _)| **name == partition.processor).unwrap();
            let of_layer = |layer: &Layer| -> Vec<[Vec<u64>; 2]> {
                layer.inputs.iter().map(|input| [rates(&input.acquire), rates(&input.release)]).collect()
            };
            let rates: Vec<Vec<[Vec<u64>; 2]>> = cnn.layers.iter().map(of_layer).collect();
            let mut firings = Vec::new();
            for name in order {
                let l = cnn.layers.iter().position(|layer| layer.name == name).unwrap();
                let (layer, p) = (&cnn.layers[l], fired[l]);
                fired[l] += 1;
                let (ns, cores) = firing(plan, cnn, layer, processors[place].1);
                let mut this = Firing { ns, cores, acquires: vec![], releases: vec![], writes: vec![] };
                for (ring, (of_cnn, tensor, reader)) in known.iter().enumerate() {
                    if *of_cnn != cnn.name {
                        continue;
                    }
                    if *tensor == layer.output {
                        let rows = layer.output_shape.rows() as u64;
                        let begin = p as u64 * layer.rows_per_firing;
                        this.writes.push((ring, layer.rows_per_firing.min(rows - begin)));
                    }
                    if reader.as_ref().is_some_and(|reader| *reader != name) {
                        continue;
                    }
                    for (operand, _) in layer.inputs.iter().enumerate().filter(|i| i.1.tensor == *tensor) {
                        let reader = (name.clone(), operand);
                        let at = readers[ring].iter().position(|known| *known == reader).unwrap();
                        this.acquires.push((ring, at, rates[l][operand][0][p]));
                        this.releases.push((ring, at, rates[l][operand][1][p]));
                    }
                }
                firings.push(this);
            }
            stages.push(Stage { cnn: c, processor: place, firings, frame: 0, at: 0, left: None });
        }
        let takes_turns = plan
            .cnns
            .iter()
            .map(|cnn| plan.partitions.iter().any(|p| p.cnn == cnn.name && !members.contains(&p.name)));
        Element {
            cores: processors.iter().map(|(_, processor)| processor.cores as f64).collect(),
            stages,
            rings,
            takes_turns: takes_turns.collect(),
            pace,
            now: 0.0,
            done: vec![Vec::new(); plan.cnns.len()],
        }
    }

    fn may_start(&self, s: usize) -> bool {
        let stage = &self.stages[s];
        if stage.at == 0 {
            let mates = || self.stages.iter().filter(|other| other.cnn == stage.cnn);
            let is_first = self.stages.iter().position(|other| other.cnn == stage.cnn) == Some(s);
            if self.takes_turns[stage.cnn] && mates().any(|mate| mate.frame < stage.frame) {
                return false;
            }
            if is_first && self.now < self.pace[stage.cnn] * stage.frame as f64 {
                return false;
            }
        }
        let firing = &stage.firings[stage.at];
        let is_there = |(ring, reader, rows): &(usize, usize, u64)| {
            self.rings[*ring].acquired[*reader] + rows <= self.rings[*ring].written
        };
        firing.acquires.iter().all(is_there)
            && firing.writes.iter().all(|(ring, rows)| {
                let ring = &self.rings[*ring];
                ring.written + rows <= ring.released.iter().min().unwrap() + ring.capacity
            })
    }

    fn end(&mut self, s: usize) {
        let stage = &mut self.stages[s];
        let firing = &stage.firings[stage.at];
        for (ring, reader, rows) in &firing.releases {
            self.rings[*ring].released[*reader] += rows;
        }
        for (ring, rows) in &firing.writes {
            self.rings[*ring].written += rows;
        }
        stage.left = None;
        stage.at += 1;
        if stage.at == stage.firings.len() {
            (stage.at, stage.frame) = (0, stage.frame + 1);
        }
        let cnn = stage.cnn;
        let frames = self.stages.iter().filter(|stage| stage.cnn == cnn).map(|stage| stage.frame).min();
        if frames.unwrap() > self.done[cnn].len() {
            self.done[cnn].push(self.now);
        }
    }

    /// Runs until every CNN in the element has made this many frames.
    fn run(mut self, frames: usize) -> Vec<Vec<f64>> {
        loop {
            let here = |cnn: usize| self.stages.iter().any(|stage| stage.cnn == cnn);
            if (0..self.done.len()).all(|cnn| !here(cnn) || self.done[cnn].len() >= frames) {
                return self.done;
            }
            // A stage that takes no time, such as a network of inputs alone, would run for ever before anything else
            // runs.
            let rests = |cnn: usize| {
                let mut own = self.stages.iter().filter(|stage| stage.cnn == cnn);
                self.done[cnn].len() >= frames
                    && own.all(|stage| stage.firings.iter().all(|firing| firing.ns == 0.0))
            };
            let rests: Vec<bool> = (0..self.done.len()).map(rests).collect();
            for s in 0..self.stages.len() {
                let stage = &self.stages[s];
                if stage.left.is_none() && !rests[stage.cnn] && self.may_start(s) {
                    let stage = &mut self.stages[s];
                    let firing = &stage.firings[stage.at];
                    for (ring, reader, rows) in &firing.acquires {
                        self.rings[*ring].acquired[*reader] += rows;
                    }
                    stage.left = Some(firing.ns);
                }
            }
            let busy = |stage: &&Stage| stage.left.is_some();
            let speed: Vec<f64> = (0..self.cores.len())
                .map(|processor| {
                    let on = self.stages.iter().filter(busy).filter(|stage| stage.processor == processor);
                    let wanted: f64 = on.map(|stage| stage.firings[stage.at].cores).sum();
                    (self.cores[processor] / wanted).min(1.0)
                })
                .collect();
            let ends = self.stages.iter().filter_map(|stage| Some(stage.left? / speed[stage.processor]));
            let comes = self
                .stages
                .iter()
                .filter(|stage| stage.left.is_none())
                .map(|stage| self.pace[stage.cnn] * stage.frame as f64 - self.now);
            let step = ends.chain(comes.filter(|wait| *wait > 0.0)).fold(f64::INFINITY, f64::min);
            assert!(step.is_finite(), "all stages wait for each other");
            self.now += step;
            for s in 0..self.stages.len() {
                let stage = &mut self.stages[s];
                let Some(left) = stage.left else { continue };
                let left = left - step * speed[stage.processor];
                stage.left = Some(left);
                if left <= 1e-6 {
                    self.end(s);
                }
            }
        }
    }
}

/// Networks whose firings are work enough for several workers.
fn large(random: &mut ChaCha8Rng, storage: StorageModel) -> Application {
    let parallel =
        [r#"[["a", "b"], ["lenet5"]]"#, r#"[["a", "b", "lenet5"]]"#, r#"[["a"], ["b", "lenet5"]]"#]
            [random.random_range(0..3)];
    let storage = if storage == StorageModel::Tensors { "tensors" } else { "edges" };
    let rows = ["none", "all"][random.random_range(0..2)];
    csdfc_tests::application(&format!(
        r#"(cnns: [(model: "builtin:resnet8", partitions: [(name: "a", upto: "stack1_conv1"), (name: "b")]),
            (model: "builtin:lenet5")], parallel: {parallel}, storage: {storage}, rows: {rows})"#
    ))
}

/// A random application on a random device.
fn random(seed: u64) -> (Application, DeviceProfile) {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let bytes: Vec<u8> = (0..200).map(|_| random.random()).collect();
    let storage = if seed.is_multiple_of(2) { StorageModel::Tensors } else { StorageModel::Edges };
    let mut application = match seed % 16 {
        0 | 1 => large(&mut random, storage),
        2..=5 => generate::dealt(&bytes, storage),
        _ => generate::application(&bytes, storage),
    };
    application.threads = random.random_range(1..=4);
    for partition in application.cnns.iter_mut().flat_map(|cnn| &mut cnn.partitions) {
        if random.random_range(0..3) == 0 {
            partition.processor = "gpu".into();
        }
    }
    (application, device(&mut random))
}

/// The simulated nanoseconds between frames of each CNN, and the longest of a frame, with the frames paced so.
fn simulate(plan: &Plan, device: &DeviceProfile, pace: &[f64]) -> Vec<(f64, f64)> {
    let mut times = vec![(0.0, 0.0); plan.cnns.len()];
    for (c, cnn) in plan.cnns.iter().enumerate() {
        // Partitions that are together in some element are so in all that have one of them, or the CNN takes turns.
        let mut seen: Vec<&String> = Vec::new();
        for element in &plan.parallel {
            let own: Vec<&String> = plan
                .partitions
                .iter()
                .filter(|p| p.cnn == cnn.name && element.contains(&p.name))
                .map(|p| &p.name)
                .collect();
            if own.is_empty() || seen.contains(&own[0]) {
                continue;
            }
            seen.extend(own);
            let done = &Element::new(plan, device, element, pace).run(FRAMES)[c];
            let first = done[0];
            times[c].0 += (done[FRAMES - 1] - first) / (FRAMES - 1) as f64;
            let late = |(frame, done): (usize, &f64)| done - pace[c] * frame as f64;
            times[c].1 += match pace[c] > 0.0 {
                true => done[..FRAMES].iter().enumerate().map(late).fold(0.0, f64::max),
                false => first,
            };
        }
    }
    times
}

#[test]
fn planned_rates_are_kept() {
    let (mut shared, mut piped, mut tight, mut crews) = (0, 0, 0, 0);
    for seed in 0..APPLICATIONS {
        let (application, device) = random(seed);
        let plan = plan(&application, &device);
        let free = simulate(&plan, &device, &vec![0.0; plan.cnns.len()]);
        let pace: Vec<f64> = plan.cnns.iter().map(|cnn| 1e9 / cnn.fps * (1.0 + TOLERANCE)).collect();
        let paced = simulate(&plan, &device, &pace);
        for (c, cnn) in plan.cnns.iter().enumerate() {
            let (planned, latency) = (1e9 / cnn.fps, cnn.latency_ns as f64);
            let frames = (FRAMES - 1) as f64;
            // OccupancyProfile the pipeline at the beginning takes less than a latency.
            let most = planned * (1.0 + TOLERANCE) + latency / frames;
            assert!(free[c].0 <= most, "{seed}, {}: {planned} ns a frame, {} simulated", cnn.name, free[c].0);
            assert!(
                paced[c].1 <= latency * (1.0 + TOLERANCE) + 1.0,
                "{seed}, {}: {latency} ns a frame's time, {} simulated",
                cnn.name,
                paced[c].1
            );
            let own: Vec<_> = plan.partitions.iter().filter(|p| p.cnn == cnn.name).collect();
            let is_piped = |p: &str| {
                let has = |element: &&Vec<String>| element.iter().any(|name| name == p);
                plan.parallel
                    .iter()
                    .filter(has)
                    .any(|element| own.iter().filter(|o| element.contains(&o.name)).count() > 1)
            };
            piped += usize::from(own.iter().any(|p| is_piped(&p.name)));
            tight += usize::from(free[c].0 >= planned * 0.98);
        }
        shared += usize::from(plan.parallel.iter().any(|element| {
            device.processors.iter().any(|(name, processor)| {
                let on = plan.partitions.iter().filter(|p| p.processor == *name && element.contains(&p.name));
                on.count() as u64 > processor.cores
            })
        }));
        respects_capacity(&plan, &device, seed);
        let is_shared = |cnn: &Cnn, layer: &Layer| {
            device.processors.values().any(|processor| firing(&plan, cnn, layer, processor).1 > 1.0)
        };
        crews +=
            usize::from(plan.cnns.iter().any(|cnn| cnn.layers.iter().any(|layer| is_shared(cnn, layer))));
    }
    println!(
        "{APPLICATIONS} applications: {shared} with more stages than cores, {crews} with firings that workers share, \
         {piped} pipelined CNNs, {tight} within 2 %"
    );
    assert!(shared > 100 && crews > 20 && piped > 200 && tight > 500, "{shared} {crews} {piped} {tight}");
}

/// Checks that the core time of all frames in one element of J is no more than is available, and agrees with the plan.
fn respects_capacity(plan: &Plan, device: &DeviceProfile, seed: u64) {
    for element in &plan.parallel {
        for (name, processor) in &device.processors {
            let mut load = 0.0;
            for partition in
                plan.partitions.iter().filter(|p| element.contains(&p.name) && p.processor == *name)
            {
                let cnn = plan.cnns.iter().find(|cnn| cnn.name == partition.cnn).unwrap();
                let takes_turns =
                    plan.partitions.iter().any(|p| p.cnn == cnn.name && !element.contains(&p.name));
                let mut order = Vec::new();
                flatten(&partition.schedule, &mut order);
                let work = |layer: &String| {
                    let layer = cnn.layers.iter().find(|l| l.name == *layer).unwrap();
                    let (ns, cores) = firing(plan, cnn, layer, processor);
                    ns * cores
                };
                let work: f64 = order.iter().map(work).sum();
                let stated = partition.load.unwrap();
                load += stated;
                let alone = work * cnn.fps / 1e9;
                // A CNN that takes turns with itself is busier while a partition runs than over the whole frame.
                let agrees = if takes_turns {
                    stated >= alone * 0.999
                } else {
                    (stated - alone).abs() <= 1e-6 * alone
                };
                assert!(agrees, "{seed}: {} has a load of {stated}, not {alone}", partition.name);
            }
            assert!(
                load <= processor.cores as f64 * (1.0 + 1e-9),
                "{seed}: {load} cores of {}",
                processor.cores
            );
        }
    }
}
