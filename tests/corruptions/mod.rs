//! Tests of the checker. Real plans are corrupted in ways that are invalid by construction: the checker must reject
//! every one. They are also edited in ways that are harmless by construction: the checker must accept every one.
//!
//! Each edit says why it is invalid or harmless. The analysis that an edit needs for this is in [`analysis`], and is
//! written from the plan's documentation. All edits are seeded: a failure names its kind, plan and seed.

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]
#![expect(clippy::print_stdout, reason = "the counts are what the test is for")]

mod analysis;
mod data;
mod fields;
mod harmless;
mod integers;
mod loads;
mod primitives;
pub mod regions;
mod schedule;
pub mod states;
mod storage;
pub mod streams;

use std::cell::Cell;
use std::path::Path;

use csdfc_input::app::resolve::Application;
use csdfc_plan::check::{Violation, check};
use csdfc_plan::plan::{Plan, StorageModel};
use csdfc_plan::shape::Shape;
use csdfc_planner::saved::reload;
use csdfc_runtime::bind::Primitive;
use csdfc_tests::{application, plan, random, together};
use rand::RngExt;
use rand::rngs::ChaCha8Rng;

type Random = ChaCha8Rng;

/// An edit in place; `None` if the plan has nothing that can be edited in this way.
type Edit = fn(&mut Plan, &mut Random) -> Option<()>;

/// Edits of each kind.
const EACH: u64 = 50;

/// Attempts for each edit.
const ATTEMPTS: usize = 200;

const CORRUPTIONS: &[(&str, Edit)] = &[
    ("ring moved onto a live one", storage::ring_moved_onto_a_live_one),
    ("ring below its need", storage::ring_below_its_need),
    ("edge's ring below its need", storage::edge_ring_below_its_need),
    ("edge moved to a busy buffer", storage::edge_moved_to_a_busy_buffer),
    ("double buffer broken", storage::double_buffer_broken),
    ("edge lost or doubled", storage::edge_lost_or_doubled),
    ("buffer off", storage::buffer_off),
    ("partitions that share put together", storage::partitions_that_share_put_together),
    ("arena off", storage::arena_off),
    ("ring's sizes disagree", storage::ring_sizes_disagree),
    ("tensor without a place", storage::tensor_without_a_place),
    ("layer in a wrong partition", storage::layer_in_a_wrong_partition),
    ("firing dropped", schedule::firing_dropped),
    ("firing repeated", schedule::firing_repeated),
    ("firing of another layer", schedule::firing_of_another_layer),
    ("firing moved before its producer", schedule::firing_moved_before_its_producer),
    ("dependent firings swapped", schedule::dependent_firings_swapped),
    ("loop of nothing", schedule::loop_of_nothing),
    ("notation of another schedule", schedule::notation_of_another_schedule),
    ("rate off", schedule::rate_off),
    ("rate garbled", schedule::rate_garbled),
    ("firings or rows per firing off", schedule::firings_off),
    ("sum off", data::sum_off),
    ("layer's parameters off", data::layer_parameters_off),
    ("claim false", data::claim_false),
    ("view wrong", data::view_wrong),
    ("output shape wrong", data::output_shape_wrong),
    ("tensor misstated", data::tensor_misstated),
    ("name wrong", data::name_wrong),
    ("layers out of order", data::layers_out_of_order),
    ("convolution changed", data::convolution_changed),
    ("header wrong", data::header_wrong),
    ("primitive unknown", primitives::primitive_unknown),
    ("primitive of another layer", primitives::primitive_of_another_layer),
    ("offset between elements", primitives::offset_between_elements),
    ("stored bytes off", primitives::stored_bytes_off),
    ("workspace wrong", primitives::workspace_wrong),
    ("layout of no kernel", primitives::layout_of_no_kernel),
    ("element of no kernel", primitives::element_of_no_kernel),
];

/// Edits after which a plan is not one of its model any more, whether it is safe or not.
const OF_ANOTHER_MODEL: &[(&str, Edit)] =
    &[("attribute of another model", primitives::attribute_of_another_model)];

