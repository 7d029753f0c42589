//! `csdfc pack`: address packing of given lives, with proof.

use std::io::Read;
use std::path::Path;
use std::time::Instant;

use csdfc_packing::{Budget, Meter, PackError, Problem, Solution, infeasible, lives};
use csdfc_planner::minimalloc;

use super::{output, watcher};
use crate::cli::Format;
use crate::cli::budget::SearchBudget;
use crate::cli::pack::PackArgs;
use crate::error::{Error, Outcome};
use crate::report;

/// Steps of the search if no budget is given. They take some ten seconds.
const STEPS: u64 = 1_000_000_000;

/// Packs the buffers of a file, prints the height of the packing, and writes where the buffers lie. The answer is no if
/// they do not fit the capacity.
///
/// # Errors
/// When the file cannot be read, is not in the format, or contradicts itself, or the result cannot be written.
pub fn pack(args: &PackArgs) -> Result<Outcome, Error> {
    output::expect_apart(args.output.as_deref(), [args.file.as_path()])?;
    let (text, name) = read(&args.file)?;
    let wrong = |message: String, help: &str| Error::Input { message, help: Some(help.into()) };
    let rows = minimalloc::parse(&text)
        .map_err(|error| wrong(format!("{name}: {error}"), "see `csdfc pack --help` for the format"))?;
    let lives: Vec<_> = rows.iter().map(|row| row.life.clone()).collect();
    let problem = lives::problem(&lives)
        .map_err(|error| wrong(format!("{name}: {}", named(&error, &rows)), mend(&error)))?;
    let limit = match args.budget {
        Some(SearchBudget::Steps(steps)) => Budget::Work(steps),
        // A time beyond what the clock can show is no limit.
        Some(SearchBudget::Time(time)) => {
            Instant::now().checked_add(time).map_or(Budget::Work(u64::MAX), Budget::Until)
        }
        None => Budget::Work(STEPS),
    };
    let stop = watcher::ctrl_c();
    let mut budget = Meter::new(limit).stopped_by(stop);
    let solution = solve(&problem, args.capacity, &mut budget);
    let core = args.capacity.filter(|capacity| solution.bound > *capacity).and_then(|capacity| {
        let mut budget = Meter::new(limit).stopped_by(stop);
        tracing::info_span!("core").in_scope(|| infeasible::core(&problem, capacity, &mut budget))
    });
    let result = report::pack::result(&rows, &solution, args.capacity, core.as_ref());

    if let Some(path) = &args.output {
        output::write(path, &minimalloc::write(&rows, &solution.packing.offsets))?;
    }
    if args.output.as_deref() != Some(Path::new("-")) {
        output::print(&match args.format {
            Format::Text => report::pack::text(&rows, &result),
            Format::Json => output::json(&result)?,
            Format::Ron => output::ron(&result)?,
        })?;
    }
    Ok(if result.fits == Some(false) { Outcome::No } else { Outcome::Yes })
}

/// Asks first whether the buffers fit, and then how low they can be packed.
fn solve(problem: &Problem, capacity: Option<u64>, budget: &mut Meter) -> Solution {
    let _span = tracing::info_span!("pack").entered();
    let Some(capacity) = capacity else { return csdfc_packing::pack(problem, budget) };
    let first = csdfc_packing::decide(problem, capacity, budget);
    if first.packing.bytes > capacity || first.proven() {
        return first;
    }
    let second = csdfc_packing::pack(problem, budget);
    let packing = if second.packing.bytes <= first.packing.bytes { second.packing } else { first.packing };
    Solution { packing, work: first.work + second.work, ..second }
}

fn read(path: &Path) -> Result<(String, String), Error> {
    let mut bytes = Vec::new();
    let (read, name) = if path.as_os_str() == "-" {
        (std::io::stdin().read_to_end(&mut bytes), "standard input".to_owned())
    } else {
        let file = std::fs::File::open(path);
        (file.and_then(|mut file| file.read_to_end(&mut bytes)), path.display().to_string())
    };
    read.map_err(|error| Error::read(&name, error))?;
    let text = String::from_utf8(bytes).map_err(|_| Error::Input {
        message: format!("{name} is not text"),
        help: Some("give a CSV file whose first line is id,lower,upper,size".into()),
    })?;
    Ok((text, name))
}

fn mend(error: &PackError) -> &'static str {
    match error {
        PackError::TooManyPairs => {
            "pack groups of buffers that are never in use at the same time each for itself"
        }
        _ => "correct the file",
    }
}

/// The error with the buffers' names.
fn named(error: &PackError, rows: &[minimalloc::BufferRow]) -> String {
    match error {
        PackError::FixedOverlap(a, b) => {
            let (a, b) = (&rows[*a].id, &rows[*b].id);
            format!("{a} and {b} are fixed at addresses that overlap while both are in use")
        }
        PackError::Misaligned { block, offset, alignment } => {
            format!("{} is fixed at {offset}, no multiple of its alignment {alignment}", rows[*block].id)
        }
        other => other.to_string(),
    }
}
