//! `cargo +nightly fuzz run onnx`; see `tests/src/hostile.rs`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| csdfc_tests::hostile::onnx(bytes));
