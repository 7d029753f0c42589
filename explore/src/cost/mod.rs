//! Device profiles and the time that a layer takes on one.
//!
//! The rates of a profile are those of one core. A layer's time is the larger of two times, arithmetic and traffic,
//! plus a cost for each firing. Three things come on top:
//!
//! - *Parts.* Weights that exceed the cache are read again at every firing. That is the price of processing by parts.
//! - *Rows one by one.* Filters that exceed the nearest cache are read again for every row that is made one by one,
//!   at four times the speed of memory. On the profile `generic`, a convolution of W pixels a row takes 1 + 1/W times
//!   as long. Measured: 1.02 to 1.04 at 28 to 35 pixels, 1.06 at 17, 1.09 to 1.29 at 7.
//! - *Workers.* N workers make a firing with enough work 1 + (N − 1) · efficiency times as fast: a firing of several
//!   rows, or any firing of a convolution. Each such firing costs a hand-over per worker. One core makes every other
//!   firing. Cores share the bandwidth of memory, so it is divided by the number of cores that may be busy.

pub mod measured;
pub mod stages;
pub mod store;
pub mod timing;

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use csdfc_plan::format::Element;
use csdfc_plan::operator::Operator;
use serde::{Deserialize, Serialize};

use self::measured::Measured;
use self::store::Store;
use crate::frame::lower;
use crate::frame::occupancy;
use crate::network::{LayerId, Network};
use crate::operators;
use crate::suggest::clip;

/// The profiles that come with csdfc, by name. A target is data, so a new one takes a file and a line here.
const PROFILES: &[(&str, &str)] = &[
    ("epyc-vm", include_str!("targets/epyc-vm.ron")),
    ("generic", include_str!("targets/generic.ron")),
    ("jetson-tx2", include_str!("targets/jetson-tx2.ron")),
    ("jetson-tx2-cpu", include_str!("targets/jetson-tx2-cpu.ron")),
    ("jetson-tx2-paper", include_str!("targets/jetson-tx2-paper.ron")),
];

/// The name of the machine on which csdfc runs. Nothing is known of it until it is measured.
pub const HOST: &str = "host";

/// The speed of the caches that hold filters between two rows, in multiples of the speed of memory. With m
/// multiplications and b bytes of memory a second, a convolution of W pixels a row takes 1 + 4 m / (4 b W) times as
/// long.
const CACHE_SPEED: f64 = 4.0;
/// More cores than any processor of an edge board has.
const MOST_CORES: u64 = 1024;

/// A convolution's firing of several rows and of at least this many multiplications is shared (csdfc_kernels::share). In a
/// smaller one, it takes longer to wake the other workers than to do the work.
const LEAST_SHARED: f64 = (1 << 17) as f64;
/// The same limit for a firing of a single row.
const LEAST_SHARED_ROW: f64 = (1 << 19) as f64;
/// The same limit for firings of several rows of other layers, in elements of the output.
const LEAST_ELEMENTS: f64 = (1 << 14) as f64;

/// The version of the file format; [`DeviceProfile::format`] must equal it.
const FORMAT: &str = "csdfc-profile/1";

/// What precedes the processor's name in the basis of a measured profile.
const MEASURED: &str = "measured on ";

/// What a device can do, from which the time of a layer follows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeviceProfile {
    /// `csdfc-profile/1`.
    #[serde(default = "format")]
    pub format: String,
    /// Name.
    pub name: String,
    /// Where the figures come from: `analytic`, `published …` or `measured on …`.
    pub basis: String,
    /// How they were measured, if they were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
    /// Processors by the name that partitions use.
    pub processors: BTreeMap<String, Processor>,
    /// What paged weights are read from. If it is not given, the time of reading is not modelled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub store: Option<Store>,
}

/// How a profile was measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Origin {
    /// Version of csdfc.
    pub csdfc: String,
    /// When it was measured last: `2026-11-22T21:30:25Z`.
    pub date: String,
    /// The caches of a core, in bytes, from the nearest to the farthest, as the system tells them.
    pub cache_bytes: Vec<u64>,
}

fn format() -> String {
    FORMAT.into()
}

