//! Crates of plans whose arena lies in several memory regions make the same bytes as those in one memory.

use csdfc_emit::ModuleOptions;
use csdfc_input::app::resolve::Application;
use csdfc_plan::plan::{Content, Plan, Region};
use csdfc_tests::crates::{run, write_with_harness};
use csdfc_tests::{application, plan, together};

use super::{Emitted, capi, check_crate, inspect_crate, values_of};

/// The plan with every other ring, workspace and block of weights in a second region. Between both is a region with no
/// bytes.
fn divided(plan: &Plan, names: [&str; 2]) -> Plan {
    let mut plan = plan.clone();
    let end = places(&mut plan).into_iter().step_by(2).map(|(offset, bytes)| *offset + bytes).max();
    let first = end.expect("something in the first region");
    let begin = first.next_multiple_of(Region::ALIGNMENT);
    let moved = places(&mut plan).into_iter().skip(1).step_by(2).map(|(offset, bytes)| {
        *offset += begin;
        *offset + bytes
    });
    let second = moved.max().expect("something in the second region") - begin;
    let region = |name: &str, offset, bytes| Region {
        name: name.into(),
        offset,
        bytes,
        holds: Content::of_arena(),
        stack: 0,
        limit: bytes,
        ns_per_byte: None,
    };
    plan.regions =
        vec![region(names[0], 0, first), region("spare", begin, 0), region(names[1], begin, second)];
    plan.constraints.memory = None;
    together::settle(&mut plan);
    csdfc_plan::check(&plan).expect("a safe plan");
    plan
}

/// The offset and the bytes of all that lies in the arena.
fn places(plan: &mut Plan) -> Vec<(&mut u64, u64)> {
    let rings = plan.tensors.iter_mut().filter_map(|tensor| tensor.ring.as_mut());
    let mut places: Vec<(&mut u64, u64)> = rings.map(|ring| (&mut ring.offset, ring.bytes)).collect();
    for layer in plan.cnns.iter_mut().flat_map(|cnn| &mut cnn.layers) {
        let workspace = &mut layer.workspace;
        if workspace.bytes > 0 {
            places.push((&mut workspace.offset, workspace.bytes));
        }
        let blocks = layer.streamed.iter_mut().flat_map(|streamed| &mut streamed.blocks);
        places.extend(blocks.map(|block| (&mut block.offset, block.bytes)));
    }
    places
}

/// The crate of an application's plan, divided.
fn emitted(application: &Application) -> Emitted<'_> {
    let emitted = Emitted::of(application, divided(&plan(application), ["dtcm", "sram"]));
    assert!(emitted.expected() == Emitted::new(application).expected(), "the runner");
    emitted
}

#[test]
fn one_model() {
    let application = application("(cnns: [(model: \"builtin:resnet8\")], rows: all)");
    let emitted = emitted(&application);
    check_crate(&emitted);
    capi::check_crate(&emitted);
    let [first, .., second] = &emitted.plan.regions[..] else { panic!("three regions") };
    let read = |file: &str| std::fs::read_to_string(emitted.folder().join(file)).expect("a file");
    let readme = read("README.md");
    for (name, region) in [("dtcm", first), ("sram", second)] {
        let row = format!("| of these in `{name}`, whose limit is {0} | {0} |", region.bytes);
        assert!(readme.contains(&row), "{readme}");
        let line =
            format!("\n      .{name} (NOLOAD) : {{ *(.{name} .{name}.*) }} > {}\n", name.to_uppercase());
        assert!(readme.contains(&line), "{readme}");
        let line = format!("#define EMITTED_{}_BYTES {}\n", name.to_uppercase(), region.bytes);
        assert!(read("include/emitted.h").contains(&line), "{line}");
        assert!(read("c/main.c").contains(&format!("IN(\".{name}\")")), "{name}");
    }
}

/// A pipeline of two stages with streamed weights, and its C interface.
#[test]
fn stages() {
    let application = application(
        "(cnns: [(model: \"builtin:resnet8\", partitions: [(name: \"a\", upto: \"stack2_conv1\"), (name: \"b\")])], \
         parallel: [[\"a\", \"b\"]], weights: streamed, resident: [\"conv\"])",
    );
    let emitted = emitted(&application);
    check_crate(&emitted);
    capi::check_crate(&emitted);
}

