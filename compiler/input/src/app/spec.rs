//! The mirror of an `app.ron` (the guide, "Application files"): parsed, its names and units not yet bound.
//!
//! ```
//! use csdfc_input::app::{MemoryGoal, Origin, spec};
//!
//! let text = r#"(
//!     cnns: [(name: "digits", model: "builtin:lenet5")],
//!     constraints: (memory: "64kB", fps: 30, latency: "40ms"),
//!     threads: 2,
//! )"#;
//! let origin = Origin { name: "app.ron".into(), text: Some(text.into()), replaced: Vec::new() };
//! let spec = spec::parse(&origin)?;
//! assert_eq!(spec.constraints.memory, Some(MemoryGoal::Bytes(64_000)));
//! // The method is open until names are bound.
//! assert_eq!((spec.cnns[0].name().as_str(), spec.search.method), ("digits", None));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::path::PathBuf;

use csdfc_network::pass::Precision;
use csdfc_network::suggest;
use csdfc_plan::operator::{CameraLayout, ColorOrder};
use csdfc_plan::part::ModelPart;
use csdfc_plan::plan::StorageModel;
use ron::error::SpannedError;
use ron::extensions::Extensions;
use serde::Deserialize;

use super::fault::{AppError, Origin};
use super::locate::offset;
use super::name::default_name;
use super::primitive_name::PrimitiveName;
use crate::device::memory::Ram;
use crate::units::{MemoryGoal, Nanoseconds, Size, TimeError};

/// An application as its file states it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename = "application")]
pub struct AppSpec {
    /// Its name; the file's stem by default.
    #[serde(default)]
    pub name: Option<String>,
    /// The CNNs, at least one.
    pub cnns: Vec<CnnSpec>,
    /// J: which CNNs and partitions run at the same time. By default, each CNN runs alone.
    #[serde(default)]
    pub parallel: Vec<Vec<String>>,
    /// Name or path of the device profile; `generic` by default.
    #[serde(default)]
    pub device: Option<String>,
    /// What the plan must meet.
    #[serde(default)]
    pub constraints: ConstraintsSpec,
    /// Parameters of the search.
    #[serde(default)]
    pub search: SearchSpec,
    /// How storage is shared; the method decides by default.
    #[serde(default)]
    pub storage: Option<StorageModel>,
    /// Rows per firing.
    #[serde(default)]
    pub rows: RowsSpec,
    /// Whether batch norms and activations are folded into the layers before them.
    #[serde(default = "yes")]
    pub fuse: bool,
    /// Workers that share one firing.
    #[serde(default = "one")]
    pub threads: usize,
    /// Which primitives compute the layers.
    #[serde(default)]
    pub primitives: Primitives,
    /// The most that a primitive may err if it is chosen for its speed, as a share of the largest sum of absolute
    /// products.
    #[serde(default = "max_primitive_error")]
    pub max_primitive_error: f64,
    /// Where weights are while nothing reads them.
    #[serde(default)]
    pub weights: WeightsPlace,
    /// Layers, `CNN/LAYER` or `LAYER`, whose weights stay in memory while those of the others are streamed.
    #[serde(default)]
    pub resident: Vec<String>,
    /// Which of the plans that meet the constraints is best. By default, the method decides. It can be given on the
    /// command line only.
    #[serde(skip)]
    pub prefer: Option<Prefer>,
}

/// How to search for a plan. The first five methods are those of Minakova and Stefanov (2022), Table 12, and of the
/// works that it compares with. They need storage model `edges`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase", rename = "method")]
pub enum Method {
    /// No reduction: layer by layer, every edge in a buffer of its own.
    None,
    /// Layer by layer, buffers reused greedily within each CNN (Pisarchyk and Lee 2020, the paper's \[23\]). Partitions of
    /// a CNN run one after another.
    Reuse,
    /// Every layer row by row, every edge in a buffer of its own (Minakova and Stefanov 2020, the paper's \[17\]).
    Parts,
    /// Algorithm 2: a genetic search for the layers that go row by row, buffers reused in the whole application.
    Paper,
    /// Algorithm 2 and Algorithm 1 as they are printed: the search begins at random, and edges are visited in one order.
    #[serde(rename = "paper_printed")]
    PaperPrinted,
    /// No parts, all parts, and every prefix of the layers by parts.
    Simple,
    /// Chooses the rows per firing of each layer, and where segments end. It starts from the exact front of chains of
    /// segments, and goes on with a genetic search.
    #[default]
    Extended,
}

