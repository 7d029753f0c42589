//! Circles of files: files of one crate that import each other, directly or by way of others.
//!
//! A file imports from those files whose modules its paths name. If a module only passes a name on (`use`), the file
//! imports from where the name comes from. Nothing is counted between a module and the modules inside it, since it
//! declares them and they extend it. The insides of `#[cfg(test)] mod … { }` are not read.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use csdfc_tests::root;

use super::files;

/// The circle that is left, as its files: many operators of ONNX are imported as others, so the importer of one calls the table
/// of all. Add none.
const CIRCLES: &[&[&str]] = &[&[
    "compiler/input/src/import/builder.rs",
    "compiler/input/src/import/constant.rs",
    "compiler/input/src/import/fold/arithmetic.rs",
    "compiler/input/src/import/fold/index.rs",
    "compiler/input/src/import/fold/kernels.rs",
    "compiler/input/src/import/fold/mod.rs",
    "compiler/input/src/import/fold/patterns.rs",
    "compiler/input/src/import/graph.rs",
    "compiler/input/src/import/node.rs",
    "compiler/input/src/import/ops/binary.rs",
    "compiler/input/src/import/ops/computed_filters.rs",
    "compiler/input/src/import/ops/convolution.rs",
    "compiler/input/src/import/ops/dense.rs",
    "compiler/input/src/import/ops/element_wise.rs",
    "compiler/input/src/import/ops/gather.rs",
    "compiler/input/src/import/ops/integer_types.rs",
    "compiler/input/src/import/ops/integers.rs",
    "compiler/input/src/import/ops/layout.rs",
    "compiler/input/src/import/ops/line.rs",
    "compiler/input/src/import/ops/logic.rs",
    "compiler/input/src/import/ops/mod.rs",
    "compiler/input/src/import/ops/parts.rs",
    "compiler/input/src/import/ops/reduce.rs",
    "compiler/input/src/import/ops/reshape.rs",
]];

/// A module of a crate, or an item in one: the names that lead there from the crate's root.
type Place = Vec<String>;

/// What a file imports.
#[derive(Default)]
struct Imports {
    places: BTreeSet<Place>,
    /// Where the names come from that are imported at the top of the file.
    names: BTreeMap<String, Place>,
}

/// The modules of the crate with this root, and their files.
fn modules(crate_root: &Path) -> BTreeMap<Place, PathBuf> {
    let folder = crate_root.parent().unwrap();
    let mut found = BTreeMap::from([(Place::new(), crate_root.to_path_buf())]);
    let mut open = vec![Place::new()];
    while let Some(module) = open.pop() {
        let source = std::fs::read_to_string(&found[&module]).unwrap();
        for name in source.lines().filter_map(|line| declared(line)?.strip_suffix(';')) {
            let inner = [&module[..], &[name.to_string()]].concat();
            let path = folder.join(inner.join("/"));
            let files = [path.with_extension("rs"), path.join("mod.rs")];
            if let Some(file) = files.into_iter().find(|file| file.is_file()) {
                found.insert(inner.clone(), file);
                open.push(inner);
            }
        }
    }
    found
}

/// What follows `mod` in a line that begins with it: `name;`, `name {`.
fn declared(line: &str) -> Option<&str> {
    without_visibility(line).strip_prefix("mod ")
}

fn without_visibility(line: &str) -> &str {
    let line = line.trim();
    let Some(rest) = line.strip_prefix("pub") else { return line };
    match rest.strip_prefix('(') {
        Some(rest) => rest.split_once(')').map_or(line, |(_, rest)| rest.trim_start()),
        None => rest.strip_prefix(' ').unwrap_or(line),
    }
}

