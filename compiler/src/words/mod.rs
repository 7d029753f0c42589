//! What csdfc says of a plan, in words. The command prints it, and the errors of [`Build`](crate::Build) hold it.

pub mod flight;
pub mod limits;
pub mod precision;
pub mod shortfall;
pub mod table;
