//! Which layers were timed, and which are left to time.

use std::collections::BTreeMap;

use csdfc_input::device::measured::{Measured, Sample};
use csdfc_plan::format::Layout;
use csdfc_runtime::bind::Primitive;

use super::frames::{TOO_SLOW, median_and_spread, quantile};

/// A layer that is timed: what it computes, and how.
#[derive(Debug, Clone)]
pub(super) struct Key {
    pub scenario: String,
    pub primitive: Primitive,
}

/// How a layer fires.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// Once a frame.
    Whole,
    /// Once a row.
    ByRows,
}

/// Times of a scenario with a primitive.
struct Timed {
    primitive: Primitive,
    /// By mode, how often it was chosen for a trial.
    tried: [usize; 2],
    /// By rows per firing, in frames of the reference.
    times: BTreeMap<u64, Vec<f64>>,
    state: State,
}

/// Whether a time is to be taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// In each round.
    Wanted,
    /// Whenever there is one, such as that of a conversion.
    Welcome,
    /// An earlier measurement is kept instead.
    Known,
}

/// All times.
pub(super) struct Tally {
    threads: u64,
    rounds: usize,
    scenarios: BTreeMap<String, Vec<Timed>>,
    /// Nanoseconds of frames of the reference.
    references: Vec<f64>,
}

impl Timed {
    fn min_ns(&self) -> f64 {
        let whole = self.times.last_key_value().map(|(_, times)| times.as_slice()).unwrap_or_default();
        whole.iter().copied().fold(f64::INFINITY, f64::min)
    }

    /// How often it is to be tried, given the time of the fastest primitive.
    fn rounds(&self, mode: Mode, rounds: usize, fastest: f64) -> usize {
        let is_too_slow = self.min_ns() > TOO_SLOW * fastest;
        match mode {
            _ if self.state != State::Wanted => 0,
            Mode::Whole if is_too_slow && self.min_ns().is_finite() => 1,
            Mode::Whole => rounds,
            Mode::ByRows if self.goes_by_rows() && !is_too_slow => rounds,
            Mode::ByRows => 0,
        }
    }

    /// Whether it can make some rows of its output from some of its input.
    fn goes_by_rows(&self) -> bool {
        self.primitive.layouts().iter().all(|layout| *layout != Layout::Chw)
    }
}

impl Tally {
    /// A tally in which known measurements count as done.
    pub fn new(threads: u64, rounds: usize, known: &[Measured]) -> Self {
        let mut tally = Tally { threads, rounds, scenarios: BTreeMap::new(), references: Vec::new() };
        for measured in known.iter().filter(|measured| measured.threads == threads) {
            for name in measured.times.keys() {
                if let Some(primitive) = Primitive::find(name) {
                    tally.timed(&Key { scenario: measured.scenario.clone(), primitive }).state = State::Known;
                }
            }
        }
        tally
    }

    /// Adds what is to be timed.
    pub fn expect(&mut self, key: Key) {
        let timed = self.timed(&key);
        if timed.state == State::Welcome {
            timed.state = State::Wanted;
        }
    }

    fn timed(&mut self, key: &Key) -> &mut Timed {
        let all = self.scenarios.entry(key.scenario.clone()).or_default();
        let place = all.iter().position(|timed| timed.primitive == key.primitive).unwrap_or_else(|| {
            let primitive = key.primitive;
            all.push(Timed { primitive, tried: [0; 2], times: BTreeMap::new(), state: State::Welcome });
            all.len() - 1
        });
        &mut all[place]
    }

    /// The primitive that a layer is to be tried with next: of those that are not finished, the one that was tried least
    /// often. `None` if all are finished.
    pub fn choose(&mut self, scenario: &str, mode: Mode) -> Option<Primitive> {
        let rounds = self.rounds;
        let all = self.scenarios.get_mut(scenario)?;
        let fastest = fastest(all);
        let is_open = |timed: &&mut Timed| timed.tried[mode as usize] < timed.rounds(mode, rounds, fastest);
        let next = all.iter_mut().filter(is_open).min_by_key(|timed| timed.tried[mode as usize])?;
        next.tried[mode as usize] += 1;
        Some(next.primitive)
    }

    /// Adds a time, in frames of the reference.
    pub fn add(&mut self, key: Key, rows: u64, frames: f64) {
        self.timed(&key).times.entry(rows).or_default().push(frames);
    }

    /// Adds frames of the reference, in nanoseconds.
    pub fn reference(&mut self, frames: &[f64]) {
        self.references.extend(frames);
    }

    /// Times that are still to be taken.
    pub fn left(&self, mode: Mode) -> usize {
        let of_scenario = |all: &Vec<Timed>| {
            let fastest = fastest(all);
            let left = |timed: &Timed| {
                timed.rounds(mode, self.rounds, fastest).saturating_sub(timed.tried[mode as usize])
            };
            all.iter().map(left).sum::<usize>()
        };
        self.scenarios.values().map(of_scenario).sum()
    }

    /// Times that were taken.
    pub fn done(&self) -> usize {
        self.scenarios.values().flatten().map(|timed| timed.tried.iter().sum::<usize>()).sum()
    }

