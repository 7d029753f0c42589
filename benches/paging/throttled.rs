//! Times frames of a crate whose weights are read from a store that is only as fast as it is told.
//!
//!     throttled STORE BANDWIDTH LATENCY FRAMES
//!
//! BANDWIDTH is in bytes a second, LATENCY in nanoseconds; 0 and 0 read as fast as the system does.

use std::fs::File;
use std::time::{Duration, Instant};

use emitted::{Arena, Fault, Inputs, Loader, Model, Outputs, ReadAt};

/// How long before it is due a read no longer sleeps: a system wakes nobody sooner.
const AWAKE: Duration = Duration::from_micros(120);

struct Throttled {
    file: File,
    bytes_per_second: f64,
    latency: Duration,
}

impl ReadAt for Throttled {
    fn read_at(&mut self, at: u64, block: &mut [u8]) -> Result<(), Fault> {
        let began = Instant::now();
        self.file.read_at(at, block)?;
        if self.bytes_per_second > 0.0 {
            let due = self.latency + Duration::from_secs_f64(block.len() as f64 / self.bytes_per_second);
            if let Some(left) = due.checked_sub(began.elapsed() + AWAKE) {
                std::thread::sleep(left);
            }
            while began.elapsed() < due {
                std::hint::spin_loop();
            }
        }
        Ok(())
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [store, bandwidth, latency, frames] = arguments.as_slice() else { panic!("STORE BANDWIDTH LATENCY FRAMES") };
    let reader = Throttled {
        file: File::open(store).unwrap(),
        bytes_per_second: bandwidth.parse().unwrap(),
        latency: Duration::from_nanos(latency.parse().unwrap()),
    };
    let mut model = Model::new(Arena::take().unwrap(), Loader::new(reader).unwrap());
    let input = vec![0.5f32; INPUT];
    let mut output = vec![0.0f32; OUTPUT];
    let mut times = Vec::new();
    for _ in 0..frames.parse::<usize>().unwrap() {
        let began = Instant::now();
        let inputs = Inputs { FIRST: input.as_slice().try_into().unwrap() };
        let outputs = Outputs { LAST: output.as_mut_slice().try_into().unwrap() };
        model.infer(inputs, outputs).unwrap();
        times.push(began.elapsed().as_nanos());
    }
    times.sort();
    println!("{} {}", times[times.len() / 2], model.bytes_read());
}
