//! A CNN as its frames are executed: its layers, its partitions, and which of these run at the same time.
//!
//! ```
//! use csdfc_input::app::spec::PartitionSpec;
//! use csdfc_planner::frame::task;
//! use csdfc_planner::open::open;
//!
//! let mut opened = open("builtin:lenet5")?;
//! let first = PartitionSpec { upto: Some("S2".into()), ..PartitionSpec::default() };
//! opened.spec.cnns[0].partitions = vec![first, PartitionSpec::default()];
//! let application = opened.resolve()?;
//! let task = &task::tasks(&application)[0];
//! assert_eq!(task.partitions.len(), 2);
//! // They do not run at the same time unless `parallel` says so.
//! assert!(!task.together[0][1]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use csdfc_input::app::partition::Partition;
use csdfc_input::app::resolve::{Application, Cnn};
use csdfc_network::component::{components, partition_of, stops};
use csdfc_network::{Layer, LayerId, Network};
use csdfc_plan::shape::Shape;
use csdfc_runtime::bind::Tiling;

use super::lower;

/// A CNN cut into partitions.
#[derive(Debug, Clone)]
pub struct PartitionedCnn<'a> {
    /// Its layers.
    pub network: &'a Network,
    /// Workers that share each firing. Each has a workspace of its own.
    pub workers: u64,
    /// Its partitions, in the order of their last layers; each layer is in one.
    pub partitions: Vec<PartitionTask>,
    /// Whether two of its partitions run at the same time (are together in an element of J).
    pub together: Vec<Vec<bool>>,
    /// By layer, how its weights are read from a store; `None` if they stay in memory. Empty if all of them do.
    pub streaming: Vec<Option<Streaming>>,
}

/// How the weights of a layer are read from a store.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Streaming {
    /// Bytes of all of them.
    pub stored: u64,
    /// How they can be divided into tiles of output channels, if the layer makes all its rows in one firing or reads
    /// its weights again.
    pub tiling: Option<Tiling>,
    /// Whether each firing of the layer reads all tiles again, if it goes by parts. Otherwise the layer keeps its weights
    /// from its first firing to its last.
    pub again: bool,
}

/// Weights of no more bytes than this are read at once. Tiles would save little, and a layer that is computed in tiles
/// can't write where it reads.
const UNTILED: u64 = 16 * 1024;

impl Streaming {
    /// The streaming of a layer, if it has weights.
    fn new(network: &Network, layer: &Layer) -> Option<Self> {
        let inputs: Vec<&Shape> = layer.inputs.iter().map(|operand| &operand.shape).collect();
        let primitive = layer.primitive();
        let stored = primitive.stored_bytes(&layer.operator, &inputs, layer.parameter_elements());
        if stored == 0 {
            return None;
        }
        let own = |operand: &csdfc_network::Operand| &network.layer(operand.layer).shape;
        let operands: Vec<(&Shape, &Shape)> =
            layer.inputs.iter().map(|operand| (own(operand), &operand.shape)).collect();
        let tiling = || Tiling::new(primitive, &layer.operator, &operands, &layer.shape);
        let tiling = (stored > UNTILED).then(tiling).flatten();
        let tiling = tiling.filter(|tiling| tiling.filters > Tiling::PANEL);
        Some(Streaming { stored, tiling, again: false })
    }
}

