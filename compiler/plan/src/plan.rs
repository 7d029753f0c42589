//! The plan of an application: plain data. Except for the weights, it has everything that is needed to check it, to run
//! it, and to emit a crate. Only its field `search` says how it was found.
//!
//! Sizes are in bytes and heights in rows. The name of a layer or of a tensor is unique within its CNN. [`FORMAT`] is the
//! version of the file format.
//!
//! ```
//! use csdfc_plan::plan::Plan;
//!
//! // A 5×5 convolution of an image of 32 rows of 384 bytes, row by row: five rows are stored.
//! let text = std::fs::read_to_string("../../tests/plan_format/version_1/pair_5x5.json")?;
//! let plan = Plan::parse(&text)?;
//! let ring = plan.tensors[0].ring.ok_or("stored nowhere")?;
//! assert_eq!((ring.ring_rows, ring.offset, ring.bytes), (5, 0, 5 * 384));
//! assert_eq!((plan.memory.arena, plan.memory.naive), (5 * 384, 32 * 384));
//! assert_eq!(plan.partitions[0].notation, "[l1]×3,[l2],([l1],[l2])×29,[l2]×2");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod constraints;
mod kept;
mod regions;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::format::{Element, Format, Layout, Quantization};
use crate::operator::Operator;
use crate::part::ModelPart;
use crate::shape::Shape;

pub use constraints::Constraints;
pub use kept::{State, Stream, StreamRows};
pub use regions::{Content, Region};

/// The version of the file format; [`Plan::format`] must equal it.
pub const FORMAT: &str = "csdfc-plan/3";

/// The version before [`FORMAT`], which is read too.
pub const FORMAT_2: &str = "csdfc-plan/2";

/// The first version, which is read too.
pub const FORMAT_1: &str = "csdfc-plan/1";

/// All versions that are read.
pub const FORMATS: [&str; 3] = [FORMAT, FORMAT_2, FORMAT_1];

/// The most frames that a call may take.
pub const MAX_BATCH: u64 = 1 << 16;

/// How an application of CNNs runs in a memory budget.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// [`FORMAT`].
    pub format: String,
    /// Version of csdfc that made the plan.
    pub csdfc: String,
    /// Name of the application.
    pub application: String,
    /// The device whose costs the frame rates are modelled on.
    pub device: Device,
    /// How storage is shared.
    pub storage_model: StorageModel,
    /// What the application needs.
    pub memory: Memory,
    /// The memory regions that share the arena, in its order; none if the board has one memory.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub regions: Vec<Region>,
    /// The store of the streamed weights; none if no weights are streamed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub store: Option<Store>,
    /// The constraints that were asked for.
    pub constraints: Constraints,
    /// Workers that share one firing.
    pub threads: usize,
    /// J of the main paper (section 2.3): each element lists partitions that run at the same time. Partitions that
    /// are never together exclude each other in time.
    pub parallel: Vec<Vec<String>>,
    /// The CNNs.
    pub cnns: Vec<Cnn>,
    /// The partitions of all CNNs; those of one CNN in the order of its layers.
    pub partitions: Vec<Partition>,
    /// Every tensor of every CNN, views excepted: they own no storage.
    pub tensors: Vec<Tensor>,
    /// The buffers of storage model `edges`; empty in model `tensors`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub buffers: Vec<Buffer>,
    /// How the plan was found.
    pub search: Search,
    /// The front of the plans seen: none of them is worse than another in both memory and frame rates.
    pub pareto: Vec<ParetoPoint>,
    /// Why the figures can be believed.
    pub certificate: Certificate,
}

/// The device of a plan.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Device {
    /// Name of the device profile.
    pub name: String,
    /// Where its figures come from: measured, analytic or published.
    pub basis: String,
    /// How many cores each processor has that the plan uses, by name; plans of older versions do not say.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub cores: BTreeMap<String, u64>,
}

/// The store of streamed weights: a file of packed weights, or a part of a flash.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Store {
    /// Its size: the tiles of all layers whose weights are streamed, one after another.
    pub bytes: u64,
    /// Modelled bytes per second at which the device reads it; none if its profile does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_per_second: Option<u64>,
}

