//! The methods with which the main paper compares itself (Table 12): no reduction, greedy reuse as in Pisarchyk and Lee
//! (2020, its \[23\]), and parts everywhere as in Minakova and Stefanov (2020, its \[17\]). They do not search. Each is
//! one design point of each CNN and a way to share buffers, in storage model `edges`.
//!
//! ```
//! use std::path::Path;
//!
//! use csdfc_input::device::DeviceProfile;
//! use csdfc_planner::cost::timing::Timing;
//! use csdfc_planner::frame::choice::Choice;
//! use csdfc_planner::frame::task;
//! use csdfc_planner::open::open;
//! use csdfc_planner::search::baseline;
//! use csdfc_planner::storage::edges::BufferSharing;
//!
//! let application = open("builtin:lenet5")?.resolve()?;
//! let (tasks, device) = (task::tasks(&application), DeviceProfile::find("generic", Path::new(""))?);
//! let timing = Timing::alone(device.processor("cpu")?, 1);
//! let choice = Choice::none(tasks[0].network);
//! let bytes = |sharing: BufferSharing| -> Result<u64, csdf::Error> {
//!     Ok(baseline::front(&tasks[0], &timing, &choice, sharing)?.design_points[0].buffers)
//! };
//! // Greedy reuse saves bytes over no reduction.
//! assert!(bytes(BufferSharing::Cnn)? < bytes(BufferSharing::Nothing)?);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use csdfc_input::app::resolve::Application;
use csdfc_input::app::spec::Method;
use csdfc_plan::plan::StorageModel;

use super::DesignPoint;
use super::budget::Stopped;
use super::evaluate::own_elements;
use super::simple::DesignFront;
use crate::cost::timing::Timing;
use crate::frame::choice::Choice;
use crate::frame::execution::{self, Rings};
use crate::frame::lower::RateTable;
use crate::frame::task::PartitionedCnn;
use crate::storage::edges::{self, BufferSharing};
use crate::storage::{Effort, Storage};

/// Which edges share buffers under a method.
pub fn sharing(method: Method) -> BufferSharing {
    match method {
        Method::None | Method::Parts => BufferSharing::Nothing,
        Method::Reuse => BufferSharing::Cnn,
        Method::PaperPrinted => BufferSharing::Printed,
        Method::Paper | Method::Simple | Method::Extended => BufferSharing::Application,
    }
}

/// The only design point of a CNN under a choice.
///
/// # Errors
/// Those of the dataflow analyses.
pub fn front(
    task: &PartitionedCnn<'_>,
    timing: &Timing<'_>,
    choice: &Choice,
    sharing: BufferSharing,
) -> Result<DesignFront, csdf::Error> {
    let mut design_point = design_point(task, &RateTable::new(task.network), timing, choice)?;
    let elements = own_elements(task);
    let alone = Storage { executions: vec![&design_point.execution], elements: &elements };
    design_point.buffers = edges::arrange(&alone, sharing, Effort::Final).bytes;
    Ok(DesignFront { design_points: vec![design_point], evaluations: 1, stopped: Stopped::Complete })
}

/// The design point of a CNN under a choice, in storage model `edges`. [`DesignPoint::buffers`] is not computed yet.
///
/// # Errors
/// Those of the dataflow analyses.
pub fn design_point(
    task: &PartitionedCnn<'_>,
    rates: &RateTable<'_>,
    timing: &Timing<'_>,
    choice: &Choice,
) -> Result<DesignPoint, csdf::Error> {
    let execution = execution::execute(task, rates, choice, StorageModel::Edges, Rings::OnDemand)?;
    let frame = timing.frame(task, &choice.rows, &[]);
    Ok(DesignPoint {
        name: choice.name.clone(),
        execution,
        buffers: 0,
        period_ns: frame.period_ns,
        latency_ns: frame.latency_ns,
    })
}

/// The application with the partitions of each CNN one after another. A method that knows nothing of pipelines may then
/// let them share buffers (main paper, section 8.1). CNNs that run at the same time still do.
pub fn without_pipelines(application: &Application) -> Application {
    let cnn_of = |name: &String| {
        application.cnns.iter().position(|cnn| cnn.partitions.iter().any(|p| p.name == *name))
    };
    let mut parallel: Vec<Vec<String>> = Vec::new();
    for element in &application.parallel {
        let mut parts: Vec<Vec<String>> = Vec::new();
        for (i, one) in element.iter().enumerate() {
            let others = element[i + 1..].iter().filter(|other| cnn_of(one) != cnn_of(other));
            parts.extend(others.map(|other| vec![one.clone(), other.clone()]));
            parts.push(vec![one.clone()]);
        }
        let is_pipeline = element
            .iter()
            .enumerate()
            .any(|(i, one)| element[i + 1..].iter().any(|other| cnn_of(one) == cnn_of(other)));
        parallel.extend(if is_pipeline { parts } else { vec![element.clone()] });
    }
    Application { parallel, ..application.clone() }
}
