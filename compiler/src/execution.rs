//! What happens in one frame of a CNN under a choice of rows per firing: the order of firings, the rows that each
//! ring must hold, and from when to when.

use std::collections::BTreeMap;
use std::ops::Range;

use csdf::ActorId;
use csdfc_codegen::operator::{InputElement, Operator};
use csdfc_codegen::plan::StorageModel;

use crate::lower::{self, RateTable};
use crate::network::{LayerId, Network};
use crate::occupancy::{self, Filling, Sharing};
use crate::search::choice::Choice;
use crate::tighten::tighten;

/// A CNN cut into partitions.
#[derive(Debug, Clone)]
pub struct CnnTask<'a> {
    /// Its layers.
    pub network: &'a Network,
    /// Its partitions, in the order of their layers; each layer is in one.
    pub partitions: Vec<PartitionTask>,
    /// Whether two of its partitions run at the same time (are together in an element of J).
    pub together: Vec<Vec<bool>>,
}

/// One partition of a CNN.
#[derive(Debug, Clone)]
pub struct PartitionTask {
    /// Its layers, in topological order.
    pub layers: Vec<LayerId>,
    /// The schedule that the application gives, if any: steps of layers, each step run to its end before the next.
    pub steps: Option<Vec<Vec<LayerId>>>,
}

/// One frame of a CNN: its partitions one after another on one time line, counted in firings. (Partitions that run
/// at the same time each keep their own stretch of that line.)
#[derive(Debug, Clone)]
pub struct Execution {
    /// Rows per firing of each layer.
    pub rows: Vec<u64>,
    /// The segment barriers that were asked for: [`Choice::barriers`].
    pub barriers: Option<Vec<LayerId>>,
    /// The firings of each partition, in order.
    pub runs: Vec<Run>,
    /// The stretch of the time line that each partition takes.
    pub windows: Vec<Range<usize>>,
    /// What must be stored.
    pub requests: Vec<Request>,
    /// How they may share addresses at the same time.
    pub sharing: Sharing,
    /// The layers, ascending, that may share addresses at the price of making their rows one by one: some of
    /// [`Sharing::costly`].
    pub one_by_one: Vec<LayerId>,
}

impl Execution {
    /// Whether a layer may make its rows one by one at a price.
    pub fn goes_one_by_one(&self, layer: LayerId) -> bool {
        self.one_by_one.binary_search(&layer).is_ok()
    }

    /// All layers that could.
    pub fn costly(&self) -> Vec<LayerId> {
        self.sharing.costly.iter().map(|costly| costly.layer).collect()
    }
}

/// The firings of one partition.
#[derive(Debug, Clone)]
pub struct Run {
    /// The layer that each actor stands for, by its index.
    pub layers: Vec<LayerId>,
    /// The actors in the order in which they fire.
    pub firings: Vec<ActorId>,
}

impl Run {
    /// The layers in the order in which they fire.
    pub fn order(&self) -> impl Iterator<Item = LayerId> + '_ {
        self.firings.iter().map(|actor| self.layers[actor.index()])
    }
}

/// A ring of rows that must be stored, and when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// The tensor.
    pub tensor: LayerId,
    /// In storage model `edges`, the reader that it is for.
    pub consumer: Option<LayerId>,
    /// In storage model `edges`, which half of a double buffer it is, 1 or 2.
    pub half: Option<u8>,
    /// Rows that it holds.
    pub ring_rows: u64,
    /// `ring_rows` times the bytes of a row.
    pub bytes: u64,
    /// First firing of the writer, and last of the last reader, inclusive, on the CNN's time line. For a ring
    /// between partitions that run at the same time, all that any of them does.
    pub live: (usize, usize),
    /// The partition that it is counted in, as an index into [`CnnTask::partitions`].
    pub partition: usize,
    /// Every partition that writes or reads it.
    pub touched: Vec<usize>,
    /// Whether a partition reads it that runs at the same time as the one that writes it.
    pub pipelined: bool,
    /// What of it is in use while it lives; `None` if all of it is throughout.
    pub filling: Option<Filling>,
}

/// How the order of firings within a segment is found, and with it the rows of the rings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rings {
    /// On demand: at once, and mostly the best there is.
    OnDemand,
    /// On demand, and by search where that gives fewer bytes. Schedules that the application gives stay.
    Smallest,
}

