//! The last step: places the rings of the chosen design points, with patience, and writes the plan.

use std::collections::BTreeMap;

use csdfc_input::app::spec::Method;
use csdfc_input::device::DeviceProfile;
use csdfc_plan::plan;
use tracing::{info, info_span};

use super::assemble::{self, Parts};
use super::candidate::Planned;
use crate::search::problem::PlanningProblem;
use crate::search::{Found, Rate, Shortfall, code};
use crate::storage::{Effort, Storage};
use crate::strategy::Strategy;
use crate::streaming::{blocks, loads};

/// All parts of a plan except the design points.
pub(super) struct Finaliser<'a> {
    pub(super) problem: &'a PlanningProblem<'a>,
    pub(super) device: &'a DeviceProfile,
    pub(super) method: Option<Method>,
    /// Path of each CNN's model, as the plan shall state it.
    pub(super) model_paths: &'a [String],
}

impl Finaliser<'_> {
    /// Places the rings of the chosen design points, and writes the plan. It is not validated yet.
    pub(super) fn finish(&self, found: Found) -> Planned {
        let Finaliser { problem, device, method, .. } = *self;
        let limit = problem.objective.limit;
        let PlanningProblem { application, tasks, timings, elements, .. } = *problem;
        info!(evaluations = found.evaluations, "searched");

        let mut design_points = found.design_points;
        let storage = Storage { executions: design_points.iter().map(|v| &v.execution).collect(), elements };
        let has_several = !problem.memories().is_empty();
        let (mut arrangement, waits) = info_span!("arrange").in_scope(|| match has_several {
            true => problem.arrange_in_memories(&storage, Effort::Final),
            false => (problem.arrange(&storage, Effort::Final), Vec::new()),
        });
        let mut exposed = BTreeMap::new();
        if has_several {
            for (cnn, design_point) in design_points.iter_mut().enumerate() {
                let frame = problem.frame_in_memories(cnn, &design_point.execution, &waits[cnn]);
                (design_point.period_ns, design_point.latency_ns) = (frame.period_ns, frame.latency_ns);
            }
        } else if application.streamed.is_some() {
            if !problem.without.contains(&Strategy::LargerBlocks) {
                arrangement =
                    info_span!("blocks").in_scope(|| blocks::grow(problem, &mut design_points, arrangement));
            }
            if !problem.without.contains(&Strategy::OverlappingLoads) {
                let room = limit.map(|limit| limit.saturating_sub(problem.parameters));
                let budget = room.unwrap_or(0).max(arrangement.bytes);
                arrangement = blocks::overlap(problem, &mut design_points, arrangement, budget);
            }
            for (cnn, ((design_point, task), timing)) in
                design_points.iter_mut().zip(tasks).zip(timings).enumerate()
            {
                let frame = blocks::frame(task, timing, &design_point.execution);
                (design_point.period_ns, design_point.latency_ns) = (frame.period_ns, frame.latency_ns);
                let each =
                    task.network.layers.iter().zip(loads::exposed(task, timing, &design_point.execution));
                exposed.extend(each.map(|(layer, ns)| ((cnn, layer.name.clone()), ns)));
            }
        }
        let storage = Storage { executions: design_points.iter().map(|v| &v.execution).collect(), elements };
        info!(bytes = arrangement.bytes, bound = arrangement.bound.bytes, "arranged");
        let choices = application.cnns.iter().zip(&design_points);
        let choices =
            choices.map(|(cnn, v)| (cnn.name.clone(), code::write(&v.choice(), &cnn.network))).collect();
        let plan = info_span!("assemble").in_scope(|| {
            assemble::assemble(Parts {
                application,
                tasks,
                timings,
                chosen: &design_points.iter().collect::<Vec<_>>(),
                storage: &storage,
                arrangement: &arrangement,
                device,
                search: plan::Search {
                    method: method.map_or("given", Method::name).into(),
                    seed: application.search.seed,
                    evaluations: found.evaluations,
                    stopped: found.stopped.name().into(),
                    choices,
                },
                pareto: found.pareto,
                memory_limit: limit.filter(|_| !has_several),
                waits: &waits,
                model_paths: self.model_paths.to_vec(),
            })
        });
        let cnns = application.cnns.iter().zip(&design_points);
        let rates: BTreeMap<String, Rate> = cnns.map(|(cnn, v)| (cnn.name.clone(), v.rate())).collect();
        let shortfall = match (plan.constraints.met, found.shortfall) {
            (true, _) => None,
            (false, Some(mut shortfall)) => {
                // The search does not know how large blocks of weights become, and what that saves.
                shortfall.reaches(&rates);
                shortfall.rates_in_memory = shortfall.rates_in_memory.map(|_| rates);
                Some(shortfall)
            }
            (false, None) => {
                // The search counts one read per layer, so it took this plan for a little faster than it is.
                Some(Shortfall {
                    least_memory: None,
                    memory_at_rates: None,
                    rates_in_memory: limit.filter(|_| !has_several).map(|_| rates.clone()),
                    best_rates: rates,
                })
            }
        };
        Planned { plan, shortfall, refused: None, exposed }
    }
}
