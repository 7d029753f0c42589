//! Primitives, layouts, rows and segments chosen together. The plan is never worse than with one chosen after the
//! other, it is the best if all can be tried, and it is executed as planned. The profiles here are made up, so that
//! every machine plans alike.

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use csdfc_input::app::MemoryGoal;
use csdfc_input::app::resolve::{Application, RowsChoice};
use csdfc_input::app::spec::Primitives;
use csdfc_input::device::DeviceProfile;
use csdfc_input::device::measured::{Measured, Sample, scenario};
use csdfc_network::{Layer, LayerId, Network, Operand};
use csdfc_plan::check;
use csdfc_plan::operator::{Conv, Operator};
use csdfc_plan::plan::{Plan, StorageModel};
use csdfc_plan::shape::Shape;
use csdfc_planner::driver::{self, Planned};
use csdfc_planner::search::budget::Budget;
use csdfc_planner::search::start::Start;
use csdfc_planner::search::watch::{Progress, Watch};
use csdfc_planner::selection;
use csdfc_runtime::bind::Primitive;
use csdfc_runtime::run::{Data, Runner, Value};
use csdfc_tests::{application, generate, random};
use rand::RngExt;
use rand::rngs::ChaCha8Rng;

/// Networks drawn.
const NETWORKS: u64 = 8;
/// Drawn chains on which all assignments are tried.
const CHAINS: u64 = 4;
/// Primitives of convolutions in these chains.
const SAME_LAYOUT: [&str; 4] =
    ["indirect-gemm-hwc-hwc", "winograd-f4x4-3x3-hwc-hwc", "im2row-panels-hwc-hwc", "direct-pixel-hwc-hwc"];
/// Primitives in random networks, which may need conversions.
const SEVERAL_LAYOUTS: [&str; 7] = [
    "indirect-gemm-hwc-hwc",
    "winograd-f2x2-3x3-hwc-hwc",
    "winograd-f2x2-3x3-chw-chw",
    "im2row-panels-hwc-hwc",
    "direct-filters-hwc-chw",
    "direct-filters-hcw-hwc",
    "direct-row-hcw-hcw",
];

/// A 3×3 convolution over `x`, by channels.
pub(super) fn convolution(network: &mut Network, x: Operand, filters: usize) -> Operand {
    let conv = Conv {
        filters,
        kernel: [3, 3],
        stride: [1, 1],
        dilation: [1, 1],
        pads: [1, 1, 1, 1],
        groups: 1,
        bias: true,
        pre: None,
        residual: false,
        activation: None,
    };
    generate::push(network, Operator::Conv(conv), vec![x]).unwrap()
}

/// An input and convolutions one after another; some in a random network read the one before the last.
fn network(random: &mut ChaCha8Rng, layers: usize, has_branches: bool) -> Network {
    let mut network = Network::default();
    let size = random.random_range(8..20);
    let mut made = vec![generate::input(&mut network, Shape::new([1, 3, size, size]))];
    for _ in 0..layers {
        let back = if has_branches && made.len() > 2 && random.random_range(0..3) == 0 { 2 } else { 1 };
        let x = made[made.len() - back].clone();
        made.push(convolution(&mut network, x, random.random_range(2..24)));
    }
    let readers = network.readers();
    let ends: Vec<usize> = (0..made.len()).filter(|at| readers[made[*at].layer.0].is_empty()).collect();
    for end in ends {
        network.outputs.push(csdfc_network::NetworkOutput::new(format!("out{end}"), made[end].clone()));
    }
    network
}

pub(super) fn case(network: Network) -> Application {
    let layers: Vec<LayerId> = network.ids().collect();
    let partition =
        csdfc_input::app::Partition { name: "a".into(), layers, processor: "cpu".into(), schedule: None };
    let cnn = generate::of_network("a", network, vec![partition]);
    generate::of_cnns(vec![cnn], vec![vec!["a".into()]], StorageModel::Tensors, RowsChoice::Default)
}

/// A profile on which these primitives take random times in one firing, and longer row by row.
fn device(network: &Network, primitives: &[&str], random: &mut ChaCha8Rng) -> DeviceProfile {
    device_of(network, primitives, |_, _, rows| {
        let ns = random.random_range(20_000..200_000) as f64;
        [ns, if rows > 1 { ns * random.random_range(100..180) as f64 / 100.0 } else { ns }]
    })
}

