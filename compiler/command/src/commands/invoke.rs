//! One call of the command: from its arguments to its exit code.

use std::ffi::OsString;
use std::io::Write;

use csdfc_planner::open;

use super::{
    analyze, check, emit, inspect, logging, offload, pack, pages, plan, profile, quantize,
    report as report_plan, run as run_plan, select, status,
};
use crate::cli::{Cli, Command};
use crate::error::{Error, Outcome};

/// Runs the command as `main` does, and returns its exit code. The first argument is the program's name. Results go to
/// standard output, everything else to standard error. A panic gives code 3, and does not affect later calls.
pub fn invoke(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    let cli = match Cli::read(arguments) {
        Ok(cli) => cli,
        Err(code) => return code,
    };
    match std::panic::catch_unwind(|| run(&cli)) {
        Ok(Ok(outcome)) => outcome.exit_code(),
        Ok(Err(error)) => {
            let code = error.exit_code();
            report(&cli, error);
            code
        }
        Err(_) => {
            let bug = Error::Bug("csdfc panicked; the message above says where".into());
            let code = bug.exit_code();
            report(&cli, bug);
            code
        }
    }
}

fn run(cli: &Cli) -> Result<Outcome, Error> {
    logging::start(&cli.global)?;
    let _working = status::begin(work(&cli.command));
    match &cli.command {
        Command::Inspect(args) => {
            let mut app = open::open(&args.model)?;
            args.load.apply(&mut app.spec, &mut app.origin)?;
            inspect::inspect(args, app)
        }
        Command::Plan(args) => plan::plan(args),
        Command::Check(args) => check::check(args),
        Command::Run(args) => run_plan::run(args),
        Command::Report(args) => report_plan::report(args),
        Command::Emit(args) => emit::emit(args),
        Command::Analyze(args) => analyze::analyze(args),
        Command::Offload(args) => offload::offload(args),
        Command::Pack(args) => pack::pack(args),
        Command::Profile(args) => profile::profile(args),
        Command::Quantize(args) => quantize::quantize(args),
        Command::Select(args) => select::select(args),
        Command::Completions(args) => pages::completions(args),
        Command::Man(args) => pages::man(args),
    }
}

/// What a command does, for the status line.
fn work(command: &Command) -> &'static str {
    match command {
        Command::Inspect(_) => "reading the model",
        Command::Plan(_) => "planning",
        Command::Check(_) => "checking the plan",
        Command::Run(_) => "running the plan",
        Command::Report(_) => "drawing the plan",
        Command::Emit(_) => "writing the crate",
        Command::Analyze(_) => "analysing the graph",
        Command::Offload(_) => "planning the steps",
        Command::Pack(_) => "packing",
        Command::Profile(_) => "measuring",
        Command::Quantize(_) => "quantizing",
        Command::Select(_) => "selecting primitives",
        Command::Completions(_) | Command::Man(_) => "writing the pages",
    }
}

fn report(cli: &Cli, error: Error) {
    let color = cli.global.color();
    // Fails only if a hook was set before.
    let _ =
        miette::set_hook(Box::new(move |_| Box::new(miette::MietteHandlerOpts::new().color(color).build())));
    let report = miette::Report::new(error);
    let _ = writeln!(std::io::stderr(), "{report:?}");
}