impl Method {
    /// Its name, as an application file and a plan give it.
    pub fn name(self) -> &'static str {
        match self {
            Method::None => "none",
            Method::Reuse => "reuse",
            Method::Parts => "parts",
            Method::Paper => "paper",
            Method::PaperPrinted => "paper_printed",
            Method::Simple => "simple",
            Method::Extended => "extended",
        }
    }

    /// Whether it is of the paper and so knows storage model `edges` only.
    pub fn is_the_papers(self) -> bool {
        match self {
            Method::None | Method::Reuse | Method::Parts | Method::Paper | Method::PaperPrinted => true,
            Method::Simple | Method::Extended => false,
        }
    }

    /// Whether the method searches. The other methods have a single plan.
    pub fn is_search(self) -> bool {
        match self {
            Method::None | Method::Reuse | Method::Parts => false,
            Method::Paper | Method::PaperPrinted | Method::Simple | Method::Extended => true,
        }
    }

    /// The storage model in which it plans if none is given.
    pub fn storage(self) -> StorageModel {
        if self.is_the_papers() { StorageModel::Edges } else { StorageModel::default() }
    }

    /// Which plan is best if nothing else is given: Algorithm 2 takes the least memory (line 14).
    pub fn prefer(self) -> Prefer {
        match self {
            Method::Paper | Method::PaperPrinted => Prefer::Memory,
            _ => Prefer::default(),
        }
    }
}

/// Which primitives compute the layers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase", rename = "primitives")]
pub enum Primitives {
    /// On a device that was measured, the primitives that make the best plan; otherwise the first of each layer.
    #[default]
    Auto,
    /// The first one that computes each layer.
    Fixed,
    /// This primitive, or one of this family, for each layer that it can compute, and the first primitive for all
    /// others: `named("winograd")`.
    Named(PrimitiveName),
}

/// Where weights are while nothing reads them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase", rename = "weights")]
pub enum WeightsPlace {
    /// In memory, if the constraints can be met that way. If memory has too little room for the weights, some are
    /// streamed.
    #[default]
    Auto,
    /// In memory, all the time.
    Resident,
    /// In a store, from which each frame reads them into the arena.
    #[serde(alias = "paged")]
    Streamed,
}

/// Which of the plans that meet the constraints is best.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Prefer {
    /// The plan with the most frames per second.
    #[default]
    Fps,
    /// The plan with the least memory.
    Memory,
}

/// One CNN.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename = "CNN")]
pub struct CnnSpec {
    /// Its name; the stem of the model's by default.
    #[serde(default)]
    pub name: Option<String>,
    /// `FILE.onnx` or `FILE.tflite` from the app file's folder, or `builtin:NAME`.
    pub model: String,
    /// Precision of all layers.
    #[serde(default)]
    pub precision: Precision,
    /// Precision of single layers.
    #[serde(default)]
    pub precisions: BTreeMap<String, Precision>,
    /// How much accuracy may be lost if a precision is `auto`.
    #[serde(default)]
    pub accuracy: AccuracySpec,
    /// The parts that the layers are cut into; by default one part that bears the CNN's name.
    #[serde(default)]
    pub partitions: Vec<PartitionSpec>,
    /// How the caller hands over inputs, by name.
    #[serde(default)]
    pub inputs: BTreeMap<String, InputSpec>,
    /// Shapes of inputs whose dimensions the model leaves open, by name.
    #[serde(default)]
    pub shapes: BTreeMap<String, Vec<usize>>,
    /// Inputs that are one number in every frame, by name. The network has them as constants.
    #[serde(default)]
    pub values: BTreeMap<String, f64>,
    /// Frames that a call takes, one after another; by default the batch of the model, or 1 if that is open.
    #[serde(default)]
    pub batch: Option<NonZeroUsize>,
    /// The part of the model that is planned: `(inputs: ["features"], outputs: ["boxes"])`.
    #[serde(default)]
    pub part: ModelPart,
    /// If its inputs never end, how they are cut into hops.
    #[serde(default)]
    pub stream: Option<StreamSpec>,
    /// Outputs that are inputs of the next frame: from an output's name to an input's.
    #[serde(default)]
    pub states: BTreeMap<String, String>,
}

/// How the inputs of a CNN that never end are cut into hops.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default, rename = "stream")]
pub struct StreamSpec {
    /// The inputs, each with the dimension that counts rows if it is given; all inputs if none is named.
    pub inputs: BTreeMap<String, Option<usize>>,
    /// Rows of a hop; the fewest that make whole rows of every tensor by default.
    pub hop: Option<usize>,
    /// Rows of the input over which layers look that need all of time.
    pub window: Option<usize>,
}