/// A processor: what one of its cores does, and how cores share work.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Processor {
    /// The number of its cores, at least 1. Everything that runs on it at the same time shares them. A GPU counts as
    /// one core, which partitions share in time.
    pub cores: u64,
    /// The rates of one core.
    pub core: Core,
    /// How several cores share a firing. Without it, one core does each firing alone, whatever `threads` says.
    #[serde(default)]
    pub workers: Option<WorkerSharing>,
    /// Bytes per second from memory of all cores together. Without it, cores do not slow each other down.
    #[serde(default)]
    pub memory_bytes_per_second: Option<f64>,
    /// Weights up to this many bytes stay in the cache from one firing to the next.
    pub cache_bytes: u64,
    /// What was measured on it. The rates stand for everything else.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub measured: Vec<Measured>,
}

/// The rates of one core, with nothing else on the processor.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Core {
    /// fp32 multiply-accumulates per second of a dense convolution.
    pub macs_per_second: f64,
    /// Share of that rate which a depthwise convolution reaches.
    pub depthwise_efficiency: f64,
    /// Output elements per second of layers that multiply nothing.
    pub elements_per_second: f64,
    /// Bytes per second from memory.
    pub bytes_per_second: f64,
    /// Time that one firing takes in addition to its work, in nanoseconds.
    pub firing_ns: f64,
    /// How many times as fast it computes layers of 16-bit floats. It is 1 if 16-bit floats are only a way of storage.
    #[serde(default = "as_fast", skip_serializing_if = "is_as_fast")]
    pub half_speed: f64,
}

fn as_fast() -> f64 {
    1.0
}

fn is_as_fast(speed: &f64) -> bool {
    *speed == 1.0
}

/// How fast workers are at a firing that they share.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkerSharing {
    /// What each worker after the first adds to the rate of a firing, in cores: above 0, at most 1.
    pub efficiency: f64,
    /// Time to hand a firing to one more worker and to wait for it, in nanoseconds.
    pub handover_ns: f64,
}

/// A partition's place on its processor.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Seat<'d> {
    /// The processor.
    pub processor: &'d Processor,
    /// Workers that share its firings, its own thread among them; no more than there are cores.
    pub workers: u64,
    /// Workers of all partitions that may run on the processor at the same time, its own among them.
    pub busy: u64,
}

/// The time of a layer in a frame, with as many cores as it can use.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LayerTime {
    /// Nanoseconds from begin to end, without waits for other partitions.
    pub wall_ns: f64,
    /// Nanoseconds of cores, the sum over all workers.
    pub core_ns: f64,
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
        help("`csdfc profile APP` measures it; or take `generic`, or give the path of a profile (.ron)")
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
    #[diagnostic(code(csdfc::device::parse), help("see explore/src/cost/targets/generic.ron for the fields"))]
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

/// The file of this machine's own profile: `csdfc/host.ron` in the user's folder for data, if there is one.
pub fn host_path() -> Option<PathBuf> {
    let folder =
        |variable: &str| std::env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute());
    let data = folder("XDG_DATA_HOME").or_else(|| Some(folder("HOME")?.join(".local/share")))?;
    Some(data.join("csdfc").join("host.ron"))
}

/// A device named on the command line or in a build script, in the form in which an application states it. A relative
/// path then starts from the working directory, not from the application file's folder.
pub fn from_here(device: &str) -> String {
    let path = device.ends_with(".ron").then(|| std::path::absolute(device).ok()).flatten();
    path.map_or_else(|| device.to_owned(), |path| path.to_string_lossy().into_owned())
}

