//! Somebody asks for the end.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use csdfc_select::stop::Stop;
use csdfc_select::{Answer, Problem, Quantity, Query, answer, front};

use crate::query;
use crate::traps::on_a_line;

/// How long the end may take on a busy machine, without optimisation.
const PATIENCE: Duration = Duration::from_secs(10);

/// Asks for the end after a while, and returns what was found and how late it came.
fn stopped<T>(after: Duration, search: impl FnOnce(Stop<'_>) -> T) -> (T, Duration) {
    let asked = AtomicBool::new(after.is_zero());
    thread::scope(|scope| {
        let asked_at = scope.spawn(|| {
            thread::sleep(after);
            asked.store(true, Ordering::Relaxed);
            Instant::now()
        });
        let found = search(Stop::by(&asked));
        let ended = Instant::now();
        let late =
            asked_at.join().map_or(Duration::ZERO, |asked_at| ended.saturating_duration_since(asked_at));
        (found, late)
    })
}

/// Selections that would take a minute or more.
fn queries() -> [Query; 3] {
    [
        Query { memory: Some(1234.567), ..query(Quantity::Time) },
        Query { time: Some(900.0 * 60.0), ..query(Quantity::Workspace) },
        Query { workspace: Some(80.0), memory: Some(1234.567), ..query(Quantity::Time) },
    ]
}

#[test]
fn what_was_found_by_then_is_kept() {
    let instance = on_a_line(60);
    for query in queries() {
        // A busy machine has nothing after a short while.
        let found = [200, 1000, 5000].into_iter().find_map(|after| {
            let (found, late) = stopped(Duration::from_millis(after), |stop| {
                let problem = Problem::new(&instance, false).unwrap().stopped_by(stop);
                answer(&problem, &query).unwrap()
            });
            assert!(late < PATIENCE, "{query:?}: {late:?}");
            match found {
                Answer::Met(found) => Some(found),
                other => {
                    assert_eq!(other, Answer::Stopped, "{query:?}");
                    None
                }
            }
        });
        let found = found.expect("a selection");
        let problem = Problem::new(&instance, false).unwrap();
        assert_eq!(problem.cost(&found.selection), Some(found.cost), "{query:?}");
        assert!(found.bound <= query.minimise.amount(&found.cost), "{query:?}");
        assert!(query.memory.is_none_or(|most| found.cost.memory <= problem.memories.budget(most)));
        assert!(query.time.is_none_or(|most| found.cost.time <= problem.times.budget(most)));
    }
}

#[test]
fn a_front_has_what_was_found_by_then() {
    let instance = on_a_line(60);
    for minimise in [Quantity::Time, Quantity::Workspace] {
        let found = [200, 1000, 5000].into_iter().find_map(|after| {
            let (found, late) = stopped(Duration::from_millis(after), |stop| {
                let problem = Problem::new(&instance, false).unwrap().stopped_by(stop);
                front(&problem, &query(minimise))
            });
            assert!(late < PATIENCE, "{minimise:?}: {late:?}");
            found.ok()
        });
        let found = found.expect("a front");
        let is_rising = found.points.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].1 > pair[1].1);
        assert!(!found.points.is_empty() && is_rising, "{:?}", found.points);
    }
}

#[test]
fn before_anything_is_found_there_is_no_answer() {
    let instance = on_a_line(60);
    for query in queries() {
        let (found, _) = stopped(Duration::ZERO, |stop| {
            let problem = Problem::new(&instance, false).unwrap().stopped_by(stop);
            (answer(&problem, &query), front(&problem, &query))
        });
        assert_eq!(found, (Ok(Answer::Stopped), Err(Answer::Stopped)), "{query:?}");
    }
}
