//! Binds an [`AppSpec`]: models are loaded, every name and unit is resolved, every default filled in.
//!
//! ```
//! use std::path::Path;
//!
//! use csdfc_input::app::load::load;
//! use csdfc_input::app::spec::AppSpec;
//! use csdfc_input::app::{MemoryGoal, Origin, resolve};
//!
//! let mut spec = AppSpec::of_model("builtin:lenet5");
//! spec.constraints.memory = Some("64kB".parse()?);
//! spec.constraints.fps.every = Some(30.0);
//! let application = resolve::resolve(&spec, &Origin::default(), Path::new(""), &mut load)?;
//! assert_eq!(application.constraints.memory, Some(MemoryGoal::Bytes(64_000)));
//! // Limits for every CNN are those of each of them.
//! let demand = application.constraints.demand_of("lenet5");
//! assert!(demand.is_met(30.0, 50_000_000) && !demand.is_met(29.9, 50_000_000));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;
use std::path::Path;

use csdfc_network::pass::{self, Fusion, PartitionLayers};
use csdfc_network::suggest::{self, clip};
use csdfc_network::{LayerId, Network};
use csdfc_plan::plan::{Content, MAX_BATCH, StorageModel};
use miette::Diagnostic;

use super::fault::{AppError, AppFault, Origin};
use super::load::{LoadError, Loaded, ModelRequest, ModelSource};
use super::locate::PathStep;
use super::name::{MAX_NAME_LEN, in_name};
use super::partition::{self, Partition, find_layer};
use super::precisions;
use super::spec::{
    AppSpec, CnnSpec, FpsSpec, LatencySpec, Prefer, Primitives, RowsSpec, SearchSpec, WeightsPlace,
};
use super::{inputs, state, stream};
use crate::device::DeviceProfile;
use crate::device::memory::{Memory, RamError};
use crate::units::{MemoryGoal, Nanoseconds, Size};

/// Maximum number of workers that may share one firing.
const MAX_THREADS: usize = 256;

/// The device of an application that names none.
pub(super) const DEFAULT_DEVICE: &str = "generic";

/// An application with every name bound.
#[derive(Debug, Clone, PartialEq)]
pub struct Application {
    /// Its name.
    pub name: String,
    /// The CNNs, at least one.
    pub cnns: Vec<Cnn>,
    /// The set J of the papers. Each element lists partitions that run at the same time. Every partition is in at least
    /// one element.
    pub parallel: Vec<Vec<String>>,
    /// Name of the device profile, or the path of its file, from the application's folder.
    pub device: String,
    /// What the plan must meet.
    pub constraints: Constraints,
    /// Parameters of the search.
    pub search: SearchSpec,
    /// How storage is shared.
    pub storage: StorageModel,
    /// Rows per firing.
    pub rows: RowsChoice,
    /// How much was fused.
    pub fusion: Fusion,
    /// Workers that share one firing, 1 to 256.
    pub threads: usize,
    /// Which primitives compute the layers.
    pub primitives: Primitives,
    /// The most that a primitive may err if it is chosen for its speed; see [`Primitive::error`].
    ///
    /// [`Primitive::error`]: csdfc_runtime::bind::Primitive::error
    pub max_primitive_error: f64,
    /// Which layers' weights are streamed; `None` if no layer's are.
    pub streamed: Option<Streamed>,
    /// Which layers' weights may be streamed if they do not fit.
    pub may_be_streamed: Option<Streamed>,
    /// What makes a plan the best of those that meet the constraints.
    pub prefer: Prefer,
}

/// Weights that each frame reads from a store into the arena: those of all layers but a few.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Streamed {
    /// Layers whose weights stay in memory: the index of the CNN, and the layer's name, since passes renumber layers.
    pub resident: BTreeSet<(usize, String)>,
    /// Layers, named likewise, that read their weights again at each firing if they go by parts.
    pub again: BTreeSet<(usize, String)>,
}

