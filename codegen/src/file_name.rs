//! Names of files.

/// The name of the file for a tensor or a CNN. Different names have different files. Letters, digits and `._-` stay;
/// every other byte becomes `%` and two hexadecimal digits. So does a leading dot, which would hide the file.
pub fn file_name(name: &str) -> String {
    let byte = |(i, byte): (usize, u8)| match char::from(byte) {
        '.' if i == 0 => "%2E".into(),
        c if c.is_ascii_alphanumeric() || "._-".contains(c) => c.to_string(),
        _ => format!("%{byte:02X}"),
    };
    name.bytes().enumerate().map(byte).collect()
}

#[cfg(test)]
mod tests {
    use super::file_name;

    #[test]
    fn files_of_different_tensors_have_different_names() {
        let names = ["Relu_6.out-1", "a/b:0", "a_b_0", "..", "é", "a%2Fb"];
        let files = ["Relu_6.out-1", "a%2Fb%3A0", "a_b_0", "%2E.", "%C3%A9", "a%252Fb"];
        assert_eq!(names.map(file_name), files);
    }
}
