//! A plan with its names resolved and its schedules written out.

use std::collections::BTreeSet;

use serde_json::Value;

use super::Refusal;
use super::rows::{Held, Shape};

/// A plan. Partitions are counted over all CNNs, layers in their CNN; a tensor goes by the layer that writes it.
#[derive(Debug)]
pub struct Plan<'a> {
    pub value: &'a Value,
    pub is_edges: bool,
    pub cnns: Vec<Cnn>,
    pub partitions: Vec<Partition>,
    /// `parallel`.
    pub elements: Vec<Vec<usize>>,
    /// Whether two partitions run at the same time.
    pub together: Vec<Vec<bool>>,
}

#[derive(Debug)]
pub struct Cnn {
    pub name: String,
    pub layers: Vec<Layer>,
    pub rings: Vec<Ring>,
    /// In groups that run at the same time.
    pub groups: Vec<Vec<usize>>,
    /// Tensors of the outputs.
    pub outputs: Vec<usize>,
}

#[derive(Debug)]
pub struct Layer {
    pub name: String,
    pub op: String,
    pub primitive: String,
    pub attributes: Value,
    pub operands: Vec<Operand>,
    pub shape: Shape,
    pub r: u64,
    pub firings: u64,
    pub partition: usize,
    pub parameters: u64,
    pub parameters_of: Option<String>,
    pub quantization: Value,
    pub row_bytes: u64,
    /// Offset and bytes.
    pub workspace: [u64; 2],
    pub streamed: Option<Streamed>,
    /// Of its tensor.
    pub layout: String,
    pub external: bool,
    /// Whether rows of its tensor are in time, how many rows they lag behind, and how many stay from hop to hop.
    pub in_time: bool,
    pub delay: u64,
    pub history: u64,
    /// Whether it delivers a state, and whether its tensor is one in the next frame.
    pub is_state: bool,
    pub is_kept: bool,
    pub held: Vec<Held>,
    pub readers: Vec<usize>,
}

/// Weights that are read from the store.
#[derive(Debug)]
pub struct Streamed {
    pub at: u64,
    pub filters: Option<u64>,
    pub tiles: Vec<u64>,
    pub blocks: Vec<Block>,
}

#[derive(Debug)]
pub struct Block {
    pub offset: u64,
    pub bytes: u64,
    /// Layer and firing.
    pub after: Option<(String, u64)>,
}

/// The tiles of a primitive `winograd-f…`: m, their rows, r, and their values.
pub struct Tiles {
    pub high: u64,
    pub m: u64,
    pub r: u64,
    pub v: u64,
}

/// Of `winograd-fm×m-r×r-…` or `winograd-fm-r-…`.
pub fn tiles(primitive: &str) -> Result<Tiles, Refusal> {
    let mut parts = primitive.split('-').skip(1);
    let mut next = || parts.next().ok_or_else(|| format!("{primitive} has no tiles"));
    let (tile, taps) = (next()?, next()?);
    let size = |text: &str| text.split('x').next_back().and_then(|size| size.parse::<u64>().ok());
    let (Some(m), Some(r)) = (size(tile.trim_start_matches('f')), size(taps)) else {
        return Err(format!("{primitive} has no tiles"));
    };
    let a = m + r - 1;
    let (high, v) = if tile.contains('x') { (m, a * a) } else { (1, a) };
    Ok(Tiles { high, m, r, v })
}

#[derive(Debug)]
pub struct Operand {
    pub tensor: usize,
    pub seen: Shape,
    pub acquire: Vec<u64>,
    pub release: Vec<u64>,
}

