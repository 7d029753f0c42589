//! `cargo +nightly fuzz run app`; see `tests/src/hostile.rs`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| csdfc_tests::hostile::app(bytes));
