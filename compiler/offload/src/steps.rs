//! n-step computations (the paper's Definitions 1 and 2), and the computation of a strategy (Definition 16).
//!
//! ```
//! use csdfc_offload::problem::Options;
//! use csdfc_offload::steps::Computation;
//! use csdfc_offload::{Accelerator, Convolution, Problem, Spec};
//!
//! // A 2×2 window over 3×3 pixels, two patches per step.
//! let layer = Convolution::new(Spec::new([3, 3], 1, [2, 2], 1))?;
//! let options = Options { group: Some(2), ..Options::default() };
//! let problem = Problem::new(layer, Accelerator::default(), &options)?;
//! let computation = Computation::new(&problem, &[vec![0, 1], vec![3, 2]]);
//! // The second step forgets the first row of pixels, writes the results of the first step, and loads the last row.
//! let second = &computation.steps[1];
//! assert_eq!(second.free_pixels, [0, 1, 2]);
//! assert_eq!(second.write.patches, [0, 1]);
//! assert_eq!(second.load_pixels, [6, 7, 8]);
//! # Ok::<(), csdfc_offload::OffloadError>(())
//! ```

use std::ops::Range;

use serde::Serialize;

use super::convolution::Convolution;
use super::coverage::Coverage;
use super::problem::Problem;

/// Output elements: those that the listed patches make with each filter of a range.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Outputs {
    /// The patches.
    pub patches: Vec<u32>,
    /// The filters.
    pub filters: Range<u32>,
}

/// A step s_i, its actions in the order of Definition 2.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Step {
    /// F_inp: pixels that are forgotten.
    pub free_pixels: Vec<u32>,
    /// F_ker: filters that are forgotten.
    pub free_filters: Range<u32>,
    /// W: results that are written back.
    pub write: Outputs,
    /// I_slice: pixels that are loaded.
    pub load_pixels: Vec<u32>,
    /// K_sub: filters that are loaded.
    pub load_filters: Range<u32>,
    /// The group, and the filters that it is computed with.
    pub compute: Outputs,
}

/// The actions after the last step, so that the memory is empty and all results are written (end of Definition 2).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Closing {
    /// Pixels that are forgotten.
    pub free_pixels: Vec<u32>,
    /// Filters that are forgotten.
    pub free_filters: Range<u32>,
    /// Results that are written back.
    pub write: Outputs,
}

/// An n-step computation.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Computation {
    /// The steps.
    pub steps: Vec<Step>,
    /// What follows them.
    pub closing: Closing,
}

impl Computation {
    /// The computation of groups. Every step forgets the pixels that its group does not cover, writes the results of
    /// the step before, loads the pixels that its group covers and that are not there, and computes. There is one pass
    /// for each subset of the filters, in the reverse order of the pass before it. The first step of a pass loads its
    /// subset.
    pub fn new(problem: &Problem, groups: &[Vec<u32>]) -> Self {
        let convolution = &problem.convolution;
        let mut coverage = Coverage::new(convolution);
        let mut computation = Computation::default();
        let (mut before, mut held): (&[u32], Vec<u32>) = (&[], Vec::new());
        let mut last = Outputs::default();
        for (pass, filters) in subsets(convolution, problem.filters_at_once).into_iter().enumerate() {
            let mut load_filters = filters.clone();
            let mut free_filters = last.filters.clone();
            let order: Box<dyn Iterator<Item = &Vec<u32>>> =
                if pass % 2 == 0 { Box::new(groups.iter()) } else { Box::new(groups.iter().rev()) };
            for group in order {
                let load_pixels = listed(&mut coverage, before, group);
                let free_pixels = listed(&mut coverage, group, before);
                held.retain(|pixel| free_pixels.binary_search(pixel).is_err());
                held.extend(&load_pixels);
                let compute = Outputs { patches: group.clone(), filters: filters.clone() };
                let write = std::mem::replace(&mut last, compute.clone());
                let free_filters = std::mem::take(&mut free_filters);
                let load_filters = std::mem::take(&mut load_filters);
                let step = Step { free_pixels, free_filters, write, load_pixels, load_filters, compute };
                computation.steps.push(step);
                before = group;
            }
        }
        held.sort_unstable();
        computation.closing = Closing { free_pixels: held, free_filters: last.filters.clone(), write: last };
        computation
    }
}

/// P(group) \ P(before), ascending.
fn listed(coverage: &mut Coverage<'_>, before: &[u32], group: &[u32]) -> Vec<u32> {
    let mut pixels = Vec::new();
    coverage.fresh(before, group, |pixel| pixels.push(pixel));
    pixels.sort_unstable();
    pixels
}

/// The filters, `at_once` at a time.
fn subsets(convolution: &Convolution, at_once: usize) -> Vec<Range<u32>> {
    // At most 2^20 filters.
    let filters = convolution.spec().filters as u32;
    let at_once = at_once.max(1);
    (0..filters).step_by(at_once).map(|first| first..filters.min(first + at_once as u32)).collect()
}
