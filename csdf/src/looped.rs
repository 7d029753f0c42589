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
/// The sequence is first cut at each place where no actor fires both before and after it. The actor that fires last in
/// such a part drives it: each of its firings ends a *round*, which holds the firings that this firing needed. Repeated
/// sequences of rounds become loops, and each different round is coded in the same way. So the loops follow an
/// execution on demand. For example, in the firings `a a a b a b a b b` the last actor is `b`, the rounds are `aaab`,
/// `ab`, `ab`, `b`, and the result is `[a]×3,[b],([a],[b])×2,[b]`. It takes at most O(a · n · log n) time for n
/// firings of a actors.
///
/// ```
/// use csdf::{Actor, Graph, compress, firings, notation};
///
/// let mut graph = Graph::new();
/// let [a, b] = [graph.add_actor(Actor::new("a", 4))?, graph.add_actor(Actor::new("b", 4))?];
/// let sequence = [a, a, a, b, a, b, a, b, b];
/// let steps = compress(&sequence);
/// assert_eq!(notation(&steps, &graph.actor_names()), "[a]×3,[b],([a],[b])×2,[b]");
/// assert!(firings(&steps).eq(sequence));
/// # Ok::<(), csdf::Error>(())
/// ```
pub fn compress(sequence: &[ActorId]) -> Vec<Step> {
    let neighbours = Neighbours::new(sequence);
    let mut tasks = vec![Task::Code { start: 0, end: sequence.len() }];
    // The bodies of the loops that are open, innermost last, within the schedule itself.
    let mut open = vec![Vec::new()];
    while let Some(task) = tasks.pop() {
        match task {
            Task::Fire { actor, times } => {
                if let Some(body) = open.last_mut() {
                    push_firings(body, actor, times);
                }
            }
            Task::Open => open.push(Vec::new()),
            Task::Close { times } => {
                let body = open.pop().unwrap_or_default();
                if let Some(outer) = open.last_mut() {
                    outer.push(Step::Repeat { times, body });
                }
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
    Firings { frames: vec![OpenLoop { rest: steps, body: steps, times_left: 0, given_before: 0 }], given: 0 }
}

/// A schedule in the notation of Minakova and Stefanov 2022, section 2.5: `[l1]×3,[l2],([l1],[l2])×29,[l2]×2`.
/// `names` are the names of the actors, by index. An actor without a name becomes `?`.
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
    frames: Vec<OpenLoop<'s>>,
    given: u64,
}

#[derive(Debug, Clone)]
struct OpenLoop<'s> {
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
                        self.frames.push(OpenLoop { rest: body, body, times_left, given_before: self.given });
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

/// Appends firings of one actor, joined with those of the same actor just before.
fn push_firings(body: &mut Vec<Step>, actor: ActorId, times: u64) {
    let before = match body.last() {
        Some(Step::Fire(last)) if *last == actor => 1,
        Some(Step::Repeat { times, body }) if body.as_slice() == [Step::Fire(actor)] => *times,
        _ => 0,
    };
    if before > 0 {
        body.pop();
    }
    body.push(match before + times {
        1 => Step::Fire(actor),
        times => Step::Repeat { times, body: vec![Step::Fire(actor)] },
    });
}

/// Writes a part that cannot be cut as loops: each round ends with firings of the part's last actor.
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sequence(letters: &str) -> Vec<ActorId> {
        letters.bytes().map(|letter| ActorId(u32::from(letter - b'a'))).collect()
    }

    fn size(steps: &[Step]) -> usize {
        let inner = |step: &Step| match step {
            Step::Fire(_) => 0,
            Step::Repeat { body, .. } => size(body),
        };
        steps.iter().map(|step| 1 + inner(step)).sum()
    }

    #[test]
    fn compressed() {
        fn check(letters: &str, expected: &str) {
            let sequence = sequence(letters);
            let steps = compress(&sequence);
            assert_eq!(notation(&steps, &["a", "b", "c", "d"]), expected, "{letters}");
            assert_eq!(firings(&steps).collect::<Vec<_>>(), sequence);
        }
        check("", "");
        check("a", "[a]");
        check("aaa", "[a]×3");
        check("aaababbb", "[a]×3,[b],[a],[b]×3");
        check("aaabababb", "[a]×3,[b],([a],[b])×2,[b]");
        check("ababcdcd", "([a],[b])×2,([c],[d])×2");
        check("aababcaababc", "([a]×2,[b],[a],[b],[c])×2");
        check("acbcacbc", "([a],[c],[b],[c])×2");
        check("aabaabcaabaabc", "(([a]×2,[b])×2,[c])×2");
        check("abababababc", "([a],[b])×5,[c]");
        let pair = format!("aaab{}bb", "ab".repeat(29));
        check(&pair, "[a]×3,[b],([a],[b])×29,[b]×2");
    }

    #[test]
    fn empty_loops_end() {
        let nothing = Step::Repeat { times: u64::MAX, body: vec![] };
        let nested = Step::Repeat { times: u64::MAX, body: vec![nothing.clone(), nothing] };
        let never = Step::Repeat { times: 0, body: vec![Step::Fire(ActorId(0))] };
        assert_eq!(firings(&[nested, never, Step::Fire(ActorId(1))]).collect::<Vec<_>>(), [ActorId(1)]);
    }

    #[test]
    fn deep_sequences_need_no_stack() {
        // Each actor fires in the round of the next actor and once before, so no part can be cut.
        let actors: Vec<ActorId> = (0..2000).map(ActorId).collect();
        let twice: Vec<ActorId> = actors.iter().chain(&actors).copied().collect();
        assert_eq!(firings(&compress(&twice)).collect::<Vec<_>>(), twice);
    }

    proptest! {
        #[test]
        fn expansion_is_the_sequence(letters in "[a-d]{0,80}") {
            let sequence = sequence(&letters);
            let steps = compress(&sequence);
            prop_assert_eq!(firings(&steps).collect::<Vec<_>>(), sequence.clone());
            prop_assert!(size(&steps) <= 2 * sequence.len());
        }

        #[test]
        fn loops_are_found(body in "[a-c]{1,4}", prefix in "[a-c]{0,4}", times in 20u64..60) {
            let sequence = sequence(&format!("{prefix}{}", body.repeat(times as usize)));
            let steps = compress(&sequence);
            prop_assert_eq!(firings(&steps).collect::<Vec<_>>(), sequence);
            prop_assert!(size(&steps) <= 3 * (prefix.len() + body.len()) + 4, "{:?}", steps);
        }
    }
}
