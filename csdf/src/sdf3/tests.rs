//! What is read, refused and written.

use proptest::prelude::*;

use std::num::NonZero;

use super::{Document, dot, write};
use crate::testing::graph;
use crate::{Actor, ActorId, Channel, Error, Graph, Rates, Reader};

fn read(bytes: &[u8]) -> Result<Document, Error> {
    super::read(bytes, NonZero::<u64>::MIN)
}

/// A file around these actors, channels and properties.
fn file(kind: &str, body: &str, properties: &str) -> String {
    format!(
        "<?xml version='1.0'?>\n<sdf3 type='{kind}' version='1.0'>\n<applicationGraph name='g'>\n<{kind} name='g' \
         type='g'>\n{body}\n</{kind}>\n<{kind}Properties>\n{properties}\n</{kind}Properties>\n</applicationGraph>\n</sdf3>\n"
    )
}

const PAIR: &str = "<actor name='a' type='t'><port name='p' type='out' rate='3,1'/></actor>
<actor name='b' type='t'><port name='q' rate='2*1,2' type='in'/></actor>
<channel name='c' srcActor='a' srcPort='p' dstActor='b' dstPort='q' initialTokens='2'/>";

#[test]
fn a_file_of_all_parts() {
    let properties = "<actorProperties actor='a'>
        <processor type='slow'><executionTime time='9'/></processor>
        <processor type='fast' default='true'><executionTime time='1,2*3,0'/><memory><stateSize max='1'/></memory></processor>
        </actorProperties>
        <channelProperties channel='c'><bufferSize sz='7' src='1' dst='2' mem='7'/><tokenSize sz='4'/></channelProperties>
        <graphProperties><timeConstraints><throughput>0.1</throughput></timeConstraints></graphProperties>";
    let Document { name, graph } = read(file("csdf", PAIR, properties).as_bytes()).unwrap();
    assert_eq!((name.as_str(), graph.actors().len(), graph.channels().len()), ("g", 2, 1));
    let [a, b] = graph.actors() else { panic!() };
    assert_eq!((a.name.as_str(), a.phases, a.execution_times.to_string().as_str()), ("a", 4, "1,2*3,0"));
    // Three rates and no time: one unit each.
    assert_eq!((b.name.as_str(), b.phases, b.execution_times.to_string().as_str()), ("b", 3, "1"));
    let channel = &graph.channels()[0];
    assert_eq!((channel.production.to_string().as_str(), channel.producer.index()), ("3,1", 0));
    let consumption = Reader::consuming(channel.readers[0].actor, "2*1,2".parse().unwrap());
    assert_eq!((channel.readers.as_slice(), consumption.actor.index()), (&[consumption.clone()][..], 1));
    assert_eq!((channel.initial_tokens, channel.token_bytes, channel.capacity), (2, 4, Some(7)));
    assert_eq!(crate::repetition_vector(&graph).unwrap().firings, [4, 6]);
}

#[test]
fn types_and_defaults() {
    let body =
        "<actor name='a'><port name='p' type='out' rate='1'/><port name='q' type='in' rate='1'/></actor>
        <channel name='c' srcActor='a' srcPort='p' dstActor='a' dstPort='q' initialTokens='1'/>";
    let text = file("sdf", body, "");
    let Document { graph, .. } = read(text.as_bytes()).unwrap();
    let channel = &graph.channels()[0];
    assert_eq!((channel.initial_tokens, channel.token_bytes, channel.capacity), (1, 1, None));
    // As in the benchmark MP3 playback: a graph of type csdf in an element `sdf`.
    let other = file("csdf", PAIR, "").replace("<csdf", "<sdf").replace("</csdf", "</sdf");
    assert_eq!(read(other.as_bytes()).unwrap().graph, read(file("csdf", PAIR, "").as_bytes()).unwrap().graph);
    // The type is seen without being stated, a namespace and a byte order mark change nothing.
    let bare = text.replace(" type='sdf' version='1.0'", " xmlns='http://x'");
    assert_eq!(read(bare.as_bytes()).unwrap().graph, graph);
    assert_eq!(read(format!("\u{feff}{text}").as_bytes()).unwrap().graph, graph);
}

