//! What crates take on boards, as a linker says it, beside what the tables of `csdfc_emit::footprint` say. The tables are made
//! here, too:
//!
//!     cargo test --release --workspace --test plans -- --ignored measures_footprints
//!
//! With `TARGET=…` it measures, and compares, one target alone.
//!
//! A crate for each kernel is compiled for each target and linked with nothing but the functions that C calls. What the linker
//! kept is read symbol by symbol; a symbol that several kernels' crates have is a part that they share. The stack of a frame
//! is the longest path of calls, by the compiler's sizes of frames and the linker's relocations.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use csdfc_emit::Options;
use csdfc_emit::footprint::{KernelCalls, OF_FEATURE, footprints};
use csdfc_input::app::partition::Partition;
use csdfc_input::app::resolve::{Application, RowsChoice};
use csdfc_network::Network;
use csdfc_network::pass::integers;
use csdfc_plan::format::Quantization;
use csdfc_plan::operator::{Conv, Function, Gemm, Operator};
use csdfc_plan::plan::{Plan, StorageModel};
use csdfc_plan::shape::Shape;
use csdfc_tests::{generate, plan, skipped};
use object::{Object, ObjectSection, ObjectSymbol, RelocationTarget, SectionKind};
use rayon::prelude::*;

use super::kernels::{self, Group};
use super::values_of;
use csdfc_tests::quantized::quantized;

/// A target.
#[derive(Clone, Copy)]
struct Target {
    /// The compiler's name of it.
    name: &'static str,
    /// The processor for which it compiles, if that has the instructions of the feature `dsp`.
    with_dsp: Option<&'static str>,
    /// The module of the table that is measured for it. Others use this table, too.
    module: Option<&'static str>,
}

const TARGETS: [Target; 6] = [
    Target { name: "thumbv7em-none-eabihf", with_dsp: Some("cortex-m4"), module: Some("thumbv7em") },
    Target { name: "thumbv8m.main-none-eabihf", with_dsp: Some("cortex-m33"), module: None },
    Target { name: "thumbv6m-none-eabi", with_dsp: None, module: Some("thumbv6m") },
    Target { name: "riscv32imac-unknown-none-elf", with_dsp: None, module: Some("riscv32") },
    Target { name: "riscv32imc-unknown-none-elf", with_dsp: None, module: None },
    Target { name: "aarch64-unknown-none", with_dsp: None, module: Some("aarch64") },
];
/// Optimisation for speed, and for size.
const LEVELS: [(&str, &str); 2] = [("3", "FAST"), ("s", "SMALL")];
/// What the names of built-in networks begin with.
const BUILTIN: &str = "builtin:";
/// How far tables may be off, as a ratio: for trained networks of integers, and for built-in ones of floats.
const MOST: [f64; 2] = [1.1, 1.2];
/// Bytes of stack of a function of the compiler's own library, of which it does not say them.
const LIBRARY_FRAME: u64 = 48;

/// What the linker kept of a crate.
#[derive(Debug, Clone, Default)]
struct Linked {
    /// Bytes of code and constants.
    bytes: u64,
    /// Bytes of stack of a frame.
    stack: u64,
    /// Bytes of each symbol that is not of the model itself.
    symbols: BTreeMap<String, u64>,
}