const HARMLESS: &[(&str, Edit)] = &[
    ("ring moved to free space", harmless::ring_moved_to_free_space),
    ("ring moved beyond the end", harmless::ring_moved_beyond_the_end),
    ("ring made larger", harmless::ring_made_larger),
    ("independent firings swapped", harmless::independent_firings_swapped),
    ("loops unrolled", harmless::loops_unrolled),
    ("lists reordered", harmless::lists_reordered),
    ("remarks changed", harmless::remarks_changed),
    ("rates written out", harmless::rates_written_out),
    ("honest constraints", harmless::honest_constraints),
];

fn pick<'a, T>(items: &'a [T], random: &mut Random) -> Option<&'a T> {
    match items.len() {
        0 => None,
        n => Some(&items[random.random_range(0..n)]),
    }
}

/// Plans of networks small and large, of both storage models, with partitions one after another and at the same time.
fn subjects() -> Vec<(String, Plan)> {
    let paper = r#"cnns: [(name: "cnn1", model: "builtin:paper_cnn1"), (name: "cnn2", model: "builtin:paper_cnn2",
        partitions: [(name: "p2", upto: "l2"), (name: "p3")])], parallel: [["cnn1"], ["p2", "p3"]]"#;
    let piped = r#"cnns: [(model: "builtin:lenet5", partitions: [(name: "a", upto: "S2"), (name: "b")])],
        parallel: [["a", "b"]]"#;
    let branch = r#"cnns: [(model: "builtin:paper_cnn1", partitions: [(name: "a"), (name: "b", layers: ["l3"])])],
        parallel: [["a", "b"]], rows: all"#;
    let in_turn = r#"cnns: [(model: "builtin:resnet8", partitions: [(name: "a", upto: "stack1_conv1"), (name: "b")])],
        rows: all"#;
    let two = r#"cnns: [(model: "builtin:lenet5"), (model: "builtin:paper_pair"), (model: "builtin:resnet8")],
        parallel: [["lenet5", "paper_pair"], ["resnet8"]], rows: all"#;
    let one = |name: &str, more: &str| format!("cnns: [(model: \"builtin:{name}\")], {more}");
    let list = [
        ("paper, edges".to_string(), format!("{paper}, storage: edges")),
        (
            "paper, edges, by parts".into(),
            format!("{paper}, storage: edges, rows: {{\"cnn1/l3\": 1, \"cnn1/l4\": 1, \"cnn1/l5\": 1}}"),
        ),
        ("paper, tensors".into(), format!("{paper}, rows: all")),
        ("pipeline, tensors".into(), format!("{piped}, rows: all")),
        ("pipeline, edges".into(), format!("{piped}, storage: edges, rows: all")),
        ("pipeline of a branch, tensors".into(), branch.into()),
        ("pipeline of a branch, edges".into(), format!("{branch}, storage: edges")),
        ("in turn".into(), in_turn.into()),
        ("several CNNs, tensors".into(), two.into()),
        ("several CNNs, edges".into(), format!("{two}, storage: edges")),
        ("pair".into(), one("paper_pair", "rows: all, storage: edges")),
        ("lenet5".into(), one("lenet5", "rows: all")),
        ("resnet8, least".into(), one("resnet8", "constraints: (memory: min)")),
        ("squeezenet".into(), one("squeezenet1_0", "rows: none")),
        ("squeezenet, least".into(), one("squeezenet1_0", "constraints: (memory: min)")),
        ("mobilenet, by parts".into(), one("mobilenet_v1_0.25", "rows: all")),
        ("googlenet, edges".into(), one("googlenet", "rows: none, storage: edges")),
    ];
    let mut all: Vec<(String, Plan)> =
        list.into_iter().map(|(name, text)| (name, plan(&application(&format!("({text})"))))).collect();
    for (name, rows) in [("windows copied", "none"), ("windows copied, by parts", "all")] {
        all.push((
            name.into(),
            plan(&lowered(&application(&format!("({})", one("resnet8", &format!("rows: {rows}")))))),
        ));
    }
    let mut random = random(u64::MAX);
    for (name, text) in [
        ("lenet5, pushed", one("lenet5", "rows: none")),
        ("resnet8, pushed", one("resnet8", "rows: none")),
        ("pipeline, pushed", format!("{piped}, rows: {{\"lenet5/C3\": 2}}")),
    ] {
        let apart = plan(&application(&format!("({text})")));
        all.push((name.into(), together::pushed(&apart, &mut |n| random.random_range(0..n))));
    }
    all
}

