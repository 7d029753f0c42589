//! Crates that measure a board: they print a device profile of the same primitives that `csdfc profile` measures here.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use csdfc_emit::Options;
use csdfc_input::app::resolve::Application;
use csdfc_input::device::DeviceProfile;
use csdfc_input::device::measured::Measured;
use csdfc_plan::plan::Plan;
use csdfc_planner::profile::{self, Board, Request};
use csdfc_tests::{application, crates};

/// The crate `board`, in a folder of its own. It measures an application with the primitives that the request names.
pub fn board(application: &Application, request: &Request) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    csdfc_command::write_crate(folder.path(), &files(application, request)).expect("files");
    folder
}

fn files(application: &Application, request: &Request) -> Vec<(PathBuf, Vec<u8>)> {
    let generic = DeviceProfile::find("generic", Path::new("")).expect("a profile");
    let like = generic.processor("cpu").expect("a processor");
    let like = (like, generic.store.as_ref());
    let Board { plans, files } = profile::board(application, request, like, "board").expect("trials");
    let plans: Vec<&Plan> = plans.iter().collect();
    let code =
        csdfc_emit::emit_trials(&plans, &Options { crate_name: Some("board".into()), ..Options::default() })
            .expect("a crate");
    csdfc_emit::listed(code.into_iter().chain(files).collect())
}

/// The profile that a program printed.
pub fn parsed(text: &str) -> DeviceProfile {
    let profile = DeviceProfile::parse(text, "the board").expect("a profile");
    assert!(profile.basis.starts_with("measured on "), "{}", profile.basis);
    profile
}

/// The primitives by scenario. Conversions are left out, since it depends on the fast primitives which of them occur.
fn timed(measured: &[Measured]) -> BTreeMap<&str, BTreeSet<&str>> {
    let no_conversion = measured.iter().filter(|measured| !measured.scenario.starts_with("convert "));
    no_conversion
        .map(|measured| (measured.scenario.as_str(), measured.times.keys().map(String::as_str).collect()))
        .collect()
}

#[test]
fn a_board_measures_what_this_machine_measures() {
    let application = application(
        r#"(cnns: [(name: "a", model: "builtin:lenet5"), (name: "b", model: "builtin:resnet8")], threads: 2)"#,
    );
    let request = Request { threads: 2, rounds: 1, only: Some("im2row".into()) };
    assert_eq!(files(&application, &request), files(&application, &request));
    let folder = board(&application, &request);
    crates::run(folder.path(), env!("CARGO"), &["fmt", "--check"], &[]);
    let text = crates::run(folder.path(), env!("CARGO"), &["run", "--quiet"], &[]);
    let found = parsed(&text);
    let measured = &found.processor("cpu").expect("a processor").measured;
    assert!(measured.iter().all(|measured| measured.threads == 2));
    assert!(measured.iter().any(|measured| measured.scenario.starts_with("convert ")));
    assert!(measured.iter().flat_map(|measured| measured.times.values()).any(|samples| samples.len() == 2));
    assert!(found.store.is_some());

    let mut here = Vec::new();
    for cnn in 0..application.cnns.len() {
        profile::measure(&application, cnn, &request, &mut here, &mut |_, _| Ok(true)).expect("times");
    }
    assert_eq!(timed(measured), timed(&here));
}
