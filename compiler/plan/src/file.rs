//! Plans as text: JSON, and the same data as RON.
//!
//! The RON form has one struct `(key: value)` for each JSON object, variants as strings as in JSON, so that both
//! hold the same tree. The same plan always gives the same text.
//!
//! ```
//! use csdfc_plan::file::FileError;
//! use csdfc_plan::plan::Plan;
//!
//! let text = std::fs::read_to_string("../../tests/plan_format/version_1/pair_5x5.json")?;
//! let plan = Plan::parse(&text)?;
//! assert_eq!(Plan::parse(&plan.to_json())?, plan);
//! assert_eq!(Plan::parse(&plan.to_ron())?, plan);
//! let other = Plan::parse(r#"{"format": "csdfc-plan/9"}"#);
//! assert_eq!(other, Err(FileError::Format { found: "csdfc-plan/9".into() }));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use serde_json::Value;

use crate::plan::{FORMAT, FORMAT_1, FORMAT_2, Plan};
use crate::{fields, older};

/// Why a text is no plan.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FileError {
    /// There is no text.
    #[error("the plan is empty")]
    Empty,
    /// The text is cut short, is not JSON or RON, or does not have the fields of a plan.
    #[error("{language}, line {line}, column {column}: {message}")]
    Syntax {
        /// The language as which the text was read: `JSON` or `RON`.
        language: &'static str,
        /// Line, from 1.
        line: usize,
        /// Column, from 1.
        column: usize,
        /// What is wrong there.
        message: String,
    },
    /// The text is good JSON or RON, but does not have the fields of a plan, or has others.
    #[error("{language}, at `{path}`: {message}")]
    Field {
        /// The language as which the text was read: `JSON` or `RON`.
        language: &'static str,
        /// Keys and indices that lead there: `cnns[0].layers[3]`.
        path: String,
        /// What is wrong there.
        message: String,
    },
    /// The plan is of another version.
    #[error(
        "the plan's format is `{found}`; this version of csdfc knows `{FORMAT}`, `{FORMAT_2}` and `{FORMAT_1}`"
    )]
    Format {
        /// The version that it states.
        found: String,
    },
}

impl Plan {
    /// The plan as JSON, ending in a newline. Numbers that JSON does not have (infinity, not a number) become
    /// `null`, which no reader takes.
    pub fn to_json(&self) -> String {
        #[expect(
            clippy::expect_used,
            reason = "a plan has no maps but of strings, and writes to memory only"
        )]
        let mut text = serde_json::to_string_pretty(self).expect("plain data");
        text.push('\n');
        text
    }

    /// The same as RON, ending in a newline.
    pub fn to_ron(&self) -> String {
        // Through the text, because in it a 32-bit float has its own short digits, not those of its 64-bit value. A
        // schedule that is nested too deeply for the reader is converted directly.
        let through_text = serde_json::from_str(&self.to_json()).or_else(|_| serde_json::to_value(self));
        #[expect(clippy::expect_used, reason = "a plan has no maps but of strings")]
        let value: Value = through_text.expect("plain data");
        let mut text = String::new();
        write_ron(&value, false, 0, &mut text);
        text.push('\n');
        text
    }

    /// Reads a plan from JSON.
    ///
    /// # Errors
    /// Where and why the text is no plan of [`FORMAT`].
    pub fn from_json(text: &str) -> Result<Plan, FileError> {
        if text.trim().is_empty() {
            return Err(FileError::Empty);
        }
        let located = |error: serde_json::Error| FileError::Syntax {
            language: "JSON",
            line: error.line(),
            column: error.column(),
            message: message(&error),
        };
        // The version is checked first, since errors about the fields of another version would mislead.
        let value: Value = serde_json::from_str(text).map_err(located)?;
        match version(&value)? {
            Version::Current => exact(serde_json::from_str(text).map_err(located)?, &value, "JSON"),
            Version::Second => of_second(value, "JSON"),
            Version::First => of_first(value, "JSON"),
        }
    }

    /// Reads a plan from RON.
    ///
    /// # Errors
    /// Where and why the text is no plan of [`FORMAT`].
    pub fn from_ron(text: &str) -> Result<Plan, FileError> {
        if text.trim().is_empty() {
            return Err(FileError::Empty);
        }
        let value: Value =
            ron::from_str(text).map_err(|error: ron::error::SpannedError| FileError::Syntax {
                language: "RON",
                line: error.span.start.line,
                column: error.span.start.col,
                message: error.code.to_string(),
            })?;
        match version(&value)? {
            Version::Current => of_value(&value, "RON"),
            Version::Second => of_second(value, "RON"),
            Version::First => of_first(value, "RON"),
        }
    }

    /// Reads a plan from JSON or RON, whichever the text is: JSON starts with a brace, RON with a parenthesis.
    ///
    /// # Errors
    /// Where and why the text is no plan of [`FORMAT`].
    pub fn parse(text: &str) -> Result<Plan, FileError> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        if text.trim_start().starts_with('{') { Plan::from_json(text) } else { Plan::from_ron(text) }
    }
}