/// How storage is shared (`docs/design.md`, "Memory").
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StorageModel {
    /// The paper's: one buffer per edge, shared whole (Eq. 4, Algorithm 1).
    Edges,
    /// One ring of rows per tensor, packed by address in one arena.
    #[default]
    Tensors,
}

impl std::fmt::Display for StorageModel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            StorageModel::Edges => "edges",
            StorageModel::Tensors => "tensors",
        })
    }
}

/// The memory of an application, in bytes (Eq. 1–3).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Memory {
    /// Weights and biases of all CNNs after folding.
    pub parameters: u64,
    /// The bytes that the chosen primitives keep of them.
    pub parameters_stored: u64,
    /// The bytes of these that stay in memory; none if all of them do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parameters_resident: Option<u64>,
    /// The arena: the highest end of rings, or of buffers in model `edges`, of workspaces, and of blocks of weights.
    pub arena: u64,
    /// The highest end of rings, or of buffers in model `edges`.
    pub buffers: u64,
    /// The most bytes of workspaces that live at one moment. They lie among the rings.
    pub workspace: u64,
    /// The arena, and the parameters that stay in memory. With memory regions it is the arena alone: the parameters are
    /// read where they are, in flash.
    pub total: u64,
    /// The bytes of buffers without reuse and without processing by parts: every edge (model `edges`) or every tensor
    /// (model `tensors`) is whole and has a place of its own. It counts twice if it couples partitions that run at the
    /// same time.
    pub naive: u64,
    /// No placement of these rings and workspaces under this schedule takes less than this.
    pub bound: u64,
    /// Whether `arena` equals `bound`, and so is the least that these rings need under this schedule. Where no
    /// placement reaches the bound, see [`Certificate::claimed`].
    pub proven: bool,
    /// What the caller holds.
    pub external: External,
}

/// Memory of the caller, in bytes, in addition to the arena.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct External {
    /// Inputs that are delivered whole. An input that is delivered by rows does not count here, since its ring is in
    /// the arena.
    pub inputs: u64,
    /// Outputs.
    pub outputs: u64,
}

/// One CNN of a plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cnn {
    /// Its name in the application.
    pub name: String,
    /// Where it comes from.
    pub model: Model,
    /// Frames that a call takes, one after another, at most [`MAX_BATCH`]. All else is of one frame.
    #[serde(default = "one_frame", skip_serializing_if = "is_one_frame")]
    pub batch: u64,
    /// Modelled frames per second.
    pub fps: f64,
    /// Modelled time from a frame's first input to its last output, in nanoseconds, if it comes no sooner than 1 / `fps` after
    /// the one before it.
    pub latency_ns: u64,
    /// Bytes of weights that a frame reads from the store; none if it reads none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_read: Option<u64>,
    /// Modelled nanoseconds of a frame in which they are read; none if the device's profile does not say how fast its store
    /// is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_ns: Option<u64>,
    /// Modelled nanoseconds of a frame in which something is computed; none if `read_ns` is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub computing_ns: Option<u64>,
    /// What makes it a stream: it keeps rows from one frame to the next, and a frame is a hop. None if each frame is
    /// computed by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stream: Option<Stream>,
    /// What it keeps from one frame to the next: inputs that are outputs of the frame before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub states: Vec<State>,
    /// Names of the layers that deliver the inputs that the caller hands over.
    pub inputs: Vec<String>,
    /// The outputs that the caller gets.
    pub outputs: Vec<Output>,
    /// Layers in topological order.
    pub layers: Vec<Layer>,
}

fn one_frame() -> u64 {
    1
}

fn is_one_frame(batch: &u64) -> bool {
    *batch == one_frame()
}

/// The file that a CNN was read from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Model {
    /// Path relative to the plan, or `builtin:NAME`.
    pub path: String,
    /// Size of the file; 0 for a built-in.
    pub bytes: u64,
    /// SHA-256 of the file in hexadecimal; for a built-in, of its layers as csdfc lists them.
    pub sha256: String,
    /// Inputs of the model that are one number in every frame, by name, and so are constants.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub values: BTreeMap<String, f64>,
    /// The part of the model that is planned.
    #[serde(default, skip_serializing_if = "ModelPart::is_whole")]
    pub part: ModelPart,
}

/// A network output.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Output {
    /// Its name in the model.
    pub name: String,
    /// The tensor that is the output, or that the output is a view of.
    pub tensor: String,
    /// Its shape, where it is a view of the tensor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub view: Option<Shape>,
}

