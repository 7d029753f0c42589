//! Chooses one design point for each CNN: the best within the constraints or, if none meets them, the nearest.

mod memories;

use std::collections::BTreeMap;

use csdfc_input::app::resolve::{Cnn, Demand};
use csdfc_plan::plan::{self, Content, StorageModel};
use tracing::info_span;

use crate::objective::{Figures, Least};
use crate::search::budget::Stopped;
use crate::search::problem::PlanningProblem;
use crate::search::select::Selection;
use crate::search::simple::DesignFront;
use crate::search::{DesignPoint, Found, Rate, Shortfall, code};
use crate::storage::{Arrangement, Effort, Storage};

/// The design points of every CNN, from which one of each is chosen.
pub(super) struct Chooser<'a> {
    problem: &'a PlanningProblem<'a>,
    design_points: Vec<Vec<DesignPoint>>,
    /// Old plans, as a design point of each CNN.
    known: Vec<Vec<usize>>,
    /// Choices that were evaluated, and why no more were.
    evaluations: u64,
    stopped: Stopped,
}

impl<'a> Chooser<'a> {
    /// Chooses among the design points that a method found for each CNN, and among old plans, each given as one design
    /// point per CNN.
    pub(super) fn new(
        problem: &'a PlanningProblem<'a>,
        fronts: Vec<DesignFront>,
        known: Vec<Vec<usize>>,
    ) -> Self {
        Chooser {
            problem,
            evaluations: fronts.iter().map(|front| front.evaluations).sum(),
            stopped: fronts.iter().map(|front| front.stopped).max().unwrap_or(Stopped::Complete),
            design_points: fronts.into_iter().map(|front| front.design_points).collect(),
            known,
        }
    }

    /// Chooses, and returns the front that was seen as well. `is_known` says that the answer is known without a search,
    /// so that the least memory is not known.
    pub(super) fn find(&self, is_known: bool) -> (Vec<usize>, Found) {
        let (chosen, mut shortfall, pareto) = match self.problem.memories() {
            [] => {
                let (chosen, shortfall) = info_span!("select").in_scope(|| self.choose());
                (chosen, shortfall, info_span!("front").in_scope(|| self.front()))
            }
            _ => info_span!("select").in_scope(|| self.choose_in_memories()),
        };
        if let Some(shortfall) = shortfall.as_mut().filter(|_| is_known) {
            shortfall.least_memory = None;
        }
        let design_points = self.points(&chosen).cloned().collect();
        let (evaluations, stopped) = (self.evaluations, self.stopped);
        (chosen, Found { design_points, shortfall, pareto, evaluations, stopped })
    }

    /// Whether no search could change the answer. The design points without parts must be among these. They are the
    /// fastest, since the model of no layer is slower if it fires once. (A layer can be measured to be slower, so the
    /// layers must not be measured.) The answer is known if they fit and meet all constraints, if they fit and are the
    /// nearest to the constraints, or if no plan is small enough and streamed weights are tried next. On a board with
    /// several memories they must fit the fastest, which holds everything.
    pub(super) fn knows_the_answer(&self) -> bool {
        let objective = self.problem.objective;
        if !objective.fits(self.problem.parameters) {
            return self.problem.application.may_be_streamed.is_some();
        }
        let Some(fastest) = self.selection(&self.nothing_demanded()).fastest(u64::MAX) else { return false };
        let is_fast_enough = objective.is_fast_enough(self.points(&fastest).map(DesignPoint::rate));
        let most = match self.problem.memories() {
            [] => objective.most_bytes(),
            [fastest, ..] if fastest.holds.is_superset(&Content::of_arena()) => fastest.room(),
            _ => 0,
        };
        !(objective.least == Least::Memory && is_fast_enough) && self.total(&fastest) <= most
    }

    /// The chosen design points.
    fn points(&self, chosen: &[usize]) -> impl Iterator<Item = &DesignPoint> {
        chosen.iter().zip(&self.design_points).map(|(v, all)| &all[*v])
    }

    fn nothing_demanded(&self) -> Vec<Demand> {
        vec![Demand::default(); self.design_points.len()]
    }

