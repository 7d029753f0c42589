//! Plans of version [`OLDER_FORMAT`](crate::plan::OLDER_FORMAT) as plans of today.
//!
//! Elements were given by their bytes, every layer was computed by the first primitive of its operator, which was called
//! `generic`, and none had a workspace.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::check::primitives;
use crate::plan::{FORMAT, LayerInput, OLDER_FORMAT, Plan};
use crate::shape::Shape;

/// Fields that the older version did not have, by the lists or objects in which they are now.
const NEWER: &[(&[&str], &[&str])] = &[
    (&[], &["store"]),
    (&["memory"], &["arena", "parameters_resident"]),
    (&["cnns"], &["bytes_read", "read_ns", "computing_ns"]),
    (&["cnns", "layers"], &["paged", "parameters_of", "time"]),
    (&["tensors"], &["element", "quantisation"]),
];

/// Where the objects are, a field of theirs, and its value.
type Fixed = (&'static [&'static str], &'static str, fn() -> Value);

/// Fields that had one value only.
const FIXED: &[Fixed] = &[
    (&["memory"], "workspace", || json!(0)),
    (&["cnns", "layers"], "primitive", || json!("generic")),
    (&["cnns", "layers"], "layout_in", || json!("HWC")),
    (&["cnns", "layers"], "layout_out", || json!("HWC")),
    (&["cnns", "layers"], "workspace", || json!({"offset": 0, "bytes": 0})),
    (&["tensors"], "layout", || json!("HWC")),
];

/// The first place where the data of an older plan has what only newer ones have: the path, and what is wrong.
pub(crate) fn newer(plan: &Value) -> Option<(String, String)> {
    let newer = NEWER.iter().find_map(|(path, fields)| {
        objects(plan, path).into_iter().find_map(|(place, object)| {
            let field = fields.iter().find(|field| object.get(**field).is_some())?;
            Some((place, format!("unknown field `{field}`: plans of `{OLDER_FORMAT}` do not have it")))
        })
    });
    newer.or_else(|| {
        FIXED.iter().find_map(|(path, field, value)| {
            objects(plan, path).into_iter().find_map(|(place, object)| {
                let other = object.get(*field).filter(|other| **other != value())?;
                let why = format!("`{field}` is {other}; in plans of `{OLDER_FORMAT}` it is {}", value());
                Some((place, why))
            })
        })
    })
}

/// The objects at a path, each with its place: those of a list, one by one.
fn objects<'a>(plan: &'a Value, path: &[&str]) -> Vec<(String, &'a Value)> {
    let mut found = vec![(String::new(), plan)];
    for field in path {
        let below = |(place, object): (String, &'a Value)| {
            let place = if place.is_empty() { (*field).to_owned() } else { format!("{place}.{field}") };
            match object.get(*field) {
                Some(Value::Array(items)) => {
                    items.iter().enumerate().map(|(i, item)| (format!("{place}[{i}]"), item)).collect()
                }
                Some(item) => vec![(place, item)],
                None => Vec::new(),
            }
        };
        found = found.into_iter().flat_map(below).collect();
    }
    found.iter_mut().filter(|(place, _)| place.is_empty()).for_each(|(place, _)| *place = "the plan".into());
    found
}

/// Gives the data of an older plan the fields of a newer one, but for the primitives.
pub(crate) fn renewed(mut plan: Value) -> Value {
    plan["format"] = FORMAT.into();
    for tensor in plan.get_mut("tensors").and_then(Value::as_array_mut).into_iter().flatten() {
        let Some(fields) = tensor.as_object_mut() else { continue };
        let element = match fields.get("element_bytes").and_then(Value::as_u64) {
            Some(4) => "f32",
            Some(8) => "i64",
            _ => continue,
        };
        fields.remove("element_bytes");
        fields.insert("element".into(), element.into());
    }
    if let Some(memory) = plan.get_mut("memory").and_then(Value::as_object_mut)
        && let Some(buffers) = memory.get("buffers").cloned()
    {
        memory.insert("arena".into(), buffers);
    }
    // A tensor was named for each of its edges, and for each half.
    if let Some(names) = plan.pointer_mut("/certificate/bound/tensors").and_then(Value::as_array_mut) {
        let mut named = BTreeSet::new();
        names.retain(|name| named.insert(name.to_string()));
    }
    plan
}

/// Gives layers of the primitive `generic` the first one that computes their operator.
pub(crate) fn name_primitives(plan: &mut Plan) {
    for cnn in &mut plan.cnns {
        let shapes: BTreeMap<String, Shape> =
            cnn.layers.iter().map(|layer| (layer.output.clone(), layer.output_shape.clone())).collect();
        for layer in cnn.layers.iter_mut().filter(|layer| layer.primitive == "generic") {
            let seen = |input: &LayerInput| input.view.clone().or_else(|| shapes.get(&input.tensor).cloned());
            let inputs: Vec<Shape> = layer.inputs.iter().filter_map(seen).collect();
            let inputs: Vec<&Shape> = inputs.iter().collect();
            if let Some(first) = primitives::all().find(|row| (row.computes)(&layer.operator, &inputs)) {
                layer.primitive = first.name.into();
            }
        }
    }
}
