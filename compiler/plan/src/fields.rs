//! Whether a text has the fields of the plan that was read from it, no more and no less.
//!
//! serde's derived readers ignore unknown fields next to those of an enum, take a missing field for `null`, and take a
//! list of values for a struct. So a plan that was read is written again, and the two are compared: an optional field
//! that says nothing is absent, and all others are there.

use serde_json::Value;

/// The first place where a text has another form than the plan that was read from it: keys and indices that lead there,
/// as in `cnns[0].layers[3]`, and what is wrong there.
pub(crate) fn difference(given: &Value, written: &Value) -> Option<(String, String)> {
    let (path, message) = unread_field(given, written)?;
    let path = path.strip_prefix('.').unwrap_or(&path);
    Some((if path.is_empty() { "the plan" } else { path }.into(), message))
}

fn unread_field(given: &Value, written: &Value) -> Option<(String, String)> {
    let here = |message: String| Some((String::new(), message));
    match (given, written) {
        (Value::Object(given), Value::Object(written)) => {
            if let Some(unknown) = given.keys().find(|key| !written.contains_key(*key)) {
                let known: Vec<String> = written.keys().map(|key| format!("`{key}`")).collect();
                return here(format!("unknown field `{unknown}` beside {}", known.join(", ")));
            }
            if let Some(missing) = written.keys().find(|key| !given.contains_key(*key)) {
                return here(format!("missing field `{missing}`"));
            }
            given.iter().find_map(|(key, value)| {
                let (path, message) = unread_field(value, &written[key])?;
                Some((format!(".{key}{path}"), message))
            })
        }
        (Value::Array(given), Value::Array(written)) if given.len() == written.len() => {
            given.iter().zip(written).enumerate().find_map(|(i, (given, written))| {
                let (path, message) = unread_field(given, written)?;
                Some((format!("[{i}]{path}"), message))
            })
        }
        (Value::String(given), Value::String(written)) if given != written => {
            here(format!("`{given}` is written as `{written}`"))
        }
        (Value::Number(number), Value::Null) => here(format!("{number} is beyond the numbers of its type")),
        _ if json_type(given) != json_type(written) => {
            here(format!("invalid type: {}, expected {}", json_type(given), json_type(written)))
        }
        _ => None,
    }
}

fn json_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn differences_name_their_place() {
        let plan = json!({"a": [{"b": 1, "c": null}], "d": "1/2", "e": {"x": 1, "y": 2}});
        let check = |given: Value, expected: Option<(&str, &str)>| {
            let expected = expected.map(|(path, message)| (path.to_owned(), message.to_owned()));
            assert_eq!(difference(&given, &plan), expected);
        };
        let with = |change: &dyn Fn(&mut Value)| {
            let mut given = plan.clone();
            change(&mut given);
            given
        };
        check(plan.clone(), None);
        // The same number.
        check(with(&|plan| plan["a"][0]["b"] = json!(1.0)), None);
        check(
            with(&|plan| plan["a"][0]["x"] = json!(0)),
            Some(("a[0]", "unknown field `x` beside `b`, `c`")),
        );
        check(with(&|plan| plan["a"][0] = json!({"b": 1})), Some(("a[0]", "missing field `c`")));
        check(
            with(&|plan| plan["f"] = json!(0)),
            Some(("the plan", "unknown field `f` beside `a`, `d`, `e`")),
        );
        check(with(&|plan| plan["d"] = json!("01/2")), Some(("d", "`01/2` is written as `1/2`")));
        check(
            with(&|plan| plan["e"] = json!([1, 2])),
            Some(("e", "invalid type: a list, expected an object")),
        );
        check(
            with(&|plan| plan["a"][0]["c"] = json!(1e39)),
            Some(("a[0].c", "1e+39 is beyond the numbers of its type")),
        );
    }
}
