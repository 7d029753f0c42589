//! Device profiles: what a device can do, as a file states it.
//!
//! [`DeviceProfile::find`] reads a profile that comes with csdfc, or a user's. `csdfc profile` writes profiles of
//! measured machines. How the time of a layer follows from a profile is not known here.
//!
//! ```
//! use std::path::Path;
//!
//! use csdfc_input::device::DeviceProfile;
//!
//! let device = DeviceProfile::find("jetson-tx2", Path::new(""))?;
//! let [cpu, gpu] = [device.processor("cpu")?, device.processor("gpu")?];
//! // Partitions share a GPU in time, so it counts as one core.
//! assert_eq!((cpu.cores, gpu.cores), (4, 1));
//! assert!(gpu.core.macs_per_second > cpu.core.macs_per_second);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod measured;
pub mod memory;
pub mod store;

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use csdfc_network::suggest::clip;
use serde::{Deserialize, Serialize};

use self::measured::Measured;
use self::memory::Memory;
use self::store::Store;

/// The profiles that come with csdfc, by name. A target is data, so a new one takes a file and a line here.
const PROFILES: &[(&str, &str)] = &[
    ("epyc-vm", include_str!("targets/epyc-vm.ron")),
    ("esp32-c3", include_str!("targets/esp32-c3.ron")),
    ("esp32-p4", include_str!("targets/esp32-p4.ron")),
    ("esp32-s3", include_str!("targets/esp32-s3.ron")),
    ("generic", include_str!("targets/generic.ron")),
    ("imx8m-plus", include_str!("targets/imx8m-plus.ron")),
    ("jetson-nano", include_str!("targets/jetson-nano.ron")),
    ("jetson-orin-nano", include_str!("targets/jetson-orin-nano.ron")),
    ("jetson-tx2", include_str!("targets/jetson-tx2.ron")),
    ("jetson-tx2-cpu", include_str!("targets/jetson-tx2-cpu.ron")),
    ("jetson-tx2-paper", include_str!("targets/jetson-tx2-paper.ron")),
    ("nrf52840", include_str!("targets/nrf52840.ron")),
    ("raspberry-pi-4", include_str!("targets/raspberry-pi-4.ron")),
    ("raspberry-pi-5", include_str!("targets/raspberry-pi-5.ron")),
    ("raspberry-pi-zero-2", include_str!("targets/raspberry-pi-zero-2.ron")),
    ("rp2040", include_str!("targets/rp2040.ron")),
    ("rp2350", include_str!("targets/rp2350.ron")),
    ("stm32f4", include_str!("targets/stm32f4.ron")),
    ("stm32f7", include_str!("targets/stm32f7.ron")),
    ("stm32h7", include_str!("targets/stm32h7.ron")),
    ("stm32n6", include_str!("targets/stm32n6.ron")),
];

/// The name of the machine on which csdfc runs. Nothing is known of it until it is measured.
pub const HOST: &str = "host";

/// More cores than any processor of an edge board has.
const MAX_CORES: u64 = 1024;

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
    /// The name that the Rust compiler has for its target, of a microcontroller: `thumbv7em-none-eabihf`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// How they were measured, if they were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
    /// Processors by the name that partitions use.
    pub processors: BTreeMap<String, Processor>,
    /// The memories of the board, as far as `--ram` shall find their sizes and times by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub memories: Vec<Memory>,
    /// What streamed weights are read from. If it is not given, the time of reading is not modelled.
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

/// Why a device profile cannot be had.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
#[non_exhaustive]
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
    #[diagnostic(
        code(csdfc::device::parse),
        help("see compiler/input/src/device/targets/generic.ron for the fields")
    )]
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
        DeviceProfile {
            format,
            name,
            basis,
            target: None,
            origin: None,
            processors,
            memories: Vec::new(),
            store: None,
        }
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
        for (i, memory) in profile.memories.iter().enumerate() {
            let at = |problem: &str| wrong(format!("memory `{}`: {problem}", clip(&memory.name)));
            memory.check().map_err(at)?;
            if profile.memories[..i].iter().any(|before| before.name == memory.name) {
                return Err(at("two have this name"));
            }
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
            () if !(1..=MAX_CORES).contains(&self.cores) => Err("`cores` must be 1 to 1024"),
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

#[cfg(test)]
mod tests {
    use super::*;

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
            ("    processors:", "    memories: [(name: \"sram\", bytes: 0)], processors:"),
            ("    processors:", "    memories: [(name: \"S RAM\", bytes: 1)], processors:"),
            ("    processors:", "    memories: [(name: \"a\", bytes: 1, ns_per_byte: -1)], processors:"),
            (
                "    processors:",
                "    memories: [(name: \"a\", bytes: 1), (name: \"a\", bytes: 2)], processors:",
            ),
        ] {
            assert!(good.contains(from));
            std::fs::write(folder.path().join("board.ron"), good.replace(from, to)).unwrap();
            let found = DeviceProfile::find("board.ron", folder.path());
            assert!(matches!(found, Err(DeviceError::Parse { .. })), "{to}: {found:?}");
        }
        std::fs::write(folder.path().join("board.ron"), good).unwrap();
        assert!(DeviceProfile::find("board.ron", folder.path()).is_ok());
    }
}
