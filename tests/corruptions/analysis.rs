//! The test's own analysis of a plan: schedules written out, lives of rings, rows that a ring must hold.
//!
//! It is written from the plan's documentation, and uses no code of the checker. So edits that are built to be invalid
//! are invalid, and edits that are built to be harmless are harmless, whatever the checker says.

use std::collections::BTreeMap;
use std::ops::Range;

use csdfc_plan::plan::{Cnn, Layer, Partition, Plan, Step, StorageModel};
use csdfc_tests::{rates, together};

/// A piece of storage: a tensor's ring, or in model `edges` the ring of one edge, both halves.
#[derive(Debug, Clone)]
pub struct Place {
    /// Index of the CNN.
    pub cnn: usize,
    /// Its tensor.
    pub tensor: String,
    /// In model `edges`, the layer that reads the edge; else empty.
    pub reader: String,
    /// Bytes in the arena; two ranges for a double buffer.
    pub ranges: Vec<Range<u64>>,
    /// First firing of its writer and last of its readers, the CNN's partitions one after another.
    pub life: (usize, usize),
    /// The partitions that write or read it.
    pub partitions: Vec<String>,
    /// Whether a partition reads it that runs at the same time as the one that writes it.
    pub cut: bool,
}

/// A schedule written out: names of layers.
pub fn expand(steps: &[Step]) -> Vec<&str> {
    let mut firings = Vec::new();
    for step in steps {
        match step {
            Step::Fire { fire } => firings.push(fire.as_str()),
            Step::Repeat { repeat, body } => {
                let body = expand(body);
                (0..*repeat).for_each(|_| firings.extend_from_slice(&body));
            }
        }
    }
    firings
}

/// Sets a partition's schedule, with the notation that belongs to it.
pub fn set_schedule(partition: &mut Partition, firings: &[String]) {
    partition.schedule = firings.iter().map(|layer| Step::Fire { fire: layer.clone() }).collect();
    partition.notation = notation(&partition.schedule);
}

/// The paper's notation.
pub fn notation(steps: &[Step]) -> String {
    let one = |step: &Step| match step {
        Step::Fire { fire } => format!("[{fire}]"),
        Step::Repeat { repeat, body } => match body.as_slice() {
            [Step::Fire { fire }] => format!("[{fire}]×{repeat}"),
            body => format!("({})×{repeat}", notation(body)),
        },
    };
    steps.iter().map(one).collect::<Vec<_>>().join(",")
}

/// Rates as text, not run-length coded.
pub fn rates_text(rates: &[u64]) -> String {
    rates.iter().map(u64::to_string).collect::<Vec<_>>().join(",")
}

/// Names of a CNN's partitions, in order.
pub fn partitions_of<'a>(plan: &'a Plan, cnn: &'a Cnn) -> impl Iterator<Item = &'a Partition> {
    plan.partitions.iter().filter(|partition| partition.cnn == cnn.name)
}

/// The firings of one frame of a CNN, its partitions one after another.
pub fn frame<'a>(plan: &'a Plan, cnn: &'a Cnn) -> Vec<&'a str> {
    partitions_of(plan, cnn).flat_map(|partition| expand(&partition.schedule)).collect()
}

/// Whether two partitions run at the same time.
pub fn at_once(plan: &Plan, p: &str, q: &str) -> bool {
    let has = |element: &Vec<String>, name: &str| element.iter().any(|other| other == name);
    p != q && plan.parallel.iter().any(|element| has(element, p) && has(element, q))
}

fn layer<'a>(cnn: &'a Cnn, name: &str) -> &'a Layer {
    cnn.layers.iter().find(|layer| layer.name == name).unwrap()
}

/// First and last firing of each layer.
type Spans<'a> = BTreeMap<&'a str, (usize, usize)>;

fn spans<'a>(plan: &'a Plan, cnn: &'a Cnn) -> Spans<'a> {
    let mut spans = Spans::new();
    for (at, layer) in frame(plan, cnn).into_iter().enumerate() {
        spans.entry(layer).or_insert((at, at)).1 = at;
    }
    spans
}

