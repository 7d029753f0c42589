//! The cheapest chain of conversions between any two layouts of one tensor.
//!
//! PBQP paper, section 3.1: layouts and the routines that convert between them make the data-layout transformation
//! graph, and the cost of a conversion is the length of the shortest path. The times of routines depend on the size of
//! the tensor, so every edge has a graph of its own.
//!
//! ```
//! use csdfc_select::conversions::Paths;
//! use csdfc_select::instance::Layout;
//!
//! let [chw, hcw, hwc] = [0, 1, 2].map(Layout);
//! // Two conversions one after the other take 2 + 3, less than the direct one.
//! let paths = Paths::new(&[(chw, hcw, 2), (hcw, hwc, 3), (chw, hwc, 10)]);
//! assert_eq!(paths.time(chw, hwc), Some(5));
//! assert_eq!(paths.chain(chw, hwc), [chw, hcw, hwc]);
//! assert_eq!(paths.time(hwc, chw), None);
//! ```

use crate::instance::Layout;

/// All shortest paths of one tensor, by Floyd and Warshall.
#[derive(Debug, Clone)]
pub struct Paths {
    layouts: Vec<Layout>,
    /// By places of two layouts: time and number of conversions of the shortest path, and the place to which it goes first.
    paths: Vec<Option<(u64, usize, usize)>>,
}

impl Paths {
    /// The paths of these routines: from, to, time. The sum of all times must be below 2^64. Of paths that take the same
    /// time, the one with fewer conversions is taken. Takes time in the third power of the number of layouts.
    pub fn new(routines: &[(Layout, Layout, u64)]) -> Paths {
        let mut layouts: Vec<Layout> = routines.iter().flat_map(|(from, to, _)| [*from, *to]).collect();
        layouts.sort_unstable();
        layouts.dedup();
        let count = layouts.len();
        let place = |layout: Layout| layouts.partition_point(|other| *other < layout);
        let mut paths = vec![None; count * count];
        for at in 0..count {
            paths[at * count + at] = Some((0, 0, at));
        }
        for (from, to, time) in routines {
            let (from, to) = (place(*from), place(*to));
            let known = &mut paths[from * count + to];
            if known.is_none_or(|known| (*time, 1) < (known.0, known.1)) {
                *known = Some((*time, 1, to));
            }
        }
        for over in 0..count {
            for from in 0..count {
                let Some((time, steps, first)) = paths[from * count + over] else { continue };
                for to in 0..count {
                    let Some((more, further, _)) = paths[over * count + to] else { continue };
                    let known = &mut paths[from * count + to];
                    let found = (time + more, steps + further);
                    if known.is_none_or(|known| found < (known.0, known.1)) {
                        *known = Some((found.0, found.1, first));
                    }
                }
            }
        }
        Paths { layouts, paths }
    }

    /// The time from one layout to another, 0 between the same. `None` if there is no path.
    pub fn time(&self, from: Layout, to: Layout) -> Option<u64> {
        match from == to {
            true => Some(0),
            false => self.path(from, to).map(|(time, ..)| time),
        }
    }

    /// The layouts of the shortest path, first and last included. Empty if there is no path.
    pub fn chain(&self, from: Layout, to: Layout) -> Vec<Layout> {
        let mut chain = vec![from];
        let mut at = from;
        while at != to {
            let Some((_, _, first)) = self.path(at, to) else { return Vec::new() };
            at = self.layouts[first];
            chain.push(at);
        }
        chain
    }

    fn path(&self, from: Layout, to: Layout) -> Option<(u64, usize, usize)> {
        let from = self.layouts.binary_search(&from).ok()?;
        let to = self.layouts.binary_search(&to).ok()?;
        self.paths[from * self.layouts.len() + to]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAYOUTS: [Layout; 5] = [Layout(3), Layout(0), Layout(7), Layout(1), Layout(9)];

    #[test]
    fn chains_go_the_cheapest_way() {
        let [a, d, x, b, lost] = LAYOUTS;
        let paths = Paths::new(&[(a, d, 2), (d, x, 3), (x, b, 4), (a, b, 10), (b, lost, 0), (a, d, 5)]);
        assert_eq!(paths.time(a, b), Some(9));
        assert_eq!(paths.chain(a, b), [a, d, x, b]);
        assert_eq!((paths.time(b, a), paths.chain(b, a)), (None, vec![]));
        assert_eq!((paths.time(lost, lost), paths.chain(lost, lost)), (Some(0), vec![lost]));
        // A layout that no routine knows.
        assert_eq!((paths.time(Layout(60), Layout(60)), paths.time(a, Layout(60))), (Some(0), None));
    }

    #[test]
    fn of_equal_paths_the_shorter_is_taken() {
        let [a, d, x, b, _] = LAYOUTS;
        let paths = Paths::new(&[(a, d, 0), (d, x, 0), (x, b, 5), (d, a, 0), (a, b, 5)]);
        assert_eq!(paths.chain(a, b), [a, b]);
        assert_eq!(paths.chain(a, x), [a, d, x]);
    }
}
