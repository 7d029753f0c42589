//! `csdfc inspect`: the layers of an application and what they need; a model as an ONNX file.

use std::path::PathBuf;

use csdfc_input::export::export;
use csdfc_plan::plan::StorageModel;
use csdfc_planner::open::Opened;

use super::output;
use crate::cli::{Format, InspectArgs};
use crate::error::{Error, Outcome};
use crate::report;

/// Shows the layers of an application and what they need, and writes its only CNN as an ONNX model if that is asked
/// for.
///
/// # Errors
/// When the application cannot be read, analysed or written as a model, or standard output cannot be written.
pub fn inspect(args: &InspectArgs, mut app: Opened) -> Result<Outcome, Error> {
    if let Some(file) = &args.onnx {
        let models: Vec<PathBuf> = app.spec.cnns.iter().map(|cnn| app.folder.join(&cnn.model)).collect();
        output::expect_apart([file.as_path()], models.iter().map(PathBuf::as_path))?;
        output::write_file(file, &export(&app.network_as_stated()?)?)?;
    }
    let own = app.resolve()?;
    // Which layers there are depends on the storage model.
    app.spec.search.method = None;
    app.spec.storage = Some(match own.storage {
        StorageModel::Tensors => StorageModel::Edges,
        StorageModel::Edges => StorageModel::Tensors,
    });
    let inspection = report::inspect::inspect(&own, &app.resolve()?)?;
    let text = match args.format {
        Format::Text => report::inspect::text(&inspection),
        Format::Json => output::json(&inspection)?,
        Format::Ron => output::ron(&inspection)?,
    };
    output::print(&text)?;
    Ok(Outcome::Yes)
}
