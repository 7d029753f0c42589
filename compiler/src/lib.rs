//! The csdfc compiler: from an application to a plan.
//!
//! [`driver::plan`] is the main job; ARCHITECTURE.md is the map. A network can be read ([`app::load`]), named
//! ([`builtin::network`]) or written in Rust ([`builtin::Builder`]).
//!
//! These modules make networks from an application: [`app`], [`import`], [`builtin`], [`network`], [`operators`],
//! [`pass`]. [`export`] writes a network as an ONNX model, and [`device`] reads what a device can do. These modules make
//! a plan from networks: [`frame`], [`storage`], [`packing`], [`cost`], [`paging`], [`search`], [`driver`]. [`profile`]
//! measures times that [`cost`] then uses, and [`selection`] makes a table of these costs for `csdfc-select`. [`saved`]
//! reads plans and fronts again, and [`words`] says what limits them. [`offload`] is independent of planning, and
//! [`minimalloc`] reads buffers that [`packing`] packs. The command is a crate of its own.
//!
//! This crate is not optimised. Searches, packing and offloading, which take long, are crates of their own, which are.
//!
//! A build script needs only [`Build`], the types of a [`plan`], and perhaps [`check()`].

mod build;
pub mod driver;
pub mod error;
pub mod minimalloc;
pub mod open;
pub mod profile;
pub mod saved;
pub mod selection;
pub mod words;

pub use build::{Build, BuildError};
pub use csdfc_explore::{cost, frame, paging, search, storage};
pub use csdfc_input::{app, builtin, device, export, import, units};
pub use csdfc_network::{self as network, operators, pass, suggest};
pub use csdfc_offload as offload;
pub use csdfc_packing as packing;
pub use csdfc_plan::check::check;
pub use csdfc_plan::plan;
