//! The main job: from an application to a plan, by one strategy after another.
//!
//! An application comes with its networks read, rewritten and in order ([`app`](csdfc_input::app),
//! [`pass`](csdfc_network::pass)). The first plan has the first primitive of each layer and all weights where the
//! application says (`fixed`):
//!
//! 1. the CNNs are cut into partitions, and the timing of their frames is derived;
//! 2. a method makes design points of each CNN (`design_points`), each executed, placed and timed; or it finds design
//!    points for all CNNs at once (`search::paper`);
//! 3. one design point of each CNN is chosen (`choose`);
//! 4. their rings are placed with patience, and the plan is written (`finalise`, [`assemble`]);
//! 5. the caller validates the plan. If it refuses the plan, the plan is dropped, and the next best is chosen.
//!
//! Then each strategy of the `PIPELINE` makes another plan from the best so far, and the better of the two goes on. They
//! change what the first plan takes as given: primitives and layouts (`primitives`), which weights stay in memory
//! (`residency`), and how often the others are read (`reread`).
//!
//! ```
//! use std::path::Path;
//!
//! use csdfc_input::app::resolve::{Application, RowsChoice};
//! use csdfc_input::builtin;
//! use csdfc_input::device::DeviceProfile;
//! use csdfc_input::units::MemoryGoal;
//! use csdfc_planner::driver;
//!
//! let mut application = Application::of_network("lenet5", builtin::network("lenet5")?, RowsChoice::Default);
//! application.constraints.memory = Some(MemoryGoal::Bytes(1000));
//! let device = DeviceProfile::find("generic", Path::new(""))?;
//! let planned = driver::plan(&application, &device, vec!["builtin:lenet5".into()])?;
//!
//! // Its weights alone take more, so this is the nearest plan.
//! assert!(planned.shortfall.is_some());
//! assert!(!planned.plan.constraints.met);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod assemble;
mod candidate;
mod choose;
mod design_points;
mod finalise;
mod fixed;
mod front;
mod primitives;
mod reread;
mod residency;
mod stack;

use csdfc_plan::check as checker;
use csdfc_plan::plan::Plan;
use tracing::{info, info_span};

pub use self::candidate::Planned;
pub use self::primitives::explain::{Alternative, Explanation, explain};
pub use self::primitives::{SeparatePlans, separate_plans};
pub use self::stack::with_stack;
use csdfc_input::app::resolve::Application;
use csdfc_input::app::spec::{Method, Primitives};
use csdfc_input::device::DeviceProfile;

use self::candidate::Candidate;
use self::primitives::TimeOptimum;
use crate::error::Error;
use crate::frame::choice::Choice;
use crate::objective::Objective;
use crate::search::memo::Memo;
use crate::search::start::Start;
use crate::search::watch::{Scope, Shares, Watch};
use crate::strategy::Strategy;

/// A layer, by the place of its CNN and its name.
type LayerOf = (usize, String);

/// Why a plan is refused, in words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Refused(pub String);

/// Says why it refuses a plan, if it does.
pub type PlanValidator<'a> = &'a (dyn Fn(&Plan) -> Result<(), Refused> + Sync);

/// Refuses a plan that our own checker refuses, which is a mistake of csdfc.
///
/// # Errors
/// The first violation.
pub fn validate(plan: &Plan) -> Result<(), Refused> {
    let verdict = info_span!("check").in_scope(|| checker::check(plan));
    verdict.map(drop).map_err(|violations| {
        let first = violations.first().map(ToString::to_string).unwrap_or_default();
        Refused(format!("csdfc made a plan that its own checker refuses: {first}"))
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

/// What stays the same while an application is planned.
struct Context<'a> {
    device: &'a DeviceProfile,
    /// Path of each CNN's model, as the plan shall state it.
    model_paths: &'a [String],
    watch: &'a Watch<'a>,
    validate: PlanValidator<'a>,
}

impl Context<'_> {
    /// Plans an application as it is. If there is a search, it is the next of `shares`.
    fn plan(&self, start: &Start, application: &Application, shares: &Shares<'_>) -> Result<Planned, Error> {
        let is_search = fixed::method(start, application).is_some_and(Method::is_search);
        let watch = if is_search { shares.next() } else { *self.watch };
        fixed::plan(self, start, application, &watch)
    }

    /// Plans an application with a choice for each CNN, without a search.
    fn plan_picked(&self, choices: Vec<Choice>, application: &Application) -> Result<Planned, Error> {
        fixed::plan(self, &Start::Picked(choices), application, self.watch)
    }
}

/// What is known when a strategy is tried.
struct Situation<'a> {
    context: &'a Context<'a>,
    /// The application as it was given, and what it asks for.
    application: &'a Application,
    objective: &'a Objective,
    /// Where the first search started.
    start: &'a Start,
    /// Its fastest primitives.
    time_optimum: &'a TimeOptimum,
    /// The first plan.
    first: &'a Candidate,
    /// The best plan so far.
    best: &'a Candidate,
    /// The searches of the first plan and of the strategies that choose primitives.
    shares: &'a Shares<'a>,
}

