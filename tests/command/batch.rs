//! A batch: `csdfc run` makes of the frames of a call what it makes of each by itself.

use csdfc_command::npy;
use csdfc_runtime::run::{Data, Value};

use super::{fails, folder, run};

#[test]
fn a_call_has_the_bytes_of_its_frames() {
    let folder = folder();
    let folder = folder.path();
    let planned = run(folder, &["plan", "builtin:lenet5", "--batch", "3", "-o", "three.json"]);
    assert_eq!(planned.code, 0, "{}", planned.stderr);
    assert!(
        planned.stdout.contains("a call of lenet5 takes 3 frames, one after another"),
        "{}",
        planned.stdout
    );
    assert_eq!(run(folder, &["plan", "builtin:lenet5", "--batch", "lenet5=1", "-o", "one.json"]).code, 0);
    let one = std::fs::read_to_string(folder.join("one.json")).unwrap();
    assert!(!one.contains("\"batch\""), "a batch of 1 is not written");
    let frames: Vec<Value> = (0..3)
        .map(|number| {
            let data = (0..1024).map(|i| ((i + number * 11) * 7919 % 1013) as f32 / 507.0 - 1.0).collect();
            Value { dims: vec![1, 1, 32, 32], data: Data::F32(data) }
        })
        .collect();
    npy::write(&folder.join("x.npy"), &Value::of_frames(&frames).unwrap()).unwrap();
    let mut each = Vec::new();
    for frame in &frames {
        npy::write(&folder.join("frame.npy"), frame).unwrap();
        let ran = run(folder, &["run", "one.json", "--input", "frame.npy", "--output", "output=y.npy"]);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        each.push(npy::read(&folder.join("y.npy")).unwrap());
    }
    let expected = Value::of_frames(&each).unwrap();
    assert_eq!(expected.dims, [3, 10]);
    npy::write(&folder.join("expected.npy"), &expected).unwrap();
    let call = ["run", "three.json", "--input", "x.npy", "--output", "out", "--compare", "expected.npy"];
    let ran = run(folder, &call);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(npy::read(&folder.join("out/output.npy")).unwrap(), expected);
    assert_eq!(run(folder, &["run", "three.json", "--random", "1", "--output", "out"]).code, 0);
    assert_eq!(npy::read(&folder.join("out/output.npy")).unwrap().dims, [3, 10]);
}

#[test]
fn what_is_no_batch_is_refused() {
    let folder = folder();
    let folder = folder.path();
    assert_eq!(run(folder, &["plan", "builtin:lenet5", "--batch", "3", "-o", "three.json"]).code, 0);
    let one = Value { dims: vec![1, 1, 32, 32], data: Data::F32(vec![0.0; 1024]) };
    npy::write(&folder.join("one.npy"), &one).unwrap();
    std::fs::write(folder.join("names"), "a\n".repeat(10)).unwrap();
    for (arguments, words) in [
        (
            &["run", "three.json", "--input", "one.npy"][..],
            "has the dimensions [1, 1, 32, 32], not [3, 1, 32, 32]",
        ),
        (
            &["run", "three.json", "--random", "1", "--labels", "names"],
            "--labels and --boxes are for one frame",
        ),
        (&["plan", "builtin:lenet5", "--batch", "0"], "give a number of frames"),
        (&["plan", "builtin:lenet5", "--batch", "other=2"], "no such CNN"),
        (&["plan", "builtin:lenet5", "--batch", "70000"], "csdfc takes at most 65536"),
    ] {
        let said = fails(folder, arguments);
        let said = said.split_whitespace().collect::<Vec<_>>().join(" ").replace(" │", "");
        assert!(said.contains(words), "{arguments:?}: {said}");
    }
}
