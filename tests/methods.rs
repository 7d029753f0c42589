//! The main paper's methods: Algorithm 2 finds the front that exhaustion finds, and every method's plans are accepted.

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use csdfc_input::app::resolve::{Application, RowsChoice};
use csdfc_input::app::spec::{Method, RowsSpec};
use csdfc_input::device::{Core, DeviceProfile, Processor};
use csdfc_input::units::MemoryGoal;
use csdfc_network::LayerId;
use csdfc_plan::operator::Operator;
use csdfc_plan::plan::{Plan, StorageModel};
use csdfc_planner::driver;
use csdfc_planner::search::budget::Budget;
use csdfc_planner::search::start::Start;
use csdfc_planner::search::watch::Watch;
use csdfc_runtime::run::{Data, Runner, Value, input_dims};
use csdfc_tests::{app, generate};

/// Genomes that the extended search evaluates for each of hundreds of CNNs.
const SHORT: u64 = 60;

/// Maximum number of layers with a choice of the applications that are searched by exhaustion.
const MAX_GENES: usize = 8;

/// A device on which all firings take equally long, whatever they do.
fn constant_cost() -> DeviceProfile {
    let core = Core {
        macs_per_second: 1e300,
        depthwise_efficiency: 1.0,
        elements_per_second: 1e300,
        bytes_per_second: 1e300,
        firing_ns: 1000.0,
        half_speed: 1.0,
    };
    let processor = Processor {
        cores: 4,
        core,
        workers: None,
        memory_bytes_per_second: None,
        cache_bytes: 0,
        measured: Vec::new(),
    };
    let processors = ["cpu", "gpu"].map(|name| (name.to_owned(), processor.clone()));
    DeviceProfile::new("constant", "analytic", processors.into())
}

fn generic() -> DeviceProfile {
    DeviceProfile::find("generic", Path::new("")).unwrap()
}

/// A plan that the checker accepts.
fn plan(application: &Application, device: &DeviceProfile) -> Plan {
    watched(application, device, &Watch::unwatched())
}

/// A plan that the checker accepts, by a search that is watched.
fn watched(application: &Application, device: &DeviceProfile, watch: &Watch<'_>) -> Plan {
    let paths = application.cnns.iter().map(|cnn| cnn.model.name.clone()).collect();
    let plan =
        driver::plan_from(&Start::default(), application, device, paths, watch, &|_| Ok(())).unwrap().plan;
    if let Err(violations) = csdfc_plan::check(&plan) {
        let list: Vec<String> = violations.iter().take(5).map(ToString::to_string).collect();
        assert!(list.is_empty(), "{}", list.join("\n"));
    }
    plan
}

/// Total memory and the frame rates of a plan, these as their bits.
type Worth = (u64, Vec<u64>);

fn dominates(a: &Worth, b: &Worth) -> bool {
    let rate = |bits: &u64| f64::from_bits(*bits);
    let no_slower = a.1.iter().zip(&b.1).all(|(a, b)| rate(a) >= rate(b));
    a != b && a.0 <= b.0 && no_slower
}

/// The layers for which it makes a difference whether they go by parts.
fn genes(application: &Application) -> Vec<(usize, LayerId)> {
    let of = |(c, cnn): (usize, &csdfc_input::app::resolve::Cnn)| {
        let network = &cnn.network;
        let tall = network.ids().filter(|id| network.layer(*id).rows() > 1);
        tall.map(|id| (c, id)).collect::<Vec<_>>()
    };
    application.cnns.iter().enumerate().flat_map(of).collect()
}

/// The Pareto front over all chromosomes, each planned on its own.
fn exhaustive(application: &Application, device: &DeviceProfile) -> BTreeSet<Worth> {
    let genes = genes(application);
    let mut all = BTreeSet::new();
    for chromosome in 0..1u32 << genes.len() {
        let by_parts = genes.iter().enumerate().filter(|(bit, _)| chromosome >> bit & 1 == 1);
        let rows: BTreeMap<(usize, LayerId), u64> = by_parts.map(|(_, gene)| (*gene, 1)).collect();
        let given = Application { rows: RowsChoice::Layers(rows), ..application.clone() };
        let plan = plan(&given, device);
        all.insert((plan.memory.total, plan.cnns.iter().map(|cnn| cnn.fps.to_bits()).collect()));
    }
    all.iter().filter(|worth| !all.iter().any(|other| dominates(other, worth))).cloned().collect()
}

