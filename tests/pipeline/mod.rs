//! Pipelines of emitted crates: the frames of the sequential run, in order, without allocations, whatever happens.

#![allow(clippy::expect_used, clippy::panic, reason = "a panic is how a test fails")]

use csdfc_input::app::partition::Partition;
use csdfc_input::app::resolve::{Application, Cnn, RowsChoice};
use csdfc_network::{LayerId, Network, NetworkOutput, Operand};
use csdfc_plan::check::{self, Violation};
use csdfc_plan::operator::{Concat, Conv, Operator, Pool, PoolKind};
use csdfc_plan::plan::{Plan, StorageModel};
use csdfc_plan::shape::Shape;
use csdfc_runtime::run::{Data, Runner, Value};
use csdfc_tests::crates::{COUNTING, SANITIZED, run, thread_sanitizer, write_with_harness};
use csdfc_tests::{application, generate, plan, root};

use crate::plan_format::replay::replay;

/// Two pipelines, one with a tensor that both its stages read, two CNNs at the same time, and two stages that wait for each
/// other within a frame; [`fork`] joins them.
const APPLICATION: &str = r#"(
    cnns: [
        (name: "lenet", model: "builtin:lenet5",
         partitions: [(name: "a", upto: "S2"), (name: "b", upto: "S4", processor: "gpu"), (name: "c")]),
        (name: "skip", model: "builtin:paper_cnn1", partitions: [(name: "d", upto: "l3"), (name: "e")]),
        (name: "one", model: "builtin:lenet5"),
        (name: "two", model: "builtin:paper_pair"),
        (name: "branch", model: "builtin:paper_cnn1",
         partitions: [(name: "i", processor: "gpu", layers: ["l3"]), (name: "j")]),
    ],
    parallel: [["a", "b", "c"], ["d", "e"], ["one", "two"], ["i", "j"]],
    OPTIONS
)"#;

/// Frames of each CNN.
const FRAMES: usize = 6;

/// As many in the long test, whose crate is built with optimisation; fewer where this test is not, as stages that wait for
/// each other are slow where much else runs.
const FRAMES_LONG: usize = if cfg!(debug_assertions) { 100 } else { 1000 };

/// As many where data races are looked for.
const FRAMES_WATCHED: usize = 20;

/// The program that uses a crate.
fn harness_text() -> String {
    std::fs::read_to_string(root().join("tests/pipeline/harness.rs")).expect("the harness") + COUNTING
}

fn check(plan: &Plan, application: &Application, frames: usize, optimisation: &str) {
    let folder = tempfile::tempdir().expect("a folder");
    write_with_harness(folder.path(), application, plan, &harness_text());
    let harness = folder.path().join("harness");
    let level = ("CARGO_PROFILE_DEV_OPT_LEVEL", optimisation);
    run(&harness, env!("CARGO"), &["build", "--offline"], &[level]);
    let program = harness.join("target/debug/harness");
    let told = run(folder.path(), program.to_str().expect("a path in UTF-8"), &[&frames.to_string()], &[]);
    assert_eq!(told, expected(application, plan, frames));
}

/// The expected output of the harness: the bytes of the arena, and for each CNN the hash of all frames as the runner
/// makes them.
fn expected(application: &Application, plan: &Plan, frames: usize) -> String {
    let values = |cnn: usize, layer: usize, parameter: usize| {
        application.cnns[cnn].network.parameter(layer, parameter)
    };
    let mut runner = Runner::poisoned(plan, &values).expect("a runner");
    let mut told = format!("arena: {}\n", plan.memory.arena);
    for (c, cnn) in plan.cnns.iter().enumerate() {
        let mut hash = FNV_START;
        for frame in 0..frames {
            let shape = &cnn.layers[0].output_shape;
            let rows: Vec<f32> = (0..shape.elements()).map(|element| value(frame, element)).collect();
            let input =
                Value { dims: shape.dims.clone(), data: Data::F32(reordered(&rows, &shape.dims, true)) };
            let made = runner.infer(c, &[input]).expect("a frame");
            let Data::F32(values) = &made[0].data else { panic!("floats") };
            let rows = reordered(values, &made[0].dims, false);
            hash = rows.iter().fold(hash, |hash, x| fnv(hash, x.to_bits()));
        }
        told += &format!("{}: {hash:016x}\n", cnn.name);
    }
    told
}

