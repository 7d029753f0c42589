//! Writes SDF3 XML.

use std::collections::BTreeSet;
use std::fmt::Write;

use crate::{Channel, Graph, Rates, Reader, Run};

/// A graph as a file in the SDF3 format, read by plain CSDF tools.
///
/// A channel with several readers becomes one channel per reader, named `channel.reader`. A reader whose acquire and
/// release rates differ becomes two channels. The *data channel* consumes at the release rates, so it holds the stored
/// tokens. The *synchronisation channel* consumes at the acquire rates. Its name ends in `.acquire`, and its tokens
/// have no size. The capacity of a channel is the `bufferSize` of each of its data channels. A name that is already
/// taken gets a number.
pub fn write(graph: &Graph, name: &str) -> String {
    let edges = edges(graph);
    let plain = graph.actors().iter().all(|actor| actor.phases == 1);
    let kind = if plain { "sdf" } else { "csdf" };
    let name = escape(name);
    let mut xml = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <sdf3 type=\"{kind}\" version=\"1.0\" xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" \
         xsi:noNamespaceSchemaLocation=\"http://www.es.ele.tue.nl/sdf3/xsd/sdf3-{kind}.xsd\">\n  \
         <applicationGraph name=\"{name}\">\n    <{kind} name=\"{name}\" type=\"{name}\">\n"
    );
    let mut used = BTreeSet::new();
    let actors: Vec<String> =
        graph.actors().iter().map(|actor| unique(&mut used, escape(&actor.name))).collect();
    let mut ports = vec![String::new(); actors.len()];
    for (index, edge) in edges.iter().enumerate() {
        for (actor, kind, rates) in [
            (edge.channel.producer, "out", &edge.channel.production),
            (edge.reader.actor, "in", edge.consumption),
        ] {
            let phases = graph.actors()[actor.index()].phases;
            let rates = cycle(rates, phases);
            let port = format!("        <port name=\"{kind}{index}\" type=\"{kind}\" rate=\"{rates}\"/>\n");
            ports[actor.index()].push_str(&port);
        }
    }
    for (actor, ports) in actors.iter().zip(&ports) {
        append(
            &mut xml,
            format_args!("      <actor name=\"{actor}\" type=\"{actor}\">\n{ports}      </actor>\n"),
        );
    }
    for (index, edge) in edges.iter().enumerate() {
        let (source, target) = (&actors[edge.channel.producer.index()], &actors[edge.reader.actor.index()]);
        append(
            &mut xml,
            format_args!(
                "      <channel name=\"{}\" srcActor=\"{source}\" srcPort=\"out{index}\" dstActor=\"{target}\" \
                 dstPort=\"in{index}\"",
                edge.name
            ),
        );
        if edge.channel.initial_tokens > 0 {
            append(&mut xml, format_args!(" initialTokens=\"{}\"", edge.channel.initial_tokens));
        }
        xml.push_str("/>\n");
    }
    append(&mut xml, format_args!("    </{kind}>\n    <{kind}Properties>\n"));
    for (name, actor) in actors.iter().zip(graph.actors()) {
        append(
            &mut xml,
            format_args!(
                "      <actorProperties actor=\"{name}\">\n        <processor type=\"p\" default=\"true\">\n          \
                 <executionTime time=\"{}\"/>\n        </processor>\n      </actorProperties>\n",
                cycle(&actor.execution_times, actor.phases)
            ),
        );
    }
    for edge in &edges {
        append(&mut xml, format_args!("      <channelProperties channel=\"{}\">\n", edge.name));
        append(&mut xml, format_args!("        <tokenSize sz=\"{}\"/>\n", edge.token_bytes()));
        if let Some(capacity) = edge.channel.capacity.filter(|_| !edge.synchronises) {
            append(&mut xml, format_args!("        <bufferSize sz=\"{capacity}\"/>\n"));
        }
        xml.push_str("      </channelProperties>\n");
    }
    append(&mut xml, format_args!("    </{kind}Properties>\n  </applicationGraph>\n</sdf3>\n"));
    xml
}

/// A channel of the file.
struct FileChannel<'g> {
    name: String,
    channel: &'g Channel,
    reader: &'g Reader,
    consumption: &'g Rates,
    /// Whether it only says when a reader may start, and stores nothing.
    synchronises: bool,
}

impl FileChannel<'_> {
    fn token_bytes(&self) -> u64 {
        if self.synchronises { 0 } else { self.channel.token_bytes }
    }
}

fn edges(graph: &Graph) -> Vec<FileChannel<'_>> {
    let mut used = BTreeSet::new();
    let mut edges = Vec::new();
    for channel in graph.channels() {
        for reader in &channel.readers {
            let name = match channel.readers.len() {
                1 => channel.name.clone(),
                _ => format!("{}.{}", channel.name, graph.actors()[reader.actor.index()].name),
            };
            let mut add = |name: &str, consumption, synchronises| {
                let name = unique(&mut used, escape(name));
                edges.push(FileChannel { name, channel, reader, consumption, synchronises });
            };
            let windowed = reader.acquire != reader.release;
            add(&name, &reader.release, false);
            if windowed {
                add(&format!("{name}.acquire"), &reader.acquire, true);
            }
        }
    }
    edges
}

/// The name itself or, if it is used already, the name with a number.
fn unique(used: &mut BTreeSet<String>, name: String) -> String {
    let mut candidate = name.clone();
    let mut number = 2u64;
    while used.contains(&candidate) {
        candidate = format!("{name}.{number}");
        number += 1;
    }
    used.insert(candidate.clone());
    candidate
}

/// A rate sequence over all phases of its actor, in the format's notation, which repeats single rates only.
fn cycle(rates: &Rates, phases: u64) -> String {
    if let [Run { pattern, .. }] = rates.runs()
        && let [rate] = pattern.as_slice()
    {
        return if phases > 1 { format!("{phases}*{rate}") } else { rate.to_string() };
    }
    let mut text = String::new();
    for run in (0..phases / rates.len().max(1)).flat_map(|_| rates.runs()) {
        match run.pattern.as_slice() {
            [rate] if run.times > 1 => append(&mut text, format_args!("{}*{rate},", run.times)),
            pattern => (0..run.times)
                .flat_map(|_| pattern)
                .for_each(|rate| append(&mut text, format_args!("{rate},"))),
        }
    }
    text.pop();
    text
}

fn append(text: &mut String, arguments: std::fmt::Arguments) {
    // Writing to a string cannot fail.
    let _ = text.write_fmt(arguments);
}

/// A name as the value of an attribute. Characters that XML cannot hold are replaced.
fn escape(name: &str) -> String {
    let mut escaped = String::new();
    for c in name.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\t' | '\n' | '\r' => append(&mut escaped, format_args!("&#{};", c as u32)),
            '\0'..' ' | '\u{fffe}' | '\u{ffff}' => escaped.push('\u{fffd}'),
            c => escaped.push(c),
        }
    }
    escaped
}
