//! Single-processor execution of one iteration, firing by firing.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use petgraph::algo::kosaraju_scc;
use petgraph::graph::{DiGraph, NodeIndex};

use crate::expand::State;
use crate::{ActorId, Error, Expanded, Graph, Missing, Wait};

/// One iteration on one processor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Execution {
    /// The actors in the order in which they fire.
    pub firings: Vec<ActorId>,
    /// By channel, the most tokens that it holds at any time: enough capacity for these firings, and no less.
    pub capacities: Vec<u64>,
    /// By actor, the places in `firings` of its first and its last firing.
    pub spans: Vec<(usize, usize)>,
}

/// Executes one iteration of `graph` on demand, segment after segment.
///
/// All actors of a segment fire all their firings of the iteration before the next segment begins. A sink of a segment
/// is an actor that no other actor of the segment reads. Within a segment, a sink fires as soon as it can. When no sink
/// can fire, the sink with the least progress pulls the tokens that it lacks from their producers, depth first and in
/// channel order. So a token is produced only when a firing needs it, and released as early as the sinks allow.
///
/// A firing claims space for its tokens when it starts, and frees the tokens that it releases when it ends. If the
/// segment is a chain of actors, each capacity is the least with which the graph runs at all. So all of them are
/// minimal at once. On any other graph they are sufficient. The capacities that the channels themselves state are
/// ignored. It takes O(f · (d + log a)) time, for f firings in an iteration, d ports and readers at an actor, and a
/// actors.
///
/// # Errors
/// [`Error::UnknownActor`], [`Error::ActorLeftOut`] and [`Error::ActorRepeated`] unless the segments list every
/// actor once; [`Error::SegmentOrder`]; [`Error::Deadlock`]; those of [`Expanded::new`].
pub fn sequential(graph: &Graph, segments: &[Vec<ActorId>]) -> Result<Execution, Error> {
    Expanded::new(graph)?.sequential(segments)
}

impl Expanded<'_> {
    /// [`sequential`], for several schedules of one graph.
    ///
    /// # Errors
    /// Those of [`sequential`].
    pub fn sequential(&self, segments: &[Vec<ActorId>]) -> Result<Execution, Error> {
        let segment_of = self.segment_of(segments)?;
        let firings: u64 = self.repetition.firings.iter().sum();
        let mut run = OnDemand {
            expanded: self,
            state: State::new(self),
            segment_of,
            sink: vec![None; self.graph.actors().len()],
            ready: BinaryHeap::new(),
            waiting: vec![false; self.graph.actors().len()],
            stack: Vec::new(),
            firings: Vec::with_capacity(firings as usize),
            spans: vec![(0, 0); self.graph.actors().len()],
        };
        for segment in segments {
            run.segment(segment)?;
        }
        Ok(Execution { firings: run.firings, capacities: run.state.peaks, spans: run.spans })
    }

    /// Executes a given order of firings, one iteration of it: the capacities are the most that it ever needs.
    ///
    /// # Errors
    /// [`Error::UnknownActor`], [`Error::AbsentTokens`], [`Error::TooManyFirings`] and [`Error::TooFewFirings`].
    pub fn replay(&self, firings: Vec<ActorId>) -> Result<Execution, Error> {
        let mut state = State::new(self);
        let mut spans = vec![(0, 0); self.graph.actors().len()];
        for (place, id) in firings.iter().enumerate() {
            let (actor, firing) = (id.index(), place as u64);
            let Some(&expected) = self.repetition.firings.get(actor) else {
                return Err(Error::UnknownActor { context: "the schedule".to_owned(), index: actor });
            };
            if state.finished(actor) {
                return Err(Error::TooManyFirings {
                    firing,
                    actor: self.actor_name(actor),
                    firings: expected,
                });
            }
            if let Some((input, missing)) = state.missing_tokens(actor, self.input_range(actor).start) {
                let channel = self.channel_name(self.inputs[input].channel);
                return Err(Error::AbsentTokens { firing, actor: self.actor_name(actor), channel, missing });
            }
            if state.fired[actor] == 0 {
                spans[actor].0 = place;
            }
            spans[actor].1 = place;
            state.fire(actor);
        }
        for (actor, &expected) in self.repetition.firings.iter().enumerate() {
            let fired = state.fired[actor];
            if fired < expected {
                return Err(Error::TooFewFirings { actor: self.actor_name(actor), fired, firings: expected });
            }
        }
        Ok(Execution { firings, capacities: state.peaks, spans })
    }

    fn segment_of(&self, segments: &[Vec<ActorId>]) -> Result<Vec<usize>, Error> {
        let mut segment_of = vec![None; self.graph.actors().len()];
        for (index, segment) in segments.iter().enumerate() {
            for &actor in segment {
                let entry = segment_of.get_mut(actor.index()).ok_or_else(|| Error::UnknownActor {
                    context: "the segments".to_owned(),
                    index: actor.index(),
                })?;
                if entry.replace(index).is_some() {
                    return Err(Error::ActorRepeated { actor: self.graph.name(actor) });
                }
            }
        }
        segment_of
            .into_iter()
            .enumerate()
            .map(|(actor, segment)| {
                segment.ok_or_else(|| Error::ActorLeftOut { actor: self.actor_name(actor) })
            })
            .collect()
    }
}

