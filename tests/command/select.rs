//! `csdfc select` as a user runs it.

use std::path::Path;

use serde_json::{Value, json};

use super::{Ended, fails, fits_a_screen, folder, run, run_given};

/// A stem, two branches that are joined, and a head.
const INSTANCE: &str = include_str!("../../apps/select/inception.json");

const FROM_STDIN: [&str; 3] = ["select", "--instance", "-"];

fn select(args: &[&str]) -> Ended {
    let ended = run_given(folder().path(), &[&FROM_STDIN[..], args].concat(), INSTANCE);
    assert_eq!(ended.stderr, "");
    ended
}

fn data(args: &[&str]) -> Value {
    let ended = select(&[args, &["--format", "json"]].concat());
    assert_eq!(ended.code, 0, "{args:?}");
    serde_json::from_str(&ended.stdout).unwrap()
}

/// Two layers, with the given fields of their options and of the edge between them.
fn pair(first: &str, second: &str, conversions: &str) -> String {
    let layer = |name: &str, options: &str| {
        format!("{{\"name\": \"{name}\", \"kind\": \"conv\", \"options\": [{options}]}}")
    };
    let layers = [layer("a", first), layer("b", second)].join(", ");
    format!(
        "{{\"layers\": [{layers}], \"edges\": [{{\"from\": \"a\", \"to\": \"b\", \"conversions\": [{conversions}]}}]}}"
    )
}

fn option(layout: &str, time: &str) -> String {
    format!(
        "{{\"primitive\": \"p\", \"in\": \"{layout}\", \"out\": \"{layout}\", \"time\": {time}, \"memory\": 1}}"
    )
}

#[test]
fn selections_are_printed_and_written() {
    insta::assert_snapshot!("select_time", select(&[]).stdout);
    let limited = ["--mem", "300KiB"];
    insta::assert_snapshot!("select_memory", select(&limited).stdout);
    insta::assert_snapshot!("select_json", select(&[&limited[..], &["--format", "json"]].concat()).stdout);
    insta::assert_snapshot!("select_front", select(&["--front"]).stdout);
    insta::assert_snapshot!("select_families", select(&["--method", "families"]).stdout);

    // The same data, whichever way it goes.
    let folder = folder();
    std::fs::write(folder.path().join("costs.json"), INSTANCE).unwrap();
    let args = ["select", "--instance", "costs.json", "--mem", "300KiB"];
    let run = |more: &[&str]| run(folder.path(), &[&args[..], more].concat());
    let printed = run(&["--format", "json"]).stdout;
    assert_eq!(run(&["-o", "-"]).stdout, printed);
    assert_eq!(run(&["-o", "selection.json"]).code, 0);
    assert_eq!(std::fs::read_to_string(folder.path().join("selection.json")).unwrap(), printed);
}

#[test]
fn objectives_and_budgets_go_together() {
    let of = |data: &Value, field: &str| data[field].as_f64().unwrap();
    let fastest = data(&[]);
    assert_eq!((of(&fastest, "objective"), of(&fastest, "time")), (348.0, 348.0));
    assert_eq!((&fastest["optimal"], of(&fastest, "bound")), (&json!(true), 348.0));
    assert_eq!(fastest["choice"]["head_3x3"], json!("wino2d-f2x3-hcw-hcw"));
    assert_eq!(fastest["conversions"][0]["path"], json!(["HWC", "HCW", "CHW"]));
    // A plain size is in bytes: 300 KiB, and one byte less than the 284 KiB that it then takes.
    assert_eq!(of(&data(&["--mem", "307200"]), "memory"), 284.0);
    assert_eq!(of(&data(&["--mem", "290815"]), "memory"), 232.0);
    let small = data(&["--objective", "memory", "--max-time", "500us"]);
    assert_eq!((of(&small, "objective"), of(&small, "time")), (232.0, 454.5));
    let narrow = data(&["--objective", "workspace", "--max-time", "0.5ms"]);
    assert_eq!((of(&narrow, "objective"), of(&narrow, "time")), (120.0, 441.5));
    assert_eq!(of(&data(&["--workspace", "120KiB"]), "time"), 441.5);
    assert_eq!(of(&data(&["--workspace", "120KiB", "--mem", "250KiB"]), "time"), 454.5);
    for method in ["program", "greedy", "families", "local-optimal", "sum2d"] {
        let found = data(&["--method", method]);
        assert_eq!(found["method"], json!(method));
        assert!(of(&found, "time") >= 348.0 && of(&found, "bound") == 348.0, "{method}");
    }
    // A pool and a concat that convert for nothing.
    assert_eq!(of(&data(&["--pass-converts"]), "time"), 332.0);
}

