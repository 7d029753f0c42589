//! The memories of a board, among which the arena is divided.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

/// A memory region of the board, such as its tightly coupled memory, and the part of the arena in it. Whatever lies in the
/// arena lies in one region as a whole.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Region {
    /// Its name, such as `dtcm`.
    pub name: String,
    /// Where its part of the arena begins: at the next multiple of [`Region::ALIGNMENT`] after the part before.
    pub offset: u64,
    /// Bytes of its part of the arena: to the end of what lies highest in it.
    pub bytes: u64,
    /// What may lie in it.
    #[serde(default = "Content::of_arena", skip_serializing_if = "is_of_arena")]
    pub holds: BTreeSet<Content>,
    /// Bytes beside its part of the arena that the stack of a frame takes there: an estimate, 0 if the stack lies elsewhere.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub stack: u64,
    /// The most bytes that the application may take of it.
    pub limit: u64,
    /// What a byte that is read or written in it takes longer than in the fastest region, in nanoseconds; none if that is
    /// not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ns_per_byte: Option<f64>,
}

impl Region {
    /// Parts of the arena begin at multiples of this many bytes, the largest element's.
    pub const ALIGNMENT: u64 = 8;

    /// Bytes that the application takes of it: its part of the arena, and the stack.
    pub fn taken(&self) -> u64 {
        self.bytes.saturating_add(self.stack)
    }
}

/// What may lie in a memory of a board.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Content {
    /// Rings and workspaces.
    Buffers,
    /// Blocks into which weights are read from the store.
    Weights,
    /// The stack of a frame.
    Stack,
}

impl Content {
    /// What the arena has: what may lie in a memory of which nothing is said.
    pub fn of_arena() -> BTreeSet<Content> {
        [Content::Buffers, Content::Weights].into()
    }
}

fn is_zero(bytes: &u64) -> bool {
    *bytes == 0
}

fn is_of_arena(holds: &BTreeSet<Content>) -> bool {
    *holds == Content::of_arena()
}
