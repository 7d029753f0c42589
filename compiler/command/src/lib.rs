//! The `csdfc` command. [`cli`] reads the command line, and [`commands`] does the work. [`report`] makes the texts that
//! commands print, [`picture`] and [`page`] draw, and [`trace`] writes the events of a frame.
//!
//! All code that takes long is in the crates below, so this crate is built without optimisation.

pub mod cli;
pub mod commands;
pub mod error;
pub mod page;
pub mod picture;
pub mod report;
pub mod trace;
