//! The smallest capacities that meet a goal.
//!
//! The question is that of Stuijk, Geilen and Basten (2006), who explore storage distributions step by step. The method,
//! by conflicts, is ours.
//!
//! If capacities miss the goal, there is a reason: a cycle of firings that wait for each other. The cycle is too slow,
//! or its firings never start. It exists as long as the channels whose space it waits for stay within certain limits.
//! So any capacities that meet the goal must exceed one of these limits. Such a set of limits is a *conflict*.
//!
//! ```text
//!    cheapest capacities that break all known conflicts (cover) ---> do they serve? -- yes --> the optimum
//!         ^                                                               |
//!         |                                                               no
//!         +--- made as strong as it can be (strengthen) <--- a conflict (conflict)
//! ```
//!
//! Nothing is decomposed in advance. Conflicts that share no channel are independent, and the cover notices. The
//! conflicts go into the answer, where [`verify_storage`](crate::verify_storage) checks them.

mod conflict;
mod cover;
mod distribution;
mod problem;
mod search;
mod strengthen;

use crate::budget::Meter;
use crate::layout::FiringOrder;
use crate::throughput::cycle_ratio::WaitGraph;
use crate::{ActorId, Budget, Certificate, Error, Graph, Ratio, Step, Throughput, compress, sequential};
use conflict::Target;
use problem::SizingProblem;
use search::{Best, CapacitySearch};

pub use distribution::{Goal, Pareto, Storage, StorageOptions, Unit};

/// The distribution with the smallest total that serves `goal`.
///
/// The problem is NP-hard, so the search has a budget. When the budget ends, this is the best distribution that was
/// found, together with a lower bound. Each step of the search solves for the cheapest capacities that break all known
/// conflicts, and times one execution, in O(dependencies between firings) for each relaxation.
///
/// ```
/// use csdf::{Actor, Channel, Goal, Graph, Rates, Reader, StorageOptions, smallest, verify_storage};
///
/// // a makes 2 tokens per firing, b reads 3: 3 firings of a and 2 of b in an iteration.
/// let mut graph = Graph::new();
/// let [a, b] = [graph.add_actor(Actor::new("a", 1))?, graph.add_actor(Actor::new("b", 1))?];
/// let reader = Reader::consuming(b, Rates::constant(1, 3));
/// graph.add_channel(Channel::new("ab", a, Rates::constant(1, 2), vec![reader]))?;
///
/// let options = StorageOptions::default();
/// let runs = smallest(&graph, Goal::DeadlockFree, &options)?;
/// let fast = smallest(&graph, Goal::Maximal, &options)?;
/// // The graph runs with 2 + 3 − gcd(2, 3) tokens. It needs more to run at full speed: 3 units of time an iteration.
/// assert_eq!((runs.total, runs.proven), (4, true));
/// assert!(fast.total > runs.total);
/// assert_eq!(fast.throughput.to_string(), "1/3");
/// // Both carry a proof that a verifier can check.
/// verify_storage(&graph, Goal::DeadlockFree, &options, &runs)?;
/// verify_storage(&graph, Goal::Maximal, &options, &fast)?;
/// # Ok::<(), csdf::Error>(())
/// ```
///
/// # Errors
/// [`Error::Deadlock`] if no capacities serve, because the channels lack initial tokens or because of the capacities
/// that channels state; [`Error::OutOfReach`] for a throughput above the maximal one; [`Error::Granularity`];
/// [`Error::Exhausted`] if the budget ends before any distribution is found; those of
/// [`throughput`](crate::throughput()) and of [`Expanded::new`](crate::Expanded::new).
pub fn smallest(graph: &Graph, goal: Goal, options: &StorageOptions) -> Result<Storage, Error> {
    let mut meter = Meter::new(&options.budget);
    let problem = SizingProblem::new(graph, options, &mut meter)?;
    let target = target(&problem, goal)?;
    let mut search = CapacitySearch::new(&problem)?;
    let best = search.optimum(target, &mut meter)?;
    storage(&search, target, best)
}

fn target(problem: &SizingProblem, goal: Goal) -> Result<Target, Error> {
    match goal {
        Goal::DeadlockFree => Ok(Target::Live),
        Goal::Maximal => Ok(Target::Within(problem.floor)),
        Goal::AtLeast(ratio) => match ratio.inverse() {
            None => Ok(Target::Live),
            Some(period) if period >= problem.floor => Ok(Target::Within(period)),
            Some(_) => Err(Error::OutOfReach { goal: ratio, maximal: Throughput::of_period(problem.floor) }),
        },
    }
}

