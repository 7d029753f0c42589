//! Chooses one design point for each CNN, such that the CNNs that run at the same time fit the budget together.
//!
//! CNNs that exclude each other in time share the arena, so each may use all of it and is chosen on its own. CNNs
//! with partitions in one element of J must fit side by side: choosing for them is a multiple-choice knapsack,
//! solved as an integer program.

use csdfc_input::app::resolve::Demand;
use good_lp::{Expression, ProblemVariables, Solution, SolverModel, Variable, constraint, variable};

use crate::search::DesignPoint;

/// The design points of each CNN and which CNNs run at the same time.
#[derive(Debug)]
pub struct Selection<'a> {
    /// Variants of each CNN.
    pub design_points: &'a [Vec<DesignPoint>],
    /// For each CNN, the design points that may be chosen.
    pub allowed: Vec<Vec<usize>>,
    /// Sets of CNNs that run at the same time.
    pub elements: Vec<Vec<usize>>,
}

impl<'a> Selection<'a> {
    /// Keeps the design points that are fast enough, and that no other such design point beats in both memory and speed.
    pub fn new(design_points: &'a [Vec<DesignPoint>], elements: Vec<Vec<usize>>, demands: &[Demand]) -> Self {
        let allowed = design_points
            .iter()
            .zip(demands)
            .map(|(design_points, demand)| front(design_points, demand))
            .collect();
        Selection { design_points, allowed, elements }
    }

    /// The fastest choice whose buffers fit `budget` bytes. It has the least product of the times between frames
    /// ([`Figures::time`](crate::objective::Figures::time)). `None` if nothing fits.
    pub fn fastest(&self, budget: u64) -> Option<Vec<usize>> {
        let mut chosen = vec![0; self.design_points.len()];
        for group in self.groups() {
            match group.as_slice() {
                [cnn] => {
                    let fits =
                        self.allowed[*cnn].iter().filter(|v| self.design_points[*cnn][**v].buffers <= budget);
                    chosen[*cnn] =
                        *fits.min_by(|a, b| self.period(*cnn, **a).total_cmp(&self.period(*cnn, **b)))?;
                }
                group => self.solve(group, Some(budget), &mut chosen)?,
            }
        }
        Some(chosen)
    }

    /// The least bytes of buffers that any choice takes. `None` if some CNN has no design point that is allowed.
    pub fn min_memory(&self) -> Option<u64> {
        let mut most = 0;
        for group in self.groups() {
            let mut chosen = vec![0; self.design_points.len()];
            match group.as_slice() {
                [cnn] => chosen[*cnn] = *self.allowed[*cnn].iter().min_by_key(|v| self.buffers(*cnn, **v))?,
                group => self.solve(group, None, &mut chosen)?,
            }
            most = most.max(self.arena(&group, &chosen));
        }
        Some(most)
    }

    /// Budgets at which the answer of [`Selection::fastest`] may change, descending.
    pub fn thresholds(&self) -> Vec<u64> {
        let each = |cnn: usize| self.allowed[cnn].iter().map(move |v| self.buffers(cnn, *v));
        let mut budgets: Vec<u64> = (0..self.design_points.len()).flat_map(each).collect();
        if self.elements.iter().any(|element| element.len() > 1) {
            // There are too many sums of design points. An even grid between the extremes shows the front.
            let sum: u64 = (0..self.design_points.len()).filter_map(|cnn| each(cnn).max()).sum();
            let least = self.min_memory().unwrap_or(0);
            budgets = (0..=16).map(|i| least + (sum.saturating_sub(least)) / 16 * i).collect();
            budgets.push(sum);
        }
        budgets.sort_unstable_by(|a, b| b.cmp(a));
        budgets.dedup();
        budgets
    }

    fn buffers(&self, cnn: usize, design_point: usize) -> u64 {
        self.design_points[cnn][design_point].buffers
    }

    fn period(&self, cnn: usize, design_point: usize) -> f64 {
        self.design_points[cnn][design_point].period_ns
    }

