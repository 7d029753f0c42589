use std::path::Path;

use csdfc_codegen::plan::StorageModel;
use proptest::prelude::*;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use super::chains::{self, Chain};
use super::family::Family;
use super::stream::Segment;
use super::*;
use crate::cost::DeviceProfile;
use crate::cost::timing::Timing;
use crate::frame::execution::Rings;
use crate::frame::task::PartitionTask;
use crate::network::Network;
use crate::search::Variant;
use crate::search::watch::Limit;
use crate::storage::Effort;
use crate::{builtin, pass};

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

fn task(network: &Network) -> CnnTask<'_> {
    let partitions = vec![PartitionTask { layers: network.ids().collect(), steps: None }];
    CnnTask { network, partitions, together: vec![vec![false]] }
}

/// What is known of a chain lies between what no placement of its execution undercuts and what one takes.
#[test]
fn chains_take_what_they_say() {
    let device = DeviceProfile::find("generic", Path::new("")).unwrap();
    let timing = Timing::alone(device.processor("cpu").unwrap(), 1);
    for name in ["lenet5", "resnet8", "squeezenet1_0", "mobilenet_v1_0.25"] {
        let network = network(name);
        let task = task(&network);
        let evaluator = Evaluator::new(&task, &timing, StorageModel::Tensors);
        let family = Family::new(&task);
        let chains = partition_chains(&evaluator, &family, 0, &|| false).unwrap();
        let mut exact = 0;
        for paced in &chains {
            let mut firings = vec![1; network.layers.len()];
            paced.firings.iter().for_each(|(id, often)| firings[id.0] = *often);
            let choice = family.choice(&family.genome(&firings, &paced.barriers));
            let execution = evaluator.execute(&choice, Rings::OnDemand).unwrap();
            let time_ns = evaluator.period_ns(&choice.rows, &[]);
            assert!((time_ns - paced.time_ns).abs() < 1e-6 * time_ns, "{name}: {}", choice.name);
            let (least, most) =
                (evaluator.bound(&execution), evaluator.buffers(&execution, Effort::Candidate));
            assert!(least <= paced.bytes && paced.bytes <= most, "{name}: {least} {} {most}", paced.bytes);
            exact += usize::from(paced.bytes == least || paced.bytes == most);
        }
        assert!(2 * exact > chains.len(), "{name}: {exact} of {}", chains.len());
    }
}

/// Whatever becomes of a genome, it is one of the family and its choice can be executed.
#[test]
fn changed_genomes_stay_in_the_family() {
    // With additions as layers there are more genomes.
    let network = pass::normalise(builtin::network("resnet8").unwrap(), pass::Fusion::Paper);
    let task = task(&network);
    let family = Family::new(&task);
    let mut random = ChaCha8Rng::seed_from_u64(1);
    let mut genome = family.steady(1);
    let mut seen = std::collections::BTreeSet::new();
    for _ in 0..2000 {
        family.mutate(&mut genome, &mut random);
        assert!(family.space().accepts(&genome));
        let mut settled = genome.clone();
        family.settle(&mut settled);
        assert_eq!(settled, genome);
        let choice = family.choice(&genome);
        assert_eq!(family.like(&choice), genome);
        let height = |id: LayerId| network.layer(id).rows() as u64;
        assert!(network.ids().all(|id| (1..=height(id)).contains(&choice.rows[id.0])));
        seen.insert((choice.rows, choice.barriers));
    }
    assert!(seen.len() > 1500, "{}", seen.len());
}

/// A search that knows what a longer one found ends with nothing worse; without, so short a one does not.
#[test]
fn a_search_goes_on_from_what_is_known() {
    let device = DeviceProfile::find("generic", Path::new("")).unwrap();
    let timing = Timing::alone(device.processor("cpu").unwrap(), 1);
    let network = network("mobilenet_v1_0.25");
    let task = task(&network);
    let search = |seed, known: &[&Choice], limit| {
        let watch = Watch { limit, ..Watch::unwatched() };
        front(&task, &timing, StorageModel::Tensors, seed, "cnn", known, &watch).unwrap().variants
    };
    let long = search(1, &[], Limit::Evaluations(1500));
    let choices: Vec<Choice> = long.iter().map(Variant::choice).collect();
    let known: Vec<&Choice> = choices.iter().collect();
    let short = Limit::Evaluations(150);
    let worse = |found: &[Variant]| {
        let reached = |old: &&Variant| {
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
