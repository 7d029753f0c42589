//! Which evaluation is better than which.

use std::cmp::Ordering;

/// What a genome is worth.
#[derive(Debug, Clone, PartialEq)]
pub struct Evaluation {
    /// To be minimised. Not a number counts as worse than any number.
    pub objectives: Vec<f64>,
    /// How far constraints are violated; 0 if they are met.
    pub violation: f64,
}

impl Evaluation {
    /// One that violates no constraint.
    pub fn of(objectives: impl Into<Vec<f64>>) -> Self {
        Evaluation { objectives: objectives.into(), violation: 0.0 }
    }

    /// Whether constraints are met.
    pub fn is_feasible(&self) -> bool {
        self.violation <= 0.0
    }

    /// Whether this is better: it violates constraints less, or both meet them and this is no worse in any objective and
    /// better in one (Deb et al. 2002, definition 1).
    pub fn dominates(&self, other: &Evaluation) -> bool {
        match (self.is_feasible(), other.is_feasible()) {
            (true, true) => {
                let mut better = false;
                for (a, b) in self.objectives.iter().zip(&other.objectives) {
                    match order(*a, *b) {
                        Ordering::Greater => return false,
                        Ordering::Less => better = true,
                        Ordering::Equal => {}
                    }
                }
                better
            }
            (true, false) => true,
            (false, true) => false,
            (false, false) => order(self.violation, other.violation).is_lt(),
        }
    }
}

/// Numbers in their order, -0 as 0, and after them what is none.
pub(crate) fn order(a: f64, b: f64) -> Ordering {
    a.partial_cmp(&b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
}

/// The fronts of a population (Deb et al. 2002, fast non-dominated sort): those that none dominates, those that only the
/// former dominate, and so on. Indices, ascending within a front.
pub fn fronts(population: &[Evaluation]) -> Vec<Vec<usize>> {
    let count = population.len();
    let mut beaten = vec![Vec::new(); count];
    let mut beaters = vec![0usize; count];
    for i in 0..count {
        for j in 0..i {
            let (better, worse) = if population[i].dominates(&population[j]) {
                (i, j)
            } else if population[j].dominates(&population[i]) {
                (j, i)
            } else {
                continue;
            };
            beaten[better].push(worse);
            beaters[worse] += 1;
        }
    }
    let mut fronts = Vec::new();
    let mut front: Vec<usize> = (0..count).filter(|i| beaters[*i] == 0).collect();
    while !front.is_empty() {
        let mut next = Vec::new();
        for i in &front {
            for j in &beaten[*i] {
                beaters[*j] -= 1;
                if beaters[*j] == 0 {
                    next.push(*j);
                }
            }
        }
        next.sort_unstable();
        fronts.push(std::mem::replace(&mut front, next));
    }
    fronts
}

/// How lonely each member of a front is (Deb et al. 2002, crowding distance): the sides of the cuboid between its
/// neighbours, each by the range of its objective; infinite at the ends. In the order of `front`.
pub fn crowding(population: &[Evaluation], front: &[usize]) -> Vec<f64> {
    let mut distance = vec![0.0; front.len()];
    let objectives = front.first().map_or(0, |i| population[*i].objectives.len());
    for m in 0..objectives {
        let value = |at: usize| population[front[at]].objectives[m];
        let mut sorted: Vec<usize> = (0..front.len()).collect();
        sorted.sort_by(|a, b| order(value(*a), value(*b)).then(a.cmp(b)));
        let (first, last) = (sorted[0], sorted[sorted.len() - 1]);
        distance[first] = f64::INFINITY;
        distance[last] = f64::INFINITY;
        let range = value(last) - value(first);
        if range > 0.0 && range.is_finite() {
            for three in sorted.windows(3) {
                distance[three[1]] += (value(three[2]) - value(three[0])) / range;
            }
        }
    }
    distance
}
