//! What happens within one frame of a CNN: from a choice for its layers to the rings that must be stored.
//!
//! The files in the order in which they follow one another:
//!
//! 1. [`task`]: a CNN with its partitions, as the application cuts it.
//! 2. [`choice`]: rows per firing of each layer, and where segments end. A search makes it.
//! 3. [`lower`]: a partition under a choice becomes a CSDF graph, whose tokens are rows.
//! 4. [`execution`]: the graph is executed segment by segment, on demand. That gives the order of firings and the
//!    capacity of each channel. `tighten` looks for an order that needs less. Where weights are streamed, layers may run
//!    ahead of demand.
//! 5. [`request`]: capacities and the order become ring requests: rows, bytes, first and last firing.
//! 6. [`occupancy`]: which bytes of a ring are in use at each firing, and which layers may write where they read.
//! 7. `couple`: rings between partitions that run at the same time get the size that their speed needs.
//!
//! Nothing here knows of addresses: [`storage`](crate::storage) places the requests.
//!
//! ```
//! use csdfc_plan::plan::StorageModel;
//! use csdfc_planner::frame::choice::Choice;
//! use csdfc_planner::frame::execution::{Rings, execute};
//! use csdfc_planner::frame::lower::RateTable;
//! use csdfc_planner::frame::task;
//! use csdfc_planner::open::open;
//!
//! let application = open("builtin:lenet5")?.resolve()?;
//! let task = &task::tasks(&application)[0];
//! let rates = RateTable::new(task.network);
//! let bytes = |choice: &Choice| -> Result<u64, csdf::Error> {
//!     let execution = execute(task, &rates, choice, StorageModel::Tensors, Rings::OnDemand)?;
//!     Ok(execution.requests.iter().map(|request| request.bytes).sum())
//! };
//! // Rings of a few rows take fewer bytes than whole tensors.
//! assert!(bytes(&Choice::all(task.network))? < bytes(&Choice::none(task.network))?);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod choice;
pub(crate) mod couple;
pub mod execution;
pub mod lower;
pub mod occupancy;
pub mod request;
pub mod task;
mod tighten;
