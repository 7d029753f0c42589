//! A thousand hops of an emitted stream, as `frame.rs` runs a frame. Prints a checksum of all scores so far after each
//! hundred.

#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg_attr(not(target_os = "none"), path = "host.rs")]
mod board;

use board::println;
use emitted::{Arena, Inputs, Model, Outputs};

/// Hops, and hops for each checksum.
const HOPS: usize = 1000;
const EACH: usize = 100;

fn main() {
    let arena = Arena::take().expect("nobody else has taken it");
    let mut sums = [0u64; HOPS / EACH];
    let stack = board::stack_of(|| {
        let mut model = Model::new(arena);
        // FNV-1a, over the bits of each score.
        let mut sum = 0xcbf2_9ce4_8422_2325_u64;
        for hop in 0..HOPS {
            let features = core::array::from_fn(|at| ((hop * 40 + at) * 7919 % 1013) as f32 / 507.0 - 1.0);
            let mut scores = [0.0; 3];
            model.infer(Inputs { features: &features }, Outputs { scores: &mut scores });
            for score in scores {
                sum = (sum ^ u64::from(score.to_bits())).wrapping_mul(0x0100_0000_01b3);
            }
            sums[hop / EACH] = sum;
        }
    });
    for sum in sums {
        println!("{sum:016x}");
    }
    if let Some(bytes) = stack {
        println!("stack: {bytes} bytes");
    }
}
