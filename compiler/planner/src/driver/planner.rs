//! Chooses one design point for each CNN: the best within the constraints or, if none meets them, the nearest.

use std::collections::BTreeMap;

use csdfc_input::app::resolve::{Cnn, Demand};
use csdfc_input::app::spec::Prefer;
use csdfc_input::units::MemoryGoal;
use csdfc_plan::plan::{self, StorageModel};
use tracing::info_span;

use crate::cost::timing::Timing;
use crate::search::problem::PlanningProblem;
use crate::search::select::Selection;
use crate::search::simple::DesignFront;
use crate::search::watch::Stopped;
use crate::search::{DesignPoint, Found, Rate, Shortfall, code};
use crate::storage::{Arrangement, Effort, Storage};

/// The design points of every CNN, from which one of each is chosen.
pub(super) struct Planner<'a> {
    problem: &'a PlanningProblem<'a>,
    design_points: Vec<Vec<DesignPoint>>,
    /// Old plans, as a design point of each CNN.
    known: Vec<Vec<usize>>,
    /// Choices that were evaluated, and why no more were.
    evaluations: u64,
    stopped: Stopped,
}

impl<'a> Planner<'a> {
    /// A planner for the design points that a method found for each CNN, and for old plans, each given as one design point per
    /// CNN.
    pub(super) fn new(
        problem: &'a PlanningProblem<'a>,
        fronts: Vec<DesignFront>,
        known: Vec<Vec<usize>>,
    ) -> Self {
        Planner {
            problem,
            evaluations: fronts.iter().map(|front| front.evaluations).sum(),
            stopped: fronts.iter().map(|front| front.stopped).max().unwrap_or(Stopped::Complete),
            design_points: fronts.into_iter().map(|front| front.design_points).collect(),
            known,
        }
    }

    /// Chooses for these constraints, and returns the front that was seen as well. `is_settled` says that there was no
    /// search, so that the least memory is not known.
    pub(super) fn find(
        &self,
        limit: Option<u64>,
        demands: &[Demand],
        is_settled: bool,
    ) -> (Vec<usize>, Found) {
        let (chosen, mut shortfall) = info_span!("select").in_scope(|| self.choose(limit, demands));
        if let Some(shortfall) = shortfall.as_mut().filter(|_| is_settled) {
            shortfall.least_memory = None;
        }
        let pareto = info_span!("front").in_scope(|| self.front());
        let each = chosen.iter().zip(&self.design_points);
        let design_points = each.map(|(v, all)| all[*v].clone()).collect();
        let (evaluations, stopped) = (self.evaluations, self.stopped);
        (chosen, Found { design_points, shortfall, pareto, evaluations, stopped })
    }

    /// Whether no search could change the answer. The design points without parts must be among these. They are the fastest,
    /// since the model of no layer is slower if it fires once. (A layer can be measured to be slower: then nothing is
    /// settled.) The answer is settled if they fit and meet all constraints, if they fit and are the nearest to the
    /// constraints, or if no plan is small enough.
    pub(super) fn is_settled(&self, limit: Option<u64>, demands: &[Demand]) -> bool {
        if limit.is_some_and(|limit| self.problem.parameters > limit) {
            return true;
        }
        if self.problem.timings.iter().any(Timing::is_measured) {
            return false;
        }
        let any = self.selection(&vec![Demand::default(); demands.len()]);
        let Some(fastest) = any.fastest(u64::MAX) else { return false };
        let least_memory = matches!(self.problem.application.constraints.memory, Some(MemoryGoal::Min))
            || self.problem.application.prefer == Prefer::Memory;
        let rates = fastest.iter().zip(&self.design_points).map(|(v, all)| all[*v].rate());
        let is_fast_enough =
            rates.zip(demands).all(|(rate, demand)| demand.is_met(rate.fps, rate.latency_ns));
        !(least_memory && is_fast_enough) && limit.is_none_or(|limit| self.total(&fastest) <= limit)
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
        let executions = chosen.iter().zip(&self.design_points).map(|(v, all)| &all[*v].execution).collect();
        Storage { executions, elements: self.problem.elements }
    }

    fn arrange(&self, chosen: &[usize]) -> Arrangement {
        self.problem.arrange(&self.storage(chosen), Effort::Candidate)
    }

    /// Total memory of a choice, in bytes. Rings of CNNs that never run at the same time may lie at the same addresses,
    /// so the largest CNN determines their memory.
    fn total(&self, chosen: &[usize]) -> u64 {
        let of_one_cnn =
            |element: &Vec<(usize, usize)>| element.windows(2).all(|pair| pair[0].0 == pair[1].0);
        let is_largest = self.problem.application.storage == StorageModel::Tensors
            && self.problem.elements.iter().all(of_one_cnn);
        let each = chosen.iter().zip(&self.design_points).map(|(v, all)| all[*v].buffers);
        let buffers = if chosen.len() == 1 || is_largest {
            each.max().unwrap_or(0)
        } else {
            self.arrange(chosen).bytes
        };
        self.problem.parameters + buffers
    }

