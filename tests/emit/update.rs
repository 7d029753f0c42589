//! Updates: new weights for a crate that has been emitted, in two slots.

use csdfc_emit::ModuleOptions;
use csdfc_input::app::resolve::Application;
use csdfc_network::weights::WeightSource;
use csdfc_plan::plan::Plan;
use csdfc_runtime::run::{Data, Runner};
use csdfc_tests::crates::{run, write_with_harness};
use csdfc_tests::{application, plan};

use super::{Emitted, check_crate, emitted, inputs, model, values_of};

/// The application with other weights in the layers of these names, of which an empty one means all.
fn retrained(application: &Application, layers: &[&str], by: u64) -> Application {
    let mut retrained = application.clone();
    let mut changed = 0;
    for layer in retrained.cnns.iter_mut().flat_map(|cnn| &mut cnn.network.layers) {
        if !layers.iter().any(|name| name.is_empty() || layer.name == *name) {
            continue;
        }
        for parameter in &mut layer.parameters {
            let WeightSource::Seeded { seed, .. } = &mut parameter.source else { continue };
            *seed += by;
            changed += 1;
        }
    }
    assert!(changed > 0, "{layers:?}");
    retrained
}

fn update(application: &Application, plan: &Plan, number: u64) -> Vec<u8> {
    csdfc_emit::emit_update(plan, &values_of(application), number).expect("an update")
}

/// The hash of a plan, as an update and the crate state it.
fn plan_hash(application: &Application, plan: &Plan) -> u64 {
    let update = update(application, plan, 1);
    let hash = u64::from_le_bytes(update[8..16].try_into().expect("eight bytes"));
    let line = format!("pub const PLAN_HASH: u64 = 0x{hash:016x};");
    let has = |files: &[(std::path::PathBuf, Vec<u8>)], root: &str| {
        let (_, text) = files.iter().find(|(path, _)| path.to_str() == Some(root)).expect("a root");
        String::from_utf8_lossy(text).contains(&line)
    };
    assert!(has(&emitted(application, plan), "src/lib.rs"), "{line}");
    // A module of a build script takes the updates of the command.
    let options = ModuleOptions { path: "net", std: false };
    let module = csdfc_emit::emit_module(plan, &values_of(application), &options).expect("a module");
    assert!(has(&module, "src/mod.rs"), "{line}");
    hash
}

#[test]
fn plans_whose_weights_are_interchangeable() {
    let hash = |application: &Application| plan_hash(application, &plan(application));
    let lenet = model("lenet5", "none");
    let expected = hash(&lenet);
    assert_eq!(hash(&retrained(&lenet, &[""], 1)), expected);
    // Another name of the application and its model, and another version of csdfc with the same code.
    let mut renamed = plan(&lenet);
    renamed.csdfc = "9.9.9".into();
    renamed.application = "retrained".into();
    renamed.cnns[0].model.path = "retrained.onnx".into();
    assert_eq!(plan_hash(&lenet, &renamed), expected);
    // Other networks, and other plans of the same one.
    let mut hashes = vec![expected];
    for application in [
        model("lenet5", "all"),
        model("paper_pair", "none"),
        application("(cnns: [(model: \"builtin:lenet5\", precision: half)], rows: none)"),
        application("(cnns: [(model: \"builtin:resnet8\", precision: mixed)], rows: none)"),
        application("(cnns: [(model: \"builtin:lenet5\")], rows: none, threads: 2)"),
    ] {
        hashes.push(hash(&application));
        assert_eq!(hash(&retrained(&application, &[""], 1)), hashes[hashes.len() - 1]);
    }
    // What frames read from a store has its checksums in the code.
    let streamed = application(
        "(cnns: [(model: \"builtin:lenet5\")], rows: none, weights: streamed, resident: [\"C1\", \"C3\"])",
    );
    hashes.push(hash(&streamed));
    assert_eq!(hash(&retrained(&streamed, &["C1", "C3"], 1)), hashes[hashes.len() - 1]);
    hashes.push(hash(&retrained(&streamed, &["F6"], 1)));
    // Scales of integers are in the code.
    let mut integers = super::integers::application(csdfc_input::app::resolve::RowsChoice::All);
    hashes.push(hash(&integers));
    for layer in &mut integers.cnns[0].network.layers {
        layer.quantization.iter_mut().for_each(|quantization| quantization.scale *= 2.0);
    }
    hashes.push(hash(&integers));
    let count = hashes.len();
    hashes.sort_unstable();
    hashes.dedup();
    assert_eq!(hashes.len(), count);
}

