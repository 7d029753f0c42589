//! Reads SDF3 XML.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZero;

use roxmltree::{Attribute, Node, ParsingOptions};

use super::Document;
use crate::{Actor, ActorId, Channel, Error, Graph, MAX_PHASES, Rates, Reader};

/// Largest file, in bytes.
const MAX_BYTES: usize = 64 << 20;
/// Maximum number of nodes of the XML tree.
const MAX_NODES: u32 = 4 << 20;
/// Maximum number of quotation marks between one `<` and the next, and of namespaces declared: the time of the XML
/// parser rises with the square of both.
const MAX_QUOTES: usize = 256;
const MAX_NAMESPACES: usize = 100;
/// Longest part of a user's text that a message repeats, in characters.
const MAX_QUOTE_LEN: usize = 60;

/// Reads a graph from a file in the SDF3 format; see the [module](super) for the parts that are read. Each actor has at
/// most `concurrency` firings under way at a time.
///
/// # Errors
/// [`Error::Sdf3`] with the line and column, if something is no XML, missing, unknown, repeated or not supported, or if
/// [`Graph`] refuses it.
pub fn read(bytes: &[u8], concurrency: NonZero<u64>) -> Result<Document, Error> {
    let text = check_text(bytes)?;
    let options = ParsingOptions { allow_dtd: false, nodes_limit: MAX_NODES, entity_resolver: None };
    let document = roxmltree::Document::parse_with_options(text, options).map_err(|error| {
        let place = error.pos();
        // The message ends with the place, which the error already has.
        let message = error.to_string();
        let reason = message.split(" at ").next().unwrap_or_default();
        Error::Sdf3 { line: place.row, column: place.col, reason: format!("bad XML: {}", clip(reason)) }
    })?;
    build(&document, concurrency).map_err(|fault| {
        let place = document.text_pos_at(fault.at);
        Error::Sdf3 { line: place.row, column: place.col, reason: fault.reason }
    })
}

/// What is wrong, and at which byte of the file.
struct ReadFault {
    at: usize,
    reason: String,
}

/// The text of a file, if it is safe for the XML parser.
fn check_text(bytes: &[u8]) -> Result<&str, Error> {
    let fault = |at: usize, reason: String| {
        let before = &bytes[..at];
        let line = before.iter().filter(|&&byte| byte == b'\n').count();
        let start = before.iter().rposition(|&byte| byte == b'\n').map_or(0, |newline| newline + 1);
        Error::Sdf3 { line: line as u32 + 1, column: (at - start) as u32 + 1, reason }
    };
    if bytes.len() > MAX_BYTES {
        return Err(fault(0, format!("the file has {} bytes; the most is {MAX_BYTES}", bytes.len())));
    }
    let text =
        std::str::from_utf8(bytes).map_err(|error| fault(error.valid_up_to(), "no UTF-8 text".into()))?;
    let mut quotes = 0;
    for (at, &byte) in bytes.iter().enumerate() {
        match byte {
            b'<' => quotes = 0,
            b'"' | b'\'' => quotes += 1,
            _ => {}
        }
        if quotes > MAX_QUOTES {
            return Err(fault(at, format!("an element of more than {} attributes", MAX_QUOTES / 2)));
        }
    }
    if let Some((at, _)) = text.match_indices("xmlns").nth(MAX_NAMESPACES) {
        return Err(fault(at, format!("more than {MAX_NAMESPACES} namespaces")));
    }
    Ok(text)
}

