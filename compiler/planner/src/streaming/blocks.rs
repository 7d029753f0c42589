//! Larger blocks of weights where there is room.
//!
//! The search counts the smallest tiles, of one panel of output channels. So it finds the least memory, but its plans
//! would read only a few kilobytes at a time. This module makes the tiles larger, as far as the arena does not grow.

use csdfc_network::LayerId;
use csdfc_runtime::bind::Tiling;
use tracing::info;

use super::loads;
use super::reads::read_ns;
use crate::cost::timing::{FrameTime, Timing};
use crate::frame::execution::Execution;
use crate::frame::request::RequestKind;
use crate::frame::task::PartitionedCnn;
use crate::search::DesignPoint;
use crate::search::problem::PlanningProblem;
use crate::storage::{Arrangement, Effort, Item, Storage};

/// Shares of the room that a block leaves, as divisors: 2 stands for one half.
const SHARES: [u64; 4] = [1, 2, 4, 8];

/// How early loads may start, and how many sixteenths of the room they may use. Packing needs some slack, because
/// blocks that live long leave it few ways.
const TRIED: [(f64, u64); 9] =
    [(1.0, 16), (1.0, 15), (1.0, 14), (0.5, 16), (0.5, 14), (0.25, 15), (0.1, 15), (0.0, 16), (0.0, 14)];

/// The times of a frame with the final tiles.
pub fn frame(task: &PartitionedCnn<'_>, timing: &Timing<'_>, execution: &Execution) -> FrameTime {
    let read = read_ns(task, timing, execution);
    let time = |wait: &dyn Fn(usize, LayerId) -> f64| {
        timing.frame_with(task, &execution.rows, &execution.one_by_one, wait)
    };
    let stretch = timing.read_stretch(task, &read);
    let in_turn = time(&|p, id| read[id.0] * stretch[p]);
    let simulated = loads::simulated(task, timing, execution).filter(|_| !task.streaming.is_empty());
    let frame = match simulated.map(|simulated| time(&|_, id| simulated.waits[id.0])) {
        Some(overlapping) if overlapping.period_ns < in_turn.period_ns => overlapping,
        _ => in_turn,
    };
    // There is one store for all partitions.
    let period_ns: f64 = read.iter().sum();
    if period_ns <= frame.period_ns {
        return frame;
    }
    let shorter = frame.period_ns / period_ns;
    FrameTime { period_ns, loads: frame.loads.iter().map(|load| load * shorter).collect(), ..frame }
}

/// Lets loads overlap computing, in an arena of no more than `budget` bytes, in the fastest of the ways
/// that it tries.
pub fn overlap(
    problem: &PlanningProblem<'_>,
    design_points: &mut [DesignPoint],
    arrangement: Arrangement,
    budget: u64,
) -> Arrangement {
    let storage = Storage {
        executions: design_points.iter().map(|design_point| &design_point.execution).collect(),
        elements: problem.elements,
    };
    let each = || problem.tasks.iter().zip(problem.timings).enumerate();
    let ns = |executions: &[&Execution]| -> f64 {
        each().map(|(cnn, (task, timing))| frame(task, timing, executions[cnn]).period_ns).sum()
    };
    let mut best = (ns(&storage.executions), None);
    let shares_room = problem.elements.iter().any(|element| element.len() > 1);
    let tried = TRIED.into_iter().flat_map(|(share, part)| [(share, part, false), (share, part, true)]);
    // Only partitions that run at the same time have a room to share.
    for (share, part, evenly) in tried.filter(|(.., evenly)| shares_room || !evenly) {
        let rooms = loads::rooms(problem.tasks, &storage, budget / 16 * part, evenly);
        let within = |(cnn, (task, timing)): (usize, (&PartitionedCnn<'_>, &Timing<'_>))| {
            loads::overlap(task, timing, &storage, cnn, &rooms[cnn], share)
        };
        let Some(overlapping) = each().map(within).collect::<Option<Vec<Execution>>>() else {
            return arrangement;
        };
        let executions: Vec<&Execution> = overlapping.iter().collect();
        let ns = ns(&executions);
        if ns >= best.0 {
            continue;
        }
        let again = problem.arrange(&Storage { executions, elements: problem.elements }, Effort::Front);
        info!(share, part, evenly, bytes = again.bytes, budget, ns, "overlaps");
        if again.bytes <= budget {
            best = (ns, Some((overlapping, again)));
        }
    }
    let (_, Some((overlapping, again))) = best else { return arrangement };
    for (design_point, execution) in design_points.iter_mut().zip(overlapping) {
        design_point.execution = execution;
    }
    again
}

/// Makes the blocks of tiled layers larger, and arranges all anew. The arena stays as it is or gets smaller.
pub fn grow(
    problem: &PlanningProblem<'_>,
    design_points: &mut [DesignPoint],
    arrangement: Arrangement,
) -> Arrangement {
    let storage = Storage {
        executions: design_points.iter().map(|design_point| &design_point.execution).collect(),
        elements: problem.elements,
    };
    let items = storage.items();
    let rooms = loads::rooms(problem.tasks, &storage, arrangement.bytes, false);
    let room = |(i, item): (usize, &Item<'_>)| match item.request.kind {
        RequestKind::Block => {
            rooms[item.cnn][item.request.partition].saturating_sub(storage.max_bytes_beside(&items, i))
        }
        RequestKind::Ring | RequestKind::Workspace => 0,
    };
    let room: Vec<u64> = items.iter().enumerate().map(room).collect();
    for share in SHARES {
        let mut room = room.iter();
        let mut grown: Vec<Execution> =
            design_points.iter().map(|design_point| design_point.execution.clone()).collect();
        for (task, execution) in problem.tasks.iter().zip(&mut grown) {
            for (request, room) in execution.requests.iter_mut().zip(&mut room) {
                let LayerId(layer) = request.tensor;
                let tiling = task.tiling(request.tensor, execution.rows[layer]);
                if let (RequestKind::Block, Some(tiling)) = (request.kind, tiling) {
                    let more = room.saturating_sub(request.bytes) / share;
                    // At least two tiles remain, because the layer was planned as one that is computed in tiles.
                    let most = (tiling.filters - 1) / Tiling::PANEL * Tiling::PANEL;
                    request.bytes = tiling.bytes(tiling.max_filters(request.bytes + more).min(most));
                }
            }
        }
        let storage = Storage { executions: grown.iter().collect(), elements: problem.elements };
        let again = problem.arrange(&storage, Effort::Front);
        if again.bytes <= arrangement.bytes {
            for (design_point, execution) in design_points.iter_mut().zip(grown) {
                design_point.execution = execution;
            }
            return again;
        }
    }
    arrangement
}
