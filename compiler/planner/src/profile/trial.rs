//! A network that runs, and the time of each of its layers.

use std::path::Path;
use std::time::Instant;

use csdfc_input::app::resolve::{Application, Cnn, RowsChoice};
use csdfc_input::device::DeviceProfile;
use csdfc_network::{Layer, Network};
use csdfc_plan::operator::{Input, InputElement, Operator};
use csdfc_plan::plan::Plan;
use csdfc_plan::shape::Shape;
use csdfc_runtime::run::{Data, Runner, Value, input_dims};

use super::frames::{Frames, frames};
use crate::driver;
use crate::error::Error;

/// A network and a plan of it.
pub(super) struct Planned {
    network: Network,
    plan: Plan,
}

/// A planned network, ready to run.
pub(super) struct Trial<'p> {
    planned: &'p Planned,
    runner: Runner<'p>,
    inputs: Vec<Value>,
}

impl Planned {
    /// The plan.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The layers of the network but for inputs, each with its name in the plan and its rows per firing.
    pub fn layers(&self) -> impl Iterator<Item = (&Layer, &str, u64)> {
        let layers = self.network.layers.iter().zip(&self.plan.cnns[0].layers);
        let layers = layers.filter(|(layer, _)| !layer.is_input());
        layers.map(|(layer, planned)| (layer, planned.name.as_str(), planned.rows_per_firing))
    }
}

impl<'p> Trial<'p> {
    /// Plans a network by itself, on one processor, without a limit of memory. Everything else is as the application
    /// states it for the CNN.
    pub fn plan(
        application: &Application,
        cnn: usize,
        network: Network,
        rows: RowsChoice,
        threads: usize,
    ) -> Result<Planned, Error> {
        let Cnn { name, model, .. } = &application.cnns[cnn];
        let alone = Application {
            device: application.device.clone(),
            fusion: application.fusion,
            threads,
            max_primitive_error: application.max_primitive_error,
            ..Application::of_network(name, network, rows)
        };
        let planned =
            driver::plan(&alone, &DeviceProfile::find("generic", Path::new(""))?, vec![model.name.clone()])?;
        let network = alone.cnns.into_iter().map(|cnn| cnn.network).next().unwrap_or_default();
        Ok(Planned { network, plan: planned.plan })
    }

    /// Packs the weights of a network and allocates its memory.
    pub fn new(planned: &'p Planned) -> Result<Self, Error> {
        let Planned { network, plan } = planned;
        let parameters = |_: usize, layer: usize, parameter: usize| network.parameter(layer, parameter);
        let runner = Runner::new(plan, &parameters)?;
        let input = |name: &String| {
            let layer = network.layers.iter().find(|layer| layer.name == *name)?;
            let Operator::Input(input) = &layer.operator else { return None };
            Some(value(input, &layer.shape))
        };
        let inputs = plan.cnns[0].inputs.iter().filter_map(input).collect();
        Ok(Trial { planned, runner, inputs })
    }

    /// Runs some frames.
    pub fn frames(&mut self) -> Result<Frames, Error> {
        frames(|| self.frame())
    }

    /// The layers of a network, each with its rows per firing and its time.
    pub fn layers(&self, frames: &Frames) -> Vec<(&'p Layer, u64, f64)> {
        let Planned { network, plan } = self.planned;
        let layers = network.layers.iter().zip(&plan.cnns[0].layers).zip(&frames.least);
        let layers = layers.filter(|((layer, _), ns)| !layer.is_input() && **ns > 0.0);
        layers.map(|((layer, planned), ns)| (layer, planned.rows_per_firing, *ns)).collect()
    }

    /// Runs a frame. Returns the nanoseconds of each layer.
    fn frame(&mut self) -> Result<Vec<f64>, Error> {
        let mut times = vec![0.0; self.planned.network.layers.len()];
        let mut last = Instant::now();
        self.runner.infer_observed(0, &self.inputs, &mut |fired| {
            let now = Instant::now();
            times[fired.layer] += (now - last).as_nanos() as f64;
            last = now;
        })?;
        Ok(times)
    }
}

/// Some values between -1 and 1, or bytes.
fn value(input: &Input, shape: &Shape) -> Value {
    let bytes = (0..shape.elements()).map(|i| (i * 37 % 251) as u8);
    let data = match input.element {
        InputElement::F32 => Data::F32(bytes.map(|byte| f32::from(byte) / 128.0 - 1.0).collect()),
        InputElement::U8 => Data::U8(bytes.collect()),
        InputElement::I8 => Data::I8(bytes.map(u8::cast_signed).collect()),
    };
    Value { dims: input_dims(input, shape), data }
}