fn build(document: &roxmltree::Document, concurrency: NonZero<u64>) -> Result<Document, ReadFault> {
    let root = document.root_element();
    if root.tag_name().name() != "sdf3" {
        return Err(at_node(
            root,
            format!("no SDF3 file: its first element is `{}`", clip(root.tag_name().name())),
        ));
    }
    let application = only_child(root, "applicationGraph")?;
    let kind = graph_type(root, application)?;
    let has = |name: &str| elements(application, name).next().is_some();
    // Some graphs of type csdf have an element `sdf`.
    let other = if kind == "sdf" { "csdf" } else { "sdf" };
    let body = only_child(application, if has(other) && !has(kind) { other } else { kind })?;
    let properties = ["sdfProperties", "csdfProperties"];
    let properties = properties.into_iter().flat_map(|name| elements(application, name));
    let properties = Properties::collect(properties)?;
    let name = application.attribute("name").or(body.attribute("name")).unwrap_or(kind).to_owned();

    let mut reader =
        GraphReader { graph: Graph::new(), concurrency, actors: BTreeMap::new(), connected: BTreeSet::new() };
    for actor in elements(body, "actor") {
        reader.add_actor(actor, kind, &properties)?;
    }
    let mut channels = BTreeSet::new();
    for channel in elements(body, "channel") {
        let name = required(channel, "name")?;
        if !channels.insert(name.value()) {
            return Err(at_value(name, format!("a second channel `{}`", clip(name.value()))));
        }
        reader.add_channel(channel, name.value(), &properties)?;
    }
    properties.check_names(&reader.actors, &channels)?;
    Ok(Document { name, graph: reader.graph })
}

/// `sdf` or `csdf`: as the file states or, if it does not, as its content suggests.
fn graph_type(root: Node, application: Node) -> Result<&'static str, ReadFault> {
    let by_name = |name: &str| match name {
        "sdf" => Some("sdf"),
        "csdf" => Some("csdf"),
        _ => None,
    };
    match root.attribute_node("type") {
        Some(attribute) => by_name(attribute.value()).ok_or_else(|| {
            let found = clip(attribute.value());
            at_value(attribute, format!("graphs of type `{found}` are not supported, only sdf and csdf"))
        }),
        None => application
            .children()
            .find_map(|child| by_name(child.tag_name().name()))
            .ok_or_else(|| at_node(application, "no element `sdf` or `csdf`".into())),
    }
}

/// The properties of actors and channels, by name.
#[derive(Default)]
struct Properties<'a, 'i> {
    actors: BTreeMap<&'a str, Node<'a, 'i>>,
    channels: BTreeMap<&'a str, Node<'a, 'i>>,
}

impl<'a, 'i> Properties<'a, 'i> {
    fn collect(all: impl Iterator<Item = Node<'a, 'i>>) -> Result<Self, ReadFault> {
        let mut properties = Properties::default();
        for element in all.flat_map(|element| element.children().filter(Node::is_element)) {
            let (name, of) = match element.tag_name().name() {
                "actorProperties" => (required(element, "actor")?, &mut properties.actors),
                "channelProperties" => (required(element, "channel")?, &mut properties.channels),
                _ => continue,
            };
            if of.insert(name.value(), element).is_some() {
                return Err(at_value(name, format!("properties of `{}` given twice", clip(name.value()))));
            }
        }
        Ok(properties)
    }

    /// Refuses properties of actors or channels that do not exist, since most likely a name is misspelt.
    fn check_names(
        &self,
        actors: &BTreeMap<&str, ActorPorts>,
        channels: &BTreeSet<&str>,
    ) -> Result<(), ReadFault> {
        if let Some((name, element)) = self.actors.iter().find(|(name, _)| !actors.contains_key(*name)) {
            return Err(at_node(*element, format!("properties of an unknown actor `{}`", clip(name))));
        }
        if let Some((name, element)) = self.channels.iter().find(|(name, _)| !channels.contains(*name)) {
            return Err(at_node(*element, format!("properties of an unknown channel `{}`", clip(name))));
        }
        Ok(())
    }

    /// Execution times of an actor on its default processor or, if none is marked so, on its only one.
    fn execution_times(&self, actor: &str) -> Result<Option<Rates>, ReadFault> {
        let Some(properties) = self.actors.get(actor) else { return Ok(None) };
        let processors: Vec<Node> = elements(*properties, "processor").collect();
        let is_default = |node: &&Node| node.attribute("default").is_some_and(|value| value.trim() == "true");
        let processor = match (processors.iter().find(is_default), processors.as_slice()) {
            (Some(processor), _) => *processor,
            (None, []) => return Ok(None),
            (None, [only]) => *only,
            (None, _) => {
                let reason =
                    format!("actor `{}` has several processors, and none is the default", clip(actor));
                return Err(at_node(*properties, reason));
            }
        };
        let Some(time) = elements(processor, "executionTime").next() else { return Ok(None) };
        sequence(required(time, "time")?, "time").map(Some)
    }
}

