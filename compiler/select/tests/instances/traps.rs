//! Instances in which a plausible mistake gives another answer.

use csdfc_select::baselines::NoBaseline;
use csdfc_select::budget::solve_within;
use csdfc_select::model::Model;
use csdfc_select::quantity::Axis;
use csdfc_select::{Answer, Chosen, Instance, Method, Problem, Quantity, Query, answer};
use rand::RngExt;
use serde_json::{Value, json};

use crate::query;

fn option(primitive: &str, input: &str, output: &str, time: f64, memory: f64) -> Value {
    json!({ "primitive": primitive, "in": input, "out": output, "time": time, "memory": memory })
}

fn layer(name: &str, kind: &str, options: &[Value]) -> Value {
    json!({ "name": name, "kind": kind, "options": options })
}

/// An edge on which these conversions are possible.
fn edge(from: &str, to: &str, conversions: &[(&str, &str, f64)]) -> Value {
    let conversions: Vec<Value> = conversions
        .iter()
        .map(|(input, output, time)| json!({ "in": input, "out": output, "time": time }))
        .collect();
    json!({ "from": from, "to": to, "conversions": conversions })
}

fn instance(layers: &[Value], edges: &[Value]) -> Instance {
    Instance::parse(&json!({ "layers": layers, "edges": edges }).to_string()).unwrap()
}

/// conv (CHW only) → pool → conv (HWC only), with conversions on both edges.
fn around_a_pool(first: &[(&str, &str, f64)], second: &[(&str, &str, f64)]) -> Instance {
    let pool = [option("pool", "CHW", "CHW", 0.0, 0.0), option("pool", "HWC", "HWC", 0.0, 0.0)];
    let layers = [
        layer("conv1", "conv", &[option("sum2d", "CHW", "CHW", 10.0, 1.0)]),
        layer("pool", "pass", &pool),
        layer("conv2", "conv", &[option("pixels", "HWC", "HWC", 20.0, 2.0)]),
    ];
    instance(&layers, &[edge("conv1", "pool", first), edge("pool", "conv2", second)])
}

fn met(problem: &Problem<'_>, query: &Query) -> Chosen {
    match answer(problem, query) {
        Ok(Answer::Met(chosen)) => chosen,
        other => unreachable!("{other:?}"),
    }
}

fn time(problem: &Problem<'_>, query: &Query) -> f64 {
    problem.times.value(met(problem, query).cost.time)
}

fn by(method: Method) -> Query {
    Query { method, ..query(Quantity::Time) }
}

#[test]
fn around_a_pool_there_is_one_conversion() {
    let instance = around_a_pool(&[("CHW", "HWC", 7.0)], &[("CHW", "HWC", 5.0)]);
    assert_eq!(time(&Problem::new(&instance, false).unwrap(), &query(Quantity::Time)), 35.0);
    // The literal mode of the paper: the pool converts for nothing.
    assert_eq!(time(&Problem::new(&instance, true).unwrap(), &query(Quantity::Time)), 30.0);
}

#[test]
fn conversions_follow_one_another() {
    let chain = [("CHW", "A", 1.0), ("A", "B", 2.0), ("B", "HWC", 3.0), ("CHW", "HWC", 6.5)];
    let instance = around_a_pool(&[], &chain);
    let problem = Problem::new(&instance, false).unwrap();
    let found = met(&problem, &query(Quantity::Time));
    assert_eq!(problem.times.value(found.cost.time), 36.0);
    let (from, to) = (problem.taken(&found.selection, 1).output, problem.taken(&found.selection, 2).input);
    let chain = problem.paths[1].chain(from, to);
    let names: Vec<&str> = chain.into_iter().map(|layout| instance.layout(layout)).collect();
    assert_eq!(names, ["CHW", "A", "B", "HWC"]);
}

#[test]
fn what_cannot_be_converted_is_named() {
    // A conversion the wrong way, and one that leads nowhere.
    let instance = around_a_pool(&[("HWC", "CHW", 1.0)], &[("CHW", "A", 1.0)]);
    let problem = Problem::new(&instance, false).unwrap();
    for method in [Method::Exact, Method::Program, Method::Greedy] {
        let Ok(Answer::Blocked(edges)) = answer(&problem, &by(method)) else { unreachable!() };
        let pairs = [("CHW".to_owned(), "HWC".to_owned())];
        assert_eq!(edges.iter().map(|edge| edge.edge).collect::<Vec<_>>(), [0, 1]);
        assert!(edges.iter().all(|edge| edge.pairs.contains(&pairs[0])), "{edges:?}");
    }
    // Either edge alone would do.
    for (first, second) in [(&[("CHW", "HWC", 1.0)][..], &[][..]), (&[][..], &[("CHW", "HWC", 1.0)][..])] {
        let instance = around_a_pool(first, second);
        assert_eq!(time(&Problem::new(&instance, false).unwrap(), &query(Quantity::Time)), 31.0);
    }
}