struct OnDemand<'e, 'g> {
    expanded: &'e Expanded<'g>,
    state: State<'e, 'g>,
    segment_of: Vec<usize>,
    /// The place in the present segment of each of its sinks.
    sink: Vec<Option<usize>>,
    /// Sinks that lack nothing; one may be there several times.
    ready: BinaryHeap<ReadySink>,
    /// Whether an actor is on the stack.
    waiting: Vec<bool>,
    /// Actors to fire, each pulled by the one below it, with the first input not yet known to suffice.
    stack: Vec<(usize, usize)>,
    firings: Vec<ActorId>,
    spans: Vec<(usize, usize)>,
}

impl OnDemand<'_, '_> {
    fn segment(&mut self, segment: &[ActorId]) -> Result<(), Error> {
        let parts = self.parts_downstream_first(segment);
        let mut turns = BinaryHeap::new();
        for part in parts.iter().filter(|part| part.terminal) {
            // A cycle of actors ends with the one listed last.
            let Some(&place) = part.members.iter().max() else { continue };
            let actor = segment[place].index();
            turns.push(self.turn(actor, place));
            if part.members.len() == 1 {
                self.sink[actor] = Some(place);
                self.notice(actor);
            }
        }
        self.fire_sinks();
        while let Some(turn) = turns.pop() {
            if self.state.finished(turn.actor) {
                continue;
            }
            if turn.fired == self.state.fired[turn.actor] {
                self.demand(turn.actor)?;
            }
            turns.push(self.turn(turn.actor, turn.place));
        }
        // Firings whose tokens no sink needs in this iteration.
        for part in &parts {
            for &place in &part.members {
                let actor = segment[place].index();
                while !self.state.finished(actor) {
                    self.demand(actor)?;
                }
            }
        }
        Ok(())
    }

    fn turn(&self, actor: usize, place: usize) -> ReadySink {
        ReadySink {
            actor,
            place,
            fired: self.state.fired[actor],
            firings: self.expanded.repetition.firings[actor],
        }
    }

    /// Puts a sink among the ready ones if it is ready.
    fn notice(&mut self, actor: usize) {
        let Some(place) = self.sink[actor].filter(|_| !self.state.finished(actor)) else { return };
        if self.state.missing_tokens(actor, self.expanded.input_range(actor).start).is_none() {
            self.ready.push(self.turn(actor, place));
        }
    }

    fn fire_sinks(&mut self) {
        while let Some(turn) = self.ready.pop() {
            if turn.fired == self.state.fired[turn.actor] {
                self.fire(turn.actor);
            }
        }
    }

