//! Every network that is available, built in or trained, planned in both storage models and checked.

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]
#![expect(clippy::print_stdout, reason = "the figures are for the reader of --nocapture")]

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use csdfc_input::app::resolve::Application;
use csdfc_input::app::spec::{Method, RowsSpec};
use csdfc_input::builtin;
use csdfc_input::device::DeviceProfile;
use csdfc_input::units::MemoryGoal;
use csdfc_plan::plan::{Plan, StorageModel};
use csdfc_plan::shape::Shape;
use csdfc_planner::driver;
use csdfc_planner::open;
use csdfc_planner::search::start::Start;
use csdfc_planner::search::watch::{Scope, Watch};
use csdfc_tests::{models, outcome, plan, root, skipped};

/// The requests to the planner, as options of the command line.
const CHOICES: [&str; 4] = ["default", "--rows none", "--rows all", "--mem min"];

/// The results for one network.
#[derive(Default)]
struct Figures {
    name: String,
    layers: usize,
    parameters: u64,
    /// Buffers in bytes, by storage model and choice.
    buffers: Vec<u64>,
    /// Longest time of planning and checking one choice.
    slowest: Duration,
}

fn source_name(source: &str) -> String {
    Path::new(source).file_name().map_or(source.into(), |name| name.to_string_lossy().into_owned())
}

fn ask(source: &str, storage: StorageModel, choice: &str) -> Plan {
    let mut opened = open::open(source).unwrap();
    opened.spec.storage = Some(storage);
    match choice {
        "--rows none" => opened.spec.rows = RowsSpec::None,
        "--rows all" => opened.spec.rows = RowsSpec::All,
        "--mem min" => opened.spec.constraints.memory = Some(MemoryGoal::Min),
        "--rows none --mem min" => {
            (opened.spec.rows, opened.spec.constraints.memory) = (RowsSpec::None, Some(MemoryGoal::Min));
        }
        _ => {}
    }
    plan(&opened.resolve().unwrap())
}

/// Plans a network in every way and checks what must hold of any plan.
fn study(source: &str) -> Figures {
    let mut figures = Figures { name: source_name(source), ..Figures::default() };
    for storage in [StorageModel::Tensors, StorageModel::Edges] {
        let mut least = u64::MAX;
        for choice in CHOICES {
            let context = format!("{source}, {storage}, {choice}");
            let start = Instant::now();
            let plan = ask(source, storage, choice);
            figures.slowest = figures.slowest.max(start.elapsed());

            let memory = &plan.memory;
            assert!(
                memory.bound <= memory.buffers && memory.buffers <= memory.naive,
                "{context}: {memory:?}"
            );
            let floor = plan.certificate.claimed.unwrap_or(memory.bound);
            assert!(memory.bound <= floor && floor <= memory.buffers, "{context}: {memory:?}");
            assert_eq!(memory.proven, memory.bound == memory.buffers, "{context}");
            assert_eq!(Plan::from_json(&plan.to_json()).as_ref(), Ok(&plan), "{context}");
            assert_eq!(Plan::from_ron(&plan.to_ron()).as_ref(), Ok(&plan), "{context}");
            if choice == "--mem min" {
                assert!(memory.buffers <= least, "{context}: {} after {least}", memory.buffers);
            } else {
                least = least.min(memory.buffers);
            }
            figures.layers = plan.cnns[0].layers.len();
            figures.parameters = memory.parameters;
            figures.buffers.push(memory.buffers);
        }
    }
    figures
}

fn report(all: &[Figures]) {
    println!(
        "{:24} {:>6} {:>11}  {:>10} {:>10} {:>10} {:>10}  {:>10} {:>10} {:>10} {:>10} {:>8}",
        "", "", "parameters", "tensors", "none", "all", "min", "edges", "none", "all", "min", "slowest"
    );
    for figures in all {
        print!("{:24} {:6} {:11} ", figures.name, figures.layers, figures.parameters);
        for half in figures.buffers.chunks(CHOICES.len()) {
            half.iter().for_each(|bytes| print!(" {bytes:10}"));
            print!(" ");
        }
        println!("{:6} ms", figures.slowest.as_millis());
    }
}

/// Every application of the repository.
fn applications(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut found = Vec::new();
    for path in entries {
        if path.is_dir() {
            found.extend(applications(&path));
        } else if path.extension().is_some_and(|end| end == "ron") {
            found.push(path.to_str().unwrap().to_owned());
        }
    }
    found.sort();
    found
}

#[test]
fn what_is_stored_of_parameters_is_little_more_than_they_are() {
    let applications = applications(&root().join("apps"));
    assert!(applications.len() >= 14, "{applications:?}");
    let models = models().into_iter().map(|path| path.to_str().unwrap().to_owned());
    for source in applications.into_iter().chain(models) {
        let application = open::open(&source).unwrap().resolve().unwrap();
        let layers = application.cnns.iter().flat_map(|cnn| &cnn.network.layers);
        let [parameters, stored] = layers.fold([0; 2], |[parameters, stored], layer| {
            let seen: Vec<&Shape> = layer.inputs.iter().map(|operand| &operand.shape).collect();
            let elements = layer.parameter_elements();
            [
                parameters + 4 * elements,
                stored + layer.primitive().stored_bytes(&layer.operator, &seen, elements),
            ]
        });
        let more = 100.0 * (stored as f64 / parameters as f64 - 1.0);
        println!("{}: {stored} bytes of {parameters}, {more:+.2} %", source_name(&source));
        assert!(stored <= parameters + parameters / 10, "{source}: {stored} bytes of {parameters}");
    }
}

