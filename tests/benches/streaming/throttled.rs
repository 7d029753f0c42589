//! A store that is only as fast as its argument says, in place of the one that the program of an emitted crate opens.
//!
//! `THROTTLE` in the environment has its bytes a second and the nanoseconds before a read's first byte: `250000000 80000`.

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use emitted::{Fault, Loader, ReadAt};

/// How long before it is due a read no longer sleeps: a system wakes nobody sooner.
const AWAKE: Duration = Duration::from_micros(120);

/// When the store has ended what was asked of it so far. All readers share it, as they share the store.
static FREE: Mutex<Option<Instant>> = Mutex::new(None);

struct Throttled {
    file: File,
    bytes_per_second: f64,
    latency: Duration,
}

/// The file, as slow as the environment says.
pub fn open(path: &Path) -> io::Result<Loader> {
    let told = std::env::var("THROTTLE").expect("THROTTLE: bytes a second and nanoseconds");
    let (bandwidth, latency) = told.split_once(' ').expect("two numbers");
    Loader::new(Throttled {
        file: File::open(path)?,
        bytes_per_second: bandwidth.parse().expect("bytes a second"),
        latency: Duration::from_nanos(latency.parse().expect("nanoseconds")),
    })
}

impl ReadAt for Throttled {
    fn read_at(&mut self, at: u64, block: &mut [u8]) -> Result<(), Fault> {
        let due = {
            let mut free = FREE.lock().unwrap();
            let now = Instant::now();
            let takes = self.latency + Duration::from_secs_f64(block.len() as f64 / self.bytes_per_second);
            let due = free.map_or(now, |free| free.max(now)) + takes;
            *free = Some(due);
            due
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
        Some(Throttled { file: self.file.try_clone().ok()?, ..*self })
    }
}
