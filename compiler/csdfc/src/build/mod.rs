//! Planning in a build script: an application's plan becomes a module of the crate that is built.
//!
//! [`Build::emit`] plans as `csdfc plan` does and writes what `csdfc emit` writes, as a module below `OUT_DIR`. A
//! record of what it read and wrote, with hashes, lies there too ([`record`]), so that nothing is planned twice.

mod record;

use std::collections::BTreeMap;
use std::fmt::{self, Display};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use csdfc_emit::{EmitError, ModuleOptions, footprint};
use csdfc_input::app::name::default_name;
use csdfc_input::app::names::{self, UnknownName};
use csdfc_input::app::rates::LatencyLimit;
use csdfc_input::app::resolve::Application;
use csdfc_input::app::spec::FpsSpec;
use csdfc_input::device::{self, DeviceProfile};
use csdfc_network::weights::WeightSource;
use csdfc_plan::plan::Plan;
use csdfc_planner::driver::{self, Planned};
use csdfc_planner::error::{self, Error};
use csdfc_planner::explain::{self, limits, shortfall};
use csdfc_planner::open::{self, Opened};
use csdfc_planner::remedies;
use csdfc_planner::saved::identity;
use csdfc_planner::search::memo::Memo;
use csdfc_planner::search::start::Start;
use csdfc_planner::search::watch::{Scope, Watch};

use self::record::Record;

/// A plan that a build script makes, with its constraints.
///
/// In `build.rs`:
///
/// ```no_run
/// fn main() -> Result<(), csdfc::BuildError> {
///     csdfc::Build::new("models/net.onnx").memory("2MB").fps(30).emit()?;
///     Ok(())
/// }
/// ```
///
/// In `src/main.rs`, whose edition is 2024:
///
/// ```ignore
/// include!(concat!(env!("OUT_DIR"), "/net.rs"));
///
/// let arena = net::Arena::take().expect("nobody else took it");
/// let mut model = net::Model::new(arena);
/// ```
#[derive(Debug, Clone)]
pub struct Build {
    source: String,
    memory: Option<String>,
    ram: Option<String>,
    flash: Option<String>,
    fps: Option<f64>,
    latency: Vec<String>,
    precision: Option<String>,
    weights: Option<String>,
    device: Option<String>,
    module: Option<String>,
    std: bool,
    folder: Option<PathBuf>,
}

