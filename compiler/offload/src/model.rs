//! Every convolution of a network on one accelerator.
//!
//! ```
//! use csdfc_offload::model::{convolutions, map};
//! use csdfc_offload::problem::Options;
//! use csdfc_offload::{Accelerator, Budget};
//!
//! let network = csdfc_input::builtin::network("lenet5")?;
//! let layers = convolutions(&network);
//! let names: Vec<&str> = layers.iter().map(|layer| layer.name.as_str()).collect();
//! assert_eq!(names, ["C1", "C3", "C5"]);
//!
//! let small = Accelerator { mem: Some(256), ..Accelerator::default() };
//! let options = Options { group: Some(4), ..Options::default() };
//! let (problem, answer) = map(&layers[0].spec, &small, &options, Budget::Work(1000), 1)?;
//! assert!(problem.cost(&answer.strategy.groups).memory <= 256);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use csdfc_network::{Network, operators};
use csdfc_plan::operator::Operator;

use super::accelerator::Accelerator;
use super::convolution::{Convolution, Spec};
use super::error::OffloadError;
use super::optimise::{Answer, Budget, Effort, best_heuristic_until, optimise};
use super::problem::{Options, Problem};

/// Changes that a chain of the annealer proposes for a layer of a model, by default.
pub const BUDGET: Budget = Budget::Work(20_000);

/// A convolution of a network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedLayer {
    /// The layer.
    pub name: String,
    /// What it computes.
    pub spec: Spec,
}

/// The convolutions of a network, in its order. Transposed convolutions do not count. An image in parts is one image. A
/// tensor that is added to the sums is no part of the work, and neither are biases and activations.
pub fn convolutions(network: &Network) -> Vec<NamedLayer> {
    let named = network.layers.iter().filter_map(|layer| {
        let Operator::Conv(conv) = &layer.operator else { return None };
        let [_, _, height, width] = *layer.inputs.first()?.shape.dims.as_slice() else { return None };
        let channels = operators::image_channels(conv, &layer.input_shapes());
        let spec = Spec {
            pads: conv.pads,
            stride: conv.stride,
            dilation: conv.dilation,
            channel_groups: conv.groups,
            ..Spec::new([height, width], channels, conv.kernel, conv.filters)
        };
        Some(NamedLayer { name: layer.name.clone(), spec })
    });
    named.collect()
}

/// The best strategy for a layer. If the number of filters at a time is not given, it takes the number that suits the
/// layer best. The effort is a budget, which somebody may cut short.
///
/// # Errors
/// When no strategy fits the accelerator: what would.
pub fn map<'s>(
    spec: &Spec,
    accelerator: &Accelerator,
    options: &Options,
    effort: impl Into<Effort<'s>>,
    seed: u64,
) -> Result<(Problem, Answer), OffloadError> {
    let effort = effort.into();
    let convolution = Convolution::new(spec.clone())?;
    let at_once = match options.filters_at_once {
        Some(filters) => vec![filters],
        None => halves(spec.filters),
    };
    let mut best: Option<(u64, Problem)> = None;
    let mut first_error = None;
    for filters in at_once {
        let options = Options { filters_at_once: Some(filters), ..options.clone() };
        let tried = Problem::new(convolution.clone(), accelerator.clone(), &options).and_then(|problem| {
            let strategy = best_heuristic_until(&problem, effort.stop)?;
            Ok((problem.cost(&strategy.groups).duration, problem))
        });
        match tried {
            Ok((duration, problem)) => {
                if best.as_ref().is_none_or(|(known, _)| duration < *known) {
                    best = Some((duration, problem));
                }
            }
            // The error for the most filters says what would make the layer fit as a whole.
            Err(error) => first_error = first_error.or(Some(error)),
        }
    }
    match (best, first_error) {
        (Some((_, problem)), _) => optimise(&problem, effort, seed).map(|answer| (problem, answer)),
        (None, Some(error)) => Err(error),
        (None, None) => Err(OffloadError::Zero { what: "number of filters" }),
    }
}

/// All filters, half of them, and so on to one.
fn halves(filters: usize) -> Vec<usize> {
    let mut all: Vec<usize> =
        std::iter::successors(Some(filters), |count| (*count > 1).then(|| count.div_ceil(2))).collect();
    all.dedup();
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_convolutions_of_lenet_are_found() {
        let network = csdfc_input::builtin::network("lenet5").unwrap();
        let found = convolutions(&network);
        let names: Vec<&str> = found.iter().map(|layer| layer.name.as_str()).collect();
        assert_eq!(names, ["C1", "C3", "C5"]);
        assert_eq!(found[1].spec, Spec::new([14, 14], 6, [5, 5], 16));
    }

    /// If not all filters fit the memory, some fit at a time.
    #[test]
    fn filters_are_loaded_in_passes_where_they_must() {
        let spec = Spec::new([8, 8], 4, [3, 3], 32);
        let map = |mem| {
            let accelerator = Accelerator { mem: Some(mem), ..Accelerator::default() };
            let options = Options { group: Some(4), ..Options::default() };
            super::map(&spec, &accelerator, &options, Budget::Work(100), 1)
        };
        let (whole, _) = map(10_000).unwrap();
        let (halved, answer) = map(1000).unwrap();
        assert_eq!((whole.passes(), halved.filters_at_once), (1, 16));
        assert!(halved.cost(&answer.strategy.groups).memory <= 1000);
        assert!(
            map(72).is_err_and(|error| error.help().is_some_and(|help| help.contains("--mem-elements 1220")))
        );
    }
}
