//! Looped schedules as Rust.

use std::collections::BTreeMap;

use crate::plan::Step;

use super::source::Source;

/// Writes the steps of a schedule: a loop for each repetition, a call of the layer's method for each firing.
pub(super) fn write(source: &mut Source, steps: &[Step], methods: &BTreeMap<&str, String>) {
    for step in steps {
        match step {
            Step::Fire { fire } => {
                // Every layer of a schedule is one of its partition's: the checker has seen to it.
                if let Some(method) = methods.get(fire.as_str()) {
                    source.line(format!("self.{method}();"));
                }
            }
            Step::Repeat { repeat: 1, body } => write(source, body, methods),
            Step::Repeat { repeat, body } => {
                source.open(format!("for _ in 0..{repeat} {{"));
                write(source, body, methods);
                source.close("}");
            }
        }
    }
}
