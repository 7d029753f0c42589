//! The bytes of rings in use, row by row, by a replay that lists the rows that operators read one by one.

use std::collections::BTreeMap;
use std::ops::Range;

use csdfc_network::operators::{RowAccess, row_access};
use csdfc_network::{LayerId, Network, Operand};

/// A ring of rows.
#[derive(Debug, Clone)]
pub struct Ring {
    /// The tensor that it holds.
    pub tensor: LayerId,
    /// Its size.
    pub bytes: u64,
    /// The first and last firing of a frame at which it lives.
    pub live: (usize, usize),
    /// Whether all of it is in use as long as it lives.
    pub is_exclusive: bool,
}

/// The bytes in use of each ring while a layer makes one row.
#[derive(Debug, Clone)]
pub struct Moment {
    /// The layer that fires.
    pub layer: LayerId,
    /// Whether it is the firing's first row.
    pub is_first: bool,
    /// Whether it is its last.
    pub is_last: bool,
    /// The rings, by their places in the list, and their bytes, from each one's start.
    pub in_use: Vec<(usize, Range<u64>)>,
}

/// The bytes of rings in use at each moment, if layers with these rows per firing fire in this order.
pub fn moments(network: &Network, order: &[LayerId], rows: &[u64], rings: &[Ring]) -> Vec<Moment> {
    let mut needed: BTreeMap<LayerId, Vec<(LayerId, Vec<u64>)>> = BTreeMap::new();
    let readers = network.readers();
    for ring in rings {
        let height = network.layer(ring.tensor).rows() as u64;
        let table = |reader: &LayerId| {
            let reads = reads(network, *reader, ring.tensor);
            let rows = network.layer(*reader).rows() as u64;
            (*reader, (0..=rows).map(|y| first_needed(&reads, y, height)).collect())
        };
        needed.insert(ring.tensor, readers[ring.tensor.0].iter().map(table).collect());
    }
    let mut made = vec![0u64; network.layers.len()];
    let mut moments = Vec::new();
    for (firing, &layer) in order.iter().enumerate() {
        let height = network.layer(layer).rows() as u64;
        let first = made[layer.0];
        let last = (first + rows[layer.0]).min(height);
        for row in first..last {
            // For its readers a row is done when the moment is over.
            let done = made.clone();
            made[layer.0] = row + 1;
            let bytes = |(index, ring): (usize, &Ring)| {
                if ring.live.0 > firing || firing > ring.live.1 {
                    return None;
                }
                if ring.is_exclusive {
                    return Some((index, 0..ring.bytes));
                }
                // Another's rows of the firing under way are not released before it ends, but no other is under way.
                let lows = needed[&ring.tensor].iter().map(|(reader, first)| first[done[reader.0] as usize]);
                let low = lows.min().unwrap_or(0);
                let row_bytes = network.layer(ring.tensor).row_bytes();
                let made = made[ring.tensor.0];
                (low < made).then(|| (index, low * row_bytes..made * row_bytes))
            };
            let in_use = rings.iter().enumerate().filter_map(bytes).collect();
            moments.push(Moment { layer, is_first: row == first, is_last: row + 1 == last, in_use });
        }
    }
    moments
}

/// The rows of a tensor that a layer reads for each of its output rows, all of them where it needs the tensor whole;
/// for one that it reads more than once, each time.
fn reads(network: &Network, reader: LayerId, tensor: LayerId) -> Vec<Vec<Range<u64>>> {
    let layer = network.layer(reader);
    let (rows, height) = (network.layer(tensor).rows() as u64, layer.rows() as i64);
    let own = &network.layer(tensor).shape;
    let operands = layer.inputs.iter().enumerate().filter(|(_, operand)| operand.layer == tensor);
    let of_operand = |(index, _): (usize, &Operand)| {
        let access = row_access(&layer.operator, own, &layer.input_shapes(), &layer.shape, index);
        let cut = |row: i64| row.clamp(0, rows as i64) as u64;
        let of_row = |y: i64| match &access {
            RowAccess::Window { kernel, stride, dilation, top } => {
                let start = y * *stride as i64 - top;
                cut(start)..cut(start + (*kernel as i64 - 1) * *dilation as i64 + 1)
            }
            RowAccess::Rows(table) => table[y as usize].start as u64..table[y as usize].end as u64,
            RowAccess::Whole => 0..rows,
        };
        (0..height).map(of_row).collect()
    };
    operands.map(of_operand).collect()
}

/// The first row of a tensor that a reader still needs when it is to make output row `y`: all are held until the first
/// is made, and none after the last.
fn first_needed(reads: &[Vec<Range<u64>>], y: u64, rows: u64) -> u64 {
    let whole = |table: &Vec<Range<u64>>| table.iter().all(|read| *read == (0..rows));
    let of = |table: &Vec<Range<u64>>| match y as usize {
        0 => 0,
        y if y == table.len() => rows,
        _ if whole(table) => 0,
        y => table[y..].iter().map(|read| read.start).min().unwrap_or(rows),
    };
    reads.iter().map(of).min().unwrap_or(rows)
}
