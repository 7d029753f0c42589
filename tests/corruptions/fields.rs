//! Every field of every type in real plans: changed, removed, and with an unknown field next to it. `csdfc check`
//! refuses all of these, but for what [`ACCEPTED`] lists.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use csdfc_input::app::resolve::{Application, RowsChoice};
use csdfc_network::pass::{Fusion, fuse_integers, integers};
use csdfc_network::{Network, NetworkOutput, Operand};
use csdfc_plan::check::check;
use csdfc_plan::format::Quantization;
use csdfc_plan::plan::{Plan, StorageModel};
use csdfc_plan::shape::Shape;
use csdfc_planner::saved::reload;
use csdfc_tests::quantized::{dense_block, quantized};
use csdfc_tests::{application, generate, plan, random, tiled};
use serde_json::{Value, json};

use crate::emit::kernels;
use crate::run::shared::heads;

/// A plan, and the networks that it must belong to, if they are those of no file.
struct Case {
    name: String,
    plan: Value,
    networks: Vec<Network>,
}

impl Case {
    fn new(name: &str, application: &Application) -> Case {
        let plan = plan(application);
        let is_of_files = application.cnns.iter().all(|cnn| cnn.model.name.starts_with("builtin:"));
        let networks = application.cnns.iter().map(|cnn| cnn.network.clone());
        Case {
            name: name.into(),
            plan: serde_json::from_str(&plan.to_json()).unwrap(),
            networks: if is_of_files { Vec::new() } else { networks.collect() },
        }
    }

    /// Whether the command accepts the edited plan.
    fn accepts(&self, edited: &Value) -> bool {
        let Ok(plan) = Plan::parse(&edited.to_string()) else { return false };
        if check(&plan).is_err() {
            return false;
        }
        if self.networks.is_empty() {
            return reload::differences(&plan, Path::new("")).is_ok_and(|differences| differences.is_empty());
        }
        let mut cnns = plan.cnns.iter().zip(&self.networks);
        cnns.all(|(cnn, network)| reload::compare(&plan, cnn, network).is_empty())
    }
}

