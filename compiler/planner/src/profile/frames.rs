//! How often trials run, and how their times become one. A crate that measures a board has a copy of this file.

use std::time::{Duration, Instant};

/// A trial takes so much time if its frames are short, and one frame if they are longer.
const TIME: Duration = Duration::from_millis(100);
/// No trial has more frames.
const MAX_FRAMES: usize = 5;

/// A primitive that takes so many times as long as the fastest is not timed again.
pub const TOO_SLOW: f64 = 3.0;

/// What some frames took, in nanoseconds.
pub struct Frames {
    /// Of each layer, the least in a frame: what nothing disturbed.
    pub least: Vec<f64>,
    /// Each frame.
    pub whole: Vec<f64>,
}

/// Runs some frames, each of which gives the nanoseconds of every layer. The first does not count, if there is time for
/// more.
///
/// # Errors
/// The first of a frame.
pub fn frames<E>(mut frame: impl FnMut() -> Result<Vec<f64>, E>) -> Result<Frames, E> {
    let begun = Instant::now();
    let mut least = frame()?;
    let mut whole = vec![least.iter().sum()];
    if begun.elapsed() < TIME {
        least = frame()?;
        whole = vec![least.iter().sum()];
        while whole.len() < MAX_FRAMES && begun.elapsed() < TIME {
            let times = frame()?;
            whole.push(times.iter().sum());
            least.iter_mut().zip(times).for_each(|(least, ns)| *least = least.min(ns));
        }
    }
    Ok(Frames { least, whole })
}

/// The median of some times, converted from frames of the reference to nanoseconds by the usual time of such a frame;
/// and half the distance between the quartiles, as a share of the median.
pub fn median_and_spread(times: &[f64], usual: f64) -> (f64, f64) {
    let median = quantile(times, 0.5);
    let spread = (quantile(times, 0.75) - quantile(times, 0.25)) / (2.0 * median);
    let rounded = |value: f64, digits: f64| (value * digits).round() / digits;
    (rounded(median * usual, 1.0).max(1.0), rounded(spread, 1000.0))
}

/// A quantile of some values, between the two that are nearest.
pub fn quantile(values: &[f64], share: f64) -> f64 {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    let Some(last) = values.len().checked_sub(1) else { return 0.0 };
    let at = share * last as f64;
    let (low, high) = (values[at.floor() as usize], values[at.ceil() as usize]);
    low + (at - at.floor()) * (high - low)
}
