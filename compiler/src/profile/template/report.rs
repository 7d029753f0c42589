//! The device profile as text.

use std::fmt::Write;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::machine;
use crate::table::{CACHE_BYTES, CSDFC, LIKE, MEMORY, SCENARIOS, STORE, THREADS, WORK, WORKERS};
use crate::tally::{Sample, Samples};

/// The rates of a core.
pub struct Rates {
    /// Multiplications and additions of a dense convolution, a second.
    pub macs_per_second: f64,
    /// Share of that which a depthwise convolution reaches.
    pub depthwise_efficiency: f64,
    /// Elements of layers that multiply nothing, a second.
    pub elements_per_second: f64,
    /// Nanoseconds of a firing beyond its work.
    pub firing_ns: f64,
    /// How many times as fast it computes layers of 16-bit floats.
    pub half_speed: f64,
}

/// Which rate a layer shows.
#[derive(Clone, Copy)]
#[allow(dead_code, reason = "not every network has layers of all kinds")]
pub enum Kind {
    /// That of dense convolutions.
    Dense,
    /// That of depthwise ones.
    Depthwise,
    /// That of layers that multiply nothing.
    Elements,
    /// None but that of firings.
    Firings,
}

/// The work of a layer with its first primitive.
pub struct Work {
    /// Number of its scenario.
    pub scenario: usize,
    /// The primitive.
    pub primitive: &'static str,
    /// Its rows.
    pub rows: u64,
    /// What kind of work it is.
    pub kind: Kind,
    /// How much.
    pub amount: f64,
}

/// Work, and the nanoseconds that it took.
#[derive(Default)]
struct Done {
    amount: f64,
    ns: f64,
}

impl Done {
    fn add(&mut self, amount: f64, ns: f64) {
        self.amount += amount;
        self.ns += ns;
    }

    fn per_second(&self) -> Option<f64> {
        (self.amount > 0.0 && self.ns > 0.0).then(|| self.amount / self.ns * 1e9)
    }
}

/// The rates that layers with their first primitives and one worker show.
fn rates(samples: &Samples) -> Rates {
    let mut by_kind = [Done::default(), Done::default(), Done::default()];
    let mut firings = Done::default();
    for work in WORK.iter().filter(|_| THREADS == 1) {
        let of_layer = samples.get(&work.scenario).and_then(|of_scenario| of_scenario.get(work.primitive));
        let find = |rows: u64| of_layer?.iter().find(|sample| sample.rows == rows);
        let Some(whole) = find(work.rows) else { continue };
        if let Some(done) = by_kind.get_mut(work.kind as usize) {
            done.add(work.amount, whole.ns);
        }
        if let Some(by_rows) = find(1).filter(|_| work.rows > 1) {
            firings.add((work.rows - 1) as f64, by_rows.ns - whole.ns);
        }
    }
    let [dense, depthwise, elements] = by_kind.map(|done| done.per_second());
    let macs_per_second = dense.unwrap_or(LIKE.macs_per_second);
    Rates {
        macs_per_second,
        depthwise_efficiency: depthwise.map_or(LIKE.depthwise_efficiency, |rate| rate / macs_per_second),
        elements_per_second: elements.unwrap_or(LIKE.elements_per_second),
        // What layers by parts take longer is the price of their firings.
        firing_ns: firings.per_second().map_or(LIKE.firing_ns, |rate| 1e9 / rate),
        half_speed: LIKE.half_speed,
    }
}

/// The profile of this machine.
pub fn profile(samples: &Samples) -> String {
    let processor = machine::processor_name().unwrap_or_else(|| "an unknown processor".into());
    let (caches, rates) = (machine::caches(), rates(samples));
    let own = match caches[..] {
        [_, own, ..] | [own] => own,
        [] => CACHE_BYTES,
    };
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
        rates.half_speed,
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
