//! Emitted crates: they build with only the Rust compiler, and their outputs have the bytes of `run`.

#![allow(clippy::expect_used, clippy::panic, reason = "a panic is how a test fails")]
#![allow(clippy::print_stdout, reason = "what a test skipped, or measured")]

mod arm;
mod batch;
mod build;
mod capi;
mod footprint;
mod images;
mod in_turn;
mod integers;
mod joint;
pub mod kernels;
mod profile;
mod regions;
mod state;
mod stream;
mod streamed;
mod together;
mod trace;
mod update;

use std::borrow::Cow;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use csdfc_command::npy;
use csdfc_emit::Options;
use csdfc_input::app::resolve::{Application, RowsChoice};
use csdfc_network::{Layer, Network, NetworkOutput, Operand};
use csdfc_plan::operator::{ElementWise, Function, Input, InputElement, Operator};
use csdfc_plan::plan::{Output, Plan};
use csdfc_plan::shape::Shape;
use csdfc_runtime::ParameterError;
use csdfc_runtime::file_name::file_name;
use csdfc_runtime::run::{Data, Runner, Value, input_dims};
use csdfc_tests::{app, application, plan, skipped};

/// Frames of each run: enough for rings that run on, and for both halves of double buffers.
const FRAMES: usize = 3;

/// The values of parameters: CNN, layer, parameter.
fn values_of<'a>(
    application: &'a Application,
) -> impl Fn(usize, usize, usize) -> Result<Cow<'a, [f32]>, ParameterError> + 'a {
    move |cnn, layer, parameter| application.cnns[cnn].network.parameter(layer, parameter)
}

/// The files of the crate of a plan, the same each time.
fn emitted(application: &Application, plan: &Plan) -> Vec<(PathBuf, Vec<u8>)> {
    emitted_with(application, plan, false)
}

/// The same files. If `image_files` is true, the program takes files of images.
fn emitted_with(application: &Application, plan: &Plan, image_files: bool) -> Vec<(PathBuf, Vec<u8>)> {
    let values = values_of(application);
    let options = Options { crate_name: Some("emitted".into()), image_files };
    let emit = || csdfc_emit::emit(plan, &values, &options).expect("a crate");
    let files = emit();
    assert_eq!(files, emit(), "emitted twice");
    files
}

/// Inputs of a CNN that differ from frame to frame and from element to element.
fn inputs(plan: &Plan, cnn: usize) -> Vec<Value> {
    let cnn = &plan.cnns[cnn];
    let input = |name: &String| {
        let layer = cnn.layers.iter().find(|layer| layer.name == *name).expect("an input");
        let Operator::Input(input) = &layer.operator else { panic!("{name} is no input") };
        let dims = input_dims(input, &layer.output_shape);
        let elements = dims.iter().product();
        let data = match input.element {
            InputElement::F32 => {
                Data::F32((0..elements).map(|i| (i * 7919 % 1013) as f32 / 507.0 - 1.0).collect())
            }
            InputElement::U8 => Data::U8((0..elements).map(|i| (i * 7919 % 251) as u8).collect()),
            InputElement::I8 => Data::I8((0..elements).map(|i| (i * 7919 % 251) as i8).collect()),
        };
        Value { dims, data }
    };
    cnn.inputs.iter().map(input).collect()
}

/// Calls Cargo in the folder of a crate, without optimisation: the kernels' bytes do not depend on it, and it builds faster.
fn cargo(folder: &Path, arguments: &[&str]) {
    cargo_at("0", folder, arguments);
}

/// The same at a level of optimisation.
fn cargo_at(level: &str, folder: &Path, arguments: &[&str]) {
    let output = Command::new(env!("CARGO"))
        .args(arguments)
        .current_dir(folder)
        .env("CARGO_PROFILE_DEV_OPT_LEVEL", level)
        .env("CARGO_PROFILE_DEV_DEBUG", "false")
        .env("CARGO_INCREMENTAL", "0")
        .env("CARGO_TARGET_DIR", folder.join("target"))
        .env_remove("RUSTFLAGS")
        .output()
        .expect("cargo");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && !text.contains("warning"), "{arguments:?}:\n{text}");
}