/// Makes another plan, which may be better.
type Attempt = fn(&Situation<'_>) -> Result<Option<Candidate>, Error>;

/// The strategies that make another plan, in the order in which they are tried.
const PIPELINE: [(Strategy, Attempt); 7] = [
    (Strategy::PrimitivesFirst, primitives::primitives_first),
    (Strategy::MemoryFirst, primitives::memory_first),
    (Strategy::Joint, primitives::joint),
    (Strategy::Upgrade, primitives::upgrade),
    (Strategy::SearchAgain, primitives::search_again),
    (Strategy::StreamedWeights, residency::streamed),
    (Strategy::RereadWeights, reread::reread),
];

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
    let memo = Memo::default();
    let watch = &Watch { memo: watch.memo.or(Some(&memo)), ..*watch };
    let context = Context { device, model_paths: &model_paths, watch, validate };
    if let Primitives::Named(name) = application.primitives {
        // The choices of old plans do not fit: they are for other layers.
        return best(&context, &Start::default(), &primitives::named(application, name, device));
    }
    best(&context, start, application)
}

/// The best plan that the strategies find.
fn best(context: &Context<'_>, start: &Start, application: &Application) -> Result<Planned, Error> {
    let objective = &Objective::new(application);
    // If weights may have to be streamed, the searches for that are as long as one of these.
    let may_stream = application.streamed.is_some() || application.may_be_streamed.is_some();
    let later = usize::from(may_stream && objective.limit.is_some());
    let shares = &Shares::new(context.watch, primitives::searches(application, context.device) + later);
    let first = context.plan(start, application, shares)?;
    let first = Candidate { application: application.clone(), planned: first };
    let time_optimum = &TimeOptimum::new(application, context.device)?;
    let mut found: Option<Candidate> = None;
    for (strategy, attempt) in PIPELINE {
        if context.watch.without.contains(&strategy) {
            continue;
        }
        if context.watch.is_over() {
            break;
        }
        let best = found.as_ref().unwrap_or(&first);
        let situation =
            Situation { context, application, objective, start, time_optimum, first: &first, best, shares };
        let attempted = info_span!("strategy", name = strategy.name()).in_scope(|| attempt(&situation))?;
        if let Some(other) = attempted.filter(|other| other.planned.is_better(&best.planned, objective)) {
            info!(strategy = strategy.name(), total = other.planned.plan.memory.total, "found a better plan");
            found = Some(other);
        }
    }
    let best_rates = first.planned.shortfall.as_ref().map(|shortfall| shortfall.best_rates.clone());
    let Candidate { application: as_planned, mut planned } = found.unwrap_or(first);
    let has_front = matches!(start, Start::Search(_)) && context.watch.scope != Scope::Figures;
    if as_planned.streamed.is_some() && has_front {
        planned.plan.pareto =
            info_span!("front").in_scope(|| front::placed(context, &as_planned, &planned.plan))?;
    }
    if let (Some(shortfall), Some(rates)) = (&mut planned.shortfall, best_rates) {
        shortfall.reaches(&rates);
    }
    if primitives::is_joint(start, application, time_optimum) {
        // Strategies may have planned with picked choices, but the search found them.
        planned.plan.search.method = Method::Extended.name().into();
    }
    Ok(planned)
}
