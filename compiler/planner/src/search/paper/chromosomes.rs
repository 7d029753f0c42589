//! The figures of a chromosome, and the chromosomes as a problem of genetic search.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use csdfc_ga::{Evaluation, Problem, Section, Space};
use csdfc_plan::plan::ParetoPoint;

use crate::frame::choice::Choice;
use crate::frame::execution::Execution;
use crate::frame::lower::RateTable;
use crate::frame::task::PartitionedCnn;
use crate::objective::Figures;
use crate::search::baseline::design_point;
use crate::search::budget::Budget;
use crate::search::problem::PlanningProblem;
use crate::search::watch::{Progress, Watch};
use crate::search::{DesignPoint, Rate, code};
use crate::storage::edges::{buffers, total};
use crate::storage::{Effort, Storage};

/// A chromosome and its figures.
#[derive(Debug, Clone, PartialEq)]
pub struct Point {
    /// For each layer of each CNN in turn, whether it processes its data by parts.
    pub chromosome: Vec<bool>,
    /// Bytes of parameters and buffers.
    pub memory: u64,
    /// Frames per second of each CNN.
    pub fps: Vec<f64>,
    /// Nanoseconds of a frame of each CNN, from its first input to its last output.
    pub latency_ns: Vec<u64>,
}

impl Point {
    /// The rates of each CNN.
    pub(super) fn rates(&self) -> impl Iterator<Item = Rate> {
        self.fps
            .iter()
            .zip(&self.latency_ns)
            .map(|(fps, latency_ns)| Rate { fps: *fps, latency_ns: *latency_ns })
    }

    /// The figures by which it is compared.
    pub(super) fn figures(&self) -> Figures {
        Figures { memory: self.memory, time: Figures::time(self.fps.iter().map(|fps| 1e9 / fps)) }
    }
}

/// Executions of one CNN that are kept, in two halves. When the younger half is full, it becomes the older half.
const KEPT: usize = 256;

/// The share of a CNN, under its part of a chromosome, in the figures of the application.
#[derive(Debug)]
struct Share {
    /// Without the order of firings, which no figure needs.
    execution: Execution,
    period_ns: f64,
    latency_ns: u64,
}

/// The latest shares of a CNN, by its effective genes. A forgotten share is computed again, with the same result.
#[derive(Debug, Default)]
struct Known {
    younger: BTreeMap<Vec<bool>, Arc<Share>>,
    older: BTreeMap<Vec<bool>, Arc<Share>>,
}

impl Known {
    fn get(&mut self, genes: &[bool]) -> Option<Arc<Share>> {
        if let Some(share) = self.younger.get(genes) {
            return Some(share.clone());
        }
        let share = self.older.get(genes)?.clone();
        self.insert(genes.to_vec(), share.clone());
        Some(share)
    }

    fn insert(&mut self, genes: Vec<bool>, share: Arc<Share>) {
        if self.younger.len() >= KEPT {
            self.older = std::mem::take(&mut self.younger);
        }
        self.younger.insert(genes, share);
    }
}

/// The chromosomes of an application as a problem of genetic search.
pub(super) struct Chromosomes<'a> {
    problem: &'a PlanningProblem<'a>,
    space: Space,
    rates: Vec<RateTable<'a>>,
    /// The genes of each CNN.
    genes: Vec<Range<usize>>,
    known: Vec<Mutex<Known>>,
    failed: Mutex<Option<csdf::Error>>,
    watch: &'a Watch<'a>,
}

impl<'a> Chromosomes<'a> {
    /// The chromosomes of a search.
    pub(super) fn new(problem: &'a PlanningProblem<'a>, watch: &'a Watch<'a>) -> Self {
        let mut genes = Vec::new();
        let mut next = 0;
        for task in problem.tasks {
            genes.push(next..next + task.network.layers.len());
            next += task.network.layers.len();
        }
        Chromosomes {
            problem,
            space: Space::new(vec![Section::Bits(next)]),
            rates: problem.tasks.iter().map(|task| RateTable::new(task.network)).collect(),
            genes,
            known: problem.tasks.iter().map(|_| Mutex::default()).collect(),
            failed: Mutex::new(None),
            watch,
        }
    }

    /// Whether the search is to end now.
    pub(super) fn is_over(&self) -> bool {
        self.watch.is_over()
    }

    /// Whether the steps before the genetic search must end now, to leave it half of the time.
    pub(super) fn is_half_over(&self) -> bool {
        let budget = match self.watch.budget {
            budget @ (Budget::Default | Budget::Evaluations(_)) => budget,
            Budget::Time(time) => Budget::Time(time / 2),
        };
        Watch { budget, ..*self.watch }.is_over()
    }

