//! The tests of this crate. They are not compiled with the library, because the library would then be compiled twice,
//! and with it the kernels that it calls.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a panic is how a test fails")]

mod both_tables;
mod file_name;
mod fire;
mod literal;
mod primitives;
mod products;

/// Private modules, with their own tests.
#[path = "../../src/run/arena.rs"]
#[allow(dead_code, reason = "of the library's code, only what its tests call is used here")]
mod arena;
#[path = "../../src/run/value.rs"]
#[allow(dead_code, reason = "of the library's code, only what its tests call is used here")]
mod value;

use csdfc_runtime::bytes;
