//! At once or one by one: how a layer makes the rows of one firing, where that trades time for bytes.
//!
//! A layer that makes its rows one by one may write each row where rows of its operand have just been released. That
//! saves bytes. Where the filters stay in the nearest cache (64 KiB), it costs nothing, and the layer always does so.
//! It costs time in two cases: a layer with more filters reads them again for every row, and a row of a tensor that
//! is no image is a single pixel, for which a call takes long. For such layers it is a choice
//! ([`Choice::one_by_one`]), with a price in the cost model.
//!
//! The worth of the choice shows once the rings of an execution are known. So each execution is tried in several ways:
//! with all such layers at once, with those one by one that take most bytes at once, then with more of them step by
//! step, and with all one by one. If a placement shows that a layer goes one by one without need, that layer goes at
//! once again.
//!
//! A plan states which layers these are by addresses alone. A placement counts as the least only if none is smaller
//! in any of the ways, so the liveness bound and `certificate.claimed` let all layers go one by one.

use crate::frame::choice::Choice;
use crate::frame::execution::{Execution, Rings};
use crate::network::LayerId;
use crate::search::Variant;
use crate::search::evaluate::Evaluator;
use crate::storage::Effort;

/// Ways are tried by steps of so much less memory, one part in so many.
const STEP: u64 = 16;

/// One way to run an execution.
#[derive(Debug, Clone)]
pub struct Way {
    /// The layers that may make their rows one by one at a price.
    pub one_by_one: Vec<LayerId>,
    /// Modelled nanoseconds between frames if all of these do.
    pub period_ns: f64,
    /// Whole nanoseconds of one frame then, from its first input to its last output.
    pub latency_ns: u64,
    /// Bytes of buffers that no placement undercuts.
    pub bound: u64,
}

/// The ways that are worth trying. First all layers make their rows at once. Then those layers go one by one that take
/// most bytes at once, more of them step by step, until all go one by one. There is only one way if the choice says
/// which layers go one by one.
pub fn ways(evaluator: &Evaluator<'_>, choice: &Choice, execution: &mut Execution) -> Vec<Way> {
    let sets = match choice.one_by_one {
        Some(_) => vec![execution.one_by_one.clone()],
        None => sets(&evaluator.at_once(execution), evaluator.bound(execution)),
    };
    let mut way = |one_by_one: Vec<LayerId>| {
        execution.one_by_one.clone_from(&one_by_one);
        let frame = evaluator.frame(&execution.rows, &one_by_one);
        let (period_ns, latency_ns) = (frame.period_ns, frame.latency_ns.round() as u64);
        Way { one_by_one, period_ns, latency_ns, bound: evaluator.bound_as_chosen(execution) }
    };
    sets.into_iter().map(&mut way).collect()
}

/// Sets of layers to go one by one. `at_once` has the bytes that each layer takes if it makes its rows at once. `bound`
/// is a lower bound if all layers go one by one.
fn sets(at_once: &[(LayerId, u64)], bound: u64) -> Vec<Vec<LayerId>> {
    let above = |bytes: u64| -> Vec<LayerId> {
        at_once.iter().filter(|(_, taken)| *taken > bytes).map(|(layer, _)| *layer).collect()
    };
    let mut steps: Vec<u64> =
        at_once.iter().map(|(_, taken)| *taken).filter(|taken| *taken > bound).collect();
    steps.sort_unstable_by(|a, b| b.cmp(a));
    let mut sets = vec![Vec::new()];
    if let Some(mut last) = steps.first().copied() {
        for step in steps.into_iter().chain([bound]) {
            if step <= last - last / STEP || step == bound {
                sets.push(above(step));
                last = step;
            }
        }
    }
    sets.push(at_once.iter().map(|(layer, _)| *layer).collect());
    sets.dedup();
    sets
}

/// Places an execution of a choice in one of its ways. A layer goes at once if the rings lie such that it need not go
/// one by one, unless the choice says which layers do.
///
/// # Errors
/// Those of the dataflow analyses.
pub fn placed(
    evaluator: &Evaluator<'_>,
    choice: &Choice,
    execution: &Execution,
    one_by_one: &[LayerId],
    rings: Rings,
    effort: Effort,
) -> Result<Variant, csdf::Error> {
    let mut execution = with(evaluator, choice, execution, one_by_one, rings)?;
    let (mut buffers, mut needed) = evaluator.place(&execution, effort);
    while choice.one_by_one.is_none() && needed.len() < execution.one_by_one.len() {
        let fewer = with(evaluator, choice, &execution, &needed, rings)?;
        let (again, of_these) = evaluator.place(&fewer, effort);
        if again > buffers {
            break;
        }
        (execution, buffers, needed) = (fewer, again, of_these);
    }
    Ok(evaluator.variant(choice, execution, buffers))
}

/// The execution in which these layers may go one by one. It computes the rings between partitions that run at the same
/// time again, since they depend on how long layers take.
fn with(
    evaluator: &Evaluator<'_>,
    choice: &Choice,
    execution: &Execution,
    one_by_one: &[LayerId],
    rings: Rings,
) -> Result<Execution, csdf::Error> {
    if execution.requests.iter().any(|request| request.pipelined) && !one_by_one.is_empty() {
        let choice = Choice { one_by_one: Some(one_by_one.to_vec()), ..choice.clone() };
        return evaluator.execute(&choice, rings);
    }
    Ok(Execution { one_by_one: one_by_one.to_vec(), ..execution.clone() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_that_take_most_go_first() {
        let layer = LayerId;
        let at_once = [(layer(1), 100), (layer(4), 320), (layer(5), 319), (layer(9), 200)];
        for (bound, expected) in [
            (400, vec![vec![], vec![1, 4, 5, 9]]),
            (320, vec![vec![], vec![1, 4, 5, 9]]),
            (150, vec![vec![], vec![4, 5], vec![4, 5, 9], vec![1, 4, 5, 9]]),
            (100, vec![vec![], vec![4, 5], vec![4, 5, 9], vec![1, 4, 5, 9]]),
            (50, vec![vec![], vec![4, 5], vec![4, 5, 9], vec![1, 4, 5, 9]]),
        ] {
            let sets: Vec<Vec<usize>> = sets(&at_once, bound)
                .into_iter()
                .map(|set| set.into_iter().map(|id| id.0).collect())
                .collect();
            assert_eq!(sets, expected, "{bound}");
        }
        assert_eq!(sets(&[], 7), [Vec::<LayerId>::new()]);
    }
}
