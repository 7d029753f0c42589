//! Rings that share addresses row by row, beside a replay that lists the rows in use one by one.

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::ops::Range;

use csdfc::app::open;
use csdfc::app::resolve::Application;
use csdfc::driver;
use csdfc::execution::{self, Execution, Rings};
use csdfc::lower::RateTable;
use csdfc::network::{LayerId, Network};
use csdfc::operators::{RowAccess, row_access};
use csdfc::search::choice::Choice;
use csdfc::storage::{Effort, Storage, arrange};
use csdfc_codegen::operator::Operator;
use csdfc_codegen::plan::StorageModel;
use csdfc_tests::generate;
use proptest::prelude::*;

/// The rows of a tensor that a layer reads for each of its output rows, all of them where it needs the tensor whole;
/// for one that it reads more than once, each time.
fn reads(network: &Network, reader: LayerId, tensor: LayerId) -> Vec<Vec<Range<u64>>> {
    let layer = network.layer(reader);
    let (rows, height) = (network.layer(tensor).shape.rows() as u64, layer.shape.rows() as i64);
    let own = &network.layer(tensor).shape;
    let operands = layer.inputs.iter().enumerate().filter(|(_, operand)| operand.layer == tensor);
    let of_operand = |(index, operand): (usize, &csdfc::network::Operand)| {
        let kept = operand.shape.rows() == own.rows() && operand.shape.row_elements() == own.row_elements();
        let access = match kept {
            true => row_access(&layer.operator, &layer.input_shapes(), &layer.shape, index),
            false => RowAccess::Whole,
        };
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

/// Moment by moment the rings in use and their bytes in use, each with the layer that fires and its first moment or not.
struct Moment {
    layer: LayerId,
    is_first: bool,
    is_last: bool,
    in_use: Vec<(usize, Range<u64>)>,
}

fn moments(network: &Network, execution: &Execution) -> Vec<Moment> {
    let readers = network.readers();
    let mut made = vec![0u64; network.layers.len()];
    let mut moments = Vec::new();
    let order: Vec<LayerId> = execution.runs.iter().flat_map(execution::Run::order).collect();
    for (firing, layer) in order.into_iter().enumerate() {
        let height = network.layer(layer).shape.rows() as u64;
        let first = made[layer.0];
        let last = (first + execution.rows[layer.0]).min(height);
        for row in first..last {
            // For its readers a row is done when the moment is over.
            let done = made.clone();
            made[layer.0] = row + 1;
            let bytes = |(index, request): (usize, &execution::Request)| {
                let tensor = request.tensor;
                let rows = network.layer(tensor).shape.rows() as u64;
                if request.live.0 > firing || firing > request.live.1 {
                    return None;
                }
                if request.pipelined || request.ring_rows < rows {
                    return Some((index, 0..request.bytes));
                }
                let lows = readers[tensor.0].iter().map(|reader| {
                    // Another's rows of the firing under way are not released before it ends, but no other is under way.
                    first_needed(&reads(network, *reader, tensor), done[reader.0], rows)
                });
                let low = lows.min().unwrap_or(0);
                let row_bytes = network.layer(tensor).row_bytes();
                (low < made[tensor.0]).then(|| (index, low * row_bytes..made[tensor.0] * row_bytes))
            };
            let in_use = execution.requests.iter().enumerate().filter_map(bytes).collect();
            moments.push(Moment { layer, is_first: row == first, is_last: row + 1 == last, in_use });
        }
    }
    moments
}

/// Whether a layer is not made row by row only to save time.
fn is_costly(network: &Network, layer: LayerId) -> bool {
    let layer = network.layer(layer);
    matches!(layer.operator, Operator::Conv(_) | Operator::ConvTranspose(_) | Operator::Gemm(_))
        && layer.parameters[0].elements() * 4 > 64 * 1024
}

fn check(network: &Network, execution: &Execution, name: &str) {
    let storage = Storage { executions: vec![execution], elements: &[] };
    let packed = arrange(&storage, StorageModel::Tensors, Effort::Candidate);
    let moments = moments(network, execution);
    let total = |moment: &Moment| moment.in_use.iter().map(|(_, bytes)| bytes.end - bytes.start).sum::<u64>();
    assert_eq!(packed.bound.bytes, moments.iter().map(total).max().unwrap_or(0), "{name}");
    let witness: u64 = packed.bound.stored.iter().map(|stored| stored.bytes.end - stored.bytes.start).sum();
    assert_eq!(witness, packed.bound.bytes, "{name}");
    assert!(packed.bound.bytes <= packed.least && packed.least <= packed.bytes, "{name}");
    let ends = packed.offsets.iter().zip(&execution.requests).map(|(at, request)| at + request.bytes);
    assert_eq!(ends.max().unwrap_or(0), packed.bytes, "{name}");
    let lies = |(index, bytes): &(usize, Range<u64>)| {
        let at = packed.offsets[*index];
        (at + bytes.start, at + bytes.end, *index)
    };
    let apart = |places: &mut Vec<(u64, u64, usize)>, layer: LayerId| {
        places.sort_unstable();
        for pair in places.windows(2) {
            let names = [pair[0].2, pair[1].2].map(|i| &network.layer(execution.requests[i].tensor).output);
            let firing = &network.layer(layer).name;
            assert!(pair[0].1 <= pair[1].0, "{name}: {names:?} overlap while {firing} fires: {pair:?}");
        }
    };
    let mut start: Vec<(usize, Range<u64>)> = Vec::new();
    for moment in &moments {
        apart(&mut moment.in_use.iter().map(lies).collect(), moment.layer);
        // Made at once: all that it reads is there until all that it makes is.
        if moment.is_first {
            start.clone_from(&moment.in_use);
        }
        if moment.is_last && is_costly(network, moment.layer) {
            let mut all = start.clone();
            for (index, bytes) in &moment.in_use {
                match all.iter_mut().find(|(other, _)| other == index) {
                    Some((_, other)) => other.end = bytes.end,
                    None => all.push((*index, bytes.clone())),
                }
            }
            apart(&mut all.iter().map(lies).collect(), moment.layer);
        }
    }
}

fn check_application(application: &Application, choices: &[Choice]) {
    for (cnn, task) in driver::tasks(application).iter().enumerate() {
        let rates = RateTable::new(task.network);
        let given = Choice::given(application, cnn);
        for choice in given.iter().chain(choices) {
            let model = StorageModel::Tensors;
            let execution = execution::execute(task, &rates, choice, model, Rings::OnDemand).unwrap();
            check(task.network, &execution, &format!("{} {}", application.name, choice.name));
        }
    }
}

#[test]
fn rings_of_networks_share_addresses() {
    for name in ["lenet5", "squeezenet1_0", "mobilenet_v1_0.25", "mobilenet_v2"] {
        let application = open::open(&format!("builtin:{name}")).unwrap().resolve().unwrap();
        let network = &application.cnns[0].network;
        let some = Choice {
            name: "some".into(),
            barriers: None,
            rows: network
                .layers
                .iter()
                .zip(0..)
                .map(|(layer, i)| match i % 3 {
                    0 => layer.shape.rows() as u64,
                    r => (r * 3).min(layer.shape.rows() as u64),
                })
                .collect(),
        };
        let prefix = Choice::prefix(network, network.layers.len() / 4);
        check_application(&application, &[Choice::none(network), prefix, some]);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn rings_of_any_network_share_addresses(bytes in prop::collection::vec(any::<u8>(), 20..300)) {
        check_application(&generate::application(&bytes, StorageModel::Tensors), &[]);
    }
}
