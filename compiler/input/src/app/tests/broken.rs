//! Messages for broken application files.

use super::application;

/// The message as a terminal of 80 columns without colors shows it.
fn said(text: &str) -> String {
    let error = application(text).expect_err(text);
    let handler = miette::GraphicalReportHandler::new_themed(miette::GraphicalTheme::none()).with_width(80);
    let mut shown = String::new();
    handler.render_report(&mut shown, error.as_ref()).unwrap();
    shown
}

/// The broken part stands in the list of CNNs of an otherwise sound file, or as a field after it.
fn check(name: &str, text: &str) {
    insta::with_settings!({ description => text, omit_expression => true, prepend_module_to_snapshot => false }, {
        insta::assert_snapshot!(name, said(text));
    });
}

fn partitions(list: &str) -> String {
    format!("(\n  cnns: [\n    (name: \"a\", model: \"a.onnx\", partitions: [{list}]),\n  ],\n)")
}

fn input(spec: &str) -> String {
    format!("(\n  cnns: [(model: \"a.onnx\", inputs: {{{spec}}})],\n)")
}

fn with(field: &str) -> String {
    format!("(\n  cnns: [(name: \"a\", model: \"a.onnx\"), (name: \"b\", model: \"b.onnx\")],\n  {field},\n)")
}

#[test]
fn syntax() {
    check("empty_file", "");
    check("truncated", "(\n  cnns: [(model: \"a.onnx\"");
    check("open_string", "(\n  cnns: [(model: \"a.onnx)],\n)");
    check("not_ron", "{\"cnns\": 1}");
    check("trailing", "(cnns: [(model: \"a.onnx\")]) )");
    check("comma", "(\n  cnns: [(model: \"a.onnx\" name: \"a\")],\n)");
    check("nested", &format!("(cnns: {}", "[".repeat(300)));
    check("no_cnns", "(name: \"x\")");
    check("empty_cnns", "(cnns: [])");
    check("missing_model", "(\n  cnns: [(name: \"a\")],\n)");
    check("wrong_type", "(\n  cnns: [(model: 7)],\n)");
}

#[test]
fn near_misses() {
    check("unknown_field", "(\n  cnns: [\n    (name: \"a\", modle: \"a.onnx\"),\n  ],\n)");
    check("unknown_top_field", &with("constraint: (memory: \"8MB\")"));
    check("unknown_storage", &with("storage: tensor"));
    check("unknown_method", &with("search: (method: papr)"));
    check("unknown_precision", "(cnns: [(model: \"a.onnx\", precision: fp23)])");
    check("twice", &with("fuse: true, fuse: false"));
    check("unknown_rows", &with("rows: al"));
    check("unknown_layer", &partitions("(name: \"p\", upto: \"cnov1\"), (name: \"q\")"));
    check("unknown_in_parallel", &with("parallel: [[\"a\", \"c\"]]"));
    check("unknown_in_fps", &with("constraints: (fps: {\"a\": 1, \"bb\": 2})"));
    check("unknown_input", &input("\"imgae\": (type: u8)"));
}

#[test]
fn methods() {
    check("method_in_tensors", &with("storage: tensors, search: (method: reuse)"));
    check("method_and_rows", &with("rows: all, search: (method: paper)"));
}

#[test]
fn names() {
    check("bad_name", "(cnns: [(name: \"my cnn\", model: \"a.onnx\")])");
    check("doubled_cnn", "(\n  cnns: [(model: \"a.onnx\"), (model: \"x/a.onnx\")],\n)");
    check("doubled_partition", &partitions("(name: \"p\", upto: \"conv1\"), (name: \"p\")"));
    check("listed_twice", &with("parallel: [[\"a\", \"a\"]]"));
}

