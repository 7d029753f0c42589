//! Rule 6: a partition's looped schedule fires each of its layers as often as it must; and its notation.

use std::collections::BTreeMap;

use crate::plan::Step;

use super::index::Index;
use super::{Findings, MAX_DEPTH, MAX_TABLE, Violation};

/// The firings of one frame of each partition, in order: indices of layers in the partition's CNN.
///
/// Loops are counted before they are written out, so that no repeat count makes this long.
pub(super) fn check(index: &Index<'_>) -> Result<Vec<Vec<u32>>, Vec<Violation>> {
    let mut findings = Findings::default();
    let mut total: u64 = 0;
    let mut schedules = Vec::new();
    for (p, entry) in index.partitions.iter().enumerate() {
        let name = &entry.partition.name;
        let own: BTreeMap<&str, usize> = index.cnns[entry.cnn]
            .layers
            .iter()
            .enumerate()
            .filter(|(_, layer)| layer.partition == p)
            .map(|(l, layer)| (layer.layer.name.as_str(), l))
            .collect();
        let before = findings.0.len();
        match count(&entry.partition.schedule) {
            Err(error) => {
                findings.push(Violation::Schedule { partition: name.clone(), why: error.to_string() });
            }
            Ok(counts) => {
                for (layer, &l) in &own {
                    let stated = counts.get(layer).copied().unwrap_or(0);
                    let expected = index.cnns[entry.cnn].layers[l].layer.firings;
                    if stated != expected {
                        let (partition, layer) = (name.clone(), (*layer).to_owned());
                        findings.push(Violation::FiringCount { partition, layer, stated, expected });
                    }
                    total = total.saturating_add(stated);
                }
                for layer in counts.keys().filter(|layer| !own.contains_key(*layer)) {
                    let why = format!("it fires `{layer}`, which is not its layer");
                    findings.push(Violation::Schedule { partition: name.clone(), why });
                }
                let expected = notation(&entry.partition.schedule);
                if entry.partition.notation != expected {
                    let stated = entry.partition.notation.clone();
                    findings.push(Violation::Notation { partition: name.clone(), stated, expected });
                }
            }
        }
        findings.limit("the number of firings", Some(total), MAX_TABLE);
        if findings.0.len() == before {
            schedules.push(expand(&entry.partition.schedule, &own));
        }
    }
    findings.or(schedules)
}

/// Why a schedule cannot be written out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
enum ScheduleError {
    #[error("it fires beyond 2^64 times")]
    Firings,
    #[error("it repeats beyond 2^64 times")]
    Repetitions,
    #[error("a loop repeats 0 times")]
    NoRepetition,
    #[error("a loop is empty")]
    EmptyLoop,
    #[error("its loops are nested beyond {MAX_DEPTH}")]
    Depth,
}

/// How often a schedule fires each layer.
fn count(schedule: &[Step]) -> Result<BTreeMap<&str, u64>, ScheduleError> {
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    let mut open = vec![(schedule.iter(), 1u64)];
    while let Some((steps, times)) = open.last_mut() {
        let times = *times;
        match steps.next() {
            None => {
                open.pop();
            }
            Some(Step::Fire { fire }) => {
                let count = counts.entry(fire).or_default();
                *count = count.checked_add(times).ok_or(ScheduleError::Firings)?;
            }
            Some(Step::Repeat { repeat: 0, .. }) => return Err(ScheduleError::NoRepetition),
            Some(Step::Repeat { body, .. }) if body.is_empty() => return Err(ScheduleError::EmptyLoop),
            Some(Step::Repeat { repeat, body }) => {
                if open.len() > MAX_DEPTH {
                    return Err(ScheduleError::Depth);
                }
                let times = times.checked_mul(*repeat).ok_or(ScheduleError::Repetitions)?;
                open.push((body.iter(), times));
            }
        }
    }
    Ok(counts)
}

/// The schedule written out. The caller has counted it.
fn expand(schedule: &[Step], layers: &BTreeMap<&str, usize>) -> Vec<u32> {
    let mut firings = Vec::new();
    let mut open: Vec<(&[Step], usize, u64)> = vec![(schedule, 0, 1)];
    while let Some((steps, next, left)) = open.last_mut() {
        match steps.get(*next) {
            None if *left > 1 => {
                *left -= 1;
                *next = 0;
            }
            None => {
                open.pop();
            }
            Some(step) => {
                *next += 1;
                match step {
                    Step::Fire { fire } => firings.extend(layers.get(fire.as_str()).map(|&l| l as u32)),
                    Step::Repeat { repeat, body } => open.push((body, 0, *repeat)),
                }
            }
        }
    }
    firings
}

/// The schedule in the paper's notation (Minakova and Stefanov 2022, section 2.5).
fn notation(steps: &[Step]) -> String {
    let parts: Vec<String> = steps
        .iter()
        .map(|step| match step {
            Step::Fire { fire } => format!("[{fire}]"),
            Step::Repeat { repeat, body } => match body.as_slice() {
                [Step::Fire { fire }] => format!("[{fire}]×{repeat}"),
                _ => format!("({})×{repeat}", notation(body)),
            },
        })
        .collect();
    parts.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fire(name: &str) -> Step {
        Step::Fire { fire: name.into() }
    }

    fn repeat(repeat: u64, body: Vec<Step>) -> Step {
        Step::Repeat { repeat, body }
    }

    #[test]
    fn the_papers_schedule_expands_and_prints() {
        let schedule = [
            repeat(3, vec![fire("l1")]),
            fire("l2"),
            repeat(29, vec![fire("l1"), fire("l2")]),
            repeat(2, vec![fire("l2")]),
        ];
        assert_eq!(notation(&schedule), "[l1]×3,[l2],([l1],[l2])×29,[l2]×2");
        assert_eq!(count(&schedule).unwrap(), BTreeMap::from([("l1", 32), ("l2", 32)]));
        let firings = expand(&schedule, &BTreeMap::from([("l1", 0), ("l2", 1)]));
        assert_eq!(firings.len(), 64);
        assert_eq!(firings[..8], [0, 0, 0, 1, 0, 1, 0, 1]);
        assert_eq!(firings[62..], [1, 1]);
    }

    #[test]
    fn absurd_loops_are_refused_before_they_are_written_out() {
        let nested = |depth| (0..depth).fold(fire("a"), |inner, _| repeat(1, vec![inner]));
        assert_eq!(count(&[nested(MAX_DEPTH)]).unwrap()["a"], 1);
        let deep = nested(MAX_DEPTH + 1);
        let square = repeat(u64::MAX, vec![repeat(u64::MAX, vec![fire("a")])]);
        for schedule in [deep, square, repeat(0, vec![fire("a")]), repeat(u64::MAX, vec![])] {
            assert!(count(&[schedule]).is_err());
        }
        assert_eq!(count(&[repeat(u64::MAX, vec![fire("a")])]).unwrap()["a"], u64::MAX);
    }
}