#[test]
fn a_family_may_be_slower_than_what_it_replaces() {
    // In each layer the family's primitive is faster, but its layouts must be converted.
    let options = [option("sum2d", "CHW", "CHW", 10.0, 0.0), option("direct-pixels", "HCW", "HWC", 9.0, 0.0)];
    let layers = ["a", "b", "c"].map(|name| layer(name, "conv", &options));
    let conversions = [("HWC", "HCW", 4.0), ("CHW", "HCW", 4.0), ("HWC", "CHW", 4.0)];
    let instance = instance(&layers, &[edge("a", "b", &conversions), edge("b", "c", &conversions)]);
    let problem = Problem::new(&instance, false).unwrap();
    assert_eq!(time(&problem, &by(Method::Sum2d)), 30.0);
    assert_eq!(time(&problem, &by(Method::Exact)), 30.0);
    let families = met(&problem, &by(Method::Families));
    let bars: Vec<(&str, u64)> = families
        .bars
        .iter()
        .map(|bar| (bar.family.as_str(), problem.cost(bar.selection.as_ref().unwrap()).unwrap().time))
        .collect();
    assert_eq!(bars, [("direct", problem.times.whole(35.0)), ("sum2d", problem.times.whole(30.0))]);
    // The best bar is the answer.
    assert_eq!(problem.times.value(families.cost.time), 30.0);
}

#[test]
fn baselines_say_what_they_miss() {
    let conv = [option("sum2d", "CHW", "CHW", 10.0, 4.0), option("im2col", "HWC", "HWC", 1.0, 9.0)];
    let layers =
        [layer("a", "conv", &conv), layer("b", "conv", &[option("im2col-tn", "HWC", "CHW", 5.0, 2.0)])];
    let convert = [("HWC", "CHW", 1.0), ("CHW", "HWC", 1.0)];
    let instance = instance(&layers, &[edge("a", "b", &convert)]);
    let problem = Problem::new(&instance, false).unwrap();
    for method in [Method::Sum2d, Method::LocalOptimal] {
        let found = answer(&problem, &by(method));
        assert!(
            matches!(&found, Ok(Answer::NoBaseline(NoBaseline::Missing { layer, .. })) if layer == "b"),
            "{found:?}"
        );
    }
    // The family has a primitive for b, the baseline for a.
    assert_eq!(time(&problem, &by(Method::Families)), 6.0);
    // From the optimum of 11 KiB, the largest primitive gives way; nothing smaller is left below 6 KiB.
    let greedy = |memory: f64| answer(&problem, &Query { memory: Some(memory), ..by(Method::Greedy) });
    let found = |memory: f64| match greedy(memory) {
        Ok(Answer::Met(chosen)) => problem.times.value(chosen.cost.time),
        other => unreachable!("{other:?}"),
    };
    assert_eq!((found(11.0), found(10.0), found(6.0)), (6.0, 16.0, 16.0));
    assert_eq!(greedy(5.0), Ok(Answer::NoBaseline(NoBaseline::NothingSmaller)));
}

#[test]
fn greedy_replaces_the_largest() {
    let layers = [("a", 20.0, 50.0), ("b", 10.0, 2.0)].map(|(name, memory, slow)| {
        let options = [option("fast", "CHW", "CHW", 1.0, memory), option("small", "CHW", "CHW", slow, 1.0)];
        layer(name, "conv", &options)
    });
    let instance = instance(&layers, &[]);
    let problem = Problem::new(&instance, false).unwrap();
    let within = |method: Method, memory: f64| time(&problem, &Query { memory: Some(memory), ..by(method) });
    assert_eq!((within(Method::Greedy, 29.0), within(Method::Exact, 29.0)), (51.0, 3.0));
    assert_eq!((within(Method::Greedy, 10.0), within(Method::Exact, 10.0)), (52.0, 52.0));
    let narrow = Query { workspace: Some(15.0), ..by(Method::Greedy) };
    assert_eq!(time(&problem, &narrow), 51.0);
}

#[test]
fn of_equal_times_the_least_workspace_is_on_the_front() {
    // All in CHW: 5 + 5 KiB. All in HWC: 8 + 1 KiB, which is less in sum, but more in one layer.
    let layers = [("a", 5.0, 8.0), ("b", 5.0, 1.0)].map(|(name, planes, pixels)| {
        let options = [option("p", "CHW", "CHW", 1.0, planes), option("p", "HWC", "HWC", 1.0, pixels)];
        layer(name, "conv", &options)
    });
    let instance = instance(&layers, &[edge("a", "b", &[])]);
    let problem = Problem::new(&instance, false).unwrap();
    let memory = |query: &Query| {
        let cost = met(&problem, query).cost;
        (problem.memories.value(cost.memory), problem.memories.value(cost.workspace))
    };
    assert_eq!(memory(&query(Quantity::Time)), (9.0, 8.0));
    assert_eq!(memory(&Query { workspace: Some(8.0), ..query(Quantity::Time) }), (10.0, 5.0));
    let front = csdfc_select::front(&problem, &query(Quantity::Workspace)).unwrap();
    assert_eq!(front.points, [(problem.memories.whole(5.0), problem.times.whole(2.0))]);
}

