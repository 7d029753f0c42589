//! Whole fronts compared with each other: the default method's is never worse than that of the paper's method, and
//! twice the evaluations hardly make it better.

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]
#![expect(clippy::print_stdout, reason = "what is measured is printed")]

use csdfc_input::app::spec::{ConstraintsSpec, Method, RowsSpec};
use csdfc_input::device::DeviceProfile;
use csdfc_input::units::MemoryGoal;
use csdfc_plan::plan::Plan;
use csdfc_planner::driver;
use csdfc_planner::open::{self, Opened};
use csdfc_planner::search::budget::Budget;
use csdfc_planner::search::compare::{dominates, hypervolume};
use csdfc_planner::search::start::Start;
use csdfc_planner::search::watch::Watch;
use csdfc_tests::app;

/// Applications that are planned in seconds, and larger ones.
const QUICK: [&str; 3] = ["adaptive_classifier.ron", "mobilenet_v2.ron", "pipeline.ron"];
const OTHERS: [&str; 10] = [
    "table12/app1.ron",
    "table12/app2.ron",
    "table12/app3.ron",
    "table12/app4.ron",
    "table12/app5.ron",
    "table12/app6.ron",
    "three_cnns.ron",
    "pipelines/mobilenet_v2.ron",
    "pipelines/efficientnet_b0.ron",
    "pipelines/resnet50.ron",
];

/// The front of an application by a method, on the device that it names, and its smallest plan, which the checker accepts.
fn searched(opened: &Opened, method: Method, budget: Budget) -> Plan {
    let mut opened = opened.clone();
    (opened.spec.rows, opened.spec.storage) = (RowsSpec::Default, None);
    opened.spec.search.method = Some(method);
    opened.spec.constraints = ConstraintsSpec { memory: Some(MemoryGoal::Min), ..ConstraintsSpec::default() };
    let application = opened.resolve().unwrap();
    let device = DeviceProfile::find(&application.device, &opened.folder).unwrap();
    let paths = application.cnns.iter().map(|cnn| cnn.model.name.clone()).collect();
    let watch = Watch { budget, ..Watch::unwatched() };
    let plan =
        driver::plan_from(&Start::default(), &application, &device, paths, &watch, &|_| Ok(())).unwrap().plan;
    assert_eq!(csdfc_plan::check(&plan).err(), None, "{}", application.name);
    assert!(!plan.pareto.is_empty());
    plan
}

/// For every plan of the paper's method, there is a plan of the default method that takes no more memory and is as
/// fast.
#[test]
fn the_papers_method_is_never_better() {
    QUICK.into_iter().for_each(is_never_worse);
}

#[test]
#[ignore = "takes minutes: run it by hand, in release"]
fn the_papers_method_is_never_better_for_larger_applications() {
    OTHERS.into_iter().for_each(is_never_worse);
}

fn is_never_worse(name: &str) {
    let mut opened = app(name);
    let extended = searched(&opened, Method::Extended, Budget::Default);
    // Three CNNs take long, and without optimisation every application does.
    if cfg!(debug_assertions) || opened.spec.cnns.len() > 2 {
        (opened.spec.search.population, opened.spec.search.generations) = (30, 20);
    }
    let paper = searched(&opened, Method::Paper, Budget::Default);
    let none = searched(&opened, Method::None, Budget::Default).memory.total;
    let ratio = hypervolume(&extended.pareto, none) / hypervolume(&paper.pareto, none);
    let [ours, theirs] = [&extended, &paper].map(|plan| (plan.pareto.len(), plan.memory.total));
    println!("{name:<30} ours {ours:?}, theirs {theirs:?}, hypervolume ratio {ratio:.4}");
    assert!(dominates(&extended.pareto, &paper.pareto), "{name}");
    assert!(ratio >= 1.0, "{name}: {ratio}");
}

/// The default number of evaluations is enough: twice as many add less than one percent of hypervolume.
#[test]
fn twice_the_evaluations_add_less_than_one_percent() {
    let names: &[&str] = if cfg!(debug_assertions) {
        &["lenet5", "resnet8"]
    } else {
        &["mobilenet_v2", "squeezenet1_0", "efficientnet_b0", "resnet50"]
    };
    for name in names {
        let opened = open::open(&format!("builtin:{name}")).unwrap();
        let none = searched(&opened, Method::None, Budget::Default).memory.total;
        let once = searched(&opened, Method::Extended, Budget::Default);
        let twice = searched(&opened, Method::Extended, Budget::Evaluations(2 * once.search.evaluations));
        let ratio = hypervolume(&twice.pareto, none) / hypervolume(&once.pareto, none);
        let [once, twice] = [once, twice].map(|plan| plan.search.evaluations);
        println!("{name:<20} {once} evaluations, then {twice}: hypervolume ratio {ratio:.5}");
        assert!(ratio < 1.01, "{name}: {ratio}");
    }
}
