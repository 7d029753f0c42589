//! Post-training quantization: a network of floats becomes one of 8-bit integers between conversions, as a quantized ONNX
//! model states it, and as [`pass::normalise`] lets layers compute on them.
//!
//! 1. Constants go into filters. Channels are made alike in size if that leaves the function as it is (`equalise`).
//! 2. The network runs on the frames with floats, and the range of each tensor is found (`ranges`, `simulate`).
//! 3. The own error of each layer on integers is measured, from inputs without error (`measure`).
//! 4. Tensors, weights and biases become integers (`scheme`). Layers that err by more than is allowed stay with floats, and
//!    so do the insides of norms (`norms`).
//! 5. The result is measured against the network of floats.
//!
//! A tensor's integers have 8 bits without sign, one scale and one zero point. Weights have 8 bits with sign, no zero
//! point, and a scale for each output channel. A bias has 32 bits, and the scale of the products that it is added to.
//! Sums do not saturate, so weights use all 8 bits.
//!
//! ```
//! use csdfc_input::builtin;
//! use csdfc_precision::quantize::{Options, quantize};
//! use csdfc_runtime::run::{Data, Value};
//!
//! let network = builtin::network("lenet5")?;
//! let image = &network.layers[0].shape;
//! let pixels = (0..image.elements()).map(|i| (i % 17) as f32 / 16.0).collect();
//! let frame = vec![Value { dims: image.dims.clone(), data: Data::F32(pixels) }];
//! let quantized = quantize(network, &[frame], Options::default())?;
//! assert!(quantized.report.outputs.iter().all(|output| output.error < 0.1));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod equalise;
pub(crate) mod frames;
pub(crate) mod measure;
mod norms;
mod ranges;
mod scheme;
pub(crate) mod simulate;

use csdfc_network::Network;
use csdfc_network::pass;
use csdfc_runtime::run::Value;

pub use frames::inputs;
pub use measure::{LayerError, OutputError, Report};
pub use ranges::Ranges;

use scheme::Scheme;
use simulate::Simulation;

use crate::error::Error;

/// How a network is quantized.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Options {
    /// How ranges of tensors are found.
    pub ranges: Ranges,
    /// Layers that err by more than this share of their tensor stay with floats, and so do the layers that make their
    /// operands. See [`LayerError::own`].
    pub keep_above: Option<f64>,
}

/// A quantized network, and its errors.
#[derive(Debug)]
pub struct Quantized {
    /// The network, with a conversion to integers and one back after each tensor that becomes integers.
    pub network: Network,
    /// How much it errs.
    pub report: Report,
}

/// Quantizes a network. `frames` are values of the network's inputs, in the order of its inputs. The ranges of tensors
/// on these frames decide which numbers the integers stand for.
///
/// # Errors
/// When the network is quantized already, has weights that cannot be read or are not finite, or cannot run; when there is no
/// frame, or one does not fit or has an element that is not finite; when the quantized network makes such an element.
pub fn quantize(network: Network, frames: &[Vec<Value>], options: Options) -> Result<Quantized, Error> {
    check(&network, frames)?;
    let network = equalise::equalise(pass::with_constants_folded(network))?;
    let reference = Simulation::new(network.clone())?;
    let ranges = ranges::ranges(&network, &reference, frames, options.ranges)?;
    let all = Scheme::new(&network, &ranges, &|_| false);
    let own = measure::own(&network, &reference, &all, frames)?;
    let is_kept = |layer: usize| {
        options.keep_above.is_some_and(|most| own[layer].is_some_and(|error| error.is_nan() || error > most))
    };
    let scheme = Scheme::new(&network, &ranges, &is_kept);
    let quantized = scheme.apply(&network)?;
    let report = measure::whole(&network, &reference, (&scheme, &quantized), &own, frames)?;
    Ok(Quantized { network: quantized.network, report })
}

fn check(network: &Network, frames: &[Vec<Value>]) -> Result<(), Error> {
    if let Some(layer) = network.layers.iter().find(|layer| layer.quantization.is_some()) {
        return Err(Error::Quantized { layer: layer.name.clone() });
    }
    frames::check(network, frames)
}

#[cfg(test)]
mod tests;
