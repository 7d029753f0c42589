//! `csdfc pack` as a user runs it.

use serde_json::{Value, json};

use super::{fails, folder, run, run_given};

/// Three buffers of 8 bytes, in use together in pairs, and one that is in use with none of them: at least 24 bytes.
const BUFFERS: &str = "id,lower,upper,size\nb1,0,3,8\nb2,1,4,8\nb3,2,6,8\nb4,6,9,20\n";

#[test]
fn buffers_are_packed_printed_and_written() {
    let folder = folder();
    std::fs::write(folder.path().join("b.csv"), BUFFERS).unwrap();
    let run = |args: &[&str]| run(folder.path(), &[&["pack", "b.csv"], args].concat());
    let packed = run(&[]);
    assert_eq!((packed.code, packed.stderr.as_str()), (0, ""));
    insta::assert_snapshot!("pack_text", packed.stdout);

    let data: Value = serde_json::from_str(&run(&["--format", "json"]).stdout).unwrap();
    assert_eq!((&data["bytes"], &data["bound"], &data["proven"]), (&json!(24), &json!(24), &json!(true)));
    let written = run(&["-o", "-"]).stdout;
    for (line, id) in written.lines().skip(1).zip(["b1", "b2", "b3", "b4"]) {
        let offset = line.rsplit_once(',').unwrap().1;
        assert_eq!(offset, data["offsets"][id].to_string(), "{line}");
    }
    // The written file fixes every buffer's offset, and packing it gives the same placement.
    let again = ["pack", "-", "-o", "-", "--budget", "10s"];
    assert_eq!(run_given(folder.path(), &again, &written).stdout, written);
}

#[test]
fn a_capacity_that_is_too_small_is_an_honest_no() {
    let folder = folder();
    std::fs::write(folder.path().join("b.csv"), BUFFERS).unwrap();
    let run = |args: &[&str]| run(folder.path(), &[&["pack", "b.csv", "--capacity"], args].concat());
    assert_eq!(run(&["24"]).code, 0);
    let no = run(&["23"]);
    assert_eq!((no.code, no.stderr.as_str()), (2, ""));
    insta::assert_snapshot!("pack_too_small", no.stdout);
    let data: Value = serde_json::from_str(&run(&["10", "--format", "json"]).stdout).unwrap();
    assert_eq!(data["core"], json!({ "buffers": ["b4"], "irreducible": true }));
}

#[test]
fn wrong_files_are_explained() {
    let folder = folder();
    for (text, expected) in [
        ("", "the file is empty"),
        ("id,lower,upper,size\na,0,1\n", "line 2: 3 values for 4 columns"),
        ("id,lower,upper,size,offset\na,0,2,4,0\nb,1,2,4,3\n", "a and b are fixed at addresses that overlap"),
        ("id,lower,upper,size\na,0,2,9223372036854775808\n", "2^62"),
    ] {
        std::fs::write(folder.path().join("b.csv"), text).unwrap();
        let error = fails(folder.path(), &["pack", "b.csv"]);
        assert!(error.replace("\n  │ ", " ").contains(expected), "{error}");
    }
    assert!(fails(folder.path(), &["pack", "none.csv"]).contains("none.csv"));
    assert!(fails(folder.path(), &["pack", "b.csv", "--budget", "soon"]).contains("10s"));
}
