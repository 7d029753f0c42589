//! The command line. Nothing else knows that it is read by `clap`.

pub mod accuracy;
pub mod analyze;
pub mod budget;
pub mod front;
pub mod input;
pub mod load;
pub mod memory;
pub mod offload;
pub mod pack;
pub mod pages;
pub mod profile;
pub mod quantize;
pub mod report;
pub mod run;
pub mod select;
pub mod state;
pub mod stream;
mod values;

use std::ffi::OsString;
use std::io::IsTerminal;
use std::path::PathBuf;

use clap::{ArgAction, Args, Parser, Subcommand, ValueEnum};
use csdfc_input::app::Origin;
use csdfc_input::app::rates::{FpsFloor, LatencyLimit};
use csdfc_input::app::spec::{AppSpec, CnnSpec, Method, Prefer, Primitives, RowsSpec, WeightsPlace};
use csdfc_input::device;
use csdfc_network::pass::Precision;
use csdfc_network::suggest::clip;
use csdfc_plan::plan::StorageModel;
use csdfc_planner::strategy::Strategy;

use self::budget::SearchBudget;
use self::load::LoadArgs;

/// The `csdfc` command.
#[derive(Debug, Parser)]
#[command(
    name = "csdfc",
    bin_name = "csdfc",
    version,
    about = "Plans the memory of CNNs on edge boards.",
    max_term_width = 100
)]
#[command(after_help = "Examples:
  csdfc inspect model.onnx                            layers, shapes and what they need
  csdfc plan app.ron --mem 8MB --fps 30 -o plan.json  a plan in 8 000 000 bytes at 30 frames per second
  csdfc check plan.json                               prove the plan safe by replaying it
  csdfc analyze graph.xml --pareto                    storage and throughput of a dataflow graph

Exit codes: 0 done, 1 an error in the input or the command line, 2 the answer is no (constraints not met, plan refused),
3 a bug in csdfc, 130 interrupted before there was a result.")]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
    /// Options of every command.
    #[command(flatten)]
    pub global: Global,
}

impl Cli {
    /// Reads the arguments of a call. The first one is the program's name.
    ///
    /// # Errors
    /// The exit code, if the arguments are wrong or ask for help or the version. The message has then been printed.
    pub fn read(arguments: impl IntoIterator<Item = OsString>) -> Result<Self, u8> {
        Cli::with_words(arguments).map_err(|error| {
            // Help and version are answers. If they cannot be printed, nobody is left to tell.
            let _ = error.print();
            u8::from(error.use_stderr())
        })
    }

    fn with_words(arguments: impl IntoIterator<Item = OsString>) -> Result<Self, clap::Error> {
        let words: Vec<OsString> = arguments.into_iter().collect();
        let mut cli = Cli::try_parse_from(with_negative_values(&words))?;
        if let Command::Plan(args) = &mut cli.command {
            let given = words.iter().skip(1).map(|word| word.to_string_lossy().into_owned());
            args.words = std::iter::once("csdfc".to_owned()).chain(given).collect();
        }
        Ok(cli)
    }

    /// The same for another program.
    ///
    /// # Errors
    /// What is wrong with the arguments.
    pub fn parsed(arguments: impl IntoIterator<Item = OsString>) -> Result<Self, String> {
        Cli::with_words(arguments).map_err(|error| {
            let text = error.render().to_string();
            // Then come the usage and where to read more.
            let what = text.split("\n\nUsage:").next().unwrap_or_default();
            let what = what.split("\n\nFor more information").next().unwrap_or_default();
            what.trim_start_matches("error: ").trim_end().to_owned()
        })
    }
}

