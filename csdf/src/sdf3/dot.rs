//! Writes GraphViz DOT.

use std::fmt::Write;

use crate::Graph;

/// A graph in GraphViz's DOT: actors with their execution times, channels with rates (`production → acquire`, and
/// `/ release` where that differs), initial tokens as `•n`, and capacities as `≤ n`; one arrow per reader.
pub fn dot(graph: &Graph, name: &str) -> String {
    let mut text = format!("digraph \"{}\" {{\n  rankdir=LR;\n  node [shape=box];\n", escape(name));
    for (index, actor) in graph.actors().iter().enumerate() {
        let label = format!("{}\\n{}", escape(&actor.name), actor.execution_times);
        // Writing to a string cannot fail.
        let _ = writeln!(text, "  a{index} [label=\"{label}\"];");
    }
    for channel in graph.channels() {
        for reader in &channel.readers {
            let mut label =
                format!("{}\\n{} → {}", escape(&channel.name), channel.production, reader.acquire);
            if reader.acquire != reader.release {
                let _ = write!(label, " / {}", reader.release);
            }
            if channel.initial_tokens > 0 {
                let _ = write!(label, "\\n•{}", channel.initial_tokens);
            }
            if let Some(capacity) = channel.capacity {
                let _ = write!(label, "\\n≤ {capacity}");
            }
            let (from, to) = (channel.producer.index(), reader.actor.index());
            let _ = writeln!(text, "  a{from} -> a{to} [label=\"{label}\"];");
        }
    }
    text.push_str("}\n");
    text
}

fn escape(name: &str) -> String {
    let mut escaped = String::new();
    for c in name.chars() {
        match c {
            '"' | '\\' => escaped.extend(['\\', c]),
            c if c.is_control() => escaped.push(' '),
            c => escaped.push(c),
        }
    }
    escaped
}
