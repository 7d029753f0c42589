//! The knowledge before a search: the choices of old plans, or the plan itself if it is picked.
//!
//! ```
//! use std::path::Path;
//!
//! use csdfc_input::device::DeviceProfile;
//! use csdfc_planner::driver;
//! use csdfc_planner::frame::choice::Choice;
//! use csdfc_planner::open::open;
//! use csdfc_planner::search::start::Start;
//! use csdfc_planner::search::watch::Watch;
//!
//! let application = open("builtin:lenet5")?.resolve()?;
//! let device = DeviceProfile::find("generic", Path::new(""))?;
//! let watch = Watch::unwatched();
//! let planned = |choice: Choice| {
//!     let (start, paths) = (Start::Picked(vec![choice]), vec!["builtin:lenet5".into()]);
//!     driver::plan_from(&start, &application, &device, paths, &watch, &driver::validate)
//! };
//! let network = &application.cnns[0].network;
//! let [none, all] = [planned(Choice::none(network))?.plan, planned(Choice::all(network))?.plan];
//! assert!(all.memory.buffers < none.memory.buffers && all.cnns[0].fps < none.cnns[0].fps);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use csdfc_network::Network;
use rayon::prelude::*;

use super::evaluate::Evaluator;
use super::simple::{self, DesignFront};
use crate::frame::choice::Choice;
use crate::frame::task::PartitionedCnn;

/// Where a search starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Start {
    /// The choices of old plans. Each plan has a choice for each CNN to which it applies. The search starts from them,
    /// and its result is no worse. Methods with a single plan ignore them.
    Search(Vec<Vec<Option<Choice>>>),
    /// The choice for each CNN. There is no search.
    Picked(Vec<Choice>),
}

impl Start {
    /// What is known of one CNN.
    pub fn of_cnn(&self, index: usize) -> Vec<&Choice> {
        match self {
            Start::Search(plans) => plans.iter().filter_map(|plan| plan.get(index)?.as_ref()).collect(),
            Start::Picked(_) => Vec::new(),
        }
    }
}

impl Default for Start {
    fn default() -> Self {
        Start::Search(Vec::new())
    }
}

/// Adds the design points of old plans to those that a search has made for each CNN. Returns the old plans that apply to
/// every CNN, each as the index of a design point for every CNN.
///
/// # Errors
/// Those of the dataflow analyses.
pub fn add(
    plans: &[Vec<Option<Choice>>],
    evaluators: &[Evaluator<'_>],
    fronts: &mut [DesignFront],
) -> Result<Vec<Vec<usize>>, csdf::Error> {
    let mut found: Vec<Vec<Option<usize>>> = vec![Vec::new(); plans.len()];
    for (index, front) in fronts.iter_mut().enumerate() {
        let of_cnn = |plan: &Vec<Option<Choice>>| plan.get(index).cloned().flatten();
        let mut choices: Vec<Choice> = Vec::new();
        for choice in plans.iter().filter_map(of_cnn) {
            if !choices.contains(&choice) {
                choices.push(choice);
            }
        }
        // One by one, so that no old plan is left out because another design point is better alone.
        let alone = |choice: &Choice| simple::evaluate(&evaluators[index], std::slice::from_ref(choice));
        let mut places = Vec::new();
        for known in choices.par_iter().map(alone).collect::<Result<Vec<_>, _>>()? {
            front.evaluations += known.evaluations;
            places.push(front.design_points.len());
            front.design_points.extend(known.design_points);
        }
        for (plan, design_points) in plans.iter().zip(&mut found) {
            let known = of_cnn(plan).and_then(|choice| choices.iter().position(|known| *known == choice));
            design_points.push(known.map(|known| places[known]));
        }
    }
    Ok(found.into_iter().filter_map(|plan| plan.into_iter().collect()).collect())
}

/// The old plans that can be written with one bit for each layer of each CNN in turn. The bit says whether the layer
/// fires once per row, or once.
pub fn as_bits(plans: &[Vec<Option<Choice>>], tasks: &[PartitionedCnn<'_>]) -> Vec<Vec<bool>> {
    let plan = |plan: &Vec<Option<Choice>>| {
        let of_cnn =
            |(choice, task): (&Option<Choice>, &PartitionedCnn<'_>)| bits(choice.as_ref()?, task.network);
        plan.iter().zip(tasks).map(of_cnn).collect::<Option<Vec<_>>>().map(|bits| bits.concat())
    };
    plans.iter().filter_map(plan).collect()
}

fn bits(choice: &Choice, network: &Network) -> Option<Vec<bool>> {
    let bit = |(layer, rows): (&csdfc_network::Layer, &u64)| {
        let whole = *rows >= layer.rows() as u64;
        (whole || *rows == 1).then_some(!whole)
    };
    if choice.barriers.is_some() {
        return None;
    }
    network.layers.iter().zip(&choice.rows).map(bit).collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use csdfc_input::builtin;
    use csdfc_input::device::DeviceProfile;
    use csdfc_plan::plan::StorageModel;

    use super::*;
    use crate::cost::timing::Timing;
    use crate::frame::task::PartitionTask;

    /// An old plan that applies to every CNN is found again among the design points, whatever is better alone. One that
    /// lacks a choice for a CNN only adds its other choices.
    #[test]
    fn old_plans_are_found_again() {
        let device = DeviceProfile::find("generic", Path::new("")).unwrap();
        let timing = Timing::alone(device.processor("cpu").unwrap(), 1);
        let networks = ["lenet5", "paper_cnn1"].map(|name| builtin::network(name).unwrap());
        let task = |network| {
            let partitions = vec![PartitionTask {
                layers: Network::ids(network).collect(),
                steps: None,
                stops: Vec::new(),
            }];
            PartitionedCnn {
                network,
                workers: 1,
                partitions,
                together: vec![vec![false]],
                streaming: Vec::new(),
            }
        };
        let tasks: Vec<PartitionedCnn<'_>> = networks.iter().map(task).collect();
        let timings = [timing.clone(), timing];
        let evaluator = |(task, timing)| Evaluator::new(task, timing, StorageModel::Tensors);
        let evaluators: Vec<Evaluator<'_>> = tasks.iter().zip(&timings).map(evaluator).collect();
        let mut fronts: Vec<DesignFront> = evaluators.iter().map(|of| simple::front(of).unwrap()).collect();
        let searched: Vec<usize> = fronts.iter().map(|front| front.design_points.len()).collect();
        let [a, b] = &networks;
        let plans = [
            vec![Some(Choice::prefix(a, 2)), Some(Choice::none(b))],
            vec![None, Some(Choice::prefix(b, 1))],
            vec![Some(Choice::none(a))],
            vec![Some(Choice::all(a)), Some(Choice::prefix(b, 3))],
            vec![Some(Choice::prefix(a, 2)), Some(Choice::all(b))],
        ];
        let found = add(&plans, &evaluators, &mut fronts).unwrap();
        let added: Vec<usize> =
            fronts.iter().zip(searched).map(|(front, n)| front.design_points.len() - n).collect();
        assert_eq!(added, [3, 4]);
        assert_eq!(found.len(), 3);
        for (design_points, plan) in found.iter().zip([&plans[0], &plans[3], &plans[4]]) {
            for ((front, design_point), choice) in fronts.iter().zip(design_points).zip(plan) {
                let design_point = &front.design_points[*design_point];
                let choice = choice.as_ref().unwrap();
                assert_eq!((&design_point.name, &design_point.execution.rows), (&choice.name, &choice.rows));
            }
        }
    }
}
