//! The module that `csdfc::Build` writes in a build script. Its outputs have the bytes of `run`, in crates with and
//! without the standard library.

use std::fs;
use std::path::Path;

use csdfc::{Build, BuildError};
use csdfc_plan::plan::Plan;
use csdfc_runtime::run::{Data, Runner, Value};
use csdfc_tests::{application, crates};

use super::{inputs, inspect_crate, values_of};

/// One module of each kind, the lines of a program that run a frame of it, and the application.
const KINDS: [(&str, &str, &str); 3] = [
    (
        "small",
        "let mut model = small::Model::new(aligned(small::Arena::take().unwrap()));
        model.infer(small::Inputs { input: &input() }, small::Outputs { output: &mut scores });",
        r#"(cnns: [(model: "builtin:resnet8")], threads: 2)"#,
    ),
    (
        "nets::streamed",
        "let store = nets::streamed::Blocking::new(File(include_bytes!(\"nets/streamed/store.bin\")));
        let mut model = nets::streamed::Model::new(aligned(nets::streamed::Arena::take().unwrap()), store);
        let outputs = nets::streamed::Outputs { output: &mut scores };
        model.infer(nets::streamed::Inputs { input: &input() }, outputs).unwrap();",
        r#"(cnns: [(model: "builtin:resnet8")], weights: streamed, constraints: (memory: "min"))"#,
    ),
    (
        "piped",
        "let mut model = piped::Model::new(aligned(piped::Arena::take().unwrap()));
        model.infer(piped::Inputs { input: &input() }, piped::Outputs { output: &mut scores });",
        r#"(cnns: [(name: "net", model: "builtin:resnet8", partitions: [(name: "a", upto: "stack1_conv2"), (name: "b")])],
            parallel: [["a", "b"]])"#,
    ),
];

/// The beginning of all programs. Every warning in them is an error.
const HEAD: &str = r#"#![deny(warnings, missing_docs, unsafe_code)]
//! A program with modules.

include!("small.rs");
include!("piped.rs");

mod nets {
    include!("nets/streamed.rs");
}

struct File(&'static [u8]);

impl nets::streamed::ReadAt for File {
    fn read_at(&mut self, at: u64, block: &mut [u8]) -> Result<(), nets::streamed::Fault> {
        block.copy_from_slice(&self.0[at as usize..][..block.len()]);
        Ok(())
    }
}

// The arena of each module begins at a cache line.
fn aligned<T>(arena: &'static mut T) -> &'static mut T {
    assert_eq!(core::ptr::from_ref(arena).addr() % 64, 0);
    arena
}

// `inputs` counts by channels, then rows; here a pixel's channels lie together.
fn input() -> [f32; 3072] {
    std::array::from_fn(|at| ((at % 3 * 1024 + at / 3) * 7919 % 1013) as f32 / 507.0 - 1.0)
}

fn print(scores: &[f32]) {
    let bits: Vec<String> = scores.iter().map(|score| score.to_bits().to_string()).collect();
    println!("{}", bits.join(" "));
}
"#;

/// Lints are errors in the user's crate, and modules bring none.
const LINT: &[&str] = &["clippy", "--offline", "--", "-D", "warnings"];

fn package(folder: &Path, source: &str, program: &str) {
    let manifest = "[package]\nname = \"user\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n[workspace]\n";
    fs::create_dir_all(folder.join("src")).expect("a file");
    fs::write(folder.join("Cargo.toml"), manifest).expect("a file");
    fs::write(folder.join("src").join(source), program).expect("a file");
}

/// Writes an application file next to a package, and its module among the package's sources.
fn emit(folder: &Path, path: &str, text: &str) -> Plan {
    let (parents, name) = path.rsplit_once("::").unwrap_or(("", path));
    let file = folder.join(format!("{name}.ron"));
    fs::write(&file, text).expect("a file");
    let module =
        Build::new(&file).module(path).folder(folder.join("src").join(parents)).emit().expect("a module");
    Plan::parse(&fs::read_to_string(module.join("plan.json")).expect("a file")).expect("a plan")
}

#[test]
fn modules_make_the_bytes_of_run() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let (mut program, mut expected) = (HEAD.to_owned() + "\nfn main() {\n", String::new());
    package(folder, "main.rs", "");
    for (path, lines, text) in KINDS {
        let plan = emit(folder, path, text);
        let application = application(text);
        let values = values_of(&application);
        let mut runner = Runner::poisoned(&plan, &values).unwrap();
        let outputs: Vec<Value> = runner.infer(0, &inputs(&plan, 0)).unwrap();
        let Data::F32(scores) = &outputs[0].data else { panic!("floats") };
        let bits: Vec<String> = scores.iter().map(|score| score.to_bits().to_string()).collect();
        expected += &(bits.join(" ") + "\n");
        program += &format!(
            "    {{\n        let mut scores = [0.0; 10];\n        {lines}\n        print(&scores);\n    }}\n"
        );
    }
    package(folder, "main.rs", &(program + "}\n"));
    assert_eq!(crates::run(folder, env!("CARGO"), &["run", "--quiet"], &[]), expected);
    inspect_crate(folder, LINT);
}

#[test]
fn modules_need_no_standard_library() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let source = folder.join("src");
    Build::new("builtin:lenet5").no_std().folder(&source).emit().unwrap();
    package(folder, "lib.rs", "#![no_std]\n#![deny(warnings)]\n\ninclude!(\"lenet5.rs\");\n");
    crates::run(folder, env!("CARGO"), &["build", "--quiet"], &[]);
    inspect_crate(folder, LINT);
}

