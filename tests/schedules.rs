//! Schedules and emitted code of real networks, as snapshots: whoever changes how layers are scheduled or how crates are
//! written sees here how they change.

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::fmt::Write;
use std::path::{Path, PathBuf};

use csdfc_input::app::resolve::Application;
use csdfc_input::app::spec::RowsSpec;
use csdfc_input::units::MemoryGoal;
use csdfc_plan::plan::Plan;
use csdfc_tests::{app, crates, plan};

/// An application planned for the least memory, so that many layers go by parts.
fn smallest(name: &str) -> (Application, Plan) {
    let mut application = app(name).resolve().unwrap();
    application.constraints.memory = Some(MemoryGoal::Min);
    let plan = plan(&application);
    (application, plan)
}

/// The schedule of each partition in the main paper's notation, in lines that a reader can take in.
fn notations(plan: &Plan) -> String {
    const WIDTH: usize = 100;
    let mut text = String::new();
    for partition in &plan.partitions {
        writeln!(text, "partition {}", partition.name).unwrap();
        let mut line = String::new();
        for part in partition.notation.split_inclusive(',') {
            if line.chars().count() + part.chars().count() > WIDTH {
                writeln!(text, "  {line}").unwrap();
                line.clear();
            }
            line += part;
        }
        writeln!(text, "  {line}").unwrap();
    }
    text
}

/// Of each emitted model, the functions that run a frame of a partition: the schedule as loops.
fn loops(files: &[(PathBuf, Vec<u8>)]) -> String {
    let mut text = String::new();
    // The folders below hold the kernels.
    let is_model = |path: &Path| path.parent() == Some(Path::new("src"));
    for (path, bytes) in files.iter().filter(|(path, _)| is_model(path)) {
        let mut is_inside = false;
        for line in std::str::from_utf8(bytes).unwrap().lines() {
            if line.starts_with("    fn run") {
                is_inside = true;
                writeln!(text, "// {}", path.display()).unwrap();
            }
            if is_inside {
                writeln!(text, "{line}").unwrap();
            }
            is_inside &= line != "    }";
        }
    }
    text
}

fn check(name: &str) {
    let (application, plan) = smallest(&format!("{name}.ron"));
    insta::assert_snapshot!(format!("{name}_in_notation"), notations(&plan));
    insta::assert_snapshot!(format!("{name}_as_loops"), loops(&crates::emitted(&application, &plan)));
}

#[test]
fn one_network_by_parts() {
    check("mobilenet_v2");
}

#[test]
fn two_stages() {
    check("pipeline");
}

#[test]
fn three_networks() {
    check("three_cnns");
}

/// Both models of the main paper's example as a whole: one by parts, as in Table 9, the other a pipeline.
#[test]
fn emitted_models() {
    let mut opened = app("adaptive_classifier.ron");
    opened.spec.rows = RowsSpec::Layers(["l3", "l4", "l5"].map(|layer| (format!("cnn1/{layer}"), 1)).into());
    let application = opened.resolve().unwrap();
    let files = crates::emitted(&application, &plan(&application));
    for name in ["cnn1", "cnn2"] {
        let (_, source) = files.iter().find(|(path, _)| path.ends_with(format!("src/{name}.rs"))).unwrap();
        let source = std::str::from_utf8(source).unwrap();
        // Its first paragraph is the same in every file of a crate, and states csdfc's version.
        insta::assert_snapshot!(name, source.split_once("\n\n").unwrap().1);
    }
}
