//! Emitted crates whose weights are read from a store, and stores that fail.

use csdfc_input::app::resolve::{Application, RowsChoice, Streamed};
use csdfc_plan::plan::StorageModel;
use csdfc_tests::crates::{COUNTING, thread_sanitizer};
use csdfc_tests::{application, generate, random, rates, tiled};

use super::{Emitted, cargo, cargo_at, check, check_crate};

pub fn streamed(model: &str, more: &str) -> Application {
    application(&format!("(cnns: [(model: \"builtin:{model}\")], weights: streamed, {more})"))
}

#[test]
fn all_at_once_and_by_rows() {
    for (model, rows) in [("lenet5", "none"), ("resnet8", "none"), ("resnet8", "all"), ("paper_pair", "all")]
    {
        check(&streamed(model, &format!("rows: {rows}")));
    }
}

/// Weight tiles of 16-bit floats, and of integers for tensors of 16-bit floats. The last tile has fewer channels, and
/// its channels are made in the caller's memory.
#[test]
fn of_half_and_mixed_precision() {
    for precision in ["half", "mixed"] {
        let cnn = format!("(model: \"builtin:mobilenet_v1_0.25\", precision: {precision})");
        check(&application(&format!("(cnns: [{cnn}], weights: streamed, rows: none)")));
    }
}

/// Tiles of 8-bit integers, whose layers lie among others.
#[test]
fn of_integers() {
    let network = tiled::of_integers(&tiled::network(&mut random(1)));
    let application = generate::of_one(network, StorageModel::Tensors, RowsChoice::None);
    let application = Application { streamed: Some(Streamed::default()), ..application };
    let emitted = Emitted::new(&application);
    let is_tiled = |layer: &csdfc_plan::plan::Layer| {
        layer.primitive.contains("int8")
            && layer.streamed.as_ref().is_some_and(|streamed| streamed.filters.is_some())
    };
    assert!(emitted.plan.cnns[0].layers.iter().filter(|layer| is_tiled(layer)).count() > 1);
    check_crate(&emitted);
}

/// Each firing reads its tiles again, into a ring and into the caller's memory.
#[test]
fn read_again_at_each_firing() {
    let networks = [tiled::network(&mut random(2)), tiled::convolutions(&mut random(3))];
    for network in [networks[0].clone(), networks[1].clone(), tiled::of_integers(&networks[1])] {
        let application = generate::of_one(network, StorageModel::Tensors, RowsChoice::All);
        let application = tiled::read_again(&application);
        let emitted = Emitted::new(&application);
        let layers = || emitted.plan.cnns[0].layers.iter().filter(|layer| layer.times_read() > 1);
        assert!(layers().count() > 0, "{:?}", emitted.plan.cnns[0]);
        check_crate(&emitted);
    }
}

/// Some weights stay in memory. Two CNNs read the others from one store into the same bytes.
#[test]
fn some_of_the_weights() {
    let resident = "resident: [\"stack2_conv1\", \"F6\"]";
    check(&application(&format!(
        "(cnns: [(model: \"builtin:resnet8\"), (model: \"builtin:lenet5\")], weights: streamed, {resident}, threads: 2)"
    )));
    let at_once = "parallel: [[\"resnet8\", \"lenet5\"]]";
    check(&application(&format!(
        "(cnns: [(model: \"builtin:resnet8\"), (model: \"builtin:lenet5\")], weights: streamed, {at_once})"
    )));
}

/// A stage of a pipeline reads its weights while the other runs, or both do.
#[test]
fn stages_of_a_pipeline() {
    let pipeline = |resident: &str, more: &str| {
        let stages = "partitions: [(name: \"a\", upto: \"stack2_conv1\"), (name: \"b\")]";
        application(&format!(
            "(cnns: [(model: \"builtin:resnet8\", {stages})], parallel: [[\"a\", \"b\"]], weights: streamed, \
             resident: [{resident}], {more})"
        ))
    };
    let first = "\"conv\", \"stack1_conv1\", \"stack1_conv2\", \"stack2_conv1\"";
    check(&pipeline(first, ""));
    check(&tiled::read_again(&pipeline(first, "rows: {\"stack2_conv2\": 4}")));
    check(&pipeline("", ""));
    check(&tiled::read_again(&pipeline("", "rows: {\"stack1_conv1\": 8, \"stack2_conv2\": 4}")));
}

