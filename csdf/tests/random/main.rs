//! The analyses on random graphs that proptest can shrink.

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod choices;
mod properties;
mod storage;