/// The application with the windows of all convolutions copied where that can be.
fn lowered(application: &Application) -> Application {
    let mut application = application.clone();
    let lowered = Primitive::find("im2row-strip-hwc-hwc").unwrap();
    for layer in application.cnns.iter_mut().flat_map(|cnn| &mut cnn.network.layers) {
        let inputs: Vec<&Shape> = layer.inputs.iter().map(|operand| &operand.shape).collect();
        if lowered.computes(&layer.operator, &inputs) {
            layer.primitive = Some(lowered);
        }
    }
    application
}

/// Makes this many edits of every kind, of random subjects, and lists those that the checker did not answer as it must.
fn edit_all(kinds: &[(&str, Edit)], each: u64, verdict: impl Fn(&Plan) -> Result<(), String>) -> usize {
    edit_all_of(&subjects(), kinds, each, verdict)
}

/// The same for these subjects.
fn edit_all_of(
    subjects: &[(String, Plan)],
    kinds: &[(&str, Edit)],
    each: u64,
    verdict: impl Fn(&Plan) -> Result<(), String>,
) -> usize {
    let mut wrong = Vec::new();
    let mut all = 0;
    for (number, (kind, edit)) in kinds.iter().enumerate() {
        let mut made = 0;
        for stream in 0..each {
            let mut random = random((number as u64) << 32 | stream);
            for _ in 0..ATTEMPTS {
                let (name, plan) = pick(subjects, &mut random).unwrap();
                let mut edited = plan.clone();
                if edit(&mut edited, &mut random).is_none() {
                    continue;
                }
                made += 1;
                if let Err(why) = verdict(&edited) {
                    wrong.push(format!("{kind}, stream {stream}, plan {name}: {why}"));
                }
                break;
            }
        }
        println!("{kind:40} {made:5}");
        assert_eq!(made, each, "{kind}: too few plans can be edited so");
        all += made as usize;
    }
    println!("{:40} {all:5}", "together");
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
    all
}

#[test]
fn every_corruption_is_rejected() {
    let rejected = edit_all(CORRUPTIONS, EACH, |plan| match check(plan) {
        Err(violations) if !violations.is_empty() => Ok(()),
        _ => Err("accepted".into()),
    });
    println!("{rejected} corruptions rejected");
    assert!(rejected >= 1000);
}

#[test]
fn every_corruption_of_loads_is_rejected() {
    let rejected = edit_all_of(&loads::subjects(), loads::CORRUPTIONS, EACH, |plan| match check(plan) {
        Err(violations) if !violations.is_empty() => Ok(()),
        _ => Err("accepted".into()),
    });
    assert!(rejected >= 300);
}

#[test]
fn every_corruption_of_streams_is_rejected() {
    let subjects = streams::subjects();
    for (name, plan) in &subjects {
        assert_eq!(check(plan).err(), None, "{name}");
    }
    let rejected = edit_all_of(&subjects, streams::CORRUPTIONS, EACH, |plan| match check(plan) {
        Err(violations) if !violations.is_empty() => Ok(()),
        _ => Err("accepted".into()),
    });
    assert!(rejected >= 400);
}

#[test]
fn every_corruption_of_states_is_rejected() {
    let subjects = states::subjects();
    for (name, plan) in &subjects {
        assert_eq!(check(plan).err(), None, "{name}");
    }
    let rejected = edit_all_of(&subjects, states::CORRUPTIONS, EACH, |plan| match check(plan) {
        Err(violations) if !violations.is_empty() => Ok(()),
        _ => Err("accepted".into()),
    });
    assert!(rejected >= 400);
}

