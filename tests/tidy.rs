//! Rules of this repository that a compiler does not check: which crate may depend on which, sizes of files, documents
//! that are up to date.

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod circles;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use csdfc_tests::root;

/// Longest source file, in lines.
const MAX_LINES: usize = 700;

/// Every crate, by its folder, and the crates of ours that it may depend on.
const DIRECTION: [(&str, &[&str]); 16] = [
    ("csdf", &[]),
    ("ga", &[]),
    ("codegen/kernels", &[]),
    ("codegen/runtime", &["csdfc-kernels", "csdfc-plan"]),
    ("codegen/emit", &["csdfc-kernels", "csdfc-plan", "csdfc-runtime"]),
    ("compiler/plan", &[]),
    ("compiler/network", &["csdfc-kernels", "csdfc-plan", "csdfc-runtime"]),
    // Its tests also plan and run what they import.
    ("compiler/input", &["csdfc-input", "csdfc-network", "csdfc-plan", "csdfc-planner", "csdfc-runtime"]),
    ("compiler/packing", &[]),
    ("compiler/select", &[]),
    ("compiler/offload", &["csdfc-input", "csdfc-network", "csdfc-plan"]),
    ("compiler/planner", PLANNER),
    ("compiler/precision", &["csdfc-input", "csdfc-network", "csdfc-plan", "csdfc-planner", "csdfc-runtime"]),
    ("compiler/command", COMMAND),
    (
        "compiler/csdfc",
        &["csdfc-command", "csdfc-emit", "csdfc-input", "csdfc-network", "csdfc-plan", "csdfc-planner"],
    ),
    ("tests/reproduce", REPRODUCE),
];

const PLANNER: &[&str] = &[
    "csdf",
    "csdfc-ga",
    "csdfc-input",
    "csdfc-network",
    "csdfc-packing",
    "csdfc-plan",
    "csdfc-runtime",
    "csdfc-select",
];

const COMMAND: &[&str] = &[
    "csdf",
    "csdfc-emit",
    "csdfc-input",
    "csdfc-kernels",
    "csdfc-network",
    "csdfc-offload",
    "csdfc-packing",
    "csdfc-plan",
    "csdfc-planner",
    "csdfc-precision",
    "csdfc-runtime",
    "csdfc-select",
];

const REPRODUCE: &[&str] = &[
    "csdfc-command",
    "csdfc-input",
    "csdfc-kernels",
    "csdfc-network",
    "csdfc-offload",
    "csdfc-plan",
    "csdfc-planner",
    "csdfc-runtime",
    "csdfc-select",
];

/// Names of the crates that a manifest depends on, in any section.
fn dependencies(manifest: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let mut in_section = false;
    for line in manifest.lines().map(str::trim) {
        if line.starts_with('[') {
            let section = line.trim_matches(['[', ']']);
            in_section = section.ends_with("dependencies");
            // `[dependencies.name]`
            if let Some((_, name)) = section.split_once("dependencies.") {
                names.insert(name.to_string());
            }
        } else if in_section && !line.is_empty() && !line.starts_with('#') {
            names.extend(line.split(['.', '=', ' ']).next().map(str::to_string));
        }
    }
    names
}

/// All files under a folder of the repository whose names have this end, without build products.
fn files(folder: &Path, end: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_path_buf()];
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if path.is_dir() {
                if name != "target" && !name.starts_with('.') {
                    open.push(path);
                }
            } else if name.ends_with(end) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

fn read(name: &str) -> String {
    std::fs::read_to_string(root().join(name)).unwrap()
}

#[test]
fn crates_depend_in_one_direction() {
    let ours = |name: &String| name == "csdf" || name.starts_with("csdfc");
    for (folder, allowed) in DIRECTION {
        let dependencies = dependencies(&read(&format!("{folder}/Cargo.toml")));
        let foreign: Vec<&String> =
            dependencies.iter().filter(|name| ours(name) && !allowed.contains(&name.as_str())).collect();
        assert!(foreign.is_empty(), "{folder} depends on {foreign:?}");
    }
    assert!(dependencies(&read("compiler/planner/Cargo.toml")).contains("csdfc-runtime"));
}

/// A crate in the folder `x` is the package `csdfc-x`, and `csdfc_x` in paths.
#[test]
fn crates_are_named_as_their_folders() {
    for (folder, _) in DIRECTION {
        let leaf = folder.rsplit('/').next().unwrap();
        let name = if leaf.starts_with("csdf") { leaf.into() } else { format!("csdfc-{leaf}") };
        assert!(
            read(&format!("{folder}/Cargo.toml")).starts_with(&format!("[package]\nname = \"{name}\"\n")),
            "{folder}"
        );
        assert!(read("Cargo.toml").contains(&format!("\"{folder}\"")), "{folder} is no member");
    }
    let members =
        read("Cargo.toml").lines().find(|line| line.starts_with("members")).unwrap().matches('"').count() / 2;
    assert_eq!(members, DIRECTION.len() + 1, "all members but the tests");
}