/// How much a CNN's outputs may err if csdfc chooses the precision of its layers, and on which frames this error is
/// measured.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default, rename = "accuracy")]
pub struct AccuracySpec {
    /// The allowance, 0 or above: the most that an output may err, relative to what it is with floats of 32 bits (see
    /// `csdfc-precision`).
    pub max_error: f64,
    /// Files and folders of frames, from the app file's folder.
    pub calibrate: Vec<PathBuf>,
    /// How many random frames there are in place of these; 4 if neither is given.
    pub random: Option<u64>,
}

impl Default for AccuracySpec {
    fn default() -> Self {
        AccuracySpec { max_error: 1e-2, calibrate: Vec::new(), random: None }
    }
}

/// One partition of a CNN.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename = "partition")]
pub struct PartitionSpec {
    /// Its name; `CNN.p1`, `CNN.p2`, … by default.
    #[serde(default)]
    pub name: Option<String>,
    /// Its layers; by default, the next of the layers that no partition lists.
    #[serde(default)]
    pub layers: Option<Vec<String>>,
    /// Its last layer, in the order of the model's file, if it does not list its layers. Only the last such partition, which
    /// ends with the last layer, may omit it.
    #[serde(default)]
    pub upto: Option<String>,
    /// The processor that runs it; `cpu` by default.
    #[serde(default)]
    pub processor: Option<String>,
    /// The order of its layers: steps whose layers live together. Topological by default.
    #[serde(default)]
    pub schedule: Option<Vec<Vec<String>>>,
}

/// How the caller hands over one input.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename = "input")]
pub struct InputSpec {
    /// Element type. By default what the model takes: floats, or the integers of a quantized model.
    #[serde(default, rename = "type")]
    pub element: Option<ElementSpec>,
    /// Order of the dimensions of camera bytes; `HWC` by default.
    #[serde(default)]
    pub layout: Option<CameraLayout>,
    /// Order of the color channels of camera bytes; `RGB` by default.
    #[serde(default)]
    pub order: Option<ColorOrder>,
    /// Subtracted from each byte: one number, or one per channel; 0 by default.
    #[serde(default)]
    pub mean: Option<Numbers>,
    /// Multiplied afterwards, likewise; 1 by default.
    #[serde(default)]
    pub scale: Option<Numbers>,
}

/// Element type of an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase", rename = "element type")]
pub enum ElementSpec {
    /// 32-bit floats, of a model that takes these.
    F32,
    /// Camera bytes.
    U8,
}

/// One number for all channels, or one for each.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(untagged, expecting = "expected a number, or a list of one number per channel")]
pub enum Numbers {
    /// For all channels.
    One(f32),
    /// For each channel.
    Each(Vec<f32>),
}

/// What a plan must meet.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename = "constraints")]
pub struct ConstraintsSpec {
    /// Maximum number of bytes that the application may take.
    #[serde(default)]
    pub memory: Option<MemoryGoal>,
    /// The memories that it may use, in place of `memory`, on a board that has several.
    #[serde(default)]
    pub ram: Option<Ram>,
    /// Maximum number of bytes of flash that its parameters may take.
    #[serde(default)]
    pub flash: Option<Size>,
    /// Fewest frames per second.
    #[serde(default)]
    pub fps: FpsSpec,
    /// Longest time from a frame's first input to its last output.
    #[serde(default)]
    pub latency: LatencySpec,
}

/// Fewest frames per second: a number that binds every CNN, or a map from CNN to number.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(from = "FpsText")]
pub struct FpsSpec {
    /// Binds every CNN that is not in the map.
    pub every: Option<f64>,
    /// By CNN.
    pub of: BTreeMap<String, f64>,
}

/// Longest time of a frame: one that binds every CNN, or a map from CNN to time.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(try_from = "LatencyText")]
pub struct LatencySpec {
    /// Binds every CNN that is not in the map.
    pub every: Option<Nanoseconds>,
    /// By CNN.
    pub of: BTreeMap<String, Nanoseconds>,
}

/// Parameters of the search.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default, rename = "search")]
pub struct SearchSpec {
    /// How a plan is looked for; `extended` by default.
    pub method: Option<Method>,
    /// Seed of every random choice.
    pub seed: u64,
    /// Chromosomes of a generation.
    pub population: usize,
    /// Generations.
    pub generations: usize,
    /// Probability that two chromosomes cross.
    pub crossover: f64,
    /// Probability that a gene mutates.
    pub mutation: f64,
}

