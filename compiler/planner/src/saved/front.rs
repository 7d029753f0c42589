//! Fronts as files: the plans that a search saw, saved together with the plan that it chose, and read again to start
//! from.
//!
//! For each CNN, a saved front states the model for which it was found, and the number of its layers. Its choices are
//! [codes](crate::search::code). A code depends on the order of layers, so the front also states that order. A plan
//! states all this too, and can be read as a front.
//!
//! ```
//! use std::path::Path;
//!
//! use csdfc_input::device::DeviceProfile;
//! use csdfc_planner::driver;
//! use csdfc_planner::open::open;
//! use csdfc_planner::saved::front::SavedFront;
//!
//! let application = open("builtin:lenet5")?.resolve()?;
//! let device = DeviceProfile::find("generic", Path::new(""))?;
//! let plan = driver::plan(&application, &device, vec!["builtin:lenet5".into()])?.plan;
//!
//! let text = serde_json::to_string(&SavedFront::new(&plan))?;
//! let front = SavedFront::parse(&text, "front.json")?;
//! // The choices of its first plan, one for each CNN: rows per firing of every layer.
//! let choices = front.pick(1, &application)?;
//! assert_eq!(choices[0].rows.len(), application.cnns[0].network.layers.len());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::collections::{BTreeMap, BTreeSet};

use csdfc_input::app::resolve::{Application, Cnn, Streamed};
use csdfc_input::app::spec::Primitives;
use csdfc_input::units::MemoryGoal;
use csdfc_network::suggest::{self, clip};
use csdfc_plan::operator::Operator;
use csdfc_plan::plan::{self, Device, Model, ParetoPoint, Plan, StorageModel};
use csdfc_plan::shape::Shape;
use csdfc_runtime::bind::Primitive;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::error::Error;
use crate::frame::choice::Choice;
use crate::search::code;
use crate::selection;

/// The version of the file format.
pub const FORMAT: &str = "csdfc-front/1";

/// A saved front.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SavedFront {
    /// [`FORMAT`].
    pub format: String,
    /// Version of csdfc that found it.
    pub csdfc: String,
    /// Name of the application.
    pub application: String,
    /// The device whose costs the frame rates are modelled on.
    pub device: Device,
    /// How storage is shared.
    pub storage_model: StorageModel,
    /// The CNNs.
    pub cnns: Vec<SavedCnn>,
    /// The choice of the chosen plan, by CNN.
    pub chosen: BTreeMap<String, String>,
    /// The front of the plans seen: none of them is worse than another in both memory and frame rates. Sorted by
    /// falling memory.
    pub pareto: Vec<ParetoPoint>,
}

/// A CNN of a saved front.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SavedCnn {
    /// Its name in the application.
    pub name: String,
    /// The model that it was read from; the path is from the folder of the plan.
    pub model: Model,
    /// Its layers.
    pub layers: usize,
    /// Identifies the layers and their order: the start of the SHA-256 of their names, a line for each.
    pub order: String,
    /// The primitives of layers, by layer, unless it is the first one that computes the layer.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub primitives: BTreeMap<String, String>,
    /// How often a frame reads the weights of each layer whose weights are streamed, by layer.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub streamed: BTreeMap<String, Reads>,
}

/// How often a frame reads the streamed weights of a layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Reads {
    /// Once.
    Once,
    /// At each firing.
    Again,
}

/// Why a saved front, or a part of it, does not apply to an application.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Mismatch {
    /// It has no CNN of this name.
    #[error("it has no CNN `{cnn}`; {help}")]
    Cnn {
        /// The CNN that the application has.
        cnn: String,
        /// Those that the front has.
        help: String,
    },
    /// The model has changed.
    #[error("it was made from another model of CNN `{cnn}`: the file of the model has changed since")]
    Model {
        /// The CNN.
        cnn: String,
    },
    /// The model has other layers, as with other options.
    #[error(
        "it has {stated} layers of CNN `{cnn}`, and there are {layers} now: the number depends on the storage model and `--no-fuse`"
    )]
    Layers {
        /// The CNN.
        cnn: String,
        /// Layers that the front is of.
        stated: usize,
        /// Layers of the network.
        layers: usize,
    },
    /// The layers come in another order, as with other partitions or another storage model.
    #[error(
        "it has the layers of CNN `{cnn}` in another order, which depends on partitions and the storage model"
    )]
    Order {
        /// The CNN.
        cnn: String,
    },
    /// A choice cannot be read.
    #[error("{plan}, CNN `{cnn}`: {error}")]
    Code {
        /// The plan: `plan 3`, or the one that was chosen.
        plan: String,
        /// The CNN.
        cnn: String,
        /// What is wrong.
        error: String,
    },
}

