//! Lowering: from layers to a CSDF graph whose tokens are rows. Layers become actors. Tensors become channels, or edges do in
//! storage model `edges`.
//!
//! The graph is consistent by construction: an iteration is one frame, in which every actor runs its Φ firings once.
//! [`Lowering::channels`] says what each channel stands for.
//!
//! ```
//! use csdfc_network::LayerId;
//! use csdfc_planner::frame::lower::{firings, operand_rates};
//!
//! // A 5×5 convolution of 32 rows, two rows per firing.
//! let network = csdfc_input::builtin::network("paper_pair")?;
//! let conv = LayerId(1);
//! assert_eq!(firings(&network, conv, 2), 16);
//! // The first firing reads four rows below the padding. Each other reads two more, but the last needs only padding.
//! let rates = operand_rates(&network, conv, 0, 2);
//! assert_eq!(rates.acquire[..3], [4, 2, 2]);
//! assert_eq!(rates.acquire.iter().sum::<u64>(), 32);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use csdf::{Actor, ActorId, Channel, Graph, Rates, Reader};
use csdfc_network::operators::{self, RowAccess};
use csdfc_network::stream::Streams;
use csdfc_network::{LayerId, Network};
use csdfc_plan::format::Layout;
use csdfc_plan::plan::StorageModel;

/// The rates of one operand of a layer, per firing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OperandRates {
    /// Rows newly needed at the start of each firing.
    pub acquire: Vec<u64>,
    /// Rows forgotten at the end of each firing.
    pub release: Vec<u64>,
}

/// A partition as a dataflow graph, and where its parts come from.
#[derive(Debug)]
pub struct Lowering {
    /// The graph; actor i stands for `layers[i]`.
    pub graph: Graph,
    /// The layer of each actor.
    pub layers: Vec<LayerId>,
    /// The actor of each layer of the network; `None` for layers of other partitions.
    pub actors: Vec<Option<ActorId>>,
    /// What each channel carries.
    pub channels: Vec<ChannelOrigin>,
}

/// What a channel carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChannelOrigin {
    /// The tensor.
    pub tensor: LayerId,
    /// Its only reader, in storage model `edges`; `None` where the channel has all readers of the tensor.
    pub consumer: Option<LayerId>,
}

/// Firings per frame, Φ = ⌈H / r⌉, of a layer that makes `rows` rows per firing.
pub fn firings(network: &Network, layer: LayerId, rows: u64) -> u64 {
    (network.layer(layer).rows() as u64).div_ceil(rows.max(1))
}

/// The rates of operand `index` of a layer that makes `rows` rows per firing (`docs/design.md`, "Rows"). In a stream, they
/// are those of a hop.
pub fn operand_rates(network: &Network, id: LayerId, index: usize, rows: u64) -> OperandRates {
    let layer = network.layer(id);
    let tensor = network.layer(layer.inputs[index].layer);
    let access = row_access(network, id, index);
    let [rows_in, rows_out] = [tensor.rows() as u64, layer.rows() as u64];
    let (acquire, release) = match Streams::new(network) {
        Some(streams) => {
            let access = streams.access(network, id, index).unwrap_or(access);
            operators::acquire_release_in_hop(&access, rows_in, rows_out, rows)
        }
        None => operators::acquire_release(&access, rows_in, rows_out, rows),
    };
    OperandRates { acquire, release }
}

/// How a layer reads rows of operand `index`.
fn row_access(network: &Network, id: LayerId, index: usize) -> RowAccess {
    let layer = network.layer(id);
    let tensor = network.layer(layer.inputs[index].layer);
    // An image in CHW is one row.
    match [tensor, layer].iter().any(|layer| layer.format().layout == Layout::Chw) {
        true => RowAccess::Whole,
        false => {
            operators::row_access(&layer.operator, &tensor.shape, &layer.input_shapes(), &layer.shape, index)
        }
    }
}

