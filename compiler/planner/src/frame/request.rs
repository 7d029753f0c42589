//! Requests for storage within one frame: rings, with their rows and lives; the workspaces of layers; and the blocks
//! that weights are read into.
//!
//! ```
//! use csdfc_plan::plan::StorageModel;
//! use csdfc_planner::frame::choice::Choice;
//! use csdfc_planner::frame::execution::{Rings, execute};
//! use csdfc_planner::frame::lower::RateTable;
//! use csdfc_planner::frame::task;
//! use csdfc_planner::open::open;
//!
//! // A 5×5 convolution that makes a row per firing needs five rows of its input, [3, 32, 32] floats.
//! let application = open("builtin:paper_pair")?.resolve()?;
//! let task = &task::tasks(&application)[0];
//! let (rates, choice) = (RateTable::new(task.network), Choice::all(task.network));
//! let execution = execute(task, &rates, &choice, StorageModel::Tensors, Rings::OnDemand)?;
//! let ring = execution.requests.iter().find(|request| request.is_ring()).ok_or("no ring")?;
//! assert_eq!((ring.ring_rows, ring.bytes), (5, 5 * 3 * 32 * 4));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::collections::BTreeMap;
use std::ops::Range;

use csdf::ActorId;
use csdfc_network::{LayerId, Network};
use csdfc_plan::plan::StorageModel;

use super::lower::RateTable;
use super::task::PartitionedCnn;

/// The order in which the layers of one partition fire.
#[derive(Debug, Clone)]
pub struct FiringOrder {
    /// The layer that each actor stands for, by its index.
    pub layers: Vec<LayerId>,
    /// The actors in the order in which they fire.
    pub firings: Vec<ActorId>,
}

impl FiringOrder {
    /// The layers in the order in which they fire.
    pub fn order(&self) -> impl Iterator<Item = LayerId> + '_ {
        self.firings.iter().map(|actor| self.layers[actor.index()])
    }
}

/// A ring of rows, a workspace or a block of weights that must be stored, and its life.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// The tensor, or the layer whose workspace or block it is.
    pub tensor: LayerId,
    /// What it is.
    pub kind: RequestKind,
    /// In storage model `edges`, the reader that it is for.
    pub consumer: Option<LayerId>,
    /// In storage model `edges`, which half of a double buffer it is, 1 or 2.
    pub half: Option<u8>,
    /// Rows that it holds.
    pub ring_rows: u64,
    /// `ring_rows` times the bytes of a row.
    pub bytes: u64,
    /// Its offset is a multiple of this: the bytes of an element of a ring, and 4 of a workspace or a block.
    pub alignment: u64,
    /// The first firing of the writer and the last firing of the last reader, both included, on the CNN's time line. A
    /// ring between partitions that run at the same time is live during all firings of these partitions, too.
    pub live: (usize, usize),
    /// The partition that it is counted in, as an index into [`PartitionedCnn::partitions`].
    pub partition: usize,
    /// Every partition that writes or reads it.
    pub touched: Vec<usize>,
    /// Whether its reader is in a partition that runs at the same time as the partition that writes it.
    pub pipelined: bool,
    /// Rows of the hops before that are in it when a hop of a stream begins. If there are any, it lives all the time.
    pub history: u64,
    /// What it is of a state that the CNN keeps from frame to frame, if it is a part of one.
    pub state: Option<StatePart>,
    /// Which bytes of it are in use while it lives. `None` if all of them are, all the time.
    pub occupancy_profile: Option<OccupancyProfile>,
}

/// A part of what a CNN keeps from frame to frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatePart {
    /// The input: all its rows live all the time.
    Input,
    /// The output, from which the input is copied when the frame has ended: all its rows stay until then.
    Output,
    /// The workspace of a recurrent layer of a stream: it lives all the time.
    Workspace,
}

/// What is to be stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestKind {
    /// A ring of rows.
    Ring,
    /// A layer's workspace. It has no rows, and lives from the layer's first firing to its last, or all the time if the
    /// layer leaves a state in it for the next hop.
    Workspace,
    /// A block that a layer's weights are read into. It has no rows. It lives from the end of the firing after which
    /// the weights may be read to the layer's last firing.
    Block,
}