/// `--mem -5MB` as `--mem=-5MB`. No option begins with a digit, so it is a value, and the error says what is wrong with it.
fn with_negative_values(words: &[OsString]) -> Vec<OsString> {
    let mut joined: Vec<OsString> = Vec::with_capacity(words.len());
    for word in words {
        let is_negative = word.to_str().is_some_and(|word| {
            word.strip_prefix('-').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
        });
        match joined.last_mut() {
            Some(option)
                if is_negative
                    && option
                        .to_str()
                        .is_some_and(|o| o.len() > 2 && o.starts_with("--") && !o.contains('=')) =>
            {
                option.push("=");
                option.push(word);
            }
            _ => joined.push(word.clone()),
        }
    }
    joined
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// List the layers of a model or application: shapes, multiplications, parameters, memory
    #[command(after_help = "Examples:
  csdfc inspect model.onnx
  csdfc inspect builtin:mobilenet_v2 --format json
  csdfc inspect builtin:mobilenet_v2 --onnx mobilenet_v2.onnx
  csdfc inspect model.onnx --shape image=1,3,224,224")]
    Inspect(InspectArgs),
    /// Plan the memory of an application
    #[command(after_help = "Examples:
  csdfc plan model.onnx --mem 2MB
  csdfc plan app.ron --fps cnn1=71 --fps cnn2=30 --latency cnn2=40ms -o plan.json
  csdfc plan app.ron --mem min --prefer memory
  csdfc plan builtin:resnet50 --rows conv1=4,layer1.0.conv1=2 --storage edges
  csdfc plan app.ron --pareto front.json && csdfc plan app.ron --from front.json --pick 3

A size is a number of bytes or has a unit: 8MB is 8 000 000 bytes, 8MiB is 8 x 2^20.
Options take precedence over the application file. Ctrl-C ends the search and prints the best plan so far; a second
Ctrl-C ends csdfc.")]
    Plan(Box<PlanArgs>),
    /// Prove a plan safe by replaying it: nothing is read before it is written or after it is overwritten
    #[command(after_help = "Examples:
  csdfc check plan.json
  csdfc plan app.ron --format json | csdfc check -

The models must be where the plan says, because every layer is compared with its model.")]
    Check(CheckArgs),
    /// Run a plan in this process, in memory of exactly the planned size
    #[command(after_help = "Examples:
  csdfc run plan.json --input image=x.npy --output results
  csdfc run plan.json --random 1 --frames 20 --profile
  csdfc run plan.json --input image=x.npy --compare scores=reference.npy
  csdfc run plan.json --input photo.jpg --boxes --labels coco.txt --format json
  ffmpeg -i in.mp4 -f rawvideo -pix_fmt rgb24 - | csdfc run plan.json --input - --output - --bytes > frames.rgb

A raw file is one whose name does not end in .npy. It holds frame after frame, without a header: rows from the top,
images as pixels of channels, floats of 32 bits in little-endian order, or the bytes that an input takes. It is read and
written by rows, so no frame is held, unless the plan reads an input as a whole, or a camera has planes.

With several CNNs, names are CNN/NAME, and each CNN has a folder of its own. A tensor's file is its name and `.npy`.
Every byte but letters, digits, `.`, `_` and `-` becomes `%` and two hexadecimal digits: the file of `a/b` is a%2Fb.npy.
A name that would be longer than 240 bytes is cut off and ends in `~` and a hash.

The outputs that `--boxes` reads, of N boxes, with scores from 0 to 1 of C classes:
  1 x (4+C) x N             middle x and y, width, height, scores of classes: YOLOv8 and later
  1 x N x (5+C)             the same, with the score of an object before those of classes: YOLOv5, YOLOX
  1 x N x 6                 x1, y1, x2, y2, score, class, of which the network has left out overlaps: YOLOv10
  1 x N x 4 and 1 x N x C   x1, y1, x2, y2, and scores, of which class 0 is the background: SSD
  1 x N x 4 and three lists y1, x1, y2, x2; classes, scores (1 x N), how many (1): TFLite_Detection_PostProcess
  R x 3                     of NonMaxSuppression, if its boxes and scores are outputs, too
It leaves out scores below 0.25 and, in the first, second and fourth, boxes that overlap a better one of their class by
more than 0.45 of their union. Coordinates stay in the network's units: pixels of the input, or parts of its width.")]
    Run(run::RunArgs),
    /// Draw a plan as a page for a browser: what lies where and when, the peak, processors, layers
    #[command(after_help = "Examples:
  csdfc report plan.json -o report.html
  csdfc report plan.json --front front.json -o report.html
  csdfc report large.json small.json -o comparison.html
  csdfc report plan.json --trace trace.json

The page is one file, which needs no network. The times in it are those that the plan states of its layers.")]
    Report(report::ReportArgs),
    /// Write a plan as a Rust crate that needs nothing but the compiler
    #[command(after_help = "Examples:
  csdfc emit plan.json -o crate
  csdfc emit plan.json -o crate --crate-name my-net && cargo build --release --manifest-path crate/Cargo.toml
  csdfc emit retrained.json --update weights.update --number 2")]
    Emit(EmitArgs),
    /// Analyse a dataflow graph: consistency, deadlock, throughput, the smallest storage
    #[command(after_help = "Examples:
  csdfc analyze graph.xml --pareto
  csdfc analyze graph.xml --at 1/40 --format json
  csdfc analyze builtin:resnet50 --rows all --bytes --budget 10s

A throughput is iterations of the repetition vector per unit of time. In a graph of layers each firing takes one unit.
Totals leave out channels from an actor to itself. The exit code is 2 if the graph deadlocks, if a throughput cannot be
reached, or if the budget ends before there is an answer.")]
    Analyze(analyze::AnalyzeArgs),
    /// Plan the steps of a convolution on an accelerator whose memory cannot hold the layer
    #[command(after_help = "Examples:
  csdfc offload --input 32x32 --filter 5x5x6 --group 4
  csdfc offload --input 5x5x2 --filter 3x3x2 --pe 120 --mem-elements 100 --strategy zigzag --format json
  csdfc offload model.onnx --accelerator vta.ron

Durations are the paper's Eq. 15: cycles to load pixels and to compute steps.")]
    Offload(Box<offload::OffloadArgs>),
    /// Pack buffers of given lifetimes into one memory, and prove that no packing is smaller
    #[command(after_help = "Examples:
  csdfc pack buffers.csv
  csdfc pack buffers.csv --capacity 1MiB --budget 10s -o packed.csv

The file has MiniMalloc's format: id,lower,upper,size[,alignment,gaps,offset]. Each line is a buffer, which is in
use from lower until just before upper. In a gap (8-10) it is not in use, or only some of its bytes are (8-10@0:512).
A buffer with an offset lies there. With --capacity, exit code 2 says that the buffers do not fit. csdfc then names
some buffers that alone do not fit, if it can prove this.")]
    Pack(pack::PackArgs),
    /// Select a primitive and layouts for each layer of a CNN, from a device profile or a table of costs
    #[command(after_help = "Examples:
  csdfc select model.onnx --device host --objective time --mem 40MB
  csdfc select model.onnx --device host --instance-out costs.json
  csdfc select --instance costs.json
  csdfc select --instance costs.json --mem 4MiB --format json
  csdfc select --instance costs.json --objective workspace --max-time 5ms
  csdfc select --instance costs.json --front

The table lists layers and edges:
  {\"layers\": [{\"name\", \"kind\": \"conv\" or \"pass\", \"options\": [{\"primitive\", \"in\", \"out\", \"time\", \"memory\"}]}],
   \"edges\": [{\"from\", \"to\", \"conversions\": [{\"in\", \"out\", \"time\"}]}], \"memory_budget\", \"time_budget\"}
Times are in us, memories in KiB, layouts have names such as CHW. A layer of kind pass has an option for each layout,
and keeps it. A tensor that is written in one layout and read in another is converted, perhaps by several conversions
in turn.
The exit code is 2 if no selection keeps to a budget, and csdfc then prints the smallest budget that is possible. The
exit code is also 2 if no conversions lead from one layout to another.")]
    Select(Box<select::SelectArgs>),
    /// Measure how long each layer takes on this machine, with each primitive that computes it
    #[command(after_help = "Examples:
  csdfc profile model.onnx && csdfc plan model.onnx --device host
  csdfc profile app.ron --device-out board.ron --threads 4
  csdfc profile builtin:mobilenet_v2 --only hwc-hwc
  csdfc profile app.ron --emit measure && cargo build --release --manifest-path measure/Cargo.toml

csdfc keeps what it has measured: a profile grows with each application, and after Ctrl-C the next call goes on where
the last one stopped. Nothing else should run on the machine.")]
    Profile(profile::ProfileArgs),
    /// Quantize a model to 8-bit integers, and report the error of each layer
    #[command(after_help = "Examples:
  csdfc quantize model.onnx -o model.int8.onnx --calibrate frames
  csdfc quantize model.onnx -o model.int8.onnx --calibrate a.npy b.npy --ranges mse --keep-above 0.1
  csdfc quantize builtin:mobilenet_v2 -o mobilenet_v2.int8.onnx --random 8

A frame is a .npy file of float32 in the model's dimensions. If the model has several inputs, it is a folder with INPUT.npy
for each. A folder of frames gives all of them, by name. Tensors become unsigned 8-bit integers with one scale and one zero
point, weights signed ones with a scale for each output channel, biases 32-bit integers. Other runtimes run the file too.
An error is relative: the norm of all changes to a tensor, divided by the norm of the tensor. A layer's own error is the
error that it has if only this layer computes on integers.")]
    Quantize(quantize::QuantizeArgs),
    /// Print a script with which a shell completes csdfc's arguments
    #[command(after_help = "Examples:
  csdfc completions bash > ~/.local/share/bash-completion/completions/csdfc
  csdfc completions zsh > ~/.zfunc/_csdfc
  csdfc completions fish > ~/.config/fish/completions/csdfc.fish")]
    Completions(pages::CompletionsArgs),
    /// Write the manual pages, one for each command
    #[command(after_help = "Examples:
  csdfc man -o ~/.local/share/man/man1 && man csdfc-plan")]
    Man(pages::ManArgs),
}

/// Options of every command.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Messages")]
pub struct Global {
    /// Print more on standard error: -v what csdfc does, -vv also how long each pass takes
    #[arg(short, long, action = ArgAction::Count, global = true)]
    pub verbose: u8,
    /// Print only errors on standard error
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub quiet: bool,
    /// Format of the messages on standard error; the variable CSDFC_LOG filters them
    #[arg(long, value_enum, default_value_t, global = true, value_name = "FORMAT")]
    pub log_format: LogFormat,
    /// When to use colors
    #[arg(long, value_enum, default_value_t, global = true, value_name = "WHEN")]
    pub color: Color,
}

/// Form of the log.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// Lines for people.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

/// When to use colors.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum Color {
    /// Where standard error is a terminal and NO_COLOR is not set.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// Arguments of `csdfc inspect`.
#[derive(Debug, Clone, Args)]
pub struct InspectArgs {
    /// FILE.onnx, FILE.tflite, builtin:NAME, an application file, or `-` for an application on standard input
    #[arg(value_name = "MODEL|APP")]
    pub model: String,
    /// Options of the model.
    #[command(flatten)]
    pub load: LoadArgs,
    /// Write the model as an ONNX file too, with the layers that it has before fusion; a built-in network with the weights
    /// that `csdfc run` draws for it
    #[arg(long, value_name = "FILE")]
    pub onnx: Option<PathBuf>,
    /// What to print
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}

/// Arguments of `csdfc plan`.
#[derive(Debug, Clone, Args)]
pub struct PlanArgs {
    /// An application file, `-` for one on standard input, FILE.onnx, FILE.tflite, or builtin:NAME. Several models are CNNs
    /// that take turns in one arena
    #[arg(value_name = "APP|MODEL", required = true)]
    pub app: Vec<String>,
    /// How much memory there is.
    #[command(flatten)]
    pub memory: memory::MemoryArgs,
    /// Fewest frames per second, of every CNN or of one
    #[arg(long, value_name = "N|CNN=N")]
    pub fps: Vec<FpsFloor>,
    /// Longest time from a frame's first input to its last output (40ms), of every CNN or of one
    #[arg(long, value_name = "TIME|CNN=TIME")]
    pub latency: Vec<LatencyLimit>,
    /// How storage is shared: one buffer per edge, as in the paper, or one ring of rows per tensor
    #[arg(long, value_name = "edges|tensors", value_parser = storage)]
    pub storage: Option<StorageModel>,
    /// Rows per firing: no layer by parts, every layer row by row, or the rows of each layer
    #[arg(long, value_name = "none|all|[CNN/]LAYER=R,…", value_parser = rows)]
    pub rows: Option<RowsSpec>,
    /// How to search for the plan; the paper's methods need storage model `edges`
    #[arg(long, value_parser = values::method(), conflicts_with = "rows")]
    pub method: Option<Method>,
    /// Options of the models.
    #[command(flatten)]
    pub load: LoadArgs,
    /// How inputs are handed over.
    #[command(flatten)]
    pub input: input::InputArgs,
    /// Options of streams.
    #[command(flatten)]
    pub stream: stream::StreamArgs,
    /// Options of states.
    #[command(flatten)]
    pub state: state::StateArgs,
    /// Which plan to take of those that meet the constraints
    #[arg(long, value_parser = values::preference())]
    pub prefer: Option<Prefer>,
    /// Which primitives compute the layers. auto, the default: on a device that was measured, csdfc chooses the
    /// primitives that make the best plan, together with layouts, rows and segments. fixed: the first primitive that
    /// computes a layer. NAME: a primitive, or the best one of a family (winograd), for each layer that it can compute
    #[arg(long, value_name = "auto|fixed|NAME", value_parser = values::primitives)]
    pub primitives: Option<Primitives>,
    /// Largest error of a primitive that csdfc chooses for its speed, as a share of the largest sum of absolute
    /// products: 1e-4 by default
    #[arg(long, value_name = "SHARE")]
    pub max_primitive_error: Option<f64>,
    /// Precision of the weights and tensors of every CNN; with auto, csdfc chooses one for each layer. Precisions that
    /// the application states for single layers stay as they are
    #[arg(long, value_parser = values::precision())]
    pub precision: Option<Precision>,
    /// What may be lost.
    #[command(flatten)]
    pub accuracy: accuracy::AccuracyArgs,
    /// Where weights are kept; an application file can keep the weights of some layers in memory (`resident`)
    #[arg(long, value_parser = values::weights())]
    pub weights: Option<WeightsPlace>,
    /// In place of the plan, print each primitive that could compute a layer, its time and memory, and why csdfc chose
    /// it or did not choose it
    #[arg(long, value_name = "[CNN/]LAYER")]
    pub explain: Option<String>,
    /// Seed of the search's random choices [default: that of the file, or 1]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// How long to search: a time (10s, 500ms), or a number of choices for each CNN, which gives the same plan on every
    /// machine
    #[arg(long, value_name = "TIME|CHOICES")]
    pub budget: Option<SearchBudget>,
    /// Plan without these strategies, to see what they are worth; docs/strategies has a table
    #[arg(long, value_name = "NAME,...", value_parser = values::strategy(), value_delimiter = ',', hide_short_help = true)]
    pub without: Vec<Strategy>,
    /// Workers that share each firing [default: those of the file, or 1]
    #[arg(long, value_name = "N")]
    pub threads: Option<usize>,
    /// Name or path of the device profile [default: that of the file, or generic]
    #[arg(long, value_name = "NAME|FILE")]
    pub device: Option<String>,
    /// Fronts.
    #[command(flatten)]
    pub front: front::FrontArgs,
    /// Write the plan to this file: RON if it ends in .ron, JSON otherwise, `-` for standard output
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// What to print: a table, or the plan itself
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
    /// The words of the whole command line, with which other commands are suggested.
    #[arg(skip)]
    pub words: Vec<String>,
}

/// Arguments of `csdfc check`.
#[derive(Debug, Clone, Args)]
pub struct CheckArgs {
    /// The plan, JSON or RON; `-` for standard input
    pub plan: PathBuf,
    /// What to print
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}

/// Arguments of `csdfc emit`.
#[derive(Debug, Clone, Args)]
pub struct EmitArgs {
    /// The plan, JSON or RON; `-` for standard input
    pub plan: PathBuf,
    /// Folder of the crate; csdfc leaves other files in it alone
    #[arg(short, long, value_name = "DIR", required_unless_present = "update")]
    pub output: Option<PathBuf>,
    /// Name of the crate; by default, the name of the application
    #[arg(long, value_name = "NAME", requires = "output")]
    pub crate_name: Option<String>,
    /// Let the program also take PNG and JPEG files where an input takes pixels, by the crate `image`; otherwise the crate needs
    /// no other
    #[arg(long, requires = "output")]
    pub image_files: bool,
    /// Write the weights alone: a crate that was emitted of the same plan with other weights takes them from this file, or
    /// from flash
    #[arg(long, value_name = "FILE")]
    pub update: Option<PathBuf>,
    /// Number of the update; the higher, the newer
    #[arg(long, value_name = "NUMBER", requires = "update", default_value_t = 1)]
    pub number: u64,
}

/// Form of a result.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people.
    #[default]
    Text,
    /// JSON.
    Json,
    /// RON.
    Ron,
}