/// A CNN of an application.
#[derive(Debug, Clone, PartialEq)]
pub struct Cnn {
    /// Its name, unique in the application.
    pub name: String,
    /// Its layers, normalised; the inputs say how the caller delivers them.
    pub network: Network,
    /// Where the network comes from.
    pub model: ModelSource,
    /// Its partitions, at least one, in the order of their last layers; together they hold every layer once.
    pub partitions: Vec<Partition>,
}

/// What a plan must meet.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Constraints {
    /// Maximum number of bytes that the application may take.
    pub memory: Option<MemoryGoal>,
    /// The memories that it may use, the fastest first; empty if the board has one. Then its parameters are in flash, and
    /// there is no `memory`.
    pub memories: Vec<Memory>,
    /// Maximum number of bytes of flash that its parameters may take.
    pub flash: Option<u64>,
    /// Fewest frames per second, by CNN; CNNs without a floor are absent.
    pub fps: BTreeMap<String, f64>,
    /// Maximum number of nanoseconds from a frame's first input to its last output, by CNN; CNNs without a limit are
    /// absent.
    pub latency_ns: BTreeMap<String, u64>,
}

impl Constraints {
    /// How fast a CNN shall be.
    pub fn demand_of(&self, cnn: &str) -> Demand {
        Demand { fps: self.fps.get(cnn).copied(), latency_ns: self.latency_ns.get(cnn).copied() }
    }
}

/// How fast a CNN shall be.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Demand {
    /// Fewest frames per second.
    pub fps: Option<f64>,
    /// Maximum number of nanoseconds from a frame's first input to its last output.
    pub latency_ns: Option<u64>,
}

impl Demand {
    /// Whether these rates meet the limits. A rate that equals its limit meets it.
    pub fn is_met(&self, fps: f64, latency_ns: u64) -> bool {
        self.fps.is_none_or(|least| fps >= least) && self.latency_ns.is_none_or(|most| latency_ns <= most)
    }
}

/// Rows per firing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RowsChoice {
    /// The planner's choice.
    Default,
    /// No layer processes its data by parts.
    None,
    /// Every layer that can fires row by row.
    All,
    /// Rows per firing by index of the CNN and layer, from 1 to the height of the layer's output. The other layers do
    /// not go by parts.
    Layers(BTreeMap<(usize, LayerId), u64>),
}

/// Resolves an application.
///
/// Relative paths start from `folder`. `load` loads a model (see [`super::load::load`]).
///
/// # Errors
/// The first fault that is found. It points into the application's text where it can.
pub fn resolve(
    spec: &AppSpec,
    origin: &Origin,
    folder: &Path,
    load: &mut dyn FnMut(&ModelRequest) -> Result<Loaded, LoadError>,
) -> Result<Application, Box<AppError>> {
    bind(spec, folder, load).map_err(|fault| fault.at(origin))
}