    /// The strongly connected parts of a segment, each after those that read it.
    fn parts_downstream_first(&self, segment: &[ActorId]) -> Vec<Component> {
        let mut place_of = vec![None; self.segment_of.len()];
        for (place, actor) in segment.iter().enumerate() {
            place_of[actor.index()] = Some(place);
        }
        let mut edges = Vec::new();
        for (place, actor) in segment.iter().enumerate() {
            for output in self.expanded.outputs_of(actor.index()) {
                for &input in self.expanded.inputs_of_channel(output.channel) {
                    let reader = place_of[self.expanded.actor_of_input(input)];
                    edges.extend(reader.map(|reader| (place as u32, reader as u32)));
                }
            }
        }
        let mut graph: DiGraph<(), ()> = DiGraph::with_capacity(segment.len(), edges.len());
        for _ in segment {
            graph.add_node(());
        }
        graph.extend_with_edges(edges.iter().copied());
        let mut part_of = vec![0; segment.len()];
        let components = kosaraju_scc(&graph);
        for (part, members) in components.iter().enumerate() {
            for member in members {
                part_of[member.index()] = part;
            }
        }
        let mut terminal = vec![true; components.len()];
        for &(from, to) in &edges {
            if part_of[from as usize] != part_of[to as usize] {
                terminal[part_of[from as usize]] = false;
            }
        }
        components
            .into_iter()
            .zip(terminal)
            .map(|(members, terminal)| Component {
                members: members.into_iter().map(NodeIndex::index).collect(),
                terminal,
            })
            .collect()
    }

    /// Fires `root` at least once, and before it every firing that it needs.
    fn demand(&mut self, root: usize) -> Result<(), Error> {
        let before = self.state.fired[root];
        self.push(root);
        while let Some(&(actor, from)) = self.stack.last() {
            match self.state.missing_tokens(actor, from) {
                None => {
                    self.waiting[actor] = false;
                    self.stack.pop();
                    self.fire(actor);
                    self.fire_sinks();
                    // A sink may already have fired as one of the ready sinks. Then nothing lies above it.
                    if self.state.fired[root] != before {
                        self.waiting[root] = false;
                        self.stack.clear();
                    }
                }
                Some((input, missing)) => {
                    if let Some(top) = self.stack.last_mut() {
                        top.1 = input;
                    }
                    let producer = self.expanded.producer(self.expanded.inputs[input].channel);
                    if self.segment_of[producer] != self.segment_of[actor] {
                        return Err(self.segment_order(actor, input, missing, producer));
                    }
                    if self.waiting[producer] || self.state.finished(producer) {
                        return Err(self.deadlock(producer));
                    }
                    self.push(producer);
                }
            }
        }
        Ok(())
    }

    fn push(&mut self, actor: usize) {
        self.waiting[actor] = true;
        self.stack.push((actor, self.expanded.input_range(actor).start));
    }

    fn fire(&mut self, actor: usize) {
        let place = self.firings.len();
        if self.state.fired[actor] == 0 {
            self.spans[actor].0 = place;
        }
        self.spans[actor].1 = place;
        self.state.fire(actor);
        // Indices of actors fit 32 bits, being ids.
        self.firings.push(ActorId(actor as u32));
        let expanded = self.expanded;
        for output in expanded.outputs_of(actor) {
            for &input in expanded.inputs_of_channel(output.channel) {
                self.notice(expanded.actor_of_input(input));
            }
        }
        self.notice(actor);
    }

    fn segment_order(&self, actor: usize, input: usize, missing: u64, producer: usize) -> Error {
        Error::SegmentOrder {
            actor: self.expanded.actor_name(actor),
            channel: self.expanded.channel_name(self.expanded.inputs[input].channel),
            missing,
            producer: self.expanded.actor_name(producer),
        }
    }

