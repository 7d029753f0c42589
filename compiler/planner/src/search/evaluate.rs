//! The cost of a choice: executes one frame of a CNN, places it in memory, and computes its time.
//!
//! ```
//! use std::path::Path;
//!
//! use csdfc_input::device::DeviceProfile;
//! use csdfc_planner::cost::timing::Timing;
//! use csdfc_planner::frame::{choice::Choice, execution::Rings, task};
//! use csdfc_planner::open::open;
//! use csdfc_planner::search::evaluate::Evaluator;
//! use csdfc_planner::storage::Effort;
//!
//! let application = open("builtin:lenet5")?.resolve()?;
//! let (tasks, device) = (task::tasks(&application), DeviceProfile::find("generic", Path::new(""))?);
//! let timing = Timing::alone(device.processor("cpu")?, 1);
//! let evaluator = Evaluator::new(&tasks[0], &timing, application.storage);
//! let choice = Choice::all(tasks[0].network);
//! let execution = evaluator.execute(&choice, Rings::OnDemand)?;
//! assert!(evaluator.buffers(&execution, Effort::Candidate) >= evaluator.bound(&execution));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use csdfc_network::LayerId;
use csdfc_plan::plan::StorageModel;

use crate::cost::timing::{FrameTime, Timing};
use crate::frame::choice::Choice;
use crate::frame::couple::couple;
use crate::frame::execution::{self, Execution, Rings};
use crate::frame::lower::RateTable;
use crate::frame::task::PartitionedCnn;
use crate::search::DesignPoint;
use crate::storage::{self, Effort, Peak, Storage};
use crate::strategy::Strategy;

/// Evaluates choices for one CNN as if it were alone.
#[derive(Debug)]
pub struct Evaluator<'a> {
    /// The CNN.
    pub task: &'a PartitionedCnn<'a>,
    /// How its frames are timed.
    pub timing: &'a Timing<'a>,
    /// How storage is shared.
    pub storage: StorageModel,
    /// The strategies that are left out.
    pub without: &'a [Strategy],
    rates: RateTable<'a>,
    elements: Vec<Vec<(usize, usize)>>,
}

impl<'a> Evaluator<'a> {
    /// An evaluator for a CNN with this timing.
    pub fn new(task: &'a PartitionedCnn<'a>, timing: &'a Timing<'a>, storage: StorageModel) -> Self {
        let (rates, elements) = (RateTable::new(task.network), own_elements(task));
        Evaluator { task, timing, storage, without: &[], rates, elements }
    }

    /// The same without some strategies.
    pub fn without(self, without: &'a [Strategy]) -> Self {
        Evaluator { without, ..self }
    }

    /// The rates of its layers.
    pub fn rates(&self) -> &RateTable<'a> {
        &self.rates
    }

    /// One frame.
    ///
    /// # Errors
    /// Those of the dataflow analyses.
    pub fn execute(&self, choice: &Choice, rings: Rings) -> Result<Execution, csdf::Error> {
        let rings = match rings {
            Rings::Smallest if self.without.contains(&Strategy::SmallestRings) => Rings::OnDemand,
            rings => rings,
        };
        let mut execution = execution::execute(self.task, &self.rates, choice, self.storage, rings)?;
        let slower = execution.one_by_one.clone();
        let cost = |p: usize, id: LayerId| {
            self.timing.layer_ns(self.task, p, id, choice.rows[id.0], slower.binary_search(&id).is_ok())
        };
        couple(self.task, &self.rates, &mut execution, &cost)?;
        Ok(execution)
    }

    /// Bytes of buffers that no placement of an execution's rings undercuts.
    pub fn bound(&self, execution: &Execution) -> u64 {
        self.peak(execution).bytes
    }

    /// The moment at which most bytes are in use, whatever the placement.
    pub fn peak(&self, execution: &Execution) -> Peak {
        let alone = self.alone(execution);
        alone.bound(&alone.items())
    }

    /// The same bound if, of the layers that pay a price for it, only the chosen ones make their rows one by one.
    pub fn bound_as_chosen(&self, execution: &Execution) -> u64 {
        let alone = self.alone(execution);
        alone.bound_as_chosen(&alone.items())
    }

    /// The layers of an execution that can make their rows one by one at a cost in time. Each comes with a lower bound, in
    /// bytes, of all placements in which it makes them at once.
    pub fn at_once(&self, execution: &Execution) -> Vec<(LayerId, u64)> {
        let alone = self.alone(execution);
        alone.at_once(&alone.items(), 0)
    }

    /// Places the rings of an execution. Returns the bytes of the buffers, and the layers that make their rows one by
    /// one at a price.
    pub fn place(&self, execution: &Execution, effort: Effort) -> (u64, Vec<LayerId>) {
        let alone = self.alone(execution);
        let arrangement = storage::arrange(&alone, self.storage, effort.without(self.without));
        let one_by_one = match self.storage {
            StorageModel::Tensors => alone.one_by_one(&alone.items(), &arrangement.offsets, 0),
            StorageModel::Edges => Vec::new(),
        };
        (arrangement.bytes, one_by_one)
    }

    /// Bytes of buffers of an execution as placed.
    pub fn buffers(&self, execution: &Execution, effort: Effort) -> u64 {
        storage::arrange(&self.alone(execution), self.storage, effort.without(self.without)).bytes
    }

    /// An execution of a choice as a design point of `buffers` bytes.
    pub fn design_point(&self, choice: &Choice, execution: Execution, buffers: u64) -> DesignPoint {
        let frame = self.timing.frame(self.task, &choice.rows, &execution.one_by_one);
        DesignPoint {
            name: choice.name.clone(),
            buffers,
            period_ns: frame.period_ns,
            latency_ns: frame.latency_ns,
            execution,
        }
    }

    /// The times of one frame with these rows per firing. The layers of `one_by_one` make their rows one by one at a
    /// price.
    pub fn frame(&self, rows: &[u64], one_by_one: &[LayerId]) -> FrameTime {
        self.timing.frame(self.task, rows, one_by_one)
    }

    /// Modelled nanoseconds between frames of [`Self::frame`].
    pub fn period_ns(&self, rows: &[u64], one_by_one: &[LayerId]) -> f64 {
        self.frame(rows, one_by_one).period_ns
    }

    /// Modelled nanoseconds of all firings of a layer in a frame, in a partition.
    pub fn layer_ns(&self, partition: usize, id: LayerId, rows: u64) -> f64 {
        self.timing.layer_ns(self.task, partition, id, rows, false)
    }

    fn alone<'e>(&'e self, execution: &'e Execution) -> Storage<'e> {
        Storage { executions: vec![execution], elements: &self.elements }
    }
}

/// The pairs of partitions of this CNN that run at the same time, as elements of J for the CNN alone.
pub(super) fn own_elements(task: &PartitionedCnn<'_>) -> Vec<Vec<(usize, usize)>> {
    let count = task.partitions.len();
    let pairs = (0..count).flat_map(|p| (p + 1..count).map(move |q| (p, q)));
    let mut elements: Vec<Vec<(usize, usize)>> =
        pairs.filter(|(p, q)| task.together[*p][*q]).map(|(p, q)| vec![(0, p), (0, q)]).collect();
    elements.extend((0..count).map(|p| vec![(0, p)]));
    elements
}
