//! Boards with several memories: plans of random applications in random memories.

use std::path::Path;

use csdfc_input::app::resolve::{Application, RowsChoice};
use csdfc_input::builtin;
use csdfc_input::device::DeviceProfile;
use csdfc_input::device::memory::Memory;
use csdfc_input::units;
use csdfc_network::pass;
use csdfc_plan::plan::{Content, Plan, StorageModel};
use csdfc_planner::driver;
use csdfc_precision::quantize::{Options, quantize};
use csdfc_runtime::run::{Data, Value};
use csdfc_tests::{generate, outcome, plan, random, root};
use rand::RngExt;
use rand::rngs::ChaCha8Rng;

use crate::corruptions::regions;
use crate::plan_format::are_agreed;

fn memory(name: &str, bytes: u64, ns_per_byte: Option<f64>) -> Memory {
    Memory { ns_per_byte, ..Memory::new(name, bytes) }
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

/// Rings and workspaces lie in one memory, and blocks of streamed weights in another, whatever the order of the two.
#[test]
fn what_may_lie_where_is_kept() {
    let only = |content: Content, memory: Memory| Memory { holds: [content].into(), ..memory };
    for (model, is_weights_first) in [("lenet5", false), ("lenet5", true), ("resnet8", true)] {
        let text = format!("(cnns: [(model: \"builtin:{model}\")], weights: streamed)");
        let of_weights = only(Content::Weights, memory("weights", 600_000, None));
        let of_buffers = only(Content::Buffers, memory("buffers", 400_000, None));
        let mut memories = [of_buffers, of_weights];
        if is_weights_first {
            memories.reverse();
        }
        let plan = plan(&on(&csdfc_tests::application(&text), &memories));
        assert!(are_agreed(model, &plan) && plan.regions.iter().all(|region| region.bytes > 0), "{model}");
        // With the words exchanged, the same places are no plan for the checker, nor for the replay.
        let mut exchanged = plan.clone();
        let [one, other] = &mut exchanged.regions[..] else { panic!("two regions") };
        std::mem::swap(&mut one.holds, &mut other.holds);
        assert!(!are_agreed(model, &exchanged), "{model}");
    }
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

/// A small MobileNetV2 of integers on a board with an STM32H7: with all its memories, it is as fast as with any of them alone,
/// and as with everything in the slow one. The guide has the times.
#[test]
fn a_board_is_as_fast_as_its_best_memory() {
    let pixels = generate::sixteenths(1).take(3 * 144 * 144).collect();
    let frame = Value { dims: vec![1, 3, 144, 144], data: Data::F32(pixels) };
    let network = builtin::network("mobilenet_v2_0.35_144").unwrap();
    let quantized = quantize(network, &[vec![frame]], Options::default()).unwrap();
    let network = pass::normalise(quantized.network, pass::Fusion::Full);
    let mut application = generate::of_one(network, StorageModel::Tensors, RowsChoice::Default);
    application.device = "stm32h7".into();
    let device = DeviceProfile::find("stm32h7", Path::new("")).unwrap();
    let of_device = |name: &str| device.memories.iter().find(|memory| memory.name == name).unwrap().clone();
    let (dtcm, sram, psram) = (of_device("dtcm"), of_device("sram"), memory("psram", 8_000_000, Some(12.5)));
    let milliseconds = |memories: &[&Memory]| {
        let memories: Vec<Memory> = memories.iter().copied().cloned().collect();
        let application = on(&application, &memories);
        let planned = driver::plan(&application, &device, vec!["model".into()]).unwrap();
        assert!(planned.plan.constraints.met && csdfc_plan::check(&planned.plan).is_ok());
        time(&planned.plan) / 1e6
    };
    let times = [&[&psram][..], &[&sram], &[&dtcm], &[&dtcm, &sram, &psram]].map(milliseconds);
    let [slow, .., all] = times;
    assert!(all < 0.8 * slow && times.iter().all(|alone| all <= alone * (1.0 + 1e-9)), "{times:?}");
    let page = std::fs::read_to_string(root().join("docs/guide/src/memories.md")).unwrap();
    for (what, time) in ["`psram` alone", "`sram` alone", "`dtcm` alone", "all three"].iter().zip(times) {
        let line = format!("| {what} | {time:.1} ms |");
        assert!(page.contains(&line), "the guide lacks: {line}");
    }
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
