//! The identity of the model from which a plan was made: its path as the plan states it, its size and its hash.
//!
//! ```
//! use std::path::Path;
//!
//! use csdfc_input::device::DeviceProfile;
//! use csdfc_planner::driver;
//! use csdfc_planner::open::open;
//! use csdfc_planner::saved::identity;
//!
//! let application = open("builtin:lenet5")?.resolve()?;
//! let device = DeviceProfile::find("generic", Path::new(""))?;
//! let folder = Path::new("");
//! let path = identity::path_from(folder, &application.cnns[0].model);
//! let mut plan = driver::plan(&application, &device, vec![path])?.plan;
//! identity::verify(folder, &plan.cnns[0])?;
//!
//! // Another network is not the one that was planned.
//! plan.cnns[0].model.path = "builtin:resnet8".into();
//! assert!(identity::verify(folder, &plan.cnns[0]).is_err());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::path::{Component, Path, PathBuf};

use csdfc_input::app::load::ModelSource;
use csdfc_input::builtin;
use csdfc_plan::plan::Cnn;
use sha2::{Digest, Sha256};

use crate::error::Error;

/// The path of a model as a plan in `folder` states it. It is relative to that folder if possible, with `/` between its
/// parts. For a built-in, it is `builtin:NAME`.
pub fn path_from(folder: &Path, model: &ModelSource) -> String {
    match &model.file {
        Some(file) => file_from(folder, file),
        None => model.name.clone(),
    }
}

/// The path of a file as a plan in `folder` states it, as [`path_from`] has it.
pub fn file_from(folder: &Path, file: &Path) -> String {
    let absolute = |path: &Path| {
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        path.canonicalize().or_else(|_| std::path::absolute(path)).unwrap_or_else(|_| path.to_path_buf())
    };
    let (from, to) = (absolute(folder), absolute(file));
    let common = from.components().zip(to.components()).take_while(|(a, b)| a == b).count();
    if common == 0 {
        return file.display().to_string();
    }
    let up = from.components().skip(common).map(|_| Component::ParentDir);
    let down = to.components().skip(common);
    let parts: Vec<String> =
        up.chain(down).map(|part| part.as_os_str().to_string_lossy().into_owned()).collect();
    parts.join("/")
}

/// Verifies that the model of a CNN is still the one from which its plan, in `folder`, was made.
///
/// # Errors
/// When it cannot be read or is another.
pub fn verify(folder: &Path, cnn: &Cnn) -> Result<(), Error> {
    let stated = &cnn.model;
    let (bytes, sha256) = match stated.path.strip_prefix("builtin:") {
        Some(name) => {
            let network = builtin::network(name).map_err(|error| Error::Input {
                message: format!("CNN {}: {error}", cnn.name),
                help: None,
            })?;
            (0, builtin::fingerprint(&network))
        }
        None => {
            let path: PathBuf = folder.join(&stated.path);
            sha256(&path).map_err(|error| Error::read(&path, error))?
        }
    };
    if (bytes, &sha256) == (stated.bytes, &stated.sha256) {
        return Ok(());
    }
    Err(Error::Input {
        message: format!(
            "the model of CNN {}, {}, has changed since this plan was made",
            cnn.name, stated.path
        ),
        help: Some("plan the application again".into()),
    })
}

/// The bytes of a file, and its SHA-256 in hexadecimal digits.
///
/// # Errors
/// When it cannot be read.
pub fn sha256(file: &Path) -> std::io::Result<(u64, String)> {
    let mut hash = Sha256::new();
    let bytes = std::io::copy(&mut std::fs::File::open(file)?, &mut hash)?;
    Ok((bytes, hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()))
}
