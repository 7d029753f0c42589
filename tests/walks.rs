//! What each search evaluates and finds, pinned: a change that makes a search go another way shows here, and is to be
//! understood. Whether what a search finds is good is the business of `fronts`, `methods`, `extended` and `whole`.

use std::fmt::Write;
use std::path::Path;

use csdfc::app::spec::Method;
use csdfc::cost::DeviceProfile;
use csdfc::driver;
use csdfc::search::known::Start;
use csdfc::search::watch::{Limit, Scope, Watch};
use csdfc::units::MemoryGoal;
use csdfc_tests::application;

const PIPELINE: &str = r#"(name: "pipeline", cnns: [(name: "a", model: "builtin:resnet8",
    partitions: [(name: "front", upto: "LAYER"), (name: "back")])], parallel: [["front", "back"]])"#;

#[test]
fn each_search_goes_as_it_went() {
    let pipeline = {
        let alone = application(r#"(name: "a", cnns: [(name: "a", model: "builtin:resnet8")])"#);
        let layers = &alone.cnns[0].network.layers;
        PIPELINE.replace("LAYER", &layers[layers.len() / 2].name)
    };
    let cases: &[(&str, &[Method])] = &[
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
        ),
        (&pipeline, &[Method::Simple, Method::Extended, Method::Paper, Method::Reuse]),
        (
            r#"(name: "two", cnns: [(name: "a", model: "builtin:paper_cnn1"), (name: "b", model: "builtin:lenet5")],
                constraints: (memory: "300kB"))"#,
            &[Method::Simple, Method::Extended, Method::Paper],
        ),
        (
            r#"(name: "at-once", cnns: [(name: "a", model: "builtin:paper_cnn1"), (name: "b", model: "builtin:lenet5")],
                parallel: [["a", "b"]], constraints: (fps: {"a": 500}))"#,
            &[Method::Extended, Method::Paper],
        ),
    ];
    let device = DeviceProfile::find("generic", Path::new("")).expect("a profile that comes with csdfc");
    let mut walks = String::new();
    for (text, methods) in cases {
        for (&method, is_least) in methods.iter().flat_map(|method| [(method, false), (method, true)]) {
            let mut application = application(text);
            application.search.method = Some(method);
            if is_least {
                application.constraints.memory = Some(MemoryGoal::Min);
            }
            (application.search.population, application.search.generations) = (24, 8);
            let paths = application.cnns.iter().map(|cnn| cnn.model.name.clone()).collect();
            let watch = Watch { limit: Limit::Evaluations(120), scope: Scope::Front, ..Watch::unwatched() };
            let start = Start::default();
            let plan = driver::plan_from(&start, &application, &device, paths, &watch, &|_| Ok(()))
                .expect("a plan")
                .plan;
            let (search, memory) = (&plan.search, &plan.memory);
            let _ = writeln!(
                walks,
                "{}, {}{}: {} evaluations, {}; {} bytes, bound {}",
                application.name,
                method.name(),
                if is_least { ", least memory" } else { "" },
                search.evaluations,
                search.stopped,
                memory.total,
                memory.bound
            );
            for point in &plan.pareto {
                let fps: Vec<String> = point.fps.values().map(|fps| format!("{fps:.3}")).collect();
                let _ = writeln!(walks, "    {} {}", point.memory, fps.join(" "));
            }
        }
    }
    insta::assert_snapshot!(walks);
}
