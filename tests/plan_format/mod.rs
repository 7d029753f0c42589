//! `docs/plan-format.md`: its examples are right, it names every field, and a replay that was written from it alone
//! agrees with the checker.

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

pub mod replay;

use std::collections::BTreeSet;

use csdfc_input::app::resolve::{Application, RowsChoice, Streamed};
use csdfc_input::app::spec::{Method, RowsSpec};
use csdfc_input::units::MemoryGoal;
use csdfc_network::pass::{Precision, in_precisions, integers, legalise};
use csdfc_network::stream::of_hops;
use csdfc_network::weights::Weights;
use csdfc_network::{Network, NetworkOutput};
use csdfc_plan::check;
use csdfc_plan::format::{Element, Quantization};
use csdfc_plan::operator::{Conv, Function, Operator};
use csdfc_plan::plan::{
    Buffer, FiringName, Layer, LayerInput, Plan, Step, StorageModel, StreamedWeights, Tensor,
};
use csdfc_plan::shape::Shape;
use csdfc_runtime::bind::Primitive;
use csdfc_tests::generate::{self, application};
use csdfc_tests::quantized::{narrow, quantized};
use csdfc_tests::tiled;
use csdfc_tests::together::pushed;
use csdfc_tests::{app, outcome, root};
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use serde_json::Value;

use crate::corruptions::{states, streams};
use crate::run::{state, stream};

fn page() -> String {
    std::fs::read_to_string(root().join("docs/plan-format.md")).unwrap()
}

/// The blocks of the page that are examples of this kind.
fn examples(kind: &str) -> Vec<String> {
    let page = page();
    let blocks = page.split("\n```").skip(1).step_by(2);
    let of_kind = |block: &str| {
        let (language, body) = block.split_once('\n')?;
        language.ends_with(kind).then(|| body.to_owned())
    };
    blocks.filter_map(of_kind).collect()
}

fn each<T: serde::de::DeserializeOwned>(kind: &str) -> Vec<T> {
    let examples = examples(kind);
    assert!(!examples.is_empty(), "no example of a {kind}");
    examples.iter().map(|example| serde_json::from_str(example).unwrap()).collect()
}

#[test]
fn examples_are_parts_of_plans() {
    each::<Layer>(" layer");
    each::<Shape>(" shape");
    each::<LayerInput>(" operand");
    for StreamedWeights { tiles, blocks, .. } in each::<StreamedWeights>(" streamed") {
        assert!(blocks.iter().all(|block| csdfc_tests::rates(&tiles).contains(&block.bytes)));
    }
    for buffer in each::<Buffer>(" buffer") {
        assert_eq!(Some(buffer.bytes), buffer.holds.iter().map(|edge| edge.bytes).max());
    }
    for Tensor { shape, ring, row_bytes, .. } in each::<Tensor>(" tensor") {
        assert_eq!(row_bytes, 4 * shape.row_elements() as u64);
        assert!(ring.is_some_and(|ring| ring.bytes == ring.ring_rows * row_bytes));
    }
    let notations: Vec<String> = examples(" notation").iter().map(|line| line.trim().to_owned()).collect();
    let schedules = each::<Vec<Step>>(" schedule");
    let written = schedules.iter().map(|steps| serde_json::to_value(steps).unwrap());
    let written: Vec<String> =
        written.map(|steps| replay::notation(steps.as_array().unwrap()).unwrap()).collect();
    assert_eq!(notations, written);
}

/// Examples such as `3,29*1 = 3 and 29 times 1` are right.
#[test]
fn rates_are_what_the_page_says() {
    let examples = examples(" rates");
    let lines: Vec<&str> = examples.iter().flat_map(|example| example.lines()).collect();
    assert!(lines.len() > 3);
    for line in lines {
        let (text, meaning) = line.split_once(" = ").unwrap();
        let mut expected = Vec::new();
        for item in meaning.split(" and ") {
            match item.split_once(" times ") {
                Some((times, rate)) => {
                    let rate: u64 = rate.parse().unwrap();
                    expected.extend(vec![rate; times.parse().unwrap()]);
                }
                None => expected.extend(item.split(' ').map(|rate| rate.parse::<u64>().unwrap())),
            }
        }
        assert_eq!(replay::rates(text).unwrap(), expected, "{text}");
        assert_eq!(csdfc_tests::rates(text), expected, "{text}");
    }
}