enum Version {
    Current,
    Second,
    First,
}

fn version(value: &Value) -> Result<Version, FileError> {
    match value.get("format") {
        Some(Value::String(found)) if found == FORMAT_2 => Ok(Version::Second),
        Some(Value::String(found)) if found == FORMAT_1 => Ok(Version::First),
        Some(Value::String(found)) if found != FORMAT => Err(FileError::Format { found: found.clone() }),
        _ => Ok(Version::Current),
    }
}

/// A plan from its data. RON's reader cannot take a layer's operator from among its other fields; JSON's can, and says
/// where it stopped.
fn of_value(value: &Value, language: &'static str) -> Result<Plan, FileError> {
    let json = format!("{value:#}");
    let plan = serde_json::from_str(&json).map_err(|error| FileError::Field {
        language,
        path: path_at(&json, error.line()),
        message: message(&error),
    })?;
    exact(plan, value, language)
}

/// A plan from the data of one of version [`FORMAT_2`].
fn of_second(value: Value, language: &'static str) -> Result<Plan, FileError> {
    let renamed = older::renamed(value);
    of_value(&renamed.map_err(|(path, message)| FileError::Field { language, path, message })?, language)
}

/// A plan from the data of one of version [`FORMAT_1`].
fn of_first(value: Value, language: &'static str) -> Result<Plan, FileError> {
    if let Some((path, message)) = older::newer(&value) {
        return Err(FileError::Field { language, path, message });
    }
    let mut plan = of_value(&older::renewed(value), language)?;
    older::name_primitives(&mut plan);
    Ok(plan)
}

/// The plan, if its text has the fields of a plan and no others.
fn exact(plan: Plan, given: &Value, language: &'static str) -> Result<Plan, FileError> {
    let field = |(path, message)| FileError::Field { language, path, message };
    let written =
        serde_json::to_value(&plan).map_err(|error| field(("the plan".into(), error.to_string())))?;
    fields::difference(given, &written).map_or(Ok(plan), |difference| Err(field(difference)))
}

/// The message of an error without its place.
fn message(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.rsplit_once(" at line ").map_or(text.clone(), |(message, _)| message.to_owned())
}

/// The path of the value on a line of indented JSON.
fn path_at(json: &str, line: usize) -> String {
    let mut open: Vec<(String, Option<usize>)> = Vec::new();
    for text in json.lines().take(line.max(1)) {
        let text = text.trim();
        if text.starts_with(['}', ']']) {
            open.pop();
            continue;
        }
        if let Some((_, Some(index))) = open.last_mut() {
            *index = index.wrapping_add(1);
        }
        let step = match (text.strip_prefix('"').and_then(|rest| rest.split_once("\":")), open.last()) {
            (_, Some((_, Some(index)))) => format!("[{index}]"),
            (Some((key, _)), Some((path, _))) if path.is_empty() => key.to_owned(),
            (Some((key, _)), _) => format!(".{key}"),
            (None, _) => String::new(),
        };
        if text.ends_with('{') {
            open.push((step, None));
        } else if text.ends_with('[') {
            // Counts up to 0 at the first element.
            open.push((step, Some(usize::MAX)));
        }
    }
    let path: String = open.into_iter().map(|(step, _)| step).collect();
    if path.is_empty() { "the plan".into() } else { path }
}

/// Writes a value as RON. A map has keys of the user's, a struct those of the format.
fn write_ron(value: &Value, is_map: bool, depth: usize, text: &mut String) {
    let indent = |text: &mut String, depth: usize| {
        text.push('\n');
        text.extend(std::iter::repeat_n("    ", depth));
    };
    match value {
        Value::Null => text.push_str("None"),
        Value::Bool(_) | Value::Number(_) => text.push_str(&value.to_string()),
        Value::String(string) => write_string(string, text),
        Value::Array(items) if items.iter().all(|item| !item.is_array() && !item.is_object()) => {
            text.push('[');
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    text.push_str(", ");
                }
                write_ron(item, false, depth, text);
            }
            text.push(']');
        }
        Value::Array(items) => {
            text.push('[');
            for item in items {
                indent(text, depth + 1);
                write_ron(item, false, depth + 1, text);
                text.push(',');
            }
            indent(text, depth);
            text.push(']');
        }
        Value::Object(fields) => {
            let is_map = is_map || fields.is_empty();
            text.push(if is_map { '{' } else { '(' });
            for (key, value) in fields {
                indent(text, depth + 1);
                if is_map {
                    write_string(key, text);
                } else {
                    text.push_str(key);
                }
                text.push_str(": ");
                write_ron(
                    value,
                    matches!(key.as_str(), "fps" | "choices" | "cores" | "latency_ns"),
                    depth + 1,
                    text,
                );
                text.push(',');
            }
            if !fields.is_empty() {
                indent(text, depth);
            }
            text.push(if is_map { '}' } else { ')' });
        }
    }
}

