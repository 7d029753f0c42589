//! How small it can be, and what that would take: other plans of an application whose constraints are not met.
//!
//! Each remedy is a plan that was made by the same search as any plan. Its precision, or the place of its weights, differs
//! from what was asked. If it does not meet the constraints either, it is the smallest of its kind that is fast enough.
//!
//! ```
//! use std::path::Path;
//!
//! use csdfc_input::device::DeviceProfile;
//! use csdfc_planner::open::open;
//! use csdfc_planner::search::watch::Watch;
//! use csdfc_planner::{remedies, driver};
//!
//! let mut opened = open("builtin:resnet8")?;
//! opened.spec.constraints.memory = Some("100kB".parse()?);
//! let device = DeviceProfile::find("generic", Path::new(""))?;
//! let plan = |application: &_| driver::plan(application, &device, vec!["builtin:resnet8".into()]);
//! let nearest = plan(&opened.resolve()?)?.plan;
//! let remedies = remedies::remedies(&opened, &nearest, &device, &plan, &Watch::unwatched())?;
//!
//! // With all weights in memory, 100 kB are far too little. With streamed weights of 16 bits, they are enough.
//! assert_eq!((remedies[0].means.as_str(), remedies[0].met), ("weights in memory", false));
//! let half = remedies.iter().find(|remedy| remedy.means == "half precision").ok_or("a plan of 16-bit floats")?;
//! assert!(half.met && half.options == ["--precision", "half"]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::collections::BTreeMap;

use csdfc_input::app::resolve::Application;
use csdfc_input::app::spec::WeightsPlace;
use csdfc_input::device::DeviceProfile;
use csdfc_input::units::MemoryGoal;
use csdfc_network::pass::Precision;
use csdfc_plan::plan::Plan;
use csdfc_plan::remedy::Remedy;

use crate::driver::Planned;
use crate::error::Error;
use crate::explain::shortfall::has_floats;
use crate::open::Opened;
use crate::search::watch::Watch;

/// Precisions below 32-bit floats that need no measuring, the more exact one first, with their names for people.
const PRECISIONS: [(Precision, &str, &str); 2] =
    [(Precision::Half, "half", "half precision"), (Precision::Mixed, "mixed", "W8A16")];

/// Plans an application.
pub type Plans<'a> = &'a dyn Fn(&Application) -> Result<Planned, Error>;

/// What it would take, if `nearest` is the nearest plan to constraints that cannot be met. The searches end with the
/// watch, and then the last remedies are missing.
///
/// # Errors
/// As planning has.
pub fn remedies(
    opened: &Opened,
    nearest: &Plan,
    device: &DeviceProfile,
    plan: Plans<'_>,
    watch: &Watch<'_>,
) -> Result<Vec<Remedy>, Error> {
    let search = Search { opened, plan, watch };
    let mut remedies: Vec<Remedy> = slower(nearest).into_iter().collect();
    remedies.extend(search.more_workers(nearest, device)?);
    if !opened.spec.has_auto_precision() {
        remedies.extend(search.smallest(opened, &[], "")?);
    }
    for (precision, option, name) in PRECISIONS.into_iter().filter(|_| has_floats(nearest)) {
        let mut lower = opened.clone();
        if lower.spec.cnns.iter().all(|cnn| !is_lower(precision, cnn.precision)) {
            continue;
        }
        lower.spec.cnns.iter_mut().for_each(|cnn| cnn.precision = precision);
        if lower.spec.has_auto_precision() {
            continue;
        }
        let options = ["--precision", option];
        let smallest = search.smallest(&lower, &options, name)?;
        let may_do = smallest.is_empty() || smallest.iter().any(|remedy| remedy.met);
        match if may_do { search.remedy(&lower, &options, name.to_owned())? } else { None } {
            Some(remedy) => remedies.push(remedy),
            None => remedies.extend(smallest),
        }
    }
    // A network that has no layer of the lower precision is no smaller.
    let mut kept: Vec<Remedy> = Vec::new();
    for remedy in remedies {
        if !kept.iter().any(|before| (before.total, &before.fps) == (remedy.total, &remedy.fps)) {
            kept.push(remedy);
        }
    }
    Ok(kept)
}

/// Whether a precision takes fewer bytes than the stated one.
fn is_lower(precision: Precision, than: Precision) -> bool {
    match than {
        Precision::Fp32 | Precision::Auto => true,
        Precision::Half => precision == Precision::Mixed,
        Precision::Mixed | Precision::Int8 => false,
    }
}

struct Search<'a> {
    opened: &'a Opened,
    plan: Plans<'a>,
    watch: &'a Watch<'a>,
}

