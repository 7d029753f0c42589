//! A trace of firings as they ran, for Perfetto. The trace takes time, and memory that the plan does not count.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::string::String;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;
use std::vec::Vec;

/// A firing that has ended.
struct Ended {
    processor: &'static str,
    partition: &'static str,
    layer: &'static str,
    start: Instant,
    end: Instant,
}

/// The firings of all threads that have ended.
static ENDED: Mutex<Vec<Ended>> = Mutex::new(Vec::new());

/// A firing under way. It ends when this is dropped.
pub(crate) struct Firing {
    processor: &'static str,
    partition: &'static str,
    layer: &'static str,
    start: Instant,
}

impl Firing {
    /// A firing of a layer begins.
    pub(crate) fn begin(processor: &'static str, partition: &'static str, layer: &'static str) -> Self {
        Firing { processor, partition, layer, start: Instant::now() }
    }
}

impl Drop for Firing {
    fn drop(&mut self) {
        let Firing { processor, partition, layer, start } = *self;
        let ended = Ended { processor, partition, layer, start, end: Instant::now() };
        ENDED.lock().unwrap_or_else(PoisonError::into_inner).push(ended);
    }
}

/// The firings since the last call as a trace: the JSON of events that Perfetto and Chrome show.
pub fn take() -> String {
    let mut ended = core::mem::take(&mut *ENDED.lock().unwrap_or_else(PoisonError::into_inner));
    ended.sort_by_key(|firing| firing.start);
    let mut processors = BTreeMap::new();
    let mut partitions = BTreeMap::new();
    for firing in &ended {
        let next = processors.len() + 1;
        processors.entry(firing.processor).or_insert(next);
        let next = partitions.len() + 1;
        partitions.entry((firing.processor, firing.partition)).or_insert(next);
    }
    let mut text = String::from("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[");
    for (processor, pid) in &processors {
        name(&mut text, "process", *pid, 0, &["processor ", processor]);
    }
    for ((processor, partition), tid) in &partitions {
        name(&mut text, "thread", processors[processor], *tid, &["partition ", partition]);
    }
    let begin = ended.first().map(|firing| firing.start);
    for firing in &ended {
        let pid = processors[firing.processor];
        let tid = partitions[&(firing.processor, firing.partition)];
        let from = begin.map_or(0, |begin| firing.start.duration_since(begin).as_nanos());
        let time = firing.end.duration_since(firing.start).as_nanos();
        // Times are in microseconds. Writing to a string does not fail.
        let _ = write!(text, "\n{{\"ph\":\"X\",\"pid\":{pid},\"tid\":{tid},");
        let _ = write!(text, "\"ts\":{}.{:03},\"dur\":", from / 1000, from % 1000);
        let _ = write!(text, "{}.{:03},\"name\":", time / 1000, time % 1000);
        quote(&mut text, &[firing.layer]);
        text.push_str("},");
    }
    if text.ends_with(',') {
        text.pop();
    }
    text.push_str("\n]}\n");
    text
}

/// Adds the name of a process or a thread.
fn name(text: &mut String, of: &str, pid: usize, tid: usize, name: &[&str]) {
    let _ = write!(
        text,
        "\n{{\"ph\":\"M\",\"name\":\"{of}_name\",\"pid\":{pid},\"tid\":{tid},\"args\":{{\"name\":"
    );
    quote(text, name);
    text.push_str("}},");
}

/// Adds a string of JSON, made of these.
fn quote(text: &mut String, parts: &[&str]) {
    text.push('"');
    for c in parts.iter().flat_map(|part| part.chars()) {
        match c {
            '"' | '\\' => text.extend(['\\', c]),
            c if c < ' ' => {
                let _ = write!(text, "\\u{:04x}", u32::from(c));
            }
            c => text.push(c),
        }
    }
    text.push('"');
}
