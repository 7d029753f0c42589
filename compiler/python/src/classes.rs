//! What the functions return.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use csdfc_command::call;
use csdfc_packing::Solution;
use csdfc_plan::operator::Operator;
use csdfc_plan::plan::Plan as Data;
use csdfc_planner::saved::identity;
use csdfc_runtime::run::{element, input_dims};
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use super::errors::{Error, Unmet, failed, warn};
use super::frames::{Frames, input_of};

/// A plan: how an application of CNNs runs in a memory budget. Whoever makes one has had it checked.
#[pyclass(frozen, module = "csdfc")]
pub struct Plan {
    plan: Arc<Data>,
    folder: PathBuf,
    frames: Frames,
}

/// Dimensions, a tuple in Python.
#[derive(Clone)]
struct Shape(Vec<usize>);

impl<'py> IntoPyObject<'py> for Shape {
    type Target = PyTuple;
    type Output = Bound<'py, PyTuple>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.0)
    }
}

/// A layer of a plan.
#[pyclass(frozen, get_all, module = "csdfc")]
pub struct Layer {
    /// Its CNN.
    cnn: String,
    /// Its name: that of its first ONNX node.
    name: String,
    /// What it computes, as plans call it.
    operator: &'static str,
    /// How it is computed.
    primitive: String,
    /// The shape of the tensor that it makes, such as `(1, C, H, W)`.
    shape: Shape,
    /// Rows of its tensor that a firing makes; the last one may make fewer.
    rows_per_firing: u64,
    /// Firings in a frame.
    firings: u64,
    /// Bytes of its weights and biases.
    parameters: u64,
    /// Its time in a frame, as modelled or measured, in seconds.
    seconds: Option<f64>,
}

/// A plan that the search saw.
#[pyclass(frozen, get_all, module = "csdfc")]
pub struct Point {
    /// Bytes of its arena and of the parameters that stay in memory.
    total: u64,
    /// Modelled frames per second, by the names of the CNNs.
    fps: BTreeMap<String, f64>,
}

/// What lies in the arena: a ring of a tensor's rows, a workspace, or a block of streamed weights.
#[pyclass(frozen, get_all, module = "csdfc")]
pub struct Place {
    /// `CNN/TENSOR`, `workspace of CNN/LAYER`, or `block 0 of CNN/LAYER`.
    name: String,
    /// What it is, such as `whole tensor` or `ring of rows`.
    kind: &'static str,
    /// Its first address in the arena, in bytes; two if it is a double buffer.
    offsets: Vec<u64>,
    /// Its bytes, of both halves of a double buffer.
    bytes: u64,
    /// When it is in use, frame by frame: modelled seconds from the begin of the first frame.
    lives: Vec<(f64, f64)>,
}

/// What a plan takes on a microcontroller beside its arena.
#[pyclass(frozen, get_all, module = "csdfc")]
pub struct Board {
    /// The compiler's name of the target, such as `thumbv7em-none-eabihf`.
    target: &'static str,
    /// Bytes of code with optimisation for speed: an estimate.
    code: u64,
    /// The same with `opt-level = "s"`, for size.
    small_code: u64,
    /// Bytes of the weights and biases in flash.
    parameters: u64,
    /// Bytes of stack of a frame: an estimate.
    stack: u64,
    /// What was not measured, so that more is needed than that.
    not_counted: Vec<String>,
}

#[pymethods]
impl Plan {
    /// Reads a plan that `csdfc plan -o` or `save` wrote. Its models are read when it runs.
    ///
    /// Raises `Error` if the file cannot be read or holds no plan.
    #[staticmethod]
    fn load(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        let (plan, folder) = py.detach(|| call::load(&path)).map_err(failed)?;
        Ok(Plan::new(plan, std::env::current_dir()?.join(folder)))
    }

    /// The name of the application.
    #[getter]
    fn application(&self) -> &str {
        &self.plan.application
    }

    /// Bytes of the arena: buffers, workspace, and blocks of streamed weights.
    #[getter]
    fn arena(&self) -> u64 {
        self.plan.memory.arena
    }

    /// Bytes of weights and biases, wherever they are.
    #[getter]
    fn parameters(&self) -> u64 {
        self.plan.memory.parameters
    }

    /// Bytes of the arena and of the parameters that stay in memory.
    #[getter]
    fn total(&self) -> u64 {
        self.plan.memory.total
    }

    /// Modelled frames per second, by the names of the CNNs.
    #[getter]
    fn fps(&self) -> BTreeMap<&str, f64> {
        self.plan.cnns.iter().map(|cnn| (cnn.name.as_str(), cnn.fps)).collect()
    }

