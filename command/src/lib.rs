//! The `csdfc` command: [`cli`] reads the command line, [`commands`] do what it asks, [`report`] says what they print,
//! [`picture`] and [`page`] what they draw, [`trace`] what happens in a frame. [`reproduce`] writes the papers' tables.
//!
//! All that takes long is in the crates below, so this one is built without optimisation.

pub mod cli;
pub mod commands;
pub mod page;
pub mod picture;
pub mod report;
pub mod reproduce;
pub mod trace;
