//! `csdfc analyze`: graphs from files and from networks, the questions, and negative answers.

use serde_json::{Value, json};

use super::{Ended, fails, fits_a_screen, folder, run, run_given};

/// Three actors, the first with a self-loop; the numbers on its ports can be replaced.
const GRAPH: &str = "<?xml version='1.0' encoding='UTF-8'?>
<sdf3 type='csdf' version='1.0'><applicationGraph name='example'>
<csdf name='example' type='example'>
  <actor name='a' type='t'>
    <port type='out' name='p0' rate='3,1'/><port type='in' name='p2' rate='2*1'/><port type='out' name='p3' rate='2*1'/>
  </actor>
  <actor name='b' type='t'><port type='in' name='p0' rate='4,2'/><port type='out' name='p1' rate='2,4'/></actor>
  <actor name='c' type='t'><port type='in' name='p0' rate='2*6'/><port type='out' name='p1' rate='2*6'/></actor>
  <channel name='alpha' srcActor='a' srcPort='p0' dstActor='b' dstPort='p0'/>
  <channel name='beta' srcActor='b' srcPort='p1' dstActor='c' dstPort='p0'/>
  <channel name='own' srcActor='a' srcPort='p3' dstActor='a' dstPort='p2' initialTokens='1'/>
</csdf>
<csdfProperties>
  <actorProperties actor='a'><processor type='p' default='true'><executionTime time='1,3'/></processor></actorProperties>
  <actorProperties actor='b'><processor type='p' default='true'><executionTime time='2'/></processor></actorProperties>
  <actorProperties actor='c'><processor type='p' default='true'><executionTime time='2,3'/></processor></actorProperties>
  <channelProperties channel='alpha'><tokenSize sz='4'/></channelProperties>
</csdfProperties>
</applicationGraph></sdf3>
";

/// Analyses a graph on standard input.
fn analyze(graph: &str, args: &[&str]) -> Ended {
    run_given(folder().path(), &[&["analyze", "-"], args].concat(), graph)
}

fn json(graph: &str, args: &[&str]) -> Value {
    let ended = analyze(graph, &[&["--format", "json"], args].concat());
    serde_json::from_str(&ended.stdout).unwrap()
}

#[test]
fn a_graph_as_text_and_as_json() {
    let ended = analyze(GRAPH, &["--pareto", "--schedule", "--at", "1/14"]);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    assert!(ended.stderr.contains("auto-concurrency is off"), "{}", ended.stderr);
    insta::assert_snapshot!("analyze_graph", ended.stdout);
    assert_eq!(analyze(GRAPH, &["-q"]).stderr, "");

    let found = json(GRAPH, &["--pareto"]);
    assert_eq!(found["repetition"], json!({"a": 6, "b": 4, "c": 2}));
    assert_eq!((&found["live"], &found["throughput"]), (&json!(true), &json!("1/12")));
    assert_eq!(found.get("blocked"), None);
    let least = json!({"total": 11, "bound": 11, "proven": true, "capacities": {"alpha": 5, "beta": 6}, "throughput": "1/17"});
    assert_eq!(found["deadlock_free"], least);
    let fastest = json!({"total": 16, "bound": 16, "proven": true, "capacities": {"alpha": 8, "beta": 8}, "throughput": "1/12"});
    assert_eq!(found["max_throughput"], fastest);
    let points = found["pareto"].as_array().unwrap();
    assert_eq!(points.len(), 5);
    assert_eq!(points[0], json!({"total": 11, "throughput": "1/17", "capacities": {"alpha": 5, "beta": 6}}));

    let bytes = json(GRAPH, &["--bytes"]);
    assert_eq!((&bytes["deadlock_free"]["total"], &bytes["unit"]), (&json!(26), &json!("bytes")));
    let twice = json(GRAPH, &["--concurrency", "2"]);
    // The self-loop still holds the first actor back.
    assert_eq!(twice["throughput"], json!("1/12"));
    assert_eq!(json(&GRAPH.replace("'1,3'", "'1,1'"), &["--concurrency", "2"])["throughput"], json!("1/6"));
}

#[test]
fn schedules_have_loops_and_start_times() {
    let found = json(GRAPH, &["--schedule"]);
    let schedule = &found["max_throughput"]["schedule"];
    assert_eq!(schedule["sequential"], json!("([a]×2,[b],[a],[b],[c])×2"));
    assert_eq!(schedule["self_timed"]["period"], json!(12));
    let starts = schedule["self_timed"]["periodic"]["a"].as_array().unwrap();
    assert_eq!(starts.len(), 6);
    assert!(starts.is_sorted_by_key(|start| start.as_u64()));
}

#[test]
fn a_deadlock_is_named() {
    let channel =
        "<channel name='back' srcActor='c' srcPort='p1' dstActor='b' dstPort='p2' initialTokens='5'/></csdf>";
    let cyclic = GRAPH.replace("</csdf>", channel).replace(
        "<port type='out' name='p1' rate='2,4'/>",
        "<port type='out' name='p1' rate='2,4'/><port type='in' name='p2' rate='2,4'/>",
    );
    assert_eq!(analyze(&cyclic.replace("'5'", "'6'"), &[]).code, 0);
    let ended = analyze(&cyclic, &[]);
    assert_eq!(ended.code, 2, "{}", ended.stderr);
    insta::assert_snapshot!("analyze_deadlock", ended.stdout);
    let found = json(&cyclic, &[]);
    assert_eq!((&found["live"], &found["throughput"]), (&json!(false), &json!("0")));
    assert_eq!((&found["deadlock_free"], &found["max_throughput"]), (&Value::Null, &Value::Null));
    let expected = json!([
        {"actor": "b", "channel": "back", "lacks": "tokens", "missing": 1, "waits_for": "c"},
        {"actor": "c", "channel": "beta", "lacks": "tokens", "missing": 4, "waits_for": "b"},
    ]);
    assert_eq!(found["blocked"], expected);
}

