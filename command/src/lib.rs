//! The `csdfc` command: [`cli`] reads the command line, [`commands`] do what it asks, [`report`] says what they print,
//! [`picture`] what they draw. [`reproduce`] writes the papers' tables.
//!
//! All that takes long is in the crates below, so this one is built without optimisation.

pub mod cli;
pub mod commands;
pub mod picture;
pub mod report;
pub mod reproduce;