/// An application for Algorithm 2 that asks for the least memory, so that the search is not left early.
fn for_the_paper(application: Application) -> Application {
    let mut application = Application { rows: RowsChoice::Default, ..application };
    application.search.method = Some(Method::Paper);
    application.constraints.memory = Some(MemoryGoal::Min);
    application
}

/// The front that the search finds; the plan is its smallest point.
fn searched(application: &Application, device: &DeviceProfile) -> BTreeSet<Worth> {
    let plan = plan(application, device);
    assert_eq!((plan.search.method.as_str(), plan.storage_model), ("paper", StorageModel::Edges));
    assert_eq!(Some(plan.memory.total), plan.pareto.iter().map(|point| point.memory).min());
    let of = |point: &csdfc_plan::plan::ParetoPoint| {
        (point.memory, application.cnns.iter().map(|cnn| point.fps[&cnn.name].to_bits()).collect())
    };
    plan.pareto.iter().map(of).collect()
}

#[test]
fn algorithm_2_finds_the_front_of_the_example() {
    let mut opened = app("adaptive_classifier.ron");
    opened.spec.rows = RowsSpec::Default;
    let application = for_the_paper(opened.resolve().unwrap());
    for device in [constant_cost(), generic()] {
        let front = exhaustive(&application, &device);
        assert_eq!(searched(&application, &device), front, "{}", device.name);
    }
}

/// Table 10's chromosome, of which Table 9 shows the buffers, is optimal where firings alone cost time.
#[test]
fn table_9_is_on_the_front() {
    let mut opened = app("adaptive_classifier.ron");
    opened.spec.rows = RowsSpec::Default;
    let application = opened.resolve().unwrap();
    let layers = ["l3", "l4", "l5"].map(|name| ((0, application.cnns[0].network.find(name).unwrap()), 1));
    let given = Application { rows: RowsChoice::Layers(layers.into()), ..application.clone() };
    let table_9 = plan(&given, &constant_cost());
    assert_eq!(table_9.memory.buffers, 4 * 19_968);
    let worth =
        (table_9.memory.total, table_9.cnns.iter().map(|cnn| cnn.fps.to_bits()).collect::<Vec<u64>>());
    assert!(searched(&for_the_paper(application), &constant_cost()).contains(&worth));
}

/// Random bytes, the same ones every time.
fn bytes(seed: u32) -> Vec<u8> {
    let hash =
        |i: u32| (seed.wrapping_mul(0x9E37_79B9) ^ i.wrapping_mul(0x85EB_CA6B)).wrapping_mul(2_654_435_761);
    (0..200).map(|i| (hash(i) >> 24) as u8).collect()
}

#[test]
#[cfg_attr(debug_assertions, ignore = "takes minutes without optimisation")]
fn algorithm_2_finds_the_front_of_small_applications() {
    let mut sizes = Vec::new();
    for seed in 0.. {
        let application = for_the_paper(generate::application(&bytes(seed), StorageModel::Edges));
        let genes = genes(&application).len();
        if !(3..=MAX_GENES).contains(&genes) {
            continue;
        }
        let device = if seed % 2 == 0 { generic() } else { constant_cost() };
        let front = exhaustive(&application, &device);
        assert_eq!(searched(&application, &device), front, "seed {seed}");
        sizes.push(front.len());
        if sizes.len() == 30 {
            break;
        }
    }
    // Fronts of one point would show little.
    assert!(sizes.iter().filter(|size| **size > 2).count() >= 12, "{sizes:?}");
}

/// The outputs of a plan's CNNs for the same inputs, element by element.
fn outputs(application: &Application, plan: &Plan) -> Vec<String> {
    let values = |cnn: usize, layer: usize, parameter: usize| {
        application.cnns[cnn].network.parameter(layer, parameter)
    };
    let mut runner = Runner::poisoned(plan, &values).unwrap();
    let of_cnn = |(c, cnn): (usize, &csdfc_plan::plan::Cnn)| {
        let input = |name: &String| {
            let layer = cnn.layers.iter().find(|layer| layer.name == *name).unwrap();
            let Operator::Input(input) = &layer.operator else { unreachable!("{name} is an input") };
            let dims = input_dims(input, &layer.output_shape);
            let elements = dims.iter().product();
            let data = Data::F32((0..elements).map(|i| (i * 7919 % 1013) as f32 / 507.0 - 1.0).collect());
            Value { dims, data }
        };
        let inputs: Vec<Value> = cnn.inputs.iter().map(input).collect();
        // As text, in which what is not a number equals itself.
        runner.infer(c, &inputs).unwrap().iter().map(|output| format!("{output:?}")).collect::<Vec<_>>()
    };
    plan.cnns.iter().enumerate().flat_map(of_cnn).collect()
}

