//! The simple plans, without a search: no parts, all parts, and for every prefix of the layers "prefix by rows, rest
//! layer by layer".
//!
//! ```
//! use std::path::Path;
//!
//! use csdfc_input::device::DeviceProfile;
//! use csdfc_planner::cost::timing::Timing;
//! use csdfc_planner::frame::task;
//! use csdfc_planner::open::open;
//! use csdfc_planner::search::evaluate::Evaluator;
//! use csdfc_planner::search::simple;
//!
//! let application = open("builtin:lenet5")?.resolve()?;
//! let (tasks, device) = (task::tasks(&application), DeviceProfile::find("generic", Path::new(""))?);
//! let timing = Timing::alone(device.processor("cpu")?, 1);
//! let evaluator = Evaluator::new(&tasks[0], &timing, application.storage);
//!
//! // The fastest plan has no parts.
//! let front = simple::front(&evaluator)?;
//! assert_eq!(front.design_points[0].name, "none");
//! assert!(front.design_points.len() > 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use csdfc_network::Network;
use csdfc_plan::plan::StorageModel;
use rayon::prelude::*;

use crate::frame::choice::Choice;
use crate::frame::execution::{Execution, Rings};
use crate::search::DesignPoint;
use crate::search::budget::Stopped;
use crate::search::evaluate::Evaluator;
use crate::search::execution_variants::{self, ExecutionVariant};
use crate::storage::Effort;

/// The simple choices.
pub fn choices(network: &Network) -> Vec<Choice> {
    let height = |layer: usize| network.layers[layer].rows();
    let prefixes = (1..network.layers.len()).filter(|length| height(length - 1) > 1);
    let mut choices = vec![Choice::none(network)];
    choices.extend(prefixes.map(|length| Choice::prefix(network, length)));
    choices.push(Choice::all(network));
    choices
}

/// The same choice with its inputs delivered whole, if it has them by rows. The caller's frame then costs no ring.
fn inputs_whole(network: &Network, choice: &Choice) -> Option<Choice> {
    let mut rows = choice.rows.clone();
    for (id, layer) in network.layers.iter().enumerate().filter(|(_, layer)| layer.is_input()) {
        rows[id] = layer.rows() as u64;
    }
    let name = format!("{}, inputs whole", choice.name);
    (rows != choice.rows).then(|| Choice { name, rows, ..choice.clone() })
}

/// The design points of a CNN that are worth choosing.
#[derive(Debug, Clone)]
pub struct DesignFront {
    /// Variants that take less memory than every faster one, or than every faster one within the deadline. The fastest
    /// comes first.
    pub design_points: Vec<DesignPoint>,
    /// Choices that were evaluated.
    pub evaluations: u64,
    /// Why the search ended.
    pub stopped: Stopped,
}

impl DesignFront {
    /// Adds design points that were evaluated elsewhere.
    pub fn join(&mut self, more: DesignFront, deadline_ns: Option<u64>) {
        self.evaluations += more.evaluations;
        self.design_points.extend(more.design_points);
        self.design_points = undominated(std::mem::take(&mut self.design_points), deadline_ns);
    }
}

/// Evaluates the simple choices for one CNN.
///
/// # Errors
/// Those of the dataflow analyses.
pub fn front(evaluator: &Evaluator<'_>) -> Result<DesignFront, csdf::Error> {
    front_of(evaluator, &choices(evaluator.task.network))
}

/// Evaluates choices. In storage model `tensors`, it also evaluates the best of them with whole inputs. (In `edges`, a
/// whole input is a whole buffer, so no plan gains from it.)
///
/// # Errors
/// Those of the dataflow analyses.
pub fn front_of(evaluator: &Evaluator<'_>, choices: &[Choice]) -> Result<DesignFront, csdf::Error> {
    let mut front = evaluate(evaluator, choices)?;
    if evaluator.storage == StorageModel::Tensors {
        let network = evaluator.task.network;
        let whole = front.design_points.iter().filter_map(|best| inputs_whole(network, &best.choice()));
        let whole: Vec<Choice> = whole.collect();
        front.join(evaluate(evaluator, &whole)?, evaluator.timing.deadline_ns);
    }
    Ok(front)
}

