//! Lists the files of this crate, which emitted crates copy.

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::{env, io};

fn main() -> Result<(), Box<dyn Error>> {
    let manifest = env::var_os("CARGO_MANIFEST_DIR").ok_or("no CARGO_MANIFEST_DIR")?;
    let out = env::var_os("OUT_DIR").ok_or("no OUT_DIR")?;
    let root = Path::new(&manifest).join("src");
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
    fs::write(Path::new(&out).join("sources.rs"), list + "]\n")?;
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
