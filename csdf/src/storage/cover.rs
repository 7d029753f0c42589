//! The cheapest values that break at least one limit of each conflict.
//!
//! A conflict says that some variable of a set has to reach its threshold. Conflicts that share no variable are
//! independent. Each connected set of conflicts is solved by branch and bound. The search branches on the literals of
//! the conflict with the fewest ways out, and each branch forbids the literals of the branches before it. The bound is
//! a feasible dual: every conflict pays the cost of its cheapest way out, less the amount that has already been paid
//! for that variable. The time is exponential in the number of connected conflicts at worst.

use crate::Error;
use crate::budget::Meter;

/// A quantity with a lower bound and a price.
#[derive(Debug, Clone)]
pub(crate) struct Variable {
    pub(crate) low: u64,
    /// Cost of one more unit.
    pub(crate) cost: u64,
}

/// At least one of these variables is at least as great as the number with it.
pub(crate) type Clause = Vec<(usize, u64)>;

/// Variables and conflicts, and the optimum of each connected set that has not changed since.
pub(crate) struct Cover {
    pub(crate) variables: Vec<Variable>,
    clauses: Vec<Clause>,
    groups: Vec<Group>,
    /// Group of each variable that occurs in a conflict.
    group_of: Vec<Option<usize>>,
}

#[derive(Default)]
struct Group {
    variables: Vec<usize>,
    clauses: Vec<usize>,
    /// Values of `variables`: the best known.
    values: Vec<u64>,
    /// No values cost less beyond the lower bounds.
    bound: u128,
    /// Whether `values` are for all `clauses`, and cost no more than `bound`.
    solved: bool,
}

impl Cover {
    pub(crate) fn new(variables: Vec<Variable>) -> Cover {
        let group_of = vec![None; variables.len()];
        Cover { variables, clauses: Vec::new(), groups: Vec::new(), group_of }
    }

    /// Adds a conflict whose thresholds lie above the lower bounds.
    pub(crate) fn add(&mut self, clause: Clause) {
        let index = self.clauses.len();
        let mut group = Group { clauses: vec![index], ..Group::default() };
        for &(variable, _) in &clause {
            match self.group_of[variable] {
                None => group.variables.push(variable),
                Some(other) => {
                    // Merged already if it is empty.
                    let other = std::mem::take(&mut self.groups[other]);
                    group.variables.extend(other.variables);
                    group.clauses.extend(other.clauses);
                    group.bound += other.bound;
                }
            }
        }
        group.variables.sort_unstable();
        group.variables.dedup();
        group.clauses.sort_unstable();
        for &variable in &group.variables {
            self.group_of[variable] = Some(self.groups.len());
        }
        self.groups.push(group);
        self.clauses.push(clause);
    }

    /// The least cost beyond the lower bounds as far as it is proven.
    pub(crate) fn bound(&self) -> u128 {
        self.groups.iter().map(|group| group.bound).sum()
    }

    /// Values of least cost.
    pub(crate) fn solve(&mut self, meter: &mut Meter) -> Result<Vec<u64>, Error> {
        let mut values: Vec<u64> = self.variables.iter().map(|variable| variable.low).collect();
        for group in &mut self.groups {
            if !group.solved {
                let clauses = group.clauses.iter().map(|&clause| self.clauses[clause].as_slice()).collect();
                let mut branching = Branching::new(&self.variables, clauses, &group.variables);
                let cost = branching.search(group.bound, meter)?;
                group.values =
                    group.variables.iter().map(|&variable| branching.best_values[variable]).collect();
                (group.bound, group.solved) = (cost, true);
            }
            for (&variable, &value) in group.variables.iter().zip(&group.values) {
                values[variable] = value;
            }
        }
        Ok(values)
    }
}

struct Branching<'c> {
    variables: &'c [Variable],
    clauses: Vec<&'c [(usize, u64)]>,
    values: Vec<u64>,
    /// Each value stays below this.
    limits: Vec<u64>,
    /// What to restore: variable, value, limit.
    trail: Vec<(usize, u64, u64)>,
    cost: u128,
    best: u128,
    best_values: Vec<u64>,
    paid: Vec<u128>,
    members: Vec<usize>,
}

