//! The one error type of the crate.

use std::fmt;

use thiserror::Error;

use crate::ratio::{Ratio, Throughput};

/// Everything that can be wrong with a graph, a schedule, or the text of a rate sequence.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Error {
    /// The text of a rate sequence is not in the notation.
    #[error("bad rate sequence: {reason} at byte {at}")]
    BadRates {
        /// What is wrong.
        reason: &'static str,
        /// Where in the text, from 0.
        at: usize,
    },
    /// A file is not in the SDF3 format, or holds what is not supported.
    #[error("line {line}, column {column}: {reason}")]
    Sdf3 {
        /// The line, from 1.
        line: u32,
        /// The column, from 1.
        column: u32,
        /// What is wrong.
        reason: String,
    },
    /// An actor has no phase.
    #[error("actor `{actor}` has no phase")]
    NoPhases {
        /// The actor.
        actor: String,
    },
    /// An actor has more phases than any analysis could walk through.
    #[error("actor `{actor}` has {phases} phases; the most is {limit}")]
    TooManyPhases {
        /// The actor.
        actor: String,
        /// Its phases.
        phases: u64,
        /// The most that are accepted.
        limit: u64,
    },
    /// A graph has more actors or channels than their ids can count.
    #[error("a graph holds at most {limit} {what}")]
    TooMany {
        /// Actors or channels.
        what: &'static str,
        /// The most that are accepted.
        limit: u64,
    },
    /// An actor id is not one of this graph's.
    #[error("{context}: there is no actor number {index}")]
    UnknownActor {
        /// The channel or schedule that names it.
        context: String,
        /// The id's number.
        index: usize,
    },
    /// A rate sequence does not fit the phases of its actor.
    #[error(
        "{what} of `{of}` has {length} entries, which is neither the {phases} phases of `{actor}` nor a divisor of it"
    )]
    RateLength {
        /// Which sequence: production, acquire, release or execution times.
        what: &'static str,
        /// The channel, or the actor for execution times.
        of: String,
        /// The actor whose phases it must fit.
        actor: String,
        /// Entries of the sequence.
        length: u64,
        /// Phases of the actor.
        phases: u64,
    },
    /// A channel that no actor reads.
    #[error("channel `{channel}` has no reader")]
    NoReader {
        /// The channel.
        channel: String,
    },
    /// A reader acquires more or fewer tokens in a cycle of its phases than it releases.
    #[error(
        "reader `{actor}` of channel `{channel}` acquires {acquired} tokens in a cycle but releases {released}"
    )]
    UnequalTotals {
        /// The channel.
        channel: String,
        /// The reader.
        actor: String,
        /// Tokens acquired in a cycle of phases.
        acquired: u128,
        /// Tokens released in a cycle of phases.
        released: u128,
    },
    /// A reader releases tokens before it has acquired them.
    #[error(
        "reader `{actor}` of channel `{channel}` has released {released} tokens by the end of phase {phase}, more than the {acquired} acquired"
    )]
    EarlyRelease {
        /// The channel.
        channel: String,
        /// The reader.
        actor: String,
        /// The phase, from 0.
        phase: u64,
        /// Tokens acquired up to it.
        acquired: u128,
        /// Tokens released up to its end.
        released: u128,
    },
    /// No repetition vector exists: the rates around this cycle of actors contradict each other.
    #[error("inconsistent graph: the rates around {} contradict each other", quoted(cycle))]
    Inconsistent {
        /// Names of the actors around the cycle, directions of the channels ignored.
        cycle: Vec<String>,
    },
    /// No repetition vector exists: of producer and reader of a channel, only one has rates above 0.
    #[error(
        "inconsistent graph: on channel `{channel}` all rates of `{silent}` are 0, and those of `{other}` are not"
    )]
    NoFlow {
        /// The channel.
        channel: String,
        /// The producer or reader all of whose rates are 0.
        silent: String,
        /// The other one.
        other: String,
    },
    /// A number does not fit the arithmetic.
    #[error("the {what} of `{of}` is too large a number")]
    Overflow {
        /// What was computed.
        what: &'static str,
        /// The actor or channel.
        of: String,
    },
    /// One iteration is too long to be walked through firing by firing.
    #[error("one iteration has {what} of {count}, but csdf walks through at most {limit}")]
    TooLong {
        /// Firings, or rates of all ports.
        what: &'static str,
        /// How many.
        count: u128,
        /// The most that is accepted.
        limit: u64,
    },
    /// No actor of the cycle can ever fire again: each waits for the next, the last for the first.
    #[error("deadlock: {}", chain(cycle))]
    Deadlock {
        /// The blocked actors.
        cycle: Vec<Wait>,
    },
    /// A channel's capacity is below its initial tokens.
    #[error("channel `{channel}` has capacity {capacity} but {initial} initial tokens")]
    CapacityBelowInitial {
        /// The channel.
        channel: String,
        /// Its capacity.
        capacity: u64,
        /// Its initial tokens.
        initial: u64,
    },
    /// A list of capacities does not have one entry per channel.
    #[error("{given} capacities for {channels} channels")]
    CapacityCount {
        /// Entries given.
        given: usize,
        /// Channels of the graph.
        channels: usize,
    },
    /// The segments of a schedule leave an actor out.
    #[error("no segment lists actor `{actor}`")]
    ActorLeftOut {
        /// The actor.
        actor: String,
    },
    /// The segments of a schedule list an actor twice.
    #[error("the segments list actor `{actor}` twice")]
    ActorRepeated {
        /// The actor.
        actor: String,
    },
    /// An actor needs tokens of an actor of a later segment.
    #[error(
        "actor `{actor}` lacks {missing} tokens of channel `{channel}`, whose producer `{producer}` is in a later segment"
    )]
    SegmentOrder {
        /// The actor that cannot fire.
        actor: String,
        /// The channel it reads.
        channel: String,
        /// Tokens missing.
        missing: u64,
        /// The channel's producer.
        producer: String,
    },
    /// A replayed firing reads tokens that are not there.
    #[error("firing {firing}: `{actor}` lacks {missing} tokens of channel `{channel}`")]
    AbsentTokens {
        /// The firing's place in the schedule, from 0.
        firing: u64,
        /// The actor that fires.
        actor: String,
        /// The channel it reads.
        channel: String,
        /// Tokens missing.
        missing: u64,
    },
    /// A replayed firing overfills a channel.
    #[error(
        "firing {firing}: `{actor}` overfills channel `{channel}` of capacity {capacity} by {excess} tokens"
    )]
    Overfull {
        /// The firing's place in the schedule, from 0.
        firing: u64,
        /// The actor that fires.
        actor: String,
        /// The channel it writes.
        channel: String,
        /// The channel's capacity.
        capacity: u64,
        /// Tokens above it.
        excess: u64,
    },
    /// A replayed schedule fires an actor more often than one iteration does.
    #[error("firing {firing}: `{actor}` has already fired the {firings} times of one iteration")]
    TooManyFirings {
        /// The firing's place in the schedule, from 0.
        firing: u64,
        /// The actor that fires.
        actor: String,
        /// Its firings per iteration.
        firings: u64,
    },
    /// A replayed schedule ends before one iteration does.
    #[error("`{actor}` fires {fired} times, not the {firings} times of one iteration")]
    TooFewFirings {
        /// The actor.
        actor: String,
        /// Its firings in the schedule.
        fired: u64,
        /// Its firings per iteration.
        firings: u64,
    },
    /// After a replayed schedule, a channel holds another number of tokens than before.
    #[error("channel `{channel}` ends with {left} tokens for `{reader}`, not the initial {initial}")]
    NotRestored {
        /// The channel.
        channel: String,
        /// The reader that sees the difference.
        reader: String,
        /// Tokens left.
        left: u64,
        /// Initial tokens.
        initial: u64,
    },
    /// An analysis has used up its budget before it had an answer.
    #[error("the analysis has used up its budget")]
    Exhausted,
    /// No capacities achieve the throughput that is asked for.
    #[error("a throughput of {goal} is out of reach: the most is {maximal}")]
    OutOfReach {
        /// What is asked for.
        goal: Ratio,
        /// What unbounded channels achieve.
        maximal: Throughput,
    },
    /// A list of granularities does not have one entry per channel, or an entry is 0.
    #[error("granularities must be at least 1, one for each of the {channels} channels")]
    Granularity {
        /// Channels of the graph.
        channels: usize,
    },
    /// A certificate does not prove its claim.
    #[error("bad certificate: {reason}")]
    BadCertificate {
        /// The claim that does not hold.
        reason: String,
    },
}

