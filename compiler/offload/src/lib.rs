//! Offloading a convolution to an accelerator whose memory cannot hold it, in steps.
//!
//! This follows the paper "CNN offloading in steps: S1 strategies". [`Problem`] is its section 2.1, [`steps`] its
//! Definitions 1 and 2, [`Convolution`] its section 3, [`Strategy`] its Definition 16, [`program`] its section 5 and
//! [`mod@simulate`] its section 6. `exact`, `anneal` and [`bound`] go beyond the paper. Planning and offloading share
//! nothing but the network.
//!
//! A strategy divides a layer's patches into groups, one per step. A step loads those pixels of its group that the
//! group right before it did not hold, and forgets all pixels that its group does not cover. So the duration of a
//! strategy depends on how much each group shares with the one before. The question is which patches form a group, and
//! in which order.
//!
//! [`shapes`] are heuristics. `anneal` improves a strategy by small changes. `exact` finds shortest paths over sets of
//! done patches, and [`program`] solves the paper's integer program. [`optimise`](mod@optimise) conducts them.
//! [`bound`] is a lower bound for all of them. [`mod@simulate`] executes the steps and knows nothing of how they were
//! made.
//!
//! ```
//! use csdfc_offload::problem::Options;
//! use csdfc_offload::{Accelerator, Budget, Convolution, Problem, Spec, optimise};
//!
//! // A 3×3 window over 5×5 pixels, two patches per step: 26 pixels are loaded, in five steps.
//! let convolution = Convolution::new(Spec::new([5, 5], 1, [3, 3], 1))?;
//! let options = Options { group: Some(2), ..Options::default() };
//! let problem = Problem::new(convolution, Accelerator::default(), &options)?;
//! let answer = optimise(&problem, Budget::Default, 1)?;
//! assert_eq!(problem.cost(&answer.strategy.groups).duration, 31);
//! # Ok::<(), csdfc_offload::OffloadError>(())
//! ```

mod accelerator;
mod anneal;
pub mod bound;
mod convolution;
pub mod coverage;
mod error;
mod exact;
pub mod files;
mod limits;
pub mod model;
pub mod optimise;
pub mod problem;
pub mod program;
pub mod shapes;
pub mod simulate;
pub mod steps;
mod stop;
pub mod strategy;

pub use accelerator::Accelerator;
pub use convolution::{Convolution, Spec};
pub use error::OffloadError;
pub use optimise::{Answer, Budget, Effort, Stopped, optimise};
pub use problem::{Problem, Unit};
pub use strategy::{Groups, Strategy};

#[cfg(test)]
mod tests;
