//! Which steps are taken.

use csdfc_input::app::resolve::Application;
use csdfc_input::device::DeviceProfile;
use csdfc_network::Layer;
use csdfc_network::pass;
use csdfc_network::pass::Precision;
use csdfc_planner::driver::{Planned, assemble};
use csdfc_planner::frame::task;
use csdfc_planner::objective::{Least, Objective};
use csdfc_planner::search::watch::Watch;
use csdfc_runtime::bind::Primitive;
use tracing::{info, info_span, warn};

use super::accuracy::{self, OpenCnn};
use super::order::{self, Alternative, Alternatives, Step};
use super::savings::Savings;
use super::{Accuracy, Models, Plan, Progress};
use crate::error::Error;

/// Frames on which a single layer is measured. Few suffice, since its error is only compared with those of others.
const FRAMES_OF_A_LAYER: usize = 2;

/// The most multiply-accumulates of a CNN's measurements of layers. If there are more, layers are measured together.
const MEASURED_MACS: u64 = 72_000_000_000;

/// The steps within the allowance are divided into at most this many parts. The smallest plan is searched for at the end
/// of each part.
const PARTS: usize = 4;

/// The most layers of all these plans together, if there is more than one part.
const PLANNED_LAYERS: usize = 260;

/// The most allowances that are tried before one is reported, each a quarter larger than the one before.
const TRIES: usize = 8;

/// An application with some of the steps taken.
pub(super) struct Candidate {
    taken: usize,
    pub application: Application,
    pub planned: Planned,
}

impl Candidate {
    fn is_met(&self) -> bool {
        self.planned.plan.constraints.met && self.planned.refused.is_none()
    }
}

/// A plan, and how much it errs.
pub(super) struct Found {
    pub candidate: Candidate,
    /// The error of each open CNN.
    pub accuracies: Vec<Accuracy>,
    /// If the plan does not meet the constraints, the allowances with which they would be met, if there are any.
    pub sufficient: Option<Vec<Accuracy>>,
}

/// The steps of all CNNs, and the means to plan with them.
pub(super) struct Search<'a> {
    models: &'a Models<'a>,
    device: &'a DeviceProfile,
    open: Vec<OpenCnn>,
    plan: Plan<'a>,
    watch: &'a Watch<'a>,
    tell: &'a dyn Fn(&Progress<'_>),
    /// The steps of each open CNN, in order.
    ordered: Vec<Vec<Step>>,
    /// The steps of all CNNs: first those that the allowances permit, in order, then the others.
    steps: Vec<Step>,
}

