//! Reads what csdfc wrote before: plans with their models, and fronts.
//!
//! ```
//! use std::path::Path;
//!
//! use csdfc_input::device::DeviceProfile;
//! use csdfc_plan::plan::Plan;
//! use csdfc_planner::driver;
//! use csdfc_planner::open::open;
//! use csdfc_planner::saved::reload;
//!
//! let application = open("builtin:lenet5")?.resolve()?;
//! let device = DeviceProfile::find("generic", Path::new(""))?;
//! let plan = driver::plan(&application, &device, vec!["builtin:lenet5".into()])?.plan;
//!
//! // A plan that was written, and is read again, still has the layers of its model.
//! let read = Plan::parse(&plan.to_json())?;
//! assert!(reload::differences(&read, Path::new(""))?.is_empty());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod front;
pub mod identity;
pub mod reload;
