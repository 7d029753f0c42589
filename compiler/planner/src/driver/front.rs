//! The front of plans whose weights are streamed.
//!
//! A search counts the smallest blocks, and each read in turn. How large blocks become and which loads overlap computing
//! is known only of a plan ([`blocks`](crate::streaming::blocks)). So each point of the front is planned, as it will be
//! if it is picked, and states the bytes and the rates of that plan.

use csdfc_input::app::resolve::Application;
use csdfc_plan::plan::{ParetoPoint, Plan};
use rayon::prelude::*;

use super::Context;
use crate::error::Error;
use crate::saved::front::SavedFront;

/// How often a point is planned, each time with the bytes that it took the last time, until it takes all that it has.
const TRIES: usize = 4;

/// The front of a plan of this application, in which weights are streamed: the plan and those that its search saw, with
/// their bytes and rates when all weights are placed, sorted by falling memory. None is worse than another in both.
pub(super) fn placed(
    context: &Context<'_>,
    application: &Application,
    plan: &Plan,
) -> Result<Vec<ParetoPoint>, Error> {
    let own = [point(plan)];
    let seen = own.iter().chain(&plan.pareto).collect::<Vec<_>>();
    let picked = |point: &&ParetoPoint| picked(context, application, plan, point);
    let mut points: Vec<ParetoPoint> =
        seen.par_iter().map(picked).collect::<Result<Vec<_>, Error>>()?.into_iter().flatten().collect();
    let fps = |point: &ParetoPoint| point.fps.values().sum::<f64>();
    points.sort_by(|a, b| b.memory.cmp(&a.memory).then(fps(a).total_cmp(&fps(b))));
    let is_worse = |a: &ParetoPoint, b: &ParetoPoint| {
        a.memory >= b.memory && a.fps.iter().zip(&b.fps).all(|((_, a), (_, b))| a <= b)
    };
    let worse: Vec<bool> =
        (0..points.len()).map(|i| points[i + 1..].iter().any(|other| is_worse(&points[i], other))).collect();
    let mut worse = worse.into_iter();
    points.retain(|_| worse.next() == Some(false));
    Ok(points)
}

/// The plan as a point of a front.
fn point(plan: &Plan) -> ParetoPoint {
    ParetoPoint {
        memory: plan.memory.total,
        fps: plan.cnns.iter().map(|cnn| (cnn.name.clone(), cnn.fps)).collect(),
        choices: plan.search.choices.clone(),
    }
}

/// A point of the front as it is if it is picked. `None` if time is over, or if no number of bytes is found that the plan
/// takes when it has them.
fn picked(
    context: &Context<'_>,
    application: &Application,
    plan: &Plan,
    seen: &ParetoPoint,
) -> Result<Option<ParetoPoint>, Error> {
    let mut front = SavedFront { pareto: vec![seen.clone()], ..SavedFront::new(plan) };
    for _ in 0..TRIES {
        if context.watch.is_over() {
            return Ok(None);
        }
        let application = front.application_for(1, application.clone());
        let Ok(choices) = front.pick(1, &application) else { return Ok(None) };
        let planned = context.plan_picked(choices, &application)?;
        let placed = point(&planned.plan);
        if placed.memory == front.pareto[0].memory {
            return Ok(planned.refused.is_none().then_some(placed));
        }
        front.pareto[0].memory = placed.memory;
    }
    Ok(None)
}
