//! Larger blocks of weights where there is room.
//!
//! The search counts the smallest slices, of one panel of output channels. So it finds the least memory, but it would read
//! a few kilobytes at a time. Here slices grow, as far as the arena does not.

use crate::cost::timing::{FrameTime, Timing};
use crate::frame::execution::Execution;
use crate::frame::request::RequestKind;
use crate::frame::task::CnnTask;
use crate::network::LayerId;
use crate::search::Variant;
use crate::search::subject::Subject;
use crate::storage::{Arrangement, Effort, Storage};

use csdfc_codegen::bind::Slicing;

/// Shares of the room beside a block that are tried, one in so many.
const SHARES: [u64; 4] = [1, 2, 4, 8];

/// Modelled nanoseconds in which the weights of each layer are read.
pub(super) fn read_ns(task: &CnnTask<'_>, timing: &Timing<'_>, execution: &Execution) -> Vec<f64> {
    let mut read = vec![0.0; task.network.layers.len()];
    for request in execution.requests.iter().filter(|request| request.kind == RequestKind::Block) {
        let LayerId(layer) = request.tensor;
        read[layer] = timing.read_ns(&task.slices(request.tensor, execution.rows[layer], request.bytes).1);
    }
    read
}

/// The times of a frame with slices as they are in the end.
pub(super) fn frame(task: &CnnTask<'_>, timing: &Timing<'_>, execution: &Execution) -> FrameTime {
    let read = read_ns(task, timing, execution);
    timing.frame_with(task, &execution.rows, &execution.one_by_one, |id| read[id.0])
}

/// Makes the blocks of sliced layers larger, and arranges all anew. The arena stays as it is or gets smaller.
pub(super) fn grow(subject: &Subject<'_>, variants: &mut [Variant], arrangement: Arrangement) -> Arrangement {
    let storage = Storage {
        executions: variants.iter().map(|variant| &variant.execution).collect(),
        elements: subject.elements,
    };
    let items = storage.items();
    let room: Vec<u64> = items
        .iter()
        .enumerate()
        .map(|(i, item)| match item.request.kind {
            RequestKind::Block => arrangement.bytes.saturating_sub(storage.beside(&items, i)),
            RequestKind::Ring | RequestKind::Workspace => 0,
        })
        .collect();
    for share in SHARES {
        let mut room = room.iter();
        let mut grown: Vec<Execution> = variants.iter().map(|variant| variant.execution.clone()).collect();
        for (task, execution) in subject.tasks.iter().zip(&mut grown) {
            for (request, room) in execution.requests.iter_mut().zip(&mut room) {
                let LayerId(layer) = request.tensor;
                let slicing = task.slicing(request.tensor, execution.rows[layer]);
                if let (RequestKind::Block, Some(slicing)) = (request.kind, slicing) {
                    let more = room.saturating_sub(request.bytes) / share;
                    // Of one slice alone, more would be known than was planned with.
                    let most = (slicing.filters - 1) / Slicing::PANEL * Slicing::PANEL;
                    request.bytes = slicing.bytes(slicing.within(request.bytes + more).min(most));
                }
            }
        }
        let storage = Storage { executions: grown.iter().collect(), elements: subject.elements };
        let again = subject.arrange(&storage, Effort::Front);
        if again.bytes <= arrangement.bytes {
            for (variant, execution) in variants.iter_mut().zip(grown) {
                variant.execution = execution;
            }
            return again;
        }
    }
    arrangement
}
