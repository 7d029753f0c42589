//! The heuristics: orders in which patches are walked, cut into groups (the paper's section 7.2, and shapes beyond).
//!
//! The first layer of LeNet-5, one patch per step (the paper's Figure 11):
//!
//! ```
//! use csdfc_offload::problem::Options;
//! use csdfc_offload::shapes::{Heuristic, best};
//! use csdfc_offload::{Accelerator, Convolution, Problem, Spec};
//!
//! let layer = Convolution::new(Spec::new([32, 32], 1, [5, 5], 1))?;
//! let options = Options { group: Some(1), ..Options::default() };
//! let problem = Problem::new(layer, Accelerator::default(), &options)?;
//! let [row, zigzag] = [best(&problem, Heuristic::Row)?, best(&problem, Heuristic::ZigZag)?];
//! assert_eq!(problem.cost(&row.groups).duration, 5264);
//! assert_eq!(problem.cost(&zigzag.groups).duration, 4724);
//! # Ok::<(), csdfc_offload::OffloadError>(())
//! ```

use std::sync::atomic::AtomicBool;

use super::accelerator::Accelerator;
use super::error::OffloadError;
use super::problem::Problem;
use super::stop::is_asked;
use super::strategy::{Groups, Strategy};

/// Pixels that all candidates of a kind may visit together when they are tried. This limits the number of candidates.
const MAX_VISITS: usize = 1 << 28;

/// A heuristic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Heuristic {
    /// S1-baseline (Definition 12): one patch for each step. The paper leaves the order open; ours is row by row.
    Baseline,
    /// Row by row, left to right.
    Row,
    /// Even rows left to right, odd rows right to left.
    ZigZag,
    /// Bands of rows (or of columns), each walked column by column (row by row) in turning directions.
    Column,
    /// Blocks of patches, each computed by combs: groups of patches that lie a few patches apart, so that the next
    /// group finds most of its pixels in memory. With teeth one apart, a group is a whole block.
    Comb,
}

/// The name of a kind, as `--strategy` takes it.
pub const HEURISTICS: [(&str, Heuristic); 5] = [
    ("baseline", Heuristic::Baseline),
    ("row", Heuristic::Row),
    ("zigzag", Heuristic::ZigZag),
    ("column", Heuristic::Column),
    ("comb", Heuristic::Comb),
];

/// A band walk.
#[derive(Debug, Clone, Copy)]
struct Bands {
    /// Patches across a band.
    height: usize,
    /// Whether bands are of columns instead of rows.
    upright: bool,
    /// Whether neighbouring columns are walked in opposite directions.
    turning: bool,
    /// Whether each band begins with a group of its own.
    apart: bool,
}

/// A comb walk. In pairs, the height comes first.
#[derive(Debug, Clone, Copy)]
struct Combs {
    /// Teeth of a comb.
    teeth: [usize; 2],
    /// Distance of its teeth.
    pitch: [usize; 2],
    /// Whether blocks are walked column by column instead of row by row.
    upright: bool,
}

/// The best strategy of a kind that meets the problem's bounds on memory and loads.
///
/// Groups are as large as the problem allows, or smaller if only smaller ones fit the memory.
///
/// # Errors
/// When none does: what the nearest needs.
pub fn best(problem: &Problem, kind: Heuristic) -> Result<Strategy, OffloadError> {
    best_until(problem, kind, None)
}

