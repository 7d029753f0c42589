//! Boards with several memories: plans of random applications in random memories.

use std::path::Path;

use csdfc_input::app::resolve::{Application, RowsChoice};
use csdfc_input::device::DeviceProfile;
use csdfc_input::device::memory::Memory;
use csdfc_input::units;
use csdfc_plan::plan::{Plan, StorageModel};
use csdfc_tests::{generate, outcome, plan, random, root};
use rand::RngExt;
use rand::rngs::ChaCha8Rng;

use crate::corruptions::regions;
use crate::plan_format::are_agreed;

fn memory(name: &str, bytes: u64, ns_per_byte: Option<f64>) -> Memory {
    Memory { name: name.into(), bytes, ns_per_byte }
}

/// The application on a board with these memories.
fn on(application: &Application, memories: &[Memory]) -> Application {
    let mut application = application.clone();
    application.constraints.memories = memories.to_vec();
    application
}

fn drawn(seed: u64) -> (Application, ChaCha8Rng) {
    let mut random = random(seed);
    let bytes: Vec<u8> = (0..200).map(|_| random.random()).collect();
    let mut application = match seed % 4 {
        0 => generate::dealt(&bytes, StorageModel::Tensors),
        _ => generate::application(&bytes, StorageModel::Tensors),
    };
    if seed.is_multiple_of(3) {
        application.rows = RowsChoice::Default;
    }
    (application, random)
}

/// The time between frames of all CNNs together, in nanoseconds.
fn time(plan: &Plan) -> f64 {
    plan.cnns.iter().map(|cnn| 1e9 / cnn.fps).sum()
}

#[test]
fn plans_in_several_memories_are_safe() {
    let (mut used, mut short) = (0, 0);
    for seed in 0..120 {
        let (application, mut random) = drawn(seed);
        let arena = plan(&application).memory.arena;
        let mut part = |least: u64| arena * random.random_range(least..8) / 8;
        let memories = [("near", part(1)), ("next", part(1)), ("far", part(1) + arena / 2)];
        let is_timed = seed % 2 == 0;
        let memories: Vec<Memory> = (0u8..)
            .zip(memories)
            .map(|(rank, (name, bytes))| memory(name, bytes.max(1), is_timed.then_some(f64::from(rank))))
            .collect();
        let planned = outcome(&on(&application, &memories));
        let name = format!("drawn {seed}");
        assert!(are_agreed(&name, &planned.plan), "{name}");
        let lacks = planned.plan.regions.iter().any(|region| region.bytes > region.limit);
        assert_eq!((planned.plan.constraints.met, planned.shortfall.is_some()), (!lacks, lacks), "{name}");
        used += usize::from(planned.plan.regions.iter().filter(|region| region.bytes > 0).count() > 1);
        short += usize::from(lacks);
    }
    assert!(
        used > 60 && short > 5 && short < 60,
        "{used} plans in several memories, {short} that do not fit"
    );
}

/// With one more memory, no plan is slower: not than with everything in the slow one, nor in the fast one where it fits.
#[test]
fn a_fast_memory_makes_no_plan_slower() {
    let (mut all, mut alone, mut faster) = (0, 0, 0);
    for seed in 0..60 {
        let (application, mut random) = drawn(seed);
        let arena = plan(&application).memory.arena;
        let fast = memory("fast", arena * random.random_range(1..10) / 8 + 1, Some(0.0));
        let slow = memory("slow", 4 * arena + 1, Some(5.0));
        let in_slow = plan(&on(&application, std::slice::from_ref(&slow)));
        let in_both = plan(&on(&application, &[fast.clone(), slow]));
        assert!(time(&in_both) <= time(&in_slow) * (1.0 + 1e-9), "drawn {seed}");
        let in_fast = outcome(&on(&application, &[fast])).plan;
        if in_fast.constraints.met {
            assert!(time(&in_both) <= time(&in_fast) * (1.0 + 1e-9), "drawn {seed}");
            alone += 1;
        }
        faster += usize::from(time(&in_both) < time(&in_slow) * 0.9);
        all += 1;
    }
    assert!(alone > 5 && alone < all && faster > all / 2, "{alone} fit, {faster} are faster, of {all}");
}

#[test]
fn the_replay_and_the_checker_agree_on_regions() {
    let (mut accepted, mut refused) = (0, 0);
    for (name, plan) in regions::subjects() {
        assert!(are_agreed(&name, &plan), "{name}");
        accepted += 1;
        for (kind, edit) in regions::CORRUPTIONS {
            for seed in 0..20 {
                let mut edited = plan.clone();
                // A number that JSON cannot write is no plan.
                let is_edited = edit(&mut edited, &mut random(seed)).is_some();
                let is_number = |ns: f64| ns.is_finite();
                if is_edited && edited.regions.iter().filter_map(|region| region.ns_per_byte).all(is_number) {
                    assert!(!are_agreed(&format!("{name}, {kind}, {seed}"), &edited));
                    refused += 1;
                }
            }
        }
    }
    assert!(accepted >= 5 && refused > 500, "{accepted}, {refused}");
}

/// The memories in which rings lie do not change what the plan computes, only where.
#[test]
fn a_plan_in_several_memories_has_the_rings_of_one_in_one() {
    let application = csdfc_tests::application(r#"(cnns: [(model: "builtin:resnet8")], rows: all)"#);
    let divided = on(&application, &[memory("near", 20_000, None), memory("far", 1_000_000, None)]);
    let [one, several] = [application, divided].map(|application| plan(&application));
    assert!(several.regions.iter().all(|region| region.bytes > 0), "{:?}", several.regions);
    let sizes = |plan: &Plan| -> Vec<(String, u64)> {
        let rings =
            plan.tensors.iter().filter_map(|tensor| Some((tensor.name.clone(), tensor.ring?.ring_rows)));
        rings.collect()
    };
    assert_eq!(sizes(&one), sizes(&several));
    assert_eq!(one.partitions, several.partitions);
}

#[test]
fn the_guide_names_the_memories_of_the_profiles() {
    let page = std::fs::read_to_string(root().join("docs/guide/src/devices.md")).unwrap();
    let mut stated = 0;
    for entry in std::fs::read_dir(root().join("compiler/input/src/device/targets")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap();
        for memory in DeviceProfile::find(name, Path::new("")).unwrap().memories {
            let slower = memory.ns_per_byte.filter(|ns| *ns > 0.0);
            let slower = slower.map_or(String::new(), |ns| format!(" ({ns} ns a byte longer)"));
            let told = format!("`{}` {}{slower}", memory.name, units::grouped(memory.bytes));
            let is_said = |line: &str| line.contains(&format!("`{name}`")) && line.contains(&told);
            assert!(page.lines().any(is_said), "{name}: {told}");
            stated += 1;
        }
    }
    assert!(stated >= 10);
}
