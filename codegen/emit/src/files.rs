//! The files of a crate that are not code of a model.

use std::fmt::Write;
use std::path::PathBuf;

use csdfc_plan::plan::Plan;

use super::example::example;
use super::model::{Model, Packed, together};
use super::names::one_line;
use super::regions::{self, NamedRegion};
use super::source::Source;
use super::{capi, hash, module, program, update};

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

/// The crate that decodes images, of the version that csdfc itself has.
const IMAGE_CRATE: &str = "image = { version = \"0.25\", default-features = false, features = [\"jpeg\", \"png\"], optional = true }";

/// A crate to be written.
pub(super) struct Crate<'a> {
    pub name: String,
    pub plan: &'a Plan,
    pub models: &'a [Model<'a>],
    pub plan_hash: u64,
    pub packed: Packed,
    /// Whether the program takes files of images, with the feature `image`.
    pub image_files: bool,
}

impl Crate<'_> {
    /// All files.
    pub fn files(self) -> Vec<(PathBuf, Vec<u8>)> {
        let mut files: Vec<(PathBuf, Vec<u8>)> = Vec::new();
        let mut add = |path: &str, text: String| files.push((path.into(), text.into_bytes()));
        add("Cargo.toml", self.manifest());
        add("README.md", self.readme());
        add("LICENSE-APACHE", include_str!("../LICENSE-APACHE").into());
        add("LICENSE-MIT", include_str!("../LICENSE-MIT").into());
        add("rustfmt.toml", include_str!("../rustfmt.toml").into());
        add(".gitignore", "/target\n".into());
        add(".cargo/config.toml", include_str!("template/config.toml").into());
        add(
            "src/main.rs",
            self.head() + &program::write(&self.name, self.plan, self.models, self.image_files),
        );
        add("src/files.rs", self.head() + include_str!("template/files.rs"));
        if self.image_files {
            add("src/pixels.rs", self.head() + include_str!("template/pixels.rs"));
        }
        add("src/support.rs", self.head() + include_str!("template/support.rs"));
        add("src/capi.rs", self.head() + &capi::write(&self.name, self.models));
        let header = capi::header(&self.name, self.plan, self.models, &self.packed);
        add(&capi::header_path(&self.name), header);
        add("c/main.c", capi::program(&self.name, self.models));
        add("src/trace.rs", self.head() + include_str!("template/trace.rs"));
        add("src/lib.rs", self.library(true));
        self.sources(&mut files);
        if self.is_streamed() {
            files.push(("store.bin".into(), self.packed.store));
        }
        files.push(("weights.bin".into(), self.packed.weights));
        listed(files)
    }

    /// The sources of the library, without its root.
    pub(super) fn sources(&self, files: &mut Vec<(PathBuf, Vec<u8>)>) {
        let mut add = |path: &str, text: &str| files.push((path.into(), (self.head() + text).into_bytes()));
        add("src/arena.rs", &regions::arena(self.regions()));
        add("src/weights.rs", include_str!("template/weights.rs"));
        add("src/hash.rs", include_str!("template/hash.rs"));
        add("src/update.rs", include_str!("template/update.rs"));
        if self.is_streamed() {
            add("src/store.rs", include_str!("template/store.rs"));
        }
        if self.has_stages() {
            add("src/ring.rs", include_str!("template/ring.rs"));
        }
        for model in self.models {
            add(&format!("src/{}.rs", model.module), &(module::write(model) + &update::constructor(model)));
        }
        files.extend(module::kernels_of(self.models));
    }

    /// The name by which Rust code calls the crate.
    pub(super) fn library_name(&self) -> String {
        self.name.replace('-', "_")
    }

    /// Whether a model is a pipeline.
    pub(super) fn has_stages(&self) -> bool {
        self.models.iter().any(|model| !model.stages.is_empty())
    }

    /// The memory regions that share the arena.
    pub(super) fn regions(&self) -> &[NamedRegion<'_>] {
        self.models.first().map_or(&[], |model| &model.regions)
    }

    /// Whether there are weights that an update can bring: not those that are read from a store.
    pub(super) fn has_updates(&self) -> bool {
        !self.packed.weights.is_empty() || !self.is_streamed()
    }

    /// Whether weights of a model are read from a store.
    pub(super) fn is_streamed(&self) -> bool {
        self.models.iter().any(Model::is_streamed)
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
        let (default, image, dependencies) = match self.image_files {
            true => (
                ", \"image\"",
                "# The program takes PNG and JPEG files. Nothing else needs another crate.\n\
                 image = [\"std\", \"dep:image\"]\n",
                format!("[dependencies]\n{IMAGE_CRATE}\n\n"),
            ),
            false => ("", "", String::new()),
        };
        format!(
            "[package]\nname = \"{name}\"\nversion = \"0.1.0\"\nedition = \"2024\"\nrust-version = \"1.89\"\n\
             publish = false\n\n\
             [features]\ndefault = [\"std\", \"weights\"{default}]\n\
             # The instruction set is chosen at start, and there is a program.\nstd = []\n\
             # The weights are embedded. Without this feature, the caller hands them over.\nweights = []\n\
             # Functions for C, as the header in `include` declares them.\ncapi = []\n\
             # A panic, which would be a mistake of this crate, halts: for C on a board without an operating system.\n\
             panic-handler = []\n\
             # The processor is an Arm microcontroller with DSP instructions: Cortex-M4, M7, M33 and larger.\n\
             dsp = []\n\
             # It has Helium, too: Cortex-M55 and M85.\nhelium = [\"dsp\"]\n\
             # The processor is a RISC-V with vectors (V, of 128 bits or more).\nrvv = []\n\
             # Firings are timed, and the program writes them with `--trace`.\ntrace = [\"std\"]\n{image}\n\
             {dependencies}\
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
        if is_crate {
            source.line("//! ```no_run");
            let example = example(&self.library_name(), self.models);
            example.lines().for_each(|line| source.line(format!("//! {line}").trim_end()));
            source.line("//! ```");
            source.line("//!");
        }
        let of = |what: &str, bytes: u64| format!("- {what}: {bytes} bytes");
        source.line(format!("//! {}", of("parameters", memory.parameters)));
        source.line(format!("//! {}", of("arena", memory.arena)));
        for NamedRegion { region, .. } in self.regions() {
            source.line(format!("//! {}", of(&format!("of these in `{}`", region.name), region.bytes)));
        }
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
            source.line("#[cfg(all(feature = \"panic-handler\", not(feature = \"std\")))]");
            source.line("#[panic_handler]");
            source.open("fn halt(_: &core::panic::PanicInfo<'_>) -> ! {");
            source.open("loop {");
            source.line("core::hint::spin_loop();");
            source.close("}");
            source.close("}");
            source.gap();
            source.line("#[cfg(feature = \"trace\")]");
            source.line("pub mod trace;");
            source.gap();
        }
        let mut modules: Vec<(&str, bool)> =
            ["arena", "hash", "kernels", "weights"].map(|name| (name, false)).into();
        modules.extend(self.has_stages().then_some(("ring", false)));
        modules.extend(self.is_streamed().then_some(("store", false)));
        modules.push(("update", true));
        modules.extend(self.models.iter().map(|model| (model.module.as_str(), true)));
        modules.sort_unstable();
        for (module, is_public) in modules {
            if module == "kernels" {
                source.line("#[doc(hidden)]");
            }
            let public = if is_public || module == "kernels" { "pub " } else { "" };
            source.line(format!("{public}mod {module};"));
        }
        source.gap();
        source.line(match self.regions() {
            [] => "pub use arena::Arena;",
            _ => "pub use arena::{Arena, Region};",
        });
        if let [model] = self.models {
            if !model.stages.is_empty() {
                source.line("#[cfg(feature = \"std\")]");
                source.line(format!("pub use {}::{{InputFrames, OutputFrames}};", model.module));
            }
            let batch = if model.batch() > 1 { "BATCH, BatchInputs, BatchOutputs, " } else { "" };
            let state = if model.keeps_state() { ", STATE_BYTES" } else { "" };
            let names = format!("{batch}InputRows, Inputs, Model, OutputRows, Outputs{state}");
            let one = format!("pub use {}::{{{names}}};", model.module);
            if source.fits(&one) {
                source.line(one);
            } else {
                source.open(format!("pub use {}::{{", model.module));
                source.line(names + ",");
                source.close("};");
            }
        }
        if self.has_stages() {
            source.line("#[cfg(feature = \"std\")]");
            source.line("pub use ring::PipelineError;");
        }
        if self.is_streamed() {
            source.line("#[cfg(feature = \"std\")]");
            source.line("pub use store::Loader;");
            source.line("pub use store::{Blocking, Fault, InPlace, Load, ReadAt, Store, StoreError};");
        }
        source.line("pub use weights::WeightsError;");
        source.gap();
        if self.regions().is_empty() {
            source.line("/// Bytes of the arena: the plan's buffers and workspace.");
            source.line(format!("pub const ARENA_BYTES: usize = {};", memory.arena));
            source.gap();
        }
        regions::write_sizes(&mut source, self.regions());
        source.line("/// Bytes of the packed weights.");
        source.line(format!("pub const WEIGHT_BYTES: usize = {};", self.packed.weights.len()));
        source.gap();
        source.line("/// Hash of what uses the weights. Updates of the same plan have it, too.");
        source.line(format!("pub const PLAN_HASH: u64 = 0x{:016x};", self.plan_hash));
        source.gap();
        source.line("/// Hash of the packed weights.");
        source.line(format!("pub const WEIGHT_HASH: u64 = 0x{:016x};", hash::hash(&self.packed.weights)));
        source.gap();
        if self.is_streamed() {
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
}
