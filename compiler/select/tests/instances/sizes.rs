//! Instances of the size of GoogLeNet: all answers are proven, and go together.

use csdfc_select::{Answer, Chosen, Instance, Method, Problem, Quantity, Query, answer, front};

use crate::draw::random;
use crate::large::googlenet;
use crate::query;

fn met(problem: &Problem<'_>, query: &Query) -> Chosen {
    match answer(problem, query) {
        Ok(Answer::Met(chosen)) => chosen,
        other => unreachable!("{query:?}: {other:?}"),
    }
}

fn of_size(pools: bool, variables: usize) {
    let text = googlenet(pools, random(if pools { 2 } else { 1 }));
    let instance = Instance::parse(&text).unwrap();
    let all: usize =
        instance.layers.iter().filter(|layer| layer.options.len() > 3).map(|l| l.options.len()).sum();
    assert_eq!(all, variables);
    let problem = Problem::new(&instance, false).unwrap();
    let kib = |whole: u64| problem.memories.value(whole);
    let fastest = met(&problem, &query(Quantity::Time));
    assert_eq!(fastest.bound, fastest.cost.time);
    let by_program = met(&problem, &Query { method: Method::Program, ..query(Quantity::Time) });
    assert_eq!(by_program.cost.time, fastest.cost.time);
    let smallest = met(&problem, &query(Quantity::Memory));
    let (mut last, mut greedy_loses) = (u64::MAX, 0);
    for share in [0.0, 0.1, 0.3, 0.6, 0.8, 1.0] {
        let memory = kib(smallest.cost.memory) * (1.0 - share) + kib(fastest.cost.memory) * share;
        let limited = Query { memory: Some(memory), ..query(Quantity::Time) };
        let found = met(&problem, &limited);
        assert!(kib(found.cost.memory) <= memory * (1.0 + 1e-12) && found.cost.time <= last);
        assert_eq!(found.bound, found.cost.time, "{share}");
        last = found.cost.time;
        // The other way round.
        let time = Some(problem.times.value(found.cost.time));
        let inverse = met(&problem, &Query { time, ..query(Quantity::Memory) });
        assert_eq!((inverse.cost, inverse.bound), (found.cost, found.cost.memory), "{share}");
        if let Ok(Answer::Met(greedy)) = answer(&problem, &Query { method: Method::Greedy, ..limited }) {
            assert!(greedy.cost.time >= found.cost.time);
            greedy_loses += usize::from(greedy.cost.time > found.cost.time);
        }
    }
    assert!(greedy_loses > 2);
    let workspaces = front(&problem, &query(Quantity::Workspace)).unwrap();
    assert!(workspaces.complete && workspaces.points.len() > 10);
    assert!(workspaces.points.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].1 > pair[1].1));
    assert_eq!(workspaces.points.last().unwrap().1, fastest.cost.time);
}

#[test]
fn googlenet_is_solved() {
    of_size(false, 57 * 57);
}

#[test]
fn the_size_of_taso_is_solved() {
    of_size(true, 3990);
}
