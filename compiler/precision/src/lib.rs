//! The choice of a precision for each layer, under an allowance for the error of the outputs.
//!
//! ```
//! use csdfc_network::pass::Precision;
//! use csdfc_planner::search::watch::Watch;
//! use csdfc_planner::{driver, open};
//! use csdfc_precision::{Calibration, plan};
//! use csdfc_runtime::run::{Data, Value};
//!
//! let mut opened = open::open("builtin:lenet5")?;
//! opened.spec.cnns[0].precision = Precision::Auto;
//! opened.spec.constraints.memory = Some("150kB".parse()?);
//! let frame = vec![Value { dims: vec![1, 1, 32, 32], data: Data::F32(vec![0.5; 1024]) }];
//! let frames = |_: usize, _: &_| Ok(Calibration { frames: vec![frame.clone()], is_random: false });
//! let make = |application: &_, device: &_| driver::plan(application, device, vec!["builtin:lenet5".into()]);
//! let chosen = plan(&opened, &frames, &make, &Watch::unwatched(), &|_| ())?;
//! assert!(chosen.planned.plan.memory.total <= 150_000);
//! assert!(chosen.accuracies[0].is_within());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The error of an output is relative: the norm of its changes, divided by the norm of the output with 32-bit floats. For an output of indices, the error is the root of the share of
//! indices that changed. An error is never above 1. The error of a CNN is the largest over its outputs and over the
//! frames on which it is measured.
//!
//! 1. The application is planned with floats of 32 bits. If that meets the constraints, it is the answer.
//! 2. Each layer alone is measured at half and at mixed precision, all others with floats of 32 bits (`accuracy`). In a
//!    large network, several layers are measured together, and each counts with an equal share of the square of their error.
//! 3. A step takes one layer to a lower precision. All steps are put into one order: steps to half precision come
//!    first, then steps to mixed precision. Among each, the steps come first that save most for the square of the error
//!    that they add, since the squares of independent errors add up (`order`, `savings`).
//! 4. The first steps of each CNN are taken together and measured. Bisection finds the largest number of steps within
//!    the allowance. Steps that alone err by more than the allowance come after all others.
//! 5. csdfc takes the fewest steps whose plan meets the constraints or, if the smallest plan is asked for, the steps of
//!    that plan (`search`). It runs this plan and states its error.
//!
//! Weights are streamed only if no steps within the allowance meet the constraints without streaming.
//!
//! [`quantize`] makes a network of 8-bit integers, for which weights and ranges of tensors must be measured.

mod accuracy;
pub mod error;
pub mod explain;
mod order;
pub mod quantize;
mod savings;
mod search;

use std::cell::RefCell;
use std::collections::BTreeMap;

use csdfc_input::app::load::{self, Loaded};
use csdfc_input::app::precisions;
use csdfc_input::app::resolve::{Application, resolve};
use csdfc_input::app::spec::AppSpec;
use csdfc_input::device::DeviceProfile;
use csdfc_network::Network;
use csdfc_network::pass::Precision;
use csdfc_plan::part::ModelPart;
use csdfc_planner::driver::Planned;
use csdfc_planner::error::Error as PlannerError;
use csdfc_planner::open::Opened;
use csdfc_planner::search::watch::Watch;
use csdfc_runtime::run::Value;

use self::accuracy::OpenCnn;
use self::error::Error;
use self::search::{Candidate, Found, Search};

/// Frames that a CNN is measured on.
#[derive(Debug, Clone)]
pub struct Calibration {
    /// Values of the inputs, in the order of the network's.
    pub frames: Vec<Vec<Value>>,
    /// Whether they were drawn at random.
    pub is_random: bool,
}

/// Hands over the frames of the CNN with this index in the application.
pub type Frames<'a> = &'a dyn Fn(usize, &Network) -> Result<Calibration, PlannerError>;

/// Plans an application, whose precisions are chosen.
pub type Plan<'a> = &'a dyn Fn(&Application, &DeviceProfile) -> Result<Planned, PlannerError>;

/// How far the measurements of a CNN are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress<'a> {
    /// The CNN.
    pub cnn: &'a str,
    /// Measurements made.
    pub done: usize,
    /// Measurements in all.
    pub of: usize,
}

/// The most plans that [`plan`] makes: two for each bisection of two thousand steps, and a few more.
pub const PLANS: usize = 24;

/// An application whose precisions have been chosen.
#[derive(Debug)]
pub struct Chosen {
    /// The application.
    pub application: Application,
    /// Its device.
    pub device: DeviceProfile,
    /// Its plan, the nearest one if the constraints cannot be met.
    pub planned: Planned,
    /// The error of the plan, for each CNN whose precisions were open.
    pub accuracies: Vec<Accuracy>,
    /// If the plan does not meet the constraints: the allowances of CNNs with which they would be met, if there are
    /// any.
    pub sufficient: Option<Vec<Accuracy>>,
}

