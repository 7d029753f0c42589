//! What a frame reads of weights that are streamed: how often, how many bytes, and how long the store takes.

use crate::cost::timing::Timing;
use crate::frame::execution::Execution;
use crate::frame::request::RequestKind;
use crate::frame::task::PartitionedCnn;

/// By layer, how many times a frame reads its weights, and the bytes of its tiles.
fn reads(task: &PartitionedCnn<'_>, execution: &Execution) -> Vec<(u64, Vec<u64>)> {
    let mut reads = vec![(0, Vec::new()); task.network.layers.len()];
    for request in execution.requests.iter().filter(|request| request.kind == RequestKind::Block) {
        let (id, rows) = (request.tensor, execution.rows[request.tensor.0]);
        let (times, tiles) = &mut reads[id.0];
        // The first block suffices, since all blocks of a layer hold the same tiles in turn.
        if *times == 0 {
            (*times, *tiles) = (task.times_read(id, rows), task.tiles(id, rows, request.bytes).1);
        }
    }
    reads
}

/// For each layer, the modelled nanoseconds of a frame in which its weights are read.
pub fn read_ns(task: &PartitionedCnn<'_>, timing: &Timing<'_>, execution: &Execution) -> Vec<f64> {
    let each = reads(task, execution).into_iter();
    each.map(|(times, tiles)| times as f64 * timing.read_ns(&tiles)).collect()
}

/// Bytes of weights that a frame reads.
pub fn bytes_read(task: &PartitionedCnn<'_>, execution: &Execution) -> u64 {
    let each = reads(task, execution).into_iter();
    each.map(|(times, tiles)| times * tiles.iter().sum::<u64>()).sum()
}
