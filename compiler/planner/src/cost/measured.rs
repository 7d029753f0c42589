//! Measured times in the model of costs.
//!
//! `csdfc profile` measures layers in whole networks. All other layers run as well, so caches are as full as they are
//! in a frame ([`device::measured`](csdfc_input::device::measured)).
//!
//! A plan asks for rows per firing that were not measured, and for partitions that share memory with others. So a
//! measurement does not replace the model but corrects it. At the measured rows, the time is the measured one. Between
//! two measurements, the time is linear in the number of firings (Eq. 5 of the main paper: a sum over firings).
//!
//! ```
//! use std::path::Path;
//!
//! use csdfc_input::device::measured::{Measured, Sample, scenario};
//! use csdfc_input::device::{DeviceProfile, Processor};
//! use csdfc_planner::cost::measured::fastest;
//! use csdfc_planner::open::open;
//!
//! let application = open("builtin:lenet5")?.resolve()?;
//! let conv = &application.cnns[0].network.layers[1];
//! let sample = |ns: f64| vec![Sample { rows: conv.rows() as u64, ns, spread: 0.0 }];
//! let other = "im2row-strip-hwc-hwc";
//! let times = [(conv.primitive().name().into(), sample(3e4)), (other.into(), sample(2e4))].into();
//! let measured = vec![Measured { scenario: scenario(conv), threads: 1, times }];
//! let device = DeviceProfile::find("generic", Path::new(""))?;
//! let cpu = Processor { measured, ..device.processor("cpu")?.clone() };
//! assert_eq!(fastest(&cpu, conv, 1, 1e-4).map(|primitive| primitive.name()), Some(other));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use csdfc_input::device::Processor;
use csdfc_input::device::measured::{Measured, Sample, scenario};
use csdfc_network::{Layer, LayerId, Network};
use csdfc_plan::operator::Operator;
use csdfc_plan::plan::TimeBasis;
use csdfc_plan::shape::Shape;
use csdfc_runtime::bind::Primitive;

use super::ProcessorShare;
use crate::frame::lower;

/// The measurements of a layer, with its primitive and this number of workers. Rows per firing ascend.
pub fn samples<'p>(processor: &'p Processor, layer: &Layer, threads: u64) -> &'p [Sample] {
    if processor.measured.is_empty() || layer.is_input() {
        return &[];
    }
    of_scenario(processor, layer, threads)
        .and_then(|measured| measured.times.get(layer.primitive().name()))
        .map_or(&[], Vec::as_slice)
}

fn of_scenario<'p>(processor: &'p Processor, layer: &Layer, threads: u64) -> Option<&'p Measured> {
    let scenario = scenario(layer);
    processor.measured.iter().find(|measured| measured.threads == threads && measured.scenario == scenario)
}

/// Nanoseconds of a layer in a frame, by its measurements, on a processor that it has to itself; and the basis of this
/// time. `None` without measurements.
pub fn time(
    samples: &[Sample],
    alone: &ProcessorShare<'_>,
    network: &Network,
    id: LayerId,
    rows: u64,
) -> Option<(f64, TimeBasis)> {
    let firings = |rows: u64| lower::firings(network, id, rows) as f64;
    let at = firings(rows);
    // The neighbours in firings, which descend as rows ascend.
    let more = samples.iter().rev().find(|sample| firings(sample.rows) >= at);
    let fewer = samples.iter().find(|sample| firings(sample.rows) <= at);
    let model = |rows: u64| alone.layer(network, id, rows, false).wall_ns;
    let scaled = |sample: &Sample| sample.ns * model(rows) / model(sample.rows);
    match (fewer, more) {
        (Some(fewer), _) if firings(fewer.rows) == at => Some((fewer.ns, TimeBasis::Measured)),
        (Some(fewer), Some(more)) => {
            let [low, high] = [fewer, more].map(|sample| firings(sample.rows));
            let share = (at - low) / (high - low);
            Some((fewer.ns + share * (more.ns - fewer.ns), TimeBasis::Interpolated))
        }
        (Some(only), None) | (None, Some(only)) => Some((scaled(only), TimeBasis::Interpolated)),
        (None, None) => None,
    }
}

/// A primitive that was measured to make all rows of a layer in one firing.
#[derive(Debug, Clone, Copy)]
pub struct Alternative<'p> {
    /// The primitive.
    pub primitive: Primitive,
    /// All its measurements.
    pub samples: &'p [Sample],
    /// Nanoseconds of the layer in one firing.
    pub ns: f64,
    /// Bytes that it keeps of the layer's parameters.
    pub stored: u64,
    /// Bytes of workspace of one worker.
    pub workspace: u64,
}

