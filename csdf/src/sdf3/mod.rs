//! SDF3 XML, the exchange format of dataflow tools (Stuijk, Geilen and Basten, "SDF3: SDF For Free", 2006), and
//! GraphViz DOT.
//!
//! # What is read
//! `<sdf3 type="sdf|csdf">` with one `applicationGraph`: actors with ports, channels with `initialTokens`, and of the
//! properties the execution times on each actor's default processor, `tokenSize sz` and `bufferSize sz`. Rates and
//! times are numbers in a row, `N*v` standing for v repeated N times. An actor has as many phases as the least
//! common multiple of its sequences' lengths. All else that such files hold (memory, bandwidth, constraints) is
//! passed over.
//!
//! # What is not
//! Rates with an initial part (`1,2;3,4`): the phases of [`Graph`] are cyclic from the first firing on. Token
//! sizes have no unit here: a file that counts bits gets totals in bits.
//!
//! The SDF3 tools let an actor overlap its own firings unless a self-loop forbids it; here the caller says how many
//! may be under way at a time.

mod dot;
mod read;
#[cfg(test)]
mod tests;
mod write;

use crate::Graph;

pub use dot::dot;
pub use read::read;
pub use write::write;

/// What a file of the SDF3 format holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    /// Name of the application graph.
    pub name: String,
    /// The graph; actors and channels are in the order of the file, and no two actors share a name, nor do two
    /// channels.
    pub graph: Graph,
}