impl Default for SearchSpec {
    fn default() -> Self {
        SearchSpec { method: None, seed: 1, population: 100, generations: 200, crossover: 0.9, mutation: 0.1 }
    }
}

/// Rows per firing.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(try_from = "RowsText")]
pub enum RowsSpec {
    /// The planner's choice.
    #[default]
    Default,
    /// No layer processes its data by parts.
    None,
    /// Every layer that can fires row by row.
    All,
    /// These layers, `CNN/LAYER` or `LAYER`, fire so many rows at a time; the others do not go by parts.
    Layers(BTreeMap<String, u64>),
}

impl CnnSpec {
    /// Its name, given or made from its model's.
    pub fn name(&self) -> String {
        self.name.clone().unwrap_or_else(|| default_name(&self.model))
    }

    /// Whether the precision of some layer is to be chosen.
    pub fn has_auto_precision(&self) -> bool {
        self.precision == Precision::Auto || self.precisions.values().any(|of| *of == Precision::Auto)
    }
}

impl AppSpec {
    /// Whether the precision of some layer is to be chosen.
    pub fn has_auto_precision(&self) -> bool {
        self.cnns.iter().any(CnnSpec::has_auto_precision)
    }

    /// An application of one CNN with defaults everywhere.
    pub fn of_model(model: &str) -> Self {
        AppSpec {
            name: None,
            cnns: vec![CnnSpec {
                name: None,
                model: model.into(),
                precision: Precision::default(),
                precisions: BTreeMap::new(),
                accuracy: AccuracySpec::default(),
                partitions: Vec::new(),
                inputs: BTreeMap::new(),
                shapes: BTreeMap::new(),
                values: BTreeMap::new(),
                batch: None,
                part: ModelPart::default(),
                stream: None,
                states: BTreeMap::new(),
            }],
            parallel: Vec::new(),
            device: None,
            constraints: ConstraintsSpec::default(),
            search: SearchSpec::default(),
            storage: None,
            rows: RowsSpec::default(),
            fuse: true,
            threads: 1,
            primitives: Primitives::default(),
            max_primitive_error: max_primitive_error(),
            weights: WeightsPlace::default(),
            resident: Vec::new(),
            prefer: None,
        }
    }
}

/// Parses the text of an app file.
///
/// # Errors
/// When it is no RON, or RON of another form. The error points to the line and column, and names near misses.
pub fn parse(origin: &Origin) -> Result<AppSpec, Box<AppError>> {
    let text = origin.text.as_deref().unwrap_or_default();
    let options = ron::Options::default().with_default_extension(Extensions::IMPLICIT_SOME);
    options.from_str(text).map_err(|error| describe(origin, text, error))
}

fn describe(origin: &Origin, text: &str, error: SpannedError) -> Box<AppError> {
    use ron::Error as Ron;
    let ended = text.trim_end().len();
    let start = offset(text, error.span.start.line, error.span.start.col);
    let end = offset(text, error.span.end.line, error.span.end.col).max(start);
    let mut span = match text[start..end].trim() {
        "" => next_character(text, end),
        _ => start..end,
    };
    let of =
        |outer: &Option<String>| outer.as_ref().map(|outer| format!(" of `{outer}`")).unwrap_or_default();
    let mut help = None;
    let message = match &error.code {
        Ron::NoSuchStructField { expected, found, outer } => {
            help = Some(suggest::help(found, "the fields are", expected.iter().copied()));
            format!("unknown field `{}`{}", suggest::clip(found), of(outer))
        }
        Ron::NoSuchEnumVariant { expected, found, outer } => {
            help = Some(suggest::help(found, "it is one of", expected.iter().copied()));
            format!("unknown {} `{}`", spoken(outer.as_deref().unwrap_or("word")), suggest::clip(found))
        }
        Ron::MissingStructField { field, outer } => format!("`{field}`{} is missing", of(outer)),
        Ron::DuplicateStructField { field, outer } => format!("`{field}`{} is given twice", of(outer)),
        Ron::ExceededRecursionLimit => "brackets are nested too deeply".into(),
        Ron::ExpectedNamedStructLike(_) | Ron::ExpectedStructLike => {
            if ended == 0 {
                help = Some("the file is empty; the least is (cnns: [(model: \"m.onnx\")])".into());
            }
            "expected `(` here: a struct is written (field: value, …)".into()
        }
        Ron::Eof
        | Ron::ExpectedArrayEnd
        | Ron::ExpectedComma
        | Ron::ExpectedMapColon
        | Ron::ExpectedMapEnd
        | Ron::ExpectedStringEnd
        | Ron::ExpectedStructLikeEnd
        | Ron::UnclosedBlockComment
            if end >= ended || error.code == Ron::ExpectedStringEnd =>
        {
            if error.code != Ron::ExpectedStringEnd {
                span = text[..ended].char_indices().next_back().map_or(0, |(i, _)| i)..ended;
            }
            "the file ends too early: a bracket, a quote or a comment is not closed".into()
        }
        Ron::ExpectedString => "expected text in quotes".into(),
        Ron::TrailingCharacters => "expected the end of the file: the application ends before this".into(),
        other => {
            if matches!(other, Ron::Message(_) | Ron::InvalidValueForType { .. }) {
                span = or_word_before(text, span);
            }
            lower_first(&suggest::clip_to(&other.to_string(), 300))
        }
    };
    Box::new(AppError::new(origin, message, help, Some(span), "here"))
}