#[test]
#[cfg_attr(debug_assertions, ignore = "takes minutes without optimisation")]
fn every_built_in_is_planned_and_checked() {
    let all: Vec<Figures> = builtin::NAMES.iter().map(|name| study(&format!("builtin:{name}"))).collect();
    report(&all);
}

#[test]
#[cfg_attr(debug_assertions, ignore = "takes minutes without optimisation")]
fn every_trained_model_is_planned_and_checked() {
    let models = models();
    if models.is_empty() {
        skipped("tests of trained models: there is no ../shared/models");
    }
    let all: Vec<Figures> = models.iter().map(|path| study(path.to_str().unwrap())).collect();
    report(&all);
}

/// The figures that a plan must reach, in bytes, and had reached when this was written: parameters; buffers of model
/// `tensors` with no parts at full speed, and as small as can be, which is proven or claimed the least; and of the smallest
/// plan.
#[test]
fn the_bars_are_met() {
    for (name, parameters, whole, least) in [
        ("mobilenet_v2", 13_951_264, 4_845_568, 510_720),
        ("resnet50", 102_121_888, 5_218_304, 2_207_744),
        ("efficientnet_b0", 21_070_160, 4_845_568, 2_204_160),
    ] {
        let source = format!("builtin:{name}");
        let none = ask(&source, StorageModel::Tensors, "--rows none").memory;
        let min = ask(&source, StorageModel::Tensors, "--mem min").memory;
        println!("{name}: no parts {} (bound {}), smallest {}", none.buffers, none.bound, min.buffers);
        assert_eq!(none.parameters, parameters, "{name}");
        let small = ask(&source, StorageModel::Tensors, "--rows none --mem min");
        let proven = small.certificate.claimed.unwrap_or(small.memory.bound);
        assert!(small.memory.buffers == proven && proven <= none.buffers, "{name}: {:?}", small.memory);
        assert!(none.buffers <= whole, "{name}: {}", none.buffers);
        assert!(min.buffers <= least, "{name}: {}", min.buffers);
    }
}

/// There is no search if the answer is known without one: the fastest plan has no parts, and rates that no plan
/// meets are reported at once.
#[test]
#[cfg_attr(debug_assertions, ignore = "takes minutes without optimisation")]
fn nothing_is_searched_for_where_nothing_can_be_found() {
    let device = DeviceProfile::find("generic", Path::new("")).unwrap();
    let watch = Watch { scope: Scope::Plan, ..Watch::unwatched() };
    let find = |application: &Application| {
        let paths = vec![application.cnns[0].model.name.clone()];
        let outcome =
            driver::plan_from(&Start::default(), application, &device, paths, &watch, &|_| Ok(())).unwrap();
        assert!(csdfc_plan::check(&outcome.plan).is_ok());
        outcome
    };
    for name in builtin::NAMES {
        let source = format!("builtin:{name}");
        let mut application = open::open(&source).unwrap().resolve().unwrap();
        let cnn = application.cnns[0].name.clone();
        let none = ask(&source, StorageModel::Tensors, "--rows none");
        let (buffers, fps) = (none.memory.buffers, none.cnns[0].fps);
        let fastest = find(&application);
        let plan = &fastest.plan;
        assert!(fastest.shortfall.is_none() && plan.search.evaluations <= 6, "{name}: {:?}", plan.search);
        assert_eq!((plan.memory.buffers, plan.cnns[0].fps), (buffers, fps), "{name}");
        application.constraints.fps.insert(cnn.clone(), fps * 1.001);
        let too_fast = find(&application);
        assert!(too_fast.shortfall.is_some() && too_fast.plan.search.evaluations <= 6, "{name}");
        application.constraints.fps.insert(cnn, fps);
        let fast_enough = find(&application);
        assert!(fast_enough.shortfall.is_none() && fast_enough.plan.search.evaluations <= 6, "{name}");
    }
    let mut application = open::open("builtin:lenet5").unwrap().resolve().unwrap();
    application.constraints.memory = Some(MemoryGoal::Min);
    let searched = find(&application).plan;
    assert!(searched.search.evaluations > 6);
    assert_eq!(searched.memory, plan(&application).memory);
    // Where the parameters alone do not fit and must stay in memory, the smallest plan is the nearest.
    application.constraints.memory = Some(MemoryGoal::Bytes(searched.memory.parameters_stored - 1));
    application.may_be_streamed = None;
    let too_small = find(&application);
    assert_eq!((too_small.shortfall.is_some(), too_small.plan.memory.total), (true, searched.memory.total));
}

/// Same input, same bytes: once more in this process, and in processes of one and two threads.
#[test]
#[cfg_attr(debug_assertions, ignore = "takes minutes without optimisation")]
fn plans_are_byte_identical() {
    for (name, method) in [
        ("mobilenet_v2", Method::Extended),
        ("squeezenet1_0", Method::Extended),
        ("densenet121", Method::Extended),
        ("lenet5", Method::Extended),
        ("lenet5", Method::Paper),
        ("resnet8", Method::Paper),
    ] {
        let source = format!("builtin:{name}");
        let mut opened = open::open(&source).unwrap();
        opened.spec.search.method = Some(method);
        opened.spec.constraints.memory = Some(MemoryGoal::Min);
        let application = opened.resolve().unwrap();
        let once = outcome(&application).plan.to_json();
        assert_eq!(once, outcome(&application).plan.to_json(), "{name}");
        for threads in ["1", "2"] {
            let output = Command::new(env!("CARGO_BIN_EXE_csdfc-under-test"))
                .args(["plan", &source, "--format", "json", "--method", method.name(), "--mem", "min"])
                .env("RAYON_NUM_THREADS", threads)
                .output()
                .unwrap();
            assert!(output.status.success());
            assert!(once.as_bytes() == output.stdout, "{name}, {} with {threads} threads", method.name());
        }
    }
}
