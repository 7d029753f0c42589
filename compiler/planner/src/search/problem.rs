//! An application as a search sees it.

use csdfc_input::app::resolve::Application;
use csdfc_input::device::memory::Memory;
use csdfc_plan::plan::StorageModel;

use crate::cost::timing::{FrameTime, Timing};
use crate::cost::traffic;
use crate::frame::execution::Execution;
use crate::frame::task::PartitionedCnn;
use crate::objective::Objective;
use crate::search::evaluate::Evaluator;
use crate::storage::edges::{self, BufferSharing};
use crate::storage::regions::{self, Traffic};
use crate::storage::{self, Arrangement, Effort, Item, Storage};
use crate::strategy::Strategy;

/// An application, and what follows from it before anything is searched for.
#[derive(Debug, Clone, Copy)]
pub struct PlanningProblem<'a> {
    /// The application: constraints, preference and parameters of the search.
    pub application: &'a Application,
    /// What is asked of the plan.
    pub objective: &'a Objective,
    /// Its CNNs, cut into partitions.
    pub tasks: &'a [PartitionedCnn<'a>],
    /// Of each CNN, how its frames are timed.
    pub timings: &'a [Timing<'a>],
    /// The set J: partitions that run at the same time, each as the index of its CNN and its index within that CNN.
    pub elements: &'a [Vec<(usize, usize)>],
    /// Bytes of the parameters as they are stored, if they take memory: 0 on a board with several memories, whose
    /// parameters are in flash.
    pub parameters: u64,
    /// How edges share buffers. With [`BufferSharing::Printed`], the paper's search also begins at random.
    pub sharing: BufferSharing,
    /// The strategies that are left out.
    pub without: &'a [Strategy],
}

impl<'a> PlanningProblem<'a> {
    /// An evaluator for each CNN.
    pub fn evaluators(&self) -> Vec<Evaluator<'a>> {
        let of =
            |(task, timing)| Evaluator::new(task, timing, self.application.storage).without(self.without);
        self.tasks.iter().zip(self.timings).map(of).collect()
    }

    /// The memories of the board; none if it has one.
    pub fn memories(&self) -> &'a [Memory] {
        &self.application.constraints.memories
    }

    /// The bytes of what is stored that layers read and write in a frame.
    fn traffic(&self, storage: &Storage<'_>) -> Traffic {
        let of = |item: &Item<'_>| {
            traffic::of(&self.tasks[item.cnn], &storage.executions[item.cnn].rows, item.request)
        };
        storage.items().iter().map(of).collect()
    }

    /// Places all rings in the memories of the board. Returns for each CNN and layer how much longer a frame takes because
    /// of the memories in which the layer reads and writes, in nanoseconds.
    pub fn arrange_in_memories(&self, storage: &Storage<'_>, effort: Effort) -> (Arrangement, Vec<Vec<f64>>) {
        let (memories, traffic) = (self.memories(), self.traffic(storage));
        let arrangement = regions::arrange(storage, memories, &traffic, effort.without(self.without));
        let waits = self.tasks.iter().enumerate().map(|(cnn, task)| {
            regions::waits(storage, memories, &traffic, &arrangement, cnn, task.network.layers.len())
        });
        let waits = waits.collect();
        (arrangement, waits)
    }

    /// One frame of a CNN whose layers take so many nanoseconds longer because of the memories in which they read and write.
    pub fn frame_in_memories(&self, cnn: usize, execution: &Execution, waits: &[f64]) -> FrameTime {
        let Execution { rows, one_by_one, .. } = execution;
        self.timings[cnn].frame_in_memories(&self.tasks[cnn], rows, one_by_one, waits)
    }

    /// Places all rings in one memory. In storage model `edges`, edges share buffers as the method says.
    pub fn arrange(&self, storage: &Storage<'_>, effort: Effort) -> Arrangement {
        let effort = effort.without(self.without);
        match self.application.storage {
            StorageModel::Edges => edges::arrange(storage, self.sharing, effort),
            model @ StorageModel::Tensors => storage::arrange(storage, model, effort),
        }
    }
}
