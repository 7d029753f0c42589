//! `csdfc reproduce`: the tables and figures of a paper, from our own data.

use std::path::Path;

use csdfc_input::device::DeviceProfile;
use csdfc_offload::Budget;

use super::{output, status};
use crate::cli::reproduce::{Paper, ReproduceArgs};
use crate::error::{Ending, Error};
use crate::reproduce;

/// Writes a page and its figures into a folder, and says on standard output what was written. A terminal shows how far it
/// is.
///
/// # Errors
/// When a file cannot be written.
pub fn reproduce(args: &ReproduceArgs) -> Result<Ending, Error> {
    let device = || DeviceProfile::find(&args.device, Path::new(""));
    // What is not the same twice, and so in no file.
    let mut said = String::new();
    let files = match args.paper {
        Paper::S1 => {
            reproduce::s1::files(args.budget.map_or(Budget::Default, Budget::from), args.seed, &status::show)
        }
        Paper::Mec => Ok(reproduce::mec::files(!args.no_times, &status::show)),
        Paper::Pbqp => reproduce::selection::pbqp::files(&device()?, &status::show),
        Paper::Taso => reproduce::selection::taso::files(&device()?, &status::show).map(|(files, solved)| {
            said = solved;
            files
        }),
        Paper::Joint => reproduce::joint::files(&status::show),
        Paper::Paging => reproduce::paging::files(&status::show),
        Paper::Precision => reproduce::precision::files(args.seed, &status::show),
        Paper::Table12 => reproduce::table12::files(args.seed, &status::show),
    };
    let files = files?;
    let mut written = String::new();
    for (name, content) in files {
        let path = args.output.join(name);
        output::write_file(&path, content.as_bytes())?;
        written.push_str(&format!("{}\n", path.display()));
    }
    output::print(&(written + &said))?;
    Ok(Ending::Yes)
}