#[test]
fn nothing_is_planned_twice() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let file = folder.join("app.ron");
    fs::write(&file, r#"(cnns: [(model: "builtin:lenet5")])"#).unwrap();
    let build = Build::new(&file).module("net").folder(folder);
    let plan = build.emit().unwrap().join("plan.json");
    let is_planned_again = |build: &Build| {
        fs::write(&plan, "as it was").unwrap();
        build.emit().unwrap();
        fs::read_to_string(&plan).unwrap() != "as it was"
    };
    assert!(!is_planned_again(&build));
    assert!(is_planned_again(&build.clone().memory("16MB")));
    for other in [
        build.clone().precision("half"),
        build.clone().weights("streamed"),
        build.clone().latency("40ms"),
        build.clone().latency("41ms"),
    ] {
        assert!(is_planned_again(&other), "{other:?}");
        assert!(!is_planned_again(&other), "{other:?}");
    }
    assert!(is_planned_again(&build));
    fs::write(&file, r#"(cnns: [(model: "builtin:resnet8")])"#).unwrap();
    assert!(is_planned_again(&build));
    assert!(!is_planned_again(&build));
    // A build that failed leaves nothing that the next build could mistake for its own output.
    build.clone().memory("1kB").emit().unwrap_err();
    assert!(is_planned_again(&build));
}

#[test]
fn errors_say_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let errors = [
        Build::new("builtin:resnet8").memory("20kB"),
        Build::new("builtin:resnet8").memory("min").fps(1e9),
        Build::new("builtin:lenet5").precision("half").weights("resident").latency("1us"),
        Build::new("builtin:resnet8").memory("much"),
        Build::new("builtin:resnet8").fps(-1),
        Build::new("builtin:resnet8").latency("40"),
        Build::new("builtin:resnet8").latency("resnet=40ms"),
        Build::new("builtin:resnet8").precision("hlaf"),
        Build::new("builtin:resnet8").precision("auto"),
        Build::new("builtin:resnet8").weights("flash"),
        Build::new("builtin:resnet8").device("toaster"),
        Build::new("builtin:resnet8").module("the net"),
        Build::new("builtin:resnet"),
        Build::new("missing.onnx"),
        Build::new("missing.ron"),
    ];
    let text = |(i, build): (usize, Build)| {
        let error = build.folder(folder).emit().unwrap_err();
        assert_eq!(matches!(error, BuildError::Unmet { .. }), i < 3, "{error}");
        format!("{error:?}")
    };
    let texts: Vec<String> = errors.into_iter().enumerate().map(text).collect();
    insta::assert_snapshot!("build_errors", texts.join("\n\n"));
}

/// They are the ones that an application file states, with the same plan.
#[test]
fn options_are_those_of_application_files() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("lenet5.ron");
    let text = r#"(cnns: [(model: "builtin:lenet5", precision: half)], weights: streamed, constraints: (latency: "40ms"))"#;
    fs::write(&file, text).unwrap();
    let stated = Build::new(&file).plan().unwrap();
    let build = Build::new("builtin:lenet5").precision("half").weights("streamed").latency("lenet5=40ms");
    assert_eq!(build.plan().unwrap().to_json(), stated.to_json());
}

/// There are no frames in a build script.
#[test]
fn precisions_must_be_stated() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("app.ron");
    std::fs::write(&file, "(cnns: [(model: \"builtin:lenet5\", precision: auto)])").unwrap();
    let error = Build::new(file.to_str().unwrap()).plan().unwrap_err().to_string();
    assert!(error.contains("does not choose precisions"), "{error}");
}
