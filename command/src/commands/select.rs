//! `csdfc select`: primitives and layouts for the layers of a bare table of costs.

use std::path::Path;

use csdfc::error::{Ending, Error};
use csdfc_select::{
    Answer, Instance, InstanceError, Method, Problem, ProgramError, Quantity, Query, answer, front,
};
use serde::Serialize;

use super::{output, read};
use crate::cli::Format;
use crate::cli::select::SelectArgs;
use crate::report::select as report;

/// Bytes of a KiB, in which instances state memories.
const KIB: f64 = 1024.0;

/// Nanoseconds of a microsecond, in which instances state times.
const MICROSECOND: f64 = 1000.0;

/// Selects primitives for an instance, and prints the selection. The answer is no if no selection keeps to a budget, or
/// layouts cannot be converted.
///
/// # Errors
/// When the instance cannot be read or contradicts itself, or the result cannot be written.
pub fn select(args: &SelectArgs) -> Result<Ending, Error> {
    if args.method == Method::Greedy && args.objective != Quantity::Time {
        return Err(Error::Input {
            message: "--method greedy replaces primitives of the time optimum: it minimises nothing but time"
                .into(),
            help: Some("leave --objective out, and give --mem or --workspace".into()),
        });
    }
    let (text, name) = read::read_text(&args.instance, "give an instance in JSON")?;
    let wrong = |error: InstanceError| Error::Input {
        message: format!("{}: {error}", name.display()),
        help: Some(error.help().into()),
    };
    let instance = Instance::parse(&text).map_err(wrong)?;
    let problem = Problem::new(&instance, args.pass_converts).map_err(wrong)?;
    let query = query(args, &instance);
    let _span = tracing::info_span!("select").entered();
    if args.front {
        match front(&problem, &query) {
            Ok(front) => {
                let report = report::FrontReport::new(&problem, &query, &front);
                deliver(args, &report, report::front_text)?;
                return Ok(Ending::Yes);
            }
            Err(why) => return told(args, &problem, &query, &why),
        }
    }
    let answer = answer(&problem, &query).map_err(|error| match error {
        ProgramError::Infeasible => {
            Error::Bug("the exact method finds what the integer program denies".into())
        }
        ProgramError::Solver(_) => Error::Input {
            message: error.to_string(),
            help: Some("`--method exact` needs no integer program".into()),
        },
    })?;
    told(args, &problem, &query, &answer)
}

/// What the arguments and the instance ask.
fn query(args: &SelectArgs, instance: &Instance) -> Query {
    let kib = |bytes: u64| bytes as f64 / KIB;
    let is_time = args.objective == Quantity::Time;
    Query {
        minimise: args.objective,
        time: args
            .max_time
            .map(|time| time.0 as f64 / MICROSECOND)
            .or(instance.time_budget.filter(|_| !is_time)),
        memory: args.mem.map(kib).or(instance.memory_budget.filter(|_| is_time)),
        workspace: args.workspace.map(kib),
        method: args.method,
    }
}

fn told(args: &SelectArgs, problem: &Problem<'_>, query: &Query, answer: &Answer) -> Result<Ending, Error> {
    let report = report::SelectReport::new(problem, query, answer);
    deliver(args, &report, |report| report::text(problem, report))?;
    Ok(if report.met { Ending::Yes } else { Ending::No })
}

/// Writes and prints a result.
fn deliver<R: Serialize>(args: &SelectArgs, report: &R, text: impl Fn(&R) -> String) -> Result<(), Error> {
    if let Some(path) = &args.output {
        let is_ron = path.extension().is_some_and(|end| end == "ron");
        output::write(path, &if is_ron { output::ron(report)? } else { output::json(report)? })?;
    }
    if args.output.as_deref() == Some(Path::new("-")) {
        return Ok(());
    }
    output::print(&match args.format {
        Format::Text => text(report),
        Format::Json => output::json(report)?,
        Format::Ron => output::ron(report)?,
    })
}
