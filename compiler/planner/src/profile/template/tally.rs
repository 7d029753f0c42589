//! The times that were measured.

use std::collections::BTreeMap;

use crate::frames::{TOO_SLOW, median_and_spread, quantile};

/// A plan, and its layers.
pub struct Trial {
    /// Its number.
    pub number: usize,
    /// Its layers, but for inputs.
    pub layers: &'static [Layer],
}

/// A layer of a trial.
pub struct Layer {
    /// Its name.
    pub name: &'static str,
    /// Number of its scenario: what it computes.
    pub scenario: usize,
    /// The primitive that computes it.
    pub primitive: &'static str,
    /// Rows per firing.
    pub rows: u64,
    /// Whether the trial is there to time it.
    pub is_tried: bool,
}

/// The time of a scenario with a primitive at some number of rows per firing.
pub struct Sample {
    /// Rows per firing.
    pub rows: u64,
    /// Nanoseconds of all firings of a frame: the median.
    pub ns: f64,
    /// Half the distance between the quartiles, as a share of the median.
    pub spread: f64,
}

/// Samples by scenario and primitive, by rising rows per firing.
pub type Samples = BTreeMap<usize, BTreeMap<&'static str, Vec<Sample>>>;

/// All times of a network, in frames of a reference that ran just before.
#[derive(Default)]
pub struct Tally {
    times: BTreeMap<usize, BTreeMap<&'static str, BTreeMap<u64, Vec<f64>>>>,
    /// Nanoseconds of frames of the reference.
    references: Vec<f64>,
}

impl Tally {
    /// Adds a time, in frames of the reference.
    pub fn add(&mut self, layer: &Layer, frames: f64) {
        let of_scenario = self.times.entry(layer.scenario).or_default();
        of_scenario.entry(layer.primitive).or_default().entry(layer.rows).or_default().push(frames);
    }

    /// Adds frames of the reference, in nanoseconds.
    pub fn reference(&mut self, frames: &[f64]) {
        self.references.extend(frames);
    }

    /// Whether a trial times a layer whose primitive is not yet known to be much slower than the fastest.
    pub fn wants(&self, trial: &Trial) -> bool {
        trial.layers.iter().any(|layer| layer.is_tried && !self.is_too_slow(layer))
    }

    fn is_too_slow(&self, layer: &Layer) -> bool {
        let Some(of_scenario) = self.times.get(&layer.scenario) else { return false };
        let fastest = of_scenario.values().map(least).fold(f64::INFINITY, f64::min);
        of_scenario.get(layer.primitive).is_some_and(|times| least(times) > TOO_SLOW * fastest)
    }

    /// All samples: times in frames of the reference, multiplied by the usual time of such a frame.
    pub fn samples(&self) -> Samples {
        let usual = quantile(&self.references, 0.5);
        let sample = |(rows, times): (&u64, &Vec<f64>)| {
            let (ns, spread) = median_and_spread(times, usual);
            Sample { rows: *rows, ns, spread }
        };
        let mut samples = Samples::new();
        for (scenario, of_scenario) in &self.times {
            let all = of_scenario.iter().map(|(name, times)| (*name, times.iter().map(sample).collect()));
            samples.insert(*scenario, all.collect());
        }
        samples
    }
}

/// The shortest time of a layer that fires once.
fn least(times: &BTreeMap<u64, Vec<f64>>) -> f64 {
    let whole = times.last_key_value().map(|(_, times)| times.as_slice()).unwrap_or_default();
    whole.iter().copied().fold(f64::INFINITY, f64::min)
}
