//! A CNN as its frames are executed: its layers, its partitions, and which of these run at the same time.

use crate::app::resolve::{Application, Cnn};
use crate::network::{LayerId, Network};

/// A CNN cut into partitions.
#[derive(Debug, Clone)]
pub struct CnnTask<'a> {
    /// Its layers.
    pub network: &'a Network,
    /// Workers that share each firing. Each has a workspace of its own.
    pub workers: u64,
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
    /// The schedule that the application gives, if any: steps of layers. Each step runs to its end before the next
    /// begins.
    pub steps: Option<Vec<Vec<LayerId>>>,
}

/// Every CNN of an application, cut into its partitions.
pub fn tasks(application: &Application) -> Vec<CnnTask<'_>> {
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
    application
        .cnns
        .iter()
        .map(|cnn| CnnTask {
            network: &cnn.network,
            workers: application.threads as u64,
            partitions: cnn
                .partitions
                .iter()
                .map(|p| PartitionTask { layers: p.layers.clone(), steps: p.schedule.clone() })
                .collect(),
            together: task(cnn),
        })
        .collect()
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
