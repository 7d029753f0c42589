//! Emitted crates in a folder, built and run.

use std::path::{Path, PathBuf};
use std::process::Command;

use csdfc::app::resolve::Application;
use csdfc_codegen::emit::{self, Options};
use csdfc_codegen::plan::Plan;
use csdfc_command::commands;

/// The files of the crate `emitted` of a plan.
pub fn emitted(application: &Application, plan: &Plan) -> Vec<(PathBuf, Vec<u8>)> {
    let values = |cnn: usize, layer: usize, parameter: usize| {
        application.cnns[cnn].network.layers[layer].parameters[parameter].values().map_err(|e| e.to_string())
    };
    emit::emit(plan, &values, &Options { crate_name: Some("emitted".into()) }).expect("a crate")
}

/// Writes the crate of a plan into `folder/emitted`, and beside it a program `harness` that uses it.
pub fn write_with_harness(folder: &Path, application: &Application, plan: &Plan, harness: &str) {
    commands::emit::write(&folder.join("emitted"), &emitted(application, plan)).expect("files");
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
        .env("CARGO_TARGET_DIR", folder.join("target"))
        .envs(environment.iter().copied())
        .output()
        .expect("a program");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && !text.contains("warning"), "{program} {arguments:?}:\n{text}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}