    /// Bytes that this choice takes for a group: the bytes of its largest element of J.
    fn arena(&self, group: &[usize], chosen: &[usize]) -> u64 {
        let members = |element: &[usize]| -> u64 {
            element.iter().filter(|cnn| group.contains(cnn)).map(|cnn| self.buffers(*cnn, chosen[*cnn])).sum()
        };
        let alone = group.iter().map(|cnn| self.buffers(*cnn, chosen[*cnn]));
        self.elements.iter().map(|element| members(element)).chain(alone).max().unwrap_or(0)
    }

    /// CNNs connected by elements of J.
    fn groups(&self) -> Vec<Vec<usize>> {
        let mut links = petgraph::unionfind::UnionFind::<usize>::new(self.design_points.len());
        for element in &self.elements {
            for pair in element.windows(2) {
                links.union(pair[0], pair[1]);
            }
        }
        let mut groups: std::collections::BTreeMap<usize, Vec<usize>> = std::collections::BTreeMap::new();
        for cnn in 0..self.design_points.len() {
            groups.entry(links.find(cnn)).or_default().push(cnn);
        }
        groups.into_values().collect()
    }

    /// The integer program. It takes one design point for each CNN. With a budget, it minimises the time, and every
    /// element must be within the budget. Without one, it minimises the largest element. Bytes are scaled to megabytes,
    /// so that the solver's tolerances make sense. The answer is verified in bytes.
    fn solve(&self, group: &[usize], budget: Option<u64>, chosen: &mut [usize]) -> Option<()> {
        const SCALE: f64 = 1e-6;
        let mut variables = ProblemVariables::new();
        let picks: Vec<Vec<Variable>> = group
            .iter()
            .map(|cnn| self.allowed[*cnn].iter().map(|_| variables.add(variable().binary())).collect())
            .collect();
        let fullest = variables.add(variable().min(0.0));
        let weighted = |i: usize, weight: &dyn Fn(usize) -> f64| -> Expression {
            self.allowed[group[i]].iter().zip(&picks[i]).map(|(v, x)| weight(*v) * *x).sum()
        };
        let objective: Expression = match budget {
            None => fullest.into(),
            Some(_) => (0..group.len())
                .map(|i| {
                    let periods = self.allowed[group[i]].iter().map(|v| self.period(group[i], *v));
                    let best = periods.fold(f64::INFINITY, f64::min);
                    // Relative to the best, so that no coefficient is negative.
                    weighted(i, &|v| (self.period(group[i], v) / best).ln())
                })
                .sum(),
        };
        let mut problem = variables.minimise(objective).using(good_lp::solvers::microlp::microlp);
        for picks in &picks {
            problem = problem.with(constraint!(picks.iter().sum::<Expression>() == 1.0));
        }
        for element in &self.elements {
            let members = (0..group.len()).filter(|i| element.contains(&group[*i]));
            let taken: Expression =
                members.map(|i| weighted(i, &|v| self.buffers(group[i], v) as f64 * SCALE)).sum();
            problem = problem.with(constraint!(taken.clone() <= fullest));
            if let Some(budget) = budget {
                problem = problem.with(constraint!(taken <= budget as f64 * SCALE));
            }
        }
        let solution = problem.solve().ok()?;
        for (i, cnn) in group.iter().enumerate() {
            let position = picks[i].iter().position(|x| solution.value(*x) > 0.5)?;
            chosen[*cnn] = self.allowed[*cnn][position];
        }
        (budget.is_none_or(|budget| self.arena(group, chosen) <= budget)).then_some(())
    }
}

