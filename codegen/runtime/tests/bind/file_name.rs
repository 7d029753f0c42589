//! Names of the files of tensors.

use csdfc_runtime::file_name::file_name;

#[test]
fn files_of_different_tensors_have_different_names() {
    let names = ["Relu_6.out-1", "a/b:0", "a_b_0", "..", "é", "a%2Fb"];
    let files = ["Relu_6.out-1", "a%2Fb%3A0", "a_b_0", "%2E.", "%C3%A9", "a%252Fb"];
    assert_eq!(names.map(file_name), files);
}

/// TFLite joins the names of fused operators, and a slash takes three bytes.
#[test]
fn files_of_long_names_are_short_enough() {
    let long = |last: &str| file_name(&("block/conv/BiasAdd;".repeat(20) + last));
    let [a, b] = [long("a"), long("b")];
    assert!(a != b && a.starts_with("block%2Fconv%2FBiasAdd%3B"), "{a} {b}");
    // The FNV-1a of the name, as another implementation computes it.
    assert_eq!(a.split_once('~').unwrap().1, "95761bea68a08494");
    for name in ["/", "a/", "ab/"].map(|start| start.to_owned() + &"é".repeat(100)) {
        let file = file_name(&name);
        assert!(file.len() <= 240, "{file}");
        let escapes = file.split('~').next().unwrap().split('%').skip(1);
        assert!(escapes.map(str::len).all(|length| length == 2), "{file}");
    }
    assert_eq!(file_name(&"a".repeat(240)), "a".repeat(240));
    assert_eq!(file_name(&"a".repeat(241)).len(), 220 + 17);
}
