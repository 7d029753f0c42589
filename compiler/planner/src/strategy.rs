//! The strategies of the planner by name, so that each can be left out (`csdfc plan --without NAME`).
//!
//! A plan is valid, and is checked, whichever strategies are left out. What each is worth in bytes, in frames per
//! second and in planning time is a page of the documentation, `docs/strategies`.
//!
//! ```
//! use csdfc_planner::strategy::Strategy;
//!
//! assert_eq!(Strategy::SmallestRings.name(), "smallest-rings");
//! assert_eq!("evolution".parse(), Ok(Strategy::Evolution));
//! assert!("magic".parse::<Strategy>().is_err());
//! ```

use std::str::FromStr;

/// A technique with which the planner makes a plan better, or finds it sooner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Strategy {
    /// Plans without a search if the fastest plan is known to be the answer.
    KnownAnswer,
    /// Segments between cut tensors, and the exact front of their chains.
    Chains,
    /// NSGA-II, which starts from these chains.
    Evolution,
    /// One more choice for networks with several tensors between their modules.
    BlockByBlock,
    /// Other ends of segments, if weights are streamed.
    Refinement,
    /// Smaller rings where branches meet, by the storage search of the dataflow analysis.
    SmallestRings,
    /// Layers that make the rows of a firing one by one, which takes more time, to write where they have just read.
    OneByOne,
    /// Complete searches when rings are packed, with all the steps that the final plan gets.
    CompletePacking,
    /// The time optimum of primitives and layouts, planned within the budget.
    PrimitivesFirst,
    /// Faster primitives in the memory that the first plan leaves.
    MemoryFirst,
    /// Primitives, rows and segments chosen together.
    Joint,
    /// Faster primitives in the memory that the best plan so far leaves.
    Upgrade,
    /// One more search, with the primitives of the best plan so far.
    SearchAgain,
    /// Some weights read from a store in each frame, if not all fit the memory.
    StreamedWeights,
    /// Weights that are read again at each firing, if the memory has no room to keep them within a frame, or shall be
    /// least.
    RereadWeights,
    /// Larger blocks for streamed weights where the arena has room.
    LargerBlocks,
    /// Loads of streamed weights that overlap computing.
    OverlappingLoads,
}

/// Each strategy, its name on the command line, and what it does, in the order of the variants.
const TABLE: [(Strategy, &str, &str); 17] = [
    (Strategy::KnownAnswer, "known-answer", "makes no search if the fastest plan is known to be the answer"),
    (Strategy::Chains, "chains", "finds the exact front of chains of segments between cut tensors"),
    (Strategy::Evolution, "evolution", "varies these chains by a genetic search (NSGA-II)"),
    (
        Strategy::BlockByBlock,
        "block-by-block",
        "streams row by row between modules that hand over several tensors",
    ),
    (Strategy::Refinement, "refinement", "moves the ends of segments, if weights are streamed"),
    (Strategy::SmallestRings, "smallest-rings", "searches for smaller rings where branches meet"),
    (
        Strategy::OneByOne,
        "one-by-one",
        "lets layers write each row where they have just read, at a price in time",
    ),
    (Strategy::CompletePacking, "complete-packing", "packs rings by complete searches with many steps"),
    (Strategy::PrimitivesFirst, "primitives-first", "plans with the time optimum of primitives and layouts"),
    (
        Strategy::MemoryFirst,
        "memory-first",
        "gives the memory that the first plan leaves to faster primitives",
    ),
    (Strategy::Joint, "joint", "chooses primitives, rows and segments together"),
    (Strategy::Upgrade, "upgrade", "gives the memory that the best plan leaves to faster primitives"),
    (Strategy::SearchAgain, "search-again", "searches once more with the primitives of the best plan"),
    (
        Strategy::StreamedWeights,
        "streamed-weights",
        "reads some weights from a store in each frame, if not all fit",
    ),
    (
        Strategy::RereadWeights,
        "reread-weights",
        "reads weights again at each firing, if nothing else fits or is as small",
    ),
    (
        Strategy::LargerBlocks,
        "larger-blocks",
        "makes the blocks of streamed weights larger where there is room",
    ),
    (Strategy::OverlappingLoads, "overlapping-loads", "reads weights while other layers compute"),
];

impl Strategy {
    /// All strategies: those of the search, of memory, of whole plans in the order in which these are tried, and of how
    /// streamed weights are read.
    pub fn all() -> impl Iterator<Item = Strategy> {
        TABLE.into_iter().map(|(strategy, ..)| strategy)
    }

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        TABLE[self as usize].1
    }

    /// What it does, in one sentence.
    pub fn about(self) -> &'static str {
        TABLE[self as usize].2
    }
}

impl FromStr for Strategy {
    type Err = UnknownStrategy;

    fn from_str(name: &str) -> Result<Self, UnknownStrategy> {
        let known = Strategy::all().find(|strategy| strategy.name() == name);
        known.ok_or_else(|| UnknownStrategy(name.to_owned()))
    }
}

/// No strategy has this name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no strategy is called `{0}`")]
pub struct UnknownStrategy(pub String);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_row_of_the_table_is_that_of_its_strategy() {
        for (place, strategy) in Strategy::all().enumerate() {
            assert_eq!(strategy as usize, place, "{strategy:?}");
            assert_eq!(strategy.name().parse(), Ok(strategy));
        }
        // The last variant: none lacks a row.
        assert_eq!(Strategy::OverlappingLoads as usize + 1, TABLE.len());
    }
}