/// Compiles the crate of a plan for a target, and links it.
/// If the kernel `is_alone`, the code is that for any of its parameters.
fn linked(application: &Application, plan: &Plan, target: Target, level: &str, is_alone: bool) -> Linked {
    let values = values_of(application);
    let options = Options { crate_name: Some("emitted".into()), ..Options::default() };
    let files = csdfc_emit::emit(plan, &values, &options).expect("a crate");
    let folder = tempfile::tempdir().expect("a folder");
    csdfc_command::write_crate(folder.path(), &files).expect("files");
    if is_alone {
        let model = folder.path().join("src/model.rs");
        let text = std::fs::read_to_string(&model).expect("a model");
        std::fs::write(&model, of_any_parameters(&text)).expect("a model");
    }
    let (library, program) = (folder.path().join("libemitted.a"), folder.path().join("emitted"));
    let mut rustc = Command::new("rustc");
    rustc.arg(folder.path().join("src/lib.rs")).arg("-o").arg(&library);
    rustc.args([
        "--crate-name",
        "emitted",
        "--edition",
        "2024",
        "--crate-type",
        "staticlib",
        "--target",
        target.name,
    ]);
    rustc.args(["-C", "codegen-units=16", "-C", "symbol-mangling-version=v0", "-Z", "emit-stack-sizes"]);
    rustc.args([
        "-C",
        &format!("opt-level={level}"),
        "--cfg",
        "feature=\"capi\"",
        "--cfg",
        "feature=\"panic-handler\"",
    ]);
    if let Some(processor) = target.with_dsp {
        rustc.args(["--cfg", "feature=\"dsp\"", "-C", &format!("target-cpu={processor}")]);
    }
    // Only so does it say what a function takes of the stack.
    rustc.env("RUSTC_BOOTSTRAP", "1").current_dir(folder.path());
    succeed(rustc);
    let mut linker = Command::new(linker());
    linker.args([
        "-flavor",
        "gnu",
        "--gc-sections",
        "--emit-relocs",
        "-e",
        "emitted_infer",
        "-u",
        "emitted_create",
    ]);
    linker.args(["-u", "emitted_destroy"]).arg(&library).arg("-o").arg(&program);
    succeed(linker);
    read(&std::fs::read(&program).expect("a program"))
}

fn succeed(mut command: Command) {
    let output = command.output().expect("a program");
    assert!(output.status.success(), "{command:?}:\n{}", String::from_utf8_lossy(&output.stderr));
}

/// The linker that comes with the compiler.
fn linker() -> PathBuf {
    let output = Command::new("rustc").args(["--print", "target-libdir"]).output().expect("rustc");
    let folder = PathBuf::from(String::from_utf8(output.stdout).expect("a path").trim());
    folder.parent().expect("a folder").join("bin/rust-lld")
}

/// Reads what the linker made.
fn read(program: &[u8]) -> Linked {
    let file = object::File::parse(program).expect("an ELF file");
    let mut linked = Linked::default();
    for section in file.sections() {
        let name = section.name().unwrap_or_default();
        let is_kept = match section.kind() {
            SectionKind::Text
            | SectionKind::ReadOnlyData
            | SectionKind::ReadOnlyString
            | SectionKind::Data => true,
            _ => name.starts_with(".ARM.exidx") || name.starts_with(".rodata"),
        };
        // Tables for unwinding, which a program that ends where it panics leaves out.
        if is_kept && !name.starts_with(".eh_frame") {
            linked.bytes += section.size();
        }
    }
    // Functions by address; of those of the same address, one.
    let mut functions: BTreeMap<u64, (String, u64)> = BTreeMap::new();
    for symbol in
        file.symbols().filter(|symbol| symbol.kind() == object::SymbolKind::Text && symbol.size() > 0)
    {
        let name = format!("{:#}", rustc_demangle::demangle(symbol.name().unwrap_or_default()));
        functions.insert(symbol.address() & !1, (name, symbol.size()));
    }
    for (name, bytes) in functions.values().filter(|(name, _)| !is_of_model(name)) {
        *linked.symbols.entry(name.clone()).or_default() += bytes;
    }
    linked.stack = stack(&file, &functions);
    linked
}

/// Kernels that many layers of a network call, each with parameters of its own. Of others, the compiler often knows all
/// parameters that there are.
const FREQUENT: [&str; 5] = ["::Conv", "::QConv", "::Gemm", "::QGemm", "::ElementWise"];

/// The code of a model whose [`FREQUENT`] kernels take parameters that the compiler does not know.
fn of_any_parameters(model: &str) -> String {
    let mut calls = model.split("const P: ");
    let mut text = calls.next().unwrap_or_default().to_owned();
    for call in calls {
        let path = call.split([' ', '\n']).next().unwrap_or_default();
        let call = match FREQUENT.iter().any(|kernel| path.ends_with(kernel)) {
            true => call.replacen("&P,", "core::hint::black_box(&P),", 1),
            false => call.to_owned(),
        };
        text += "const P: ";
        text += &call;
    }
    text
}