    /// The rest of the search's time, if time limits it.
    pub(super) fn time_left(&self) -> Option<Duration> {
        self.watch.left()
    }

    /// Tells the watcher how far the search is. `memory` is that of the smallest plan so far.
    pub(super) fn report_progress(&self, evaluations: u64, front: usize, memory: u64) {
        let least = memory.saturating_sub(self.problem.parameters);
        (self.watch.progress)(&Progress { of: &self.problem.application.name, evaluations, front, least });
    }

    /// Genes of a chromosome.
    pub(super) fn len(&self) -> usize {
        self.space.len()
    }

    /// The genes of each CNN.
    pub(super) fn genes(&self) -> &[Range<usize>] {
        &self.genes
    }

    /// The first error of an evaluation, if there was one.
    pub(super) fn failure(&self) -> Option<csdf::Error> {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// The rows per firing of a CNN's layers: one where its gene is set (Eq. 6).
    fn choice(&self, cnn: usize, chromosome: &[bool]) -> Choice {
        let genes = &chromosome[self.genes[cnn].clone()];
        let mut choice = Choice::none(self.problem.tasks[cnn].network);
        for (rows, by_parts) in choice.rows.iter_mut().zip(genes) {
            if *by_parts {
                *rows = 1;
            }
        }
        choice.name = "chromosome".into();
        choice
    }

    /// `DeriveApplicationWithReducedBufs` for one CNN, with all that the plan needs.
    fn design_point(&self, cnn: usize, chromosome: &[bool]) -> Result<DesignPoint, csdf::Error> {
        let choice = self.choice(cnn, chromosome);
        design_point(&self.problem.tasks[cnn], &self.rates[cnn], &self.problem.timings[cnn], &choice)
    }

    pub(super) fn design_points(&self, chromosome: &[bool]) -> Result<Vec<DesignPoint>, csdf::Error> {
        (0..self.genes.len()).map(|cnn| self.design_point(cnn, chromosome)).collect()
    }

    fn share(&self, cnn: usize, chromosome: &[bool]) -> Result<Arc<Share>, csdf::Error> {
        let network = self.problem.tasks[cnn].network;
        // A layer of one row fires once whatever its gene says.
        let genes = chromosome[self.genes[cnn].clone()].iter().zip(&network.layers);
        let genes: Vec<bool> = genes.map(|(gene, layer)| *gene && layer.rows() > 1).collect();
        let known = || self.known[cnn].lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(share) = known().get(&genes) {
            return Ok(share);
        }
        let design_point = self.design_point(cnn, chromosome)?;
        let (period_ns, latency_ns) = (design_point.period_ns, design_point.latency());
        let execution = Execution { orders: Vec::new(), ..design_point.execution };
        let share = Arc::new(Share { execution, period_ns, latency_ns });
        known().insert(genes, share.clone());
        Ok(share)
    }

    /// `EvalMemory`, with this effort, and `EvalThroughput` for every CNN.
    pub(super) fn point(&self, chromosome: &[bool], effort: Effort) -> Result<Point, csdf::Error> {
        let shares = (0..self.genes.len()).map(|cnn| self.share(cnn, chromosome));
        let shares: Vec<Arc<Share>> = shares.collect::<Result<_, _>>()?;
        let executions = shares.iter().map(|share| &share.execution).collect();
        let storage = Storage { executions, elements: self.problem.elements };
        let buffers = total(&buffers(&storage, self.problem.sharing, effort));
        Ok(Point {
            chromosome: chromosome.to_vec(),
            memory: self.problem.parameters + buffers,
            fps: shares.iter().map(|share| 1e9 / share.period_ns).collect(),
            latency_ns: shares.iter().map(|share| share.latency_ns).collect(),
        })
    }

    pub(super) fn describe(&self, point: &Point) -> ParetoPoint {
        let cnns = || self.problem.application.cnns.iter().map(|cnn| cnn.name.clone());
        let code = |(cnn, task): (usize, &PartitionedCnn<'_>)| {
            code::write(&self.choice(cnn, &point.chromosome), task.network)
        };
        let codes = self.problem.tasks.iter().enumerate().map(code);
        ParetoPoint {
            memory: point.memory,
            fps: cnns().zip(point.fps.iter().copied()).collect(),
            choices: cnns().zip(codes).collect(),
        }
    }
}

impl Problem for Chromosomes<'_> {
    fn space(&self) -> &Space {
        &self.space
    }