/// [`best`] of those that are tried until `stop` is true, and at least one if one keeps the bounds.
///
/// # Errors
/// As [`best`].
pub fn best_until(
    problem: &Problem,
    kind: Heuristic,
    stop: Option<&AtomicBool>,
) -> Result<Strategy, OffloadError> {
    let mut best: Option<(u64, Strategy)> = None;
    let mut nearest: Option<(u32, u64)> = None;
    let mut smaller = problem.clone();
    // Groups shrink until they fit the memory.
    while best.is_none() && smaller.group > 0 {
        for (shape, walk) in candidates(&smaller, kind) {
            if best.is_some() && is_asked(stop) {
                break;
            }
            let groups = walk.groups(&smaller);
            let cost = problem.cost(&groups);
            if problem.admits(&cost) {
                if best.as_ref().is_none_or(|(duration, _)| cost.duration < *duration) {
                    let name = name(kind).to_owned();
                    best = Some((cost.duration, Strategy { name, shape, groups }));
                }
            } else {
                let figures = (cost.most_loads, cost.memory);
                nearest = Some(nearest.map_or(figures, |nearest| nearest.min(figures)));
            }
        }
        let less = smaller.group - smaller.group.div_ceil(8);
        smaller.group = if problem.accelerator.mem.is_some() { less } else { 0 };
    }
    best.map(|(_, strategy)| strategy).ok_or_else(|| {
        let (loads, memory) = nearest.unwrap_or_default();
        OffloadError::Unmet {
            problem: format!("no strategy `{}` keeps the bounds on memory and loads of a pixel", name(kind)),
            nearest: Some(format!("the nearest that works: --reload {loads} and --mem-elements {memory}")),
        }
    })
}

/// The strategy of a kind with groups of the problem's size, whether or not it keeps the bounds. If there are several,
/// it is the one of the least duration.
pub fn unbounded(problem: &Problem, kind: Heuristic) -> Strategy {
    let free = Problem {
        reload: None,
        accelerator: Accelerator { mem: None, ..problem.accelerator.clone() },
        ..problem.clone()
    };
    // Without bounds, the first candidate is admitted.
    best(&free, kind).unwrap_or_else(|_| Strategy {
        name: name(kind).to_owned(),
        shape: None,
        groups: cut(0..problem.convolution.patches() as u32, problem.group),
    })
}

fn name(kind: Heuristic) -> &'static str {
    HEURISTICS.iter().find(|(_, known)| *known == kind).map_or("", |(name, _)| name)
}

#[derive(Debug, Clone, Copy)]
enum Walk {
    Baseline,
    Row,
    ZigZag,
    Bands(Bands),
    Combs(Combs),
}

fn candidates(problem: &Problem, kind: Heuristic) -> Vec<(Option<String>, Walk)> {
    match kind {
        Heuristic::Baseline => vec![(None, Walk::Baseline)],
        Heuristic::Row => vec![(None, Walk::Row)],
        Heuristic::ZigZag => vec![(None, Walk::ZigZag)],
        Heuristic::Column => thinned(problem, bands(problem)),
        Heuristic::Comb => thinned(problem, combs(problem)),
    }
}

/// Candidates, taken evenly, as many as may be tried.
fn thinned(problem: &Problem, all: Vec<(String, Walk)>) -> Vec<(Option<String>, Walk)> {
    let taps = problem.convolution.patches() * problem.convolution.pixels_per_patch();
    let most = (MAX_VISITS / taps.max(1)).max(1);
    let step = all.len().div_ceil(most).max(1);
    all.into_iter().step_by(step).map(|(shape, walk)| (Some(shape), walk)).collect()
}

fn bands(problem: &Problem) -> Vec<(String, Walk)> {
    let output = problem.convolution.output();
    let mut all = Vec::new();
    for upright in [false, true] {
        for height in 1..=problem.group.min(output[usize::from(upright)]) {
            for turning in [false, true] {
                for apart in [false, true] {
                    let what = if upright { "columns" } else { "rows" };
                    let turns = if turning { ", turning" } else { "" };
                    let ends = if apart { ", apart" } else { "" };
                    let shape = format!("bands of {height} {what}{turns}{ends}");
                    all.push((shape, Walk::Bands(Bands { height, upright, turning, apart })));
                }
            }
        }
    }
    all
}

fn combs(problem: &Problem) -> Vec<(String, Walk)> {
    let [rows, columns] = problem.convolution.output();
    // Teeth further apart than this share no pixel with those between them.
    let reach = |axis: usize| {
        let spec = problem.convolution.spec();
        let extent = (spec.filter[axis] - 1) * spec.dilation[axis] + 1;
        extent.div_ceil(spec.stride[axis]).clamp(1, 4)
    };
    let mut all = Vec::new();
    for high in 1..=problem.group.min(rows) {
        let wide = (problem.group / high).min(columns);
        for pitch_y in 1..=if high > 1 { reach(0) } else { 1 } {
            for pitch_x in 1..=if wide > 1 { reach(1) } else { 1 } {
                for upright in [false, true] {
                    let order = if upright { "column by column" } else { "row by row" };
                    let shape = format!("{high}x{wide} teeth, {pitch_y}x{pitch_x} apart, {order}");
                    let combs = Combs { teeth: [high, wide], pitch: [pitch_y, pitch_x], upright };
                    all.push((shape, Walk::Combs(combs)));
                }
            }
        }
    }
    all
}