/// A result of the search, completed to a [`Storage`].
fn storage(search: &CapacitySearch, target: Target, best: Best) -> Result<Storage, Error> {
    let problem = search.problem;
    let capacities = problem.all_capacities(&best.values);
    let total = problem.total(&capacities)?;
    // The bound does not include the fixed capacities.
    let bound = total - u64::try_from(best.cost - best.bound).unwrap_or(total);
    // The answer is known. The work that completes it must not be cut off.
    let mut meter = Meter::new(&Budget { work: u64::MAX, time: None, stop: None });
    let values: Vec<Option<u64>> = best.values.iter().copied().map(Some).collect();
    let limits = problem.spread(&values);
    let run = problem.layout.run(&problem.scope, &limits, &mut meter)?;
    let period = if target == Target::Within(problem.floor) {
        problem.floor
    } else {
        let constraints = WaitGraph::new(&problem.layout, &problem.scope, &limits, &run.order)?;
        constraints.greatest(problem.floor, &mut meter)?.map_or(problem.floor, |(ratio, _)| ratio)
    };
    let certificate = Certificate {
        conflicts: search.evidence(&mut meter)?,
        schedule: schedule(problem, &capacities, &run),
    };
    let throughput = Throughput::of_period(period);
    Ok(Storage { capacities, total, bound, proven: bound == total, throughput, certificate })
}

/// An order of firings within the capacities. The order on demand is preferred, since its loops are short. If it does
/// not fit, the order is that of the search.
fn schedule(problem: &SizingProblem, capacities: &[u64], run: &FiringOrder) -> Vec<Step> {
    let all = vec![problem.graph.actor_ids().collect()];
    if let Ok(execution) = sequential(problem.graph, &all) {
        let mut both = execution.capacities.iter().zip(capacities);
        if both.all(|(used, capacity)| used <= capacity) {
            return compress(&execution.firings);
        }
    }
    let actor = |number: &u32| ActorId(problem.scope.firing(*number as usize).0 as u32);
    compress(&run.order.iter().map(actor).collect::<Vec<_>>())
}

