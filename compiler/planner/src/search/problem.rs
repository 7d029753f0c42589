//! An application as a search sees it.

use csdfc_input::app::resolve::Application;
use csdfc_plan::plan::StorageModel;

use crate::cost::timing::Timing;
use crate::frame::task::PartitionedCnn;
use crate::objective::Objective;
use crate::search::evaluate::Evaluator;
use crate::storage::edges::{self, BufferSharing};
use crate::storage::{self, Arrangement, Effort, Storage};
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
    /// Bytes of the parameters as they are stored.
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

    /// Places all rings. In storage model `edges`, edges share buffers as the method says.
    pub fn arrange(&self, storage: &Storage<'_>, effort: Effort) -> Arrangement {
        let effort = effort.without(self.without);
        match self.application.storage {
            StorageModel::Edges => edges::arrange(storage, self.sharing, effort),
            model @ StorageModel::Tensors => storage::arrange(storage, model, effort),
        }
    }
}