impl PartitionedCnn<'_> {
    /// The partition of each layer.
    pub fn partition_of(&self) -> Vec<usize> {
        partition_of(self.network, self.partitions.iter().map(|partition| partition.layers.as_slice()))
    }

    /// How the weights of a layer are read, if they are streamed.
    pub fn streaming(&self, id: LayerId) -> Option<&Streaming> {
        self.streaming.get(id.0)?.as_ref()
    }

    /// Bytes of the weights of a partition that are streamed.
    pub fn bytes_streamed(&self, partition: usize) -> u64 {
        let stored = |id: &LayerId| self.streaming(*id).map_or(0, |streaming| streaming.stored);
        self.partitions[partition].layers.iter().map(stored).sum()
    }

    /// How a layer is tiled that makes `rows` rows at a time, if its weights are streamed, and it makes all rows at once
    /// or reads its weights again.
    pub fn tiling(&self, id: LayerId, rows: u64) -> Option<Tiling> {
        let makes_all = rows >= self.network.layer(id).rows() as u64;
        self.streaming(id).filter(|streaming| makes_all || streaming.again)?.tiling
    }

    /// How many times a frame reads the weights of a layer that makes `rows` rows at a time: once per firing if the
    /// weights come in tiles.
    pub fn times_read(&self, id: LayerId, rows: u64) -> u64 {
        match (self.streaming(id), self.tiling(id, rows)) {
            (None, _) => 0,
            (_, None) => 1,
            (_, Some(_)) => lower::firings(self.network, id, rows),
        }
    }

    /// The tiles of a layer that makes `rows` rows at a time, in a block of `block` bytes: the output channels of each
    /// tile but the last, if there are several, and the bytes of each.
    pub fn tiles(&self, id: LayerId, rows: u64, block: u64) -> (Option<u64>, Vec<u64>) {
        let Some(tiling) = self.tiling(id, rows) else {
            return (None, self.streaming(id).map(|streaming| streaming.stored).into_iter().collect());
        };
        let filters = tiling.max_filters(block);
        let starts = (0..tiling.filters).step_by(filters as usize);
        let of = |start: u64| tiling.bytes(filters.min(tiling.filters - start));
        (Some(filters), starts.map(of).collect())
    }

    /// Bytes of the least block for the weights of a layer that makes `rows` rows at a time; 0 if the weights are not
    /// streamed.
    pub fn block_bytes(&self, id: LayerId, rows: u64) -> u64 {
        let stored = self.streaming(id).map_or(0, |streaming| streaming.stored);
        self.tiling(id, rows).map_or(stored, |tiling| tiling.bytes(Tiling::PANEL))
    }
}

/// One partition of a CNN.
#[derive(Debug, Clone)]
pub struct PartitionTask {
    /// Its layers, in topological order.
    pub layers: Vec<LayerId>,
    /// The schedule that the application gives, if any: steps of layers. Each step runs to its end before the next
    /// begins.
    pub steps: Option<Vec<Vec<LayerId>>>,
    /// Layers after which a segment ends in any case, ascending.
    pub stops: Vec<LayerId>,
}

/// Every CNN of an application, cut into its partitions.
pub fn tasks(application: &Application) -> Vec<PartitionedCnn<'_>> {
    let at_once = |a: &str, b: &str| {
        a != b
            && application
                .parallel
                .iter()
                .any(|element| element.iter().any(|p| p == a) && element.iter().any(|p| p == b))
    };
    let task = |cnn: &Cnn| {
        let names: Vec<&str> = cnn.partitions.iter().map(|p| p.name.as_str()).collect();
        names.iter().map(|a| names.iter().map(|b| at_once(a, b)).collect()).collect()
    };
    let streaming = |c: usize, network: &Network| match &application.streamed {
        None => Vec::new(),
        Some(streamed) => {
            let of = |layer: &Layer| {
                let name = (c, layer.name.clone());
                let streaming =
                    Streaming::new(network, layer).filter(|_| !streamed.resident.contains(&name))?;
                Some(Streaming { again: streamed.again.contains(&name), ..streaming })
            };
            network.layers.iter().map(of).collect()
        }
    };
    application
        .cnns
        .iter()
        .enumerate()
        .map(|(c, cnn)| PartitionedCnn {
            streaming: streaming(c, &cnn.network),
            network: &cnn.network,
            workers: application.threads as u64,
            partitions: partitions(cnn),
            together: task(cnn),
        })
        .collect()
}

fn partitions(cnn: &Cnn) -> Vec<PartitionTask> {
    let layers = cnn.partitions.iter().map(|partition| partition.layers.as_slice());
    let partition_of = partition_of(&cnn.network, layers);
    let components = components(&cnn.network, &partition_of, cnn.partitions.len());
    let stops = stops(&cnn.network, &partition_of, &components);
    let task = |partition: &Partition| PartitionTask {
        layers: partition.layers.clone(),
        steps: partition.schedule.clone(),
        stops: stops.iter().copied().filter(|id| partition.layers.contains(id)).collect(),
    };
    cnn.partitions.iter().map(task).collect()
}

/// J, each partition as (CNN, partition of that CNN).
pub fn elements(application: &Application) -> Vec<Vec<(usize, usize)>> {
    let find = |name: &String| {
        application.cnns.iter().enumerate().find_map(|(c, cnn)| {
            cnn.partitions.iter().position(|partition| partition.name == *name).map(|p| (c, p))
        })
    };
    application.parallel.iter().map(|element| element.iter().filter_map(find).collect()).collect()
}
