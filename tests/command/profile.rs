//! `csdfc profile`, and plans on what it measured.

use super::{CSDFC, Command, fails, folder, run};

#[test]
fn what_was_measured_is_planned_on() {
    let folder = folder();
    let folder = folder.path();
    let profile =
        ["profile", "builtin:lenet5", "--rounds", "1", "--only", "winograd", "--device-out", "board.ron"];
    let first = run(folder, &profile);
    assert_eq!(first.code, 0, "{}", first.stderr);
    assert!(first.stdout.contains("in board.ron"), "{}", first.stdout);
    let text = std::fs::read_to_string(folder.join("board.ron")).unwrap();
    let again = run(folder, &profile);
    assert_eq!((again.code, &again.stdout), (0, &first.stdout));
    // Only the rates and the date are taken again.
    let measured = |text: &str| text[text.find("measured: [").unwrap()..].to_owned();
    let kept = std::fs::read_to_string(folder.join("board.ron")).unwrap();
    assert_eq!(measured(&text), measured(&kept));

    let plan = run(folder, &["plan", "builtin:lenet5", "--device", "board.ron", "-o", "plan.json"]);
    assert_eq!(plan.code, 0, "{}", plan.stderr);
    assert!(plan.stdout.contains("fps (measured)"), "{}", plan.stdout);
    assert!(plan.stdout.contains("device board (measured on "), "{}", plan.stdout);
    for command in ["check", "run"] {
        let random = ["--random", "1"];
        let args: Vec<&str> = [command, "plan.json"]
            .into_iter()
            .chain(random.into_iter().filter(|_| command == "run"))
            .collect();
        let ended = run(folder, &args);
        assert_eq!((ended.code, ended.stderr.as_str()), (0, ""), "{command}");
    }
}

#[test]
fn a_crate_measures_what_is_no_pc() {
    let folder = folder();
    let folder = folder.path();
    let profile = ["profile", "builtin:lenet5", "--only", "winograd", "--emit", "crate"];
    for _ in 0..2 {
        let ended = run(folder, &profile);
        assert_eq!((ended.code, ended.stdout.as_str(), ended.stderr.as_str()), (0, "", ""));
    }
    let manifest = std::fs::read_to_string(folder.join("crate/Cargo.toml")).unwrap();
    assert!(manifest.contains("name = \"profile-lenet5\"\n"), "{manifest}");
    assert!(!folder.join("crate/weights.bin").exists());
    let error = fails(folder, &[&profile[..], &["--device-out", "board.ron"]].concat());
    assert!(error.contains("--device-out") && error.contains("--emit"), "{error}");
    std::fs::write(folder.join("crate/src/main.rs"), "fn main() {}").unwrap();
    let error = fails(folder, &profile);
    assert!(error.contains("main.rs is not as csdfc wrote it"), "{error}");
}

#[test]
fn a_store_is_measured_with_the_machine() {
    let folder = folder();
    let folder = folder.path();
    let profile =
        ["profile", "builtin:lenet5", "--rounds", "1", "--only", "none", "--device-out", "board.ron"];
    let first = run(folder, &profile);
    assert_eq!((first.code, first.stdout.contains("store")), (0, false), "{}", first.stderr);
    let stored = || {
        let text = std::fs::read_to_string(folder.join("board.ron")).unwrap();
        csdfc_input::device::DeviceProfile::parse(&text, "board.ron").unwrap().store.unwrap()
    };
    // The rate of a device about which nothing is known.
    assert_eq!(stored().bytes_per_second, 250_000_000);
    let again = run(folder, &[&profile[..], &["--store", "."]].concat());
    assert_eq!(again.code, 0, "{}", again.stderr);
    assert!(again.stdout.contains("\nstore: ") || again.stdout.starts_with("store: "), "{}", again.stdout);
    let store = stored();
    assert_ne!((store.bytes_per_second, store.latency_ns), (250_000_000, 80_000));
    assert_eq!(std::fs::read_dir(folder).unwrap().count(), 1, "something stayed");
    let plan =
        ["plan", "builtin:lenet5", "--device", "board.ron", "--weights", "streamed", "-o", "plan.json"];
    assert_eq!(run(folder, &plan).code, 0);
    let error = fails(folder, &[&profile[..], &["--store", "missing"]].concat());
    assert!(error.contains("cannot write") && error.contains("missing"), "{error}");
}

#[test]
fn profiles_of_other_machines_are_left_alone() {
    let folder = folder();
    let folder = folder.path();
    let generic = include_str!("../../compiler/input/src/device/targets/generic.ron");
    std::fs::write(folder.join("board.ron"), generic.replace("analytic", "measured on a toaster")).unwrap();
    let error = fails(folder, &["profile", "builtin:lenet5", "--device-out", "board.ron"]);
    assert!(error.contains("a toaster") && error.contains("--device-out"), "{error}");
    std::fs::write(folder.join("board.ron"), "(").unwrap();
    let error = fails(folder, &["profile", "builtin:lenet5", "--device-out", "board.ron"]);
    assert!(error.contains("board.ron"), "{error}");
    // If there is no folder for the profile, or no profile in it, the machine is not known.
    let error = fails(folder, &["plan", "builtin:lenet5", "--device", "host"]);
    assert!(error.contains("csdfc profile"), "{error}");
    let error = fails(folder, &["profile", "builtin:lenet5"]);
    assert!(error.contains("--device-out"), "{error}");
    let host = |args: &[&str]| {
        let mut command = Command::new(CSDFC);
        command.args(args).current_dir(folder).env_clear().env("XDG_DATA_HOME", folder).output().unwrap()
    };
    assert!(!host(&["plan", "builtin:lenet5", "--device", "host"]).status.success());
    assert!(host(&["profile", "builtin:lenet5", "--rounds", "1", "--only", "winograd"]).status.success());
    assert!(folder.join("csdfc/host.ron").exists());
    assert!(host(&["plan", "builtin:lenet5", "--device", "host"]).status.success());
}