#[test]
fn partitions_and_schedules() {
    check("no_upto", &partitions("(name: \"p\"), (name: \"q\")"));
    check(
        "upto_falls",
        &partitions("(name: \"p\", upto: \"add\"), (name: \"q\", upto: \"conv1\"), (name: \"r\")"),
    );
    check("nothing_left", &partitions("(name: \"p\", upto: \"pool\"), (name: \"q\")"));
    check("layers_left", &partitions("(name: \"p\", upto: \"conv1\"), (name: \"q\", upto: \"add\")"));
    check("layers_unknown", &partitions(r#"(name: "p", layers: ["conv1", "cnov2"]), (name: "q")"#));
    check("layers_twice", &partitions(r#"(name: "p", layers: ["conv1", "conv1"]), (name: "q")"#));
    check("layers_in_two", &partitions(r#"(layers: ["conv1", "conv2"]), (layers: ["add", "relu2"]), ()"#));
    check("layers_and_upto", &partitions(r#"(name: "p", layers: ["conv1"], upto: "conv1"), (name: "q")"#));
    check(
        "layers_of_none",
        &partitions(r#"(name: "p", layers: ["image", "conv1"]), (layers: ["add", "pool"])"#),
    );
    check("layers_empty", &partitions(r#"(name: "p", layers: []), (name: "q")"#));
    check("upto_listed", &partitions(r#"(name: "p", layers: ["conv2"]), (upto: "conv2"), ()"#));
    check("not_at_once", &partitions(r#"(name: "p", layers: ["conv2"]), (name: "q")"#));
    check(
        "schedule_waits",
        &partitions(r#"(layers: ["conv2"]), (schedule: [["conv1"], ["add"], ["pool"]])"#),
    );
    let schedule = |steps: &str| partitions(&format!("\n      (schedule: {steps}),\n    "));
    check("schedule_leaves_out", &schedule(r#"[["conv1"], ["conv2"], ["pool"]]"#));
    check("schedule_doubles", &schedule(r#"[["conv1"], ["conv2"], ["conv1"], ["add"], ["pool"]]"#));
    check("schedule_unknown", &schedule(r#"[["conv1"], ["conv3"]]"#));
    check("schedule_cycle", &schedule(r#"[["conv1"], ["add"], ["conv2"], ["pool"]]"#));
    check("schedule_foreign", &partitions(r#"(upto: "conv1", schedule: [["conv1"], ["pool"]]), ()"#));
}

#[test]
fn values() {
    check("memory_banana", &with("constraints: (memory: \"banana\")"));
    check("memory_zero", &with("constraints: (memory: 0)"));
    check("fps_zero", &with("constraints: (fps: {\"a\": 0})"));
    check("unknown_in_latency", &with("constraints: (latency: {\"a\": \"40ms\", \"bb\": \"1s\"})"));
    check("fps_text", &with("constraints: (fps: \"fast\")"));
    check("threads", &with("threads: 0"));
    check("crossover", &with("search: (crossover: 1.5)"));
    check("rows_too_many", &with("rows: {\"a/pool\": 9}"));
    check("rows_ambiguous", &with("rows: {\"pool\": 2}"));
    check("rows_unknown", &with("rows: {\"a/pol\": 2}"));
    check("rows_negative", &with("rows: {\"a/pool\": -1}"));
    check("int8", "(cnns: [(model: \"a.onnx\", precision: int8)])");
    check("int8_layer", "(cnns: [(model: \"a.onnx\", precisions: {\"conv1\": int8})])");
    let accuracy =
        |fields: &str| format!("(cnns: [(model: \"a.onnx\", precision: auto, accuracy: ({fields}))])");
    check("allowance_nan", &accuracy("max_error: NaN"));
    check("allowance_negative", &accuracy("max_error: -1e-3"));
    check("allowance_unknown", &accuracy("max_err: 1e-3"));
    check("frames_none", &accuracy("random: 0"));
    check("frames_twice", &accuracy("calibrate: [\"frames\"], random: 8"));
    check("missing_file", "(\n  cnns: [(model: \"missing.onnx\")],\n)");
    check("no_model", "(\n  cnns: [(model: \"a.caffe2\")],\n)");
    check("mean_length", &input("\"image\": (type: u8, mean: [1, 2])"));
    check("scale_zero", &input("\"image\": (type: u8, scale: 0)"));
    check("camera_of_f32", &input("\"image\": (order: BGR)"));
}

#[test]
fn a_message_fits_a_screen_whatever_the_file() {
    let long = format!("(cnns: [(name: \"{}\", model: \"a.onnx\")])", "x ".repeat(100_000));
    let text = said(&long);
    assert!(text.len() < 2000, "{} bytes", text.len());
    assert!(text.contains("app.ron:1:16"), "{text}");
}
