//! `cargo +nightly fuzz run instance`; see `tests/src/hostile.rs`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| csdfc_tests::hostile::instance(bytes));
