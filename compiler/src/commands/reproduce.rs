//! `csdfc reproduce`: the tables and figures of a paper, from our own data.

use crate::cli::reproduce::{Paper, ReproduceArgs};
use crate::error::{Error, Outcome};
use crate::offload::Budget;
use crate::{output, reproduce};

/// Writes a page and its figures into a folder, and says on standard output what was written.
///
/// # Errors
/// When a file cannot be written.
pub fn reproduce(args: &ReproduceArgs) -> Result<Outcome, Error> {
    let files = match args.paper {
        Paper::S1 => reproduce::s1::files(args.budget.map_or(Budget::Default, Budget::from), args.seed)?,
        Paper::Table12 => reproduce::table12::files(args.seed)?,
    };
    let mut written = String::new();
    for (name, content) in files {
        let path = args.output.join(name);
        output::write_file(&path, content.as_bytes())?;
        written.push_str(&format!("{}\n", path.display()));
    }
    output::print(&written)?;
    Ok(Outcome::Yes)
}