fn place(
    plan: &Plan,
    spans: &[Spans<'_>],
    cnn: usize,
    tensor: &str,
    readers: &[&Layer],
    ranges: Vec<Range<u64>>,
) -> Place {
    let (the, spans) = (&plan.cnns[cnn], &spans[cnn]);
    let writer = the.layers.iter().find(|layer| layer.output == tensor).unwrap();
    let (first, last) = spans[writer.name.as_str()];
    let end = readers.iter().map(|reader| spans[reader.name.as_str()].1).max().unwrap_or(0).max(last);
    let mut partitions: Vec<String> = readers.iter().map(|reader| reader.partition.clone()).collect();
    partitions.push(writer.partition.clone());
    partitions.sort();
    partitions.dedup();
    let cut = partitions.iter().any(|reader| at_once(plan, &writer.partition, reader));
    Place { cnn, tensor: tensor.into(), reader: String::new(), ranges, life: (first, end), partitions, cut }
}

/// All storage of a plan.
pub fn places(plan: &Plan) -> Vec<Place> {
    let index = |name: &str| plan.cnns.iter().position(|cnn| cnn.name == name).unwrap();
    let spans: Vec<Spans<'_>> = plan.cnns.iter().map(|cnn| spans(plan, cnn)).collect();
    match plan.storage_model {
        StorageModel::Tensors => plan
            .tensors
            .iter()
            .filter_map(|tensor| {
                let ring = tensor.ring?;
                let cnn = index(&tensor.cnn);
                let readers: Vec<&Layer> =
                    tensor.consumers.iter().map(|name| layer(&plan.cnns[cnn], name)).collect();
                let range = ring.offset..ring.offset + ring.bytes;
                Some(place(plan, &spans, cnn, &tensor.name, &readers, vec![range]))
            })
            .collect(),
        StorageModel::Edges => {
            let mut all: Vec<(String, Place)> = Vec::new();
            for buffer in &plan.buffers {
                for edge in &buffer.holds {
                    let cnn = index(&edge.cnn);
                    let range = buffer.offset..buffer.offset + edge.bytes;
                    let key = format!("{}/{}/{}", edge.cnn, edge.tensor, edge.consumer);
                    match all.iter_mut().find(|(other, _)| *other == key) {
                        Some((_, whole)) => whole.ranges.push(range),
                        None => {
                            let reader = layer(&plan.cnns[cnn], &edge.consumer);
                            let place = place(plan, &spans, cnn, &edge.tensor, &[reader], vec![range]);
                            all.push((key, Place { reader: edge.consumer.clone(), ..place }));
                        }
                    }
                }
            }
            all.into_iter().map(|(_, place)| place).collect()
        }
    }
}

/// Whether two places are in use at the same time: their lives within one CNN meet, or partitions that use them run
/// at the same time.
pub fn conflict(plan: &Plan, a: &Place, b: &Place) -> bool {
    let meet = a.cnn == b.cnn && a.life.0 <= b.life.1 && b.life.0 <= a.life.1;
    meet || a.partitions.iter().any(|p| b.partitions.iter().any(|q| at_once(plan, p, q)))
}

pub fn overlap(a: &Range<u64>, b: &Range<u64>) -> bool {
    a.start < b.end && b.start < a.end
}

/// The bytes of a ring that are occupied after each firing of a CNN's frame. If the ring holds all rows of its tensor,
/// these are the rows that are written and not released by all readers. Any other ring occupies all its bytes, from its
/// first firing to its last.
pub fn occupied(plan: &Plan, place: &Place) -> Vec<Range<u64>> {
    let cnn = &plan.cnns[place.cnn];
    let firings = frame(plan, cnn);
    let tensor = plan.tensors.iter().find(|t| t.cnn == cnn.name && t.name == place.tensor).unwrap();
    let (height, row_bytes) = (tensor.shape.rows() as u64, tensor.row_bytes);
    let range = &place.ranges[0];
    let is_whole = tensor.ring.is_some_and(|ring| ring.ring_rows >= height) && !place.cut;
    // By reader and operand, the rows released so far, and what is still to come.
    let mut released: Vec<(&str, u64, std::vec::IntoIter<u64>)> = Vec::new();
    for name in &tensor.consumers {
        let reads = layer(cnn, name).inputs.iter().filter(|input| input.tensor == tensor.name);
        released.extend(reads.map(|input| (name.as_str(), 0, rates(&input.release).into_iter())));
    }
    let writer = layer(cnn, &tensor.producer);
    let mut written = 0;
    let mut all = Vec::new();
    for (at, name) in firings.into_iter().enumerate() {
        if name == writer.name {
            written = (written + writer.rows_per_firing).min(height);
        }
        for (_, sum, rates) in released.iter_mut().filter(|(reader, ..)| *reader == name) {
            *sum += rates.next().unwrap();
        }
        let free = released.iter().map(|(_, sum, _)| *sum).min().unwrap_or(0);
        let lives = place.life.0 <= at && at < place.life.1;
        all.push(match lives {
            false => range.start..range.start,
            true if is_whole => range.start + free * row_bytes..range.start + written * row_bytes,
            true => range.clone(),
        });
    }
    all
}

/// Whether both rings occupy the same byte at the same time.
pub fn clash(plan: &Plan, a: &Place, b: &Place) -> bool {
    let apart = a.partitions.iter().all(|p| b.partitions.iter().all(|q| !at_once(plan, p, q)));
    let share = overlap(&a.ranges[0], &b.ranges[0]);
    if !apart || (a.cut || b.cut) && conflict(plan, a, b) {
        return share;
    }
    let meet = |(x, y): (Range<u64>, Range<u64>)| !x.is_empty() && !y.is_empty() && overlap(&x, &y);
    share && a.cnn == b.cnn && occupied(plan, a).into_iter().zip(occupied(plan, b)).any(meet)
}

/// Whether no bytes are occupied twice, between two firings.
pub fn is_apart(plan: &Plan) -> bool {
    let places = places(plan);
    places.iter().enumerate().all(|(i, a)| places[i + 1..].iter().all(|b| !clash(plan, a, b)))
}

/// Whether no two places that are in use at the same time share a byte.
pub fn is_disjoint(plan: &Plan) -> bool {
    let places = places(plan);
    let share = |a: &Place, b: &Place| a.ranges.iter().any(|x| b.ranges.iter().any(|y| overlap(x, y)));
    places
        .iter()
        .enumerate()
        .all(|(i, a)| places[i + 1..].iter().all(|b| !share(a, b) || !conflict(plan, a, b)))
}

/// Under the schedule as it stands, the most rows of a tensor that are written, or about to be, and not yet released by
/// all these readers. If the ring has fewer rows, a row that is still held is overwritten. `None` if a reader needs a
/// row before it is written.
pub fn rows_held(plan: &Plan, cnn: &Cnn, tensor: &str, readers: &[String]) -> Option<u64> {
    let writer = cnn.layers.iter().find(|layer| layer.output == tensor)?;
    let height = writer.output_shape.rows() as u64;
    // Needed and released so far, per reader: the operands of one tensor together.
    let sums = |rates: Vec<u64>| -> Vec<u64> {
        rates.iter().scan(0, |sum, rate| (*sum += rate, Some(*sum)).1).collect()
    };
    let tables: Vec<(&String, Vec<u64>, Vec<u64>)> = readers
        .iter()
        .map(|name| {
            let operands = layer(cnn, name).inputs.iter().filter(|input| input.tensor == tensor);
            let (needs, keeps): (Vec<_>, Vec<_>) =
                operands.map(|input| (sums(rates(&input.acquire)), sums(rates(&input.release)))).unzip();
            let over = |all: &[Vec<u64>], choose: fn(u64, u64) -> u64| -> Vec<u64> {
                (0..all[0].len()).map(|p| all.iter().map(|sums| sums[p]).reduce(choose).unwrap()).collect()
            };
            (name, over(&needs, u64::max), over(&keeps, u64::min))
        })
        .collect();
    let mut fired = vec![0usize; tables.len()];
    let (mut written, mut most) = (0, 0);
    for name in frame(plan, cnn) {
        if name == writer.name {
            written = (written + writer.rows_per_firing).min(height);
            let released = |(table, fired): (&(_, Vec<u64>, Vec<u64>), &usize)| match fired {
                0 => 0,
                p => table.2[p - 1],
            };
            let oldest = tables.iter().zip(&fired).map(released).min().unwrap_or(written);
            most = most.max(written - oldest);
        }
        for (table, fired) in tables.iter().zip(&mut fired).filter(|(table, _)| *table.0 == name) {
            if table.1[*fired] > written {
                return None;
            }
            *fired += 1;
        }
    }
    Some(most)
}

/// Whether the schedule runs with the rings as they are: no row read before it is written, none lost.
pub fn is_safe(plan: &Plan) -> bool {
    let fits = |cnn: &Cnn, tensor: &str, readers: &[String], ring_rows: u64| {
        rows_held(plan, cnn, tensor, readers).is_some_and(|rows| rows <= ring_rows)
    };
    let cnn = |name: &str| plan.cnns.iter().find(|cnn| cnn.name == name).unwrap();
    plan.tensors.iter().all(|tensor| {
        let ring_rows = tensor.ring.map_or(u64::MAX, |ring| ring.ring_rows);
        fits(cnn(&tensor.cnn), &tensor.name, &tensor.consumers, ring_rows)
    }) && plan
        .buffers
        .iter()
        .flat_map(|buffer| &buffer.holds)
        .all(|edge| fits(cnn(&edge.cnn), &edge.tensor, std::slice::from_ref(&edge.consumer), edge.ring_rows))
}

/// Corrects every sum that depends on rings, so that only the rings themselves can be wrong. The bound is that of the
/// checker, if the checker gets as far as computing it.
pub fn settle(plan: &mut Plan) {
    let mut offset = 0;
    for buffer in &mut plan.buffers {
        buffer.bytes = buffer.holds.iter().map(|edge| edge.bytes).max().unwrap_or(0);
        buffer.offset = offset;
        offset += buffer.bytes;
    }
    together::settle(plan);
}
