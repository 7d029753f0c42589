//! Parts of models: what two parts compute one after the other is what the whole computes.

use std::path::Path;

use csdfc_plan::plan::Plan;

use super::{fails, folder, run};

/// Runs the command, which must succeed.
fn done(folder: &Path, words: &[&str]) {
    let ended = run(folder, words);
    assert_eq!(ended.code, 0, "{words:?}: {}", ended.stderr);
}

#[test]
fn two_parts_are_the_whole() {
    let folder = folder();
    let done = |words: &[&str]| done(folder.path(), words);
    done(&["inspect", "builtin:resnet8", "--onnx", "net.onnx"]);
    done(&["plan", "net.onnx", "-o", "whole.json"]);
    let text = std::fs::read_to_string(folder.path().join("whole.json")).unwrap();
    let whole = Plan::from_json(&text).unwrap();
    // Two tensors are alive between the parts.
    let cut = ["stack2_conv1", "stack2_shortcut"].map(|layer| {
        let layer = whole.cnns[0].layers.iter().find(|found| found.name.starts_with(layer));
        let output = &layer.unwrap_or_else(|| panic!("{text}")).output;
        let tensor = whole.tensors.iter().find(|tensor| tensor.name == *output).unwrap();
        let dims = tensor.shape.dims.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
        (output.clone(), format!("{output}={dims}"))
    });
    let [(a, a_shape), (b, b_shape)] = cut;
    let both = format!("{a},{b}");
    done(&["plan", "net.onnx", "--outputs", &both, "-o", "first.json"]);
    done(&[
        "plan",
        "net.onnx",
        "--inputs",
        &both,
        "--shape",
        &a_shape,
        "--shape",
        &b_shape,
        "-o",
        "second.json",
    ]);
    let model = |name: &str| {
        let text = std::fs::read_to_string(folder.path().join(name)).unwrap();
        Plan::from_json(&text).unwrap().cnns.remove(0).model
    };
    assert!(model("whole.json").part.is_whole());
    assert_eq!(model("first.json").part.outputs, [a.clone(), b.clone()]);
    assert_eq!(model("second.json").part.inputs, [a.clone(), b.clone()]);
    // An application file says the same.
    let app = format!(r#"(cnns: [(name: "net", model: "net.onnx", part: (outputs: ["{a}", "{b}"]))])"#);
    std::fs::write(folder.path().join("app.ron"), app).unwrap();
    done(&["plan", "app.ron", "-o", "app.json"]);
    assert_eq!(model("app.json"), model("first.json"));
    // An option takes the place of what the file says.
    done(&["plan", "app.ron", "--outputs", &a, "-o", "less.json"]);
    assert_eq!(model("less.json").part.outputs, std::slice::from_ref(&a));

    done(&["run", "whole.json", "--random", "1", "--output", "whole"]);
    done(&["run", "first.json", "--random", "1", "--output", "first"]);
    let read = |path: &str| std::fs::read(folder.path().join(path)).unwrap();
    let files = [&a, &b].map(|name| format!("{name}=first/{name}.npy"));
    done(&["run", "second.json", "--input", &files[0], "--input", &files[1], "--output", "second"]);
    let output = &whole.cnns[0].outputs[0].name;
    assert_eq!(read(&format!("whole/{output}.npy")), read(&format!("second/{output}.npy")));
}

#[test]
fn a_part_needs_tensors_of_a_model_file() {
    let folder = folder();
    let error = fails(folder.path(), &["plan", "builtin:lenet5", "--outputs", "conv1"]);
    assert!(error.contains("planned as a whole"), "{error}");
    done(folder.path(), &["inspect", "builtin:lenet5", "--onnx", "net.onnx"]);
    let error = fails(folder.path(), &["plan", "net.onnx", "--outputs", "conv_1"]);
    assert!(error.contains("no node computes a tensor of this name"), "{error}");
}
