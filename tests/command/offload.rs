//! `csdfc offload`.

use serde_json::Value;

use super::{Path, fails, fits_a_screen, folder, run};

const LAYER: [&str; 5] = ["offload", "--input", "5x5x2", "--filter", "3x3x2"];

fn json(args: &[&str]) -> Value {
    let folder = folder();
    let ended = run(folder.path(), &[args, &["--format", "json"]].concat());
    assert_eq!((ended.code, ended.stderr.as_str()), (0, ""));
    serde_json::from_str(&ended.stdout).unwrap()
}

#[test]
fn a_layer_is_offloaded_simulated_written_and_drawn() {
    let folder = folder();
    let run = |args: &[&str]| run(folder.path(), &[&LAYER[..], args].concat());
    let ended = run(&["--group", "2", "--simulate"]);
    assert_eq!((ended.code, ended.stderr.as_str()), (0, ""));
    insta::assert_snapshot!("offload_layer", ended.stdout);

    let files = ["-o", "s.csv", "--trace", "t.json", "--picture", "p.svg"];
    assert_eq!(run(&[&["--pe", "120", "--strategy", "zigzag"], &files[..]].concat()).code, 0);
    let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
    assert_eq!(read("s.csv"), "0,1,2\n5,4,3\n6,7,8\n");
    let trace: Value = serde_json::from_str(&read("t.json")).unwrap();
    assert_eq!(trace["steps"][1]["compute"]["patches"], serde_json::json!([5, 4, 3]));
    assert!(read("p.svg").starts_with("<svg"));
    assert_eq!(run(&["--group", "3", "--picture", "p.html"]).code, 0);
    assert!(read("p.html").contains("[[0,1,2],[3,4,5],[6,7,8]]"));

    // The written file can be read as a strategy.
    let again = run(&["--group", "3", "--strategy", "s.csv", "--format", "json"]);
    let again: Value = serde_json::from_str(&again.stdout).unwrap();
    assert_eq!((again["duration"].as_u64(), again["strategy"].as_str()), (Some(28), Some("file")));
}

#[test]
fn machines_read_what_the_strategy_is() {
    let best = json(&["offload", "--input", "5x5", "--filter", "3x3", "--group", "2"]);
    assert_eq!((best["duration"].as_u64(), best["bound"].as_u64()), (Some(31), Some(31)));
    assert_eq!((best["optimal"].as_bool(), best["steps"].as_u64()), (Some(true), Some(5)));
    assert_eq!(best["groups"].as_array().map(Vec::len), Some(5));
    let row = |more: &[&str]| {
        let args = ["offload", "--input", "32x32x1", "--filter", "5x5x6", "--strategy", "row"];
        json(&[&args[..], more].concat())
    };
    assert_eq!(row(&["--group", "1"])["duration"].as_u64(), Some(5264));
    assert_eq!(row(&["--pe", "4200"])["duration"].as_u64(), Some(1052));
    assert_eq!(row(&["--group", "1", "--count-writes"])["duration"].as_u64(), Some(5264 + 784));
    let weighed = row(&["--group", "28", "--tl", "2", "--tacc", "10"]);
    assert_eq!(weighed["duration"].as_u64(), Some(2 * 1024 + 280));
}

#[test]
fn a_model_is_mapped() {
    let folder = folder();
    let accelerator = "(name: \"small\", pe: 100000, mem_elements: 5000, tl: 1, tw: 1, tacc: 100)";
    std::fs::write(folder.path().join("a.ron"), accelerator).unwrap();
    let args = ["offload", "builtin:lenet5", "--accelerator", "a.ron"];
    let ended = run(folder.path(), &args);
    assert_eq!((ended.code, ended.stderr.as_str()), (0, ""));
    insta::assert_snapshot!("offload_model", ended.stdout);
    let none = run(folder.path(), &[&args[..], &["--mem-elements", "800"]].concat());
    assert_eq!(none.code, 2);
    assert!(
        none.stdout.contains("no strategy fits C5") && none.stdout.contains("--mem-elements"),
        "{}",
        none.stdout
    );
}

#[test]
fn what_breaks_a_bound_is_an_honest_no() {
    let folder = folder();
    let args = ["offload", "--input", "6x6", "--filter", "3x3", "--group", "2", "--strategy", "row"];
    let ended = run(folder.path(), &[&args[..], &["--reload", "2"]].concat());
    assert_eq!(ended.code, 2);
    insta::assert_snapshot!("offload_unmet", ended.stdout);
}

#[test]
fn bad_layers_are_explained() {
    let folder = folder();
    let check = |name: &str, args: &[&str]| {
        let text = fails(folder.path(), &[&["offload"], args].concat());
        fits_a_screen(&text);
        insta::assert_snapshot!(format!("offload_{name}"), text);
    };
    let layer = |input, filter| ["--input", input, "--filter", filter];
    let small = layer("5x5x2", "3x3x4");
    check("filter", &[&layer("5x5", "6x3")[..], &["--group", "2"]].concat());
    check("group_0", &[&small[..], &["--group", "0"]].concat());
    check("no_group", &small);
    check("no_layer", &["--group", "2"]);
    check("sizes", &[&layer("5by5", "3x3")[..], &["--group", "2"]].concat());
    check("huge", &[&layer("100000x100000", "3x3")[..], &["--group", "2"]].concat());
    check("memory", &[&small[..], &["--group", "2", "--mem-elements", "93"]].concat());
    check("pe", &[&small[..], &["--pe", "71"]].concat());
    check("strategy", &[&small[..], &["--group", "2", "--strategy", "zigzga"]].concat());
    check("accelerator", &[&small[..], &["--accelerator", "missing.ron"]].concat());
    std::fs::write(folder.path().join("twice.csv"), "0,1\n2,3\n4,1\n5\n6\n7,8\n").unwrap();
    check("file", &[&small[..], &["--group", "2", "--strategy", "twice.csv"]].concat());
}

#[test]
fn large_layers_take_bounded_work() {
    let args = ["offload", "--input", "250x250", "--filter", "3x3", "--group", "60", "--budget", "1000"];
    let large = json(&args);
    assert_eq!(large["optimal"].as_bool(), Some(false));
}

#[test]
fn a_time_budget_is_said_to_have_ended_the_search() {
    let args = ["offload", "--input", "20x20", "--filter", "3x3", "--group", "3", "--budget", "0.2s"];
    assert_eq!(json(&args)["stopped"].as_str(), Some("time"));
}

/// If the integer program is not known to be solvable for a layer, a warning says so before it begins.
#[test]
fn the_limit_of_the_program_is_stated_first() {
    let layer = |input: &'static str| {
        run(
            Path::new("."),
            &[
                "offload",
                "--input",
                input,
                "--filter",
                "3x3",
                "--group",
                "2",
                "--strategy",
                "program",
                "--budget",
                "1s",
            ],
        )
    };
    let (small, large) = (layer("5x5"), layer("6x6"));
    assert!(!small.stderr.contains("more than 9 patches"), "{}", small.stderr);
    assert!(large.stderr.contains("more than 9 patches, and this layer has 16"), "{}", large.stderr);
}