/// Whether a symbol is of the model itself: its layers, or how it is called.
fn is_of_model(name: &str) -> bool {
    name.contains("emitted::model::") || name.contains("emitted::capi::") || name.starts_with("emitted_")
}

/// The longest path of calls from the function that makes a frame, in bytes of stack.
fn stack(file: &object::File<'_>, functions: &BTreeMap<u64, (String, u64)>) -> u64 {
    let width = if file.is_64() { 8 } else { 4 };
    let mut frames: BTreeMap<u64, u64> = BTreeMap::new();
    for section in file.sections().filter(|section| section.name() == Ok(".stack_sizes")) {
        let mut rest = section.data().expect("sizes");
        while rest.len() > width {
            let (address, after) = rest.split_at(width);
            let address = address.iter().rev().fold(0, |all, &byte| (all << 8) | u64::from(byte));
            let (mut bytes, mut shift, mut used) = (0, 0, 0);
            for &byte in after {
                (bytes, shift, used) = (bytes | u64::from(byte & 0x7f) << shift, shift + 7, used + 1);
                if byte < 0x80 {
                    break;
                }
            }
            frames.insert(address & !1, bytes);
            rest = &after[used..];
        }
    }
    let of = |address: u64| {
        let (&start, (_, bytes)) = functions.range(..=address & !1).next_back()?;
        (address < start + bytes).then_some(start)
    };
    let mut calls: BTreeMap<u64, BTreeSet<u64>> = BTreeMap::new();
    for section in file.sections().filter(|section| section.kind() == SectionKind::Text) {
        for (place, relocation) in section.relocations() {
            let RelocationTarget::Symbol(symbol) = relocation.target() else { continue };
            let symbol = file.symbol_by_index(symbol).expect("a symbol");
            // A section's own symbol stands for the function in it.
            let to = symbol.address().wrapping_add_signed(match symbol.kind() {
                object::SymbolKind::Section => relocation.addend(),
                _ => 0,
            });
            if let (Some(from), Some(to)) = (of(place), of(to)) {
                calls.entry(from).or_default().insert(to);
            }
        }
    }
    let start = functions.iter().find(|(_, (name, _))| name == "emitted_infer").expect("the function").0;
    deepest(*start, functions, &frames, &calls, &mut BTreeMap::new())
}

fn deepest(
    function: u64,
    functions: &BTreeMap<u64, (String, u64)>,
    frames: &BTreeMap<u64, u64>,
    calls: &BTreeMap<u64, BTreeSet<u64>>,
    known: &mut BTreeMap<u64, u64>,
) -> u64 {
    if let Some(&bytes) = known.get(&function) {
        return bytes;
    }
    // Of functions that call each other, one round counts; only what prints numbers does so.
    known.insert(function, 0);
    let name = &functions[&function].0;
    // A panic halts, and its message is not printed.
    if name.contains("core::panicking") || name.contains("_fail") {
        return 0;
    }
    let own = frames.get(&function).copied().unwrap_or(LIBRARY_FRAME);
    let below = calls.get(&function).into_iter().flatten();
    let below = below.map(|&next| deepest(next, functions, frames, calls, known)).max().unwrap_or(0);
    known.insert(function, own + below);
    own + below
}

/// The application of one network, its layers whole.
fn of_network(network: Network) -> Application {
    let rows = network.ids().map(|id| ((0, id), network.layer(id).rows() as u64)).collect();
    let layers = network.ids().collect();
    let whole = Partition { name: "p".into(), layers, processor: "cpu".into(), schedule: None };
    let cnn = generate::of_network("cnn", network, vec![whole]);
    generate::of_cnns(vec![cnn], vec![vec!["p".into()]], StorageModel::Tensors, RowsChoice::Layers(rows))
}

/// A convolution of stride 1 with a bias, and an activation after it.
fn conv(filters: usize, groups: usize, kernel: [usize; 2], pads: [usize; 4], after: Function) -> Operator {
    let (stride, dilation, bias, pre, residual) = ([1, 1], [1, 1], true, None, false);
    let activation = Some(after);
    Operator::Conv(Conv { filters, kernel, stride, dilation, pads, groups, bias, pre, residual, activation })
}