/// The design points that are fast enough, and for which no other such design point is as good in both memory and speed. Sorted
/// by memory.
fn front(design_points: &[DesignPoint], demand: &Demand) -> Vec<usize> {
    let is_met = |v: &usize| demand.is_met(design_points[*v].fps(), design_points[*v].latency());
    let mut order: Vec<usize> = (0..design_points.len()).filter(is_met).collect();
    order.sort_by(|a, b| {
        let key = |v: &usize| (design_points[*v].buffers, design_points[*v].period_ns);
        let (a_key, b_key) = (key(a), key(b));
        a_key.0.cmp(&b_key.0).then(a_key.1.total_cmp(&b_key.1)).then(a.cmp(b))
    });
    let mut best = f64::INFINITY;
    order.retain(|v| {
        // What comes before takes no more memory, so a point that is no faster than all of it gains nothing.
        let better = design_points[*v].period_ns < best;
        best = best.min(design_points[*v].period_ns);
        better
    });
    order
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::frame::execution::Execution;
    use crate::objective::Figures;

    fn design_points(raw: &[Vec<(u64, u32)>]) -> Vec<Vec<DesignPoint>> {
        let execution = Execution {
            rows: Vec::new(),
            barriers: None,
            orders: Vec::new(),
            windows: Vec::new(),
            requests: Vec::new(),
            sharing: crate::frame::occupancy::AddressSharing::default(),
            one_by_one: Vec::new(),
        };
        let design_point = |(buffers, period): &(u64, u32)| DesignPoint {
            name: String::new(),
            execution: execution.clone(),
            buffers: *buffers * 1000,
            period_ns: f64::from(*period),
            latency_ns: f64::from(*period),
        };
        raw.iter().map(|cnn| cnn.iter().map(design_point).collect()).collect()
    }

    /// Every choice, by exhaustion.
    fn all(design_points: &[Vec<DesignPoint>]) -> Vec<Vec<usize>> {
        design_points.iter().fold(vec![Vec::new()], |choices, cnn| {
            let extend = |choice: Vec<usize>| (0..cnn.len()).map(move |v| [choice.clone(), vec![v]].concat());
            choices.into_iter().flat_map(extend).collect()
        })
    }

    fn time(design_points: &[Vec<DesignPoint>], choice: &[usize]) -> f64 {
        Figures::time(design_points.iter().zip(choice).map(|(cnn, v)| cnn[*v].period_ns))
    }

    /// Of equally fast design points, the smallest stays; of equal ones, the first.
    #[test]
    fn variants_that_gain_nothing_are_left_out() {
        let design_points = design_points(&[vec![(20, 5), (10, 5), (10, 5), (30, 4), (40, 4)]]);
        let selection = Selection::new(&design_points, vec![vec![0]], &[Demand::default()]);
        assert_eq!(selection.allowed, [[1, 3]]);
        assert_eq!(selection.thresholds(), [30_000, 10_000]);
    }

    proptest! {
        #[test]
        fn agrees_with_exhaustion(
            raw in prop::collection::vec(prop::collection::vec((1u64..60, 1u32..60), 1..5), 1..4),
            together in prop::collection::vec(0usize..3, 0..3),
            budget in 1u64..150_000,
        ) {
            let design_points = design_points(&raw);
            let mut element: Vec<usize> = together.into_iter().filter(|cnn| *cnn < raw.len()).collect();
            element.sort_unstable();
            element.dedup();
            let elements: Vec<Vec<usize>> = (0..raw.len()).map(|cnn| vec![cnn]).chain([element]).collect();
            let selection = Selection::new(&design_points, elements.clone(), &vec![Demand::default(); raw.len()]);
            let arena = |choice: &[usize]| -> u64 {
                let taken = |e: &Vec<usize>| e.iter().map(|cnn| design_points[*cnn][choice[*cnn]].buffers).sum();
                elements.iter().map(taken).max().unwrap_or(0)
            };
            let choices = all(&design_points);
            let least = choices.iter().map(|choice| arena(choice)).min();
            prop_assert_eq!(selection.min_memory(), least);
            // Some budgets are, to the byte, the memory of a choice.
            for budget in choices.iter().map(|choice| arena(choice)).chain([budget]) {
                let fits = choices.iter().filter(|choice| arena(choice) <= budget);
                let best = fits.map(|choice| time(&design_points, choice)).min_by(f64::total_cmp);
                let found = selection.fastest(budget);
                prop_assert_eq!(found.is_some(), best.is_some());
                if let (Some(found), Some(best)) = (found, best) {
                    prop_assert!(arena(&found) <= budget);
                    prop_assert!((time(&design_points, &found) - best).abs() < 1e-6);
                }
            }
        }
    }
}
