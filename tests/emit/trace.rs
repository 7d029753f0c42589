//! Traces that programs write of the frames that they ran.

use std::collections::BTreeMap;

use super::*;

#[test]
fn a_trace_has_every_firing() {
    let partitions = "partitions: [(name: \"a\", upto: \"stack1_conv1\"), (name: \"b\")]";
    let mut application = application(&format!(
        "(cnns: [(model: \"builtin:resnet8\", {partitions})], parallel: [[\"a\", \"b\"]], rows: all)"
    ));
    let layers = &mut application.cnns[0].network.layers;
    let renamed = layers.last_mut().expect("a layer");
    renamed.name = "the \"last\"\n\\layer".into();
    let emitted = Emitted::new(&application);
    cargo(emitted.folder(), &["build", "--offline", "--features", "trace"]);
    let mut program = Command::new(emitted.folder().join("target/debug/emitted"));
    let file = emitted.folder().join("trace.json");
    program.arg("--trace").arg(&file);
    emitted.run(0, program);

    let text = std::fs::read_to_string(&file).expect("a trace");
    let trace: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let events = trace["traceEvents"].as_array().expect("events");
    let named = |what: &str, id: &str| -> BTreeMap<u64, String> {
        let names = events.iter().filter(|event| event["ph"] == "M" && event["name"] == what);
        names.map(|event| (number(&event[id]) as u64, text_of(&event["args"]["name"]))).collect()
    };
    let threads = named("thread_name", "tid");
    assert_eq!(named("process_name", "pid").into_values().collect::<Vec<_>>(), ["processor cpu"]);

    let mut found: BTreeMap<(String, String), u64> = BTreeMap::new();
    let mut ends: BTreeMap<u64, f64> = BTreeMap::new();
    for event in events.iter().filter(|event| event["ph"] == "X") {
        let thread = number(&event["tid"]) as u64;
        let (start, time) = (number(&event["ts"]), number(&event["dur"]));
        let end = ends.entry(thread).or_default();
        // The times in the file are rounded to nanoseconds.
        assert!(start >= *end - 1e-2 && time >= 0.0, "firings of a thread overlap: {event}");
        *end = start + time;
        *found.entry((threads[&thread].clone(), text_of(&event["name"]))).or_default() += 1;
    }
    let cnn = &emitted.plan.cnns[0];
    let mut expected = BTreeMap::new();
    for partition in &emitted.plan.partitions {
        for layer in cnn.layers.iter().filter(|layer| layer.partition == partition.name) {
            let place = (format!("partition {}", partition.name), layer.name.clone());
            expected.insert(place, layer.firings * FRAMES as u64);
        }
    }
    assert_eq!(found, expected);
}

fn number(value: &serde_json::Value) -> f64 {
    value.as_f64().expect("a number")
}

fn text_of(value: &serde_json::Value) -> String {
    value.as_str().expect("a text").into()
}