/// Elements by rows of pixels of channels as those of planes of channels, or the other way.
fn reordered(values: &[f32], dims: &[usize], to_planes: bool) -> Vec<f32> {
    let &[1, channels, height, width] = dims else { return values.to_vec() };
    let mut all = vec![0.0; values.len()];
    for (i, value) in values.iter().enumerate() {
        let pixels = height * width;
        let (c, pixel) = if to_planes { (i % channels, i / channels) } else { (i / pixels, i % pixels) };
        all[if to_planes { c * pixels + pixel } else { pixel * channels + c }] = *value;
    }
    all
}

/// As in the harness.
fn value(frame: usize, element: usize) -> f32 {
    ((frame * 31 + element) * 7919 % 1013) as f32 / 507.0 - 1.0
}

const FNV_START: u64 = 0xcbf2_9ce4_8422_2325;

fn fnv(hash: u64, bits: u32) -> u64 {
    (hash ^ u64::from(bits)).wrapping_mul(0x0000_0100_0000_01b3)
}

fn with(options: &str) -> Application {
    let mut application = application(&APPLICATION.replace("OPTIONS", options));
    let fork = fork();
    application.parallel.push(fork.partitions.iter().map(|partition| partition.name.clone()).collect());
    application.cnns.push(fork);
    application
}

/// A pipeline of three stages. Three layers of the second stage read the output of the first, at distances of 5, 3 and
/// 1 rows, and one layer of the third reads it too. Two layers of the third stage read the output of the second.
fn fork() -> Cnn {
    let mut network = Network::default();
    let conv = |filters: usize, side: usize| {
        Operator::Conv(Conv {
            filters,
            kernel: [side; 2],
            stride: [1; 2],
            dilation: [1; 2],
            pads: [side / 2; 4],
            groups: 1,
            bias: true,
            pre: None,
            residual: false,
            activation: None,
        })
    };
    let pool = Pool {
        kind: PoolKind::Max,
        kernel: [3; 2],
        stride: [1; 2],
        dilation: [1; 2],
        pads: [1; 4],
        ceil: false,
    };
    let x = generate::input(&mut network, Shape::image(3, 16, 16));
    let mut layer = |operator, inputs: &[&Operand]| {
        let inputs = inputs.iter().copied().cloned().collect();
        generate::push(&mut network, operator, inputs).expect("a layer")
    };
    let concat = || Operator::Concat(Concat { axis: 1 });
    let a = layer(conv(4, 1), &[&x]);
    let near = layer(conv(4, 5), &[&a]);
    let nearer = layer(Operator::Pool(pool), &[&a]);
    let b = layer(concat(), &[&near, &nearer, &a]);
    let last = layer(conv(4, 3), &[&b]);
    let operand = layer(concat(), &[&last, &a, &b]);
    let ends = [a.layer.0, b.layer.0, operand.layer.0].map(|id| id + 1);
    network.outputs.push(NetworkOutput::new("out", operand));
    let partition = |(stage, name): (usize, &str)| Partition {
        name: name.into(),
        layers: ([0, ends[0], ends[1]][stage]..ends[stage]).map(LayerId).collect(),
        processor: "cpu".into(),
        schedule: None,
    };
    let partitions = ["f", "g", "h"].into_iter().enumerate().map(partition).collect();
    generate::of_network("fork", network, partitions)
}

/// Places in the plan of the rings that go from one partition to another.
fn cut(plan: &Plan) -> Vec<usize> {
    let layers = || plan.cnns.iter().flat_map(|cnn| cnn.layers.iter().map(move |layer| (&cnn.name, layer)));
    let partition = |cnn: &str, name: &str| {
        let found = layers().find(|(of, layer)| *of == cnn && layer.name == name);
        found.map(|(_, layer)| layer.partition.clone())
    };
    let crosses = |t: &usize| {
        let tensor = &plan.tensors[*t];
        let producer = partition(&tensor.cnn, &tensor.producer);
        let read_elsewhere = |consumer: &String| partition(&tensor.cnn, consumer) != producer;
        tensor.ring.is_some() && tensor.consumers.iter().any(read_elsewhere)
    };
    (0..plan.tensors.len()).filter(crosses).collect()
}

/// The plan with two frames of rows between stages.
fn widened(plan: &Plan) -> Plan {
    let wide = |plan: Plan, t: usize| {
        let rows = 2 * plan.tensors[t].shape.rows() as u64;
        with_ring_rows(&plan, t, rows).expect("two frames are safe")
    };
    cut(plan).into_iter().fold(plan.clone(), wide)
}

