//! The traffic of a frame: the bytes that layers read and write of what is stored.
//!
//! A layer writes each row of its output once. It reads a row of an operand as often as there are output rows whose
//! window has the row, and a tensor that it needs whole once. For each output row it writes its workspace and reads it
//! again, and reads its block of weights, which each load has written. Accesses within a row are not counted: the caches
//! and registers of a processor serve them.
//!
//! ```
//! use csdfc_network::LayerId;
//! use csdfc_plan::plan::StorageModel;
//! use csdfc_planner::cost::traffic;
//! use csdfc_planner::frame::choice::Choice;
//! use csdfc_planner::frame::execution::{Rings, execute};
//! use csdfc_planner::frame::{lower::RateTable, task};
//! use csdfc_planner::open::open;
//!
//! // A 5×5 convolution of 32 rows of 384 bytes. Two of its windows have three rows, two have four, and the others five.
//! let application = open("builtin:paper_pair")?.resolve()?;
//! let task = &task::tasks(&application)[0];
//! let (rates, choice) = (RateTable::new(task.network), Choice::all(task.network));
//! let execution = execute(task, &rates, &choice, StorageModel::Tensors, Rings::OnDemand)?;
//! let traffic = traffic::of(task, &execution.rows, &execution.requests[0]);
//! assert_eq!(traffic, [(LayerId(0), 32 * 384), (LayerId(1), (28 * 5 + 2 * 4 + 2 * 3) * 384)]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use csdfc_network::LayerId;

use crate::frame::lower;
use crate::frame::request::{Request, RequestKind};
use crate::frame::task::PartitionedCnn;

/// The bytes of a request that layers read and write in a frame, by layer. `rows` are the rows per firing of each layer.
pub fn of(task: &PartitionedCnn<'_>, rows: &[u64], request: &Request) -> Vec<(LayerId, u64)> {
    let (network, id) = (task.network, request.tensor);
    let layer = network.layer(id);
    let made = layer.rows() as u64;
    match request.kind {
        RequestKind::Workspace => vec![(id, 2 * made * request.bytes / task.workers)],
        RequestKind::Block => {
            let stored = task.streaming(id).map_or(0, |streaming| streaming.stored);
            vec![(id, stored * (task.times_read(id, rows[id.0]) + made))]
        }
        RequestKind::Ring => {
            let mut traffic = vec![(id, made * layer.row_bytes())];
            for reader in network.ids() {
                let operands = network.layer(reader).inputs.iter().enumerate();
                let of_tensor = operands.filter(|(_, operand)| operand.layer == id);
                let read: u64 = of_tensor.map(|(index, _)| lower::rows_read(network, reader, index)).sum();
                if read > 0 {
                    traffic.push((reader, read * layer.row_bytes()));
                }
            }
            traffic
        }
    }
}
