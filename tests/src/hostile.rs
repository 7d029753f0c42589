//! The readers of all input that may come from a stranger. Each is a function that must return, whatever the bytes are.
//! The fuzz targets in `fuzz/` call these, and so does the smoke test `hostile.rs`.

use std::num::NonZero;
use std::path::Path;

use csdf::{Budget, Goal, StorageOptions, sdf3};
use csdfc_input::app::load::{self, LoadError, ModelRequest};
use csdfc_input::app::resolve::resolve;
use csdfc_input::app::{Origin, spec};
use csdfc_input::import::{self, ImportOptions};
use csdfc_plan::plan::Plan;
use csdfc_planner::saved::front::SavedFront;
use csdfc_planner::search::start::Start;
use csdfc_select::{Instance, Method, Problem, Quantity, Query};

/// Actors and phases up to which a graph is analysed: all is linear in them at least.
const MAX_PHASES: u64 = 10_000;

/// Options and edges up to which an instance is solved.
const MAX_OPTIONS: usize = 200;

/// A graph in SDF3 XML: a graph that was read can be written, read again, and analysed within a budget.
///
/// # Panics
/// When the written graph cannot be read, or is another graph.
pub fn sdf3(bytes: &[u8]) {
    let Ok(sdf3::Document { name, graph }) = sdf3::read(bytes, NonZero::<u64>::MIN) else { return };
    let phases: u64 = graph.actors().iter().map(|actor| actor.phases).sum();
    if phases > MAX_PHASES {
        return;
    }
    let written = sdf3::write(&graph, &name);
    let again = sdf3::read(written.as_bytes(), NonZero::<u64>::MIN).expect("what is written can be read");
    assert_eq!(sdf3::write(&again.graph, &again.name), written);
    sdf3::dot(&graph, &name);
    let budget = Budget { work: 100_000, time: None, stop: None };
    let _ = csdf::throughput(&graph, &graph.capacities(), &budget);
    let _ = csdf::smallest(&graph, Goal::Maximal, &StorageOptions { budget, ..StorageOptions::default() });
}

/// An application file, its models replaced by a small network.
pub fn app(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let origin = Origin { name: "app.ron".into(), text: Some(text.into()), replaced: Vec::new() };
    let Ok(parsed) = spec::parse(&origin) else { return };
    let mut load = |request: &ModelRequest| match request.model {
        "none" => Err(LoadError::Kind),
        _ => load::load(&ModelRequest { model: "builtin:lenet5", ..*request }),
    };
    let _ = resolve(&parsed, &origin, Path::new(""), &mut load);
}

/// A plan file, checked, and laid out over time if it is accepted.
pub fn plan(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Ok(plan) = Plan::parse(text) {
        let _ = csdfc_plan::timeline::timeline(&plan);
    }
}

/// A saved front, or a plan in its place: the choices that apply to a small network are planned.
///
/// # Panics
/// When a choice that can be read cannot be planned, or our checker refuses the plan.
pub fn front(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let Ok(front) = SavedFront::parse(text, "front.json") else { return };
    let application = crate::application("(name: \"app\", cnns: [(name: \"a\", model: \"builtin:lenet5\")])");
    front.choices_for(&application);
    if let Ok(choices) = front.pick(front.pareto.len(), &application) {
        let plan = crate::outcome_from(&Start::Picked(choices), &application).plan;
        assert!(csdfc_plan::check(&plan).is_ok(), "{text}");
    }
}

/// An instance of primitive selection: an instance that can be read is solved, if it is small.
///
/// # Panics
/// When a selection breaks its budget, or costs less than the bound.
pub fn instance(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let Ok(instance) = Instance::parse(text) else { return };
    let options: usize = instance.layers.iter().map(|layer| layer.options.len()).sum();
    let (memory, time) = (instance.memory_budget, instance.time_budget);
    for pass_converts in [false, true] {
        let Ok(problem) = Problem::new(&instance, pass_converts) else { continue };
        if options + instance.edges.len() > MAX_OPTIONS {
            return;
        }
        for (minimise, memory, time) in [
            (Quantity::Time, memory, None),
            (Quantity::Memory, None, time),
            (Quantity::Workspace, None, time),
        ] {
            for method in
                [Method::Exact, Method::Greedy, Method::Families, Method::Sum2d, Method::LocalOptimal]
            {
                let query = Query { minimise, time, memory, workspace: None, method };
                let answer =
                    csdfc_select::answer(&problem, &query).expect("no integer program was asked for");
                if let csdfc_select::Answer::Met(chosen) = answer {
                    assert!(minimise.amount(&chosen.cost) >= chosen.bound, "{text}");
                    assert!(memory.is_none_or(|most| chosen.cost.memory <= problem.memories.budget(most)));
                    assert!(time.is_none_or(|most| chosen.cost.time <= problem.times.budget(most)));
                }
            }
        }
    }
}

/// An ONNX file without external data.
pub fn onnx(bytes: &[u8]) {
    let _ = import::import_bytes(bytes, None, &ImportOptions::default());
}

/// A TFLite file.
pub fn tflite(bytes: &[u8]) {
    let _ = import::import_bytes(bytes, None, &ImportOptions::default());
}
