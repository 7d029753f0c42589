//! The files of a crate that are not code of a model.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::PathBuf;

use csdfc_plan::format::Element;
use csdfc_plan::plan::Plan;

use super::model::{Model, Packed, together};
use super::names::one_line;
use super::source::Source;
use super::uses::Uses;
use super::{capi, hash, kernels, module, program};

/// The file that lists the others, each with the hash of its content.
pub const MANIFEST: &str = "csdfc-manifest.txt";

/// The files of a crate in the order of their paths, and [`MANIFEST`].
pub fn listed(mut files: Vec<(PathBuf, Vec<u8>)>) -> Vec<(PathBuf, Vec<u8>)> {
    files.sort();
    let list: String = files.iter().fold(String::new(), |mut list, (path, content)| {
        // Paths are ours, with `/` between their parts.
        let _ = writeln!(list, "{:016x} {}", hash::hash(content), path.display());
        list
    });
    files.push((MANIFEST.into(), list.into_bytes()));
    files
}

/// The most bytes of stack that a frame takes on the processors and in the networks of `tests/bare_metal`, which
/// measures them: with 32-bit floats only, and with some 16-bit floats.
const STACK: [usize; 2] = [12 * 1024, 40 * 1024];

/// A crate to be written.
pub(super) struct Crate<'a> {
    pub name: String,
    pub plan: &'a Plan,
    pub models: &'a [Model<'a>],
    pub packed: Packed,
}

