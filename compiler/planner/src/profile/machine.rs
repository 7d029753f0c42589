//! What the system tells of this machine. A crate that measures a board has a copy of this file.

use std::time::Instant;

/// Elements that are copied to see how fast memory is: more than any cache holds.
const COPIED: usize = 1 << 24;
/// How often they are copied.
const COPIES: usize = 5;

/// The name of this machine's processor, where the system tells it.
pub fn processor_name() -> Option<String> {
    named(&std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default()).map(str::to_owned)
}

/// The name of the processor, from the text of `/proc/cpuinfo`.
pub fn named(info: &str) -> Option<&str> {
    let value = |key: &str| {
        let line =
            info.lines().find(|line| line.split(':').next().is_some_and(|found| found.trim() == key))?;
        line.split_once(':').map(|(_, value)| value.trim()).filter(|value| !value.is_empty())
    };
    value("model name").or_else(|| value("Hardware")).or_else(|| value("CPU part"))
}

/// The number of cores.
pub fn cores() -> u64 {
    std::thread::available_parallelism().map_or(1, |cores| cores.get() as u64)
}

/// Bytes of the caches of data of the first core, from the nearest to the farthest, where the system tells them.
pub fn caches() -> Vec<u64> {
    let read = |index: usize, what: &str| {
        let text = std::fs::read_to_string(format!("/sys/devices/system/cpu/cpu0/cache/index{index}/{what}"));
        text.map(|text| text.trim().to_owned()).ok()
    };
    let size = |index: usize| {
        let kind = read(index, "type")?;
        let size = read(index, "size")?;
        let kilobytes: u64 = size.strip_suffix('K')?.parse().ok()?;
        Some((kind != "Instruction", kilobytes << 10))
    };
    let all = (0..).map_while(size);
    all.filter(|(holds_data, _)| *holds_data).map(|(_, bytes)| bytes).collect()
}

/// Bytes per second from memory and to it, of one core.
pub fn bytes_per_second() -> f64 {
    let from: Vec<f32> = (0..COPIED).map(|i| i as f32).collect();
    let mut to = vec![0.0f32; COPIED];
    let mut copy = || {
        let begun = Instant::now();
        to.copy_from_slice(std::hint::black_box(&from));
        std::hint::black_box(&mut to);
        begun.elapsed().as_secs_f64()
    };
    let fastest = (0..COPIES).map(|_| copy()).fold(f64::INFINITY, f64::min);
    (2 * COPIED * size_of::<f32>()) as f64 / fastest.max(1e-9)
}