    fn rates(&self, chosen: &[usize]) -> BTreeMap<String, Rate> {
        let each = self.problem.application.cnns.iter().zip(chosen.iter().zip(&self.design_points));
        each.map(|(cnn, (v, all))| (cnn.name.clone(), all[*v].rate())).collect()
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
    fn fits_in_the_end(&self, chosen: &[usize], limit: Option<u64>) -> bool {
        let bytes = || {
            let storage = self.storage(chosen);
            self.problem.arrange(&storage, Effort::Final).bytes
        };
        limit.is_none_or(|limit| self.problem.parameters + bytes() <= limit)
    }

    /// The choice of least memory. If several take the same memory, it is the fastest of them.
    fn smallest(&self, selection: &Selection<'_>) -> Option<Vec<usize>> {
        selection.fastest(selection.least()?)
    }

    /// The choice for these constraints and, if they cannot be met, what can be reached.
    fn choose(&self, limit: Option<u64>, demands: &[Demand]) -> (Vec<usize>, Option<Shortfall>) {
        let nothing = vec![Demand::default(); demands.len()];
        let asked = self.selection(demands);
        let any = self.selection(&nothing);
        let least_memory = matches!(self.problem.application.constraints.memory, Some(MemoryGoal::Min))
            || self.problem.application.prefer == Prefer::Memory;
        let chosen = if least_memory {
            self.smallest(&asked).filter(|chosen| {
                limit.is_none_or(|limit| self.total(chosen) <= limit) || self.fits_in_the_end(chosen, limit)
            })
        } else {
            let fitting = self.fastest_within(&asked, limit.unwrap_or(u64::MAX));
            fitting.or_else(|| self.smallest(&asked).filter(|chosen| self.fits_in_the_end(chosen, limit)))
        };
        if let Some(chosen) = self.or_known(chosen, limit, demands, least_memory) {
            return (chosen, None);
        }
        let within = limit.map_or_else(|| any.fastest(u64::MAX), |limit| self.fastest_within(&any, limit));
        let within = self.or_known(within, limit, &nothing, false);
        // Every CNN has design points if none is excluded, so there is a smallest choice.
        let smallest = self.smallest(&any).unwrap_or_else(|| vec![0; self.design_points.len()]);
        let unlimited = any.fastest(u64::MAX).unwrap_or_else(|| smallest.clone());
        let shortfall = Shortfall {
            least_memory: Some(self.total(&smallest)),
            memory_at_rates: self.smallest(&asked).map(|chosen| self.total(&chosen)),
            rates_in_memory: limit.and(within.as_ref()).map(|chosen| self.rates(chosen)),
            best_rates: self.best_rates(&unlimited),
        };
        (within.unwrap_or(smallest), Some(shortfall))
    }

    /// The chosen design points, or an old plan that also meets the constraints and is better. An old plan may be better for
    /// this reason: if CNNs run at the same time, design points are chosen by the bytes that each CNN takes alone, but an
    /// old plan counts the bytes of all CNNs together.
    fn or_known(
        &self,
        chosen: Option<Vec<usize>>,
        limit: Option<u64>,
        demands: &[Demand],
        least_memory: bool,
    ) -> Option<Vec<usize>> {
        if self.known.is_empty() {
            return chosen;
        }
        let slowdown = |chosen: &[usize]| -> f64 {
            let relative = |(v, all): (&usize, &Vec<DesignPoint>)| {
                all[*v].period_ns / all.iter().map(|v| v.period_ns).fold(f64::INFINITY, f64::min)
            };
            chosen.iter().zip(&self.design_points).map(relative).sum()
        };
        let fast_enough = |chosen: &Vec<usize>| {
            let design_points = chosen.iter().zip(&self.design_points).map(|(v, all)| &all[*v]);
            design_points
                .zip(demands)
                .all(|(design_point, demand)| demand.is_met(design_point.fps(), design_point.latency()))
        };
        let worth = |chosen: Vec<usize>| (self.total(&chosen), slowdown(&chosen), chosen);
        let known = self.known.iter().filter(|known| fast_enough(known)).cloned().map(worth);
        let known = known.filter(|(total, ..)| limit.is_none_or(|limit| *total <= limit));
        // The chosen design points are within the limit, though perhaps only with the patience of the final placement.
        chosen
            .into_iter()
            .map(worth)
            .chain(known)
            .min_by(|(a, slow_a, _), (b, slow_b, _)| {
                let slower = slow_a.total_cmp(slow_b);
                if least_memory { a.cmp(b).then(slower) } else { slower.then(a.cmp(b)) }
            })
            .map(|(_, _, chosen)| chosen)
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
        let any = self.selection(&vec![Demand::default(); self.problem.tasks.len()]);
        let mut points: Vec<plan::ParetoPoint> = Vec::new();
        for budget in any.thresholds() {
            let Some(chosen) = any.fastest(budget) else { continue };
            let memory = self.total(&chosen);
            let each = self.problem.application.cnns.iter().zip(chosen.iter().zip(&self.design_points));
            let code = |(v, all): (&usize, &Vec<DesignPoint>), cnn: &Cnn| {
                code::write(&all[*v].choice(), &cnn.network)
            };
            let choices =
                each.map(|(cnn, design_point)| (cnn.name.clone(), code(design_point, cnn))).collect();
            let fps = self.rates(&chosen).into_iter().map(|(cnn, rate)| (cnn, rate.fps)).collect();
            let point = plan::ParetoPoint { memory, fps, choices };
            // Budgets fall, and frame rates fall with them. So only neighbours can dominate each other.
            points.retain(|before| before.memory < memory || before.fps != point.fps);
            if points.last().is_none_or(|before| memory < before.memory) {
                points.push(point);
            }
        }
        points
    }
}
