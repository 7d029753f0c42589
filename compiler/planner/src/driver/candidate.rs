//! A plan that may be the answer, and the comparison of two of them.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use csdfc_input::app::resolve::{Application, Cnn};
use csdfc_plan::plan::Plan;

use super::{LayerOf, Refused};
use crate::frame::choice::Choice;
use crate::objective::{Figures, Objective};
use crate::search::{Shortfall, code};

/// A plan, and what it could not reach.
#[derive(Debug)]
pub struct Planned {
    /// The plan, or the nearest plan if the constraints cannot be met.
    pub plan: Plan,
    /// What can be reached instead, if the constraints cannot be met.
    pub shortfall: Option<Shortfall>,
    /// Why the plan is refused, if no other plan was left.
    pub refused: Option<Refused>,
    /// For each layer whose weights are read from a store, how much shorter the frame would be if they were in memory,
    /// in nanoseconds.
    pub(super) exposed: BTreeMap<LayerOf, f64>,
}

impl From<Plan> for Planned {
    /// A plan that meets its constraints and is not refused.
    fn from(plan: Plan) -> Self {
        Planned { plan, shortfall: None, refused: None, exposed: BTreeMap::new() }
    }
}

impl Planned {
    /// Whether it is better than another plan.
    pub(super) fn is_better(&self, than: &Planned, objective: &Objective) -> bool {
        self.compare(than, objective) == Ordering::Less
    }

    /// The better of two plans, and this one of equals.
    pub(super) fn or(self, other: Planned, objective: &Objective) -> Planned {
        if other.is_better(&self, objective) { other } else { self }
    }

    /// Compares two plans; the better one is less. What counts, in this order: that the plan is not refused, that it
    /// meets the constraints, how many bytes it is above its limits, and then what is asked to be least.
    pub(super) fn compare(&self, other: &Planned, objective: &Objective) -> Ordering {
        let unmet = |planned: &Planned| {
            (planned.refused.is_some(), planned.shortfall.is_some(), above(&planned.plan, objective))
        };
        unmet(self)
            .cmp(&unmet(other))
            .then_with(|| objective.least.compare(&self.figures(), &other.figures()))
    }

    fn figures(&self) -> Figures {
        let periods_ns = self.plan.cnns.iter().map(|cnn| 1e9 / cnn.fps);
        Figures { memory: self.plan.memory.total, time: Figures::time(periods_ns) }
    }
}

/// How many bytes a plan takes above its limits.
fn above(plan: &Plan, objective: &Objective) -> u64 {
    let flash = plan.constraints.flash.map_or(0, |most| plan.memory.parameters_stored.saturating_sub(most));
    let memory = match plan.regions.as_slice() {
        [] => plan.memory.total.saturating_sub(objective.most_bytes()),
        regions => regions.iter().map(|region| region.taken().saturating_sub(region.limit)).sum(),
    };
    memory.saturating_add(flash)
}

/// A plan, and the application that was planned.
pub(super) struct Candidate {
    /// The application with its primitives and conversions, and with the places of its weights.
    pub(super) application: Application,
    pub(super) planned: Planned,
}

impl Candidate {
    /// The better of two candidates, and this one of equals.
    pub(super) fn or(self, other: Candidate, objective: &Objective) -> Candidate {
        if other.planned.is_better(&self.planned, objective) { other } else { self }
    }

    /// The choice of each CNN.
    pub(super) fn choices(&self) -> Vec<Choice> {
        self.read(&self.planned.plan.search.choices)
    }

    /// The choices of the plan and of its front, each once.
    pub(super) fn known_choices(&self) -> Vec<Vec<Option<Choice>>> {
        let plan = &self.planned.plan;
        let all = std::iter::once(&plan.search.choices).chain(plan.pareto.iter().map(|point| &point.choices));
        let mut known: Vec<Vec<Option<Choice>>> = Vec::new();
        for choices in all.map(|choices| self.read(choices).into_iter().map(Some).collect()) {
            if !known.contains(&choices) {
                known.push(choices);
            }
        }
        known
    }

    fn read(&self, choices: &BTreeMap<String, String>) -> Vec<Choice> {
        let choice = |cnn: &Cnn| {
            let text = choices.get(&cnn.name).map_or("", String::as_str);
            // The text was written for this very network.
            code::read(text, &cnn.network).unwrap_or_else(|_| Choice::none(&cnn.network))
        };
        self.application.cnns.iter().map(choice).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use csdfc_input::app::spec::Prefer;
    use csdfc_input::device::DeviceProfile;

    use super::*;
    use crate::{driver, open};

    #[test]
    fn the_better_plan_is_smaller_or_faster_as_is_asked_for() {
        let mut application = open::open("builtin:lenet5").unwrap().resolve().unwrap();
        let device = DeviceProfile::find("generic", Path::new("")).unwrap();
        let plan = driver::plan(&application, &device, vec![String::new()]).unwrap().plan;
        let planned = |name: &str, (memory, fps): (u64, f64), refused: Option<Refused>| {
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
            let objective = Objective::new(&application);
            for (one, other, expected) in cases {
                let taken = |why: Option<&str>| {
                    let other = planned("other", other, why.map(|why| Refused(why.into())));
                    planned("one", one, None).or(other, &objective).plan.application == "other"
                };
                assert_eq!(taken(None), expected[which], "{prefer:?} {one:?} {other:?}");
                assert!(!taken(Some("a reason")), "{prefer:?} {one:?} {other:?}");
            }
        }
    }
}
