//! From the rows that an output row reads to what a layer acquires and releases at each firing (the main paper,
//! section 2.5).
//!
//! A layer that makes r rows per firing fires Φ = ⌈H / r⌉ times a frame. Firing p makes the output rows
//! `[p·r, (p+1)·r)`, the last firing those that are left. Two counts follow from the layer's window:
//!
//! - `need(p)`: how many leading rows of the operand the firings up to firing p read;
//! - `keep(p)`: the first row that firing p or a later one reads.
//!
//! Rows that no window uses pass through the firing before them, so `need(p)` is at least `keep(p+1)`.
//!
//! So firing p *acquires* `need(p) − need(p−1)` rows when it starts. It *releases* `keep(p+1) − keep(p)` rows when it
//! ends, and the last firing releases all that are left. These two rates, run-length coded, are all that dataflow
//! learns of an operator.

use super::facts::RowAccess;

/// Rows of an operand of `rows_in` rows that must be there before output rows `0..y_end` can be made.
pub fn row_need(access: &RowAccess, rows_in: u64, y_end: u64) -> u64 {
    let Some(last) = y_end.checked_sub(1) else { return 0 };
    match access {
        RowAccess::Window { kernel, stride, dilation, top } => {
            let extent = (*kernel as i128 - 1) * *dilation as i128 + 1;
            clamp(i128::from(last) * *stride as i128 - i128::from(*top) + extent, rows_in)
        }
        RowAccess::Rows(table) => entry(table, last).map_or(rows_in, |rows| (rows.end as u64).min(rows_in)),
        RowAccess::Whole => rows_in,
    }
}

/// The first row of an operand of `rows_in` rows that output rows `y..` still need.
pub fn row_keep(access: &RowAccess, rows_in: u64, y: u64) -> u64 {
    match access {
        RowAccess::Window { stride, top, .. } => {
            clamp(i128::from(y) * *stride as i128 - i128::from(*top), rows_in)
        }
        RowAccess::Rows(table) => entry(table, y).map_or(rows_in, |rows| (rows.start as u64).min(rows_in)),
        RowAccess::Whole => 0,
    }
}

/// Rows acquired at the start and released at the end of each of the `⌈rows_out / rows_per_firing⌉` firings.
///
/// Rows that no window uses pass through the firing before them. That firing acquires the rows between its window and
/// the next one, or below the last window, and releases them at its end. So each of the two sequences sums to
/// `rows_in`, and no unused row waits for the next firing. It takes O(firings) time if a window reads the operand.
///
/// ```
/// use csdfc_network::operators::{RowAccess, acquire_release};
///
/// // A 5×5 convolution with same padding over 8 rows, two rows of output per firing.
/// let access = RowAccess::Window { kernel: 5, stride: 1, dilation: 1, top: 2 };
/// let (acquire, release) = acquire_release(&access, 8, 8, 2);
/// assert_eq!(acquire, [4, 2, 2, 0]);
/// assert_eq!(release, [0, 2, 2, 4]);
/// ```
pub fn acquire_release(
    access: &RowAccess,
    rows_in: u64,
    rows_out: u64,
    rows_per_firing: u64,
) -> (Vec<u64>, Vec<u64>) {
    rates(access, rows_in, rows_out, rows_per_firing, |y| row_keep(access, rows_in, y))
}