/// One layer of a CNN.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Layer {
    /// Its name: that of its first ONNX node.
    pub name: String,
    /// The ONNX nodes that it stands for, including those folded into it and the views before it.
    pub onnx_nodes: Vec<String>,
    /// What it computes: `op` and `attributes`.
    #[serde(flatten)]
    pub operator: Operator,
    /// Its operands, in the operator's order.
    pub inputs: Vec<LayerInput>,
    /// The tensor that it produces.
    pub output: String,
    /// The shape of that tensor.
    pub output_shape: Shape,
    /// Rows of output per firing, r; the last firing may make fewer.
    pub rows_per_firing: u64,
    /// Firings per frame, Φ = ⌈H / r⌉.
    pub firings: u64,
    /// Bytes of weights and biases.
    pub parameters: u64,
    /// The earlier layer of the CNN whose parameters it uses, so that they are kept once; none if it keeps its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parameters_of: Option<String>,
    /// Name of the primitive that computes it: a row of `csdfc_runtime::bind::Primitive`.
    pub primitive: String,
    /// Layout that the primitive reads.
    pub layout_in: Layout,
    /// Layout that the primitive writes.
    pub layout_out: Layout,
    /// The partition that it belongs to.
    pub partition: String,
    /// The primitive's own memory while the layer fires.
    pub workspace: Workspace,
    /// How its weights are read from the store; none if they stay in memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub streamed: Option<StreamedWeights>,
    /// Its time in a frame, as modelled or measured, without reading its weights; none for an input. Plans of older
    /// versions state it only on a device that was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<LayerTime>,
}

/// How long a layer takes in a frame.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LayerTime {
    /// Nanoseconds of all its firings.
    pub ns: f64,
    /// Where they come from.
    pub basis: TimeBasis,
}

/// Where the time of a layer comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TimeBasis {
    /// It was measured with these rows per firing.
    Measured,
    /// It lies between, or beyond, times that were measured with other rows per firing.
    Interpolated,
    /// Nothing was measured: it follows from the rates of the processor.
    Modelled,
}

impl Layer {
    /// How many times a frame reads its weights from the store: once per firing if they come in tiles.
    pub fn times_read(&self) -> u64 {
        match &self.streamed {
            None => 0,
            Some(StreamedWeights { filters: None, .. }) => 1,
            Some(StreamedWeights { filters: Some(_), .. }) => self.firings,
        }
    }
}

/// One operand of a layer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LayerInput {
    /// The tensor read.
    pub tensor: String,
    /// The shape in which the layer sees it, if a reshape or flatten lies between and changes the shape.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub view: Option<Shape>,
    /// Rows of the tensor newly needed at the start of each firing, run-length coded: `30*1,2*0`, `56*(1,0)`.
    pub acquire: String,
    /// Rows forgotten at the end of each firing, coded likewise.
    pub release: String,
}

/// A layer's own memory, from its first firing of a frame to its last; 0 and 0 if there is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Workspace {
    /// Offset from the start of the arena.
    pub offset: u64,
    /// Size, of all workers together.
    pub bytes: u64,
}

/// Weights of a layer that each frame reads anew from the store into the arena. Tile k goes into block k mod n of n
/// blocks.
///
/// Loads are events of the schedule. The load of tile k may start after the firing that its block names. But if the
/// block has held a tile before in this firing of the layer, the load may start as soon as that tile has been used.
/// The use of tile k waits until its load has ended. The only tile of a layer is used by all its firings. If there
/// are several, a firing makes the output channels of one tile after another, and each firing reads all tiles again:
/// the first loads into the blocks may start at the end of the firing before it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StreamedWeights {
    /// Where its first tile begins in the store. The others follow, one after another.
    pub at: u64,
    /// Output channels of each tile but the last, which has those that are left. None if there is only one tile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filters: Option<u64>,
    /// Bytes of the tiles in turn, run-length coded as rates are: `15*2048,1024`.
    pub tiles: String,
    /// Where the tiles go.
    pub blocks: Vec<Block>,
}

/// A part of the arena that tiles are read into.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Block {
    /// Offset from the start of the arena.
    pub offset: u64,
    /// Size.
    pub bytes: u64,
    /// The first load into it may start at the end of this firing of the layer's own partition; `None` stands for the
    /// beginning of the partition's frame.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<FiringName>,
}

