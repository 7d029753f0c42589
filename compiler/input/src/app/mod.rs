//! Application files: from the text of an `app.ron` to an application with every name bound.
//!
//! [`spec`] mirrors the file, [`resolve`] binds names, units and models, [`locate`] finds where in the text an error
//! stands.

mod fault;
pub mod inputs;
pub mod load;
pub mod locate;
pub mod name;
pub mod partition;
pub mod precisions;
pub mod primitive_name;
pub mod resolve;
mod single;
pub mod spec;

pub use fault::{AppError, AppFault, Origin};
pub use partition::Partition;
pub use resolve::{Application, Cnn, Constraints, RowsChoice};
pub use spec::Prefer;

pub use crate::units::MemoryGoal;

#[cfg(test)]
mod tests;