impl Request {
    /// Whether it lives from one frame, or hop of a stream, to the next.
    pub fn persists(&self) -> bool {
        self.history > 0 || matches!(self.state, Some(StatePart::Input | StatePart::Workspace))
    }

    /// Whether it is a ring.
    pub fn is_ring(&self) -> bool {
        self.kind == RequestKind::Ring
    }

    /// The last firing at which bytes of it are in use. A whole ring may live longer: the first operand of a concat along
    /// rows is released before the concat has made the rows of the second.
    pub fn last_use(&self) -> usize {
        let released =
            self.occupancy_profile.as_ref().and_then(|occupancy_profile| occupancy_profile.released.last());
        released.map_or(self.live.1, |(at, _)| *at)
    }
}

/// The bytes of a whole ring that are in use, as steps over the firings of a frame.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OccupancyProfile {
    /// `(f, b)`: from firing f on, b bytes have been begun. Both ascend.
    pub begun: Vec<(usize, u64)>,
    /// `(f, b)`: after firing f, all readers have released b bytes. Both ascend.
    pub released: Vec<(usize, u64)>,
}

impl OccupancyProfile {
    /// The bytes in use at a firing, with all that it begins and all that it will release.
    pub fn at(&self, firing: usize) -> Range<u64> {
        let low = self.released.partition_point(|(at, _)| *at < firing);
        let high = self.begun.partition_point(|(at, _)| *at <= firing);
        let bytes =
            |steps: &[(usize, u64)], count: usize| count.checked_sub(1).map_or(0, |last| steps[last].1);
        bytes(&self.released, low)..bytes(&self.begun, high)
    }
}

/// Workspaces and blocks begin at multiples of this many bytes: they hold floats of 32 bits.
const ROOM_ALIGNMENT: u64 = 4;

/// The basis of the requests: the capacities that the dataflow analysis found, and the firings of layers.
pub(super) struct RequestBuilder<'a> {
    /// The CNN.
    pub(super) task: &'a PartitionedCnn<'a>,
    /// Its rates, which know who reads each tensor.
    pub(super) rates: &'a RateTable<'a>,
    /// Rows per firing of each layer.
    pub(super) rows: &'a [u64],
    /// Rows that each tensor needs, by its reader in storage model `edges`.
    pub(super) capacities: BTreeMap<(LayerId, Option<LayerId>), u64>,
    /// The stretch of the time line that each partition takes.
    pub(super) windows: &'a [Range<usize>],
    /// First and last firing of each layer.
    pub(super) span: Vec<Option<(usize, usize)>>,
}

