//! The `csdfc` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(csdfc_command::commands::invoke::invoke(std::env::args_os()))
}