fn bind(
    spec: &AppSpec,
    folder: &Path,
    load: &mut dyn FnMut(&ModelRequest) -> Result<Loaded, LoadError>,
) -> Result<Application, AppFault> {
    if spec.cnns.is_empty() {
        return Err(AppFault::new(&["cnns".into()], "the application has no CNN", "empty")
            .help("give at least (model: \"file.onnx\") or (model: \"builtin:mobilenet_v2\")"));
    }
    check_settings(spec)?;
    let names = cnn_names(spec)?;
    check_unique(spec, &names)?;
    // Find the faults that need no model before any model is loaded.
    let fps = bind_fps(spec, &names)?;
    let latency_ns = bind_latency(spec, &names)?;
    let method = spec.search.method.unwrap_or_default();
    let storage = spec.storage.unwrap_or(method.storage());
    let fusion = Fusion::new(spec.fuse, storage);
    let memories = bind_memories(spec, storage, folder)?;
    stream::check(spec, storage)?;
    state::check(spec, storage)?;
    let mut cnns = Vec::new();
    for (i, (cnn, name)) in spec.cnns.iter().zip(&names).enumerate() {
        cnns.push(bind_cnn(cnn, name, &["cnns".into(), i.into()], folder, fusion, load)?);
    }
    let parallel = bind_parallel(spec, &cnns)?;
    stream::check_parallel(spec, &parallel)?;
    for cnn in &cnns {
        partition::check_components(&cnn.network, &cnn.partitions, &parallel, method)?;
    }
    // Storage model `edges` keeps the order of the paper.
    if storage == StorageModel::Tensors {
        cnns.iter_mut().for_each(|cnn| reorder(cnn, &parallel));
    }
    let is_stream = cnns.iter().any(|cnn| cnn.network.stream.is_some());
    Ok(Application {
        name: spec.name.clone().unwrap_or_else(|| names.join("+")),
        parallel,
        device: spec.device.clone().unwrap_or_else(|| DEFAULT_DEVICE.into()),
        constraints: Constraints {
            memory: spec.constraints.memory,
            flash: spec.constraints.flash.map(|Size(bytes)| bytes),
            memories,
            fps,
            latency_ns,
        },
        search: spec.search.clone(),
        storage,
        rows: bind_rows(&spec.rows, &cnns)?,
        streamed: bind_weights(spec, storage, &cnns)?.filter(|_| spec.weights == WeightsPlace::Streamed),
        may_be_streamed: bind_weights(spec, storage, &cnns)?
            .filter(|_| spec.weights == WeightsPlace::Auto && !is_stream && spec.constraints.ram.is_none()),
        fusion,
        threads: spec.threads,
        primitives: if is_stream { Primitives::Fixed } else { spec.primitives },
        max_primitive_error: spec.max_primitive_error,
        prefer: spec.prefer.unwrap_or(method.prefer()),
        cnns,
    })
}

/// Puts the layers of a CNN into the order of least peak, within its partitions. `parallel` is J, with the names of
/// partitions.
fn reorder(cnn: &mut Cnn, parallel: &[Vec<String>]) {
    let is_one = |name: &&String| cnn.partitions.iter().any(|partition| partition.name == **name);
    let is_pipeline = parallel.iter().any(|element| element.iter().filter(is_one).count() > 1);
    let stretches = cnn.partitions.iter().map(|partition| PartitionLayers {
        layers: &partition.layers,
        is_scheduled: partition.schedule.is_some(),
    });
    let network = std::mem::take(&mut cnn.network);
    cnn.network = pass::reorder(&cnn.name, network, &stretches.collect::<Vec<_>>(), is_pipeline);
}

fn check_settings(spec: &AppSpec) -> Result<(), AppFault> {
    if let Some(name) = &spec.name {
        check_name(name, "an application", &["name".into()])?;
    }
    if !(1..=MAX_THREADS).contains(&spec.threads) {
        let message = format!("threads must be 1 to {MAX_THREADS}, not {}", spec.threads);
        return Err(AppFault::new(&["threads".into()], message, "out of range"));
    }
    if spec.max_primitive_error.is_nan() || spec.max_primitive_error <= 0.0 {
        let message =
            format!("max_primitive_error must be a number above 0, not {}", spec.max_primitive_error);
        return Err(AppFault::new(&["max_primitive_error".into()], message, "out of range"));
    }
    for (i, cnn) in spec.cnns.iter().enumerate() {
        precisions::check(cnn, &["cnns".into(), i.into()])?;
    }
    let at = |field: &str| ["search".into(), PathStep::from(field)];
    if let Some(method) = spec.search.method {
        let name = method.name();
        if method.is_the_papers() && spec.storage == Some(StorageModel::Tensors) {
            let message = format!("method `{name}` needs storage model `edges`, not `tensors`");
            return Err(AppFault::new(&at("method"), message, "here")
                .help("leave out the storage model, or take method `extended`"));
        }
        if spec.rows != RowsSpec::Default {
            let message =
                format!("`rows` gives the rows of every layer, so method `{name}` has nothing to choose");
            return Err(AppFault::new(&at("method"), message, "here").help("leave out one of the two"));
        }
    }
    for (field, value) in [("crossover", spec.search.crossover), ("mutation", spec.search.mutation)] {
        if !(0.0..=1.0).contains(&value) {
            return Err(AppFault::new(
                &at(field),
                format!("{field} is a probability, 0 to 1, not {value}"),
                "out of range",
            ));
        }
    }
    for (field, value) in [("population", spec.search.population), ("generations", spec.search.generations)] {
        if !(1..=1_000_000).contains(&value) {
            let message = format!("{field} must be 1 to 1 000 000, not {value}");
            return Err(AppFault::new(&at(field), message, "out of range"));
        }
    }
    Ok(())
}