#[test]
fn budgets_of_the_file_are_defaults() {
    let text = INSTANCE.replacen('{', "{\"memory_budget\": 300, \"time_budget\": 500,", 1);
    let select = |args: &[&str]| {
        let args = [&FROM_STDIN[..], args, &["--format", "json"]].concat();
        let ended = run_given(folder().path(), &args, &text);
        serde_json::from_str::<Value>(&ended.stdout).unwrap()["objective"].clone()
    };
    assert_eq!(select(&[]), json!(441.5));
    assert_eq!(select(&["--mem", "250KiB"]), json!(454.5));
    assert_eq!(select(&["--objective", "memory"]), json!(232.0));
    assert_eq!(select(&["--objective", "memory", "--max-time", "1s"]), json!(64.0));
    assert_eq!(select(&["--objective", "workspace"]), json!(120.0));
}

#[test]
fn what_is_not_feasible_is_an_honest_no() {
    let no = |args: &[&str], quantity: &str, least: f64| {
        let ended = select(&[args, &["--format", "json"]].concat());
        let data: Value = serde_json::from_str(&ended.stdout).unwrap();
        assert_eq!((ended.code, &data["met"], &data["objective"]), (2, &json!(false), &Value::Null));
        assert_eq!((&data["unmet"]["quantity"], &data["unmet"]["least"]), (&json!(quantity), &json!(least)));
        assert_eq!(data[quantity], json!(least));
    };
    no(&["--mem", "63KiB"], "memory", 64.0);
    no(&["--mem", "63KiB", "--method", "program"], "memory", 64.0);
    no(&["--mem", "63KiB", "--front"], "memory", 64.0);
    no(&["--workspace", "23KiB"], "workspace", 24.0);
    no(&["--objective", "memory", "--max-time", "347us"], "time", 348.0);
    no(&["--objective", "workspace", "--max-time", "347us"], "time", 348.0);
    no(&["--max-time", "347us"], "time", 348.0);
    let ended = select(&["--mem", "63KiB"]);
    assert_eq!(ended.code, 2);
    insta::assert_snapshot!("select_unmet", ended.stdout);
    let ended = select(&["--mem", "63KiB", "--method", "sum2d"]);
    assert_eq!(ended.code, 2);
    assert!(ended.stdout.contains("does not keep to a memory of 63 KiB"), "{}", ended.stdout);

    let text =
        pair(&option("CHW", "1"), &option("HWC", "1"), "{\"in\": \"HWC\", \"out\": \"CHW\", \"time\": 1}");
    let ended = run_given(folder().path(), &FROM_STDIN, &text);
    assert_eq!((ended.code, ended.stderr.as_str()), (2, ""));
    insta::assert_snapshot!("select_no_path", ended.stdout);
}

