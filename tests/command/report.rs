//! `csdfc report`: the page shows the content of the plan, and no text in a plan can break out of the page. Also
//! traces.

use std::collections::BTreeSet;
use std::path::Path;

use csdfc_plan::check;
use csdfc_plan::plan::{Plan, StorageModel};
use csdfc_plan::timeline;
use serde_json::{Value, json};

use super::{fails, folder, run};

const PIPELINE: &str = r#"(
  name: "pipeline",
  cnns: [(name: "net", model: "builtin:resnet8", partitions: [(name: "p", upto: "stack1_add"), (name: "q")])],
  parallel: [["p", "q"]],
)
"#;

const AT_ONCE: &str = r#"(
  name: "pair",
  cnns: [(name: "a", model: "builtin:resnet8"), (name: "b", model: "builtin:lenet5")],
  parallel: [["a", "b"]],
)
"#;

const IN_TURN: &str = r#"(
  name: "turns",
  cnns: [(name: "a", model: "builtin:resnet8"), (name: "b", model: "builtin:lenet5")],
  parallel: [["a"], ["b"]],
)
"#;

/// What pages call a ring that stays from hop to hop.
const KEPT: &str = "ring kept from hop to hop";

/// Plans an application, or a model, in this folder.
fn plan(folder: &Path, app: &str, args: &[&str]) -> Plan {
    std::fs::write(folder.join("app.ron"), app).unwrap();
    let app = if app.starts_with("builtin:") { app } else { "app.ron" };
    let ended = run(folder, &[&["plan", app, "-o", "plan.json", "-q"], args].concat());
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    Plan::from_json(&std::fs::read_to_string(folder.join("plan.json")).unwrap()).unwrap()
}

/// The data of a page.
fn data(page: &str) -> Value {
    let (_, rest) = page.split_once("<script type=\"application/json\" id=\"data\">").unwrap();
    serde_json::from_str(rest.split_once("</script>").unwrap().0).unwrap()
}

/// The page of the plan in this folder.
fn page(folder: &Path, args: &[&str]) -> String {
    let ended = run(folder, &[&["report", "plan.json", "-o", "report.html"], args].concat());
    assert_eq!((ended.code, ended.stdout.as_str(), ended.stderr.as_str()), (0, "", ""));
    std::fs::read_to_string(folder.join("report.html")).unwrap()
}

fn numbers(list: &Value) -> Vec<u64> {
    list.as_array().unwrap().iter().map(|number| number.as_u64().unwrap()).collect()
}

fn sum(list: &Value, field: &str) -> u64 {
    list.as_array().unwrap().iter().map(|entry| entry[field].as_u64().unwrap()).sum()
}

