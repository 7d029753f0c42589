//! Which of two plans is better.

use std::cmp::Ordering;

use csdfc_input::app::resolve::Application;
use csdfc_input::app::spec::Prefer;
use csdfc_input::units::MemoryGoal;

use crate::driver::{Planned, limit};

/// The better of two plans of an application. These count, in this order: that the validator accepts the plan, that it
/// meets the constraints, and that it takes less memory or is faster, whichever is asked for. Frame rates of several
/// CNNs are multiplied.
pub(super) fn better(first: Planned, other: Planned, application: &Application) -> Planned {
    if is_better(&other, &first, application) { other } else { first }
}

/// Whether one plan is better than another.
pub(super) fn is_better(one: &Planned, than: &Planned, application: &Application) -> bool {
    order(one, than, application) == Ordering::Less
}

/// The order of two plans, the better one first.
pub(super) fn order(one: &Planned, other: &Planned, application: &Application) -> Ordering {
    let limit = limit(application).unwrap_or(u64::MAX);
    let rank = |planned: &Planned| {
        let memory = planned.plan.memory.total;
        let rates: f64 = planned.plan.cnns.iter().map(|cnn| cnn.fps.ln()).sum();
        let is_unmet = (planned.refused.is_some(), planned.shortfall.is_some(), memory.saturating_sub(limit));
        let worth = if wants_least(application) { (memory as f64, -rates) } else { (-rates, memory as f64) };
        (is_unmet, worth)
    };
    let ((unmet, worth), (others_unmet, others_worth)) = (rank(one), rank(other));
    let by_worth = worth.0.total_cmp(&others_worth.0).then(worth.1.total_cmp(&others_worth.1));
    unmet.cmp(&others_unmet).then(by_worth)
}

/// Whether the least memory is asked for.
pub fn wants_least(application: &Application) -> bool {
    application.constraints.memory == Some(MemoryGoal::Min) || application.prefer == Prefer::Memory
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use csdfc_input::device::DeviceProfile;

    use super::*;
    use crate::driver;
    use crate::open;

    #[test]
    fn the_better_plan_is_smaller_or_faster_as_is_asked_for() {
        let mut application = open::open("builtin:lenet5").unwrap().resolve().unwrap();
        let device = DeviceProfile::find("generic", Path::new("")).unwrap();
        let plan = driver::plan(&application, &device, vec![String::new()]).unwrap().plan;
        let planned = |name: &str, (memory, fps): (u64, f64), refused: Option<String>| {
            let mut plan = plan.clone();
            plan.application = name.into();
            (plan.memory.total, plan.cnns[0].fps) = (memory, fps);
            Planned { refused, ..plan.into() }
        };
        let cases = [
            ((100, 5.0), (90, 5.0), [true, true]),
            ((100, 5.0), (110, 5.0), [false, false]),
            ((100, 5.0), (110, 6.0), [true, false]),
            ((100, 5.0), (100, 6.0), [true, true]),
            ((100, 5.0), (100, 4.0), [false, false]),
            // Of two equal plans, the first is taken.
            ((100, 5.0), (100, 5.0), [false, false]),
        ];
        for (which, prefer) in [Prefer::Fps, Prefer::Memory].into_iter().enumerate() {
            application.prefer = prefer;
            for (one, other, expected) in cases {
                let taken = |why: Option<&str>| {
                    let other = planned("other", other, why.map(String::from));
                    better(planned("one", one, None), other, &application).plan.application == "other"
                };
                assert_eq!(taken(None), expected[which], "{prefer:?} {one:?} {other:?}");
                assert!(!taken(Some("a reason")), "{prefer:?} {one:?} {other:?}");
            }
        }
    }
}
