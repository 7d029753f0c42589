//! Any field of a plan can hold anything.

use std::time::{Duration, Instant};

use proptest::prelude::*;
use serde_json::{Value, json};

use crate::check::check;
use crate::plan::Plan;

use super::plans;

/// Numbers that nothing in a plan depends on, and offsets: a ring may move to where nothing else is.
const FREE: &[&str] = &["seed", "evaluations", "latency_ns", "threads", "offset"];

/// Calls `visit` with every value of the tree, depth first, until it returns true.
fn walk(value: &mut Value, key: &str, visit: &mut dyn FnMut(&str, &mut Value) -> bool) -> bool {
    if visit(key, value) {
        return true;
    }
    match value {
        Value::Array(items) => items.iter_mut().any(|item| walk(item, key, visit)),
        Value::Object(fields) => fields.iter_mut().any(|(key, value)| walk(value, key, visit)),
        _ => false,
    }
}

/// The value with its `n`th leaf or branch that `pick` takes replaced by what it gives.
fn replace(tree: &Value, n: usize, pick: &dyn Fn(&str, &Value) -> Option<Value>) -> Option<(String, Value)> {
    let (mut tree, mut seen, mut name) = (tree.clone(), 0, String::new());
    let found = walk(&mut tree, "", &mut |key, value| {
        let Some(other) = pick(key, value) else { return false };
        seen += 1;
        if seen <= n {
            return false;
        }
        *value = other;
        name = key.to_owned();
        true
    });
    found.then_some((name, tree))
}

#[test]
fn every_number_counts() {
    let mut cases = 0;
    for (name, plan) in plans::all() {
        let tree = serde_json::to_value(&plan).unwrap();
        for change in [1i64, -1, 4, -4] {
            let pick = |key: &str, value: &Value| {
                let number = value.as_u64().filter(|_| !FREE.contains(&key))?;
                number.checked_add_signed(change).map(|number| json!(number))
            };
            let mut n = 0;
            while let Some((key, corrupt)) = replace(&tree, n, &pick) {
                n += 1;
                // A size of the model file is compared with the file, which the checker does not have.
                let Ok(plan) = serde_json::from_value::<Plan>(corrupt) else { continue };
                if plan.cnns.iter().any(|cnn| cnn.model.bytes != 0) {
                    continue;
                }
                // A larger limit is met as well.
                if plan.constraints.memory.is_some_and(|limit| limit > plan.memory.total) {
                    continue;
                }
                assert!(check(&plan).is_err(), "{name}: `{key}`, number {n}, {change:+} is accepted");
                cases += 1;
            }
        }
    }
    assert!(cases > 1500, "{cases}");
}

#[test]
fn vast_plans_are_refused_at_once() {
    let mut plan = plans::pair();
    let start = Instant::now();
    for value in [u64::MAX, 1_000_000_000_000_000_000, 1 << 40, 1_000_000] {
        let tree = serde_json::to_value(&plan).unwrap();
        for n in 0..1000 {
            let pick = |_: &str, old: &Value| old.as_u64().map(|_| json!(value));
            let Some((_, corrupt)) = replace(&tree, n, &pick) else { break };
            if let Ok(plan) = serde_json::from_value::<Plan>(corrupt) {
                let _ = check(&plan);
            }
        }
    }
    for tensor in &mut plan.tensors {
        tensor.shape.dims = vec![1, 1, 1_000_000_000_000_000_000, 1];
    }
    assert!(check(&plan).is_err());
    assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
}

fn hostile() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(json!(0)),
        Just(json!(1)),
        (0u64..1000).prop_map(|number| json!(number)),
        any::<u64>().prop_map(|number| json!(number)),
        Just(json!(-1)),
        Just(json!(0.5)),
        Just(Value::Null),
        Just(json!([])),
        Just(json!("")),
        Just(json!("9999999999*1")),
        Just(json!("l1")),
        Just(json!("t_in")),
        Just(json!({"repeat": 1_000_000_000_000u64, "body": [{"fire": "l1"}]})),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_makes_it_panic(which in 0usize..6, edits in prop::collection::vec((any::<u16>(), hostile()), 1..4)) {
        let plan = plans::all().swap_remove(which).1;
        let mut tree = serde_json::to_value(&plan).unwrap();
        for (n, value) in edits {
            let mut count = 0;
            walk(&mut tree, "", &mut |_, _| { count += 1; false });
            let pick = |_: &str, _: &Value| Some(value.clone());
            tree = replace(&tree, 1 + usize::from(n) % (count - 1), &pick).map_or(tree, |(_, tree)| tree);
            if let Ok(plan) = serde_json::from_value::<Plan>(tree.clone()) {
                let _ = check(&plan);
            }
        }
    }
}
