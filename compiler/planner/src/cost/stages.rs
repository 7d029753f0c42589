//! The stages of a CNN, each of which works on one frame at a time, and their times.
//!
//! A stage is a partition, or a component of several that wait for each other within a frame ([`component`]). The time
//! of a component is that of a frame which finds all its partitions idle. The layers of its partitions are cut into
//! pieces. A piece ends where its partition waits for another one, or where another one waits for it. A piece starts
//! once two things have ended: the piece before it in its partition, and all pieces that make what it reads. So pieces
//! that are not on the longest path through a frame add no time. This time is an upper bound, because a piece may pass
//! on rows before it has ended.

use std::collections::BTreeSet;
use std::ops::Range;

use csdfc_network::{LayerId, Operand, component};

use crate::frame::task::{PartitionTask, PartitionedCnn};

/// The stages of a CNN.
#[derive(Debug, Clone, PartialEq)]
pub struct Stages {
    /// The partitions of each stage.
    pub partitions: Vec<Range<usize>>,
    /// The pieces of all components of several partitions. Each piece comes after those that it waits for.
    pieces: Vec<Piece>,
}

/// Layers of a partition that fire without a wait.
#[derive(Debug, Clone, PartialEq)]
struct Piece {
    partition: usize,
    layers: Vec<LayerId>,
    /// The pieces of other partitions that make what it reads.
    after: Vec<usize>,
}

impl Stages {
    /// The stages of this many partitions, none of which waits for a later one.
    pub fn each_a_partition(count: usize) -> Self {
        Stages { partitions: (0..count).map(|p| p..p + 1).collect(), pieces: Vec::new() }
    }

    /// The stages of a CNN. The partitions of a component follow each other.
    pub fn new(task: &PartitionedCnn<'_>) -> Self {
        let components = component::components(task.network, &task.partition_of(), task.partitions.len());
        let range = |component: &Vec<usize>| Some(*component.first()?..component.last()? + 1);
        let partitions: Vec<Range<usize>> = components.iter().filter_map(range).collect();
        Stages { pieces: pieces(task, &partitions), partitions }
    }

    /// The time of each stage, given the time of each layer, and how many times longer partitions take.
    pub fn times(
        &self,
        task: &PartitionedCnn<'_>,
        of_layer: &[f64],
        stretch: impl Fn(usize) -> f64,
    ) -> Vec<f64> {
        let time = |layers: &[LayerId], partition: usize| {
            layers.iter().map(|id| of_layer[id.0]).sum::<f64>() * stretch(partition)
        };
        let mut ends: Vec<f64> = Vec::with_capacity(self.pieces.len());
        let mut free = vec![0.0f64; task.partitions.len()];
        for Piece { partition, layers, after } in &self.pieces {
            let start = after.iter().map(|piece| ends[*piece]).fold(free[*partition], f64::max);
            let end = start + time(layers, *partition);
            free[*partition] = end;
            ends.push(end);
        }
        let of_stage = |stage: &Range<usize>| match stage.len() {
            1 => time(&task.partitions[stage.start].layers, stage.start),
            _ => free[stage.clone()].iter().copied().fold(0.0, f64::max),
        };
        self.partitions.iter().map(of_stage).collect()
    }
}

fn pieces(task: &PartitionedCnn<'_>, stages: &[Range<usize>]) -> Vec<Piece> {
    let mut pieces: Vec<(usize, &[LayerId])> = Vec::new();
    for stage in stages.iter().filter(|stage| stage.len() > 1) {
        for p in stage.clone() {
            let PartitionTask { layers, stops, .. } = &task.partitions[p];
            let of_partition = layers.chunk_by(|before, _| stops.binary_search(before).is_err());
            pieces.extend(of_partition.map(|layers| (p, layers)));
        }
    }
    // Only the first layer of a piece reads what another partition makes, and only the last is read there.
    pieces.sort_by_key(|(_, layers)| layers.first().copied());
    let made_by =
        |operand: &Operand| pieces.iter().position(|(_, layers)| layers.last() == Some(&operand.layer));
    let piece = |(partition, layers): &(usize, &[LayerId])| {
        let own = &task.partitions[*partition].layers;
        let operands = layers.iter().flat_map(|id| &task.network.layer(*id).inputs);
        let foreign = operands.filter(|operand| !own.contains(&operand.layer));
        let after: BTreeSet<usize> = foreign.filter_map(made_by).collect();
        Piece { partition: *partition, layers: layers.to_vec(), after: after.into_iter().collect() }
    };
    pieces.iter().map(piece).collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use csdfc_input::app::Origin;
    use csdfc_input::app::load::load;
    use csdfc_input::app::resolve::resolve;
    use csdfc_input::app::spec::{AppSpec, PartitionSpec};
    use csdfc_input::device::DeviceProfile;
    use csdfc_network::{LayerId, Network};

    use crate::cost::timing::Timing;
    use crate::frame::task;

    /// One of the two expanding convolutions of each fire module of SqueezeNet is on another processor. Of the two,
    /// only the longer one counts.
    #[test]
    fn what_runs_beside_others_costs_nothing() {
        let mut spec = AppSpec::of_model("builtin:squeezenet1_0");
        let resolved = |spec: &AppSpec| resolve(spec, &Origin::default(), Path::new(""), &mut load).unwrap();
        let names = |network: &Network| -> Vec<String> {
            let names = network.layers.iter().map(|layer| layer.name.clone());
            names.filter(|name| name.ends_with(".expand3x3")).collect()
        };
        let listed = names(&resolved(&spec).cnns[0].network);
        assert_eq!(listed.len(), 8);
        let beside = PartitionSpec {
            name: Some("beside".into()),
            layers: Some(listed),
            processor: Some("gpu".into()),
            ..PartitionSpec::default()
        };
        spec.cnns[0].partitions = vec![PartitionSpec::default(), beside];
        spec.parallel = vec![vec!["squeezenet1_0".into()]];
        let application = resolved(&spec);
        let (tasks, elements) = (task::tasks(&application), task::elements(&application));
        for profile in ["jetson-tx2", "jetson-tx2-paper"] {
            let device = DeviceProfile::find(profile, Path::new("")).unwrap();
            let timing = &Timing::new(&application, &tasks, &elements, &device).unwrap()[0];
            let task = &tasks[0];
            let rows: Vec<u64> = task.network.layers.iter().map(|layer| layer.rows() as u64).collect();
            let partition_of = task.partition_of();
            let time = |id: LayerId| timing.layer_ns(task, partition_of[id.0], id, rows[id.0], false);
            let expected: f64 = task
                .network
                .ids()
                .map(|id| match task.network.layer(id).name.rsplit_once(".expand") {
                    Some((module, "1x1")) => {
                        let other = task.network.find(&format!("{module}.expand3x3")).unwrap();
                        time(id).max(time(other))
                    }
                    Some((_, "3x3")) => 0.0,
                    _ => time(id),
                })
                .sum();
            let frame = timing.frame(task, &rows, &[]);
            assert!((frame.latency_ns / expected - 1.0).abs() < 1e-9, "{} {expected}", frame.latency_ns);
            assert_eq!(frame.period_ns, frame.latency_ns);
        }
    }
}
