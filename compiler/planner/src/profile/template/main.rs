//! Measures this machine, and prints its device profile on standard output.
//!
//! A layer is timed in a network that runs. Each trial is the network with other primitives. A machine's speed drifts.
//! So trials are interleaved, in rounds, with frames of a reference, the network with its first primitives. A time is
//! the least of a few frames, divided by the time of the reference frames that ran just before.

mod frames;
mod machine;
mod report;
#[allow(dead_code, reason = "not every network has layers of all kinds")]
mod speeds;
#[rustfmt::skip]
mod table;
mod tally;

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::Instant;

use library::made_up::Weights;
use library::{Arena, TRIALS, WEIGHT_BYTES, trace};
use frames::{Frames, frames};
use table::{CNNS, ROUNDS};
use tally::{Samples, Tally, Trial};

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
        _ => Err(format!("the only option is `--rounds N`, and N is {ROUNDS} by default")),
    }
}

/// Times all layers in this many rounds.
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
                let undisturbed: f64 = frames.least.iter().sum();
                let frames = run(trial, arena, weights.bytes())?;
                for (layer, ns) in trial.layers.iter().zip(&frames.least).filter(|(_, ns)| **ns > 0.0) {
                    tally.add(layer, ns / undisturbed);
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

/// Runs some frames of a trial. After the times of its layers comes the time of inputs.
fn run(trial: &Trial, arena: &mut Arena, weights: &[u8]) -> Result<Frames, String> {
    let inputs = trial.layers.len();
    let places: BTreeMap<&str, usize> =
        trial.layers.iter().enumerate().map(|(i, layer)| (layer.name, i)).collect();
    let mut ran = Err(String::from("no frame ran"));
    let is_ready = TRIALS[trial.number](arena, weights, &mut |frame| {
        ran = frames(|| {
            let mut times = vec![0.0; inputs + 1];
            trace::time(frame, |layer, ns| times[places.get(layer).copied().unwrap_or(inputs)] += ns);
            Ok(times)
        });
    });
    is_ready.map_err(|error| error.to_string())?;
    ran
}
