//! Measures this machine, and prints its device profile on standard output.
//!
//! A layer is timed in place, as one of a network that runs. Each trial is the network with other primitives. Trials are
//! interleaved, in rounds, with frames of a reference, the network with its first primitives: a machine's speed drifts. A
//! time is the least of a few frames, counted in frames of the reference that ran just before.

mod machine;
mod report;
#[rustfmt::skip]
mod table;
mod tally;

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use library::made_up::Weights;
use library::{Arena, TRIALS, WEIGHT_BYTES, trace};

use table::{CNNS, ROUNDS};
use tally::{Samples, Tally, Trial};

/// A trial takes so much time if its frames are short, and one frame if they are longer.
const TIME: Duration = Duration::from_millis(100);
/// No trial has more frames.
const MOST_FRAMES: usize = 5;

/// What some frames took, in nanoseconds.
struct Frames {
    /// Of each layer, the least in a frame: what nothing disturbed.
    least: BTreeMap<&'static str, f64>,
    /// Each frame.
    whole: Vec<f64>,
}

fn main() -> ExitCode {
    match rounds().and_then(measure) {
        Ok(samples) => {
            print!("{}", report::profile(&samples));
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// The rounds that the command line asks for.
fn rounds() -> Result<usize, String> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => Ok(ROUNDS),
        ["--rounds", number] => match number.parse() {
            Ok(rounds) if rounds > 0 => Ok(rounds),
            _ => Err("`--rounds` needs a number above 0".into()),
        },
        _ => Err(format!("there is no option but `--rounds N`, which is {ROUNDS} if not given")),
    }
}

/// Times all layers in so many rounds.
fn measure(rounds: usize) -> Result<Samples, String> {
    let weights = Weights::new(WEIGHT_BYTES);
    let arena = Arena::take().ok_or("the arena is in use")?;
    let mut all = Samples::new();
    for (number, (reference, trials)) in CNNS.iter().enumerate() {
        let begun = Instant::now();
        let mut tally = Tally::default();
        for round in 0..rounds {
            for (i, trial) in trials.iter().enumerate() {
                if !tally.wants(trial) {
                    continue;
                }
                let frames = run(reference, arena, weights.bytes())?;
                tally.reference(&frames.whole);
                let undisturbed: f64 = frames.least.values().sum();
                let frames = run(trial, arena, weights.bytes())?;
                for layer in trial.layers {
                    if let Some(ns) = frames.least.get(layer.name) {
                        tally.add(layer, ns / undisturbed);
                    }
                }
                let (done, of_all) = (round * trials.len() + i + 1, rounds * trials.len());
                let left = begun.elapsed().as_secs_f64() * (of_all - done) as f64 / done as f64;
                eprint!(
                    "\rnetwork {} of {}: trial {done} of {of_all}, {left:.0} s at most  ",
                    number + 1,
                    CNNS.len()
                );
            }
        }
        for (scenario, times) in tally.samples() {
            let known = all.entry(scenario).or_default();
            times.into_iter().for_each(|(primitive, samples)| {
                known.entry(primitive).or_insert(samples);
            });
        }
    }
    eprintln!();
    Ok(all)
}

/// Runs some frames of a trial. The first does not count, if there is time for more.
fn run(trial: &Trial, arena: &mut Arena, weights: &[u8]) -> Result<Frames, String> {
    let mut frames = Frames { least: BTreeMap::new(), whole: Vec::new() };
    let ran = TRIALS[trial.number](arena, weights, &mut |frame| {
        let mut times = || {
            let mut times = BTreeMap::new();
            trace::time(frame, |layer, ns| *times.entry(layer).or_insert(0.0) += ns);
            times
        };
        let begun = Instant::now();
        frames.least = times();
        if begun.elapsed() < TIME {
            frames.least = times();
            frames.whole = vec![frames.least.values().sum()];
            while frames.whole.len() < MOST_FRAMES && begun.elapsed() < TIME {
                let times: BTreeMap<&'static str, f64> = times();
                frames.whole.push(times.values().sum());
                for (layer, ns) in times {
                    let least = frames.least.entry(layer).or_insert(ns);
                    *least = least.min(ns);
                }
            }
        } else {
            frames.whole = vec![frames.least.values().sum()];
        }
    });
    ran.map_err(|error| error.to_string())?;
    Ok(frames)
}