/// Evaluates choices for one CNN in parallel, each in the variants that it leaves open. Results are in order. Only choices
/// whose liveness bound may be good enough are placed, and of those, only the undominated ones get the smallest rings.
/// (In storage model `edges`, they keep the rings of the execution on demand, as in the paper.)
///
/// # Errors
/// Those of the dataflow analyses.
pub fn evaluate(evaluator: &Evaluator<'_>, choices: &[Choice]) -> Result<DesignFront, csdf::Error> {
    let deadline_ns = evaluator.timing.deadline_ns;
    let execute = |choice: &Choice| -> Result<(Execution, Vec<ExecutionVariant>), csdf::Error> {
        let mut execution = evaluator.execute(choice, Rings::OnDemand)?;
        let variants = execution_variants::execution_variants(evaluator, choice, &mut execution);
        Ok((execution, variants))
    };
    let executed: Vec<(Execution, Vec<ExecutionVariant>)> =
        choices.par_iter().map(execute).collect::<Result<_, _>>()?;
    let mut all: Vec<(&Choice, &Execution, &ExecutionVariant)> = Vec::new();
    for (choice, (execution, variants)) in choices.iter().zip(&executed) {
        all.extend(variants.iter().map(|variant| (choice, execution, variant)));
    }
    all.sort_by(|(.., a), (.., b)| a.period_ns.total_cmp(&b.period_ns));
    let mut least = Least::new(deadline_ns);
    let mut placed = Vec::new();
    // If every layer goes by rows, the search for smaller rings gains most. So this design point may yet become the smallest
    // of all.
    let mut by_rows = None;
    for (choice, execution, variant) in all {
        if execution.rows.iter().all(|rows| *rows == 1) {
            by_rows = Some(evaluator.design_point(choice, execution.clone(), u64::MAX));
        }
        if least.is_above(variant.latency_ns, variant.bound) {
            let (rings, effort) = (Rings::OnDemand, Effort::Candidate);
            let design_point =
                execution_variants::placed(evaluator, choice, execution, &variant.one_by_one, rings, effort)?;
            least.lower_to(&design_point);
            placed.push(design_point);
        }
    }
    let mut design_points = undominated(placed, deadline_ns);
    if evaluator.storage == StorageModel::Tensors {
        design_points.extend(by_rows);
        let tightened = design_points.into_par_iter().map(|design_point| {
            let choice = design_point.choice();
            let execution = evaluator.execute(&choice, Rings::Smallest)?;
            let buffers = evaluator.buffers(&execution, Effort::Front);
            let better = buffers <= design_point.buffers;
            Ok(if better { evaluator.design_point(&choice, execution, buffers) } else { design_point })
        });
        design_points = undominated(tightened.collect::<Result<_, csdf::Error>>()?, deadline_ns);
    }
    Ok(DesignFront { design_points, evaluations: choices.len() as u64, stopped: Stopped::Complete })
}

/// The design points that take less memory than every faster one, the fastest first. Those within a deadline are also
/// compared among themselves, since in a pipeline, a design point with a lower rate may finish a frame sooner.
fn undominated(mut design_points: Vec<DesignPoint>, deadline_ns: Option<u64>) -> Vec<DesignPoint> {
    design_points.sort_by(|a, b| a.period_ns.total_cmp(&b.period_ns));
    let mut least = Least::new(deadline_ns);
    design_points.retain(|design_point| {
        let better = least.is_above(design_point.latency(), design_point.buffers);
        least.lower_to(design_point);
        better
    });
    design_points
}

/// The fewest bytes of the design points so far.
struct Least {
    deadline_ns: Option<u64>,
    of_all: u64,
    in_time: u64,
}

impl Least {
    fn new(deadline_ns: Option<u64>) -> Self {
        Least { deadline_ns, of_all: u64::MAX, in_time: u64::MAX }
    }

    fn is_in_time(&self, latency_ns: u64) -> bool {
        self.deadline_ns.is_some_and(|most| latency_ns <= most)
    }

    /// Whether a design point of this latency would be better with so many bytes.
    fn is_above(&self, latency_ns: u64, bytes: u64) -> bool {
        bytes < self.of_all || (self.is_in_time(latency_ns) && bytes < self.in_time)
    }

    fn lower_to(&mut self, design_point: &DesignPoint) {
        self.of_all = self.of_all.min(design_point.buffers);
        if self.is_in_time(design_point.latency()) {
            self.in_time = self.in_time.min(design_point.buffers);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::occupancy::AddressSharing;

    /// A design point with a lower rate may finish a frame sooner. It stays if only it is within the deadline, or if it is
    /// the smallest of those within the deadline.
    #[test]
    fn variants_within_a_deadline_compete_among_themselves() {
        let execution = Execution {
            rows: Vec::new(),
            barriers: None,
            orders: Vec::new(),
            windows: Vec::new(),
            requests: Vec::new(),
            sharing: AddressSharing::default(),
            one_by_one: Vec::new(),
        };
        let design_point = |&(period_ns, latency_ns, buffers): &(f64, f64, u64)| DesignPoint {
            name: String::new(),
            execution: execution.clone(),
            buffers,
            period_ns,
            latency_ns,
        };
        let given = [(1.0, 10.0, 50), (2.0, 8.0, 70), (3.0, 7.0, 60), (4.0, 6.0, 65), (5.0, 9.0, 40)];
        for (deadline_ns, expected) in [
            (None, vec![50, 40]),
            (Some(10), vec![50, 40]),
            (Some(9), vec![50, 70, 60, 40]),
            (Some(8), vec![50, 70, 60, 40]),
            (Some(7), vec![50, 60, 40]),
            (Some(6), vec![50, 65, 40]),
            (Some(5), vec![50, 40]),
        ] {
            let left = undominated(given.iter().map(design_point).collect(), deadline_ns);
            let left: Vec<u64> = left.iter().map(|design_point| design_point.buffers).collect();
            assert_eq!(left, expected, "{deadline_ns:?}");
        }
    }
}
