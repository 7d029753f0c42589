//! Constraints at their limits: a plan that takes exactly the bytes of a budget meets it, and so does a plan with
//! exactly the required frame rate.

use std::path::Path;

use csdfc_input::app::resolve::Application;
use csdfc_input::app::spec::Method;
use csdfc_input::app::{MemoryGoal, Prefer, RowsChoice};
use csdfc_input::device::DeviceProfile;
use csdfc_plan::plan::{ParetoPoint, Plan};
use csdfc_planner::driver::{self, Planned};
use csdfc_planner::saved::front::SavedFront;
use csdfc_planner::search::start::Start;
use csdfc_planner::search::watch::{Scope, Watch};
use csdfc_tests::{application, outcome, outcome_from};

/// The application without constraints, and the plans seen.
fn case(text: &str) -> (Application, Vec<ParetoPoint>) {
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
        let (mut application, points) = case(text);
        for point in &points {
            let plan = within(&application, point.memory);
            assert!(as_fast(&plan, point), "{text}, {}: {:?} fps", point.memory, point.fps);
        }
        let least = points.iter().map(|point| point.memory).min();
        application.prefer = Prefer::Memory;
        assert_eq!(least, least.map(|least| within(&application, least).memory.total), "{text}");
    }
}

/// The final bytes of a plan are within a budget, even if the quick placement of every candidate takes more.
#[test]
fn a_budget_to_the_byte_of_the_last_placement() {
    let mut application =
        application("(cnns: [(model: \"builtin:squeezenet1_0\")], storage: edges, rows: none)");
    let free = outcome(&application).plan;
    let quick = free.pareto.iter().map(|point| point.memory).min().unwrap();
    assert!(free.memory.total < quick, "{} {quick}", free.memory.total);
    for prefer in [Prefer::Fps, Prefer::Memory] {
        application.prefer = prefer;
        assert_eq!(within(&application, free.memory.total).memory.total, free.memory.total);
        application.constraints.memory = Some(MemoryGoal::Bytes(free.memory.total - 1));
        assert!(outcome(&application).shortfall.is_some());
        application.constraints.memory = None;
    }

    // An old plan changes nothing about that.
    application.rows = RowsChoice::Default;
    application.search.method = Some(Method::Simple);
    application.constraints.memory = Some(MemoryGoal::Bytes(free.memory.total));
    application.constraints.fps = free.cnns.iter().map(|cnn| (cnn.name.clone(), cnn.fps)).collect();
    let (known, _) = SavedFront::new(&free).choices_for(&application);
    assert!(!known.is_empty());
    for start in [Start::default(), Start::Search(known)] {
        let Planned { plan, shortfall, .. } = outcome_from(&start, &application);
        assert_eq!((plan.memory.total, shortfall), (free.memory.total, None));
    }
}

/// There is no search if the fastest plan takes exactly the budget and only the best plan is asked for.
#[test]
fn the_fastest_plan_settles_a_budget_to_the_byte() {
    let mut application = application("(cnns: [(model: \"builtin:lenet5\")], weights: resident)");
    let device = DeviceProfile::find("generic", Path::new("")).unwrap();
    let watch = Watch { scope: Scope::Plan, ..Watch::unwatched() };
    let mut settled = |memory: Option<u64>| {
        application.constraints.memory = memory.map(MemoryGoal::Bytes);
        let paths = vec![application.cnns[0].model.name.clone()];
        driver::plan_from(&Start::default(), &application, &device, paths, &watch, &|_| Ok(())).unwrap().plan
    };
    let free = settled(None);
    let searched = |plan: &Plan| plan.search.evaluations > free.search.evaluations;
    assert!(!searched(&settled(Some(free.memory.total))));
    assert!(searched(&settled(Some(free.memory.total - 1))));
}

/// If CNNs run at the same time, their design points are chosen together.
#[test]
fn a_budget_of_several_to_the_byte() {
    let (application, points) = case(
        "cnns: [(model: \"builtin:resnet8\"), (model: \"builtin:lenet5\")], parallel: [[\"resnet8\", \"lenet5\"]]",
    );
    for point in &points {
        let plan = within(&application, point.memory);
        // The bytes of each are known one by one, those of both only when they are placed.
        assert!(plan.memory.total < point.memory || as_fast(&plan, point), "{}", point.memory);
    }
}

/// If each two of three CNNs run at the same time, design points are chosen by the bytes that two take together, and the
/// CNNs take more in the end. So the first that is chosen may be too large. The next one is not the smallest, but as
/// fast as any that was seen.
#[test]
fn a_budget_of_pairs_to_the_byte() {
    let (application, points) = case(
        r#"cnns: [(name: "a", model: "builtin:resnet8"), (name: "b", model: "builtin:lenet5"),
            (name: "c", model: "builtin:paper_cnn1")], parallel: [["a", "b"], ["b", "c"], ["a", "c"]]"#,
    );
    let slowdown = |fps: &dyn Fn(&String) -> f64| -> f64 {
        points[0].fps.iter().map(|(cnn, fastest)| fastest / fps(cnn)).sum()
    };
    for point in &points {
        let plan = within(&application, point.memory);
        let fps = |name: &String| plan.cnns.iter().find(|cnn| cnn.name == *name).unwrap().fps;
        assert!(slowdown(&fps) <= slowdown(&|cnn| point.fps[cnn]) + 1e-9, "{}", point.memory);
    }
}

#[test]
fn a_frame_rate_to_the_bit() {
    let (mut application, points) = case("cnns: [(model: \"builtin:squeezenet1_0\")]");
    application.prefer = Prefer::Memory;
    for point in &points {
        application.constraints.fps = point.fps.clone();
        let Planned { plan, shortfall, .. } = outcome(&application);
        assert!(plan.constraints.met && shortfall.is_none(), "{:?}", point.fps);
        assert_eq!(plan.memory.total, point.memory, "{:?}", point.fps);
    }
}
