//! Ctrl-C and `--budget` end whatever phase a command is in, with the best plan so far. Without them, each of these
//! commands works for a minute or more.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use csdfc_plan::plan::Plan;
use tempfile::TempDir;

use super::{CSDFC, Ended, folder, run};

/// How long the end may take on a busy machine, without optimisation.
const PATIENCE: Duration = Duration::from_secs(20);

/// Runs the command, and presses Ctrl-C after a while.
fn interrupted(folder: &TempDir, words: &[&str], after: Duration) -> (Ended, Duration) {
    let mut command = Command::new(CSDFC);
    command.args(words).current_dir(folder.path()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child: Child = command.spawn().unwrap();
    std::thread::sleep(after);
    let pressed = Instant::now();
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    let ended = Ended {
        code: output.status.code().unwrap(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    };
    (ended, pressed.elapsed())
}

#[test]
#[cfg(unix)]
fn ctrl_c_ends_every_phase_of_planning_with_a_plan() {
    let seconds = Duration::from_secs;
    for (phase, words, after) in [
        ("search", &["builtin:mobilenet_v2", "--mem", "15MB", "--budget", "300s"][..], 1),
        ("joint", &["builtin:mobilenet_v2", "--device", "epyc-vm", "--mem", "16MB", "--budget", "300s"], 2),
        ("precisions", &["builtin:densenet121", "--precision", "auto", "--mem", "min"], 3),
        ("streaming", &["builtin:densenet121", "--mem", "1MB", "--budget", "300s"], 3),
    ] {
        let words = [&["plan", "--format", "json"], words].concat();
        let (ended, late) = interrupted(&folder(), &words, seconds(after));
        let plan = Plan::from_json(&ended.stdout).unwrap();
        assert_eq!(ended.code, if plan.constraints.met { 0 } else { 2 }, "{phase}: {}", ended.stderr);
        assert!(csdfc_plan::check::check(&plan).is_ok(), "{phase}");
        assert!(ended.stderr.contains("interrupted: the "), "{phase}: {}", ended.stderr);
        assert!(late < PATIENCE, "{phase}: {late:?}");
    }
}

#[test]
#[cfg(unix)]
fn ctrl_c_ends_analyses_packings_and_mappings_with_what_there_is() {
    let buffers: String = (0..400_u64)
        .map(|i| {
            let (lower, size) = (i * 7919 % 97, 1 + i * 104_729 % 1009);
            format!("b{i},{lower},{},{size}\n", lower + 3 + i * 31 % 41)
        })
        .collect();
    let file = format!("id,lower,upper,size\n{buffers}");
    for (phase, words, after, found) in [
        ("packing", &["pack", "buffers.csv", "--budget", "300s"][..], 1, "asked"),
        (
            "analysis",
            &["analyze", "builtin:densenet121", "--rows", "all", "--pareto", "--budget", "300s"],
            2,
            "interrupted: ",
        ),
        (
            "mapping",
            &["offload", "builtin:mobilenet_v2", "--group", "4", "--budget", "300s"],
            2,
            "interrupted: ",
        ),
    ] {
        let folder = folder();
        std::fs::write(folder.path().join("buffers.csv"), &file).unwrap();
        let (ended, late) =
            interrupted(&folder, &[words, &["--format", "json"]].concat(), Duration::from_secs(after));
        assert!(ended.code == 0 || ended.code == 2, "{phase}: {}", ended.stderr);
        serde_json::from_str::<serde_json::Value>(&ended.stdout).unwrap();
        assert!((ended.stdout + &ended.stderr).contains(found), "{phase}");
        assert!(late < PATIENCE, "{phase}: {late:?}");
    }
}

/// Layers of which time and memory of all primitives lie near one line, so that hardly any selection beats another.
fn costs(layers: u64) -> String {
    let option = |number: u64| {
        let memory = number * number * 7919 % 99_991 + 1;
        let time = 1_000_000 - 9 * memory + number * number % 7;
        serde_json::json!({
            "primitive": "p", "in": "CHW", "out": "CHW", "time": time, "memory": memory,
        })
    };
    let layer = |at: u64| {
        let options: Vec<_> = (0..12).map(|of| option(12 * at + of + 1)).collect();
        serde_json::json!({ "name": format!("l{at}"), "kind": "conv", "options": options })
    };
    serde_json::json!({ "layers": (0..layers).map(layer).collect::<Vec<_>>(), "edges": [] }).to_string()
}

#[test]
#[cfg(unix)]
fn ctrl_c_ends_selections_with_the_best_so_far() {
    let (costs, memory) = (costs(80), "2000000KiB");
    for (phase, words, field) in [
        ("budget", &["--mem", memory][..], "time"),
        ("workspace", &["--objective", "workspace", "--mem", memory], "workspace"),
        ("front", &["--front"], "front"),
        ("front of workspaces", &["--front", "--objective", "workspace", "--mem", memory], "front"),
    ] {
        let folder = folder();
        std::fs::write(folder.path().join("costs.json"), &costs).unwrap();
        let words = [&["select", "--instance", "costs.json", "--format", "json"], words].concat();
        let (ended, late) = interrupted(&folder, &words, Duration::from_secs(1));
        assert_eq!(ended.code, 0, "{phase}: {}", ended.stderr);
        let found: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
        assert_eq!(found["stopped"], "asked", "{phase}: {found}");
        assert!(!found[field].is_null() && found[field] != serde_json::json!([]), "{phase}: {found}");
        assert!(late < PATIENCE, "{phase}: {late:?}");
    }
}

#[test]
#[cfg(unix)]
fn ctrl_c_ends_the_mapping_of_a_layer_with_the_best_so_far() {
    let small = ["--input", "6x6", "--filter", "3x3", "--group", "3"];
    let large = ["--input", "64x64", "--filter", "3x3x8", "--group", "4"];
    for (phase, words) in [
        ("annealing", [&large[..], &["--budget", "300s"]].concat()),
        ("program", [&small[..], &["--strategy", "program", "--budget", "300s"]].concat()),
    ] {
        let words = [&["offload", "--format", "json"], words.as_slice()].concat();
        let (ended, late) = interrupted(&folder(), &words, Duration::from_secs(2));
        assert_eq!(ended.code, 0, "{phase}: {}", ended.stderr);
        let found: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
        assert_eq!((&found["stopped"], &found["met"]), (&"asked".into(), &true.into()), "{phase}: {found}");
        assert!(late < PATIENCE, "{phase}: {late:?}");
    }
}

/// A result that is half done is of no use, and no file has a part of it.
#[test]
#[cfg(unix)]
fn ctrl_c_ends_what_has_no_half_result() {
    for (phase, words) in [
        ("quantizing", &["quantize", "builtin:mobilenet_v2", "-o", "int8.onnx", "--random", "200"][..]),
        (
            "program",
            &[
                "select",
                "--instance",
                "costs.json",
                "--method",
                "program",
                "-o",
                "out.json",
                "--mem",
                "2000000KiB",
            ],
        ),
    ] {
        let folder = folder();
        std::fs::write(folder.path().join("costs.json"), costs(80)).unwrap();
        let (ended, late) = interrupted(&folder, words, Duration::from_secs(2));
        assert_eq!((ended.code, ended.stdout.as_str()), (130, ""), "{phase}: {}", ended.stderr);
        assert!(ended.stderr.contains("interrupted; nothing was written"), "{phase}: {}", ended.stderr);
        let files: Vec<_> =
            std::fs::read_dir(folder.path()).unwrap().map(|file| file.unwrap().file_name()).collect();
        assert_eq!(files, ["costs.json"], "{phase}");
        assert!(late < PATIENCE, "{phase}: {late:?}");
    }
}

#[test]
fn a_budget_holds_for_all_phases_together() {
    let folder = folder();
    let budget = Duration::from_secs(3);
    for (phase, words) in [
        ("streaming", &["plan", "builtin:densenet121", "--mem", "1MB"][..]),
        ("precisions", &["plan", "builtin:densenet121", "--precision", "auto", "--mem", "min"]),
        // Nine layers, which share the time.
        ("offload", &["offload", "builtin:resnet8", "--group", "4"]),
    ] {
        let begun = Instant::now();
        let ended = run(folder.path(), &[words, &["--budget", "3s"]].concat());
        assert!(ended.code == 0 || ended.code == 2, "{phase}: {}", ended.stderr);
        assert!(begun.elapsed() < budget + PATIENCE, "{phase}: {:?}", begun.elapsed());
    }
}
