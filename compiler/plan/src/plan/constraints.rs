//! What is asked of a plan.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::remedy::Remedy;

/// The constraints of a plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Constraints {
    /// Maximum number of bytes that [`Memory::total`](super::Memory::total) may take. With memory regions there is none: each has its own.
    pub memory: Option<u64>,
    /// Maximum number of bytes of flash that the parameters may take ([`Memory::parameters_stored`](super::Memory::parameters_stored)).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flash: Option<u64>,
    /// Fewest frames per second, by CNN.
    pub fps: BTreeMap<String, f64>,
    /// Maximum number of nanoseconds from a frame's first input to its last output ([`Cnn::latency_ns`](super::Cnn::latency_ns)), by CNN.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub latency_ns: BTreeMap<String, u64>,
    /// Whether the plan meets them.
    pub met: bool,
    /// If it does not: what it would take.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remedies: Vec<Remedy>,
}