impl Error {
    pub(crate) fn bad_certificate<T>(reason: impl Into<String>) -> Result<T, Error> {
        Err(Error::BadCertificate { reason: reason.into() })
    }
}

/// Why one actor of a deadlock cannot fire.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wait {
    /// The blocked actor.
    pub actor: String,
    /// The channel that it reads (tokens missing) or writes (space missing).
    pub channel: String,
    /// What is missing.
    pub missing: Missing,
    /// The actor that would have to fire first; the blocked actor itself if no firing could help.
    pub waits_for: String,
}

/// What a blocked actor lacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Missing {
    /// Tokens to acquire.
    Tokens(u64),
    /// Space for the tokens to produce.
    Space(u64),
}

impl fmt::Display for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (count, what) = match self.missing {
            Missing::Tokens(count) => (count, "token"),
            Missing::Space(count) => (count, "place"),
        };
        let plural = if count == 1 { "" } else { "s" };
        write!(f, "`{}` lacks {count} {what}{plural} of channel `{}`", self.actor, self.channel)?;
        if self.waits_for == self.actor {
            write!(f, ", which no firing can bring")
        } else {
            write!(f, " and waits for `{}`", self.waits_for)
        }
    }
}

fn quoted(names: &[String]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(" – ")
}

fn chain(cycle: &[Wait]) -> String {
    cycle.iter().map(Wait::to_string).collect::<Vec<_>>().join("; ")
}