impl Walk {
    fn groups(&self, problem: &Problem) -> Groups {
        let [rows, columns] = problem.convolution.output();
        let group = problem.group;
        match self {
            Walk::Baseline => cut(0..(rows * columns) as u32, 1),
            Walk::Row => cut(0..(rows * columns) as u32, group),
            Walk::ZigZag => {
                let walk = (0..rows).flat_map(|row| {
                    (0..columns).map(move |column| {
                        (row * columns + if row % 2 == 0 { column } else { columns - 1 - column }) as u32
                    })
                });
                cut(walk, group)
            }
            Walk::Bands(bands) => bands.groups([rows, columns], group),
            Walk::Combs(combs) => combs.groups([rows, columns], group),
        }
    }
}

/// Every `group` patches of a walk are a group.
fn cut(walk: impl IntoIterator<Item = u32>, group: usize) -> Groups {
    let walk: Vec<u32> = walk.into_iter().collect();
    walk.chunks(group.max(1)).map(<[u32]>::to_vec).collect()
}

/// 0, 1, … or backwards.
fn there_or_back(length: usize, back: bool) -> impl Iterator<Item = usize> {
    (0..length).map(move |i| if back { length - 1 - i } else { i })
}

impl Bands {
    fn groups(&self, output: [usize; 2], group: usize) -> Groups {
        let [across, along] = if self.upright { [output[1], output[0]] } else { output };
        let patch = |across: usize, along: usize| {
            let [row, column] = if self.upright { [along, across] } else { [across, along] };
            (row * output[1] + column) as u32
        };
        let mut bands = Vec::new();
        let mut columns_walked = 0;
        for (number, first) in (0..across).step_by(self.height).enumerate() {
            let height = self.height.min(across - first);
            let mut walk = Vec::with_capacity(height * along);
            for place in there_or_back(along, number % 2 == 1) {
                let back = self.turning && columns_walked % 2 == 1;
                walk.extend(there_or_back(height, back).map(|row| patch(first + row, place)));
                columns_walked += 1;
            }
            bands.push(walk);
        }
        match self.apart {
            true => bands.into_iter().flat_map(|walk| cut(walk, group)).collect(),
            false => cut(bands.into_iter().flatten(), group),
        }
    }
}

impl Combs {
    fn groups(&self, output: [usize; 2], group: usize) -> Groups {
        let block = [0, 1].map(|axis| self.teeth[axis] * self.pitch[axis]);
        let blocks = [0, 1].map(|axis| output[axis].div_ceil(block[axis]));
        let [outer, inner] = if self.upright { [blocks[1], blocks[0]] } else { blocks };
        let mut groups = Groups::new();
        let mut combs = 0;
        for line in 0..outer {
            for place in there_or_back(inner, line % 2 == 1) {
                let at = if self.upright { [place, line] } else { [line, place] };
                for dy in 0..self.pitch[0] {
                    for dx in there_or_back(self.pitch[1], combs % 2 == 1) {
                        groups.extend(cut(self.comb(output, block, at, [dy, dx]), group));
                    }
                    combs += 1;
                }
            }
        }
        groups
    }

    /// The patches of one comb, which begins at an offset within a block.
    fn comb(&self, output: [usize; 2], block: [usize; 2], at: [usize; 2], offset: [usize; 2]) -> Vec<u32> {
        let lines = |axis: usize| {
            let first = at[axis] * block[axis] + offset[axis];
            let end = output[axis];
            (0..self.teeth[axis]).map(move |tooth| first + tooth * self.pitch[axis]).filter(move |i| *i < end)
        };
        lines(0).flat_map(|row| lines(1).map(move |column| (row * output[1] + column) as u32)).collect()
    }
}
