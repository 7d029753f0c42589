//! Searches that were made, so that none is made twice.
//!
//! To plan an application, csdfc searches for it with its weights in memory, with streamed weights, and with weights that
//! are read again. To say what it would take if no plan fits, it asks for the least memory in each of these ways. Only
//! which design point is chosen depends on the limit of memory, so the design points are the same ones.
//!
//! ```
//! use std::path::Path;
//!
//! use csdfc_input::device::DeviceProfile;
//! use csdfc_planner::driver;
//! use csdfc_planner::open::open;
//! use csdfc_planner::search::memo::Memo;
//! use csdfc_planner::search::start::Start;
//! use csdfc_planner::search::watch::Watch;
//!
//! let mut opened = open("builtin:resnet8")?;
//! let device = DeviceProfile::find("generic", Path::new(""))?;
//! let memo = Memo::default();
//! let mut evaluations = Vec::new();
//! for limit in ["400kB", "390kB"] {
//!     opened.spec.constraints.memory = Some(limit.parse()?);
//!     let (application, paths) = (opened.resolve()?, vec!["builtin:resnet8".into()]);
//!     let watch = Watch { memo: Some(&memo), ..Watch::unwatched() };
//!     let plan = driver::plan_from(&Start::default(), &application, &device, paths, &watch, &driver::validate)?.plan;
//!     evaluations.push(plan.search.evaluations);
//! }
//!
//! // The second plan states the search that was made for the first.
//! assert_eq!(evaluations[0], evaluations[1]);
//! assert_eq!(memo.searches(), 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::sync::{Mutex, MutexGuard, PoisonError};

use csdfc_input::app::resolve::Application;
use csdfc_input::app::spec::Prefer;
use csdfc_input::device::DeviceProfile;

use super::budget::{Budget, Stopped};
use super::simple::DesignFront;
use super::start::Start;
use crate::strategy::Strategy;

/// What the design points that a search finds depend on.
#[derive(Debug, PartialEq)]
pub struct Key {
    /// The application, without all that only concerns which design point is chosen, and without the numbers of its
    /// parameters.
    application: Application,
    device: DeviceProfile,
    start: Start,
    budget: Budget,
    without: Vec<Strategy>,
}

impl Key {
    /// What a search for this application depends on.
    pub fn new(
        application: &Application,
        device: &DeviceProfile,
        start: &Start,
        budget: Budget,
        without: &[Strategy],
    ) -> Self {
        let mut application = application.clone();
        (application.constraints.memory, application.constraints.flash) = (None, None);
        (application.prefer, application.may_be_streamed) = (Prefer::default(), None);
        for cnn in &mut application.cnns {
            let parameters = cnn.network.layers.iter_mut().flat_map(|layer| &mut layer.parameters);
            parameters.for_each(|weights| *weights = weights.without_values());
        }
        Key { application, device: device.clone(), start: start.clone(), budget, without: without.to_vec() }
    }
}

/// The design points that searches found for each CNN. If two are made at the same time, both are made.
#[derive(Debug, Default)]
pub struct Memo(Mutex<Vec<(Key, Vec<DesignFront>)>>);

impl Memo {
    /// The design points that a search with this key finds: those that are remembered, or else those that it finds now.
    /// A search that was cut short is not remembered.
    ///
    /// # Errors
    /// That of the search.
    pub fn get_or_search<E>(
        &self,
        key: Key,
        search: impl FnOnce() -> Result<Vec<DesignFront>, E>,
    ) -> Result<Vec<DesignFront>, E> {
        if let Some((_, fronts)) = self.known().iter().find(|(known, _)| *known == key) {
            return Ok(fronts.clone());
        }
        let fronts = search()?;
        if fronts.iter().all(|front| front.stopped <= Stopped::Evaluations) {
            self.known().push((key, fronts.clone()));
        }
        Ok(fronts)
    }

    /// How many searches are remembered.
    pub fn searches(&self) -> usize {
        self.known().len()
    }

    fn known(&self) -> MutexGuard<'_, Vec<(Key, Vec<DesignFront>)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::open::open;

    /// A search that ended by itself is made once; one that was cut short is made again.
    #[test]
    fn searches_that_were_cut_short_are_made_again() {
        let application = open("builtin:lenet5").unwrap().resolve().unwrap();
        let device = DeviceProfile::find("generic", Path::new("")).unwrap();
        for (stopped, made) in
            [(Stopped::Complete, 1), (Stopped::Evaluations, 1), (Stopped::Time, 3), (Stopped::Asked, 3)]
        {
            let (memo, mut searches) = (Memo::default(), 0);
            for _ in 0..3 {
                let key = Key::new(&application, &device, &Start::default(), Budget::Default, &[]);
                let found = memo.get_or_search(key, || -> Result<_, ()> {
                    searches += 1;
                    Ok(vec![DesignFront { design_points: Vec::new(), evaluations: 7, stopped }])
                });
                assert_eq!(found.unwrap()[0].evaluations, 7);
            }
            assert_eq!(searches, made, "{stopped:?}");
        }
    }
}