impl Global {
    /// Whether standard error gets colors.
    pub fn color(&self) -> bool {
        match self.color {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => {
                std::io::stderr().is_terminal()
                    && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
            }
        }
    }
}

/// The CNN of an input or output `[CNN/]NAME`, and its own name. `form` is what follows `CNN/` in a call with `option`.
///
/// # Errors
/// When there are several CNNs, and none is named.
fn cnn_of<'s>(
    spec: &'s mut AppSpec,
    name: &str,
    option: &str,
    form: &str,
) -> Result<(&'s mut CnnSpec, String), crate::error::Error> {
    let own = |cnn: &CnnSpec| Some(name.strip_prefix(&cnn.name())?.strip_prefix('/')?.to_owned());
    let single = spec.cnns.len() == 1;
    let named = spec.cnns.iter().enumerate().find_map(|(c, cnn)| Some((c, own(cnn)?)));
    let found = named.or_else(|| single.then(|| (0, name.to_owned())));
    let found = found.and_then(|(c, own)| Some((spec.cnns.get_mut(c)?, own)));
    found.ok_or_else(|| crate::error::Error::Input {
        message: format!("{option} {}: the application has several CNNs, and none is named", clip(name)),
        help: Some(format!("say which CNN's it is: {option} CNN/{form}")),
    })
}

