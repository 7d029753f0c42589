//! How many iterations a graph completes in a unit of time.

pub(crate) mod cycle_ratio;

use crate::budget::Meter;
use crate::layout::{Index, Layout, strong_parts};
use crate::liveness::check_capacities;
use crate::timed::recurrence;
use crate::{Actor, Budget, Error, Graph, Ratio, Throughput, repetition_vector};
use cycle_ratio::WaitGraph;

/// How a throughput is found; both are exact.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// Self-timed execution until a state comes back (Ghamarian et al., "Throughput analysis of synchronous data
    /// flow graphs", 2006; Stuijk et al. 2008 for cyclo-static graphs).
    StateSpace,
    /// The greatest ratio of time to iterations around a cycle of firings that wait for each other (Sriram and
    /// Bhattacharyya, "Embedded Multiprocessors", 2009, chapter 7; Bodin et al., "Fast and efficient dataflow
    /// graph generation", 2014).
    CycleRatio,
}

/// The throughput of `graph` with these capacities in tokens (`None` is unbounded), one per channel; see
/// [`Graph::capacities`] for those that the channels state.
///
/// The execution is self-timed. A firing starts as soon as three conditions hold: all tokens that it acquires are
/// there, there is space for all tokens that it produces, and fewer firings of its actor are under way than its
/// [`concurrency`](crate::Actor::concurrency) allows. It claims the space when it starts. When it ends, the tokens that
/// it produced can be read, and those that it releases are free. The firings of one actor start in order and take effect
/// in order: a firing that ends before an earlier one waits for it. A firing may take no time.
///
/// If channels are unbounded, each strongly connected part of the graph runs at its own speed. (A channel with a
/// capacity connects both ways, a channel whose only reader is its producer connects nothing.) The throughput is the
/// least of these speeds, the speed that the whole graph can keep up.
///
/// ```
/// use csdf::{Actor, Budget, Channel, Graph, Rates, Reader, throughput};
///
/// // Two actors that take 2 and 3 units of time.
/// let mut graph = Graph::new();
/// let actor = |name, time| Actor { execution_times: Rates::constant(1, time), ..Actor::new(name, 1) };
/// let [a, b] = [graph.add_actor(actor("a", 2))?, graph.add_actor(actor("b", 3))?];
/// let reader = Reader::consuming(b, Rates::constant(1, 1));
/// graph.add_channel(Channel::new("ab", a, Rates::constant(1, 1), vec![reader]))?;
///
/// // With room for one token they take turns. With room for two, the slower actor sets the pace.
/// let at = |capacity| throughput(&graph, &[capacity], &Budget::default()).map(|found| found.to_string());
/// assert_eq!((at(Some(1))?, at(Some(2))?, at(None)?), ("1/5".into(), "1/3".into(), "1/3".into()));
/// # Ok::<(), csdf::Error>(())
/// ```
///
/// # Errors
/// [`Error::CapacityCount`], [`Error::CapacityBelowInitial`], [`Error::Exhausted`], [`Error::Overflow`],
/// [`Error::TooLong`] for a strongly connected part of more than [`MAX_FIRINGS`](crate::MAX_FIRINGS), and those of
/// [`repetition_vector`](crate::repetition_vector). A deadlock is no error but a throughput of 0;
/// [`check_liveness`](crate::check_liveness) names its cycle.
pub fn throughput(graph: &Graph, capacities: &[Option<u64>], budget: &Budget) -> Result<Throughput, Error> {
    // The transient of an execution may be long. The number of dependencies depends only on the graph.
    match throughput_by(Method::CycleRatio, graph, capacities, budget) {
        Err(Error::TooLong { .. }) => throughput_by(Method::StateSpace, graph, capacities, budget),
        found => found,
    }
}

/// [`throughput`], found by one method.
///
/// # Errors
/// Those of [`throughput`].
pub fn throughput_by(
    method: Method,
    graph: &Graph,
    capacities: &[Option<u64>],
    budget: &Budget,
) -> Result<Throughput, Error> {
    throughput_within(method, graph, capacities, &mut Meter::new(budget))
}

