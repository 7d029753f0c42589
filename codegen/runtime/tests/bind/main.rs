//! Which kernel computes a layer, with which parameters, and what it computes.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a panic is how a test fails")]

mod both_tables;
mod file_name;
mod fire;
mod literal;
mod primitives;
mod products;
