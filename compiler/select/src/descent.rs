//! Improves a selection by changing one layer at a time.
//!
//! ```
//! use csdfc_select::descent::descend;
//! use csdfc_select::quantity::Axis;
//! use csdfc_select::{Instance, Problem};
//!
//! let instance = Instance::parse(
//!     r#"{"layers": [{"name": "conv1", "kind": "conv", "options": [
//!             {"primitive": "sum2d", "in": "CHW", "out": "CHW", "time": 90, "memory": 10},
//!             {"primitive": "kn2col", "in": "CHW", "out": "CHW", "time": 60, "memory": 30},
//!             {"primitive": "im2col", "in": "CHW", "out": "CHW", "time": 40, "memory": 80}]}],
//!         "edges": []}"#,
//! )?;
//! let problem = Problem::new(&instance, false)?;
//! // From sum2d to the fastest primitive of at most 50 KiB.
//! let budget = problem.memories.budget(50.0);
//! assert_eq!(descend(&problem, &problem.all(), Axis::Time, budget, vec![0]), [1]);
//! # Ok::<(), csdfc_select::InstanceError>(())
//! ```

use crate::problem::{Allowed, Cost, Problem, Selection};
use crate::quantity::Axis;

/// Maximum number of rounds over all layers.
const ROUNDS: usize = 100;

/// Changes layer after layer to the candidate that lowers `axis` most; of equal ones, to the one that lowers the other
/// quantity most. The other quantity stays within the budget. Ends when no single change helps, or somebody asks for the end.
pub fn descend(
    problem: &Problem<'_>,
    allowed: &Allowed,
    axis: Axis,
    budget: u64,
    mut selection: Selection,
) -> Selection {
    let mut incident = vec![Vec::new(); selection.len()];
    for (edge, ends) in problem.instance.edges.iter().enumerate() {
        incident[ends.from].push(edge);
        incident[ends.to].push(edge);
    }
    let Some(mut cost) = problem.cost(&selection) else { return selection };
    for _ in 0..ROUNDS {
        if problem.stop.is_asked() {
            break;
        }
        let before = cost;
        for layer in 0..selection.len() {
            let Some(own) = part(problem, &incident[layer], &selection, layer) else { return selection };
            let current = selection[layer];
            let mut best = (axis.amount(&cost), axis.other().amount(&cost), current);
            for &place in &allowed[layer] {
                selection[layer] = place;
                let Some(other) = part(problem, &incident[layer], &selection, layer) else { continue };
                let changed = Cost {
                    time: cost.time - own.0 + other.0,
                    memory: cost.memory - own.1 + other.1,
                    workspace: 0,
                };
                let found = (axis.amount(&changed), axis.other().amount(&changed), place);
                if (found.0, found.1) < (best.0, best.1) && found.1 <= budget {
                    best = found;
                }
            }
            selection[layer] = best.2;
            cost = match axis {
                Axis::Time => Cost { time: best.0, memory: best.1, ..cost },
                Axis::Memory => Cost { time: best.1, memory: best.0, ..cost },
            };
        }
        if cost == before {
            break;
        }
    }
    selection
}

/// The time and memory of a layer, and of the conversions on its edges.
fn part(problem: &Problem<'_>, edges: &[usize], selection: &Selection, layer: usize) -> Option<(u64, u64)> {
    let taken = problem.taken(selection, layer);
    let mut time = taken.time;
    for &edge in edges {
        let ends = &problem.instance.edges[edge];
        let from = problem.taken(selection, ends.from).output;
        time += problem.paths[edge].time(from, problem.taken(selection, ends.to).input)?;
    }
    Some((time, taken.memory))
}
