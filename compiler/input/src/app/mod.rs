//! Application files: from the text of an `app.ron` to an application with every name bound.
//!
//! [`spec`] mirrors the file, [`resolve`] binds names, units and models, `locate` finds where in the text an error
//! stands.
//!
//! ```
//! use std::path::Path;
//!
//! use csdfc_input::app::load::load;
//! use csdfc_input::app::{Origin, resolve, spec};
//!
//! let text = r#"(cnns: [(model: "builtin:lenet5"), (model: "builtin:resnet8")], parallel: [["lenet5", "resnet8"]])"#;
//! let origin = Origin { name: "app.ron".into(), text: Some(text.into()), replaced: Vec::new() };
//! let spec = spec::parse(&origin)?;
//! let application = resolve::resolve(&spec, &origin, Path::new(""), &mut load)?;
//! assert_eq!(application.name, "lenet5+resnet8");
//!
//! // An error points into the text.
//! let origin = Origin { text: Some(text.replace("cnns", "cnn")), ..origin };
//! assert!(spec::parse(&origin).is_err_and(|error| error.to_string().contains("unknown field `cnn`")));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod fault;
mod inputs;
pub mod load;
mod locate;
pub mod name;
pub mod names;
pub mod partition;
pub mod precisions;
pub mod primitive_name;
pub mod rates;
pub mod resolve;
mod single;
pub mod spec;
mod state;
mod stream;

pub use fault::{AppError, Origin};
pub use partition::Partition;
pub use resolve::{Application, Cnn, Constraints, RowsChoice};
pub use spec::Prefer;

pub use crate::units::MemoryGoal;

#[cfg(test)]
mod tests;
