//! The last step: places the rings of the chosen design points, with patience, and writes the plan.

use std::collections::BTreeMap;

use csdfc_input::app::spec::Method;
use csdfc_input::device::DeviceProfile;
use csdfc_plan::plan;
use tracing::{info, info_span};

use super::Planned;
use super::assemble::{self, Parts};
use crate::paging::{blocks, loads};
use crate::search::problem::PlanningProblem;
use crate::search::{Found, Shortfall, code};
use crate::storage::{Effort, Storage};

/// All parts of a plan except the design points.
pub(super) struct Finish<'a> {
    pub(super) problem: &'a PlanningProblem<'a>,
    pub(super) device: &'a DeviceProfile,
    pub(super) method: Option<Method>,
    /// Most bytes in total that are asked for.
    pub(super) limit: Option<u64>,
    /// Path of each CNN's model, as the plan shall state it.
    pub(super) model_paths: Vec<String>,
}

impl Finish<'_> {
    /// Places the rings of the chosen design points, and writes the plan. Nobody has judged it yet.
    pub(super) fn finish(&self, found: Found) -> Planned {
        let Finish { problem, device, method, limit, .. } = *self;
        let PlanningProblem { application, tasks, timings, elements, .. } = *problem;
        info!(evaluations = found.evaluations, "searched");

        let mut design_points = found.design_points;
        let storage = Storage { executions: design_points.iter().map(|v| &v.execution).collect(), elements };
        let mut arrangement = info_span!("arrange").in_scope(|| problem.arrange(&storage, Effort::Final));
        let mut exposed = BTreeMap::new();
        if application.paged.is_some() {
            arrangement =
                info_span!("blocks").in_scope(|| blocks::grow(problem, &mut design_points, arrangement));
            let room = limit.map(|limit| limit.saturating_sub(problem.parameters));
            let budget = room.unwrap_or(0).max(arrangement.bytes);
            arrangement = blocks::overlap(problem, &mut design_points, arrangement, budget);
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
                memory_limit: limit,
                model_paths: self.model_paths.clone(),
            })
        });
        let shortfall = found.shortfall.filter(|_| !plan.constraints.met);
        if shortfall.is_none() && !plan.constraints.met {
            // The search counts one read per layer, so it took this plan for a little faster than it is.
            let rates =
                || application.cnns.iter().zip(&design_points).map(|(cnn, v)| (cnn.name.clone(), v.rate()));
            let shortfall = Shortfall {
                least_memory: None,
                memory_at_rates: None,
                rates_in_memory: limit.map(|_| rates().collect()),
                best_rates: rates().collect(),
            };
            return Planned { plan, shortfall: Some(shortfall), refused: None, exposed };
        }
        Planned { plan, shortfall, refused: None, exposed }
    }
}
