//! Quantized models, from a file to their outputs.

use super::{folder, onnx, run};

#[test]
fn a_quantized_model_is_planned_and_run_and_its_scales_are_its_own() {
    let folder = folder();
    std::fs::write(folder.path().join("model.onnx"), onnx::quantized()).unwrap();
    assert_eq!(run(folder.path(), &["plan", "model.onnx", "-o", "plan.json"]).code, 0);
    let plan = std::fs::read_to_string(folder.path().join("plan.json")).unwrap();
    let primitives = ["convert-quantize", "own-kernel-int8", "convert-dequantize"];
    assert!(primitives.iter().all(|name| plan.contains(&format!("\"{name}-hwc-hwc\""))), "{plan}");
    assert_eq!(run(folder.path(), &["check", "plan.json"]).code, 0);
    assert_eq!(run(folder.path(), &["run", "plan.json", "--random", "1"]).code, 0);
    // What is inspected is what is planned.
    let inspected = run(folder.path(), &["inspect", "model.onnx", "--format", "json"]).stdout;
    let inspected: serde_json::Value = serde_json::from_str(&inspected).unwrap();
    let planned: serde_json::Value = serde_json::from_str(&plan).unwrap();
    assert_eq!(inspected["cnns"][0]["parameter_bytes"], planned["memory"]["parameters"]);

    // Integers that stand for other numbers throughout: the plan agrees with itself, but not with its model.
    let other = plan.replace("\"scale\": 0.5", "\"scale\": 0.25");
    assert_ne!(other, plan);
    std::fs::write(folder.path().join("other.json"), other).unwrap();
    let words = "quantization of its output is scale 0.25, zero point 0 in the plan";
    for command in ["check", "run"] {
        let ended = run(folder.path(), &[command, "other.json"]);
        assert_ne!(ended.code, 0, "{command}");
        let said = ended.stdout + &ended.stderr;
        // Messages are wrapped.
        let said = said.replace('│', " ");
        let said: Vec<&str> = said.split_whitespace().collect();
        assert!(said.join(" ").contains(words), "{command}: {}", said.join(" "));
    }
}

/// A lower precision makes no tensor of integers smaller, so nobody is told to try it.
#[test]
fn a_model_of_integers_gets_no_advice_on_precisions() {
    let folder = folder();
    let quantized = ["quantize", "builtin:lenet5", "-o", "int8.onnx", "--random", "1"];
    assert_eq!(run(folder.path(), &quantized).code, 0);
    for limits in [&["--ram", "1kB@ram", "--flash", "1kB"][..], &["--mem", "1kB"]] {
        let ended = run(folder.path(), &[&["plan", "int8.onnx"], limits].concat());
        assert_eq!(ended.code, 2, "{}", ended.stderr);
        let asks_for = ["half", "--precision", "quantize"].map(|word| ended.stderr.contains(word));
        assert_eq!(asks_for, [false; 3], "{}", ended.stderr);
    }
}
