//! The arguments of `csdfc plan` that are about fronts: saving one, and starting from one.

use std::path::{Path, PathBuf};

use clap::Args;

/// Where the front goes, and where the search starts.
#[derive(Debug, Clone, Default, Args)]
pub struct FrontArgs {
    /// Write the plans that were seen to this file: JSON, or a chart if it ends in .svg; `-` for standard output
    #[arg(long, value_name = "FILE.json|FILE.svg", value_parser = front_file)]
    pub pareto: Option<PathBuf>,
    /// Start the search from an old plan or a saved front: where these still apply, the new plan is no worse
    #[arg(long, value_name = "FILE", conflicts_with = "rows")]
    pub from: Option<PathBuf>,
    /// Do not search: take plan N of the front that --from names
    #[arg(long, value_name = "N", requires = "from", conflicts_with = "method")]
    pub pick: Option<usize>,
}

fn front_file(text: &str) -> Result<PathBuf, String> {
    let path = Path::new(text);
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("json" | "svg") => Ok(path.into()),
        _ if text == "-" => Ok(path.into()),
        _ => Err("give a name that ends in .json or .svg".into()),
    }
}
