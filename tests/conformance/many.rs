//! The csdfc command, many times in one process: reads a line of arguments, separated by tabs, and ends what each call
//! prints by a line `exit N`. It saves the start of a process a call where small networks are run by the thousand.

use std::ffi::OsString;
use std::io::{BufRead, Write};

fn main() -> std::io::Result<()> {
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let arguments = std::iter::once("csdfc").chain(line.split('\t')).map(OsString::from);
        let code = csdfc_command::commands::invoke::invoke(arguments);
        let mut stdout = std::io::stdout().lock();
        writeln!(stdout, "\nexit {code}")?;
        stdout.flush()?;
    }
    Ok(())
}
