//! Device profiles and the time that a layer takes on one.

use std::collections::BTreeMap;
use std::path::Path;

use csdfc_codegen::operator::Operator;
use serde::Deserialize;

use crate::lower;
use crate::network::{LayerId, Network};
use crate::occupancy;
use crate::operators;

/// The profiles that come with csdfc, by name. A target is data: a new one is a file and a line here.
const PROFILES: &[(&str, &str)] = &[
    ("generic", include_str!("targets/generic.ron")),
    ("jetson-tx2", include_str!("targets/jetson-tx2.ron")),
    ("jetson-tx2-cpu", include_str!("targets/jetson-tx2-cpu.ron")),
];

/// The name of the machine that csdfc runs on, of which nothing is known until it is measured.
const HOST: &str = "host";

/// Times as many bytes a second as memory gives come from the caches that hold filters between two rows. A convolution
/// of W pixels a row so takes 1 + 4 m / (4 b W) times as long, of m multiplications and b bytes a second.
const CACHE_SPEED: f64 = 4.0;

/// What a device can do, from which the time of a layer is modelled.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeviceProfile {
    /// Name.
    pub name: String,
    /// Where the figures come from: `analytic`, `published …` or `measured on …`.
    pub basis: String,
    /// Processors by the name that partitions use.
    pub processors: BTreeMap<String, Processor>,
}

/// A processor's peak rates.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Processor {
    /// fp32 multiply-accumulates per second of a dense convolution.
    pub macs_per_second: f64,
    /// Share of that which a depthwise convolution reaches.
    pub depthwise_efficiency: f64,
    /// Output elements per second of layers that multiply nothing.
    pub elements_per_second: f64,
    /// Bytes per second from memory.
    pub bytes_per_second: f64,
    /// Weights up to this many bytes stay in the cache from one firing to the next.
    pub cache_bytes: u64,
    /// Time of one firing beyond its work, in nanoseconds.
    pub firing_ns: f64,
}

/// Why a device profile cannot be had.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
pub enum DeviceError {
    /// No such profile and no such file.
    #[error("no device profile named `{name}`")]
    #[diagnostic(
        code(csdfc::device::unknown),
        help("profiles: {known}; or give the path of a profile (.ron)")
    )]
    Unknown {
        /// The name asked for.
        name: String,
        /// The names there are.
        known: String,
    },
    /// The machine itself, which nobody has measured.
    #[error("device profile `host` is this machine's own, and it has not been measured")]
    #[diagnostic(
        code(csdfc::device::host),
        help("measuring is not built yet; take `generic`, or give the path of a profile (.ron)")
    )]
    Host,
    /// The file cannot be read.
    #[error("cannot read device profile {path}: {source}")]
    #[diagnostic(code(csdfc::device::read))]
    Read {
        /// The file.
        path: String,
        /// Why.
        source: std::io::Error,
    },
    /// The file is no device profile.
    #[error("{path} is not a device profile: {problem}")]
    #[diagnostic(code(csdfc::device::parse), help("see compiler/src/targets/generic.ron for the fields"))]
    Parse {
        /// The file.
        path: String,
        /// What is wrong, with line and column.
        problem: String,
    },
    /// A partition asks for a processor that the profile lacks.
    #[error("device profile `{device}` has no processor `{processor}`")]
    #[diagnostic(code(csdfc::device::processor), help("its processors: {known}"))]
    Processor {
        /// The profile.
        device: String,
        /// The processor asked for.
        processor: String,
        /// Those that it has.
        known: String,
    },
}

impl DeviceProfile {
    /// The profile of this name, or in this file (relative paths are from `folder`).
    ///
    /// # Errors
    /// When there is no such profile, or it cannot be read or makes no sense.
    pub fn find(name: &str, folder: &Path) -> Result<Self, DeviceError> {
        let shipped = PROFILES.iter().find(|(known, _)| *known == name);
        let (text, path) = match shipped {
            Some((_, text)) => ((*text).to_owned(), format!("{name}.ron")),
            None if name.ends_with(".ron") => {
                let path = folder.join(name);
                let text = std::fs::read_to_string(&path)
                    .map_err(|source| DeviceError::Read { path: path.display().to_string(), source })?;
                (text, path.display().to_string())
            }
            None if name == HOST => return Err(DeviceError::Host),
            None => {
                let known: Vec<&str> = PROFILES.iter().map(|(known, _)| *known).collect();
                return Err(DeviceError::Unknown { name: name.to_owned(), known: known.join(", ") });
            }
        };
        let profile: DeviceProfile = ron::from_str(&text)
            .map_err(|error| DeviceError::Parse { path: path.clone(), problem: error.to_string() })?;
        let positive = |p: &Processor| {
            let rates =
                [p.macs_per_second, p.depthwise_efficiency, p.elements_per_second, p.bytes_per_second];
            rates.iter().all(|rate| rate.is_finite() && *rate > 0.0)
                && p.firing_ns.is_finite()
                && p.firing_ns >= 0.0
        };
        if let Some((name, _)) = profile.processors.iter().find(|(_, processor)| !positive(processor)) {
            let problem = format!("the rates of processor `{name}` must be positive numbers");
            return Err(DeviceError::Parse { path, problem });
        }
        Ok(profile)
    }

