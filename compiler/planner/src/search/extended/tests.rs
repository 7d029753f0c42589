use std::path::Path;
use std::sync::atomic::AtomicBool;

use csdfc_input::builtin::{self, Builder, ConvOptions};
use csdfc_input::device::DeviceProfile;
use csdfc_network::pass;
use csdfc_network::{Network, Operand};
use csdfc_plan::plan::StorageModel;
use proptest::prelude::*;
use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;

use super::chains::{self, Chain};
use super::design_space::DesignSpace;
use super::segment::Segment;
use super::*;
use crate::cost::timing::Timing;
use crate::frame::execution::{Execution, Rings};
use crate::frame::task::{PartitionTask, Streaming};
use crate::search::DesignPoint;
use crate::search::budget::Budget;
use crate::storage::Effort;

/// Every chain of segments to the cut `last`, as bytes and time.
fn all_chains(segments: &[Segment], from: usize, last: usize) -> Vec<(u64, f64)> {
    if from == last {
        return vec![(0, 0.0)];
    }
    let next = segments.iter().filter(|segment| segment.from == from);
    next.flat_map(|segment| {
        let rest = all_chains(segments, segment.to, last);
        rest.into_iter().map(|(bytes, time)| (bytes.max(segment.bytes), time + segment.time_ns))
    })
    .collect()
}

proptest! {
    #[test]
    fn chains_agree_with_exhaustion(raw in prop::collection::vec((0usize..5, 1usize..4, 1u64..40, 1u32..40), 1..16)) {
        let segment = |&(from, length, bytes, time): &(usize, usize, u64, u32)| Segment {
            from,
            to: from + length,
            firings: 1,
            bytes,
            time_ns: f64::from(time),
        };
        let segments: Vec<Segment> = raw.iter().map(segment).collect();
        let all = all_chains(&segments, 0, 5);
        let best = |(bytes, time): &(u64, f64)| {
            !all.iter().any(|other| other.0 <= *bytes && other.1 <= *time && *other != (*bytes, *time))
        };
        let mut expected: Vec<(u64, f64)> = all.iter().copied().filter(best).collect();
        expected.sort_by(|a, b| a.1.total_cmp(&b.1));
        expected.dedup();
        let found = chains::front(&segments, 5);
        let figures: Vec<(u64, f64)> = found.iter().map(|chain| (chain.bytes, chain.time_ns)).collect();
        prop_assert_eq!(figures, expected);
        for Chain { bytes, segments: taken, .. } in found {
            let taken: Vec<&Segment> = taken.iter().map(|index| &segments[*index]).collect();
            prop_assert_eq!(taken.iter().map(|segment| segment.bytes).max(), Some(bytes));
            prop_assert!(taken.windows(2).all(|pair| pair[0].to == pair[1].from));
            prop_assert_eq!((taken[0].from, taken[taken.len() - 1].to), (0, 5));
        }
    }
}

fn network(name: &str) -> Network {
    pass::normalise(builtin::network(name).unwrap(), pass::Fusion::Full)
}

fn task(network: &Network) -> PartitionedCnn<'_> {
    let partitions = vec![PartitionTask { layers: network.ids().collect(), steps: None, stops: Vec::new() }];
    PartitionedCnn { network, workers: 1, partitions, together: vec![vec![false]], streaming: Vec::new() }
}

