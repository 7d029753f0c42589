//! The `csdfc` command: reads the command line, runs a command, and turns its end into an exit code.

use std::io::Write;
use std::process::ExitCode;

use clap::Parser;
use csdfc::app::open;
use csdfc::cli::{Cli, Command};
use csdfc::error::{Error, Outcome};
use csdfc::{commands, logging};

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version are answers; nobody is left to tell if they cannot be printed.
            let _ = error.print();
            return ExitCode::from(u8::from(error.use_stderr()));
        }
    };
    match std::panic::catch_unwind(|| run(&cli)) {
        Ok(Ok(outcome)) => outcome.into(),
        Ok(Err(error)) => {
            let code = error.exit_code();
            report(&cli, error);
            code
        }
        Err(_) => {
            report(&cli, Error::Bug("csdfc stopped where it never should; the place is named above".into()));
            ExitCode::from(3)
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
