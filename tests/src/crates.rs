//! Emitted crates in a folder, built and run.

use std::path::{Path, PathBuf};
use std::process::Command;

use csdfc_emit::Options;
use csdfc_input::app::resolve::Application;
use csdfc_plan::plan::Plan;

use crate::skipped;

/// A module `counting` for the end of a program: it counts allocations.
pub const COUNTING: &str = include_str!("counting.rs");

/// The files of the crate `emitted` of a plan.
pub fn emitted(application: &Application, plan: &Plan) -> Vec<(PathBuf, Vec<u8>)> {
    let values = |cnn: usize, layer: usize, parameter: usize| {
        application.cnns[cnn].network.parameter(layer, parameter)
    };
    csdfc_emit::emit(plan, &values, &Options { crate_name: Some("emitted".into()), ..Options::default() })
        .expect("a crate")
}

/// Writes the crate of a plan into `folder/emitted`, and next to it a program `harness` that uses it.
pub fn write_with_harness(folder: &Path, application: &Application, plan: &Plan, harness: &str) {
    csdfc_command::write_crate(&folder.join("emitted"), &emitted(application, plan)).expect("files");
    let source = folder.join("harness/src");
    std::fs::create_dir_all(&source).expect("a folder");
    let manifest = "[package]\nname = \"harness\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n\
                    [dependencies]\nemitted = { path = \"../emitted\" }\n\n[workspace]\n";
    std::fs::write(folder.join("harness/Cargo.toml"), manifest).expect("a manifest");
    std::fs::write(source.join("main.rs"), harness).expect("a program");
}

/// Runs a command in a folder; the text of its standard output.
///
/// # Panics
/// When it fails, or warns.
pub fn run(folder: &Path, program: &str, arguments: &[&str], environment: &[(&str, &str)]) -> String {
    let output = Command::new(program)
        .args(arguments)
        .current_dir(folder)
        .env_remove("RUSTFLAGS")
        // The kernels' bytes do not depend on it, and it builds faster.
        .env("CARGO_PROFILE_DEV_OPT_LEVEL", "0")
        .env("CARGO_PROFILE_DEV_DEBUG", "false")
        .env("CARGO_INCREMENTAL", "0")
        .env("CARGO_TARGET_DIR", folder.join("target"))
        .envs(environment.iter().copied())
        .output()
        .expect("a program");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && !text.contains("warning"), "{program} {arguments:?}:\n{text}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The target for which [`thread_sanitizer`] builds.
pub const SANITIZED: &str = "x86_64-unknown-linux-gnu";

/// What calls Cargo in a folder, to build with ThreadSanitizer, the standard library too. Nothing where there is no nightly
/// toolchain with its sources: that is printed.
///
/// # Panics
/// The call panics when Cargo fails.
pub fn thread_sanitizer(folder: &Path) -> Option<impl Fn(&[&str])> {
    let nightly =
        |arguments: &[&str]| Command::new("rustup").args(["run", "nightly"]).args(arguments).output();
    let root = nightly(&["rustc", "--print", "sysroot"]).ok().filter(|output| output.status.success());
    let root = root.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    if !root.is_some_and(|root| Path::new(&root).join("lib/rustlib/src/rust/library").is_dir()) {
        skipped("ThreadSanitizer: no nightly toolchain with rust-src");
        return None;
    }
    let folder = folder.to_owned();
    let cargo = move |arguments: &[&str]| {
        let (command, more) = arguments.split_first().expect("a command");
        let output = Command::new("rustup")
            .args(["run", "nightly", "cargo", command, "-Zbuild-std", "--target", SANITIZED])
            .args(more)
            .current_dir(&folder)
            .env("CARGO_TARGET_DIR", folder.join("target"))
            .env("RUSTFLAGS", "-Zsanitizer=thread")
            .env("TSAN_OPTIONS", "halt_on_error=1")
            .output()
            .expect("rustup");
        (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    // What the standard library is made of comes from crates.io.
    let (is_there, said) = cargo(&["fetch"]);
    if !is_there {
        let why = said.lines().last().unwrap_or_default();
        skipped(&format!("ThreadSanitizer: the standard library's sources cannot be had: {why}"));
        return None;
    }
    Some(move |arguments: &[&str]| {
        let (is_done, said) = cargo(arguments);
        assert!(is_done, "{arguments:?}: {said}");
    })
}
