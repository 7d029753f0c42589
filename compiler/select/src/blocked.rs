//! Why no selection has a path of conversions on every edge.
//!
//! ```
//! use csdfc_select::blocked::blocked;
//! use csdfc_select::{Instance, Problem};
//!
//! // The first layer writes HWC, the second reads CHW, and no conversion leads from one to the other.
//! let instance = Instance::parse(
//!     r#"{"layers": [
//!             {"name": "conv1", "kind": "conv", "options": [
//!                 {"primitive": "im2row", "in": "HWC", "out": "HWC", "time": 40, "memory": 80}]},
//!             {"name": "conv2", "kind": "conv", "options": [
//!                 {"primitive": "sum2d", "in": "CHW", "out": "CHW", "time": 70, "memory": 10}]}],
//!         "edges": [{"from": "conv1", "to": "conv2", "conversions": []}]}"#,
//! )?;
//! let problem = Problem::new(&instance, false)?;
//! let found = blocked(&problem, &problem.all());
//! assert_eq!((found.len(), found[0].edge), (1, 0));
//! assert_eq!(found[0].pairs, [("HWC".to_string(), "CHW".to_string())]);
//! # Ok::<(), csdfc_select::InstanceError>(())
//! ```

use crate::model::{MAX_CELLS, Model, Weights};
use crate::problem::{Allowed, Problem};

/// An edge without a path between some layouts of its two layers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blocked {
    /// The edge.
    pub edge: usize,
    /// Names of layouts that its producer writes and its consumer reads, but no path of conversions leads from one to the
    /// other.
    pub pairs: Vec<(String, String)>,
}

/// Maximum number of edges that are named.
const MAX_EDGES: usize = 8;

/// Edges that together leave no selection, although there would be one without any one of them. If there are more than
/// 8, or somebody asks for the end, the last of them.
pub fn blocked(problem: &Problem<'_>, allowed: &Allowed) -> Vec<Blocked> {
    let mut core: Vec<usize> = Vec::new();
    let mut rest: Vec<usize> = (0..problem.paths.len()).collect();
    loop {
        // Edges only take selections away. So the edge that closes the shortest prefix without a selection is to blame.
        let is_possible = |count: &usize| {
            let edges: Vec<usize> = core.iter().chain(&rest[..*count]).copied().collect();
            let model = Model::of_edges(problem, allowed, &edges, MAX_CELLS);
            let messages = model.tree.messages_until(&model.weighed(Weights::TIME), problem.stop);
            messages.is_none_or(|messages| messages.bound < u128::MAX)
        };
        let counts: Vec<usize> = (0..=rest.len()).collect();
        let shortest = counts.partition_point(is_possible);
        if shortest == 0 || shortest > rest.len() || core.len() == MAX_EDGES {
            core.sort_unstable();
            return core.into_iter().map(|edge| explained(problem, allowed, edge)).collect();
        }
        core.push(rest[shortest - 1]);
        rest.truncate(shortest - 1);
    }
}

fn explained(problem: &Problem<'_>, allowed: &Allowed, edge: usize) -> Blocked {
    let ends = &problem.instance.edges[edge];
    let layouts = |layer: usize, written: bool| {
        let candidates = allowed[layer].iter().map(|place| &problem.candidates[layer][*place]);
        let mut layouts: Vec<_> =
            candidates.map(|candidate| if written { candidate.output } else { candidate.input }).collect();
        layouts.sort_unstable();
        layouts.dedup();
        layouts
    };
    let readers = layouts(ends.to, false);
    let mut pairs = Vec::new();
    for from in layouts(ends.from, true) {
        for to in &readers {
            if problem.paths[edge].time(from, *to).is_none() {
                pairs.push((problem.instance.layout(from).into(), problem.instance.layout(*to).into()));
            }
        }
    }
    Blocked { edge, pairs }
}