/// CNNs that share the arena, and one that takes turns with them.
#[test]
fn several_models() {
    let cnns = "(model: \"builtin:lenet5\"), (model: \"builtin:paper_pair\"), (model: \"builtin:resnet8\")";
    let parallel = "[[\"lenet5\", \"paper_pair\"], [\"resnet8\"]]";
    let application = application(&format!("(cnns: [{cnns}], parallel: {parallel}, rows: all)"));
    check_crate(&emitted(&application));
}

/// Regions whose names mean something else in the crate, in C or to a linker.
#[test]
fn names_of_regions() {
    let application = super::state::application(5);
    let plan = plan(&application);
    for names in [["arena", "static"], ["data", "register"]] {
        let emitted = Emitted::of(&application, divided(&plan, names));
        let lint = ["clippy", "--offline", "--features", "capi", "--", "-D", "warnings"];
        inspect_crate(emitted.folder(), &lint);
        inspect_crate(emitted.folder(), &["fmt", "--check"]);
        let strict = ["-std=c11", "-Wall", "-Wextra", "-Werror", "-pedantic", "-fsyntax-only", "-Iinclude"];
        run(emitted.folder(), "cc", &[&strict[..], &["c/main.c"]].concat(), &[]);
    }
}

/// A module of another crate, which has no standard library.
#[test]
fn a_module() {
    let application = super::model("lenet5", "none");
    let plan = divided(&plan(&application), ["dtcm", "sram"]);
    let options = ModuleOptions { path: "net", std: false };
    let files = csdfc_emit::emit_module(&plan, &values_of(&application), &options).expect("a module");
    let folder = tempfile::tempdir().expect("a folder");
    csdfc_command::write_crate(&folder.path().join("src/net"), &files).expect("files");
    let manifest = "[package]\nname = \"user\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n[workspace]\n";
    std::fs::write(folder.path().join("Cargo.toml"), manifest).expect("a file");
    let library = "//! A program's library.\n#![no_std]\n#![deny(warnings)]\n\n#[path = \"net/src/mod.rs\"]\npub mod net;\n";
    std::fs::write(folder.path().join("src/lib.rs"), library).expect("a file");
    run(folder.path(), env!("CARGO"), &["build", "--quiet", "--offline"], &[]);
}

/// Hops of a stream in memory of the program's own, which is full of other bytes, and in the ready arena.
const OWN_MEMORY: &str = "use emitted::{Arena, Inputs, Model, Outputs, Region};

fn own<const BYTES: usize>() -> &'static mut Region<BYTES> {
    let region = Box::leak(Box::new(Region::new()));
    // SAFETY: any bytes are a region.
    unsafe { std::ptr::from_mut(region).cast::<u8>().write_bytes(0xa5, BYTES) };
    region
}

fn main() {
    let mut own = Arena { dtcm: own(), sram: own() };
    let ready = Arena::take().unwrap();
    assert!(Arena::take().is_none());
    let mut models = [Model::new(&mut own), Model::new(ready)];
    for hop in 0..40 {
        let input = std::array::from_fn(|i| ((hop * 31 + i) * 7919 % 1013) as f32 / 507.0 - 1.0);
        let [own, ready] = models.each_mut().map(|model| {
            let mut made = [0.0; OUTPUT];
            model.infer(Inputs { INPUT_NAME: &input }, Outputs { OUTPUT_NAME: &mut made });
            made.map(f32::to_bits)
        });
        assert_eq!(own, ready, \"hop {hop}\");
    }
}
";

#[test]
fn memory_of_any_content() {
    for application in [
        application("(cnns: [(model: \"builtin:wake_word\", stream: ())])"),
        application("(cnns: [(model: \"builtin:voice_activity\", states: {\"next_state\": \"state\"})])"),
    ] {
        let plan = divided(&plan(&application), ["dtcm", "sram"]);
        let cnn = &plan.cnns[0];
        let made = cnn.layers.iter().find(|layer| layer.output == cnn.outputs[0].tensor).expect("a layer");
        let harness = OWN_MEMORY
            .replace("OUTPUT_NAME", &cnn.outputs[0].name)
            .replace("OUTPUT", &made.output_shape.elements().to_string())
            .replace("INPUT_NAME", &cnn.inputs[0]);
        let folder = tempfile::tempdir().expect("a folder");
        write_with_harness(folder.path(), &application, &plan, &harness);
        run(&folder.path().join("harness"), env!("CARGO"), &["run", "--quiet", "--offline"], &[]);
    }
}