    /// Modelled seconds from a frame's first input to its last output, by the names of the CNNs.
    #[getter]
    fn latency(&self) -> BTreeMap<&str, f64> {
        self.plan.cnns.iter().map(|cnn| (cnn.name.as_str(), cnn.latency_ns as f64 / 1e9)).collect()
    }

    /// What `run` takes: the shape and the element type of each input, such as `((1, 3, 32, 32), "float32")`. If there are
    /// several CNNs, names are `CNN/INPUT`.
    #[getter]
    fn inputs<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let inputs = PyDict::new(py);
        for cnn in &self.plan.cnns {
            for name in &cnn.inputs {
                let is_only = self.plan.cnns.len() == 1;
                let key = if is_only { name.clone() } else { format!("{}/{name}", cnn.name) };
                let taken = input_of(cnn, name);
                let taken = taken.map(|(input, shape)| (Shape(input_dims(input, shape)), element(input)));
                inputs.set_item(key, taken)?;
            }
        }
        Ok(inputs)
    }

    /// The layers of all CNNs, in their order.
    #[getter]
    fn layers(&self) -> Vec<Layer> {
        let of_cnn = |cnn: &csdfc_plan::plan::Cnn| {
            let layers = cnn.layers.iter().filter(|layer| !matches!(layer.operator, Operator::Input(_)));
            layers
                .map(|layer| Layer {
                    cnn: cnn.name.clone(),
                    name: layer.name.clone(),
                    operator: layer.operator.kind(),
                    primitive: layer.primitive.clone(),
                    shape: Shape(layer.output_shape.dims.clone()),
                    rows_per_firing: layer.rows_per_firing,
                    firings: layer.firings,
                    parameters: layer.parameters,
                    seconds: layer.time.map(|time| time.ns / 1e9),
                })
                .collect::<Vec<_>>()
        };
        self.plan.cnns.iter().flat_map(of_cnn).collect()
    }

    /// The plans that the search saw of which none is better than another in both memory and time, by falling memory.
    /// There are more of them with `pareto=True`.
    #[getter]
    fn front(&self) -> Vec<Point> {
        let point =
            |point: &csdfc_plan::plan::ParetoPoint| Point { total: point.memory, fps: point.fps.clone() };
        self.plan.pareto.iter().map(point).collect()
    }

    /// What lies where in the arena, and when.
    fn memory_map(&self, py: Python<'_>) -> PyResult<Vec<Place>> {
        let timeline = py.detach(|| call::timeline(&self.plan)).map_err(failed)?;
        let place = |(number, place): (usize, &csdfc_plan::timeline::Place)| Place {
            name: place.name.clone(),
            kind: place.kind.name(),
            offsets: place.offsets.clone(),
            bytes: place.bytes(),
            lives: timeline
                .lives
                .iter()
                .filter(|life| life.place == number)
                .filter_map(|life| Some((life.steps.first()?.0 / 1e9, life.steps.last()?.0 / 1e9)))
                .collect(),
        };
        Ok(timeline.places.iter().enumerate().map(place).collect())
    }

    /// What it takes on the microcontroller that its device profile is of, beside its arena. `None` if it is for something
    /// else.
    #[getter]
    fn board(&self, py: Python<'_>) -> Option<Board> {
        let board = py.detach(|| call::board(&self.plan))?;
        let call::Board { target, code, small_code, parameters, stack, not_counted } = board;
        let not_counted = not_counted.into_iter().collect();
        Some(Board { target, code, small_code, parameters, stack, not_counted })
    }

    /// Runs a frame in memory of exactly the planned size, and returns the outputs by name.
    ///
    /// `inputs` is an array if the CNN has one input, or a dictionary of arrays by name, in the shapes and element types
    /// of `Plan.inputs`: those of the model, such as float32 of `(1, C, H, W)`. 16-bit floats are widened. `cnn` is the
    /// name of the CNN, if the plan has several. A frame of a stream is a hop: it goes on where the last one ended.
    /// If a call of the CNN takes several frames, arrays have them along their first dimension.
    ///
    /// The first frame reads the model and packs its weights. Other threads of Python run meanwhile.
    ///
    /// Raises `Error` if an input is missing, or of another shape or element type than the CNN takes, or the model cannot
    /// be read.
    #[pyo3(signature = (inputs, *, cnn = None))]
    fn run<'py>(&self, inputs: &Bound<'py, PyAny>, cnn: Option<&str>) -> PyResult<Bound<'py, PyDict>> {
        self.frames.run(&self.plan, &self.folder, inputs, cnn)
    }

    /// Begins anew: forgets what streams and states keep of the frames so far.
    fn reset(&self, py: Python<'_>) -> PyResult<()> {
        self.frames.reset(py, &self.plan, &self.folder)
    }

    /// Has the plan checked: a replay finds nothing wrong, and its layers are those of its models.
    ///
    /// Raises `Error`, with all that is wrong.
    fn check(&self, py: Python<'_>) -> PyResult<()> {
        match py.detach(|| call::check(&self.plan, &self.folder)).map_err(failed)?.as_slice() {
            [] => Ok(()),
            wrong => Err(Error::new_err(format!("the plan is refused:\n  {}", wrong.join("\n  ")))),
        }
    }

    /// Writes the plan as a page for a browser, as `csdfc report` does. The page is one file.
    fn report(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        let page = || call::write(&path, call::page(&self.plan)?.as_bytes());
        py.detach(page).map_err(failed)
    }

    /// Writes the plan as a Rust crate into a folder, as `csdfc emit` does. Other files of the folder are left alone. With
    /// `image_files`, its program also takes PNG and JPEG files, by the crate `image`.
    #[pyo3(signature = (folder, *, crate_name = None, image_files = false))]
    fn emit(
        &self,
        py: Python<'_>,
        folder: PathBuf,
        crate_name: Option<String>,
        image_files: bool,
    ) -> PyResult<()> {
        let emit = || call::emit(&self.plan, &self.folder, &folder, crate_name, image_files);
        let (emitted, warnings) = py.detach(|| call::with_warnings(emit));
        warn(py, warnings)?;
        emitted.map_err(failed)
    }

    /// The plan as `csdfc plan -o` writes it. Paths of models start from the current folder.
    fn to_json(&self) -> String {
        self.plan.to_json()
    }

    /// Writes the plan to a file, for `Plan.load` and for `csdfc check`, `run`, `report` and `emit`: RON if the name ends in
    /// `.ron`, JSON otherwise. Paths of models start from its folder.
    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        let mut plan = Data::clone(&self.plan);
        let folder = path.parent().unwrap_or(Path::new(""));
        for model in plan.cnns.iter_mut().map(|cnn| &mut cnn.model) {
            if !model.path.starts_with("builtin:") {
                model.path = identity::file_from(folder, &self.folder.join(&model.path));
            }
        }
        py.detach(|| call::save(&plan, &path)).map_err(failed)
    }

    fn __repr__(&self) -> String {
        let memory = &self.plan.memory;
        format!(
            "<csdfc.Plan of {}: {} bytes, arena of {}>",
            self.plan.application, memory.total, memory.arena
        )
    }

    fn _repr_html_(&self, py: Python<'_>) -> PyResult<String> {
        py.detach(|| call::map(&self.plan)).map_err(failed)
    }
}

