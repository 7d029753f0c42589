//! Times frames of a crate whose weights are read from a store that is only as fast as it is told.
//!
//!     throttled STORE BANDWIDTH LATENCY FRAMES
//!
//! BANDWIDTH is in bytes a second, LATENCY in nanoseconds; 0 and 0 read as fast as the system does.

use std::fs::File;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use emitted::{Arena, Fault, Inputs, Loader, Model, Outputs, ReadAt};

/// How long before it is due a read no longer sleeps: a system wakes nobody sooner.
const AWAKE: Duration = Duration::from_micros(120);

struct Throttled {
    file: File,
    bytes_per_second: f64,
    latency: Duration,
    /// When the store has ended what was asked of it so far. Readers share it, as they share the store.
    free: Arc<Mutex<Instant>>,
}

impl ReadAt for Throttled {
    fn read_at(&mut self, at: u64, block: &mut [u8]) -> Result<(), Fault> {
        let due = {
            let mut free = self.free.lock().unwrap();
            let takes = match self.bytes_per_second {
                0.0 => Duration::ZERO,
                rate => self.latency + Duration::from_secs_f64(block.len() as f64 / rate),
            };
            *free = Instant::now().max(*free) + takes;
            *free
        };
        self.file.read_at(at, block)?;
        if let Some(left) = due.checked_duration_since(Instant::now() + AWAKE) {
            std::thread::sleep(left);
        }
        while Instant::now() < due {
            std::hint::spin_loop();
        }
        Ok(())
    }

    fn another(&self) -> Option<Self> {
        Some(Throttled { file: self.file.try_clone().ok()?, free: self.free.clone(), ..*self })
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [store, bandwidth, latency, frames] = arguments.as_slice() else { panic!("STORE BANDWIDTH LATENCY FRAMES") };
    let reader = Throttled {
        file: File::open(store).unwrap(),
        bytes_per_second: bandwidth.parse().unwrap(),
        latency: Duration::from_nanos(latency.parse().unwrap()),
        free: Arc::new(Mutex::new(Instant::now())),
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