#[test]
fn what_is_too_much_to_enumerate_has_a_bound() {
    let instance = on_a_line(40);
    let problem = Problem::new(&instance, false).unwrap();
    let model = Model::new(&problem, &problem.all());
    let budget = problem.memories.whole(1234.567);
    let least = solve_within(&problem, &model, Axis::Time, Some(budget), 100_000).unwrap();
    let cost = problem.cost(&least.selection).unwrap();
    assert!(cost.memory <= budget && least.bound <= cost.time);
    assert!(least.bound < cost.time, "this was meant to be too much");
    assert!(cost.time - least.bound < cost.time / 1000);
}

/// Layers of which time and memory of all primitives lie on one line, so that hardly any sum beats another.
pub fn on_a_line(layers: usize) -> Instance {
    let mut random = crate::draw::random(5000);
    let layers: Vec<Value> = (0..layers)
        .map(|at| {
            let options: Vec<Value> = (0..12)
                .map(|_| {
                    let memory = f64::from(random.random_range(1..100_000)) / 1000.0;
                    option("p", "CHW", "CHW", (1_000_000.0 - memory * 9000.0).round() / 1000.0, memory)
                })
                .collect();
            layer(&format!("l{at}"), "conv", &options)
        })
        .collect();
    instance(&layers, &[])
}

#[test]
fn budgets_are_kept_to_the_last_decimal() {
    let options = [option("a", "CHW", "CHW", 2.0, 0.1), option("b", "CHW", "CHW", 1.0, 0.2)];
    let layers = ["x", "y"].map(|name| layer(name, "conv", &options));
    let instance = instance(&layers, &[]);
    let problem = Problem::new(&instance, false).unwrap();
    let best = |memory: f64| time(&problem, &Query { memory: Some(memory), ..query(Quantity::Time) });
    // 0.1 + 0.2 is not 0.3 in floats.
    assert_eq!((best(0.3), best(0.1 + 0.2), best(0.299_999), best(0.4)), (3.0, 3.0, 4.0, 2.0));
}

#[test]
fn wrong_instances_are_refused_where_they_are_wrong() {
    let conv = layer("a", "conv", &[option("p", "CHW", "CHW", 1.0, 1.0)]);
    let refused = |layers: &[Value], edges: &[Value], expected: &str| {
        let error = Instance::parse(&json!({ "layers": layers, "edges": edges }).to_string());
        let error = error.and_then(|instance| Problem::new(&instance, false).map(|_| ())).unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
        assert!(!error.help().is_empty());
    };
    let of = |options: &[Value]| [layer("l", "conv", options)];
    refused(&[], &[], "`layers` is empty");
    refused(&[conv.clone(), conv.clone()], &[], "layer 2 has the name of an earlier one, `a`");
    refused(&of(&[]), &[], "layer `l` has no options");
    refused(&of(&[option("p", "A", "A", -1.0, 1.0)]), &[], "layer `l`, option `p`: -1 is no time");
    refused(&of(&[option("p", "A", "A", 1.0, -0.5)]), &[], "layer `l`, option `p`: -0.5 is no memory");
    refused(&of(&[option("p", "A", "A", 1e300, 1.0)]), &[], "the sum of all times is too large");
    refused(&of(&[option("p", "A", "A", 1.0, 9.1e15)]), &[], "the sum of all memories is too large");
    let pair = [conv.clone(), layer("b", "conv", &[option("p", "CHW", "CHW", 1.0, 1.0)])];
    refused(&pair, &[edge("a", "c", &[])], "edge 1: there is no layer `c`");
    refused(&pair, &[edge("a", "b", &[("A", "B", -2.0)])], "edge a → b: -2 is no time");
    refused(&pair, &[edge("a", "b", &[]), edge("b", "a", &[])], "a cycle through layer");
    refused(&pair, &[edge("b", "b", &[])], "a cycle through layer `b`");
    let pool =
        layer("p", "pass", &[option("p", "CHW", "CHW", 0.0, 0.0), option("p", "CHW", "HWC", 0.0, 0.0)]);
    refused(&[pool], &[], "layer `p`: its option 2 reads CHW and writes HWC");
    let many: Vec<Value> = (0..65).map(|at| option("p", &format!("L{at}"), "L0", 0.0, 0.0)).collect();
    refused(&of(&many), &[], "more than 64 layouts");
    for (text, expected) in [
        ("", "EOF"),
        ("[1, 2", "invalid type"),
        ("{\"layers\": [}", "line 1 column 13"),
        ("{\"layers\": [], \"edges\": [], \"memory_bugdet\": 1}", "unknown field `memory_bugdet`"),
        (
            "{\"layers\": [{\"name\": \"a\", \"kind\": \"pool\", \"options\": []}], \"edges\": []}",
            "`conv` or `pass`",
        ),
        ("{\"layers\": [], \"edges\": [], \"time_budget\": 1e999}", "out of range"),
    ] {
        let error = Instance::parse(text).unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
    }
    let budgets = json!({ "layers": [conv], "edges": [], "memory_budget": -1.0 });
    let error = Instance::parse(&budgets.to_string()).unwrap_err().to_string();
    assert!(error.contains("memory_budget: -1 is no memory"), "{error}");
}