/// The known bytes of a chain lie between a lower bound of every placement of its execution and the bytes of one
/// placement.
#[test]
fn chains_take_what_they_say() {
    let device = DeviceProfile::find("generic", Path::new("")).unwrap();
    let timing = Timing::alone(device.processor("cpu").unwrap(), 1);
    for name in ["lenet5", "resnet8", "squeezenet1_0", "mobilenet_v1_0.25"] {
        let network = network(name);
        let task = task(&network);
        let evaluator = Evaluator::new(&task, &timing, StorageModel::Tensors);
        let design_space = DesignSpace::new(&task);
        let chains = partition_chains(&evaluator, &design_space, 0, &|| false).unwrap();
        let mut exact = 0;
        for executions in &chains {
            let mut firings = vec![1; network.layers.len()];
            executions.firings.iter().for_each(|(id, often)| firings[id.0] = *often);
            let choice = design_space.choice(&design_space.genome(&firings, &executions.barriers));
            let execution = evaluator.execute(&choice, Rings::OnDemand).unwrap();
            let time_ns = evaluator.period_ns(&choice.rows, &[]);
            assert!((time_ns - executions.time_ns).abs() < 1e-6 * time_ns, "{name}: {}", choice.name);
            let (least, most) =
                (evaluator.bound(&execution), evaluator.buffers(&execution, Effort::Candidate));
            assert!(
                least <= executions.bytes && executions.bytes <= most,
                "{name}: {least} {} {most}",
                executions.bytes
            );
            exact += usize::from(executions.bytes == least || executions.bytes == most);
        }
        assert!(2 * exact > chains.len(), "{name}: {exact} of {}", chains.len());
    }
}

/// However a genome is changed, it stays one of the design space, and its choice can be executed.
#[test]
fn changed_genomes_stay_in_the_family() {
    // With additions as layers there are more genomes.
    let network = pass::normalise(builtin::network("resnet8").unwrap(), pass::Fusion::Paper);
    let task = task(&network);
    let design_space = DesignSpace::new(&task);
    let mut random = ChaCha8Rng::seed_from_u64(1);
    let mut genome = design_space.steady(1);
    let mut seen = std::collections::BTreeSet::new();
    for _ in 0..2000 {
        design_space.mutate(&mut genome, &mut random);
        assert!(design_space.space().accepts(&genome));
        let mut settled = genome.clone();
        design_space.settle(&mut settled);
        assert_eq!(settled, genome);
        let choice = design_space.choice(&genome);
        assert_eq!(design_space.nearest_genome(&choice), genome);
        let height = |id: LayerId| network.layer(id).rows() as u64;
        assert!(network.ids().all(|id| (1..=height(id)).contains(&choice.rows[id.0])));
        seen.insert((choice.rows, choice.barriers));
    }
    assert!(seen.len() > 1500, "{}", seen.len());
}

/// Layers that run ahead have the rings that they had, and never more bytes are in use at once.
#[test]
fn running_ahead_takes_no_more() {
    let device = DeviceProfile::find("generic", Path::new("")).unwrap();
    let timing = Timing::alone(device.processor("cpu").unwrap(), 1);
    let mut random = ChaCha8Rng::seed_from_u64(1);
    let mut less = 0;
    for name in ["resnet8", "squeezenet1_0", "mobilenet_v1_0.25"] {
        let network = pass::normalise(builtin::network(name).unwrap(), pass::Fusion::Paper);
        let streaming = |layer: &csdfc_network::Layer| {
            let stored = 4 * layer.parameter_elements();
            (stored > 0).then_some(Streaming { stored, tiling: None, again: false })
        };
        let task =
            PartitionedCnn { streaming: network.layers.iter().map(streaming).collect(), ..task(&network) };
        let evaluator = Evaluator::new(&task, &timing, StorageModel::Tensors);
        let design_space = DesignSpace::new(&task);
        let mut genome = design_space.steady(1);
        for _ in 0..100 {
            design_space.mutate(&mut genome, &mut random);
            let choice = design_space.choice(&genome);
            let of = |rings| evaluator.execute(&choice, rings).unwrap();
            let [on_demand, ahead] = [Rings::OnDemand, Rings::Ahead].map(of);
            let rows = |execution: &Execution| -> Vec<u64> {
                execution.requests.iter().map(|request| request.ring_rows).collect()
            };
            assert_eq!(rows(&on_demand), rows(&ahead), "{name}: {choice:?}");
            let [before, after] = [&on_demand, &ahead].map(|execution| evaluator.bound(execution));
            assert!(after <= before, "{name}: {after}, not {before}: {choice:?}");
            less += usize::from(after < before);
        }
    }
    assert!(less > 30, "{less}");
}