/// The page's plan is the one that the command makes. If the plan has changed for a good reason, this test prints the
/// new text.
#[test]
fn the_whole_plan_is_that_of_the_command() {
    let [stated] = each::<Value>(" plan").try_into().unwrap();
    let mut opened = app("pair_5x5.ron");
    opened.spec.storage = Some(StorageModel::Tensors);
    let plan = outcome(&opened.resolve().unwrap()).plan;
    let made: Value = serde_json::from_str(&plan.to_json()).unwrap();
    assert_eq!(stated, made, "the page's plan is old; this is the new one:\n{}", plan.to_json());
    let parsed = Plan::parse(&stated.to_string()).unwrap();
    assert!(check(&parsed).is_ok() && replay::replay(&stated).is_ok());
}

/// Plans of version 1, as csdfc wrote them, are the plans of today.
#[test]
fn plans_of_version_1_are_read() {
    let mut pair = app("pair_5x5.ron");
    pair.spec.storage = Some(StorageModel::Tensors);
    let lenet = r#"(
        cnns: [(name: "lenet", model: "builtin:lenet5", partitions: [(name: "a", upto: "S2"), (name: "b")])],
        parallel: [["a", "b"]], rows: all, storage: edges,
    )"#;
    for (name, application) in
        [("pair_5x5", pair.resolve().unwrap()), ("lenet5", csdfc_tests::application(lenet))]
    {
        let path = root().join(format!("tests/plan_format/version_1/{name}.json"));
        let text = std::fs::read_to_string(path).unwrap();
        let value: Value = serde_json::from_str(&text).unwrap();
        let mut today =
            Plan { application: value["application"].as_str().unwrap().into(), ..outcome(&application).plan };
        // Then, only plans for a device that was measured stated times.
        today.cnns.iter_mut().flat_map(|cnn| &mut cnn.layers).for_each(|layer| layer.time = None);
        let plan = Plan::parse(&text).unwrap();
        assert_eq!(plan, today, "{name}");
        assert!(check(&plan).is_ok());
        // Elements of a size that no version had.
        let error = Plan::parse(&text.replace("\"element_bytes\": 4", "\"element_bytes\": 3")).unwrap_err();
        assert!(error.to_string().starts_with("JSON, at `tensors[0]`: "), "{error}");
    }
}

/// Fields of a plan whose keys are names of the user's.
const MAPS: [&str; 3] = ["fps", "choices", "cores"];