/// One firing of a frame.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FiringName {
    /// The layer.
    pub layer: String,
    /// The number of the firing, from 0.
    pub firing: u64,
}

/// A part of a CNN that one processor runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Partition {
    /// Its name, unique in the plan.
    pub name: String,
    /// Its CNN.
    pub cnn: String,
    /// The processor.
    pub processor: String,
    /// How many of the processor's cores the partition keeps busy on average, as modelled, while it and the partitions
    /// that run at the same time run at their rates. The loads of one element of [`Plan::parallel`] on one processor
    /// add up to at most its cores. Plans of older versions do not state this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load: Option<f64>,
    /// The firings of one frame, in order.
    pub schedule: Vec<Step>,
    /// The same in the paper's notation: `[l1]×3,[l2],([l1],[l2])×29,[l2]×2`.
    pub notation: String,
}

/// One node of a looped schedule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged, expecting = "expected `fire`, or `repeat` and a `body` of steps")]
pub enum Step {
    /// One firing of a layer: `{"fire": layer}`.
    Fire {
        /// The layer.
        fire: String,
    },
    /// A body, repeated: `{"repeat": n, "body": […]}`.
    Repeat {
        /// Times.
        repeat: u64,
        /// The steps that are repeated.
        body: Vec<Step>,
    },
}

/// One tensor of a CNN and, in model `tensors`, its ring of rows. In a file, the ring's fields are next to the
/// tensor's.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "TensorFields", into = "TensorFields")]
pub struct Tensor {
    /// Its name in the model.
    pub name: String,
    /// Its CNN.
    pub cnn: String,
    /// The layer that writes it.
    pub producer: String,
    /// The layers that read it.
    pub consumers: Vec<String>,
    /// Its shape.
    pub shape: Shape,
    /// Its layout in memory and the type of its elements. In a file, `layout` and `element`.
    pub format: Format,
    /// Its quantization, if it has 8-bit integers.
    pub quantization: Option<Quantization>,
    /// Bytes of one row.
    pub row_bytes: u64,
    /// Whether the caller holds a whole copy: a network output, or an input that is delivered whole.
    pub external: bool,
    /// How its rows follow those of the hops before, if its CNN is a stream.
    pub stream: Option<StreamRows>,
    /// Its storage in the arena: row i of a frame lies at `offset + (i mod ring_rows) · row_bytes`. It is absent in
    /// model `edges`, and if the caller has the only copy. A ring that has room for all rows is occupied only in part:
    /// by the rows that are begun and that some reader still needs. Other rings may lie at its other addresses. If the
    /// ring that a layer writes shares addresses with a ring that it reads, the layer makes its rows one by one.
    pub ring: Option<Ring>,
}

/// A [`Tensor`] as it stands in a file.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct TensorFields {
    name: String,
    cnn: String,
    producer: String,
    consumers: Vec<String>,
    shape: Shape,
    layout: Layout,
    element: Element,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    quantization: Option<Quantization>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ring_rows: Option<u64>,
    row_bytes: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    offset: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    bytes: Option<u64>,
    external: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    stream: Option<StreamRows>,
}

/// A tensor of which a plan states only a part of its ring.
#[derive(Debug, thiserror::Error)]
#[error("tensor {0} has some but not all of `ring_rows`, `offset` and `bytes`")]
struct PartOfRing(String);

impl TryFrom<TensorFields> for Tensor {
    type Error = PartOfRing;

    fn try_from(fields: TensorFields) -> Result<Self, PartOfRing> {
        let ring = match (fields.ring_rows, fields.offset, fields.bytes) {
            (Some(ring_rows), Some(offset), Some(bytes)) => Some(Ring { ring_rows, offset, bytes }),
            (None, None, None) => None,
            _ => return Err(PartOfRing(fields.name)),
        };
        Ok(Tensor {
            name: fields.name,
            cnn: fields.cnn,
            producer: fields.producer,
            consumers: fields.consumers,
            shape: fields.shape,
            format: Format { layout: fields.layout, element: fields.element },
            quantization: fields.quantization,
            row_bytes: fields.row_bytes,
            external: fields.external,
            stream: fields.stream,
            ring,
        })
    }
}

