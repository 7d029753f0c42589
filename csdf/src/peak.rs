//! How much a schedule stores at a time.

use crate::{Error, Graph, Step, firings};

/// The most bytes that the tokens of all channels together take at any time of a schedule for one processor.
///
/// A token takes [`token_bytes`](crate::Channel::token_bytes) from the start of the firing that produces it to the end
/// of the firing that releases it. The peak is at most the sum of the capacities that the schedule needs. It is less if
/// the channels are not all full at once. A channel whose only reader is its producer counts too. It takes O(p) time, p
/// being the sum of the actors' ports over all firings of the schedule.
///
/// ```
/// use csdf::{Actor, Channel, Graph, Rates, Reader};
///
/// // A chain of three actors, tokens of 100 and of 10 bytes.
/// let mut graph = Graph::new();
/// let [a, b, c] = ["a", "b", "c"].map(|name| graph.add_actor(Actor::new(name, 1)).expect("one phase"));
/// for (name, from, to, token_bytes) in [("ab", a, b, 100), ("bc", b, c, 10)] {
///     let reader = Reader::consuming(to, Rates::constant(1, 1));
///     let channel = Channel::new(name, from, Rates::constant(1, 1), vec![reader]);
///     graph.add_channel(Channel { token_bytes, ..channel })?;
/// }
/// let steps = csdf::compress(&csdf::sequential(&graph, &[vec![a, b, c]])?.firings);
/// assert_eq!(csdf::peak_bytes(&graph, &steps)?, 110);
/// # Ok::<(), csdf::Error>(())
/// ```
///
/// # Errors
/// [`Error::UnknownActor`]; [`Error::Overflow`] if a count exceeds 64 bits.
pub fn peak_bytes(graph: &Graph, steps: &[Step]) -> Result<u64, Error> {
    let channels = graph.channels();
    let mut ports: Vec<Ports> = graph.actors().iter().map(|_| Ports::default()).collect();
    let mut produced: Vec<u64> = channels.iter().map(|channel| channel.initial_tokens).collect();
    let mut released: Vec<Vec<u64>> = channels.iter().map(|channel| vec![0; channel.readers.len()]).collect();
    for (index, channel) in channels.iter().enumerate() {
        let production = Box::new(channel.production.iter().cycle());
        ports[channel.producer.index()].written.push((index, production));
        for (place, reader) in channel.readers.iter().enumerate() {
            let release = Box::new(reader.release.iter().cycle());
            ports[reader.actor.index()].read.push((index, place, release));
        }
    }
    let freed = |released: &[u64]| released.iter().min().copied().unwrap_or(0);
    let mut stored: u128 =
        channels.iter().map(|c| u128::from(c.initial_tokens) * u128::from(c.token_bytes)).sum();
    let mut peak = stored;
    for actor in firings(steps) {
        let Some(ports) = ports.get_mut(actor.index()) else {
            return Err(Error::UnknownActor { context: "the schedule".to_owned(), index: actor.index() });
        };
        for (index, production) in &mut ports.written {
            let made = production.next().unwrap_or(0);
            produced[*index] = produced[*index].checked_add(made).ok_or_else(|| overflow(graph, *index))?;
            stored += u128::from(made) * u128::from(channels[*index].token_bytes);
        }
        peak = peak.max(stored);
        for (index, place, release) in &mut ports.read {
            let before = freed(&released[*index]);
            let count = &mut released[*index][*place];
            *count = count.checked_add(release.next().unwrap_or(0)).ok_or_else(|| overflow(graph, *index))?;
            // A schedule that releases tokens that are not there frees only those that are.
            let after = freed(&released[*index]).min(produced[*index]);
            let tokens = after.saturating_sub(before);
            stored = stored.saturating_sub(u128::from(tokens) * u128::from(channels[*index].token_bytes));
        }
    }
    u64::try_from(peak).map_err(|_| Error::Overflow { what: "peak in bytes", of: "the schedule".to_owned() })
}

fn overflow(graph: &Graph, channel: usize) -> Error {
    Error::Overflow { what: "count of tokens", of: graph.channels()[channel].name.clone() }
}

/// The ports of an actor, with the rates still to come: channel, place among its readers, release.
#[derive(Default)]
struct Ports<'g> {
    read: Vec<(usize, usize, Box<dyn Iterator<Item = u64> + 'g>)>,
    written: Vec<(usize, Box<dyn Iterator<Item = u64> + 'g>)>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::graph;
    use crate::{ActorId, compress, sequential};

    #[test]
    fn peaks() {
        /// A schedule with one letter a firing.
        fn check(text: &str, schedule: &str, expected: u64) {
            let sequence: Vec<ActorId> =
                schedule.bytes().map(|letter| ActorId(u32::from(letter - b'a'))).collect();
            assert_eq!(peak_bytes(&graph(text), &compress(&sequence)), Ok(expected), "{schedule}");
        }
        check("a:4 b:4  a 1 > b 1", "abababab", 1);
        check("a:4 b:4  a 1 > b 1", "aaaabbbb", 4);
        // A window, and two readers. The slower reader holds the stored tokens.
        check("a:4 b:4  a 1 > b 2,2*1,0/0,2*1,2", "aabababb", 3);
        check("a:2 b:2 c:1  a 1 > b 1 | c 2", "ababc", 2);
        // The second channel is full when the first is empty.
        check("a:1 b:1 c:1  a 2 > b 2  b 3 > c 3", "abc", 5);
        check("a:1 b:1 c:1  a 2 > b 2  b 3 > c 3", "", 0);
        check("a:1 b:1  a 1 > b 1 +3", "ab", 4);
    }

    #[test]
    fn at_most_the_sum_of_the_capacities() {
        let graph = graph("a:6 b:6 c:6  a 1 > b 2,4*1,0/0,4*1,2 | c 1  b 1 > c 1");
        let execution = sequential(&graph, &[graph.actor_ids().collect()]).unwrap();
        let peak = peak_bytes(&graph, &compress(&execution.firings)).unwrap();
        assert!(peak <= execution.capacities.iter().sum());
        assert!(peak >= *execution.capacities.iter().max().unwrap());
    }

    #[test]
    fn strangers_are_refused() {
        let found = peak_bytes(&graph("a:1 b:1  a 1 > b 1"), &[Step::Fire(ActorId(7))]);
        assert_eq!(found, Err(Error::UnknownActor { context: "the schedule".to_owned(), index: 7 }));
    }
}
