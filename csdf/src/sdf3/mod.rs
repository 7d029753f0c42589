//! SDF3 XML, the exchange format of dataflow tools (Stuijk, Geilen and Basten, "SDF3: SDF For Free", 2006), and
//! GraphViz DOT.
//!
//! # What is read
//! The reader takes `<sdf3 type="sdf|csdf">` with one `applicationGraph`: actors with ports, and channels with
//! `initialTokens`. It takes three properties: the execution times on each actor's default processor, `tokenSize sz`
//! and `bufferSize sz`. Rates and times are lists of numbers, in which `N*v` stands for v repeated N times. The number
//! of an actor's phases is the least common multiple of the lengths of its lists. The reader ignores everything else
//! in such files (memory, bandwidth, constraints).
//!
//! # What is not
//! Rates with an initial part (`1,2;3,4`): the phases of [`Graph`] are cyclic from the first firing on. Token
//! sizes have no unit here: a file that counts bits gets totals in bits.
//!
//! The SDF3 tools let the firings of an actor overlap, unless a self-loop forbids it. Here the caller says how many
//! firings may be under way at a time.
//!
//! # Example
//! ```
//! use csdf::{Actor, Channel, Graph, Rates, Reader, sdf3};
//!
//! let mut graph = Graph::new();
//! let [a, b] = [graph.add_actor(Actor::new("a", 2))?, graph.add_actor(Actor::new("b", 1))?];
//! let reader = Reader::consuming(b, Rates::constant(1, 3));
//! graph.add_channel(Channel::new("ab", a, "1,2".parse()?, vec![reader]))?;
//!
//! let xml = sdf3::write(&graph, "example");
//! let document = sdf3::read(xml.as_bytes(), std::num::NonZero::<u64>::MIN)?;
//! assert_eq!(document.name, "example");
//! assert_eq!(csdf::repetition_vector(&document.graph)?, csdf::repetition_vector(&graph)?);
//! # Ok::<(), csdf::Error>(())
//! ```

mod dot;
mod read;
#[cfg(test)]
mod tests;
mod write;

use crate::Graph;

pub use dot::dot;
pub use read::read;
pub use write::write;

/// The content of a file in the SDF3 format.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    /// Name of the application graph.
    pub name: String,
    /// The graph; actors and channels are in the order of the file, and no two actors share a name, nor do two
    /// channels.
    pub graph: Graph,
}
