//! Names of files.
//!
//! ```
//! use csdfc_runtime::file_name::file_name;
//!
//! assert_eq!(file_name("Relu_6.out-1"), "Relu_6.out-1");
//! assert_eq!(file_name("block/conv:0"), "block%2Fconv%3A0");
//! ```

/// Maximum number of bytes of a name. File systems take 255, endings included.
const MAX_LEN: usize = 240;

/// The name of the file for a tensor or a CNN. Different names have different files. Letters, digits and `._-` stay;
/// every other byte becomes `%` and two hexadecimal digits. So does a leading dot, which would hide the file. What would be
/// longer than 240 bytes ends after the first 220, with `~` and a hash of the whole name in hexadecimal.
pub fn file_name(name: &str) -> String {
    let whole = escaped(name);
    if whole.len() <= MAX_LEN {
        return whole;
    }
    // No byte's `%` and digits are cut apart: at most two bytes more are left out.
    let cut = whole[..220].rfind('%').filter(|at| at + 3 > 220).unwrap_or(220);
    format!("{}~{:016x}", &whole[..cut], fnv_1a(name.as_bytes()))
}

/// The hash FNV-1a of 64 bits.
fn fnv_1a(bytes: &[u8]) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, step)
}

fn escaped(name: &str) -> String {
    let byte = |(i, byte): (usize, u8)| match char::from(byte) {
        '.' if i == 0 => "%2E".into(),
        c if c.is_ascii_alphanumeric() || "._-".contains(c) => c.to_string(),
        _ => format!("%{byte:02X}"),
    };
    name.bytes().enumerate().map(byte).collect()
}
