//! The design points of every CNN, by whatever method the application asks for.

use std::time::Instant;

use csdfc_input::app::spec::Method;
use tracing::{info, info_span};

use super::planner::Planner;
use crate::cost::timing::Timing;
use crate::error::Error;
use crate::frame::choice::Choice;
use crate::frame::task::PartitionedCnn;
use crate::search::known::{self, Start};
use crate::search::problem::PlanningProblem;
use crate::search::simple::{self, DesignFront};
use crate::search::watch::Watch;
use crate::search::{baseline, extended};

/// The design points with no parts and with all parts, for a plan that may need no search.
pub(super) fn ends<'a>(problem: &'a PlanningProblem<'a>) -> Result<Planner<'a>, Error> {
    let front = |(task, timing): (&PartitionedCnn<'_>, &Timing<'_>)| {
        let ends = [Choice::none(task.network), Choice::all(task.network)];
        simple::front_of(task, timing, problem.application.storage, &ends)
    };
    let fronts = problem.tasks.iter().zip(problem.timings).map(front).collect::<Result<_, _>>()?;
    Ok(Planner::new(problem, fronts, Vec::new()))
}

/// The design points that a method finds, and those of old plans.
pub(super) fn search<'a>(
    start: &Start,
    problem: &'a PlanningProblem<'a>,
    method: Option<Method>,
    watch: &Watch<'_>,
) -> Result<Planner<'a>, Error> {
    let mut fronts = evaluate(start, problem, method, watch)?;
    let known = match start {
        Start::Search(plans) if method.is_some_and(Method::is_search) => {
            known::add(plans, problem.tasks, problem.timings, problem.application.storage, &mut fronts)?
        }
        _ => Vec::new(),
    };
    Ok(Planner::new(problem, fronts, known))
}

/// The design points of every CNN that are worth choosing. A method makes them. Without a method, they follow from the
/// choice that is picked or from the rows that the application gives. Each method that makes design points has its arm here.
fn evaluate(
    start: &Start,
    problem: &PlanningProblem<'_>,
    method: Option<Method>,
    watch: &Watch<'_>,
) -> Result<Vec<DesignFront>, Error> {
    let PlanningProblem { application, tasks, timings, .. } = *problem;
    let started = Instant::now();
    let mut fronts = Vec::new();
    for (index, (task, timing)) in tasks.iter().zip(timings).enumerate() {
        let (name, storage) = (application.cnns[index].name.as_str(), application.storage);
        let _span = info_span!("evaluate", cnn = name).entered();
        let network = task.network;
        let method = method.unwrap_or_default();
        let given = match start {
            Start::Picked(choices) => choices.get(index).cloned(),
            Start::Search(_) => Choice::given(application, index),
        };
        let front = match (given, baseline::choice(method, network)) {
            (Some(choice), _) => simple::evaluate(task, timing, &[choice], storage)?,
            (None, Some(choice)) => baseline::front(task, timing, &choice, baseline::sharing(method))?,
            (None, None) if method == Method::Extended => {
                let watch = watch.share(tasks.len() - index, started);
                let known = start.of_cnn(index);
                let seed = application.search.seed;
                extended::front(task, timing, storage, seed, name, &known, &watch)?
            }
            (None, None) => simple::front(task, timing, storage)?,
        };
        info!(evaluations = front.evaluations, layers = network.layers.len(), "evaluated");
        fronts.push(front);
    }
    Ok(fronts)
}
