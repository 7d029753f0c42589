//! The `csdfc` command. `cli` reads the command line, and `commands` does the work, with a file for each command.
//! `report` makes the texts that commands print, [`picture`] and `page` draw, and `trace` writes the events of a frame.
//!
//! Another program calls the commands by the functions of [`call`]. [`invoke`] is one call of the command:
//!
//! ```
//! let code = csdfc_command::invoke(["csdfc", "inspect", "builtin:lenet5"].map(Into::into));
//! assert_eq!(code, 0);
//! ```

pub mod call;
mod cli;
mod commands;
pub mod error;
pub mod npy;
mod page;
pub mod picture;
mod report;
mod trace;

pub use commands::emit::write_crate;
pub use commands::invoke::invoke;
