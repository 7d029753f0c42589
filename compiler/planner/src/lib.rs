//! The planner: from an application to a plan.
//!
//! [`driver::plan`] is the main job; ARCHITECTURE.md is the map. A choice says how many rows each layer of a CNN makes per
//! firing ([`frame::choice`]). For each choice, [`frame`] makes a dataflow graph, a schedule and ring requests, [`storage`]
//! gives the requests addresses, and [`cost`] models the time. [`search`] makes choices and keeps the good ones, and
//! `streaming` says when streamed weights are read.
//!
//! [`profile`] measures times that [`cost`] then uses, and [`selection`] makes a table of these costs for `csdfc-select`.
//! [`saved`] reads plans and fronts again, [`explain`] says what limits them, and [`minimalloc`] reads buffers that
//! `csdfc-packing` packs.
//!
//! ```
//! use std::path::Path;
//!
//! use csdfc_input::app::resolve::{Application, RowsChoice};
//! use csdfc_input::builtin;
//! use csdfc_input::device::DeviceProfile;
//! use csdfc_planner::driver;
//!
//! // Every layer by parts, a row at a time.
//! let application = Application::of_network("lenet5", builtin::network("lenet5")?, RowsChoice::All);
//! let device = DeviceProfile::find("generic", Path::new(""))?;
//! let plan = driver::plan(&application, &device, vec!["builtin:lenet5".into()])?.plan;
//! assert!(plan.memory.buffers < plan.memory.naive);
//! assert!(csdfc_plan::check::check(&plan).is_ok());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod cost;
pub mod driver;
pub mod error;
pub mod explain;
pub mod frame;
pub mod minimalloc;
pub mod objective;
pub mod open;
pub mod profile;
pub mod remedies;
pub mod saved;
pub mod search;
pub mod selection;
pub mod storage;
pub mod strategy;
mod streaming;
