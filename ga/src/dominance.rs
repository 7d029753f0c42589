//! When an evaluation is better than another, and the fronts of a population.

use std::cmp::Ordering;

/// The value of a genome.
#[derive(Debug, Clone, PartialEq)]
pub struct Evaluation {
    /// The objectives, all minimised. NaN counts as worse than any number.
    pub objectives: Vec<f64>,
    /// By how much constraints are violated, in units of the caller's choice; 0 if they are met.
    pub violation: f64,
}

impl Evaluation {
    /// An evaluation that violates no constraint.
    pub fn new(objectives: impl Into<Vec<f64>>) -> Self {
        Evaluation { objectives: objectives.into(), violation: 0.0 }
    }

    /// Whether the constraints are met.
    pub fn is_feasible(&self) -> bool {
        self.violation <= 0.0
    }

    /// Whether this evaluation is better: it violates constraints less, or both meet them and this one is no worse in any
    /// objective and better in at least one (Deb et al. 2002, definition 1).
    ///
    /// ```
    /// use csdfc_ga::Evaluation;
    ///
    /// let [cheap, fast, slow] = [[1.0, 9.0], [4.0, 2.0], [4.0, 3.0]].map(Evaluation::new);
    /// assert!(fast.dominates(&slow));
    /// assert!(!fast.dominates(&cheap) && !cheap.dominates(&fast));
    /// let late = Evaluation { violation: 0.5, ..cheap };
    /// assert!(slow.dominates(&late));
    /// ```
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

/// The order of numbers, in which -0 equals 0, and NaN comes last.
pub(crate) fn order(a: f64, b: f64) -> Ordering {
    a.partial_cmp(&b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
}

/// The fronts of a population (Deb et al. 2002, fast non-dominated sort). The first front has the members that no other
/// dominates, the second those that only members of the first dominate, and so on. A front is a list of indices in
/// ascending order. It takes O(k · n²) time and O(n²) memory for n members and k objectives.
///
/// ```
/// use csdfc_ga::{Evaluation, fronts};
///
/// let population = [[1.0, 4.0], [2.0, 2.0], [3.0, 3.0], [4.0, 1.0], [4.0, 4.0]].map(Evaluation::new);
/// assert_eq!(fronts(&population), [vec![0, 1, 3], vec![2], vec![4]]);
/// ```
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

/// The crowding distance of each member of a front, in the order of `front` (Deb et al. 2002). It is the sum of the
/// sides of the cuboid between the member's neighbours, each side divided by the range of its objective. It is infinite
/// for the members at the ends of an objective. It takes O(k · n · log n) time for n members and k objectives.
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