/// All trade-offs between the total of the capacities and the throughput, from the smallest total that is deadlock-free
/// to the smallest that achieves the maximal throughput (the storage space of Stuijk, Geilen and Basten,
/// "Throughput-buffering trade-off exploration for cyclo-static and synchronous dataflow graphs", 2008). It takes about
/// one search like that of [`smallest`] for each point. All searches share the conflicts and the budget.
///
/// ```
/// use csdf::{Actor, Channel, Graph, Rates, Reader, StorageOptions, pareto};
///
/// // The window of a 5×5 convolution over 32 rows.
/// let mut graph = Graph::new();
/// let [l1, l2] = [graph.add_actor(Actor::new("l1", 32))?, graph.add_actor(Actor::new("l2", 32))?];
/// let window = Reader { actor: l2, acquire: "3,29*1,2*0".parse()?, release: "2*0,29*1,3".parse()? };
/// graph.add_channel(Channel::new("rows", l1, Rates::constant(32, 1), vec![window]))?;
///
/// let front = pareto(&graph, &StorageOptions::default())?;
/// assert!(front.complete);
/// let points: Vec<_> = front.points.iter().map(|point| (point.total, point.throughput.to_string())).collect();
/// assert_eq!(points, [(5, "1/60".to_string()), (6, "1/32".to_string())]);
/// # Ok::<(), csdf::Error>(())
/// ```
///
/// # Errors
/// Those of [`smallest`].
pub fn pareto(graph: &Graph, options: &StorageOptions) -> Result<Pareto, Error> {
    let mut meter = Meter::new(&options.budget);
    let problem = SizingProblem::new(graph, options, &mut meter)?;
    let mut search = CapacitySearch::new(&problem)?;
    let mut points: Vec<Storage> = Vec::new();
    let mut target = Target::Live;
    loop {
        let best = match search.optimum(target, &mut meter) {
            Err(Error::Exhausted) if !points.is_empty() => return Ok(Pareto { points, complete: false }),
            best => best?,
        };
        let point = storage(&search, target, best)?;
        let proven = point.proven;
        let period = match point.throughput {
            Throughput::Finite(ratio) => ratio.inverse().unwrap_or(Ratio::ZERO),
            Throughput::Unbounded => Ratio::ZERO,
        };
        // This point is as small and faster, so the point before is none of the front. But its bound on the total still
        // holds.
        match points.last_mut() {
            Some(last) if last.total == point.total => {
                last.capacities = point.capacities;
                last.throughput = point.throughput;
                last.certificate.schedule = point.certificate.schedule;
            }
            _ => points.push(point),
        }
        if !proven || period <= problem.floor {
            return Ok(Pareto { points, complete: proven });
        }
        target = Target::Below(period);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::graph;
    use crate::verify_storage;

    fn check(text: &str, goal: Goal, capacities: &[u64], throughput: &str) {
        let (graph, options) = (graph(text), StorageOptions::default());
        let storage = smallest(&graph, goal, &options).unwrap();
        assert_eq!(verify_storage(&graph, goal, &options, &storage), Ok(()));
        assert!(storage.proven, "{text}");
        assert_eq!(storage.total, capacities.iter().sum::<u64>(), "{text} {storage:?}");
        assert_eq!(storage.capacities, capacities, "{text} {goal:?}");
        assert_eq!(storage.throughput.to_string(), throughput, "{text} {goal:?}");
    }

    fn ratio(text: &str) -> Goal {
        Goal::AtLeast(text.parse().unwrap())
    }

    #[test]
    fn pairs() {
        // Minakova and Stefanov 2022, section 2.5.
        let pair = "l1:32 l2:32  l1 1 > l2 3,29*1,2*0/2*0,29*1,3";
        check(pair, Goal::DeadlockFree, &[5], "1/60");
        check(pair, Goal::Maximal, &[6], "1/32");
        check("a:3 b:2  a 6,1,1 > b 4,4", Goal::DeadlockFree, &[6], "1/5");
    }

    #[test]
    fn example_of_stuijk() {
        let example = "a:1@1 b:1@2 c:1@2  a 2 > b 3  b 1 > c 2";
        check(example, Goal::DeadlockFree, &[4, 2], "1/7");
        check(example, ratio("1/7"), &[4, 2], "1/7");
        check(example, ratio("1/6"), &[6, 2], "1/6");
        check(example, ratio("1/5"), &[6, 3], "1/5");
        check(example, Goal::Maximal, &[7, 3], "1/4");
        let error = smallest(&graph(example), ratio("1/3"), &StorageOptions::default()).unwrap_err();
        assert_eq!(error.to_string(), "a throughput of 1/3 is out of reach: the most is 1/4");
        let pareto = pareto(&graph(example), &StorageOptions::default()).unwrap();
        assert!(pareto.complete);
        let points: Vec<String> =
            pareto.points.iter().map(|point| format!("{} {}", point.total, point.throughput)).collect();
        assert_eq!(points, ["6 1/7", "8 1/6", "9 1/5", "10 1/4"]);
    }

    #[test]
    fn skips() {
        let skip = "x:32 a:32 b:32  x 1 > a 2,30*1,0  a 1 > b 2,30*1,0  x 1 > b 1";
        let total = |goal| smallest(&graph(skip), goal, &StorageOptions::default()).unwrap();
        let (least, fastest) = (total(Goal::DeadlockFree), total(Goal::Maximal));
        assert_eq!((least.total, least.proven), (7, true), "{least:?}");
        assert_eq!((fastest.total, fastest.proven), (11, true), "{fastest:?}");
    }

    #[test]
    fn channels_that_do_not_count() {
        fn check(text: &str, capacities: &[u64], total: u64) {
            let (graph, options) = (graph(text), StorageOptions::default());
            let storage = smallest(&graph, Goal::Maximal, &options).unwrap();
            assert_eq!((storage.capacities.as_slice(), storage.total), (capacities, total), "{text}");
            assert_eq!(verify_storage(&graph, Goal::Maximal, &options, &storage), Ok(()), "{text}");
        }
        check("a:1  a 1 > a 1 +2", &[3], 0);
        // The fourth firing starts while the third, which frees the first token of the channel, is under way.
        check("a:3@1,0,3^2  a 1,0,0 > a 1,0,0/0,0,1 +1", &[3], 0);
        check("a:1 b:1  a 1 > a 1 +1  a 1 > b 1", &[2, 2], 2);
        // The producer and another actor read it, so that it counts.
        check("a:1 b:1  a 1 > a 1 | b 1 +1", &[2], 2);
        check("a:1 b:1  a 1 > b 1  a 0 > b 0 +4", &[2, 4], 6);
    }

    #[test]
    fn capacities_that_channels_state() {
        let example = graph("a:1@1 b:1@2 c:1@2  a 2 > b 3  b 1 > c 2");
        let mut stated = Graph::new();
        for actor in example.actors() {
            stated.add_actor(actor.clone()).unwrap();
        }
        for (channel, capacity) in example.channels().iter().zip([None, Some(2)]) {
            stated.add_channel(crate::Channel { capacity, ..channel.clone() }).unwrap();
        }
        let options = StorageOptions::default();
        let storage = smallest(&stated, Goal::Maximal, &options).unwrap();
        assert_eq!(
            (storage.capacities.as_slice(), storage.throughput.to_string()),
            ([6, 2].as_slice(), "1/6".into())
        );
        assert_eq!(verify_storage(&stated, Goal::Maximal, &options, &storage), Ok(()));
        let error = smallest(&stated, ratio("1/5"), &options).unwrap_err();
        assert_eq!(error.to_string(), "a throughput of 1/5 is out of reach: the most is 1/6");
    }

    #[test]
    fn refused() {
        fn check(text: &str, options: &StorageOptions, expected: &str) {
            let error = smallest(&graph(text), Goal::DeadlockFree, options).unwrap_err();
            assert_eq!(error.to_string(), expected);
        }
        let pair = "a:1 b:1  a 1 > b 1";
        let granularity =
            |steps: &[u64]| StorageOptions { granularity: steps.to_vec(), ..StorageOptions::default() };
        let message = "granularities must be at least 1, one for each of the 1 channels";
        check(pair, &granularity(&[0]), message);
        check(pair, &granularity(&[1, 1]), message);
        check(
            "a:1  a 1 > a 1",
            &granularity(&[]),
            "deadlock: `a` lacks 1 token of channel `a>a`, which no firing can bring",
        );
        let budget = Budget { work: 1, time: None, stop: None };
        check(
            pair,
            &StorageOptions { budget, ..StorageOptions::default() },
            "the analysis has used up its budget",
        );
    }

    #[test]
    fn certificates_that_do_not_hold() {
        let (graph, options) = (graph("a:1@1 b:1@2 c:1@2  a 2 > b 3  b 1 > c 2"), StorageOptions::default());
        let good = smallest(&graph, Goal::Maximal, &options).unwrap();
        let check = |change: &dyn Fn(&mut Storage), expected: &str| {
            let mut storage = good.clone();
            change(&mut storage);
            let error = verify_storage(&graph, Goal::Maximal, &options, &storage).unwrap_err().to_string();
            assert!(error.starts_with(&format!("bad certificate: {expected}")), "{error}");
        };
        check(&|storage| storage.total += 1, "the capacities add up to 10, not 11");
        check(&|storage| storage.capacities[0] += 1, "the capacities add up to 11, not 10");
        check(
            &|storage| (storage.capacities, storage.total) = (vec![9, 9], 18),
            "the bound contradicts the total",
        );
        check(&|storage| storage.throughput = Throughput::Unbounded, "the throughput is 1/4, not unbounded");
        check(&|storage| storage.certificate.conflicts.clear(), "the conflicts allow a total of 0");
        check(
            &|storage| {
                (storage.capacities, storage.total) = (vec![6, 2], 8);
                storage.throughput = "1/6".parse().map(Throughput::Finite).unwrap();
            },
            "the throughput is 1/6, below the goal",
        );
        for index in 0..good.certificate.conflicts.len() {
            check(&|storage| storage.certificate.conflicts[index].limits[0].1 += 1, "conflict");
            check(&|storage| storage.certificate.conflicts[index].cycle[0].firing += 1, "conflict");
            check(&|storage| storage.certificate.conflicts[index].iterations += 1, "conflict");
            check(&|storage| storage.certificate.conflicts[index].cycle.clear(), "conflict");
        }
    }
}