/// The next character at or after `at` that is no space.
fn next_character(text: &str, at: usize) -> Range<usize> {
    match text[at..].char_indices().find(|(_, c)| !c.is_whitespace()) {
        Some((i, c)) => at + i..at + i + c.len_utf8(),
        None => at..at,
    }
}

/// The span, or the word before it if the span holds no word. If a value parses but is wrong, the parser has already
/// passed it.
fn or_word_before(text: &str, span: Range<usize>) -> Range<usize> {
    if text[span.clone()].contains(|c: char| c.is_alphanumeric()) {
        return span;
    }
    let between = |c: char| c.is_whitespace() || ",:()[]{}".contains(c);
    let end = text[..span.start].trim_end_matches(between).len();
    let start =
        text[..end].char_indices().rev().take_while(|(_, c)| !between(*c)).last().map_or(end, |(i, _)| i);
    start..end
}

/// The words of a type's name: `StorageModel` becomes `storage model`.
fn spoken(name: &str) -> String {
    let mut words = String::new();
    for c in name.chars() {
        if c.is_uppercase() && !words.is_empty() {
            words.push(' ');
        }
        words.extend(c.to_lowercase());
    }
    words
}

fn lower_first(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map(|c| c.to_lowercase().chain(chars).collect()).unwrap_or_default()
}

fn yes() -> bool {
    true
}

/// Plain sums of products and most transforms err by no more.
fn max_primitive_error() -> f64 {
    1e-4
}

fn one() -> usize {
    1
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "expected frames per second: a number, or a map {\"cnn\": number}")]
enum FpsText {
    Every(f64),
    Of(BTreeMap<String, f64>),
}

impl From<FpsText> for FpsSpec {
    fn from(text: FpsText) -> Self {
        match text {
            FpsText::Every(fps) => FpsSpec { every: Some(fps), of: BTreeMap::new() },
            FpsText::Of(of) => FpsSpec { every: None, of },
        }
    }
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "expected a latency: a time (\"40ms\"), or a map {\"cnn\": time}")]
enum LatencyText {
    Every(String),
    Of(BTreeMap<String, String>),
}

impl TryFrom<LatencyText> for LatencySpec {
    type Error = TimeError;

    fn try_from(text: LatencyText) -> Result<Self, TimeError> {
        match text {
            LatencyText::Every(time) => Ok(LatencySpec { every: Some(time.parse()?), of: BTreeMap::new() }),
            LatencyText::Of(of) => {
                let time = |(cnn, time): (String, String)| Ok((cnn, time.parse()?));
                Ok(LatencySpec { every: None, of: of.into_iter().map(time).collect::<Result<_, _>>()? })
            }
        }
    }
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "expected rows per firing: `all`, `none`, or a map {\"cnn/layer\": rows}")]
enum RowsText {
    Word(String),
    Layers(BTreeMap<String, u64>),
}

/// A word that says nothing about rows per firing.
#[derive(Debug, thiserror::Error)]
#[error("unknown rows `{}`: expected `all`, `none`, or a map {{\"cnn/layer\": rows}}", suggest::clip(.0))]
struct UnknownRows(String);

impl TryFrom<RowsText> for RowsSpec {
    type Error = UnknownRows;

    fn try_from(text: RowsText) -> Result<Self, UnknownRows> {
        match text {
            RowsText::Layers(layers) => Ok(RowsSpec::Layers(layers)),
            RowsText::Word(word) => match word.as_str() {
                "all" => Ok(RowsSpec::All),
                "none" => Ok(RowsSpec::None),
                _ => Err(UnknownRows(word)),
            },
        }
    }
}