/// The same for one hop of a stream, whose windows also read rows of the hops before: those are negative. The rows that
/// the first window reads of them are held when the hop begins, and as many rows of the hop are when it ends. Each firing
/// counts what it releases as acquired, so both sequences sum to `rows_in`.
///
/// ```
/// use csdfc_network::operators::{RowAccess, acquire_release_in_hop};
///
/// // Three rows, of which the last is the newest: two rows stay from hop to hop.
/// let access = RowAccess::Window { kernel: 3, stride: 1, dilation: 1, top: 2 };
/// assert_eq!(acquire_release_in_hop(&access, 4, 4, 1), (vec![1; 4], vec![1; 4]));
/// ```
pub fn acquire_release_in_hop(
    access: &RowAccess,
    rows_in: u64,
    rows_out: u64,
    rows_per_firing: u64,
) -> (Vec<u64>, Vec<u64>) {
    let keep = |y: u64| match access {
        RowAccess::Window { stride, top, .. } => {
            let held = i128::from(*top).max(0);
            clamp(i128::from(y) * *stride as i128 - i128::from(*top) + held, rows_in)
        }
        _ => row_keep(access, rows_in, y),
    };
    rates(access, rows_in, rows_out, rows_per_firing, keep)
}

/// Rates of firings that release the rows below `keep(y)` before they make row y.
fn rates(
    access: &RowAccess,
    rows_in: u64,
    rows_out: u64,
    rows_per_firing: u64,
    keep: impl Fn(u64) -> u64,
) -> (Vec<u64>, Vec<u64>) {
    let rows_per_firing = rows_per_firing.max(1);
    let firings = rows_out.div_ceil(rows_per_firing);
    let (mut acquire, mut release) = (Vec::new(), Vec::new());
    let (mut acquired, mut released) = (0, 0);
    for firing in 1..=firings {
        let (need, keep) = if firing == firings {
            (rows_in, rows_in)
        } else {
            let y_end = firing * rows_per_firing;
            let keep = keep(y_end).max(released);
            (row_need(access, rows_in, y_end).max(acquired).max(keep), keep)
        };
        acquire.push(need - acquired);
        release.push(keep - released);
        (acquired, released) = (need, keep);
    }
    (acquire, release)
}

fn clamp(row: i128, rows_in: u64) -> u64 {
    u64::try_from(row.max(0)).map_or(rows_in, |row| row.min(rows_in))
}