#[test]
fn wrong_instances_are_explained() {
    let folder = folder();
    let check = |name: &str, text: &str| {
        std::fs::write(folder.path().join("costs.json"), text).unwrap();
        let error = fails(folder.path(), &["select", "--instance", "costs.json"]);
        insta::assert_snapshot!(format!("select_{name}"), error);
    };
    let good = [option("CHW", "1"), option("CHW", "2")];
    check("empty", "");
    check("truncated", &INSTANCE[..1000]);
    check("wrong_type", &pair(&option("CHW", "\"fast\""), &good[0], ""));
    check("negative", &pair(&option("CHW", "-1"), &good[0], ""));
    check("huge", &pair(&option("CHW", "1e300"), &good[0], ""));
    check("no_options", &pair("", &good[0], ""));
    check("unknown_layer", &pair(&good[0], &good[1], "").replace("\"to\": \"b\"", "\"to\": \"c\""));
    check("cycle", &pair(&good[0], &good[1], "").replace("\"to\": \"b\"", "\"to\": \"a\""));
    check("duplicate", &pair(&good[0], &good[1], "").replace("\"name\": \"b\"", "\"name\": \"a\""));
    check("unknown_field", &pair(&good[0], &good[1], "").replace("\"edges\"", "\"edegs\""));
    let fails = |args: &[&str]| fails(folder.path(), &[&["select"], args].concat());
    assert!(fails(&["--instance", "none.json"]).contains("none.json"));
    assert!(fails(&[]).contains("--instance"));
    assert!(fails(&["--instance", "costs.json", "--objective", "speed"]).contains("workspace"));
    assert!(fails(&["--instance", "costs.json", "--max-time", "5"]).contains("40ms"));
    let greedy = ["--instance", "costs.json", "--method", "greedy", "--objective", "memory"];
    assert!(fails(&greedy).contains("replaces primitives of the time optimum"));
}

#[test]
fn thousands_of_layers_end_soon() {
    let options = ["CHW", "HCW", "HWC"].map(|layout| option(layout, "1.5")).join(", ");
    let layer = |at: usize| format!("{{\"name\": \"l{at}\", \"kind\": \"conv\", \"options\": [{options}]}}");
    let edge = |(from, to): (usize, usize)| {
        format!(
            "{{\"from\": \"l{from}\", \"to\": \"l{to}\", \"conversions\": \
             [{{\"in\": \"CHW\", \"out\": \"HWC\", \"time\": 1}}]}}"
        )
    };
    let network = |layers: usize, edges: Vec<(usize, usize)>| {
        let layers: Vec<String> = (0..layers).map(layer).collect();
        let edges: Vec<String> = edges.into_iter().map(edge).collect();
        format!("{{\"layers\": [{}], \"edges\": [{}]}}", layers.join(", "), edges.join(", "))
    };
    let solved = |folder: &Path, text: &str, args: &[&str]| {
        let args = [&FROM_STDIN[..], &["--format", "json"], args].concat();
        let ended = run_given(folder, &args, text);
        assert_eq!(ended.code, 0, "{}", ended.stderr);
        serde_json::from_str::<Value>(&ended.stdout).unwrap()
    };
    let folder = folder();
    let chain = network(5000, (1..5000).map(|to| (to - 1, to)).collect());
    let found = solved(folder.path(), &chain, &[]);
    assert_eq!((&found["objective"], &found["optimal"]), (&json!(7500.0), &json!(true)));
    let star = network(3000, (1..3000).map(|to| (0, to)).collect());
    assert_eq!(solved(folder.path(), &star, &["--mem", "3000KiB"])["objective"], json!(4500.0));
    // Every layer reads all before it.
    let dense = network(60, (1..60).flat_map(|to| (0..to).map(move |from| (from, to))).collect());
    assert_eq!(solved(folder.path(), &dense, &[])["objective"], json!(90.0));
    let ended = run_given(folder.path(), &FROM_STDIN, &network(3000, vec![(0, 1), (1, 2), (2, 0)]));
    assert_eq!(ended.code, 1);
    fits_a_screen(&ended.stderr);
}

