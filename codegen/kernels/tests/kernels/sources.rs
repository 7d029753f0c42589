//! The list of files that emitted crates copy.

use std::path::{Path, PathBuf};

use csdfc_kernels::sources::SOURCES;

#[test]
fn no_file_is_missing() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let (mut found, mut open) = (Vec::<String>::new(), vec![root.clone()]);
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path: PathBuf = entry.unwrap().path();
            let name = path.strip_prefix(&root).unwrap().to_string_lossy().replace('\\', "/");
            match name.as_str() {
                "lib.rs" | "sources.rs" => {}
                _ if path.is_dir() => open.push(path),
                name => found.push(name.to_string()),
            }
        }
    }
    found.sort();
    assert_eq!(found, SOURCES.iter().map(|(path, _)| path.to_string()).collect::<Vec<_>>());
}
