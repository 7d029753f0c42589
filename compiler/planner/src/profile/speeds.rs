//! The rates of a core, computed from the times of layers. A crate that measures a board has a copy of this file.

/// Which rate can be computed from the time of a layer.
#[derive(Debug, Clone, Copy)]
pub enum Rate {
    /// The rate of dense convolutions.
    Dense,
    /// The rate of depthwise convolutions.
    Depthwise,
    /// The rate of layers without multiplications.
    Elements,
    /// None, except the time that a firing takes beyond its work.
    Other,
}

/// The work of a layer, and how long it took with its first primitive and one worker.
pub struct MeasuredWork {
    /// Which rate can be computed from it.
    pub kind: Rate,
    /// Multiplications and additions, or elements.
    pub amount: f64,
    /// Its rows.
    pub rows: u64,
    /// Nanoseconds in one firing.
    pub whole_ns: f64,
    /// Nanoseconds row by row, if that was measured.
    pub by_rows_ns: Option<f64>,
}

/// The rates of a core.
#[derive(Clone, Copy)]
pub struct Speeds {
    /// Multiply-accumulates of dense convolutions per second.
    pub macs_per_second: f64,
    /// The share of that rate which depthwise convolutions reach.
    pub depthwise_efficiency: f64,
    /// Elements per second of layers without multiplications.
    pub elements_per_second: f64,
    /// Nanoseconds that each firing takes in addition to its work.
    pub firing_ns: f64,
}

/// A sum of work, and the nanoseconds that it took.
#[derive(Default)]
struct Work {
    amount: f64,
    ns: f64,
}

impl Work {
    fn add(&mut self, amount: f64, ns: f64) {
        self.amount += amount;
        self.ns += ns;
    }

    fn per_second(&self) -> Option<f64> {
        (self.amount > 0.0 && self.ns > 0.0).then(|| self.amount / self.ns * 1e9)
    }
}

/// The rates that layers show. One that none of them shows is that of `like`.
pub fn speeds(layers: impl Iterator<Item = MeasuredWork>, like: Speeds) -> Speeds {
    let (mut dense, mut depthwise, mut elements, mut firings) =
        (Work::default(), Work::default(), Work::default(), Work::default());
    for MeasuredWork { kind, amount, rows, whole_ns, by_rows_ns } in layers {
        match kind {
            Rate::Dense => dense.add(amount, whole_ns),
            Rate::Depthwise => depthwise.add(amount, whole_ns),
            Rate::Elements => elements.add(amount, whole_ns),
            Rate::Other => {}
        }
        if let Some(by_rows_ns) = by_rows_ns.filter(|_| rows > 1) {
            firings.add((rows - 1) as f64, by_rows_ns - whole_ns);
        }
    }
    let macs_per_second = dense.per_second().unwrap_or(like.macs_per_second);
    let efficiency = depthwise.per_second().map(|rate| rate / macs_per_second);
    Speeds {
        macs_per_second,
        depthwise_efficiency: efficiency.unwrap_or(like.depthwise_efficiency),
        elements_per_second: elements.per_second().unwrap_or(like.elements_per_second),
        // The extra time of layers by parts is the price of their firings.
        firing_ns: firings.per_second().map_or(like.firing_ns, |rate| 1e9 / rate),
    }
}

/// The cache that weights stay in, of those of a core, from the nearest to the farthest: the second, or the only one.
pub fn own_cache(cache_bytes: &[u64]) -> Option<u64> {
    match cache_bytes {
        [_, own, ..] | [own] => Some(*own),
        [] => None,
    }
}
