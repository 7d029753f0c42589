//! What an observer of firings sees.

use std::time::{Duration, Instant};

use super::value::Value;

/// One firing that has just ended.
pub struct Fired<'a> {
    /// Index of the layer in its CNN.
    pub layer: usize,
    /// When it began.
    pub start: Instant,
    /// How long it took.
    pub elapsed: Duration,
    pub(super) whole: Option<&'a dyn Fn() -> Option<Value>>,
}

impl Fired<'_> {
    /// The tensor that the layer made, if it makes it in one firing, anything reads it, and it lies as HWC.
    pub fn tensor(&self) -> Option<Value> {
        self.whole.and_then(|whole| whole())
    }
}
