//! A graph laid out flat for walking through an iteration firing by firing.
//!
//! This is one of two flat forms of a graph. It holds rates phase by phase, so its size is that of the graph. A state
//! over it walks one iteration and counts tokens as it goes. Schedules, peaks, [`verify`](crate::verify) and
//! [`check_liveness`](crate::check_liveness) need no more. The search for an order of firings walks thousands of
//! times over one [`Expanded`]. The other form is `layout`, which timed analyses need.

use crate::{ActorId, Error, Graph, Rates, RepetitionVector, repetition_vector};

/// Maximum number of firings of one iteration that are walked through, and of rates written out for it.
pub const MAX_FIRINGS: u64 = 1 << 26;

/// A consistent graph with its rates written out phase by phase. All analyses that walk through an iteration use it.
/// Making it takes O(phases × ports) time and memory.
#[derive(Debug, Clone)]
pub struct Expanded<'g> {
    pub(crate) graph: &'g Graph,
    pub(crate) repetition: RepetitionVector,
    pub(crate) inputs: Vec<Input>,
    /// Inputs of actor a are `inputs[input_starts[a]..input_starts[a + 1]]`, in channel order.
    input_starts: Vec<usize>,
    outputs: Vec<Output>,
    output_starts: Vec<usize>,
    /// Inputs of channel c are `channel_inputs[channel_starts[c]..channel_starts[c + 1]]`.
    channel_inputs: Vec<usize>,
    channel_starts: Vec<usize>,
    rates: Vec<u64>,
}

#[derive(Debug, Clone)]
pub(crate) struct Input {
    pub(crate) channel: usize,
    actor: usize,
    /// In phase p the acquire rate is `rates[acquire + p]`, the release rate `rates[release + p]`.
    acquire: usize,
    release: usize,
}

#[derive(Debug, Clone)]
pub(crate) struct Output {
    pub(crate) channel: usize,
    offset: usize,
}

