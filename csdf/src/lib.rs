//! Cyclo-static dataflow graphs: consistency, liveness, buffer capacities and looped schedules.

mod error;
mod expand;
mod graph;
mod liveness;
mod looped;
mod rates;
mod repetition;
mod runs;
mod schedule;
#[cfg(test)]
mod testing;
mod verify;

pub use error::{Error, Missing, Wait};
pub use expand::{Expanded, MAX_FIRINGS};
pub use graph::{Actor, ActorId, Channel, ChannelId, Graph, MAX_PHASES, Reader};
pub use liveness::check_liveness;
pub use looped::{Firings, Step, compress, firings, notation};
pub use rates::{Rates, Run};
pub use repetition::{RepetitionVector, repetition_vector};
pub use schedule::{Execution, sequential};
pub use verify::verify;
