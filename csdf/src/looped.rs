//! Looped schedules: sequences of firings as trees of repetitions.

use std::collections::BTreeMap;

use crate::ActorId;
use crate::runs::stretches;

/// A step of a looped schedule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// One firing of an actor.
    Fire(ActorId),
    /// A sequence of steps, several times over.
    Repeat {
        /// How often.
        times: u64,
        /// The sequence.
        body: Vec<Step>,
    },
}

/// Codes a sequence of firings as a looped schedule whose expansion by [`firings`] is that sequence.
///
/// The sequence is first cut wherever no actor fires both before and after. The actor that ends such a part
/// drives it: each of its firings ends a *round*, which holds the firings that this one needed. Repeated
/// sequences of rounds become loops, and each different round is coded the same way. So loops are cut as an
/// execution on demand means them: of the firings `a a a b a b a b b` the last actor is `b`, the rounds are
/// `aaab`, `ab`, `ab`, `b`, and the result is `[a]×3,[b],([a],[b])×2,[b]`.
pub fn compress(sequence: &[ActorId]) -> Vec<Step> {
    let neighbours = Neighbours::new(sequence);
    let mut tasks = vec![Task::Code { start: 0, end: sequence.len() }];
    // The bodies of the loops that are open, innermost last, within the schedule itself.
    let mut open = vec![Vec::new()];
    let emit = |open: &mut Vec<Vec<Step>>, step| {
        if let Some(body) = open.last_mut() {
            body.push(step);
        }
    };
    while let Some(task) = tasks.pop() {
        match task {
            Task::Fire { actor, times: 1 } => emit(&mut open, Step::Fire(actor)),
            Task::Fire { actor, times } => {
                emit(&mut open, Step::Repeat { times, body: vec![Step::Fire(actor)] });
            }
            Task::Open => open.push(Vec::new()),
            Task::Close { times } => {
                let body = open.pop().unwrap_or_default();
                emit(&mut open, Step::Repeat { times, body });
            }
            Task::Code { start, end } => {
                let from = tasks.len();
                let parts = neighbours.parts(start, end);
                if parts.len() == 1 {
                    push_rounds(sequence, &neighbours, start, end, &mut tasks);
                } else {
                    tasks.extend(parts.into_iter().map(|(start, end)| Task::Code { start, end }));
                }
                tasks[from..].reverse();
            }
        }
    }
    open.pop().unwrap_or_default()
}

/// The firings of a looped schedule, in order. Loops around nothing are skipped, however often they repeat.
pub fn firings(steps: &[Step]) -> Firings<'_> {
    Firings { frames: vec![Frame { rest: steps, body: steps, times_left: 0, given_before: 0 }], given: 0 }
}

/// The notation of Minakova and Stefanov 2022, section 2.5: `[l1]×3,[l2],([l1],[l2])×29,[l2]×2`, with the names
/// of the actors by index (`?` for one that has none).
pub fn notation<S: AsRef<str>>(steps: &[Step], names: &[S]) -> String {
    let parts: Vec<String> = steps
        .iter()
        .map(|step| match step {
            Step::Fire(actor) => format!("[{}]", names.get(actor.index()).map_or("?", AsRef::as_ref)),
            Step::Repeat { times, body } => match body.as_slice() {
                [Step::Fire(_)] => format!("{}×{times}", notation(body, names)),
                _ => format!("({})×{times}", notation(body, names)),
            },
        })
        .collect();
    parts.join(",")
}

/// Iterator over the firings of a looped schedule.
#[derive(Debug, Clone)]
pub struct Firings<'s> {
    frames: Vec<Frame<'s>>,
    given: u64,
}

#[derive(Debug, Clone)]
struct Frame<'s> {
    rest: &'s [Step],
    body: &'s [Step],
    times_left: u64,
    /// Firings given before this pass through the body.
    given_before: u64,
}

