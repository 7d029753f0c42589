//! The quantities that selections minimise, and limit.
//!
//! ```
//! use csdfc_select::Quantity;
//! use csdfc_select::problem::Cost;
//! use csdfc_select::quantity::Axis;
//!
//! let cost = Cost { time: 115, memory: 90, workspace: 80 };
//! assert_eq!(Quantity::Workspace.amount(&cost), 80);
//! assert_eq!(Axis::Time.amount(&cost), 115);
//! assert_eq!(Axis::Time.other(), Axis::Memory);
//! ```

use crate::model::Weights;
use crate::problem::Cost;

/// A quantity that is minimised or limited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Quantity {
    /// Time of all layers and conversions.
    Time,
    /// Memory, summed over layers.
    Memory,
    /// Memory of the layer that takes most.
    Workspace,
}

/// The quantity that is minimised. The budget limits the other one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Axis {
    /// Time, then memory.
    Time,
    /// Memory summed over layers, then time.
    Memory,
}

impl Axis {
    /// Its part of a cost.
    pub fn amount(self, cost: &Cost) -> u64 {
        match self {
            Axis::Time => cost.time,
            Axis::Memory => cost.memory,
        }
    }

    /// The other quantity.
    pub fn other(self) -> Axis {
        match self {
            Axis::Time => Axis::Memory,
            Axis::Memory => Axis::Time,
        }
    }

    /// Weights of this quantity and of the other.
    pub(crate) fn weights(self, own: u128, other: u128) -> Weights {
        match self {
            Axis::Time => Weights { time: own, memory: other },
            Axis::Memory => Weights { time: other, memory: own },
        }
    }

    /// The weights that put this quantity first and the other second.
    pub(crate) fn first(self) -> Weights {
        match self {
            Axis::Time => Weights::TIME,
            Axis::Memory => Weights::MEMORY,
        }
    }
}
