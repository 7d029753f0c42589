//! The code that whole-program tests of csdfc share. The tests are in the files next to this folder.

#![expect(clippy::expect_used, reason = "a panic is how a test fails")]
#![expect(clippy::print_stdout, reason = "what is skipped is printed")]

pub mod crates;
pub mod generate;
pub mod hostile;
pub mod moments;
pub mod quantized;
pub mod tiled;
pub mod together;

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::io::Write;
use std::path::{Path, PathBuf};

use csdfc_input::app::resolve::Application;
use csdfc_input::app::{Origin, spec};
use csdfc_input::device::DeviceProfile;
use csdfc_plan::plan::Plan;
use csdfc_planner::driver::{self, Planned};
use csdfc_planner::open::{self, Opened};
use csdfc_planner::search::start::Start;
use csdfc_planner::search::watch::Watch;
use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;

/// The repository's root.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The models that are not in the repository; none if nobody has put them next to it.
pub fn models() -> Vec<PathBuf> {
    files("../shared/models", "onnx")
}

/// The trained networks of MLPerf Tiny, which are not in the repository either.
pub fn tiny_models() -> Vec<PathBuf> {
    files("../shared/models/mlperf_tiny", "tflite")
}

/// The files of a folder whose names end so.
fn files(folder: &str, end: &str) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(root().join(folder)) else { return Vec::new() };
    let files = entries.filter_map(|entry| entry.ok().map(|entry| entry.path()));
    let mut files: Vec<PathBuf> = files.filter(|path| path.extension().is_some_and(|of| of == end)).collect();
    files.sort();
    files
}

/// Reports that a test, or a part of one, cannot run here, and why. It prints this, and adds a line to the file that
/// `.ci/run` names, which counts skipped tests by these lines.
pub fn skipped(why: &str) {
    println!("skipped: {why}");
    if let Some(file) = std::env::var_os("CSDFC_SKIPPED") {
        let file = std::fs::File::options().create(true).append(true).open(file);
        writeln!(file.expect("a file to write to"), "{why}").expect("a line");
    }
}

/// Random numbers, other ones for each `stream`. `PROPTEST_RNG_SEED`, by which proptest draws too, is what they begin
/// from; `.cargo/config.toml` sets it where nobody else does.
pub fn random(stream: u64) -> ChaCha8Rng {
    let seed = std::env::var("PROPTEST_RNG_SEED").ok().and_then(|seed| seed.parse().ok());
    let mut random = ChaCha8Rng::seed_from_u64(seed.unwrap_or(1));
    random.set_stream(stream);
    random
}

/// Tests one case for each stream of random numbers below `cases`, and then more, four times as many at most, until each
/// of the things that `counts` counts has been tested more than `often` times: what is rare with one seed needs more cases.
///
/// # Panics
///
/// If something is still rare then.
pub fn until_all_are_tested<K: Ord + Debug>(
    cases: u64,
    often: u64,
    mut counts: BTreeMap<K, u64>,
    mut test: impl FnMut(u64, &mut BTreeMap<K, u64>),
) {
    let is_rare = |counts: &BTreeMap<K, u64>| counts.values().any(|count| *count <= often);
    for stream in 0..4 * cases {
        if stream >= cases && !is_rare(&counts) {
            break;
        }
        test(stream, &mut counts);
    }
    assert!(!is_rare(&counts), "too few of some: {counts:?}");
}

/// An application of the repository, not yet resolved.
pub fn app(name: &str) -> Opened {
    let path = root().join("apps").join(name);
    open::open(path.to_str().expect("a path in UTF-8")).expect("an application of the repository")
}

/// The application that this text describes, not yet resolved.
pub fn opened(text: &str) -> Opened {
    let origin = Origin { name: "app.ron".into(), text: Some(text.into()), replaced: Vec::new() };
    let spec = spec::parse(&origin).expect("the text of an application");
    Opened { spec, origin, folder: PathBuf::new() }
}

/// The application that this text describes.
pub fn application(text: &str) -> Application {
    opened(text).resolve().expect("an application")
}

/// The planner's result for an application, on the generic device.
pub fn outcome(application: &Application) -> Planned {
    outcome_from(&Start::default(), application)
}

/// The planner's result for an application with known plans, on the generic device.
pub fn outcome_from(start: &Start, application: &Application) -> Planned {
    let device = DeviceProfile::find("generic", Path::new("")).expect("a profile that comes with csdfc");
    let paths = application.cnns.iter().map(|cnn| cnn.model.name.clone()).collect();
    driver::plan_from(start, application, &device, paths, &Watch::unwatched(), &|_| Ok(())).expect("a plan")
}

/// The plan of an application, which the checker must accept.
pub fn plan(application: &Application) -> Plan {
    let plan = outcome(application).plan;
    if let Err(violations) = csdfc_plan::check(&plan) {
        let list: Vec<String> = violations.iter().take(5).map(ToString::to_string).collect();
        assert!(list.is_empty(), "check refuses the plan of {}:\n{}", application.name, list.join("\n"));
    }
    plan
}

/// Rates of a plan, as `3,29*1`, written out.
pub fn rates(text: &str) -> Vec<u64> {
    let mut all = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let open = rest.find('(').filter(|open| rest.find(',').is_none_or(|comma| open < &comma));
        let end = match open {
            Some(open) => open + rest[open..].find(')').expect("a pattern that is closed") + 1,
            None => rest.find(',').unwrap_or(rest.len()),
        };
        let (run, after) = rest.split_at(end);
        let (times, pattern) = run.split_once('*').unwrap_or(("1", run));
        let pattern: Vec<u64> =
            pattern.trim_matches(['(', ')']).split(',').map(|rate| rate.parse().expect("a rate")).collect();
        (0..times.parse::<u64>().expect("a number of times")).for_each(|_| all.extend_from_slice(&pattern));
        rest = after.trim_start_matches(',');
    }
    all
}