/// What a crate offers is its own, but for the package that build scripts use.
#[test]
fn no_crate_offers_what_another_makes() {
    for (folder, _) in DIRECTION.iter().filter(|(folder, _)| *folder != "compiler/csdfc") {
        for path in files(&root().join(folder).join("src"), ".rs") {
            let source = std::fs::read_to_string(&path).unwrap();
            assert!(!source.contains("pub use csdf"), "{}", path.display());
        }
    }
}

#[test]
fn manifests_are_read_right() {
    let text = "[package]\nname = \"x\"\n[dependencies]\na.workspace = true\nb = { path = \"b\" }\n# c = 1\n\
        [dev-dependencies.d]\nversion = \"1\"\n[target.'cfg(unix)'.build-dependencies]\ne=\"1\"\n[lib]\nf = 1\n";
    let expected = ["a", "b", "d", "e"].map(str::to_string);
    assert_eq!(dependencies(text), BTreeSet::from(expected));
}

#[test]
fn no_source_file_is_too_long() {
    let lines = |path: &PathBuf| std::fs::read_to_string(path).unwrap().lines().count();
    let sources = files(&root(), ".rs");
    assert!(sources.len() > 50);
    let long: BTreeMap<&PathBuf, usize> =
        sources.iter().map(|path| (path, lines(path))).filter(|(_, lines)| *lines > MAX_LINES).collect();
    assert!(long.is_empty(), "{long:#?}");
}

/// Lines, counted from 1, that open an unsafe block or implementation without a comment on why it is sound: no
/// `SAFETY:` stands above it in the same paragraph, at most a few lines away.
fn unexplained(source: &str) -> Vec<usize> {
    const FAR: usize = 6;
    let lines: Vec<&str> = source.lines().collect();
    let is_unsafe = |line: &str| {
        let code = line.split("//").next().unwrap_or_default();
        ["unsafe {", "unsafe impl"].iter().any(|word| code.contains(word)) && !code.contains('"')
    };
    let above = |at: usize| lines[at.saturating_sub(FAR)..at].rsplit(|line| line.trim().is_empty()).next();
    let explained = |at: usize| above(at).unwrap().iter().any(|line| line.contains("SAFETY:"));
    (0..lines.len()).filter(|at| is_unsafe(lines[*at]) && !explained(*at)).map(|at| at + 1).collect()
}

#[test]
fn unsafe_code_says_why_it_is_sound() {
    let mut blocks = 0;
    for path in files(&root(), ".rs") {
        let source = std::fs::read_to_string(&path).unwrap();
        blocks += source.matches("unsafe {").count();
        assert_eq!(unexplained(&source), [0; 0], "{}", path.display());
    }
    assert!(blocks > 50);
    let block = |why: &str| ["// ", why, "\nlet x =\n    ", "unsafe", " { *p };\n"].concat();
    assert_eq!(unexplained(&block("SAFETY: p is good.")), [0; 0]);
    assert_eq!(unexplained(&block("p is good.")), [3]);
    assert_eq!(unexplained(&block("SAFETY: p is good.\n")), [4]);
}

#[test]
fn the_guide_lists_the_operators() {
    let page = read("docs/guide/src/operators.md");
    let (onnx, tflite) = page.split_once("## TFLite").unwrap();
    for (page, supported) in
        [(onnx, csdfc_input::import::SUPPORTED), (tflite, csdfc_input::import::SUPPORTED_BY_TFLITE)]
    {
        // Operators have capitals; an option of the command may be named with them.
        let words = page.split('`').skip(1).step_by(2);
        let words: BTreeSet<&str> = words.filter(|word| word.starts_with(char::is_uppercase)).collect();
        let supported: BTreeSet<&str> = supported.iter().copied().collect();
        let missing: Vec<_> = supported.difference(&words).collect();
        let unknown: Vec<_> = words.difference(&supported).collect();
        assert!(missing.is_empty() && unknown.is_empty(), "missing {missing:?}, unknown {unknown:?}");
    }
}

/// Targets of links `[text](target)` in a document, without those to other sites and within the document.
fn links(document: &str) -> Vec<&str> {
    let targets = document.split("](").skip(1).filter_map(|rest| rest.split([')', '#', ' ']).next());
    targets.filter(|target| !target.is_empty() && !target.contains("://")).collect()
}

#[test]
fn links_lead_somewhere() {
    let pages = [
        "README.md",
        "ARCHITECTURE.md",
        "CHANGELOG.md",
        "CONTRIBUTING.md",
        "docs/design.md",
        "docs/glossary.md",
    ]
    .map(|name| root().join(name));
    for page in pages.into_iter().chain(files(&root().join("docs/guide"), ".md")) {
        for target in links(&std::fs::read_to_string(&page).unwrap()) {
            assert!(page.with_file_name(target).exists(), "{} links to {target}", page.display());
        }
    }
    assert_eq!(links("a [b](c.md#d) [e](https://f) [g](#h) [i](j/k)"), ["c.md", "j/k"]);
}
