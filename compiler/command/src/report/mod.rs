//! The texts that commands print for people. Machines read the same data as JSON or RON.

pub mod analyze;
pub mod board;
pub mod check;
pub mod inspect;
pub mod limits;
pub mod offload;
pub mod pack;
pub mod plan;
pub mod profile;
pub mod quantize;
pub mod run;
pub mod select;