    fn evaluate(&self, genome: &[i64]) -> Evaluation {
        let unusable =
            || Evaluation { objectives: vec![f64::INFINITY; 1 + self.genes.len()], violation: f64::INFINITY };
        if self.is_over() {
            return unusable();
        }
        match self.point(&bits(genome), Effort::Sketch) {
            Ok(point) => {
                let mut objectives = vec![point.memory as f64];
                objectives.extend(point.fps.iter().map(|fps| -fps));
                Evaluation::new(objectives)
            }
            Err(error) => {
                self.failed.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
                unusable()
            }
        }
    }
}

/// A genome as a chromosome.
pub(super) fn bits(genome: &[i64]) -> Vec<bool> {
    genome.iter().map(|gene| *gene == 1).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;
    use std::time::Instant;

    use super::*;
    use crate::frame::occupancy::AddressSharing;
    use crate::search::paper::tests::{PAIR, on};

    /// A share is kept as long as it is asked for now and then.
    #[test]
    fn the_latest_shares_are_kept() {
        let execution = Execution {
            rows: Vec::new(),
            barriers: None,
            orders: Vec::new(),
            windows: Vec::new(),
            requests: Vec::new(),
            sharing: AddressSharing::default(),
            one_by_one: Vec::new(),
        };
        let share = Arc::new(Share { execution, period_ns: 1.0, latency_ns: 1 });
        let genes = |number: usize| (0..16).map(|bit| number >> bit & 1 == 1).collect::<Vec<bool>>();
        let mut known = Known::default();
        for number in 0..3 * KEPT {
            known.insert(genes(number), share.clone());
            assert!(known.get(&genes(0)).is_some(), "{number}");
        }
        let last = 3 * KEPT - 1;
        assert!(known.get(&genes(last - KEPT)).is_some());
        assert!(known.get(&genes(last - 2 * KEPT)).is_none());
        assert!(known.younger.len() <= KEPT && known.older.len() <= KEPT);
    }

    /// Nothing is computed again if genes change nothing: here, genes of layers of one row.
    #[test]
    fn shares_go_by_the_genes_that_matter() {
        on(PAIR, |problem| {
            let watch = Watch::unwatched();
            let chromosomes = Chromosomes::new(problem, &watch);
            let (cnn, task) = (1, &problem.tasks[1]);
            let set = |rows: &dyn Fn(usize) -> bool| {
                let mut chromosome = vec![false; chromosomes.len()];
                for (gene, layer) in chromosomes.genes[cnn].clone().zip(&task.network.layers) {
                    chromosome[gene] = rows(layer.rows());
                }
                chromosomes.share(cnn, &chromosome).unwrap()
            };
            let (none, flat, all) = (set(&|_| false), set(&|rows| rows == 1), set(&|_| true));
            assert!(Arc::ptr_eq(&none, &flat));
            assert!(!Arc::ptr_eq(&none, &all));
        });
    }

    /// The steps before the genetic search have half of the time.
    #[test]
    fn time_passes() {
        let (go, stop) = (AtomicBool::new(false), AtomicBool::new(true));
        let seconds = Duration::from_secs;
        on(PAIR, |problem| {
            for (budget, stop, passed, half_over, over, left) in [
                (Budget::Default, &go, 60, false, false, None),
                (Budget::Evaluations(1), &go, 60, false, false, None),
                (Budget::Default, &stop, 0, true, true, None),
                (Budget::Time(seconds(100)), &go, 20, false, false, Some(80)),
                (Budget::Time(seconds(100)), &go, 60, true, false, Some(40)),
                (Budget::Time(seconds(100)), &go, 120, true, true, Some(0)),
                (Budget::Time(seconds(100)), &stop, 20, true, true, Some(80)),
            ] {
                let began = Instant::now().checked_sub(seconds(passed)).unwrap();
                let watch = Watch { budget, began, stop, ..Watch::unwatched() };
                let chromosomes = Chromosomes::new(problem, &watch);
                let found = (chromosomes.is_half_over(), chromosomes.is_over());
                assert_eq!(found, (half_over, over), "{budget:?}, {passed} s");
                let rounded = chromosomes.time_left().map(|left| left.as_secs_f64().round() as u64);
                assert_eq!(rounded, left, "{budget:?}, {passed} s");
                // Nothing is evaluated any more.
                let evaluation = chromosomes.evaluate(&vec![0; chromosomes.len()]);
                assert_eq!(evaluation.violation > 0.0, over, "{budget:?}, {passed} s");
            }
        });
    }
}
