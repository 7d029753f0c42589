//! The page of a crate, `README.md`.

use std::collections::BTreeSet;
use std::fmt::Write;

use csdfc_plan::plan::Region;

use super::example::example;
use super::files::Crate;
use super::footprint::{Footprint, KernelCalls, footprints};
use super::model::together;
use super::names::one_line;
use super::regions::NamedRegion;
use super::{capi, program};

/// On new weights for the crate.
const ON_UPDATES: &str = "## New weights\n\n\
    `csdfc emit PLAN --update FILE` writes the weights of a model that was trained again, and planned as this one. The\n\
    crate takes them from a file or from flash: `update::newest` finds the newest of two slots, and `Model::with_update`\n\
    uses it. `src/update.rs` says how a slot is written so that a power cut does no harm. A different network or plan\n\
    needs a new crate, and its update is refused.\n\n";

/// On files of images.
const ON_IMAGES: &str = "An input that takes bytes also takes a PNG or JPEG file of exactly its width and height. Its pixels are put in\n\
    the order of the input, in grey for one channel, and without their transparency. The feature `image` does that, by the\n\
    crate of that name; the library never uses it.\n\n";

impl Crate<'_> {
    /// The page.
    pub(super) fn readme(&self) -> String {
        let mut text = self.front();
        text += &self.on_the_program();
        text += &self.on_the_library();
        if !self.regions().is_empty() {
            text += &self.on_regions();
        }
        if self.is_streamed() {
            text += &self.on_streamed_weights();
        }
        text += &self.on_threads();
        if self.has_updates() {
            text += ON_UPDATES;
        }
        let (header, library) = (capi::header_path(&self.name), self.library_name());
        let _ = write!(
            text,
            "## From C\n\n    \
             cargo rustc --lib --release --features capi --crate-type staticlib\n    \
             cc c/main.c -Iinclude target/release/lib{library}.a -lpthread -ldl -lm\n\n\
             `{header}` declares the functions, and `c/main.c` is an example; `--crate-type cdylib` makes a shared\n\
             library. For a board without an operating system, here a Cortex-M4:\n\n    \
             cargo rustc --lib --release --no-default-features --features capi,weights,panic-handler,dsp \\\n        \
             --crate-type staticlib --target thumbv7em-none-eabihf\n    \
             arm-none-eabi-gcc -mcpu=cortex-m4 -mthumb -mfloat-abi=hard -mfpu=fpv4-sp-d16 -Wl,--gc-sections \\\n        \
             c/main.c -Iinclude target/thumbv7em-none-eabihf/release/lib{library}.a …\n\n\
             What starts the board and prints there, and its linker script, are the board's own. The feature `dsp` is for\n\
             Cortex-M4, M7, M33 and larger: networks of 8-bit integers are faster and smaller with it. On a Cortex-M55 or\n\
             M85, `helium` is faster still, with the target `thumbv8m.main-none-eabihf` and\n\
             `RUSTFLAGS=\"-C target-cpu=cortex-m55\"`. On a RISC-V with vectors, the feature is `rvv`.\n\n\
             ## Licence\n\n\
             The models' code is yours. The kernels and the code around the models are under MIT or Apache-2.0, at\n\
             your choice.\n"
        );
        text
    }

    /// What the crate is, how a program calls it, and what memory it takes.
    fn front(&self) -> String {
        let plan = self.plan;
        let example = example(&self.library_name(), self.models);
        let others: Vec<String> =
            self.models.iter().skip(1).map(|model| format!("`{}`", model.module)).collect();
        let others = match &others[..] {
            [] => String::new(),
            [one] => format!("The module {one} has another model, which runs in the same arena.\n\n"),
            _ => format!(
                "The modules {} have more models, which run in the same arena.\n\n",
                others.join(", ")
            ),
        };
        let regions = self.regions().iter().map(|NamedRegion { region, .. }| {
            format!("| of these in `{}`, whose limit is {} | {} |\n", region.name, region.limit, region.bytes)
        });
        let regions: String = regions.collect();
        let of_stack = |region: &&Region| region.stack > 0;
        let stack = plan.regions.iter().find(of_stack).map_or_else(String::new, |region| {
            format!("| stack, estimated, beside it in `{}` | {} |\n", region.name, region.stack)
        });
        format!(
            "# {}\n\n\
             Written by csdfc {} from a plan of `{}`. It needs nothing but Rust 1.89{}.\n\n\
             With this folder among the dependencies in your `Cargo.toml` (`{} = {{ path = \"…\" }}`), a program runs a\n\
             frame so:\n\n```rust\n{example}```\n\n{others}{}\
             | memory | bytes |\n| --- | ---: |\n\
             | parameters | {} |\n| weights as packed | {} |\n| arena: buffers and workspace | {} |\n\
             {regions}{stack}| inputs that the plan reads in place, held by the caller | {} |\n| outputs held by the caller | {} |\n\n",
            self.name,
            plan.csdfc,
            one_line(&plan.application),
            if self.image_files {
                ", and for the feature `image` of\nits program the crate of that name"
            } else {
                ""
            },
            self.name,
            self.on_processors(),
            plan.memory.parameters,
            self.packed.weights.len(),
            plan.memory.arena,
            plan.memory.external.inputs,
            plan.memory.external.outputs,
        )
    }

    /// On partitions that are planned for another processor than the CPU.
    fn on_processors(&self) -> String {
        let elsewhere = self.plan.partitions.iter().filter(|partition| partition.processor != "cpu");
        let all: Vec<String> = elsewhere
            .map(|partition| {
                format!("`{}` for the {}", one_line(&partition.name), one_line(&partition.processor))
            })
            .collect();
        match all.is_empty() {
            true => String::new(),
            false => format!(
                "Partitions of the plan are planned for other processors: {}. The crate runs all of them on the CPU, so the\n\
                 plan's frame rates are not the crate's.\n\n",
                all.join(", ")
            ),
        }
    }

    fn on_the_program(&self) -> String {
        let (name, mut all, mut folders) = (&self.name, String::new(), "");
        let several = self.models.len() > 1;
        if several {
            let names: Vec<String> =
                self.models.iter().map(|model| one_line(&model.cnn().cnn.name)).collect();
            all = format!(
                "    target/release/{name} INPUT.npy … --frames 100 --output DIR\n    \
                 target/release/{name} INPUT.npy … --turns {}\n\n\
                 With the name of a CNN, the program runs this CNN. Without a name, it runs all of them: {}.\n\
                 `--turns` runs CNNs in the given order, each for the given number of frames, like an application\n\
                 that chooses a CNN by its input. The CNNs share one arena, and each turn makes its model anew.\n",
                names.join(","),
                program::turns(self.models),
            );
            folders = ", in a folder for each CNN";
        }
        let cnn = if several { "CNN " } else { "" };
        let store = if self.is_streamed() { "store.bin " } else { "" };
        let images = if self.image_files { ON_IMAGES } else { "" };
        format!(
            "## The program\n\n    cargo build --release\n    \
             target/release/{name} {cnn}INPUT.npy --frames 100 --output DIR\n{all}\n\
             It takes one file for each input, in the order and of the dimensions below, prints frames per second and\n\
             the peak memory of the process, and writes the outputs of the last frame{folders}. Each file is named\n\
             after its output: every byte but letters, digits and `._-` becomes `%` and two hexadecimal digits, so `/`\n\
             becomes `%2F`. A name that would be longer than 240 bytes is cut off and ends in `~` and a hash.\n\n\
             Files whose names do not end in `.npy` are raw: frame after frame, without a header, rows from the top.\n\
             They are read and written row by row. `-` is standard input or output:\n\n    \
             … | target/release/{name} {cnn}--input - --output - --bytes | …\n\n\
             `--help` says how to name inputs and outputs, and what `--bytes` does.\n\n\
             {images}\
             If the program is built with `--features trace`, its option `--trace FILE` writes when each layer\n\
             fired, for <https://ui.perfetto.dev>. If it is built with `RUSTFLAGS=\"-C target-feature=+crt-static\"`\n\
             on Linux, it is linked statically, and takes about 1 MB less memory.\n\n\
             ## On a Jetson, or another 64-bit Arm\n\n\
             On the PC, with Debian's or Ubuntu's `gcc-aarch64-linux-gnu` as the linker:\n\n    \
             rustup target add aarch64-unknown-linux-gnu\n    \
             export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUSTFLAGS=\"-C target-cpu=cortex-a57\"\n    \
             cargo build --release --target aarch64-unknown-linux-gnu\n    \
             scp target/aarch64-unknown-linux-gnu/release/{name} {store}INPUT.npy board:\n    \
             ssh board ./{name} {cnn}INPUT.npy --frames 100 --output out\n\n\
             The program is linked statically (`.cargo/config.toml`), so it runs on boards with an old system. The\n\
             processor is `cortex-a57` on a TX1, TX2 or Nano, `carmel` on a Xavier, `cortex-a78ae` on an Orin,\n\
             `cortex-a72` on a Raspberry Pi 4. Without the line with `target-cpu` the program runs on any 64-bit Arm.\n\
             `RUSTFLAGS` would replace the configuration, static linking included. `qemu-aarch64 -cpu cortex-a57 {name} …`\n\
             runs it on the PC, though not at the board's speed. Built on the board itself it needs nothing but Rust.\n\n"
        )
    }

    fn on_the_library(&self) -> String {
        let library = self.library_name();
        let mut text = "## The library\n\n".to_owned();
        for model in self.models {
            let several = self.models.len() > 1;
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
            if model.batch() > 1 {
                let _ = write!(
                    text,
                    "A call takes {} frames (`BATCH`): `infer_batch` runs them one after another, with `BatchInputs` and\n\
                     `BatchOutputs`, which have an array of frames for each input and output. Files `.npy` of the program\n\
                     have them along their first dimension. In C, call the function of a frame for each of them.\n\n",
                    model.batch()
                );
            }
        }
        let _ = write!(
            text,
            "Images are rows of pixels of channels (HWC), whatever the order of the model's dimensions: element\n\
             `(y * width + x) * channels + c`. `Model::new` takes the arena: `Arena::take()`, or one of your own.\n\
             `infer` runs whole frames. `infer_rows` takes rows as they come, from a camera for instance.\n\n\
             Without the default features the crate is `no_std` and allocates nothing. Feature `weights` embeds\n\
             `weights.bin`; without it `Model::with_weights` takes its bytes, from flash or a mapped file. Feature\n\
             `std` chooses vector code at start instead of when the crate is compiled.\n\n",
        );
        text + &self.on_boards()
    }

    /// What it takes on microcontrollers.
    fn on_boards(&self) -> String {
        let mut text = String::from(
            "## On a board\n\n\
             Beside the weights and the arena, a board holds the code, and a frame takes some stack. The table has about how\n\
             many bytes these are, by what each kernel was measured to take. With `opt-level = \"s\"` in your program's\n\
             profile, the code is smaller and slower.\n\n\
             | processor | target | code | with `s` | stack |\n| --- | --- | ---: | ---: | ---: |\n",
        );
        let mut uncounted = BTreeSet::new();
        for footprint in footprints(&KernelCalls::of_models(self.models)) {
            let Footprint { processors, target, code, small_code, stack, .. } = footprint;
            let _ = writeln!(text, "| {processors} | `{target}` | {code} | {small_code} | {stack} |");
            uncounted.extend(footprint.uncounted);
        }
        if !uncounted.is_empty() {
            let all: Vec<String> = uncounted.into_iter().map(|kernel| format!("`{kernel}`")).collect();
            let _ = write!(text, "\nNot counted, since they were not measured: {}.\n", all.join(", "));
        }
        text + "\n"
    }

    fn on_regions(&self) -> String {
        let names: Vec<&str> = self.regions().iter().map(|named| named.name.as_str()).collect();
        let sections = names.iter().map(|name| format!("`.{name}`")).collect::<Vec<String>>().join(", ");
        let mut text = format!(
            "## Memory regions\n\n\
             The arena lies in several memory regions. For a board without an operating system, `Arena::take()` and\n\
             `c/main.c` have a static for each, in the sections {sections}. The linker script places them:\n\n    \
             SECTIONS {{\n"
        );
        for name in &names {
            let memory = name.to_uppercase();
            let _ = writeln!(text, "      .{name} (NOLOAD) : {{ *(.{name} .{name}.*) }} > {memory}");
        }
        let fields = names.join(", ");
        let _ = write!(
            text,
            "    }} INSERT AFTER .bss;\n\n\
             This may stand in the `memory.x` of `cortex-m-rt`, below a `MEMORY` with these memories. What starts the board\n\
             need not clear them, since whoever takes the arena does. But an external memory must be ready by then.\n\n\
             An arena may also be made of memory of your own, with any content: `Arena {{ {fields} }}`, each a\n\
             `&'static mut Region` of the region's number of bytes.\n\n"
        );
        text
    }

    fn on_streamed_weights(&self) -> String {
        let mut text = format!(
            "## Streamed weights\n\n\
             {} bytes of weights are not in memory. A frame reads them from `store.bin`, tile by tile, into\n\
             blocks of the arena, when the plan says so. `Model::new` takes the store as its second argument:\n\n\
             - `Loader::open(path)`, with `std`, reads the file while kernels run, by a thread of its own. If the\n  \
             model would only wait, the model's thread reads, too. `Loader::new` does the same with a `ReadAt` of\n  \
             yours. It uses one thread, unless your `ReadAt` has `another`.\n\
             - `Blocking::new(reader)` calls a `ReadAt` of yours and waits for it.\n\
             - `InPlace::new(bytes)` has all bytes in flash or in a mapped file. It neither reads nor copies.\n\
             - Your own implementation of `Store` starts a load, by DMA for instance, and the model waits for it.\n\n\
             The program reads `store.bin` in the current folder, or what `--store FILE` names. Every tile has a\n\
             checksum (CRC-32C), which is compared before the tile is used. If a load fails or brings other bytes,\n\
             `infer` returns an error, and the model can run the next frame.\n\n",
            self.packed.store.len()
        );
        if self.models.iter().any(|model| model.streamed_stages().len() > 1) {
            text += "If several stages of a pipeline read weights, each has a store of its own: `Model::new` takes an array of\n\
                     them.\n\n";
        }
        text
    }

    /// On models, stages and workers that run at the same time.
    fn on_threads(&self) -> String {
        let mut text = String::new();
        for cnns in self.models.first().map(|model| together(model.resolved)).unwrap_or_default() {
            let modules: Vec<&str> = cnns.iter().map(|&c| self.models[c].module.as_str()).collect();
            let (all, shares) = (modules.join("_and_"), modules.join(", "));
            let _ = write!(
                text,
                "`let ({shares}) = arena.{all}()`, `Arena::{all}`, splits the arena among models that the plan runs at the\n\
                 same time. `Model::new` of each takes its share. Each may run on a thread of its own.\n\n"
            );
        }
        if self.has_stages() {
            text += "Partitions that the plan runs at the same time are stages of a pipeline. With `std`, `Model::pipeline` runs\n\
                     each on a thread of its own. Between stages there are rings of rows in the arena, whose counts the stages\n\
                     hand over without a lock. Frames stay in order. When `pipeline` returns, no frame is\n\
                     left in the rings, so the arena is free. `infer` lets the stages take turns. A stage that is\n\
                     planned for a GPU is one more thread of the CPU here. If a stage panics, the others end, and the\n\
                     error is returned.\n\n";
        }
        if self.plan.threads > 1 {
            let _ = write!(
                text,
                "With `std`, {} workers share the rows of a firing, or the channels of a convolution. They live as long as the\n\
                 model, and the output has the same bytes as that of one worker. Without `std` there is one.\n\n",
                self.plan.threads
            );
        }
        text
    }
}
