//! Rows at once or one by one: a layer of many filters pays time for the memory that it saves, and does so only if it
//! must.

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]
#![expect(clippy::print_stdout, reason = "the figures are for the reader of --nocapture")]

use csdfc_input::app::resolve::Application;
use csdfc_input::app::spec::RowsSpec;
use csdfc_input::units::MemoryGoal;
use csdfc_plan::plan::{ParetoPoint, Plan};
use csdfc_planner::open;
use csdfc_planner::search::code;
use csdfc_planner::search::start::Start;
use csdfc_tests::{models, outcome, outcome_from, plan};

fn application(source: &str, rows: RowsSpec, memory: Option<MemoryGoal>) -> Application {
    let mut opened = open::open(source).unwrap();
    (opened.spec.rows, opened.spec.constraints.memory) = (rows, memory);
    opened.resolve().unwrap()
}

/// Whether no placement is smaller, as a plan says.
fn is_least(plan: &Plan) -> bool {
    plan.certificate.claimed.unwrap_or(plan.memory.bound) == plan.memory.buffers
}

/// The smallest plan, which is also the answer if exactly its total is allowed.
fn smallest(source: &str, rows: RowsSpec) -> Plan {
    let small = plan(&application(source, rows.clone(), Some(MemoryGoal::Min)));
    let within = |bytes| outcome(&application(source, rows.clone(), Some(MemoryGoal::Bytes(bytes))));
    let again = within(small.memory.total);
    assert!(again.plan.constraints.met && again.shortfall.is_none(), "{source}");
    assert!(again.plan.memory.total <= small.memory.total, "{source}");
    println!(
        "{source}: {} of {}, claimed {:?}",
        small.memory.buffers, small.memory.bound, small.certificate.claimed
    );
    small
}

#[test]
fn inception_v3_fits_where_its_largest_tensors_share_addresses() {
    let source = "builtin:inception_v3";
    let small = smallest(source, RowsSpec::None);
    assert!(small.memory.buffers <= 5_607_680 && is_least(&small));
    let fast = plan(&application(source, RowsSpec::None, None));
    assert!(fast.memory.buffers > small.memory.buffers && !is_least(&fast));
    assert!(small.cnns[0].fps < fast.cnns[0].fps && small.cnns[0].fps > fast.cnns[0].fps / 1.15);
    assert!(!fast.search.choices[&fast.cnns[0].name].contains("one by one"));
}

#[test]
#[cfg_attr(debug_assertions, ignore = "takes minutes without optimisation")]
fn mobilenet_v2_reaches_the_liveness_bound() {
    let Some(path) = models().into_iter().find(|path| path.ends_with("mobilenet_v2_embed.onnx")) else {
        println!("skipped: no models in ../shared/models");
        return;
    };
    let small = smallest(path.to_str().unwrap(), RowsSpec::Default);
    assert!(small.memory.proven && small.memory.buffers <= 510_720, "{:?}", small.memory);
}

/// Only the layers that must go one by one, and each plan can be planned again from its code.
#[test]
fn few_layers_go_one_by_one_where_that_is_enough() {
    for (source, layers) in [("builtin:vgg16", "; one by one 3"), ("builtin:resnet50", "; one by one 15-16")]
    {
        let application = application(source, RowsSpec::None, None);
        let network = &application.cnns[0].network;
        let fast = plan(&application);
        let name = &fast.cnns[0].name;
        let of_layers = |point: &ParetoPoint| point.choices[name].ends_with(layers);
        assert!(fast.pareto.len() >= 2 && fast.pareto.last().is_some_and(of_layers), "{:?}", fast.pareto);
        for point in &fast.pareto {
            let choice = code::read(&point.choices[name], network).unwrap();
            let again = outcome_from(&Start::Picked(vec![choice]), &application).plan;
            assert!(csdfc_plan::check(&again).is_ok());
            assert_eq!((again.memory.total, again.cnns[0].fps), (point.memory, point.fps[name]), "{point:?}");
            assert_eq!(again.search.choices[name], point.choices[name]);
        }
    }
}
