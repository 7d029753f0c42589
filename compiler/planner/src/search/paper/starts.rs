//! The chromosomes with which the genetic search begins, in addition to random ones: simple chromosomes, and those of a
//! descent from the best of them to less memory. The reason for the descent: often several buffers of one size make up
//! the peak, and then no single gene lowers it.

use std::collections::BTreeSet;

use csdfc_network::{LayerId, Network};
use rayon::prelude::*;

use super::chromosomes::Chromosomes;
use crate::frame::task::PartitionedCnn;
use crate::storage::Effort;

/// Longest run of genes that the descent sets at once.
const MAX_RUN_LEN: usize = 6;

/// Chromosomes that the descent evaluates at a time. It evaluates as many in all for each individual of the population.
const BATCH: usize = 64;
const EVALUATIONS: usize = 40;

/// Chromosomes to begin with: at most half a population, or two. They are: no layer by parts; all layers by parts; the
/// steps of the descent, the last first; and three for each of some sizes between the smallest tensor and the largest.
/// Of these three, one sets the layers that make a tensor larger than the size, one sets the layers that make or read
/// such a tensor, and one sets all layers up to the last of those. Also returns how many chromosomes were evaluated: at
/// most half of `most`, or three.
///
/// # Errors
/// Those of the dataflow analyses.
pub(super) fn starts(
    tasks: &[PartitionedCnn<'_>],
    chromosomes: &Chromosomes<'_>,
    population: usize,
    most: Option<u64>,
) -> Result<(Vec<Vec<bool>>, u64), csdf::Error> {
    let mut starts = vec![vec![false; chromosomes.len()], vec![true; chromosomes.len()]];
    let room = population.div_ceil(4);
    let family = family(tasks, chromosomes);
    let step = family.len().div_ceil(room).max(1);
    starts.extend(family.into_iter().step_by(step).take(room));
    starts.truncate(most.map_or(usize::MAX, |most| usize::try_from(most / 4).unwrap_or(usize::MAX)).max(2));
    let worth = |start: &Vec<bool>| match chromosomes.is_half_over() {
        true => Ok(u64::MAX),
        false => chromosomes.point(start, Effort::Sketch).map(|point| point.memory),
    };
    let memory: Vec<u64> = starts.par_iter().map(worth).collect::<Result<_, _>>()?;
    let best = (0..starts.len()).min_by_key(|start| memory[*start]).unwrap_or(0);
    let evaluations = population.saturating_mul(EVALUATIONS);
    let evaluations =
        most.map_or(evaluations, |most| evaluations.min(usize::try_from(most / 4).unwrap_or(usize::MAX)));
    let (mut steps, tried) = descent(chromosomes, starts[best].clone(), memory[best], evaluations)?;
    let evaluated = (starts.len() + tried) as u64;
    steps.reverse();
    steps.truncate(population.div_ceil(2).saturating_sub(starts.len()));
    starts.splice(2..2, steps);
    Ok((starts, evaluated))
}

/// Chromosomes by the sizes of the tensors that layers make and read.
fn family(tasks: &[PartitionedCnn<'_>], chromosomes: &Chromosomes<'_>) -> Vec<Vec<bool>> {
    let touched: Vec<[u64; 2]> = tasks.iter().flat_map(|task| touched_bytes(task.network)).collect();
    let limits: BTreeSet<u64> = touched.iter().flatten().copied().collect();
    let mut family = Vec::new();
    let mut seen = BTreeSet::new();
    for limit in limits {
        let made: Vec<bool> = touched.iter().map(|bytes| bytes[0] > limit).collect();
        let either: Vec<bool> = touched.iter().map(|bytes| bytes[0].max(bytes[1]) > limit).collect();
        let mut before = vec![false; either.len()];
        for cnn in chromosomes.genes() {
            let length = either[cnn.clone()].iter().rposition(|larger| *larger).map_or(0, |last| last + 1);
            before[cnn.start..cnn.start + length].fill(true);
        }
        family
            .extend([made, either, before].into_iter().filter(|chromosome| seen.insert(chromosome.clone())));
    }
    family
}

/// Bytes of the tensor that each layer makes, and of the largest that it reads.
fn touched_bytes(network: &Network) -> Vec<[u64; 2]> {
    let bytes = |id: LayerId| {
        let layer = network.layer(id);
        layer.tensor_bytes()
    };
    let read = |id: LayerId| network.layer(id).inputs.iter().map(|operand| bytes(operand.layer)).max();
    network.ids().map(|id| [bytes(id), read(id).unwrap_or(0)]).collect()
}

/// A descent from a chromosome to less and less memory. Each step sets a run of neighbouring genes of one CNN: the
/// first run that helps. The search for the next one goes on from there. Returns the chromosomes, and how many were
/// tried.
fn descent(
    chromosomes: &Chromosomes<'_>,
    start: Vec<bool>,
    memory: u64,
    evaluations: usize,
) -> Result<(Vec<Vec<bool>>, usize), csdf::Error> {
    let (mut present, mut memory) = (start, memory);
    let mut steps = Vec::new();
    let moves = moves(chromosomes);
    // Moves tried since the last step, and moves tried in all.
    let (mut idle, mut tried, mut next) = (0, 0, 0);
    while idle < moves.len() && tried < evaluations && !chromosomes.is_half_over() {
        let size = BATCH.min(moves.len() - idle).min(evaluations - tried);
        let batch: Vec<usize> = (next..next + size).map(|i| i % moves.len()).collect();
        let neighbour = |index: &usize| {
            let (genes, by_parts) = &moves[*index];
            let mut neighbour = present.clone();
            neighbour[genes.clone()].fill(*by_parts);
            (neighbour != present).then_some(neighbour)
        };
        let worth = |index: &usize| {
            let Some(neighbour) = neighbour(index) else { return Ok(None) };
            let found = chromosomes.point(&neighbour, Effort::Sketch)?.memory;
            Ok((found < memory).then_some((neighbour, found)))
        };
        let found: Vec<Option<(Vec<bool>, u64)>> =
            batch.par_iter().map(worth).collect::<Result<_, csdf::Error>>()?;
        tried += batch.len();
        chromosomes.report_progress(tried as u64, steps.len() + 1, memory);
        match found.into_iter().enumerate().find_map(|(i, found)| Some((i, found?))) {
            Some((i, (neighbour, found))) => {
                (present, memory) = (neighbour, found);
                steps.push(present.clone());
                idle = 0;
                next += i + 1;
            }
            None => {
                idle += batch.len();
                next += batch.len();
            }
        }
    }
    Ok((steps, tried))
}

/// Runs of genes to set, with their values. Short runs come first.
fn moves(chromosomes: &Chromosomes<'_>) -> Vec<(std::ops::Range<usize>, bool)> {
    let mut moves = Vec::new();
    for length in 1..=MAX_RUN_LEN {
        for cnn in chromosomes.genes() {
            let starts = cnn.start..(cnn.end + 1).saturating_sub(length).max(cnn.start);
            moves.extend(starts.flat_map(|from| [(from..from + length, true), (from..from + length, false)]));
        }
    }
    moves
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::search::paper::tests::{PAIR, on};
    use crate::search::problem::PlanningProblem;
    use crate::search::watch::Watch;

    /// Runs are of one CNN, and short ones come first.
    #[test]
    fn moves_are_all_short_runs() {
        on(PAIR, |problem| {
            let watch = Watch::unwatched();
            let chromosomes = Chromosomes::new(problem, &watch);
            let of_one_cnn = |run: &std::ops::Range<usize>| {
                chromosomes.genes().iter().any(|cnn| cnn.start <= run.start && run.end <= cnn.end)
            };
            let runs = (1..=MAX_RUN_LEN)
                .flat_map(|length| (0..chromosomes.len()).map(move |from| from..from + length))
                .filter(of_one_cnn);
            let expected: Vec<_> = runs.flat_map(|run| [(run.clone(), true), (run, false)]).collect();
            assert_eq!(moves(&chromosomes), expected);
        });
    }

    /// The steps of a descent: how many moves were tried since the step before, and the result of the last.
    fn steps(chromosomes: &Chromosomes<'_>, start: &[bool]) -> Vec<(usize, Vec<bool>)> {
        let moves = moves(chromosomes);
        let memory = |chromosome: &[bool]| chromosomes.point(chromosome, Effort::Sketch).unwrap().memory;
        let (mut present, mut steps, mut next) = (start.to_vec(), Vec::new(), 0);
        loop {
            let least = memory(&present);
            let moved = |tried: usize| {
                let (genes, by_parts) = &moves[(next + tried - 1) % moves.len()];
                let mut neighbour = present.clone();
                neighbour[genes.clone()].fill(*by_parts);
                (memory(&neighbour) < least).then_some((tried, neighbour))
            };
            let Some((tried, neighbour)) = (1..=moves.len()).find_map(moved) else { return steps };
            next += tried;
            steps.push((tried, neighbour.clone()));
            present = neighbour;
        }
    }

    /// A descent takes the first move that helps, and goes on after it, until no move helps. It tries moves by batches,
    /// and never more moves than it may. Returns after how many moves each step came.
    fn descend(problem: &PlanningProblem<'_>, start: Vec<bool>) -> Vec<usize> {
        let told = Mutex::new(Vec::new());
        let watch = Watch {
            progress: &|p| told.lock().unwrap().push((p.evaluations, p.front, p.least)),
            ..Watch::unwatched()
        };
        let chromosomes = Chromosomes::new(problem, &watch);
        let memory = |chromosome: &[bool]| chromosomes.point(chromosome, Effort::Sketch).unwrap().memory;
        let descent = |most| descent(&chromosomes, start.clone(), memory(&start), most).unwrap();
        let (after, expected): (Vec<usize>, Vec<Vec<bool>>) = steps(&chromosomes, &start).into_iter().unzip();
        let moves = moves(&chromosomes).len();
        let mut tried = 0;
        for (step, after) in after.iter().enumerate() {
            let least = tried + after;
            if step < 3 {
                assert_eq!(descent(least - 1), (expected[..step].to_vec(), least - 1));
                assert_eq!(descent(least), (expected[..=step].to_vec(), least));
            }
            tried += after.next_multiple_of(BATCH).min(moves);
        }
        tried += moves;
        assert_eq!(descent(2 * tried), (expected.clone(), tried));
        let least = memory(expected.last().unwrap_or(&start)) - problem.parameters;
        assert_eq!(told.lock().unwrap().last(), Some(&(tried as u64, expected.len() + 1, least)));
        after
    }

    #[test]
    fn a_descent_takes_the_first_move_that_helps() {
        on(PAIR, |problem| {
            for chromosome in [0, 0b1_1010_0110_0101, 0b1001_0011_1010] {
                descend(problem, (0..13).map(|gene| chromosome >> gene & 1 == 1).collect());
            }
        });
        // The first move that helps four at once is not in the first batch.
        let four = ["a", "b", "c", "d"].map(|name| format!(r#"(name: "{name}", model: "builtin:lenet5")"#));
        let four = format!(
            r#"(name: "four", storage: edges, cnns: [{}], parallel: [["a", "b", "c", "d"]])"#,
            four.join(", ")
        );
        on(&four, |problem| {
            let after = descend(problem, vec![false; 32]);
            assert!(after.len() > 2 && after[0] > BATCH, "{after:?}");
        });
    }

    /// The genetic search keeps half of the evaluations that it may make, if that is more than three.
    #[test]
    fn starts_take_at_most_half() {
        on(PAIR, |problem| {
            let watch = Watch::unwatched();
            let chromosomes = Chromosomes::new(problem, &watch);
            for most in [0, 4, 8, 12, 20, 60, 400] {
                let (starts, evaluated) = starts(problem.tasks, &chromosomes, 24, Some(most)).unwrap();
                assert!(evaluated <= (most / 2).max(3), "{evaluated} of {most}");
                assert!((2..=12).contains(&starts.len()), "{}", starts.len());
            }
        });
    }
}
