//! The evaluations and results of each search, pinned. If a change makes a search go another way, these tests show it,
//! and its author must understand why. Whether a result is good is tested by `fronts`, `methods`, `extended` and
//! `whole`.

use std::fmt::Write;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use csdfc_input::app::resolve::Application;
use csdfc_input::app::spec::Method;
use csdfc_input::device::DeviceProfile;
use csdfc_input::units::MemoryGoal;
use csdfc_planner::driver::{self, Planned};
use csdfc_planner::frame::choice::Choice;
use csdfc_planner::search::baseline::without_pipelines;
use csdfc_planner::search::budget::Budget;
use csdfc_planner::search::memo::Memo;
use csdfc_planner::search::start::Start;
use csdfc_planner::search::watch::{Scope, Shares, Watch};
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

/// Partitions of a CNN that would run at the same time run one after another. Those of different CNNs still meet, in
/// pairs.
#[test]
fn pipelines_are_taken_apart() {
    let halves = |name: &str| {
        format!(
            r#"(name: "{name}", model: "builtin:paper_pair", partitions: [(name: "{name}1", upto: "l1"), (name: "{name}2")])"#
        )
    };
    let text = |parallel: &str| {
        let (a, b) = (halves("a"), halves("b"));
        format!(r#"(name: "two", cnns: [{a}, {b}], parallel: {parallel})"#)
    };
    let apart = |parallel: &str| without_pipelines(&application(&text(parallel))).parallel;
    assert_eq!(apart(r#"[["a1"], ["a2"], ["b1"], ["b2"]]"#), [["a1"], ["a2"], ["b1"], ["b2"]]);
    assert_eq!(apart(r#"[["a1", "b1"], ["a2", "b2"]]"#), [["a1", "b1"], ["a2", "b2"]]);
    let of_both = apart(r#"[["a1", "a2", "b1", "b2"]]"#);
    let expected: &[&[&str]] =
        &[&["a1", "b1"], &["a1", "b2"], &["a1"], &["a2", "b1"], &["a2", "b2"], &["a2"], &["b1"], &["b2"]];
    assert_eq!(of_both, expected);
}

/// A search ends when it is asked to, or when its time is over. The remaining time is shared.
#[test]
fn a_watch_tells_when_it_is_over() {
    let (stop, go) = (AtomicBool::new(true), AtomicBool::new(false));
    let watch = |budget, stop| Watch { budget, stop, ..Watch::unwatched() };
    let (hour, no_time) = (Duration::from_secs(3600), Duration::ZERO);
    for (budget, stop, stopped, over) in [
        (Budget::Default, &go, false, false),
        (Budget::Evaluations(0), &go, false, false),
        (Budget::Time(hour), &go, false, false),
        (Budget::Time(no_time), &go, false, true),
        (Budget::Default, &stop, true, true),
        (Budget::Time(hour), &stop, true, true),
    ] {
        let watch = watch(budget, stop);
        assert_eq!((watch.is_stopped(), watch.is_over()), (stopped, over), "{budget:?}");
    }
    let Budget::Time(share) = watch(Budget::Time(hour), &go).share(4).budget else {
        panic!("a share of a time is a time");
    };
    assert!(share <= hour / 4 && share > hour / 5, "{share:?}");
    assert_eq!(watch(Budget::Evaluations(8), &go).share(4).budget, Budget::Evaluations(8));
}

/// Each of several searches has an equal part of what the ones before have left; steps are not divided.
#[test]
fn searches_share_a_watch() {
    let hour = Duration::from_secs(3600);
    let watch = |budget| Watch { budget, ..Watch::unwatched() };
    let shares = Shares::new(&watch(Budget::Time(hour)), 3);
    // None of them takes any time, so that the next one has more. After the last, the rest is for whoever asks.
    for parts in [3, 2, 1, 1] {
        let Budget::Time(share) = shares.next().budget else { panic!("a share of a time is a time") };
        assert!(share <= hour / parts && share > hour / (parts + 1), "{share:?}");
    }
    let shares = Shares::new(&watch(Budget::Evaluations(8)), 3);
    assert_eq!(
        (shares.next().budget, shares.next().budget),
        (Budget::Evaluations(8), Budget::Evaluations(8))
    );
    // If no time is left, the share is zero.
    assert_eq!(
        Shares::new(&watch(Budget::Time(Duration::ZERO)), 3).next().budget,
        Budget::Time(Duration::ZERO)
    );
}

/// Searches for CNNs one after another share the available time, and use all of it.
#[test]
fn a_search_takes_the_time_that_it_has() {
    let mut application = application(
        r#"(name: "two", cnns: [(name: "a", model: "builtin:resnet8"), (name: "b", model: "builtin:resnet8")])"#,
    );
    application.search.method = Some(Method::Extended);
    let device = DeviceProfile::find("generic", Path::new("")).expect("a profile that comes with csdfc");
    let time = Duration::from_millis(600);
    let (begun, paths) = (Instant::now(), vec!["a".into(), "b".into()]);
    let watch = Watch { budget: Budget::Time(time), ..Watch::unwatched() };
    let planned = driver::plan_from(&Start::default(), &application, &device, paths, &watch, &|_| Ok(()));
    assert_eq!(planned.expect("a plan").plan.search.stopped, "time");
    assert!(begun.elapsed() >= time, "{:?}", begun.elapsed());
}

/// A plan is the same whether its searches were made before or not: they are only taken for one another if nothing that
/// matters differs.
#[test]
fn searches_that_are_remembered_change_no_plan() {
    let resnet8 = |rest: &str| application(&format!("(cnns: [(model: \"builtin:resnet8\"{rest})"));
    let mut applications: Vec<Application> = [
        ")], constraints: (memory: \"390kB\")",
        ")], constraints: (memory: \"380kB\")",
        ")], constraints: (memory: \"min\")",
        ")], constraints: (memory: \"380kB\", fps: 500)",
        ")], constraints: (memory: \"380kB\"), threads: 2",
        ")], constraints: (memory: \"380kB\"), search: (seed: 2)",
        ")], constraints: (memory: \"380kB\"), search: (method: simple)",
        ")], constraints: (memory: \"380kB\"), storage: edges",
        ", precision: half)], constraints: (memory: \"200kB\")",
        ")], constraints: (memory: \"120kB\"), weights: streamed",
        ")], constraints: (memory: \"min\"), weights: streamed",
    ]
    .map(resnet8)
    .into();
    applications.push(application("(cnns: [(model: \"builtin:lenet5\")], constraints: (memory: \"min\"))"));
    let (memo, mut alone) = (Memo::default(), 0);
    for device in ["generic", "epyc-vm"] {
        let device = DeviceProfile::find(device, Path::new("")).unwrap();
        for application in &applications {
            let planned = |memo| {
                let watch = Watch { memo: Some(memo), budget: Budget::Evaluations(60), ..Watch::unwatched() };
                let (start, paths) = (Start::default(), vec!["a model".to_owned()]);
                driver::plan_from(&start, application, &device, paths, &watch, &|_| Ok(())).unwrap().plan
            };
            let own = Memo::default();
            assert_eq!(planned(&memo), planned(&own));
            alone += own.searches();
        }
    }
    // Of each device, two limits of resnet8 and its least memory, and two of its streamed weights.
    assert!(memo.searches() + 6 <= alone, "{} of {alone}", memo.searches());
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
            r#"(name: "too-large", cnns: [(name: "a", model: "builtin:resnet8")], constraints: (memory: "300kB"), weights: resident)"#,
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
            let watch = Watch { budget: Budget::Evaluations(120), scope, ..Watch::unwatched() };
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
