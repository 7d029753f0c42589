//! An independent check of a schedule: replays it on counters of its own.

use crate::{Error, Graph, Step, firings, repetition_vector};

/// Replays one iteration of `graph` with these capacities in tokens, one per channel, and refuses a schedule that
/// breaks a rule. It shares only the repetition vector with [`sequential`](crate::sequential). It counts the unread
/// tokens and the tokens held, for each reader by itself.
///
/// The rules:
///
/// - When an actor fires, every token that it acquires is there.
/// - The tokens of a channel never exceed its capacity. During a firing, the channel holds both the tokens that the
///   firing produces and those that it releases.
/// - Every actor fires as often as in one iteration.
/// - Every channel ends as it began.
///
/// It takes O(p) time, p being the sum of the actors' ports over all firings.
///
/// # Errors
/// [`Error::AbsentTokens`], [`Error::Overfull`], [`Error::TooManyFirings`], [`Error::TooFewFirings`],
/// [`Error::NotRestored`], [`Error::UnknownActor`], [`Error::CapacityCount`], [`Error::CapacityBelowInitial`],
/// and those of [`repetition_vector`].
pub fn verify(graph: &Graph, capacities: &[u64], steps: &[Step]) -> Result<(), Error> {
    let channels = graph.channels();
    if capacities.len() != channels.len() {
        return Err(Error::CapacityCount { given: capacities.len(), channels: channels.len() });
    }
    for (channel, &capacity) in channels.iter().zip(capacities) {
        if capacity < channel.initial_tokens {
            let initial = channel.initial_tokens;
            return Err(Error::CapacityBelowInitial { channel: channel.name.clone(), capacity, initial });
        }
    }
    let expected = repetition_vector(graph)?.firings;
    let mut ports: Vec<Ports> = graph.actors().iter().map(|_| Ports::default()).collect();
    let mut counts: Vec<Vec<Count>> = Vec::with_capacity(channels.len());
    for (index, channel) in channels.iter().enumerate() {
        ports[channel.producer.index()]
            .written
            .push(Written { channel: index, production: Box::new(channel.production.iter().cycle()) });
        for (place, reader) in channel.readers.iter().enumerate() {
            ports[reader.actor.index()].read.push(Read {
                channel: index,
                place,
                acquire: Box::new(reader.acquire.iter().cycle()),
                release: Box::new(reader.release.iter().cycle()),
            });
        }
        counts
            .push(vec![Count { unread: u128::from(channel.initial_tokens), held: 0 }; channel.readers.len()]);
    }
    let mut fired = vec![0u64; graph.actors().len()];
    for (firing, id) in (0u64..).zip(firings(steps)) {
        let Some(actor) = graph.actors().get(id.index()) else {
            return Err(Error::UnknownActor { context: "the schedule".to_owned(), index: id.index() });
        };
        let (name, index) = (|| actor.name.clone(), id.index());
        if fired[index] == expected[index] {
            return Err(Error::TooManyFirings { firing, actor: name(), firings: expected[index] });
        }
        fired[index] += 1;
        let Ports { read, written } = &mut ports[index];
        for port in read.iter_mut() {
            let count = &mut counts[port.channel][port.place];
            let needed = u128::from(port.acquire.next().unwrap_or(0));
            if needed > count.unread {
                let missing = (needed - count.unread) as u64;
                let channel = channels[port.channel].name.clone();
                return Err(Error::AbsentTokens { firing, actor: name(), channel, missing });
            }
            count.unread -= needed;
            count.held += needed;
        }
        for port in written.iter_mut() {
            let made = u128::from(port.production.next().unwrap_or(0));
            let mut stored = 0;
            for count in &mut counts[port.channel] {
                count.unread += made;
                stored = stored.max(count.unread + count.held);
            }
            let capacity = capacities[port.channel];
            if stored > u128::from(capacity) {
                let excess = u64::try_from(stored - u128::from(capacity)).unwrap_or(u64::MAX);
                let channel = channels[port.channel].name.clone();
                return Err(Error::Overfull { firing, actor: name(), channel, capacity, excess });
            }
        }
        for port in read.iter_mut() {
            counts[port.channel][port.place].held -= u128::from(port.release.next().unwrap_or(0));
        }
    }
    for ((actor, &fired), &firings) in graph.actors().iter().zip(&fired).zip(&expected) {
        if fired != firings {
            return Err(Error::TooFewFirings { actor: actor.name.clone(), fired, firings });
        }
    }
    for (channel, counts) in channels.iter().zip(&counts) {
        for (reader, count) in channel.readers.iter().zip(counts) {
            let (left, initial) = (count.unread + count.held, channel.initial_tokens);
            if count.held > 0 || left != u128::from(initial) {
                return Err(Error::NotRestored {
                    channel: channel.name.clone(),
                    reader: graph.actors()[reader.actor.index()].name.clone(),
                    left: u64::try_from(left).unwrap_or(u64::MAX),
                    initial,
                });
            }
        }
    }
    Ok(())
}