/// An application and its crate in a folder of its own.
struct Emitted<'a> {
    application: &'a Application,
    plan: Plan,
    folder: tempfile::TempDir,
}

impl<'a> Emitted<'a> {
    fn new(application: &'a Application) -> Self {
        Emitted::of(application, plan(application))
    }

    /// The crate of this plan of the application.
    fn of(application: &'a Application, plan: Plan) -> Self {
        let files = emitted(application, &plan);
        Emitted::written(application, plan, &files)
    }

    /// The crate of an application's plan whose program takes files of images.
    fn with_image_files(application: &'a Application) -> Self {
        let plan = plan(application);
        let files = emitted_with(application, &plan, true);
        Emitted::written(application, plan, &files)
    }

    fn written(application: &'a Application, plan: Plan, files: &[(PathBuf, Vec<u8>)]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        csdfc_command::write_crate(folder.path(), files).expect("files");
        Emitted { application, plan, folder }
    }

    fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The runner's outputs of each CNN after a few frames.
    fn expected(&self) -> Vec<Vec<Value>> {
        let values = values_of(self.application);
        let mut runner = Runner::poisoned(&self.plan, &values).expect("a runner");
        let mut of_cnn = |c| {
            let inputs = inputs(&self.plan, c);
            let frame = |_| runner.infer(c, &inputs).expect("a frame");
            (0..FRAMES).map(frame).last().expect("a frame")
        };
        (0..self.plan.cnns.len()).map(&mut of_cnn).collect()
    }

    /// The outputs of a CNN after the same number of frames, by a program that is called with the arguments that it
    /// needs.
    fn run(&self, c: usize, mut program: Command) -> Vec<Value> {
        if self.plan.cnns.len() > 1 {
            program.arg(&self.plan.cnns[c].name);
        }
        self.run_some(&[c], program).remove(0)
    }

    /// The outputs of these CNNs after the same number of frames. Nobody reads the program's standard output.
    fn run_some(&self, cnns: &[usize], mut program: Command) -> Vec<Vec<Value>> {
        for &c in cnns {
            for (i, input) in inputs(&self.plan, c).iter().enumerate() {
                let file = self.folder().join(format!("{c}-{i}.npy"));
                npy::write(&file, input).expect("an input");
                program.arg(file);
            }
        }
        let outputs = self.folder().join("outputs");
        let _ = std::fs::remove_dir_all(&outputs);
        program.args(["--frames", &FRAMES.to_string(), "--output"]).arg(&outputs);
        // Weights that are streamed are in the file `store.bin` there.
        program.current_dir(self.folder());
        let mut child = program.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program");
        drop(child.stdout.take());
        let ran = child.wait_with_output().expect("an end");
        let said = String::from_utf8_lossy(&ran.stderr);
        assert!(ran.status.success() && said.is_empty(), "{cnns:?}: {said}");
        let of_cnn = |&c: &usize| {
            let cnn = &self.plan.cnns[c];
            let several = self.plan.cnns.len() > 1;
            let folder = if several { outputs.join(file_name(&cnn.name)) } else { outputs.clone() };
            let read = |output: &Output| npy::read(&folder.join(file_name(&output.name) + ".npy"));
            cnn.outputs.iter().map(|output| read(output).expect("an output")).collect()
        };
        cnns.iter().map(of_cnn).collect()
    }
}

/// Emits, builds and runs an application; the last frame of each CNN must have the bytes of the runner.
fn check(application: &Application) {
    check_crate(&Emitted::new(application));
}

