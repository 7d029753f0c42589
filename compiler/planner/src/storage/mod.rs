//! Where rings lie: which of them can never share an address, and how many bytes the arena takes at least.
//!
//! There are two storage models. Both start from the same ring [requests](crate::frame::request): bytes, first and
//! last firing, partitions.
//!
//! - `edges` is the main paper's: one buffer for each edge, shared as a whole by its Algorithm 1 ([`edges`]).
//! - `tensors` is ours: one ring for each tensor, however many readers it has, packed by address (`pack`). Two rings
//!   may share addresses while both live (`distance`).
//!
//! ```
//! use csdfc_plan::plan::StorageModel;
//! use csdfc_planner::frame::choice::Choice;
//! use csdfc_planner::frame::execution::{Rings, execute};
//! use csdfc_planner::frame::{lower::RateTable, task};
//! use csdfc_planner::open::open;
//! use csdfc_planner::storage::{Effort, Storage, arrange};
//!
//! let application = open("builtin:lenet5")?.resolve()?;
//! let (tasks, elements) = (task::tasks(&application), task::elements(&application));
//! let (rates, choice) = (RateTable::new(tasks[0].network), Choice::all(tasks[0].network));
//! let model = StorageModel::Tensors;
//! let execution = execute(&tasks[0], &rates, &choice, model, Rings::OnDemand)?;
//! let storage = Storage { executions: vec![&execution], elements: &elements };
//! let arrangement = arrange(&storage, model, Effort::Final);
//!
//! // Rings share addresses, and no placement is below the liveness bound.
//! assert!(arrangement.bytes < storage.items().iter().map(|item| item.request.bytes).sum());
//! assert!(arrangement.bytes >= arrangement.bound.bytes);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod distance;
pub mod edges;
mod item;
mod moments;
mod pack;
pub mod regions;

use std::ops::Range;

use csdfc_network::LayerId;
use csdfc_packing::Packing;
use csdfc_plan::plan::StorageModel;

use crate::frame::execution::Execution;
use crate::frame::occupancy::RowByRowOption;
use crate::frame::request::{Request, RequestKind};
use crate::strategy::Strategy;

pub use item::{Item, Stored};
use moments::{Moment, RingLives, RowByRow};

/// The executions of all CNNs of an application, with what runs at the same time.
#[derive(Debug)]
pub struct Storage<'a> {
    /// One execution per CNN.
    pub executions: Vec<&'a Execution>,
    /// The set J: partitions that run at the same time, each as the index of its CNN and its index within that CNN.
    pub elements: &'a [Vec<(usize, usize)>],
}

/// The moment at which the most bytes must be stored.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Peak {
    /// Bytes live at that moment.
    pub bytes: u64,
    /// The firings, each as (CNN, index on its time line).
    pub firings: Vec<(usize, usize)>,
    /// What is in use then.
    pub stored: Vec<Stored>,
}

