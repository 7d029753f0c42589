//! What a choice costs in memory and time, and the searches for good choices.
//!
//! A choice says how many rows each layer of a CNN makes per firing ([`frame::choice`]). For each choice, [`frame`] makes
//! a dataflow graph, a schedule and ring requests, [`storage`] gives the requests addresses, and [`cost`] models the time.
//! [`search`] makes choices and keeps the good ones, and [`paging`] says when paged weights are read. A search does all
//! this thousands of times, so this crate is optimised. What csdfc does once for a plan is in the compiler.

pub mod cost;
pub mod frame;
pub mod paging;
pub mod search;
pub mod storage;

#[cfg(test)]
use csdfc_input::builtin;
use csdfc_input::{app, device, units};
#[cfg(test)]
use csdfc_network::pass;
use csdfc_network::{self as network, operators, suggest};
use csdfc_packing as packing;