/// As [`check`], for an emitted crate: each CNN alone, and all of them. The example on its front page runs, too.
fn check_crate(emitted: &Emitted<'_>) {
    let page = std::fs::read_to_string(emitted.folder().join("README.md")).expect("a page");
    let (_, example) = page.split_once("```rust\n").expect("an example");
    let (example, _) = example.split_once("```\n").expect("its end");
    std::fs::create_dir_all(emitted.folder().join("examples")).expect("a folder");
    std::fs::write(emitted.folder().join("examples/front.rs"), format!("fn main() {{\n{example}}}\n"))
        .expect("the example");
    cargo(emitted.folder(), &["build", "--offline", "--bins", "--examples"]);
    let mut front = Command::new(emitted.folder().join("target/debug/examples/front"));
    assert!(front.current_dir(emitted.folder()).status().expect("the example").success(), "{example}");
    let program = || Command::new(emitted.folder().join("target/debug/emitted"));
    let every: Vec<usize> = (0..emitted.plan.cnns.len()).collect();
    let all = emitted.run_some(&every, program());
    let expected = emitted.expected();
    for (c, cnn) in emitted.plan.cnns.iter().enumerate() {
        let made = emitted.run(c, program());
        assert_eq!(format!("{made:?}"), format!("{:?}", all[c]), "{} alone, and with all", cnn.name);
        for ((output, made), expected) in cnn.outputs.iter().zip(&made).zip(&expected[c]) {
            assert_eq!(made.dims, expected.dims, "{}", output.name);
            let same = match (&made.data, &expected.data) {
                (Data::F32(made), Data::F32(expected)) => {
                    made.iter().map(|x| x.to_bits()).eq(expected.iter().map(|x| x.to_bits()))
                }
                (made, expected) => made == expected,
            };
            assert!(same, "{} of {}", output.name, cnn.name);
        }
    }
}

fn model(name: &str, rows: &str) -> Application {
    application(&format!("(cnns: [(model: \"builtin:{name}\")], rows: {rows})"))
}

#[test]
fn one_model() {
    let application = model("lenet5", "none");
    let emitted = Emitted::new(&application);
    check_crate(&emitted);
    let mut program = Command::new(emitted.folder().join("target/debug/emitted"));
    let ran = program.args(["--trace", "t.json"]).output().expect("the program");
    let said = String::from_utf8_lossy(&ran.stderr);
    assert!(!ran.status.success() && said.contains("--features trace"), "{said}");
    // A file is taken by what its header says, not by its number of bytes.
    let file = emitted.folder().join("other.npy");
    let refusal = |bytes: &[u8]| {
        std::fs::write(&file, bytes).expect("a file");
        let mut program = Command::new(emitted.folder().join("target/debug/emitted"));
        let ran = program.arg(&file).output().expect("the program");
        assert!(!ran.status.success());
        String::from_utf8_lossy(&ran.stderr).into_owned()
    };
    let mut value = inputs(&emitted.plan, 0).remove(0);
    let header = |value: &Value, from: &str, to: &str| {
        let mut bytes = npy::bytes(value);
        let text = String::from_utf8_lossy(&bytes[10..128]).replace(from, to);
        bytes[10..128].copy_from_slice(text.as_bytes());
        bytes
    };
    let said = refusal(&header(&value, "'fortran_order': False", "'fortran_order': True "));
    assert!(said.contains("it is in Fortran order"), "{said}");
    let said = refusal(&header(&value, "<f4", "<i4"));
    assert!(said.contains("its elements are of type <i4, not <f4"), "{said}");
    value.dims = vec![1, 32, 32, 1];
    let said = refusal(&npy::bytes(&value));
    assert!(said.contains("its dimensions are [1, 32, 32, 1], not [1, 1, 32, 32]"), "{said}");
    let mut program = Command::new(emitted.folder().join("target/debug/emitted"));
    let ran = program.arg("photo.png").output().expect("the program");
    let said = String::from_utf8_lossy(&ran.stderr);
    assert!(!ran.status.success() && said.contains("photo.png: the input takes no image file"), "{said}");
}