impl DeviceProfile {
    /// A profile of these processors, which were not measured here.
    pub fn new(name: &str, basis: &str, processors: BTreeMap<String, Processor>) -> Self {
        let (format, name, basis) = (format(), name.into(), basis.into());
        DeviceProfile { format, name, basis, origin: None, processors, store: None }
    }

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
            None if name == HOST => {
                let path = host_path().ok_or(DeviceError::Host)?;
                match std::fs::read_to_string(&path) {
                    Ok(text) => (text, path.display().to_string()),
                    Err(error) if error.kind() == ErrorKind::NotFound => return Err(DeviceError::Host),
                    Err(source) => {
                        return Err(DeviceError::Read { path: path.display().to_string(), source });
                    }
                }
            }
            None => {
                let known: Vec<&str> = PROFILES.iter().map(|(known, _)| *known).collect();
                return Err(DeviceError::Unknown { name: name.to_owned(), known: known.join(", ") });
            }
        };
        Self::parse(&text, &path)
    }

    /// Parses a profile from a text, which comes from `path`.
    ///
    /// # Errors
    /// When the text is no profile, or its figures make no sense.
    pub fn parse(text: &str, path: &str) -> Result<Self, DeviceError> {
        let wrong = |problem: String| DeviceError::Parse { path: path.into(), problem };
        let options =
            ron::Options::default().with_default_extension(ron::extensions::Extensions::IMPLICIT_SOME);
        let profile: DeviceProfile = options.from_str(text).map_err(|error| wrong(error.to_string()))?;
        if profile.format != FORMAT {
            return Err(wrong(format!("its format is `{}`, not `{FORMAT}`", clip(&profile.format))));
        }
        for (name, processor) in &profile.processors {
            processor.check().map_err(|problem| wrong(format!("processor `{name}`: {problem}")))?;
        }
        Ok(profile)
    }

    /// The name of the processor on which it was measured, if it was.
    pub fn measured_on(basis: &str) -> Option<&str> {
        basis.strip_prefix(MEASURED).map(str::trim)
    }

    /// The basis of a profile that is measured on a processor of this name.
    pub fn basis_of(processor: &str) -> String {
        format!("{MEASURED}{processor}")
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
    /// Whether its figures make sense.
    fn check(&self) -> Result<(), &'static str> {
        let positive = |rate: f64| rate.is_finite() && rate > 0.0;
        let time = |ns: f64| ns.is_finite() && ns >= 0.0;
        let Core {
            macs_per_second,
            depthwise_efficiency,
            elements_per_second,
            bytes_per_second,
            firing_ns,
            half_speed,
        } = self.core;
        let rates =
            [macs_per_second, depthwise_efficiency, elements_per_second, bytes_per_second, half_speed];
        let shares = |sharing: WorkerSharing| sharing.efficiency > 0.0 && sharing.efficiency <= 1.0;
        match () {
            () if !(1..=MOST_CORES).contains(&self.cores) => Err("`cores` must be 1 to 1024"),
            () if !rates.into_iter().chain(self.memory_bytes_per_second).all(positive) => {
                Err("rates must be positive numbers")
            }
            () if !time(firing_ns) || !self.workers.is_none_or(|sharing| time(sharing.handover_ns)) => {
                Err("times must be numbers of 0 or more")
            }
            () if !self.workers.is_none_or(shares) => Err("`efficiency` must be above 0 and at most 1"),
            () if !self.measured.iter().all(Measured::makes_sense) => {
                Err("samples must have rows that ascend from 1, times above 0 and spreads of 0 or more")
            }
            () => Ok(()),
        }
    }
}

impl<'d> Seat<'d> {
    /// The seat of a partition with a processor to itself, of this many workers.
    pub fn alone(processor: &'d Processor, threads: usize) -> Self {
        let workers = match processor.workers {
            Some(_) => (threads as u64).clamp(1, processor.cores),
            None => 1,
        };
        Seat { processor, workers, busy: workers }
    }

    /// The same with the processor to itself.
    pub fn undisturbed(&self) -> Self {
        Seat { busy: self.workers, ..*self }
    }

    /// The factor by which everything takes longer, at most, because other partitions run on the processor. While there
    /// are more workers with work than cores, all of them are slowed down alike.
    pub fn stretch(&self) -> f64 {
        (self.busy as f64 / self.processor.cores as f64).max(1.0)
    }

