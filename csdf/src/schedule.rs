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
/// All actors of a segment fire all their firings of the iteration before the next segment begins. Within a
/// segment, its sinks (actors that no other of the segment reads) fire in turn, the one with the least progress
/// first; what the next firing lacks is pulled, depth first and in channel order, from its producers. So a
/// token is produced only when a firing cannot do without it.
///
/// Space for a firing's tokens is claimed at its start, the tokens that it forgets are freed at its end.
/// On a chain in one segment every one of the capacities is the least with which the graph runs at all, hence
/// all are minimal at once; on any other graph they are sufficient.
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
        let mut run = Run {
            expanded: self,
            state: State::new(self),
            segment_of,
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

struct Run<'e, 'g> {
    expanded: &'e Expanded<'g>,
    state: State<'e, 'g>,
    segment_of: Vec<usize>,
    /// Whether an actor is on the stack.
    waiting: Vec<bool>,
    /// Actors to fire, each pulled by the one below it, with the first input not yet known to suffice.
    stack: Vec<(usize, usize)>,
    firings: Vec<ActorId>,
    spans: Vec<(usize, usize)>,
}

impl Run<'_, '_> {
    fn segment(&mut self, segment: &[ActorId]) -> Result<(), Error> {
        let parts = self.parts_downstream_first(segment);
        let mut turns: BinaryHeap<Turn> = parts
            .iter()
            .filter(|part| part.terminal)
            .filter_map(|part| part.members.iter().max())
            .map(|&place| {
                let actor = segment[place].index();
                Turn { actor, place, fired: 0, firings: self.expanded.repetition.firings[actor] }
            })
            .collect();
        while let Some(mut turn) = turns.pop() {
            self.demand(turn.actor)?;
            turn.fired = self.state.fired[turn.actor];
            if turn.fired < turn.firings {
                turns.push(turn);
            }
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

    /// The strongly connected parts of a segment, each after those that read it.
    fn parts_downstream_first(&self, segment: &[ActorId]) -> Vec<Part> {
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
            .map(|(members, terminal)| Part {
                members: members.into_iter().map(NodeIndex::index).collect(),
                terminal,
            })
            .collect()
    }

    /// Fires `actor` once, and before it whatever it needs.
    fn demand(&mut self, actor: usize) -> Result<(), Error> {
        self.push(actor);
        while let Some(&(actor, from)) = self.stack.last() {
            match self.state.missing_tokens(actor, from) {
                None => {
                    self.fire(actor);
                    self.waiting[actor] = false;
                    self.stack.pop();
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
struct Part {
    /// Places in the segment.
    members: Vec<usize>,
    /// Whether no other part reads it.
    terminal: bool,
}

/// A sink that waits for its turn; the greatest is the one to fire.
#[derive(PartialEq, Eq)]
struct Turn {
    actor: usize,
    place: usize,
    fired: u64,
    firings: u64,
}

impl Ord for Turn {
    fn cmp(&self, other: &Turn) -> Ordering {
        let left = u128::from(self.fired) * u128::from(other.firings);
        let right = u128::from(other.fired) * u128::from(self.firings);
        right.cmp(&left).then_with(|| other.place.cmp(&self.place))
    }
}

impl PartialOrd for Turn {
    fn partial_cmp(&self, other: &Turn) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