/// The CNNs' names, given or made from their models'.
fn cnn_names(spec: &AppSpec) -> Result<Vec<String>, AppFault> {
    let mut names = Vec::new();
    for (i, cnn) in spec.cnns.iter().enumerate() {
        let path = ["cnns".into(), i.into(), "name".into()];
        if let Some(name) = &cnn.name {
            check_name(name, "a CNN", &path)?;
        }
        names.push(cnn.name());
        for (j, partition) in cnn.partitions.iter().enumerate() {
            if let Some(name) = &partition.name {
                check_name(
                    name,
                    "a partition",
                    &[&path[..2], &["partitions".into(), j.into(), "name".into()]].concat(),
                )?;
            }
        }
    }
    Ok(names)
}

fn check_name(name: &str, what: &str, path: &[PathStep]) -> Result<(), AppFault> {
    if !name.is_empty() && name.chars().count() <= MAX_NAME_LEN && name.chars().all(in_name) {
        return Ok(());
    }
    Err(AppFault::new(path, format!("`{}` is no name of {what}", clip(name)), "not a name")
        .help(format!("a name has 1 to {MAX_NAME_LEN} letters, digits, `_`, `-` and `.`")))
}

/// Checks that no two CNNs or partitions share a name. The only partition of a CNN may have the CNN's name.
fn check_unique(spec: &AppSpec, names: &[String]) -> Result<(), AppFault> {
    let mut seen = BTreeSet::new();
    for (i, name) in names.iter().enumerate() {
        let path = [PathStep::from("cnns"), i.into()];
        if !seen.insert(name.clone()) {
            return Err(AppFault::new(&path, format!("two CNNs are named `{}`", clip(name)), "the second")
                .help("give each a `name` of its own"));
        }
    }
    for (i, cnn) in spec.cnns.iter().enumerate() {
        for (j, partition) in cnn.partitions.iter().enumerate() {
            let name = partition::name(&names[i], j, partition);
            let bears_the_cnn_s = cnn.partitions.len() == 1 && name == names[i];
            if !seen.insert(name.clone()) && !bears_the_cnn_s {
                let path = ["cnns".into(), i.into(), "partitions".into(), j.into(), "name".into()];
                let message = format!("`{}` already names a CNN or partition", clip(&name));
                return Err(AppFault::new(&path, message, "taken"));
            }
        }
    }
    Ok(())
}

/// The memories that the application may use, with what the device profile says of them.
fn bind_memories(spec: &AppSpec, storage: StorageModel, folder: &Path) -> Result<Vec<Memory>, AppFault> {
    let Some(ram) = &spec.constraints.ram else { return Ok(Vec::new()) };
    let path = [PathStep::from("constraints"), "ram".into()];
    if spec.constraints.memory.is_some() {
        let message = "`memory` and `ram` both say how much memory there is";
        return Err(AppFault::new(&path, message, "and here").help("leave out one of them"));
    }
    if storage == StorageModel::Edges {
        let message = "storage model `edges` has one memory, and `ram` names several";
        return Err(AppFault::new(&path, message, "here").help("leave out the storage model and its methods"));
    }
    let device = spec.device.as_deref().unwrap_or(DEFAULT_DEVICE);
    let device = DeviceProfile::find(device, folder).map_err(|error| {
        AppFault::new(&["device".into()], "the device's memories are not known", "this device")
            .cause(Box::new(error))
    })?;
    let memories = ram.memories(&device.memories).map_err(|error| {
        let fault = AppFault::new(&path, error.to_string(), "here");
        match error {
            RamError::Unknown { help, .. } => fault.help(help),
            _ => fault,
        }
    })?;
    let holding = |content| memories.iter().find(|memory| memory.holds.contains(&content));
    if let (Some(memory), None) = (holding(Content::Stack), &device.target) {
        let message = format!(
            "`{}` holds the stack, but how much of it a frame takes on device {} is not known",
            memory.name, device.name
        );
        return Err(AppFault::new(&path, message, "here")
            .help("name the profile of a microcontroller with --device, or leave room for the stack"));
    }
    if spec.weights == WeightsPlace::Streamed && holding(Content::Weights).is_none() {
        let message = "no memory holds `weights`, so streamed weights have no place";
        return Err(AppFault::new(&path, message, "here"));
    }
    Ok(memories)
}