impl<'g> Expanded<'g> {
    /// Lays out `graph`.
    ///
    /// # Errors
    /// Those of [`repetition_vector`]; [`Error::TooLong`] beyond [`MAX_FIRINGS`]; [`Error::Overflow`] if the
    /// tokens of a channel in one iteration exceed 64 bits.
    pub fn new(graph: &'g Graph) -> Result<Expanded<'g>, Error> {
        let repetition = repetition_vector(graph)?;
        check_limits(graph, &repetition)?;
        let actors = graph.actors();
        let mut rates = Vec::new();
        let mut inputs = Vec::new();
        let mut outputs: Vec<(usize, Output)> = Vec::new();
        for (index, channel) in graph.channels().iter().enumerate() {
            let producer = channel.producer.index();
            outputs.push((producer, Output { channel: index, offset: rates.len() }));
            write_out(&channel.production, actors[producer].phases, &mut rates);
            for reader in &channel.readers {
                let actor = reader.actor.index();
                let [acquire, release] = [&reader.acquire, &reader.release].map(|sequence| {
                    let start = rates.len();
                    write_out(sequence, actors[actor].phases, &mut rates);
                    start
                });
                inputs.push(Input { channel: index, actor, acquire, release });
            }
        }
        // Stable: an actor's ports stay in channel order.
        inputs.sort_by_key(|input| input.actor);
        outputs.sort_by_key(|&(producer, _)| producer);
        let input_starts = starts(inputs.iter().map(|input| input.actor), actors.len());
        let output_starts = starts(outputs.iter().map(|&(producer, _)| producer), actors.len());
        let mut channel_inputs: Vec<usize> = (0..inputs.len()).collect();
        channel_inputs.sort_by_key(|&input| inputs[input].channel);
        let channels = graph.channels().len();
        let channel_starts = starts(channel_inputs.iter().map(|&input| inputs[input].channel), channels);
        let outputs = outputs.into_iter().map(|(_, output)| output).collect();
        Ok(Expanded {
            graph,
            repetition,
            inputs,
            input_starts,
            outputs,
            output_starts,
            channel_inputs,
            channel_starts,
            rates,
        })
    }

    /// The repetition vector.
    pub fn repetition(&self) -> &RepetitionVector {
        &self.repetition
    }

    pub(crate) fn outputs_of(&self, actor: usize) -> &[Output] {
        &self.outputs[self.output_starts[actor]..self.output_starts[actor + 1]]
    }

    pub(crate) fn input_range(&self, actor: usize) -> std::ops::Range<usize> {
        self.input_starts[actor]..self.input_starts[actor + 1]
    }

    /// Indices into `inputs` of those that read `channel`.
    pub(crate) fn inputs_of_channel(&self, channel: usize) -> &[usize] {
        &self.channel_inputs[self.channel_starts[channel]..self.channel_starts[channel + 1]]
    }

    pub(crate) fn producer(&self, channel: usize) -> usize {
        self.graph.channels()[channel].producer.index()
    }

    pub(crate) fn actor_of_input(&self, input: usize) -> usize {
        self.inputs[input].actor
    }

    pub(crate) fn actor_name(&self, actor: usize) -> String {
        self.graph.actors()[actor].name.clone()
    }

    pub(crate) fn channel_name(&self, channel: usize) -> String {
        self.graph.channels()[channel].name.clone()
    }
}

/// The progress of an iteration. `check_limits` ensures that every count fits 64 bits, as long as no actor fires more
/// often than in one iteration.
pub(crate) struct State<'e, 'g> {
    expanded: &'e Expanded<'g>,
    pub(crate) fired: Vec<u64>,
    phase: Vec<usize>,
    phases: Vec<usize>,
    /// Tokens produced so far, the initial ones included, by channel.
    produced: Vec<u64>,
    /// Tokens that every reader has released, by channel.
    freed: Vec<u64>,
    acquired: Vec<u64>,
    released: Vec<u64>,
    /// Maximum number of tokens held at any time, by channel.
    pub(crate) peaks: Vec<u64>,
}

impl<'e, 'g> State<'e, 'g> {
    pub(crate) fn new(expanded: &'e Expanded<'g>) -> State<'e, 'g> {
        let actors = expanded.graph.actors();
        let initial: Vec<u64> = expanded.graph.channels().iter().map(|c| c.initial_tokens).collect();
        State {
            expanded,
            fired: vec![0; actors.len()],
            phase: vec![0; actors.len()],
            phases: actors.iter().map(|actor| actor.phases as usize).collect(),
            freed: vec![0; initial.len()],
            acquired: vec![0; expanded.inputs.len()],
            released: vec![0; expanded.inputs.len()],
            peaks: initial.clone(),
            produced: initial,
        }
    }

    pub(crate) fn finished(&self, actor: usize) -> bool {
        self.fired[actor] >= self.expanded.repetition.firings[actor]
    }

    /// The first input from `from` on that lacks tokens for the actor's next firing, and how many.
    pub(crate) fn missing_tokens(&self, actor: usize, from: usize) -> Option<(usize, u64)> {
        let phase = self.phase[actor];
        (from..self.expanded.input_range(actor).end).find_map(|index| {
            let input = &self.expanded.inputs[index];
            let needed = self.acquired[index] + self.expanded.rates[input.acquire + phase];
            let missing = needed.saturating_sub(self.produced[input.channel]);
            (missing > 0).then_some((index, missing))
        })
    }

    /// The first channel whose capacity is exceeded by the actor's next firing, and by how much.
    pub(crate) fn missing_space(&self, actor: usize, capacities: &[Option<u64>]) -> Option<(usize, u64)> {
        self.expanded.outputs_of(actor).iter().find_map(|output| {
            let capacity = capacities[output.channel]?;
            let missing = self.stored_during(actor, output).saturating_sub(capacity);
            (missing > 0).then_some((output.channel, missing))
        })
    }

