//! The design points of every CNN, by whatever method the application asks for.

use csdfc_input::app::spec::Method;
use csdfc_input::device::DeviceProfile;
use tracing::{info, info_span};

use super::choose::Chooser;
use crate::error::Error;
use crate::frame::choice::Choice;
use crate::search::evaluate::Evaluator;
use crate::search::memo::Key;
use crate::search::problem::PlanningProblem;
use crate::search::simple::{self, DesignFront};
use crate::search::start::{self, Start};
use crate::search::watch::Watch;
use crate::search::{baseline, extended};

/// The design points with no parts and with all parts, for a plan that may need no search.
pub(super) fn ends<'a>(problem: &'a PlanningProblem<'a>) -> Result<Chooser<'a>, Error> {
    let front = |evaluator: &Evaluator<'_>| {
        let network = evaluator.task.network;
        simple::front_of(evaluator, &[Choice::none(network), Choice::all(network)])
    };
    let fronts = problem.evaluators().iter().map(front).collect::<Result<_, _>>()?;
    Ok(Chooser::new(problem, fronts, Vec::new()))
}

/// The design points that a method finds, and those of old plans.
pub(super) fn search<'a>(
    device: &DeviceProfile,
    start: &Start,
    problem: &'a PlanningProblem<'a>,
    method: Option<Method>,
    watch: &Watch<'_>,
) -> Result<Chooser<'a>, Error> {
    let evaluators = problem.evaluators();
    let evaluated = || evaluate(start, problem, &evaluators, method, watch);
    let mut fronts = match (watch.memo, method.is_some_and(Method::is_search)) {
        (Some(memo), true) => {
            let key = Key::new(problem.application, device, start, watch.budget, watch.without);
            memo.get_or_search(key, evaluated)?
        }
        _ => evaluated()?,
    };
    let known = match start {
        Start::Search(plans) if method.is_some_and(Method::is_search) => {
            start::add(plans, &evaluators, &mut fronts)?
        }
        _ => Vec::new(),
    };
    Ok(Chooser::new(problem, fronts, known))
}

/// The design points of every CNN that are worth choosing. A method makes them. Without a method, they follow from the
/// choice that is picked or from the rows that the application gives. Each method that makes design points has a match
/// arm here.
fn evaluate(
    start: &Start,
    problem: &PlanningProblem<'_>,
    evaluators: &[Evaluator<'_>],
    method: Option<Method>,
    watch: &Watch<'_>,
) -> Result<Vec<DesignFront>, Error> {
    let application = problem.application;
    let mut fronts = Vec::new();
    for (index, evaluator) in evaluators.iter().enumerate() {
        let name = application.cnns[index].name.as_str();
        let _span = info_span!("evaluate", cnn = name).entered();
        let Evaluator { task, timing, .. } = *evaluator;
        let method = method.unwrap_or_default();
        let given = match start {
            Start::Picked(choices) => choices.get(index).cloned(),
            Start::Search(_) => Choice::given(application, index),
        };
        let baseline = |choice: Choice| baseline::front(task, timing, &choice, baseline::sharing(method));
        let front = match (given, method) {
            (Some(choice), _) => simple::evaluate(evaluator, &[choice])?,
            (None, Method::None | Method::Reuse) => baseline(Choice::none(task.network))?,
            (None, Method::Parts) => baseline(Choice::all(task.network))?,
            (None, Method::Extended) => {
                let watch = watch.share(evaluators.len() - index);
                extended::front(evaluator, application.search.seed, name, &start.of_cnn(index), &watch)?
            }
            // Algorithm 2 makes no design points of single CNNs, and is not asked for any.
            (None, Method::Simple | Method::Paper | Method::PaperPrinted) => simple::front(evaluator)?,
        };
        info!(evaluations = front.evaluations, layers = task.network.layers.len(), "evaluated");
        fronts.push(front);
    }
    Ok(fronts)
}