/// What is said of a file in which one text is replaced by another.
fn refused(from: &str, to: &str) -> String {
    let properties = "<actorProperties actor='a'><processor type='p' default='true'><executionTime time='1'/>\
        </processor></actorProperties><channelProperties channel='c'><tokenSize sz='1'/></channelProperties>";
    let text = file("csdf", PAIR, properties);
    assert!(text.contains(from), "{from}");
    format!("{from} → {to}\n    {}\n", read(text.replacen(from, to, 1).as_bytes()).unwrap_err())
}

#[test]
fn faults_have_a_place_and_a_reason() {
    let second = "<channel name='d' srcActor='a' srcPort='p' dstActor='b' dstPort='q'/><channel name='c'";
    let same_name = second.replace("'d'", "'c'");
    let faults = [
        ("</actor>", ""),
        ("<sdf3", "<sdf"),
        ("<?xml version='1.0'?>", "<!DOCTYPE x [<!ENTITY a 'b'>]>"),
        ("type='csdf'", "type='sadf'"),
        ("type='csdf'", "type='sdf'"),
        ("<applicationGraph name='g'>", "<applicationGraph><csdf/>"),
        ("<applicationGraph name='g'>", "<applicationGraph/><applicationGraph>"),
        ("name='b'", "name='a'"),
        ("name='b' ", ""),
        ("type='in'", "type='inout'"),
        ("rate='3,1'", ""),
        ("'3,1'", "'3,-1'"),
        ("'3,1'", "''"),
        ("'3,1'", "'1,2;3,1'"),
        ("'3,1'", "'18446744073709551616'"),
        ("'3,1'", "'99999999*1'"),
        ("'3,1'", "'67108863*1'/><port name='r' type='out' rate='2*0'"),
        ("srcActor='a'", "srcActor='x'"),
        ("srcPort='p'", "srcPort='q'"),
        ("srcActor='a' srcPort='p'", "srcActor='b' srcPort='q'"),
        ("<channel name='c'", second),
        ("<channel name='c'", &same_name),
        ("initialTokens='2'", "initialTokens='-2'"),
        ("actor='a'><proc", "actor='x'><proc"),
        ("actor='a'><proc", "actor='a'/><actorProperties actor='a'><proc"),
        ("channel='c'>", "channel='x'>"),
        ("<tokenSize", "<bufferSize sz='1'/><tokenSize"),
        ("time='1'", "time='1;2'"),
        ("time='1'", "time='1.5'"),
        ("<processor type='p' default='true'>", "<processor type='q'/><processor type='p'>"),
    ];
    insta::assert_snapshot!("faults", faults.map(|(from, to)| refused(from, to)).concat());
}

#[test]
fn hostile_files() {
    fn check(bytes: &[u8], expected: &str) {
        let error = read(bytes).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{error}");
    }
    check(b"", "line 1, column 1: bad XML");
    check(b"<sdf3 \xff", "line 1, column 7: no UTF-8 text");
    check(&b"<a>".repeat(1_000_000), "line ");
    let attributes: String = (0..100_000).map(|i| format!(" a{i}=''")).collect();
    check(format!("<sdf3{attributes}/>").as_bytes(), "line 1, column");
    let namespaces: String = (0..50_000).map(|i| format!("<a xmlns:a{i}='b'>")).collect();
    check(namespaces.as_bytes(), "line 1, column");
    check(&b"<a/>".repeat(5 << 20), "line ");
    // A name is repeated in part, on one line.
    let long = "x\n".repeat(10_000);
    check(file("sdf", &format!("<channel name='c' srcActor='{long}' srcPort=''/>"), "").as_bytes(), "line 5");
}

/// A graph with windows, several readers, capacities and names that XML and DOT must escape.
fn rich() -> Graph {
    let mut rich = Graph::new();
    let a = rich
        .add_actor(Actor { execution_times: "2".parse().unwrap(), ..Actor::new("<in & \"out\">", 4) })
        .unwrap();
    let b =
        rich.add_actor(Actor { execution_times: "1,3*0".parse().unwrap(), ..Actor::new("b\\", 4) }).unwrap();
    let c = rich.add_actor(Actor::new("b\\", 1)).unwrap();
    let window =
        Reader { actor: b, acquire: "2,2*1,0".parse().unwrap(), release: "0,2*1,2".parse().unwrap() };
    let readers = vec![window.clone(), Reader::consuming(c, "4".parse().unwrap())];
    let shared = Channel::new("rows", a, "1".parse().unwrap(), readers);
    rich.add_channel(Channel { token_bytes: 96, capacity: Some(5), ..shared }).unwrap();
    let single = Channel::new("rows", a, "2*(0,2)".parse().unwrap(), vec![window]);
    rich.add_channel(Channel { initial_tokens: 3, ..single }).unwrap();
    rich
}

