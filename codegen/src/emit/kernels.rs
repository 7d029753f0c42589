//! The sources of the kernels that a crate needs.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::LazyLock;

use csdfc_kernels::sources::SOURCES;

/// The files of these modules of the kernels, and of all modules that they use, in `src/kernels`.
pub(super) fn files(modules: &BTreeSet<&str>) -> Vec<(PathBuf, Vec<u8>)> {
    let needed = closure(modules);
    let mut files: Vec<(PathBuf, Vec<u8>)> = SOURCES
        .iter()
        .filter(|(path, _)| needed.contains(module(path)))
        .map(|(path, text)| (PathBuf::from("src/kernels").join(path), adapt(text).into_bytes()))
        .collect();
    let mut head = String::from(
        "//! The kernels that the models use: every operator in rows, without allocation.\n\
         #![allow(clippy::all, clippy::pedantic, dead_code, unused_imports, reason = \"only a part is in use\")]\n\n",
    );
    for module in &needed {
        head += &format!("pub mod {module};\n");
    }
    files.push(("src/kernels/mod.rs".into(), head.into_bytes()));
    files
}

/// The modules, and all that they use.
fn closure<'a>(modules: &BTreeSet<&'a str>) -> BTreeSet<&'a str> {
    let mut needed: BTreeSet<&str> = BTreeSet::new();
    let mut open: Vec<&str> = modules.iter().copied().collect();
    while let Some(next) = open.pop() {
        if !needed.insert(next) {
            continue;
        }
        for (path, text) in SOURCES.iter().filter(|(path, _)| module(path) == next) {
            let text = without_tests(text);
            let depth = path.matches('/').count() - usize::from(path.ends_with("mod.rs"));
            let roots = ["crate::".to_owned(), "super::".repeat(depth + 1)];
            for (other, _) in SOURCES.iter() {
                let other = module(other);
                if roots.iter().any(|root| uses(&text, root, other)) {
                    open.push(other);
                }
            }
        }
    }
    needed
}

/// Whether a text names a module by a path that begins so.
fn uses(text: &str, root: &str, module: &str) -> bool {
    text.match_indices(root).any(|(at, _)| {
        let rest = &text[at + root.len()..];
        let names = rest.strip_prefix('{').map_or(rest, |list| list.split('}').next().unwrap_or(list));
        let is_list = rest.starts_with('{');
        names
            .split(|c: char| !(c.is_alphanumeric() || c == '_'))
            .take(if is_list { usize::MAX } else { 1 })
            .any(|name| name == module)
    })
}

/// The file of each public type of the kernels.
static TYPES: LazyLock<BTreeMap<&'static str, &'static str>> = LazyLock::new(|| {
    let types = |&(path, text): &(&'static str, &'static str)| {
        text.lines().filter_map(move |line| {
            let name = line.strip_prefix("pub struct ").or_else(|| line.strip_prefix("pub enum "))?;
            Some((name.split(|c: char| !c.is_alphanumeric()).next()?, path))
        })
    };
    SOURCES.iter().flat_map(types).collect()
});

/// The module of a type of the kernels, one of those that [`files`] takes.
pub(super) fn module_of(name: &str) -> &'static str {
    TYPES.get(name).map_or("", |path| module(path))
}

/// A type of the kernels as an emitted crate names it.
pub(super) fn path_of(name: &str) -> String {
    let file = TYPES.get(name).copied().unwrap_or_default();
    let module = file.strip_suffix("/mod.rs").or(file.strip_suffix(".rs")).unwrap_or_default();
    format!("kernels::{}::{name}", module.replace('/', "::"))
}

/// The module of a file: `conv` for `conv.rs`, `conv/mod.rs` and `conv/depthwise.rs`.
fn module(path: &str) -> &str {
    path.split(['/', '.']).next().unwrap_or(path)
}

/// A file of the kernels' crate as one of the module `kernels`; nothing writes down parameters there.
fn adapt(text: &str) -> String {
    let text = without_tests(text).replace("crate::", "crate::kernels::");
    text.split_inclusive('\n').filter(|line| !line.starts_with("#[cfg_attr(feature = \"serde\"")).collect()
}

/// The text without the modules of its tests, in the file or beside it.
fn without_tests(text: &str) -> String {
    let mut kept = String::new();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let is_module = |line: &&str| line.starts_with("mod ") || line.starts_with("#[path");
        if line != "#[cfg(test)]" || !lines.peek().is_some_and(is_module) {
            kept += line;
            kept.push('\n');
            continue;
        }
        let end = |line: &str| line == "}" || (line.starts_with("mod ") && line.ends_with(';'));
        lines.by_ref().find(|line| end(line));
    }
    kept.trim_end().to_owned() + "\n"
}
