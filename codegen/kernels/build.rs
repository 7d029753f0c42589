//! Lists the files of this crate, which emitted crates copy.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> Result<(), Box<dyn Error>> {
    let root = Path::new(&env::var("CARGO_MANIFEST_DIR")?).join("src");
    println!("cargo::rerun-if-changed=src");
    let mut files = files(&root)?;
    files.sort();
    let mut list = String::from("&[\n");
    for file in files {
        let path = file.strip_prefix(&root)?;
        let name = path.iter().map(|part| part.to_string_lossy()).collect::<Vec<_>>().join("/");
        if !["lib.rs", "sources.rs"].contains(&name.as_str()) {
            list += &format!("    ({name:?}, include_str!({:?})),\n", file.to_string_lossy());
        }
    }
    fs::write(Path::new(&env::var("OUT_DIR")?).join("sources.rs"), list + "]\n")?;
    Ok(())
}

/// All files of Rust in a folder, and in its folders.
fn files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            found.extend(files(&path)?);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    Ok(found)
}
