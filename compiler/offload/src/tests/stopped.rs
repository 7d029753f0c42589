//! Somebody asks for the end.

use std::sync::atomic::AtomicBool;

use super::problem;
use crate::bound::lower_bound;
use crate::optimise::{Budget, Effort, Stopped, best_heuristic, by_program, optimise, prove};
use crate::strategy::Groups;

/// The best heuristic is there from the beginning, and bounds hold.
#[test]
fn who_asks_at_once_has_a_heuristic() {
    let stop = AtomicBool::new(true);
    let effort = Effort { budget: Budget::Time(std::time::Duration::from_secs(600)), stop: Some(&stop) };
    let mut cut_short = 0;
    for (input, group) in [([6, 6], 3), ([6, 6], 4), ([9, 9], 5), ([40, 40], 4)] {
        let problem = problem(input, [3, 3], group, None);
        let duration = |groups: &Groups| problem.cost(groups).duration;
        let heuristic = duration(&best_heuristic(&problem).unwrap().groups);
        let mut answers = vec![optimise(&problem, effort, 1).unwrap()];
        answers.extend(prove(&problem, effort));
        answers.extend(by_program(&problem, effort));
        for answer in answers {
            let found = duration(&answer.strategy.groups);
            assert!(problem.admits(&problem.cost(&answer.strategy.groups)), "{input:?} {group}");
            assert!(lower_bound(&problem) <= answer.bound && answer.bound <= found, "{input:?} {group}");
            // No more than the first shapes of each kind were tried.
            assert!(
                found >= answer.bound && found <= 2 * heuristic,
                "{input:?} {group}: {found} {heuristic}"
            );
            let expected = (found > answer.bound).then_some(Stopped::Asked);
            assert_eq!(answer.stopped, expected, "{input:?} {group}");
            cut_short += usize::from(expected.is_some());
        }
    }
    assert!(cut_short > 2, "{cut_short}");
}