/// A test of a crate: its store fails at each of its reads in turn, in every way.
const FAULTS: &str = r#"
use std::sync::{Arc, Mutex};
use std::time::Duration;

use emitted::*;

#[derive(Clone, Copy, Debug, PartialEq)]
enum What { Fail, Short, Flip, Panic }

#[derive(Default)]
struct State {
    reads: usize,
    /// The reads by which a loader's thread is relieved.
    by_others: usize,
    fault: Option<(usize, What)>,
    /// Where the bytes of the faulty read begin.
    at: u64,
}

struct Faulty {
    bytes: Vec<u8>,
    state: Arc<Mutex<State>>,
    is_slow: bool,
    has_another: bool,
}

impl ReadAt for Faulty {
    fn read_at(&mut self, at: u64, block: &mut [u8]) -> Result<(), Fault> {
        let (number, due) = {
            let mut state = self.state.lock().unwrap();
            let number = state.reads;
            state.reads += 1;
            state.by_others += usize::from(std::thread::current().name() != Some("weights"));
            let due = state.fault.take_if(|(when, _)| *when == number).map(|(_, what)| what);
            if due.is_some() {
                state.at = at;
            }
            (number, due)
        };
        if self.is_slow {
            std::thread::sleep(Duration::from_micros(number as u64 * 7919 % 700));
        }
        let from = &self.bytes[at as usize..][..block.len()];
        match due {
            Some(What::Fail) => return Err(Fault::Read(5)),
            Some(What::Short) => {
                let half = block.len() / 2;
                block[..half].copy_from_slice(&from[..half]);
                return Err(Fault::Read(0));
            }
            Some(What::Panic) => panic!("the reader's own"),
            Some(What::Flip) => {
                block.copy_from_slice(from);
                block[number * 31 % from.len()] ^= 1 << (number % 8);
            }
            None => block.copy_from_slice(from),
        }
        Ok(())
    }

    fn another(&self) -> Option<Self> {
        let (bytes, state) = (self.bytes.clone(), self.state.clone());
        self.has_another.then_some(Faulty { bytes, state, is_slow: self.is_slow, has_another: false })
    }
}

fn frame<S: Store>(model: &mut Model<'_, S>) -> Result<[f32; 10], StoreError> {
    let input: Vec<f32> = (0..3072).map(|i| (i * 7919 % 1013) as f32 / 507.0 - 1.0).collect();
    let mut output = [f32::NAN; 10];
    model.infer(Inputs { input: input.first_chunk().unwrap() }, Outputs { output: &mut output })?;
    Ok(output)
}

fn store() -> Vec<u8> {
    std::fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/store.bin")).unwrap()
}

#[repr(align(64))]
struct Aligned([u8; STORE_BYTES as usize]);

/// The output of a frame with weights that are read in place.
fn expected() -> [f32; 10] {
    let mut bytes = Box::new(Aligned([0; STORE_BYTES as usize]));
    bytes.0.copy_from_slice(&store());
    let mut arena = Box::new(Arena::new());
    let mut model = Model::new(&mut arena, InPlace::new(&bytes.0).unwrap());
    let output = frame(&mut model).unwrap();
    assert_eq!(model.bytes_read(), 0);
    drop(model);
    bytes.0[77] ^= 1;
    assert_eq!(InPlace::new(&bytes.0).err(), Some(WeightsError::Hash));
    assert_eq!(InPlace::new(&bytes.0[4..]).err(), Some(WeightsError::Length));
    output
}

/// A frame that meets a fault ends with an error, and the next one is right again.
fn meet_faults<S: Store>(
    make: impl Fn(Faulty) -> S,
    kinds: &[What],
    is_slow: bool,
    has_another: bool,
) -> Arc<Mutex<State>> {
    let state = Arc::<Mutex<State>>::default();
    let mut arena = Box::new(Arena::new());
    let faulty = Faulty { bytes: store(), state: state.clone(), is_slow, has_another };
    let mut model = Model::new(&mut arena, make(faulty));
    let expected = expected();
    assert_eq!(frame(&mut model).unwrap(), expected);
    assert_eq!((model.bytes_read(), state.lock().unwrap().reads), (BYTES_READ, READS));
    for &what in kinds {
        for number in 0..READS {
            let before = state.lock().unwrap().reads;
            state.lock().unwrap().fault = Some((before + number, what));
            let error = frame(&mut model).unwrap_err();
            assert_eq!(error.fault == Fault::Checksum, what == What::Flip, "{what:?} at {number}: {error}");
            assert!(state.lock().unwrap().fault.is_none());
            assert_eq!(error.at, state.lock().unwrap().at, "{what:?} at {number}");
            let read = model.bytes_read();
            assert_eq!(frame(&mut model).unwrap(), expected, "{what:?} at {number}");
            assert_eq!(model.bytes_read() - read, BYTES_READ);
        }
    }
    drop(model);
    state
}