/// How much a CNN errs.
#[derive(Debug, Clone, PartialEq)]
pub struct Accuracy {
    /// The CNN.
    pub cnn: String,
    /// How much it may err.
    pub allowance: f64,
    /// How much it errs.
    pub error: f64,
    /// How many frames it was measured on.
    pub frames: usize,
    /// Whether these were drawn at random.
    pub is_random: bool,
    /// Layers, without inputs and conversions, at each precision that occurs.
    pub layers: BTreeMap<&'static str, usize>,
}

impl Accuracy {
    /// Whether the error is within the allowance.
    pub fn is_within(&self) -> bool {
        self.error <= self.allowance
    }
}

/// Plans an application with open precisions. Tells how far it is. When the watch is over, no more is measured, and the
/// best plan so far is the answer.
///
/// # Errors
/// When it cannot be read or planned, frames do not fit, a network cannot be run on them, or layers whose precision the
/// application states err by more than is allowed.
pub fn plan(
    opened: &Opened,
    frames: Frames<'_>,
    plan: Plan<'_>,
    watch: &Watch<'_>,
    tell: &dyn Fn(&Progress<'_>),
) -> Result<Chosen, Error> {
    let models = Models { opened, loaded: RefCell::default() };
    let base = models.resolve(&opened.spec)?;
    let device = DeviceProfile::find(&base.device, &opened.folder)?;
    let mut open = Vec::new();
    for (cnn, spec) in opened.spec.cnns.iter().enumerate().filter(|(_, spec)| spec.has_auto_precision()) {
        // Each measurement packs the weights.
        let network = models.network(cnn, &base).in_memory();
        let network = network.map_err(|(layer, error)| PlannerError::weights(&layer, &error))?;
        let calibration = frames(cnn, &network)?;
        let stated = precisions::of_layers(spec, &network);
        open.push(OpenCnn::new(
            (cnn, &base.cnns[cnn].name),
            network,
            stated,
            calibration,
            spec.accuracy.max_error,
        )?);
    }
    let mut search = Search::new(&models, &device, open, plan, watch, tell);
    let Found { candidate: Candidate { application, planned, .. }, accuracies, sufficient } =
        search.find(&base)?;
    Ok(Chosen { application, planned, accuracies, sufficient, device })
}

/// The models of an application, each loaded once.
struct Models<'a> {
    opened: &'a Opened,
    loaded: RefCell<Vec<(Model, Loaded)>>,
}

/// A model as the application names it, the shapes and values of its inputs, and the part that is planned.
type Model = (String, BTreeMap<String, Vec<usize>>, BTreeMap<String, f64>, ModelPart);

impl Models<'_> {
    fn resolve(&self, spec: &AppSpec) -> Result<Application, Error> {
        let mut load = |request: &load::ModelRequest<'_>| {
            let (model, part) = (request.model.to_owned(), request.part.clone());
            let model = (model, request.shapes.clone(), request.values.clone(), part);
            if let Some(loaded) = self.find(&model) {
                return Ok(loaded);
            }
            let loaded = load::load(request)?;
            self.loaded.borrow_mut().push((model, loaded.clone()));
            Ok(loaded)
        };
        Ok(resolve(spec, &self.opened.origin, &self.opened.folder, &mut load)?)
    }

    fn find(&self, model: &Model) -> Option<Loaded> {
        let loaded = self.loaded.borrow();
        loaded.iter().find(|(other, _)| other == model).map(|(_, loaded)| loaded.clone())
    }

    /// The network of a CNN as it was loaded, with the inputs that the application gives it.
    fn network(&self, cnn: usize, application: &Application) -> Network {
        let spec = &self.opened.spec.cnns[cnn];
        let model = (spec.model.clone(), spec.shapes.clone(), spec.values.clone(), spec.part.clone());
        let loaded = self.find(&model);
        let mut network = loaded.map(|loaded| loaded.network).unwrap_or_default();
        for layer in network.layers.iter_mut().filter(|layer| layer.is_input()) {
            let bound = &application.cnns[cnn].network;
            if let Some(id) = bound.find(&layer.name) {
                layer.operator = bound.layer(id).operator.clone();
            }
        }
        network
    }

    /// The application with these precisions of the layers of CNNs, by the place of the CNN.
    fn with_precisions(&self, chosen: &[(&OpenCnn, Vec<Precision>)]) -> Result<Application, Error> {
        let mut spec = self.opened.spec.clone();
        for (open, precisions) in chosen {
            let cnn = &mut spec.cnns[open.cnn];
            cnn.precision = Precision::Fp32;
            let names = open.network.layers.iter().map(|layer| layer.name.clone());
            cnn.precisions = names.zip(precisions.iter().copied()).collect();
        }
        self.resolve(&spec)
    }
}