impl Search<'_> {
    /// A plan in which all cores share each firing, if rates are asked for.
    fn more_workers(&self, nearest: &Plan, device: &DeviceProfile) -> Result<Option<Remedy>, Error> {
        let asked = &nearest.constraints;
        let cores = device.processors.values().map(|processor| processor.cores).max().unwrap_or(1);
        let is_fast_enough = asked.fps.is_empty() && asked.latency_ns.is_empty();
        if is_fast_enough || cores <= self.opened.spec.threads as u64 {
            return Ok(None);
        }
        let mut more = self.opened.clone();
        more.spec.threads = cores as usize;
        self.remedy(&more, &["--threads", &cores.to_string()], format!("{cores} workers"))
    }

    /// The smallest plan with all weights in memory, and the smallest with streamed weights, if there is a limit.
    fn smallest(&self, opened: &Opened, options: &[&str], name: &str) -> Result<Vec<Remedy>, Error> {
        let mut remedies = Vec::new();
        let asked = self.opened.spec.weights;
        for (place, means) in
            [(WeightsPlace::Auto, "weights in memory"), (WeightsPlace::Streamed, "weights streamed")]
        {
            let constraints = &opened.spec.constraints;
            // Streamed weights that somebody asked for do not all fit.
            let is_excluded = place == WeightsPlace::Auto && asked == WeightsPlace::Streamed;
            if is_excluded || !matches!(constraints.memory, Some(MemoryGoal::Bytes(_))) {
                continue;
            }
            let means = if name.is_empty() { means.to_owned() } else { format!("{name}, {means}") };
            let mut other = opened.clone();
            let mut weights: &[&str] = &[];
            if place == WeightsPlace::Streamed {
                other.spec.weights = place;
                weights = &["--weights", "streamed"];
                // It may only have been forbidden.
                if asked == WeightsPlace::Resident
                    && let Some(remedy) = self.remedy(&other, &[options, weights].concat(), means.clone())?
                {
                    remedies.push(remedy);
                    continue;
                }
            }
            other.spec.constraints.memory = Some(MemoryGoal::Min);
            let options = [options, &["--mem", "min"], weights].concat();
            remedies.extend(self.remedy(&other, &options, means)?);
        }
        Ok(remedies)
    }

    /// The plan of an application, if it meets its constraints.
    fn remedy(&self, opened: &Opened, options: &[&str], means: String) -> Result<Option<Remedy>, Error> {
        if self.watch.is_over() {
            return Ok(None);
        }
        // Storage model `edges` has no streamed weights, for instance.
        let Ok(application) = opened.resolve() else { return Ok(None) };
        let Planned { plan, refused, .. } = (self.plan)(&application)?;
        let is_found = plan.constraints.met && refused.is_none();
        let options = options.iter().map(|word| (*word).to_owned()).collect();
        // Only the limit on memory may differ from what was asked.
        let met = match self.opened.spec.constraints.memory {
            Some(MemoryGoal::Bytes(limit)) => plan.memory.total <= limit,
            _ => true,
        };
        Ok(is_found.then(|| Remedy { means, options, total: plan.memory.total, fps: fps(&plan), met }))
    }
}

/// The nearest plan itself, if it only lacks speed.
fn slower(nearest: &Plan) -> Option<Remedy> {
    let asked = &nearest.constraints;
    let fits = asked.memory.is_none_or(|limit| nearest.memory.total <= limit)
        && asked.flash.is_none_or(|limit| nearest.memory.parameters_stored <= limit)
        && nearest.regions.iter().all(|region| region.taken() <= region.limit);
    if !fits {
        return None;
    }
    let cnn = |name: &String| nearest.cnns.iter().find(|cnn| cnn.name == *name);
    // The only CNN needs no name.
    let of = |name: &String, value: String| match nearest.cnns.len() {
        1 => value,
        _ => format!("{name}={value}"),
    };
    let floors = asked.fps.iter().filter_map(|(name, fps)| {
        let fps = rounded_down(cnn(name)?.fps).min(*fps);
        Some(["--fps".to_owned(), of(name, fps.to_string())])
    });
    let limits = asked.latency_ns.iter().filter_map(|(name, ns)| {
        let ns = (*ns).max(cnn(name)?.latency_ns);
        Some(["--latency".to_owned(), of(name, format!("{ns}ns"))])
    });
    Some(Remedy {
        means: "slower".into(),
        options: floors.chain(limits).flatten().collect(),
        total: nearest.memory.total,
        fps: fps(nearest),
        met: false,
    })
}

/// A number of at most four digits that is no more.
fn rounded_down(fps: f64) -> f64 {
    let unit = 10f64.powf(fps.log10().floor() - 3.0);
    let digits = (fps / unit).floor() * unit;
    format!("{digits:.3e}").parse().ok().filter(|rounded| *rounded <= fps).unwrap_or(fps)
}

fn fps(plan: &Plan) -> BTreeMap<String, f64> {
    plan.cnns.iter().map(|cnn| (cnn.name.clone(), cnn.fps)).collect()
}

#[cfg(test)]
mod tests {
    use super::rounded_down;

    #[test]
    fn rates_are_rounded_down() {
        for (fps, rounded) in
            [(11_413.47, 11_410.0), (23.8, 23.8), (23.799_99, 23.79), (0.012_345, 0.01234), (1.0, 1.0)]
        {
            assert!((rounded_down(fps) - rounded).abs() < 1e-9 * rounded, "{fps}");
            assert!(rounded_down(fps) <= fps, "{fps}");
        }
    }
}
