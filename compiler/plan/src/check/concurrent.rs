//! Rule 7, many firings: in what order the partitions of a CNN fire.
//!
//! Partitions that never run at the same time follow each other, frame by frame. Partitions that run at the same time
//! form a *group*. Each of them follows its own schedule, frame after frame, and they wait for each other: a firing
//! starts once all rows that it acquires from another partition are written, and all rows that it writes for another
//! have room. How far each runs ahead depends on the threads, so several interleavings are replayed.

use super::allocation::Allocation;
use super::index::Index;
use super::rates::Held;
use super::replay::{Firing, Replay, Tables};
use super::{Report, Violation};

/// Frames that are replayed if partitions follow each other. The second frame finds the state that the first left.
const FRAMES: u64 = 2;
/// Frames that are replayed if partitions run at the same time.
const CONCURRENT_FRAMES: u64 = 3;

/// Which partition goes on if several could.
#[derive(Debug, Clone, Copy)]
enum Interleaving {
    /// The first, so that producers run as far ahead as they can.
    ProducersFirst,
    /// The last, so that no producer runs before it must.
    ConsumersFirst,
    /// One partition after another, round and round.
    RoundRobin,
    /// One at random, by this seed.
    Random(u64),
}

impl std::fmt::Display for Interleaving {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Interleaving::ProducersFirst => f.write_str("producers first"),
            Interleaving::ConsumersFirst => f.write_str("consumers first"),
            Interleaving::RoundRobin => f.write_str("each in turn"),
            Interleaving::Random(seed) => write!(f, "random turns of seed {seed}"),
        }
    }
}

/// Replays one CNN in all orders, up to the first violation.
pub(super) fn replay(
    index: &Index<'_>,
    c: usize,
    held: &[Vec<Held>],
    allocations: &[Allocation],
    schedules: &[Vec<u32>],
    report: &mut Report,
) -> Result<(), Box<Violation>> {
    use Interleaving::{ConsumersFirst, ProducersFirst, Random, RoundRobin};
    let cnn = &index.cnns[c];
    let tables = Tables::new(cnn, held, allocations);
    let is_concurrent = cnn.groups.iter().any(|group| group.len() > 1);
    let several = [ProducersFirst, ConsumersFirst, RoundRobin, Random(1), Random(2), Random(3)];
    let interleavings = if is_concurrent { &several[..] } else { &[ProducersFirst] };
    for &interleaving in interleavings {
        let turns = Interleaver::new(interleaving);
        let mut run = Run { index, replay: Replay::new(&tables), c, schedules, turns };
        match cnn.groups.as_slice() {
            [group] if is_concurrent => run.group(group, CONCURRENT_FRAMES, report),
            groups => (0..FRAMES).flat_map(|_| groups).try_for_each(|group| run.group(group, 1, report)),
        }?;
        report.replays += 1;
    }
    Ok(())
}

/// Decides which partition is next.
struct Interleaver {
    interleaving: Interleaving,
    /// The partition that fired last.
    last: usize,
    random: u64,
}

impl Interleaver {
    fn new(interleaving: Interleaving) -> Self {
        let random = match interleaving {
            Interleaving::Random(seed) => seed,
            _ => 0,
        };
        Interleaver { interleaving, last: 0, random }
    }

    /// Partitions `0..n`, in the order in which they are asked whether they can fire.
    fn next(&mut self, n: usize) -> impl Iterator<Item = usize> + Clone + use<> {
        let backward = matches!(self.interleaving, Interleaving::ConsumersFirst);
        let start = match self.interleaving {
            Interleaving::ProducersFirst | Interleaving::ConsumersFirst => 0,
            Interleaving::RoundRobin => self.last + 1,
            Interleaving::Random(_) => {
                // Knuth's 64-bit linear congruential generator.
                self.random = self
                    .random
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                (self.random >> 33) as usize
            }
        };
        (0..n).map(move |i| if backward { n - 1 - i } else { (start + i) % n })
    }
}

struct Run<'a, 'b> {
    index: &'b Index<'a>,
    replay: Replay<'b, 'b>,
    c: usize,
    schedules: &'b [Vec<u32>],
    turns: Interleaver,
}

impl Run<'_, '_> {
    /// Lets the partitions of a group run for some frames.
    fn group(&mut self, group: &[usize], frames: u64, report: &mut Report) -> Result<(), Box<Violation>> {
        let mut done = vec![0u64; group.len()];
        let all: Vec<u64> = group.iter().map(|&p| self.schedules[p].len() as u64 * frames).collect();
        while done != all {
            let mut next = self.turns.next(group.len()).filter(|&i| done[i] != all[i]);
            let Some(i) = next.find(|&i| self.is_ready(group[i], done[i])) else {
                let cnn = &self.index.cnns[self.c].cnn.name;
                let waiting = (0..group.len()).filter(|&i| done[i] != all[i]);
                let name = |i: usize| self.index.partitions[group[i]].partition.name.clone();
                return Err(Box::new(Violation::Deadlock {
                    cnn: cnn.clone(),
                    partitions: waiting.map(name).collect(),
                    interleaving: self.turns.interleaving.to_string(),
                }));
            };
            let p = group[i];
            self.replay.fire(
                Firing {
                    layer: self.layer(p, done[i]),
                    partition: &self.index.partitions[p].partition.name,
                    number: done[i] % self.schedules[p].len() as u64,
                },
                report,
            )?;
            done[i] += 1;
            self.turns.last = i;
        }
        Ok(())
    }

    fn is_ready(&self, p: usize, done: u64) -> bool {
        let layer = self.layer(p, done);
        self.replay.is_ready(layer, |tensor| self.index.is_cut_edge(self.c, tensor, layer))
    }

    fn layer(&self, p: usize, done: u64) -> usize {
        let schedule = &self.schedules[p];
        schedule[(done % schedule.len() as u64) as usize] as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The order in which three partitions are asked, in three turns. Each time, the second partition that is asked
    /// fires.
    #[test]
    fn turns() {
        let asked = |interleaving| {
            let mut turns = Interleaver::new(interleaving);
            [(); 3].map(|()| {
                let order: Vec<usize> = turns.next(3).collect();
                turns.last = order[1];
                order
            })
        };
        assert_eq!(asked(Interleaving::ProducersFirst), [[0, 1, 2]; 3]);
        assert_eq!(asked(Interleaving::ConsumersFirst), [[2, 1, 0]; 3]);
        assert_eq!(asked(Interleaving::RoundRobin), [[1, 2, 0], [0, 1, 2], [2, 0, 1]]);
        // The numbers by which Knuth's generator rotates the order, computed separately.
        assert_eq!(asked(Interleaving::Random(1)), [[2, 0, 1], [0, 1, 2], [0, 1, 2]]);
        assert_eq!(asked(Interleaving::Random(3)), [[2, 0, 1], [1, 2, 0], [2, 0, 1]]);
    }
}
