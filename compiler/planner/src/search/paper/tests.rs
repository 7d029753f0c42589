use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;

use csdfc_input::app::load::load;
use csdfc_input::app::resolve::resolve;
use csdfc_input::app::{Origin, spec};
use csdfc_input::device::DeviceProfile;

use super::*;
use crate::cost::timing::Timing;
use crate::frame::task;
use crate::objective::Objective;

/// Two small CNNs, one after the other.
pub(super) const PAIR: &str = r#"(name: "pair", storage: edges,
    cnns: [(name: "a", model: "builtin:paper_cnn1"), (name: "b", model: "builtin:lenet5")],
    search: (method: paper, population: 24, generations: 4))"#;

/// Looks at an application as a search does.
pub(super) fn on(text: &str, look: impl FnOnce(&PlanningProblem<'_>)) {
    let origin = Origin { name: "app.ron".into(), text: Some(text.into()), replaced: Vec::new() };
    let spec = spec::parse(&origin).unwrap();
    let application = resolve(&spec, &origin, Path::new(""), &mut load).unwrap();
    let (tasks, elements) = (task::tasks(&application), task::elements(&application));
    let device = DeviceProfile::find("generic", Path::new("")).unwrap();
    let timings = Timing::new(&application, &tasks, &elements, &device).unwrap();
    look(&PlanningProblem {
        application: &application,
        objective: &Objective::new(&application),
        tasks: &tasks,
        timings: &timings,
        elements: &elements,
        parameters: 1000,
        sharing: BufferSharing::Application,
        without: &[],
    });
}

fn point(chromosome: &[bool], memory: u64, fps: [f64; 2]) -> Point {
    let latency_ns = fps.iter().map(|fps| (1e9 / fps) as u64).collect();
    Point { chromosome: chromosome.to_vec(), memory, fps: fps.to_vec(), latency_ns }
}

/// Points of the same memory differ in what the CNNs have of it.
#[test]
fn one_point_stands_for_equal_ones() {
    let points = vec![
        point(&[true, true], 100, [10.0, 5.0]),
        point(&[true, false], 120, [10.0, 10.0]),
        point(&[false, true], 100, [10.0, 5.0]),
        point(&[false, true], 120, [10.0, 4.0]),
        point(&[false, false], 100, [5.0, 10.0]),
        point(&[true, true], 90, [1.0, 1.0]),
    ];
    let expected = [&points[5], &points[2], &points[4], &points[1]].map(Clone::clone);
    assert_eq!(undominated(points), expected);
}

#[test]
fn the_fastest_is_so_for_all_cnns() {
    let points =
        [point(&[true], 100, [10.0, 4.0]), point(&[false], 110, [6.0, 8.0]), point(&[false], 80, [5.0, 4.0])];
    on(PAIR, |problem| {
        for (limit, expected) in [(None, 1), (Some(105), 0), (Some(99), 2)] {
            let objective = &Objective { limit, least: Least::Time, ..problem.objective.clone() };
            let problem = &PlanningProblem { objective, ..*problem };
            assert_eq!(choose(problem, &points), (Some(&points[expected]), None));
        }
    });
}

/// If there is a memory limit and some plan meets it, the search reports the best rates within it.
#[test]
fn a_shortfall_says_what_can_be_had() {
    let points = [point(&[true], 100, [10.0, 4.0]), point(&[false], 80, [5.0, 4.0])];
    let text = PAIR.replace("search:", "constraints: (fps: {\"b\": 5}), search:");
    on(&text, |problem| {
        for (limit, in_memory) in
            [(None, None), (Some(100), Some(10.0)), (Some(99), Some(5.0)), (Some(79), None)]
        {
            let objective = &Objective { limit, ..problem.objective.clone() };
            let (least, shortfall) = choose(&PlanningProblem { objective, ..*problem }, &points);
            let shortfall = shortfall.unwrap();
            assert_eq!(least, Some(&points[1]));
            assert_eq!(shortfall.rates_in_memory.map(|rates| rates["a"].fps), in_memory, "{limit:?}");
            assert_eq!((shortfall.least_memory, shortfall.memory_at_rates), (Some(80), None));
            assert_eq!(shortfall.best_rates["a"].fps, 10.0);
        }
    });
}

#[test]
fn an_error_of_an_evaluation_is_that_of_the_search() {
    on(PAIR, |problem| {
        let mut tasks = problem.tasks.to_vec();
        let backwards = tasks[1].partitions[0].layers.iter().rev().map(|layer| vec![*layer]).collect();
        tasks[1].partitions[0].steps = Some(backwards);
        let problem = PlanningProblem { tasks: &tasks, sharing: BufferSharing::Printed, ..*problem };
        let error = front(&problem, &[], &Watch::unwatched()).unwrap_err();
        assert!(matches!(error, csdf::Error::SegmentOrder { .. }), "{error}");
    });
}

/// A search that must end at once returns its starts.
#[test]
fn what_is_known_is_never_lost() {
    let stop = AtomicBool::new(true);
    on(PAIR, |problem| {
        let watch = Watch { stop: &stop, ..Watch::unwatched() };
        let chromosomes = Chromosomes::new(problem, &watch);
        let known: Vec<bool> = (0..chromosomes.len()).map(|gene| gene % 2 == 0).collect();
        let found = front(problem, std::slice::from_ref(&known), &watch).unwrap();
        let (starts, _) =
            starts::starts(problem.tasks, &chromosomes, problem.application.search.population, None).unwrap();
        let begun = std::iter::once(&known).chain(starts.iter().take(IN_A_HURRY));
        let points = begun.map(|chromosome| chromosomes.point(chromosome, Effort::Final).unwrap());
        assert_eq!(found.points, undominated(points.collect()));
        assert_eq!(found.stopped, Stopped::Asked);
    });
}

/// The last that is told is what the search comes to.
#[test]
fn the_watcher_is_told_how_far_it_is() {
    on(PAIR, |problem| {
        let told = Mutex::new(Vec::new());
        let watch = Watch {
            progress: &|p| told.lock().unwrap().push((p.of.to_owned(), p.evaluations, p.front, p.least)),
            budget: Budget::Evaluations(100),
            ..Watch::unwatched()
        };
        let found = front(problem, &[], &watch).unwrap();
        let told = told.into_inner().unwrap();
        let (of, evaluations, points, least) = told.last().unwrap();
        assert_eq!((of.as_str(), *evaluations), ("pair", found.evaluations));
        assert!(told.iter().all(|(_, evaluations, ..)| *evaluations <= found.evaluations));
        // The memory is that of a sketch, which the final placement may still lower.
        assert!(*points > 1 && least + problem.parameters >= found.points[0].memory);
    });
}
