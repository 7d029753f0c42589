//! Updates that csdfc writes: the weights of a model that was trained again, under another name.

use super::{fails, folder, run};

#[test]
fn a_model_trained_again_has_an_update_for_the_old_crate() {
    let folder = folder();
    let path = |name: &str| folder.path().join(name);
    let done = |args: &[&str]| {
        let ended = run(folder.path(), args);
        assert_eq!(ended.code, 0, "{args:?}: {}", ended.stderr);
    };
    done(&["inspect", "builtin:lenet5", "--onnx", "first.onnx"]);
    // Most of the file are weights.
    let mut model = std::fs::read(path("first.onnx")).unwrap();
    let middle = model.len() / 2;
    model[middle] ^= 1;
    std::fs::write(path("again.onnx"), &model).unwrap();
    for name in ["first", "again"] {
        done(&["plan", &format!("{name}.onnx"), "-o", &format!("{name}.json")]);
    }
    done(&["emit", "first.json", "-o", "crate", "--update", "first.update"]);
    done(&["emit", "again.json", "--update", "again.update", "--number", "258"]);
    let [first, again] = ["first.update", "again.update"].map(|name| std::fs::read(path(name)).unwrap());
    let weights = std::fs::read(path("crate/weights.bin")).unwrap();
    assert!(first[64..] == weights && again[64..] != weights && again.len() == first.len());
    assert_eq!(
        (&first[16..24], &again[16..24]),
        (&[1, 0, 0, 0, 0, 0, 0, 0][..], &[2, 1, 0, 0, 0, 0, 0, 0][..])
    );
    assert_eq!(first[..16], again[..16]);
    let hash = u64::from_le_bytes(again[8..16].try_into().unwrap());
    let root = std::fs::read_to_string(path("crate/src/lib.rs")).unwrap();
    assert!(root.contains(&format!("PLAN_HASH: u64 = 0x{hash:016x};")), "{hash:x}");

    // A plan of another model than the file has is refused, and what was written before stays.
    std::fs::write(path("again.onnx"), std::fs::read(path("first.onnx")).unwrap()).unwrap();
    fails(folder.path(), &["emit", "again.json", "--update", "again.update"]);
    assert!(std::fs::read(path("again.update")).unwrap() == again);

    // If all weights are read from a store, there is nothing to update.
    done(&["plan", "first.onnx", "--weights", "streamed", "-o", "streamed.json"]);
    done(&["emit", "streamed.json", "-o", "streamed"]);
    let error = fails(folder.path(), &["emit", "streamed.json", "--update", "streamed.update"]);
    assert!(error.contains("an update would have none") && !path("streamed.update").exists(), "{error}");
    assert!(!std::fs::read_to_string(path("streamed/README.md")).unwrap().contains("--update"));
}
