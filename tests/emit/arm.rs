//! Emitted crates on 64-bit Arm, under an emulator. `tests/arm/run` finds the compiler and calls these tests.

use std::path::Path;
use std::process::Command;

use csdfc_input::app::resolve::{Application, RowsChoice};
use csdfc_planner::profile::Request;
use csdfc_runtime::run::{Data, Value};

/// Commands that set the compiler up.
const ENVIRONMENT: &str = "CSDFC_ARM";

const TARGET: &str = "aarch64-unknown-linux-gnu";

/// A Jetson TX2's processor, and one with all features that the emulator has.
const PROCESSORS: [&str; 2] = ["cortex-a57", "max"];

/// Largest difference from this machine, in parts of the largest element of an output.
const TOLERANCE: f32 = 1e-5;

fn build(folder: &Path, optimisation: &str) {
    let environment = std::env::var(ENVIRONMENT).expect("tests/arm/run says how to compile");
    let cargo = env!("CARGO");
    let output = Command::new("sh")
        .args(["-c", &format!("{environment}\n'{cargo}' build --release --offline --target {TARGET}")])
        .current_dir(folder)
        .env("CARGO_PROFILE_RELEASE_OPT_LEVEL", optimisation)
        .env("CARGO_TARGET_DIR", folder.join("target"))
        .env_remove("RUSTFLAGS")
        .output()
        .expect("a shell");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && !text.contains("warning"), "{text}");
}

/// The places of the five largest elements.
fn top_5(values: &[f32]) -> Vec<usize> {
    let mut places: Vec<usize> = (0..values.len()).collect();
    places.sort_by(|&a, &b| values[b].total_cmp(&values[a]).then(a.cmp(&b)));
    places.truncate(5);
    places
}

/// The largest difference in parts of the largest element. Elements that are not finite must be the same.
fn difference(made: &[f32], expected: &[f32], what: &str) -> f32 {
    let finite = expected.iter().copied().filter(|x| x.is_finite());
    let largest = finite.fold(f32::MIN_POSITIVE, |largest, x| largest.max(x.abs()));
    assert_eq!(made.len(), expected.len(), "{what}");
    let pairs = made.iter().zip(expected);
    pairs.fold(0.0, |most, (&a, &b)| {
        let same = a == b || (a.is_nan() && b.is_nan());
        assert!(same || (a.is_finite() && b.is_finite()), "{what}: {a}, here {b}");
        if same { most } else { most.max((a - b).abs() / largest) }
    })
}

fn compare(made: &Value, expected: &Value, what: &str) -> f32 {
    assert_eq!(made.dims, expected.dims, "{what}");
    match (&made.data, &expected.data) {
        (Data::F32(made), Data::F32(expected)) => difference(made, expected, what),
        (made, expected) => {
            assert_eq!(made, expected, "{what}");
            0.0
        }
    }
}

/// Emits and builds an application, runs it on every processor, and compares its outputs with those of `run` here,
/// which are the bytes of the crate built for this machine.
fn check(application: &Application, optimisation: &str, is_classifier: bool) {
    let emitted = super::Emitted::new(application);
    build(emitted.folder(), optimisation);
    let program = emitted.folder().join("target").join(TARGET).join("release/emitted");
    let expected = emitted.expected();
    for processor in PROCESSORS {
        let mut most = 0.0f32;
        for (c, expected) in expected.iter().enumerate() {
            let mut command = Command::new("qemu-aarch64");
            command.args(["-cpu", processor]).arg(&program);
            for (made, expected) in emitted.run(c, command).iter().zip(expected) {
                most = most.max(compare(made, expected, &emitted.plan.cnns[c].name));
                if let (Data::F32(made), Data::F32(expected), true) =
                    (&made.data, &expected.data, is_classifier)
                {
                    assert_eq!(top_5(made), top_5(expected));
                    println!("{}: top 5 {:?}", application.name, top_5(made));
                }
            }
        }
        println!("{} on {processor}: at most {most:.1e} of the largest element", application.name);
        assert!(most <= TOLERANCE, "{}: {most}", application.name);
    }
}

#[test]
#[ignore = "needs a compiler and an emulator for 64-bit Arm: see tests/arm/run"]
fn every_kernel() {
    check(&super::kernels::application(), "0", false);
}

#[test]
#[ignore = "needs a compiler and an emulator for 64-bit Arm: see tests/arm/run"]
fn a_classifier_by_rows() {
    let application = super::model("mobilenet_v2", "none");
    check(&Application { rows: RowsChoice::All, ..application }, "3", true);
}

#[test]
#[ignore = "needs a compiler and an emulator for 64-bit Arm: see tests/arm/run"]
fn a_profile() {
    let application = csdfc_tests::application(r#"(cnns: [(model: "builtin:lenet5")])"#);
    let request = Request { threads: 1, rounds: 1, only: Some("im2row".into()) };
    let folder = super::profile::board(&application, &request);
    build(folder.path(), "1");
    let program = folder.path().join("target").join(TARGET).join("release/board");
    for processor in PROCESSORS {
        let ran = Command::new("qemu-aarch64").args(["-cpu", processor]).arg(&program).output();
        let ran = ran.expect("the program");
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
        let profile = super::profile::parsed(&String::from_utf8_lossy(&ran.stdout));
        let measured = &profile.processor("cpu").expect("a processor").measured;
        println!("{} scenarios were measured on {processor}", measured.len());
        assert!(measured.len() >= 7);
    }
}