/// A conflict being branched on.
struct Branch {
    literals: Vec<(usize, u64)>,
    /// The literal that holds in the present branch.
    at: usize,
    mark: usize,
}

impl<'c> Branching<'c> {
    fn new(variables: &'c [Variable], clauses: Vec<&'c [(usize, u64)]>, members: &[usize]) -> Branching<'c> {
        let values: Vec<u64> = variables.iter().map(|variable| variable.low).collect();
        Branching {
            variables,
            clauses,
            limits: vec![u64::MAX; values.len()],
            trail: Vec::new(),
            cost: 0,
            best: u128::MAX,
            best_values: values.clone(),
            values,
            paid: vec![0; variables.len()],
            members: members.to_vec(),
        }
    }

    /// The least cost, which is known to be at least `bound`.
    fn search(&mut self, bound: u128, meter: &mut Meter) -> Result<u128, Error> {
        let mut stack: Vec<Branch> = Vec::new();
        loop {
            meter.spend(self.clauses.len() as u64)?;
            match self.next_branch() {
                Some(literals) if !literals.is_empty() => {
                    stack.push(Branch { literals, at: 0, mark: self.trail.len() });
                }
                found => {
                    if found.is_some() && self.cost < self.best {
                        self.best = self.cost;
                        self.best_values.clone_from(&self.values);
                    }
                    if self.best <= bound {
                        return Ok(self.best);
                    }
                    while stack.last().is_some_and(|branch| branch.at + 1 == branch.literals.len()) {
                        stack.pop();
                    }
                    match stack.last_mut() {
                        Some(branch) => branch.at += 1,
                        None => return Ok(self.best),
                    }
                }
            }
            if let Some(branch) = stack.last() {
                self.undo(branch.mark);
                for &(variable, threshold) in &branch.literals[..branch.at] {
                    self.set(variable, self.values[variable], self.limits[variable].min(threshold));
                }
                let (variable, threshold) = branch.literals[branch.at];
                self.set(variable, threshold, self.limits[variable]);
            }
        }
    }

    /// The literals to branch on, those of an unsatisfied conflict, or an empty list if all conflicts are satisfied.
    /// `None` if no better values can be found from here.
    fn next_branch(&mut self) -> Option<Vec<(usize, u64)>> {
        let mut open: Vec<(u128, usize, usize)> = Vec::new();
        let mut index = 0;
        while index < self.clauses.len() {
            let clause = self.clauses[index];
            index += 1;
            if clause.iter().any(|&(variable, threshold)| self.values[variable] >= threshold) {
                continue;
            }
            let mut ways = clause.iter().filter(|&&(variable, threshold)| self.limits[variable] > threshold);
            let (first, second) = (ways.next(), ways.next());
            let &(variable, threshold) = first?;
            if second.is_none() {
                self.set(variable, threshold, self.limits[variable]);
                // Conflicts that have been collected may be satisfied now.
                index = 0;
                open.clear();
                continue;
            }
            let cheapest = self.cheapest(clause)?;
            open.push((cheapest, 2 + ways.count(), index - 1));
        }
        if self.cost >= self.best {
            return None;
        }
        open.sort_unstable();
        for &variable in &self.members {
            self.paid[variable] = 0;
        }
        let mut bound = self.cost;
        for &(_, _, index) in &open {
            let clause = self.clauses[index];
            let unpaid = |(variable, threshold): (usize, u64)| {
                self.price(variable, threshold).saturating_sub(self.paid[variable])
            };
            let ways = || clause.iter().copied().filter(|way| self.limits[way.0] > way.1);
            let pays = ways().map(unpaid).min().unwrap_or(0);
            bound += pays;
            if pays > 0 {
                for &(variable, _) in clause {
                    self.paid[variable] += pays;
                }
            }
        }
        if bound >= self.best {
            return None;
        }
        let chosen = open.iter().min_by_key(|&&(cheapest, ways, index)| (ways, u128::MAX - cheapest, index));
        let mut literals: Vec<(usize, u64)> = chosen.map_or_else(Vec::new, |&(_, _, index)| {
            let ways = self.clauses[index].iter().copied();
            ways.filter(|&(variable, threshold)| self.limits[variable] > threshold).collect()
        });
        literals.sort_by_key(|&(variable, threshold)| (self.price(variable, threshold), variable));
        Some(literals)
    }

    fn cheapest(&self, clause: &[(usize, u64)]) -> Option<u128> {
        let ways = clause.iter().filter(|&&(variable, threshold)| self.limits[variable] > threshold);
        ways.map(|&(variable, threshold)| self.price(variable, threshold)).min()
    }

    /// The cost of raising a variable from its present value.
    fn price(&self, variable: usize, threshold: u64) -> u128 {
        u128::from(threshold.saturating_sub(self.values[variable]))
            * u128::from(self.variables[variable].cost)
    }

    fn set(&mut self, variable: usize, value: u64, limit: u64) {
        self.trail.push((variable, self.values[variable], self.limits[variable]));
        self.cost += self.price(variable, value);
        (self.values[variable], self.limits[variable]) = (value, limit);
    }

    fn undo(&mut self, mark: usize) {
        while self.trail.len() > mark {
            if let Some((variable, value, limit)) = self.trail.pop() {
                let lowered = u128::from(self.values[variable] - value);
                self.cost -= lowered * u128::from(self.variables[variable].cost);
                (self.values[variable], self.limits[variable]) = (value, limit);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Budget;
    use proptest::prelude::*;

    /// The least cost, by trying every combination of values.
    fn by_hand(variables: &[Variable], clauses: &[Clause]) -> u128 {
        let mut best = u128::MAX;
        let mut values: Vec<u64> = variables.iter().map(|variable| variable.low).collect();
        loop {
            if clauses.iter().all(|clause| clause.iter().any(|&(variable, at)| values[variable] >= at)) {
                let cost = values.iter().zip(variables);
                best = best.min(cost.map(|(value, of)| u128::from((value - of.low) * of.cost)).sum());
            }
            let Some(place) = (0..values.len()).find(|&place| values[place] < 6) else { return best };
            values[place] += 1;
            (0..place).for_each(|before| values[before] = variables[before].low);
        }
    }

    proptest! {
        #[test]
        fn least_cost(
            lows in prop::collection::vec((0u64..3, 1u64..4), 1..5),
            clauses in prop::collection::vec(prop::collection::vec((0usize..5, 1u64..4), 1..4), 0..9),
        ) {
            let variables: Vec<Variable> =
                lows.iter().map(|&(low, cost)| Variable { low, cost }).collect();
            let clauses: Vec<Clause> = clauses
                .iter()
                .map(|clause| {
                    let mut seen = Vec::new();
                    let place = |variable: usize| variable % variables.len();
                    clause.iter().for_each(|&(variable, above)| {
                        if seen.iter().all(|&(before, _)| before != place(variable)) {
                            seen.push((place(variable), variables[place(variable)].low + above));
                        }
                    });
                    seen
                })
                .collect();
            let mut cover = Cover::new(variables.clone());
            let mut meter = Meter::new(&Budget::default());
            // Solved in between, as the search does.
            for (index, clause) in clauses.iter().enumerate() {
                cover.add(clause.clone());
                let values = cover.solve(&mut meter).unwrap();
                let so_far = &clauses[..=index];
                prop_assert!(so_far.iter().all(|clause| clause.iter().any(|&(at, least)| values[at] >= least)));
                let cost = values.iter().zip(&variables);
                let cost: u128 = cost.map(|(value, of)| u128::from((value - of.low) * of.cost)).sum();
                prop_assert_eq!(cost, by_hand(&variables, so_far));
                prop_assert_eq!(cost, cover.bound());
            }
        }
    }
}