fn bind_fps(spec: &AppSpec, names: &[String]) -> Result<BTreeMap<String, f64>, AppFault> {
    let path = [PathStep::from("constraints"), "fps".into()];
    let FpsSpec { every, of } = &spec.constraints.fps;
    let check = |fps: f64, path: &[PathStep]| match fps.is_finite() && fps > 0.0 {
        true => Ok(fps),
        false => Err(AppFault::new(
            path,
            format!("{fps} is no frame rate: give a number above 0"),
            "not a frame rate",
        )),
    };
    if let Some(fps) = every {
        check(*fps, &path)?;
    }
    for (name, fps) in of.iter().filter(|(name, _)| names.contains(name)) {
        check(*fps, &[&path[..], &[name.as_str().into()]].concat())?;
    }
    by_cnn(every.as_ref(), of, names, &path, "a frame rate")
}

fn bind_latency(spec: &AppSpec, names: &[String]) -> Result<BTreeMap<String, u64>, AppFault> {
    let path = [PathStep::from("constraints"), "latency".into()];
    let LatencySpec { every, of } = &spec.constraints.latency;
    let bound = by_cnn(every.as_ref(), of, names, &path, "a latency")?;
    Ok(bound.into_iter().map(|(name, Nanoseconds(time))| (name, time)).collect())
}

/// Merges a limit for all CNNs with limits for single CNNs, and returns the limit of each CNN. `what` names the limit
/// in messages.
fn by_cnn<T: Copy>(
    every: Option<&T>,
    of: &BTreeMap<String, T>,
    names: &[String],
    path: &[PathStep],
    what: &str,
) -> Result<BTreeMap<String, T>, AppFault> {
    if let Some(name) = of.keys().find(|name| !names.contains(name)) {
        let at = [path, &[PathStep::Key(name.clone())]].concat();
        return Err(AppFault::new(&at, format!("{what} for an unknown CNN `{}`", clip(name)), "no such CNN")
            .help(suggest::help(name, "the CNNs are", names.iter().map(String::as_str))));
    }
    let mut bound: BTreeMap<String, T> =
        names.iter().filter_map(|name| Some((name.clone(), *every?))).collect();
    bound.extend(of.iter().map(|(name, value)| (name.clone(), *value)));
    Ok(bound)
}

fn bind_cnn(
    spec: &CnnSpec,
    name: &str,
    path: &[PathStep],
    folder: &Path,
    fusion: Fusion,
    load: &mut dyn FnMut(&ModelRequest) -> Result<Loaded, LoadError>,
) -> Result<Cnn, AppFault> {
    let at = |field: &str| [path, &[PathStep::from(field)]].concat();
    let CnnSpec { model, shapes, values, part, .. } = spec;
    let batch = spec.batch.map(NonZeroUsize::get);
    let request = ModelRequest { model, folder, shapes, values, batch, part, fusion };
    let Loaded { network, source } = load(&request).map_err(|error| {
        let fault = AppFault::new(&at("model"), format!("cannot load `{}`", clip(&spec.model)), "this model");
        let help = error.help().map(|help| help.to_string());
        match help {
            Some(help) => fault.help(help).cause(Box::new(error)),
            None => fault.cause(Box::new(error)),
        }
    })?;
    if network.layers.is_empty() {
        return Err(AppFault::new(
            &at("model"),
            format!("`{}` has no layers", clip(&spec.model)),
            "this model",
        ));
    }
    let network = inputs::bind(network, spec, path)?;
    let network = stream::bind(network, spec, path)?;
    let network = state::bind(network, spec, path)?;
    if source.batch as u64 > MAX_BATCH {
        let message = format!("`{name}` has a batch of {}; csdfc takes at most {MAX_BATCH}", source.batch);
        return Err(AppFault::new(&at("model"), message, "this model"));
    }
    if source.batch > 1 && (network.stream.is_some() || !network.states.is_empty()) {
        let message =
            format!("`{name}` has a batch of {}, but keeps something from frame to frame", source.batch);
        return Err(AppFault::new(&at("model"), message, "this model").help(
            "the frames of a batch do not depend on each other: hand them over one by one, with a batch of 1",
        ));
    }
    let network = precisions::bind(network, spec, path)?;
    let (network, partitions) = partition::cut(network, name, &spec.partitions, path)?;
    Ok(Cnn { name: name.into(), network, model: source, partitions })
}