/// [`throughput_by`] on the rest of a budget.
pub(crate) fn throughput_within(
    method: Method,
    graph: &Graph,
    capacities: &[Option<u64>],
    meter: &mut Meter,
) -> Result<Throughput, Error> {
    check_capacities(graph, capacities)?;
    let repetition = repetition_vector(graph)?;
    let mut slowest = Ratio::ZERO;
    let linked = linked(graph);
    let mut index = Index::new(graph, &repetition);
    for members in strong_parts(graph, capacities) {
        meter.spend(members.len() as u64)?;
        let alone = match members.as_slice() {
            &[actor] if !linked[actor] => {
                time_of_cycle(&graph.actors()[actor]).map(|time| (time, u128::from(repetition.cycles[actor])))
            }
            _ => None,
        };
        let (period, repeats) = match alone {
            Some(alone) => alone,
            None => {
                let layout = Layout::new(&mut index, &members)?;
                let period = match method {
                    Method::StateSpace => state_space(&layout, capacities, meter)?,
                    Method::CycleRatio => cycle_ratio(graph, &layout, capacities, meter)?,
                };
                match period {
                    Some(period) => (period, u128::from(layout.repeats)),
                    None => return Ok(Throughput::Finite(Ratio::ZERO)),
                }
            }
        };
        let overflow = || Error::Overflow { what: "time of an iteration", of: members_name(graph, &members) };
        slowest = slowest.max(period.times(repeats).ok_or_else(overflow)?);
    }
    Ok(Throughput::of_period(slowest))
}

/// Whether each actor reads a channel of its own.
fn linked(graph: &Graph) -> Vec<bool> {
    let mut linked = vec![false; graph.actors().len()];
    for channel in graph.channels() {
        let producer = channel.producer;
        linked[producer.index()] |= channel.readers.iter().any(|reader| reader.actor == producer);
    }
    linked
}

/// Time that an actor by itself takes for a cycle of its phases; none if this is not known at once.
fn time_of_cycle(actor: &Actor) -> Option<Ratio> {
    let times = &actor.execution_times;
    let concurrency = actor.concurrency.get();
    let first = times.iter().next()?;
    let same = times.runs().iter().all(|run| run.pattern.iter().all(|&time| time == first));
    // At most 2^26 phases of 64 bits.
    let total = times.total() * u128::from(actor.phases / times.len());
    if concurrency == 1 || same { Ratio::new(total, u128::from(concurrency)) } else { None }
}

/// Time of an iteration of a strongly connected part; none if it is in deadlock.
fn state_space(
    layout: &Layout,
    capacities: &[Option<u64>],
    meter: &mut Meter,
) -> Result<Option<Ratio>, Error> {
    let scope = layout.scope();
    if !layout.run(&scope, capacities, meter)?.is_complete(&scope) {
        return Ok(None);
    }
    if layout.actors.iter().all(|actor| actor.times.iter().all(|&time| time == 0)) {
        return Ok(Some(Ratio::ZERO));
    }
    let recurrence = recurrence(layout, capacities, meter, |_, _| Ok(()))?;
    Ok(recurrence.and_then(|recurrence| {
        let (from, to) = recurrence.started[0];
        let firings = layout.actors[0].firings as u128;
        Ratio::new(u128::from(recurrence.period) * firings, u128::from(to - from))
    }))
}

/// The same by cycles of firings.
fn cycle_ratio(
    graph: &Graph,
    layout: &Layout,
    capacities: &[Option<u64>],
    meter: &mut Meter,
) -> Result<Option<Ratio>, Error> {
    let scope = layout.scope();
    let run = layout.run(&scope, capacities, meter)?;
    if !run.is_complete(&scope) {
        return Ok(None);
    }
    let floor = floor(graph, layout).unwrap_or(Ratio::ZERO);
    let constraints = WaitGraph::new(layout, &scope, capacities, &run.order)?;
    let greatest = constraints.greatest(floor, meter)?;
    Ok(Some(greatest.map_or(floor, |(ratio, _)| ratio)))
}

/// Time of an iteration of a layout if its actors were limited only by themselves.
fn floor(graph: &Graph, layout: &Layout) -> Option<Ratio> {
    let periods = layout.actors.iter().filter_map(|part| {
        let actor = &graph.actors()[part.id];
        time_of_cycle(actor)?.times(part.firings as u128 / u128::from(actor.phases))
    });
    periods.max()
}