/// The imports of a module's source, which rustfmt has formatted.
fn imports(module: &Place, source: &str) -> Imports {
    let mut imports = Imports::default();
    // The inline modules around a line, and the indentation at which each ends.
    let mut inline: Vec<(String, &str)> = Vec::new();
    let mut test_ends: Option<String> = None;
    let mut use_so_far: Option<String> = None;
    let mut previous = "";
    for line in source.lines() {
        let indentation = &line[..line.len() - line.trim_start().len()];
        let attribute = std::mem::replace(&mut previous, line.trim());
        if let Some(end) = &test_ends {
            if line == end {
                test_ends = None;
            }
            continue;
        }
        if let Some(name) = declared(line).and_then(|rest| rest.strip_suffix(" {")) {
            if attribute == "#[cfg(test)]" {
                test_ends = Some(format!("{indentation}}}"));
            } else {
                inline.push((name.to_string(), indentation));
            }
            continue;
        }
        if inline.last().is_some_and(|(_, end)| line.strip_prefix(end) == Some("}")) {
            inline.pop();
            continue;
        }
        if line.trim_start().starts_with("//") {
            continue;
        }
        let names = inline.iter().map(|(name, _)| name.clone());
        let here: Place = module.iter().cloned().chain(names).collect();
        let begun = without_visibility(line).strip_prefix("use ").map(str::to_string);
        if let Some(text) = use_so_far.take().map(|text| text + line.trim()).or(begun) {
            let Some(tree) = text.strip_suffix(';') else {
                use_so_far = Some(text);
                continue;
            };
            for (name, path) in leaves("", tree) {
                let place = place(&here, &path);
                if inline.is_empty() {
                    imports.names.insert(name, place.clone());
                }
                imports.places.insert(place);
            }
        } else {
            imports.places.extend(paths(line).map(|path| place(&here, path)));
        }
    }
    imports
}

/// The names that a `use` imports, and their paths. It has this tree after this prefix.
fn leaves(prefix: &str, tree: &str) -> Vec<(String, String)> {
    let tree = tree.trim();
    let Some((before, rest)) = tree.split_once('{') else {
        let (path, name) = tree.split_once(" as ").map_or((tree, None), |(path, name)| (path, Some(name)));
        let path = format!("{prefix}{path}");
        let path = path.strip_suffix("::self").unwrap_or(&path);
        let name = name.or(path.rsplit("::").next()).unwrap_or(path);
        return vec![(name.to_string(), path.to_string())];
    };
    let prefix = format!("{prefix}{before}");
    let inside = rest.rsplit_once('}').map_or(rest, |(inside, _)| inside);
    let mut depth = 0;
    let parts = inside.split(|c| {
        depth += i32::from(c == '{') - i32::from(c == '}');
        c == ',' && depth == 0
    });
    parts.filter(|part| !part.trim().is_empty()).flat_map(|part| leaves(&prefix, part)).collect()
}

/// Paths in a line of code that begin with `crate`, `super` or `self`.
fn paths(line: &str) -> impl Iterator<Item = &str> {
    line.split(|c: char| !c.is_alphanumeric() && !"_:".contains(c))
        .filter(|word| ["crate::", "super::", "self::"].iter().any(|start| word.starts_with(start)))
}

/// Where a path leads that stands in this module.
fn place(here: &Place, path: &str) -> Place {
    let mut place = here.clone();
    for name in path.split("::") {
        match name {
            "crate" => place.clear(),
            "super" => drop(place.pop()),
            "self" => {}
            _ => place.push(name.to_string()),
        }
    }
    place
}

/// The module in which the item at a place is written.
fn origin(of_crate: &BTreeMap<Place, Imports>, place: &Place) -> Place {
    /// More modules than pass on one name; names of other crates may lead in a circle.
    const FAR: usize = 10;
    let module_of =
        |place: &Place| (0..=place.len()).rev().find(|&n| of_crate.contains_key(&place[..n])).unwrap();
    let mut place = place.clone();
    for _ in 0..FAR {
        let (module, rest) = place.split_at(module_of(&place));
        let from = rest.first().and_then(|name| of_crate[module].names.get(name));
        let Some(from) = from else { break };
        place = [from, &rest[1..]].concat();
    }
    place.truncate(module_of(&place));
    place
}

/// The modules that a module imports from, directly or by way of others.
fn all_from<'a>(direct: &'a BTreeMap<&Place, BTreeSet<Place>>, module: &'a Place) -> BTreeSet<&'a Place> {
    let mut found = BTreeSet::new();
    let mut open = vec![module];
    while let Some(module) = open.pop() {
        open.extend(direct[module].iter().filter(|other| found.insert(*other)));
    }
    found
}

