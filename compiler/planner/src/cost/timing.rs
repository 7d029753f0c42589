//! The frame rate and latency of a CNN, from its stages and from their shares of the processors.
//!
//! Partitions that run at the same time on one processor share its cores, as threads do. Let `N` be the number of all
//! their workers, and `c` the number of cores. While at most `c` workers have work, each goes as fast as it does alone.
//! While more have, all are slowed down alike, at most `N / c` times. So each stage takes at most `N / c` times its own
//! time: it is *stretched*. A pipeline is as fast as its slowest stage. This holds whatever the other partitions do, of
//! the same CNN or of another. A CNN that runs at the same time as others is planned with this bound.
//!
//! A CNN that has its processor to itself does better, because its stages wait for each other and leave cores free.
//! Let `P` be the time of its slowest stage, and `W` the core time of a frame. The time of a frame has two parts. In
//! the first, at most `c` workers have work, and the frame advances at full speed. In the second, all cores are busy,
//! and the frame advances at `c / N` of that speed. So `P` is the first part plus `c / N` of the second, and `W` is
//! at least the first part plus `c` times the second. It follows that a frame takes at most
//! `P + (W − P) · (N − c) / (c · (N − 1))`. That is `P` if `N` is `c`, and it is the sum of all stages on one core.
//! It is never less than `W / c`: no plan asks for more cores than there are.
//!
//! Both are bounds that any fair sharing keeps, not averages. So no order of events makes a plan slower than it says,
//! and `tests/shares.rs` simulates random applications against them. Rings are sized for them (`frame/couple.rs`).
//!
//! A CNN's rate depends on how many workers the other CNNs have, and not on what these workers do. So design points can be
//! chosen CNN by CNN. The latency of a frame is the sum of the stretched stages. It holds for every frame, provided
//! that frames come no faster than the rate. A CNN whose partitions run at the same time in several sets (elements of
//! J) takes turns with itself, frame by frame.
//!
//! Partitions that wait for each other within a frame are one stage (`cost::stages`). `P` is the time of the
//! slowest stage, of whatever kind.
//!
//! In the papers each partition has a processor to itself, whole. The profile `jetson-tx2-paper` is for their
//! pipelines.
//!
//! ```
//! use std::path::Path;
//!
//! use csdfc_input::app::spec::PartitionSpec;
//! use csdfc_input::device::DeviceProfile;
//! use csdfc_planner::cost::timing::Timing;
//! use csdfc_planner::frame::{choice::Choice, task};
//! use csdfc_planner::open::open;
//!
//! // A pipeline of two stages.
//! let mut opened = open("builtin:lenet5")?;
//! let first = PartitionSpec { upto: Some("S2".into()), ..PartitionSpec::default() };
//! opened.spec.cnns[0].partitions = vec![first, PartitionSpec::default()];
//! opened.spec.parallel = vec![vec!["lenet5".into()]];
//! let application = opened.resolve()?;
//! let (tasks, elements) = (task::tasks(&application), task::elements(&application));
//! let device = DeviceProfile::find("generic", Path::new(""))?;
//! let timing = &Timing::new(&application, &tasks, &elements, &device)?[0];
//!
//! // The second frame begins before the first has ended.
//! let frame = timing.frame(&tasks[0], &Choice::none(tasks[0].network).rows, &[]);
//! assert!(frame.period_ns < frame.latency_ns);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::ops::Range;

use csdfc_input::app::resolve::Application;
use csdfc_input::device::measured::Sample;
use csdfc_input::device::store::Store;
use csdfc_input::device::{DeviceError, DeviceProfile, Processor};
use csdfc_network::LayerId;
use csdfc_plan::plan::{self, StorageModel, TimeBasis};

use crate::cost::measured;
use crate::cost::stages::Stages;
use crate::cost::{LayerTime, ProcessorShare};
use crate::frame::task::PartitionedCnn;