/// Rows of operand `index` that a layer reads in a frame: each as often as there are output rows whose window has it. A
/// tensor that is needed whole is read once.
pub fn rows_read(network: &Network, id: LayerId, index: usize) -> u64 {
    let tensor = network.layer(network.layer(id).inputs[index].layer);
    if row_access(network, id, index) == RowAccess::Whole {
        return tensor.rows() as u64;
    }
    let OperandRates { acquire, release } = operand_rates(network, id, index, 1);
    let (mut held, mut read) = (0, 0);
    for (acquired, released) in acquire.iter().zip(&release) {
        held += acquired;
        read += held;
        held -= released;
    }
    read
}

/// Rates for fewer rows per firing than this are kept once they are computed.
const KEPT: usize = 64;

/// The rates at which a layer reads a tensor.
#[derive(Debug, Clone)]
pub(crate) struct TensorRates {
    /// The tensor.
    pub tensor: LayerId,
    /// Rows newly needed at the start of each firing.
    pub acquire: Rates,
    /// Rows forgotten at the end of each firing.
    pub release: Rates,
    /// Rows forgotten by the end of each firing, in all.
    pub released: Arc<[u64]>,
}

/// A table of the rates of all operands of every layer. Rates are computed when they are first asked for. The table
/// keeps those of whole tensors and those of few rows per firing.
#[derive(Debug)]
pub struct RateTable<'a> {
    network: &'a Network,
    /// Rows of the hops before that stay in each tensor's ring; empty if the network is no stream.
    history: Vec<u64>,
    /// By layer of a stream, whether its workspace has a state that the next hop needs; empty if the network is no stream.
    leaves_state: Vec<bool>,
    /// By layer, by rows per firing.
    kept: Vec<Vec<OnceLock<Vec<TensorRates>>>>,
    whole: Vec<OnceLock<Vec<TensorRates>>>,
    readers: Vec<Vec<LayerId>>,
}

impl<'a> RateTable<'a> {
    /// The table of a network.
    pub fn new(network: &'a Network) -> Self {
        let cells = |count: usize| (0..count).map(|_| OnceLock::new()).collect::<Vec<_>>();
        let kept = network.layers.iter().map(|layer| cells(layer.rows().min(KEPT))).collect();
        let (mut history, mut leaves_state) = (Vec::new(), Vec::new());
        if let Some(streams) = Streams::new(network) {
            history.extend(streams.rows.iter().map(|rows| rows.history));
            let layers = network.layers.iter().zip(streams.over_time);
            leaves_state.extend(layers.map(|(layer, over_time)| over_time && layer.operator.has_state()));
        }
        let whole = cells(network.layers.len());
        RateTable { network, history, leaves_state, kept, whole, readers: network.readers() }
    }

    /// Rows of the hops before that are in the ring of a tensor when a hop begins.
    pub(crate) fn history(&self, tensor: LayerId) -> u64 {
        self.history.get(tensor.0).copied().unwrap_or(0)
    }

    /// Whether the next hop of a stream needs what a layer leaves in its workspace.
    pub(crate) fn leaves_state(&self, layer: LayerId) -> bool {
        self.leaves_state.get(layer.0).copied().unwrap_or(false)
    }

    /// The layers that read the tensor of a layer, ascending, each once.
    pub(crate) fn readers(&self, tensor: LayerId) -> &[LayerId] {
        &self.readers[tensor.0]
    }

    /// The rates of the tensors that a layer with `rows` rows per firing reads, each tensor once.
    pub(crate) fn get(&self, id: LayerId, rows: u64) -> Cow<'_, [TensorRates]> {
        let make = || tensor_rates(self.network, id, rows);
        let cell = if rows >= self.network.layer(id).rows() as u64 {
            Some(&self.whole[id.0])
        } else {
            usize::try_from(rows).ok().and_then(|rows| self.kept[id.0].get(rows))
        };
        match cell {
            Some(cell) => cell.get_or_init(make).as_slice().into(),
            None => make().into(),
        }
    }
}