/// Raw files: frames by rows, from a file or standard input to a file or standard output.
#[test]
fn raw_files() {
    let camera = |layout: &str| {
        format!(
            "inputs: {{\"l1\": (type: u8, layout: {layout}, order: BGR, mean: [1, 2, 3.5], scale: [0.1, 0.2, 0.3])}}"
        )
    };
    let pair =
        |rows: &str, more: &str| format!("(cnns: [(model: \"builtin:paper_pair\", {more})], rows: {rows})");
    let stages = "partitions: [(name: \"a\", upto: \"stack2_conv1\"), (name: \"b\")]";
    for text in [
        pair("all", &camera("HWC")),
        pair("none", &camera("CHW")),
        pair("none", ""),
        format!("(cnns: [(model: \"builtin:resnet8\", {stages})], parallel: [[\"a\", \"b\"]])"),
    ] {
        let application = application(&text);
        let emitted = Emitted::new(&application);
        cargo(emitted.folder(), &["build", "--offline"]);
        let frame = capi::in_rows(&inputs(&emitted.plan, 0)[0]);
        let expected = capi::in_rows(&emitted.expected()[0][0]);
        let program = |arguments: &[&str], given: &[u8]| {
            let mut program = Command::new(emitted.folder().join("target/debug/emitted"));
            program.args(arguments).current_dir(emitted.folder());
            program.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
            let mut child = program.spawn().expect("the program");
            let mut stdin = child.stdin.take().expect("its input");
            std::thread::scope(|scope| {
                // A program that ends early takes no more.
                scope.spawn(move || stdin.write_all(given));
                child.wait_with_output().expect("an end")
            })
        };
        let said = |ended: &std::process::Output| String::from_utf8_lossy(&ended.stderr).into_owned();
        let ended = program(&["-", "--output", "-"], &frame.repeat(3));
        assert!(ended.status.success(), "{text}: {}", said(&ended));
        assert!(ended.stdout == expected.repeat(3), "{text}: {} bytes", ended.stdout.len());
        assert!(said(&ended).contains("frames: 3"), "{}", said(&ended));
        // From a file to a file, some of the frames, by names.
        std::fs::write(emitted.folder().join("frames"), frame.repeat(3)).expect("frames");
        let cnn = &emitted.plan.cnns[0];
        let (input, output) = (format!("{}=frames", cnn.inputs[0]), format!("{}=made", cnn.outputs[0].name));
        let ended = program(&["--input", &input, "--output", &output, "--bytes", "--frames", "2"], &[]);
        assert!(ended.status.success(), "{text}: {}", said(&ended));
        let made = std::fs::read(emitted.folder().join("made")).expect("outputs");
        let floats = expected.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes));
        let bytes: Vec<u8> = floats.map(|x| (x * 255.0).round().clamp(0.0, 255.0) as u8).collect();
        assert!(made == bytes.repeat(2), "{text}: {} bytes", made.len());
        // A frame that is cut short is an error.
        let cut = [&frame[..], &frame[..frame.len() - 5]].concat();
        let ended = program(&["-", "--output", "-"], &cut);
        assert!(!ended.status.success() && said(&ended).contains("frame 2: 5 of "), "{}", said(&ended));
        let ended = program(&["-"], &[]);
        assert!(said(&ended).contains("standard input: it holds no frame"), "{}", said(&ended));
        let ended = program(&["--input", "other=frames"], &[]);
        assert!(said(&ended).contains("there is no `other`; the names are "), "{}", said(&ended));
        let ended = program(&["frames", "--bytes"], &[]);
        assert!(said(&ended).contains("`--bytes` needs a raw output"), "{}", said(&ended));
        let help = program(&["--help"], &[]);
        let text = String::from_utf8_lossy(&help.stdout).into_owned();
        assert!(help.status.success() && text.contains("--output -") && said(&help).is_empty(), "{text}");
    }
}

/// Two outputs that are one tensor: the caller gets it twice.
#[test]
fn a_tensor_that_is_two_outputs() {
    let mut application = model("lenet5", "none");
    let outputs = &mut application.cnns[0].network.outputs;
    let again = NetworkOutput { name: "again".into(), ..outputs[0].clone() };
    outputs.push(again);
    check(&application);
}

