//! One call of the command: from its arguments to its exit code.

use std::ffi::OsString;
use std::io::Write;

use clap::Parser;

use crate::app::open;
use crate::cli::{Cli, Command};
use crate::error::{Error, Outcome};
use crate::{commands, logging};

/// Runs the command as `main` does, the program's name being the first argument, and gives its exit code. Results go to
/// standard output, all else to standard error. A panic is code 3; it leaves nothing behind that a next call would see.
pub fn invoke(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    let cli = match Cli::try_parse_from(arguments) {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version are answers; nobody is left to tell if they cannot be printed.
            let _ = error.print();
            return u8::from(error.use_stderr());
        }
    };
    match std::panic::catch_unwind(|| run(&cli)) {
        Ok(Ok(outcome)) => outcome.exit_code(),
        Ok(Err(error)) => {
            let code = error.exit_code();
            report(&cli, error);
            code
        }
        Err(_) => {
            let bug = Error::Bug("csdfc stopped where it never should; the place is named above".into());
            let code = bug.exit_code();
            report(&cli, bug);
            code
        }
    }
}

fn run(cli: &Cli) -> Result<Outcome, Error> {
    logging::start(&cli.global)?;
    match &cli.command {
        Command::Inspect(args) => {
            let mut app = open::open(&args.model)?;
            args.load.apply(&mut app.spec, &mut app.origin)?;
            commands::inspect(args, app)
        }
        Command::Plan(args) => commands::plan(args),
        Command::Check(args) => commands::check(args),
        Command::Run(args) => commands::run(args),
        Command::Emit(args) => commands::emit(args),
        Command::Analyze(args) => commands::analyze(args),
        Command::Offload(args) => commands::offload(args),
        Command::Pack(args) => commands::pack(args),
        Command::Reproduce(args) => commands::reproduce(args),
    }
}

fn report(cli: &Cli, error: Error) {
    let colour = cli.global.colour();
    // Fails only where a hook was set before.
    let _ =
        miette::set_hook(Box::new(move |_| Box::new(miette::MietteHandlerOpts::new().color(colour).build())));
    let report = miette::Report::new(error);
    let _ = writeln!(std::io::stderr(), "{report:?}");
}