    /// The part of the stack from `producer`, which the topmost actor waits for, upwards.
    fn deadlock(&self, producer: usize) -> Error {
        let bottom = self.stack.iter().position(|&(actor, _)| actor == producer).unwrap_or(0);
        let cycle = self.stack[bottom..]
            .iter()
            .filter_map(|&(actor, from)| {
                let (input, missing) = self.state.missing_tokens(actor, from)?;
                let channel = self.expanded.inputs[input].channel;
                Some(Wait {
                    actor: self.expanded.actor_name(actor),
                    channel: self.expanded.channel_name(channel),
                    missing: Missing::Tokens(missing),
                    waits_for: self.expanded.actor_name(self.expanded.producer(channel)),
                })
            })
            .collect();
        Error::Deadlock { cycle }
    }
}

/// A strongly connected part of a segment.
struct Component {
    /// Places in the segment.
    members: Vec<usize>,
    /// Whether no other part reads it.
    terminal: bool,
}

/// A sink that waits for its turn; the greatest is the one to fire.
#[derive(PartialEq, Eq)]
struct ReadySink {
    actor: usize,
    place: usize,
    fired: u64,
    firings: u64,
}

impl Ord for ReadySink {
    fn cmp(&self, other: &ReadySink) -> Ordering {
        let left = u128::from(self.fired) * u128::from(other.firings);
        let right = u128::from(other.fired) * u128::from(self.firings);
        right.cmp(&left).then_with(|| other.place.cmp(&self.place))
    }
}

impl PartialOrd for ReadySink {
    fn partial_cmp(&self, other: &ReadySink) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::graph;
    use crate::{compress, notation, verify};

    /// Executes a graph whose segments are given as `a b | c`; all actors in one segment if empty.
    fn execute(text: &str, segments: &str) -> (Graph, Result<Execution, Error>) {
        let graph = graph(text);
        let id = |name: &str| graph.actor_ids().find(|id| graph.name(*id) == name).unwrap();
        let segments = if segments.is_empty() {
            vec![graph.actor_ids().collect()]
        } else {
            segments.split('|').map(|part| part.split_whitespace().map(id).collect()).collect()
        };
        let execution = sequential(&graph, &segments);
        (graph, execution)
    }

    fn check(text: &str, segments: &str, expected: &str, capacities: &[u64]) {
        let (graph, execution) = execute(text, segments);
        let execution = execution.unwrap();
        let steps = compress(&execution.firings);
        assert_eq!(notation(&steps, &graph.actor_names()), expected, "{text}");
        assert_eq!(execution.capacities, capacities, "{text}");
        assert_eq!(verify(&graph, &execution.capacities, &steps), Ok(()), "{text}");
        let expanded = Expanded::new(&graph).unwrap();
        assert_eq!(expanded.replay(execution.firings.clone()), Ok(execution.clone()), "{text}");
        assert!(expanded.replay(execution.firings[1..].to_vec()).is_err(), "{text}");
        for (id, &(first, last)) in graph.actor_ids().zip(&execution.spans) {
            let is = |&(_, fired): &(usize, &ActorId)| *fired == id;
            let mut places = execution.firings.iter().enumerate().filter(is).map(|(place, _)| place);
            assert_eq!(places.next(), Some(first));
            assert_eq!(places.next_back().unwrap_or(first), last);
        }
    }

    #[test]
    fn chains() {
        // Two layers of 32 rows, the second a 5×5 convolution with same padding (Minakova and Stefanov 2022, 2.5).
        let pair = "l1:32 l2:32  l1 1 > l2 3,29*1,2*0/2*0,29*1,3";
        check(pair, "", "[l1]×3,[l2],([l1],[l2])×29,[l2]×2", &[5]);
        check("a:3 b:2  a 6,1,1 > b 4,4", "", "[a],[b],[a]×2,[b]", &[6]);
        check("a:1 b:1 c:1  a 2 > b 3  b 1 > c 2", "", "[a]×2,[b],[a],[b],[c]", &[4, 2]);
        check("a:2 b:1  a 1,0 > b 1", "", "[a],[b],[a]", &[1]);
        check("a:8 b:4 c:2  a 1 > b 2  b 1 > c 2", "", "(([a]×2,[b])×2,[c])×2", &[2, 2]);
        check("a:1 b:1  a 1 > b 1 +2", "", "[b],[a]", &[2]);
    }

