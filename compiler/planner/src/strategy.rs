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
    /// Layers that make the rows of a firing one by one at a price in time, to write where they have just read.
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
    /// Weights that are read again at each firing, if the memory has no room to keep them within a frame.
    RereadWeights,
    /// Larger blocks for streamed weights where the arena has room.
    LargerBlocks,
    /// Loads of streamed weights that overlap computing.
    OverlappingLoads,
}

impl Strategy {
    /// All strategies: those of the search, of memory, and of whole plans in the order in which these are tried.
    pub const ALL: [Strategy; 17] = [
        Strategy::KnownAnswer,
        Strategy::Chains,
        Strategy::Evolution,
        Strategy::BlockByBlock,
        Strategy::Refinement,
        Strategy::SmallestRings,
        Strategy::OneByOne,
        Strategy::CompletePacking,
        Strategy::PrimitivesFirst,
        Strategy::MemoryFirst,
        Strategy::Joint,
        Strategy::Upgrade,
        Strategy::SearchAgain,
        Strategy::StreamedWeights,
        Strategy::RereadWeights,
        Strategy::LargerBlocks,
        Strategy::OverlappingLoads,
    ];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Strategy::KnownAnswer => "known-answer",
            Strategy::Chains => "chains",
            Strategy::Evolution => "evolution",
            Strategy::BlockByBlock => "block-by-block",
            Strategy::Refinement => "refinement",
            Strategy::SmallestRings => "smallest-rings",
            Strategy::OneByOne => "one-by-one",
            Strategy::CompletePacking => "complete-packing",
            Strategy::PrimitivesFirst => "primitives-first",
            Strategy::MemoryFirst => "memory-first",
            Strategy::Joint => "joint",
            Strategy::Upgrade => "upgrade",
            Strategy::SearchAgain => "search-again",
            Strategy::StreamedWeights => "streamed-weights",
            Strategy::RereadWeights => "reread-weights",
            Strategy::LargerBlocks => "larger-blocks",
            Strategy::OverlappingLoads => "overlapping-loads",
        }
    }

    /// What it does, in one sentence.
    pub fn about(self) -> &'static str {
        match self {
            Strategy::KnownAnswer => "makes no search if the fastest plan is known to be the answer",
            Strategy::Chains => "finds the exact front of chains of segments between cut tensors",
            Strategy::Evolution => "varies these chains by a genetic search (NSGA-II)",
            Strategy::BlockByBlock => "streams row by row between modules that hand over several tensors",
            Strategy::Refinement => "moves the ends of segments, if weights are streamed",
            Strategy::SmallestRings => "searches for smaller rings where branches meet",
            Strategy::OneByOne => "lets layers write each row where they have just read, at a price in time",
            Strategy::CompletePacking => "packs rings by complete searches with many steps",
            Strategy::PrimitivesFirst => "plans with the time optimum of primitives and layouts",
            Strategy::MemoryFirst => "gives the memory that the first plan leaves to faster primitives",
            Strategy::Joint => "chooses primitives, rows and segments together",
            Strategy::Upgrade => "gives the memory that the best plan leaves to faster primitives",
            Strategy::SearchAgain => "searches once more with the primitives of the best plan",
            Strategy::StreamedWeights => "reads some weights from a store in each frame, if not all fit",
            Strategy::RereadWeights => "reads weights again at each firing, if nothing else fits",
            Strategy::LargerBlocks => "makes the blocks of streamed weights larger where there is room",
            Strategy::OverlappingLoads => "reads weights while other layers compute",
        }
    }
}

impl FromStr for Strategy {
    type Err = UnknownStrategy;

    fn from_str(name: &str) -> Result<Self, UnknownStrategy> {
        let known = Strategy::ALL.into_iter().find(|strategy| strategy.name() == name);
        known.ok_or_else(|| UnknownStrategy(name.to_owned()))
    }
}

/// No strategy has this name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no strategy is called `{0}`")]
pub struct UnknownStrategy(pub String);
