//! Random small networks, cut and run in random ways. The checker accepts every plan. Its sizes are at least those that
//! every plan needs, and at most those that suffice for every plan.

use std::collections::{BTreeMap, BTreeSet};

use csdfc_input::app::spec::Method;
use csdfc_input::app::{Application, MemoryGoal, Prefer, RowsChoice};
use csdfc_network::{Layer, Network, Operand};
use csdfc_plan::check;
use csdfc_plan::operator::Operator;
use csdfc_plan::plan::{Plan, StorageModel};
use csdfc_planner::frame::choice::Choice;
use csdfc_planner::saved::front::SavedFront;
use csdfc_planner::search::start::Start;
use csdfc_tests::generate::application;
use csdfc_tests::{outcome, outcome_from, rates};
use proptest::prelude::*;
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};

/// The most rows that one firing needs at once, by rates such as `3,29*1`. A ring of fewer rows is never enough.
fn most_at_once(acquire: &str, release: &str) -> u64 {
    let (mut held, mut most) = (0, 0);
    for (acquired, released) in rates(acquire).into_iter().zip(rates(release)) {
        held += acquired;
        most = most.max(held);
        held -= released;
    }
    most
}

fn check_sizes(plan: &Plan) -> Result<(), TestCaseError> {
    let memory = &plan.memory;
    let is_piped = plan.parallel.iter().any(|element| element.len() > 1);
    prop_assert!(memory.bound <= memory.buffers);
    prop_assert!(is_piped || memory.buffers <= memory.naive, "{memory:?}");
    for tensor in &plan.tensors {
        let Some(ring) = tensor.ring else { continue };
        let Some(cnn) = plan.cnns.iter().find(|cnn| cnn.name == tensor.cnn) else { continue };
        // A stage may be as many frames ahead as there are stages after it, and full speed may ask for that.
        let stages = plan.partitions.iter().filter(|partition| partition.cnn == cnn.name).count();
        let frames = if is_piped { stages } else { 1 };
        prop_assert!(ring.ring_rows <= (frames * tensor.shape.rows()) as u64, "{}", tensor.name);
        let inputs = cnn.layers.iter().flat_map(|layer| &layer.inputs);
        for input in inputs.filter(|input| input.tensor == tensor.name) {
            prop_assert!(most_at_once(&input.acquire, &input.release) <= ring.ring_rows, "{}", tensor.name);
        }
        let made =
            cnn.layers.iter().find(|layer| layer.output == tensor.name).map(|layer| layer.rows_per_firing);
        prop_assert!(made.is_some_and(|made| made <= ring.ring_rows), "{}", tensor.name);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_plan_is_accepted(bytes in prop::collection::vec(any::<u8>(), 20..300)) {
        for storage in [StorageModel::Tensors, StorageModel::Edges] {
            let application = application(&bytes, storage);
            let plan = outcome(&application).plan;
            if let Err(violations) = check(&plan) {
                let list: Vec<String> = violations.iter().take(5).map(ToString::to_string).collect();
                prop_assert!(false, "{storage}: {}\n{}", list.join("\n"), plan.to_ron());
            }
            check_sizes(&plan)?;
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_old_plan_beats_one_that_starts_from_it(bytes in prop::collection::vec(any::<u8>(), 20..300)) {
        let given = application(&bytes, StorageModel::Tensors);
        let old = outcome(&given).plan;
        let mut free = Application { rows: RowsChoice::Default, ..given.clone() };
        let (known, mismatches) = SavedFront::new(&old).choices_for(&free);
        prop_assert_eq!((known.len(), mismatches.as_slice()), (old.pareto.len(), &[][..]));
        // All have the rows that were given. Only which layers make them one by one is left to choose: `known` lists no plan
        // twice, so that is what several differ in.
        for plan in &known {
            for (cnn, choice) in plan.iter().enumerate() {
                let given = Choice::given(&given, cnn).map(|given| (given.rows, given.barriers));
                prop_assert_eq!(choice.clone().map(|choice| (choice.rows, choice.barriers)), given);
            }
        }
        let start = Start::Search(known);
        // This method is quick, and leaves more room for an improvement.
        free.search.method = Some(Method::Simple);
        free.constraints.memory = Some(MemoryGoal::Bytes(old.memory.total));
        let new = outcome_from(&start, &free).plan;
        prop_assert!(new.constraints.met);
        let pairs = || old.cnns.iter().map(|cnn| cnn.fps).zip(new.cnns.iter().map(|cnn| cnn.fps));
        prop_assert!(
            pairs().any(|(old, new)| new > old) || pairs().all(|(old, new)| new == old),
            "{:?}", pairs().collect::<Vec<_>>()
        );
        free.prefer = Prefer::Memory;
        prop_assert!(outcome_from(&start, &free).plan.memory.total <= old.memory.total);
    }
}

/// Bytes that describe an application.
fn bytes(seed: u64) -> Vec<u8> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    (0..200).map(|_| random.random()).collect()
}

/// What a convolution has for operands, by name.
fn operands(network: &Network, layer: &Layer) -> Vec<&'static str> {
    let Operator::Conv(conv) = &layer.operator else { return Vec::new() };
    let parts = conv.parts(layer.inputs.len());
    let (image, added) = layer.inputs.split_at(parts);
    let is_pool = |x: &Operand| matches!(network.layer(x.layer).operator, Operator::Pool(_));
    let is_twice = (1..parts).any(|at| image[..at].contains(&image[at]));
    let (in_parts, adds) = (parts > 1, conv.residual);
    let all = [
        ("parts", in_parts),
        ("parts, three or more", parts > 2),
        ("parts, one of them twice", is_twice),
        ("parts, each of a pool", in_parts && image.iter().all(is_pool)),
        ("parts in windows", in_parts && conv.kernel[0] > 1),
        ("parts in strides", in_parts && conv.stride[0] > 1),
        ("parts after a norm", in_parts && conv.pre.is_some()),
        ("residual", adds),
        ("residual, rectified", adds && conv.activation.is_some()),
        ("residual in strides", adds && conv.stride[0] > 1),
        ("residual that is the image", adds && !in_parts && image == added),
        ("residual that is a part", adds && in_parts && image.contains(&added[0])),
        ("residual and parts", adds && in_parts),
    ];
    all.into_iter().filter_map(|(name, has)| has.then_some(name)).collect()
}

/// After the passes, many of the networks have convolutions of several operands, of all kinds.
#[test]
fn many_convolutions_have_several_operands() {
    const SEEDS: u64 = 1000;
    let mut seeds = BTreeMap::new();
    for seed in 0..SEEDS {
        let application = application(&bytes(seed), StorageModel::Tensors);
        let networks = application.cnns.iter().map(|cnn| &cnn.network);
        let of_network = |network: &Network| {
            network.layers.iter().flat_map(|layer| operands(network, layer)).collect::<Vec<_>>()
        };
        let all: BTreeSet<&str> = networks.flat_map(of_network).collect();
        all.into_iter().for_each(|name| *seeds.entry(name).or_insert(0) += 1);
    }
    println!("of {SEEDS}: {seeds:?}");
    assert_eq!(seeds.len(), 13, "{seeds:?}");
    for (name, count) in seeds {
        let least = if matches!(name, "parts" | "residual") { SEEDS / 4 } else { SEEDS / 100 };
        assert!(count >= least, "{name}: {count} of {SEEDS}");
    }
}

/// The networks are not all alike: every operator that can be drawn is, and layers by parts, and partitions.
#[test]
fn the_networks_are_varied() {
    let mut kinds = BTreeMap::new();
    let (mut partitions, mut by_parts, mut norms_before) = (0, 0, 0);
    for seed in 0..300 {
        let plan = outcome(&application(&bytes(seed), StorageModel::Tensors)).plan;
        partitions += plan.partitions.len();
        for layer in plan.cnns.iter().flat_map(|cnn| &cnn.layers) {
            *kinds.entry(layer.operator.kind()).or_insert(0) += 1;
            by_parts += usize::from(layer.firings > 1);
            if let Operator::Conv(conv) = &layer.operator {
                norms_before += usize::from(conv.pre.is_some());
            }
        }
    }
    println!("{kinds:?}, {partitions} partitions, {by_parts} layers by parts, {norms_before} norms before");
    assert!(kinds.len() == 19 && norms_before > 20, "{kinds:?}, {norms_before}");
    assert!(partitions > 600 && by_parts > 300, "{partitions}, {by_parts}");
}