#[test]
fn by_rows() {
    check(&model("resnet8", "all"));
}

#[test]
fn of_half_precision() {
    check(&application("(cnns: [(model: \"builtin:mobilenet_v1_0.25\", precision: half)], rows: all)"));
    // Stages that pass on rings of 16-bit floats, with two workers each.
    let stages = "partitions: [(name: \"a\", upto: \"stack2_conv1\"), (name: \"b\")]";
    check(&application(&format!(
        "(cnns: [(model: \"builtin:resnet8\", precision: half, {stages})], parallel: [[\"a\", \"b\"]], threads: 2)"
    )));
}

#[test]
fn of_mixed_precision() {
    check(&application("(cnns: [(model: \"builtin:mobilenet_v1_0.25\", precision: mixed)], rows: all)"));
    // Some layers of other precisions, and what has been calculated is handed on by two workers each.
    let cnn = "precision: mixed, precisions: {\"stack1_conv1\": half, \"stack2_conv2\": fp32}";
    let stages = "partitions: [(name: \"a\", upto: \"stack2_conv1\"), (name: \"b\")]";
    check(&application(&format!(
        "(cnns: [(model: \"builtin:resnet8\", {cnn}, {stages})], parallel: [[\"a\", \"b\"]], threads: 2)"
    )));
}

#[test]
fn the_papers_application() {
    check(&papers_application());
}

#[test]
fn cnns_at_the_same_time() {
    let cnns = "(model: \"builtin:lenet5\"), (model: \"builtin:paper_pair\"), (model: \"builtin:resnet8\")";
    let parallel = "[[\"lenet5\", \"paper_pair\"], [\"resnet8\"]]";
    let application = application(&format!("(cnns: [{cnns}], parallel: {parallel}, rows: all)"));
    let emitted = Emitted::new(&application);
    check_crate(&emitted);
    let readme = std::fs::read_to_string(emitted.folder().join("README.md")).expect("its page");
    assert!(readme.contains("all of them: lenet5 and paper_pair at the same time, then resnet8"), "{readme}");
    assert!(readme.contains("`Arena::lenet5_and_paper_pair`"), "{readme}");
}

#[test]
fn camera_bytes() {
    for (rows, layout) in [("all", "HWC"), ("none", "CHW")] {
        let camera =
            format!("(type: u8, layout: {layout}, order: BGR, mean: [1, 2, 3.5], scale: [0.1, 0.2, 0.3])");
        let inputs = format!("inputs: {{\"l1\": {camera}}}");
        check(&application(&format!("(cnns: [(model: \"builtin:paper_pair\", {inputs})], rows: {rows})")));
    }
}

/// CNNs that take turns from frame to frame in one arena: each finds in it what the other has left.
#[test]
fn cnns_in_turn() {
    let cnns = "(model: \"builtin:lenet5\"), (model: \"builtin:resnet8\")";
    let application = application(&format!("(cnns: [{cnns}], rows: all)"));
    let emitted = Emitted::new(&application);
    cargo(emitted.folder(), &["build", "--offline"]);
    let expected = emitted.expected();
    for turns in ["lenet5,resnet8,lenet5", "resnet8,lenet5,resnet8,resnet8,lenet5"] {
        let mut program = Command::new(emitted.folder().join("target/debug/emitted"));
        program.args(["--turns", turns]);
        assert!(emitted.run_some(&[0, 1], program) == expected, "{turns}");
    }
    let mut program = Command::new(emitted.folder().join("target/debug/emitted"));
    let ran = program.args(["--turns", "lenet5,vgg16", "a", "b"]).output().expect("the program");
    let said = String::from_utf8_lossy(&ran.stderr);
    assert!(
        !ran.status.success() && said.contains("there is no CNN `vgg16`; the CNNs are lenet5, resnet8"),
        "{said}"
    );
    // A CNN by its name does not take turns.
    let mut program = Command::new(emitted.folder().join("target/debug/emitted"));
    let ran = program.args(["lenet5", "a", "b", "--turns", "lenet5,resnet8"]).output().expect("the program");
    let said = String::from_utf8_lossy(&ran.stderr);
    assert!(!ran.status.success() && said.contains("name a CNN and give its inputs"), "{said}");
}

