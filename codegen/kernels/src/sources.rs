//! The text of the kernels, for crates that bring their own copy.

/// Paths from `src` and texts of all files but this one, the crate's root, and tests.
pub const SOURCES: &[(&str, &str)] = &[
    ("activation.rs", include_str!("activation.rs")),
    ("rows.rs", include_str!("rows.rs")),
];