#[test]
fn written_files() {
    insta::assert_snapshot!("rich_sdf3", write(&rich(), "rich & more"));
    insta::assert_snapshot!("rich_dot", dot(&rich(), "rich \"more\""));
    assert!(write(&graph("a:1 b:1  a 1 > b 2"), "g").contains("<sdf name="));
}

/// Producer, reader, production, consumption and initial tokens of a plain channel.
type Plain = (usize, usize, Vec<u64>, Vec<u64>, u64);

/// What plain CSDF makes of a graph: per reader a data and perhaps a synchronisation channel.
fn plain(graph: &Graph) -> Vec<Plain> {
    let all = |rates: &Rates, actor: ActorId| -> Vec<u64> {
        rates.iter().cycle().take(graph.actors()[actor.index()].phases as usize).collect()
    };
    let mut channels = Vec::new();
    for channel in graph.channels() {
        for reader in &channel.readers {
            let mut rates = vec![&reader.release];
            rates.extend((reader.acquire != reader.release).then_some(&reader.acquire));
            channels.extend(rates.into_iter().map(|rates| {
                (
                    channel.producer.index(),
                    reader.actor.index(),
                    all(&channel.production, channel.producer),
                    all(rates, reader.actor),
                    channel.initial_tokens,
                )
            }));
        }
    }
    channels
}

#[test]
fn what_is_written_is_read() {
    for graph in [rich(), graph("a:1 b:1  a 1 > b 2 +1  b 2 > a 1"), graph("a:3 b:2  a 6,1,1 > b 4,4")] {
        let again = read(write(&graph, "again").as_bytes()).unwrap();
        assert_eq!(again.name, "again");
        assert_eq!(plain(&again.graph), plain(&graph));
        for (read, written) in again.graph.actors().iter().zip(graph.actors()) {
            assert_eq!(read.phases, written.phases);
            let cycle = |actor: &Actor| -> Vec<u64> {
                actor.execution_times.iter().cycle().take(actor.phases as usize).collect()
            };
            assert_eq!(cycle(read), cycle(written));
        }
        // Once plain, a graph stays as it is.
        assert_eq!(read(write(&again.graph, "again").as_bytes()).unwrap(), again);
    }
}

#[test]
fn windows_become_two_channels() {
    let again = read(write(&rich(), "rich").as_bytes()).unwrap().graph;
    let stored: Vec<(&str, u64, Option<u64>)> =
        again.channels().iter().map(|c| (c.name.as_str(), c.token_bytes, c.capacity)).collect();
    let expected = [
        ("rows.b\\", 96, Some(5)),
        ("rows.b\\.acquire", 0, None),
        ("rows.b\\.2", 96, Some(5)),
        ("rows", 1, None),
        ("rows.acquire", 0, None),
    ];
    assert_eq!(stored, expected);
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(at in 0usize..2000, with in prop::collection::vec(any::<u8>(), 0..8), cut in 0usize..20) {
        let mut bytes = write(&rich(), "rich").into_bytes();
        let at = at.min(bytes.len());
        let end = (at + cut).min(bytes.len());
        bytes.splice(at..end, with);
        check_any(&bytes);
    }

    #[test]
    fn any_attribute_is_read_or_refused(at in 0usize..40, with in "[0-9*,;() -]{0,12}") {
        let text = write(&rich(), "rich");
        let parts: Vec<&str> = text.split('"').collect();
        let place = (2 * at + 1).min(parts.len() - 2);
        let replaced: Vec<&str> =
            parts.iter().enumerate().map(|(i, part)| if i == place { with.as_str() } else { part }).collect();
        check_any(replaced.join("\"").as_bytes());
    }
}

fn check_any(bytes: &[u8]) {
    if let Ok(Document { name, graph }) = read(bytes)
        && graph.actors().iter().all(|actor| actor.phases < 10_000)
    {
        let again = read(write(&graph, &name).as_bytes()).unwrap();
        assert_eq!(plain(&again.graph), plain(&graph));
        dot(&graph, &name);
    }
}
