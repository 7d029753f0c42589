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