impl<'a> Search<'a> {
    /// A search with no steps yet.
    pub fn new(
        models: &'a Models<'a>,
        device: &'a DeviceProfile,
        open: Vec<OpenCnn>,
        plan: Plan<'a>,
        watch: &'a Watch<'a>,
        tell: &'a dyn Fn(&Progress<'_>),
    ) -> Self {
        Search { models, device, open, plan, watch, tell, ordered: Vec::new(), steps: Vec::new() }
    }

    /// The plan that is the answer, or the nearest one.
    pub fn find(&mut self, base: &Application) -> Result<Found, Error> {
        let wants_least = Objective::new(base).least == Least::Memory;
        if !wants_least && let Some(first) = self.planned(0)?.filter(Candidate::is_met) {
            return self.found(first);
        }
        let allowed = self.order(base)?;
        if self.watch.is_over() {
            // No step is known to be allowed, or there is no time to try it.
            return self.found(self.nearest(0)?);
        }
        info!(steps = self.steps.len(), allowed, "layers in order");
        let found = if wants_least { self.smallest_plan(allowed)? } else { self.fewest(0, allowed)? };
        if let Some(found) = found {
            let found = self.found(found)?;
            // The plan may compute with other primitives than those that were measured.
            let is_within = found.accuracies.iter().all(Accuracy::is_within);
            let most =
                if is_within || found.candidate.taken == allowed { None } else { self.planned(allowed)? };
            return most.filter(Candidate::is_met).map_or(Ok(found), |most| self.found(most));
        }
        let nearest = self.nearest(allowed)?;
        if nearest.is_met() || self.watch.is_over() {
            return self.found(nearest);
        }
        let Some(beyond) = self.fewest(allowed, self.steps.len())? else { return self.found(nearest) };
        let sufficient = self.sufficient(beyond.taken)?;
        if sufficient.is_empty() {
            return self.found(beyond);
        }
        Ok(Found { sufficient: Some(sufficient), ..self.found(nearest)? })
    }

    /// The plan with this many steps taken, whether it meets the constraints or not.
    fn nearest(&self, taken: usize) -> Result<Candidate, Error> {
        let application = self.application(taken)?;
        let planned = (self.plan)(&application, self.device)?;
        Ok(Candidate { taken, application, planned })
    }

    /// Runs a plan of the application, for the error of each open CNN.
    fn found(&self, candidate: Candidate) -> Result<Found, Error> {
        let Candidate { application, planned, .. } = &candidate;
        let mut runner = accuracy::runner(&planned.plan, application)?;
        let of = |open: &OpenCnn| {
            Ok(open.accuracy(open.error_in(&mut runner)?, &application.cnns[open.cnn].network))
        };
        let accuracies: Vec<Accuracy> = self.open.iter().map(of).collect::<Result<_, Error>>()?;
        drop(runner);
        Ok(Found { candidate, accuracies, sufficient: None })
    }

    /// The allowances that permit this many steps, for the CNNs whose allowance is too small.
    fn sufficient(&self, taken: usize) -> Result<Vec<Accuracy>, Error> {
        let mut accuracies = Vec::new();
        for (place, (open, precisions)) in self.precisions(taken).into_iter().enumerate() {
            let error = open.error(&precisions, open.frames())?;
            if error <= open.allowance {
                continue;
            }
            // Fewer steps may have a larger error, so the allowance must be large enough for them too.
            let mut allowance = rounded_up(error);
            let is_taken = |step: &&Step| step.open == place;
            for _ in 0..TRIES {
                let (permitted, _) = self.permitted(place, allowance)?;
                if self.steps[..taken].iter().filter(is_taken).all(|step| permitted.contains(step)) {
                    break;
                }
                allowance = rounded_up(allowance * 1.25);
            }
            let network = pass::in_precisions(open.network.clone(), &precisions);
            accuracies.push(Accuracy { allowance, ..open.accuracy(error, &network) });
        }
        Ok(accuracies)
    }

    /// The precisions of the open CNNs with so many steps taken.
    fn precisions(&self, taken: usize) -> Vec<(&OpenCnn, Vec<Precision>)> {
        let of = |(place, open)| {
            (open, precisions(open, self.steps[..taken].iter().filter(|step| step.open == place)))
        };
        self.open.iter().enumerate().map(of).collect()
    }

    fn application(&self, taken: usize) -> Result<Application, Error> {
        self.models.with_precisions(&self.precisions(taken))
    }

    /// The plan with this many steps taken. Only weights that must be streamed are streamed. `None` if the parameters alone
    /// exceed the memory.
    fn planned(&self, taken: usize) -> Result<Option<Candidate>, Error> {
        let application = self.application(taken)?;
        let parameters = assemble::parameters_resident(&task::tasks(&application));
        if !Objective::new(&application).fits(parameters) {
            return Ok(None);
        }
        let _span = info_span!("precisions", taken).entered();
        let resident = Application { may_be_streamed: None, ..application.clone() };
        let planned = (self.plan)(&resident, self.device)?;
        info!(taken, total = planned.plan.memory.total, met = planned.plan.constraints.met, "planned");
        Ok(Some(Candidate { taken, application, planned }))
    }

    /// The plan that meets the constraints with the fewest steps, at most `many`. `few` steps are known to be too few.
    fn fewest(&self, mut few: usize, mut many: usize) -> Result<Option<Candidate>, Error> {
        if few == many {
            return Ok(None);
        }
        let met = |taken: usize| Ok::<_, Error>(self.planned(taken)?.filter(Candidate::is_met));
        let Some(mut found) = met(many)? else { return Ok(None) };
        while many - few > 1 && !self.watch.is_over() {
            let middle = few + (many - few) / 2;
            match met(middle)? {
                Some(candidate) => (found, many) = (candidate, middle),
                None => few = middle,
            }
        }
        Ok(Some(found))
    }

    /// The smallest plan that meets the constraints with at most this many steps. If several are equal, it is the one
    /// with the fewest steps.
    fn smallest_plan(&self, allowed: usize) -> Result<Option<Candidate>, Error> {
        let layers: usize = self.open.iter().map(|open| open.network.layers.len()).sum();
        let parts = (PLANNED_LAYERS / layers.max(1)).clamp(1, PARTS);
        let mut taken: Vec<usize> = (0..=parts).map(|part| allowed * part / parts).collect();
        taken.dedup();
        let mut least: Option<Candidate> = None;
        for taken in taken {
            if least.is_some() && self.watch.is_over() {
                break;
            }
            if let Some(candidate) = self.planned(taken)?.filter(Candidate::is_met)
                && least
                    .as_ref()
                    .is_none_or(|least| candidate.planned.plan.memory.total < least.planned.plan.memory.total)
            {
                least = Some(candidate);
            }
        }
        Ok(least)
    }

    /// Puts the steps into their order. Returns how many of them may be taken.
    fn order(&mut self, base: &Application) -> Result<usize, Error> {
        let saves = Savings::new(self.models, &self.open, base, self.device)?;
        for (place, open) in self.open.iter().enumerate() {
            let _span = info_span!("layers").entered();
            self.ordered.push(order::steps(place, &self.alternatives(open, &saves)?));
        }
        let (mut permitted, mut others) = (Vec::new(), Vec::new());
        for (place, open) in self.open.iter().enumerate() {
            let (within, beyond) = self.permitted(place, open.allowance)?;
            permitted.extend(within);
            others.extend(beyond);
        }
        order::sort(&mut permitted);
        order::sort(&mut others);
        let count = permitted.len();
        self.steps = [permitted, others].concat();
        Ok(count)
    }

    /// The first steps of a CNN that an allowance permits together, and all others.
    fn permitted(&self, place: usize, allowance: f64) -> Result<(Vec<Step>, Vec<Step>), Error> {
        let open = &self.open[place];
        // A layer whose error alone is too large does not keep other layers from their steps.
        let (mut steps, mut others): (Vec<Step>, Vec<Step>) =
            self.ordered[place].iter().partition(|step| step.error <= allowance);
        let (mut few, mut many) = (0, steps.len() + 1);
        while many - few > 1 && !self.watch.is_over() {
            let middle = few + (many - few) / 2;
            let error = open.error(&precisions(open, steps[..middle].iter()), open.frames())?;
            if error <= allowance { few = middle } else { many = middle }
        }
        others.extend(steps.drain(few..));
        Ok((steps, others))
    }

    /// For each layer, its precisions other than 32-bit floats.
    fn alternatives(&self, open: &OpenCnn, saves: &Savings) -> Result<Vec<Alternatives>, Error> {
        let layers = |has: fn(&Layer) -> bool| -> Vec<usize> {
            let is_open = |&layer: &usize| open.stated[layer] == Precision::Auto;
            let ids = open.network.ids().map(|id| id.0);
            ids.filter(is_open).filter(|layer| has(&open.network.layers[*layer])).collect()
        };
        let half = layers(|layer| pass::primitive_of(layer, Precision::Half).is_some());
        let mixed =
            layers(|layer| pass::primitive_of(layer, Precision::Mixed).is_some_and(Primitive::is_mixed));
        let frames = open.frames().min(FRAMES_OF_A_LAYER) as u64;
        let together = together(open.network.macs().saturating_mul(frames), half.len() + mixed.len());
        if together > 1 {
            warn!("{} is large: its layers are measured {together} at a time, not one by one", open.name);
        }
        let groups = [(Precision::Half, &half), (Precision::Mixed, &mixed)];
        let groups = groups.map(|(precision, layers)| layers.chunks(together).map(move |g| (precision, g)));
        let groups: Vec<_> = groups.into_iter().flatten().collect();
        let mut alternatives = vec![Alternatives::default(); open.network.layers.len()];
        for (done, (precision, group)) in groups.iter().enumerate() {
            if self.watch.is_over() {
                break;
            }
            (self.tell)(&Progress { cnn: &open.name, done, of: groups.len() });
            let mut stated = open.stated.clone();
            group.iter().for_each(|layer| stated[*layer] = *precision);
            // The squares of independent errors add up.
            let error = open.error(&stated, FRAMES_OF_A_LAYER)? / (group.len() as f64).sqrt();
            for &layer in *group {
                let alternative = Some(Alternative { saves: saves.saving(open, layer, *precision), error });
                match precision {
                    Precision::Half => alternatives[layer].half = alternative,
                    _ => alternatives[layer].mixed = alternative,
                }
            }
        }
        Ok(alternatives)
    }
}

