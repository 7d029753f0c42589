//! Plans on a device that was measured: their times are the measured ones, and their primitives are the fastest if that
//! makes a better plan. The profiles here are made up, so that every machine plans alike.

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::collections::BTreeMap;
use std::path::Path;

use csdfc_input::app::resolve::{Application, RowsChoice};
use csdfc_input::app::spec::Primitives;
use csdfc_input::app::{MemoryGoal, Prefer};
use csdfc_input::device::DeviceProfile;
use csdfc_input::device::measured::{Measured, Sample, scenario};
use csdfc_plan::plan::{Plan, TimeBasis};
use csdfc_planner::driver::{self, Planned};
use csdfc_planner::profile::{self, Request};
use csdfc_planner::saved::front::SavedFront;
use csdfc_tests::application;

const FIRST: &str = "indirect-gemm-hwc-hwc";
const FAST: &str = "winograd-f4x4-3x3-hwc-hwc";
const FASTEST: &str = "winograd-f6x6-3x3-hwc-hwc";
const OTHER_LAYOUT: &str = "direct-sum2d-chw-chw";

fn case() -> Application {
    application(r#"(name: "a", cnns: [(name: "a", model: "builtin:vgg16")])"#)
}

/// A profile on which every layer takes 1 ms in one firing, and 2 ms row by row, but for 3×3 convolutions by other
/// primitives.
fn device(application: &Application) -> DeviceProfile {
    let mut device = DeviceProfile::find("generic", Path::new("")).unwrap();
    device.basis = DeviceProfile::basis_of("a processor that nobody has");
    let mut measured = BTreeMap::new();
    for layer in application.cnns[0].network.layers.iter().filter(|layer| !layer.is_input()) {
        let rows = layer.rows() as u64;
        let sample = |rows: u64, ns: f64| Sample { rows, ns, spread: 0.0 };
        let mut samples = vec![sample(rows, 1e6)];
        if rows > 1 {
            samples.insert(0, sample(1, 2e6));
        }
        let mut times = BTreeMap::from([(layer.primitive().name().to_owned(), samples)]);
        if layer.primitive().name() == FIRST {
            for (primitive, ns) in [(FAST, 0.5e6), (FASTEST, 0.4e6), (OTHER_LAYOUT, 0.1e6)] {
                times.insert(primitive.into(), vec![sample(rows, ns)]);
            }
        }
        let scenario = scenario(layer);
        measured.insert(scenario.clone(), Measured { scenario, threads: 1, times });
    }
    device.processors.get_mut("cpu").unwrap().measured = measured.into_values().collect();
    // What is written is read again.
    let text = ron::to_string(&device).unwrap();
    assert_eq!(DeviceProfile::parse(&text, "text").unwrap(), device);
    device
}

fn planned(application: &Application, device: &DeviceProfile) -> Planned {
    driver::plan(application, device, vec!["builtin:vgg16".into()]).unwrap()
}

fn count(plan: &Plan, primitive: &str) -> usize {
    plan.cnns[0].layers.iter().filter(|layer| layer.primitive == primitive).count()
}

fn ms(plan: &Plan) -> f64 {
    plan.cnns[0].latency_ns as f64 / 1e6
}

#[test]
fn times_are_the_measured_ones() {
    let mut application = case();
    let device = device(&application);
    application.primitives = Primitives::Fixed;
    let layers = &application.cnns[0].network.layers;
    let of_several_rows = layers.iter().filter(|layer| !layer.is_input() && layer.rows() > 1).count();
    let all = layers.iter().filter(|layer| !layer.is_input()).count();
    for (rows, expected) in [(RowsChoice::None, all), (RowsChoice::All, all + of_several_rows)] {
        application.rows = rows;
        let plan = planned(&application, &device).plan;
        assert_eq!(ms(&plan).round() as usize, expected);
        let times = plan.cnns[0].layers.iter().filter_map(|layer| layer.time);
        assert!(times.clone().all(|time| time.basis == TimeBasis::Measured));
        assert_eq!((times.map(|time| time.ns).sum::<f64>() / 1e6).round() as usize, expected);
    }

    // Four rows of 224 are 56 firings: 1 ms, and 55 of 223 parts of the other.
    let (id, first) = application.cnns[0].network.ids().map(|id| (id, &layers[id.0])).nth(1).unwrap();
    assert_eq!(first.rows(), 224);
    application.rows = RowsChoice::Layers(BTreeMap::from([((0, id), 4)]));
    let plan = planned(&application, &device).plan;
    let time = plan.cnns[0].layers[id.0].time.unwrap();
    assert_eq!(time.basis, TimeBasis::Interpolated);
    assert!((time.ns / 1e6 - (1.0 + 55.0 / 223.0)).abs() < 1e-9, "{time:?}");
    assert_eq!(ms(&plan), (all as f64 * 1e6 + 55.0 / 223.0 * 1e6).ceil() / 1e6);
}

#[test]
fn the_fastest_primitives_are_taken_where_they_make_a_better_plan() {
    let mut application = case();
    let device = device(&application);
    application.rows = RowsChoice::None;
    let fixed = planned(&Application { primitives: Primitives::Fixed, ..application.clone() }, &device).plan;
    let fast = planned(&application, &device).plan;
    let convolutions = count(&fixed, FIRST);
    assert_eq!((convolutions, count(&fast, FAST), count(&fast, FASTEST)), (13, 13, 0));
    assert!((ms(&fixed) - ms(&fast) - 0.5 * convolutions as f64).abs() < 1e-3);
    assert!(fast.memory.total > fixed.memory.total);

    // A primitive that errs more is chosen only if that is allowed. At the tightest limit, no chosen primitive errs
    // more than a sum of products.
    let with = |max_primitive_error: f64| {
        planned(&Application { max_primitive_error, ..application.clone() }, &device).plan
    };
    assert_eq!(count(&with(1e-3), FASTEST), convolutions);
    assert_eq!(count(&with(1e-5), FIRST), convolutions);

    // The first ones where the least memory is asked for, or where the others take too much.
    let limited = |memory: Option<MemoryGoal>, prefer: Prefer| {
        let mut application = Application { prefer, ..application.clone() };
        application.constraints.memory = memory;
        planned(&application, &device)
    };
    for (memory, prefer, primitive) in [
        (Some(MemoryGoal::Min), Prefer::Fps, FIRST),
        (None, Prefer::Memory, FIRST),
        (Some(MemoryGoal::Bytes(fast.memory.total)), Prefer::Fps, FAST),
        (Some(MemoryGoal::Bytes(fixed.memory.total)), Prefer::Fps, FIRST),
    ] {
        let Planned { plan, shortfall, .. } = limited(memory, prefer);
        assert_eq!(count(&plan, primitive), convolutions, "{memory:?}, {prefer:?}");
        assert!(plan.constraints.met && shortfall.is_none());
    }
    // Some of the others where some fit.
    let Planned { plan, .. } = limited(Some(MemoryGoal::Bytes(fast.memory.parameters_stored)), Prefer::Fps);
    assert!(plan.constraints.met && (1..convolutions).contains(&count(&plan, FIRST)));
    assert!(ms(&plan) < ms(&fixed));
    let Planned { plan, shortfall, .. } = limited(Some(MemoryGoal::Bytes(1 << 20)), Prefer::Fps);
    assert!(!plan.constraints.met && shortfall.is_some() && count(&plan, FIRST) == convolutions);
}

/// A plan of a front is made again with its primitives.
#[test]
fn a_plan_is_picked_with_its_primitives() {
    let mut application = case();
    let device = device(&application);
    application.rows = RowsChoice::None;
    let plan = planned(&application, &device).plan;
    let saved = SavedFront::new(&plan);
    assert_eq!(saved.cnns[0].primitives.len(), 13);
    let application = Application { rows: RowsChoice::None, ..case() };
    let again = planned(&saved.application_for(1, application), &device).plan;
    assert_eq!(again.to_json(), plan.to_json());
}

/// Every primitive of a layer is timed as often as asked, known times are not measured again, and the measured times
/// price each layer of a plan.
#[test]
fn a_machine_is_measured() {
    let application = application(r#"(name: "a", cnns: [(name: "a", model: "builtin:lenet5")])"#);
    let request = Request { threads: 1, rounds: 2, only: None };
    let mut known = Vec::new();
    let mut trials = 0;
    profile::measure(&application, 0, &request, &mut known, &mut |progress, _| {
        trials += 1;
        assert!(progress.done > 0);
        Ok(true)
    })
    .unwrap();
    assert!(trials > 0);
    let network = &application.cnns[0].network;
    for layer in network.layers.iter().filter(|layer| !layer.is_input()) {
        let measured = known.iter().find(|measured| measured.scenario == scenario(layer)).unwrap();
        assert!(measured.times.contains_key(layer.primitive().name()), "{}", layer.name);
        for (name, samples) in &measured.times {
            // An image of planes is one row.
            let rows = if name.ends_with("chw") { 1 } else { layer.rows() as u64 };
            assert_eq!(samples.last().unwrap().rows, rows, "{} by {name}", layer.name);
        }
    }
    // Three convolutions of 5×5, each with most of the table.
    let convolutions = known.iter().filter(|measured| measured.scenario.starts_with("conv ("));
    let primitives: Vec<usize> = convolutions.map(|measured| measured.times.len()).collect();
    assert!(primitives.len() == 3 && primitives.iter().all(|count| *count > 100), "{primitives:?}");
    assert!(known.iter().any(|measured| measured.scenario.starts_with("convert ")));

    let mut again = 0;
    let before = known.clone();
    profile::measure(&application, 0, &request, &mut known, &mut |_, _| {
        again += 1;
        Ok(true)
    })
    .unwrap();
    assert_eq!((again, &known), (0, &before));

    let generic = DeviceProfile::find("generic", Path::new("")).unwrap();
    let cpu = profile::processor(
        &[network],
        known,
        &[32 << 10, 1 << 20, 8 << 20],
        generic.processor("cpu").unwrap(),
    );
    assert_eq!(cpu.cache_bytes, 1 << 20);
    let mut device = DeviceProfile { basis: DeviceProfile::basis_of("this"), ..generic };
    device.processors.insert("cpu".into(), cpu);
    let text = ron::to_string(&device).unwrap();
    let device = DeviceProfile::parse(&text, "text").unwrap();
    let plan = driver::plan(&application, &device, vec!["builtin:lenet5".into()]).unwrap().plan;
    let layers = plan.cnns[0].layers.iter().filter(|layer| !layer.inputs.is_empty());
    let bases: Vec<_> = layers.map(|layer| layer.time.unwrap().basis).collect();
    assert!(bases.iter().all(|basis| *basis != TimeBasis::Modelled), "{bases:?}");
    csdfc_plan::check::check(&plan).unwrap();
}

/// A measurement that is stopped keeps what is finished.
#[test]
fn a_measurement_can_be_stopped() {
    let application = application(r#"(name: "a", cnns: [(name: "a", model: "builtin:lenet5")])"#);
    let request = Request { threads: 1, rounds: 1, only: Some("im2row".into()) };
    let (mut known, mut trials) = (Vec::new(), 0);
    profile::measure(&application, 0, &request, &mut known, &mut |_, _| {
        trials += 1;
        Ok(trials < 3)
    })
    .unwrap();
    assert_eq!(trials, 3);
    let times: usize = known.iter().map(|measured: &Measured| measured.times.len()).sum();
    assert!(times > 0);
    profile::measure(&application, 0, &request, &mut known, &mut |_, _| Ok(true)).unwrap();
    assert!(known.iter().map(|measured| measured.times.len()).sum::<usize>() > times);
    let names = known.iter().flat_map(|measured| measured.times.keys());
    let others = names.filter(|name| !name.contains("im2row") && !name.starts_with("convert"));
    let firsts: Vec<&str> =
        application.cnns[0].network.layers.iter().map(|layer| layer.primitive().name()).collect();
    assert!(others.into_iter().all(|name| firsts.contains(&name.as_str())));
}
