//! Whole buffers for edges. Algorithm 1 of the main paper reuses buffers greedily among edges, CNNs and partitions. The
//! methods with which the paper compares it are here, too.
//!
//! ```
//! use csdfc_plan::plan::StorageModel;
//! use csdfc_planner::frame::choice::Choice;
//! use csdfc_planner::frame::execution::{Rings, execute};
//! use csdfc_planner::frame::{lower::RateTable, task};
//! use csdfc_planner::open::open;
//! use csdfc_planner::storage::edges::{reuse_buffers, total};
//! use csdfc_planner::storage::{Effort, Storage};
//!
//! let application = open("builtin:lenet5")?.resolve()?;
//! let (tasks, elements) = (task::tasks(&application), task::elements(&application));
//! let (rates, choice) = (RateTable::new(tasks[0].network), Choice::none(tasks[0].network));
//! let execution = execute(&tasks[0], &rates, &choice, StorageModel::Edges, Rings::OnDemand)?;
//! let storage = Storage { executions: vec![&execution], elements: &elements };
//!
//! // A chain needs two buffers, which its edges take in turn.
//! let buffers = reuse_buffers(&storage, Effort::Final);
//! assert_eq!(buffers.len(), 2);
//! assert!(total(&buffers) < execution.requests.iter().map(|request| request.bytes).sum());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use super::item::Item;
use crate::storage::{Arrangement, Effort, Storage};

/// Buffers begin at multiples of this many bytes, the size of the widest element in the arena.
const ALIGNMENT: u64 = 4;

/// A buffer shared by edges that are never stored at the same time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedBuffer {
    /// Its bytes, which are those of its largest edge (Eq. 4).
    pub bytes: u64,
    /// The edges, as indices into [`Storage::items`], in the order of allocation.
    pub edges: Vec<usize>,
}

/// Which edges may share a buffer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum BufferSharing {
    /// All of the application's.
    #[default]
    Application,
    /// The same, visited in the one order that gives the paper's Tables 8 and 9.
    Printed,
    /// Those of one CNN.
    Cnn,
    /// None.
    Nothing,
}

/// Gives every edge a place in a buffer. Buffers lie one above the other. Above them lie workspaces, which share rooms in
/// the same way.
pub fn arrange(storage: &Storage<'_>, sharing: BufferSharing, effort: Effort) -> Arrangement {
    let items = storage.items();
    let bound = storage.bound(&items);
    let buffers = buffers(storage, sharing, effort);
    let mut offsets = vec![0; items.len()];
    let mut bytes: u64 = 0;
    let workspaces: Vec<usize> = (0..items.len()).filter(|i| !items[*i].request.is_ring()).collect();
    let rooms = allocate(&items, &storage.conflicts(&items), &workspaces, |_, _| true);
    for buffer in buffers.iter().chain(&rooms) {
        bytes = bytes.checked_next_multiple_of(ALIGNMENT).unwrap_or(u64::MAX);
        for item in &buffer.edges {
            offsets[*item] = bytes;
        }
        bytes = bytes.saturating_add(buffer.bytes);
    }
    Arrangement { bytes, least: bound.bytes, bound, offsets, buffers, regions: Vec::new() }
}

/// The buffers, and the edges in each.
pub fn buffers(storage: &Storage<'_>, sharing: BufferSharing, effort: Effort) -> Vec<SharedBuffer> {
    match sharing {
        BufferSharing::Application => reuse_buffers(storage, effort),
        BufferSharing::Printed => reuse_in_order(storage, |_, _| true),
        BufferSharing::Cnn => reuse_in_order(storage, |one, other| one.cnn == other.cnn),
        BufferSharing::Nothing => {
            let items = storage.items();
            let own = |edge: usize| SharedBuffer { bytes: items[edge].request.bytes, edges: vec![edge] };
            all_edges(&items).into_iter().map(own).collect()
        }
    }
}

/// Another order of edges than the paper's is taken if it makes the buffers smaller by more than one part in this many.
const WORTH_REORDERING: u64 = 64;

/// Algorithm 1. The paper does not say in which order it visits edges. Tables 8 and 9 come out if it visits them by
/// partition, and within a partition by producer and consumer. Another order is taken if it saves more than one part
/// in 64. That order visits the largest edge first, or it is the largest-first order with single edges moved forward.
/// `effort` limits how many such orders are tried. One order takes O(e² · log e) time for e edges.
pub fn reuse_buffers(storage: &Storage<'_>, effort: Effort) -> Vec<SharedBuffer> {
    let items = storage.items();
    let conflicts = storage.conflicts(&items);
    let buffers = |order: &[usize]| allocate(&items, &conflicts, order, |_, _| true);
    let mut order = all_edges(&items);
    let in_order = buffers(&order);
    order.sort_by_key(|edge| std::cmp::Reverse(items[*edge].request.bytes));
    let reordered = visit_edges_earlier(order, effort, &buffers);
    let saved = total(&in_order).saturating_sub(total(&reordered));
    if saved > total(&in_order) / WORTH_REORDERING { reordered } else { in_order }
}

/// The items that are edges.
fn all_edges(items: &[Item<'_>]) -> Vec<usize> {
    (0..items.len()).filter(|i| items[*i].request.is_ring()).collect()
}

/// Bytes of all buffers.
pub fn total(buffers: &[SharedBuffer]) -> u64 {
    buffers.iter().map(|buffer| buffer.bytes).sum()
}

/// The buffers of an order, or of a better order that comes from it. Each step visits one edge earlier, so that the
/// buffers take fewer bytes. Short moves are tried first. It ends when no step helps, or after as many orders as the
/// effort allows.
fn visit_edges_earlier(
    mut order: Vec<usize>,
    effort: Effort,
    buffers: &dyn Fn(&[usize]) -> Vec<SharedBuffer>,
) -> Vec<SharedBuffer> {
    // The budget in comparisons of edges. One order takes about as many as there are pairs of edges.
    let work = match effort {
        Effort::Sketch | Effort::Candidate => 1 << 16,
        Effort::Front | Effort::Final => 1 << 22,
    };
    let places = order.len();
    let orders = work / (places * places).max(1);
    let steps = places * places.saturating_sub(1) / 2;
    let mut best = buffers(&order);
    let mut idle = 0;
    let ways = (1..places).flat_map(|way| (way..places).map(move |from| (from - way, from)));
    for (to, from) in ways.cycle().take(orders) {
        if idle == steps {
            break;
        }
        order[to..=from].rotate_right(1);
        let found = buffers(&order);
        if total(&found) < total(&best) {
            best = found;
            idle = 0;
        } else {
            order[to..=from].rotate_left(1);
            idle += 1;
        }
    }
    best
}

/// Algorithm 1 in the order of partitions, producers and consumers, among edges that may share.
fn reuse_in_order(storage: &Storage<'_>, may: impl Fn(&Item<'_>, &Item<'_>) -> bool) -> Vec<SharedBuffer> {
    let items = storage.items();
    let order = all_edges(&items);
    allocate(&items, &storage.conflicts(&items), &order, may)
}

/// Gives every edge a buffer. If existing buffers suit, it takes the one that grows least, and the first of equal ones
/// (line 31 compares strictly). A cut edge is a double buffer, whose halves are edges of their own and in use all the
/// time. Edges share a buffer only if `may` agrees.
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
