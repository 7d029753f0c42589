//! Pictures in SVG: charts, memory maps, and the steps of an offloaded convolution.
//!
//! ```
//! use csdfc_command::picture::chart::{Chart, Series};
//!
//! let line = Series { name: "row by row".into(), points: vec![[1.0, 30.0], [2.0, 26.0]] };
//! let chart = Chart { title: "LeNet-5".into(), x: "group".into(), y: "cycles".into(), lines: vec![line] };
//! assert!(chart.svg().starts_with("<svg"));
//! ```

pub mod chart;
pub(crate) mod front;
pub(crate) mod memory;
pub mod strategy;
mod svg;
