//! Models that csdfc writes: built-in networks.

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