impl<'a> Storage<'a> {
    /// All rings to be placed: by CNN, in the order of [`Execution::requests`].
    pub fn items(&self) -> Vec<Item<'a>> {
        let of = |(cnn, execution): (usize, &&'a Execution)| {
            execution.requests.iter().map(move |request| Item { cnn, request }).collect::<Vec<_>>()
        };
        self.executions.iter().enumerate().flat_map(of).collect()
    }

    /// For each item, the items that are stored at the same time, in ascending order. They are items of the same CNN
    /// whose lives overlap, items that are live in a partition that runs at the same time, and items of other CNNs of
    /// which one persists. It takes O(n²) time for n items.
    pub fn conflicts(&self, items: &[Item<'_>]) -> Vec<Vec<usize>> {
        let mut conflicts = vec![Vec::new(); items.len()];
        for (a, b, _) in self.pairs(items) {
            conflicts[a].push(b);
            conflicts[b].push(a);
        }
        for list in &mut conflicts {
            list.sort_unstable();
        }
        conflicts
    }

    /// Pairs of items that are stored at the same time. The flag says whether this is because partitions run at the
    /// same time, or because one item persists while another CNN runs. Such items share no byte, in use or not.
    fn pairs(&self, items: &[Item<'_>]) -> Vec<(usize, usize, bool)> {
        let together = self.together();
        let occupied: Vec<Vec<(usize, usize)>> = match together.is_empty() {
            true => Vec::new(),
            false => items.iter().map(|item| self.occupied(item)).collect(),
        };
        let mut pairs = Vec::new();
        for a in 0..items.len() {
            for b in 0..a {
                let (one, other) = (items[a].request, items[b].request);
                let of_one_cnn = items[a].cnn == items[b].cnn;
                let in_time = of_one_cnn && one.live.0 <= other.live.1 && other.live.0 <= one.live.1;
                let outlives = !of_one_cnn && (one.persists() || other.persists());
                let at_once = !together.is_empty()
                    && occupied[a].iter().any(|p| {
                        occupied[b].iter().any(|q| p != q && together.binary_search(&(*p, *q)).is_ok())
                    });
                if in_time || outlives || at_once {
                    pairs.push((a, b, outlives || at_once));
                }
            }
        }
        pairs
    }

    /// Ordered pairs of different partitions that run at the same time, sorted.
    fn together(&self) -> Vec<((usize, usize), (usize, usize))> {
        let mut pairs = Vec::new();
        for element in self.elements {
            for p in element {
                pairs.extend(element.iter().filter(|q| *q != p).map(|q| (*p, *q)));
            }
        }
        pairs.sort_unstable();
        pairs.dedup();
        pairs
    }

    /// The partitions in whose stretch of the time line an item is live.
    fn occupied(&self, item: &Item<'_>) -> Vec<(usize, usize)> {
        let windows = self.executions[item.cnn].windows.iter().enumerate();
        let (first, last) = item.request.live;
        windows.filter(|(_, w)| w.start <= last && first < w.end).map(|(p, _)| (item.cnn, p)).collect()
    }

    /// What may be stored while a CNN runs, in ascending order: its own items, and those of other CNNs that persist.
    fn while_running(&self, items: &[Item<'_>], cnn: usize) -> Vec<usize> {
        (0..items.len()).filter(|i| items[*i].cnn == cnn || items[*i].request.persists()).collect()
    }

    /// The liveness bound. No placement takes less than the bytes that are in use at once on a CNN's time line, with
    /// all that persists of other CNNs. Nor does one take less than the peaks of partitions that run at the same time,
    /// together with the rings that they share. The bound assumes that every layer that can makes its rows one by one.
    pub fn bound(&self, items: &[Item<'_>]) -> Peak {
        self.peak(items, RowByRow::All, |_| true)
    }

    /// The most bytes of workspaces that live at one moment.
    pub fn workspaces(&self, items: &[Item<'_>]) -> u64 {
        self.peak(items, RowByRow::All, |request| request.kind == RequestKind::Workspace).bytes
    }

    /// The most bytes that are in use at once by other items while an item lives.
    pub fn max_bytes_beside(&self, items: &[Item<'_>], item: usize) -> u64 {
        let Item { cnn, request } = items[item];
        let others: Vec<usize> =
            self.while_running(items, cnn).into_iter().filter(|other| *other != item).collect();
        let moments = self.line(items, cnn, RowByRow::Chosen).moments(&others, &(0..request.live.1 + 1));
        // The bytes in use when it begins to live are those of the last moment before.
        let first = moments.partition_point(|moment| moment.firing <= request.live.0);
        moments[first.saturating_sub(1)..].iter().map(|moment| moment.bytes).max().unwrap_or(0)
    }

    /// The bytes that are in use at each firing of a CNN's frame.
    pub fn profile(&self, cnn: usize) -> Vec<u64> {
        let items = self.items();
        let stored = self.while_running(&items, cnn);
        let end = self.executions[cnn].windows.last().map_or(0, |window| window.end);
        let mut profile = vec![0; end];
        let moments = self.line(&items, cnn, RowByRow::Chosen).moments(&stored, &(0..usize::MAX));
        for (i, moment) in moments.iter().enumerate() {
            let next = moments.get(i + 1).map_or(end, |next| next.firing).min(end);
            if let Some(stretch) = profile.get_mut(moment.firing..next) {
                stretch.fill(moment.bytes);
            }
        }
        profile
    }

    /// The same bound if, of the layers for which it costs time, only the chosen ones go one by one.
    pub fn bound_as_chosen(&self, items: &[Item<'_>]) -> u64 {
        self.peak(items, RowByRow::Chosen, |_| true).bytes
    }

    /// The layers of a CNN that can make their rows one by one at a cost in time. Each comes with a lower bound, in bytes, of
    /// all placements in which it makes them at once: the bytes in use at its fullest firing, or those of its rings
    /// side by side.
    pub fn at_once(&self, items: &[Item<'_>], cnn: usize) -> Vec<(LayerId, u64)> {
        let execution = self.executions[cnn];
        let stored = self.while_running(items, cnn);
        let moments = self.line(items, cnn, RowByRow::Free).moments(&stored, &(0..usize::MAX));
        let bytes_at = |firing: usize| {
            let at = moments.binary_search_by_key(&firing, |moment| moment.firing);
            at.map_or(0, |at| moments[at].bytes)
        };
        let of_layer = |costly: &RowByRowOption| {
            let sweeps = execution.sharing.sweeps.iter().filter(|sweep| sweep.layer == costly.layer);
            let bytes = |request: usize| execution.requests[request].bytes;
            let apart = costly.pairs.iter().map(|(written, read)| bytes(*written) + bytes(*read));
            let fullest = sweeps.map(|sweep| bytes_at(sweep.firing)).chain(apart).max();
            (costly.layer, fullest.unwrap_or(0))
        };
        execution.sharing.costly.iter().map(of_layer).collect()
    }

    /// The layers of a CNN that make their rows one by one at a cost in time, because their rings share addresses at these
    /// offsets.
    pub fn one_by_one(&self, items: &[Item<'_>], offsets: &[u64], cnn: usize) -> Vec<LayerId> {
        let execution = self.executions[cnn];
        let first = items.iter().position(|item| item.cnn == cnn).unwrap_or(0);
        let place = |request: usize| {
            let at = offsets[first + request];
            at..at + execution.requests[request].bytes
        };
        let shares = |costly: &&RowByRowOption| {
            costly.pairs.iter().any(|(written, read)| {
                let (written, read) = (place(*written), place(*read));
                written.start < read.end && read.start < written.end
            })
        };
        execution.sharing.costly.iter().filter(shares).map(|costly| costly.layer).collect()
    }

    /// The fullest moment of the items that count.
    fn peak(&self, items: &[Item<'_>], row_by_row: RowByRow, counts: impl Fn(&Request) -> bool) -> Peak {
        let mut best = Peak::default();
        for cnn in 0..self.executions.len() {
            let mut own = self.while_running(items, cnn);
            own.retain(|i| counts(items[*i].request));
            let line = self.line(items, cnn, row_by_row);
            if let Some(peak) = peak(&line.moments(&own, &(0..usize::MAX)))
                && peak.bytes > best.bytes
            {
                let stored = line.stored(&own, peak.firing);
                best = Peak { bytes: peak.bytes, firings: vec![(cnn, peak.firing)], stored };
            }
        }
        let together = self.together();
        // Whether another partition uses a ring between stages while this one runs.
        let is_between = |item: &Item<'_>, member: (usize, usize)| {
            let runs_too = |p: &usize| together.binary_search(&(member, (item.cnn, *p))).is_ok();
            item.request.pipelined && item.request.touched.iter().any(runs_too)
        };
        for element in self.elements.iter().filter(|element| element.len() > 1) {
            let home = |item: &Item<'_>| match counts(item.request) {
                true => self.homes(item, element),
                false => Vec::new(),
            };
            let homes: Vec<Vec<usize>> = items.iter().map(home).collect();
            let is_own = |i: usize| homes[i].len() == 1 && !is_between(&items[i], element[homes[i][0]]);
            // What persists of CNNs that do not run now is stored, too.
            let shared = (0..items.len()).filter(|i| match homes[*i].is_empty() {
                true => items[*i].request.persists() && counts(items[*i].request),
                false => !is_own(*i),
            });
            let mut stored: Vec<Stored> =
                shared.map(|item| Stored { item, bytes: 0..items[item].request.bytes }).collect();
            let mut bytes: u64 = stored.iter().map(|stored| stored.bytes.end).sum();
            let mut firings = Vec::new();
            for (m, &(cnn, p)) in element.iter().enumerate() {
                let own: Vec<usize> = (0..items.len()).filter(|i| is_own(*i) && homes[*i] == [m]).collect();
                let line = self.line(items, cnn, row_by_row);
                let window = &self.executions[cnn].windows[p];
                let Some(peak) = peak(&line.moments(&own, window)) else {
                    // All that it stores is shared, at any of its firings.
                    firings.push((cnn, window.start));
                    continue;
                };
                bytes += peak.bytes;
                firings.push((cnn, peak.firing));
                stored.extend(line.stored(&own, peak.firing));
            }
            // The fullest moment of a CNN's own line is one of an element, if some of its partitions run then.
            if bytes >= best.bytes {
                best = Peak { bytes, firings, stored };
            }
        }
        best
    }

    fn line<'b>(&'b self, items: &'b [Item<'b>], cnn: usize, row_by_row: RowByRow) -> RingLives<'b> {
        let first = items.iter().position(|item| item.cnn == cnn).unwrap_or(0);
        RingLives { items, cnn, execution: self.executions[cnn], first, row_by_row }
    }

    /// The members of an element of J for which an item is stored. They are the members that use it. If none does, they
    /// are those that run between two uses of it. An item that is stored for several members is stored all the time.
    fn homes(&self, item: &Item<'_>, element: &[(usize, usize)]) -> Vec<usize> {
        let of_cnn = || element.iter().enumerate().filter(|(_, (cnn, _))| *cnn == item.cnn);
        let users: Vec<usize> =
            of_cnn().filter(|(_, (_, p))| item.request.touched.contains(p)).map(|(m, _)| m).collect();
        if !users.is_empty() {
            return users;
        }
        let occupied = self.occupied(item);
        of_cnn().filter(|(_, member)| occupied.contains(member)).map(|(m, _)| m).collect()
    }
}

/// The fullest moment; the first of equal ones.
fn peak(moments: &[Moment]) -> Option<Moment> {
    moments.iter().rev().copied().max_by_key(|moment| moment.bytes)
}

/// Where every ring lies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arrangement {
    /// Size of the arena.
    pub bytes: u64,
    /// The liveness bound and the moment that sets it.
    pub bound: Peak,
    /// A lower bound, in bytes, of all placements of these rings, whichever layers make their rows one by one. It is
    /// the liveness bound, or more if a complete search says so.
    pub least: u64,
    /// Offset of each item, in the order of [`Storage::items`].
    pub offsets: Vec<u64>,
    /// The buffers, in model `edges`.
    pub buffers: Vec<edges::SharedBuffer>,
    /// The addresses that lie in each memory of the board; empty if it has one.
    pub regions: Vec<Range<u64>>,
}

/// How hard to look for a better placement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effort {
    /// For one of thousands of plans. A few orders are tried, with each ring as low as it can lie.
    Sketch,
    /// For one of many plans.
    Candidate,
    /// For one of the few plans that are worth choosing.
    Front,
    /// For the plan that is kept.
    Final,
}

impl Effort {
    /// The effort if these strategies are left out.
    pub fn without(self, strategies: &[Strategy]) -> Self {
        if strategies.contains(&Strategy::CompletePacking) { Effort::Sketch } else { self }
    }
}

/// Places all rings of an application by its storage model.
pub fn arrange(storage: &Storage<'_>, model: StorageModel, effort: Effort) -> Arrangement {
    match model {
        StorageModel::Edges => edges::arrange(storage, edges::BufferSharing::Application, effort),
        StorageModel::Tensors => {
            let items = storage.items();
            let bound = storage.bound(&items);
            let placed = pack::pack(storage, &items, &bound, effort);
            let pack::Placed { packing: Packing { bytes, offsets }, least } = placed;
            Arrangement { bytes, least, bound, offsets, buffers: Vec::new(), regions: Vec::new() }
        }
    }
}
