//! Algorithm 1 of the main paper: greedy reuse of whole buffers among edges, CNNs and partitions.

use crate::storage::Storage;

/// A buffer shared by edges that are never stored at the same time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedBuffer {
    /// Bytes: those of the largest edge (Eq. 4).
    pub bytes: u64,
    /// The edges, as indices into [`Storage::items`], in the order of allocation.
    pub edges: Vec<usize>,
}

/// Gives every edge a buffer, the present one that grows least where one suits. Ties go to the first (line 31's
/// strict comparison). Edges are visited by partition, within it by producer and consumer; a cut edge is a
/// double buffer whose halves are edges of their own, both busy throughout.
pub fn reuse_buffers(storage: &Storage<'_>) -> Vec<SharedBuffer> {
    let items = storage.items();
    let conflicts = storage.conflicts(&items);
    let mut buffers: Vec<SharedBuffer> = Vec::new();
    for (edge, item) in items.iter().enumerate() {
        let size = item.request.bytes;
        let suits = |buffer: &SharedBuffer| {
            buffer.edges.iter().all(|other| conflicts[edge].binary_search(other).is_err())
        };
        let cost = |buffer: &SharedBuffer| size.saturating_sub(buffer.bytes);
        // `min_by_key` returns the first of equals.
        match buffers.iter_mut().filter(|buffer| suits(buffer)).min_by_key(|buffer| cost(buffer)) {
            Some(best) => {
                best.bytes = best.bytes.max(size);
                best.edges.push(edge);
            }
            None => buffers.push(SharedBuffer { bytes: size, edges: vec![edge] }),
        }
    }
    buffers
}
