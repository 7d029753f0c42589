//! What can be wrong with a plan.

use serde::Serialize;
use thiserror::Error;

use crate::plan::PeakWitness;
use crate::shape::Shape;

/// Half-open range of bytes in the arena.
pub type Addresses = std::ops::Range<u64>;

/// One rule that a plan breaks, and where. Firings are counted from 0 within one frame of a partition, rows from 0
/// within a frame; addresses are bytes from the start of the arena.
#[derive(Debug, Clone, PartialEq, Error, Serialize)]
#[serde(tag = "violation", rename_all = "snake_case")]
#[non_exhaustive]
#[allow(missing_docs, reason = "the message of each variant says what its fields are")]
#[rustfmt::skip]
pub enum Violation {
    #[error("format `{found}` is unknown; this version knows `{known}`")]
    Format { found: String, known: String },
    #[error("{what} is {value}, beyond the {limit} that can be checked")]
    TooLarge { what: String, value: String, limit: u64 },
    #[error("two {kind}s are named `{name}`")]
    DuplicateName { kind: String, name: String },
    #[error("{place} names the {kind} `{name}`, which the plan does not have")]
    UnknownName { kind: String, name: String, place: String },
    #[error("{place}: {why}")]
    Structure { place: String, why: String },
    #[error("layer `{cnn}/{layer}` reads `{tensor}`, which no earlier layer produces")]
    NotTopological { cnn: String, layer: String, tensor: String },
    #[error("layer `{cnn}/{layer}` of partition `{partition}` reads `{tensor}` from the later partition `{from}`")]
    BackwardCut { cnn: String, layer: String, partition: String, tensor: String, from: String },
    #[error("tensor `{cnn}/{tensor}`: {why}")]
    Tensor { cnn: String, tensor: String, why: String },
    #[error("`{cnn}/{reader}` sees `{tensor}` of shape {shape} as {view}, which has another number of elements")]
    WrongView { cnn: String, reader: String, tensor: String, shape: Shape, view: Shape },
    #[error("layer `{cnn}/{layer}`: {why}")]
    Operator { cnn: String, layer: String, why: String },
    #[error("layer `{cnn}/{layer}` makes {expected}, not {stated}")]
    OutputShape { cnn: String, layer: String, stated: Shape, expected: Shape },
    #[error("layer `{cnn}/{layer}` fires {expected} times a frame, not {stated}")]
    Firings { cnn: String, layer: String, stated: u64, expected: u64 },
    #[error("layer `{cnn}/{layer}`, operand {operand} (`{tensor}`): {rate} rates `{stated}` {why}")]
    Rate { cnn: String, layer: String, operand: usize, tensor: String, rate: String, stated: String, why: String },
    #[error("weights of layer `{cnn}/{layer}`: {why}")]
    Streamed { cnn: String, layer: String, why: String },
    #[error("ring of `{tensor}`: {why}")]
    Ring { tensor: String, why: String },
    #[error("memory region `{region}`: {why}")]
    Region { region: String, why: String },
    #[error("buffer `{buffer}`: {why}")]
    Buffer { buffer: String, why: String },
    #[error("edge from `{cnn}/{tensor}` to `{consumer}`: {why}")]
    Edge { cnn: String, tensor: String, consumer: String, why: String },
    #[error("partition `{partition}`: {why}")]
    Schedule { partition: String, why: String },
    #[error("partition `{partition}` fires layer `{layer}` {stated} times a frame, not {expected}")]
    FiringCount { partition: String, layer: String, stated: u64, expected: u64 },
    #[error("partition `{partition}` notes its schedule as `{stated}`, but the schedule is `{expected}`")]
    Notation { partition: String, stated: String, expected: String },
    #[error("`{first}` and `{second}` are stored at the same time and share bytes {addresses:?}")]
    Overlap { first: String, second: String, addresses: Addresses },
    #[error("partitions `{first_partition}` and `{second_partition}` run at the same time and `{first}` and `{second}` share bytes {addresses:?}")]
    SharedByConcurrent { first_partition: String, second_partition: String, first: String, second: String, addresses: Addresses },
    #[error("certificate.bound is no moment of the most bytes; one is when {firing} fire, of {bytes} bytes: {tensors}", firing = moment.firing.join(" and "), bytes = moment.bytes, tensors = moment.tensors.join(", "))]
    Witness { moment: PeakWitness },
    #[error("partition `{partition}`, firing {firing}: layer `{layer}` reads row {row} of `{tensor}` before it is written")]
    NotWritten { partition: String, firing: u64, layer: String, tensor: String, row: u64 },
    #[error("partition `{partition}`, firing {firing}: layer `{layer}` reads row {row} of `{tensor}` at {addresses:?}, where {found} lies")]
    Overwritten { partition: String, firing: u64, layer: String, tensor: String, row: u64, addresses: Addresses, found: String },
    #[error("partition `{partition}`, firing {firing}: layer `{layer}` writes row {row} of `{tensor}` at {addresses:?} over row {lost_row} of `{lost_tensor}`, which is still needed")]
    OverwritesNeeded { partition: String, firing: u64, layer: String, tensor: String, row: u64, addresses: Addresses, lost_tensor: String, lost_row: u64 },
    #[error("cnn `{cnn}`: with {interleaving}, every partition of {partitions:?} waits for another")]
    Deadlock { cnn: String, partitions: Vec<String>, interleaving: String },
    #[error("{what} is {expected}, not {stated}")]
    Sum { what: String, stated: String, expected: String },
}
