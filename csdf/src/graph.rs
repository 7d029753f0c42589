//! Actors and channels.

use std::num::NonZero;

use crate::{Error, Rates};

/// Maximum number of phases of an actor; each analysis is at least linear in them.
pub const MAX_PHASES: u64 = 1 << 26;

/// An actor of a [`Graph`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ActorId(pub(crate) u32);

impl ActorId {
    /// Its place in [`Graph::actors`].
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A channel of a [`Graph`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChannelId(pub(crate) u32);

impl ChannelId {
    /// Its place in [`Graph::channels`].
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// An actor, which fires: firing n is phase n mod `phases`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Actor {
    /// Its name in messages and schedules.
    pub name: String,
    /// Phases of its cycle; at least 1, at most [`MAX_PHASES`].
    pub phases: u64,
    /// Time of each phase. The length of the sequence is the number of phases, or divides it.
    pub execution_times: Rates,
    /// The most firings of it that are under way at a time. Only timed analyses use it.
    pub concurrency: NonZero<u64>,
}

impl Actor {
    /// An actor whose every phase takes one unit of time, one firing at a time.
    pub fn new(name: impl Into<String>, phases: u64) -> Actor {
        let execution_times = Rates::constant(phases.min(1), 1);
        Actor { name: name.into(), phases, execution_times, concurrency: NonZero::<u64>::MIN }
    }
}

/// One reader of a channel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reader {
    /// The actor that reads; it may read one channel several times, and may be its producer.
    pub actor: ActorId,
    /// Tokens newly needed at the start of each phase; those acquired before stay readable until released.
    pub acquire: Rates,
    /// Tokens forgotten, oldest first, at the end of each phase.
    pub release: Rates,
}

impl Reader {
    /// A plain CSDF reader: each phase consumes what it reads.
    pub fn consuming(actor: ActorId, rates: Rates) -> Reader {
        Reader { actor, acquire: rates.clone(), release: rates }
    }
}

/// An ordered stream of tokens from one producer to one or more readers, each of which sees all of them.
///
/// A token's place is free again when the last reader has released it; capacities and totals count the
/// channel once, however many read it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Channel {
    /// Its name in messages.
    pub name: String,
    /// The actor that writes.
    pub producer: ActorId,
    /// Tokens made by each phase: their space is claimed at its start, they are readable from its end.
    pub production: Rates,
    /// Those that read; at least one.
    pub readers: Vec<Reader>,
    /// Tokens that are there before the first firing.
    pub initial_tokens: u64,
    /// Size of a token in bytes.
    pub token_bytes: u64,
    /// Maximum number of tokens that it may hold; unbounded if none.
    pub capacity: Option<u64>,
}

impl Channel {
    /// An unbounded channel without initial tokens, of tokens of one byte.
    pub fn new(
        name: impl Into<String>,
        producer: ActorId,
        production: Rates,
        readers: Vec<Reader>,
    ) -> Channel {
        Channel {
            name: name.into(),
            producer,
            production,
            readers,
            initial_tokens: 0,
            token_bytes: 1,
            capacity: None,
        }
    }
}

/// A cyclo-static dataflow graph (Bilsen et al., "Cyclo-static dataflow", 1996) whose readers acquire and
/// release at rates of their own.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Graph {
    actors: Vec<Actor>,
    channels: Vec<Channel>,
}

impl Graph {
    /// A graph without actors.
    pub fn new() -> Graph {
        Graph::default()
    }

    /// Adds an actor.
    ///
    /// # Errors
    /// [`Error::NoPhases`], [`Error::TooManyPhases`], [`Error::RateLength`] for its execution times, and
    /// [`Error::TooMany`].
    pub fn add_actor(&mut self, actor: Actor) -> Result<ActorId, Error> {
        if actor.phases == 0 {
            return Err(Error::NoPhases { actor: actor.name });
        }
        if actor.phases > MAX_PHASES {
            return Err(Error::TooManyPhases { actor: actor.name, phases: actor.phases, limit: MAX_PHASES });
        }
        check_length("execution times", &actor.name, &actor, &actor.execution_times)?;
        let id = ActorId(next_id("actors", self.actors.len())?);
        self.actors.push(actor);
        Ok(id)
    }

