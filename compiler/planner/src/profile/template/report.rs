//! The device profile as text.

use std::fmt::Write;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::machine;
use crate::speeds::{MeasuredWork, Rate, own_cache, speeds};
use crate::table::{CACHE_BYTES, CSDFC, HALF_SPEED, LIKE, MEMORY, SCENARIOS, STORE, THREADS, WORK, WORKERS};
use crate::tally::{Sample, Samples};

/// The work of a layer with its first primitive.
pub struct Work {
    /// Number of its scenario.
    pub scenario: usize,
    /// The primitive.
    pub primitive: &'static str,
    /// Its rows.
    pub rows: u64,
    /// The kind of work.
    pub kind: Rate,
    /// The amount of work.
    pub amount: f64,
}

/// The times of layers with their first primitives and one worker.
fn done(samples: &Samples) -> impl Iterator<Item = MeasuredWork> {
    let done = |work: &Work| {
        let Work { scenario, primitive, rows, kind, amount } = *work;
        let of_layer = samples.get(&scenario)?.get(primitive)?;
        let find = |rows: u64| of_layer.iter().find(|sample| sample.rows == rows).map(|sample| sample.ns);
        Some(MeasuredWork { kind, amount, rows, whole_ns: find(rows)?, by_rows_ns: find(1) })
    };
    WORK.iter().filter(|_| THREADS == 1).filter_map(done)
}

/// The profile of this machine.
pub fn profile(samples: &Samples) -> String {
    let processor = machine::processor_name().unwrap_or_else(|| "an unknown processor".into());
    let (caches, rates) = (machine::caches(), speeds(done(samples), LIKE));
    let own = own_cache(&caches).unwrap_or(CACHE_BYTES);
    let mut text = format!(
        "(\n    format: \"csdfc-profile/1\",\n    name: \"board\",\n    basis: {:?},\n    \
         origin: Some((csdfc: {CSDFC:?}, date: \"{}\", cache_bytes: {caches:?})),\n    \
         processors: {{\n        \"cpu\": (\n            cores: {},\n            core: (\n                \
         macs_per_second: {:?},\n                depthwise_efficiency: {:?},\n                \
         elements_per_second: {:?},\n                bytes_per_second: {:?},\n                \
         firing_ns: {:?},\n                half_speed: {:?},\n            ),\n            \
         workers: {WORKERS},\n            memory_bytes_per_second: {MEMORY},\n            \
         cache_bytes: {own},\n            measured: [\n",
        format!("measured on {processor}"),
        date(),
        machine::cores(),
        rates.macs_per_second,
        rates.depthwise_efficiency,
        rates.elements_per_second,
        machine::bytes_per_second(),
        rates.firing_ns,
        HALF_SPEED,
    );
    for (scenario, of_scenario) in samples {
        // Writing to a string does not fail.
        let _ = write!(text, "{0:16}(\n{0:20}scenario: {1:?},\n", "", SCENARIOS[*scenario]);
        let _ = write!(text, "{0:20}threads: {THREADS},\n{0:20}times: {{\n", "");
        for (name, samples) in of_scenario {
            let sample = |s: &Sample| format!("(rows: {}, ns: {:?}, spread: {:?})", s.rows, s.ns, s.spread);
            let samples: Vec<String> = samples.iter().map(sample).collect();
            let _ = writeln!(text, "{:24}{name:?}: [{}],", "", samples.join(", "));
        }
        let _ = write!(text, "{0:20}}},\n{0:16}),\n", "");
    }
    text += &format!("            ],\n        ),\n    }},\n    store: {STORE},\n)\n");
    text
}

/// The time now, as `2026-11-22T21:30:25Z`.
fn date() -> String {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let (mut days, second) = (seconds / 86_400, seconds % 86_400);
    let is_leap =
        |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let mut year = 1970;
    while days >= 365 + u64::from(is_leap(year)) {
        days -= 365 + u64::from(is_leap(year));
        year += 1;
    }
    let lengths = [31, 28 + u64::from(is_leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let mut month = 0;
    while days >= lengths[month] {
        days -= lengths[month];
        month += 1;
    }
    let (hour, minute) = (second / 3600, second / 60 % 60);
    format!("{year:04}-{:02}-{:02}T{hour:02}:{minute:02}:{:02}Z", month + 1, days + 1, second % 60)
}
