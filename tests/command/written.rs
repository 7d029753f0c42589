//! Models that csdfc writes: built-in networks, and quantized ones.

use csdfc_command::npy;
use csdfc_plan::format::Element;
use csdfc_plan::plan::Plan;
use csdfc_runtime::run::{Data, Value};

use super::{fails, folder, run};

#[test]
fn a_written_built_in_network_computes_the_same_bytes() {
    let folder = folder();
    let bytes = |model: &str| {
        assert_eq!(run(folder.path(), &["plan", model, "-o", "plan.json"]).code, 0);
        let ended = run(folder.path(), &["run", "plan.json", "--random", "3", "--output", "out"]);
        assert_eq!(ended.code, 0, "{}", ended.stderr);
        let mut files = std::fs::read_dir(folder.path().join("out")).unwrap();
        std::fs::read(files.next().unwrap().unwrap().path()).unwrap()
    };
    for name in ["builtin:lenet5", "builtin:mobilenet_v1_0.25"] {
        let ended = run(folder.path(), &["inspect", name, "--onnx", "written.onnx"]);
        assert_eq!((ended.code, ended.stderr.as_str()), (0, ""));
        assert!(bytes(name) == bytes("written.onnx"), "{name}");
    }
    std::fs::write(
        folder.path().join("app.ron"),
        "(cnns: [(model: \"builtin:lenet5\"), (name: \"b\", model: \"builtin:lenet5\")])",
    )
    .unwrap();
    let error = fails(folder.path(), &["inspect", "app.ron", "--onnx", "two.onnx"]);
    assert!(error.contains("2 CNNs"), "{error}");
    assert!(!folder.path().join("two.onnx").exists());
}

#[test]
fn a_quantized_built_in_network_is_planned_on_integers() {
    let folder = folder();
    let quantize = |out: &str, more: &[&str]| {
        let arguments = [&["quantize", "builtin:lenet5", "-o", out, "--format", "json"], more].concat();
        let ended = run(folder.path(), &arguments);
        assert_eq!((ended.code, ended.stderr.as_str()), (0, ""));
        (ended.stdout, std::fs::read(folder.path().join(out)).unwrap())
    };
    let first = quantize("a.onnx", &["--random", "4"]);
    assert!(first == quantize("b.onnx", &["--random", "4", "--seed", "1"]), "the same call, another answer");
    assert!(first.1 != quantize("b.onnx", &["--random", "4", "--seed", "2"]).1);
    assert!(first.0.contains("\"own\"") && first.0.contains("\"agreement\""), "{}", first.0);

    assert_eq!(run(folder.path(), &["plan", "a.onnx", "-o", "plan.json"]).code, 0);
    let plan =
        csdfc_plan::plan::Plan::from_json(&std::fs::read_to_string(folder.path().join("plan.json")).unwrap());
    let plan = plan.unwrap();
    let floats = plan.tensors.iter().filter(|tensor| tensor.format.element == Element::F32).count();
    // The input and the output.
    assert_eq!(floats, 2, "{:?}", plan.tensors.iter().map(|tensor| &tensor.name).collect::<Vec<_>>());
    // Layers keep their names.
    assert!(plan.cnns[0].layers.iter().any(|layer| layer.name == "C1"));
    assert_eq!(run(folder.path(), &["run", "plan.json", "--random", "1"]).code, 0);
    for precision in ["mixed", "half"] {
        let scheme = ["quantize", "builtin:lenet5", "-o", "c.onnx", "--random", "1", "--scheme", precision];
        let error = fails(folder.path(), &scheme);
        assert!(error.contains(&format!("csdfc plan builtin:lenet5 --precision {precision}")), "{error}");
    }
    let error = fails(folder.path(), &["quantize", "a.onnx", "-o", "c.onnx", "--random", "1"]);
    assert!(error.contains("quantized already"), "{error}");
}