    /// Replaces known measurements by finished ones.
    pub fn publish(&self, known: &mut Vec<Measured>) {
        let usual = quantile(&self.references, 0.5);
        for (scenario, all) in &self.scenarios {
            let fastest = fastest(all);
            for timed in all.iter().filter(|timed| timed.state != State::Known) {
                let is_open =
                    |mode: Mode| timed.tried[mode as usize] < timed.rounds(mode, self.rounds, fastest);
                if timed.times.is_empty() || is_open(Mode::Whole) || is_open(Mode::ByRows) {
                    continue;
                }
                let sample = |(rows, times): (&u64, &Vec<f64>)| {
                    let (ns, spread) = median_and_spread(times, usual);
                    Sample { rows: *rows, ns, spread }
                };
                let place =
                    known.iter().position(|of| of.scenario == *scenario && of.threads == self.threads);
                let place = place.unwrap_or_else(|| {
                    let threads = self.threads;
                    known.push(Measured { scenario: scenario.clone(), threads, times: BTreeMap::new() });
                    known.len() - 1
                });
                let samples = timed.times.iter().map(sample).collect();
                known[place].times.insert(timed.primitive.name().into(), samples);
            }
        }
    }
}

/// The shortest time of all, of a layer that fires once.
fn fastest(all: &[Timed]) -> f64 {
    all.iter().map(Timed::min_ns).fold(f64::INFINITY, f64::min)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(scenario: &str, name: &str) -> Key {
        Key { scenario: scenario.into(), primitive: Primitive::find(name).unwrap() }
    }

    const FIRST: &str = "indirect-gemm-hwc-hwc";
    const SLOW: &str = "direct-dot-hwc-hwc";
    const PLANES: &str = "direct-sum2d-chw-chw";

    /// Times every primitive that is chosen for a scenario, until none is left. Returns how often each was timed.
    fn time_all(tally: &mut Tally, ns: impl Fn(&str, Mode) -> f64) -> BTreeMap<(&'static str, bool), usize> {
        let mut counts = BTreeMap::new();
        for mode in [Mode::Whole, Mode::ByRows] {
            while tally.left(mode) > 0 {
                let before = tally.left(mode);
                let chosen = tally.choose("s", mode).unwrap();
                *counts.entry((chosen.name(), mode == Mode::ByRows)).or_insert(0) += 1;
                tally.reference(&[2.0]);
                let rows = if mode == Mode::Whole { 8 } else { 1 };
                tally.add(
                    Key { scenario: "s".into(), primitive: chosen },
                    rows,
                    ns(chosen.name(), mode) / 2.0,
                );
                assert!(tally.left(mode) < before);
            }
        }
        counts
    }

    #[test]
    fn each_is_timed_in_every_round_but_what_is_too_slow_once() {
        let mut tally = Tally::new(1, 4, &[]);
        for name in [FIRST, SLOW, PLANES] {
            tally.expect(key("s", name));
        }
        assert_eq!(tally.left(Mode::Whole), 12);
        let ns = |name: &str, mode: Mode| match (name, mode) {
            (SLOW, _) => 3001.0,
            (PLANES, _) => 2900.0,
            (_, Mode::Whole) => 1000.0,
            (_, Mode::ByRows) => 1500.0,
        };
        let counts = time_all(&mut tally, ns);
        let expected = [((SLOW, false), 1), ((PLANES, false), 4), ((FIRST, false), 4), ((FIRST, true), 4)];
        assert_eq!(counts, BTreeMap::from(expected));
        assert_eq!((tally.done(), tally.left(Mode::Whole) + tally.left(Mode::ByRows)), (13, 0));
        assert!(tally.choose("s", Mode::Whole).is_none());

        // A conversion counts whenever it is timed.
        tally.add(key("t", "convert-swap-hwc-hcw"), 8, 100.0);
        assert_eq!(tally.left(Mode::Whole), 0);
        let mut known = Vec::new();
        tally.publish(&mut known);
        let times = |scenario: &str, name: &str| -> Vec<(u64, f64)> {
            let measured = known.iter().find(|measured| measured.scenario == scenario).unwrap();
            measured.times[name].iter().map(|sample| (sample.rows, sample.ns)).collect()
        };
        assert_eq!(times("s", FIRST), [(1, 1500.0), (8, 1000.0)]);
        assert_eq!(times("s", SLOW), [(8, 3001.0)]);
        assert_eq!(times("t", "convert-swap-hwc-hcw"), [(8, 200.0)]);

        // Known measurements are kept and not timed again.
        let before = known.clone();
        let mut again = Tally::new(1, 4, &known);
        again.expect(key("s", FIRST));
        assert_eq!(again.left(Mode::Whole) + again.left(Mode::ByRows), 0);
        again.reference(&[1.0]);
        again.add(key("s", FIRST), 8, 7.0);
        again.publish(&mut known);
        assert_eq!(known, before);
        // With another number of workers, they are timed again.
        let mut others = Tally::new(2, 4, &known);
        others.expect(key("s", FIRST));
        assert_eq!(others.left(Mode::Whole), 4);
    }

    #[test]
    fn a_sample_is_the_median_in_usual_frames() {
        let mut tally = Tally::new(1, 3, &[]);
        tally.expect(key("s", PLANES));
        // The second round came while the machine was half as fast.
        for (reference, ns) in [(1000.0, 100.0), (2000.0, 240.0), (1000.0, 110.0)] {
            tally.choose("s", Mode::Whole);
            tally.reference(&[reference]);
            tally.add(key("s", PLANES), 1, ns / reference);
        }
        let mut known = Vec::new();
        tally.publish(&mut known);
        assert_eq!(known[0].times[PLANES], [Sample { rows: 1, ns: 110.0, spread: 0.045 }]);
        assert_eq!(quantile(&[4.0, 1.0, 2.0], 0.5), 2.0);
        assert_eq!(quantile(&[1.0, 2.0], 0.75), 1.75);
        assert_eq!(quantile(&[], 0.5), 0.0);
    }
}
