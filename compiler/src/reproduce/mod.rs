//! The tables and figures of papers, made again from csdfc's own data.

pub mod s1;
pub mod table12;
