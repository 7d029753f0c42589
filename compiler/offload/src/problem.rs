//! The problem: a layer, an accelerator, and the bounds on a strategy. Also the cost of a strategy.
//!
//! ```
//! use csdfc_offload::problem::{Options, Problem};
//! use csdfc_offload::{Accelerator, Convolution, Spec};
//!
//! // A patch takes 36 multiply-accumulates, so two of them fit a step.
//! let layer = Convolution::new(Spec::new([5, 5], 2, [3, 3], 2))?;
//! let accelerator = Accelerator { pe: Some(72), ..Accelerator::default() };
//! let problem = Problem::new(layer, accelerator, &Options::default())?;
//! assert_eq!(problem.group, 2);
//! // A cycle for each of 31 loads and five steps.
//! let cost = problem.cost(&[vec![0, 1], vec![2, 5], vec![4, 3], vec![6, 7], vec![8]]);
//! assert_eq!((cost.pixels_loaded, cost.steps, cost.duration), (31, 5, 36));
//! # Ok::<(), csdfc_offload::OffloadError>(())
//! ```

use serde::Serialize;

use super::accelerator::Accelerator;
use super::convolution::Convolution;
use super::coverage::Coverage;
use super::error::OffloadError;

/// The unit of loads, writes and their durations. In pixels (Remark 6), a filter counts its height times its width.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// 2-D pixels with all their channels, as in the paper. A patch that is written back counts as one.
    #[default]
    Pixels,
    /// Every channel of a pixel, and every filter's result of a patch.
    Elements,
}

/// Options of a strategy, other than the layer and the accelerator.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Options {
    /// Maximum number of patches of a group. If absent, as many as the accelerator's `pe` allows.
    pub group: Option<usize>,
    /// Filters that are in memory at a time. If absent, all of them.
    pub filters_at_once: Option<usize>,
    /// nb_data_reload: how often a pixel may be loaded in one pass over the patches.
    pub reload: Option<u32>,
    /// Unit of loads and writes.
    pub unit: Unit,
    /// Whether durations count writing back, as Definition 3 does and Eq. 15 does not.
    pub count_writes: bool,
}

/// A layer that is to be offloaded.
///
/// If all filters are in memory at a time, they are preloaded (section 5.4). If only `filters_at_once` are, there is
/// one pass over the patches for each subset of the filters, and each subset is loaded at the start of its pass. Each
/// pass has the reverse order of the pass before it. So the last group of a pass is the first of the next, and its
/// pixels stay in memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The layer.
    pub convolution: Convolution,
    /// The accelerator.
    pub accelerator: Accelerator,
    /// nb_patches_max_S1: most patches of a group, at least 1 and at most all.
    pub group: usize,
    /// Filters in memory at a time, at least 1 and at most all.
    pub filters_at_once: usize,
    /// Maximum number of loads of a pixel in one pass.
    pub reload: Option<u32>,
    /// Unit of loads and writes.
    pub unit: Unit,
    /// Whether durations count writing back.
    pub count_writes: bool,
}

/// The cost of a strategy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Cost {
    /// Its duration in cycles: Eq. 15, or Definition 3 where writes are counted.
    pub duration: u64,
    /// Steps, over all passes.
    pub steps: u64,
    /// Pixels loaded, over all passes.
    pub pixels_loaded: u64,
    /// The most often that one pixel is loaded in one pass.
    pub most_loads: u32,
    /// Maximum number of elements in memory during a step (Eq. 12).
    pub memory: u64,
}

impl Problem {
    /// Binds a layer to an accelerator.
    ///
    /// # Errors
    /// When not even groups of one patch can be computed or held, or the group asked for cannot be computed.
    pub fn new(
        convolution: Convolution,
        accelerator: Accelerator,
        options: &Options,
    ) -> Result<Self, OffloadError> {
        accelerator.check()?;
        let all = convolution.spec().filters;
        let filters = options.filters_at_once.unwrap_or(all).min(all);
        if filters == 0 {
            return Err(OffloadError::Zero { what: "number of filters at once" });
        }
        let macs = convolution.macs_per_patch(filters);
        let computable =
            accelerator.pe.map_or(usize::MAX, |pe| usize::try_from(pe / macs).unwrap_or(usize::MAX));
        if let (0, Some(pe)) = (computable, accelerator.pe) {
            return Err(OffloadError::Compute { filters, macs, pe });
        }
        let group = match options.group {
            Some(0) => return Err(OffloadError::Zero { what: "size of a group" }),
            Some(group) => group.min(convolution.patches()),
            None => computable.min(convolution.patches()),
        };
        if let (true, Some(pe)) = (group > computable, accelerator.pe) {
            let macs = macs.saturating_mul(group as u64);
            return Err(OffloadError::Group { group, macs, pe, largest: computable });
        }
        if options.reload == Some(0) {
            return Err(OffloadError::Zero { what: "number of loads of a pixel" });
        }
        let problem = Problem {
            convolution,
            accelerator,
            group,
            filters_at_once: filters,
            reload: options.reload,
            unit: options.unit,
            count_writes: options.count_writes,
        };
        let one = problem.convolution.pixels_per_patch();
        if let (false, Some(mem)) = (problem.fits(one, 1), problem.accelerator.mem) {
            let with = |filters| Problem { filters_at_once: filters, ..problem.clone() };
            let fits = |filters: &usize| with(*filters).memory(one, 1) <= mem;
            let fitting = (fits(&1)).then(|| partition_point(filters, |filters| fits(&filters)));
            return Err(OffloadError::Memory { filters, needed: problem.memory(one, 1), mem, fitting });
        }
        Ok(problem)
    }