impl SavedFront {
    /// The front of a plan.
    pub fn new(plan: &Plan) -> Self {
        let cnn = |cnn: &plan::Cnn| SavedCnn {
            name: cnn.name.clone(),
            model: cnn.model.clone(),
            layers: cnn.layers.len(),
            order: order(cnn.layers.iter().map(|layer| layer.name.as_str())),
            primitives: primitives(plan, cnn),
            streamed: cnn
                .layers
                .iter()
                .filter_map(|layer| Some((layer.name.clone(), reads(layer)?)))
                .collect(),
        };
        SavedFront {
            format: FORMAT.into(),
            csdfc: plan.csdfc.clone(),
            application: plan.application.clone(),
            device: plan.device.clone(),
            storage_model: plan.storage_model,
            cnns: plan.cnns.iter().map(cnn).collect(),
            chosen: plan.search.choices.clone(),
            pareto: plan.pareto.clone(),
        }
    }

    /// Reads a saved front or a plan. `name` is the file's name in messages.
    ///
    /// # Errors
    /// Where and why the text is neither.
    pub fn parse(text: &str, name: &str) -> Result<Self, Error> {
        let wrong = |message: String| Error::Input {
            message: format!("{name}: {message}"),
            help: Some("give a front that `csdfc plan --pareto FILE.json` wrote, or a plan".into()),
        };
        #[derive(Deserialize)]
        struct Versioned {
            format: String,
        }
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        match serde_json::from_str::<Versioned>(text) {
            Ok(Versioned { format }) if format == FORMAT => {
                serde_json::from_str(text).map_err(|error| wrong(error.to_string()))
            }
            Ok(Versioned { format }) if !plan::FORMATS.contains(&format.as_str()) => Err(wrong(format!(
                "its format is `{}`, neither `{FORMAT}` nor `{}`",
                clip(&format),
                plan::FORMAT
            ))),
            // It is a plan in JSON or RON, or neither. The reader of plans says what is wrong.
            _ => {
                Plan::parse(text).map(|plan| SavedFront::new(&plan)).map_err(|error| wrong(error.to_string()))
            }
        }
    }

    /// The choices of the plan that was chosen and of all plans of the front, one for each CNN of an application in
    /// turn. A choice that does not apply is `None`. Also returns why choices do not apply.
    pub fn choices_for(&self, application: &Application) -> (Vec<Vec<Option<Choice>>>, Vec<Mismatch>) {
        let mut mismatches = Vec::new();
        let saved: Vec<bool> = application
            .cnns
            .iter()
            .map(|cnn| self.applies(cnn).map_err(|mismatch| mismatches.push(mismatch)).is_ok())
            .collect();
        let mut plans = Vec::new();
        let all = std::iter::once(&self.chosen).chain(self.pareto.iter().map(|point| &point.choices));
        for (number, choices) in all.enumerate() {
            let mut choice = |(cnn, applies): (&Cnn, &bool)| {
                let text = applies.then(|| choices.get(&cnn.name)).flatten()?;
                read(number, cnn, text).map_err(|mismatch| mismatches.push(mismatch)).ok()
            };
            let plan: Vec<Option<Choice>> = application.cnns.iter().zip(&saved).map(&mut choice).collect();
            if plan.iter().any(Option::is_some) && !plans.contains(&plan) {
                plans.push(plan);
            }
        }
        (plans, mismatches)
    }

    /// The choices of plan `number`, from 1, one for each CNN of an application.
    ///
    /// # Errors
    /// When there is no such plan, or it does not apply.
    pub fn pick(&self, number: usize, application: &Application) -> Result<Vec<Choice>, PickError> {
        let plans = self.pareto.len();
        let point = number.checked_sub(1).and_then(|index| self.pareto.get(index));
        let point = point.ok_or(PickError::Number { number, plans })?;
        let choice = |cnn: &Cnn| {
            self.applies(cnn)?;
            let text = point.choices.get(&cnn.name).map_or("", String::as_str);
            read(number, cnn, text)
        };
        Ok(application.cnns.iter().map(choice).collect::<Result<_, _>>()?)
    }

    /// The application as plan `number`, from 1, was made from it: with the primitives of the front's plans, with the
    /// conversions that they need, and with the weights that they stream. If there are such weights, the plan gets no more
    /// memory than it took, since it would use the rest for larger blocks and earlier loads.
    pub fn application_for(&self, number: usize, mut application: Application) -> Application {
        for cnn in &mut application.cnns {
            let saved = self.cnns.iter().find(|saved| saved.name == cnn.name);
            for layer in &mut cnn.network.layers {
                let name = saved.and_then(|saved| saved.primitives.get(&layer.name));
                let inputs: Vec<&Shape> = layer.inputs.iter().map(|operand| &operand.shape).collect();
                let suits = |primitive: &Primitive| {
                    primitive.computes(&layer.operator, &inputs)
                        && primitive.elements() == layer.primitive().elements()
                };
                if let Some(chosen) = name.and_then(|name| Primitive::find(name)).filter(suits) {
                    layer.primitive = Some(chosen);
                }
            }
            *cnn = selection::legalised(cnn.clone());
        }
        application.primitives = Primitives::Fixed;
        application.may_be_streamed = None;
        application.streamed = self.streamed(&application);
        let point = number.checked_sub(1).and_then(|index| self.pareto.get(index));
        if let (Some(_), Some(point)) = (&application.streamed, point) {
            let asked = match application.constraints.memory {
                Some(MemoryGoal::Bytes(asked)) => asked,
                Some(MemoryGoal::Min) | None => u64::MAX,
            };
            application.constraints.memory = Some(MemoryGoal::Bytes(asked.min(point.memory)));
        }
        application
    }