/// How the frames of one CNN are timed.
#[derive(Debug, Clone, PartialEq)]
pub struct Timing<'d> {
    /// The processor share of each partition.
    pub processor_shares: Vec<ProcessorShare<'d>>,
    /// The longest time of a frame that is asked for, in nanoseconds.
    pub deadline_ns: Option<u64>,
    /// The measurements of each layer; empty if the device was not measured.
    samples: Vec<&'d [Sample]>,
    /// Runs of partitions that are pipelines. Different runs follow each other, frame by frame.
    pipelines: Vec<Range<usize>>,
    /// What streamed weights are read from, if that is known.
    store: Option<&'d Store>,
    /// Of each partition, how many of other CNNs read from the store at the same time.
    other_readers: Vec<usize>,
    /// Whether no other CNN runs at the same time, and nothing on another processor.
    is_alone: bool,
    /// The stages, each of which works on one frame at a time.
    stages: Stages,
    /// For each double buffer whose writer and reader are not neighbours: the stages from the writer to the reader. At
    /// most two frames may be between them.
    spans: Vec<Range<usize>>,
}

/// One frame of a CNN, modelled.
#[derive(Debug, Clone, PartialEq)]
pub struct FrameTime {
    /// Nanoseconds between frames.
    pub period_ns: f64,
    /// Nanoseconds from a frame's first input to its last output, if it comes no sooner than `period_ns` after the one
    /// before it.
    pub latency_ns: f64,
    /// For each partition, how many cores it keeps busy on average while it runs together with the others.
    pub loads: Vec<f64>,
}

impl<'d> Timing<'d> {
    /// The timing of a CNN of one partition, which has a processor to itself.
    pub fn alone(processor: &'d Processor, threads: usize) -> Self {
        Timing {
            processor_shares: vec![ProcessorShare::alone(processor, threads)],
            deadline_ns: None,
            samples: Vec::new(),
            pipelines: std::iter::once(0..1).collect(),
            store: None,
            other_readers: vec![0],
            is_alone: true,
            stages: Stages::each_a_partition(1),
            spans: Vec::new(),
        }
    }

