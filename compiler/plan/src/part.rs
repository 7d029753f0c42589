//! A part of a model.
//!
//! ```
//! use csdfc_plan::part::ModelPart;
//!
//! let part = ModelPart { inputs: Vec::new(), outputs: vec!["features".into()] };
//! assert!(!part.is_whole() && ModelPart::default().is_whole());
//! ```

use serde::{Deserialize, Serialize};

/// A part of a model: what lies between some of its tensors.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ModelPart {
    /// Names of tensors that are inputs in place of what computes them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub inputs: Vec<String>,
    /// Names of tensors that are the outputs; none if these are the model's own.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub outputs: Vec<String>,
}

impl ModelPart {
    /// Whether it is the whole model.
    pub fn is_whole(&self) -> bool {
        self.inputs.is_empty() && self.outputs.is_empty()
    }
}