    #[test]
    fn branches() {
        check("a:4 b:4 c:4  a 1 > b 1 | c 1", "", "([a],[b],[c])×4", &[1]);
        // A skip past a 3×3 layer of 4 rows, ending in an addition.
        check(
            "a:4 b:4 c:4  a 1 > b 2,2*1,0/0,2*1,2 | c 1  b 1 > c 1",
            "",
            "[a]×2,[b],[c],([a],[b],[c])×2,[b],[c]",
            &[3, 1],
        );
        // Sinks of unequal counts advance evenly.
        check("a:1 b:1 c:1  a 6 > b 1 | c 2", "", "[a],([b],[c],[b])×3", &[6]);
    }

    #[test]
    fn segments() {
        check("a:4 b:4 c:4  a 1 > b 1  b 1 > c 1", "a b | c", "([a],[b])×4,[c]×4", &[1, 4]);
        check("a:2 b:2  a 1 > b 1", "a | b", "[a]×2,[b]×2", &[2]);
        check("a:2 b:2 c:2  a 1 > b 1  a 1 > c 1", "a b | c", "([a],[b])×2,[c]×2", &[1, 2]);
    }

    #[test]
    fn sinks_do_not_wait_for_each_other() {
        check("a:4 c:2 b:4  a 1 > b 1  a 1 > c 3,1", "", "([a],[b])×2,([a],[c],[b])×2", &[1, 3]);
        // The sink c reads no channel that lacks tokens.
        check("a:1 b:1 c:1  a 1 > b 1  a 1 > c 1 +1", "", "[c],[a],[b]", &[1, 1]);
    }

    #[test]
    fn cycles() {
        check("a:2 b:2  a 1 > b 1  b 1 > a 1 +1", "", "([a],[b])×2", &[1, 1]);
        check("a:1  a 1 > a 1 +1", "", "[a]", &[2]);
        check("a:3 b:1  a 1 > b 3  b 3 > a 1 +3", "", "[a]×3,[b]", &[3, 3]);
    }

    #[test]
    fn refused() {
        fn check(text: &str, segments: &str, expected: &str) {
            let (_, execution) = execute(text, segments);
            assert_eq!(execution.unwrap_err().to_string(), expected);
        }
        let pair = "a:1 b:1  a 2 > b 2";
        check(pair, "a", "no segment lists actor `b`");
        check(pair, "a b | a", "the segments list actor `a` twice");
        check(
            pair,
            "b | a",
            "actor `b` lacks 2 tokens of channel `a>b`, whose producer `a` is in a later segment",
        );
        check(
            "a:1 b:1 c:1  a 1 > b 1  b 1 > c 1  c 1 > a 1",
            "",
            "deadlock: `c` lacks 1 token of channel `b>c` and waits for `b`; \
             `b` lacks 1 token of channel `a>b` and waits for `a`; \
             `a` lacks 1 token of channel `c>a` and waits for `c`",
        );
        check(
            "a:2 b:1  a 1 > a 1  a 1 > b 2",
            "",
            "deadlock: `a` lacks 1 token of channel `a>a`, which no firing can bring",
        );
        check(
            "a:1 b:1  a 0 > b 1",
            "",
            "inconsistent graph: on channel `a>b` all rates of `a` are 0, and those of `b` are not",
        );
        let (graph, _) = execute(pair, "");
        let unknown = sequential(&graph, &[vec![ActorId(9)]]).unwrap_err();
        assert_eq!(unknown.to_string(), "the segments: there is no actor number 9");
    }

    #[test]
    fn long_chains_need_no_stack() {
        let mut text: String = (0..3000).map(|index| format!("a{index}:1 ")).collect();
        text.extend((1..3000).map(|index| format!("a{} 1 > a{index} 1 ", index - 1)));
        let (_, execution) = execute(&text, "");
        assert_eq!(execution.unwrap().capacities, vec![1; 2999]);
    }
}