    /// The timing of each CNN of an application. `elements` is J. It names each partition by the index of its CNN and
    /// its index within that CNN.
    ///
    /// # Errors
    /// When the device lacks a processor.
    pub fn new(
        application: &Application,
        tasks: &[PartitionedCnn<'_>],
        elements: &[Vec<(usize, usize)>],
        device: &'d DeviceProfile,
    ) -> Result<Vec<Self>, DeviceError> {
        let application = Running { application, tasks, elements, device };
        (0..tasks.len()).map(|cnn| application.timing(cnn)).collect()
    }

    /// Nanoseconds of all firings of a layer in a frame, in a partition, while everything else that may run has work.
    /// `one_by_one` says whether the layer makes its rows one by one.
    pub fn layer_ns(
        &self,
        task: &PartitionedCnn<'_>,
        partition: usize,
        id: LayerId,
        rows: u64,
        one_by_one: bool,
    ) -> f64 {
        self.layer(task, partition, id, rows, one_by_one).wall_ns * self.processor_shares[partition].stretch()
    }

    /// Nanoseconds as [`Self::layer_ns`] counts them, of a layer computed by a primitive with these measurements.
    pub fn layer_ns_by(
        &self,
        samples: &[Sample],
        task: &PartitionedCnn<'_>,
        partition: usize,
        id: LayerId,
        rows: u64,
    ) -> f64 {
        let processor_share = &self.processor_shares[partition];
        let measured = measured::time(samples, &processor_share.undisturbed(), task.network, id, rows);
        self.corrected(measured, task, partition, id, rows, false).wall_ns * processor_share.stretch()
    }

    /// The time of a layer as a plan states it.
    pub fn stated(
        &self,
        task: &PartitionedCnn<'_>,
        partition: usize,
        id: LayerId,
        rows: u64,
        one_by_one: bool,
    ) -> plan::LayerTime {
        let measured = self.measured(task, partition, id, rows);
        let basis = measured.map_or(TimeBasis::Modelled, |(_, basis)| basis);
        plan::LayerTime { ns: self.layer_ns(task, partition, id, rows, one_by_one), basis }
    }

    /// Whether anything was measured. If so, a layer may take longer in one firing than in several.
    pub fn is_measured(&self) -> bool {
        self.samples.iter().any(|samples| !samples.is_empty())
    }

    /// The time of a layer: the modelled time, times a correction. The correction is the measured time over the
    /// modelled time, both for a partition that has its processor to itself.
    fn layer(
        &self,
        task: &PartitionedCnn<'_>,
        partition: usize,
        id: LayerId,
        rows: u64,
        one_by_one: bool,
    ) -> LayerTime {
        let measured = self.measured(task, partition, id, rows);
        self.corrected(measured, task, partition, id, rows, one_by_one)
    }

    /// The modelled time of a layer, corrected by what was measured of it.
    fn corrected(
        &self,
        measured: Option<(f64, TimeBasis)>,
        task: &PartitionedCnn<'_>,
        partition: usize,
        id: LayerId,
        rows: u64,
        one_by_one: bool,
    ) -> LayerTime {
        let processor_share = &self.processor_shares[partition];
        let modelled = processor_share.layer(task.network, id, rows, one_by_one);
        let Some((ns, _)) = measured else { return modelled };
        let factor = ns / processor_share.undisturbed().layer(task.network, id, rows, false).wall_ns;
        LayerTime { wall_ns: modelled.wall_ns * factor, core_ns: modelled.core_ns * factor }
    }

    fn measured(
        &self,
        task: &PartitionedCnn<'_>,
        partition: usize,
        id: LayerId,
        rows: u64,
    ) -> Option<(f64, TimeBasis)> {
        let samples = self.samples.get(id.0).filter(|samples| !samples.is_empty())?;
        measured::time(samples, &self.processor_shares[partition].undisturbed(), task.network, id, rows)
    }

    /// Whether it is known how fast weights are read.
    pub fn has_store(&self) -> bool {
        self.store.is_some()
    }

    /// Nanoseconds that it takes to read the weights of a layer, in tiles of these bytes, if nothing else is read; 0 if the
    /// store is not known.
    pub fn read_ns(&self, tiles: &[u64]) -> f64 {
        self.store.map_or(0.0, |store| tiles.iter().map(|bytes| store.read_ns(*bytes)).sum())
    }

    /// By partition, how much longer its reads take because others read at the same time, as a factor. Each of the others gets
    /// as much of the store as this one, but those of the same CNN no more than they read in a frame. `read_ns` is the time
    /// in which the weights of each layer are read.
    pub fn read_stretch(&self, task: &PartitionedCnn<'_>, read_ns: &[f64]) -> Vec<f64> {
        let read = |p: usize| task.partitions[p].layers.iter().map(|id| read_ns[id.0]).sum::<f64>();
        let stretch = |own: usize| {
            let beside = (0..task.partitions.len()).filter(|other| task.together[own][*other]);
            let shares = beside.map(|other| (read(other) / read(own)).min(1.0));
            1.0 + shares.sum::<f64>() + self.other_readers[own] as f64
        };
        (0..task.partitions.len()).map(|p| if read(p) > 0.0 { stretch(p) } else { 1.0 }).collect()
    }

    /// One frame with these rows per firing. The layers of `one_by_one` make their rows one by one, at a price. Streamed
    /// weights are read at once, layer by layer, or, if they are read again, firing by firing.
    pub fn frame(&self, task: &PartitionedCnn<'_>, rows: &[u64], one_by_one: &[LayerId]) -> FrameTime {
        self.frame_in_memories(task, rows, one_by_one, &[])
    }

    /// The same if each layer takes so many nanoseconds longer because of the memories in which it reads and writes
    /// ([`regions::waits`](crate::storage::regions::waits)).
    pub fn frame_in_memories(
        &self,
        task: &PartitionedCnn<'_>,
        rows: &[u64],
        one_by_one: &[LayerId],
        waits: &[f64],
    ) -> FrameTime {
        let read = |id: LayerId| {
            let once = task.streaming(id).map_or(0.0, |streaming| self.read_ns(&[streaming.stored]));
            once * task.times_read(id, rows[id.0]) as f64
        };
        let read: Vec<f64> = task.network.ids().map(read).collect();
        let stretch = self.read_stretch(task, &read);
        let wait = |id: LayerId| waits.get(id.0).copied().unwrap_or_default();
        self.frame_with(task, rows, one_by_one, |p, id| read[id.0] * stretch[p] + wait(id))
    }

    /// The same, given how long a partition waits for the weights of each layer. It computes nothing meanwhile.
    pub fn frame_with(
        &self,
        task: &PartitionedCnn<'_>,
        rows: &[u64],
        one_by_one: &[LayerId],
        wait_ns: impl Fn(usize, LayerId) -> f64,
    ) -> FrameTime {
        let mut of_layer = vec![0.0; task.network.layers.len()];
        let mut works = Vec::new();
        for (p, partition) in task.partitions.iter().enumerate() {
            let mut core_ns = 0.0;
            for id in &partition.layers {
                let time = self.layer(task, p, *id, rows[id.0], one_by_one.binary_search(id).is_ok());
                of_layer[id.0] = time.wall_ns + wait_ns(p, *id);
                core_ns += time.core_ns;
            }
            works.push(core_ns);
        }
        let times = self.stages.times(task, &of_layer, |_| 1.0);
        let stretched =
            self.stages.times(task, &of_layer, |partition| self.processor_shares[partition].stretch());
        let latency_ns: f64 = stretched.iter().sum();
        let period_ns = match self.pipelines.as_slice() {
            [_] => self.slowest(&stretched).min(self.shared(&times, &works)),
            _ => latency_ns,
        };
        // A network of inputs alone takes no time; a nanosecond keeps its frame rate finite.
        let period_ns = period_ns.max(1.0);
        let loads = self.pipelines.iter().flat_map(|pipeline| {
            let own = self
                .stages
                .partitions
                .iter()
                .zip(&stretched)
                .filter(|(stage, _)| pipeline.contains(&stage.start));
            let while_it_runs = match self.pipelines.len() {
                1 => period_ns,
                _ => own.map(|(_, time)| time).sum::<f64>().max(1.0),
            };
            works[pipeline.clone()].iter().map(move |work| work / while_it_runs)
        });
        let loads = loads.collect();
        FrameTime { period_ns, latency_ns, loads }
    }

    /// Time between frames of a pipeline whose stages take so long.
    fn slowest(&self, stages: &[f64]) -> f64 {
        let spanned = self.spans.iter().map(|span| stages[span.clone()].iter().sum::<f64>() / 2.0);
        stages.iter().copied().chain(spanned).fold(0.0, f64::max)
    }

    /// The bound on the time of a frame, if the CNN has its processor to itself.
    fn shared(&self, times: &[f64], works: &[f64]) -> f64 {
        let Some(processor_share) = self.processor_shares.first().filter(|_| self.is_alone) else {
            return f64::INFINITY;
        };
        let (workers, cores) = (processor_share.busy as f64, processor_share.processor.cores as f64);
        let slowest = self.slowest(times);
        if workers <= cores {
            return slowest;
        }
        let work: f64 = works.iter().sum();
        slowest + (work - slowest).max(0.0) * (workers - cores) / (cores * (workers - 1.0))
    }
}

/// An application as it runs on a device: what may run beside a CNN.
struct Running<'a, 'd> {
    application: &'a Application,
    tasks: &'a [PartitionedCnn<'a>],
    /// J: partitions that run at the same time, each as its CNN and its index there.
    elements: &'a [Vec<(usize, usize)>],
    device: &'d DeviceProfile,
}