    /// Adds a channel between actors added before.
    ///
    /// # Errors
    /// [`Error::NoReader`], [`Error::UnknownActor`], [`Error::RateLength`] unless each rate sequence is as long
    /// as its actor's phases or a divisor of them, [`Error::UnequalTotals`] and [`Error::EarlyRelease`] for a
    /// reader that does not release what it acquires and only that, [`Error::CapacityBelowInitial`], and
    /// [`Error::TooMany`].
    pub fn add_channel(&mut self, channel: Channel) -> Result<ChannelId, Error> {
        let unknown = |id: ActorId| Error::UnknownActor {
            context: format!("channel `{}`", channel.name),
            index: id.index(),
        };
        let producer = self.actors.get(channel.producer.index()).ok_or_else(|| unknown(channel.producer))?;
        check_length("production", &channel.name, producer, &channel.production)?;
        if channel.readers.is_empty() {
            return Err(Error::NoReader { channel: channel.name });
        }
        for reader in &channel.readers {
            let actor = self.actors.get(reader.actor.index()).ok_or_else(|| unknown(reader.actor))?;
            check_length("acquire", &channel.name, actor, &reader.acquire)?;
            check_length("release", &channel.name, actor, &reader.release)?;
            check_reader(&channel.name, actor, reader)?;
        }
        if let Some(capacity) = channel.capacity.filter(|&capacity| capacity < channel.initial_tokens) {
            let initial = channel.initial_tokens;
            return Err(Error::CapacityBelowInitial { channel: channel.name, capacity, initial });
        }
        let id = ChannelId(next_id("channels", self.channels.len())?);
        self.channels.push(channel);
        Ok(id)
    }

    /// All actors, in the order in which they were added.
    pub fn actors(&self) -> &[Actor] {
        &self.actors
    }

    /// All channels, in the order in which they were added.
    pub fn channels(&self) -> &[Channel] {
        &self.channels
    }

    /// Ids of all actors.
    pub fn actor_ids(&self) -> impl Iterator<Item = ActorId> + use<> {
        // `next_id` keeps the count within 32 bits.
        (0..self.actors.len() as u32).map(ActorId)
    }

    /// Ids of all channels.
    pub fn channel_ids(&self) -> impl Iterator<Item = ChannelId> + use<> {
        (0..self.channels.len() as u32).map(ChannelId)
    }

    /// Names of all actors.
    pub fn actor_names(&self) -> Vec<&str> {
        self.actors.iter().map(|actor| actor.name.as_str()).collect()
    }

    /// The capacities that the channels state.
    pub fn capacities(&self) -> Vec<Option<u64>> {
        self.channels.iter().map(|channel| channel.capacity).collect()
    }

    pub(crate) fn name(&self, actor: ActorId) -> String {
        self.actors.get(actor.index()).map_or_else(|| format!("#{}", actor.0), |actor| actor.name.clone())
    }
}

fn next_id(what: &'static str, count: usize) -> Result<u32, Error> {
    u32::try_from(count)
        .ok()
        .filter(|&id| id < u32::MAX)
        .ok_or(Error::TooMany { what, limit: u64::from(u32::MAX) })
}

fn check_length(what: &'static str, of: &str, actor: &Actor, rates: &Rates) -> Result<(), Error> {
    if !rates.is_empty() && actor.phases.is_multiple_of(rates.len()) {
        return Ok(());
    }
    Err(Error::RateLength {
        what,
        of: of.to_owned(),
        actor: actor.name.clone(),
        length: rates.len(),
        phases: actor.phases,
    })
}

