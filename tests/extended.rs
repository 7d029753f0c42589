//! The extended search. It is at least as good as every choice of one row or all rows, if these can be enumerated. On
//! known networks, its plans are as small as they must be. The checker accepts every plan of its front.

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::path::Path;

use csdfc_input::app::resolve::RowsChoice;
use csdfc_input::device::DeviceProfile;
use csdfc_input::units::MemoryGoal;
use csdfc_network::LayerId;
use csdfc_plan::plan::StorageModel;
use csdfc_planner::cost::timing::Timing;
use csdfc_planner::frame::choice::Choice;
use csdfc_planner::frame::execution::Rings;
use csdfc_planner::frame::lower;
use csdfc_planner::frame::task;
use csdfc_planner::frame::task::PartitionedCnn;
use csdfc_planner::open;
use csdfc_planner::search::evaluate::Evaluator;
use csdfc_planner::search::watch::Watch;
use csdfc_planner::search::{DesignPoint, extended};
use csdfc_planner::storage::Effort;
use csdfc_tests::{generate, plan};
use proptest::prelude::*;

/// The front of the first CNN of an application, by its design points.
fn front(task: &PartitionedCnn<'_>, timing: &Timing<'_>, storage: StorageModel) -> Vec<DesignPoint> {
    let evaluator = Evaluator::new(task, timing, storage);
    extended::front(&evaluator, 1, "cnn", &[], &Watch::unwatched()).unwrap().design_points
}

/// All choices of one row or all for each layer, if there are not too many.
fn bits(task: &PartitionedCnn<'_>) -> Option<Vec<Choice>> {
    let network = task.network;
    let by_parts: Vec<LayerId> = network.ids().filter(|id| network.layer(*id).rows() > 1).collect();
    let choice = |bits: usize| {
        let mut choice = Choice::none(network);
        let parts = by_parts.iter().enumerate().filter(|(at, _)| bits >> at & 1 == 1);
        parts.for_each(|(_, id)| choice.rows[id.0] = 1);
        choice
    };
    (by_parts.len() <= 8).then(|| (0..1 << by_parts.len()).map(choice).collect())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_choice_of_bits_is_better(bytes in prop::collection::vec(any::<u8>(), 10..60), edges in any::<bool>()) {
        let storage = if edges { StorageModel::Edges } else { StorageModel::Tensors };
        let application = generate::application(&bytes, storage);
        let device = DeviceProfile::find("generic", Path::new("")).unwrap();
        let tasks = task::tasks(&application);
        let timings = Timing::new(&application, &tasks, &task::elements(&application), &device).unwrap();
        for (task, timing) in tasks.iter().zip(&timings) {
            let Some(choices) = bits(task) else { continue };
            let front = front(task, timing, storage);
            let evaluator = Evaluator::new(task, timing, storage);
            for choice in choices {
                let execution = evaluator.execute(&choice, Rings::OnDemand).unwrap();
                let buffers = evaluator.buffers(&execution, Effort::Candidate);
                let period = evaluator.period_ns(&choice.rows, &[]);
                let better = front.iter().any(|v| v.buffers <= buffers && v.period_ns <= period);
                prop_assert!(better, "{:?}: {buffers} bytes in {period} ns", choice.rows);
            }
        }
    }

    #[test]
    #[cfg_attr(debug_assertions, ignore = "takes minutes without optimisation")]
    fn every_plan_of_the_front_is_accepted(bytes in prop::collection::vec(any::<u8>(), 20..120)) {
        let mut application = generate::application(&bytes, StorageModel::Tensors);
        application.rows = RowsChoice::Default;
        application.constraints.memory = Some(MemoryGoal::Min);
        let smallest = plan(&application);
        for point in smallest.pareto.iter().rev().step_by(3).take(4) {
            application.constraints.memory = Some(MemoryGoal::Bytes(point.memory));
            let plan = plan(&application);
            prop_assert!(plan.memory.total <= point.memory);
        }
    }
}

/// The bytes of buffers and the firings beyond one per layer of every design point of a network, its input delivered row by row
/// and as often as its first reader fires.
fn figures(name: &str) -> Vec<(u64, u64)> {
    let application = open::open(&format!("builtin:{name}")).unwrap().resolve().unwrap();
    let task = &task::tasks(&application)[0];
    let device = DeviceProfile::find("generic", Path::new("")).unwrap();
    let timing = Timing::alone(device.processor("cpu").unwrap(), 1);
    let evaluator = Evaluator::new(task, &timing, StorageModel::Tensors);
    let network = task.network;
    let readers = network.readers();
    let firings = |id: LayerId, rows: &[u64]| lower::firings(network, id, rows[id.0]);
    let figure = |design_point: DesignPoint| {
        let mut choice = design_point.choice();
        for id in network.ids().filter(|id| network.layer(*id).is_input()) {
            let often = readers[id.0].first().map_or(1, |reader| firings(*reader, &choice.rows));
            choice.rows[id.0] = (network.layer(id).rows() as u64).div_ceil(often);
            // A segment that ended there would store the input whole.
            choice.barriers.iter_mut().for_each(|barriers| barriers.retain(|end| *end != id));
        }
        let execution = evaluator.execute(&choice, Rings::Smallest).unwrap();
        let extra = network.ids().map(|id| firings(id, &choice.rows) - 1).sum();
        (evaluator.buffers(&execution, Effort::Final), extra)
    };
    front(task, &timing, StorageModel::Tensors).into_iter().map(figure).collect()
}

#[test]
#[cfg_attr(debug_assertions, ignore = "takes minutes without optimisation")]
fn known_networks_are_as_small_as_they_must_be() {
    for (name, bytes, extra) in [
        ("mobilenet_v2", 516_096, 1250),
        ("mobilenet_v2", 913_920, 255),
        ("efficientnet_b0", 2_204_160, u64::MAX),
        ("resnet50", 2_207_744, u64::MAX),
        ("densenet121", 1_283_968, u64::MAX),
        ("googlenet", 1_040_256, u64::MAX),
        ("inception_v2", 1_125_376, u64::MAX),
    ] {
        let figures = figures(name);
        println!("{name}: bytes and extra firings {figures:?}");
        assert!(
            figures.iter().any(|figure| figure.0 <= bytes && figure.1 <= extra),
            "{name} {bytes} {extra}"
        );
    }
}