#[test]
fn blocking() {
    meet_faults(Blocking::new, &[What::Fail, What::Short, What::Flip], false, false);
}

/// A loader may be moved to other threads and shared, like a value that has only files and numbers.
#[test]
fn loaders_are_send_and_sync() {
    fn is<T: Send + Sync>() {}
    is::<Loader>();
}

const KINDS: [What; 4] = [What::Fail, What::Short, What::Flip, What::Panic];

fn loader(reader: Faulty) -> Loader {
    Loader::new(reader).unwrap()
}

#[test]
fn by_a_thread() {
    let state = meet_faults(loader, &KINDS, false, false);
    assert_eq!(state.lock().unwrap().by_others, 0);
}

#[test]
fn by_a_thread_that_is_slow() {
    meet_faults(loader, &[What::Flip], true, false);
}

/// Where it would wait, the model's thread reads as well.
#[test]
fn by_two_threads() {
    let state = meet_faults(loader, &KINDS, false, true);
    let state = state.lock().unwrap();
    assert!(0 < state.by_others && state.by_others < state.reads, "{} of {}", state.by_others, state.reads);
}

#[test]
fn by_two_threads_of_which_some_reads_are_slow() {
    meet_faults(loader, &[What::Flip], true, true);
}

/// A panic of the reader passes through the frame, and leaves the model as it was.
#[test]
fn panics_of_a_blocking_reader() {
    let state = Arc::<Mutex<State>>::default();
    let reader = Faulty { bytes: store(), state: state.clone(), is_slow: false, has_another: false };
    let mut arena = Box::new(Arena::new());
    let mut model = Model::new(&mut arena, Blocking::new(reader));
    state.lock().unwrap().fault = Some((READS / 2, What::Panic));
    let run = std::panic::AssertUnwindSafe(|| frame(&mut model));
    assert!(std::panic::catch_unwind(run).is_err());
    assert_eq!(frame(&mut model).unwrap(), expected());
}

/// Files that are no store of this model.
#[test]
fn other_files() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let error = Loader::open(&folder.join("none.bin")).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::NotFound);
    let mut bytes = store();
    bytes[1000] ^= 4;
    for (length, is_opened) in [(bytes.len(), true), (bytes.len() - 1, false), (0, false)] {
        let path = folder.join(format!("other-{length}.bin"));
        std::fs::write(&path, &bytes[..length]).unwrap();
        let loader = Loader::open(&path);
        assert_eq!(loader.is_ok(), is_opened);
        let Ok(loader) = loader else { continue };
        let mut arena = Box::new(Arena::new());
        let mut model = Model::new(&mut arena, loader);
        // The file loses its end while the model uses it.
        assert_eq!(frame(&mut model).unwrap_err().fault, Fault::Checksum);
        std::fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(500).unwrap();
        assert_eq!(frame(&mut model).unwrap_err().fault, Fault::Read(0));
        std::fs::write(&path, store()).unwrap();
        assert_eq!(frame(&mut model).unwrap(), expected());
    }
}
"#;

/// A test of a crate: after the first frame, no thread allocates anything.
const ALLOCATIONS: &str = r#"
use emitted::*;

struct Bytes(Vec<u8>);

impl ReadAt for Bytes {
    fn read_at(&mut self, at: u64, block: &mut [u8]) -> Result<(), Fault> {
        block.copy_from_slice(&self.0[at as usize..][..block.len()]);
        Ok(())
    }
}

fn allocations<S: Store>(store: S) -> usize {
    let mut arena = Box::new(Arena::new());
    let mut model = Model::new(&mut arena, store);
    let (input, mut output) = (Box::new([0.5; 3072]), [0.0; 10]);
    model.infer(Inputs { input: &input }, Outputs { output: &mut output }).unwrap();
    let before = counting::allocations();
    for _ in 0..3 {
        model.infer(Inputs { input: &input }, Outputs { output: &mut output }).unwrap();
    }
    counting::allocations() - before
}