impl Iterator for Firings<'_> {
    type Item = ActorId;

    fn next(&mut self) -> Option<ActorId> {
        loop {
            let frame = self.frames.last_mut()?;
            match frame.rest.split_first() {
                Some((Step::Fire(actor), rest)) => {
                    frame.rest = rest;
                    self.given = self.given.wrapping_add(1);
                    return Some(*actor);
                }
                Some((Step::Repeat { times, body }, rest)) => {
                    frame.rest = rest;
                    if let Some(times_left) = times.checked_sub(1) {
                        self.frames.push(Frame { rest: body, body, times_left, given_before: self.given });
                    }
                }
                None if frame.times_left > 0 && frame.given_before != self.given => {
                    frame.times_left -= 1;
                    frame.rest = frame.body;
                    frame.given_before = self.given;
                }
                None => {
                    self.frames.pop();
                }
            }
        }
    }
}

enum Task {
    /// Code `sequence[start..end]`.
    Code {
        start: usize,
        end: usize,
    },
    Fire {
        actor: ActorId,
        times: u64,
    },
    Open,
    Close {
        times: u64,
    },
}

/// Codes a part that cannot be cut: rounds that end with the firings of its last actor.
fn push_rounds(
    sequence: &[ActorId],
    neighbours: &Neighbours,
    start: usize,
    end: usize,
    tasks: &mut Vec<Task>,
) {
    let Some(&driver) = end.checked_sub(1).and_then(|last| sequence.get(last)) else { return };
    let mut rounds = Vec::new();
    let mut round_end = end;
    while round_end > start {
        let previous = neighbours.previous[round_end - 1];
        let round_start = if previous == NONE || previous < start { start } else { previous + 1 };
        rounds.push((round_start, round_end));
        round_end = round_start;
    }
    rounds.reverse();
    let mut numbers: BTreeMap<&[ActorId], usize> = BTreeMap::new();
    let mut numbered = Vec::with_capacity(rounds.len());
    let mut last: Option<(&[ActorId], usize)> = None;
    for &(start, end) in &rounds {
        let round = &sequence[start..end];
        let number = match last {
            Some((before, number)) if before == round => number,
            _ => {
                let next = numbers.len();
                *numbers.entry(round).or_insert(next)
            }
        };
        last = Some((round, number));
        numbered.push(number);
    }
    for stretch in stretches(&numbered) {
        let pattern = &rounds[stretch.start..stretch.start + stretch.period];
        let times = stretch.times as u64;
        if let [(start, end)] = pattern
            && end - start == 1
        {
            tasks.push(Task::Fire { actor: driver, times });
            continue;
        }
        if times > 1 {
            tasks.push(Task::Open);
        }
        for &(start, end) in pattern {
            if end - start > 1 {
                tasks.push(Task::Code { start, end: end - 1 });
            }
            tasks.push(Task::Fire { actor: driver, times: 1 });
        }
        if times > 1 {
            tasks.push(Task::Close { times });
        }
    }
}

const NONE: usize = usize::MAX;

/// For each firing, the places of the same actor's firing before and after it.
struct Neighbours {
    previous: Vec<usize>,
    next: Vec<usize>,
}

impl Neighbours {
    fn new(sequence: &[ActorId]) -> Neighbours {
        let actors = sequence.iter().map(|actor| actor.index() + 1).max().unwrap_or(0);
        let mut latest = vec![NONE; actors];
        let mut previous = Vec::with_capacity(sequence.len());
        let mut next = vec![NONE; sequence.len()];
        for (place, actor) in sequence.iter().enumerate() {
            let before = std::mem::replace(&mut latest[actor.index()], place);
            if before != NONE {
                next[before] = place;
            }
            previous.push(before);
        }
        Neighbours { previous, next }
    }

    /// Cuts `start..end` wherever no actor fires on both sides.
    fn parts(&self, start: usize, end: usize) -> Vec<(usize, usize)> {
        let mut parts = Vec::new();
        let mut part_start = start;
        let mut alive = 0usize;
        for place in start..end {
            let first = self.previous[place] == NONE || self.previous[place] < start;
            alive += usize::from(first);
            alive -= usize::from(self.next[place] >= end);
            if alive == 0 {
                parts.push((part_start, place + 1));
                part_start = place + 1;
            }
        }
        parts
    }
}