impl Plan {
    fn new(plan: Data, folder: PathBuf) -> Self {
        Plan { plan: Arc::new(plan), folder, frames: Frames::default() }
    }

    /// A plan that was made in the current folder.
    pub fn here(plan: Data) -> PyResult<Self> {
        Ok(Plan::new(plan, std::env::current_dir()?))
    }
}

#[pymethods]
impl Layer {
    fn __repr__(&self) -> String {
        format!(
            "<csdfc.Layer {}: {} to {:?}, {} firings>",
            self.name, self.operator, self.shape.0, self.firings
        )
    }
}

#[pymethods]
impl Point {
    fn __repr__(&self) -> String {
        let rates: Vec<String> = self.fps.iter().map(|(cnn, fps)| format!("{cnn} {fps:.1} fps")).collect();
        format!("<csdfc.Point: {} bytes, {}>", self.total, rates.join(", "))
    }
}

#[pymethods]
impl Place {
    fn __repr__(&self) -> String {
        format!("<csdfc.Place {}: {}, {} bytes at {:?}>", self.name, self.kind, self.bytes, self.offsets)
    }
}

#[pymethods]
impl Board {
    fn __repr__(&self) -> String {
        let Board { target, code, parameters, stack, .. } = self;
        format!("<csdfc.Board {target}: {code} + {parameters} bytes of flash, {stack} of stack>")
    }
}

/// The error of a plan that misses what was asked.
pub fn unmet(py: Python<'_>, text: String, nearest: Data) -> PyErr {
    let error = Unmet::new_err(text);
    let remedies: Vec<Remedy> = nearest.constraints.remedies.iter().cloned().map(Remedy).collect();
    match error.value(py).setattr("remedies", remedies) {
        Ok(()) => with_plan(py, error, "nearest", nearest),
        Err(failed) => failed,
    }
}

/// An error that has a plan under this name.
pub fn with_plan(py: Python<'_>, error: PyErr, name: &str, plan: Data) -> PyErr {
    let set = Plan::here(plan).and_then(|plan| error.value(py).setattr(name, Py::new(py, plan)?));
    set.map_or_else(|failed| failed, |()| error)
}