    /// The time of a layer in one frame, at `rows` rows per firing: the larger of its arithmetic and its traffic, plus
    /// the cost of its firings. If weights are too large for the cache, every firing reads them again. This is the
    /// price of processing by parts, beside the cost of the firings themselves. Workers share the firings that are work
    /// enough: those of several rows, and large rows of a convolution. A layer that makes the rows of a firing one by
    /// one reads its filters again for every row but the first, from a cache that is `CACHE_SPEED` times as fast as
    /// memory. It hands each row to its workers, if a row is work enough.
    pub fn layer(&self, network: &Network, id: LayerId, rows: u64, one_by_one: bool) -> LayerTime {
        let layer = network.layer(id);
        if layer.is_input() {
            return LayerTime { wall_ns: 0.0, core_ns: 0.0 };
        }
        let Processor { core, cache_bytes, .. } = self.processor;
        let firings = lower::firings(network, id, rows) as f64;
        let inputs = layer.input_shapes();
        let macs = operators::macs(&layer.operator, &inputs, &layer.shape) as f64;
        let elements = layer.shape.elements() as f64;
        let at_once = if one_by_one { 1 } else { rows };
        let is_shared = match &layer.operator {
            Operator::Conv(_) | Operator::Gemm(_) if at_once == 1 => {
                macs / layer.rows() as f64 >= LEAST_SHARED_ROW
            }
            Operator::Conv(_) | Operator::Gemm(_) => macs / firings >= LEAST_SHARED,
            _ => at_once > 1 && elements / firings >= LEAST_ELEMENTS,
        };
        let crew = self.processor.workers.filter(|_| is_shared && self.workers > 1);
        let workers = if crew.is_some() { self.workers } else { 1 };
        let others = (workers - 1) as f64;
        let speed = crew.map_or(1.0, |sharing| 1.0 + others * sharing.efficiency);
        let firing_ns = core.firing_ns + crew.map_or(0.0, |sharing| others * sharing.handover_ns);

        let rate = match &layer.operator {
            Operator::Conv(conv) if conv.groups > 1 => core.macs_per_second * core.depthwise_efficiency,
            _ => core.macs_per_second,
        };
        // Nobody has published how much faster integers and mixed precision are.
        let is_half = layer.format().element == Element::F16 && !layer.primitive().is_mixed();
        let speed_up = if is_half { core.half_speed } else { 1.0 };
        let arithmetic = if macs > 0.0 { macs / rate } else { elements / core.elements_per_second };
        let arithmetic = arithmetic / speed_up;
        let parameters = layer.parameter_bytes();
        let loads = if parameters > *cache_bytes { firings } else { 1.0 };
        let read: u64 = layer.inputs.iter().map(|operand| network.layer(operand.layer).tensor_bytes()).sum();
        let bytes = (read + layer.tensor_bytes()) as f64 + parameters as f64 * loads;
        let traffic = bytes / self.bytes_per_second(workers);
        let again = if one_by_one { layer.rows() as f64 - firings } else { 0.0 };
        let filters = again * occupancy::filter_bytes(layer) as f64 / (CACHE_SPEED * core.bytes_per_second);
        // A call takes little time compared with a line of an image, but not compared with a single pixel.
        let calls = if layer.shape.is_image() { 0.0 } else { again * core.firing_ns };
        let handovers = again * crew.map_or(0.0, |sharing| others * sharing.handover_ns);
        let wall_ns = arithmetic.max(traffic) / speed * 1e9
            + firings * firing_ns
            + filters / speed * 1e9
            + handovers
            + calls;
        LayerTime { wall_ns, core_ns: wall_ns * workers as f64 }
    }

    /// Bytes per second from memory for one core, while this partition keeps `workers` cores busy and the other
    /// partitions keep theirs busy.
    fn bytes_per_second(&self, workers: u64) -> f64 {
        let alone = self.processor.core.bytes_per_second;
        let busy = (self.busy - self.workers + workers).min(self.processor.cores);
        self.processor.memory_bytes_per_second.map_or(alone, |all| alone.min(all / busy as f64))
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
        let host = DeviceProfile::find(HOST, Path::new("."));
        let is_there = host_path().is_some_and(|path| path.exists());
        assert!(is_there || matches!(host, Err(DeviceError::Host)));
    }

