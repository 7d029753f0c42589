//! Faster primitives in the memory that a plan leaves: its rows, segments and layouts stay.
//!
//! A layer's primitives form a staircase. Each step is faster than the one before and takes more bytes, stored or as
//! workspace; from step to step, each additional byte saves less time. The steps of all layers are ordered by the time
//! that a byte saves. As many as fit are taken in this order, and then as many of the others as fit into the rest. Each
//! test of whether steps fit is exact, because it makes a plan.

use csdfc_input::app::resolve::{Application, Cnn};
use csdfc_input::device::DeviceProfile;
use csdfc_network::LayerId;
use csdfc_runtime::bind::Primitive;

use super::with_primitives;
use crate::cost::ProcessorShare;
use crate::cost::measured::{self, alternatives};
use crate::driver::Context;
use crate::driver::candidate::Candidate;
use crate::error::Error;
use crate::objective::{Least, Objective};

/// How often the remaining memory is given out.
const ROUNDS: usize = 2;

/// A faster primitive for a layer.
#[derive(Debug, Clone, Copy)]
struct Step {
    cnn: usize,
    layer: LayerId,
    primitive: Primitive,
    /// Additional bytes, stored and of workspace.
    bytes: i128,
    /// Share of the frame that each byte saves; infinite if it takes no more bytes.
    slope: f64,
}

/// The plan with faster primitives. `None` if it is no better.
pub(super) fn upgraded(
    from: &Candidate,
    context: &Context<'_>,
    objective: &Objective,
) -> Result<Option<Candidate>, Error> {
    let limit = objective.most_bytes();
    let mut found: Option<Candidate> = None;
    for _ in 0..ROUNDS {
        let base = found.as_ref().unwrap_or(from);
        let left = limit.saturating_sub(base.planned.plan.memory.total);
        let mut steps = steps(base, context.device);
        steps.retain(|step| match objective.least {
            Least::Memory => step.bytes <= 0,
            Least::Time => step.bytes <= i128::from(left),
        });
        let choices = base.choices();
        let of_first = |count: usize| -> Result<Option<Candidate>, Error> {
            let changes: Vec<_> =
                steps[..count].iter().map(|step| (step.cnn, step.layer, step.primitive)).collect();
            let Some(application) = with_primitives(&base.application, &changes) else { return Ok(None) };
            let planned = context.plan_picked(choices.clone(), &application)?;
            let fits =
                objective.fits(planned.plan.memory.total) && planned.is_better(&base.planned, objective);
            Ok(fits.then_some(Candidate { application, planned }))
        };
        // The first `low` fit, and the first `high` do not.
        let (mut low, mut high, mut next) = (0, steps.len() + 1, steps.len());
        let mut best = None;
        while low + 1 < high {
            match of_first(next)? {
                Some(fits) => (low, best) = (next, Some(fits)),
                None => high = next,
            }
            next = low.midpoint(high);
        }
        match best {
            Some(best) => found = Some(best),
            None => break,
        }
    }
    Ok(found)
}

/// All steps of a plan's layers, by the share of a frame that a byte saves. In a pipeline, only the slowest stage has any.
fn steps(from: &Candidate, device: &DeviceProfile) -> Vec<Step> {
    let mut steps = Vec::new();
    for (c, cnn) in from.application.cnns.iter().enumerate() {
        let planned = &from.planned.plan.cnns[c];
        let frame_ns = 1e9 / planned.fps;
        let slowest = slowest(&from.application, cnn, &planned.layers);
        for (p, partition) in cnn.partitions.iter().enumerate() {
            let Ok(processor) = device.processor(&partition.processor) else { continue };
            if slowest.is_some_and(|slowest| slowest != p) {
                continue;
            }
            let processor_share = ProcessorShare::alone(processor, from.application.threads);
            for id in &partition.layers {
                let layer = cnn.network.layer(*id);
                let rows = planned.layers[id.0].rows_per_firing;
                let known = alternatives(
                    processor,
                    layer,
                    processor_share.workers,
                    from.application.max_primitive_error,
                );
                let Some(own) = known.iter().find(|known| known.primitive == layer.primitive()) else {
                    continue;
                };
                let at = |known: &measured::Alternative<'_>| {
                    let time = measured::time(known.samples, &processor_share, &cnn.network, *id, rows);
                    let bytes = known.stored + known.workspace * processor_share.workers;
                    (known.primitive, time.map_or(f64::INFINITY, |(ns, _)| ns), i128::from(bytes))
                };
                let known: Vec<_> = known.iter().map(at).collect();
                staircase(at(own), &known, |primitive, saved_ns, bytes| {
                    let slope = if bytes <= 0 { f64::INFINITY } else { saved_ns / frame_ns / bytes as f64 };
                    steps.push(Step { cnn: c, layer: *id, primitive, bytes, slope });
                });
            }
        }
    }
    // The sort is stable: the steps of a layer stay in order.
    steps.sort_by(|a, b| b.slope.total_cmp(&a.slope));
    steps
}

/// Lists the steps up from a primitive. Each is the one that saves the most time per byte after the step before.
/// Primitives come with their times and bytes.
fn staircase(
    from: (Primitive, f64, i128),
    known: &[(Primitive, f64, i128)],
    mut tell: impl FnMut(Primitive, f64, i128),
) {
    let (_, mut ns, mut bytes) = from;
    // First the fastest primitive that takes no more bytes.
    let free = known.iter().filter(|known| known.2 <= bytes && known.1 < ns);
    if let Some(&(primitive, faster, fewer)) = free.min_by(|a, b| a.1.total_cmp(&b.1).then(a.2.cmp(&b.2))) {
        tell(primitive, ns - faster, fewer - bytes);
        (ns, bytes) = (faster, fewer);
    }
    let slope =
        |known: &(Primitive, f64, i128), ns: f64, bytes: i128| (ns - known.1) / (known.2 - bytes) as f64;
    loop {
        let up = known.iter().filter(|known| known.2 > bytes && known.1 < ns);
        let steepest = up.max_by(|a, b| slope(a, ns, bytes).total_cmp(&slope(b, ns, bytes)));
        let Some(&(primitive, faster, more)) = steepest else { return };
        tell(primitive, ns - faster, more - bytes);
        (ns, bytes) = (faster, more);
    }
}

/// The partition of a pipeline that takes most time. `None` if the partitions take turns.
fn slowest(application: &Application, cnn: &Cnn, layers: &[csdfc_plan::plan::Layer]) -> Option<usize> {
    let is_one = |name: &&String| cnn.partitions.iter().any(|partition| partition.name == **name);
    if !application.parallel.iter().any(|element| element.iter().filter(is_one).count() > 1) {
        return None;
    }
    let time = |p: &usize| -> f64 {
        let ids = cnn.partitions[*p].layers.iter();
        ids.filter_map(|id| layers[id.0].time).map(|time| time.ns).sum()
    };
    (0..cnn.partitions.len()).max_by(|a, b| time(a).total_cmp(&time(b)))
}
