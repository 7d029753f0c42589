//! The times at which the frames of a pipeline end.

use std::time::{Duration, Instant};

use crate::support;

/// The times at which frames ended.
pub struct Ends {
    start: Instant,
    ended: Vec<Duration>,
}

impl Ends {
    /// No ends yet, but room for this many frames.
    pub fn new(frames: usize) -> Self {
        Ends { start: Instant::now(), ended: Vec::with_capacity(frames) }
    }

    /// A frame ends.
    pub fn now(&mut self) {
        self.ended.push(self.start.elapsed());
    }

    /// Prints the time from frame to frame, and the most memory that the process had.
    pub fn report(&self, model: &str) {
        let starts = [Duration::ZERO].into_iter().chain(self.ended.iter().copied());
        let mut times: Vec<Duration> =
            self.ended.iter().zip(starts).map(|(end, start)| *end - start).collect();
        support::report(model, &mut times);
    }
}