/// The circles among the files of the crate with this root.
fn circles(crate_root: &Path) -> BTreeSet<BTreeSet<PathBuf>> {
    let files = modules(crate_root);
    let read = |(module, file): (&Place, &PathBuf)| {
        (module.clone(), imports(module, &std::fs::read_to_string(file).unwrap()))
    };
    let of_crate: BTreeMap<Place, Imports> = files.iter().map(read).collect();
    let from = |module: &Place| -> BTreeSet<Place> {
        let places = of_crate[module].places.iter().map(|place| origin(&of_crate, place));
        places.filter(|other| !other.starts_with(module) && !module.starts_with(other)).collect()
    };
    let direct: BTreeMap<&Place, BTreeSet<Place>> =
        files.keys().map(|module| (module, from(module))).collect();
    let reached: BTreeMap<&Place, BTreeSet<&Place>> =
        files.keys().map(|module| (module, all_from(&direct, module))).collect();
    let circle = |module: &Place| {
        let members = reached[module].iter().filter(|other| reached[**other].contains(module));
        members.map(|member| files[*member].clone()).collect::<BTreeSet<PathBuf>>()
    };
    files.keys().map(circle).filter(|circle| !circle.is_empty()).collect()
}

#[test]
fn no_files_import_each_other() {
    let root = root();
    let is_crate = |file: &PathBuf| file.ends_with("lib.rs") || file.ends_with("main.rs");
    let mut crate_roots: Vec<PathBuf> = files(&root, ".rs").into_iter().filter(is_crate).collect();
    crate_roots.push(root.join("tests/plans.rs"));
    assert!(crate_roots.len() > 20);
    let name = |file: &PathBuf| file.strip_prefix(&root).unwrap().to_str().unwrap().to_string();
    let found: BTreeSet<Vec<String>> = crate_roots
        .iter()
        .flat_map(|crate_root| circles(crate_root))
        .map(|circle| circle.iter().map(name).collect())
        .collect();
    let known =
        CIRCLES.iter().map(|circle| circle.iter().map(|file| (*file).to_string()).collect()).collect();
    let new: Vec<_> = found.difference(&known).collect();
    let gone: Vec<_> = known.difference(&found).collect();
    assert!(
        new.is_empty(),
        "circles that are not on the list: {new:#?}\non the list, but no circles: {gone:#?}"
    );
    assert!(gone.is_empty(), "on the list, but no circles: {gone:#?}");
}

#[test]
fn circles_are_found() {
    let files = |sources: &[(&str, &str)]| {
        let folder = tempfile::tempdir().unwrap();
        for (name, source) in sources {
            let file = folder.path().join(name);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, source).unwrap();
        }
        let name = |file: &PathBuf| file.strip_prefix(&folder).unwrap().to_str().unwrap().to_string();
        let found = circles(&folder.path().join("lib.rs"));
        found.iter().map(|circle| circle.iter().map(name).collect()).collect::<Vec<Vec<String>>>()
    };
    let root =
        ("lib.rs", "mod a;\npub mod b;\npub(crate) mod c;\n\npub use a::{A, inner::{self, B as D}};\n");
    let circle = |source| {
        files(&[root, ("a/mod.rs", "mod inner;\n"), ("a/inner.rs", source), ("b.rs", USES), ("c.rs", "")])
    };
    const USES: &str = "use crate::{\n    D,\n    c,\n};\n";
    let both = [["a/inner.rs".to_string(), "b.rs".to_string()].to_vec()];
    assert_eq!(circle("fn f() {\n    super::super::b::g();\n}\n"), both);
    assert_eq!(circle("mod x {\n    use super::super::super::b::g;\n}\n"), both);
    // Its own module, a comment and a test.
    let none: [Vec<String>; 0] = [];
    assert_eq!(circle("use super::A;\n// crate::b\n"), none);
    assert_eq!(circle("#[cfg(test)]\nmod tests {\n    use crate::b::g;\n}\n"), none);
    // By way of a third file.
    let third = [
        root,
        ("a.rs", "use crate::b::g;\n"),
        ("b.rs", "use super::c::h;\n"),
        ("c.rs", "use crate::a::f;\n"),
    ];
    assert_eq!(files(&third), [["a.rs", "b.rs", "c.rs"].map(str::to_string).to_vec()]);
}