fn members_name(graph: &Graph, members: &[usize]) -> String {
    members.first().map_or_else(String::new, |&actor| graph.actors()[actor].name.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::graph;

    /// Capacities are written as words, `-` for none; all unbounded if empty.
    fn check(text: &str, capacities: &str, expected: &str) {
        let graph = graph(text);
        let mut words: Vec<Option<u64>> =
            capacities.split_whitespace().map(|word| word.parse().ok()).collect();
        words.resize(graph.channels().len(), None);
        for method in [Method::StateSpace, Method::CycleRatio] {
            let found = throughput_by(method, &graph, &words, &Budget::default()).unwrap();
            assert_eq!(found.to_string(), expected, "{text} {capacities} {method:?}");
        }
    }

    #[test]
    fn unbounded_channels() {
        check("a:1", "", "1");
        check("a:1@3", "", "1/3");
        check("a:1@0", "", "unbounded");
        check("a:2@1,5 b:1@2  a 1 > b 1", "", "1/6");
        check("a:1@1 b:1@1  a 2 > b 3", "", "1/3");
        check("a:1@0 b:1@0  a 2 > b 3", "", "unbounded");
        check("a:1@2 b:1@3  a 1 > b 1  b 1 > a 1 +1", "", "1/5");
        check("a:1@2 b:1@3  a 1 > b 1  b 1 > a 1 +2", "", "1/3");
        check("a:1@2 b:1@3  a 1 > b 1  b 1 > a 1", "", "0");
        // A loop of two tokens lets nothing run ahead while one firing is under way at a time.
        check("a:1@4  a 1 > a 1 +2", "", "1/4");
        // Two cycles that share no actor, of different speeds, one far upstream.
        check(
            "a:1@2 b:1@3 c:1@7 d:1@1  a 1 > b 1  b 1 > a 1 +1  b 1 > c 1  c 1 > d 1  d 1 > c 1 +1",
            "",
            "1/8",
        );
        // Two parts that share nothing.
        check("a:1@2 b:1@3", "", "1/3");
    }

    #[test]
    fn capacities() {
        // The example of Stuijk, Geilen and Basten 2006: a of 1, b of 2, c of 2 units of time.
        let example = "a:1@1 b:1@2 c:1@2  a 2 > b 3  b 1 > c 2";
        check(example, "", "1/4");
        check(example, "4 2", "1/7");
        check(example, "6 2", "1/6");
        check(example, "6 3", "1/5");
        check(example, "7 3", "1/4");
        check(example, "3 2", "0");
        check(example, "- 2", "1/6");
        check("a:1@1 b:1@1 c:1@3  a 1 > b 1 | c 1", "1", "1/4");
        check("a:1@1 b:1@1 c:1@3  a 1 > b 1 | c 1", "2", "1/3");
        check("a:4@1 b:4@0  a 1 > b 1", "1", "1/4");
        check("a:4@0 b:4@0  a 1 > b 1", "1", "unbounded");
    }

    #[test]
    fn concurrency() {
        check("a:1@4^2", "", "1/2");
        // The second firing takes effect after the first.
        check("a:2@4,2^2", "", "1/4");
        check("a:1@4^3  a 1 > a 1 +2", "", "1/2");
        check("a:1@4^2 b:1@1  a 1 > b 1", "1", "1/5");
        check("a:1@4^2 b:1@1  a 1 > b 1", "2", "2/5");
        check("a:1@4^9 b:1@1  a 1 > b 1", "5", "1");
        check("a:1@0^18446744073709551615", "", "unbounded");
        check("a:1@1^18446744073709551615", "", "18446744073709551615");
        check("a:1@4^18446744073709551615 b:1@1  a 1 > b 1", "3", "3/5");
    }

    #[test]
    fn refused() {
        fn check(text: &str, capacities: &[Option<u64>], budget: u64, expected: &str) {
            let budget = Budget { work: budget, time: None, stop: None };
            let found = throughput(&graph(text), capacities, &budget).unwrap_err();
            assert_eq!(found.to_string(), expected);
        }
        check("a:1 b:1  a 1 > b 1", &[], 9, "0 capacities for 1 channels");
        check("a:1 b:1  a 1000000 > b 1", &[Some(1_000_000)], 9, "the analysis has used up its budget");
        check(
            "a:1 b:1  a 100000000 > b 1",
            &[Some(100_000_000)],
            9,
            "one iteration has a number of firings of 100000001, but csdf walks through at most 67108864",
        );
        let most = u64::MAX;
        check(
            &format!("a:1 b:1  a 1 > b 1  b 1 > a 1 +{most}"),
            &[None, None],
            9,
            "the count of tokens of `b>a` is too large a number",
        );
    }

    #[test]
    fn extremes() {
        let most = u64::MAX;
        let pair = format!("a:1@{most} b:1@{most}  a 1 > b 1  b 1 > a 1");
        let find = |method, tokens: u64| {
            let graph = graph(&format!("{pair} +{tokens}"));
            throughput_by(method, &graph, &[None, None], &Budget::default())
        };
        let check = |tokens, expected: &str| {
            assert_eq!(
                find(Method::CycleRatio, tokens).map(|found| found.to_string()),
                Ok(expected.to_owned())
            );
        };
        check(1, "1/36893488147419103230");
        check(1 << 60, "1/18446744073709551615");
        assert!(matches!(find(Method::StateSpace, 1), Err(Error::Overflow { .. })));
    }
}