/// The ports of an actor, by name: whether it writes, and the rates.
struct ActorPorts<'a> {
    id: ActorId,
    ports: BTreeMap<&'a str, (bool, Rates)>,
}

struct GraphReader<'a> {
    graph: Graph,
    concurrency: NonZero<u64>,
    actors: BTreeMap<&'a str, ActorPorts<'a>>,
    /// Actor and port of every channel's ends so far.
    connected: BTreeSet<(&'a str, &'a str)>,
}

impl<'a> GraphReader<'a> {
    fn add_actor(
        &mut self,
        element: Node<'a, '_>,
        kind: &str,
        properties: &Properties,
    ) -> Result<(), ReadFault> {
        let name = required(element, "name")?;
        let shown = clip(name.value());
        let mut ports = BTreeMap::new();
        let mut phases = 1;
        for port in elements(element, "port") {
            let port_name = required(port, "name")?;
            let direction = required(port, "type")?;
            let writes = match direction.value() {
                "in" => false,
                "out" => true,
                other => {
                    let reason = format!("a port is of type in or out, not `{}`", clip(other));
                    return Err(at_value(direction, reason));
                }
            };
            let rate = required(port, "rate")?;
            let rates = sequence(rate, "rate")?;
            if kind == "sdf" && rates.len() > 1 {
                return Err(at_value(
                    rate,
                    "several rates in a graph of type sdf: change its type to csdf".into(),
                ));
            }
            phases = common_phases(phases, rates.len()).ok_or_else(|| too_many_phases(rate, &shown))?;
            if ports.insert(port_name.value(), (writes, rates)).is_some() {
                let reason = format!("a second port `{}` of actor `{shown}`", clip(port_name.value()));
                return Err(at_value(port_name, reason));
            }
        }
        let times = properties.execution_times(name.value())?.unwrap_or_else(|| Rates::constant(1, 1));
        phases = common_phases(phases, times.len()).ok_or_else(|| too_many_phases(name, &shown))?;
        let actor = Actor {
            execution_times: times,
            concurrency: self.concurrency,
            ..Actor::new(name.value(), phases)
        };
        let id = self.graph.add_actor(actor).map_err(|error| at_node(element, error.to_string()))?;
        if self.actors.insert(name.value(), ActorPorts { id, ports }).is_some() {
            return Err(at_value(name, format!("a second actor `{shown}`")));
        }
        Ok(())
    }

    fn add_channel(
        &mut self,
        element: Node<'a, '_>,
        name: &str,
        properties: &Properties,
    ) -> Result<(), ReadFault> {
        let (producer, production) = self.end(element, "srcActor", "srcPort", true)?;
        let (reader, consumption) = self.end(element, "dstActor", "dstPort", false)?;
        let initial_tokens = element.attribute_node("initialTokens").map(number).transpose()?.unwrap_or(0);
        let (mut token_bytes, mut capacity) = (1, None);
        if let Some(properties) = properties.channels.get(name) {
            let size = |tag: &str| elements(*properties, tag).find_map(|size| size.attribute_node("sz"));
            token_bytes = size("tokenSize").map(number).transpose()?.unwrap_or(1);
            capacity = size("bufferSize").map(number).transpose()?;
        }
        let readers = vec![Reader::consuming(reader, consumption)];
        let channel = Channel {
            initial_tokens,
            token_bytes,
            capacity,
            ..Channel::new(name, producer, production, readers)
        };
        self.graph.add_channel(channel).map_err(|error| at_node(element, error.to_string()))?;
        Ok(())
    }