    /// Tokens that the actor's next firing would add to an output.
    pub(crate) fn next_production(&self, actor: usize, channel: usize) -> u64 {
        let output = self.expanded.outputs_of(actor).iter().find(|output| output.channel == channel);
        output.map_or(0, |output| self.expanded.rates[output.offset + self.phase[actor]])
    }

    /// Readers of `channel`, as inputs, that hold its oldest token.
    pub(crate) fn holders(&self, channel: usize) -> impl Iterator<Item = usize> + '_ {
        let freed = self.freed[channel];
        self.expanded
            .inputs_of_channel(channel)
            .iter()
            .copied()
            .filter(move |&input| self.released[input] == freed)
    }

    /// Fires an actor that lacks nothing.
    pub(crate) fn fire(&mut self, actor: usize) {
        let expanded = self.expanded;
        let phase = self.phase[actor];
        for output in expanded.outputs_of(actor) {
            let channel = output.channel;
            self.peaks[channel] = self.peaks[channel].max(self.stored_during(actor, output));
            self.produced[channel] += expanded.rates[output.offset + phase];
        }
        for index in expanded.input_range(actor) {
            let input = &expanded.inputs[index];
            self.acquired[index] += expanded.rates[input.acquire + phase];
            self.released[index] += expanded.rates[input.release + phase];
            self.freed[input.channel] = match expanded.inputs_of_channel(input.channel) {
                [_] => self.released[index],
                readers => readers.iter().map(|&reader| self.released[reader]).min().unwrap_or(0),
            };
        }
        self.fired[actor] += 1;
        self.phase[actor] = if phase + 1 == self.phases[actor] { 0 } else { phase + 1 };
    }

    fn stored_during(&self, actor: usize, output: &Output) -> u64 {
        let channel = output.channel;
        self.produced[channel] - self.freed[channel] + self.expanded.rates[output.offset + self.phase[actor]]
    }
}

/// Appends the rates of this many phases, a multiple of the sequence's length.
fn write_out(sequence: &Rates, phases: u64, rates: &mut Vec<u64>) {
    for _ in 0..phases / sequence.len() {
        for run in sequence.runs() {
            match run.pattern.as_slice() {
                [rate] => rates.resize(rates.len() + run.times as usize, *rate),
                pattern => (0..run.times).for_each(|_| rates.extend_from_slice(pattern)),
            }
        }
    }
}

fn starts(keys: impl Iterator<Item = usize>, count: usize) -> Vec<usize> {
    let mut starts = vec![0; count + 1];
    for key in keys {
        starts[key + 1] += 1;
    }
    for index in 1..=count {
        starts[index] += starts[index - 1];
    }
    starts
}

fn check_limits(graph: &Graph, repetition: &RepetitionVector) -> Result<(), Error> {
    let check = |what, count: u128| {
        if count <= u128::from(MAX_FIRINGS) {
            Ok(())
        } else {
            Err(Error::TooLong { what, count, limit: MAX_FIRINGS })
        }
    };
    check("a number of firings", repetition.firings.iter().map(|&firings| u128::from(firings)).sum())?;
    let phases = |actor: ActorId| u128::from(graph.actors()[actor.index()].phases);
    let rates = graph.channels().iter().map(|channel| {
        let readers: u128 = channel.readers.iter().map(|reader| 2 * phases(reader.actor)).sum();
        phases(channel.producer) + readers
    });
    check("a number of rates", rates.sum())?;
    for channel in graph.channels() {
        let firings = repetition.firings[channel.producer.index()];
        // Firings are below 2^26 by now, so that 128 bits hold the product.
        let produced = channel.production.total() * u128::from(firings / channel.production.len().max(1));
        if produced + u128::from(channel.initial_tokens) > u128::from(u64::MAX) {
            return Err(Error::Overflow { what: "count of tokens", of: channel.name.clone() });
        }
    }
    Ok(())
}