/// Plans that together have every type of object that a plan can have.
fn cases() -> Vec<Case> {
    let paper = r#"cnns: [(name: "cnn1", model: "builtin:paper_cnn1"), (name: "cnn2", model: "builtin:paper_cnn2",
        partitions: [(name: "p2", upto: "l2"), (name: "p3")])], parallel: [["cnn1"], ["p2", "p3"]]"#;
    let texts = [
        ("edges", format!("{paper}, storage: edges")),
        (
            "limits",
            format!(
                "{paper}, rows: all, threads: 2, constraints: (memory: \"2MB\", fps: 1, latency: \"10s\")"
            ),
        ),
        (
            "camera",
            r#"cnns: [(model: "builtin:paper_pair", inputs: {"l1": (type: u8, mean: [1, 2, 3], scale: 0.5)})],
            constraints: (memory: min)"#
                .into(),
        ),
        (
            "streamed",
            r#"cnns: [(model: "builtin:lenet5"), (model: "builtin:paper_pair")], parallel: [["lenet5", "paper_pair"]],
            rows: all, weights: streamed"#
                .into(),
        ),
        ("half", r#"cnns: [(model: "builtin:lenet5", precision: half)]"#.into()),
        ("stream", r#"cnns: [(model: "builtin:resnet8", stream: (window: 32))]"#.into()),
    ];
    let of_text = |(name, text): &(&str, String)| Case::new(name, &application(&format!("({text})")));
    let mut all: Vec<Case> = texts.iter().map(of_text).collect();
    let of_text = application(r#"(cnns: [(model: "builtin:lenet5")], constraints: (memory: "1kB"))"#);
    let mut unmet = Case::new("remedies", &of_text);
    unmet.plan["constraints"]["remedies"] = json!([
        {"means": "weights streamed", "options": ["--mem", "min"], "total": 1, "fps": {"lenet5": 1.0}, "met": false}
    ]);
    all.push(unmet);
    let of_network = |name: &str, network: Network, rows: RowsChoice| {
        let application = generate::of_one(network, StorageModel::Tensors, rows);
        Case::new(name, &application)
    };
    let tiled = generate::of_one(tiled::convolutions(&mut random(1)), StorageModel::Tensors, RowsChoice::All);
    all.push(Case::new("tiled", &tiled::read_again(&tiled)));
    all.push(of_network("shared", heads(&[0, 1]), RowsChoice::All));
    let dense = fuse_integers(dense_block(&mut random(0)), Fusion::Full);
    all.push(of_network("integers", dense, RowsChoice::None));
    for (name, network) in operators() {
        let to = Some(Quantization { scale: 0.031, zero_point: 129 });
        let to: Vec<_> =
            network.layers.iter().map(|layer| to.filter(|_| !layer.operator.makes_indices())).collect();
        let of_integers = integers(quantized(&network, &to));
        all.push(of_network(&format!("{name} of integers"), of_integers, RowsChoice::None));
        all.push(of_network(&name, network, RowsChoice::All));
    }
    all
}

/// A network of each operator, with each of its attributes and functions.
fn operators() -> Vec<(String, Network)> {
    let (mut all, mut seen) = (Vec::new(), BTreeSet::new());
    for group in kernels::groups() {
        for operator in group.operators {
            let mut places = Vec::new();
            visit(&serde_json::to_value(&operator).unwrap(), "", "", &mut |place, _, value| {
                let kind = if value.is_string() { value.to_string() } else { String::new() };
                places.push(format!("{place}{kind}"));
            });
            let before = seen.len();
            seen.extend(places);
            if seen.len() > before {
                let mut network = Network::default();
                let input = |[own, shape]: &[Shape; 2]| {
                    let operand = generate::input(&mut network, own.clone());
                    Operand { shape: shape.clone(), ..operand }
                };
                let inputs: Vec<Operand> = group.inputs.iter().map(input).collect();
                let operand = generate::push(&mut network, operator.clone(), inputs).unwrap();
                network.outputs.push(NetworkOutput::new("out", operand));
                all.push((format!("{} of {}", operator.kind(), group.name), network));
            }
        }
    }
    all
}

/// The fields that may be changed, or left out, and why: nothing else in a plan, or in its models, says what they are.
const ACCEPTED: &[(&str, &[&str], &str)] = &[
    (".csdfc", &[CHANGED], "only csdfc knows which version it was"),
    (".application", &[CHANGED], "a title"),
    (".device.name", &[CHANGED], "plans do not contain device profiles"),
    (".device.basis", &[CHANGED], "likewise"),
    (".device.cores.*", &[CHANGED], "likewise; fewer than the loads add up to are refused"),
    (".store.bytes_per_second", &[CHANGED, REMOVED], "likewise"),
    (".partitions[].load", &[CHANGED, REMOVED], "modelled; more than the cores are refused"),
    (".cnns[].fps", &[CHANGED], "modelled; less than the constraint is refused, unless that is stated"),
    (".cnns[].latency_ns", &[CHANGED], "likewise"),
    (".cnns[].read_ns", &[CHANGED, REMOVED], "modelled"),
    (".cnns[].computing_ns", &[CHANGED, REMOVED], "modelled"),
    (".cnns[].layers[].time", &[REMOVED], "measured or modelled"),
    (".cnns[].layers[].time.ns", &[CHANGED], "measured or modelled"),
    (".cnns[].layers[].onnx_nodes[]", &[CHANGED], "a remark"),
    (".cnns[].layers[].onnx_nodes", &[CHANGED], "a remark"),
    (".constraints.memory", &[CHANGED], "what the user asked for; a limit that changes `met` is refused"),
    (".constraints.fps", &[CHANGED], "likewise"),
    (".constraints.fps.*", &[CHANGED, REMOVED], "likewise"),
    (".constraints.latency_ns", &[REMOVED], "likewise"),
    (".constraints.latency_ns.*", &[CHANGED, REMOVED], "likewise"),
    (".constraints.remedies", &[CHANGED, REMOVED], "plans that were not chosen"),
    (".constraints.remedies[].means", &[CHANGED], "likewise"),
    (".constraints.remedies[].options", &[CHANGED], "likewise"),
    (".constraints.remedies[].options[]", &[CHANGED], "likewise"),
    (".constraints.remedies[].total", &[CHANGED], "likewise"),
    (".constraints.remedies[].fps", &[CHANGED], "likewise"),
    (".constraints.remedies[].fps.*", &[CHANGED, REMOVED], "likewise"),
    (".constraints.remedies[].met", &[CHANGED], "likewise"),
    (".search.method", &[CHANGED], "how the plan was found is no part of what it does"),
    (".search.seed", &[CHANGED], "likewise"),
    (".search.evaluations", &[CHANGED], "likewise"),
    (".search.stopped", &[CHANGED], "likewise"),
    (".search.choices", &[REMOVED], "likewise"),
    (".search.choices.*", &[CHANGED, REMOVED], "likewise"),
    (".pareto", &[CHANGED], "plans that were not chosen"),
    (".pareto[].memory", &[CHANGED], "likewise"),
    (".pareto[].fps", &[CHANGED], "likewise"),
    (".pareto[].fps.*", &[CHANGED, REMOVED], "likewise"),
    (".pareto[].choices", &[CHANGED], "likewise"),
    (".pareto[].choices.*", &[CHANGED, REMOVED], "likewise"),
    (
        ".certificate.claimed",
        &[CHANGED, REMOVED],
        "a claim that nothing in a plan proves, from the bound to the arena",
    ),
    (".certificate.rings", &[CHANGED], "a remark"),
    // Binding fields, with values that make another plan, which is as right.
    (".threads", &[CHANGED], "any number of workers computes the same, if no layer has a workspace"),
    (".parallel", &[CHANGED], "an element that is listed again says nothing new"),
    (".buffers[].name", &[CHANGED], "nothing refers to it"),
    (
        ".cnns[].layers[].attributes.camera.mean[]",
        &[CHANGED],
        "the application says how bytes become numbers",
    ),
    (".cnns[].layers[].attributes.camera.scale[]", &[CHANGED], "likewise"),
    (".cnns[].layers[].streamed.blocks[].offset", &[CHANGED], "free bytes are as good"),
    (
        ".cnns[].layers[].streamed.blocks[].after",
        &[REMOVED],
        "earlier is as good, where nothing else is in the block",
    ),
    (".cnns[].layers[].streamed.blocks[].after.firing", &[CHANGED], "likewise"),
];

const CHANGED: &str = "changed";
const REMOVED: &str = "removed";

/// Values of other types, and other values of the same type.
fn others(value: &Value) -> Vec<Value> {
    let mut all =
        vec![json!(null), json!(true), json!(false), json!(3), json!("x"), json!([]), json!({}), json!([3])];
    match value {
        Value::Number(number) if number.is_f64() => {
            let number = number.as_f64().unwrap();
            all.extend([json!(2.0 * number + 1.5), json!(-number - 1.5), json!(0.0), json!(f64::MAX)]);
        }
        Value::Number(number) => {
            let number = number.as_i64().unwrap();
            all.extend([number + 1, number - 1, 0, 2 * number + 16, i64::MAX, -7].map(|other| json!(other)));
            all.push(json!(number as f64 + 0.5));
        }
        Value::String(text) => {
            all.extend([json!(format!("{text}x")), json!("")]);
            all.push(json!(text.chars().skip(1).collect::<String>()));
        }
        Value::Array(items) => {
            all.extend((0..items.len()).filter(|i| *i == 0 || i + 1 == items.len()).flat_map(|i| {
                let (mut less, mut more) = (items.clone(), items.clone());
                less.remove(i);
                more.push(items[i].clone());
                [json!(less), json!(more)]
            }));
            all.push(json!([&items[..], &[json!(null)]].concat()));
        }
        Value::Object(fields) => {
            for unknown in [json!(1), json!(null), json!("x"), json!(false), json!([])] {
                let mut more = fields.clone();
                more.insert("unknown".into(), unknown);
                all.push(Value::Object(more));
            }
            all.push(fields.values().cloned().collect());
        }
        Value::Null | Value::Bool(_) => {}
    }
    all.retain(|other| other != value);
    all
}

/// Objects whose keys are names.
const MAPS: [&str; 4] = ["fps", "latency_ns", "choices", "cores"];

/// The type of a place in a plan: its keys, without numbers and names, but with a layer's operator and what else says of
/// which kind an object is.
fn visit(value: &Value, place: &str, pointer: &str, see: &mut dyn FnMut(&str, &str, &Value)) {
    let is_empty = matches!(value, Value::Null) || [json!([]), json!({})].contains(value);
    see(&if is_empty { format!("{place}(none)") } else { place.to_owned() }, pointer, value);
    match value {
        Value::Array(items) => {
            for (i, item) in items.iter().enumerate() {
                visit(item, &format!("{place}[]"), &format!("{pointer}/{i}"), see);
            }
        }
        Value::Object(fields) => {
            let is_map = MAPS.iter().any(|map| place.ends_with(&format!(".{map}")));
            let kind = ["op", "function"].iter().find_map(|kind| fields.get(*kind)?.as_str());
            let place = kind.map_or(place.to_owned(), |kind| format!("{place}({kind})"));
            for (key, value) in fields {
                let name = if is_map { "*" } else { key };
                let escaped = key.replace('~', "~0").replace('/', "~1");
                visit(value, &format!("{place}.{name}"), &format!("{pointer}/{escaped}"), see);
            }
        }
        _ => {}
    }
}

/// A place without the kinds of the objects on the way.
fn plain(place: &str) -> String {
    let parts = place.split('(').enumerate();
    parts
        .map(|(i, part)| if i == 0 { part } else { part.split_once(')').map_or("", |(_, rest)| rest) })
        .collect()
}

#[test]
fn every_other_field_is_refused() {
    let mut tried = BTreeSet::new();
    let mut accepted: BTreeMap<(String, &str), String> = BTreeMap::new();
    let mut edits = 0;
    for case in cases() {
        assert!(case.accepts(&case.plan), "{}", case.name);
        let mut places: Vec<(String, String)> = Vec::new();
        visit(&case.plan, "", "", &mut |place, pointer, _| {
            if tried.insert(place.to_owned()) {
                places.push((place.into(), pointer.into()));
            }
        });
        for (place, pointer) in places {
            let mut edit = |edited: &Value, what: &'static str, how: String| {
                edits += 1;
                if case.accepts(edited) {
                    let how =
                        format!("{}, {pointer}: {}", case.name, how.chars().take(200).collect::<String>());
                    accepted.insert((plain(&place), what), how);
                }
            };
            let value = case.plan.pointer(&pointer).unwrap();
            for other in others(value) {
                let mut edited = case.plan.clone();
                let how = format!("{value} becomes {other}");
                *edited.pointer_mut(&pointer).unwrap() = other;
                edit(&edited, CHANGED, how);
            }
            if let Some((of, key)) = pointer.rsplit_once('/') {
                let mut edited = case.plan.clone();
                if let Some(fields) = edited.pointer_mut(of).unwrap().as_object_mut() {
                    fields.remove(&key.replace("~1", "/").replace("~0", "~"));
                    edit(&edited, REMOVED, String::new());
                }
            }
        }
    }
    println!("{edits} edits of {} types of fields", tried.len());
    let listed =
        ACCEPTED.iter().flat_map(|(place, ways, _)| ways.iter().map(|way| ((*place).to_owned(), *way)));
    let listed: BTreeSet<(String, &str)> = listed.collect();
    let wrong: Vec<_> = accepted.iter().filter(|(place, _)| !listed.contains(*place)).collect();
    assert!(wrong.is_empty(), "accepted, but not listed: {wrong:#?}");
    let idle: Vec<_> = listed.iter().filter(|place| !accepted.contains_key(*place)).collect();
    assert!(idle.is_empty(), "listed, but refused: {idle:#?}");
    assert!(edits > 10_000 && tried.len() > 1000);
}
