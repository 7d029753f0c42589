//! Writes results to standard output, or to files that are never half written.

use std::fs::File;
use std::io::{ErrorKind, Write};
use std::path::Path;

use csdfc_planner::error::Error;
use serde::Serialize;
use tempfile::NamedTempFile;

use super::status;

/// Writes a result to standard output. If the reader has gone away, as in `csdfc … | head`, that is no error.
///
/// # Errors
/// When it cannot be written for another reason.
pub fn print(text: &str) -> Result<(), Error> {
    status::clear();
    let mut stdout = std::io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(Error::write("standard output", error)),
        _ => Ok(()),
    }
}

/// Writes a result to standard error, where standard output has other bytes.
///
/// # Errors
/// When it cannot be written.
pub fn print_error(text: &str) -> Result<(), Error> {
    status::clear();
    std::io::stderr().write_all(text.as_bytes()).map_err(|error| Error::write("standard error", error))
}

/// Writes a file, or standard output for `-`.
///
/// A file appears under its name whole or not at all: it is written under another name in the same folder and renamed.
///
/// # Errors
/// When it cannot be written; the old content is then unharmed.
pub fn write(path: &Path, text: &str) -> Result<(), Error> {
    if path.as_os_str() == "-" {
        return print(text);
    }
    let failed = |error: std::io::Error| Error::write(path, error);
    match std::fs::metadata(path) {
        // Follow links. A rename cannot replace a device or a pipe.
        Ok(meta) if meta.is_file() => {
            replace(&path.canonicalize().map_err(failed)?, text.as_bytes()).map_err(failed)
        }
        Ok(meta) if meta.is_dir() => Err(failed(ErrorKind::IsADirectory.into())),
        Ok(_) => File::options()
            .write(true)
            .open(path)
            .and_then(|mut file| file.write_all(text.as_bytes()))
            .map_err(failed),
        Err(_) => replace(path, text.as_bytes()).map_err(failed),
    }
}

/// Checks that [`write`] could write a file, so that nobody waits for a result that has nowhere to go. Nothing is written.
///
/// # Errors
/// As [`write`].
pub fn check(path: &Path) -> Result<(), Error> {
    let failed = |error: std::io::Error| Error::write(path, error);
    match std::fs::metadata(path) {
        _ if path.as_os_str() == "-" => Ok(()),
        Ok(meta) if meta.is_file() => {
            path.canonicalize().and_then(|file| beside(&file)).map(drop).map_err(failed)
        }
        Ok(meta) if meta.is_dir() => Err(failed(ErrorKind::IsADirectory.into())),
        // A pipe may have no reader yet.
        Ok(_) => Ok(()),
        Err(_) => beside(path).map(drop).map_err(failed),
    }
}

/// Checks that no file that is to be written is also read, or written twice. Devices and pipes may be.
///
/// # Errors
/// When one is.
pub fn expect_apart<'p>(
    written: impl IntoIterator<Item = &'p Path>,
    read: impl IntoIterator<Item = &'p Path>,
) -> Result<(), Error> {
    let known = |path: &'p Path| match std::fs::metadata(path) {
        _ if path.as_os_str() == "-" => None,
        Ok(meta) if !meta.is_file() => None,
        Ok(_) => path.canonicalize().ok(),
        Err(_) => Some(path.to_owned()),
    };
    let read: Vec<_> = read.into_iter().filter_map(known).collect();
    let mut seen = Vec::new();
    for path in written {
        let Some(file) = known(path) else { continue };
        let message = match () {
            () if read.contains(&file) => format!("{} is read, and would be written over", path.display()),
            () if seen.contains(&file) => format!("{} would be written twice", path.display()),
            () => {
                seen.push(file);
                continue;
            }
        };
        return Err(Error::Input { message, help: Some("give the result a file of its own".into()) });
    }
    Ok(())
}

/// Writes a file, and the folders that it lies in. It appears under its name whole or not at all.
///
/// # Errors
/// When it cannot be written; the old content is then unharmed.
pub fn write_file(path: &Path, content: &[u8]) -> Result<(), Error> {
    let folders = path.parent().map_or(Ok(()), std::fs::create_dir_all);
    folders.and_then(|()| replace(path, content)).map_err(|error| Error::write(path, error))
}

/// Data as JSON, with a newline at its end.
///
/// # Errors
/// Those of serde. There are none for the plain data that csdfc prints.
pub fn json(data: &impl Serialize) -> Result<String, Error> {
    let text = serde_json::to_string_pretty(data).map_err(|error| Error::Bug(error.to_string()))?;
    Ok(text + "\n")
}

/// Data as RON, with a newline at its end.
///
/// # Errors
/// As [`json`].
pub fn ron(data: &impl Serialize) -> Result<String, Error> {
    let text = ron::ser::to_string_pretty(data, ron::ser::PrettyConfig::default())
        .map_err(|error| Error::Bug(error.to_string()))?;
    Ok(text + "\n")
}

fn replace(path: &Path, content: &[u8]) -> std::io::Result<()> {
    let mut file = beside(path)?;
    file.write_all(content)?;
    file.as_file().sync_all()?;
    file.persist(path)?;
    Ok(())
}

/// A new file in the same folder, which is gone again unless it gets a name.
fn beside(path: &Path) -> std::io::Result<NamedTempFile<File>> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    // Open the file here, so that it gets the usual permissions and not those of a private temporary file.
    tempfile::Builder::new().prefix(".csdfc-").make_in(folder, |name| File::create_new(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_appear_whole_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("plan.json");
        write(&path, "one").unwrap();
        write(&path, "two").unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "two");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
        assert!(write(folder.path(), "three").is_err());
        assert!(write(&folder.path().join("missing/plan.json"), "three").is_err());
        assert!(check(&path).is_ok() && check(&folder.path().join("other.json")).is_ok());
        assert!(check(folder.path()).is_err() && check(&folder.path().join("missing/plan.json")).is_err());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
