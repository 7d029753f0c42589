//! Where the rows of a tensor lie.

use super::violation::Addresses;

/// The storage of a tensor (model `tensors`), or of a tensor for one reader (model `edges`), or a layer's workspace, or a
/// block of its weights.
pub struct Allocation {
    /// `cnn/tensor`, or `cnn/tensor → reader` in model `edges`; `workspace of cnn/layer` for a workspace, and `block 0
    /// of cnn/layer` for a block.
    pub name: String,
    /// The layer that writes it, or whose workspace or block it is.
    pub tensor: usize,
    /// The layers that read it.
    pub readers: Vec<usize>,
    /// Address of its first row, or of the first row of each half of a double buffer.
    pub bases: Vec<u64>,
    /// Rows for which there is room.
    pub ring_rows: u64,
    /// Bytes of a row.
    pub row_bytes: u64,
    /// How rows follow each other over frames.
    pub kind: RowOrder,
    /// Whether it has all its bytes to itself as long as it lives: a workspace, a block, a ring that wraps, that runs on over
    /// frames or that stays, and every ring in model `edges`. Any other ring occupies only rows that are begun and still needed.
    pub exclusive: bool,
}

/// How rows follow each other over frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowOrder {
    /// Each frame starts at the first row of the ring.
    Restarts,
    /// The count of rows runs on: between partitions that run at the same time.
    RunsOn,
    /// The count of rows runs on, and rows of a hop are still there when the next one begins.
    Persists,
    /// Each frame starts at the first row of the ring, and all its rows are there when it begins: the input of a state.
    State,
    /// Each frame starts at the first row of the ring, and all its rows stay until it has ended: the output of a state.
    Kept,
    /// Even frames in the first half, odd ones in the second.
    Halves,
    /// There are no rows: it is the workspace of a layer.
    Workspace,
    /// The same of a layer that leaves its state there from one hop to the next.
    Recurrent,
    /// There are no rows: slices of a layer's weights are read into it.
    Block(Begin),
}

/// The moment from which a block may be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Begin {
    /// From the beginning of its partition's frame.
    Frame,
    /// From the end of a firing of a layer of its partition.
    After {
        /// The layer.
        layer: usize,
        /// The number of the firing in a frame.
        firing: u64,
    },
}

impl Allocation {
    /// Bytes of a ring, or of one half.
    pub fn ring_bytes(&self) -> u64 {
        self.ring_rows * self.row_bytes
    }

    /// Bytes of all halves.
    pub fn bytes(&self) -> u64 {
        self.ring_bytes() * self.bases.len() as u64
    }

    /// Addresses of the ring, or of each half.
    pub fn addresses(&self) -> impl Iterator<Item = Addresses> + '_ {
        self.bases.iter().map(|&base| base..base + self.ring_bytes())
    }

    /// Whether some byte is an address of both.
    pub fn overlaps(&self, other: &Allocation) -> bool {
        self.addresses().any(|a| other.addresses().any(|b| a.start < b.end && b.start < a.end))
    }

    /// Whether rows lie in it.
    pub fn is_ring(&self) -> bool {
        !matches!(self.kind, RowOrder::Workspace | RowOrder::Recurrent | RowOrder::Block(_))
    }

    /// The moment from which it may be written, if it is a block of weights.
    pub fn begin(&self) -> Option<Begin> {
        match self.kind {
            RowOrder::Block(begin) => Some(begin),
            _ => None,
        }
    }

    /// Whether it is a layer's workspace.
    pub fn is_workspace(&self) -> bool {
        matches!(self.kind, RowOrder::Workspace | RowOrder::Recurrent)
    }

    /// Whether it lives from frame to frame, or from hop to hop.
    pub fn persists(&self) -> bool {
        matches!(self.kind, RowOrder::Persists | RowOrder::State | RowOrder::Recurrent)
    }

    /// Whether it lives until a frame has ended.
    pub fn stays(&self) -> bool {
        self.persists() || self.kind == RowOrder::Kept
    }

    /// Whether partitions that run at the same time share it.
    pub fn is_cut(&self) -> bool {
        matches!(self.kind, RowOrder::RunsOn | RowOrder::Halves)
    }
}

/// Whether the sizes of a ring fit each other.
pub(super) fn check_ring(ring_rows: u64, row_bytes: u64, bytes: u64, wrong: &mut dyn FnMut(String)) -> bool {
    let fits = ring_rows > 0 && ring_rows.checked_mul(row_bytes) == Some(bytes);
    if !fits {
        wrong(format!("{ring_rows} rows of {row_bytes} bytes are not {bytes} bytes"));
    }
    fits
}