impl From<Tensor> for TensorFields {
    fn from(tensor: Tensor) -> Self {
        TensorFields {
            name: tensor.name,
            cnn: tensor.cnn,
            producer: tensor.producer,
            consumers: tensor.consumers,
            shape: tensor.shape,
            layout: tensor.format.layout,
            element: tensor.format.element,
            quantization: tensor.quantization,
            ring_rows: tensor.ring.map(|ring| ring.ring_rows),
            row_bytes: tensor.row_bytes,
            offset: tensor.ring.map(|ring| ring.offset),
            bytes: tensor.ring.map(|ring| ring.bytes),
            external: tensor.external,
            stream: tensor.stream,
        }
    }
}

impl Tensor {
    /// Rows of the tensor.
    pub fn rows(&self) -> usize {
        self.format.rows(&self.shape)
    }

    /// Rows of earlier hops that its ring still holds when a hop begins; 0 if it begins anew.
    pub fn history(&self) -> u64 {
        self.stream.map_or(0, |stream| stream.history)
    }
}

/// A ring of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ring {
    /// Rows that it holds.
    pub ring_rows: u64,
    /// Offset of its first row from the start of the arena.
    pub offset: u64,
    /// `ring_rows · row_bytes`.
    pub bytes: u64,
}

/// A buffer of model `edges`: shared whole by the edges that it holds, never at the same time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Buffer {
    /// `B1`, `B2`, …
    pub name: String,
    /// Offset from the start of the arena.
    pub offset: u64,
    /// Size: that of the largest edge held.
    pub bytes: u64,
    /// The edges, in the order of allocation.
    pub holds: Vec<Edge>,
}

/// An edge of a CNN in a buffer of model `edges`: the rows of one tensor for one reader.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Edge {
    /// The CNN.
    pub cnn: String,
    /// The tensor.
    pub tensor: String,
    /// The layer that reads it.
    pub consumer: String,
    /// Rows of its ring, from the start of the buffer.
    pub ring_rows: u64,
    /// `ring_rows · row_bytes`.
    pub bytes: u64,
    /// For an edge between partitions that run at the same time, which half of its double buffer this is, 1 or 2:
    /// half 1 takes even frames.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub half: Option<u8>,
}

/// How a plan was found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Search {
    /// Name of the method.
    pub method: String,
    /// Seed of its random choices.
    pub seed: u64,
    /// Candidate plans evaluated.
    pub evaluations: u64,
    /// Why it ended: `complete`, or `time`.
    pub stopped: String,
    /// The choices of this plan, by CNN, coded as in [`ParetoPoint::choices`].
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub choices: BTreeMap<String, String>,
}

/// One plan that the search saw.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ParetoPoint {
    /// [`Memory::total`] of that plan.
    pub memory: u64,
    /// Modelled frames per second, by CNN.
    pub fps: BTreeMap<String, f64>,
    /// Its choices, by CNN, as in `13*1,4*2,49*h; barriers 5,12,20-31`: the rows per firing of the layers in turn, each
    /// run of equal ones once, with `h` for a whole tensor; then the layers after which a segment ends. Without
    /// barriers, each run of layers that fire several times is a segment.
    pub choices: BTreeMap<String, String>,
}

/// Why a plan's figures can be believed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Certificate {
    /// The moment at which the most bytes are occupied, which are [`Memory::bound`] bytes. `None` if nothing is stored.
    pub bound: Option<PeakWitness>,
    /// A claim of the planner: every placement of these rings takes at least this many bytes, whichever layers make
    /// their rows one by one. It is more than [`Memory::bound`]. A complete search found it, or it follows from the
    /// distances of rings. The checker does not repeat that work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claimed: Option<u64>,
    /// Where the ring sizes come from.
    pub rings: String,
}

/// A moment of a frame: a firing or, if the layer makes the rows of a firing one by one, one of these rows. All tensors
/// named here occupy bytes at that moment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PeakWitness {
    /// The layers that fire, `cnn/layer`, one for each partition that runs at the time.
    pub firing: Vec<String>,
    /// The tensors, `cnn/tensor`.
    pub tensors: Vec<String>,
    /// The bytes that they occupy together at that moment. A ring with room for all rows occupies the rows that are
    /// begun and that some reader still needs. Any other ring occupies all its bytes.
    pub bytes: u64,
}
