//! Fronts as files: saved, drawn, started from and picked from.

use std::path::Path;

use csdfc_plan::plan::Plan;
use serde_json::{Value, json};

use super::{Ended, fails, folder, onnx, run};

/// Two CNNs that run at the same time.
const APP: &str = r#"(
  name: "pair",
  cnns: [(name: "a", model: "builtin:resnet8"), (name: "b", model: "builtin:lenet5")],
  parallel: [["a", "b"]],
)
"#;

fn planned(ended: &Ended) -> Plan {
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    Plan::from_json(&ended.stdout).unwrap()
}

fn read(path: &Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

#[test]
fn a_front_is_saved_drawn_and_picked_from() {
    let folder = folder();
    std::fs::write(folder.path().join("app.ron"), APP).unwrap();
    let run = |args: &[&str]| run(folder.path(), args);
    let table = run(&["plan", "app.ron", "--method", "simple", "--mem", "677kB"]);
    assert_eq!((table.code, table.stderr.as_str()), (0, ""));
    insta::assert_snapshot!("front_table", table.stdout);
    let plan = planned(&run(&["plan", "app.ron", "--pareto", "front.json", "-q", "--format", "json"]));
    let front = read(&folder.path().join("front.json"));
    assert_eq!(front["pareto"], json!(plan.pareto));
    assert_eq!(front["chosen"], json!(plan.search.choices));
    assert!(plan.pareto.len() > 3);
    for (i, point) in plan.pareto.iter().enumerate() {
        let number = (i + 1).to_string();
        let picked = run(&["plan", "app.ron", "--from", "front.json", "--pick", &number, "--format", "json"]);
        assert_eq!(picked.stderr, "");
        let picked = planned(&picked);
        assert_eq!((picked.memory.total, &picked.search.choices), (point.memory, &point.choices));
        assert_eq!((picked.search.method.as_str(), picked.search.evaluations), ("given", 2));
        assert!(picked.cnns.iter().all(|cnn| (cnn.fps - point.fps[&cnn.name]).abs() < 1e-6));
    }
    assert_eq!(run(&["plan", "app.ron", "--pareto", "front.svg"]).code, 0);
    let svg = std::fs::read_to_string(folder.path().join("front.svg")).unwrap();
    // Two panels, in each a point for every plan and a ring for the one that was chosen.
    assert_eq!(svg.matches("<circle").count(), 2 * (plan.pareto.len() + 1));
    let piped = run(&["plan", "app.ron", "--pareto", "-", "-o", "plan.ron"]);
    assert_eq!(serde_json::from_str::<Value>(&piped.stdout).unwrap(), front);
    // A plan is a front too, in either form.
    let args = ["plan", "app.ron", "--from", "plan.ron", "--pick", "2", "--format", "json"];
    assert_eq!(planned(&run(&args)).memory.total, plan.pareto[1].memory);
}

/// Blocks of weights are placed when all else is known, so the plans of the front have them placed too.
#[test]
fn picked_plans_stream_the_weights_that_their_lines_do() {
    let folder = folder();
    let run = |args: &[&str]| run(folder.path(), args);
    for asked in [
        &["builtin:resnet8", "--weights", "streamed"][..],
        // Some weights stay in memory.
        &["builtin:resnet8", "--mem", "300kB"],
        // Some are read again at each firing.
        &["builtin:resnet8", "--mem", "107kB"],
    ] {
        let save = [&["plan"], asked, &["--pareto", "front.json", "-q", "--format", "json"]].concat();
        let plan = planned(&run(&save));
        assert!(plan.store.is_some() && plan.pareto.len() > 1, "{asked:?}: {}", plan.pareto.len());
        assert!(plan.pareto.is_sorted_by(|a, b| a.memory > b.memory && a.fps["resnet8"] > b.fps["resnet8"]));
        // The plan itself is among them, or one that is hardly slower.
        let is_as_good = |point: &csdfc_plan::plan::ParetoPoint| {
            point.memory <= plan.memory.total && point.fps["resnet8"] >= plan.cnns[0].fps * 0.99
        };
        assert!(plan.pareto.iter().any(is_as_good), "{asked:?}");
        for (i, point) in plan.pareto.iter().enumerate() {
            let number = (i + 1).to_string();
            // Without a limit, and with the same one if it fits that.
            let fits = plan.constraints.memory.is_none_or(|limit| point.memory <= limit);
            for words in [Some(&asked[..1]), fits.then_some(asked)].into_iter().flatten() {
                let from = ["--from", "front.json", "--pick", &number, "--format", "json"];
                let picked = run(&[&["plan"], words, &from].concat());
                assert_eq!(picked.stderr, "", "{words:?}");
                let picked = planned(&picked);
                assert_eq!((picked.memory.total, &picked.search.choices), (point.memory, &point.choices));
                assert!((picked.cnns[0].fps - point.fps["resnet8"]).abs() < 1e-6, "{words:?} {number}");
            }
        }
    }
}

#[test]
fn a_search_starts_from_an_old_plan() {
    let folder = folder();
    let run = |args: &[&str]| run(folder.path(), args);
    // Rows that no simple plan has.
    let old = [
        "plan",
        "builtin:resnet8",
        "--rows",
        "input=4,conv=4,stack1_conv1=4,stack1_conv2=4",
        "-o",
        "old.json",
    ];
    assert_eq!(run(&old).code, 0);
    let text = std::fs::read_to_string(folder.path().join("old.json")).unwrap();
    let old = Plan::from_json(&text).unwrap();
    let memory = old.memory.total.to_string();
    let args = ["plan", "builtin:resnet8", "--mem", &memory, "--method", "simple", "--format", "json"];
    let without = planned(&run(&args));
    let with = run(&[&args[..], &["--from", "old.json"]].concat());
    assert_eq!(with.stderr, "");
    let with = planned(&with);
    assert!(with.cnns[0].fps >= old.cnns[0].fps.max(without.cnns[0].fps));
    assert!(with.cnns[0].fps > without.cnns[0].fps, "nothing was won: {}", with.cnns[0].fps);
    assert_eq!(with.search.evaluations, without.search.evaluations + 1);
    // A plan of an older format is read, though it has no effect here.
    let [app, older] = ["apps/pair_5x5.ron", "tests/plan_format/version_1/pair_5x5.json"]
        .map(|path| csdfc_tests::root().join(path).to_str().unwrap().to_owned());
    let with = run(&["plan", &app, "--storage", "tensors", "--from", &older]);
    assert_eq!(with.code, 0);
    assert!(
        with.stderr.ends_with("with the given rows or method there is nothing to search\n"),
        "{}",
        with.stderr
    );
}

#[test]
fn what_does_not_apply_is_said() {
    let folder = folder();
    let path = |name: &str| folder.path().join(name);
    std::fs::write(path("model.onnx"), onnx::good()).unwrap();
    assert_eq!(run(folder.path(), &["plan", "model.onnx", "--pareto", "front.json"]).code, 0);
    let front = std::fs::read_to_string(path("front.json")).unwrap();
    // With --pick an error; without a warning, and the plan is that of a search from nothing.
    let plain = run(folder.path(), &["plan", "model.onnx"]).stdout;
    let check = |snapshot: &str, text: &str| {
        std::fs::write(path("changed.json"), text).unwrap();
        let error = fails(folder.path(), &["plan", "model.onnx", "--from", "changed.json", "--pick", "1"]);
        let ended = run(folder.path(), &["plan", "model.onnx", "--from", "changed.json"]);
        assert_eq!((ended.code, &ended.stdout), (0, &plain));
        insta::assert_snapshot!(snapshot, format!("{error}---\n{}", ended.stderr));
    };
    let mut value: Value = serde_json::from_str(&front).unwrap();
    value["cnns"][0]["name"] = json!("madel");
    check("front_of_another_cnn", &value.to_string());
    let mut value: Value = serde_json::from_str(&front).unwrap();
    value["cnns"][0]["model"]["sha256"] = json!("0".repeat(64));
    check("front_of_another_model", &value.to_string());
    let mut value: Value = serde_json::from_str(&front).unwrap();
    value["cnns"][0]["layers"] = json!(99);
    check("front_of_other_layers", &value.to_string());
    let mut value: Value = serde_json::from_str(&front).unwrap();
    value["cnns"][0]["order"] = json!("0123456789abcdef");
    check("front_of_another_order", &value.to_string());
    let mut value: Value = serde_json::from_str(&front).unwrap();
    value["pareto"][0]["choices"]["model"] = json!("prefix 3");
    value["chosen"]["model"] = json!("99*1");
    value["pareto"] = json!([value["pareto"][0]]);
    check("front_of_bad_choices", &value.to_string());
}

#[test]
fn wrong_fronts_are_refused() {
    let folder = folder();
    let path = |name: &str| folder.path().join(name);
    assert_eq!(run(folder.path(), &["plan", "builtin:lenet5", "--pareto", "front.json"]).code, 0);
    let front = std::fs::read_to_string(path("front.json")).unwrap();
    let refused = |snapshot: &str, text: &str, more: &[&str]| {
        std::fs::write(path("bad.json"), text).unwrap();
        let args = [&["plan", "builtin:lenet5", "--from", "bad.json"], more].concat();
        insta::assert_snapshot!(snapshot, fails(folder.path(), &args));
    };
    refused("front_empty", "", &[]);
    refused("front_truncated", &front[..60], &[]);
    refused("front_of_unknown_format", &front.replace("csdfc-front/1", "csdfc-front/9"), &[]);
    refused("front_with_unknown_field", &front.replacen("\"chosen\"", "\"chose\"", 1), &[]);
    refused("front_pick_out_of_range", &front, &["--pick", "99"]);
    refused("front_pick_0", &front, &["--pick", "0"]);
    refused("front_and_rows", &front, &["--rows", "all"]);
    let lenet = |args: &[&str]| fails(folder.path(), &[&["plan", "builtin:lenet5"], args].concat());
    insta::assert_snapshot!("front_pick_without_from", lenet(&["--pick", "1"]));
    insta::assert_snapshot!("front_to_text", lenet(&["--pareto", "front.txt"]));
    insta::assert_snapshot!("front_and_plan_to_stdout", lenet(&["--pareto", "-", "-o", "-"]));
    insta::assert_snapshot!("front_missing", lenet(&["--from", "none.json"]));
}
