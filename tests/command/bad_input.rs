//! Bad input: an error of one screen that says what to do, exit code 1, no panic, no partial output.

use std::path::Path;

use super::{Ended, fails, fits_a_screen, folder, onnx, run};

const APP: &str = r#"(
  name: "app",
  cnns: [
    (name: "a", model: "builtin:resnet8", partitions: [(name: "p", upto: "stack1_add"), (name: "q")]),
  ],
)
"#;

/// Names in a folder, sorted.
fn listing(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// Runs `csdfc plan` on these bytes under this name, with more arguments, and wants an error and no file.
fn refused(snapshot: &str, file: &str, bytes: &[u8], args: &[&str]) {
    let folder = folder();
    std::fs::write(folder.path().join(file), bytes).unwrap();
    let text = fails(folder.path(), &[&["plan", file, "-o", "plan.json"], args].concat());
    assert_eq!(listing(folder.path()), [file]);
    insta::assert_snapshot!(snapshot, text);
}

#[test]
fn applications() {
    let app = |snapshot: &str, from: &str, to: &str| {
        assert!(APP.contains(from));
        refused(snapshot, "app.ron", APP.replace(from, to).as_bytes(), &[]);
    };
    app("app_unknown_field", "name: \"app\"", "nmae: \"app\"");
    app("app_unknown_layer", "stack1_add", "stack1_sum");
    app("app_unknown_builtin", "builtin:resnet8", "builtin:resnet9");
    app("app_missing_model", "builtin:resnet8", "missing.onnx");
    app("app_truncated", ",\n)\n", "");
    let three = "(name: \"p\", upto: \"stack1_add\"), (name: \"r\", upto: \"stack2_add\"), (name: \"q\")";
    let two = "(name: \"p\", upto: \"stack1_add\"), (name: \"q\")";
    for (snapshot, parallel) in
        [("app_gap", "[[\"p\", \"q\"], [\"r\"]]"), ("app_chain", "[[\"p\", \"r\"], [\"r\", \"q\"]]")]
    {
        let text = APP.replace(two, three).replace("  ],\n)", &format!("  ],\n  parallel: {parallel},\n)"));
        refused(snapshot, "app.ron", text.as_bytes(), &[]);
    }
    refused("app_empty", "app.ron", b"", &[]);
    refused("app_not_text", "app.ron", &[0xff, 0xfe, 0x00, 0x80], &[]);
    refused("app_mem_0", "app.ron", APP.as_bytes(), &["--mem", "0"]);
    refused("app_mem_banana", "app.ron", APP.as_bytes(), &["--mem", "banana"]);
    refused("app_mem_negative", "app.ron", APP.as_bytes(), &["--mem", "-5"]);
    refused("app_fps_0", "app.ron", APP.as_bytes(), &["--fps", "0"]);
    refused("app_rows_unknown", "app.ron", APP.as_bytes(), &["--rows", "stack9=1"]);
    refused("app_device_unknown", "app.ron", APP.as_bytes(), &["--device", "abacus"]);
}

#[test]
fn models() {
    let good = onnx::good();
    let conv: onnx::Node<'_> = ("Conv", &["x", "w"], "a");
    refused("onnx_empty", "model.onnx", b"", &[]);
    refused("onnx_truncated", "model.onnx", &good[..good.len() / 2], &[]);
    refused("onnx_text", "model.onnx", b"this is no model", &[]);
    refused(
        "onnx_shape_mismatch",
        "model.onnx",
        &onnx::model(&[4, 5, 3, 3], &[conv, ("Relu", &["a"], "y")]),
        &[],
    );
    let cycle: [onnx::Node<'_>; 4] =
        [conv, ("Add", &["a", "c"], "b"), ("Relu", &["b"], "c"), ("Relu", &["c"], "y")];
    refused("onnx_cycle", "model.onnx", &onnx::model(&[4, 3, 3, 3], &cycle), &[]);
    refused(
        "onnx_unsupported",
        "model.onnx",
        &onnx::model(&[4, 3, 3, 3], &[conv, ("Scan", &["a"], "y")]),
        &[],
    );
    refused("onnx_no_producer", "model.onnx", &onnx::model(&[4, 3, 3, 3], &[("Relu", &["z"], "y")]), &[]);
}

#[test]
fn missing_files() {
    let folder = folder();
    for (snapshot, args) in [
        ("missing_app", &["plan", "missing.ron"][..]),
        ("missing_onnx", &["plan", "missing.onnx"]),
        ("missing_plan", &["check", "missing.json"]),
        ("missing_folder", &["plan", "builtin:lenet5", "-o", "missing/plan.json"]),
        ("no_command", &["paln", "builtin:lenet5"]),
    ] {
        insta::assert_snapshot!(snapshot, fails(folder.path(), args));
        assert!(listing(folder.path()).is_empty());
    }
}

#[test]
fn plans() {
    let folder = folder();
    let path = folder.path().join("plan.json");
    std::fs::write(folder.path().join("model.onnx"), onnx::good()).unwrap();
    assert_eq!(run(folder.path(), &["plan", "model.onnx", "-o", "plan.json"]).code, 0);
    let plan = std::fs::read_to_string(&path).unwrap();
    let check = |snapshot: &str, text: &str| {
        std::fs::write(&path, text).unwrap();
        insta::assert_snapshot!(snapshot, fails(folder.path(), &["check", "plan.json"]));
    };
    check("plan_empty", "");
    check("plan_truncated", &plan[..40]);
    check("plan_unknown_format", &plan.replace("csdfc-plan/3", "csdfc-plan/9"));
    check("plan_unknown_field", &plan.replacen("\"application\"", "\"aplication\"", 1));
    let mut changed = onnx::good();
    let last = changed.len() - 1;
    changed[last] ^= 1;
    std::fs::write(folder.path().join("model.onnx"), changed).unwrap();
    check("plan_of_another_model", &plan);
    std::fs::remove_file(folder.path().join("model.onnx")).unwrap();
    check("plan_without_its_model", &plan);
}

/// No panic, an error of one screen, no file; or a plan.
fn survives(folder: &Path, bytes: &[u8]) -> Ended {
    std::fs::write(folder.join("model.onnx"), bytes).unwrap();
    let ended = run(folder, &["plan", "model.onnx", "--rows", "all", "-o", "plan.json", "-q"]);
    match ended.code {
        0 => std::fs::remove_file(folder.join("plan.json")).unwrap(),
        1 => fits_a_screen(&ended.stderr),
        code => assert!(code == 1, "exit code {code}: {}", ended.stderr),
    }
    assert_eq!(listing(folder), ["model.onnx"]);
    ended
}

#[test]
fn truncated_at_any_length() {
    let folder = folder();
    let good = onnx::good();
    assert_eq!(survives(folder.path(), &good).code, 0);
    for length in (0..good.len()).step_by(5).chain(good.len() - 20..good.len()) {
        let ended = survives(folder.path(), &good[..length]);
        assert_eq!(ended.code, 1, "{length} of {} bytes", good.len());
    }
}

#[test]
fn with_any_bit_flipped() {
    let folder = folder();
    let good = onnx::good();
    let mut codes = [0, 0];
    for bit in (0..good.len() * 8).step_by(7) {
        let mut flipped = good.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        codes[survives(folder.path(), &flipped).code as usize] += 1;
    }
    println!("{} planned, {} refused", codes[0], codes[1]);
    assert!(codes[0] > 0 && codes[1] > 0);
}

#[test]
fn names_of_crates() {
    let folder = folder();
    assert_eq!(run(folder.path(), &["plan", "builtin:lenet5", "-o", "plan.json"]).code, 0);
    for name in ["std", "core", "alloc", "test", "fn", "1a", "a b", ""] {
        let text = fails(folder.path(), &["emit", "plan.json", "-o", "crate", "--crate-name", name]);
        assert!(text.contains("is no name for a crate"), "{name}: {text}");
    }
    assert_eq!(listing(folder.path()), ["plan.json"]);
}

/// The search would take an hour.
#[test]
fn files_that_cannot_be_written_are_said_before_the_search() {
    let folder = folder();
    let long = ["plan", "builtin:densenet121", "--mem", "min", "--budget", "3600s"];
    for files in [&["-o", "missing/plan.json"][..], &["-o", "."], &["--pareto", "missing/front.json"]] {
        let text = fails(folder.path(), &[&long[..], files].concat());
        assert!(text.contains("cannot write"), "{files:?}: {text}");
    }
    assert!(listing(folder.path()).is_empty());
}