/// A profile on which these primitives take the given times for a layer, by its place and rows: in one firing, and row
/// by row.
pub(super) fn device_of(
    network: &Network,
    primitives: &[&str],
    mut times_of: impl FnMut(usize, Primitive, u64) -> [f64; 2],
) -> DeviceProfile {
    let mut device = DeviceProfile::find("generic", Path::new("")).unwrap();
    let mut measured: BTreeMap<String, Measured> = BTreeMap::new();
    for (place, layer) in network.layers.iter().enumerate().filter(|(_, layer)| !layer.is_input()) {
        let inputs: Vec<&Shape> = layer.inputs.iter().map(|operand| &operand.shape).collect();
        let mut times = BTreeMap::new();
        let all = primitives.iter().filter_map(|name| Primitive::find(name));
        for primitive in all.filter(|primitive| primitive.computes(&layer.operator, &inputs)) {
            let by = Layer { primitive: Some(primitive), ..layer.clone() };
            let rows = by.rows() as u64;
            let [ns, by_rows] = times_of(place, primitive, rows);
            let mut samples = vec![Sample { rows, ns, spread: 0.0 }];
            if rows > 1 {
                samples.insert(0, Sample { rows: 1, ns: by_rows, spread: 0.0 });
            }
            times.insert(primitive.name().to_owned(), samples);
        }
        let scenario = scenario(layer);
        measured.insert(scenario.clone(), Measured { scenario, threads: 1, times });
    }
    device.processors.get_mut("cpu").unwrap().measured = measured.into_values().collect();
    device
}

fn with(application: &Application, memory: Option<MemoryGoal>) -> Application {
    let mut application = application.clone();
    application.constraints.memory = memory;
    application
}

pub(super) fn planned(application: &Application, device: &DeviceProfile) -> Planned {
    driver::plan(application, device, vec![String::new()]).unwrap()
}

fn is_met(planned: &Planned) -> bool {
    planned.plan.constraints.met
}

fn period(planned: &Planned) -> f64 {
    1e9 / planned.plan.cnns[0].fps
}

/// Some budgets, from the least memory to none.
fn budgets(application: &Application, device: &DeviceProfile) -> Vec<Option<MemoryGoal>> {
    let least = planned(&with(application, Some(MemoryGoal::Min)), device).plan.memory.total;
    let most = planned(application, device).plan.memory.total.max(least);
    let quarters = (0..4).map(|quarter| least + (most - least) / 4 * quarter);
    quarters.map(|bytes| Some(MemoryGoal::Bytes(bytes))).chain([None]).collect()
}

#[test]
#[cfg_attr(debug_assertions, ignore = "takes minutes without optimisation")]
fn joint_plans_are_never_worse_than_one_after_the_other() {
    let (mut faster, mut converted) = (0, 0);
    for stream in 0..NETWORKS {
        let random = &mut random(stream);
        let layers = random.random_range(2..7);
        let network = network(random, layers, true);
        let device = device(&network, &SEVERAL_LAYOUTS, random);
        let application = case(network);
        for budget in budgets(&application, &device) {
            let application = with(&application, budget);
            let joint = planned(&application, &device);
            check::check(&joint.plan).unwrap();
            assert!(is_met(&joint), "stream {stream}, {budget:?}");
            let ways = driver::separate_plans(&application, &device, vec![String::new()]).unwrap();
            let others = [Some(&ways.fixed), ways.primitives_first.as_ref(), ways.memory_first.as_ref()];
            let others: Vec<&Planned> = others.into_iter().flatten().filter(|other| is_met(other)).collect();
            for other in &others {
                assert!(period(&joint) <= period(other), "stream {stream}, {budget:?}");
            }
            faster += u64::from(others.iter().all(|other| period(&joint) < period(other)));
            let layers = &joint.plan.cnns[0].layers;
            converted += u64::from(layers.iter().any(|layer| matches!(layer.operator, Operator::Convert)));
        }
    }
    // The test would show nothing if all ways led to the same plans.
    assert!(faster >= NETWORKS / 4 && converted >= NETWORKS / 4, "{faster} faster, {converted} converted");
}