/// Runs one frame of a CNN as chosen.
///
/// # Errors
/// None on networks that were imported or built; errors of the dataflow analyses are passed on.
pub fn execute(
    task: &CnnTask<'_>,
    rates: &RateTable<'_>,
    choice: &Choice,
    storage: StorageModel,
    rings: Rings,
) -> Result<Execution, csdf::Error> {
    let network = task.network;
    let rows = choice.rows.as_slice();
    let mut runs = Vec::new();
    let mut windows = Vec::new();
    let mut capacities: BTreeMap<(LayerId, Option<LayerId>), u64> = BTreeMap::new();
    let mut span: Vec<Option<(usize, usize)>> = vec![None; network.layers.len()];
    let mut now = 0;
    for partition in &task.partitions {
        let lowering = lower::lower(rates, &partition.layers, rows, storage)?;
        let segments = segments(network, partition, choice);
        let steps: Vec<Vec<ActorId>> = segments
            .iter()
            .map(|step| step.iter().filter_map(|id| lowering.actors[id.0]).collect())
            .collect();
        let mut execution = csdf::sequential(&lowering.graph, &steps)?;
        if rings == Rings::Smallest
            && partition.steps.is_none()
            && let Some(tighter) = tighten(&lowering.graph, &steps, &execution)?
        {
            execution = tighter;
        }
        for (origin, capacity) in lowering.channels.iter().zip(&execution.capacities) {
            capacities.insert((origin.tensor, origin.consumer), *capacity);
        }
        for (id, (first, last)) in lowering.layers.iter().zip(&execution.spans) {
            span[id.0] = Some((now + first, now + last));
        }
        if partition.steps.is_some() && storage == StorageModel::Edges {
            live_together(&segments, &mut span);
        }
        windows.push(now..now + execution.firings.len());
        now += execution.firings.len();
        runs.push(Run { layers: lowering.layers, firings: execution.firings });
    }
    let frame = Frame { task, rows, capacities, windows: &windows, span };
    let mut requests = frame.requests(storage);
    let sharing = match storage {
        StorageModel::Tensors => occupancy::fill(network, rates, rows, &runs, &mut requests),
        StorageModel::Edges => Sharing::default(),
    };
    let barriers = choice.barriers.clone();
    let is_chosen = |layer: &LayerId| choice.one_by_one.as_ref().is_some_and(|chosen| chosen.contains(layer));
    let one_by_one = sharing.costly.iter().map(|costly| costly.layer).filter(is_chosen).collect();
    Ok(Execution { rows: rows.to_vec(), barriers, runs, windows, requests, sharing, one_by_one })
}

/// Layers of one given step live together (main paper, section 2.3): each spans the whole step.
fn live_together(segments: &[Vec<LayerId>], span: &mut [Option<(usize, usize)>]) {
    for step in segments {
        let spans: Vec<(usize, usize)> = step.iter().filter_map(|id| span[id.0]).collect();
        let first = spans.iter().map(|s| s.0).min();
        let last = spans.iter().map(|s| s.1).max();
        for id in step {
            span[id.0] = first.zip(last);
        }
    }
}

/// The steps in which a partition runs, in topological order: those that the application gives; or else those between
/// the choice's barriers; or else each run of layers that process their data by parts (with the single-firing layers
/// among them) interleaved, and every other layer alone.
fn segments(network: &Network, partition: &PartitionTask, choice: &Choice) -> Vec<Vec<LayerId>> {
    if let Some(steps) = &partition.steps {
        return steps.clone();
    }
    if let Some(barriers) = &choice.barriers {
        let within = |before: &LayerId, _: &LayerId| barriers.binary_search(before).is_err();
        return partition.layers.chunk_by(within).map(<[LayerId]>::to_vec).collect();
    }
    let mut segments: Vec<Vec<LayerId>> = Vec::new();
    let mut streaming = false;
    for &id in &partition.layers {
        let height = network.layer(id).shape.rows() as u64;
        let by_parts = choice.rows[id.0] < height;
        match segments.last_mut() {
            Some(segment) if streaming && (by_parts || height == 1) => segment.push(id),
            _ => {
                segments.push(vec![id]);
                streaming = by_parts;
            }
        }
    }
    segments
}

