//! Where rings live: which of them can never share an address, what the arena takes at least, and two ways to place
//! them, Algorithm 1 of the main paper (`edges`) and packing by address (`pack`).

pub mod edges;
mod pack;

use csdfc_codegen::plan::StorageModel;

use crate::execution::{Execution, Request};

/// The executions of all CNNs of an application, with what runs at the same time.
#[derive(Debug)]
pub struct Storage<'a> {
    /// One execution per CNN.
    pub executions: Vec<&'a Execution>,
    /// J: partitions that run at the same time, each as (CNN, partition of that CNN).
    pub elements: &'a [Vec<(usize, usize)>],
}

/// A request and the CNN that makes it.
#[derive(Debug, Clone, Copy)]
pub struct Item<'a> {
    /// Index of the CNN.
    pub cnn: usize,
    /// The ring.
    pub request: &'a Request,
}

/// The moment at which most must be stored.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Peak {
    /// Bytes live at that moment.
    pub bytes: u64,
    /// The firings, each as (CNN, index on its time line).
    pub firings: Vec<(usize, usize)>,
    /// Indices into [`Storage::items`] of the rings live then.
    pub items: Vec<usize>,
}

impl<'a> Storage<'a> {
    /// All rings to be placed: by CNN, in the order of [`Execution::requests`].
    pub fn items(&self) -> Vec<Item<'a>> {
        let of = |(cnn, execution): (usize, &&'a Execution)| {
            execution.requests.iter().map(move |request| Item { cnn, request }).collect::<Vec<_>>()
        };
        self.executions.iter().enumerate().flat_map(of).collect()
    }

    /// For each item, the items that are stored at the same time and so can't share an address with it, ascending:
    /// those of the same CNN whose lives overlap, and those that are live in a partition that runs at the same time.
    pub fn conflicts(&self, items: &[Item<'_>]) -> Vec<Vec<usize>> {
        let together = self.together();
        let occupied: Vec<Vec<(usize, usize)>> = items.iter().map(|item| self.occupied(item)).collect();
        let mut conflicts = vec![Vec::new(); items.len()];
        for a in 0..items.len() {
            for b in 0..a {
                let (one, other) = (items[a].request, items[b].request);
                let in_time =
                    items[a].cnn == items[b].cnn && one.live.0 <= other.live.1 && other.live.0 <= one.live.1;
                let at_once = || {
                    !together.is_empty()
                        && occupied[a].iter().any(|p| {
                            occupied[b].iter().any(|q| p != q && together.binary_search(&(*p, *q)).is_ok())
                        })
                };
                if in_time || at_once() {
                    conflicts[a].push(b);
                    conflicts[b].push(a);
                }
            }
        }
        for list in &mut conflicts {
            list.sort_unstable();
        }
        conflicts
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

    /// The liveness bound: no placement takes less than what is live at once on a CNN's time line, nor less than
    /// the peaks of partitions that run at the same time together with the rings that they share.
    pub fn bound(&self, items: &[Item<'_>]) -> Peak {
        let mut best = Peak::default();
        for cnn in 0..self.executions.len() {
            let own = |item: &Item<'_>| item.cnn == cnn;
            if let Some((bytes, at)) =
                peak(items.iter().filter(|item| own(item)).map(|item| item.request), None)
                && bytes > best.bytes
            {
                let live =
                    |item: &Item<'_>| own(item) && item.request.live.0 <= at && at <= item.request.live.1;
                best = Peak { bytes, firings: vec![(cnn, at)], items: indices(items, live) };
            }
        }
        for element in self.elements.iter().filter(|element| element.len() > 1) {
            let homes: Vec<Vec<usize>> = items.iter().map(|item| self.homes(item, element)).collect();
            let is_own = |i: usize| homes[i].len() == 1 && !items[i].request.pipelined;
            let mut members: Vec<usize> =
                (0..items.len()).filter(|i| !homes[*i].is_empty() && !is_own(*i)).collect();
            let mut bytes: u64 = members.iter().map(|i| items[*i].request.bytes).sum();
            let mut firings = Vec::new();
            for (m, &(cnn, p)) in element.iter().enumerate() {
                let window = &self.executions[cnn].windows[p];
                let own: Vec<usize> = (0..items.len()).filter(|i| is_own(*i) && homes[*i] == [m]).collect();
                let requests = own.iter().map(|i| items[*i].request);
                let Some((own_bytes, at)) = peak(requests, Some((window.start, window.end))) else {
                    continue;
                };
                bytes += own_bytes;
                firings.push((cnn, at));
                let live = |i: &usize| items[*i].request.live.0 <= at && at <= items[*i].request.live.1;
                members.extend(own.into_iter().filter(live));
            }
            if bytes > best.bytes {
                best = Peak { bytes, firings, items: members };
            }
        }
        best
    }

    /// The members of an element of J that an item is stored for: those that use it, or else those that it outlives,
    /// used before and after. One stored for several is so throughout.
    fn homes(&self, item: &Item<'_>, element: &[(usize, usize)]) -> Vec<usize> {
        let of_cnn = || element.iter().enumerate().filter(|(_, (cnn, _))| *cnn == item.cnn);
        let users: Vec<usize> =
            of_cnn().filter(|(_, (_, p))| item.request.touched.contains(p)).map(|(m, _)| m).collect();
        if !users.is_empty() || item.request.pipelined {
            return users;
        }
        let occupied = self.occupied(item);
        of_cnn().filter(|(_, member)| occupied.contains(member)).map(|(m, _)| m).collect()
    }
}

fn indices(items: &[Item<'_>], keep: impl Fn(&Item<'_>) -> bool) -> Vec<usize> {
    items.iter().enumerate().filter(|(_, item)| keep(item)).map(|(i, _)| i).collect()
}

/// The most bytes live at once, and the first firing at which they are, within a half-open window of the time line.
fn peak<'a>(
    requests: impl Iterator<Item = &'a Request>,
    window: Option<(usize, usize)>,
) -> Option<(u64, usize)> {
    let (from, to) = window.unwrap_or((0, usize::MAX));
    let mut events: Vec<(usize, i128)> = Vec::new();
    for request in requests.filter(|request| request.live.0 < to && from <= request.live.1) {
        events.push((request.live.0.max(from), i128::from(request.bytes)));
        events.push((request.live.1 + 1, -i128::from(request.bytes)));
    }
    // At equal times what ends goes first: an interval ends before its last firing plus one.
    events.sort_unstable();
    let mut best = None;
    let mut live = 0;
    for (at, bytes) in events {
        live += bytes;
        if bytes > 0 && best.is_none_or(|(most, _)| live > most) {
            best = Some((live, at));
        }
    }
    best.map(|(bytes, at)| (bytes as u64, at))
}

/// Where every ring lies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arrangement {
    /// Size of the arena.
    pub bytes: u64,
    /// The liveness bound and the moment that sets it.
    pub bound: Peak,
    /// No placement of these rings takes fewer bytes: the bound, or more where a complete search says so.
    pub least: u64,
    /// Offset of each item, in the order of [`Storage::items`].
    pub offsets: Vec<u64>,
    /// The buffers, in model `edges`.
    pub buffers: Vec<edges::SharedBuffer>,
}

/// How hard to look for a better placement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effort {
    /// For one of many plans.
    Candidate,
    /// For the plan that is kept.
    Final,
}

/// Places all rings of an application by its storage model.
pub fn arrange(storage: &Storage<'_>, model: StorageModel, effort: Effort) -> Arrangement {
    match model {
        StorageModel::Edges => edges::arrange(storage, edges::Sharing::Application),
        StorageModel::Tensors => {
            let items = storage.items();
            let bound = storage.bound(&items);
            let solution = pack::pack(storage, &items, &bound.items, effort);
            let (bytes, offsets) = (solution.packing.bytes, solution.packing.offsets);
            Arrangement { bytes, least: solution.bound.max(bound.bytes), bound, offsets, buffers: Vec::new() }
        }
    }
}