/// Every assignment of four primitives to one or two convolutions, each planned by itself: none is better.
#[test]
#[cfg_attr(debug_assertions, ignore = "takes minutes without optimisation")]
fn joint_plans_of_small_chains_are_the_best() {
    let mut compared = 0;
    for stream in 0..CHAINS {
        let random = &mut random(stream);
        let layers = random.random_range(1..3);
        let network = network(random, layers, false);
        let device = device(&network, &SAME_LAYOUT, random);
        let application = case(network);
        for budget in budgets(&application, &device) {
            let joint = planned(&with(&application, budget), &device);
            let mut fixed = with(&application, budget);
            fixed.primitives = Primitives::Fixed;
            let mut best = f64::INFINITY;
            for assignment in 0..SAME_LAYOUT.len().pow(layers as u32) {
                for at in 0..layers {
                    let which = assignment / SAME_LAYOUT.len().pow(at as u32) % SAME_LAYOUT.len();
                    let convolution = &mut fixed.cnns[0].network.layers[at + 1];
                    convolution.primitive = Primitive::find(SAME_LAYOUT[which]);
                }
                let one = planned(&fixed, &device);
                if is_met(&one) {
                    best = best.min(period(&one));
                }
            }
            assert!(is_met(&joint) == best.is_finite(), "stream {stream}, {budget:?}");
            assert!(
                period(&joint) <= best * (1.0 + 1e-9),
                "stream {stream}, {budget:?}: {} > {best}",
                period(&joint)
            );
            compared += 1;
        }
    }
    assert_eq!(compared, 5 * CHAINS);
}

/// The application with the primitives that a plan states, and with its conversions.
pub(super) fn as_planned(application: &Application, plan: &Plan) -> Application {
    let mut application = application.clone();
    for (cnn, planned) in application.cnns.iter_mut().zip(&plan.cnns) {
        for layer in &mut cnn.network.layers {
            let stated = planned.layers.iter().find(|stated| stated.name == layer.name).unwrap();
            layer.primitive = Primitive::find(&stated.primitive);
        }
        *cnn = selection::legalised(cnn.clone());
    }
    application
}

/// Firings by primitive, counted while a plan runs, and as the plan states them.
fn fired(application: &Application, plan: &Plan) -> [BTreeMap<String, u64>; 2] {
    let network = as_planned(application, plan).cnns.remove(0).network;
    let parameters = |_: usize, layer: usize, parameter: usize| network.parameter(layer, parameter);
    let layers = &plan.cnns[0].layers;
    let mut runner = Runner::poisoned(plan, &parameters).unwrap();
    let inputs = layers.iter().filter(|layer| matches!(layer.operator, Operator::Input(_)));
    let value = |layer: &csdfc_plan::plan::Layer| {
        let shape = &layer.output_shape;
        let values = generate::sixteenths(1).take(shape.elements()).collect();
        Value { dims: shape.dims.clone(), data: Data::F32(values) }
    };
    let inputs: Vec<Value> = inputs.map(value).collect();
    let mut counted = BTreeMap::new();
    runner
        .infer_observed(0, &inputs, &mut |fired| {
            *counted.entry(layers[fired.layer].primitive.clone()).or_default() += 1;
        })
        .unwrap();
    let mut stated = BTreeMap::new();
    for layer in layers.iter().filter(|layer| !matches!(layer.operator, Operator::Input(_))) {
        *stated.entry(layer.primitive.clone()).or_default() += layer.firings;
    }
    counted.retain(|name, _| stated.contains_key(name) || !name.starts_with("own-kernel"));
    [counted, stated]
}

#[test]
fn just_the_primitives_of_a_joint_plan_run() {
    let mut ran: BTreeMap<String, u64> = BTreeMap::new();
    for stream in 0..NETWORKS {
        let random = &mut random(stream);
        let network = network(random, 4, true);
        let device = device(&network, &SEVERAL_LAYOUTS, random);
        let application = case(network);
        let joint = planned(&application, &device);
        let [counted, stated] = fired(&application, &joint.plan);
        assert_eq!(counted, stated, "stream {stream}");
        counted.into_iter().for_each(|(name, count)| *ran.entry(name).or_default() += count);
    }
    assert!(ran.keys().filter(|name| SEVERAL_LAYOUTS.contains(&name.as_str())).count() > 4, "{ran:?}");
    assert!(ran.keys().any(|name| name.starts_with("convert-")), "{ran:?}");
}

/// The same bytes whatever the number of threads that search.
#[test]
#[cfg_attr(debug_assertions, ignore = "takes minutes without optimisation")]
fn joint_plans_are_the_same_with_any_number_of_threads() {
    for stream in 0..NETWORKS / 2 {
        let random = &mut random(stream);
        let network = network(random, 5, true);
        let device = device(&network, &SEVERAL_LAYOUTS, random);
        let application = case(network);
        for budget in budgets(&application, &device) {
            let application = with(&application, budget);
            let with_threads = |threads: usize| {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                pool.install(|| planned(&application, &device).plan.to_json())
            };
            let alone = with_threads(1);
            for threads in [2, 3] {
                assert!(alone == with_threads(threads), "stream {stream}, {budget:?}, {threads} threads");
            }
        }
    }
}

