//! Plans an application as it is: with the primitives that it has, and with its weights where it says.

use csdfc_input::app::resolve::{Application, RowsChoice};
use csdfc_input::app::spec::Method;
use tracing::{info_span, warn};

use super::candidate::Planned;
use super::finalise::Finaliser;
use super::{Context, assemble, design_points};
use crate::cost::timing::Timing;
use crate::error::Error;
use crate::frame::task;
use crate::objective::Objective;
use crate::search::problem::PlanningProblem;
use crate::search::start::{self, Start};
use crate::search::watch::{Scope, Watch};
use crate::search::{Found, baseline, paper};
use crate::strategy::Strategy;

/// Plans an application as it is. A plan that the validator refuses is dropped with a warning, and the next best is
/// made.
pub(super) fn plan(
    context: &Context<'_>,
    start: &Start,
    application: &Application,
    watch: &Watch<'_>,
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
    let elements = task::elements(application);
    let timings = Timing::new(application, &tasks, &elements, context.device)?;
    let objective = Objective::new(application);
    let problem = PlanningProblem {
        application,
        objective: &objective,
        tasks: &tasks,
        timings: &timings,
        elements: &elements,
        parameters: match application.constraints.memories.as_slice() {
            [] => assemble::parameters_resident(&tasks),
            _ => 0,
        },
        sharing: method.map(baseline::sharing).unwrap_or_default(),
        without: watch.without,
    };
    let finish =
        Finaliser { problem: &problem, device: context.device, method, model_paths: context.model_paths };
    let validated = |found: Found| {
        let mut planned = finish.finish(found);
        planned.refused = (context.validate)(&planned.plan).err();
        planned
    };
    if let Some(Method::Paper | Method::PaperPrinted) = method {
        let known = match start {
            Start::Search(plans) => start::as_bits(plans, &tasks),
            Start::Picked(_) => Vec::new(),
        };
        let found = info_span!("search").in_scope(|| paper::search(&problem, &known, watch))?;
        return Ok(validated(found));
    }

    let may_be_known = method == Some(Method::Extended)
        && watch.scope != Scope::Front
        && *start == Start::default()
        && !watch.without.contains(&Strategy::KnownAnswer)
        && (!timings.iter().any(Timing::is_measured) || !objective.fits(problem.parameters));
    let known = match may_be_known {
        true => Some(design_points::ends(&problem)?).filter(|chooser| chooser.knows_the_answer()),
        false => None,
    };
    let mut is_known = known.is_some();
    let mut chooser = match known {
        Some(chooser) => chooser,
        None => design_points::search(context.device, start, &problem, method, watch)?,
    };
    loop {
        let (chosen, found) = chooser.find(is_known);
        let planned = validated(found);
        let Some(why) = &planned.refused else { return Ok(planned) };
        if is_known {
            // A search can offer other design points.
            (chooser, is_known) =
                (design_points::search(context.device, start, &problem, method, watch)?, false);
        } else if !chooser.drop(&chosen) {
            return Ok(planned);
        }
        warn!("csdfc's checker refuses a plan, so csdfc takes the next best: {why}");
    }
}

/// The method that searches for the plan. `None` if the choice is picked or the application gives the rows.
pub(super) fn method(start: &Start, application: &Application) -> Option<Method> {
    match (start, &application.rows) {
        (Start::Search(_), RowsChoice::Default) => Some(application.search.method.unwrap_or_default()),
        _ => None,
    }
}
