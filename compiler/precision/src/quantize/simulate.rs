//! A network that runs on frames, whole tensors at a time.

use std::path::Path;

use csdfc_input::app::resolve::{Application, RowsChoice};
use csdfc_input::device::DeviceProfile;
use csdfc_network::pass::{self, Fusion};
use csdfc_network::{Layer, Network};
use csdfc_plan::plan::Plan;
use csdfc_planner::driver;
use csdfc_runtime::run::{Data, Runner, Value};

use crate::error::Error;

/// A network and a plan of it without parts.
pub(crate) struct Simulation {
    network: Network,
    plan: Plan,
}

impl Simulation {
    /// Plans a network. Layers keep the names of their tensors, unless they become integers.
    pub fn new(network: Network) -> Result<Self, Error> {
        Simulation::of_normalised(pass::normalise(network, Fusion::None))
    }

    /// Plans a network whose layers are to stay as they are.
    pub fn of_normalised(network: Network) -> Result<Self, Error> {
        let application = Application::of_network("model", network, RowsChoice::None);
        let generic = DeviceProfile::find("generic", Path::new(""))?;
        let plan = driver::plan(&application, &generic, vec!["model".into()])?.plan;
        let network = application.cnns.into_iter().map(|cnn| cnn.network).next().unwrap_or_default();
        Ok(Simulation { network, plan })
    }

    /// Packs weights and allocates memory.
    pub fn runner(&self) -> Result<Runner<'_>, Error> {
        let parameters = |_: usize, layer: usize, parameter: usize| self.network.parameter(layer, parameter);
        Ok(Runner::new(&self.plan, &parameters)?)
    }

    /// Runs a frame. For each layer, it tells the numbers that its tensor stands for, the inputs first.
    pub fn frame(
        &self,
        runner: &mut Runner<'_>,
        inputs: &[Value],
        observe: &mut dyn FnMut(&Layer, &[f32]),
    ) -> Result<Vec<Value>, Error> {
        let seats = self.network.layers.iter().filter(|layer| layer.is_input());
        for (layer, value) in seats.zip(inputs) {
            if let Data::F32(values) = &value.data {
                observe(layer, values);
            }
        }
        let outputs = runner.infer_observed(0, inputs, &mut |fired| {
            let layer = &self.network.layers[fired.layer];
            if !layer.is_input()
                && let Some(value) = fired.tensor()
            {
                numbers(layer, &value).iter().for_each(|values| observe(layer, values));
            }
        })?;
        Ok(outputs)
    }
}

/// The numbers of a tensor; nothing of indices.
fn numbers(layer: &Layer, value: &Value) -> Option<Vec<f32>> {
    match (&value.data, layer.quantization) {
        (Data::F32(values), _) => Some(values.clone()),
        (Data::U8(values), Some(quantization)) => {
            Some(values.iter().map(|q| quantization.number(*q)).collect())
        }
        _ => None,
    }
}