/// Searches for a joint plan share its time: no more searches begin than the number by which the time was divided.
#[test]
fn searches_of_a_joint_plan_share_its_time() {
    let mut most = 0;
    for stream in 0..NETWORKS {
        let random = &mut random(stream);
        let network = network(random, 4, true);
        let device = device(&network, &SEVERAL_LAYOUTS, random);
        let application = with(&case(network), Some(MemoryGoal::Bytes(1 << 20)));
        let begun = AtomicUsize::new(0);
        let count = |progress: &Progress<'_>| {
            begun.fetch_add(usize::from(progress.evaluations == 0), Ordering::Relaxed);
        };
        let time = Budget::Time(Duration::from_millis(200));
        let watch = Watch { budget: time, progress: &count, ..Watch::unwatched() };
        let planned =
            driver::plan_from(&Start::default(), &application, &device, vec![String::new()], &watch, &|_| {
                Ok(())
            })
            .unwrap();
        check::check(&planned.plan).unwrap();
        assert_eq!(planned.plan.search.stopped, "time", "stream {stream}");
        most = most.max(begun.load(Ordering::Relaxed));
    }
    // Searches with fixed primitives, with the time optimum, and from the best. The search for offers reports no
    // progress.
    assert_eq!(most, 3);
}

/// A family computes each layer that it can, with conversions around it. Layers that it cannot compute do not change.
#[test]
fn a_primitive_by_name_computes_what_it_can() {
    let device = DeviceProfile::find("generic", Path::new("")).unwrap();
    let mut application = application(r#"(name: "a", cnns: [(name: "a", model: "builtin:lenet5")])"#);
    let convolutions = |plan: &Plan| -> Vec<String> {
        let layers = plan.cnns[0].layers.iter();
        let layers = layers.filter(|layer| matches!(layer.operator, Operator::Conv(_)));
        layers.map(|layer| layer.primitive.clone()).collect()
    };
    for (name, expected) in [
        ("winograd", "winograd-f2x2-5x5-hwc-hwc"),
        ("mec-a-chw-chw", "mec-a-chw-chw"),
        ("im2col-lines-hcw", "im2col-lines-hcw-chw"),
    ] {
        application.primitives = Primitives::Named(name.parse().unwrap());
        for rows in [RowsChoice::Default, RowsChoice::None, RowsChoice::All] {
            application.rows = rows;
            let plan = planned(&application, &device).plan;
            check::check(&plan).unwrap();
            let found = convolutions(&plan);
            assert!(found.iter().filter(|found| *found == expected).count() >= 2, "{name}: {found:?}");
        }
    }
    application.primitives = Primitives::Named("convert-swap".parse().unwrap());
    let same = planned(&application, &device).plan;
    application.primitives = Primitives::Fixed;
    assert_eq!(same.to_json(), planned(&application, &device).plan.to_json());
}

/// The text of an explanation says why not, for each reason that there is.
#[test]
fn a_plan_explains_a_layer() {
    let random = &mut random(3);
    let network = network(random, 3, false);
    let device = device(&network, &SEVERAL_LAYOUTS, random);
    let mut application = case(network);
    application.max_primitive_error = 1.5e-5;
    let least = planned(&with(&application, Some(MemoryGoal::Min)), &device).plan.memory.total;
    let application = with(&application, Some(MemoryGoal::Bytes(least + 64)));
    let plan = planned(&application, &device).plan;
    let layer =
        &plan.cnns[0].layers.iter().rfind(|layer| matches!(layer.operator, Operator::Conv(_))).unwrap();
    let mut found = driver::explain(&plan, &application, &device, "a", &layer.name).unwrap().unwrap();
    assert_eq!(found.alternatives[0].primitive, layer.primitive);
    assert!(found.alternatives[0].verdict.starts_with("chosen"));
    assert!(found.not_measured.len() > 50);
    found.not_measured.clear();
    insta::assert_snapshot!(csdfc_planner::explain::primitives::text(&found));
    assert_eq!(driver::explain(&plan, &application, &device, "a", "nothing").unwrap(), None);
}
