//! Plans of older versions as plans of today.
//!
//! [`FORMAT_2`] had other names for some fields. In [`FORMAT_1`], elements were given by their bytes, every layer was computed by
//! the first primitive of its operator, which was called `generic`, and none had a workspace.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use crate::check::primitives;
use crate::plan::{FORMAT, FORMAT_1, FORMAT_2, LayerInput, Plan};
use crate::shape::Shape;

/// Fields by the lists or objects in which they are: their names in version 2, and their names now.
const RENAMED: &[(&[&str], &str, &str)] = &[
    (&["cnns", "layers", "paged"], "slices", "tiles"),
    (&["cnns", "layers"], "paged", "streamed"),
    (&["cnns", "layers", "attributes", "pre"], "quantisation", "quantization"),
    (&["cnns", "layers", "attributes", "constant"], "quantisation", "quantization"),
    (&["tensors"], "quantisation", "quantization"),
];

/// Fields that version 1 did not have, by the lists or objects in which they are now.
const NEWER: &[(&[&str], &[&str])] = &[
    (&[], &["store"]),
    (&["memory"], &["arena", "parameters_resident"]),
    (&["cnns"], &["batch", "bytes_read", "read_ns", "computing_ns"]),
    (&["cnns", "layers"], &["streamed", "parameters_of", "time"]),
    (&["tensors"], &["element", "quantization"]),
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

/// Gives the data of a plan of version 2 the names of today.
///
/// # Errors
/// The first place that has a name of today already: the path, and what is wrong.
pub(crate) fn renamed(mut plan: Value) -> Result<Value, (String, String)> {
    for (path, then, now) in RENAMED {
        let is_now = |(_, object): &(String, &Value)| object.get(now).is_some();
        if let Some((place, _)) = objects(&plan, path).into_iter().find(is_now) {
            return Err((place, format!("unknown field `{now}`: in plans of `{FORMAT_2}` it is `{then}`")));
        }
        for_each_object(&mut plan, path, &mut |fields| {
            if let Some(value) = fields.remove(*then) {
                fields.insert((*now).into(), value);
            }
        });
    }
    plan["format"] = FORMAT.into();
    Ok(plan)
}

/// Does something with the fields of each object at a path.
fn for_each_object(plan: &mut Value, path: &[&str], edit: &mut impl FnMut(&mut Map<String, Value>)) {
    match (plan, path) {
        (Value::Array(items), _) => items.iter_mut().for_each(|item| for_each_object(item, path, edit)),
        (Value::Object(fields), []) => edit(fields),
        (Value::Object(fields), [first, rest @ ..]) => {
            if let Some(inner) = fields.get_mut(*first) {
                for_each_object(inner, rest, edit);
            }
        }
        _ => {}
    }
}

/// The first place where the data of a plan of version 1 has what only newer ones have: the path, and what is wrong.
pub(crate) fn newer(plan: &Value) -> Option<(String, String)> {
    let newer = NEWER.iter().find_map(|(path, fields)| {
        objects(plan, path).into_iter().find_map(|(place, object)| {
            let field = fields.iter().find(|field| object.get(**field).is_some())?;
            Some((place, format!("unknown field `{field}`: plans of `{FORMAT_1}` do not have it")))
        })
    });
    newer.or_else(|| {
        FIXED.iter().find_map(|(path, field, value)| {
            objects(plan, path).into_iter().find_map(|(place, object)| {
                let other = object.get(*field).filter(|other| **other != value())?;
                let why = format!("`{field}` is {other}; in plans of `{FORMAT_1}` it is {}", value());
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

/// Gives the data of a plan of version 1 the fields of a newer one, but for the primitives.
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
