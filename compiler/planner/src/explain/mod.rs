//! Sentences about a plan. The command prints them, and the errors of `csdfc::Build` contain them.

pub mod flight;
pub mod limits;
pub mod primitives;
pub mod shortfall;
pub mod table;