fn check_reader(channel: &str, actor: &Actor, reader: &Reader) -> Result<(), Error> {
    let cycle = |rates: &Rates| rates.total() * u128::from(actor.phases / rates.len());
    let (acquired, released) = (cycle(&reader.acquire), cycle(&reader.release));
    if acquired != released {
        return Err(Error::UnequalTotals {
            channel: channel.to_owned(),
            actor: actor.name.clone(),
            acquired,
            released,
        });
    }
    if reader.acquire == reader.release {
        return Ok(());
    }
    let (mut acquired, mut released) = (0, 0);
    let pairs = reader.acquire.iter().cycle().zip(reader.release.iter().cycle());
    for (phase, (acquire, release)) in (0..actor.phases).zip(pairs) {
        acquired += u128::from(acquire);
        released += u128::from(release);
        if released > acquired {
            return Err(Error::EarlyRelease {
                channel: channel.to_owned(),
                actor: actor.name.clone(),
                phase,
                acquired,
                released,
            });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refused_actors() {
        let mut graph = Graph::new();
        let error = graph.add_actor(Actor::new("a", 0)).unwrap_err().to_string();
        assert_eq!(error, "actor `a` has no phase");
        let error = graph.add_actor(Actor::new("a", u64::MAX)).unwrap_err().to_string();
        assert_eq!(error, "actor `a` has 18446744073709551615 phases; the most is 67108864");
        let times = Rates::constant(3, 1);
        let error = graph.add_actor(Actor { execution_times: times, ..Actor::new("a", 4) }).unwrap_err();
        assert_eq!(
            error.to_string(),
            "execution times of `a` has 3 entries, which is neither the 4 phases of `a` nor a divisor of it"
        );
        assert!(graph.actors().is_empty());
    }

    #[test]
    fn channels() {
        /// A channel from an actor of 4 phases to one of 6.
        fn check(production: &str, acquire: &str, release: &str, expected: Option<&str>) {
            let mut graph = Graph::new();
            let a = graph.add_actor(Actor::new("a", 4)).unwrap();
            let b = graph.add_actor(Actor::new("b", 6)).unwrap();
            let reader =
                Reader { actor: b, acquire: acquire.parse().unwrap(), release: release.parse().unwrap() };
            let channel = Channel::new("c", a, production.parse().unwrap(), vec![reader]);
            let error = graph.add_channel(channel).err().map(|error| error.to_string());
            assert_eq!(error.as_deref(), expected);
        }
        check("4*1", "6*1", "6*1", None);
        check("1", "2,0", "0,0,3,3*1", None);
        check("1,2", "2", "2,2", None);
        check(
            "3*1",
            "6*1",
            "6*1",
            Some("production of `c` has 3 entries, which is neither the 4 phases of `a` nor a divisor of it"),
        );
        check(
            "4*1",
            "6*1",
            "12*1",
            Some("release of `c` has 12 entries, which is neither the 6 phases of `b` nor a divisor of it"),
        );
        check(
            "4*1",
            "6*1",
            "5*1,2",
            Some("reader `b` of channel `c` acquires 6 tokens in a cycle but releases 7"),
        );
        check(
            "4*1",
            "0,2",
            "1",
            Some(
                "reader `b` of channel `c` has released 1 tokens by the end of phase 0, more than the 0 acquired",
            ),
        );
    }

    #[test]
    fn readers_and_capacity() {
        let mut graph = Graph::new();
        let a = graph.add_actor(Actor::new("a", 1)).unwrap();
        let one = Rates::constant(1, 1);
        let error = graph.add_channel(Channel::new("c", a, one.clone(), Vec::new())).unwrap_err();
        assert_eq!(error, Error::NoReader { channel: "c".into() });
        let unknown = ActorId(7);
        let readers = vec![Reader::consuming(unknown, one.clone())];
        let error = graph.add_channel(Channel::new("c", a, one.clone(), readers)).unwrap_err();
        assert_eq!(error.to_string(), "channel `c`: there is no actor number 7");
        let loop_back = Channel::new("c", a, one.clone(), vec![Reader::consuming(a, one)]);
        let full = Channel { initial_tokens: 2, capacity: Some(1), ..loop_back.clone() };
        assert!(matches!(graph.add_channel(full), Err(Error::CapacityBelowInitial { .. })));
        assert_eq!(graph.add_channel(loop_back).map(ChannelId::index), Ok(0));
    }
}