/// A search that knows what a longer one found ends with nothing worse; without, so short a one does not.
#[test]
fn a_search_goes_on_from_what_is_known() {
    let device = DeviceProfile::find("generic", Path::new("")).unwrap();
    let timing = Timing::alone(device.processor("cpu").unwrap(), 1);
    let network = network("mobilenet_v1_0.25");
    let task = task(&network);
    let evaluator = Evaluator::new(&task, &timing, StorageModel::Tensors);
    let search = |seed, known: &[&Choice], budget| {
        let watch = Watch { budget, ..Watch::unwatched() };
        front(&evaluator, seed, "cnn", known, &watch).unwrap().design_points
    };
    let long = search(1, &[], Budget::Evaluations(1500));
    let choices: Vec<Choice> = long.iter().map(DesignPoint::choice).collect();
    let known: Vec<&Choice> = choices.iter().collect();
    let short = Budget::Evaluations(150);
    let worse = |found: &[DesignPoint]| {
        let reached = |old: &&DesignPoint| {
            found
                .iter()
                .any(|new| new.buffers <= old.buffers && new.period_ns <= old.period_ns * (1.0 + 1e-9))
        };
        long.iter().filter(|old| !reached(old)).count()
    };
    let (anew, from_known) = (search(2, &[], short), search(2, &known, short));
    assert!(worse(&anew) > 0);
    assert_eq!(worse(&from_known), 0, "of {}", long.len());
    assert_eq!(from_known.len(), search(2, &known, short).len());
}

/// Convolutions of one pixel on images of eight rows. Each has so many filters, reads those of these numbers side by
/// side, and has its own number as its name. The first is the input.
pub(super) fn points(layers: &[(usize, &[usize])]) -> Network {
    let mut b = Builder::new(1);
    let mut made: Vec<Operand> = Vec::new();
    for (number, (filters, reads)) in layers.iter().enumerate() {
        let read: Vec<&Operand> = reads.iter().map(|read| &made[*read]).collect();
        let image = match read.as_slice() {
            [] => None,
            [one] => Some((*one).clone()),
            several => Some(b.concat(several).unwrap()),
        };
        made.push(match image {
            None => b.input(&number.to_string(), [1, *filters, 8, 8]).unwrap(),
            Some(image) => {
                b.named(number.to_string()).conv(&image, *filters, [1, 1], ConvOptions::default()).unwrap()
            }
        });
    }
    b.output("output", made.last().unwrap()).unwrap();
    b.finish()
}

/// A search that is stopped gives what needs no search, and no simple choice that takes long to place.
#[test]
fn a_search_that_is_stopped_has_an_answer() {
    let device = DeviceProfile::find("generic", Path::new("")).unwrap();
    let timing = Timing::alone(device.processor("cpu").unwrap(), 1);
    let network = network("lenet5");
    let task = task(&network);
    let evaluator = Evaluator::new(&task, &timing, StorageModel::Tensors);
    let stop = AtomicBool::new(true);
    let watch = Watch { stop: &stop, ..Watch::unwatched() };
    let found = front(&evaluator, 1, "cnn", &[], &watch).unwrap();
    assert_eq!(found.stopped, Stopped::Asked);
    let simple: Vec<&DesignPoint> =
        found.design_points.iter().filter(|design_point| design_point.execution.barriers.is_none()).collect();
    assert!(simple.iter().any(|design_point| design_point.name == "none"), "{found:?}");
    assert!(simple.iter().all(|design_point| design_point.name.starts_with("none")), "{found:?}");
}

/// When the time is over, only chains are known in which each layer fires once.
#[test]
fn chains_are_found_when_the_time_is_over() {
    let device = DeviceProfile::find("generic", Path::new("")).unwrap();
    let timing = Timing::alone(device.processor("cpu").unwrap(), 1);
    let network = network("lenet5");
    let task = task(&network);
    let evaluator = Evaluator::new(&task, &timing, StorageModel::Tensors);
    let design_space = DesignSpace::new(&task);
    let is_streamed = |over: bool| {
        let chains = partition_chains(&evaluator, &design_space, 0, &|| over).unwrap();
        assert!(!chains.is_empty());
        chains.iter().any(|executions| executions.firings.iter().any(|(_, often)| *often > 1))
    };
    assert!(is_streamed(false) && !is_streamed(true));
}