/// The rates that an actor's next firings will have.
#[derive(Default)]
struct Ports<'g> {
    read: Vec<Read<'g>>,
    written: Vec<Written<'g>>,
}

struct Read<'g> {
    channel: usize,
    /// The reader's place among those of the channel.
    place: usize,
    acquire: Box<dyn Iterator<Item = u64> + 'g>,
    release: Box<dyn Iterator<Item = u64> + 'g>,
}

struct Written<'g> {
    channel: usize,
    production: Box<dyn Iterator<Item = u64> + 'g>,
}

/// The tokens of a channel, as one of its readers sees them.
#[derive(Clone)]
struct Count {
    /// Tokens produced but not acquired.
    unread: u128,
    /// Tokens acquired but not released.
    held: u128,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::graph;
    use crate::{ActorId, compress};

    /// Replays a schedule written with one letter a firing, `a` being the first actor.
    fn check(text: &str, capacities: &[u64], schedule: &str, expected: Option<&str>) {
        let sequence: Vec<ActorId> =
            schedule.bytes().map(|letter| ActorId(u32::from(letter - b'a'))).collect();
        let found = verify(&graph(text), capacities, &compress(&sequence)).err();
        assert_eq!(found.map(|error| error.to_string()).as_deref(), expected, "{schedule} {capacities:?}");
    }

    #[test]
    fn replays() {
        let window = "a:4 b:4  a 1 > b 2,2*1,0/0,2*1,2";
        check(window, &[3], "aabababb", None);
        check(window, &[4], "aaaabbbb", None);
        check(window, &[3], "abaababb", Some("firing 1: `b` lacks 1 tokens of channel `a>b`"));
        check(
            window,
            &[2],
            "aabababb",
            Some("firing 3: `a` overfills channel `a>b` of capacity 2 by 1 tokens"),
        );
        check(
            window,
            &[3],
            "aaaabbbb",
            Some("firing 3: `a` overfills channel `a>b` of capacity 3 by 1 tokens"),
        );
        check(window, &[3], "aababab", Some("`b` fires 3 times, not the 4 times of one iteration"));
        check(
            window,
            &[3],
            "aabababba",
            Some("firing 8: `a` has already fired the 4 times of one iteration"),
        );
        check(window, &[3], "z", Some("the schedule: there is no actor number 25"));
        check(window, &[], "", Some("0 capacities for 1 channels"));
    }

    #[test]
    fn several_readers() {
        let fork = "a:2 b:2 c:1  a 1 > b 1 | c 2";
        check(fork, &[2], "ababc", None);
        check(fork, &[2], "abacb", None);
        check(fork, &[1], "ababc", Some("firing 2: `a` overfills channel `a>b` of capacity 1 by 1 tokens"));
        check(fork, &[2], "abcab", Some("firing 2: `c` lacks 1 tokens of channel `a>b`"));
    }

    #[test]
    fn initial_tokens() {
        check("a:1 b:1  a 1 > b 1 +1", &[1], "ba", None);
        check(
            "a:1 b:1  a 1 > b 1 +1",
            &[1],
            "ab",
            Some("firing 0: `a` overfills channel `a>b` of capacity 1 by 1 tokens"),
        );
        check("a:1 b:1  a 1 > b 1 +1", &[0], "ba", Some("channel `a>b` has capacity 0 but 1 initial tokens"));
        check("a:1  a 1 > a 1 +1", &[2], "a", None);
        check("a:1  a 1 > a 1", &[2], "a", Some("firing 0: `a` lacks 1 tokens of channel `a>a`"));
    }
}
