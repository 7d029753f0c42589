//! Cyclo-static dataflow graphs: consistency, liveness, buffer capacities and looped schedules.
//!
//! # Words
//! An **actor** *fires* again and again, and its firings go through a cycle of **phases**. Actors exchange **tokens**
//! over **channels**. A channel has one producer and one or more readers. The *production rate* says how many tokens
//! the producer makes in each phase. A reader *acquires* tokens at the start of a firing, as many as its *acquire
//! rate* says. It keeps them until it *releases* them, oldest first, at the end of a firing, as many as its *release
//! rate* says. A token's place is free again when the last reader has released it. In cyclo-static dataflow (Bilsen
//! et al. 1996), every channel has one reader, whose acquire and release rates are the same.
//!
//! One **iteration** is the shortest sequence of firings that takes every channel back to its initial tokens. The
//! [**repetition vector**](repetition_vector) counts its firings. A graph without one is *inconsistent*. A graph is in
//! **deadlock** if its iteration cannot run to its end. The **capacity** of a channel is the number of tokens that it
//! may hold. A firing claims space for the tokens that it produces when it starts, and frees the space of those that
//! it releases when it ends.
//!
//! # From rates to a checked schedule
//! | step | function |
//! | --- | --- |
//! | rates from numbers or text | [`Rates`] |
//! | a validated graph | [`Graph::add_actor`], [`Graph::add_channel`] |
//! | how often each actor fires | [`repetition_vector`] |
//! | whether it runs at all, in given capacities | [`check_liveness`] |
//! | an order of firing for one processor, and its capacities | [`sequential`] |
//! | the order as loops | [`compress`], [`notation`] |
//! | an independent replay of the loops | [`verify`] |
//!
//! # From rates to capacities
//! | question | function |
//! | --- | --- |
//! | how many iterations per unit of time, in given capacities | [`throughput()`] |
//! | when each firing starts | [`self_timed`] |
//! | the smallest capacities for any run, for a throughput, for the maximal throughput | [`smallest`] |
//! | all trade-offs between storage and throughput | [`pareto`] |
//! | an independent check of the answer and its proof | [`verify_storage`] |
//!
//! # Example
//! The two layers of Minakova and Stefanov 2022, section 2.5. `l1` delivers 32 rows, one per firing. `l2` is a 5×5
//! convolution with same padding, and makes one row of output per firing. Two rows of padding lie above the input, so
//! the first window reaches rows 0 to 2: `l2` acquires 3 rows at once. Each further firing acquires one row, except
//! for the last two, whose windows reach into the padding below. The first two firings release nothing. The last one
//! releases the 3 rows that are left.
//!
//! ```
//! use csdf::{Actor, Channel, Graph, Rates, Reader};
//!
//! let mut graph = Graph::new();
//! let l1 = graph.add_actor(Actor::new("l1", 32))?;
//! let l2 = graph.add_actor(Actor::new("l2", 32))?;
//! let window = Reader { actor: l2, acquire: "3,29*1,2*0".parse()?, release: "2*0,29*1,3".parse()? };
//! graph.add_channel(Channel::new("rows", l1, Rates::constant(32, 1), vec![window]))?;
//!
//! assert_eq!(csdf::repetition_vector(&graph)?.firings, [32, 32]);
//!
//! let execution = csdf::sequential(&graph, &[vec![l1, l2]])?;
//! assert_eq!(execution.capacities, [5]);
//! assert!(csdf::check_liveness(&graph, &[Some(4)]).is_err());
//!
//! let steps = csdf::compress(&execution.firings);
//! assert_eq!(csdf::notation(&steps, &graph.actor_names()), "[l1]×3,[l2],([l1],[l2])×29,[l2]×2");
//! csdf::verify(&graph, &execution.capacities, &steps)?;
//!
//! // One row more, and the layers work at the same time. No smaller ring does.
//! use csdf::{Goal, StorageOptions};
//! let options = StorageOptions::default();
//! let storage = csdf::smallest(&graph, Goal::Maximal, &options)?;
//! assert_eq!((storage.capacities.as_slice(), storage.proven), ([6].as_slice(), true));
//! assert_eq!(storage.throughput.to_string(), "1/32");
//! csdf::verify_storage(&graph, Goal::Maximal, &options, &storage)?;
//! # Ok::<(), csdf::Error>(())
//! ```

mod ahead;
mod budget;
mod certificate;
mod error;
mod expand;
mod graph;
mod layout;
mod liveness;
mod looped;
mod peak;
mod rates;
mod ratio;
mod repetition;
mod runs;
mod schedule;
pub mod sdf3;
mod storage;
#[cfg(test)]
mod testing;
mod throughput;
mod timed;
mod verify;
mod verify_storage;

pub use budget::Budget;
pub use certificate::{Certificate, Conflict, Dependency, Reason};
pub use error::{Error, Missing, Wait};
pub use expand::{Expanded, MAX_FIRINGS};
pub use graph::{Actor, ActorId, Channel, ChannelId, Graph, MAX_PHASES, Reader};
pub use liveness::check_liveness;
pub use looped::{Firings, Step, compress, firings, notation};
pub use peak::peak_bytes;
pub use rates::{Rates, Run};
pub use ratio::{ParseRatioError, Ratio, Throughput};
pub use repetition::{RepetitionVector, repetition_vector};
pub use schedule::{Execution, sequential};
pub use storage::{Goal, Pareto, Storage, StorageOptions, Unit, pareto, smallest};
pub use throughput::{Method, throughput, throughput_by};
pub use timed::{SelfTimed, self_timed};
pub use verify::verify;
pub use verify_storage::verify_storage;