fn main() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("store.bin");
    let bytes = std::fs::read(&path).unwrap();
    assert_eq!(allocations(Blocking::new(Bytes(bytes))), 0);
    assert_eq!(allocations(Loader::open(&path).unwrap()), 0);
}
"#;

/// The crate of a streamed model, with the tests of its faults.
fn with_faults(application: &Application) -> Emitted<'_> {
    let emitted = Emitted::new(application);
    let streamed = || {
        let layers = emitted.plan.cnns[0].layers.iter();
        layers.filter_map(|layer| Some((layer.times_read() as usize, layer.streamed.as_ref()?)))
    };
    let blocks: usize = streamed().map(|(_, streamed)| streamed.blocks.len()).sum();
    let reads: usize = streamed().map(|(times, streamed)| times * rates(&streamed.tiles).len()).sum();
    let bytes = emitted.plan.cnns[0].bytes_read.expect("a store");
    assert!(reads > blocks, "some block is used twice");
    let tests = emitted.folder().join("tests");
    std::fs::create_dir(&tests).expect("a folder");
    let text = format!("const READS: usize = {reads};\nconst BYTES_READ: u64 = {bytes};\n{FAULTS}");
    std::fs::write(tests.join("faults.rs"), text).expect("a test");
    emitted
}

/// Runs a test of a crate. It makes hundreds of frames, so optimisation is worth its time.
fn test(emitted: &Emitted<'_>, name: &str) {
    cargo_at("1", emitted.folder(), &["test", "--offline", "--test", name]);
}

#[test]
fn stores_that_fail() {
    let application = streamed("resnet8", "rows: none");
    let emitted = with_faults(&application);
    // A program of its own: the harness of tests has threads that allocate.
    let examples = emitted.folder().join("examples");
    std::fs::create_dir(&examples).expect("a folder");
    std::fs::write(examples.join("allocations.rs"), [ALLOCATIONS, COUNTING].concat()).expect("a program");
    test(&emitted, "faults");
    cargo(emitted.folder(), &["test", "--offline", "--doc"]);
    cargo(emitted.folder(), &["run", "--offline", "--example", "allocations"]);
}

/// The same for weights that some layers read again.
#[test]
fn stores_that_fail_while_weights_are_read_again() {
    let application =
        tiled::read_again(&streamed("resnet8", r#"rows: {"stack2_conv1": 8, "stack2_conv2": 4}"#));
    let emitted = with_faults(&application);
    assert!(emitted.plan.cnns[0].bytes_read > emitted.plan.store.as_ref().map(|store| store.bytes));
    test(&emitted, "faults");
}

/// A test of a crate whose two stages read their weights: each store fails at each of its reads in turn.
const STAGES: &str = r#"
use std::ops::Range;
use std::sync::{Arc, Mutex};

use emitted::*;

#[derive(Default)]
struct State {
    reads: usize,
    fails_at: Option<usize>,
}

struct Faulty {
    bytes: Vec<u8>,
    state: Arc<Mutex<State>>,
}

impl ReadAt for Faulty {
    fn read_at(&mut self, at: u64, block: &mut [u8]) -> Result<(), Fault> {
        let mut state = self.state.lock().unwrap();
        let number = state.reads;
        state.reads += 1;
        if state.fails_at.take_if(|at| *at == number).is_some() {
            return Err(Fault::Read(5));
        }
        drop(state);
        block.copy_from_slice(&self.bytes[at as usize..][..block.len()]);
        Ok(())
    }
}

const FRAMES: usize = 3;

struct Source {
    next: usize,
    input: [f32; 3072],
}

impl Source {
    fn at(frame: usize) -> Self {
        let element = |i: usize| ((frame * 31 + i) * 7919 % 1013) as f32 / 507.0 - 1.0;
        Source { next: frame + 1, input: std::array::from_fn(element) }
    }
}

impl InputRows for Source {
    fn input(&self) -> &[f32; 3072] {
        &self.input
    }
}

struct Frames(Source);

impl InputRows for Frames {
    fn input(&self) -> &[f32; 3072] {
        &self.0.input
    }
}

impl InputFrames for Frames {
    fn next_frame(&mut self) -> bool {
        self.0 = Source::at(self.0.next);
        self.0.next <= FRAMES + 1
    }
}

struct Made<'m> {
    current: [f32; 10],
    all: &'m mut Vec<[f32; 10]>,
}

impl OutputRows for Made<'_> {
    fn output(&mut self, y: Range<usize>) -> &mut [f32] {
        &mut self.current[y.start * 10..y.end * 10]
    }
}