    /// The processor of this name.
    ///
    /// # Errors
    /// When the profile has none of that name.
    pub fn processor(&self, name: &str) -> Result<&Processor, DeviceError> {
        self.processors.get(name).ok_or_else(|| DeviceError::Processor {
            device: self.name.clone(),
            processor: name.to_owned(),
            known: self.processors.keys().cloned().collect::<Vec<_>>().join(", "),
        })
    }
}

impl Processor {
    /// Modelled nanoseconds of one frame of a layer at `rows` rows per firing: the larger of its arithmetic and its
    /// traffic, and the cost of its firings. Weights too large for the cache are read again by every firing, which
    /// is what processing by parts costs beside the firings themselves.
    pub fn layer_ns(&self, network: &Network, id: LayerId, rows: u64) -> f64 {
        let layer = network.layer(id);
        if layer.is_input() {
            return 0.0;
        }
        let firings = lower::firings(network, id, rows) as f64;
        let inputs = layer.input_shapes();
        let macs = operators::macs(&layer.operator, &inputs, &layer.shape) as f64;
        let rate = match &layer.operator {
            Operator::Conv(conv) if conv.groups > 1 => self.macs_per_second * self.depthwise_efficiency,
            _ => self.macs_per_second,
        };
        let elements = layer.shape.elements() as f64;
        let arithmetic = if macs > 0.0 { macs / rate } else { elements / self.elements_per_second };
        let parameters = layer.parameter_elements() * 4;
        let loads = if parameters > self.cache_bytes { firings } else { 1.0 };
        let read: usize = inputs.iter().map(csdfc_codegen::shape::Shape::elements).sum();
        let traffic =
            (read as f64 * 4.0 + elements * 4.0 + parameters as f64 * loads) / self.bytes_per_second;
        arithmetic.max(traffic) * 1e9 + firings * self.firing_ns
    }

    /// Modelled nanoseconds that a frame of a layer at `rows` rows per firing takes longer if it makes the rows of each
    /// firing one by one: its filters are read again for every row but a firing's first, from a cache that is
    /// [`CACHE_SPEED`] times as fast as memory.
    pub fn one_by_one_ns(&self, network: &Network, id: LayerId, rows: u64) -> f64 {
        let layer = network.layer(id);
        let again = layer.shape.rows() as u64 - lower::firings(network, id, rows);
        let filters = occupancy::filter_bytes(layer) as f64;
        again as f64 * filters / (CACHE_SPEED * self.bytes_per_second) * 1e9
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pass::{self, Fusion};

    #[test]
    fn every_shipped_profile_reads() {
        for (name, _) in PROFILES {
            let profile = DeviceProfile::find(name, Path::new(".")).unwrap();
            assert_eq!(profile.name, *name);
            assert!(profile.processor("cpu").is_ok());
        }
        assert!(matches!(DeviceProfile::find("tx9", Path::new(".")), Err(DeviceError::Unknown { .. })));
        assert!(matches!(DeviceProfile::find("host", Path::new(".")), Err(DeviceError::Host)));
    }

    /// The residuals that targets/jetson-tx2.ron lists, in per cent: no parts, and all by parts.
    #[test]
    fn the_jetson_tx2_deviates_as_it_says() {
        let profile = DeviceProfile::find("jetson-tx2", Path::new(".")).unwrap();
        let gpu = profile.processor("gpu").unwrap();
        for (name, published, stated) in [
            ("mobilenet_v2", [46.0, 40.0], [24, 18]),
            ("efficientnet_b0", [168.35, 98.0], [-80, -70]),
            ("inception_v2", [94.0, 67.0], [8, 10]),
            ("mobilenet_v1_0.25", [432.0, 183.0], [-36, -3]),
            ("resnet50", [55.0, 46.0], [-9, -11]),
            ("densenet121", [52.0, 37.0], [26, 14]),
            ("mobilenet_v1", [59.0, 50.0], [7, 12]),
        ] {
            let network = pass::normalise(crate::builtin::network(name).unwrap(), Fusion::Paper);
            let fps = |rows: &dyn Fn(LayerId) -> u64| {
                1e9 / network.ids().map(|id| gpu.layer_ns(&network, id, rows(id))).sum::<f64>()
            };
            let modelled = [fps(&|id| network.layer(id).shape.rows() as u64), fps(&|_| 1)];
            let deviation = [0, 1].map(|i| (100.0 * (modelled[i] / published[i] - 1.0)).round() as i64);
            assert_eq!(deviation, stated, "{name}: {modelled:?}");
        }
    }
}
