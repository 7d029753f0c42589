//! Packing by address: offsets for buffers of known sizes of which some are in use at the same time.
//!
//! Which ones is a *conflict graph*, not a list of intervals, so that gaps in a life, partitions that run at the same
//! time and CNNs that exclude each other are exact. [`pack`] takes a graph apart (`decompose`): parts that never
//! conflict lie over each other, parts that always conflict lie one above the other, and buffers that fit wherever
//! others do are left out (`reduce`). What remains is packed by a portfolio of greedy orders ([`greedy`]) and then by
//! complete searches that end with the least height or with their budget: by rising offset (`search`), and along time
//! (`zones`) or, where lives lie on one line and share no addresses (`line`), in turns with a search for packings that waste
//! next to nothing (`skyline`); all are measured against lower bounds ([`bound`]), what is in use at one moment and how high
//! that stacks (`assignment`). [`infeasible`] names buffers that cannot fit a capacity, and [`csv`]
//! is the file format of MiniMalloc (Moffitt, ASPLOS 2023).

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
