//! The sources of the kernels that a crate needs.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::LazyLock;

use csdfc_kernels::sources::SOURCES;

use super::features::{self, Features};

/// The files of these modules of the kernels, and of all modules that they use, in `src/kernels`, with code for convolutions
/// as they are used.
pub(super) fn files(modules: &BTreeSet<&str>, features: Features) -> Vec<(PathBuf, Vec<u8>)> {
    let needed = closure(modules);
    let mut files: Vec<(PathBuf, Vec<u8>)> = SOURCES
        .iter()
        .filter(|(path, _)| needed.contains(module(path)))
        .map(|&(path, text)| {
            let text =
                if path == features::FILE { features.text() } else { adapt(module(path), text, &needed) };
            (PathBuf::from("src/kernels").join(path), text.into_bytes())
        })
        .collect();
    let mut head = String::from(
        "//! The kernels that the models use: every operator in rows, without allocation.\n\
         #![allow(clippy::all, clippy::pedantic, dead_code, unused_imports, reason = \"only a part is in use\")]\n\n",
    );
    for module in needed.iter().filter(|module| !module.contains('/')) {
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
        open.extend(parent(next));
        for (_, text) in SOURCES.iter().filter(|(path, _)| module(path) == next) {
            let others = SOURCES.iter().map(|(other, _)| module(other));
            open.extend(others.filter(|other| names(next, text, other)));
        }
    }
    needed
}

/// The folder of a module, a module itself, unless that is the crate.
fn parent(module: &str) -> Option<&str> {
    module.rsplit_once('/').map(|(folder, _)| folder)
}

/// Whether the text of a module names another one: by a path from the crate, from itself, or from a module that it is in.
fn names(module: &str, text: &str, other: &str) -> bool {
    let name = other.rsplit('/').next().unwrap_or(other);
    let (mut from, mut up) = (Some(module), String::new());
    loop {
        // The folder from which a path starts, and how the path states it.
        let (place, written) = match from {
            Some(place) => (format!("{place}/"), up.as_str()),
            None => (String::new(), up.as_str()),
        };
        if let Some(rest) = other.strip_prefix(&place) {
            let folders = rest.strip_suffix(name).unwrap_or_default().replace('/', "::");
            let is_root = from.is_none() && uses(text, &format!("crate::{folders}"), name);
            if is_root || uses(text, &format!("{written}{folders}"), name) {
                return true;
            }
        }
        let Some(place) = from else { return false };
        from = parent(place);
        up += "super::";
    }
}

/// Whether a text names a module by a path that begins with `root`. Without a root, a path must follow the module's
/// name.
fn uses(text: &str, root: &str, module: &str) -> bool {
    let starts = |at: usize| !text[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == ':');
    if root.is_empty() {
        return text.match_indices(&format!("{module}::")).any(|(at, _)| starts(at));
    }
    text.match_indices(root).filter(|(at, _)| starts(*at)).any(|(at, _)| {
        let rest = &text[at + root.len()..];
        let names = rest.strip_prefix('{').map_or(rest, |list| list.split('}').next().unwrap_or(list));
        let is_list = rest.starts_with('{');
        names
            .split(|c: char| !(c.is_alphanumeric() || c == '_'))
            .take(if is_list { usize::MAX } else { 1 })
            .any(|name| name == module)
    })
}

/// The module of each public type of the kernels.
static TYPES: LazyLock<BTreeMap<&'static str, &'static str>> = LazyLock::new(|| types().collect());

/// Each public type of the kernels, and its module.
fn types() -> impl Iterator<Item = (&'static str, &'static str)> {
    let types = |&(path, text): &(&'static str, &'static str)| {
        text.lines().filter_map(move |line| {
            let name = line.strip_prefix("pub struct ").or_else(|| line.strip_prefix("pub enum "))?;
            Some((name.split(|c: char| !c.is_alphanumeric()).next()?, offered_by(module(path))))
        })
    };
    SOURCES.iter().flat_map(types)
}

/// The module whose path names the types of a module: the folder's, if the module is private to it.
fn offered_by(module: &'static str) -> &'static str {
    let private = |folder: &&str| {
        let own = SOURCES.iter().find(|(path, _)| path.strip_suffix("/mod.rs") == Some(folder));
        let name = module.rsplit('/').next().unwrap_or(module);
        own.is_some_and(|(_, text)| text.lines().any(|line| line == format!("mod {name};")))
    };
    parent(module).filter(private).unwrap_or(module)
}

/// The module of a type of the kernels, one of those that [`files`] takes.
pub(super) fn module_of(name: &str) -> &'static str {
    TYPES.get(name).copied().unwrap_or_default()
}

/// A type of the kernels as an emitted crate names it.
pub(super) fn path_of(name: &str) -> String {
    format!("kernels::{}::{name}", module_of(name).replace('/', "::"))
}

