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
use csdfc_runtime::bind::Slicing;

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
    pub paging: Vec<Option<Paging>>,
}

/// How the weights of a layer are read from a store.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Paging {
    /// Bytes of all of them.
    pub stored: u64,
    /// How they can be divided into slices of output channels, if the layer makes all its rows in one firing or reads
    /// its weights again.
    pub slicing: Option<Slicing>,
    /// Whether each firing of the layer reads all slices again, if it goes by parts. Otherwise the layer keeps its weights
    /// from its first firing to its last.
    pub again: bool,
}

/// Weights of no more bytes than this are read at once. Slices would save little, and a layer that is computed in slices
/// can't write where it reads.
const UNSLICED: u64 = 16 * 1024;

impl Paging {
    /// The paging of a layer, if it has weights.
    fn of(network: &Network, layer: &Layer) -> Option<Self> {
        let inputs: Vec<&Shape> = layer.inputs.iter().map(|operand| &operand.shape).collect();
        let primitive = layer.primitive();
        let stored = primitive.stored_bytes(&layer.operator, &inputs, layer.parameter_elements());
        if stored == 0 {
            return None;
        }
        let own = |operand: &csdfc_network::Operand| &network.layer(operand.layer).shape;
        let operands: Vec<(&Shape, &Shape)> =
            layer.inputs.iter().map(|operand| (own(operand), &operand.shape)).collect();
        let slicing = || Slicing::of(primitive, &layer.operator, &operands, &layer.shape);
        let slicing = (stored > UNSLICED).then(slicing).flatten();
        let slicing = slicing.filter(|slicing| slicing.filters > Slicing::PANEL);
        Some(Paging { stored, slicing, again: false })
    }
}

impl PartitionedCnn<'_> {
    /// The partition of each layer.
    pub fn partition_of(&self) -> Vec<usize> {
        partition_of(self.network, self.partitions.iter().map(|partition| partition.layers.as_slice()))
    }

    /// How the weights of a layer are read, if they are paged.
    pub fn paging(&self, id: LayerId) -> Option<&Paging> {
        self.paging.get(id.0)?.as_ref()
    }

    /// Bytes of the weights of a partition that are paged.
    pub fn bytes_paged(&self, partition: usize) -> u64 {
        let stored = |id: &LayerId| self.paging(*id).map_or(0, |paging| paging.stored);
        self.partitions[partition].layers.iter().map(stored).sum()
    }

    /// How a layer is sliced that makes `rows` rows at a time, if its weights are paged, and it makes all rows at once
    /// or reads its weights again.
    pub fn slicing(&self, id: LayerId, rows: u64) -> Option<Slicing> {
        let makes_all = rows >= self.network.layer(id).rows() as u64;
        self.paging(id).filter(|paging| makes_all || paging.again)?.slicing
    }

    /// How many times a frame reads the weights of a layer that makes `rows` rows at a time: once per firing if the
    /// weights come in slices.
    pub fn times_read(&self, id: LayerId, rows: u64) -> u64 {
        match (self.paging(id), self.slicing(id, rows)) {
            (None, _) => 0,
            (_, None) => 1,
            (_, Some(_)) => lower::firings(self.network, id, rows),
        }
    }

    /// The slices of a layer that makes `rows` rows at a time, in a block of `block` bytes: the output channels of each
    /// slice but the last, if there are several, and the bytes of each.
    pub fn slices(&self, id: LayerId, rows: u64, block: u64) -> (Option<u64>, Vec<u64>) {
        let Some(slicing) = self.slicing(id, rows) else {
            return (None, self.paging(id).map(|paging| paging.stored).into_iter().collect());
        };
        let filters = slicing.within(block);
        let starts = (0..slicing.filters).step_by(filters as usize);
        let of = |start: u64| slicing.bytes(filters.min(slicing.filters - start));
        (Some(filters), starts.map(of).collect())
    }

    /// Bytes of the least block for the weights of a layer that makes `rows` rows at a time; 0 if the weights are not
    /// paged.
    pub fn block_bytes(&self, id: LayerId, rows: u64) -> u64 {
        let stored = self.paging(id).map_or(0, |paging| paging.stored);
        self.slicing(id, rows).map_or(stored, |slicing| slicing.bytes(Slicing::PANEL))
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
    let paging = |c: usize, network: &Network| match &application.paged {
        None => Vec::new(),
        Some(paged) => {
            let of = |layer: &Layer| {
                let name = (c, layer.name.clone());
                let paging = Paging::of(network, layer).filter(|_| !paged.resident.contains(&name))?;
                Some(Paging { again: paged.again.contains(&name), ..paging })
            };
            network.layers.iter().map(of).collect()
        }
    };
    application
        .cnns
        .iter()
        .enumerate()
        .map(|(c, cnn)| PartitionedCnn {
            paging: paging(c, &cnn.network),
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
