//! The application of a single network.

use super::load::ModelSource;
use super::partition::Partition;
use super::resolve::{Application, Cnn, Constraints, DEFAULT_DEVICE, RowsChoice};
use super::spec::{Prefer, Primitives, SearchSpec};
use csdfc_network::Network;
use csdfc_network::pass::Fusion;

impl Application {
    /// The application of a network that is in memory: on one core of one processor, without a limit of memory or time.
    pub fn of_network(name: &str, network: Network, rows: RowsChoice) -> Application {
        let layers = network.ids().collect();
        let partition = Partition { name: name.into(), layers, processor: "cpu".into(), schedule: None };
        let model = ModelSource { name: name.into(), ..ModelSource::default() };
        Application {
            name: name.into(),
            cnns: vec![Cnn { name: name.into(), network, model, partitions: vec![partition] }],
            parallel: vec![vec![name.into()]],
            device: DEFAULT_DEVICE.into(),
            constraints: Constraints::default(),
            search: SearchSpec::default(),
            storage: Default::default(),
            rows,
            fusion: Fusion::default(),
            threads: 1,
            primitives: Primitives::Fixed,
            max_primitive_error: 1e-4,
            streamed: None,
            may_be_streamed: None,
            prefer: Prefer::default(),
        }
    }
}
