//! One frame of an emitted crate on a processor without an operating system, or on this machine for comparison. Prints the
//! bits of the ten scores, and on bare metal also how many bytes of stack the frame took.

#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg_attr(not(target_os = "none"), path = "host.rs")]
mod board;

use board::println;
use emitted::{Arena, Inputs, Model, Outputs};

fn main() {
    // The values do not matter, as long as they are the same everywhere.
    let image = core::array::from_fn(|at| (at * 7919 % 1013) as f32 / 507.0 - 1.0);
    let mut scores = core::array::from_fn(|_| 0.0);
    let arena = Arena::take().expect("nobody else has taken it");
    let stack = board::stack_of(|| Model::new(arena).infer(Inputs { input: &image }, Outputs { output: &mut scores }));
    for score in scores as [f32; _] {
        println!("{:08x}", score.to_bits());
    }
    if let Some(bytes) = stack {
        println!("stack: {bytes} bytes");
    }
}
