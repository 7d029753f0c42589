//! What the commands do.

use csdfc_codegen::operator::Operator;

use crate::app::resolve::Application;
use crate::cli::{CheckArgs, InspectArgs, PlanArgs};
use crate::error::{Error, Outcome};
use crate::output;

/// Lists the layers of an application.
///
/// # Errors
/// When standard output cannot be written.
pub fn inspect(args: &InspectArgs, app: &Application) -> Result<Outcome, Error> {
    let _ = args.format;
    let mut text = String::new();
    for cnn in &app.cnns {
        text += &format!("{} ({} layers)\n", cnn.name, cnn.network.layers.len());
        for layer in &cnn.network.layers {
            let kind = if matches!(layer.operator, Operator::Input(_)) { "input" } else { "layer" };
            text += &format!("  {kind} {} {}\n", layer.name, layer.shape);
        }
    }
    output::print(&text)?;
    Ok(Outcome::Yes)
}

/// Plans an application.
///
/// # Errors
/// When the plan cannot be written.
pub fn plan(args: &PlanArgs, app: &Application) -> Result<Outcome, Error> {
    let _ = (args, app);
    Err(Error::Bug("planning is not built".into()))
}

/// Checks a plan.
///
/// # Errors
/// When the plan cannot be read.
pub fn check(args: &CheckArgs) -> Result<Outcome, Error> {
    let _ = args;
    Err(Error::Bug("checking is not built".into()))
}
