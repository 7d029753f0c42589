//! How fast CNNs shall be: `--fps` and `--latency`.

use std::str::FromStr;

use csdfc_input::units::Nanoseconds;

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
        let (cnn, number) = match text.rsplit_once('=') {
            Some((cnn, number)) => (Some(cnn.to_string()), number),
            None => (None, text),
        };
        match number.trim().parse::<f64>() {
            Ok(fps) if fps.is_finite() && fps > 0.0 => Ok(FpsFloor { cnn, fps }),
            _ => Err("give frames per second above 0: `71`, or `CNN=71` for one CNN".into()),
        }
    }
}

impl FromStr for LatencyLimit {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (cnn, time) = match text.rsplit_once('=') {
            Some((cnn, time)) => (Some(cnn.to_string()), time),
            None => (None, text),
        };
        let latency = time.parse();
        let latency = latency.map_err(
            |_| "give a time above 0 with its unit, ns, us, ms or s: `40ms`, or `CNN=40ms` for one CNN",
        )?;
        Ok(LatencyLimit { cnn, latency })
    }
}