/// The same as [`operand_rates`], but operands that are the same tensor are joined. A row is acquired when the first of
/// them needs it, and released when the last of them no longer keeps it.
fn tensor_rates(network: &Network, id: LayerId, rows: u64) -> Vec<TensorRates> {
    let mut joined: BTreeMap<LayerId, OperandRates> = BTreeMap::new();
    for (index, operand) in network.layer(id).inputs.iter().enumerate() {
        let rates = operand_rates(network, id, index, rows);
        joined
            .entry(operand.layer)
            .and_modify(|present| {
                present.acquire = join(&present.acquire, &rates.acquire, u64::max);
                present.release = join(&present.release, &rates.release, u64::min);
            })
            .or_insert(rates);
    }
    let of_tensor = |(tensor, OperandRates { acquire, release })| {
        let [acquire, coded] = [&acquire, &release].map(|sequence| Rates::from_sequence(sequence));
        let sum = |sum: &mut u64, rate: &u64| {
            *sum += rate;
            Some(*sum)
        };
        TensorRates { tensor, acquire, release: coded, released: release.iter().scan(0, sum).collect() }
    };
    joined.into_iter().map(of_tensor).collect()
}

/// Combines two rate sequences by their running sums.
fn join(a: &[u64], b: &[u64], choose: fn(u64, u64) -> u64) -> Vec<u64> {
    let (mut sum_a, mut sum_b, mut before) = (0, 0, 0);
    a.iter()
        .zip(b)
        .map(|(a, b)| {
            sum_a += a;
            sum_b += b;
            let sum = choose(sum_a, sum_b);
            let rate = sum - before;
            before = sum;
            rate
        })
        .collect()
}

/// Lowers the given layers (a partition, in topological order) with these rows per firing. A tensor that comes from
/// another partition is no channel here: within this graph it is simply there.
///
/// # Errors
/// Those of the graph's own validation. There are none on networks that were imported or built.
pub fn lower(
    rates: &RateTable<'_>,
    layers: &[LayerId],
    rows: &[u64],
    storage: StorageModel,
) -> Result<Lowering, csdf::Error> {
    let network = rates.network;
    let mut graph = Graph::new();
    let mut actors: Vec<Option<ActorId>> = vec![None; network.layers.len()];
    for &id in layers {
        let phases = firings(network, id, rows[id.0]);
        actors[id.0] = Some(graph.add_actor(Actor::new(&network.layer(id).name, phases))?);
    }
    let mut readers: Vec<Vec<Reader>> = vec![Vec::new(); network.layers.len()];
    for &id in layers {
        let Some(actor) = actors[id.0] else { continue };
        for TensorRates { tensor, acquire, release, .. } in rates.get(id, rows[id.0]).iter() {
            readers[tensor.0].push(Reader { actor, acquire: acquire.clone(), release: release.clone() });
        }
    }
    let mut channels = Vec::new();
    for &id in layers {
        let Some(producer) = actors[id.0] else { continue };
        let readers = std::mem::take(&mut readers[id.0]);
        let groups: Vec<(Option<LayerId>, Vec<Reader>)> = match storage {
            _ if readers.is_empty() => Vec::new(),
            StorageModel::Tensors => vec![(None, readers)],
            StorageModel::Edges => {
                readers.into_iter().map(|reader| (Some(layers[reader.actor.index()]), vec![reader])).collect()
            }
        };
        for (consumer, readers) in groups {
            let layer = network.layer(id);
            graph.add_channel(Channel {
                name: layer.output.clone(),
                producer,
                production: production(layer.rows() as u64, rows[id.0]),
                readers,
                initial_tokens: 0,
                token_bytes: layer.row_bytes(),
                capacity: None,
            })?;
            channels.push(ChannelOrigin { tensor: id, consumer });
        }
    }
    Ok(Lowering { graph, layers: layers.to_vec(), actors, channels })
}

/// Rows made by each firing: `rows`, except for the last firing, which makes the rows that are left.
pub(crate) fn production(height: u64, rows: u64) -> Rates {
    Rates::portions(height, rows.max(1))
}
