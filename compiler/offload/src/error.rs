//! What can be wrong with a layer, an accelerator or a strategy.

use super::simulate::Violation;

/// Why a layer cannot be offloaded as asked. Figures are in the units that their names say.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OffloadError {
    /// A size of 0.
    #[error("the {what} is 0")]
    Zero {
        /// Which.
        what: &'static str,
    },
    /// The filter does not fit the input.
    #[error(
        "the filter, {}x{}, is larger than the padded input, {}x{}", filter[0], filter[1], input[0], input[1]
    )]
    Filter {
        /// Height and width that the filter spans.
        filter: [usize; 2],
        /// Height and width of the padded input.
        input: [usize; 2],
    },
    /// Channels cannot be divided.
    #[error("{channels} channels and {filters} filters cannot be divided into {groups} groups")]
    ChannelGroups {
        /// C_in.
        channels: usize,
        /// N.
        filters: usize,
        /// The groups.
        groups: usize,
    },
    /// The layer is beyond what csdfc maps.
    #[error(
        "the layer is too large: {size} pixels, patches or pixels of patches (most: {}, {}, {})",
        super::limits::MAX_PIXELS,
        super::limits::MAX_PATCHES,
        super::limits::MAX_TAPS
    )]
    TooLarge {
        /// The figure that is too large.
        size: usize,
    },
    /// A step cannot compute even one patch.
    #[error("one patch with {filters} filters takes {macs} multiply-accumulates, but a step has {pe}")]
    Compute {
        /// Filters at a time.
        filters: usize,
        /// What one patch takes.
        macs: u64,
        /// nbop_PE.
        pe: u64,
    },
    /// A step cannot compute a group of the size asked for.
    #[error("a group of {group} patches takes {macs} multiply-accumulates, but a step has {pe}")]
    Group {
        /// Patches.
        group: usize,
        /// What they take.
        macs: u64,
        /// nbop_PE.
        pe: u64,
        /// The largest group that a step computes.
        largest: usize,
    },
    /// The memory cannot hold a single patch, the filters and its outputs.
    #[error("one patch with {filters} filters takes {needed} elements of memory, but there are {mem}")]
    Memory {
        /// Filters at a time.
        filters: usize,
        /// What one patch takes.
        needed: u64,
        /// size_MEM.
        mem: u64,
        /// The most filters at a time with which one patch fits, if any.
        fitting: Option<usize>,
    },
    /// The accelerator makes no sense.
    #[error("the accelerator is not valid: {problem}")]
    Accelerator {
        /// Why.
        problem: String,
    },
    /// A file holds no strategy.
    #[error("{problem}")]
    File {
        /// What is wrong.
        problem: String,
    },
    /// A strategy breaks the rules.
    #[error(transparent)]
    Violation(#[from] Violation),
    /// The layer is too large for an exact method.
    #[error("{method} takes layers of up to {most} patches, this one has {patches}")]
    Method {
        /// `exact` or `program`.
        method: &'static str,
        /// Maximum number of patches.
        most: usize,
        /// The layer's.
        patches: usize,
    },
    /// No strategy of the kind asked for meets the bounds on memory and loads.
    #[error("{problem}")]
    Unmet {
        /// The condition that does not hold.
        problem: String,
        /// The nearest strategy that meets it.
        nearest: Option<String>,
    },
}

impl OffloadError {
    /// What would work.
    pub fn help(&self) -> Option<String> {
        match self {
            OffloadError::Zero { .. } => Some("every size is at least 1".into()),
            OffloadError::Filter { .. } => Some("pad the input (--pad) or give a smaller filter".into()),
            OffloadError::Compute { filters, macs, pe } => {
                let fitting = pe / (macs / *filters as u64).max(1);
                Some(match fitting {
                    0 => format!(
                        "the nearest that works: --pe {} with --filters-at-once 1",
                        macs / *filters as u64
                    ),
                    fitting => format!("the nearest that works: --pe {macs}, or --filters-at-once {fitting}"),
                })
            }
            OffloadError::Group { largest, macs, .. } => {
                Some(format!("the nearest that works: --group {largest}, or --pe {macs}"))
            }
            OffloadError::Memory { needed, fitting, .. } => Some(match fitting {
                Some(filters) => {
                    format!("the nearest that works: --mem-elements {needed}, or --filters-at-once {filters}")
                }
                None => format!("the nearest that works: --mem-elements {needed}"),
            }),
            OffloadError::Method { .. } => Some("leave --strategy out, or give `best`".into()),
            OffloadError::Unmet { nearest, .. } => nearest.clone(),
            _ => None,
        }
    }
}