/// Convolutions or fully connected layers, one after another. The convolutions are of several pixels, so that no layer can
/// write its output in place.
fn chain(count: usize, is_gemm: bool) -> Network {
    let mut network = Network::default();
    let shape = if is_gemm { Shape::new([1, 8]) } else { Shape::image(8, 6, 8) };
    let mut operand = generate::input(&mut network, shape);
    for inner in (1..=count).map(|layer| 8 * layer) {
        let (units, activation) = (inner + 8, Some(Function::Relu));
        let operator = match is_gemm {
            true => Operator::Gemm(Gemm { inner, units, transposed: true, bias: true, activation }),
            false => conv(units, 1, [3, 3], [1; 4], Function::Relu),
        };
        operand = generate::push(&mut network, operator, vec![operand]).expect("a layer");
    }
    network.outputs.push(csdfc_network::NetworkOutput::new("y", operand));
    network
}

/// A network of integers.
fn of_bytes(network: &Network) -> Network {
    let to = Some(Quantization { scale: 0.031, zero_point: 129 });
    let quantizations: Vec<_> =
        network.layers.iter().map(|layer| to.filter(|_| !layer.operator.makes_indices())).collect();
    integers(quantized(network, &quantizations))
}

/// A network for each kernel, in floats and in integers.
fn networks() -> Vec<Network> {
    let mut all = Vec::new();
    let plain = [
        conv(8, 8, [3, 3], [1; 4], Function::Relu),
        conv(8, 8, [5, 5], [1; 4], Function::Relu),
        conv(8, 8, [3, 1], [1; 4], Function::Relu),
        conv(8, 1, [1, 1], [1; 4], Function::Tanh),
    ];
    let image = Shape::image(8, 6, 8);
    let plain = Group { name: "plain", inputs: vec![[image.clone(), image]], operators: plain.into() };
    for group in std::iter::once(plain).chain(kernels::groups()) {
        for operator in &group.operators {
            let network =
                kernels::network(&Group { operators: vec![operator.clone()], ..group.clone() }, false);
            let bytes = of_bytes(&network);
            all.extend([network, bytes]);
        }
    }
    all
}

/// Whether a target can be compiled for.
fn is_installed(target: &str) -> bool {
    let output = Command::new("rustc").args(["--print", "target-libdir", "--target", target]).output();
    let folder = output.ok().and_then(|output| String::from_utf8(output.stdout).ok());
    folder.is_some_and(|folder| Path::new(folder.trim()).exists()) && linker().exists()
}

/// A network, its plan, and what decides about its footprint.
fn made(network: Network) -> (Application, Plan, KernelCalls) {
    let application = of_network(network);
    let plan = plan(&application);
    let calls = KernelCalls::of(&plan).expect("kernels");
    (application, plan, calls)
}

/// Writes the tables anew.
#[test]
#[ignore = "it compiles some hundred crates for each target, and writes a file"]
fn measures_footprints() {
    let mut seen = BTreeSet::new();
    let mut all = Vec::new();
    for network in networks() {
        let one = made(network);
        if one.2.names().any(|kernel| !seen.contains(kernel)) {
            seen.extend(one.2.names().map(str::to_owned));
            all.push(one);
        }
    }
    // Five layers of a kind, and ten.
    let chains: Vec<_> = [(false, false), (true, false), (false, true), (true, true)]
        .map(|(is_gemm, are_bytes)| {
            [5, 10].map(|count| {
                let network = chain(count, is_gemm);
                made(if are_bytes { of_bytes(&network) } else { network })
            })
        })
        .into();
    println!("{} crates, {} kernels", all.len(), seen.len());
    let folder = csdfc_tests::root().join("codegen/emit/src/footprint/tables");
    let wanted = std::env::var("TARGET").ok();
    for target in TARGETS {
        let Target { name, module: Some(module), .. } = target else { continue };
        if wanted.as_ref().is_some_and(|wanted| wanted != name) {
            continue;
        }
        assert!(is_installed(name), "rustup target add {name}");
        let mut text = String::new();
        for (level, constant) in LEVELS {
            let measure = |(application, plan, _): &(Application, Plan, KernelCalls)| {
                linked(application, plan, target, level, true)
            };
            let chained = |(application, plan, _): &(Application, Plan, KernelCalls)| {
                linked(application, plan, target, level, false)
            };
            let layers = Layers::new(&chains, chained);
            let crates: Vec<Linked> = all.par_iter().map(measure).collect();
            let measured: Vec<_> = all.iter().map(|(_, _, calls)| calls).zip(&crates).collect();
            let one = chained(&chains[0][0]);
            text += &table(constant, &measured, (&chains[0][0].2, &one), &layers);
            println!("{name} at {level}");
        }
        let head = format!(
            "//! Measured for `{name}`, as `tests/emit/footprint.rs` says.\n\nuse super::super::{{Entry, Table}};\n\n"
        );
        std::fs::write(folder.join(format!("{module}.rs")), head + &text).expect("a table");
    }
}

