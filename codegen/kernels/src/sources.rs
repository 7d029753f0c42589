//! The text of the kernels, for crates that bring their own copy.
//!
//! # Example
//!
//! ```
//! use csdfc_kernels::sources::SOURCES;
//!
//! let (_, text) = SOURCES.iter().find(|(path, _)| *path == "pool.rs").unwrap();
//! assert!(text.contains("pub struct Pool"));
//! ```

/// Paths from `src`, in order, and texts of all files but this one and the crate's root. The build script lists them.
pub const SOURCES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/sources.rs"));
