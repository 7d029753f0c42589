//! Plans the memory of CNNs on edge boards: in a build script, by [`Build`]; on the command line, by the command `csdfc`,
//! which this package installs (`default-features = false` leaves it out).
//!
//! A plan can also be made, looked at and checked without its code being written:
//!
//! ```
//! let plan = csdfc::Build::new("builtin:lenet5").memory("min").plan()?;
//! assert!(csdfc::check(&plan).is_ok());
//! assert!(plan.memory.arena < 16_000);
//! # Ok::<(), csdfc::BuildError>(())
//! ```

mod build;

pub use build::{Build, BuildError};
pub use csdfc_plan::check::check;
pub use csdfc_plan::plan;
