//! The error of a CNN at given precisions.

use std::collections::BTreeMap;

use csdfc_input::app::resolve::Application;
use csdfc_network::Network;
use csdfc_network::pass;
use csdfc_network::pass::Precision;
use csdfc_plan::format::Element;
use csdfc_plan::operator::Operator;
use csdfc_plan::plan::Plan;
use csdfc_runtime::ParameterError;
use csdfc_runtime::run::{Data, Runner, Value};

use super::{Accuracy, Calibration};
use crate::error::Error;
use crate::quantize::frames;
use crate::quantize::measure::Squares;
use crate::quantize::simulate::Simulation;

/// A CNN with open precisions.
pub(super) struct OpenCnn {
    /// Its place in the application.
    pub cnn: usize,
    pub name: String,
    /// Its network, as loaded from the model.
    pub network: Network,
    /// The precision of each layer, as the application states it.
    pub stated: Vec<Precision>,
    pub allowance: f64,
    calibration: Calibration,
    /// Its outputs with floats of 32 bits, of each frame.
    exact: Vec<Vec<Value>>,
}

impl OpenCnn {
    /// Runs the CNN with floats of 32 bits.
    pub fn new(
        (cnn, name): (usize, &str),
        network: Network,
        stated: Vec<Precision>,
        calibration: Calibration,
        allowance: f64,
    ) -> Result<Self, Error> {
        frames::check(&network, &calibration.frames)?;
        let exact = outputs(&network, &vec![Precision::Fp32; stated.len()], &calibration.frames)?;
        for (number, outputs) in (1..).zip(&exact) {
            for (output, value) in network.outputs.iter().zip(outputs) {
                if let Data::F32(values) = &value.data
                    && let Some(odd) = values.iter().find(|value| !value.is_finite())
                {
                    return Err(Error::InfiniteOutput {
                        cnn: name.into(),
                        output: output.name.clone(),
                        frame: number,
                        value: *odd,
                    });
                }
            }
        }
        let open = OpenCnn { cnn, name: name.into(), network, stated, allowance, calibration, exact };
        if open.stated.iter().any(|precision| !matches!(precision, Precision::Auto | Precision::Fp32)) {
            let error = open.error(&open.stated, open.frames())?;
            if error > allowance {
                return Err(Error::StatedPrecisions { cnn: name.into(), error, allowance });
            }
        }
        Ok(open)
    }

    /// How many frames there are.
    pub fn frames(&self) -> usize {
        self.exact.len()
    }

    /// Its error with layers of these precisions, on this many of the frames.
    pub fn error(&self, precisions: &[Precision], frames: usize) -> Result<f64, Error> {
        let frames = frames.min(self.frames());
        let got = outputs(&self.network, precisions, &self.calibration.frames[..frames])?;
        Ok(worst(&self.exact, &got))
    }

    /// Its error in a plan of the application.
    pub fn error_in(&self, runner: &mut Runner<'_>) -> Result<f64, Error> {
        let outputs = |frame: &Vec<Value>| Ok(runner.infer(self.cnn, frame)?);
        let got: Vec<Vec<Value>> =
            self.calibration.frames.iter().map(outputs).collect::<Result<_, Error>>()?;
        Ok(worst(&self.exact, &got))
    }

    /// The error, with the precisions that the layers of this network have.
    pub fn accuracy(&self, error: f64, network: &Network) -> Accuracy {
        Accuracy {
            cnn: self.name.clone(),
            allowance: self.allowance,
            error,
            frames: self.frames(),
            is_random: self.calibration.is_random,
            layers: count(network),
        }
    }
}

/// Layers, without inputs and conversions, at each precision.
fn count(network: &Network) -> BTreeMap<&'static str, usize> {
    let mut layers = BTreeMap::new();
    let computed = network.layers.iter().filter(|layer| !layer.is_input());
    for layer in computed.filter(|layer| !matches!(layer.operator, Operator::Convert)) {
        let precision = match layer.format().element {
            _ if layer.primitive().is_mixed() => "mixed",
            Element::F16 => "half",
            Element::F32 => "fp32",
            _ => "int8",
        };
        *layers.entry(precision).or_default() += 1;
    }
    layers
}

/// The outputs of a network whose layers are of these precisions.
fn outputs(
    network: &Network,
    precisions: &[Precision],
    frames: &[Vec<Value>],
) -> Result<Vec<Vec<Value>>, Error> {
    let simulation = Simulation::of_normalised(pass::in_precisions(network.clone(), precisions))?;
    let mut runner = simulation.runner()?;
    frames.iter().map(|frame| Ok(runner.infer(0, frame)?)).collect()
}

/// Packs the weights of a plan of the application.
pub(super) fn runner<'p>(plan: &'p Plan, application: &Application) -> Result<Runner<'p>, Error> {
    let parameters = |cnn: usize, layer: usize, parameter: usize| {
        // A plan may have conversions that the application lacks. They have no parameters.
        let (network, name) = (&application.cnns[cnn].network, &plan.cnns[cnn].layers[layer].name);
        let id = network.find(name).ok_or_else(|| ParameterError::NoLayer { name: name.clone() })?;
        network.parameter(id.0, parameter)
    };
    Ok(Runner::new(plan, &parameters)?)
}

/// The largest error of all outputs of all these frames.
fn worst(exact: &[Vec<Value>], got: &[Vec<Value>]) -> f64 {
    let pairs = exact.iter().zip(got).flat_map(|(exact, got)| exact.iter().zip(got));
    pairs.map(|(exact, got)| error(exact, got)).fold(0.0, f64::max)
}

/// The error of an output.
fn error(exact: &Value, got: &Value) -> f64 {
    let changed = |changed: usize, all: usize| (changed as f64 / all.max(1) as f64).sqrt();
    match (&exact.data, &got.data) {
        (Data::F32(exact), Data::F32(got)) => {
            // NaN or infinity counts as the largest error.
            if got.iter().any(|value| !value.is_finite()) {
                return 1.0;
            }
            let mut squares = Squares::default();
            squares.add(exact, got);
            squares.error()
        }
        (Data::I64(exact), Data::I64(got)) => {
            changed(exact.iter().zip(got).filter(|(exact, got)| exact != got).count(), exact.len())
        }
        (Data::U8(exact), Data::U8(got)) => {
            changed(exact.iter().zip(got).filter(|(exact, got)| exact != got).count(), exact.len())
        }
        _ => 1.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(data: Data) -> Value {
        Value { dims: vec![data.len()], data }
    }

    #[test]
    fn an_error_is_the_worst_of_any_output_of_any_frame() {
        let floats = |values: &[f32]| value(Data::F32(values.to_vec()));
        let indices = |values: &[i64]| value(Data::I64(values.to_vec()));
        let exact = vec![vec![floats(&[3.0, 4.0]), indices(&[1, 2, 3, 4])], vec![floats(&[0.0, 0.0])]];
        assert_eq!(worst(&exact, &exact), 0.0);
        let got = vec![vec![floats(&[3.0, 4.5]), indices(&[1, 2, 3, 4])]];
        assert!((worst(&exact, &got) - 0.1).abs() < 1e-12);
        let got = vec![vec![floats(&[3.0, 4.5]), indices(&[1, 2, 3, 0])]];
        assert!((worst(&exact, &got) - 0.5).abs() < 1e-12);
        for odd in [f32::NAN, f32::INFINITY, 1e-30] {
            let got = vec![exact[0].clone(), vec![floats(&[0.0, odd])]];
            assert_eq!(worst(&exact, &got), 1.0, "{odd}");
        }
    }
}
