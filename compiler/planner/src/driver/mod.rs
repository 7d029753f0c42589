//! The main job: from an application to a plan, step by step.
//!
//! An application comes with its networks read, rewritten and in order ([`app`](csdfc_input::app), [`pass`](csdfc_network::pass)).
//! The driver does the rest:
//!
//! 0. on a device that was measured, the application is planned several times, with several primitives (`primitives`);
//! 1. its CNNs are cut into tasks, and the timing of their frames is derived;
//! 2. a method makes design points of each CNN (`design_points`), each executed, placed and timed; or it finds design points for all
//!    CNNs at once ([`paper`]);
//! 3. one design point of each CNN is chosen (`planner`);
//! 4. their rings are placed with patience, and the plan is written (`finish`, [`assemble`]);
//! 5. the caller judges the plan. If it refuses the plan, the plan is dropped, and the next best is chosen.
//!
//! Each step that takes long has a tracing span.

pub mod assemble;
mod compare;
mod design_points;
mod finalise;
mod planner;
mod primitives;
mod reread;
mod residency;

use std::collections::BTreeMap;

use csdfc_plan::check as checker;
use csdfc_plan::plan::Plan;
use tracing::{info_span, warn};

pub use self::compare::wants_least;
use self::finalise::Finish;
pub use self::primitives::Ways;
pub use self::primitives::explain::{Alternative, Explanation, explain};
use csdfc_input::app::resolve::{Application, Demand, RowsChoice};
use csdfc_input::app::spec::{Method, Primitives};
use csdfc_input::device::DeviceProfile;
use csdfc_input::units::MemoryGoal;
use csdfc_network::pass::Precision;

use crate::cost::timing::Timing;
use crate::error::Error;
use crate::frame::task::{self, PartitionedCnn};
use crate::search::known::{self, Start};
use crate::search::problem::PlanningProblem;
use crate::search::watch::{Scope, Shares, Watch};
use crate::search::{Found, Shortfall, baseline, paper};

/// A plan, and what it could not reach.
#[derive(Debug)]
pub struct Planned {
    /// The plan, or the nearest plan if the constraints cannot be met.
    pub plan: Plan,
    /// What can be reached instead, if the constraints cannot be met.
    pub shortfall: Option<Shortfall>,
    /// Why the plan is refused, if no other plan was left.
    pub refused: Option<String>,
    /// For each layer whose weights are read from a store, how much shorter the frame would be if they were in memory,
    /// in nanoseconds.
    exposed: BTreeMap<LayerOf, f64>,
}

impl From<Plan> for Planned {
    /// A plan that meets its constraints and is not refused.
    fn from(plan: Plan) -> Self {
        Planned { plan, shortfall: None, refused: None, exposed: BTreeMap::new() }
    }
}

/// A layer, by the place of its CNN and its name.
type LayerOf = (usize, String);

/// Says why it refuses a plan, if it does.
pub type PlanValidator<'a> = &'a dyn Fn(&Plan) -> Result<(), String>;

/// Refuses a plan that our own checker refuses, which is a mistake of csdfc.
///
/// # Errors
/// The first violation.
pub fn validate(plan: &Plan) -> Result<(), String> {
    let verdict = info_span!("check").in_scope(|| checker::check(plan));
    verdict.map(drop).map_err(|violations| {
        let first = violations.first().map(ToString::to_string).unwrap_or_default();
        format!("csdfc made a plan that its own checker refuses: {first}")
    })
}

/// Plans an application. `model_paths` are what the plan states as the paths of the models, one per CNN.
///
/// # Errors
/// When the device lacks a processor, or an analysis refuses the graph.
pub fn plan(
    application: &Application,
    device: &DeviceProfile,
    model_paths: Vec<String>,
) -> Result<Planned, Error> {
    plan_from(&Start::default(), application, device, model_paths, &Watch::unwatched(), &|_| Ok(()))
}

/// Plans an application as [`plan()`] does. The search goes on from old plans, and can be watched. A plan that the
/// validator refuses is dropped with a warning, and the next best is made.
///
/// # Errors
/// As [`plan()`].
pub fn plan_from(
    start: &Start,
    application: &Application,
    device: &DeviceProfile,
    model_paths: Vec<String>,
    watch: &Watch<'_>,
    validate: PlanValidator<'_>,
) -> Result<Planned, Error> {
    let with_primitives = |start: &Start, application: &Application, shares: &Shares<'_>| {
        let plan = |start: &Start, application: &Application| {
            let is_search = method(start, application).is_some_and(Method::is_search);
            let watch = if is_search { shares.next() } else { *watch };
            plan_as_is(start, application, device, model_paths.clone(), &watch, validate)
        };
        if let Primitives::Named(name) = application.primitives {
            // The choices of old plans do not fit: they are for other layers.
            let named = primitives::named(application, name, device);
            return plan(&Start::default(), &named);
        }
        let planned = plan(start, application)?;
        primitives::improved(planned, start, application, device, shares, &plan)
    };
    let shares = Shares::new(watch, primitives::searches(application, device));
    let mut planned = with_primitives(start, application, &shares)?;
    if let (Some(limit), Some(paged)) = (limit(application), &application.may_be_paged)
        && planned.plan.memory.total > limit
    {
        // Only now is it known that some weights must be paged. So the searches get the same time again.
        let shares = Shares::new(watch, residency::SEARCHES);
        let plan = |start: &Start, application: &Application| with_primitives(start, application, &shares);
        if let Some(fitting) = residency::paged(application, paged, limit, &plan)? {
            planned = fitting;
        }
    }
    // Only now is it known, too, that memory has too little room.
    let shares = Shares::new(watch, primitives::searches(application, device));
    let plan = |start: &Start, application: &Application| with_primitives(start, application, &shares);
    planned = reread::smaller(planned, application, start, &plan)?;
    if let Some(limit) = limit(application).filter(|_| !planned.plan.constraints.met) {
        let why = match application.may_be_paged {
            Some(_) => "even with some of them paged, no plan meets the constraints",
            None => "no plan can fit",
        };
        warn_of_parameters(&task::tasks(application), limit, why);
    }
    Ok(planned)
}