    /// Which weights of an application the front's plans stream; `None` if all are in memory.
    fn streamed(&self, application: &Application) -> Option<Streamed> {
        let of = |cnn: &Cnn| self.cnns.iter().find(|saved| saved.name == cnn.name);
        if !application.cnns.iter().filter_map(of).any(|saved| !saved.streamed.is_empty()) {
            return None;
        }
        let named = |is_meant: &dyn Fn(Option<Reads>) -> bool| -> BTreeSet<(usize, String)> {
            let layers = application.cnns.iter().enumerate().flat_map(|(index, cnn)| {
                cnn.network.layers.iter().map(move |layer| (index, cnn, layer.name.clone()))
            });
            let reads =
                |cnn: &Cnn, name: &String| of(cnn).and_then(|saved| saved.streamed.get(name)).copied();
            let meant = layers.filter(|(_, cnn, name)| is_meant(reads(cnn, name)));
            meant.map(|(index, _, name)| (index, name)).collect()
        };
        Some(Streamed {
            resident: named(&|reads| reads.is_none()),
            again: named(&|reads| reads == Some(Reads::Again)),
        })
    }

    /// Whether the choices for a CNN are for this one.
    fn applies(&self, cnn: &Cnn) -> Result<(), Mismatch> {
        let name = cnn.name.clone();
        let Some(saved) = self.cnns.iter().find(|saved| saved.name == name) else {
            let names = self.cnns.iter().map(|saved| saved.name.as_str());
            return Err(Mismatch::Cnn { help: suggest::help(&name, "its CNNs are", names), cnn: name });
        };
        let layers = cnn.network.layers.len();
        if (saved.model.bytes, &saved.model.sha256) != (cnn.model.bytes, &cnn.model.sha256) {
            return Err(Mismatch::Model { cnn: name });
        }
        if saved.layers != layers {
            return Err(Mismatch::Layers { cnn: name, stated: saved.layers, layers });
        }
        if saved.order != order(cnn.network.layers.iter().map(|layer| layer.name.as_str())) {
            return Err(Mismatch::Order { cnn: name });
        }
        Ok(())
    }
}

/// How often a frame reads a layer's weights, if they are streamed.
fn reads(layer: &plan::Layer) -> Option<Reads> {
    match layer.times_read() {
        0 => None,
        1 => Some(Reads::Once),
        _ => Some(Reads::Again),
    }
}

fn order<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let mut hash = Sha256::new();
    names.for_each(|name| hash.update(format!("{name}\n")));
    hash.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

/// The primitives of a CNN's layers that are not the first that computes them, by layer.
fn primitives(plan: &Plan, cnn: &plan::Cnn) -> BTreeMap<String, String> {
    let shape = |name: &String| {
        let tensor = plan.tensors.iter().find(|tensor| tensor.cnn == cnn.name && tensor.name == *name);
        tensor.map(|tensor| &tensor.shape)
    };
    let other = |layer: &&plan::Layer| {
        let seen = layer.inputs.iter().map(|input| input.view.as_ref().or_else(|| shape(&input.tensor)));
        let seen: Option<Vec<&Shape>> = seen.collect();
        seen.is_some_and(|seen| Primitive::new(&layer.operator, &seen).name() != layer.primitive)
    };
    // Conversions follow from the primitives of the other layers.
    let is_own = |layer: &&plan::Layer| !matches!(layer.operator, Operator::Input(_) | Operator::Convert);
    let others = cnn.layers.iter().filter(is_own).filter(other);
    others.map(|layer| (layer.name.clone(), layer.primitive.clone())).collect()
}

/// The choice of plan `number`, or 0 for the one that was chosen, for a CNN.
fn read(number: usize, cnn: &Cnn, text: &str) -> Result<Choice, Mismatch> {
    code::read(text, &cnn.network).map_err(|error| Mismatch::Code {
        plan: if number == 0 { "the plan that was chosen".into() } else { format!("plan {number}") },
        cnn: cnn.name.clone(),
        error: error.to_string(),
    })
}

/// Why a plan of a saved front cannot be picked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PickError {
    /// There is no plan of this number.
    #[error("there is no plan {number}: its plans are 1 to {plans}")]
    Number {
        /// The number asked for.
        number: usize,
        /// Plans that there are.
        plans: usize,
    },
    /// It is of another application.
    #[error(transparent)]
    Mismatch(#[from] Mismatch),
}