    fn selection(&self, demands: &[Demand]) -> Selection<'_> {
        let cnns = |element: &Vec<(usize, usize)>| {
            let mut cnns: Vec<usize> = element.iter().map(|(cnn, _)| *cnn).collect();
            cnns.sort_unstable();
            cnns.dedup();
            cnns
        };
        Selection::new(&self.design_points, self.problem.elements.iter().map(cnns).collect(), demands)
    }

    fn storage(&self, chosen: &[usize]) -> Storage<'_> {
        let executions = self.points(chosen).map(|design_point| &design_point.execution).collect();
        Storage { executions, elements: self.problem.elements }
    }

    fn arrange(&self, chosen: &[usize]) -> Arrangement {
        self.problem.arrange(&self.storage(chosen), Effort::Candidate)
    }

    /// Total memory of a choice, in bytes. Rings of CNNs that never run at the same time may lie at the same addresses,
    /// so the largest CNN determines their memory, unless some live from hop to hop.
    fn total(&self, chosen: &[usize]) -> u64 {
        let of_one_cnn =
            |element: &Vec<(usize, usize)>| element.windows(2).all(|pair| pair[0].0 == pair[1].0);
        let is_largest = self.problem.application.storage == StorageModel::Tensors
            && self.problem.elements.iter().all(of_one_cnn)
            && self.points(chosen).all(|design_point| design_point.state() == 0);
        let each = self.points(chosen).map(|design_point| design_point.buffers);
        let buffers = if chosen.len() == 1 || is_largest {
            each.max().unwrap_or(0)
        } else {
            self.arrange(chosen).bytes
        };
        self.problem.parameters + buffers
    }

    fn rates(&self, chosen: &[usize]) -> BTreeMap<String, Rate> {
        self.by_name(self.points(chosen).map(DesignPoint::rate))
    }

    /// What each CNN has, by its name.
    fn by_name<T>(&self, each: impl Iterator<Item = T>) -> BTreeMap<String, T> {
        self.problem.application.cnns.iter().map(|cnn| cnn.name.clone()).zip(each).collect()
    }

    /// A choice as a point of a front.
    fn pareto_point(
        &self,
        chosen: &[usize],
        memory: u64,
        rates: BTreeMap<String, Rate>,
    ) -> plan::ParetoPoint {
        let code = |(cnn, design_point): (&Cnn, &DesignPoint)| {
            (cnn.name.clone(), code::write(&design_point.choice(), &cnn.network))
        };
        let choices = self.problem.application.cnns.iter().zip(self.points(chosen)).map(code).collect();
        let fps = rates.into_iter().map(|(cnn, rate)| (cnn, rate.fps)).collect();
        plan::ParetoPoint { memory, fps, choices }
    }

    /// The best that each CNN can reach, whatever the others do.
    fn best_rates(&self, fastest: &[usize]) -> BTreeMap<String, Rate> {
        let mut rates = self.rates(fastest);
        for (cnn, design_points) in self.problem.application.cnns.iter().zip(&self.design_points) {
            if let Some(rate) = rates.get_mut(&cnn.name) {
                rate.latency_ns =
                    design_points.iter().map(DesignPoint::latency).min().unwrap_or(rate.latency_ns);
            }
        }
        rates
    }

    /// The fastest choice whose total is within `limit` bytes, with all rings arranged. A choice that was made CNN by
    /// CNN may be larger when all rings are arranged together. Then a smaller budget is tried.
    fn fastest_within(&self, selection: &Selection<'_>, limit: u64) -> Option<Vec<usize>> {
        let budget = limit.checked_sub(self.problem.parameters)?;
        let smaller = selection.thresholds().into_iter().filter(|threshold| *threshold < budget);
        std::iter::once(budget)
            .chain(smaller)
            .map_while(|budget| selection.fastest(budget))
            .find(|chosen| self.total(chosen) <= limit)
    }

    /// Whether a choice is within the limit when its rings are placed with the patience that the final plan gets.
    fn fits_in_the_end(&self, chosen: &[usize]) -> bool {
        let bytes = || self.problem.arrange(&self.storage(chosen), Effort::Final).bytes;
        self.problem.objective.limit.is_none_or(|limit| self.problem.parameters + bytes() <= limit)
    }

    /// The choice of least memory. If several take the same memory, it is the fastest of them.
    fn smallest(&self, selection: &Selection<'_>) -> Option<Vec<usize>> {
        selection.fastest(selection.min_memory()?)
    }

    /// The best choice and, if no choice meets the constraints, what can be reached.
    fn choose(&self) -> (Vec<usize>, Option<Shortfall>) {
        let objective = self.problem.objective;
        let asked = self.selection(&objective.demands);
        let chosen = match objective.least {
            Least::Memory => self
                .smallest(&asked)
                .filter(|chosen| objective.fits(self.total(chosen)) || self.fits_in_the_end(chosen)),
            Least::Time => self
                .fastest_within(&asked, objective.most_bytes())
                .or_else(|| self.smallest(&asked).filter(|chosen| self.fits_in_the_end(chosen))),
        };
        let known = self.known.iter().filter(|known| {
            objective.is_fast_enough(self.points(known).map(DesignPoint::rate))
                && objective.fits(self.total(known))
        });
        match self.best_of(chosen.into_iter().chain(known.cloned()), objective.least) {
            Some(chosen) => (chosen, None),
            None => {
                let (nearest, shortfall) = self.nearest(&asked);
                (nearest, Some(shortfall))
            }
        }
    }

    /// The choice that comes nearest to constraints that cannot be met, and what can be reached: the fastest within the
    /// limit, or the smallest.
    fn nearest(&self, asked: &Selection<'_>) -> (Vec<usize>, Shortfall) {
        let objective = self.problem.objective;
        let any = self.selection(&self.nothing_demanded());
        let unlimited = any.fastest(u64::MAX);
        let within = match objective.limit {
            None => unlimited.clone(),
            Some(limit) => self.fastest_within(&any, limit),
        };
        let known = self.known.iter().filter(|known| objective.fits(self.total(known)));
        let within = self.best_of(within.into_iter().chain(known.cloned()), Least::Time);
        // Every CNN has design points if nothing is demanded, so there is a smallest choice.
        let smallest = self.smallest(&any).unwrap_or_else(|| vec![0; self.design_points.len()]);
        let shortfall = Shortfall {
            least_memory: Some(self.total(&smallest)),
            memory_at_rates: self.smallest(asked).map(|chosen| self.total(&chosen)),
            rates_in_memory: objective.limit.and(within.as_ref()).map(|chosen| self.rates(chosen)),
            best_rates: self.best_rates(unlimited.as_ref().unwrap_or(&smallest)),
        };
        (within.unwrap_or(smallest), shortfall)
    }

    /// The best of some choices, the first of equals. The first was chosen by the bytes that each CNN takes alone. An old
    /// plan may be better, because its bytes are counted for all CNNs together.
    fn best_of(&self, mut choices: impl Iterator<Item = Vec<usize>>, least: Least) -> Option<Vec<usize>> {
        let first = choices.next()?;
        let mut rest = choices.peekable();
        if rest.peek().is_none() {
            return Some(first);
        }
        let figures = |chosen: Vec<usize>| {
            let periods_ns = self.points(&chosen).map(|design_point| design_point.period_ns);
            (Figures { memory: self.total(&chosen), time: Figures::time(periods_ns) }, chosen)
        };
        let each = std::iter::once(first).chain(rest).map(figures);
        each.min_by(|(a, _), (b, _)| least.compare(a, b)).map(|(_, chosen)| chosen)
    }

    /// Forgets each chosen design point whose CNN has other design points. Returns whether there was one.
    pub(super) fn drop(&mut self, chosen: &[usize]) -> bool {
        let mut is_any = false;
        for (c, (v, all)) in
            chosen.iter().zip(&mut self.design_points).enumerate().filter(|(_, (_, all))| all.len() > 1)
        {
            all.remove(*v);
            is_any = true;
            self.known.retain(|known| known[c] != *v);
            self.known.iter_mut().for_each(|known| known[c] -= usize::from(known[c] > *v));
        }
        is_any
    }

    /// The front of the plans seen: none of them is worse than another in both memory and frame rates. Sorted by
    /// falling memory.
    fn front(&self) -> Vec<plan::ParetoPoint> {
        let any = self.selection(&self.nothing_demanded());
        let mut points: Vec<plan::ParetoPoint> = Vec::new();
        for budget in any.thresholds() {
            let Some(chosen) = any.fastest(budget) else { continue };
            let memory = self.total(&chosen);
            let point = self.pareto_point(&chosen, memory, self.rates(&chosen));
            // Budgets fall, and frame rates fall with them. So only neighbours can dominate each other.
            points.retain(|before| before.memory < memory || before.fps != point.fps);
            if points.last().is_none_or(|before| memory < before.memory) {
                points.push(point);
            }
        }
        points
    }
}
