//! Lower bounds on all strategies.
//!
//! ```
//! use csdfc_offload::bound::lower_bound;
//! use csdfc_offload::problem::Options;
//! use csdfc_offload::{Accelerator, Convolution, Problem, Spec};
//!
//! // A 3×3 window over 5×5 pixels, two patches per step: 25 pixels at least, in five steps.
//! let layer = Convolution::new(Spec::new([5, 5], 1, [3, 3], 1))?;
//! let options = Options { group: Some(2), ..Options::default() };
//! let problem = Problem::new(layer, Accelerator::default(), &options)?;
//! assert_eq!(lower_bound(&problem), 30);
//! # Ok::<(), csdfc_offload::OffloadError>(())
//! ```

use super::problem::Problem;

/// A lower bound on the duration of every strategy of a problem.
///
/// There are two arguments, and the better one counts. First, every covered pixel is loaded at least once. Second, cut
/// a strategy into runs of steps. Each run is as short as possible with at least q patches, so it has at most q + group
/// − 1 patches. A run must load all pixels that its patches cover, except those that the step before it left in memory
/// (the argument of Hong and Kung on pebble games, 1981). Both arguments add the fewest possible steps.
pub fn lower_bound(problem: &Problem) -> u64 {
    let convolution = &problem.convolution;
    let covered = convolution.covered_pixels() as u64;
    let steps = problem.fewest_groups() as u64;
    let patches = convolution.patches();
    let held = most_held(problem);
    let pass = match problem.passes() {
        1 => run_lengths(patches).map(|q| by_runs(problem, q, held)).max().unwrap_or(0).max(covered),
        _ => covered,
    };
    // A later pass finds at most what one group covers.
    let later = (problem.passes() - 1) * covered.saturating_sub(held);
    problem.duration(pass + later, steps * problem.passes())
}

/// Lengths of runs that are tried: all small ones, then ever fewer.
fn run_lengths(patches: usize) -> impl Iterator<Item = usize> {
    std::iter::successors(Some(1usize), |q| Some(q + 1 + q / 16)).take_while(move |q| *q <= patches)
}

/// The most pixels that a group can cover, and so the most that a step can leave to the next.
fn most_held(problem: &Problem) -> u64 {
    let convolution = &problem.convolution;
    let apart = (problem.group * convolution.pixels_per_patch()).min(convolution.covered_pixels()) as u64;
    match problem.accelerator.mem {
        None => apart,
        Some(mem) => {
            let rest = problem.memory(0, 1);
            apart.min(mem.saturating_sub(rest) / convolution.spec().channels as u64)
        }
    }
}

/// Loads of one pass, by runs of q patches.
fn by_runs(problem: &Problem, q: usize, held: u64) -> u64 {
    let patches = problem.convolution.patches();
    let runs = patches / (q + problem.group - 1);
    let left = patches.saturating_sub(runs * (q + problem.group - 1));
    let fewest = |q| if q > 0 { fewest_pixels(problem, q) } else { 0 };
    // Only the first run finds nothing in memory.
    match runs {
        0 => fewest(left),
        _ => {
            let later = (runs as u64 - 1) * fewest(q).saturating_sub(held);
            fewest(q) + later + fewest(left).saturating_sub(held)
        }
    }
}

/// No `patches` patches cover fewer pixels than this.
///
/// With stride s, consider the pixels of each residue class modulo s. They are covered as by a filter of stride 1 that
/// has the a by b elements of the filter which fall into the class. If the patches lie in r rows, one row has at least
/// m = ⌈patches / r⌉ of them. Moving every row's patches to the left does not enlarge the union. After that, each pixel
/// row holds at least b − 1 more pixels than the longest patch row that reaches it. Spreading a sequence over a
/// neighbours adds its maximum at least a − 1 times, level by level. So a class has `patches + (a − 1)·m + (b − 1)·(r +
/// a − 1)` pixels or more.
fn fewest_pixels(problem: &Problem, patches: usize) -> u64 {
    let [rows, columns] = problem.convolution.output();
    let spec = problem.convolution.spec();
    let classes = |axis: usize| {
        let mut counts = vec![0u64; spec.stride[axis].min(spec.filter[axis] * spec.dilation[axis])];
        for tap in 0..spec.filter[axis] {
            counts[tap * spec.dilation[axis] % spec.stride[axis]] += 1;
        }
        counts.retain(|count| *count > 0);
        counts
    };
    let (high, wide) = (classes(0), classes(1));
    let in_rows = |r: usize| -> u64 {
        let (longest, r, q) = (patches.div_ceil(r) as u64, r as u64, patches as u64);
        let class = |a: u64, b: u64| q + (a - 1) * longest + (b - 1) * (r + a - 1);
        high.iter().map(|a| wide.iter().map(|b| class(*a, *b)).sum::<u64>()).sum()
    };
    let fewest_rows = patches.div_ceil(columns);
    (fewest_rows..=rows.min(patches)).map(in_rows).min().unwrap_or(0)
}