/// Another plan that was made because constraints are not met.
#[pyclass(frozen, module = "csdfc")]
pub struct Remedy(csdfc_plan::remedy::Remedy);

#[pymethods]
impl Remedy {
    /// What differs from what was asked.
    #[getter]
    fn means(&self) -> &str {
        &self.0.means
    }

    /// Keywords of `plan` that make it, in place of those of the same names: `plan(model, **(mine | remedy.options))`.
    #[getter]
    fn options<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let options = PyDict::new(py);
        for pair in self.0.options.as_chunks::<2>().0 {
            let [name, value] = pair.each_ref().map(String::as_str);
            let name = name.trim_start_matches('-').replace('-', "_");
            match value.split_once('=') {
                None => options.set_item(name, number_or_text(py, value)?)?,
                Some((cnn, value)) => {
                    let of_cnns = match options.get_item(&name)? {
                        Some(known) => known.cast_into::<PyDict>()?,
                        None => PyDict::new(py),
                    };
                    of_cnns.set_item(cnn, number_or_text(py, value)?)?;
                    options.set_item(name, of_cnns)?;
                }
            }
        }
        Ok(options)
    }

    /// Its bytes.
    #[getter]
    fn total(&self) -> u64 {
        self.0.total
    }

    /// Its frames per second, by CNN.
    #[getter]
    fn fps(&self) -> BTreeMap<String, f64> {
        self.0.fps.clone()
    }

    /// Whether it meets the constraints.
    #[getter]
    fn met(&self) -> bool {
        self.0.met
    }

    fn __repr__(&self) -> String {
        let met = if self.0.met { "met" } else { "not met" };
        format!("<csdfc.Remedy {}: {} bytes, {met}>", self.0.means, self.0.total)
    }
}

/// The value of an option.
fn number_or_text<'py>(py: Python<'py>, value: &str) -> PyResult<Bound<'py, PyAny>> {
    match (value.parse::<i64>(), value.parse::<f64>()) {
        (Ok(whole), _) => whole.into_bound_py_any(py),
        (_, Ok(number)) => number.into_bound_py_any(py),
        _ => value.into_bound_py_any(py),
    }
}

/// Offsets for buffers of which some are in use at the same time.
#[pyclass(frozen, module = "csdfc")]
pub struct Packing(pub Solution);

#[pymethods]
impl Packing {
    /// The offset of each buffer, in bytes, in the order in which the buffers were given.
    #[getter]
    fn offsets(&self) -> Vec<u64> {
        self.0.packing.offsets.clone()
    }

    /// The end of the highest buffer.
    #[getter]
    fn bytes(&self) -> u64 {
        self.0.packing.bytes
    }

    /// No packing takes fewer bytes than this.
    #[getter]
    fn bound(&self) -> u64 {
        self.0.bound
    }

    /// Whether no packing is smaller.
    #[getter]
    fn proven(&self) -> bool {
        self.0.proven()
    }

    fn __repr__(&self) -> String {
        let least = if self.0.proven() { "the least" } else { "not proven the least" };
        format!(
            "<csdfc.Packing of {} buffers in {} bytes, {least}>",
            self.0.packing.offsets.len(),
            self.0.packing.bytes
        )
    }
}

/// A quantized model on disk, and how much it errs.
#[pyclass(frozen, get_all, module = "csdfc")]
pub struct Quantized {
    /// The ONNX file, a `pathlib.Path`.
    path: PathBuf,
    /// Frames that it was calibrated with.
    frames: usize,
    /// The error of each output: the norm of all changes, divided by the norm of the output.
    outputs: BTreeMap<String, f64>,
    /// The error of each layer's tensor, with all layers before it on integers; `None` if it keeps floats.
    layers: BTreeMap<String, Option<f64>>,
}

impl Quantized {
    /// What the report of a model that was written to a file says.
    pub fn new(path: PathBuf, report: &csdfc_precision::quantize::Report) -> Self {
        Quantized {
            path,
            frames: report.frames,
            outputs: report.outputs.iter().map(|output| (output.output.clone(), output.error)).collect(),
            layers: report.layers.iter().map(|layer| (layer.layer.clone(), layer.error)).collect(),
        }
    }
}

#[pymethods]
impl Quantized {
    fn __repr__(&self) -> String {
        let errors: Vec<String> =
            self.outputs.iter().map(|(output, error)| format!("{output} {error:.2e}")).collect();
        format!("<csdfc.Quantized {}: errors of outputs {}>", self.path.display(), errors.join(", "))
    }
}