#[test]
fn frames_come_from_files_and_bad_ones_are_named() {
    let folder = folder();
    let path = folder.path();
    let frame = |name: &str, dims: &[usize], value: f32| {
        let data = Data::F32(vec![value; dims.iter().product()]);
        npy::write(&path.join(name), &Value { dims: dims.to_vec(), data }).unwrap();
    };
    for name in ["good", "empty"] {
        std::fs::create_dir(path.join(name)).unwrap();
    }
    let dims = [1, 1, 32, 32];
    frame("good/a.npy", &dims, 0.5);
    frame("good/b.npy", &dims, -0.5);
    frame("nan.npy", &dims, f32::NAN);
    frame("small.npy", &[1, 1, 8, 8], 0.0);
    std::fs::write(path.join("good/notes.txt"), "not a frame").unwrap();
    let calibrate = |frames: &[&'static str]| {
        [&["quantize", "builtin:lenet5", "-o", "out.onnx", "--calibrate"], frames].concat()
    };
    let ended = run(path, &calibrate(&["good", "good/a.npy"]));
    assert_eq!((ended.code, ended.stderr.as_str()), (0, ""));
    assert!(ended.stdout.contains("calibrated with 3 frames"), "{}", ended.stdout);
    std::fs::remove_file(path.join("out.onnx")).unwrap();
    for (frame, words) in [
        ("nan.npy", "an element that is NaN"),
        ("small.npy", "frame 1: input"),
        ("empty", "has no frame"),
        ("missing", "cannot read missing"),
        ("good/notes.txt", "notes.txt"),
    ] {
        let error = fails(path, &calibrate(&[frame]));
        assert!(error.contains(words), "{frame}: {error}");
        assert!(!path.join("out.onnx").exists());
    }
    let error = run(path, &["quantize", "builtin:lenet5", "-o", "out.onnx"]);
    assert!(error.code == 1 && error.stderr.contains("--calibrate"), "{}", error.stderr);
}

#[test]
fn a_run_that_fails_leaves_no_output() {
    let folder = folder();
    let path = folder.path();
    let planned = run(path, &["plan", "builtin:lenet5", "-o", "plan.json"]);
    assert_eq!(planned.code, 0, "{}", planned.stderr);
    std::fs::write(path.join("short.raw"), vec![0; 32 * 32 * 4 - 1]).unwrap();
    std::fs::write(path.join("frame.bmp"), vec![0; 32 * 32 * 4]).unwrap();
    for (input, words) in [("short.raw", "short.raw"), ("frame.bmp", "takes no pixels")] {
        let error = fails(path, &["run", "plan.json", "--input", input, "--output", "out.raw"]);
        assert!(error.contains(words), "{input}: {error}");
        assert!(!path.join("out.raw").exists(), "{input}");
    }
}

/// A slip of the keyboard must not cost anybody a model.
#[test]
fn what_is_read_is_not_written_over() {
    let folder = folder();
    let done = |args: &[&str]| {
        let ended = run(folder.path(), args);
        assert_eq!(ended.code, 0, "{args:?}: {}", ended.stderr);
    };
    done(&["inspect", "builtin:lenet5", "--onnx", "net.onnx"]);
    std::fs::write(folder.path().join("app.ron"), "(cnns: [(model: \"net.onnx\")])").unwrap();
    done(&["plan", "net.onnx", "-o", "plan.json"]);
    done(&["run", "plan.json", "--random", "1", "--output", "outputs"]);
    let names: Vec<String> = std::fs::read_dir(folder.path().join("outputs"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    let output = names[0].trim_end_matches(".npy");
    std::fs::write(folder.path().join("frame.raw"), vec![0; 32 * 32 * 4]).unwrap();
    let input = Plan::from_json(&std::fs::read_to_string(folder.path().join("plan.json")).unwrap()).unwrap();
    let input = format!("{}=frame.raw", input.cnns[0].inputs[0]);
    let before = std::fs::read(folder.path().join("net.onnx")).unwrap();
    for args in [
        &["plan", "net.onnx", "-o", "net.onnx"][..],
        &["plan", "app.ron", "-o", "./net.onnx"],
        &["plan", "app.ron", "-o", "app.ron"],
        &["plan", "net.onnx", "--pareto", "new.json", "-o", "new.json"],
        &["report", "plan.json", "-o", "plan.json"],
        &["quantize", "net.onnx", "--random", "1", "-o", "net.onnx"],
        &["inspect", "net.onnx", "--onnx", "net.onnx"],
        &["emit", "plan.json", "--update", "plan.json"],
        &["analyze", "net.onnx", "--dot", "net.onnx"],
        &["select", "net.onnx", "--plan-out", "net.onnx"],
        &["run", "plan.json", "--input", &input, "--output", &format!("{output}=frame.raw")],
    ] {
        let error = fails(folder.path(), args);
        assert!(error.contains("written over") || error.contains("written twice"), "{args:?}: {error}");
    }
    assert!(std::fs::read(folder.path().join("net.onnx")).unwrap() == before);
    assert_eq!(std::fs::read(folder.path().join("frame.raw")).unwrap(), vec![0; 32 * 32 * 4]);
    // A front may take the place of the one that the search starts from.
    done(&["plan", "net.onnx", "--pareto", "front.json"]);
    done(&["plan", "net.onnx", "--from", "front.json", "--pareto", "front.json"]);
}