impl PlanArgs {
    /// Writes the options over what the application file says.
    ///
    /// # Errors
    /// As [`LoadArgs::apply`].
    pub fn apply(&self, spec: &mut AppSpec, origin: &mut Origin) -> Result<(), crate::error::Error> {
        self.load.apply(spec, origin)?;
        self.input.apply(spec, origin)?;
        self.stream.apply(spec, origin)?;
        self.state.apply(spec, origin)?;
        self.memory.apply(spec, origin);
        spec.constraints.fps.write_over(&self.fps);
        origin.replaced.extend(self.fps.iter().map(|_| ("fps", "--fps")));
        spec.constraints.latency.write_over(&self.latency);
        origin.replaced.extend(self.latency.iter().map(|_| ("latency", "--latency")));
        if let Some(method) = self.method {
            spec.search.method = Some(method);
            spec.rows = RowsSpec::Default;
            spec.storage = spec.storage.filter(|_| !method.is_the_papers());
            origin.replaced.push(("method", "--method"));
        }
        if let Some(storage) = self.storage {
            spec.storage = Some(storage);
        }
        if let Some(rows) = &self.rows {
            spec.rows = rows.clone();
            spec.search.method = None;
            origin.replaced.push(("rows", "--rows"));
        }
        if self.prefer.is_some() {
            spec.prefer = self.prefer;
        }
        if let Some(primitives) = self.primitives {
            spec.primitives = primitives;
        }
        apply_max_primitive_error(self.max_primitive_error, spec, origin);
        if let Some(precision) = self.precision {
            spec.cnns.iter_mut().for_each(|cnn| cnn.precision = precision);
            origin.replaced.push(("precision", "--precision"));
        }
        self.accuracy.apply(spec, origin)?;
        if let Some(weights) = self.weights {
            spec.weights = weights;
            origin.replaced.push(("weights", "--weights"));
        }
        if let Some(seed) = self.seed {
            spec.search.seed = seed;
        }
        if let Some(threads) = self.threads {
            spec.threads = threads;
            origin.replaced.push(("threads", "--threads"));
        }
        if let Some(device) = &self.device {
            spec.device = Some(device::from_here(device));
        }
        Ok(())
    }
}