/// Bytes of a layer beside its kernel, by kernel.
struct Layers(BTreeMap<String, u64>);

impl Layers {
    /// Of those kernels that ten layers call in one of two crates, and five in the other.
    fn new<T>(
        chains: &[[(T, Plan, KernelCalls); 2]],
        measure: impl Fn(&(T, Plan, KernelCalls)) -> Linked,
    ) -> Self {
        let of_chain = |chain: &[(T, Plan, KernelCalls); 2]| {
            let [five, ten] = chain.each_ref().map(|of| measure(of).bytes);
            let (kernel, _) = chain[1].2.kernels.iter().find(|(_, count)| **count == 10).expect("ten layers");
            (kernel.clone(), (ten - five) / 5)
        };
        // A fully connected layer of floats is a convolution, too. Of one kernel, the costliest layers count.
        let mut layers = BTreeMap::new();
        for (kernel, bytes) in chains.iter().map(of_chain) {
            let most = layers.entry(kernel).or_insert(bytes);
            *most = bytes.max(*most);
        }
        Layers(layers)
    }

    /// Of other kernels, the fewest.
    fn of(&self, kernel: &str) -> u64 {
        self.0.get(kernel).or(self.0.values().min()).copied().unwrap_or(0)
    }

    fn all(&self, calls: &KernelCalls) -> u64 {
        calls.kernels.iter().map(|(kernel, count)| self.of(kernel) * count).sum()
    }
}

/// A table of crates: what they call, and what the linker kept.
fn table(
    constant: &str,
    crates: &[(&KernelCalls, &Linked)],
    of_one: (&KernelCalls, &Linked),
    layers: &Layers,
) -> String {
    // What every crate has.
    let (calls_of_one, one) = of_one;
    let common: BTreeSet<&str> = one
        .symbols
        .keys()
        .filter(|name| crates.iter().all(|(_, linked)| linked.symbols.contains_key(*name)))
        .map(String::as_str)
        .collect();
    let kernels: BTreeSet<&str> = crates.iter().flat_map(|(calls, _)| calls.names()).collect();
    let with = |kernel: &str| -> Vec<&Linked> {
        let calls = crates.iter().filter(|(calls, _)| calls.names().any(|name| name == kernel));
        calls.map(|(_, linked)| *linked).collect()
    };
    // The kernels of which every crate has a symbol.
    let mut needed: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for &kernel in &kernels {
        let crates = with(kernel);
        for name in crates[0].symbols.keys().filter(|name| !common.contains(name.as_str())) {
            if crates.iter().all(|linked| linked.symbols.contains_key(name)) {
                needed.entry(name).or_default().insert(kernel);
            }
        }
    }
    // A symbol has more code where a kernel has a feature.
    let size = |name: &str| {
        let sizes = crates.iter().filter_map(|(_, linked)| linked.symbols.get(name).copied());
        sizes.min().unwrap_or(0)
    };
    let mut parts: BTreeMap<&BTreeSet<&str>, u64> = BTreeMap::new();
    for (name, of) in &needed {
        *parts.entry(of).or_default() += size(name);
    }
    // What is left of each crate is what was inlined, and constants. Of a convolution's crate, it
    // is what every crate has.
    let left = |(calls, linked): &(&KernelCalls, &Linked)| {
        let named = parts.iter().filter(|(of, _)| calls.names().any(|kernel| of.contains(kernel)));
        let named: u64 = named.map(|(_, bytes)| bytes).sum();
        linked.bytes.saturating_sub(named + layers.all(calls))
    };
    let base = left(&(calls_of_one, one));
    let shared: Vec<_> = parts.iter().filter(|(of, bytes)| of.len() > 1 && **bytes > 0).collect();
    let list: Vec<String> = shared.iter().map(|(_, bytes)| bytes.to_string()).collect();
    let mut text = format!(
        "#[rustfmt::skip]\npub(in super::super) const {constant}: Table = Table {{\n    base: {base},\n"
    );
    let _ = writeln!(text, "    shared: &[{}],\n    kernels: &[", list.join(", "));
    for &kernel in &kernels {
        let calls: Vec<_> = crates.iter().filter(|(of, _)| of.names().any(|name| name == kernel)).collect();
        let alone = parts.get(&BTreeSet::from([kernel])).copied().unwrap_or(0);
        // What is left belongs to the kernels, not to their features, and least to what converts numbers for others.
        let rest = calls
            .iter()
            .map(|of| left(of).saturating_sub(base))
            .min()
            .filter(|_| !kernel.contains(OF_FEATURE))
            .unwrap_or(0);
        let stack = calls.iter().map(|(_, linked)| linked.stack).min().unwrap_or(0);
        let of: Vec<String> = (0..)
            .zip(&shared)
            .filter(|(_, (of, _))| of.contains(kernel))
            .map(|(part, _): (usize, _)| part.to_string())
            .collect();
        let (own, layer) = (alone + rest, layers.of(kernel));
        let _ = writeln!(
            text,
            "        ({kernel:?}, Entry {{ own: {own}, layer: {layer}, stack: {stack}, parts: &[{}] }}),",
            of.join(", ")
        );
    }
    text + "    ],\n};\n"
}

