//! Keyword arguments as options of the command line, so that each means the same in Python as there.

use std::ffi::OsString;
use std::path::PathBuf;

use csdfc_network::suggest;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyMapping, PyString};

/// What an option takes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Takes {
    /// A text, a number or a path.
    One,
    /// One of these, or several in a list.
    Several,
    /// One, or one for each of several names.
    Named,
    /// The same of times: numbers are seconds.
    Times,
    /// A text, or a whole number.
    Budget,
    /// Dimensions, or those of each of several names.
    Dimensions,
    /// The rows of layers by their names, or a word.
    Rows,
    /// A name for each of several names.
    Pairs,
    /// Whether it is given.
    Flag,
}

/// Options of `csdfc plan`. It has others for what the command prints and writes.
pub const PLAN: &[(&str, Takes)] = &[
    ("mem", Takes::One),
    ("ram", Takes::One),
    ("flash", Takes::One),
    ("fps", Takes::Named),
    ("latency", Takes::Times),
    ("precision", Takes::One),
    ("max_error", Takes::One),
    ("calibrate", Takes::Several),
    ("random", Takes::One),
    ("weights", Takes::One),
    ("shape", Takes::Dimensions),
    ("batch", Takes::Named),
    ("value", Takes::Named),
    ("inputs", Takes::Several),
    ("outputs", Takes::Several),
    ("input", Takes::Named),
    ("no_fuse", Takes::Flag),
    ("stream", Takes::Named),
    ("hop", Takes::One),
    ("window", Takes::One),
    ("state", Takes::Pairs),
    ("device", Takes::One),
    ("threads", Takes::One),
    ("prefer", Takes::One),
    ("storage", Takes::One),
    ("rows", Takes::Rows),
    ("method", Takes::One),
    ("primitives", Takes::One),
    ("max_primitive_error", Takes::One),
    ("seed", Takes::One),
    ("budget", Takes::Budget),
    ("without", Takes::Several),
    ("from_front", Takes::One),
    ("pick", Takes::One),
    ("pareto", Takes::Flag),
];

/// Options of `csdfc quantize`.
pub const QUANTIZE: &[(&str, Takes)] = &[
    ("calibrate", Takes::Several),
    ("random", Takes::One),
    ("seed", Takes::One),
    ("ranges", Takes::One),
    ("keep_above", Takes::One),
    ("shape", Takes::Dimensions),
];

/// Options of `csdfc profile`.
pub const PROFILE: &[(&str, Takes)] = &[
    ("device_out", Takes::One),
    ("threads", Takes::One),
    ("rounds", Takes::One),
    ("only", Takes::One),
    ("store", Takes::One),
    ("shape", Takes::Dimensions),
    ("batch", Takes::Named),
    ("value", Takes::Named),
    ("inputs", Takes::Several),
    ("outputs", Takes::Several),
    ("no_fuse", Takes::Flag),
];

/// The options that are given, as arguments of the command line.
///
/// # Errors
/// When `function` has no such option, or a value is of a type that it does not take.
pub fn arguments(
    function: &str,
    options: &[(&str, Takes)],
    given: Option<&Bound<'_, PyDict>>,
) -> PyResult<Vec<OsString>> {
    let mut arguments = Vec::new();
    for (name, value) in given.into_iter().flatten() {
        let name: String = name.extract()?;
        let Some((_, takes)) = options.iter().find(|(known, _)| *known == name) else {
            let known = options.iter().map(|(known, _)| *known);
            let help = suggest::help(&name, "it takes", known);
            return Err(PyTypeError::new_err(format!("{function}() has no argument `{name}`: {help}")));
        };
        if value.is_none() {
            continue;
        }
        let option = option(&name);
        if *takes == Takes::Flag {
            let is_given: bool = value.extract().map_err(|_| wrong(&name, &value))?;
            arguments.extend(is_given.then(|| option.clone().into()));
            continue;
        }
        for text in texts(&name, *takes, &value)? {
            let mut argument = OsString::from(&option);
            argument.push("=");
            argument.push(text);
            arguments.push(argument);
        }
    }
    Ok(arguments)
}

/// An option as the command line has it.
fn option(name: &str) -> String {
    match name {
        // A word of Python's own.
        "from_front" => "--from".into(),
        // The front is an answer here, and goes to no file.
        "pareto" => "--pareto=-".into(),
        name => format!("--{}", name.replace('_', "-")),
    }
}

/// The values of an option as texts.
fn texts(name: &str, takes: Takes, value: &Bound<'_, PyAny>) -> PyResult<Vec<OsString>> {
    let one = |value: &Bound<'_, PyAny>| text(name, takes, value);
    if let (Ok(named), true) = (value.cast::<PyMapping>(), takes.by_name()) {
        let between = if takes == Takes::Pairs { ":" } else { "=" };
        let mut texts = Vec::new();
        for item in named.items()? {
            let (key, value): (String, Bound<'_, PyAny>) = item.extract()?;
            let mut text = OsString::from(key);
            if !value.is_none() {
                text.push(between);
                text.push(if takes == Takes::Dimensions { dimensions(name, &value)? } else { one(&value)? });
            }
            texts.push(text);
        }
        return Ok(if takes == Takes::Rows { vec![joined(texts)] } else { texts });
    }
    match takes {
        Takes::Dimensions => Ok(vec![dimensions(name, value)?]),
        Takes::Several | Takes::Named
            if !value.is_instance_of::<PyString>() && value.hasattr("__iter__")? =>
        {
            value.try_iter()?.map(|value| one(&value?)).collect()
        }
        _ => Ok(vec![one(value)?]),
    }
}

impl Takes {
    /// Whether it takes a mapping from names.
    fn by_name(self) -> bool {
        matches!(self, Takes::Named | Takes::Times | Takes::Dimensions | Takes::Rows | Takes::Pairs)
    }
}

/// Dimensions in a list, or as a text.
fn dimensions(name: &str, value: &Bound<'_, PyAny>) -> PyResult<OsString> {
    match value.is_instance_of::<PyString>() || !value.hasattr("__iter__")? {
        true => text(name, Takes::Dimensions, value),
        false => {
            let dims = value.try_iter()?.map(|dim| text(name, Takes::Dimensions, &dim?));
            Ok(joined(dims.collect::<PyResult<_>>()?))
        }
    }
}

/// Texts with commas between them.
fn joined(texts: Vec<OsString>) -> OsString {
    texts.join(&OsString::from(","))
}

/// One value as a text.
fn text(name: &str, takes: Takes, value: &Bound<'_, PyAny>) -> PyResult<OsString> {
    if value.is_instance_of::<PyBool>() {
        return Err(wrong(name, value));
    }
    if let Ok(path) = value.extract::<PathBuf>() {
        return Ok(path.into_os_string());
    }
    let number = value.extract::<f64>().map_err(|_| wrong(name, value))?;
    if takes == Takes::Times {
        return Ok(format!("{}ns", (number * 1e9).round()).into());
    }
    // A time needs its unit: 5.0 could be one.
    if takes == Takes::Budget && value.is_instance_of::<PyFloat>() {
        return Err(PyTypeError::new_err(format!(
            "{name}={value}: give a time with its unit, such as \"5s\", or a whole number of choices"
        )));
    }
    Ok(match value.extract::<i128>() {
        Ok(whole) => whole.to_string(),
        Err(_) => number.to_string(),
    }
    .into())
}

fn wrong(name: &str, value: &Bound<'_, PyAny>) -> PyErr {
    let kind = value.get_type().name().map_or_else(|_| "such a value".into(), |kind| kind.to_string());
    PyTypeError::new_err(format!("{name} does not take {kind}"))
}
