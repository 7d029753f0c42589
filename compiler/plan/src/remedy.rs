//! What it would take to do what a plan does not: other plans, which were made and checked, and how to get them.
//!
//! ```
//! use csdfc_plan::remedy::Remedy;
//!
//! let remedy = Remedy {
//!     means: "weights streamed".into(),
//!     options: ["--mem", "min", "--weights", "streamed"].map(String::from).to_vec(),
//!     total: 101_632,
//!     fps: [("resnet8".to_owned(), 78.3)].into(),
//!     met: false,
//! };
//! let words = ["csdfc", "plan", "builtin:resnet8", "--mem=100kB"].map(String::from);
//! assert_eq!(remedy.command(&words), "csdfc plan builtin:resnet8 --mem min --weights streamed");
//! ```

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Another plan that was made, and the options of `csdfc plan` that make it again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Remedy {
    /// What differs from what was asked, in words.
    pub means: String,
    /// Options of `csdfc plan`, each followed by its value. They replace those of the same names.
    pub options: Vec<String>,
    /// Bytes in total: parameters in memory, buffers and workspace.
    pub total: u64,
    /// Frames per second, by CNN.
    pub fps: BTreeMap<String, f64>,
    /// Whether the plan meets all the constraints that were asked for.
    pub met: bool,
}

impl Remedy {
    /// The words of a command with these options in place of its own, as a line for a shell. All options that are
    /// replaced take a value, as `--mem 2MB` or `--mem=2MB`.
    pub fn command(&self, words: &[String]) -> String {
        let is_replaced = |word: &str| self.options.iter().step_by(2).any(|option| option == word);
        // What follows `--` are no options.
        let options_end = words.iter().position(|word| word == "--").unwrap_or(words.len());
        let (given, operands) = words.split_at(options_end);
        let mut kept = Vec::new();
        let mut rest = given.iter();
        while let Some(word) = rest.next() {
            if is_replaced(word) {
                rest.next();
            } else if !word.split_once('=').is_some_and(|(option, _)| is_replaced(option)) {
                kept.push(quoted(word));
            }
        }
        kept.extend(self.options.iter().chain(operands).map(|word| quoted(word)));
        kept.join(" ")
    }
}

/// A word as a shell reads it.
pub fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "-_./:=,@+%".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_replaced_and_words_quoted() {
        let remedy = Remedy {
            means: String::new(),
            options: ["--mem", "min", "--precision", "half"].map(String::from).to_vec(),
            total: 0,
            fps: BTreeMap::new(),
            met: false,
        };
        let command =
            |words: &[&str]| remedy.command(&words.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>());
        assert_eq!(command(&["csdfc", "plan", "a.onnx"]), "csdfc plan a.onnx --mem min --precision half");
        assert_eq!(
            command(&["plan", "--mem", "2MB", "it's a.onnx", "--precision=mixed", "--fps", "3", "--memory"]),
            r"plan 'it'\''s a.onnx' --fps 3 --memory --mem min --precision half"
        );
        assert_eq!(
            command(&["csdfc", "plan", "--mem=2MB", "--", "--mem", "a.onnx"]),
            "csdfc plan --mem min --precision half -- --mem a.onnx"
        );
    }
}
