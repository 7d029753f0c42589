//! Packing by address: offsets for buffers of known sizes. Some of them are in use at the same time.
//!
//! A *conflict graph* says which buffers are in use together. A graph is exact where intervals are not: for gaps in a
//! life, partitions that run at the same time, and CNNs that exclude each other. [`Problem`] is that graph; [`lives`]
//! and the planner's storage make one.
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
//!    conflict are packed one above the other. That is exact, since only one of these parts can use an address.
//!    `reduce` leaves out blocks that fit wherever the others lie, and puts them back last. For most networks, no block
//!    is left then.
//! 2. The remaining blocks are a `subproblem`. A portfolio of [`greedy`] orders packs it first.
//! 3. Lower bounds say when this packing is the lowest: [`bound`] counts the bytes in use at one moment, and how high
//!    they stack, by an `assignment`.
//! 4. Complete searches close the gap, or end with their budget (`optimum` conducts them). `search` goes by rising
//!    offset. `zones` goes along time. Where lives lie on one line of time (`line`), `search` takes turns with
//!    `skyline`, which looks for packings that waste next to nothing.
//!
//! [`infeasible`] names buffers that cannot fit a capacity. [`regions`] packs into several memories, each of its own size
//! and cost.
//!
//! The picture above:
//!
//! ```
//! use csdfc_packing::{Block, Meter, Life, Budget, lives, pack};
//!
//! let life = |bytes, lower, upper| Life { block: Block::of_bytes(bytes), lower, upper, gaps: Vec::new() };
//! let [a, b, c] = [life(300, 0, 5), life(300, 5, 14), life(200, 3, 12)];
//! let problem = lives::problem(&[a, b, c])?;
//! let solution = pack(&problem, &mut Meter::new(Budget::Work(1_000)));
//! assert_eq!(solution.packing.offsets, [0, 0, 300]);
//! assert!(solution.proven());
//! # Ok::<(), csdfc_packing::PackError>(())
//! ```

mod assignment;
pub mod bound;
mod budget;
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
pub mod regions;
mod search;
mod skyline;
mod subproblem;
mod zones;

#[cfg(test)]
mod tests;

pub use budget::{Budget, Meter, Stopped};
pub use decompose::{decide, pack};
pub use lives::{Gap, Life};
pub use problem::{Block, Link, Member, PackError, Packing, Problem, Solution};
pub use regions::{RegionPacking, RegionSolution, pack_regions};
