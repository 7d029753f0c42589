//! Fronts of plans compared with each other.
//!
//! ```
//! use csdfc_plan::plan::ParetoPoint;
//! use csdfc_planner::search::compare::{dominates, hypervolume};
//!
//! let plan = |memory: u64, fps: f64| ParetoPoint {
//!     memory,
//!     fps: [("lenet5".into(), fps)].into(),
//!     choices: Default::default(),
//! };
//! let ours = [plan(1000, 50.0), plan(3000, 80.0)];
//! let theirs = [plan(2000, 40.0)];
//! assert!(dominates(&ours, &theirs) && !dominates(&theirs, &ours));
//! assert!(hypervolume(&ours, 4000) > hypervolume(&theirs, 4000));
//! ```

use std::collections::BTreeMap;

use csdfc_plan::plan::ParetoPoint;

/// Whether `ours` has, for each plan of `theirs`, a plan that takes no more memory and in which no CNN is slower.
pub fn dominates(ours: &[ParetoPoint], theirs: &[ParetoPoint]) -> bool {
    let as_fast = |ours: &ParetoPoint, theirs: &ParetoPoint| {
        theirs.fps.iter().all(|(cnn, fps)| ours.fps.get(cnn).is_some_and(|ours| ours >= fps))
    };
    let as_good =
        |theirs: &ParetoPoint| ours.iter().any(|ours| ours.memory <= theirs.memory && as_fast(ours, theirs));
    theirs.iter().all(as_good)
}

/// The hypervolume of plans. One axis is the total memory, up to `memory` bytes, and each CNN has an axis of frames per
/// second, from 0. The unit is bytes times frames per second, so that only ratios mean something.
pub fn hypervolume(plans: &[ParetoPoint], memory: u64) -> f64 {
    let point = |plan: &ParetoPoint| {
        let rates = plan.fps.values().map(|fps| -fps);
        std::iter::once(plan.memory as f64).chain(rates).collect::<Vec<f64>>()
    };
    let cnns = plans.first().map(|plan| &plan.fps).map_or(0, BTreeMap::len);
    let reference: Vec<f64> = std::iter::once(memory as f64).chain(std::iter::repeat_n(0.0, cnns)).collect();
    csdfc_ga::hypervolume(&plans.iter().map(point).collect::<Vec<_>>(), &reference)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plans(points: &[(u64, &[f64])]) -> Vec<ParetoPoint> {
        let names = ["a", "b"].map(str::to_owned);
        let plan = |(memory, fps): &(u64, &[f64])| ParetoPoint {
            memory: *memory,
            fps: names.iter().cloned().zip(fps.iter().copied()).collect(),
            choices: BTreeMap::new(),
        };
        points.iter().map(plan).collect()
    }

    #[test]
    fn fronts_beside_each_other() {
        for (ours, theirs, expected) in [
            (plans(&[(2, &[3.0]), (4, &[5.0])]), plans(&[(2, &[3.0]), (5, &[5.0])]), true),
            (plans(&[(2, &[3.0]), (4, &[5.0])]), plans(&[(3, &[4.0])]), false),
            (plans(&[(2, &[3.0])]), plans(&[(1, &[1.0])]), false),
            (plans(&[(2, &[3.0, 1.0]), (2, &[1.0, 3.0])]), plans(&[(2, &[2.0, 2.0])]), false),
            (plans(&[(2, &[3.0, 2.0])]), plans(&[(2, &[2.0, 2.0]), (3, &[3.0, 1.0])]), true),
            (Vec::new(), plans(&[(1, &[1.0])]), false),
            (plans(&[(1, &[1.0])]), Vec::new(), true),
        ] {
            assert_eq!(dominates(&ours, &theirs), expected, "{ours:?} {theirs:?}");
        }
    }

    #[test]
    fn volumes() {
        for (front, memory, expected) in [
            (plans(&[(2, &[3.0]), (4, &[5.0])]), 10, 6.0 * 5.0 + 2.0 * 3.0),
            (plans(&[(2, &[3.0]), (10, &[5.0])]), 10, 8.0 * 3.0),
            (plans(&[(7, &[2.0, 4.0])]), 10, 3.0 * 2.0 * 4.0),
            (Vec::new(), 10, 0.0),
        ] {
            assert!((hypervolume(&front, memory) - expected).abs() < 1e-9, "{front:?}");
        }
    }
}
