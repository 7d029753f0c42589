//! At once or one by one: how a layer makes the rows of one firing, where that trades time for bytes.
//!
//! A layer that makes its rows one by one may write each row where rows of its operand have just been released. That
//! saves bytes. If the filters stay in the nearest cache (64 KiB), this costs nothing, and the layer always does so. It
//! costs time in three cases: a layer with more filters reads them again for every row; a row may be a single pixel, or a few
//! of integers, for which a call takes long; and a single row is seldom enough work for several workers.
//! For such layers, the search chooses ([`Choice::one_by_one`]), with a price in the cost model.
//!
//! The choice can only be rated once the rings of an execution are known. So each execution is tried in several variants.
//! In the first, all such layers make their rows at once. In the next, the layers that take the most bytes at once make
//! their rows one by one; then more and more layers do, and in the last, all do. If a placement shows that a layer goes
//! one by one without need, this layer makes its rows at once again.
//!
//! In a plan, only the addresses show which layers go one by one. A placement counts as the least only if none is
//! smaller in any of the variants. So the liveness bound and `certificate.claimed` assume that all layers go one by one.

use csdfc_network::LayerId;

use crate::frame::choice::Choice;
use crate::frame::execution::{Execution, Rings};
use crate::search::DesignPoint;
use crate::search::evaluate::Evaluator;
use crate::storage::Effort;
use crate::strategy::Strategy;

/// From one variant that is tried to the next, memory falls by one part in this many.
const STEP: u64 = 16;

/// A variant of an execution.
#[derive(Debug, Clone)]
pub struct ExecutionVariant {
    /// The layers that may make their rows one by one at a cost in time.
    pub one_by_one: Vec<LayerId>,
    /// Modelled nanoseconds between frames if all of these do.
    pub period_ns: f64,
    /// Whole nanoseconds of one frame then, from its first input to its last output.
    pub latency_ns: u64,
    /// Bytes of buffers that no placement undercuts.
    pub bound: u64,
}

/// The variants that are worth trying. First all layers make their rows at once. Then those layers go one by one that take
/// most bytes at once, more of them step by step, until all go one by one. There is only one variant if the choice says
/// which layers go one by one.
pub fn execution_variants(
    evaluator: &Evaluator<'_>,
    choice: &Choice,
    execution: &mut Execution,
) -> Vec<ExecutionVariant> {
    let sets = match choice.one_by_one {
        Some(_) => vec![execution.one_by_one.clone()],
        None if evaluator.without.contains(&Strategy::OneByOne) => vec![Vec::new()],
        None => sets(&evaluator.at_once(execution), evaluator.bound(execution)),
    };
    let mut variant = |one_by_one: Vec<LayerId>| {
        execution.one_by_one.clone_from(&one_by_one);
        let frame = evaluator.frame(&execution.rows, &one_by_one);
        let (period_ns, latency_ns) = (frame.period_ns, frame.latency_ns.round() as u64);
        ExecutionVariant { one_by_one, period_ns, latency_ns, bound: evaluator.bound_as_chosen(execution) }
    };
    sets.into_iter().map(&mut variant).collect()
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
        // Steps that lie close to each other give almost the same bytes, so only the first of them is tried.
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

/// Places an execution of a choice in one of its variants. A layer goes at once if the rings lie such that it need not go
/// one by one, unless the choice says which layers do. `execution` has the rings between stages that the choice itself
/// gives: those of layers that go at once, if it leaves that open.
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
) -> Result<DesignPoint, csdf::Error> {
    let mut taken = with_one_by_one(evaluator, choice, execution, one_by_one, rings)?;
    let (mut buffers, mut needed) = evaluator.place(&taken, effort);
    while choice.one_by_one.is_none() && needed.len() < taken.one_by_one.len() {
        // From the execution with all layers at once: the rings between stages of `taken` are for slower layers.
        let fewer = with_one_by_one(evaluator, choice, execution, &needed, rings)?;
        let (again, of_these) = evaluator.place(&fewer, effort);
        if again > buffers {
            break;
        }
        (taken, buffers, needed) = (fewer, again, of_these);
    }
    Ok(evaluator.design_point(choice, taken, buffers))
}

