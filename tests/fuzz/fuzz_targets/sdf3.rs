//! `cargo +nightly fuzz run sdf3`; see `tests/src/hostile.rs`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| csdfc_tests::hostile::sdf3(bytes));
