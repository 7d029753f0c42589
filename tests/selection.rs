//! Tables of costs of networks. Selections from them can be executed. The profile here is made up.

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::collections::BTreeMap;
use std::path::Path;

use csdfc_input::app::resolve::Application;
use csdfc_input::device::DeviceProfile;
use csdfc_input::device::measured::{Measured, Sample, scenario};
use csdfc_network::pass;
use csdfc_network::{Layer, Operand};
use csdfc_plan::operator::Operator;
use csdfc_planner::selection::{CostTable, cost_table};
use csdfc_runtime::bind::Primitive;
use csdfc_select::instance::{LayerKind, PrimitiveOption};
use csdfc_select::{Answer, Instance, Method, Problem, Quantity, Query, answer};
use csdfc_tests::application;

const HWC: &str = "indirect-gemm-hwc-hwc";
const CHW: &str = "direct-sum2d-chw-chw";

/// l1 (input) → l2 (conv) → l3 (conv) → l4 (concat of l3 and l2) → l5 (relu).
fn case() -> Application {
    application(r#"(name: "a", cnns: [(name: "a", model: "builtin:paper_cnn1")], storage: edges)"#)
}

fn measured(layer: &Layer, times: &[(&str, f64)]) -> Measured {
    let sample = |&(name, ns): &(&str, f64)| {
        let by = Layer { primitive: Primitive::find(name), ..layer.clone() };
        (name.to_owned(), vec![Sample { rows: by.rows() as u64, ns, spread: 0.0 }])
    };
    Measured { scenario: scenario(layer), threads: 1, times: times.iter().map(sample).collect() }
}

/// A profile on which l2 is fastest in CHW, by `gain` ns, and l3 in HWC; each conversion of l2 takes 3000 ns. Nothing is
/// measured of the other layers.
fn device(application: &Application, gain: f64) -> DeviceProfile {
    let mut device = DeviceProfile::find("generic", Path::new("")).unwrap();
    let network = &application.cnns[0].network;
    let [l2, l3] = [1, 2].map(|at| &network.layers[at]);
    let convert = Layer {
        operator: Operator::Convert,
        inputs: vec![Operand { layer: network.ids().nth(1).unwrap(), shape: l2.shape.clone() }],
        ..l2.clone()
    };
    let steps = Primitive::all().filter(|primitive| primitive.computes(&Operator::Convert, &[]));
    let steps: Vec<(&str, f64)> = steps.map(|step| (step.name(), 3000.0)).collect();
    device.processors.get_mut("cpu").unwrap().measured = vec![
        measured(l2, &[(HWC, 50_000.0), (CHW, 50_000.0 - gain)]),
        measured(l3, &[(HWC, 40_000.0), (CHW, 45_000.0)]),
        measured(&convert, &steps),
    ];
    device
}

fn table(application: &Application, device: &DeviceProfile) -> CostTable {
    cost_table(application, &application.cnns[0], device).unwrap()
}

fn names(options: &[PrimitiveOption]) -> Vec<&str> {
    options.iter().map(|option| option.primitive.as_str()).collect()
}

/// The primitive of each layer.
type Choice = BTreeMap<String, String>;

/// A tensor, and the layouts through which it is converted.
type Chain = (String, Vec<String>);

/// The primitive of each layer, and the conversions on each edge that has some.
fn fastest(instance: &Instance) -> (Choice, Vec<Chain>) {
    let problem = Problem::new(instance, false).unwrap();
    let query =
        Query { minimise: Quantity::Time, time: None, memory: None, workspace: None, method: Method::Exact };
    let answer = answer(&problem, &query).unwrap();
    let Answer::Met(chosen) = answer else { unreachable!("{answer:?}") };
    assert_eq!(chosen.bound, chosen.cost.time);
    let mut choice = BTreeMap::new();
    for (at, layer) in instance.layers.iter().enumerate() {
        let taken = problem.taken(&chosen.selection, at);
        choice.insert(layer.name.clone(), layer.options[taken.option].primitive.clone());
    }
    let mut chains = Vec::new();
    for (edge, paths) in instance.edges.iter().zip(&problem.paths) {
        let written = problem.taken(&chosen.selection, edge.from).output;
        let chain = paths.chain(written, problem.taken(&chosen.selection, edge.to).input);
        if chain.len() > 1 {
            let layouts = chain.into_iter().map(|layout| instance.layout(layout).to_owned());
            chains.push((instance.layers[edge.from].name.clone(), layouts.collect()));
        }
    }
    (choice, chains)
}

#[test]
fn a_network_on_a_profile_is_a_table() {
    let application = case();
    let CostTable { instance, modelled } = table(&application, &device(&application, 20_000.0));
    let of = |name: &str| instance.layers.iter().find(|layer| layer.name == name).unwrap();
    let layers: Vec<&str> = instance.layers.iter().map(|layer| layer.name.as_str()).collect();
    assert_eq!(layers, ["l1", "l2", "l3", "l4", "l5", "output l5"]);
    assert_eq!((of("l2").kind, of("l4").kind), (LayerKind::Conv, LayerKind::Pass));
    assert_eq!(names(&of("l2").options), [HWC, CHW]);
    assert_eq!(names(&of("l4").options), ["own-kernel-hwc-hwc"]);
    assert_eq!(
        names(&of("l5").options),
        ["own-kernel-hwc-hwc", "element-wise-hcw-hcw", "element-wise-chw-chw"]
    );
    assert_eq!((names(&of("l1").options), names(&of("output l5").options)), (vec!["input"], vec!["output"]));

    // Images of 3 and 8 channels of 32×32. The direct loops keep 8 filters of 5×5×3 and 8 biases. Beside the filters of
    // a panel there are 16 biases. Both are in lines of 16.
    let [hwc, chw] = [0, 1].map(|at| &of("l2").options[at]);
    assert_eq!((hwc.time, chw.time), (50.0, 30.0));
    assert_eq!(hwc.memory, 12.0 + 32.0 + 624.0 * 4.0 / 1024.0);
    assert_eq!(chw.memory, 12.0 + 32.0 + 608.0 * 4.0 / 1024.0);
    // The concat reads l2 and l3 and writes 16 channels.
    assert_eq!(of("l4").options[0].memory, 128.0);

    let edges: Vec<(usize, usize, usize)> =
        instance.edges.iter().map(|edge| (edge.from, edge.to, edge.conversions.len())).collect();
    assert_eq!(edges, [(0, 1, 4), (1, 2, 4), (2, 3, 4), (1, 3, 4), (3, 4, 4), (4, 5, 4)]);
    assert!(instance.edges[1].conversions.iter().all(|conversion| conversion.time == 3.0));
    // Read and written: twice 64 KiB.
    let device = DeviceProfile::find("generic", Path::new("")).unwrap();
    let rate = device.processor("cpu").unwrap().core.bytes_per_second;
    let modelled_us = 2.0 * 65536.0 / rate * 1e6;
    let times = instance.edges[5].conversions.iter().map(|conversion| conversion.time);
    assert!(times.into_iter().all(|time| (time / modelled_us - 1.0).abs() < 1e-12));
    assert_eq!(modelled.layers, ["l4", "l5"]);
    let edges = [["l1", "l2"], ["l4", "l5"], ["l5", "output l5"]].map(|ends| ends.map(str::to_owned));
    assert_eq!(modelled.edges, edges);

    // The written table is read as the same table.
    let json = instance.to_json().unwrap();
    let read = Instance::parse(&json).unwrap();
    assert_eq!(read.to_json().unwrap(), json);
    assert_eq!(fastest(&read), fastest(&instance));

    // Nothing is measured, so conversions are of no use.
    let CostTable { instance, modelled } = table(&application, &device);
    assert!(instance.layers[1..4].iter().all(|layer| layer.options.len() == 1));
    assert_eq!(modelled.layers, ["l2", "l3", "l4", "l5"]);
}

/// CHW gains 4 µs in l2. The image is then converted into it, and out of it for both readers, which takes longer.
#[test]
fn conversions_may_cost_more_than_a_primitive_gains() {
    let application = case();
    let (choice, chains) = fastest(&table(&application, &device(&application, 4000.0)).instance);
    assert_eq!((choice["l2"].as_str(), choice["l3"].as_str()), (HWC, HWC));
    assert!(chains.is_empty(), "{chains:?}");
}

#[test]
fn a_selection_can_be_executed() {
    let application = case();
    let (choice, chains) = fastest(&table(&application, &device(&application, 45_000.0)).instance);
    assert_eq!(choice["l2"], CHW);
    let mut network = application.cnns[0].network.clone();
    for layer in network.layers.iter_mut().filter(|layer| !layer.is_input()) {
        layer.primitive = Primitive::find(&choice[&layer.name]);
        assert!(layer.primitive.is_some(), "{}", layer.name);
    }
    let legal = pass::legalise(network);
    // Readers of a tensor share a conversion.
    let mut expected: Vec<(String, String, String)> = Vec::new();
    for (from, chain) in &chains {
        for step in chain.windows(2) {
            expected.push((from.clone(), step[0].clone(), step[1].clone()));
        }
    }
    expected.sort();
    expected.dedup();
    let mut found = Vec::new();
    for layer in legal.layers.iter().filter(|layer| layer.operator == Operator::Convert) {
        let mut from = legal.layer(layer.inputs[0].layer);
        while from.operator == Operator::Convert {
            from = legal.layer(from.inputs[0].layer);
        }
        let [reads, writes] = layer.primitive().layouts();
        found.push((from.name.clone(), reads.to_string(), writes.to_string()));
    }
    found.sort();
    assert!(!found.is_empty());
    assert_eq!(found, expected);
}
