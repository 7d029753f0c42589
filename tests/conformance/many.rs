//! Runs the csdfc command many times in one process. Each line of input holds the arguments of a call, separated by
//! tabs. A line `exit N` ends the output of each call. This saves the start of a process per call when thousands of
//! small networks are run.

use std::ffi::OsString;
use std::io::{BufRead, Write};

fn main() -> std::io::Result<()> {
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let arguments = std::iter::once("csdfc").chain(line.split('\t')).map(OsString::from);
        let code = csdfc_command::invoke(arguments);
        let mut stdout = std::io::stdout().lock();
        writeln!(stdout, "\nexit {code}")?;
        stdout.flush()?;
    }
    Ok(())
}