fn fields(value: &Value, all: &mut BTreeSet<String>) {
    match value {
        Value::Object(object) => {
            for (field, value) in object {
                all.insert(field.clone());
                if !MAPS.contains(&field.as_str()) {
                    fields(value, all);
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| fields(item, all)),
        _ => {}
    }
}

/// Bytes that describe an application.
fn bytes(seed: u64) -> Vec<u8> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    (0..200).map(|_| random.random()).collect()
}

fn value(plan: &Plan) -> Value {
    serde_json::from_str(&plan.to_json()).unwrap()
}

/// Plans of the repository's applications, some with constraints of their own.
fn plans_of_applications() -> Vec<(String, Plan)> {
    let mut plans = Vec::new();
    for name in ["adaptive_classifier", "pair_5x5", "mobilenet_v2", "pipeline"] {
        for storage in [StorageModel::Edges, StorageModel::Tensors] {
            let mut opened = app(&format!("{name}.ron"));
            opened.spec.storage = Some(storage);
            if opened.spec.rows == RowsSpec::Default {
                opened.spec.search.method = Some(Method::Simple);
                opened.spec.constraints.memory = Some(MemoryGoal::Min);
            }
            plans.push((format!("{name}, {storage}"), outcome(&opened.resolve().unwrap()).plan));
        }
    }
    plans
}

/// The names of all variants, which serde lists if a name is unknown.
fn variants<T: serde::de::DeserializeOwned>(unknown: &str) -> Vec<String> {
    let error = serde_json::from_str::<T>(unknown).err().unwrap().to_string();
    let (_, listed) = error.split_once("expected one of").unwrap();
    listed.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

#[test]
fn every_operator_and_function_is_named() {
    let mut all = variants::<Function>(r#"{"function": "?"}"#);
    all.extend(variants::<Operator>(r#"{"op": "?", "attributes": {}}"#));
    assert!(all.len() > 50, "{all:?}");
    let page = page();
    let is_named =
        |name: &String| page.contains(&format!("`{name}`")) || page.contains(&format!("\"{name}\""));
    let unnamed: Vec<&String> = all.iter().filter(|name| !is_named(name)).collect();
    assert!(unnamed.is_empty(), "docs/plan-format.md does not name {unnamed:?}");
}

#[test]
fn every_field_is_named() {
    let mut all = BTreeSet::new();
    for (_, plan) in plans_of_applications() {
        fields(&value(&plan), &mut all);
    }
    for seed in 0..200 {
        let storage = [StorageModel::Tensors, StorageModel::Edges][seed as usize % 2];
        fields(&value(&outcome(&application(&bytes(seed), storage)).plan), &mut all);
    }
    assert!(all.len() > 100, "{all:?}");
    let stream = r#"(cnns: [(model: "builtin:resnet8", stream: (hop: 4, window: 32))])"#;
    fields(&value(&csdfc_tests::plan(&csdfc_tests::application(stream))), &mut all);
    let page = page();
    let unnamed: Vec<&String> = all
        .iter()
        .filter(|field| !page.contains(&format!("`{field}`")) && !page.contains(&format!("\"{field}\":")))
        .collect();
    assert!(unnamed.is_empty(), "docs/plan-format.md does not name {unnamed:?}");
}

/// The verdicts of the replay and of the checker on a plan.
fn verdicts(plan: &Plan) -> (Result<replay::Replayed, String>, Result<(), String>) {
    let refused = |violations: Vec<csdfc_plan::check::Violation>| violations[0].to_string();
    (replay::replay(&value(plan)), check(plan).map(|_| ()).map_err(refused))
}

/// Whether the replay and the checker accept a plan.
///
/// # Panics
/// If only one of them does.
pub fn are_agreed(name: &str, plan: &Plan) -> bool {
    let (replayed, checked) = verdicts(plan);
    assert_eq!(
        replayed.is_ok(),
        checked.is_ok(),
        "{name}: {replayed:?}, the checker {checked:?}\n{}",
        plan.to_ron()
    );
    checked.is_ok()
}

#[test]
fn applications_are_accepted() {
    let dealt = (0..100).map(|seed| {
        let storage = [StorageModel::Tensors, StorageModel::Edges][seed as usize % 2];
        (format!("dealt, {seed}"), outcome(&generate::dealt(&bytes(seed), storage)).plan)
    });
    for (name, plan) in plans_of_applications().into_iter().chain(dealt) {
        let (replayed, checked) = verdicts(&plan);
        assert_eq!(checked, Ok(()), "{name}");
        let replayed = replayed.unwrap_or_else(|why| panic!("{name}: {why}"));
        assert!(replayed.firings > 0 && replayed.rows_read > 0, "{name}");
    }
}

/// A convolution 1×1 and some of larger windows, by each primitive that computes them.
#[test]
fn every_primitive_is_as_the_page_says() {
    let page = page();
    let larger = [[3, 2], [3, 3], [5, 5]].map(|kernel| (kernel, [1, 0, 2, 1]));
    for (kernel, pads) in [([1, 1], [0; 4])].into_iter().chain(larger) {
        let (filters, stride, dilation, groups) = (4, [1, 1], [1, 1], 1);
        let (bias, pre, residual, activation) = (true, None, false, None);
        let conv = Operator::Conv(Conv {
            filters,
            kernel,
            stride,
            dilation,
            pads,
            groups,
            bias,
            pre,
            residual,
            activation,
        });
        let image = Shape::image(5, 30, 8);
        for primitive in Primitive::all().filter(|primitive| primitive.computes(&conv, &[&image])) {
            let name = primitive.name();
            let family = name.rsplitn(3, '-').nth(2).unwrap();
            assert!([name, family].iter().any(|name| page.contains(&format!("`{name}`"))), "{name}");
            let mut network = Network::default();
            let x = generate::input(&mut network, image.clone());
            let mut conv = conv.clone();
            if let (Operator::Conv(conv), true) = (&mut conv, primitive.has_offset()) {
                // `quantized` makes weights of an odd number of filters unsigned.
                conv.filters = 5;
            }
            let operand = generate::push(&mut network, conv, vec![x]).unwrap();
            if primitive.has_offset() {
                let weights = &mut network.layers[operand.layer.0].parameters[0];
                let positive: Vec<f32> = weights.values().unwrap().iter().map(|x| x.abs()).collect();
                *weights = Weights::new(weights.dims.clone(), positive);
            }
            if primitive.elements()[0] != Element::U8 {
                network.layers[operand.layer.0].primitive = Some(primitive);
            }
            network.outputs.push(NetworkOutput::new("out", operand));
            let network = match primitive.elements() {
                [Element::U8, _] => {
                    let to = Some(Quantization { scale: 0.03, zero_point: 100 });
                    integers(quantized(&network, &vec![to; network.layers.len()]))
                }
                _ => legalise(network),
            };
            assert!(network.layers.iter().any(|layer| layer.primitive() == primitive), "{name}");
            let application = generate::of_one(network, StorageModel::Tensors, RowsChoice::All);
            let (replayed, checked) = verdicts(&outcome(&application).plan);
            assert_eq!((replayed.map(|_| ()), checked), (Ok(()), Ok(())), "{name}");
        }
    }
}

/// Changes a plan in one place that says where or when something is; sums are made to fit again.
fn broken(plan: &Plan, random: &mut ChaCha8Rng) -> Plan {
    let mut plan = plan.clone();
    let step = |value: u64, unit: u64, random: &mut ChaCha8Rng| {
        let by = unit * random.random_range(1..4);
        if random.random() { value.saturating_add(by) } else { value.saturating_sub(by) }
    };
    let streamed =
        plan.cnns.iter_mut().flat_map(|cnn| &mut cnn.layers).filter(|layer| layer.streamed.is_some());
    let mut streamed: Vec<&mut Layer> = streamed.collect();
    if !streamed.is_empty() && random.random() {
        let layer = random.random_range(0..streamed.len());
        let firings = streamed[layer].firings;
        let names: Vec<String> = streamed.iter().map(|layer| layer.name.clone()).collect();
        if let Some(weights) = &mut streamed[layer].streamed {
            let block = random.random_range(0..weights.blocks.len());
            let block = &mut weights.blocks[block];
            match random.random_range(0..3) {
                0 => block.offset = step(block.offset, 4, random),
                1 => {
                    let layer = names[random.random_range(0..names.len())].clone();
                    block.after = Some(FiringName { layer, firing: random.random_range(0..firings) });
                }
                _ => block.after = None,
            }
        }
        csdfc_tests::together::settle(&mut plan);
        return plan;
    }
    match random.random_range(0..4) {
        0 if !plan.tensors.is_empty() => {
            let place = random.random_range(0..plan.tensors.len());
            let tensor = &mut plan.tensors[place];
            let unit = [tensor.format.element.bytes(), tensor.row_bytes][random.random_range(0..2)];
            if let Some(ring) = &mut tensor.ring {
                ring.offset = step(ring.offset, unit, random);
            }
        }
        1 if !plan.tensors.is_empty() => {
            let place = random.random_range(0..plan.tensors.len());
            let tensor = &mut plan.tensors[place];
            if let Some(ring) = &mut tensor.ring {
                ring.ring_rows = step(ring.ring_rows, 1, random).max(1);
                ring.bytes = ring.ring_rows * tensor.row_bytes;
            }
        }
        2 if !plan.buffers.is_empty() => {
            let place = random.random_range(0..plan.buffers.len());
            let buffer = &mut plan.buffers[place];
            buffer.offset = step(buffer.offset, 4, random);
        }
        _ => {
            let place = random.random_range(0..plan.partitions.len());
            let partition = &mut plan.partitions[place];
            if partition.schedule.len() > 1 {
                let at = random.random_range(1..partition.schedule.len());
                partition.schedule.swap(at - 1, at);
                let steps = serde_json::to_value(&partition.schedule).unwrap();
                partition.notation = replay::notation(steps.as_array().unwrap()).unwrap();
            }
        }
    }
    csdfc_tests::together::settle(&mut plan);
    plan
}

/// Changes what the integers of a tensor stand for.
fn requantized(plan: &Plan, random: &mut ChaCha8Rng) -> Plan {
    let mut plan = plan.clone();
    let place = random.random_range(0..plan.tensors.len());
    let tensor = &mut plan.tensors[place];
    tensor.quantization = match (tensor.quantization, random.random_range(0..3)) {
        (Some(_), 0) => None,
        (Some(own), 1) => Some(Quantization { scale: -own.scale, ..own }),
        (own, _) => Some(Quantization { scale: 0.25, zero_point: own.map_or(1, |own| own.zero_point ^ 1) }),
    };
    plan
}

/// The plan with other bytes stored of a layer's parameters, or of all, than its primitives keep.
fn with_other_bytes(plan: &Plan, random: &mut ChaCha8Rng) -> Plan {
    let mut plan = plan.clone();
    let layers = plan.cnns[0].layers.len();
    let change = [1, 2, 64, 128][random.random_range(0..4)];
    match random.random_range(0..2) {
        0 => plan.cnns[0].layers[random.random_range(0..layers)].parameters += change,
        _ => plan.memory.parameters_stored += change,
    }
    assert!(check(&plan).is_err(), "{change} bytes more");
    plan
}

fn is_tiled(layer: &Layer) -> bool {
    layer.streamed.as_ref().is_some_and(|streamed| streamed.filters.is_some())
}

/// The plan with a tile of other bytes, or tiles of other channels, or of another layer.
fn tiled_otherwise(plan: &Plan, random: &mut ChaCha8Rng) -> Option<Plan> {
    let mut plan = plan.clone();
    let layers = &mut plan.cnns[0].layers;
    let count = layers.len();
    let layer = &mut layers[random.random_range(0..count)];
    let streamed = layer.streamed.as_mut()?;
    match random.random_range(0..4) {
        0 => streamed.filters = Some(16 * random.random_range(1..8)),
        1 => streamed.filters = Some(random.random_range(0..80)),
        2 => streamed.filters = None,
        _ => {
            let mut tiles = csdfc_tests::rates(&streamed.tiles);
            let last = tiles.len() - 1;
            tiles[last] += 64 * random.random_range(0..2);
            streamed.tiles = tiles.iter().map(u64::to_string).collect::<Vec<_>>().join(",");
        }
    }
    Some(plan)
}

/// Plans of random networks, packed otherwise and broken: the replay accepts what the checker does, and nothing else.
#[test]
fn the_replay_and_the_checker_agree() {
    let (mut accepted, mut refused, mut of_integers, mut of_mixed) = (0, 0, 0, 0);
    let (mut of_scaled, mut tiled, mut again) = (0, 0, 0);
    for seed in 0..250 {
        for storage in [StorageModel::Tensors, StorageModel::Edges] {
            let mut random = ChaCha8Rng::seed_from_u64(seed);
            let drawn = application(&bytes(seed), storage);
            let plan = outcome(&drawn).plan;
            let mut plans = vec![plan.clone()];
            let network = &drawn.cnns[0].network;
            if drawn.cnns.len() == 1 && drawn.cnns[0].partitions.len() == 1 && seed % 2 == 0 {
                let to = Quantization { scale: 0.03, zero_point: 100 };
                let to = |layer: &csdfc_network::Layer| Some(to).filter(|_| !layer.operator.makes_indices());
                let to: Vec<_> = network.layers.iter().map(to).collect();
                let network = integers(quantized(network, &to));
                let application = generate::of_one(network, storage, RowsChoice::All);
                let plan = outcome(&application).plan;
                of_integers += 1;
                plans.extend((0..3).map(|_| requantized(&plan, &mut random)));
                plans.push(plan);
            }
            if drawn.cnns.len() == 1 && drawn.cnns[0].partitions.len() == 1 && seed % 2 == 1 {
                let mixed = in_precisions(network.clone(), &vec![Precision::Mixed; network.layers.len()]);
                for network in [mixed, narrow(network, seed % 4 == 3)] {
                    let primitives = || network.layers.iter().map(|layer| layer.primitive());
                    of_mixed += primitives().filter(|primitive| primitive.is_mixed()).count();
                    of_scaled += primitives().filter(|primitive| primitive.scaled_weight().is_some()).count();
                    let application = generate::of_one(network, storage, RowsChoice::All);
                    let plan = outcome(&application).plan;
                    plans.extend((0..3).map(|_| broken(&plan, &mut random)));
                    plans.push(with_other_bytes(&plan, &mut random));
                    plans.push(plan);
                }
            }
            if storage == StorageModel::Tensors && seed % 10 == 0 {
                let network = tiled::network(&mut random);
                let network = if seed % 20 == 0 { tiled::of_integers(&network) } else { network };
                let application = generate::of_one(network, storage, RowsChoice::None);
                let plan = outcome(&Application { streamed: Some(Streamed::default()), ..application }).plan;
                let layers = plan.cnns[0].layers.iter();
                tiled += layers.filter(|layer| is_tiled(layer)).count();
                plans.extend((0..3).map(|_| broken(&plan, &mut random)));
                plans.extend((0..5).filter_map(|_| tiled_otherwise(&plan, &mut random)));
                plans.push(plan);
                let network = tiled::convolutions(&mut random);
                let network = if seed % 20 == 0 { tiled::of_integers(&network) } else { network };
                let application = generate::of_one(network, storage, RowsChoice::All);
                let plan = outcome(&tiled::read_again(&application)).plan;
                again += plan.cnns[0].layers.iter().filter(|layer| layer.times_read() > 1).count();
                plans.extend((0..6).map(|_| broken(&plan, &mut random)));
                plans.extend((0..5).filter_map(|_| tiled_otherwise(&plan, &mut random)));
                plans.push(plan);
            }
            if storage == StorageModel::Tensors {
                let streamed = outcome(&Application { streamed: Some(Streamed::default()), ..drawn }).plan;
                plans.extend((0..2).map(|_| broken(&streamed, &mut random)));
                plans.push(streamed);
            }
            if storage == StorageModel::Tensors {
                plans.push(pushed(&plan, &mut |below| random.random_range(0..below.max(1))));
            }
            let last = plans.last().unwrap().clone();
            plans.extend((0..6).map(|_| broken(&last, &mut random)));
            for plan in plans {
                match are_agreed(&format!("seed {seed}, {storage}"), &plan) {
                    true => accepted += 1,
                    false => refused += 1,
                }
            }
        }
    }
    println!(
        "{accepted} plans accepted, {refused} refused; {of_scaled} of scaled weights, {of_mixed} of mixed"
    );
    assert!(accepted > 500 && refused > 500, "{accepted}, {refused}");
    assert!(of_integers > 50 && of_mixed > 50 && tiled > 50, "{of_integers}, {of_mixed}, {tiled}");
    assert!(of_scaled > 50 && again > 20, "{of_scaled}, {again}");
}

/// The same of streams, of which rows stay from hop to hop.
#[test]
fn the_replay_and_the_checker_agree_on_streams() {
    let (mut accepted, mut refused, mut kept) = (0, 0, 0);
    let mut compare = |name: &str, plan: &Plan| match are_agreed(name, plan) {
        true => accepted += 1,
        false => refused += 1,
    };
    for number in 0..150 {
        let mut random = csdfc_tests::random(number);
        let network = stream::network(&mut random);
        let Ok(smallest) = of_hops(network.clone(), None, Some(32)) else { continue };
        for times in [1, 2, 5] {
            let Ok(hop) = of_hops(network.clone(), Some(times * smallest.layers[0].rows()), Some(32)) else {
                continue;
            };
            let searched = (number % 8 == times as u64).then_some(RowsChoice::Default);
            for rows in [RowsChoice::None, RowsChoice::All].into_iter().chain(searched) {
                let name = format!("network {number}, {times} times, {rows:?}");
                let plan = outcome(&generate::of_one(hop.clone(), StorageModel::Tensors, rows)).plan;
                kept += usize::from(plan.tensors.iter().any(|tensor| tensor.history() > 0));
                compare(&name, &plan);
                (0..3).for_each(|_| compare(&name, &broken(&plan, &mut random)));
                let pushed = pushed(&plan, &mut |below| random.random_range(0..below.max(1)));
                compare(&name, &pushed);
                (0..3).for_each(|_| compare(&name, &broken(&pushed, &mut random)));
            }
        }
    }
    // And of streams that take turns with other CNNs.
    for number in 0..60 {
        let mut random = csdfc_tests::random(number);
        let rows = if number % 2 == 0 { RowsChoice::None } else { RowsChoice::All };
        let Some(application) = stream::in_turn(&mut random, rows) else { continue };
        let plan = outcome(&application).plan;
        let pushed = pushed(&plan, &mut |below| random.random_range(0..below.max(1)));
        for (kind, plan) in [("planned", plan), ("pushed", pushed)] {
            let name = format!("CNNs in turn {number}, {kind}");
            compare(&name, &plan);
            (0..6).for_each(|_| compare(&name, &broken(&plan, &mut random)));
        }
    }
    for (name, plan) in streams::subjects() {
        compare(&name, &plan);
        for (kind, edit) in streams::CORRUPTIONS {
            for seed in 0..10 {
                let mut edited = plan.clone();
                if edit(&mut edited, &mut csdfc_tests::random(seed)).is_some() {
                    compare(&format!("{name}, {kind}, {seed}"), &edited);
                }
            }
        }
    }
    println!("{accepted} streams accepted, {refused} refused, {kept} of them keep rows");
    assert!(accepted > 300 && refused > 300 && kept > 100, "{accepted}, {refused}, {kept}");
}

/// The same of states.
#[test]
fn the_replay_and_the_checker_agree_on_states() {
    let (mut accepted, mut refused) = (0, 0);
    let mut compare = |name: &str, plan: &Plan| match are_agreed(name, plan) {
        true => accepted += 1,
        false => refused += 1,
    };
    for number in 0..100 {
        let mut random = csdfc_tests::random(number);
        let (network, pairs) = state::network(&mut random);
        for rows in [RowsChoice::None, RowsChoice::All, RowsChoice::Default] {
            let name = format!("network {number}, {rows:?}");
            let (_, plan) = state::kept(&network, &pairs, rows);
            compare(&name, &plan);
            (0..3).for_each(|_| compare(&name, &broken(&plan, &mut random)));
            let pushed = pushed(&plan, &mut |below| random.random_range(0..below.max(1)));
            compare(&name, &pushed);
            (0..3).for_each(|_| compare(&name, &broken(&pushed, &mut random)));
        }
    }
    for (name, plan) in states::subjects() {
        for (kind, edit) in states::CORRUPTIONS {
            for seed in 0..10 {
                let mut edited = plan.clone();
                if edit(&mut edited, &mut csdfc_tests::random(seed)).is_some() {
                    compare(&format!("{name}, {kind}, {seed}"), &edited);
                }
            }
        }
    }
    println!("{accepted} plans with states accepted, {refused} refused");
    assert!(accepted > 300 && refused > 300, "{accepted}, {refused}");
}

/// CNN `b` runs at the same time as the middle one of three partitions. Then `b` must not use the memory of what the
/// first makes for the last.
#[test]
fn what_lives_over_a_partition_is_not_for_those_beside_it() {
    let text = r#"(
        cnns: [
            (name: "a", model: "builtin:resnet50", partitions: [
                (name: "a0", upto: "layer1.1.conv1"), (name: "a1", upto: "layer1.1.conv2"), (name: "a2"),
            ]),
            (name: "b", model: "builtin:paper_pair"),
        ],
        parallel: [["a0"], ["a1", "b"], ["a2"]],
        rows: {"b/l1": 1, "b/l2": 1},
    )"#;
    let mut plan = csdfc_tests::plan(&csdfc_tests::application(text));
    let place = |plan: &Plan, cnn: &str, name: &str| {
        let is_it = |tensor: &Tensor| tensor.cnn == cnn && tensor.name == name;
        plan.tensors.iter().position(is_it).unwrap()
    };
    let (kept, beside) = (place(&plan, "a", "layer1.0.relu"), place(&plan, "b", "l1"));
    let address = plan.tensors[kept].ring.unwrap().offset;
    plan.tensors[beside].ring.as_mut().unwrap().offset = address;
    csdfc_tests::together::settle(&mut plan);
    let (replayed, checked) = verdicts(&plan);
    assert!(replayed.is_err_and(|why| why.contains("share bytes")));
    assert!(checked.is_err_and(|why| why.contains("a1") && why.contains("at the same time")), "{plan:?}");
}