/// Why [`Build`] made no plan, or wrote none. `{:?}`, which Cargo prints, is as readable as `{}`.
///
/// ```
/// let planned = csdfc::Build::new("builtin:lenet5").memory("1kB").plan();
/// let Err(csdfc::BuildError::Unmet { text, nearest }) = planned else { panic!("1 kB is too little") };
/// assert!(text.starts_with("no plan meets all constraints"));
/// // What it would take, and the commands that show it.
/// let streamed = nearest.constraints.remedies.iter().find(|remedy| remedy.means == "weights streamed");
/// assert!(streamed.is_some_and(|remedy| remedy.options == ["--mem", "min", "--weights", "streamed"]));
/// assert!(text.contains("csdfc plan builtin:lenet5 --mem min --weights streamed"), "{text}");
/// ```
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// An input is wrong, or a file cannot be read or written.
    #[error("{}", error::explained(.0))]
    Failed(#[from] Error),
    /// The plan cannot be written as code.
    #[error(transparent)]
    Emit(#[from] EmitError),
    /// No plan meets the constraints.
    #[error("{text}")]
    Unmet {
        /// What can be reached, what it would take, and which tensors take most of the memory.
        text: String,
        /// The nearest plan. Its `constraints.remedies` say what it would take.
        nearest: Box<Plan>,
    },
}

impl Build {
    /// A plan of an application file, `FILE.onnx`, `FILE.tflite`, or `builtin:NAME`. Relative paths start from the
    /// folder of the package.
    pub fn new(source: impl AsRef<Path>) -> Self {
        Build {
            source: source.as_ref().to_string_lossy().into_owned(),
            memory: None,
            ram: None,
            flash: None,
            fps: None,
            latency: Vec::new(),
            precision: None,
            weights: None,
            device: None,
            module: None,
            std: true,
            folder: None,
        }
    }

    /// Maximum number of bytes that parameters, buffers and workspace may take together: `2MB`, `512KiB`, or `min` for
    /// as few as possible.
    pub fn memory(mut self, most: impl Into<String>) -> Self {
        self.memory = Some(most.into());
        self
    }

    /// The memories of a board that has several, in place of [`Build::memory`]: `128kB@dtcm,512kB@sram`, as `--ram` of
    /// `csdfc plan` takes them.
    ///
    /// ```
    /// let build = csdfc::Build::new("builtin:lenet5").ram("6kB@dtcm,64kB@sram").flash("1MB");
    /// let plan = build.plan()?;
    /// assert_eq!(plan.regions[0].name, "dtcm");
    /// # Ok::<(), csdfc::BuildError>(())
    /// ```
    pub fn ram(mut self, memories: impl Into<String>) -> Self {
        self.ram = Some(memories.into());
        self
    }

    /// Maximum number of bytes of flash that parameters may take: `1MB`.
    pub fn flash(mut self, most: impl Into<String>) -> Self {
        self.flash = Some(most.into());
        self
    }

    /// Fewest frames per second, of every CNN.
    pub fn fps(mut self, fewest: impl Into<f64>) -> Self {
        self.fps = Some(fewest.into());
        self
    }

    /// Longest time from a frame's first input to its last output, as `--latency` of `csdfc plan` takes it: `40ms` for
    /// every CNN, `cnn2=40ms` for one. The units are `ns`, `us`, `ms` and `s`. Call it again for another CNN.
    ///
    /// ```
    /// let plan = csdfc::Build::new("builtin:lenet5").latency("40ms").plan()?;
    /// assert_eq!(plan.constraints.latency_ns["lenet5"], 40_000_000);
    /// assert!(plan.cnns[0].latency_ns <= 40_000_000);
    /// # Ok::<(), csdfc::BuildError>(())
    /// ```
    pub fn latency(mut self, longest: impl Into<String>) -> Self {
        self.latency.push(longest.into());
        self
    }

    /// Precision of the weights and tensors of every CNN, as `--precision` of `csdfc plan` takes it: `fp32`, `half`, or
    /// `mixed`, which is also called `w8a16`. A precision that the application states for a single layer stays as it is.
    /// A build script has no frames on which errors could be measured, so `auto` is an error.
    ///
    /// ```
    /// let of = |precision| csdfc::Build::new("builtin:lenet5").precision(precision).memory("min").plan();
    /// let (floats, halves) = (of("fp32")?, of("half")?);
    /// assert!(10 * halves.memory.total < 6 * floats.memory.total);
    /// # Ok::<(), csdfc::BuildError>(())
    /// ```
    pub fn precision(mut self, precision: impl Into<String>) -> Self {
        self.precision = Some(precision.into());
        self
    }

    /// Where weights are kept, as `--weights` of `csdfc plan` takes it: `resident` in memory, all the time; `streamed`
    /// from a store, block by block; `auto`, the default, in memory where they fit.
    ///
    /// ```
    /// let plan = csdfc::Build::new("builtin:lenet5").weights("streamed").memory("min").plan()?;
    /// assert!(plan.store.is_some());
    /// assert!(plan.memory.total < 30_000);
    /// # Ok::<(), csdfc::BuildError>(())
    /// ```
    pub fn weights(mut self, place: impl Into<String>) -> Self {
        self.weights = Some(place.into());
        self
    }

    /// The device whose frame rates count: a name that csdfc knows, or a profile's file (`.ron`).
    pub fn device(mut self, device: impl Into<String>) -> Self {
        self.device = Some(device.into());
        self
    }

    /// The module's path from the root of the crate, `net` or `nets::net`, if it is not named after the source.
    pub fn module(mut self, path: impl Into<String>) -> Self {
        self.module = Some(path.into());
        self
    }

    /// The crate has no standard library. The compiler's target then decides the instruction set, and there is one
    /// thread.
    pub fn no_std(mut self) -> Self {
        self.std = false;
        self
    }

    /// Where to write, in place of `OUT_DIR`.
    pub fn folder(mut self, folder: impl Into<PathBuf>) -> Self {
        self.folder = Some(folder.into());
        self
    }

    /// Plans, and checks the plan.
    ///
    /// # Errors
    /// When the application cannot be read or planned, or no plan meets the constraints.
    pub fn plan(&self) -> Result<Plan, BuildError> {
        let opened = self.open()?;
        self.planned(&opened, &opened.resolve()?, Path::new(""))
    }

    /// Plans, and writes the plan's code as a module. The crate includes `OUT_DIR/NAME.rs`. All other files of the
    /// module are in the folder `OUT_DIR/NAME`, whose path is returned. This folder also holds the plan, `plan.json`,
    /// and, if weights are streamed, `store.bin`, which the program reads. Tells Cargo on standard output which files
    /// matter. If neither these files nor the question have changed, nothing is planned.
    ///
    /// ```
    /// let out = std::env::temp_dir().join("csdfc-example-of-emit");
    /// let folder = csdfc::Build::new("builtin:lenet5").module("nets::digits").folder(&out).emit()?;
    /// assert_eq!(folder, out.join("digits"));
    /// assert!(out.join("digits.rs").exists() && folder.join("plan.json").exists());
    /// # std::fs::remove_dir_all(out).ok();
    /// # Ok::<(), csdfc::BuildError>(())
    /// ```
    ///
    /// # Errors
    /// As [`Build::plan`], and when the module's path is not valid, there is no folder, or a file cannot be written.
    pub fn emit(&self) -> Result<PathBuf, BuildError> {
        let out = match (&self.folder, std::env::var_os("OUT_DIR")) {
            (Some(folder), _) => folder.clone(),
            (None, Some(folder)) => folder.into(),
            (None, None) => {
                return Err(BuildError::Failed(Error::Input {
                    message: "there is no OUT_DIR to write to: this is no build script".into(),
                    help: Some("name a folder: `Build::folder`".into()),
                }));
            }
        };
        let path =
            self.module.clone().unwrap_or_else(|| csdfc_emit::module_name(&default_name(&self.source)));
        let name = path.rsplit("::").next().unwrap_or(&path).to_owned();
        let (folder, asked) = (out.join(&name), self.asked());
        if let Some(record) = Record::read(&folder).filter(|record| record.holds(&asked)) {
            tell_cargo(record.files.keys())?;
            return Ok(folder);
        }
        // The files that it names are known before any of them is found to be wrong.
        let opened = self.open()?;
        let mut files = self.files_of(&opened);
        tell_cargo(&files)?;
        let application = opened.resolve()?;
        let external: Vec<PathBuf> =
            external(&application).into_iter().filter(|file| !files.contains(file)).collect();
        tell_cargo(&external)?;
        files.extend(external);
        let record = Record::new(asked, &files)?;

        std::fs::create_dir_all(folder.join("src")).map_err(|error| Error::write(&folder, error))?;
        Record::remove(&folder)?;
        let plan = self.planned(&opened, &application, &folder)?;
        let values = |cnn: usize, layer, parameter| application.cnns[cnn].network.parameter(layer, parameter);
        let options = ModuleOptions { path: &path, std: self.std };
        let mut written = csdfc_emit::emit_module(&plan, &values, &options)?;
        written.push(("plan.json".into(), plan.to_json().into_bytes()));
        let written = written.into_iter().map(|(file, content)| (folder.join(file), content));
        for (file, content) in written.chain([(out.join(format!("{name}.rs")), included(&name).into_bytes())])
        {
            let parent = file.parent().map_or(Ok(()), std::fs::create_dir_all);
            parent
                .and_then(|()| std::fs::write(&file, content))
                .map_err(|error| Error::write(&file, error))?;
        }
        record.write(&folder)?;
        Ok(folder)
    }

    /// The plan of an application. Paths of models in it are relative to `folder`.
    fn planned(&self, opened: &Opened, application: &Application, folder: &Path) -> Result<Plan, BuildError> {
        let device = DeviceProfile::find(&application.device, &opened.folder).map_err(Error::from)?;
        let memo = Memo::default();
        let watch = Watch { memo: Some(&memo), ..Watch::unwatched() };
        let plan = |application: &Application, scope| {
            let watch = Watch { scope, ..watch };
            let stack = |plan: &Plan| footprint::stack(plan, device.target.as_deref());
            driver::with_stack(application, &stack, |application| {
                let cnns = application.cnns.iter();
                let paths = cnns.map(|cnn| identity::path_from(folder, &cnn.model)).collect();
                driver::plan_from(&Start::default(), application, &device, paths, &watch, &driver::validate)
            })
        };
        let Planned { plan: mut found, shortfall, refused, .. } = plan(application, Scope::Front)?;
        if let Some(why) = refused {
            return Err(BuildError::Failed(Error::Bug(why.to_string())));
        }
        let Some(nearest) = shortfall else { return Ok(found) };
        found.constraints.remedies = {
            let another = |application: &Application| plan(application, Scope::Figures);
            remedies::remedies(opened, &found, &device, &another, &watch)?
        };
        let remedies = explain::remedies::text(&found.constraints.remedies, &self.command());
        let text = format!("{}\n{remedies}{}", shortfall::text(&found, &nearest), limits::text(&found));
        Err(BuildError::Unmet { text, nearest: Box::new(found) })
    }

    /// The words of the command that plans the same.
    fn command(&self) -> Vec<String> {
        let fps = self.fps.map(|fps| fps.to_string());
        let options = [
            ("--mem", &self.memory),
            ("--ram", &self.ram),
            ("--flash", &self.flash),
            ("--fps", &fps),
            ("--precision", &self.precision),
            ("--weights", &self.weights),
            ("--device", &self.device),
        ];
        let options = options.into_iter().filter_map(|(name, value)| Some((name, value.as_ref()?)));
        let latencies = self.latency.iter().map(|latency| ("--latency", latency));
        let given = options.chain(latencies).map(|(name, value)| [name.to_owned(), value.clone()]);
        let plan = ["csdfc".to_owned(), "plan".to_owned(), self.source.clone()];
        plan.into_iter().chain(given.flatten()).collect()
    }

    /// The question, as text.
    fn asked(&self) -> String {
        format!("csdfc {} {self:?}", env!("CARGO_PKG_VERSION"))
    }

    /// The application that is to be planned.
    fn open(&self) -> Result<Opened, Error> {
        let mut opened = open::open(&self.source)?;
        let constraints = &mut opened.spec.constraints;
        if let Some(memory) = &self.memory {
            constraints.memory = Some(parsed(memory)?);
        }
        if let Some(ram) = &self.ram {
            constraints.ram = Some(parsed(ram)?);
        }
        if let Some(flash) = &self.flash {
            constraints.flash = Some(parsed(flash)?);
        }
        if let Some(fps) = self.fps {
            if !(fps.is_finite() && fps > 0.0) {
                let message = format!("{fps} frames per second: give a number above 0");
                return Err(Error::Input { message, help: None });
            }
            constraints.fps = FpsSpec { every: Some(fps), of: BTreeMap::new() };
        }
        let limits: Vec<LatencyLimit> =
            self.latency.iter().map(|text| parsed(text)).collect::<Result<_, _>>()?;
        constraints.latency.write_over(&limits);
        opened.origin.replaced.extend(limits.iter().map(|_| ("latency", "Build::latency")));
        if let Some(name) = &self.precision {
            let precision = names::find(names::PRECISIONS, name, "precision").map_err(unknown)?;
            opened.spec.cnns.iter_mut().for_each(|cnn| cnn.precision = precision);
            opened.origin.replaced.push(("precision", "Build::precision"));
        }
        if let Some(name) = &self.weights {
            opened.spec.weights = names::find(names::WEIGHTS, name, "place of weights").map_err(unknown)?;
            opened.origin.replaced.push(("weights", "Build::weights"));
        }
        if let Some(device) = &self.device {
            opened.spec.device = Some(device::from_here(device));
        }
        if opened.spec.has_auto_precision() {
            let message = format!("{}: a build script does not choose precisions", self.source);
            let help = "state precisions in place of `auto`, for instance those that `csdfc plan` chose for the layers";
            return Err(Error::Input { message, help: Some(help.into()) });
        }
        Ok(opened)
    }

    /// The files that the application names: its own, models, the device's profile.
    fn files_of(&self, opened: &Opened) -> Vec<PathBuf> {
        let mut files = Vec::new();
        if !open::is_model(&self.source) {
            files.push(PathBuf::from(&self.source));
        }
        let models = opened.spec.cnns.iter().map(|cnn| &cnn.model);
        files.extend(
            models.filter(|model| !model.starts_with("builtin:")).map(|model| opened.folder.join(model)),
        );
        match opened.spec.device.as_deref() {
            Some(device) if device.ends_with(".ron") => files.push(opened.folder.join(device)),
            Some(device::HOST) => files.extend(device::host_path()),
            _ => {}
        }
        files
    }
}

/// What a text stands for.
fn parsed<T: FromStr<Err: Display>>(text: &str) -> Result<T, Error> {
    text.parse().map_err(|error: T::Err| Error::Input { message: error.to_string(), help: None })
}

/// A name that nothing has, with those that there are.
fn unknown(error: UnknownName) -> Error {
    Error::Input { message: error.to_string(), help: Some(error.help) }
}

/// Files next to the models that hold weights.
fn external(application: &Application) -> Vec<PathBuf> {
    let layers = application.cnns.iter().flat_map(|cnn| &cnn.network.layers);
    let mut files: Vec<PathBuf> = layers
        .flat_map(|layer| &layer.parameters)
        .filter_map(|weights| match &weights.source {
            WeightSource::File { path, .. } => Some(path.clone()),
            _ => None,
        })
        .collect();
    files.sort();
    files.dedup();
    files
}

/// The file that the crate includes: it declares the module, whose own file is in a folder below. The crate's lints do
/// not apply to it.
fn included(name: &str) -> String {
    format!(
        "#[allow(warnings, clippy::all, clippy::pedantic, clippy::restriction)]\n#[path = \"{name}/src/mod.rs\"]\npub mod \
         {name};\n"
    )
}

/// Tells Cargo that the build script must run again when one of these files changes.
fn tell_cargo<'a>(files: impl IntoIterator<Item = &'a PathBuf>) -> Result<(), Error> {
    let mut out = std::io::stdout().lock();
    files
        .into_iter()
        .try_for_each(|file| writeln!(out, "cargo::rerun-if-changed={}", file.display()))
        .map_err(|error| Error::write("standard output", error))
}

impl fmt::Debug for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "csdfc: {self}")
    }
}
