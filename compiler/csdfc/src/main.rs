//! The `csdfc` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(csdfc_command::invoke(std::env::args_os()))
}
