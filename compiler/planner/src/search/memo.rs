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

use std::sync::{Mutex, PoisonError};

use csdfc_input::app::resolve::Application;
use csdfc_input::app::spec::Prefer;
use csdfc_input::device::DeviceProfile;

use super::budget::{Budget, Stopped};
use super::simple::DesignFront;
use super::start::Start;
use crate::strategy::Strategy;

/// What the design points that a search finds depend on.
#[derive(Debug, PartialEq)]
pub struct Question {
    /// The application, without all that only concerns which design point is chosen, and without the numbers of its
    /// parameters.
    application: Application,
    device: DeviceProfile,
    start: Start,
    budget: Budget,
    without: Vec<Strategy>,
}

impl Question {
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
        Question {
            application,
            device: device.clone(),
            start: start.clone(),
            budget,
            without: without.to_vec(),
        }
    }
}

/// The design points that searches found for each CNN. If two are made at the same time, both are made.
#[derive(Debug, Default)]
pub struct Memo(Mutex<Vec<(Question, Vec<DesignFront>)>>);

impl Memo {
    /// The design points that answer a question: those that are remembered, or else those that the search finds now. A
    /// search that was cut short is not remembered.
    ///
    /// # Errors
    /// That of the search.
    pub fn remembered<E>(
        &self,
        question: Question,
        search: impl FnOnce() -> Result<Vec<DesignFront>, E>,
    ) -> Result<Vec<DesignFront>, E> {
        let known = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, fronts)) = known().iter().find(|(asked, _)| *asked == question) {
            return Ok(fronts.clone());
        }
        let fronts = search()?;
        if fronts.iter().all(|front| front.stopped <= Stopped::Evaluations) {
            known().push((question, fronts.clone()));
        }
        Ok(fronts)
    }

    /// How many searches are remembered.
    pub fn searches(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).len()
    }
}