#[test]
fn every_corruption_of_regions_is_rejected() {
    let subjects = regions::subjects();
    for (name, plan) in &subjects {
        assert_eq!(check(plan).err(), None, "{name}");
        let used = plan.regions.iter().filter(|region| region.bytes > 0).count();
        assert!(plan.constraints.met && used > 1, "{name}: {:?}", plan.regions);
    }
    let rejected = edit_all_of(&subjects, regions::CORRUPTIONS, EACH, |plan| match check(plan) {
        Err(violations) if !violations.is_empty() => Ok(()),
        _ => Err("accepted".into()),
    });
    assert!(rejected >= 200);
}

#[test]
fn every_corruption_of_integers_is_rejected() {
    edit_all_of(&integers::subjects(), integers::CORRUPTIONS, EACH, |plan| match check(plan) {
        Err(violations) if !violations.is_empty() => Ok(()),
        _ => Err("accepted".into()),
    });
}

/// A write over a row that is still needed would also be found when that row is read. The checker finds it before.
#[test]
fn rows_lost_are_seen_as_they_are_written_over() {
    let short: &[(&str, Edit)] = &[
        ("ring below its need", storage::ring_below_its_need),
        ("edge's ring below its need", storage::edge_ring_below_its_need),
    ];
    edit_all(short, EACH, |plan| {
        let violations = check(plan).err().unwrap_or_default();
        let is_late = violations.iter().any(|violation| matches!(violation, Violation::Overwritten { .. }));
        if violations.is_empty() || is_late { Err(format!("{violations:?}")) } else { Ok(()) }
    });
}

/// Nothing else finds a read before the write, unless it makes rings live longer than they may.
#[test]
fn rows_are_seen_to_be_missing_when_they_are_read() {
    edit_all(&[("firing moved", schedule::firing_moved_before_its_producer)], EACH, |plan| {
        let violations = check(plan).err().unwrap_or_default();
        let is_expected = |violation: &Violation| {
            matches!(violation, Violation::NotWritten { .. } | Violation::Overlap { .. })
        };
        if violations.iter().any(is_expected) { Ok(()) } else { Err(format!("{violations:?}")) }
    });
}

/// `check`, `run` and `emit` compare a plan with its models: each by these two functions.
#[test]
fn every_plan_of_another_model_is_refused() {
    let safe = Cell::new(0);
    let refused = edit_all(OF_ANOTHER_MODEL, 200, |plan| {
        safe.set(safe.get() + usize::from(check(plan).is_ok()));
        let differences = reload::differences(plan, Path::new("")).map_err(|error| error.to_string())?;
        match (differences.first(), reload::reload(plan, Path::new(""))) {
            (Some(first), Err(error)) if error.to_string().starts_with(first) => Ok(()),
            (first, reloaded) => Err(format!("{first:?}, {:?}", reloaded.err())),
        }
    });
    println!("{refused} plans refused, {} of them safe", safe.get());
    assert!(refused >= 200 && safe.get() > 10);
    for (name, plan) in subjects() {
        assert_eq!(reload::differences(&plan, Path::new("")).unwrap(), [""; 0], "{name}");
    }
}

#[test]
fn every_harmless_edit_is_accepted() {
    let accepted = edit_all(HARMLESS, EACH, |plan| match check(plan) {
        Ok(_) => Ok(()),
        Err(violations) => Err(format!("rejected: {}", violations[0])),
    });
    println!("{accepted} harmless edits accepted");
    assert!(accepted >= 200);
}

/// The test's own analysis agrees with the planner on plans that nobody has edited.
#[test]
fn the_analysis_knows_good_plans() {
    for (name, plan) in subjects() {
        assert!(plan.storage_model == StorageModel::Edges || analysis::is_apart(&plan), "{name}");
        assert!(name.starts_with("pipeline") || analysis::is_safe(&plan), "{name}");
        let mut settled = plan.clone();
        analysis::settle(&mut settled);
        assert_eq!(settled.memory, plan.memory, "{name}");
    }
}
