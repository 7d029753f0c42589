//! The command as a user runs it: exit codes, where its output goes, and the errors for bad input.

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod analyze;
mod bad_input;
mod batch;
mod boxes;
mod exported;
mod front;
mod guide;
mod images;
mod interrupted;
mod memories;
mod offload;
mod onnx;
mod pack;
mod pages;
mod part;
mod precision;
mod profile;
mod quantized;
mod remedies;
mod report;
mod rows;
mod select;
mod state;
mod strategies;
mod stream;
mod update;
mod written;

use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use csdfc_plan::plan::Plan;

const CSDFC: &str = env!("CARGO_BIN_EXE_csdfc-under-test");

/// Columns and lines of a screen, which an error must fit.
const SCREEN: (usize, usize) = (100, 24);

/// How a command ended.
struct Ended {
    code: i32,
    stdout: String,
    stderr: String,
}

/// Runs the command in this folder, with nothing in its environment that changes what it says, and with this text on its
/// standard input.
fn run_given(folder: &Path, args: &[&str], text: &str) -> Ended {
    let mut command = Command::new(CSDFC);
    command.args(args).current_dir(folder).env_clear().env("LC_ALL", "C.UTF-8");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let ended = Ended {
        code: output.status.code().unwrap(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    };
    assert!(!ended.stderr.contains("panicked"), "{}", ended.stderr);
    ended
}

fn run(folder: &Path, args: &[&str]) -> Ended {
    run_given(folder, args, "")
}

/// Runs a command that must fail with an error of one screen and no result. Returns the error.
fn fails(folder: &Path, args: &[&str]) -> String {
    let ended = run(folder, args);
    assert_eq!((ended.code, ended.stdout.as_str()), (1, ""), "{args:?}: {}", ended.stderr);
    fits_a_screen(&ended.stderr);
    ended.stderr
}

fn fits_a_screen(text: &str) {
    let lines: usize = text.lines().map(|line| line.chars().count().div_ceil(SCREEN.0).max(1)).sum();
    assert!((1..=SCREEN.1).contains(&lines), "{text}");
}

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

#[test]
fn help_of_all_commands() {
    let folder = folder();
    for (name, args) in [
        ("help", &["--help"][..]),
        ("help_inspect", &["inspect", "--help"]),
        ("help_plan", &["plan", "--help"]),
        ("help_check", &["check", "--help"]),
        ("help_run", &["run", "--help"]),
        ("help_analyze", &["analyze", "--help"]),
        ("help_offload", &["offload", "--help"]),
        ("help_report", &["report", "--help"]),
        ("help_pack", &["pack", "--help"]),
        ("help_profile", &["profile", "--help"]),
        ("help_quantize", &["quantize", "--help"]),
        ("help_select", &["select", "--help"]),
    ] {
        let ended = run(folder.path(), args);
        assert_eq!((ended.code, ended.stderr.as_str()), (0, ""));
        insta::assert_snapshot!(name, ended.stdout);
    }
    assert_eq!(run(folder.path(), &["--version"]).stdout, concat!("csdfc ", env!("CARGO_PKG_VERSION"), "\n"));
}

#[test]
fn inspect_prints_the_layers() {
    let folder = folder();
    let ended = run(folder.path(), &["inspect", "builtin:lenet5"]);
    assert_eq!((ended.code, ended.stderr.as_str()), (0, ""));
    insta::assert_snapshot!("inspect_lenet5", ended.stdout);
    let json = run(folder.path(), &["inspect", "builtin:lenet5", "--format", "json"]);
    assert_eq!(json.code, 0);
    serde_json::from_str::<serde_json::Value>(&json.stdout).unwrap();
}

#[test]
fn plans_are_printed_piped_written_and_checked() {
    let folder = folder();
    std::fs::write(folder.path().join("model.onnx"), onnx::good()).unwrap();
    let run = |args: &[&str]| run(folder.path(), args);

    let table = run(&["plan", "model.onnx", "--mem", "16kB", "-o", "plan.json"]);
    assert_eq!((table.code, table.stderr.as_str()), (0, ""));
    insta::assert_snapshot!("plan_table", table.stdout);
    let accepted = run(&["check", "plan.json"]);
    assert_eq!((accepted.code, accepted.stderr.as_str()), (0, ""));
    insta::assert_snapshot!("check_accepts", accepted.stdout);

    // The same plan, whichever way it goes.
    let written = std::fs::read_to_string(folder.path().join("plan.json")).unwrap();
    let args = ["plan", "model.onnx", "--mem", "16kB"];
    assert_eq!(run(&[&args[..], &["--format", "json"]].concat()).stdout, written);
    assert_eq!(run(&[&args[..], &["-o", "-"]].concat()).stdout, written);
    assert_eq!(run_given(folder.path(), &["check", "-"], &written).code, 0);

    assert_eq!(run(&[&args[..], &["-o", "plan.ron"]].concat()).code, 0);
    assert_eq!(run(&["check", "plan.ron"]).code, 0);
    let ron = std::fs::read_to_string(folder.path().join("plan.ron")).unwrap();
    assert_eq!(Plan::from_ron(&ron).unwrap(), Plan::from_json(&written).unwrap());

    // From another folder the model is found where the plan says.
    std::fs::create_dir(folder.path().join("plans")).unwrap();
    assert_eq!(run(&[&args[..], &["-o", "plans/plan.json"]].concat()).code, 0);
    assert_eq!(run(&["check", "plans/plan.json"]).code, 0);
}

#[test]
fn a_refused_plan_is_an_honest_no() {
    let folder = folder();
    let plan = run(folder.path(), &["plan", "builtin:lenet5", "--format", "json"]).stdout;
    let mut plan = Plan::from_json(&plan).unwrap();
    plan.memory.total += 1;
    std::fs::write(folder.path().join("plan.json"), plan.to_json()).unwrap();
    let refused = run(folder.path(), &["check", "plan.json"]);
    assert_eq!((refused.code, refused.stderr.as_str()), (2, ""));
    insta::assert_snapshot!("check_refuses", refused.stdout);
    let refused = run(folder.path(), &["check", "plan.json", "--format", "json"]);
    assert_eq!(refused.code, 2);
    let verdict: serde_json::Value = serde_json::from_str(&refused.stdout).unwrap();
    assert_eq!((&verdict["accepted"], &verdict["missed"]), (&false.into(), &serde_json::Value::Null));
}

#[test]
fn unmet_constraints_name_the_nearest_and_write_the_plan() {
    let folder = folder();
    for (name, constraints) in [
        ("unmet_memory", &["--mem", "250kB"][..]),
        ("unmet_fps", &["--fps", "1000000"]),
        ("unmet_latency", &["--latency", "1us"]),
        ("unmet_latency_in_memory", &["--mem", "262kB", "--latency", "1us"]),
        ("unmet_both", &["--mem", "262kB", "--fps", "1000000"]),
        ("unmet_by_parameters", &["--mem", "100kB"]),
    ] {
        let ended = run(
            folder.path(),
            &[&["plan", "builtin:lenet5", "--weights", "resident", "-o", "plan.json"], constraints].concat(),
        );
        assert_eq!(ended.code, 2, "{name}");
        fits_a_screen(&ended.stderr);
        insta::assert_snapshot!(name, ended.stderr);
        let text = std::fs::read_to_string(folder.path().join("plan.json")).unwrap();
        let plan = Plan::from_json(&text).unwrap();
        assert!(!plan.constraints.met, "{name}");
        says_what_is_missed(folder.path(), name, constraints.len() / 2);
        std::fs::remove_file(folder.path().join("plan.json")).unwrap();
    }
}

/// `check` and `emit` of the nearest plan say which of its limits it misses, in text and as data. It is safe all the same.
fn says_what_is_missed(folder: &Path, name: &str, asked: usize) {
    let checked = run(folder, &["check", "plan.json"]);
    assert_eq!((checked.code, checked.stderr.as_str()), (0, ""), "{name}");
    let missed: Vec<&str> =
        checked.stdout.lines().filter_map(|line| line.strip_prefix("  limit NOT met: ")).collect();
    assert!(!missed.is_empty() && missed.len() <= asked, "{name}: {}", checked.stdout);
    insta::assert_snapshot!(format!("{name}_missed"), missed.join("\n"));
    let data = run(folder, &["check", "plan.json", "--format", "json"]);
    let data: serde_json::Value = serde_json::from_str(&data.stdout).unwrap();
    assert_eq!((&data["accepted"], &data["missed"]), (&true.into(), &missed.clone().into()), "{name}");
    let emitted = run(folder, &["emit", "plan.json", "-o", "crate"]);
    assert_eq!(emitted.code, 0, "{name}: {}", emitted.stderr);
    for limit in missed {
        let warning = format!("WARN the plan misses a limit that it was asked to keep: {limit}\n");
        assert!(emitted.stderr.contains(&warning), "{name}: {}", emitted.stderr);
    }
}

/// A limit that is just met is met, and a limit tighter by one is not: of memory, frame rate and latency.
#[test]
fn constraints_may_be_met_exactly() {
    let folder = folder();
    let lenet5 = |words: &[&str]| {
        let plan = ["plan", "builtin:lenet5", "--weights", "resident", "--format", "json"];
        run(folder.path(), &[&plan, words].concat())
    };
    let least = Plan::from_json(&lenet5(&["--mem", "min"]).stdout).unwrap().memory.total;
    let fastest = Plan::from_json(&lenet5(&[]).stdout).unwrap().cnns.remove(0);
    let cases = [
        ("--mem", least.to_string(), (least - 1).to_string()),
        ("--fps", fastest.fps.to_string(), fastest.fps.next_up().to_string()),
        ("--latency", format!("{}ns", fastest.latency_ns), format!("{}ns", fastest.latency_ns - 1)),
    ];
    for (option, enough, too_much) in cases {
        assert_eq!(lenet5(&[option, &enough]).code, 0, "{option} {enough}");
        assert_eq!(lenet5(&[option, &too_much]).code, 2, "{option} {too_much}");
    }
}

/// A pipeline on one processor shares its cores: four stages cannot be four times as fast as all four cores are on their
/// own, nor does a CNN gain anything from more workers than there are cores.
#[test]
fn a_processor_is_given_away_once() {
    let folder = folder();
    let app = |stages: &str, parallel: &str| {
        let text = format!(
            "(cnns: [(name: \"m\", model: \"builtin:mobilenet_v2\", partitions: [{stages}])], parallel: [[{parallel}]], \
             device: \"jetson-tx2-cpu\", rows: none)"
        );
        std::fs::write(folder.path().join("app.ron"), text).unwrap();
    };
    let fps = |words: &[&str]| {
        let ended = run(folder.path(), &[&["plan", "app.ron", "--format", "json"], words].concat());
        let plan = Plan::from_json(&ended.stdout).unwrap();
        let load: f64 = plan.partitions.iter().filter_map(|partition| partition.load).sum();
        assert!(load <= 4.0 * (1.0 + 1e-9), "{load}");
        (ended.code, plan.cnns[0].fps)
    };
    let two = "(name: \"p\", upto: \"block_9_add\"), (name: \"q\")";
    let four = "(name: \"p\", upto: \"block_3_project\"), (name: \"q\", upto: \"block_9_add\"), \
                (name: \"r\", upto: \"block_13_project\"), (name: \"s\")";
    app("(name: \"p\")", "\"p\"");
    let (alone, shared) = (fps(&["--threads", "1"]).1, fps(&["--threads", "4"]).1);
    assert!(3.0 * alone < shared && shared < 3.7 * alone, "{alone} {shared}");
    assert_eq!(fps(&["--threads", "8"]).1, shared);
    for (stages, parallel) in [(two, "\"p\", \"q\""), (four, "\"p\", \"q\", \"r\", \"s\"")] {
        app(stages, parallel);
        let count = parallel.split(',').count() as f64;
        let (one, all) = (fps(&["--threads", "1"]).1, fps(&["--threads", "4"]).1);
        assert!(alone < one && one <= count * alone, "{one}");
        // Nothing beats four cores that are busy with the work of one.
        assert!(one <= 4.0 * alone && all <= 4.0 * alone, "{one} {all}");
        assert_eq!(fps(&["--fps", "80"]).0, 2);
        assert_eq!(fps(&["--fps", "80", "--threads", "4"]).0, 2);
    }
}

#[test]
fn the_smallest_plan_is_where_mem_0_points() {
    let folder = folder();
    let text = fails(folder.path(), &["plan", "builtin:lenet5", "--mem", "0"]);
    assert!(text.contains("min"), "{text}");
    let smallest = run(folder.path(), &["plan", "builtin:lenet5", "--mem", "min", "--format", "json"]);
    assert_eq!(smallest.code, 0);
    let total = Plan::from_json(&smallest.stdout).unwrap().memory.total;
    let limit = |bytes: u64| {
        let bytes = bytes.to_string();
        let resident = ["--weights", "resident", "--format", "json"];
        run(folder.path(), &[&["plan", "builtin:lenet5", "--mem", &bytes][..], &resident].concat()).code
    };
    assert_eq!((limit(total), limit(total - 1)), (0, 2));
}

#[test]
fn progress_goes_to_standard_error() {
    let folder = folder();
    let quiet = run(folder.path(), &["plan", "builtin:lenet5", "--format", "json", "-q"]);
    let loud = run(folder.path(), &["plan", "builtin:lenet5", "--format", "json", "-vv"]);
    let json =
        run(folder.path(), &["plan", "builtin:lenet5", "--format", "json", "-vv", "--log-format", "json"]);
    assert_eq!(quiet.stderr, "");
    assert!(loud.stderr.contains("select"), "{}", loud.stderr);
    assert!(!json.stderr.is_empty());
    for line in json.stderr.lines() {
        serde_json::from_str::<serde_json::Value>(line).unwrap();
    }
    assert!(quiet.stdout == loud.stdout && loud.stdout == json.stdout);
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let mut child = Command::new(CSDFC)
        .args(["plan", "builtin:mobilenet_v2", "--format", "json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // More than a pipe holds is still to come when the reader goes.
    let mut some = [0; 10];
    child.stdout.take().unwrap().read_exact(&mut some).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
    assert_eq!(output.status.code(), Some(0));
}

/// What is asked of CNNs is answered in their own order, and workers without cores are pointed out.
#[test]
fn a_plan_in_words() {
    let folder = folder();
    let app = "(cnns: [(name: \"zeta\", model: \"builtin:lenet5\"), (name: \"alpha\", model: \"builtin:lenet5\")], \
               constraints: (fps: {\"alpha\": 1, \"zeta\": 2}))";
    std::fs::write(folder.path().join("app.ron"), app).unwrap();
    let ended = run(folder.path(), &["plan", "app.ron", "--threads", "4"]);
    let (zeta, alpha) =
        (ended.stdout.find("zeta ≥ 2 fps").unwrap(), ended.stdout.find("alpha ≥ 1 fps").unwrap());
    assert!(zeta < alpha && ended.stderr.is_empty(), "{}{}", ended.stdout, ended.stderr);
    assert!(!ended.stdout.contains("taking turns"), "{}", ended.stdout);
    let ended = run(folder.path(), &["plan", "app.ron", "--fps", "8000"]);
    assert!(
        ended.stdout.contains("taking turns at the rates asked for, they need 137 % of the time"),
        "{}",
        ended.stdout
    );
    let ended = run(folder.path(), &["plan", "app.ron", "--threads", "5"]);
    assert!(
        ended.stderr.contains("5 workers share each firing, but device generic has 4 cores"),
        "{}",
        ended.stderr
    );
}

/// A crate says how it is used, and that its frame rate is modelled, unless a device was measured.
#[test]
fn what_comes_after_emit() {
    let folder = folder();
    run(folder.path(), &["plan", "builtin:lenet5", "-o", "plan.json"]);
    let ended = run(folder.path(), &["emit", "plan.json", "-o", "a crate"]);
    assert!(
        ended.stdout.contains("cd 'a crate' && cargo run --release -- INPUT.npy --output"),
        "{}",
        ended.stdout
    );
    assert!(ended.stderr.contains("modelled, by device generic (analytic)"), "{}", ended.stderr);
    let plan = std::fs::read_to_string(folder.path().join("plan.json")).unwrap();
    let measured = plan.replace("\"basis\": \"analytic\"", "\"basis\": \"measured on a board\"");
    assert_ne!(measured, plan);
    std::fs::write(folder.path().join("measured.json"), measured).unwrap();
    let ended = run(folder.path(), &["emit", "measured.json", "-o", "measured"]);
    assert_eq!((ended.code, ended.stderr.as_str()), (0, ""));
}