fn bind_parallel(spec: &AppSpec, cnns: &[Cnn]) -> Result<Vec<Vec<String>>, AppFault> {
    let all = || cnns.iter().flat_map(|cnn| &cnn.partitions).map(|partition| partition.name.as_str());
    let mut parallel = Vec::new();
    let mut listed = BTreeSet::new();
    for (i, element) in spec.parallel.iter().enumerate() {
        let path = [PathStep::from("parallel"), i.into()];
        if element.is_empty() {
            return Err(AppFault::new(&path, "an element of `parallel` lists nothing", "empty"));
        }
        let mut together: Vec<String> = Vec::new();
        for (j, name) in element.iter().enumerate() {
            let at = [&path[..], &[j.into()]].concat();
            let meant: Vec<&str> = match cnns.iter().find(|cnn| cnn.name == *name) {
                Some(cnn) => cnn.partitions.iter().map(|partition| partition.name.as_str()).collect(),
                None => all().filter(|partition| partition == name).collect(),
            };
            if meant.is_empty() {
                let known = cnns.iter().map(|cnn| cnn.name.as_str()).chain(all());
                let known: BTreeSet<&str> = known.collect();
                let message = format!("`parallel` lists an unknown CNN or partition `{}`", clip(name));
                return Err(AppFault::new(&at, message, "no such CNN or partition").help(suggest::help(
                    name,
                    "the names are",
                    known,
                )));
            }
            for partition in meant {
                if together.iter().any(|other| other == partition) {
                    let message =
                        format!("`{}` is listed twice in one element of `parallel`", clip(partition));
                    return Err(AppFault::new(&at, message, "once more"));
                }
                together.push(partition.into());
                listed.insert(partition);
            }
        }
        parallel.push(together);
    }
    parallel.extend(all().filter(|partition| !listed.contains(partition)).map(|name| vec![name.to_string()]));
    check_pipelines(&parallel, cnns)?;
    Ok(parallel)
}

/// Checks that partitions of one CNN that run at the same time form a pipeline: they follow each other, and each of
/// them runs at the same time as all others.
fn check_pipelines(parallel: &[Vec<String>], cnns: &[Cnn]) -> Result<(), AppFault> {
    let together = |p: &str, q: &str| {
        let has = |element: &Vec<String>, name: &str| element.iter().any(|other| other == name);
        parallel.iter().any(|element| has(element, p) && has(element, q))
    };
    for cnn in cnns {
        let names: Vec<&str> = cnn.partitions.iter().map(|partition| partition.name.as_str()).collect();
        for (j, middle) in names.iter().enumerate() {
            let pairs = names[..j].iter().flat_map(|p| names[j + 1..].iter().map(move |q| (p, q)));
            for (before, after) in pairs {
                if together(before, after) != (together(before, middle) && together(middle, after)) {
                    let [before, middle, after] = [before, middle, after].map(|name| clip(name));
                    let message = format!(
                        "`{before}`, `{middle}` and `{after}` of CNN `{}` are no pipeline",
                        clip(&cnn.name)
                    );
                    return Err(AppFault::new(&["parallel".into()], message, "here").help(
                        "partitions of one CNN that run at the same time must follow each other, all in one element",
                    ));
                }
            }
        }
    }
    Ok(())
}

