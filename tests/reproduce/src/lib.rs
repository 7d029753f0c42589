//! The tables and figures of papers, made again from csdfc's own data, and comparisons of csdfc with itself.

pub mod joint;
pub mod mec;
pub mod precision;
pub mod s1;
pub mod selection;
pub mod strategies;
pub mod streaming;
pub mod table12;
pub mod upscale;

/// A function that receives the progress, as a line that replaces the line before it.
pub type Tell<'a> = &'a (dyn Fn(&str) + Sync);