impl<'d> Running<'_, 'd> {
    /// The timing of a CNN.
    fn timing(&self, cnn: usize) -> Result<Timing<'d>, DeviceError> {
        let task = &self.tasks[cnn];
        let pipelines = pipelines(task);
        let mut processor_shares = Vec::new();
        let mut is_alone = pipelines.len() == 1;
        for pipeline in &pipelines {
            for partition in pipeline.clone() {
                let (processor_share, has_the_processors) = self.processor_share(cnn, pipeline, partition)?;
                processor_shares.push(processor_share);
                is_alone &= has_the_processors;
            }
        }
        let stages = Stages::new(task);
        let spans = match self.application.storage {
            StorageModel::Edges => spans(task, &pipelines, &stages),
            StorageModel::Tensors => Vec::new(),
        };
        let name = &self.application.cnns[cnn].name;
        let partitions = 0..task.partitions.len();
        Ok(Timing {
            deadline_ns: self.application.constraints.latency_ns.get(name).copied(),
            samples: samples(task, &processor_shares),
            processor_shares,
            pipelines,
            store: self.device.store.as_ref(),
            other_readers: partitions.map(|p| other_readers(self.tasks, self.elements, (cnn, p))).collect(),
            is_alone,
            stages,
            spans,
        })
    }

    /// The processor of a partition, by its CNN and its index there.
    fn processor(&self, (cnn, partition): (usize, usize)) -> &str {
        &self.application.cnns[cnn].partitions[partition].processor
    }

    /// The share that a partition of a pipeline has in its processor, and whether nothing runs beside it: neither a
    /// partition of another CNN there, nor one of its own pipeline on another processor.
    fn processor_share(
        &self,
        cnn: usize,
        pipeline: &Range<usize>,
        partition: usize,
    ) -> Result<(ProcessorShare<'d>, bool), DeviceError> {
        let name = self.processor((cnn, partition));
        let is_own = |at: &(usize, usize)| at.0 == cnn && pipeline.contains(&at.1);
        let is_beside = |at: &&(usize, usize)| at.0 != cnn && self.processor(**at) == name;
        let others = self.elements.iter().filter(|element| element.iter().any(is_own));
        let others = others.map(|element| element.iter().filter(is_beside).count() as u64).max().unwrap_or(0);
        let mates = pipeline.clone().filter(|mate| self.processor((cnn, *mate)) == name).count() as u64;
        let mut share = ProcessorShare::alone(self.device.processor(name)?, self.application.threads);
        // All partitions on one processor have the same number of workers.
        share.busy = (mates + others) * share.workers;
        Ok((share, others == 0 && mates == pipeline.len() as u64))
    }
}

