//! Chooses one design point for each CNN, such that the CNNs that run at the same time fit the budget together.
//!
//! CNNs that exclude each other in time share the arena, so each may use all of it and is chosen on its own. CNNs
//! with partitions in one element of J must fit side by side: choosing for them is a multiple-choice knapsack,
//! solved as an integer program. So it is if rings of one CNN live from hop to hop, while the others run.

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
    /// Sets of CNNs that run at the same time, and each CNN by itself.
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
        let alone = (0..design_points.len()).map(|cnn| vec![cnn]);
        let elements = elements.into_iter().filter(|element| element.len() > 1).chain(alone).collect();
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
        if self.groups().len() < self.design_points.len() {
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

    /// Bytes that a design point takes while the CNNs of an element run.
    fn taken(&self, element: &[usize], cnn: usize, design_point: usize) -> u64 {
        match element.contains(&cnn) {
            true => self.buffers(cnn, design_point),
            false => self.design_points[cnn][design_point].state(),
        }
    }

    fn period(&self, cnn: usize, design_point: usize) -> f64 {
        self.design_points[cnn][design_point].period_ns
    }

    /// Bytes that this choice takes for a group: those of its fullest element.
    fn arena(&self, group: &[usize], chosen: &[usize]) -> u64 {
        let taken =
            |element: &[usize]| group.iter().map(|cnn| self.taken(element, *cnn, chosen[*cnn])).sum::<u64>();
        self.elements.iter().map(|element| taken(element)).max().unwrap_or(0)
    }

    /// CNNs connected by elements of J, or all of them if some memory stays in use while others run.
    fn groups(&self) -> Vec<Vec<usize>> {
        let mut links = petgraph::unionfind::UnionFind::<usize>::new(self.design_points.len());
        let all: Vec<usize> = (0..self.design_points.len()).collect();
        let has_state = self.design_points.iter().flatten().any(|design_point| design_point.state() > 0);
        for element in self.elements.iter().chain(has_state.then_some(&all)) {
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
            let bytes = |i: usize, v: usize| self.taken(element, group[i], v) as f64 * SCALE;
            let taken: Expression = (0..group.len()).map(|i| weighted(i, &|v| bytes(i, v))).sum();
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

/// The design points that are fast enough, and for which no other such design point is as good in memory, state and
/// speed. Sorted by memory.
fn front(design_points: &[DesignPoint], demand: &Demand) -> Vec<usize> {
    let is_met = |v: &usize| demand.is_met(design_points[*v].fps(), design_points[*v].latency());
    let mut order: Vec<usize> = (0..design_points.len()).filter(is_met).collect();
    order.sort_by(|a, b| {
        let key = |v: &usize| (design_points[*v].buffers, design_points[*v].period_ns);
        let (a_key, b_key) = (key(a), key(b));
        a_key.0.cmp(&b_key.0).then(a_key.1.total_cmp(&b_key.1)).then(a.cmp(b))
    });
    // What comes before takes no more memory, so a point gains nothing if one of those has no more state and is as fast.
    let mut best: Vec<(u64, f64)> = Vec::new();
    order.retain(|v| {
        let (state, period) = (design_points[*v].state(), design_points[*v].period_ns);
        let is_better = best.iter().all(|(least, fastest)| state < *least || period < *fastest);
        if is_better {
            best.retain(|(other, slower)| *other < state || *slower < period);
            best.push((state, period));
        }
        is_better
    });
    order
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use csdfc_network::LayerId;

    use crate::frame::execution::Execution;
    use crate::frame::request::{Request, RequestKind};
    use crate::objective::Figures;

    /// Design points of so many kB, time and kB that stay from hop to hop.
    fn design_points(raw: &[Vec<(u64, u32, u64)>]) -> Vec<Vec<DesignPoint>> {
        let execution = |state: u64| Execution {
            rows: Vec::new(),
            barriers: None,
            orders: Vec::new(),
            windows: Vec::new(),
            requests: vec![Request {
                tensor: LayerId(0),
                kind: RequestKind::Ring,
                consumer: None,
                half: None,
                ring_rows: 1,
                bytes: state * 1000,
                alignment: 4,
                live: (0, 0),
                partition: 0,
                touched: vec![0],
                pipelined: false,
                history: u64::from(state > 0),
                state: None,
                occupancy_profile: None,
            }],
            sharing: crate::frame::occupancy::AddressSharing::default(),
            one_by_one: Vec::new(),
        };
        let design_point = |(buffers, period, state): &(u64, u32, u64)| DesignPoint {
            name: String::new(),
            execution: execution(*state),
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
        let design_points =
            design_points(&[vec![(20, 5, 2), (10, 5, 2), (10, 5, 2), (30, 4, 2), (40, 4, 2), (50, 5, 1)]]);
        let selection = Selection::new(&design_points, vec![vec![0]], &[Demand::default()]);
        assert_eq!(selection.allowed, [[1, 3, 5]]);
        assert_eq!(selection.thresholds(), [50_000, 30_000, 10_000]);
    }

    proptest! {
        #[test]
        fn agrees_with_exhaustion(
            raw in prop::collection::vec(prop::collection::vec((1u64..60, 1u32..60, 0u64..30), 1..5), 1..4),
            has_state: bool,
            together in prop::collection::vec(0usize..3, 0..3),
            budget in 1u64..150_000,
        ) {
            let mut raw = raw;
            for (buffers, _, state) in raw.iter_mut().flatten() {
                *state = if has_state { *buffers.min(state) } else { 0 };
            }
            let design_points = design_points(&raw);
            let mut element: Vec<usize> = together.into_iter().filter(|cnn| *cnn < raw.len()).collect();
            element.sort_unstable();
            element.dedup();
            let elements: Vec<Vec<usize>> = (0..raw.len()).map(|cnn| vec![cnn]).chain([element]).collect();
            let selection = Selection::new(&design_points, elements.clone(), &vec![Demand::default(); raw.len()]);
            let arena = |choice: &[usize]| -> u64 {
                let taken = |e: &Vec<usize>| {
                    let points = choice.iter().zip(&design_points).map(|(v, points)| &points[*v]).enumerate();
                    points.map(|(cnn, point)| if e.contains(&cnn) { point.buffers } else { point.state() }).sum()
                };
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
