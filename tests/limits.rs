//! Constraints at their limits: what takes exactly the bytes of a budget is within it, and what reaches exactly the frame
//! rate asked for reaches it.

use csdfc::app::resolve::Application;
use csdfc::app::spec::Method;
use csdfc::app::{MemoryGoal, Prefer};
use csdfc::driver::Planned;
use csdfc_codegen::plan::{ParetoPoint, Plan};
use csdfc_tests::{application, outcome};

/// The application without constraints, and the plans seen.
fn subject(text: &str) -> (Application, Vec<ParetoPoint>) {
    let mut application = application(&format!("({text})"));
    application.search.method = Some(Method::Simple);
    let points = outcome(&application).plan.pareto;
    assert!(points.len() > 2, "{text}: {} plans", points.len());
    (application, points)
}

/// The plan within a budget, which some plan fits.
fn within(application: &Application, bytes: u64) -> Plan {
    let mut application = application.clone();
    application.constraints.memory = Some(MemoryGoal::Bytes(bytes));
    let Planned { plan, shortfall, .. } = outcome(&application);
    assert!(plan.constraints.met && shortfall.is_none(), "{bytes}: {shortfall:?}");
    assert!(plan.memory.total <= bytes, "{bytes}: {}", plan.memory.total);
    plan
}

/// Whether a plan is as fast as one that was seen.
fn as_fast(plan: &Plan, point: &ParetoPoint) -> bool {
    plan.cnns.iter().all(|cnn| cnn.fps >= point.fps[&cnn.name])
}

#[test]
fn a_budget_to_the_byte() {
    for text in [
        "cnns: [(model: \"builtin:squeezenet1_0\")]",
        "cnns: [(model: \"builtin:resnet8\"), (model: \"builtin:lenet5\")]",
    ] {
        let (mut application, points) = subject(text);
        for point in &points {
            let plan = within(&application, point.memory);
            assert!(as_fast(&plan, point), "{text}, {}: {:?} fps", point.memory, point.fps);
        }
        let least = points.iter().map(|point| point.memory).min();
        application.prefer = Prefer::Memory;
        assert_eq!(least, least.map(|least| within(&application, least).memory.total), "{text}");
    }
}

/// CNNs at the same time are chosen for together.
#[test]
fn a_budget_of_several_to_the_byte() {
    let (application, points) = subject(
        "cnns: [(model: \"builtin:resnet8\"), (model: \"builtin:lenet5\")], parallel: [[\"resnet8\", \"lenet5\"]]",
    );
    for point in &points {
        let plan = within(&application, point.memory);
        // The bytes of each are known one by one, those of both only when they are placed.
        assert!(plan.memory.total < point.memory || as_fast(&plan, point), "{}", point.memory);
    }
}

#[test]
fn a_frame_rate_to_the_bit() {
    let (mut application, points) = subject("cnns: [(model: \"builtin:squeezenet1_0\")]");
    application.prefer = Prefer::Memory;
    for point in &points {
        application.constraints.fps = point.fps.clone();
        let Planned { plan, shortfall, .. } = outcome(&application);
        assert!(plan.constraints.met && shortfall.is_none(), "{:?}", point.fps);
        assert_eq!(plan.memory.total, point.memory, "{:?}", point.fps);
    }
}