impl Crate<'_> {
    /// All files.
    pub fn files(self) -> Vec<(PathBuf, Vec<u8>)> {
        let mut files: Vec<(PathBuf, Vec<u8>)> = Vec::new();
        let mut add = |path: &str, text: String| files.push((path.into(), text.into_bytes()));
        add("Cargo.toml", self.manifest());
        add("README.md", self.readme());
        add("LICENSE-APACHE", include_str!("../../LICENSE-APACHE").into());
        add("LICENSE-MIT", include_str!("../../LICENSE-MIT").into());
        add("rustfmt.toml", include_str!("../../rustfmt.toml").into());
        add(".gitignore", "/target\n".into());
        add(".cargo/config.toml", include_str!("template/config.toml").into());
        add("src/main.rs", self.head() + &program::write(&self.name, self.plan, self.models));
        add("src/support.rs", self.head() + include_str!("template/support.rs"));
        add("src/capi.rs", self.head() + &capi::write(&self.name, self.models));
        let header = capi::header(&self.name, self.plan, self.models, &self.packed);
        add(&capi::header_path(&self.name), header);
        if self.models.iter().any(program::is_piped) {
            add("src/ends.rs", self.head() + include_str!("template/ends.rs"));
        }
        add("src/trace.rs", self.head() + include_str!("template/trace.rs"));
        add("src/lib.rs", self.library(true));
        self.sources(&mut files);
        if self.is_paged() {
            files.push(("store.bin".into(), self.packed.store));
        }
        files.push(("weights.bin".into(), self.packed.weights));
        listed(files)
    }

    /// The sources of the library, without its root.
    pub(super) fn sources(&self, files: &mut Vec<(PathBuf, Vec<u8>)>) {
        let mut add = |path: &str, text: &str| files.push((path.into(), (self.head() + text).into_bytes()));
        add("src/arena.rs", include_str!("template/arena.rs"));
        add("src/weights.rs", include_str!("template/weights.rs"));
        add("src/hash.rs", include_str!("template/hash.rs"));
        if self.is_paged() {
            add("src/store.rs", include_str!("template/store.rs"));
        }
        if self.has_stages() {
            add("src/ring.rs", include_str!("template/ring.rs"));
        }
        for model in self.models {
            add(&format!("src/{}.rs", model.module), &module::write(model));
        }
        let mut modules = BTreeSet::from(["arch", "kernel", "rows", "span"]);
        modules.extend(self.models.iter().flat_map(Model::kernel_modules));
        let uses = self.models.iter().map(Model::uses).fold(Uses::default(), Uses::or);
        files.extend(kernels::files(&modules, uses));
    }

    /// Whether a model is a pipeline.
    fn has_stages(&self) -> bool {
        self.models.iter().any(|model| !model.stages.is_empty())
    }

    /// Whether weights of a model are read from a store.
    pub(super) fn is_paged(&self) -> bool {
        self.models.iter().any(Model::is_paged)
    }

    /// Whether a tensor has floats of 16 bits.
    fn has_halves(&self) -> bool {
        let mut layers = self.models.iter().flat_map(|model| &model.cnn().layers);
        layers.any(|entry| entry.tensor.format.element == Element::F16)
    }

    /// The text at the top of every file.
    fn head(&self) -> String {
        format!(
            "// Written by csdfc {} from a plan of `{}`. This code is yours, to use and to change as you like; the\n\
             // kernels and what surrounds the models are also under the licences beside it. Emitting again replaces it.\n\n",
            self.plan.csdfc,
            one_line(&self.plan.application)
        )
    }

    fn manifest(&self) -> String {
        format!(
            "[package]\nname = \"{name}\"\nversion = \"0.1.0\"\nedition = \"2024\"\nrust-version = \"1.89\"\n\
             publish = false\n\n\
             [features]\ndefault = [\"std\", \"weights\"]\n\
             # The instruction set is chosen at start, and there is a program.\nstd = []\n\
             # The weights are embedded; without it they are handed over.\nweights = []\n\
             # Functions for C, as the header in `include` declares them.\ncapi = []\n\
             # Firings are timed, and the program writes them with `--trace`.\ntrace = [\"std\"]\n\n\
             [[bin]]\nname = \"{name}\"\npath = \"src/main.rs\"\nrequired-features = [\"std\", \"weights\"]\n\n\
             # The crate is a workspace of its own, wherever it lies.\n[workspace]\n",
            name = self.name
        )
    }

    /// The root of the library, or of a module with the same content.
    pub(super) fn library(&self, is_crate: bool) -> String {
        let (plan, memory) = (self.plan, &self.plan.memory);
        let mut source = Source::default();
        source.comment(
            "//!",
            &format!(
                "The models of `{}`, in the memory that their plan promised.",
                one_line(&plan.application)
            ),
        );
        source.line("//!");
        let of = |what: &str, bytes: u64| format!("- {what}: {bytes} bytes");
        source.line(format!("//! {}", of("parameters", memory.parameters)));
        source.line(format!("//! {}", of("arena", memory.arena)));
        source.line(format!("//! {}", of("of these buffers", memory.buffers)));
        source.line(format!("//! {}", of("of these workspaces at one moment", memory.workspace)));
        source.line(format!("//! {}", of("held by the caller, inputs", memory.external.inputs)));
        source.line(format!("//! {}", of("held by the caller, outputs", memory.external.outputs)));
        source.line("//!");
        source.comment(
            "//!",
            &format!(
                "With no reuse and no processing by parts the buffers would take {} bytes; no placement of these rings \
                 takes less than {}.",
                memory.naive, memory.bound
            ),
        );
        if is_crate {
            source.line("#![no_std]");
        }
        source.line("#![deny(unsafe_code)]");
        source.line("#![warn(missing_docs)]");
        source.gap();
        if is_crate {
            source.line("#[cfg(feature = \"std\")]");
            source.line("extern crate std;");
            source.gap();
            source.line("#[cfg(feature = \"capi\")]");
            source.line("mod capi;");
            source.gap();
            source.line("#[cfg(feature = \"trace\")]");
            source.line("pub mod trace;");
            source.gap();
        }
        let mut modules: Vec<(&str, bool)> =
            ["arena", "hash", "kernels", "weights"].map(|name| (name, false)).into();
        modules.extend(self.has_stages().then_some(("ring", false)));
        modules.extend(self.is_paged().then_some(("store", false)));
        modules.extend(self.models.iter().map(|model| (model.module.as_str(), true)));
        modules.sort_unstable();
        for (module, is_model) in modules {
            if module == "kernels" {
                source.line("#[doc(hidden)]");
            }
            let public = if is_model || module == "kernels" { "pub " } else { "" };
            source.line(format!("{public}mod {module};"));
        }
        source.gap();
        source.line("pub use arena::Arena;");
        if let [model] = self.models {
            if !model.stages.is_empty() {
                source.line("#[cfg(feature = \"std\")]");
                source.line(format!("pub use {}::{{InputFrames, OutputFrames}};", model.module));
            }
            source.line(format!(
                "pub use {}::{{InputRows, Inputs, Model, OutputRows, Outputs}};",
                model.module
            ));
        }
        if self.has_stages() {
            source.line("#[cfg(feature = \"std\")]");
            source.line("pub use ring::PipelineError;");
        }
        if self.is_paged() {
            source.line("#[cfg(feature = \"std\")]");
            source.line("pub use store::Loader;");
            source.line("pub use store::{Blocking, Fault, InPlace, Load, ReadAt, Store, StoreError};");
        }
        source.line("pub use weights::WeightsError;");
        source.gap();
        source.line("/// Bytes of the arena: the plan's buffers and workspace.");
        source.line(format!("pub const ARENA_BYTES: usize = {};", memory.arena));
        source.gap();
        source.line("/// Bytes of the packed weights.");
        source.line(format!("pub const WEIGHT_BYTES: usize = {};", self.packed.weights.len()));
        source.gap();
        source.line("/// Hash of the packed weights.");
        source.line(format!("pub const WEIGHT_HASH: u64 = 0x{:016x};", hash::hash(&self.packed.weights)));
        source.gap();
        if self.is_paged() {
            let store = &self.packed.store;
            source.line("/// Bytes of the weights that are read from a store, a frame at a time.");
            source.line(format!("pub const STORE_BYTES: u64 = {};", store.len()));
            source.gap();
            source.line("/// Hash of them.");
            source.line(format!("pub const STORE_HASH: u64 = 0x{:016x};", hash::hash(store)));
            source.gap();
            let most = self.models.iter().map(|model| model.loads_at_once).max().unwrap_or(0);
            source.line("/// Most loads that are under way at once.");
            source.line(format!("pub const LOADS_AT_ONCE: usize = {most};"));
            source.gap();
        }
        self.write_together(&mut source);
        source.line("/// The best instruction set of the processor.");
        source.line("#[cfg(feature = \"std\")]");
        source.open("fn isa() -> kernels::arch::Isa {");
        source.line("kernels::arch::Isa::detect()");
        source.close("}");
        source.gap();
        source.line("/// The best instruction set that the crate is compiled for.");
        source.line("#[cfg(not(feature = \"std\"))]");
        source.open("fn isa() -> kernels::arch::Isa {");
        source.line("kernels::arch::Isa::compiled()");
        source.close("}");
        self.head() + &source.finish()
    }

    /// Shares of the arena for models that may run at the same time.
    fn write_together(&self, source: &mut Source) {
        let Some(model) = self.models.first() else { return };
        for cnns in together(model.resolved) {
            let name = |what: &str| -> Vec<String> {
                cnns.iter().map(|&c| format!("{}{what}", self.models[c].module)).collect()
            };
            source.open("impl Arena {");
            source.comment(
                "///",
                &format!("The shares of {}, which may run at the same time.", name("").join(", ")),
            );
            let shares = name("::Share<'_>").join(", ");
            source.open(format!("pub fn {}(&mut self) -> ({shares}) {{", name("").join("_and_")));
            source.line("struct Together;");
            source.open("impl arena::Division for Together {");
            let parts = name("::ring::Whole as arena::Part>::PLACES")
                .iter()
                .map(|part| format!("<{part}"))
                .collect::<Vec<_>>();
            source.list("const PARTS: &'static [&'static [arena::Place]] = &[", &parts, ";");
            source.close("}");
            source.line("let mut parts = self.divide::<Together>();");
            source.line(format!("({})", name("::Share(parts.take())").join(", ")));
            source.close("}");
            source.close("}");
            source.gap();
        }
    }

    fn readme(&self) -> String {
        let (plan, name) = (self.plan, &self.name);
        let library = name.replace('-', "_");
        let mut text = format!(
            "# {name}\n\n\
             Written by csdfc {} from a plan of `{}`. It needs nothing but Rust 1.89.\n\n\
             | memory | bytes |\n| --- | ---: |\n\
             | parameters | {} |\n| weights as packed | {} |\n| arena: buffers and workspace | {} |\n\
             | inputs held by the caller | {} |\n| outputs held by the caller | {} |\n\n",
            plan.csdfc,
            one_line(&plan.application),
            plan.memory.parameters,
            self.packed.weights.len(),
            plan.memory.arena,
            plan.memory.external.inputs,
            plan.memory.external.outputs,
        );
        let several = self.models.len() > 1;
        let cnn = if several { "CNN " } else { "" };
        let (all, folders) = match several {
            false => (String::new(), ""),
            true => (
                format!(
                    "    target/release/{name} INPUT.npy … --frames 100 --output DIR\n    \
                     target/release/{name} INPUT.npy … --turns {}\n\n\
                     With the name of a CNN it runs that one, without one all of them: {}. `--turns` runs CNNs in the\n\
                     order that it gives, so many frames at a time: an application that adapts to what it sees. They have\n\
                     the same arena, and a model is made for each turn.\n",
                    self.models
                        .iter()
                        .map(|model| one_line(&model.cnn().cnn.name))
                        .collect::<Vec<_>>()
                        .join(","),
                    program::turns(self.models)
                ),
                ", in a folder for each CNN",
            ),
        };
        let _ = write!(
            text,
            "## The program\n\n    cargo build --release\n    \
             target/release/{name} {cnn}INPUT.npy --frames 100 --output DIR\n{all}\n\
             It takes one file for each input, in the order below, prints frames per second and the peak memory of\n\
             the process, and writes the outputs of the last frame{folders}. A file has its output's name, in which `%2F`\n\
             stands for `/`, and so on for all but letters, digits and `._-`.\n\n\
             Built with `--features trace` it has `--trace FILE`, which writes when each layer fired, for\n\
             <https://ui.perfetto.dev>. Built with `RUSTFLAGS=\"-C target-feature=+crt-static\"` on Linux it is linked\n\
             statically, and takes about 1 MB less memory.\n\n\
             ## On a Jetson, or another 64-bit Arm\n\n\
             On the PC, with Debian's or Ubuntu's `gcc-aarch64-linux-gnu` as the linker:\n\n    \
             rustup target add aarch64-unknown-linux-gnu\n    \
             export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUSTFLAGS=\"-C target-cpu=cortex-a57\"\n    \
             cargo build --release --target aarch64-unknown-linux-gnu\n    \
             scp target/aarch64-unknown-linux-gnu/release/{name} INPUT.npy board:\n    \
             ssh board ./{name} {cnn}INPUT.npy --frames 100 --output out\n\n\
             The program is linked statically (`.cargo/config.toml`): it runs on boards whose system is old. The\n\
             processor is `cortex-a57` on a TX1, TX2 or Nano, `carmel` on a Xavier, `cortex-a78ae` on an Orin,\n\
             `cortex-a72` on a Raspberry Pi 4; without the line any 64-bit Arm will do. `RUSTFLAGS` would take the\n\
             place of the configuration, static linking included. `qemu-aarch64 -cpu cortex-a57 {name} …` runs it on\n\
             the PC, though not at the board's speed. Built on the board itself it needs nothing but Rust.\n\n\
             ## The library\n\n"
        );
        for model in self.models {
            let path = if several { format!("{library}::{}", model.module) } else { library.clone() };
            let inputs: Vec<&str> = model.inputs.iter().map(|field| field.name.as_str()).collect();
            let outputs: Vec<&str> = model.outputs.iter().map(|field| field.name.as_str()).collect();
            let _ = write!(
                text,
                "`{path}` is the model `{}`. Inputs: {}. Outputs: {}.\n\n",
                one_line(&model.cnn().cnn.name),
                inputs.join(", "),
                outputs.join(", ")
            );
        }
        text += "Images are rows of pixels of channels (HWC), whatever the order of the model's dimensions: element\n\
                 `(y * width + x) * channels + c`. `Model::new` takes the arena, `Arena::take()` or one of your own;\n\
                 `infer` runs whole frames, `infer_rows` takes rows as they come from a camera, say.\n\n\
                 Without the default features the crate is `no_std` and allocates nothing. Feature `weights` embeds\n\
                 `weights.bin`; without it `Model::with_weights` takes its bytes, from flash or a mapped file. Feature\n\
                 `std` chooses vector code at start instead of when the crate is compiled.\n\n";
        let _ = write!(
            text,
            "Beside its arena a frame takes some stack. With {} LeNet-5 and ResNet-8 took no more than {} bytes of\n\
             stack, on a Cortex-M4 and on 32-bit RISC-V. Other kernels may take more.\n\n",
            if self.has_halves() { "16-bit floats" } else { "32-bit floats" },
            STACK[usize::from(self.has_halves())]
        );
        if self.is_paged() {
            let _ = write!(
                text,
                "## Paged weights\n\n\
                 {} bytes of weights are not in memory: a frame reads them from `store.bin`, slice by slice, into\n\
                 blocks of the arena, as the plan has it. `Model::new` takes the store as its second argument:\n\n\
                 - `Loader::open(path)`, with `std`, reads the file by a thread of its own, while kernels run, and by the\n  \
                 model's too where that would only wait; `Loader::new` does so by a `ReadAt` of yours, by one thread\n  \
                 unless it has `another`\n\
                 - `Blocking::new(reader)` reads by a `ReadAt` and waits for it\n\
                 - `InPlace::new(bytes)` has all of it in flash or a mapped file, and neither reads nor copies\n\
                 - what implements `Store` begins a load and is waited for: DMA, say\n\n\
                 The program reads `store.bin` in the current folder, or what `--store FILE` names. Every slice has a\n\
                 checksum (CRC-32C), which is compared before the slice is used. If a load fails or brings other bytes,\n\
                 `infer` returns an error, and the model can run the next frame.\n\n",
                self.packed.store.len()
            );
            if self.models.iter().any(|model| model.paged_stages().len() > 1) {
                text += "Stages of a pipeline that read weights have a store each: `Model::new` takes an array of them.\n\n";
            }
        }
        for cnns in self.models.first().map(|model| together(model.resolved)).unwrap_or_default() {
            let modules: Vec<&str> = cnns.iter().map(|&c| self.models[c].module.as_str()).collect();
            let (all, shares) = (modules.join("_and_"), modules.join(", "));
            let _ = write!(
                text,
                "`let ({shares}) = arena.{all}()`, `Arena::{all}`, splits the arena among models that the plan runs at the\n\
                 same time: `Model::new` of each takes its share, on a thread of its own if you like.\n\n"
            );
        }
        if self.has_stages() {
            text += "Partitions that the plan runs at the same time are stages of a pipeline: with `std`, `Model::pipeline` runs\n\
                     each on a thread of its own. Between them are rings of rows in the arena, whose counts are handed over\n\
                     without a lock; frames stay in order, and all have left when it returns, so that whatever runs next\n\
                     finds the arena free. `infer` lets the stages take turns. A stage that is planned for a GPU is one\n\
                     more thread of the CPU here. A stage that panics ends the others, and the error is returned.\n\n";
        }
        if plan.threads > 1 {
            let _ = write!(
                text,
                "With `std`, {} workers share the rows of a firing, or the channels of a convolution. They are there as long\n\
                 as the model is, and the bytes are those of one. Without `std` there is one.\n\n",
                plan.threads
            );
        }
        let header = capi::header_path(name);
        let _ = write!(
            text,
            "## From C\n\n    \
             cargo rustc --lib --release --features capi --crate-type staticlib\n    \
             cc program.c -Iinclude target/release/lib{library}.a -lpthread -ldl -lm\n\n\
             `{header}` declares the functions; `--crate-type cdylib` makes a shared library.\n\n"
        );
        text += "\
                 ## Licence\n\n\
                 The models' code is yours. The kernels and what surrounds the models are under MIT or Apache-2.0, at\n\
                 your choice.\n";
        text
    }
}
