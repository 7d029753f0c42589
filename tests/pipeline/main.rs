//! Pipelines of emitted crates: the frames of the sequential run, in order, without allocations, whatever happens.

#![allow(clippy::expect_used, clippy::panic, reason = "a panic is how a test fails")]

use csdfc_codegen::check::{self, Violation};
use csdfc_codegen::plan::Plan;
use csdfc_tests::crates::{run, write_with_harness};
use csdfc_tests::{application, plan};

/// Two pipelines, one with a tensor that both its stages read, and two CNNs at the same time.
const APPLICATION: &str = r#"(
    cnns: [
        (name: "lenet", model: "builtin:lenet5",
         partitions: [(name: "a", upto: "S2"), (name: "b", upto: "S4", processor: "gpu"), (name: "c")]),
        (name: "skip", model: "builtin:paper_cnn1", partitions: [(name: "d", upto: "l3"), (name: "e")]),
        (name: "one", model: "builtin:lenet5"),
        (name: "two", model: "builtin:paper_pair"),
    ],
    parallel: [["a", "b", "c"], ["d", "e"], ["one", "two"]],
    rows: all,
    storage: STORAGE,
)"#;

const HARNESS: &str = include_str!("harness.rs");

const MAIN: &str = r#"
cnn!(lenet, input: [f32; 32], output: [[f32; 10]; 1]);
cnn!(skip, l1: [f32; 96], l5: [[f32; 512]; 32]);
cnn!(one, input: [f32; 32], output: [[f32; 10]; 1]);
cnn!(two, l1: [f32; 96], l2: [[f32; 256]; 32]);

fn main() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        // Some are expected.
        let text = panic.payload_as_str().unwrap_or_default();
        if !text.starts_with("enough of") {
            usual(panic);
        }
    }));
    let frames = std::env::args().nth(1).and_then(|frames| frames.parse().ok()).unwrap_or(20);
    let mut arena = Box::new(Arena::new());
    assert_eq!(size_of::<Arena>(), ARENA_BYTES.next_multiple_of(64));
    pipeline!(lenet, &mut *arena, frames, "a", "c");
    pipeline!(skip, &mut *arena, frames.min(50), "d", "e");

    let first = one::infer_all(&mut emitted::one::Model::new(&mut *arena), frames);
    let second = two::infer_all(&mut emitted::two::Model::new(&mut *arena), frames);
    let (left, right) = arena.one_and_two();
    let (mut left, mut right) = (emitted::one::Model::new(left), emitted::two::Model::new(right));
    let (mut made_left, mut made_right) = (vec![0.0; first.len()], vec![0.0; second.len()]);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let made = made_left.chunks_exact_mut(one::SIZE).enumerate();
            made.for_each(|(frame, made)| one::infer(&mut left, frame, made));
        });
        let made = made_right.chunks_exact_mut(two::SIZE).enumerate();
        made.for_each(|(frame, made)| two::infer(&mut right, frame, made));
    });
    assert_eq!((made_left, made_right), (first, second));
    println!("done");
}
"#;

fn check(plan: &Plan, application: &csdfc::app::resolve::Application) {
    let folder = tempfile::tempdir().expect("a folder");
    write_with_harness(folder.path(), application, plan, &(HARNESS.to_owned() + MAIN));
    let harness = folder.path().join("harness");
    run(&harness, env!("CARGO"), &["build", "--offline"], &[]);
    let program = harness.join("target/debug/harness");
    let told = run(folder.path(), program.to_str().expect("a path in UTF-8"), &[], &[]);
    assert!(told.ends_with("done\n"), "{told}");
}

fn by_rows(storage: &str) -> csdfc::app::resolve::Application {
    application(&APPLICATION.replace("STORAGE", storage))
}

/// The plan with fewer rows between stages: as few as the checker accepts.
fn shrunk(plan: &Plan) -> Plan {
    let mut plan = plan.clone();
    let cut: Vec<usize> = (0..plan.tensors.len())
        .filter(|&t| {
            let tensor = &plan.tensors[t];
            tensor.ring.is_some_and(|ring| ring.ring_rows == 2 * tensor.shape.rows() as u64)
        })
        .collect();
    assert!(cut.len() >= 4, "{cut:?}");
    for t in cut {
        let rows = plan.tensors[t].shape.rows() as u64;
        // An odd number, so that rows wrap.
        let fewer = (1..=rows).filter(|rows| rows % 2 == 1).find_map(|rows| with_ring_rows(&plan, t, rows));
        plan = fewer.unwrap_or(plan);
    }
    plan
}

/// The plan with a ring of so many rows, if the checker accepts it once its sums are right.
fn with_ring_rows(plan: &Plan, t: usize, rows: u64) -> Option<Plan> {
    let mut plan = plan.clone();
    let row_bytes = plan.tensors[t].row_bytes;
    let ring = plan.tensors[t].ring.as_mut()?;
    (ring.ring_rows, ring.bytes) = (rows, rows * row_bytes);
    plan.certificate.bound = None;
    for _ in 0..4 {
        let Err(violations) = check::check(&plan) else { return Some(plan) };
        for violation in violations {
            let Violation::Sum { what, expected, .. } = violation else { return None };
            match what.as_str() {
                "memory.buffers" => plan.memory.buffers = expected.parse().ok()?,
                "memory.bound" => plan.memory.bound = expected.parse().ok()?,
                "memory.total" => plan.memory.total = expected.parse().ok()?,
                "memory.proven" => plan.memory.proven = expected == "true",
                _ => return None,
            }
        }
    }
    None
}

#[test]
fn rings_of_two_frames() {
    let application = by_rows("tensors");
    check(&plan(&application), &application);
}

#[test]
fn rings_of_a_few_rows() {
    let application = by_rows("tensors");
    let plan = plan(&application);
    let shrunk = shrunk(&plan);
    let rows = |plan: &Plan| {
        plan.tensors.iter().filter_map(|tensor| tensor.ring).map(|ring| ring.ring_rows).sum::<u64>()
    };
    assert!(rows(&shrunk) + 60 < rows(&plan), "{} of {}", rows(&shrunk), rows(&plan));
    check(&shrunk, &application);
}

#[test]
fn double_buffers() {
    let application = by_rows("edges");
    check(&plan(&application), &application);
}
