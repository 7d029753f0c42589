//! What a strategy is: the groups of patches that the steps load.

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
