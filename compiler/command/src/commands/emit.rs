//! `csdfc emit`: writes the crate of a plan into a folder, and leaves all other files there alone. Or it writes the weights
//! alone, as an update.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use csdfc_emit::{MANIFEST, Options};
use csdfc_plan::plan::Plan;
use csdfc_plan::remedy::quoted;
use csdfc_planner::saved::reload;

use super::output;
use super::read::read_plan;
use crate::cli::EmitArgs;
use crate::error::{Error, Outcome};
use crate::report;

/// Emits a plan: a crate, an update, or both.
///
/// # Errors
/// When the plan or a model cannot be read, a layer cannot be emitted, a file of the folder is not csdfc's, or one
/// cannot be written.
pub fn emit(args: &EmitArgs) -> Result<Outcome, Error> {
    output::expect_apart(args.update.as_deref(), [args.plan.as_path()])?;
    let (plan, _, models) = read_plan(&args.plan)?;
    let networks = reload::reload(&plan, &models)?;
    let parameters = |cnn, layer, parameter| networks.parameter(cnn, layer, parameter);
    warn_if_missed(&plan);
    if let Some(file) = &args.update {
        let update = csdfc_emit::emit_update(&plan, &parameters, args.number)?;
        output::write_file(file, &update)?;
        tracing::info!(bytes = update.len(), number = args.number, "wrote an update");
    }
    let Some(folder) = &args.output else { return Ok(Outcome::Yes) };
    let options = Options { crate_name: args.crate_name.clone(), image_files: args.image_files };
    let files = tracing::info_span!("emit").in_scope(|| csdfc_emit::emit(&plan, &parameters, &options))?;
    write_crate(folder, &files)?;
    warn_of_crate(&plan);
    tracing::info!(files = files.len(), "emitted");
    output::print(&next_steps(&plan, folder))?;
    Ok(Outcome::Yes)
}

/// Warns of each limit that the plan was asked to keep and does not keep. `csdfc plan` ends with exit code 2 then, but
/// writes the plan all the same.
pub(crate) fn warn_if_missed(plan: &Plan) {
    for limit in report::limits::missed(plan) {
        tracing::warn!("the plan misses a limit that it was asked to keep: {limit}");
    }
}

/// Warns of what a crate does otherwise than its plan says: frame rates that are modelled, and processors that it does not
/// use.
pub(crate) fn warn_of_crate(plan: &Plan) {
    super::device::warn_if_modelled(plan);
    for partition in plan.partitions.iter().filter(|partition| partition.processor != "cpu") {
        tracing::warn!(
            "partition {} is planned for the {}: the crate runs it as one more thread of the CPU",
            partition.name,
            partition.processor
        );
    }
}

/// What can be done with a crate that has just been emitted.
fn next_steps(plan: &Plan, folder: &Path) -> String {
    let mut arguments = String::new();
    if let [cnn, _, ..] = &plan.cnns[..] {
        arguments += &format!("{} ", quoted(&cnn.name));
    }
    let inputs = plan.cnns.first().map_or(0, |cnn| cnn.inputs.len());
    arguments += &vec!["INPUT.npy"; inputs].join(" ");
    let folder = folder.display().to_string();
    format!(
        "The crate is in {folder}. To run a frame of it:\n  cd {} && cargo run --release -- {arguments} --output outputs\n\
         Its README.md has the code that calls it from a program, and says how it is built for other processors.\n",
        quoted(&folder)
    )
}