#[test]
fn networks_are_taken_from_a_model_and_a_profile() {
    let folder = folder();
    let folder = folder.path();
    let model = ["select", "builtin:paper_cnn1", "--device", "generic"];
    let ended = run(folder, &model);
    assert_eq!((ended.code, ended.stderr.as_str()), (0, ""));
    insta::assert_snapshot!("select_model", ended.stdout);

    // The table that is written gives the same selection.
    let written = run(folder, &[&model[..], &["--instance-out", "costs.json"]].concat());
    assert_eq!((written.code, written.stdout.as_str()), (0, ""));
    let json = |args: &[&str]| {
        let ended = run(folder, &[args, &["--format", "json"]].concat());
        serde_json::from_str::<Value>(&ended.stdout).unwrap()
    };
    let (of_model, of_table) = (json(&model), json(&["select", "--instance", "costs.json"]));
    for field in ["objective", "memory", "workspace", "choice", "conversions"] {
        assert_eq!(of_model[field], of_table[field], "{field}");
    }
    assert!(of_model["modelled"]["layers"].is_array() && of_table.get("modelled").is_none());

    let app = "(name: \"a\", cnns: [(name: \"one\", model: \"builtin:paper_cnn1\"), \
               (name: \"two\", model: \"builtin:paper_cnn2\")])";
    std::fs::write(folder.join("app.ron"), app).unwrap();
    let error = fails(folder, &["select", "app.ron"]);
    assert!(error.contains("several CNNs") && error.contains("--cnn: one, two"), "{error}");
    let error = fails(folder, &["select", "app.ron", "--cnn", "tow"]);
    assert!(error.contains("no CNN `tow`") && error.contains("one, two"), "{error}");
    assert_eq!(run(folder, &["select", "app.ron", "--cnn", "two"]).code, 0);
    let error = fails(folder, &["select", "--instance", "costs.json", "--device", "generic"]);
    assert!(error.contains("--device"), "{error}");
}

/// The plan of a selection computes each layer as was selected, in one firing, and makes the same numbers as any other.
#[test]
fn a_selection_is_planned_and_run() {
    let folder = folder();
    let folder = folder.path();
    std::fs::write(folder.join("app.ron"), "(cnns: [(model: \"builtin:resnet8\")], storage: edges)").unwrap();
    let ok = |args: &[&str]| {
        let ended = run(folder, args);
        assert_eq!(ended.code, 0, "{args:?}: {}", ended.stderr);
        ended.stdout
    };
    let json = |args: &[&str]| serde_json::from_str::<Value>(&ok(args)).unwrap();
    ok(&["profile", "app.ron", "--rounds", "1", "--only", "direct", "--device-out", "board.ron", "-q"]);
    ok(&["plan", "app.ron", "-o", "first.json"]);
    ok(&["run", "first.json", "--random", "1", "--output", "reference"]);
    let file = std::fs::read_dir(folder.join("reference")).unwrap().next().unwrap().unwrap().path();
    let output = file.file_stem().unwrap().to_str().unwrap();
    let compare = format!("{output}={}", file.display());
    let mut primitives = Vec::new();
    for method in ["sum2d", "local-optimal", "families", "greedy", "exact"] {
        let select = ["select", "app.ron", "--device", "board.ron", "--method", method, "--format", "json"];
        let selected = json(&[&select[..], &["--plan-out", "plan.json"]].concat());
        ok(&["check", "plan.json"]);
        let ran =
            ["run", "plan.json", "--random", "1", "--profile", "--format", "json", "--compare", &compare];
        let ran = json(&ran);
        let mut of_method = Vec::new();
        for layer in ran["cnns"][0]["profile"].as_array().unwrap() {
            let chosen = &selected["choice"][layer["layer"].as_str().unwrap()];
            let is_chosen = layer["operator"] != json!("convert") && layer["operator"] != json!("input");
            assert!(!is_chosen || *chosen == layer["primitive"], "{method}: {chosen} {layer}");
            assert_eq!(layer["firings"], json!(1), "{layer}");
            of_method.push(layer["primitive"].as_str().unwrap().to_owned());
        }
        // All layers but the output, which no primitive computes, and perhaps conversions.
        assert!(of_method.len() + 1 >= selected["choice"].as_object().unwrap().len(), "{of_method:?}");
        primitives.push(of_method);
    }
    let is_sum2d = |name: &&String| name.contains("sum2d");
    assert_eq!(primitives[0].iter().filter(is_sum2d).count(), 9, "{:?}", primitives[0]);
    assert_ne!(primitives[0], primitives[4]);

    let exact = ["select", "app.ron", "--device", "board.ron", "--plan-out"];
    let printed = ok(&[&exact[..], &["-"]].concat());
    assert_eq!(printed, std::fs::read_to_string(folder.join("plan.json")).unwrap());
    let error = fails(folder, &[&exact[..], &["p.json", "--front"]].concat());
    assert!(error.contains("--front") && error.contains("--plan-out"), "{error}");
}
