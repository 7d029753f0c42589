//! How fast CNNs shall be, as the command line and build scripts state it: `71` and `40ms` of every CNN, `NAME=71` and
//! `NAME=40ms` of one.
//!
//! ```
//! use csdfc_input::app::rates::LatencyLimit;
//! use csdfc_input::app::spec::LatencySpec;
//! use csdfc_input::units::Nanoseconds;
//!
//! let limits: Vec<LatencyLimit> = vec!["40ms".parse()?, "cnn2=1s".parse()?];
//! let mut latency = LatencySpec::default();
//! latency.write_over(&limits);
//! assert_eq!(latency.every, Some(Nanoseconds(40_000_000)));
//! assert_eq!(latency.of["cnn2"], Nanoseconds(1_000_000_000));
//! # Ok::<(), String>(())
//! ```

use std::str::FromStr;

use super::spec::{FpsSpec, LatencySpec};
use crate::units::Nanoseconds;

/// `71`, or `NAME=71`.
#[derive(Debug, Clone, PartialEq)]
pub struct FpsFloor {
    /// The CNN; every CNN if absent.
    pub cnn: Option<String>,
    /// Frames per second, above 0.
    pub fps: f64,
}

/// `40ms`, or `NAME=40ms`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LatencyLimit {
    /// The CNN; every CNN if absent.
    pub cnn: Option<String>,
    /// Longest time of a frame.
    pub latency: Nanoseconds,
}

impl FromStr for FpsFloor {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (cnn, number) = of_cnn(text);
        match number.trim().parse::<f64>() {
            Ok(fps) if fps.is_finite() && fps > 0.0 => Ok(FpsFloor { cnn, fps }),
            _ => Err("give frames per second above 0: `71`, or `CNN=71` for one CNN".into()),
        }
    }
}

impl FromStr for LatencyLimit {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (cnn, time) = of_cnn(text);
        let latency = time.parse();
        let latency = latency.map_err(
            |_| "give a time above 0 with its unit, ns, us, ms or s: `40ms`, or `CNN=40ms` for one CNN",
        )?;
        Ok(LatencyLimit { cnn, latency })
    }
}

/// The CNN that a text names, if it names one, and what is said of it.
fn of_cnn(text: &str) -> (Option<String>, &str) {
    match text.rsplit_once('=') {
        Some((cnn, of)) => (Some(cnn.to_string()), of),
        None => (None, text),
    }
}

impl FpsSpec {
    /// Writes these floors over what is stated. One of every CNN replaces all that is stated.
    pub fn write_over(&mut self, floors: &[FpsFloor]) {
        if floors.iter().any(|floor| floor.cnn.is_none()) {
            *self = FpsSpec::default();
        }
        for FpsFloor { cnn, fps } in floors {
            match cnn {
                None => self.every = Some(*fps),
                Some(cnn) => {
                    self.of.insert(cnn.clone(), *fps);
                }
            }
        }
    }
}

impl LatencySpec {
    /// Writes these limits over what is stated. One of every CNN replaces all that is stated.
    pub fn write_over(&mut self, limits: &[LatencyLimit]) {
        if limits.iter().any(|limit| limit.cnn.is_none()) {
            *self = LatencySpec::default();
        }
        for LatencyLimit { cnn, latency } in limits {
            match cnn {
                None => self.every = Some(*latency),
                Some(cnn) => {
                    self.of.insert(cnn.clone(), *latency);
                }
            }
        }
    }
}