fn entry<T>(table: &[T], y: u64) -> Option<&T> {
    usize::try_from(y).ok().and_then(|y| table.get(y))
}

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use proptest::prelude::*;

    use super::*;

    fn window(kernel: usize, stride: usize, dilation: usize, top: i64) -> RowAccess {
        RowAccess::Window { kernel, stride, dilation, top }
    }

    /// Runs of equal rates, as `docs/design.md` writes them.
    fn runs(rates: &[u64]) -> String {
        let runs = rates.chunk_by(|a, b| a == b).map(|run| format!("{}*{}", run.len(), run[0]));
        runs.collect::<Vec<_>>().join(",")
    }

    fn check(access: &RowAccess, rows: [u64; 3], acquire: &str, release: &str) {
        let [rows_in, rows_out, rows_per_firing] = rows;
        let (a, r) = acquire_release(access, rows_in, rows_out, rows_per_firing);
        assert_eq!((runs(&a).as_str(), runs(&r).as_str()), (acquire, release));
    }

    #[test]
    fn published_examples() {
        // The main paper's 5×5 convolution with same padding on 32 rows.
        check(&window(5, 1, 1, 2), [32, 32, 1], "1*3,29*1,2*0", "2*0,29*1,1*3");
        check(&window(5, 1, 1, 2), [32, 32, 32], "1*32", "1*32");
        check(&window(5, 1, 1, 2), [32, 32, 3], "1*5,9*3,1*0", "1*1,9*3,1*4");
        // 3×3 of stride 2; the row below the last window passes through the last firing.
        check(&window(3, 2, 1, 0), [8, 3, 1], "1*3,1*2,1*3", "2*2,1*4");
        check(&window(3, 2, 1, 1), [8, 4, 1], "4*2", "1*1,2*2,1*3");
        check(&window(3, 1, 2, 0), [8, 4, 1], "1*5,3*1", "3*1,1*5");
        // 1×1 of stride 2: each firing takes the row that it skips.
        check(&window(1, 2, 1, 0), [8, 4, 1], "4*2", "4*2");
        // A crop of two rows above.
        check(&window(1, 1, 1, -2), [8, 4, 1], "1*3,2*1,1*3", "1*3,2*1,1*3");
        check(&RowAccess::Whole, [8, 4, 1], "1*8,3*0", "3*0,1*8");
        // The second of two operands joined along the rows.
        let table = vec![0..0, 0..0, 0..1, 1..2, 2..3];
        check(&RowAccess::Rows(table), [3, 5, 1], "2*0,3*1", "2*0,3*1");
    }

    fn ranges(access: &RowAccess, rows_in: u64, rows_out: u64) -> Vec<Range<u64>> {
        let cut = |row: i64| row.clamp(0, rows_in as i64) as u64;
        (0..rows_out)
            .map(|y| match access {
                RowAccess::Window { kernel, stride, dilation, top } => {
                    let start = y as i64 * *stride as i64 - top;
                    cut(start)..cut(start + (*kernel as i64 - 1) * *dilation as i64 + 1)
                }
                RowAccess::Rows(table) => table[y as usize].start as u64..table[y as usize].end as u64,
                RowAccess::Whole => 0..rows_in,
            })
            .collect()
    }

    fn accesses() -> impl Strategy<Value = (RowAccess, u64, u64)> {
        let windows = (1usize..6, 1usize..5, 1usize..4, -4i64..8, 1u64..24, 1u64..24)
            .prop_map(|(k, s, d, top, rows_in, rows_out)| (window(k, s, d, top), rows_in, rows_out));
        let tables = (1u64..24, prop::collection::vec((0usize..24, 0usize..24), 1..24)).prop_map(
            |(rows_in, pairs)| {
                let cut = |row: usize| row.min(rows_in as usize);
                let mut starts: Vec<usize> = pairs.iter().map(|pair| cut(pair.0.min(pair.1))).collect();
                let mut ends: Vec<usize> = pairs.iter().map(|pair| cut(pair.0.max(pair.1))).collect();
                starts.sort_unstable();
                ends.sort_unstable();
                let table: Vec<_> = starts.into_iter().zip(ends).map(|(start, end)| start..end).collect();
                let rows_out = table.len() as u64;
                (RowAccess::Rows(table), rows_in, rows_out)
            },
        );
        prop_oneof![windows, tables, (1u64..24, 1u64..24).prop_map(|(i, o)| (RowAccess::Whole, i, o))]
    }

    proptest! {
        /// Every row is there when it is read, none sooner or longer than that takes, and a frame leaves nothing.
        #[test]
        fn agrees_with_the_definition((access, rows_in, rows_out) in accesses(), rows_per_firing in 1u64..26) {
            let reads = ranges(&access, rows_in, rows_out);
            let (acquire, release) = acquire_release(&access, rows_in, rows_out, rows_per_firing);
            let firings = rows_out.div_ceil(rows_per_firing) as usize;
            prop_assert_eq!((acquire.len(), release.len()), (firings, firings));
            prop_assert_eq!((acquire.iter().sum::<u64>(), release.iter().sum::<u64>()), (rows_in, rows_in));
            let (mut acquired, mut released) = (0, 0);
            for firing in 0..firings {
                let y = firing as u64 * rows_per_firing;
                let y_end = (y + rows_per_firing).min(rows_out);
                acquired += acquire[firing];
                for rows in &reads[y as usize..y_end as usize] {
                    prop_assert!(rows.is_empty() || (released <= rows.start && rows.end <= acquired));
                }
                released += release[firing];
                prop_assert!(released <= acquired);
                if firing + 1 < firings {
                    let need = reads[..y_end as usize].iter().map(|rows| rows.end).max();
                    let keep = reads[y_end as usize..].iter().map(|rows| rows.start).min();
                    prop_assert_eq!(Some(acquired), need.max(keep));
                    prop_assert_eq!(Some(released), keep);
                }
            }
        }
    }
}