/// Plans an application and compares the page with the plan. Returns the plan and the page's data of it.
fn compared(app: &str, args: &[&str]) -> (Plan, Value) {
    let folder = folder();
    let plan = plan(folder.path(), app, args);
    let text = page(folder.path(), &[]);
    assert!(text.len() < 2_000_000, "{} bytes", text.len());
    let all = data(&text);
    let shown = all["plans"][0].clone();
    let checked = check(&plan).unwrap();
    let layers: Vec<_> = plan.cnns.iter().flat_map(|cnn| &cnn.layers).collect();

    // Every ring, workspace and block is a place, and lives in each frame that reaches it.
    let places = shown["places"].as_array().unwrap();
    assert_eq!(places.len(), checked.rings);
    let bytes = |kinds: &[&str]| -> u64 {
        let of_kind = places.iter().filter(|place| kinds.contains(&place["kind"].as_str().unwrap()));
        of_kind
            .map(|place| {
                let [rows, each] = ["rows", "row_bytes"].map(|name| place[name].as_u64().unwrap());
                rows * each * place["offsets"].as_array().unwrap().len() as u64
            })
            .sum()
    };
    let rings: u64 = match plan.storage_model {
        StorageModel::Tensors => {
            plan.tensors.iter().filter_map(|tensor| tensor.ring).map(|ring| ring.bytes).sum()
        }
        StorageModel::Edges => {
            plan.buffers.iter().flat_map(|buffer| &buffer.holds).map(|edge| edge.bytes).sum()
        }
    };
    assert_eq!(bytes(&["whole tensor", "ring of rows", "ring between stages", KEPT]), rings);
    let persisting = plan.tensors.iter().filter(|tensor| tensor.history() > 0);
    assert_eq!(
        bytes(&[KEPT]),
        persisting.filter_map(|tensor| tensor.ring).map(|ring| ring.bytes).sum::<u64>()
    );
    assert_eq!(bytes(&["workspace"]), layers.iter().map(|layer| layer.workspace.bytes).sum::<u64>());
    let blocks =
        layers.iter().filter_map(|layer| layer.streamed.as_ref()).flat_map(|streamed| &streamed.blocks);
    assert_eq!(bytes(&["block of weights"]), blocks.map(|block| block.bytes).sum::<u64>());
    let lives = shown["lives"].as_array().unwrap();
    let first: BTreeSet<u64> =
        lives.iter().filter(|life| life["frame"] == 0).map(|life| life["place"].as_u64().unwrap()).collect();
    assert_eq!(first.len(), places.len());
    for life in lives {
        let place = &places[life["place"].as_u64().unwrap() as usize];
        let steps = numbers(&life["steps"]);
        let steps: Vec<&[u64]> = steps.chunks(3).collect();
        assert!(steps.windows(2).all(|pair| pair[0][0] <= pair[1][0]), "{life}");
        assert!(steps.iter().all(|step| step[1] <= step[2] && step[2] <= place["rows"].as_u64().unwrap()));
        assert_eq!(steps.last().map(|step| step[2] - step[1]), Some(0), "{life}");
    }

    // Firings and layers.
    let frames = &shown["firings"]["frame"];
    let in_first = numbers(frames).iter().filter(|frame| **frame == 0).count() as u64;
    assert_eq!(in_first, layers.iter().map(|layer| layer.firings).sum::<u64>());
    let listed: Vec<&Value> =
        shown["cnns"].as_array().unwrap().iter().flat_map(|cnn| cnn["layers"].as_array().unwrap()).collect();
    assert_eq!(listed.len(), layers.len());
    for (listed, layer) in listed.iter().zip(&layers) {
        assert_eq!(listed["name"], json!(layer.name));
        assert_eq!(listed["parameters"], json!(layer.parameters));
        assert_eq!(listed["firings"], json!(layer.firings));
        // A layer that fires several times belongs to a segment, with other layers or alone.
        assert!(layer.firings == 1 || listed["segment"].as_u64().is_some_and(|segment| segment > 0));
        assert_eq!(listed["inputs"].as_array().unwrap().is_empty(), layer.inputs.is_empty());
    }
    assert_eq!(
        listed.iter().map(|layer| layer["parameters"].as_u64().unwrap()).sum::<u64>(),
        plan.memory.parameters
    );

    // The peak, and the bytes in use.
    assert_eq!(sum(&shown["peak"]["occupied"], "bytes"), plan.memory.bound);
    let witness = plan.certificate.bound.as_ref().unwrap();
    assert_eq!(shown["peak"]["firings"].as_array().unwrap().len(), witness.firing.len());
    let usage = numbers(&shown["usage"]);
    let most = usage.chunks(2).map(|entry| entry[1]).max().unwrap();
    let at_once = plan.parallel.iter().any(|element| element.len() > 1);
    assert!(if at_once { most <= plan.memory.bound } else { most == plan.memory.bound }, "{most}");
    assert_eq!(shown["memory"], json!(plan.memory));
    (plan, shown)
}

/// Checks that the frames in the picture take as long as the plan states.
fn takes_its_time(plan: &Plan, shown: &Value) {
    let stated: u64 = plan.cnns.iter().map(|cnn| cnn.latency_ns).sum();
    let drawn = shown["ns"].as_u64().unwrap();
    assert!(drawn.abs_diff(stated) <= 1 + stated / 1000, "{drawn} of {stated}");
}

#[test]
fn a_page_has_what_the_plan_says() {
    for (app, args) in [
        ("builtin:resnet8", &["--mem", "min"][..]),
        ("builtin:resnet8", &["--storage", "edges", "--rows", "all"]),
        ("builtin:mobilenet_v1_0.25", &["--precision", "half", "--mem", "min"]),
        ("builtin:lenet5", &["--primitives", "im2row-strip-hwc-hwc"]),
        (IN_TURN, &["--mem", "min"]),
    ] {
        let (plan, shown) = compared(app, args);
        takes_its_time(&plan, &shown);
    }
}

/// Layers of several CNNs may have one name, so hints say whose layer it is, as all else on the page does.
#[test]
fn hints_name_the_cnn_of_a_layer() {
    for (app, cnn) in [(IN_TURN, "a/"), ("builtin:resnet8", "")] {
        let (plan, shown) = compared(app, &["--rows", "none"]);
        let (named, hints) = (format!("{cnn}{}", plan.cnns[0].layers[1].name), &shown["peak"]["occupied"]);
        let hints: Vec<&str> =
            hints.as_array().unwrap().iter().map(|place| place["hint"].as_str().unwrap()).collect();
        assert!(hints.iter().any(|hint| hint.starts_with(&named)), "{named}: {hints:?}");
    }
}