impl OutputFrames for Made<'_> {
    fn end_frame(&mut self) {
        self.all.push(self.current);
    }
}

fn run<S: Store>(model: &mut Model<'_, S>) -> Result<Vec<[f32; 10]>, PipelineError> {
    let mut all = Vec::new();
    let made = Made { current: [f32::NAN; 10], all: &mut all };
    let frames = model.pipeline(Frames(Source::at(0)), made)?;
    assert_eq!(frames, FRAMES);
    Ok(all)
}

fn one<S: Store>(model: &mut Model<'_, S>, frame: usize) -> Result<[f32; 10], StoreError> {
    let mut output = [f32::NAN; 10];
    model.infer_rows(Source::at(frame), Outputs { output: &mut output })?;
    Ok(output)
}

#[test]
fn each_store_fails_at_each_read() {
    let bytes = std::fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/store.bin")).unwrap();
    let states = [Arc::<Mutex<State>>::default(), Arc::default()];
    let store = |state: &Arc<Mutex<State>>| {
        Loader::new(Faulty { bytes: bytes.clone(), state: state.clone() }).unwrap()
    };
    let mut arena = Box::new(Arena::new());
    let mut model = Model::new(&mut arena, [store(&states[0]), store(&states[1])]);
    let expected: Vec<[f32; 10]> = (1..=FRAMES).map(|frame| one(&mut model, frame).unwrap()).collect();
    assert_eq!(model.bytes_read(), FRAMES as u64 * BYTES_READ);
    assert_eq!(run(&mut model).unwrap(), expected);
    assert_eq!(model.bytes_read(), 2 * FRAMES as u64 * BYTES_READ);
    for (stage, state) in states.iter().enumerate() {
        let reads = |state: &Mutex<State>| state.lock().unwrap().reads;
        for number in 0..FRAMES * READS[stage] {
            state.lock().unwrap().fails_at = Some(reads(state) + number);
            let error = run(&mut model).unwrap_err();
            assert!(matches!(error, PipelineError::Stage { .. }), "stage {stage}, {number}: {error}");
            assert_eq!(run(&mut model).unwrap(), expected, "stage {stage}, {number}");
        }
        for number in 0..READS[stage] {
            state.lock().unwrap().fails_at = Some(reads(state) + number);
            assert!(one(&mut model, 2).is_err(), "stage {stage}, {number}");
            assert_eq!(one(&mut model, 2).unwrap(), expected[1], "stage {stage}, {number}");
        }
    }
}
"#;

/// Both stages of a pipeline read their weights, each from a store of its own. Whichever fails, the pipeline ends with an error,
/// and the next frames are right again.
#[test]
fn stores_of_stages_that_fail() {
    let application = application(
        "(cnns: [(model: \"builtin:resnet8\", partitions: [(name: \"a\", upto: \"stack2_conv1\"), (name: \"b\")])], \
         parallel: [[\"a\", \"b\"]], weights: streamed, rows: none)",
    );
    let emitted = Emitted::new(&application);
    let cnn = &emitted.plan.cnns[0];
    let reads = |partition: &str| -> usize {
        let streamed = cnn.layers.iter().filter(|layer| layer.partition == partition);
        streamed
            .filter_map(|layer| layer.streamed.as_ref())
            .map(|streamed| rates(&streamed.tiles).len())
            .sum()
    };
    let head = format!(
        "const READS: [usize; 2] = [{}, {}];\nconst BYTES_READ: u64 = {};\n",
        reads("a"),
        reads("b"),
        cnn.bytes_read.expect("a store")
    );
    let tests = emitted.folder().join("tests");
    std::fs::create_dir(&tests).expect("a folder");
    std::fs::write(tests.join("stages.rs"), head + STAGES).expect("a test");
    test(&emitted, "stages");
}

/// The same under ThreadSanitizer, the standard library built with it.
#[test]
#[ignore = "builds the standard library with a nightly toolchain"]
fn stores_that_fail_without_data_races() {
    let application = streamed("resnet8", "rows: none");
    let emitted = with_faults(&application);
    let Some(cargo) = thread_sanitizer(emitted.folder()) else { return };
    cargo(&["test", "--release", "--offline", "--test", "faults"]);
}