    /// Passes over the patches: one per subset of the filters.
    pub fn passes(&self) -> u64 {
        self.convolution.spec().filters.div_ceil(self.filters_at_once) as u64
    }

    /// K_min: the fewest groups (Definition 14).
    pub fn fewest_groups(&self) -> usize {
        self.convolution.patches().div_ceil(self.group)
    }

    /// Cycles to load a pixel.
    pub fn load_cycles(&self) -> u64 {
        let weight = match self.unit {
            Unit::Pixels => 1,
            Unit::Elements => self.convolution.spec().channels as u64,
        };
        self.accelerator.tl * weight
    }

    /// Elements in memory while a group of `patches` that covers `pixels` is computed (Eq. 12): its pixels, the filters
    /// of the pass and its outputs. The outputs of the group before have been written back.
    pub fn memory(&self, pixels: usize, patches: usize) -> u64 {
        let spec = self.convolution.spec();
        // At most 2^16·2^23 + 2^16·2^39 + 2^16·2^20.
        let filters = self.filters_at_once as u64;
        (spec.channels as u64 * pixels as u64)
            .saturating_add(filters.saturating_mul(self.convolution.filter_elements()))
            .saturating_add(filters.saturating_mul(patches as u64))
    }

    /// Whether such a group fits the memory.
    pub fn fits(&self, pixels: usize, patches: usize) -> bool {
        self.accelerator.mem.is_none_or(|mem| self.memory(pixels, patches) <= mem)
    }

    /// The cost of groups, one per step. The groups must divide the patches.
    pub fn cost(&self, groups: &[Vec<u32>]) -> Cost {
        let mut coverage = Coverage::new(&self.convolution);
        let mut loads = vec![0u32; self.convolution.pixels()];
        let (mut pixels, mut memory) = (0, 0);
        let mut before: &[u32] = &[];
        for group in groups {
            pixels += coverage.fresh(before, group, |pixel| loads[pixel as usize] += 1) as u64;
            memory = memory.max(self.memory(coverage.size(group), group.len()));
            before = group;
        }
        // A later pass begins with the group that the pass before it ended with.
        let ends = [groups.last(), groups.first()];
        let ends = ends.map(|group| group.map_or(0, |group| coverage.size(group)) as u64);
        let passes = self.passes();
        let kept = (passes / 2) * ends[0] + (passes - 1) / 2 * ends[1];
        let pixels_loaded = pixels * passes - kept;
        let steps = groups.len() as u64 * passes;
        Cost {
            duration: self.duration(pixels_loaded, steps),
            steps,
            pixels_loaded,
            most_loads: loads.into_iter().max().unwrap_or(0),
            memory,
        }
    }

    /// The duration of so many loads and steps.
    pub fn duration(&self, pixels_loaded: u64, steps: u64) -> u64 {
        let spec = self.convolution.spec();
        let Accelerator { tl, tw, tacc, .. } = self.accelerator;
        let (patches, filters) = (self.convolution.patches() as u64, spec.filters as u64);
        let mut duration =
            pixels_loaded.saturating_mul(self.load_cycles()).saturating_add(steps.saturating_mul(tacc));
        if self.passes() > 1 {
            let per_filter = match self.unit {
                Unit::Pixels => self.convolution.pixels_per_patch() as u64,
                Unit::Elements => self.convolution.filter_elements(),
            };
            duration = duration.saturating_add(tl.saturating_mul(filters.saturating_mul(per_filter)));
        }
        if self.count_writes {
            let written = match self.unit {
                Unit::Pixels => patches * self.passes(),
                Unit::Elements => patches * filters,
            };
            duration = duration.saturating_add(tw.saturating_mul(written));
        }
        duration
    }