/// The plans with which the plan of [`plan_from`] is compared if primitives are chosen.
///
/// # Errors
/// As [`plan()`].
pub fn ways(
    application: &Application,
    device: &DeviceProfile,
    model_paths: Vec<String>,
) -> Result<Ways, Error> {
    let plan = |start: &Start, application: &Application| {
        plan_as_is(start, application, device, model_paths.clone(), &Watch::unwatched(), &|_| Ok(()))
    };
    let planned = plan(&Start::default(), application)?;
    primitives::ways(planned, application, device, &plan)
}

/// Plans an application with the primitives that it has.
fn plan_as_is(
    start: &Start,
    application: &Application,
    device: &DeviceProfile,
    model_paths: Vec<String>,
    watch: &Watch<'_>,
    validate: PlanValidator<'_>,
) -> Result<Planned, Error> {
    let method = method(start, application);
    let one_after_another;
    let application = if method == Some(Method::Reuse) {
        one_after_another = baseline::without_pipelines(application);
        &one_after_another
    } else {
        application
    };
    let tasks = task::tasks(application);
    let parameters = assemble::parameters_resident(&tasks);
    let limit = limit(application);

    let elements = task::elements(application);
    let timings = Timing::of(application, &tasks, &elements, device)?;
    let sharing = method.map(baseline::sharing).unwrap_or_default();
    let problem = PlanningProblem {
        application,
        tasks: &tasks,
        timings: &timings,
        elements: &elements,
        parameters,
        sharing,
    };
    let finish = Finish { problem: &problem, device, method, limit, model_paths };
    let judged = |found: Found| {
        let mut planned = finish.finish(found);
        planned.refused = validate(&planned.plan).err();
        planned
    };
    if let Some(Method::Paper | Method::PaperPrinted) = method {
        let known = match start {
            Start::Search(plans) => known::as_bits(plans, &tasks),
            Start::Picked(_) => Vec::new(),
        };
        let found = info_span!("search").in_scope(|| paper::search(&problem, &known, watch))?;
        return Ok(judged(found));
    }

    let demands: Vec<Demand> =
        application.cnns.iter().map(|cnn| application.constraints.of(&cnn.name)).collect();
    // If layers were measured, the plan without parts may not be the fastest.
    let may_settle =
        !timings.iter().any(Timing::is_measured) || limit.is_some_and(|limit| parameters > limit);
    let is_open = watch.scope == Scope::Plan && *start == Start::default() && may_settle;
    let ends = match method {
        Some(Method::Extended) if is_open => Some(design_points::ends(&problem)?),
        _ => None,
    };
    let settled = ends.filter(|planner| planner.is_settled(limit, &demands));
    let mut is_settled = settled.is_some();
    let mut planner = match settled {
        Some(planner) => planner,
        None => design_points::search(start, &problem, method, watch)?,
    };
    loop {
        let (chosen, found) = planner.find(limit, &demands, is_settled);
        let planned = judged(found);
        let Some(why) = &planned.refused else { return Ok(planned) };
        if is_settled {
            // A search can offer other design points.
            (planner, is_settled) = (design_points::search(start, &problem, method, watch)?, false);
        } else if !planner.drop(&chosen) {
            return Ok(planned);
        }
        warn!("csdfc's checker refuses a plan, so csdfc takes the next best: {why}");
    }
}

/// The method that searches for the plan. `None` if the choice is picked or the application gives the rows.
fn method(start: &Start, application: &Application) -> Option<Method> {
    match (start, &application.rows) {
        (Start::Search(_), RowsChoice::Default) => Some(application.search.method.unwrap_or_default()),
        _ => None,
    }
}

/// Most bytes in total that are asked for.
pub fn limit(application: &Application) -> Option<u64> {
    match application.constraints.memory {
        Some(MemoryGoal::Bytes(bytes)) => Some(bytes),
        Some(MemoryGoal::Min) | None => None,
    }
}

/// Warns if no plan fits because the parameters alone take more than is asked for.
fn warn_of_parameters(tasks: &[PartitionedCnn<'_>], limit: u64, why: &str) {
    let parameters = assemble::parameters_resident(tasks);
    if parameters > limit {
        let [half, mixed] =
            [Precision::Half, Precision::Mixed].map(|at| assemble::parameters_resident_at(tasks, at));
        let help = match half < parameters {
            true => format!(
                "; at half precision (--precision half) they take {half}, at mixed precision (--precision mixed) {mixed}"
            ),
            false => String::new(),
        };
        warn!("the parameters alone take {parameters} bytes, more than the {limit} asked for: {why}{help}");
    }
}