/// Networks of all sorts, as they are linked, beside what the tables say.
#[test]
#[ignore = "it compiles crates for boards"]
fn footprints_are_those_of_the_linker() {
    let trained = csdfc_tests::root().join("../shared/models/mlperf_tiny");
    let mut texts: Vec<(String, String)> = ["lenet5", "resnet8", "mobilenet_v1_0.25", "squeezenet1_0"]
        .map(|name| (format!("{BUILTIN}{name}"), format!("{BUILTIN}{name}")))
        .into();
    for name in ["pretrainedResnet_quant", "kws_ref_model", "vww_96_int8", "ad01_int8"] {
        let path = trained.join(name).with_extension("tflite");
        match path.exists() {
            true => texts.push((name.into(), path.display().to_string())),
            false => skipped(&format!("code and stack of {name}: there is no ../shared/models")),
        }
    }
    let plans: Vec<(String, Application, Plan)> = texts
        .into_iter()
        .map(|(name, model)| {
            let text = format!(
                r#"(name: "a", cnns: [(name: "c", model: "{model}")], constraints: (memory: "min"))"#
            );
            let application = csdfc_tests::application(&text);
            let plan = plan(&application);
            (name, application, plan)
        })
        .collect();
    let wanted = std::env::var("TARGET").ok();
    for target in TARGETS.into_iter().filter(|target| wanted.as_ref().is_none_or(|name| name == target.name))
    {
        if !is_installed(target.name) {
            skipped(&format!("code and stack on {}: there is no compiler for it", target.name));
            continue;
        }
        for (name, application, plan) in &plans {
            let calls = KernelCalls::of(plan).expect("kernels");
            let stated = footprints(&calls);
            let stated = stated.iter().find(|stated| stated.target == target.name).expect("a table");
            assert!(stated.uncounted.is_empty(), "{name}: {:?}", stated.uncounted);
            for ((level, _), code) in LEVELS.into_iter().zip([stated.code, stated.small_code]) {
                let linked = linked(application, plan, target, level, false);
                let ratio = code as f64 / linked.bytes as f64;
                println!(
                    "{name} {} {level}: {code} of {} bytes, {ratio:.3}; stack {} of {}",
                    target.name, linked.bytes, stated.stack, linked.stack
                );
                let most = MOST[usize::from(name.starts_with(BUILTIN))];
                assert!(linked.stack <= stated.stack, "{name}: more stack than stated");
                assert!(ratio < most && 1.0 / ratio < most, "{name}: more than {most} times as much");
            }
        }
    }
}
