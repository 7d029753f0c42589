//! The plan, the contract between the planner and the code that runs it.
//!
//! [`plan::Plan`] is plain data that holds all an outsider needs. [`check::check`] replays it by a path that shares no
//! code with the planner. [`timeline`] says what lies where when. This crate knows neither how plans are found nor what
//! runs them: it depends on no other crate of ours.
//!
//! ```
//! use csdfc_plan::plan::Plan;
//!
//! let text = std::fs::read_to_string("../../tests/plan_format/version_1/pair_5x5.json")?;
//! let plan = Plan::parse(&text)?;
//! assert!(csdfc_plan::check(&plan).is_ok());
//! assert_eq!((plan.memory.arena, plan.memory.proven), (1920, true));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod check;
mod fields;
pub mod file;
pub mod format;
mod older;
pub mod operator;
pub mod part;
pub mod plan;
pub mod remedy;
pub mod shape;
pub mod timeline;

pub use check::check;
