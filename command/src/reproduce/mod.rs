//! The tables and figures of papers, made again from csdfc's own data, and comparisons of csdfc with itself.

pub mod joint;
pub mod mec;
pub mod paging;
pub mod precision;
pub mod s1;
pub mod selection;
pub mod table12;

/// Who is told how far it is, in a line that takes the place of the one before.
pub type Tell<'a> = &'a (dyn Fn(&str) + Sync);
