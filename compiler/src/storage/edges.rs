//! Whole buffers for edges: Algorithm 1 of the main paper, greedy reuse among edges, CNNs and partitions, and what the
//! paper compares it with.

use crate::storage::{Arrangement, Item, Storage};

/// A buffer shared by edges that are never stored at the same time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedBuffer {
    /// Bytes: those of the largest edge (Eq. 4).
    pub bytes: u64,
    /// The edges, as indices into [`Storage::items`], in the order of allocation.
    pub edges: Vec<usize>,
}

/// Which edges may share a buffer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Sharing {
    /// All of the application's.
    #[default]
    Application,
    /// Those of one CNN.
    Cnn,
    /// None.
    Nothing,
}

/// Gives every edge a place in a buffer; buffers lie one above the other.
pub fn arrange(storage: &Storage<'_>, sharing: Sharing) -> Arrangement {
    let items = storage.items();
    let bound = storage.bound(&items);
    let buffers = match sharing {
        Sharing::Application => reuse_buffers(storage),
        Sharing::Cnn => reuse_in_cnns(storage),
        Sharing::Nothing => {
            let own = |(edge, item): (usize, &Item<'_>)| SharedBuffer {
                bytes: item.request.bytes,
                edges: vec![edge],
            };
            items.iter().enumerate().map(own).collect()
        }
    };
    let mut offsets = vec![0; items.len()];
    let mut bytes = 0;
    for buffer in &buffers {
        for edge in &buffer.edges {
            offsets[*edge] = bytes;
        }
        bytes += buffer.bytes;
    }
    Arrangement { bytes, least: bound.bytes, bound, offsets, buffers }
}

/// How much smaller the buffers must be for another order of edges than the paper's, as a part of the whole.
const WORTH_REORDERING: u64 = 64;

/// Algorithm 1. In which order it visits edges is not printed; its Tables 8 and 9 come of visiting them by partition, within
/// it by producer and consumer. Where visiting the largest first saves more than one part in 64, that is done instead.
pub fn reuse_buffers(storage: &Storage<'_>) -> Vec<SharedBuffer> {
    let items = storage.items();
    let conflicts = storage.conflicts(&items);
    let mut order: Vec<usize> = (0..items.len()).collect();
    let in_order = allocate(&items, &conflicts, &order, |_, _| true);
    order.sort_by_key(|edge| std::cmp::Reverse(items[*edge].request.bytes));
    let largest_first = allocate(&items, &conflicts, &order, |_, _| true);
    let bytes = |buffers: &[SharedBuffer]| buffers.iter().map(|buffer| buffer.bytes).sum::<u64>();
    let saved = bytes(&in_order).saturating_sub(bytes(&largest_first));
    if saved > bytes(&in_order) / WORTH_REORDERING { largest_first } else { in_order }
}

/// Algorithm 1 within each CNN.
fn reuse_in_cnns(storage: &Storage<'_>) -> Vec<SharedBuffer> {
    let items = storage.items();
    let order: Vec<usize> = (0..items.len()).collect();
    allocate(&items, &storage.conflicts(&items), &order, |one, other| one.cnn == other.cnn)
}

/// Gives every edge a buffer, the present one that grows least where one suits. Ties go to the first (line 31's
/// strict comparison). A cut edge is a double buffer whose halves are edges of their own, both busy throughout. Edges share
/// only where `may` agrees.
fn allocate(
    items: &[Item<'_>],
    conflicts: &[Vec<usize>],
    order: &[usize],
    may: impl Fn(&Item<'_>, &Item<'_>) -> bool,
) -> Vec<SharedBuffer> {
    let mut buffers: Vec<SharedBuffer> = Vec::new();
    for &edge in order {
        let size = items[edge].request.bytes;
        let suits = |buffer: &SharedBuffer| {
            let free = |other: &usize| {
                conflicts[edge].binary_search(other).is_err() && may(&items[edge], &items[*other])
            };
            buffer.edges.iter().all(free)
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