struct Frame<'a> {
    task: &'a CnnTask<'a>,
    rows: &'a [u64],
    capacities: BTreeMap<(LayerId, Option<LayerId>), u64>,
    windows: &'a [Range<usize>],
    span: Vec<Option<(usize, usize)>>,
}

impl Frame<'_> {
    fn requests(&self, storage: StorageModel) -> Vec<Request> {
        let network = self.task.network;
        let readers = network.readers();
        let mut partition_of = vec![0; network.layers.len()];
        for (index, partition) in self.task.partitions.iter().enumerate() {
            for id in &partition.layers {
                partition_of[id.0] = index;
            }
        }
        let mut requests = Vec::new();
        for tensor in network.ids() {
            let readers = &readers[tensor.0];
            match storage {
                _ if readers.is_empty() => {}
                StorageModel::Tensors => {
                    let request = self.request(tensor, None, readers, &partition_of, 2);
                    // Bytes are converted into a ring; floats delivered whole are read in place.
                    let whole_input = matches!(
                        &network.layer(tensor).operator,
                        Operator::Input(input) if input.element == InputElement::F32
                    ) && lower::firings(network, tensor, self.rows[tensor.0]) == 1;
                    // The caller's copy does, unless a partition still reads it when the next frame comes.
                    if !whole_input || request.pipelined {
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
        requests.sort_by_key(|request| request.partition);
        requests
    }

    /// The ring of one tensor for these readers; `frames` frames of it if partitions that run at the same time share it.
    fn request(
        &self,
        tensor: LayerId,
        consumer: Option<LayerId>,
        readers: &[LayerId],
        partition_of: &[usize],
        frames: u64,
    ) -> Request {
        let layer = self.task.network.layer(tensor);
        let height = layer.shape.rows() as u64;
        let partition = partition_of[tensor.0];
        let mut touched: Vec<usize> = readers.iter().map(|reader| partition_of[reader.0]).collect();
        touched.push(partition);
        touched.sort_unstable();
        touched.dedup();
        let pipelined = touched.iter().any(|reader| self.task.together[partition][*reader]);
        let cut = touched.len() > 1;
        let ring_rows = match self.capacities.get(&(tensor, consumer)) {
            _ if pipelined => frames * height,
            _ if cut => height,
            Some(capacity) => *capacity,
            None => height,
        };
        let live = if pipelined {
            let starts = touched.iter().map(|p| self.windows[*p].start);
            let ends = touched.iter().map(|p| self.windows[*p].end.saturating_sub(1));
            (starts.min().unwrap_or(0), ends.max().unwrap_or(0))
        } else {
            let begin = self.span[tensor.0].map_or(0, |span| span.0);
            let end = readers.iter().filter_map(|reader| self.span[reader.0]).map(|span| span.1).max();
            (begin, end.unwrap_or(begin))
        };
        let bytes = ring_rows * layer.row_bytes();
        let filling = None;
        Request {
            tensor,
            consumer,
            half: None,
            ring_rows,
            bytes,
            live,
            partition,
            touched,
            pipelined,
            filling,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn barriers_end_segments() {
        let network = crate::builtin::network("lenet5").unwrap();
        let layers: Vec<LayerId> = network.ids().collect();
        let task = CnnTask {
            network: &network,
            partitions: vec![PartitionTask { layers, steps: None }],
            together: vec![vec![false]],
        };
        let rates = RateTable::new(&network);
        for barriers in [vec![], vec![LayerId(2)], vec![LayerId(0), LayerId(3)]] {
            let choice = Choice { barriers: Some(barriers.clone()), ..Choice::all(&network) };
            let execution = execute(&task, &rates, &choice, StorageModel::Tensors, Rings::OnDemand).unwrap();
            let segment = |id: LayerId| barriers.iter().filter(|barrier| **barrier < id).count();
            let order: Vec<LayerId> = execution.runs[0].order().collect();
            assert!(order.is_sorted_by_key(|id| segment(*id)), "{barriers:?}");
            assert!(!order.is_sorted(), "within a segment firings take turns");
            for request in &execution.requests {
                let height = network.layer(request.tensor).shape.rows() as u64;
                assert!(!barriers.contains(&request.tensor) || request.ring_rows == height, "{request:?}");
                assert!(request.tensor.0 > 2 || request.ring_rows < height || !barriers.is_empty());
            }
        }
    }
}
