//! Packing by address: offsets for buffers of known sizes, of which some are in use at the same time.
//!
//! A *conflict graph* says which buffers these are, rather than a list of intervals. So gaps in a life, partitions that
//! run at the same time and CNNs that exclude each other are exact. [`Problem`] is that graph; [`lives`] and the
//! planner's storage make one.
//!
//! ```text
//! address
//!    ^     +---------+
//!    |     |    c    |          a and b never conflict: both start at address 0.
//!    |  +--+--+------+---+      c conflicts with both: it lies above them.
//!    |  |  a  |     b    |
//!    +--+-----+----------+--> time
//! ```
//!
//! [`pack`] works in this order:
//!
//! 1. `decompose` takes the graph apart. Parts that never conflict are packed each from address 0. Parts that always
//!    conflict are packed one above the other. That is exact, since at any address only one of them can be. `reduce`
//!    leaves out blocks that fit wherever the others lie, and puts them back last. Nothing is left of most networks
//!    then.
//! 2. What remains is a `subproblem`. A portfolio of [`greedy`] orders packs it first.
//! 3. Lower bounds say when that is the least: [`bound`] counts what is in use at one moment, and how high that
//!    stacks, by an `assignment`.
//! 4. Complete searches close the gap, or end with their budget (`optimum` conducts them). `search` goes by rising
//!    offset. `zones` goes along time. Where lives lie on one line of time (`line`), `search` takes turns with
//!    `skyline`, which looks for packings that waste next to nothing.
//!
//! [`infeasible`] names buffers that cannot fit a capacity. [`csv`] is the file format of MiniMalloc (Moffitt, ASPLOS
//! 2023).

mod assignment;
pub mod bound;
mod budget;
pub mod csv;
mod decompose;
mod goal;
mod graph;
pub mod greedy;
pub mod infeasible;
mod line;
pub mod lives;
mod optimum;
mod problem;
mod reduce;
mod search;
mod skyline;
mod subproblem;
mod zones;

#[cfg(test)]
mod tests;

pub use budget::{Budget, Limit, Stopped};
pub use decompose::{decide, pack};
pub use lives::{Gap, Life};
pub use problem::{Block, PackError, Packing, Problem, Solution};
pub(crate) use problem::{Link, Member};
