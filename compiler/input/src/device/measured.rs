//! What was measured on a processor: how long a layer takes with each primitive that computes it.
//!
//! Layers of one *scenario* do the same work: the same operator on the same shapes. A measurement belongs to a
//! scenario, a primitive, a number of workers, and a number of rows per firing.
//!
//! ```
//! use csdfc_input::builtin;
//! use csdfc_input::device::measured::scenario;
//!
//! // The same operator on the same shapes, so what is measured of one of these layers holds for the other.
//! let network = builtin::network("vgg16")?;
//! let named = |name: &str| network.find(name).map(|id| scenario(network.layer(id)));
//! assert_eq!(named("features.19"), named("features.21"));
//! assert_ne!(named("features.17"), named("features.19"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::collections::BTreeMap;

use csdfc_network::Layer;
use serde::{Deserialize, Serialize};

/// The times of a scenario.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Measured {
    /// What is computed, as [`scenario`] names it.
    pub scenario: String,
    /// Workers that shared each firing.
    pub threads: u64,
    /// Times by primitive, with rows per firing that ascend.
    pub times: BTreeMap<String, Vec<Sample>>,
}

/// The time of a layer at some number of rows per firing.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sample {
    /// Rows per firing.
    pub rows: u64,
    /// Nanoseconds of all firings of a frame: the median.
    pub ns: f64,
    /// Half the distance between the quartiles, as a share of the median.
    pub spread: f64,
}

impl Measured {
    /// Whether its figures make sense.
    pub(super) fn makes_sense(&self) -> bool {
        let is_time = |sample: &Sample| sample.ns.is_finite() && sample.ns > 0.0;
        let is_sample = |sample: &Sample| is_time(sample) && sample.spread >= 0.0 && sample.rows > 0;
        let ascends = |samples: &Vec<Sample>| samples.windows(2).all(|pair| pair[0].rows < pair[1].rows);
        self.times.values().all(|samples| samples.iter().all(is_sample) && ascends(samples))
    }
}

/// The scenario of a layer: its operator with all attributes, and the shapes of its operands, as in
/// `max_pool (kernel:(2,2),stride:(2,2)) of [1, 8, 28, 28]`.
pub fn scenario(layer: &Layer) -> String {
    // Operators are plain data, which can always be written: `(op:NAME,attributes:(…))`.
    let text = ron::to_string(&layer.operator).unwrap_or_default();
    let operator = text.trim_start_matches("(op:").replacen(",attributes:", " ", 1);
    let operator = operator.strip_suffix(')').unwrap_or(&operator);
    let shapes: Vec<String> =
        layer.inputs.iter().map(|operand| format!("{:?}", operand.shape.dims)).collect();
    format!("{operator} of {}", shapes.join(" "))
}

#[cfg(test)]
mod tests {
    use csdfc_network::pass::{self, Fusion};

    use super::*;

    #[test]
    fn scenarios_can_be_read() {
        let network = pass::normalise(crate::builtin::network("lenet5").unwrap(), Fusion::Full);
        let all: Vec<String> = network.layers.iter().map(scenario).collect();
        assert!(all[1].starts_with("conv (filters:6,kernel:(5,5),"), "{all:?}");
        assert!(all[1].ends_with(") of [1, 1, 32, 32]"), "{all:?}");
        assert!(all.iter().skip(1).all(|text| !text.contains("op:") && text.contains(" of [")), "{all:?}");
    }
}
