//! Sentences about a plan. The command prints them, and the errors of `csdfc::Build` contain them.
//!
//! ```
//! use std::path::Path;
//!
//! use csdfc_input::device::DeviceProfile;
//! use csdfc_planner::driver;
//! use csdfc_planner::explain::{limits, shortfall};
//! use csdfc_planner::open::open;
//!
//! let mut opened = open("builtin:lenet5")?;
//! opened.spec.constraints.memory = Some("1kB".parse()?);
//! let device = DeviceProfile::find("generic", Path::new(""))?;
//! let planned = driver::plan(&opened.resolve()?, &device, vec!["builtin:lenet5".into()])?;
//! assert!(limits::text(&planned.plan).starts_with("memory peaks while "));
//! let nearest = planned.shortfall.ok_or("a plan of 1 kB")?;
//! assert!(shortfall::text(&planned.plan, &nearest).starts_with("no plan meets all constraints; "));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod flight;
pub mod limits;
pub mod primitives;
pub mod remedies;
pub mod shortfall;
pub mod table;