    /// Whether a strategy of this cost keeps the bounds on memory and loads.
    pub fn admits(&self, cost: &Cost) -> bool {
        self.accelerator.mem.is_none_or(|mem| cost.memory <= mem)
            && self.reload.is_none_or(|reload| cost.most_loads <= reload)
    }
}

/// The largest number up to `most` for which the condition holds. It must hold for 1, and if it holds for a number, it
/// must hold for all smaller ones. It takes O(log(most)) tests.
fn partition_point(most: usize, holds: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut high) = (1, most);
    while low < high {
        let middle = (low + high).div_ceil(2);
        if holds(middle) {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Spec;

    fn example(options: &Options) -> Problem {
        let convolution = Convolution::new(Spec::new([5, 5], 2, [3, 3], 2)).unwrap();
        Problem::new(convolution, Accelerator::default(), options).unwrap()
    }

    /// Example 2 of the paper: the second step loads 6 pixels, 12 elements.
    #[test]
    fn example_2_of_the_paper() {
        let pixels = example(&Options { group: Some(2), ..Options::default() });
        let elements = Problem { unit: Unit::Elements, ..pixels.clone() };
        for second in [[2, 3], [2, 5]] {
            let (one, two) = (vec![vec![0, 1]], vec![vec![0, 1], second.to_vec()]);
            for (problem, loads) in [(&pixels, 6), (&elements, 12)] {
                let step = problem.cost(&two).duration - problem.cost(&one).duration;
                assert_eq!(step, loads + 1);
            }
        }
        let [row, zigzag] = [[2, 3], [2, 5]].map(|group| pixels.cost(&[group.to_vec()]).memory - 36 - 2 * 2);
        // The paper prints 32 and 24 elements.
        assert_eq!((row, zigzag), (32, 24));
    }

    #[test]
    fn writes_and_subsets_of_filters_count() {
        let groups: Vec<Vec<u32>> = (0..9).map(|patch| vec![patch]).collect();
        let base = example(&Options { group: Some(1), ..Options::default() });
        let eq_15 = base.cost(&groups);
        let with_writes = Problem { count_writes: true, ..base.clone() };
        assert_eq!(with_writes.cost(&groups).duration, eq_15.duration + 9);
        let elements = Problem { unit: Unit::Elements, ..with_writes };
        assert_eq!(elements.cost(&groups).duration, 2 * eq_15.pixels_loaded + 9 + 18);
        // Two passes; the second finds the nine pixels of the last patch in memory, and two filters of nine are loaded.
        let halves = Problem { filters_at_once: 1, ..base };
        let cost = halves.cost(&groups);
        assert_eq!((cost.steps, cost.pixels_loaded), (18, 2 * eq_15.pixels_loaded - 9));
        assert_eq!(cost.duration, cost.pixels_loaded + 18 + 18);
    }

    #[test]
    fn accelerators_that_are_too_small_are_told_what_works() {
        let convolution = Convolution::new(Spec::new([5, 5], 2, [3, 3], 4)).unwrap();
        let problem = |pe, mem, options: Options| {
            let accelerator = Accelerator { pe, mem, ..Accelerator::default() };
            Problem::new(convolution.clone(), accelerator, &options)
        };
        let help = |pe, mem, options| problem(pe, mem, options).unwrap_err().help().unwrap();
        // A patch takes 72 multiply-accumulates, 18 a filter, and 18 + 72 + 4 elements of memory.
        assert_eq!(problem(Some(150), None, Options::default()).unwrap().group, 2);
        assert!(help(Some(71), None, Options::default()).contains("--pe 72, or --filters-at-once 3"));
        let three = Options { group: Some(3), ..Options::default() };
        assert!(help(Some(150), None, three).contains("--group 2"));
        assert!(problem(None, Some(94), Options::default()).is_ok());
        assert!(
            help(None, Some(93), Options::default()).contains("--mem-elements 94, or --filters-at-once 3")
        );
        assert!(problem(None, Some(93), Options { filters_at_once: Some(3), ..Options::default() }).is_ok());
        assert!(help(None, Some(36), Options::default()).ends_with("--mem-elements 94"));
        for zero in [
            Options { group: Some(0), ..Options::default() },
            Options { reload: Some(0), ..Options::default() },
            Options { filters_at_once: Some(0), ..Options::default() },
        ] {
            assert!(matches!(problem(None, None, zero), Err(OffloadError::Zero { .. })));
        }
    }
}