impl RequestBuilder<'_> {
    /// The rings of one frame, by partition.
    pub(super) fn requests(&self, storage: StorageModel) -> Vec<Request> {
        let network = self.task.network;
        let mut partition_of = vec![0; network.layers.len()];
        for (index, partition) in self.task.partitions.iter().enumerate() {
            for id in &partition.layers {
                partition_of[id.0] = index;
            }
        }
        let mut requests = Vec::new();
        for tensor in network.ids() {
            let readers = self.rates.readers(tensor);
            match storage {
                _ if readers.is_empty() && state_part(network, tensor).is_none() => {}
                StorageModel::Tensors => {
                    let request = self.request(tensor, None, readers, &partition_of, 2);
                    let layer = network.layer(tensor);
                    // A tensor that the caller holds needs no ring, unless it is still read when the next frame comes.
                    let outlives = request.pipelined || request.persists();
                    if outlives || !layer.is_held_by_caller(self.rows[tensor.0]) {
                        requests.push(request);
                    }
                }
                StorageModel::Edges => {
                    for &reader in readers {
                        let edge = self.request(tensor, Some(reader), &[reader], &partition_of, 1);
                        if edge.pipelined {
                            // A double buffer: one half counted with each of the two partitions.
                            let reading =
                                Request { partition: partition_of[reader.0], half: Some(2), ..edge.clone() };
                            requests.push(Request { half: Some(1), ..edge });
                            requests.push(reading);
                        } else {
                            requests.push(edge);
                        }
                    }
                }
            }
        }
        let with_workspace = network.ids().filter(|id| network.layer(*id).workspace_bytes() > 0);
        let workspace = |id: LayerId| {
            let bytes = network.layer(id).workspace_bytes() * self.task.workers;
            let room = self.room(id, RequestKind::Workspace, bytes, partition_of[id.0]);
            match self.rates.leaves_state(id) {
                true => Request { live: self.always(), state: Some(StatePart::Workspace), ..room },
                false => room,
            }
        };
        requests.extend(with_workspace.map(workspace));
        let block_bytes = |id: LayerId| self.task.block_bytes(id, self.rows[id.0]);
        let streamed = network.ids().filter(|id| block_bytes(*id) > 0);
        requests.extend(
            streamed.map(|id| self.room(id, RequestKind::Block, block_bytes(id), partition_of[id.0])),
        );
        requests.sort_by_key(|request| request.partition);
        requests
    }

    /// The life of what lives from hop to hop.
    fn always(&self) -> (usize, usize) {
        (0, self.windows.last().map_or(0, |window| window.end.saturating_sub(1)))
    }

    /// Storage that a layer has to itself from its first firing to its last.
    fn room(&self, layer: LayerId, kind: RequestKind, bytes: u64, partition: usize) -> Request {
        Request {
            tensor: layer,
            kind,
            consumer: None,
            half: None,
            ring_rows: 0,
            bytes,
            alignment: ROOM_ALIGNMENT,
            live: self.span[layer.0].unwrap_or_default(),
            partition,
            touched: vec![partition],
            pipelined: false,
            history: 0,
            state: None,
            occupancy_profile: None,
        }
    }

    /// The ring of one tensor for these readers. It holds `frames` frames if partitions that run at the same time share
    /// it.
    fn request(
        &self,
        tensor: LayerId,
        consumer: Option<LayerId>,
        readers: &[LayerId],
        partition_of: &[usize],
        frames: u64,
    ) -> Request {
        let layer = self.task.network.layer(tensor);
        let height = layer.rows() as u64;
        let partition = partition_of[tensor.0];
        let mut touched: Vec<usize> = readers.iter().map(|reader| partition_of[reader.0]).collect();
        touched.push(partition);
        touched.sort_unstable();
        touched.dedup();
        let pipelined = touched.iter().any(|reader| self.task.together[partition][*reader]);
        let cut = touched.len() > 1;
        let history = self.rates.history(tensor);
        let state = state_part(self.task.network, tensor);
        let ring_rows = history
            + match self.capacities.get(&(tensor, consumer)) {
                _ if pipelined => frames * height,
                _ if cut || state.is_some() => height,
                Some(capacity) => *capacity,
                None => height,
            };
        let always = self.always();
        let live = if history > 0 || state == Some(StatePart::Input) {
            always
        } else if state == Some(StatePart::Output) {
            (self.span[tensor.0].map_or(0, |span| span.0), always.1)
        } else if pipelined {
            let stages = || touched.iter().filter(|&&p| p == partition || self.task.together[partition][p]);
            let starts = stages().map(|p| self.windows[*p].start);
            let reads = readers.iter().filter_map(|reader| self.span[reader.0]).map(|span| span.1);
            let ends = stages().map(|p| self.windows[*p].end.saturating_sub(1)).chain(reads);
            (starts.min().unwrap_or(0), ends.max().unwrap_or(0))
        } else {
            let begin = self.span[tensor.0].map_or(0, |span| span.0);
            let end = readers.iter().filter_map(|reader| self.span[reader.0]).map(|span| span.1).max();
            (begin, end.unwrap_or(begin))
        };
        let bytes = ring_rows * layer.row_bytes();
        let occupancy_profile = None;
        Request {
            tensor,
            kind: RequestKind::Ring,
            consumer,
            half: None,
            ring_rows,
            bytes,
            alignment: layer.format().element.bytes(),
            live,
            partition,
            touched,
            pipelined,
            history,
            state,
            occupancy_profile,
        }
    }
}

/// What a tensor is of a state of the network.
fn state_part(network: &Network, tensor: LayerId) -> Option<StatePart> {
    match network.layer(tensor) {
        layer if network.state_of_input(&layer.name).is_some() => Some(StatePart::Input),
        _ => network.is_kept(tensor).then_some(StatePart::Output),
    }
}