/// By default, a search evaluates its starts and a fixed number of further genomes.
#[test]
fn a_search_goes_on_after_its_starts() {
    let device = DeviceProfile::find("generic", Path::new("")).unwrap();
    let timing = Timing::alone(device.processor("cpu").unwrap(), 1);
    let network = network("lenet5");
    let task = task(&network);
    let evaluator = Evaluator::new(&task, &timing, StorageModel::Tensors);
    let design_space = DesignSpace::new(&task);
    let watch = Watch::unwatched();
    let settings = evolve::EvolutionSettings { seed: 1, name: "cnn", watch: &watch };
    let starts = design_space.prefixes();
    let distinct = starts.len() as u64;
    let found = evolve::evolve(&evaluator, &design_space, [starts.clone(), starts].concat(), &settings);
    assert_eq!(found.evaluations, 800 + distinct);
}

/// In a network of at most eight layers that can go by parts, every choice of some of them is tried.
#[test]
fn few_layers_are_enumerated() {
    let chain = |length: usize| {
        let before: Vec<[usize; 1]> = (0..length).map(|at| [at.saturating_sub(1)]).collect();
        let layers: Vec<(usize, &[usize])> = before
            .iter()
            .enumerate()
            .map(|(at, before)| (2, if at == 0 { &[][..] } else { &before[..] }))
            .collect();
        points(&layers)
    };
    let named = |length: usize| -> Vec<(String, Vec<u64>)> {
        let network = chain(length);
        bits(&task(&network)).into_iter().map(|choice| (choice.name, choice.rows)).collect()
    };
    let expected = [
        ("parts 0b0", [8, 8, 8]),
        ("parts 0b1", [1, 8, 8]),
        ("parts 0b10", [8, 1, 8]),
        ("parts 0b11", [1, 1, 8]),
        ("parts 0b100", [8, 8, 1]),
        ("parts 0b101", [1, 8, 1]),
        ("parts 0b110", [8, 1, 1]),
        ("parts 0b111", [1, 1, 1]),
    ];
    assert_eq!(named(3), expected.map(|(name, rows)| (name.to_string(), rows.to_vec())));
    assert_eq!((named(8).len(), named(9).len()), (256, 0));
}

/// Between modules, where few bytes are kept in several tensors, segments end too, as long as what is kept leaves a
/// quarter for rings.
#[test]
fn modules_are_streamed_one_by_one() {
    let device = DeviceProfile::find("generic", Path::new("")).unwrap();
    let timing = Timing::alone(device.processor("cpu").unwrap(), 1);
    let channel = 8 * 8 * 4;
    let found = |network: &Network, least: u64| {
        let task = task(network);
        let evaluator = Evaluator::new(&task, &timing, StorageModel::Tensors);
        block_by_block(&evaluator, &DesignSpace::new(&task), least).unwrap()
    };
    let module = points(&[(3, &[]), (16, &[0]), (4, &[1]), (4, &[1]), (16, &[2, 3]), (1, &[4])]);
    let module = pass::normalise(module, pass::Fusion::Full);
    for (least, ends) in [(u64::MAX, &[0, 1, 3, 4][..]), (18 * channel, &[0, 3])] {
        let design_point = found(&module, least).unwrap();
        let barriers = ends.iter().map(|end| LayerId(*end)).collect();
        assert_eq!(design_point.execution.barriers, Some(barriers));
        // The input is in a segment of its own, so it is there whole.
        assert_eq!(design_point.execution.rows, [8, 1, 1, 1, 1, 1]);
        assert!(design_point.buffers < least);
    }
    // Its rings do not lie as tightly as their bound has it: only their bytes tell that it is no better.
    let loose = points(&[(6, &[]), (7, &[0]), (2, &[1]), (5, &[1]), (3, &[2]), (2, &[2, 3, 4])]);
    let loose = pass::normalise(loose, pass::Fusion::Full);
    let bytes = found(&loose, u64::MAX).unwrap().buffers;
    assert_eq!(found(&loose, bytes + 1).map(|design_point| design_point.buffers), Some(bytes));
    assert!(found(&loose, bytes).is_none());
    // Single tensors are left to the chains.
    assert!(found(&network("resnet8"), u64::MAX).is_none());
}