/// Runs with the weights of updates in two slots, cuts the power while one is written, and damages one.
const SLOTS: &str = "use emitted::update::{HEADER_BYTES, Update, UpdateError, newest, oldest};
use emitted::{Arena, Inputs, Model, Outputs, WEIGHT_BYTES};

#[repr(align(64))]
struct Slot([u8; HEADER_BYTES + WEIGHT_BYTES + 64]);

fn slot(content: &[u8]) -> Box<Slot> {
    let mut slot = Box::new(Slot([0xff; HEADER_BYTES + WEIGHT_BYTES + 64]));
    slot.0[..content.len()].copy_from_slice(content);
    slot
}

fn number(slots: &[&[u8]]) -> Option<(usize, u64)> {
    newest(slots).map(|(slot, update)| (slot, update.number()))
}

/// A frame with the weights of the newest update, or without one with those of the crate.
fn frame(slots: &[&[u8]]) -> Vec<u32> {
    let mut arena = Box::new(Arena::new());
    let mut model = match newest(slots) {
        Some((_, update)) => Model::with_update(&mut arena, update),
        None => Model::new(&mut arena),
    };
    let input = std::array::from_fn(|i| (i * 7919 % 1013) as f32 / 507.0 - 1.0);
    let mut made = [0.0; OUTPUT];
    model.infer(Inputs { INPUT_NAME: &input }, Outputs { OUTPUT_NAME: &mut made });
    made.map(f32::to_bits).into()
}

