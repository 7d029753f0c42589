//! Every kernel against its textbook definition, in doubles, and the parts that kernels are made of.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a panic is how a test fails, and some tests say how near they were"
)]

mod activation;
mod arithmetic;
mod blocks;
mod cases;
mod checksum;
mod conv;
mod element;
mod gemm;
mod halves;
mod layout;
mod layouts;
mod lines;
mod mat_mul;
mod math;
mod panel;
mod places;
mod product;
mod quantized;
mod recurrent;
mod reductions;
mod resample;
mod rows;
mod suppression;
mod testing;
mod windows;
mod workers;