/// The execution in which these layers may go one by one. It computes the rings between partitions that run at the same
/// time again, since they depend on how long layers take.
fn with_one_by_one(
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
    use std::path::Path;

    use csdfc_input::builtin;
    use csdfc_input::device::DeviceProfile;
    use csdfc_network::Network;
    use csdfc_network::pass;
    use csdfc_plan::plan::StorageModel;

    use super::*;
    use crate::cost::timing::Timing;
    use crate::frame::task::{PartitionTask, PartitionedCnn};

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

    fn pipeline(network: &Network, cut: usize) -> PartitionedCnn<'_> {
        let layers: Vec<LayerId> = network.ids().collect();
        let stage =
            |layers: &[LayerId]| PartitionTask { layers: layers.to_vec(), steps: None, stops: Vec::new() };
        let (front, back) = layers.split_at(cut);
        let stages = match back {
            [] => vec![stage(front)],
            back => vec![stage(front), stage(back)],
        };
        let at_once = |p: usize| (0..stages.len()).map(|q| p != q).collect();
        PartitionedCnn {
            network,
            streaming: Vec::new(),
            workers: 1,
            together: (0..stages.len()).map(at_once).collect(),
            partitions: stages,
        }
    }

    fn normal(name: &str) -> Network {
        pass::normalise(builtin::network(name).unwrap(), pass::Fusion::Full)
    }

    /// A layer goes at once again if its rings lie apart anyway. If the choice says that it goes one by one, it does.
    #[test]
    fn layers_go_one_by_one_only_where_they_must() {
        let device = DeviceProfile::find("generic", Path::new("")).unwrap();
        let timing = Timing::alone(device.processor("cpu").unwrap(), 1);
        for (name, prefix, counts) in
            [("resnet8", 0, (2, 0)), ("resnet8", 5, (2, 1)), ("squeezenet1_0", 4, (10, 1))]
        {
            let network = normal(name);
            let task = pipeline(&network, network.layers.len());
            let evaluator = Evaluator::new(&task, &timing, StorageModel::Tensors);
            let choice = Choice::prefix(&network, prefix);
            let execution = evaluator.execute(&choice, Rings::OnDemand).unwrap();
            let all = execution.costly();
            let design_point = |choice: &Choice| {
                placed(&evaluator, choice, &execution, &all, Rings::OnDemand, Effort::Candidate).unwrap()
            };
            let given = design_point(&Choice { one_by_one: Some(all.clone()), ..choice.clone() });
            let free = design_point(&choice);
            assert_eq!((given.execution.one_by_one.len(), free.execution.one_by_one.len()), counts, "{name}");
            assert_eq!(free.buffers, given.buffers, "{name}");
            let needed = evaluator.place(&free.execution, Effort::Candidate).1;
            assert_eq!(free.execution.one_by_one, needed, "{name}");
        }
    }

    /// With fewer layers that go one by one, a new placement of the rings may take more bytes. Then all these layers
    /// stay one by one.
    #[test]
    fn layers_stay_one_by_one_where_it_takes_more_bytes_otherwise() {
        let device = DeviceProfile::find("generic", Path::new("")).unwrap();
        let timing = Timing::alone(device.processor("cpu").unwrap(), 1);
        let network = normal("googlenet");
        let task = pipeline(&network, network.layers.len());
        let evaluator = Evaluator::new(&task, &timing, StorageModel::Tensors);
        for (prefix, is_kept) in [(24, true), (37, false)] {
            let choice = Choice::prefix(&network, prefix);
            let execution = evaluator.execute(&choice, Rings::OnDemand).unwrap();
            let all = execution.costly();
            let (rings, effort) = (Rings::OnDemand, Effort::Sketch);
            let design_point = placed(&evaluator, &choice, &execution, &all, rings, effort).unwrap();
            let given = Choice { one_by_one: Some(all.clone()), ..choice };
            let given = placed(&evaluator, &given, &execution, &all, rings, effort).unwrap();
            assert_eq!(design_point.execution.one_by_one == all, is_kept, "{prefix}");
            assert_eq!(design_point.buffers < given.buffers, !is_kept, "{prefix}");
        }
    }

    /// Rings between stages are those at which the pipeline keeps its full speed, with those layers one by one that go
    /// one by one in the end.
    #[test]
    fn rings_between_stages_follow_from_what_goes_one_by_one() {
        let device = DeviceProfile::find("generic", Path::new("")).unwrap();
        let mut timing = Timing::alone(device.processor("cpu").unwrap(), 1);
        timing.processor_shares.push(timing.processor_shares[0]);
        let network = normal("resnet8");
        for (cut, prefix) in [(5, 6), (5, 7), (5, 8), (5, 9), (6, 7), (6, 8), (6, 9)] {
            let task = pipeline(&network, cut);
            let evaluator = Evaluator::new(&task, &timing, StorageModel::Tensors);
            let choice = Choice::prefix(&network, prefix);
            let execution = evaluator.execute(&choice, Rings::OnDemand).unwrap();
            let all = execution.costly();
            let given = Choice { one_by_one: Some(all.clone()), ..choice.clone() };
            for (choice, one_by_one) in [(&choice, &all), (&choice, &Vec::new()), (&given, &all)] {
                let (rings, effort) = (Rings::OnDemand, Effort::Candidate);
                let design_point = placed(&evaluator, choice, &execution, one_by_one, rings, effort).unwrap();
                let again = evaluator.execute(&design_point.choice(), rings).unwrap();
                let rows = |execution: &Execution| -> Vec<u64> {
                    execution.requests.iter().map(|request| request.ring_rows).collect()
                };
                assert_eq!(rows(&design_point.execution), rows(&again), "{cut} {prefix}");
            }
        }
    }
}