/// The primitives whose time was measured when they make all rows of a convolution in one firing. They read and write
/// its layouts, and err by at most `max_error` ([`Primitive::error`]). The fastest comes first.
pub fn alternatives<'p>(
    processor: &'p Processor,
    layer: &Layer,
    threads: u64,
    max_error: f64,
) -> Vec<Alternative<'p>> {
    if !matches!(layer.operator, Operator::Conv(_)) {
        return Vec::new();
    }
    let inputs: Vec<&Shape> = layer.inputs.iter().map(|operand| &operand.shape).collect();
    let layouts = layer.primitive().layouts();
    let whole = |(name, samples): (&String, &'p Vec<Sample>)| {
        let primitive = Primitive::find(name)?;
        let suits = primitive.layouts() == layouts
            && primitive.elements() == layer.primitive().elements()
            && primitive.scaled_weight() == layer.primitive().scaled_weight()
            && primitive.computes(&layer.operator, &inputs)
            && primitive.error() <= max_error;
        let sample = samples.last()?;
        let stored = primitive.stored_bytes(&layer.operator, &inputs, layer.parameter_elements());
        let workspace = primitive.workspace_bytes(&layer.operator, &inputs, &layer.shape);
        let ns = sample.ns;
        (suits && sample.rows >= layer.rows() as u64).then_some(Alternative {
            primitive,
            samples,
            ns,
            stored,
            workspace,
        })
    };
    let Some(measured) = of_scenario(processor, layer, threads) else { return Vec::new() };
    let mut suitable: Vec<Alternative<'p>> = measured.times.iter().filter_map(whole).collect();
    suitable.sort_by(|a, b| a.ns.total_cmp(&b.ns));
    suitable
}

/// The fastest of the [`alternatives`]. `None` if there are fewer than two.
pub fn fastest(processor: &Processor, layer: &Layer, threads: u64, max_error: f64) -> Option<Primitive> {
    let known = alternatives(processor, layer, threads, max_error);
    known.first().filter(|_| known.len() > 1).map(|fastest| fastest.primitive)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use csdfc_input::device::DeviceProfile;
    use csdfc_network::pass::{self, Fusion};

    use super::*;

    /// A layer of 32 rows, whose times are those of its firings.
    #[test]
    fn times_are_linear_between_samples_and_as_modelled_beyond() {
        let network = pass::normalise(csdfc_input::builtin::network("paper_pair").unwrap(), Fusion::Full);
        let id = network.ids().nth(1).unwrap();
        assert_eq!(network.layer(id).rows(), 32);
        let device = DeviceProfile::find("generic", Path::new("")).unwrap();
        let alone = ProcessorShare::alone(device.processor("cpu").unwrap(), 1);
        let samples = |all: &[(u64, f64)]| -> Vec<Sample> {
            all.iter().map(|&(rows, ns)| Sample { rows, ns, spread: 0.0 }).collect()
        };
        let model = |rows: u64| alone.layer(&network, id, rows, false).wall_ns;
        let both = samples(&[(1, 320.0), (16, 100.0), (32, 50.0)]);
        for (all, rows, expected) in [
            (&both, 32, Some((50.0, TimeBasis::Measured))),
            (&both, 16, Some((100.0, TimeBasis::Measured))),
            // 17 rows are two firings as well.
            (&both, 17, Some((100.0, TimeBasis::Measured))),
            (&both, 1, Some((320.0, TimeBasis::Measured))),
            // 17 firings of 2 to 32; 11 rows are three.
            (&both, 2, Some((100.0 + 220.0 * 14.0 / 30.0, TimeBasis::Interpolated))),
            (&both, 11, Some((100.0 + 220.0 / 30.0, TimeBasis::Interpolated))),
            (&samples(&[(32, 50.0)]), 1, Some((50.0 * model(1) / model(32), TimeBasis::Interpolated))),
            (&samples(&[(1, 50.0)]), 4, Some((50.0 * model(4) / model(1), TimeBasis::Interpolated))),
            (&samples(&[]), 4, None),
        ] {
            let found = time(all, &alone, &network, id, rows);
            let is_near = match (found, expected) {
                (Some(found), Some(expected)) => {
                    found.1 == expected.1 && (found.0 / expected.0 - 1.0).abs() < 1e-12
                }
                (found, expected) => found == expected,
            };
            assert!(is_near, "{rows} rows: {found:?}, not {expected:?}");
        }
    }
}