/// What stays from hop to hop has a colour of its own, and is there all the time, also while another CNN runs.
#[test]
fn a_page_has_the_state_of_streams() {
    let beside = r#"(
      cnns: [(name: "listen", model: "builtin:wake_word", stream: ()), (name: "look", model: "builtin:lenet5")],
    )"#;
    let alone = r#"(cnns: [(name: "listen", model: "builtin:resnet8", stream: (hop: 4, window: 32))])"#;
    for (app, hop) in [(beside, 1), (alone, 4)] {
        let (plan, shown) = compared(app, &["--mem", "min"]);
        takes_its_time(&plan, &shown);
        assert_eq!(shown["cnns"][0]["hop"], json!(hop));
        let (places, ns) = (shown["places"].as_array().unwrap(), shown["ns"].as_u64().unwrap());
        let is_kept = |life: &&Value| places[life["place"].as_u64().unwrap() as usize]["kind"] == KEPT;
        let lives: Vec<&Value> = shown["lives"].as_array().unwrap().iter().filter(is_kept).collect();
        assert!(lives.len() > 3);
        for life in lives {
            let steps = numbers(&life["steps"]);
            assert_eq!((steps[0], steps[steps.len() - 3]), (0, ns));
        }
    }
    let folder = folder();
    plan(folder.path(), beside, &[]);
    let text = page(folder.path(), &[]);
    assert!(text.contains(&format!(r#"["{KEPT}", "state", "state: rows kept from hop to hop"]"#)));
    assert!(text.contains(".state { fill: var(--state)"));
}

#[test]
fn a_page_has_the_loads_of_streamed_weights() {
    let (plan, shown) = compared("builtin:mobilenet_v1_0.25", &["--weights", "streamed"]);
    takes_its_time(&plan, &shown);
    let read: u64 = numbers(&shown["loads"]["bytes"]).iter().sum();
    assert_eq!((Some(read), Some(read)), (plan.cnns[0].bytes_read, shown["store"].as_u64()));
    let [start, end] = ["start", "end"].map(|name| numbers(&shown["loads"][name]));
    assert!(start.iter().zip(&end).all(|(start, end)| start < end));
    assert!(end.iter().zip(&start[1..]).all(|(end, next)| end <= next), "one store");
}

#[test]
fn a_pipeline_comes_at_its_rate() {
    for args in [&[][..], &["--storage", "edges"]] {
        let (plan, shown) = compared(PIPELINE, args);
        let firings = &shown["firings"];
        let [partition, frame, end] = ["partition", "frame", "end"].map(|name| numbers(&firings[name]));
        let ends: Vec<u64> = (0..4)
            .map(|of| {
                let last = (0..end.len()).filter(|&i| (partition[i], frame[i]) == (1, of));
                last.map(|i| end[i]).max().unwrap()
            })
            .collect();
        let period = (ends[3] - ends[2]) as f64;
        // The plan states a bound for any sharing of the processor; the picture's stages do not slow each other down further.
        assert!(
            period <= 1.01e9 / plan.cnns[0].fps * plan.partitions.len() as f64 && period > 0.0,
            "{period}"
        );
    }
    let (plan, shown) = compared(AT_ONCE, &[]);
    let longest = plan.cnns.iter().map(|cnn| cnn.latency_ns).max().unwrap();
    assert!(shown["ns"].as_u64().unwrap().abs_diff(longest) <= 1 + longest / 1000);
}

#[test]
fn the_largest_network_fits_a_page() {
    let (plan, shown) = compared("builtin:densenet121", &["--rows", "all"]);
    assert!(plan.cnns[0].layers.iter().map(|layer| layer.firings).sum::<u64>() > 1_669);
    assert_eq!(shown["thinned"], false);
}

#[test]
fn names_cannot_break_out_of_a_page() {
    let name = "</script><script>alert(1)</script><!--<img src=x onerror='alert(2)'>\"'&amp;\u{2028}";
    let folder = folder();
    let plan = plan(folder.path(), "builtin:lenet5", &[]);
    let layer = &plan.cnns[0].layers[1];
    let text = std::fs::read_to_string(folder.path().join("plan.json")).unwrap();
    let mut text = text;
    for old in [&layer.name, &layer.output, &plan.application] {
        text = text.replace(&format!("\"{old}\""), &json!(name).to_string());
    }
    text = text
        .replace(&format!("[{}]", layer.name), &format!("[{}]", json!(name).to_string().trim_matches('"')));
    text = text.replace(
        &format!("\"{}/{}\"", plan.cnns[0].name, layer.output),
        &json!(format!("{}/{name}", plan.cnns[0].name)).to_string(),
    );
    if plan.application == plan.cnns[0].name {
        text = text.replace(
            &format!("\"{}/", plan.cnns[0].name),
            &format!("\"{}/", json!(name).to_string().trim_matches('"')),
        );
    }
    std::fs::write(folder.path().join("plan.json"), text).unwrap();
    let text = page(folder.path(), &[]);
    assert_eq!(text.matches("</script").count(), 2);
    assert_eq!(text.matches("<script").count(), 2);
    assert!(!text.contains("<!--") && !text.contains("<img"));
    let shown = &data(&text)["plans"][0];
    assert_eq!(shown["application"], name);
    assert_eq!(shown["cnns"][0]["layers"][1]["name"], name);
    let trace = run(folder.path(), &["report", "plan.json", "--trace", "-"]);
    assert!(trace.code == 0 && serde_json::from_str::<Value>(&trace.stdout).is_ok());
}

#[test]
fn a_page_needs_no_network() {
    let folder = folder();
    plan(folder.path(), "builtin:lenet5", &[]);
    let text = page(folder.path(), &[]);
    assert!(text.contains("default-src 'none'"));
    for address in ["https://", "src=\"http", "url(http", "@import", "fetch("] {
        assert!(!text.contains(address), "{address}");
    }
    // The name space of SVG's elements is no address that a browser loads.
    assert_eq!(text.matches("http://").count(), text.matches("http://www.w3.org/2000/svg").count());
    let piped = run(folder.path(), &["report", "plan.json"]);
    assert_eq!((piped.code, piped.stdout), (0, text));
}

#[test]
fn two_plans_and_a_front() {
    let folder = folder();
    let small = plan(folder.path(), "builtin:resnet8", &["--mem", "min", "--pareto", "front.json"]);
    std::fs::rename(folder.path().join("plan.json"), folder.path().join("small.json")).unwrap();
    let large = plan(folder.path(), "builtin:resnet8", &["--rows", "none"]);
    let all = data(&page(folder.path(), &["small.json", "--front", "front.json"]));
    let totals: Vec<&Value> =
        all["plans"].as_array().unwrap().iter().map(|plan| &plan["memory"]["total"]).collect();
    assert_eq!(totals, [&json!(large.memory.total), &json!(small.memory.total)]);
    let points = all["front"]["points"].as_array().unwrap();
    assert_eq!(points.len(), small.pareto.len());
    assert_eq!(points[0][0], json!(small.pareto[0].memory));
}

#[test]
fn bad_plans_are_refused() {
    let folder = folder();
    let path = folder.path();
    plan(path, "builtin:resnet8", &[]);
    let good = std::fs::read_to_string(path.join("plan.json")).unwrap();
    let mut bad: Value = serde_json::from_str(&good).unwrap();
    let ring = bad["tensors"].as_array_mut().unwrap().iter_mut().find(|tensor| !tensor["offset"].is_null());
    ring.unwrap()["offset"] = json!(1u64 << 50);
    std::fs::write(path.join("bad.json"), bad.to_string()).unwrap();
    std::fs::write(path.join("half.json"), &good[..good.len() / 2]).unwrap();
    for (args, says) in [
        (&["report", "missing.json", "-o", "x.html"][..], "missing.json"),
        (&["report", "half.json", "-o", "x.html"], "half.json"),
        (&["report", "bad.json", "-o", "x.html"], "cannot be drawn"),
        (&["report", "plan.json", "bad.json", "-o", "x.html"], "bad.json"),
        (&["report", "plan.json", "--front", "half.json", "-o", "x.html"], "half.json"),
        (&["report", "plan.json", "--trace", "-", "-o", "-"], "standard output"),
        (&["report", "plan.json", "plan.json", "--trace", "x.html"], "one plan"),
        (&["report", "plan.json", "-o", "missing/x.html"], "missing/x.html"),
        (&["report", "plan.json", "plan.json", "plan.json"], "no more"),
        (&["report"], "PLAN"),
    ] {
        let text = fails(path, args);
        assert!(text.contains(says), "{args:?}: {text}");
        assert!(!path.join("x.html").exists(), "{args:?}");
    }
}

/// The checker does not check a plan's times, so the page must work with any number.
#[test]
fn any_time_is_drawn() {
    let folder = folder();
    plan(folder.path(), "builtin:lenet5", &["--rows", "all"]);
    let text = std::fs::read_to_string(folder.path().join("plan.json")).unwrap();
    for ns in [0.0, 1e300, f64::MAX] {
        let mut plan: Value = serde_json::from_str(&text).unwrap();
        // The first is the input, which has no time.
        for layer in plan["cnns"][0]["layers"].as_array_mut().unwrap().iter_mut().skip(1) {
            layer["time"] = json!({"ns": ns, "basis": "modelled"});
        }
        std::fs::write(folder.path().join("plan.json"), plan.to_string()).unwrap();
        let shown = data(&page(folder.path(), &[]))["plans"][0].clone();
        let most = numbers(&shown["usage"]).chunks(2).map(|entry| entry[1]).max();
        assert_eq!(most, shown["memory"]["bound"].as_u64(), "{ns}");
    }
    // A plan of an older version states none.
    let mut plan = Plan::from_json(&text).unwrap();
    plan.cnns[0].layers.iter_mut().for_each(|layer| layer.time = None);
    let untimed = timeline::timeline(&plan).unwrap();
    assert_eq!((untimed.basis, untimed.ns), (None, untimed.firings.len() as f64));
}

/// The complete events of a trace with this category, or all but those with it.
fn events(trace: &Value, loads: bool) -> Vec<Value> {
    let all = trace["traceEvents"].as_array().unwrap();
    all.iter().filter(|event| event["ph"] == "X" && (event["cat"] == "load") == loads).cloned().collect()
}

#[test]
fn modelled_and_measured_traces_have_one_shape() {
    let folder = folder();
    let plan = plan(folder.path(), "builtin:mobilenet_v1_0.25", &["--weights", "streamed", "--rows", "all"]);
    let ended = run(folder.path(), &["report", "plan.json", "--trace", "model.json"]);
    assert_eq!((ended.code, ended.stdout.as_str()), (0, ""));
    let args = [
        "run",
        "plan.json",
        "--random",
        "1",
        "--frames",
        "2",
        "--profile",
        "--trace",
        "run.json",
        "--format",
        "json",
    ];
    let ended = run(folder.path(), &args);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let [modelled, measured] = ["model.json", "run.json"].map(|name| {
        serde_json::from_str::<Value>(&std::fs::read_to_string(folder.path().join(name)).unwrap()).unwrap()
    });
    let firings: u64 = plan.cnns[0].layers.iter().map(|layer| layer.firings).sum();
    for trace in [&modelled, &measured] {
        assert_eq!(events(trace, false).len() as u64, firings);
        let read: u64 =
            events(trace, true).iter().map(|event| event["args"]["bytes"].as_u64().unwrap()).sum();
        assert_eq!(Some(read), plan.cnns[0].bytes_read);
        let counters = trace["traceEvents"].as_array().unwrap().iter().filter(|event| event["ph"] == "C");
        assert_eq!(
            counters.map(|event| event["args"]["bytes"].as_u64().unwrap()).max(),
            Some(plan.memory.bound)
        );
        for event in trace["traceEvents"].as_array().unwrap().iter().filter(|event| event["ph"] != "M") {
            assert!(
                event["ts"].as_f64().unwrap() >= 0.0 && event["dur"].as_f64().is_none_or(|dur| dur >= 0.0)
            );
        }
    }
    let names = |trace: &Value| -> Vec<Value> {
        events(trace, false).iter().map(|event| event["name"].clone()).collect()
    };
    assert_eq!(names(&modelled), names(&measured));
    let threads = |trace: &Value| -> BTreeSet<String> {
        let all = trace["traceEvents"].as_array().unwrap().iter().filter(|event| event["ph"] == "M");
        all.map(|event| event["args"]["name"].to_string()).collect()
    };
    assert_eq!(threads(&modelled), threads(&measured));
    // The times that the plan states are next to the measured ones.
    let report: Value = serde_json::from_str(&ended.stdout).unwrap();
    for (shown, layer) in report["cnns"][0]["profile"].as_array().unwrap().iter().zip(&plan.cnns[0].layers) {
        assert_eq!(shown["modelled"].as_f64(), layer.time.map(|time| time.ns / 1e6), "{}", layer.name);
    }
    let table = run(folder.path(), &["run", "plan.json", "--random", "1", "--profile"]).stdout;
    assert!(table.lines().any(|line| line.contains("measured") && line.contains("planned")), "{table}");
}
