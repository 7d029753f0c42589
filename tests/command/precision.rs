//! `csdfc plan --precision auto` as a user calls it.

use std::path::Path;

use csdfc_command::npy;
use csdfc_plan::plan::Plan;
use csdfc_runtime::run::{Data, Value};

use super::{fails, folder, run};

/// Frames of LeNet-5, so many of them, in a folder.
fn write_frames(folder: &Path, count: usize, dims: &[usize]) {
    std::fs::create_dir_all(folder).unwrap();
    for number in 0..count {
        let values =
            (0..dims.iter().product::<usize>()).map(|at| ((at * 7 + number) % 13) as f32 / 13.0).collect();
        let value = Value { dims: dims.to_vec(), data: Data::F32(values) };
        npy::write(&folder.join(format!("{number}.npy")), &value).unwrap();
    }
}

#[test]
fn what_is_chosen_is_stated_and_the_plan_needs_no_frames() {
    let folder = folder();
    let run = |args: &[&str]| run(folder.path(), args);
    write_frames(&folder.path().join("frames"), 3, &[1, 1, 32, 32]);
    let auto = ["plan", "builtin:lenet5", "--precision", "auto", "--max-error", "2e-2", "--mem", "150kB"];
    let table = run(&[&auto[..], &["--calibrate", "frames", "-o", "plan.json"]].concat());
    assert_eq!((table.code, table.stderr.as_str()), (0, ""), "{}", table.stdout);
    let line = table.stdout.lines().last().unwrap();
    assert!(
        line.starts_with("lenet5 error ≤ 2e-2: met, ") && line.contains(" on 3 frames; layers: "),
        "{line}"
    );
    std::fs::remove_dir_all(folder.path().join("frames")).unwrap();
    assert_eq!(run(&["check", "plan.json"]).code, 0);
    assert_eq!(run(&["run", "plan.json", "--random", "1"]).code, 0);

    // Without frames, four random ones; the same seed, the same plan. The plan goes to standard output alone.
    let json = run(&[&auto[..], &["--format", "json"]].concat());
    assert_eq!((json.code, json.stderr.as_str()), (0, ""));
    assert!(Plan::from_json(&json.stdout).unwrap().constraints.met);
    assert_eq!(run(&[&auto[..], &["--random", "4", "-o", "-"]].concat()).stdout, json.stdout);
    let told = run(&[&auto[..], &["--format", "json", "-v"]].concat()).stderr;
    assert!(told.contains("on 4 random frames"), "{told}");
}

#[test]
fn what_is_not_met_says_with_what_it_would_be() {
    let folder = folder();
    let with = |max_error: &str| {
        let plan =
            ["plan", "builtin:lenet5", "--precision", "auto", "--weights", "resident", "--mem", "150kB"];
        run(folder.path(), &[&plan[..], &["--max-error", max_error]].concat())
    };
    let unmet = with("0");
    assert_eq!(unmet.code, 2, "{}", unmet.stdout);
    assert!(unmet.stdout.contains("lenet5 error ≤ 0e0: met, 0.00e0 on 4 random frames"), "{}", unmet.stdout);
    let (_, words) = unmet.stderr.split_once("all constraints are met if lenet5 may err by ").unwrap();
    let enough = words.split_whitespace().next().unwrap();
    assert_eq!(with(enough).code, 0, "{words}");
}

#[test]
fn an_application_says_the_same() {
    let folder = folder();
    write_frames(&folder.path().join("app/frames"), 2, &[1, 1, 32, 32]);
    let text = r#"(cnns: [(model: "builtin:lenet5", precision: auto, accuracy: (max_error: 2e-2, calibrate: ["frames"]))],
        constraints: (memory: "150kB"))"#;
    std::fs::write(folder.path().join("app/app.ron"), text).unwrap();
    let table = run(folder.path(), &["plan", "app/app.ron"]);
    assert_eq!((table.code, table.stderr.as_str()), (0, ""));
    assert!(table.stdout.contains(" on 2 frames; "), "{}", table.stdout);
    // Options take precedence. Other commands take 32-bit floats.
    let random = run(folder.path(), &["plan", "app/app.ron", "--random", "5", "--max-error", "1e-9"]);
    assert!(
        random.stdout.contains("lenet5 error ≤ 1e-9: met, 0.00e0 on 5 random frames"),
        "{}",
        random.stdout
    );
    assert_eq!(run(folder.path(), &["inspect", "app/app.ron"]).code, 0);

    // Frames of several CNNs are in folders of their own.
    let two = r#"(cnns: [(name: "a", model: "builtin:lenet5"), (name: "b", model: "builtin:lenet5")])"#;
    std::fs::write(folder.path().join("two.ron"), two).unwrap();
    write_frames(&folder.path().join("both/a"), 1, &[1, 1, 32, 32]);
    write_frames(&folder.path().join("both/b"), 2, &[1, 1, 32, 32]);
    let both = run(
        folder.path(),
        &["plan", "two.ron", "--precision", "auto", "--calibrate", "both", "--mem", "300kB"],
    );
    assert!(
        both.stdout.contains(" on 1 frame; ") && both.stdout.contains(" on 2 frames; "),
        "{}",
        both.stdout
    );
}

#[test]
fn bad_calls_say_what_is_wrong() {
    let folder = folder();
    write_frames(&folder.path().join("other"), 1, &[1, 3, 28, 28]);
    std::fs::create_dir(folder.path().join("none")).unwrap();
    let auto = ["plan", "builtin:lenet5", "--precision", "auto"];
    for (args, words) in [
        (&["--calibrate", "missing"][..], "missing"),
        (&["--calibrate", "none"], "has no frame"),
        (&["--calibrate", "other"], "takes [1, 1, 32, 32], not [1, 3, 28, 28]"),
        (&["--max-error", "NaN"], "--max-error: the largest error of outputs"),
        (&["--max-error=-1"], "--max-error: the largest error of outputs"),
        (&["--random", "0"], "--random"),
        (&["--random", "2", "--calibrate", "other"], "--calibrate"),
        (&["--precision", "half"], "--precision"),
    ] {
        let said = fails(folder.path(), &[&auto[..], args].concat());
        assert!(said.contains(words), "{args:?}: {said}");
    }
    let said = fails(folder.path(), &["plan", "builtin:lenet5", "--random", "2"]);
    assert!(said.contains("--random") && said.contains("--precision auto"), "{said}");
    assert_eq!(run(folder.path(), &["plan", "builtin:lenet5", "--pareto", "front.json"]).code, 0);
    let said = fails(folder.path(), &[&auto[..], &["--from", "front.json"]].concat());
    assert!(said.contains("--from"), "{said}");
}