fn main() {
    let file = |name: &str| std::fs::read(std::path::Path::new(\"..\").join(name)).unwrap();
    let [first, second, other] = [\"first\", \"second\", \"other\"].map(file);
    let empty = slot(&[]);
    let mut one = slot(&first);
    let two = slot(&second);
    for slots in [[&empty.0[..], &empty.0], [&one.0, &empty.0], [&one.0, &two.0], [&two.0, &one.0]] {
        println!(\"{:?}\", frame(&slots));
    }
    assert_eq!(number(&[&one.0, &two.0]), Some((1, 2)));
    assert_eq!(number(&[&one.0, &one.0]), Some((0, 1)));
    let both = [&one.0[..], &two.0, &empty.0];
    for (a, b, expected) in [(2, 2, 0), (0, 2, 1), (2, 0, 0), (0, 1, 0), (1, 0, 1), (0, 0, 1)] {
        assert_eq!(oldest(&[both[a], both[b]]), expected, \"{a} {b}\");
    }

    // What is no update for this crate.
    let read = |bytes: &[u8]| Update::read(bytes).map(|update| update.number());
    let made = |plan: u64, length: u64| {
        let mut update = first.clone();
        update[8..16].copy_from_slice(&plan.to_le_bytes());
        update[24..32].copy_from_slice(&length.to_le_bytes());
        let hash = fnv(&update[..56]);
        update[56..64].copy_from_slice(&hash.to_le_bytes());
        slot(&update)
    };
    assert_eq!(read(&made(emitted::PLAN_HASH, WEIGHT_BYTES as u64).0), Ok(1));
    assert_eq!(read(&made(emitted::PLAN_HASH ^ 1, WEIGHT_BYTES as u64).0), Err(UpdateError::Plan));
    assert_eq!(read(&made(emitted::PLAN_HASH, WEIGHT_BYTES as u64 - 4).0), Err(UpdateError::Length));
    assert_eq!(read(&slot(&other[..HEADER_BYTES]).0), Err(UpdateError::Plan));
    assert!(UpdateError::Plan.to_string().contains(\"needs a new crate\"));
    assert_eq!(read(&empty.0), Err(UpdateError::Magic));
    assert_eq!(read(&[0; 4096]), Err(UpdateError::Magic));
    assert_eq!(read(&two.0[..HEADER_BYTES + WEIGHT_BYTES - 1]), Err(UpdateError::Length));
    let mut unaligned = slot(&[]);
    for by in 1..8 {
        unaligned.0[by..by + first.len()].copy_from_slice(&first);
        let expected = if by % 4 == 0 { Ok(1) } else { Err(UpdateError::Alignment) };
        assert_eq!(read(&unaligned.0[by..]), expected, \"{by}\");
    }

    // Every byte of the header is damaged, and every 61st of the weights.
    let mut damaged = slot(&second);
    let bytes: Vec<usize> = (0..HEADER_BYTES).chain((HEADER_BYTES..second.len()).step_by(61)).collect();
    for &at in &bytes {
        for bits in [1, 0x80, 0xff] {
            damaged.0[at] ^= bits;
            assert_eq!(number(&[&one.0, &damaged.0]), Some((0, 1)), \"{at}\");
            damaged.0[at] ^= bits;
        }
    }
    println!(\"{} damaged\", 3 * bytes.len());

    // The power is cut while the slot of update 1 gets update 3: while it is erased, while the weights are written, and
    // while the header is.
    let third = [&second[..16], &3_u64.to_le_bytes(), &second[24..]].concat();
    let hash = fnv(&third[..56]);
    let third = [&third[..56], &hash.to_le_bytes(), &third[64..]].concat();
    assert_eq!(oldest(&[&one.0, &two.0]), 0);
    let weights: Vec<usize> = (HEADER_BYTES..third.len()).collect();
    let steps = [
        (0..third.len()).map(|at| (at, 0xff)).collect::<Vec<_>>(),
        weights.iter().map(|&at| (at, third[at])).collect(),
        (0..HEADER_BYTES).map(|at| (at, third[at])).collect(),
    ];
    let (mut cuts, mut written) = (0, 0);
    for (step, bytes) in steps.iter().enumerate() {
        for (done, &(at, byte)) in bytes.iter().enumerate() {
            one.0[at] = byte;
            if step == 2 || done < 64 || done % (third.len() / 200) == 0 || done + 1 == bytes.len() {
                let is_whole = one.0[..third.len()] == third;
                let expected = if is_whole { (0, 3) } else { (1, 2) };
                assert_eq!(number(&[&one.0, &two.0]), Some(expected), \"{step}: {done}\");
                assert_eq!(oldest(&[&one.0, &two.0]), 1 - expected.0, \"{step}: {done}\");
                assert_eq!(is_whole, step == 2 && done + 1 == HEADER_BYTES, \"{step}: {done}\");
                cuts += 1;
                written += usize::from(is_whole);
            }
        }
    }
    assert_eq!(written, 1);
    println!(\"{cuts} cuts\");
    println!(\"{:?}\", frame(&[&one.0, &two.0]));
}

/// The hash of headers, as their definition has it.
fn fnv(bytes: &[u8]) -> u64 {
    let words = bytes.chunks(8).map(|word| u64::from_le_bytes(word.try_into().unwrap()));
    words.fold(0xcbf2_9ce4_8422_2325, |hash, word| (hash ^ word).wrapping_mul(0x0000_0100_0000_01b3))
}
";

/// The bits of a frame's first output, as a program prints them.
fn printed(application: &Application, plan: &Plan) -> String {
    let values = values_of(application);
    let outputs =
        Runner::poisoned(plan, &values).expect("a runner").infer(0, &inputs(plan, 0)).expect("a frame");
    let Data::F32(scores) = &outputs[0].data else { panic!("floats") };
    format!("{:?}", scores.iter().map(|score| score.to_bits()).collect::<Vec<u32>>())
}

#[test]
fn two_slots() {
    let embedded = model("lenet5", "none");
    let [first, second] = [1, 2].map(|by| retrained(&embedded, &[""], by));
    let [of_embedded, of_first, of_second] = [&embedded, &first, &second].map(plan);
    let cnn = &of_embedded.cnns[0];
    let elements = cnn.layers.iter().find(|layer| layer.output == cnn.outputs[0].tensor).expect("a layer");
    let harness = SLOTS
        .replace("OUTPUT_NAME", &cnn.outputs[0].name)
        .replace("OUTPUT", &elements.output_shape.elements().to_string())
        .replace("INPUT_NAME", &cnn.inputs[0]);
    let folder = tempfile::tempdir().expect("a folder");
    write_with_harness(folder.path(), &embedded, &of_embedded, &harness);
    let other = model("paper_pair", "none");
    for (name, update) in [
        ("first", update(&first, &of_first, 1)),
        ("second", update(&second, &of_second, 2)),
        ("other", update(&other, &plan(&other), 9)),
    ] {
        std::fs::write(folder.path().join(name), update).expect("an update");
    }
    // At this level, hashes take a tenth of the time.
    let optimised = [("CARGO_PROFILE_DEV_OPT_LEVEL", "1")];
    let harness = folder.path().join("harness");
    let said = run(&harness, env!("CARGO"), &["run", "--quiet", "--offline"], &optimised);
    let lines: Vec<&str> = said.lines().collect();
    let [a, b, c] =
        [(&embedded, &of_embedded), (&first, &of_first), (&second, &of_second)].map(|(a, p)| printed(a, p));
    assert!(a != b && b != c && c != a);
    assert_eq!(lines[..4], [&a, &b, &c, &c]);
    println!("{}, {}", lines[4], lines[5]);
    assert_eq!(lines[6..], [&c]);
    // The crate of the retrained network makes the same.
    check_crate(&Emitted::of(&second, of_second));
}