/// The measurements of each layer of a CNN on the processor of its partition; empty if none was measured.
fn samples<'d>(task: &PartitionedCnn<'_>, processor_shares: &[ProcessorShare<'d>]) -> Vec<&'d [Sample]> {
    if processor_shares.iter().all(|share| share.processor.measured.is_empty()) {
        return Vec::new();
    }
    let mut samples = vec![&[][..]; task.network.layers.len()];
    for (share, partition) in processor_shares.iter().zip(&task.partitions) {
        for id in &partition.layers {
            samples[id.0] = measured::samples(share.processor, task.network.layer(*id), share.workers);
        }
    }
    samples
}

/// How many partitions of other CNNs read weights while this one runs.
fn other_readers(
    tasks: &[PartitionedCnn<'_>],
    elements: &[Vec<(usize, usize)>],
    own: (usize, usize),
) -> usize {
    let reads = |(cnn, p): (usize, usize)| cnn != own.0 && tasks[cnn].bytes_streamed(p) > 0;
    let others = |element: &Vec<(usize, usize)>| element.iter().filter(|at| reads(**at)).count();
    elements.iter().filter(|element| element.contains(&own)).map(others).max().unwrap_or(0)
}

/// The pipelines of a CNN: runs of partitions that run at the same time. The application has checked that these follow
/// each other.
fn pipelines(task: &PartitionedCnn<'_>) -> Vec<Range<usize>> {
    let mut pipelines: Vec<Range<usize>> = Vec::new();
    for partition in 0..task.partitions.len() {
        match pipelines.last_mut() {
            Some(last) if task.together[partition - 1][partition] => last.end = partition + 1,
            _ => pipelines.push(partition..partition + 1),
        }
    }
    pipelines
}

/// For each tensor of a pipeline that skips stages: the stages from its writer to its reader.
fn spans(task: &PartitionedCnn<'_>, pipelines: &[Range<usize>], stages: &Stages) -> Vec<Range<usize>> {
    let partition_of = task.partition_of();
    let stage = |p: usize| stages.partitions.iter().position(|stage| stage.contains(&p));
    let mut spans: Vec<Range<usize>> = Vec::new();
    for (id, readers) in task.network.ids().zip(task.network.readers()) {
        for reader in readers {
            let (writes, reads) = (partition_of[id.0], partition_of[reader.0]);
            let (Some(from), Some(to)) = (stage(writes), stage(reads)) else { continue };
            let is_piped =
                pipelines.iter().any(|pipeline| pipeline.contains(&writes) && pipeline.contains(&reads));
            if is_piped && to > from + 1 && !spans.contains(&(from..to + 1)) {
                spans.push(from..to + 1);
            }
        }
    }
    spans
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    /// A CNN alone on a processor of so many cores, each stage of so many workers.
    fn timing(processor: &Processor, stages: u64, workers: u64) -> Timing<'_> {
        let processor_share = ProcessorShare { processor, workers, busy: stages * workers };
        let processor_shares = vec![processor_share; stages as usize];
        let pipelines = std::iter::once(0..stages as usize).collect();
        Timing {
            stages: Stages::each_a_partition(stages as usize),
            processor_shares,
            deadline_ns: None,
            samples: Vec::new(),
            pipelines,
            store: None,
            other_readers: vec![0; stages as usize],
            is_alone: true,
            spans: Vec::new(),
        }
    }

    #[test]
    fn stages_share_what_cores_there_are() {
        let cpu = DeviceProfile::find("generic", Path::new("")).unwrap().processors.remove("cpu").unwrap();
        for (cores, workers, times, expected) in [
            // As many cores as stages: the slowest.
            (3, 1, vec![2.0, 1.0, 1.0], 2.0),
            (4, 2, vec![2.0, 3.0], 3.0),
            // One core: all of them.
            (1, 1, vec![2.0, 1.0, 1.0], 4.0),
            (1, 1, vec![7.0], 7.0),
            // Equal stages: the work over the cores.
            (2, 1, vec![1.0, 1.0, 1.0], 1.5),
            (4, 4, vec![1.0, 1.0], 2.0),
            // In the worst case, the slowest stage is held up for as long as the others work.
            (2, 1, vec![2.0, 1.0, 1.0], 2.5),
        ] {
            let processor = Processor { cores, ..cpu.clone() };
            let timing = timing(&processor, times.len() as u64, workers);
            let works: Vec<f64> = times.iter().map(|time| time * workers as f64).collect();
            let found = timing.shared(&times, &works);
            assert!((found - expected).abs() < 1e-12, "{times:?} of {workers} on {cores}: {found}");
            let stretched: Vec<f64> =
                times.iter().map(|time| time * timing.processor_shares[0].stretch()).collect();
            assert!(found <= timing.slowest(&stretched));
            assert!(works.iter().sum::<f64>() <= found * cores as f64 * (1.0 + 1e-12));
        }
        // Beside other CNNs, a CNN has its share, whatever they do.
        let processor = Processor { cores: 2, ..cpu };
        let mut timing = timing(&processor, 2, 1);
        timing.is_alone = false;
        assert_eq!(timing.shared(&[1.0, 1.0], &[1.0, 1.0]), f64::INFINITY);
        // Two frames at most are between stages that are no neighbours.
        timing.spans = std::iter::once(0..2).collect();
        assert_eq!(timing.slowest(&[3.0, 5.0]), 5.0);
        timing.spans = std::iter::once(0..3).collect();
        assert_eq!(timing.slowest(&[3.0, 5.0, 4.0]), 6.0);
    }
}