    /// The actor and rates at one end of a channel.
    fn end(
        &mut self,
        channel: Node<'a, '_>,
        actor_attribute: &str,
        port_attribute: &str,
        writes: bool,
    ) -> Result<(ActorId, Rates), ReadFault> {
        let actor = required(channel, actor_attribute)?;
        let port = required(channel, port_attribute)?;
        let Some((&actor_name, found)) = self.actors.get_key_value(actor.value()) else {
            return Err(at_value(actor, format!("there is no actor `{}`", clip(actor.value()))));
        };
        let shown = || format!("port `{}` of actor `{}`", clip(port.value()), clip(actor_name));
        let Some((&port_name, (is_output, rates))) = found.ports.get_key_value(port.value()) else {
            return Err(at_value(port, format!("there is no {}", shown())));
        };
        if *is_output != writes {
            let (is, wanted) = if writes { ("in", "out") } else { ("out", "in") };
            return Err(at_value(port, format!("{} is of type {is}, where {wanted} is needed", shown())));
        }
        if !self.connected.insert((actor_name, port_name)) {
            return Err(at_value(port, format!("{} is connected to a second channel", shown())));
        }
        Ok((found.id, rates.clone()))
    }
}

fn elements<'a, 'i>(parent: Node<'a, 'i>, name: &str) -> impl Iterator<Item = Node<'a, 'i>> {
    parent.children().filter(move |child| child.is_element() && child.tag_name().name() == name)
}

fn only_child<'a, 'i>(parent: Node<'a, 'i>, name: &str) -> Result<Node<'a, 'i>, ReadFault> {
    let mut found = elements(parent, name);
    match (found.next(), found.next()) {
        (Some(child), None) => Ok(child),
        (Some(_), Some(second)) => Err(at_node(second, format!("a second element `{name}`"))),
        (None, _) => {
            let parent_name = clip(parent.tag_name().name());
            Err(at_node(parent, format!("no element `{name}` in `{parent_name}`")))
        }
    }
}

fn required<'a, 'i>(element: Node<'a, 'i>, name: &str) -> Result<Attribute<'a, 'i>, ReadFault> {
    element.attribute_node(name).ok_or_else(|| {
        at_node(element, format!("`{}` lacks its attribute `{name}`", clip(element.tag_name().name())))
    })
}

fn sequence(attribute: Attribute, what: &str) -> Result<Rates, ReadFault> {
    let text = attribute.value();
    if text.contains(';') {
        let reason = format!(
            "a {what} with an initial part (before `;`) is not supported: phases are cyclic from the first firing on"
        );
        return Err(at_value(attribute, reason));
    }
    text.parse().map_err(|error: Error| at_value(attribute, format!("{what} `{}`: {error}", clip(text))))
}

fn number(attribute: Attribute) -> Result<u64, ReadFault> {
    let text = attribute.value().trim();
    text.parse().map_err(|_| {
        let name = attribute.name();
        at_value(attribute, format!("{name} must be a whole number from 0 to 2^64 − 1, not `{}`", clip(text)))
    })
}

fn common_phases(left: u64, right: u64) -> Option<u64> {
    let (mut a, mut b) = (left, right);
    while b != 0 {
        (a, b) = (b, a % b);
    }
    (left / a.max(1)).checked_mul(right).filter(|&phases| phases <= MAX_PHASES)
}

fn too_many_phases(attribute: Attribute, actor: &str) -> ReadFault {
    at_value(attribute, format!("actor `{actor}` has more than {MAX_PHASES} phases"))
}

fn at_node(node: Node, reason: String) -> ReadFault {
    ReadFault { at: node.range().start, reason }
}

fn at_value(attribute: Attribute, reason: String) -> ReadFault {
    ReadFault { at: attribute.range_value().start, reason }
}

/// The beginning of a user's text, on one line.
fn clip(text: &str) -> String {
    let one_line = |c: char| if c.is_control() { ' ' } else { c };
    let mut clipped: String = text.chars().take(MAX_QUOTE_LEN).map(one_line).collect();
    if text.chars().nth(MAX_QUOTE_LEN).is_some() {
        clipped.push('…');
    }
    clipped
}