/// The module of a file: `conv` for `conv.rs` and `conv/mod.rs`, `conv/depthwise` for `conv/depthwise.rs`.
fn module(path: &str) -> &str {
    path.strip_suffix("/mod.rs").or(path.strip_suffix(".rs")).unwrap_or(path)
}

/// The file of a module of the kernels' crate, changed into a file of the module `kernels`, which has these modules.
/// The code that writes parameters down is left out.
fn adapt(module: &str, text: &str, needed: &BTreeSet<&str>) -> String {
    let text = without_example(text).replace("crate::", "crate::kernels::");
    let is_absent = |line: &str| {
        let name = line.strip_prefix("pub ").unwrap_or(line).strip_prefix("mod ");
        let name = name.and_then(|name| name.trim_end().strip_suffix(';'));
        name.is_some_and(|name| !needed.contains(format!("{module}/{name}").as_str()))
    };
    let mut kept = String::new();
    // A condition goes with the module below it.
    let mut condition = "";
    for line in text.split_inclusive('\n').filter(|line| !line.starts_with("#[cfg_attr(feature = \"serde\""))
    {
        if line.starts_with("#[cfg(") {
            kept += std::mem::replace(&mut condition, line);
            continue;
        }
        let above = std::mem::take(&mut condition);
        if !is_absent(line) {
            kept += above;
            kept += line;
        }
    }
    kept + condition
}

/// A file without the example at the end of its front page, which would not compile in another crate.
fn without_example(text: &str) -> String {
    let Some((page, example)) = text.split_once("//!\n//! # Example\n") else { return text.into() };
    let code = example.split_inclusive('\n').skip_while(|line| line.starts_with("//!"));
    std::iter::once(page).chain(code).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The modules that come with these.
    fn files_with(modules: &[&'static str]) -> Vec<&'static str> {
        closure(&modules.iter().copied().collect()).into_iter().collect()
    }

    #[test]
    fn a_crate_has_the_files_that_its_kernels_use() {
        let conv = files_with(&["conv"]);
        for part in ["arch/avx2", "conv/dense", "conv/depthwise", "conv/pre", "conv/window", "indirect"] {
            assert!(conv.contains(&part), "{part} is missing of {conv:?}");
        }
        for family in ["conv/direct", "conv/mec", "conv/im2row", "conv/transpose", "product", "layout"] {
            assert!(!conv.contains(&family), "{family} is not used");
            assert!(files_with(&[family]).contains(&family));
        }
        assert!(files_with(&["conv/winograd"]).contains(&"conv/winograd/transform"));
        let mec = files_with(&["conv/mec"]);
        for part in ["conv", "conv/scenario", "product", "layout"] {
            assert!(mec.contains(&part), "{part} is missing of {mec:?}");
        }
        assert!(!mec.contains(&"conv/direct"));
        assert!(!files_with(&["convert"]).contains(&"conv"));
    }

    #[test]
    fn examples_stay_here() {
        let page = "//! A page.\n//!\n//! # Example\n//!\n//! ```\n//! let x = 1;\n//! ```\nfn f() {}\n";
        assert_eq!(without_example(page), "//! A page.\nfn f() {}\n");
        assert_eq!(without_example("//! A page.\nfn f() {}\n"), "//! A page.\nfn f() {}\n");
        let all = SOURCES.iter().map(|(path, _)| module(path)).collect();
        for (path, text) in files(&all, Features::default()) {
            assert!(!String::from_utf8(text).unwrap().contains("csdfc_kernels"), "{}", path.display());
        }
    }

    /// A name says which type is meant.
    #[test]
    fn no_two_types_have_one_name() {
        assert_eq!(TYPES.len(), types().count());
    }

    #[test]
    fn a_folder_declares_the_modules_that_are_there() {
        let heads = |modules: &[&'static str]| -> String {
            let files = files(&modules.iter().copied().collect(), Features::default());
            let head = files.iter().find(|(path, _)| path.ends_with("conv/mod.rs")).unwrap();
            String::from_utf8(head.1.clone()).unwrap()
        };
        let head = heads(&["conv/kn2"]);
        assert!(head.contains("\npub mod kn2;\n") && head.contains("\nmod dense;\n"));
        assert!(!head.contains("mod mec;"));
        // A module that is left out leaves no condition behind, since the condition would apply to the next item.
        let sums =
            adapt("quantized", "#[cfg(a)]\nmod avx2;\n#[cfg(b)]\nmod dense;\nfn f() {}\n", &BTreeSet::new());
        assert_eq!(sums, "fn f() {}\n");
        let dense = BTreeSet::from(["quantized/dense"]);
        let sums = adapt("quantized", "#[cfg(a)]\nmod avx2;\n#[cfg(b)]\nmod dense;\nfn f() {}\n", &dense);
        assert_eq!(sums, "#[cfg(b)]\nmod dense;\nfn f() {}\n");
    }
}