/// The plan with a ring of so many rows at the end of the arena, if the checker accepts it once its sums are right.
fn with_ring_rows(plan: &Plan, t: usize, rows: u64) -> Option<Plan> {
    let mut plan = plan.clone();
    let row_bytes = plan.tensors[t].row_bytes;
    let ring = plan.tensors[t].ring.as_mut()?;
    // Above all others, where there is room.
    (ring.ring_rows, ring.bytes, ring.offset) = (rows, rows * row_bytes, plan.memory.buffers);
    plan.memory.buffers += rows * row_bytes;
    plan.memory.arena = plan.memory.buffers;
    for _ in 0..4 {
        let Err(violations) = check::check(&plan) else { return Some(plan) };
        for violation in violations {
            let (what, expected) = match violation {
                Violation::Sum { what, expected, .. } => (what, expected),
                Violation::Witness { moment } => {
                    plan.certificate.bound = Some(moment);
                    continue;
                }
                _ => return None,
            };
            match what.as_str() {
                "memory.buffers" => plan.memory.buffers = expected.parse().ok()?,
                "memory.arena" => plan.memory.arena = expected.parse().ok()?,
                "memory.bound" => plan.memory.bound = expected.parse().ok()?,
                "memory.total" => plan.memory.total = expected.parse().ok()?,
                "memory.proven" => plan.memory.proven = expected == "true",
                _ => return None,
            }
        }
    }
    None
}

/// The harness under ThreadSanitizer, the standard library built with it.
#[test]
#[ignore = "builds the standard library with a nightly toolchain"]
fn without_data_races() {
    let application = with("rows: all, storage: tensors, threads: 2");
    let plan = plan(&application);
    let folder = tempfile::tempdir().expect("a folder");
    write_with_harness(folder.path(), &application, &plan, &harness_text());
    let harness = folder.path().join("harness");
    let Some(cargo) = thread_sanitizer(&harness) else { return };
    cargo(&["build", "--release", "--offline"]);
    let program = harness.join("target").join(SANITIZED).join("release/harness");
    let options = [("TSAN_OPTIONS", "halt_on_error=1")];
    let told = run(
        folder.path(),
        program.to_str().expect("a path in UTF-8"),
        &[&FRAMES_WATCHED.to_string()],
        &options,
    );
    assert_eq!(told, expected(&application, &plan, FRAMES_WATCHED));
    println!("{FRAMES_WATCHED} frames of each pipeline without a data race");
}

#[test]
fn rings_of_two_frames() {
    let application = with("rows: all, storage: tensors, threads: 1");
    check(&widened(&plan(&application)), &application, FRAMES, "0");
}

/// What the first stage of a pipeline makes is read in the second, and, once another group has run, in the last. Its ring is
/// kept until then.
#[test]
fn a_cut_ring_lasts_until_a_later_group() {
    for storage in [StorageModel::Tensors, StorageModel::Edges] {
        let mut cnn = fork();
        let last = cnn.partitions.last_mut().expect("a stage");
        let layers = last.layers.split_off(1);
        let later = Partition { name: "i".into(), layers, ..last.clone() };
        cnn.partitions.push(later);
        let parallel = [["f", "g"].as_slice(), &["h"], &["i"]];
        let parallel = parallel.map(|names| names.iter().map(|&name| name.to_owned()).collect()).to_vec();
        let plan = plan(&generate::of_cnns(vec![cnn], parallel, storage, RowsChoice::All));
        let value = serde_json::from_str(&plan.to_json()).expect("JSON");
        assert_eq!(replay(&value).err(), None, "{storage}");
    }
}

/// As the dataflow engine sizes them: less than a frame, and not of whole frames, so that rows wrap.
#[test]
fn rings_of_a_few_rows() {
    let application = with("rows: all, storage: tensors, threads: 2");
    let plan = plan(&application);
    let cut = cut(&plan);
    assert!(cut.len() >= 4, "{cut:?}");
    let rings =
        cut.iter().filter_map(|&t| Some((plan.tensors[t].ring?.ring_rows, plan.tensors[t].shape.rows())));
    let wraps =
        rings.filter(|&(ring, rows)| ring < rows as u64 && !(rows as u64).is_multiple_of(ring)).count();
    assert!(wraps >= 1, "{wraps} of {}", cut.len());
    check(&plan, &application, FRAMES, "0");
}

#[test]
fn double_buffers() {
    let application = with("rows: none, storage: edges, threads: 3");
    check(&plan(&application), &application, FRAMES, "0");
}

/// A stage that can run too far ahead does so at some time.
#[test]
fn a_thousand_frames() {
    let application = with("rows: all, storage: tensors, threads: 2");
    check(&plan(&application), &application, FRAMES_LONG, "2");
}