#[derive(Debug)]
pub struct Partition {
    pub cnn: usize,
    /// Layers in the order in which they fire in a frame.
    pub schedule: Vec<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Kind {
    Whole,
    Wraps,
    Cut,
    /// A double buffer.
    Halves,
    /// It keeps rows from hop to hop, and lives all the time.
    Persists,
    /// The input of a state: it has the rows of the frame before, and lives all the time.
    State,
    /// The output of a state, which lives until the frame has ended.
    Kept,
    /// No ring, but a layer's workspace.
    Workspace,
    /// The same of a recurrent layer, whose state stays there from hop to hop.
    Recurrent,
    /// No ring, but a block of weights, which may be written from the beginning of this firing of its partition on.
    Block(usize),
}

#[derive(Debug)]
pub struct Ring {
    /// `cnn/tensor`.
    pub name: String,
    pub tensor: usize,
    pub readers: Vec<usize>,
    /// The first address; of a double buffer, those of both halves.
    pub bases: Vec<u64>,
    pub rows: u64,
    pub row_bytes: u64,
    pub kind: Kind,
    /// First and last firing of the CNN's frame at which it lives.
    pub life: [usize; 2],
    /// The partitions of its producer and readers.
    pub partitions: BTreeSet<usize>,
    /// Those, and the partitions of its CNN that fire while it lives.
    pub stored_in: BTreeSet<usize>,
}

impl Ring {
    pub fn bytes(&self) -> u64 {
        self.rows * self.row_bytes * self.bases.len() as u64
    }

    /// Whether rows lie in it.
    pub fn is_ring(&self) -> bool {
        !matches!(self.kind, Kind::Workspace | Kind::Recurrent | Kind::Block(_))
    }

    pub fn is_cut(&self) -> bool {
        matches!(self.kind, Kind::Cut | Kind::Halves)
    }

    pub fn meets(&self, other: &Ring) -> bool {
        let size = |ring: &Ring| ring.rows * ring.row_bytes;
        self.bases.iter().any(|&a| other.bases.iter().any(|&b| a < b + size(other) && b < a + size(self)))
    }

    /// Whether it lives from frame to frame.
    pub fn persists(&self) -> bool {
        matches!(self.kind, Kind::Persists | Kind::State | Kind::Recurrent)
    }

    pub fn lives_beside(&self, other: &Ring) -> bool {
        self.life[0] <= other.life[1] && other.life[0] <= self.life[1]
    }

    /// The address of a row.
    pub fn address(&self, height: u64, frame: u64, row: u64) -> u64 {
        let (half, row) = match self.kind {
            Kind::Whole
            | Kind::Wraps
            | Kind::State
            | Kind::Kept
            | Kind::Workspace
            | Kind::Recurrent
            | Kind::Block(_) => (0, row),
            Kind::Cut | Kind::Persists => (0, frame * height + row),
            Kind::Halves => ((frame % 2) as usize, row),
        };
        self.bases[half] + row % self.rows * self.row_bytes
    }
}

impl Layer {
    pub fn rows(&self) -> u64 {
        rows(&self.shape, &self.layout)
    }

    /// The row after the last that firing `p` makes.
    pub fn end(&self, p: u64) -> u64 {
        ((p + 1) * self.r).min(self.rows())
    }

    pub fn is_residual(&self, operand: usize) -> bool {
        self.attributes["residual"] == true && operand + 1 == self.operands.len()
    }
}

impl Plan<'_> {
    /// The firings of a frame of a CNN, its partitions one after another.
    pub fn line(&self, own: &[usize]) -> Vec<usize> {
        own.iter().flat_map(|&p| self.partitions[p].schedule.iter().copied()).collect()
    }

    /// The partitions of a CNN.
    pub fn partitions_of(&self, cnn: usize) -> Vec<usize> {
        (0..self.partitions.len()).filter(|&p| self.partitions[p].cnn == cnn).collect()
    }
}

/// Rows of a tensor: an image of planes is one.
pub fn rows(shape: &Shape, layout: &str) -> u64 {
    if layout == "CHW" && shape.is_image() { 1 } else { shape.rows() }
}

/// The elements that a primitive reads, and those that it makes.
pub fn floats(primitive: &str) -> [&'static str; 2] {
    match primitive {
        "convert-narrow-hwc-hwc" => ["f32", "f16"],
        "convert-widen-hwc-hwc" => ["f16", "f32"],
        "convert-quantize-hwc-hwc" => ["f32", "u8"],
        "convert-dequantize-hwc-hwc" => ["u8", "f32"],
        "convert-requantize-hwc-hwc" => ["u8", "u8"],
        name if name.contains("-int8-") || name.contains("-uint8-") => ["u8", "u8"],
        name if name.contains("-half-") || name.contains("-mixed-") => ["f16", "f16"],
        _ => ["f32", "f32"],
    }
}
