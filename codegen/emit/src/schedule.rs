//! Looped schedules as Rust.

use std::collections::BTreeMap;

use csdfc_plan::plan::Step;

use super::source::Source;

/// Writes the steps of a schedule: a loop for each repetition, for each firing its layer's call.
pub(super) fn write(source: &mut Source, steps: &[Step], calls: &BTreeMap<&str, String>) {
    for step in steps {
        match step {
            Step::Fire { fire } => {
                // Every layer of a schedule belongs to its partition, as the checker has verified.
                if let Some(call) = calls.get(fire.as_str()) {
                    source.line(format!("{call};"));
                }
            }
            Step::Repeat { repeat: 1, body } => write(source, body, calls),
            Step::Repeat { repeat, body } => {
                source.open(format!("for _ in 0..{repeat} {{"));
                write(source, body, calls);
                source.close("}");
            }
        }
    }
}