#[test]
fn wrong_graphs_are_errors() {
    let folder = folder();
    let wrong = |snapshot: &str, from: &str, to: &str| {
        assert!(GRAPH.contains(from));
        std::fs::write(folder.path().join("graph.xml"), GRAPH.replace(from, to)).unwrap();
        insta::assert_snapshot!(snapshot, fails(folder.path(), &["analyze", "graph.xml", "-q"]));
    };
    let cycle =
        "<channel name='x' srcActor='c' srcPort='p1' dstActor='a' dstPort='p4' initialTokens='99'/></csdf>";
    wrong("analyze_initial_part", "'3,1'", "'7;3,1'");
    wrong("analyze_unknown_actor", "srcActor='b'", "srcActor='bb'");
    wrong("analyze_overflow", "'2*6'/><port", "'2*18446744073709551615'/><port");
    let closed = GRAPH
        .replace("</csdf>", cycle)
        .replace("name='p3' rate='2*1'/>", "name='p3' rate='2*1'/><port type='in' name='p4' rate='5,6'/>");
    std::fs::write(folder.path().join("graph.xml"), closed).unwrap();
    insta::assert_snapshot!("analyze_inconsistent", fails(folder.path(), &["analyze", "graph.xml", "-q"]));
    fails(folder.path(), &["analyze", "builtin:lenet5", "--concurrency", "2"]);
    fails(folder.path(), &["analyze", "builtin:lenet5", "--budget", "0s"]);
    fails(folder.path(), &["analyze", "builtin:lenet5", "--at", "fast"]);
    fails(folder.path(), &["analyze", "missing.xml"]);
}

#[test]
fn what_cannot_be_answered_is_said() {
    let out_of_reach = analyze(GRAPH, &["--at", "1/11"]);
    assert_eq!(out_of_reach.code, 2);
    assert!(out_of_reach.stderr.contains("out of reach"), "{}", out_of_reach.stderr);
    assert!(out_of_reach.stdout.contains("deadlock-free"));
    fits_a_screen(&out_of_reach.stderr);
    let poor = analyze(GRAPH, &["--budget", "3"]);
    assert_eq!(poor.code, 2);
    assert!(poor.stderr.contains("budget"), "{}", poor.stderr);
    assert_eq!(json(GRAPH, &["--budget", "3"])["max_throughput"], Value::Null);
    assert_eq!(analyze(GRAPH, &["--budget", "60s"]).code, 0);
}

#[test]
fn networks_are_analysed_by_partition() {
    let folder = folder();
    let lenet = run(folder.path(), &["analyze", "builtin:lenet5"]);
    assert_eq!((lenet.code, lenet.stderr.as_str()), (0, ""));
    insta::assert_snapshot!("analyze_lenet5", lenet.stdout);

    let app = "(cnns: [(name: \"c\", model: \"builtin:lenet5\", partitions: [(name: \"p\", upto: \"S2\"), (name: \"q\")])])";
    let found = json(app, &["--rows", "all"]);
    let partitions = found["partitions"].as_array().unwrap();
    let names: Vec<&Value> = partitions.iter().map(|partition| &partition["name"]).collect();
    assert_eq!(names, [&json!("p"), &json!("q")]);
    assert_eq!(partitions[0]["cnn"], json!("c"));
    assert!(partitions.iter().all(|partition| partition["deadlock_free"]["proven"] == json!(true)));
    // Without parts every tensor is whole.
    let whole = json(app, &["--rows", "none"]);
    let least = |found: &Value| found["partitions"][0]["deadlock_free"]["total"].as_u64().unwrap();
    assert!(least(&whole) > 3 * least(&found), "{whole}");
}

#[test]
fn graphs_are_written_and_read_again() {
    let folder = folder();
    let written = run(folder.path(), &["analyze", "builtin:lenet5", "--sdf3", "lenet5.xml"]);
    assert_eq!(written.code, 0);
    // The totals differ, and both sides say why.
    assert!(written.stderr.contains("larger totals for the file"), "{}", written.stderr);
    let read = run(folder.path(), &["analyze", "lenet5.xml"]);
    assert!(read.stderr.contains("2 channels, named .acquire, only say"), "{}", read.stderr);
    let least = |text: &str| text.lines().find(|line| line.contains("deadlock-free   ")).map(str::to_owned);
    let whole = run(folder.path(), &["analyze", "builtin:lenet5"]);
    assert_ne!(least(&whole.stdout), least(&read.stdout));
    assert_eq!(whole.stderr, "");
    let found = json(&std::fs::read_to_string(folder.path().join("lenet5.xml")).unwrap(), &[]);
    // Of the lowered graph; a window has become two channels.
    assert_eq!(found["throughput"], json!("1/32"));
    assert!(written.stdout.contains("throughput, unbounded channels: 1/32"));
    let dot = run(folder.path(), &["analyze", "builtin:lenet5", "--dot", "-"]);
    assert!(dot.stdout.starts_with("digraph \"lenet5\" {"), "{}", dot.stdout);
    assert_eq!(dot.stdout.matches(" -> ").count(), 7);
    let app = "(cnns: [(name: \"c\", model: \"builtin:lenet5\", partitions: [(name: \"p\", upto: \"S2\"), (name: \"q\")])])";
    assert_eq!(analyze(app, &["--sdf3", "-"]).code, 1);
}
