//! What each search evaluates and finds, pinned: a change that makes a search go another way shows here, and is to be
//! understood. Whether what a search finds is good is the business of `fronts`, `methods`, `extended` and `whole`.

use std::fmt::Write;
use std::path::Path;

use csdfc::app::resolve::Application;
use csdfc::app::spec::Method;
use csdfc::cost::DeviceProfile;
use csdfc::driver::{self, Planned};
use csdfc::frame::choice::Choice;
use csdfc::search::known::Start;
use csdfc::search::watch::{Limit, Scope, Watch};
use csdfc::units::MemoryGoal;
use csdfc_tests::application;

const PIPELINE: &str = r#"(name: "pipeline", cnns: [(name: "a", model: "builtin:resnet8",
    partitions: [(name: "front", upto: "LAYER"), (name: "back")])], parallel: [["front", "back"]])"#;

const TASKS: [&str; 4] = ["front", "least memory", "from what is known", "one plan"];

/// A half and a third of the layers by parts, as two old plans may have had them.
fn known(application: &Application) -> Start {
    let prefix = |share: usize| {
        let networks = application.cnns.iter().map(|cnn| &cnn.network);
        networks.map(|network| Some(Choice::prefix(network, network.layers.len() / share))).collect()
    };
    Start::Search(vec![prefix(2), prefix(3)])
}

#[test]
fn each_search_goes_as_it_went() {
    let pipeline = {
        let alone = application(r#"(name: "a", cnns: [(name: "a", model: "builtin:resnet8")])"#);
        let layers = &alone.cnns[0].network.layers;
        PIPELINE.replace("LAYER", &layers[layers.len() / 2].name)
    };
    let cases: &[(&str, &[Method], &[&str])] = &[
        (
            r#"(name: "one", cnns: [(name: "a", model: "builtin:resnet8")])"#,
            &[
                Method::Simple,
                Method::Extended,
                Method::Paper,
                Method::PaperPrinted,
                Method::Parts,
                Method::Reuse,
            ],
            &TASKS,
        ),
        (&pipeline, &[Method::Simple, Method::Extended, Method::Paper, Method::Reuse], &TASKS),
        (
            r#"(name: "in-time", cnns: [(name: "a", model: "builtin:resnet8")],
                constraints: (memory: "min", latency: "1.65ms"))"#,
            &[Method::Simple, Method::Extended],
            &TASKS,
        ),
        (
            r#"(name: "too-large", cnns: [(name: "a", model: "builtin:resnet8")], constraints: (memory: "300kB"))"#,
            &[Method::Extended, Method::Paper],
            &TASKS,
        ),
        (
            r#"(name: "modules", cnns: [(name: "a", model: "builtin:googlenet")])"#,
            &[Method::Extended],
            &TASKS[..1],
        ),
        (
            r#"(name: "two", cnns: [(name: "a", model: "builtin:paper_cnn1"), (name: "b", model: "builtin:lenet5")],
                constraints: (memory: "300kB"))"#,
            &[Method::Simple, Method::Extended, Method::Paper],
            &TASKS,
        ),
        (
            r#"(name: "at-once", cnns: [(name: "a", model: "builtin:paper_cnn1"), (name: "b", model: "builtin:lenet5")],
                parallel: [["a", "b"]], constraints: (fps: {"a": 500}))"#,
            &[Method::Extended, Method::Paper],
            &TASKS,
        ),
    ];
    let device = DeviceProfile::find("generic", Path::new("")).expect("a profile that comes with csdfc");
    let mut walks = String::new();
    for (text, methods, tasks) in cases {
        for (&method, task) in methods.iter().flat_map(|method| tasks.iter().map(move |task| (method, *task)))
        {
            let mut application = application(text);
            application.search.method = Some(method);
            let mut start = Start::default();
            match task {
                "least memory" => application.constraints.memory = Some(MemoryGoal::Min),
                "from what is known" => start = known(&application),
                _ => {}
            }
            (application.search.population, application.search.generations) = (24, 8);
            let paths = application.cnns.iter().map(|cnn| cnn.model.name.clone()).collect();
            let scope = if task == "one plan" { Scope::Plan } else { Scope::Front };
            let watch = Watch { limit: Limit::Evaluations(120), scope, ..Watch::unwatched() };
            let planned = driver::plan_from(&start, &application, &device, paths, &watch, &|_| Ok(()));
            let Planned { plan, shortfall, .. } = planned.expect("a plan");
            let (search, memory) = (&plan.search, &plan.memory);
            let _ = writeln!(
                walks,
                "{}, {}, {task}: {} evaluations, {}; {} bytes, bound {}",
                application.name,
                method.name(),
                search.evaluations,
                search.stopped,
                memory.total,
                memory.bound
            );
            if let Some(shortfall) = shortfall {
                let (least, at_rates) = (shortfall.least_memory, shortfall.memory_at_rates);
                let _ = writeln!(walks, "    not met: {least:?} bytes at least, {at_rates:?} at these rates");
            }
            for point in &plan.pareto {
                let fps: Vec<String> = point.fps.values().map(|fps| format!("{fps:.3}")).collect();
                let _ = writeln!(walks, "    {} {}", point.memory, fps.join(" "));
            }
        }
    }
    insta::assert_snapshot!(walks);
}
