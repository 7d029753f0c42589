//! Rule 4 in model `edges`: each edge has a ring at the start of a buffer. An edge that is cut between partitions which
//! run at the same time has two rings of all rows, in two buffers.

use std::collections::BTreeMap;

use crate::plan::{Buffer, Content, Edge};

use super::allocation::{Allocation, RowOrder, check_ring};
use super::index::Index;
use super::{Findings, Violation, regions};

/// An edge: CNN, tensor, reader.
type Key = (usize, usize, usize);

/// The storage of each CNN.
pub(super) fn check(index: &Index<'_>, findings: &mut Findings) -> Vec<Vec<Allocation>> {
    check_buffers(index, findings);
    let mut held = edges_of_buffers(index, findings);
    let mut all = Vec::new();
    for (c, cnn) in index.cnns.iter().enumerate() {
        let mut allocations = Vec::new();
        for (l, entry) in cnn.layers.iter().enumerate() {
            for &reader in &entry.readers {
                let consumer = &cnn.layers[reader].layer.name;
                let wrong = |why: String| Violation::Edge {
                    cnn: cnn.cnn.name.clone(),
                    tensor: entry.tensor.name.clone(),
                    consumer: consumer.clone(),
                    why,
                };
                let mut holds = held.remove(&(c, l, reader)).unwrap_or_default();
                holds.sort_by_key(|(_, edge)| edge.half);
                let halves: Vec<Option<u8>> = holds.iter().map(|(_, edge)| edge.half).collect();
                let cut = index.is_cut_edge(c, l, reader);
                let expected = if cut { &[Some(1), Some(2)][..] } else { &[None][..] };
                if halves != expected {
                    findings.push(wrong(format!("it is held as halves {halves:?}, not {expected:?}")));
                    continue;
                }
                let whole = |edge: &Edge| edge.ring_rows == entry.rows();
                if cut && !(holds.iter().all(|(_, edge)| whole(edge)) && holds[0].0.name != holds[1].0.name) {
                    findings.push(wrong("its double buffer is not two buffers of all rows".into()));
                    continue;
                }
                let row_bytes = entry.tensor.row_bytes;
                let fit = holds.iter().all(|(_, edge)| {
                    check_ring(edge.ring_rows, row_bytes, edge.bytes, &mut |why| findings.push(wrong(why)))
                });
                if fit {
                    allocations.push(Allocation {
                        name: format!("{} → {consumer}", cnn.tensor_name(l)),
                        tensor: l,
                        readers: vec![reader],
                        bases: holds.iter().map(|(buffer, _)| buffer.offset).collect(),
                        ring_rows: holds[0].1.ring_rows,
                        row_bytes,
                        kind: if cut { RowOrder::Halves } else { RowOrder::Restarts },
                        exclusive: true,
                    });
                }
            }
        }
        all.push(allocations);
    }
    all
}

/// The edges that buffers hold, by their names resolved. Each buffer is aligned to the elements of its edges.
fn edges_of_buffers<'a>(
    index: &Index<'a>,
    findings: &mut Findings,
) -> BTreeMap<Key, Vec<(&'a Buffer, &'a Edge)>> {
    let mut keys: BTreeMap<(&str, &str, &str), Key> = BTreeMap::new();
    for (c, cnn) in index.cnns.iter().enumerate() {
        for (l, entry) in cnn.layers.iter().enumerate() {
            for &reader in &entry.readers {
                let names = (&*cnn.cnn.name, &*entry.tensor.name, &*cnn.layers[reader].layer.name);
                keys.insert(names, (c, l, reader));
            }
        }
    }
    let mut held: BTreeMap<Key, Vec<_>> = BTreeMap::new();
    for buffer in &index.plan.buffers {
        for edge in &buffer.holds {
            let (cnn, tensor, consumer) = (edge.cnn.clone(), edge.tensor.clone(), edge.consumer.clone());
            match keys.get(&(&*edge.cnn, &*edge.tensor, &*edge.consumer)) {
                Some(&key) => {
                    let element = index.cnns[key.0].layers[key.1].tensor.format.element.bytes();
                    if !buffer.offset.is_multiple_of(element) {
                        let why = format!("its offset {} is no multiple of {element} bytes", buffer.offset);
                        findings.push(Violation::Buffer { buffer: buffer.name.clone(), why });
                    }
                    held.entry(key).or_default().push((buffer, edge));
                }
                None => {
                    let why = format!("buffer `{}` holds it, but the network has no such edge", buffer.name);
                    findings.push(Violation::Edge { cnn, tensor, consumer, why });
                }
            }
        }
    }
    held
}

/// Checks that each buffer is as large as its largest edge, lies in the arena, and is disjoint from the others.
fn check_buffers(index: &Index<'_>, findings: &mut Findings) {
    let mut ranges = Vec::new();
    for buffer in &index.plan.buffers {
        let mut wrong = |why: String| findings.push(Violation::Buffer { buffer: buffer.name.clone(), why });
        let largest = buffer.holds.iter().map(|edge| edge.bytes).max();
        if largest != Some(buffer.bytes) {
            wrong(format!(
                "it has {} bytes, but its largest edge has {}",
                buffer.bytes,
                largest.unwrap_or(0)
            ));
        }
        match regions::hold(index.plan, Content::Buffers, buffer.offset, buffer.bytes) {
            Ok(()) => ranges.push((buffer.offset, buffer.offset + buffer.bytes, &buffer.name)),
            Err(why) => wrong(why),
        }
    }
    ranges.sort_unstable();
    for pair in ranges.windows(2) {
        if pair[1].0 < pair[0].1 {
            findings.push(Violation::Overlap {
                first: pair[0].2.clone(),
                second: pair[1].2.clone(),
                addresses: pair[1].0..pair[0].1.min(pair[1].1),
            });
        }
    }
}