/// Algorithm 2 ends when it is told to, and tells how far it is until then.
#[test]
fn algorithm_2_keeps_to_its_budget() {
    let application = csdfc_tests::application(
        r#"(name: "pair", storage: edges, search: (method: paper), constraints: (memory: "min"),
            cnns: [(model: "builtin:resnet8"), (model: "builtin:mobilenet_v1_0.25")])"#,
    );
    let all: usize = application.cnns.iter().map(|cnn| cnn.network.layers.len()).sum();
    let whole = plan(&Application { rows: RowsChoice::None, ..application.clone() }, &generic());
    let by_rows = plan(&Application { rows: RowsChoice::All, ..application.clone() }, &generic());
    let stopped = AtomicBool::new(true);
    for (budget, stop, expected) in [
        (Budget::Evaluations(200), false, "evaluations"),
        (Budget::Evaluations(1), false, "evaluations"),
        (Budget::Time(Duration::from_millis(300)), false, "time"),
        (Budget::Time(Duration::ZERO), false, "time"),
        (Budget::Default, true, "asked"),
    ] {
        let told = AtomicU64::new(0);
        let watch = Watch {
            budget,
            stop: if stop { &stopped } else { Watch::unwatched().stop },
            progress: &|progress| {
                assert_eq!(progress.of, "pair");
                told.fetch_max(progress.evaluations, Ordering::Relaxed);
            },
            ..Watch::unwatched()
        };
        let plan = watched(&application, &generic(), &watch);
        assert_eq!(plan.search.stopped, expected, "{budget:?}");
        assert!(told.into_inner() <= plan.search.evaluations);
        // However early it ends, it knows the simplest chromosomes.
        assert!(plan.memory.total <= whole.memory.total.min(by_rows.memory.total), "{budget:?}");
        assert!(
            plan.cnns.iter().map(|cnn| cnn.layers.len()).sum::<usize>() == all && !plan.pareto.is_empty()
        );
        if let Budget::Evaluations(most) = budget {
            // It begins with no layer by parts, all, and one of a generation.
            assert!(plan.search.evaluations <= most.max(3), "{} of {most}", plan.search.evaluations);
        }
    }
}

/// The sums of each method show what it may share, the checker accepts every plan, and all plans give the same outputs.
#[test]
fn every_method_plans_random_applications() {
    for seed in 0..100 {
        let mut application = generate::application(&bytes(seed), StorageModel::Edges);
        application.rows = RowsChoice::Default;
        (application.search.population, application.search.generations) = (8, 4);
        application.constraints.memory = Some(MemoryGoal::Min);
        let mut plan_by = |method: Method| {
            application.search.method = Some(method);
            plan(&application, &generic())
        };
        let none = plan_by(Method::None);
        assert_eq!(none.memory.buffers, none.memory.naive, "seed {seed}");
        let reuse = plan_by(Method::Reuse);
        assert!(reuse.memory.buffers <= reuse.memory.naive && reuse.memory.naive <= none.memory.naive);
        for buffer in &reuse.buffers {
            assert!(buffer.holds.iter().all(|edge| edge.cnn == buffer.holds[0].cnn && edge.half.is_none()));
        }
        let parts = plan_by(Method::Parts);
        assert!(parts.buffers.iter().all(|buffer| buffer.holds.len() == 1));
        assert!(parts.cnns.iter().flat_map(|cnn| &cnn.layers).all(|layer| layer.rows_per_firing == 1));
        let paper = plan_by(Method::Paper);
        assert!(paper.memory.total <= parts.memory.total, "seed {seed}");
        let expected = outputs(&application, &none);
        application.storage = StorageModel::Tensors;
        let mut plan_by = |method: Method| {
            application.search.method = Some(method);
            let watch = Watch { budget: Budget::Evaluations(SHORT), ..Watch::unwatched() };
            watched(&application, &generic(), &watch)
        };
        let (simple, extended) = (plan_by(Method::Simple), plan_by(Method::Extended));
        for plan in [reuse, parts, paper, simple, extended] {
            assert_eq!(outputs(&application, &plan), expected, "seed {seed}, {}", plan.search.method);
        }
    }
}