fn bind_rows(spec: &RowsSpec, cnns: &[Cnn]) -> Result<RowsChoice, AppFault> {
    let layers = match spec {
        RowsSpec::Default => return Ok(RowsChoice::Default),
        RowsSpec::None => return Ok(RowsChoice::None),
        RowsSpec::All => return Ok(RowsChoice::All),
        RowsSpec::Layers(layers) => layers,
    };
    let mut bound = BTreeMap::new();
    for (name, rows) in layers {
        let key = ["rows".into(), PathStep::Key(name.clone())];
        let (cnn, layer) = find_in_application(name, cnns, &key, "rows for")?;
        let height = cnns[cnn].network.layer(layer).rows() as u64;
        if !(1..=height).contains(rows) {
            let message =
                format!("`{}` cannot fire {rows} rows at a time: its output has {height}", clip(name));
            return Err(AppFault::new(&["rows".into(), name.as_str().into()], message, "out of range")
                .help(format!("give 1 to {height}")));
        }
        if bound.insert((cnn, layer), *rows).is_some() {
            let message = format!("the rows of layer `{}` are already given", clip(name));
            return Err(AppFault::new(&key, message, "once more under another name"));
        }
    }
    Ok(RowsChoice::Layers(bound))
}

/// The layers whose weights are streamed, and those whose weights may be.
fn bind_weights(spec: &AppSpec, storage: StorageModel, cnns: &[Cnn]) -> Result<Option<Streamed>, AppFault> {
    let mut streamed = Streamed::default();
    for (i, name) in spec.resident.iter().enumerate() {
        let (cnn, layer) =
            find_in_application(name, cnns, &["resident".into(), i.into()], "resident weights of")?;
        streamed.resident.insert((cnn, cnns[cnn].network.layer(layer).name.clone()));
    }
    match spec.weights {
        WeightsPlace::Resident => return Ok(None),
        WeightsPlace::Auto if storage == StorageModel::Edges => return Ok(None),
        WeightsPlace::Auto | WeightsPlace::Streamed => {}
    }
    if storage == StorageModel::Edges {
        let message = "streamed weights need storage model `tensors`, not `edges`";
        return Err(AppFault::new(&["weights".into()], message, "here")
            .help("leave out the storage model and the paper's methods, or keep the weights resident"));
    }
    Ok(Some(streamed))
}

/// The layer that `CNN/LAYER` names, or `LAYER` where only one CNN has it.
fn find_in_application(
    name: &str,
    cnns: &[Cnn],
    path: &[PathStep],
    what: &str,
) -> Result<(usize, LayerId), AppFault> {
    let in_cnn = |(i, cnn): (usize, &Cnn)| {
        let layer = name.strip_prefix(&cnn.name)?.strip_prefix('/')?;
        find_layer(&cnn.network, layer).map(|id| (i, id))
    };
    if let Some(found) = cnns.iter().enumerate().find_map(in_cnn) {
        return Ok(found);
    }
    let anywhere = |(i, cnn): (usize, &Cnn)| find_layer(&cnn.network, name).map(|id| (i, id));
    let found: Vec<_> = cnns.iter().enumerate().filter_map(anywhere).collect();
    match found[..] {
        [one] => Ok(one),
        [] => {
            let prefix = cnns.len() > 1;
            let layers: Vec<String> = cnns
                .iter()
                .flat_map(|cnn| cnn.network.layers.iter().map(move |layer| (cnn, layer)))
                .map(
                    |(cnn, layer)| {
                        if prefix { format!("{}/{}", cnn.name, layer.name) } else { layer.name.clone() }
                    },
                )
                .collect();
            let layers = layers.iter().map(String::as_str);
            Err(AppFault::new(path, format!("{what} an unknown layer `{}`", clip(name)), "no such layer")
                .help(suggest::help(name, "the layers are", layers)))
        }
        [(first, _), ..] => {
            let message = format!("{} CNNs have a layer `{}`", found.len(), clip(name));
            Err(AppFault::new(path, message, "ambiguous").help(format!(
                "say which: `{}/{}`",
                cnns[first].name,
                clip(name)
            )))
        }
    }
}
