//! Names of CNNs and partitions.
//!
//! ```
//! use csdfc_input::app::name::default_name;
//!
//! assert_eq!(default_name("builtin:lenet5"), "lenet5");
//! assert_eq!(default_name("models/face detector.onnx"), "face_detector");
//! ```

use std::path::Path;

/// Longest name of a CNN or partition.
pub(super) const MAX_NAME_LEN: usize = 100;

/// A name made from a path or from `builtin:NAME`.
pub fn default_name(model: &str) -> String {
    let stem = match model.strip_prefix("builtin:") {
        Some(name) => name.into(),
        None => Path::new(model).file_stem().unwrap_or_default().to_string_lossy(),
    };
    let name: String = stem.chars().take(MAX_NAME_LEN).map(|c| if in_name(c) { c } else { '_' }).collect();
    if name.is_empty() { "cnn".into() } else { name }
}

pub(super) fn in_name(c: char) -> bool {
    c.is_alphanumeric() || "_-.".contains(c)
}