    /// The first convolution of MobileNetV2, 3×3×3×32 at 112×112, and the classifier: 1280 by 1000.
    #[test]
    fn workers_share_firings_by_the_stated_law() {
        let profile = DeviceProfile::find("jetson-tx2-cpu", Path::new(".")).unwrap();
        let cpu = profile.processor("cpu").unwrap();
        let network = pass::normalise(crate::builtin::network("mobilenet_v2").unwrap(), Fusion::Full);
        let first = network.ids().nth(1).unwrap();
        let last = network.ids().filter(|id| network.layer(*id).parameter_elements() > 0).last().unwrap();
        let macs = 112.0 * 112.0 * 32.0 * 27.0;
        let near = |found: LayerTime, wall_ns: f64, cores: f64| {
            assert!((found.wall_ns / wall_ns - 1.0).abs() < 1e-12, "{found:?}, {wall_ns}");
            assert!((found.core_ns / (cores * wall_ns) - 1.0).abs() < 1e-12, "{found:?}, {wall_ns}");
        };
        let (one, four, nine) = (Seat::alone(cpu, 1), Seat::alone(cpu, 4), Seat::alone(cpu, 9));
        near(one.layer(&network, first, 112, false), macs / 4e9 * 1e9 + 500.0, 1.0);
        near(four.layer(&network, first, 112, false), macs / (4e9 * 3.7) * 1e9 + 2000.0, 4.0);
        // A row alone is too little work, and so are rows that are made one by one.
        assert_eq!(four.layer(&network, first, 1, false), one.layer(&network, first, 1, false));
        assert_eq!(four.layer(&network, first, 112, true), one.layer(&network, first, 112, true));
        assert_eq!(nine, four);
        // Memory is what the classifier waits for. One core has half of what four have together.
        let bytes = 4.0 * (1280.0 + 1000.0 + 1280.0 * 1000.0 + 1000.0);
        near(one.layer(&network, last, 1, false), bytes / 7.5e9 * 1e9 + 500.0, 1.0);
        near(four.layer(&network, last, 1, false), bytes / (3.75e9 * 3.7) * 1e9 + 2000.0, 4.0);
        // Beside three others it has a quarter.
        let crowded = Seat { busy: 4, ..one };
        near(crowded.layer(&network, last, 1, false), bytes / 3.75e9 * 1e9 + 500.0, 1.0);
        assert_eq!((crowded.stretch(), Seat { busy: 6, ..one }.stretch()), (1.0, 1.5));
    }

    #[test]
    fn a_profile_that_makes_no_sense_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let good = include_str!("targets/jetson-tx2-cpu.ron");
        for (from, to) in [
            ("cores: 4", "cores: 0"),
            ("cores: 4", "cores: 1025"),
            ("cores: 4,", ""),
            ("macs_per_second: 4.0e9", "macs_per_second: -1"),
            ("memory_bytes_per_second: 15.0e9", "memory_bytes_per_second: 0"),
            ("efficiency: 0.9", "efficiency: 1.1"),
            ("handover_ns: 500", "handover_ns: -1"),
            ("firing_ns: 500", "firing_ns: NaN"),
        ] {
            assert!(good.contains(from));
            std::fs::write(folder.path().join("board.ron"), good.replace(from, to)).unwrap();
            let found = DeviceProfile::find("board.ron", folder.path());
            assert!(matches!(found, Err(DeviceError::Parse { .. })), "{to}: {found:?}");
        }
        std::fs::write(folder.path().join("board.ron"), good).unwrap();
        assert!(DeviceProfile::find("board.ron", folder.path()).is_ok());
    }

    /// The residuals that targets/jetson-tx2.ron lists, in per cent: no parts, and all by parts.
    #[test]
    fn the_jetson_tx2_deviates_as_it_says() {
        let profile = DeviceProfile::find("jetson-tx2", Path::new(".")).unwrap();
        let gpu = profile.processor("gpu").unwrap();
        assert_eq!(
            DeviceProfile::find("jetson-tx2-paper", Path::new(".")).unwrap().processor("gpu").unwrap(),
            gpu
        );
        let gpu = Seat::alone(gpu, 4);
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
                1e9 / network.ids().map(|id| gpu.layer(&network, id, rows(id), false).wall_ns).sum::<f64>()
            };
            let modelled = [fps(&|id| network.layer(id).rows() as u64), fps(&|_| 1)];
            let deviation = [0, 1].map(|i| (100.0 * (modelled[i] / published[i] - 1.0)).round() as i64);
            assert_eq!(deviation, stated, "{name}: {modelled:?}");
        }
    }
}
