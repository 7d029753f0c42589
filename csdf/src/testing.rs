//! Graphs from short texts, for tests.

use crate::{Actor, ActorId, Channel, Graph, Reader};

/// Reads a graph: first the actors as `name:phases[@times][^concurrency]`, then the channels as
/// `producer rates > reader acquire[/release] | reader acquire[/release] +initial`, named `producer>reader`.
pub(crate) fn graph(text: &str) -> Graph {
    let mut graph = Graph::new();
    let mut words = text.split_whitespace().peekable();
    while let Some((name, rest)) = words.peek().and_then(|word| word.split_once(':')) {
        let (rest, concurrency) = rest.split_once('^').unwrap_or((rest, "1"));
        let (phases, times) = rest.split_once('@').unwrap_or((rest, "1"));
        let (execution_times, concurrency) = (times.parse().unwrap(), concurrency.parse().unwrap());
        let actor = Actor::new(name, phases.parse().unwrap());
        graph.add_actor(Actor { execution_times, concurrency, ..actor }).unwrap();
        words.next();
    }
    let find = |graph: &Graph, name: &str| -> ActorId {
        graph.actor_ids().find(|id| graph.actors()[id.index()].name == name).unwrap()
    };
    while let Some(producer) = words.next() {
        let production = words.next().unwrap().parse().unwrap();
        let (mut readers, mut name) = (Vec::new(), String::new());
        while let Some(separator) = words.next_if(|&word| word == ">" || word == "|") {
            let reader = words.next().unwrap();
            if separator == ">" {
                name = format!("{producer}>{reader}");
            }
            let rates = words.next().unwrap();
            let (acquire, release) = rates.split_once('/').unwrap_or((rates, rates));
            let (acquire, release) = (acquire.parse().unwrap(), release.parse().unwrap());
            readers.push(Reader { actor: find(&graph, reader), acquire, release });
        }
        let initial = words.next_if(|word| word.starts_with('+'));
        let initial_tokens = initial.map_or(0, |word| word[1..].parse().unwrap());
        let channel = Channel::new(name, find(&graph, producer), production, readers);
        graph.add_channel(Channel { initial_tokens, ..channel }).unwrap();
    }
    graph
}