/// Updates a folder to hold these files. A file that csdfc wrote, and that nobody has changed since, is replaced, or
/// removed if it is no longer part of the crate. Other files are left alone.
///
/// # Errors
/// When a file is in the way, or one cannot be written.
pub fn write_crate(folder: &Path, files: &[(PathBuf, Vec<u8>)]) -> Result<(), Error> {
    let known = recorded_files(folder)?;
    let mut due = Vec::new();
    for (path, content) in files {
        let file = folder.join(path);
        match std::fs::read(&file) {
            Ok(present) if present == *content => {}
            Ok(present) => {
                let ours =
                    path.as_os_str() == MANIFEST || known.get(path) == Some(&csdfc_emit::hash(&present));
                if !ours {
                    return Err(Error::Input {
                        message: format!("{} is not as csdfc wrote it", file.display()),
                        help: Some("move or delete it, or emit into another folder".into()),
                    });
                }
                due.push((file, content));
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => due.push((file, content)),
            Err(error) => return Err(Error::read(file, error)),
        }
    }
    for (path, hash) in &known {
        let file = folder.join(path);
        let stale = !files.iter().any(|(new, _)| new == path);
        if stale && std::fs::read(&file).is_ok_and(|present| csdfc_emit::hash(&present) == *hash) {
            std::fs::remove_file(&file).map_err(|error| Error::write(&file, error))?;
        }
    }
    // The manifest comes last. If the run stops before that, the next run finds exactly the files that it would write.
    due.sort_by_key(|(file, _)| file.ends_with(MANIFEST));
    Ok(due.into_iter().try_for_each(|(file, content)| output::write_file(&file, content))?)
}

/// The files that csdfc wrote into a folder, and the hashes of their contents.
fn recorded_files(folder: &Path) -> Result<BTreeMap<PathBuf, u64>, Error> {
    let manifest = folder.join(MANIFEST);
    let text = match std::fs::read_to_string(&manifest) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(BTreeMap::new()),
        Err(error) => return Err(Error::read(manifest, error)),
    };
    let entry = |line: &str| {
        let (hash, path) = line.split_once(' ')?;
        let path = PathBuf::from(path);
        let inside = path.components().all(|part| matches!(part, Component::Normal(_)));
        Some((path, u64::from_str_radix(hash, 16).ok()?)).filter(|_| inside)
    };
    text.lines().map(entry).collect::<Option<_>>().ok_or_else(|| Error::Input {
        message: format!("{} is not as csdfc wrote it", manifest.display()),
        help: Some("move or delete it, or emit into another folder".into()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(names: &[(&str, &str)]) -> Vec<(PathBuf, Vec<u8>)> {
        let mut files: Vec<(PathBuf, Vec<u8>)> =
            names.iter().map(|(name, text)| (name.into(), text.as_bytes().to_vec())).collect();
        let list: String = files
            .iter()
            .map(|(path, text)| format!("{:016x} {}\n", csdfc_emit::hash(text), path.display()))
            .collect();
        files.push((MANIFEST.into(), list.into_bytes()));
        files
    }

    #[test]
    fn only_files_of_our_own_are_replaced_or_removed() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let read = |name: &str| std::fs::read_to_string(folder.join(name)).ok();
        std::fs::write(folder.join("notes.txt"), "mine").unwrap();
        write_crate(folder, &files(&[("a", "1"), ("src/b", "1"), ("src/c", "1")])).unwrap();
        write_crate(folder, &files(&[("a", "2"), ("src/b", "1")])).unwrap();
        assert_eq!((read("a").unwrap(), read("src/b").unwrap()), ("2".into(), "1".into()));
        assert_eq!((read("src/c"), read("notes.txt").unwrap()), (None, "mine".into()));

        assert!(write_crate(folder, &files(&[("notes.txt", "ours")])).is_err());
        std::fs::write(folder.join("src/b"), "changed").unwrap();
        assert!(write_crate(folder, &files(&[("a", "3"), ("src/b", "2")])).is_err());
        assert_eq!((read("a").unwrap(), read("src/b").unwrap()), ("2".into(), "changed".into()));
        // No longer part of the crate, but changed: it stays.
        write_crate(folder, &files(&[("a", "3")])).unwrap();
        assert_eq!(read("src/b").unwrap(), "changed");

        std::fs::write(folder.join(MANIFEST), "0000000000000000 ../notes.txt\n").unwrap();
        assert!(write_crate(folder, &files(&[("a", "4")])).is_err());
    }
}
