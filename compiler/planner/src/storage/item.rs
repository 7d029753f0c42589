//! A ring to be placed, and its bytes in use.

use std::ops::Range;

use csdfc_network::LayerId;

use crate::frame::request::Request;

/// A request and the CNN that makes it.
#[derive(Debug, Clone, Copy)]
pub struct Item<'a> {
    /// Index of the CNN.
    pub cnn: usize,
    /// The ring.
    pub request: &'a Request,
}

impl Item<'_> {
    /// Whether it is the ring of this tensor.
    pub fn is_ring_of(&self, cnn: usize, tensor: LayerId) -> bool {
        self.cnn == cnn && self.request.tensor == tensor && self.request.is_ring()
    }
}

/// Bytes of a ring that are in use at some moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    /// The ring, an index into [`Storage::items`](super::Storage::items).
    pub item: usize,
    /// The bytes, from the ring's start.
    pub bytes: Range<u64>,
}