/// How many layers are measured together, if `count` layers at a precision are to be measured and a measurement takes so
/// many multiply-accumulates.
fn together(macs: u64, count: usize) -> usize {
    let measurements = usize::try_from(MEASURED_MACS / macs.max(1)).unwrap_or(usize::MAX);
    count.div_ceil(measurements.max(1)).max(1)
}

/// The precisions of a CNN's layers after some steps.
fn precisions<'s>(open: &OpenCnn, steps: impl Iterator<Item = &'s Step>) -> Vec<Precision> {
    let mut precisions = open.stated.clone();
    steps.for_each(|step| precisions[step.layer] = step.precision);
    precisions
}

/// A number of two digits that is no less.
fn rounded_up(error: f64) -> f64 {
    let unit = 10f64.powf(error.log10().floor() - 1.0);
    let digits = (error / unit).ceil() * unit;
    format!("{digits:.1e}").parse().unwrap_or(digits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layers_of_large_networks_are_measured_together() {
        // MobileNetV2 and DenseNet-121 on two frames and on one, and a network so large that all go together.
        for (macs, count, expected) in [
            (2 * 300_000_000, 116, 1),
            (2_865_000_000, 242, 10),
            (MEASURED_MACS, 32, 32),
            (u64::MAX, 32, 32),
            (0, 0, 1),
        ] {
            assert_eq!(together(macs, count), expected, "{macs} {count}");
        }
    }

    #[test]
    fn allowances_have_two_digits_and_are_no_less() {
        for (error, rounded) in [(1.2345e-2, 1.3e-2), (9.99e-4, 1e-3), (1.0, 1.0), (3.0001e-7, 3.1e-7)] {
            assert_eq!(rounded_up(error), rounded);
        }
    }
}