fn papers_application() -> Application {
    app("adaptive_classifier.ron").resolve().expect("an application")
}

/// Checks that a tool of Cargo finds nothing in the crates. The tool need not be installed.
fn inspect(applications: &[Application], arguments: &[&str]) {
    for application in applications {
        inspect_crate(Emitted::new(application).folder(), arguments);
    }
}

/// The same of the crate in a folder.
fn inspect_crate(folder: &Path, arguments: &[&str]) {
    let has = Command::new("cargo").args(&arguments[..1]).arg("--version").output();
    if !has.is_ok_and(|output| output.status.success()) {
        skipped(&format!("emitted crates under cargo {}: it is not here", arguments[0]));
        return;
    }
    let mut command = Command::new("cargo");
    command.args(arguments).current_dir(folder).env_remove("RUSTFLAGS");
    let output = command.env("CARGO_TARGET_DIR", folder.join("target")).output().expect("cargo");
    let said = [output.stdout, output.stderr].concat();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&said));
}

/// A network whose tensors all are the caller's: its arena has no bytes.
fn without_buffers() -> Application {
    let mut network = Network::default();
    let shape = Shape::new([1, 3, 4, 5]);
    let layer = |name: &str, operator, inputs| Layer {
        name: name.into(),
        onnx_nodes: Vec::new(),
        operator,
        inputs,
        parameters: Vec::new(),
        output: name.into(),
        shape: shape.clone(),
        primitive: None,
        quantization: None,
    };
    let input = Operator::Input(Input { element: InputElement::F32, camera: None });
    let x = Operand { layer: network.add(layer("x", input, Vec::new())), shape: shape.clone() };
    let relu = Operator::ElementWise(ElementWise { function: Function::Relu });
    let y = Operand { layer: network.add(layer("y", relu, vec![x])), shape: shape.clone() };
    network.outputs.push(NetworkOutput::new("y", y));
    Application::of_network("relu", network, RowsChoice::None)
}

/// A stream of one row a hop.
fn listener() -> Application {
    application("(cnns: [(model: \"builtin:wake_word\", stream: ())])")
}

/// A stream of several rows a hop, row by row.
fn window() -> Application {
    application("(cnns: [(model: \"builtin:resnet8\", stream: (hop: 4, window: 32))], rows: all)")
}

#[test]
fn files_are_formatted() {
    let applications = [
        model("resnet8", "all"),
        model("resnet8", "none"),
        papers_application(),
        kernels::application(),
        streamed::streamed("resnet8", "rows: none"),
        listener(),
        window(),
        state::application(5),
        integers::application(RowsChoice::All),
    ];
    inspect(&applications, &["fmt", "--check"]);
}

#[test]
fn files_are_free_of_lint() {
    for (application, features) in [
        (kernels::application(), "std weights capi trace"),
        (papers_application(), "default"),
        (model("lenet5", "all"), ""),
        (without_buffers(), "default"),
        (
            application(
                "(cnns: [(model: \"builtin:resnet8\", precision: half)], parallel: [[\"resnet8\"]], threads: 2)",
            ),
            "default",
        ),
        (streamed::streamed("resnet8", "rows: none"), "std weights capi"),
        (streamed::streamed("resnet8", "rows: none"), ""),
        (listener(), ""),
        (window(), "std weights capi trace"),
        (state::application(5), "std weights capi"),
        (integers::application(RowsChoice::All), "std weights capi"),
    ] {
        let arguments = ["clippy", "--offline", "--no-default-features", "--features", features];
        inspect(&[application], &[&arguments[..], &["--", "-D", "warnings"]].concat());
    }
}
