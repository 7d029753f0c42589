//! Names of the files of tensors.

use csdfc_codegen::file_name::file_name;

#[test]
fn files_of_different_tensors_have_different_names() {
    let names = ["Relu_6.out-1", "a/b:0", "a_b_0", "..", "é", "a%2Fb"];
    let files = ["Relu_6.out-1", "a%2Fb%3A0", "a_b_0", "%2E.", "%C3%A9", "a%252Fb"];
    assert_eq!(names.map(file_name), files);
}
