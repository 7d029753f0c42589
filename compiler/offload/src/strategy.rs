//! What a strategy is: the groups of patches that the steps load.
//!
//! ```
//! use csdfc_offload::problem::Options;
//! use csdfc_offload::strategy::Strategy;
//! use csdfc_offload::{Accelerator, Convolution, Problem, Spec};
//!
//! // A 2×2 window over 3×3 pixels: nine loads in two steps.
//! let mine = Strategy { name: "mine".into(), shape: None, groups: vec![vec![0, 1], vec![3, 2]] };
//! let layer = Convolution::new(Spec::new([3, 3], 1, [2, 2], 1))?;
//! let options = Options { group: Some(2), ..Options::default() };
//! let problem = Problem::new(layer, Accelerator::default(), &options)?;
//! assert_eq!(problem.cost(&mine.groups).duration, 11);
//! # Ok::<(), csdfc_offload::OffloadError>(())
//! ```

/// Groups of patches, one a step, in the order of the steps (Definition 16). Each patch is in exactly one group.
pub type Groups = Vec<Vec<u32>>;

/// A way to offload a layer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Strategy {
    /// The method that made it: `row`, `zigzag`, `column`, `annealed`, ….
    pub name: String,
    /// Details of the method, if there are any: the height of the bands, for example.
    pub shape: Option<String>,
    /// The groups.
    pub groups: Groups,
}