/// Writes `--max-primitive-error` over what the application file says.
fn apply_max_primitive_error(given: Option<f64>, spec: &mut AppSpec, origin: &mut Origin) {
    if let Some(max_primitive_error) = given {
        spec.max_primitive_error = max_primitive_error;
        origin.replaced.push(("max_primitive_error", "--max-primitive-error"));
    }
}

fn storage(text: &str) -> Result<StorageModel, String> {
    match text {
        "edges" => Ok(StorageModel::Edges),
        "tensors" => Ok(StorageModel::Tensors),
        _ => Err("give `edges` (the paper's) or `tensors` (the default)".into()),
    }
}

fn rows(text: &str) -> Result<RowsSpec, String> {
    let layers = match text {
        "none" => return Ok(RowsSpec::None),
        "all" => return Ok(RowsSpec::All),
        layers => layers.split(','),
    };
    let mut bound = std::collections::BTreeMap::new();
    // A name may have commas: it ends with the next number.
    let mut name = String::new();
    for piece in layers {
        name += piece;
        match name.rsplit_once('=').and_then(|(layer, rows)| Some((layer, rows.trim().parse().ok()?))) {
            None => name.push(','),
            Some((layer, rows)) => {
                if bound.insert(layer.to_string(), rows).is_some() {
                    return Err(format!("`{}` is given twice", clip(layer)));
                }
                name.clear();
            }
        }
    }
    if !name.is_empty() {
        return Err("give `none`, `all`, or layers and their rows per firing: `conv1=4,cnn2/conv7=1`".into());
    }
    Ok(RowsSpec::Layers(bound))
}

#[cfg(test)]
mod tests;