fn write_string(string: &str, text: &mut String) {
    text.push('"');
    for c in string.chars() {
        match c {
            '"' | '\\' => text.extend(['\\', c]),
            c if c.is_control() => text.push_str(&format!("\\u{{{:x}}}", c as u32)),
            c => text.push(c),
        }
    }
    text.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::tests::plans;
    use crate::format::Quantization;
    use crate::operator::{Binary, BinaryFunction, ConstantOperand, ElementWise, Function, Operator, Pre};
    use crate::plan::{Block, StreamedWeights};

    #[test]
    fn both_forms_hold_every_plan() {
        for (name, mut plan) in plans::all() {
            plan.application = "\u{1}\"quoted\" \\ line\nbreak é ×".into();
            plan.cnns[0].fps = 0.1 + 0.2;
            plan.constraints.fps = [("a b".to_owned(), 1e-7)].into();
            plan.pareto.push(crate::plan::ParetoPoint {
                memory: u64::MAX,
                fps: [("pair".to_owned(), 2.0)].into(),
                choices: [("pair".to_owned(), "prefix 12".to_owned())].into(),
            });
            for (text, read) in [
                (plan.to_json(), Plan::from_json as fn(&str) -> Result<Plan, FileError>),
                (plan.to_ron(), Plan::from_ron),
            ] {
                assert!(text.ends_with("}\n") || text.ends_with(")\n"));
                assert_eq!(read(&text).as_ref(), Ok(&plan), "{name}");
                assert_eq!(Plan::parse(&text).as_ref(), Ok(&plan), "{name}");
                assert_eq!(Plan::parse(&format!("\u{feff}\n  {text}")).as_ref(), Ok(&plan), "{name}");
            }
            assert_eq!(plan.to_json(), plan.clone().to_json());
        }
    }

    /// The data of a plan as version 1 had it.
    fn older(plan: &Plan) -> Value {
        let mut older = serde_json::to_value(plan).unwrap();
        older["format"] = FORMAT_1.into();
        for tensor in older["tensors"].as_array_mut().unwrap() {
            let fields = tensor.as_object_mut().unwrap();
            assert_eq!(fields.remove("element"), Some("f32".into()));
            fields.insert("element_bytes".into(), 4.into());
        }
        let layers = older["cnns"].as_array_mut().unwrap().iter_mut();
        for layer in layers.flat_map(|cnn| cnn["layers"].as_array_mut().unwrap()) {
            layer["primitive"] = "generic".into();
        }
        older["memory"].as_object_mut().unwrap().remove("arena");
        older
    }

    /// Spells a field as version 2 did.
    fn british(fields: &mut serde_json::Map<String, Value>) {
        if let Some(quantization) = fields.remove("quantization") {
            fields.insert("quantisation".into(), quantization);
        }
    }

    /// The data of a plan as version 2 had it.
    fn second(plan: &Plan) -> Value {
        let mut older = serde_json::to_value(plan).unwrap();
        older["format"] = FORMAT_2.into();
        for tensor in older["tensors"].as_array_mut().unwrap() {
            british(tensor.as_object_mut().unwrap());
        }
        let layers = older["cnns"].as_array_mut().unwrap().iter_mut();
        for layer in layers.flat_map(|cnn| cnn["layers"].as_array_mut().unwrap()) {
            for part in ["/attributes/pre", "/attributes/constant"] {
                if let Some(fields) = layer.pointer_mut(part).and_then(Value::as_object_mut) {
                    british(fields);
                }
            }
            let layer = layer.as_object_mut().unwrap();
            if let Some(mut streamed) = layer.remove("streamed") {
                let fields = streamed.as_object_mut().unwrap();
                let tiles = fields.remove("tiles").unwrap();
                fields.insert("slices".into(), tiles);
                layer.insert("paged".into(), streamed);
            }
        }
        older
    }

    /// Both forms of a plan as version 2 had it.
    #[test]
    fn plans_of_version_2_are_read() {
        let mut streamed = plans::pair();
        let block = Block { offset: 0, bytes: 64, after: None };
        let weights = StreamedWeights { at: 0, filters: Some(16), tiles: "2*64".into(), blocks: vec![block] };
        streamed.cnns[0].layers[1].streamed = Some(weights);
        let mut quantized = plans::pair();
        let quantization = Some(Quantization { scale: 0.5, zero_point: 3 });
        quantized.tensors[0].quantization = quantization;
        let layers = &mut quantized.cnns[0].layers;
        let Operator::Conv(conv) = &mut layers[1].operator else { panic!("{:?}", layers[1]) };
        conv.pre = Some(Pre { affine: true, activation: None, quantization });
        let constant = ConstantOperand { dims: vec![1], left: false, quantization };
        layers[2].operator = Operator::Binary(Binary {
            function: BinaryFunction::Add,
            constant: Some(constant),
            activation: None,
        });
        assert_eq!(second(&quantized).to_string().matches("\"quantisation\"").count(), 3);
        for (name, plan) in plans::all().into_iter().chain([("streamed", streamed), ("quantized", quantized)])
        {
            let older = second(&plan);
            let mut ron = String::new();
            write_ron(&older, false, 0, &mut ron);
            for text in [older.to_string(), ron] {
                assert_eq!(Plan::parse(&text).as_ref(), Ok(&plan), "{name}");
            }
        }
        let error = error(&second(&plans::pair()), "/cnns/0/layers/1", &|layer| {
            layer.insert("streamed".into(), Value::Null);
        });
        let expected = "JSON, at `cnns[0].layers[1]`: unknown field `streamed`: in plans of `csdfc-plan/2` it is `paged`";
        assert_eq!(error, expected);
    }

    /// Both forms of a plan as version 1 had it.
    #[test]
    fn older_plans_are_read() {
        // No other has a primitive that version 1 did not have.
        for (name, plan) in
            plans::all().into_iter().filter(|(name, _)| !["converted", "lowered"].contains(name))
        {
            let older = older(&plan);
            let mut ron = String::new();
            write_ron(&older, false, 0, &mut ron);
            for text in [older.to_string(), ron] {
                assert_eq!(Plan::parse(&text).as_ref(), Ok(&plan), "{name}");
            }
        }
    }

    /// Edits a value at a pointer, and gives the error of reading it as JSON and as RON.
    fn error(plan: &Value, pointer: &str, edit: &dyn Fn(&mut serde_json::Map<String, Value>)) -> String {
        let mut plan = plan.clone();
        edit(plan.pointer_mut(pointer).and_then(Value::as_object_mut).unwrap());
        let mut ron = String::new();
        write_ron(&plan, false, 0, &mut ron);
        let [json, ron] = [plan.to_string(), ron].map(|text| Plan::parse(&text).unwrap_err().to_string());
        assert_eq!(json.strip_prefix("JSON, "), ron.strip_prefix("RON, "));
        json
    }

    #[test]
    fn fields_of_no_plan_are_errors() {
        let plan = serde_json::to_value(plans::pair()).unwrap();
        let add = |pointer: &str, field: &str| {
            error(&plan, pointer, &|fields| drop(fields.insert(field.into(), Value::Null)))
        };
        for (pointer, field, place) in [
            ("/cnns/0/layers/1", "view", "JSON, at `cnns[0].layers[1]`: unknown field `view` beside "),
            (
                "/cnns/0/layers/1",
                "streamed",
                "JSON, at `cnns[0].layers[1]`: unknown field `streamed` beside ",
            ),
            (
                "/partitions/0/schedule/0",
                "to",
                "JSON, at `partitions[0].schedule[0]`: unknown field `to` beside ",
            ),
        ] {
            let error = add(pointer, field);
            assert!(error.starts_with(place), "{error}");
        }
        // A step that is two.
        let both =
            error(&plan, "/partitions/0/schedule/0", &|step| drop(step.insert("fire".into(), "in".into())));
        assert!(both.starts_with("JSON, at `partitions[0].schedule[0]`: unknown field `body`"), "{both}");
        let missing = error(&plan, "/constraints", &|fields| drop(fields.remove("memory")));
        assert_eq!(missing, "JSON, at `constraints`: missing field `memory`");
        let mut clipped = plans::branch();
        let clip = Function::Clip { min: None, max: Some(6.0) };
        clipped.cnns[0].layers[1].operator = Operator::ElementWise(ElementWise { function: clip });
        let clipped = serde_json::to_value(clipped).unwrap();
        let attributes = "/cnns/0/layers/1/attributes";
        let missing = error(&clipped, attributes, &|fields| drop(fields.remove("min")));
        assert_eq!(missing, "JSON, at `cnns[0].layers[1].attributes`: missing field `min`");
        let unknown = error(&clipped, attributes, &|fields| drop(fields.insert("alpha".into(), 1.into())));
        assert_eq!(
            unknown,
            "JSON, at `cnns[0].layers[1].attributes`: unknown field `alpha` beside `function`, `max`, `min`"
        );
    }

    /// What only newer plans have.
    #[test]
    fn older_plans_have_no_newer_fields() {
        let plan = older(&plans::pair());
        for (pointer, field, value, expected) in [
            (
                "",
                "store",
                Value::Null,
                "at `the plan`: unknown field `store`: plans of `csdfc-plan/1` do not have it",
            ),
            ("/memory", "arena", 7040.into(), "at `memory`: unknown field `arena`"),
            ("/cnns/0", "read_ns", 1.into(), "at `cnns[0]`: unknown field `read_ns`"),
            ("/cnns/0/layers/1", "time", Value::Null, "at `cnns[0].layers[1]`: unknown field `time`"),
            (
                "/cnns/0/layers/2",
                "parameters_of",
                "l1".into(),
                "at `cnns[0].layers[2]`: unknown field `parameters_of`",
            ),
            ("/tensors/1", "element", "f32".into(), "at `tensors[1]`: unknown field `element`"),
            ("/tensors/1", "layout", "HCW".into(), "at `tensors[1]`: `layout` is \"HCW\"; in plans of"),
            (
                "/cnns/0/layers/1",
                "primitive",
                "indirect-gemm-hwc-hwc".into(),
                "at `cnns[0].layers[1]`: `primitive` is \"indirect-gemm-hwc-hwc\"; in plans of",
            ),
        ] {
            let error = error(&plan, pointer, &|fields| drop(fields.insert(field.into(), value.clone())));
            assert!(error.strip_prefix("JSON, ").is_some_and(|error| error.starts_with(expected)), "{error}");
        }
    }

    #[test]
    fn every_cut_is_an_error() {
        let plan = plans::branch();
        for text in [plan.to_json(), plan.to_ron()] {
            let end = text.trim_end().len();
            for cut in (0..end).filter(|&cut| text.is_char_boundary(cut)).step_by(7) {
                assert!(Plan::parse(&text[..cut]).is_err(), "{cut}");
            }
        }
        assert_eq!(Plan::parse(""), Err(FileError::Empty));
        assert_eq!(Plan::parse(" \n"), Err(FileError::Empty));
    }

    #[test]
    fn errors_say_where() {
        let check =
            |text: String, expected: &str| assert_eq!(Plan::parse(&text).unwrap_err().to_string(), expected);
        let (json, ron) = (plans::pair().to_json(), plans::pair().to_ron());
        check(
            json.replace("\"threads\": 1", "\"threads\": -1"),
            "JSON, line 30, column 15: invalid value: integer `-1`, expected usize",
        );
        check(
            json.replace("csdfc-plan/3", "csdfc-plan/9"),
            "the plan's format is `csdfc-plan/9`; this version of csdfc knows `csdfc-plan/3`, `csdfc-plan/2` and `csdfc-plan/1`",
        );
        check(
            ron.replace("csdfc-plan/3", "csdfc-plan/9"),
            "the plan's format is `csdfc-plan/9`; this version of csdfc knows `csdfc-plan/3`, `csdfc-plan/2` and `csdfc-plan/1`",
        );
        check(ron.replace("threads: 1", "threads: ~"), "RON, line 268, column 13: Unexpected char '~'");
        check(
            ron.replacen("ring_rows: 5", "ring_rows: \"5\"", 1),
            "RON, at `tensors[0]`: invalid type: string \"5\", expected u64",
        );
        check("{}".into(), "JSON, line 1, column 2: missing field `format`");
        check("7".into(), "RON, at `the plan`: invalid type: integer `7`, expected struct Plan");
    }

    #[test]
    fn nesting_does_not_overflow_the_stack() {
        for (open, close) in
            [("[", "]"), ("{\"a\":", "}"), ("(a:", ")"), ("Some(", ")"), ("(", ")"), ("/*", "*/")]
        {
            for text in [open.repeat(100_000), open.repeat(100_000) + &close.repeat(100_000)] {
                assert!(Plan::parse(&text).is_err(), "{open}");
            }
        }
    }
}
