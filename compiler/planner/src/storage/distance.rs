//! How far apart rings must lie.
//!
//! Two rings that live at the same time lie one above the other, at a distance. If both wrap, the distance is the
//! size of the lower one. If one of them is whole, the distance may be less, because only a part of a whole ring is
//! in use: the lower ring may fill while the upper one drains. Here a layer reads `a` and makes `b`, four rows each.
//! Row o of `b` is written when the rows of `a` below `keep(o)` = o are released:
//!
//! ```text
//! address
//!     ^
//!   4 |  a a a a       a drains from its low end: its first row is released first
//!   3 |  a a a b
//!   2 |  a a b b       b fills from its low end, one row below a
//!   1 |  a b b b
//!   0 |  b b b b
//!     +----------> rows of b, one by one
//! ```
//!
//! The distance is one row instead of four. Together the rings take five rows instead of eight.
//! [`crate::frame::occupancy`] says which bytes of a ring are in use, and when.

use csdfc_packing::Link;

use super::Storage;
use super::item::Item;
use super::moments::RowByRow;
use crate::frame::request::Request;

/// For each item, the items that are stored at the same time, and how far above or below it they must lie at least. The
/// distance is the size of the lower one, or less if only a part of it is in use while the other one is.
pub(super) fn links(storage: &Storage<'_>, items: &[Item<'_>], row_by_row: RowByRow) -> Vec<Vec<Link>> {
    let sharing = Distances::new(storage, row_by_row);
    let mut links = vec![Vec::new(); items.len()];
    for (a, b, is_beside) in storage.pairs(items) {
        let (one, other) = (items[a].request, items[b].request);
        if one.bytes == 0 || other.bytes == 0 {
            continue;
        }
        // A ring between stages shares no byte with one that lives at the same time, in use or not.
        let whole = is_beside
            || one.pipelined
            || other.pipelined
            || one.occupancy_profile.is_none() && other.occupancy_profile.is_none()
            || sharing.apart.binary_search(&(a, b)).is_ok();
        let apart = match whole {
            true => Some((one.bytes as i64, other.bytes as i64)),
            false => sharing.distance([a, b], [one, other]).zip(sharing.distance([b, a], [other, one])),
        };
        // `None`: by the time that one of them is used, all of the other is released.
        let Some((above, below)) = apart else { continue };
        // There is no third way to lie: all rows of a whole ring are begun before the first of them is released, so two
        // consecutive moments together forbid every place between above and below.
        links[a].push(Link { other: b, above, below, is_exact: true });
        links[b].push(Link { other: a, above: below, below: above, is_exact: true });
    }
    links
}

/// The distances between two items that follow from firings which write one and read the other.
struct Distances {
    /// Pairs of items that share no address, in either order, sorted.
    apart: Vec<(usize, usize)>,
    /// Pairs of items, each with a firing that goes row by row, and with their distance in that firing. The item that
    /// is written comes first. The list is sorted.
    sweeps: Vec<((usize, usize), usize, i64)>,
}

impl Distances {
    fn new(storage: &Storage<'_>, row_by_row: RowByRow) -> Self {
        let mut sharing = Distances { apart: Vec::new(), sweeps: Vec::new() };
        let mut first = 0;
        for execution in &storage.executions {
            let at_once = execution.sharing.costly.iter().filter(|costly| match row_by_row {
                RowByRow::All => false,
                RowByRow::Chosen => !execution.goes_one_by_one(costly.layer),
                RowByRow::Free => true,
            });
            let at_once = at_once.flat_map(|costly| &costly.pairs);
            for &(written, read) in execution.sharing.apart.iter().chain(at_once) {
                sharing.apart.push((first + written, first + read));
                sharing.apart.push((first + read, first + written));
            }
            let sweeps = execution.sharing.sweeps.iter();
            for sweep in sweeps.filter(|sweep| row_by_row.takes(execution, sweep)) {
                let of = |request: usize| (first + sweep.output, first + request);
                let swept = sweep.operands.iter();
                let apart = swept.map(|swept| {
                    let bytes = execution.requests[swept.request].bytes;
                    (of(swept.request), sweep.firing, sweep.distance(swept, bytes))
                });
                sharing.sweeps.extend(apart);
            }
            first += execution.requests.len();
        }
        sharing.apart.sort_unstable();
        sharing.sweeps.sort_unstable();
        sharing
    }

    /// How much higher the second ring must start than the first, at least, if the first lies below. For each firing at
    /// which both are in use, this is the end of the used part of the first ring minus the start of the used part of
    /// the second, both counted from the start of their ring. The result is the maximum over all these firings. `None`
    /// if they are never in use together.
    fn distance(&self, pair: [usize; 2], requests: [&Request; 2]) -> Option<i64> {
        let [lower, upper] = requests;
        let (begin, end) = (lower.live.0.max(upper.live.0), lower.last_use().min(upper.last_use()));
        if end < begin {
            return None;
        }
        let released =
            upper.occupancy_profile.as_ref().map_or(&[][..], |occupancy_profile| &occupancy_profile.released);
        let begun =
            lower.occupancy_profile.as_ref().map_or(&[][..], |occupancy_profile| &occupancy_profile.begun);
        let mut next = released.partition_point(|(at, _)| *at < begin);
        let mut made = 0;
        let mut most = i64::MIN;
        loop {
            // Until something is released, the begun part only grows.
            let firing = released.get(next).map_or(end, |(at, _)| (*at).min(end));
            made += begun[made..].partition_point(|(at, _)| *at <= firing);
            let high = made.checked_sub(1).map_or(lower.bytes, |last| begun[last].1);
            let low = next.checked_sub(1).map_or(0, |last| released[last].1);
            let key = (pair[0], pair[1]);
            let sweep = self.sweeps.binary_search_by(|(pair, at, _)| (*pair, *at).cmp(&(key, firing)));
            let here = sweep.map_or(high as i64 - low as i64, |at| self.sweeps[at].2);
            most = most.max(here);
            // From here on, only the released part changes, or nothing.
            if firing >= end || high == lower.bytes && sweep.is_err() {
                return Some(most);
            }
            next += 1;
        }
    }
}
