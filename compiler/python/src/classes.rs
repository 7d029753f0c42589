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

use super::errors::{Error, Unmet, failed};
use super::frames::{Frames, input_of};

/// A plan, the folder from which the paths of its models start, and the frames that run.
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
    cnn: String,
    name: String,
    operator: &'static str,
    primitive: String,
    shape: Shape,
    rows_per_firing: u64,
    firings: u64,
    parameters: u64,
    seconds: Option<f64>,
}

/// A plan that the search saw.
#[pyclass(frozen, get_all, module = "csdfc")]
pub struct Point {
    total: u64,
    fps: BTreeMap<String, f64>,
}

/// What lies in the arena.
#[pyclass(frozen, get_all, module = "csdfc")]
pub struct Place {
    name: String,
    kind: &'static str,
    offsets: Vec<u64>,
    bytes: u64,
    lives: Vec<(f64, f64)>,
}

#[pymethods]
impl Plan {
    #[staticmethod]
    fn load(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        let (plan, folder) = py.detach(|| call::load(&path)).map_err(failed)?;
        Ok(Plan::new(plan, std::env::current_dir()?.join(folder)))
    }

    #[getter]
    fn application(&self) -> &str {
        &self.plan.application
    }

    #[getter]
    fn arena(&self) -> u64 {
        self.plan.memory.arena
    }

    #[getter]
    fn parameters(&self) -> u64 {
        self.plan.memory.parameters
    }

    #[getter]
    fn total(&self) -> u64 {
        self.plan.memory.total
    }

    #[getter]
    fn fps(&self) -> BTreeMap<&str, f64> {
        self.plan.cnns.iter().map(|cnn| (cnn.name.as_str(), cnn.fps)).collect()
    }

    #[getter]
    fn latency(&self) -> BTreeMap<&str, f64> {
        self.plan.cnns.iter().map(|cnn| (cnn.name.as_str(), cnn.latency_ns as f64 / 1e9)).collect()
    }

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

    #[getter]
    fn front(&self) -> Vec<Point> {
        let point =
            |point: &csdfc_plan::plan::ParetoPoint| Point { total: point.memory, fps: point.fps.clone() };
        self.plan.pareto.iter().map(point).collect()
    }

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

    #[pyo3(signature = (inputs, *, cnn = None))]
    fn run<'py>(&self, inputs: &Bound<'py, PyAny>, cnn: Option<&str>) -> PyResult<Bound<'py, PyDict>> {
        self.frames.run(&self.plan, &self.folder, inputs, cnn)
    }

    fn reset(&self, py: Python<'_>) -> PyResult<()> {
        self.frames.reset(py, &self.plan, &self.folder)
    }

    fn check(&self, py: Python<'_>) -> PyResult<()> {
        match py.detach(|| call::check(&self.plan, &self.folder)).map_err(failed)?.as_slice() {
            [] => Ok(()),
            wrong => Err(Error::new_err(format!("the plan is refused:\n  {}", wrong.join("\n  ")))),
        }
    }

    fn report(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        let page = || call::write(&path, call::page(&self.plan)?.as_bytes());
        py.detach(page).map_err(failed)
    }

    #[pyo3(signature = (folder, *, crate_name = None, image_files = false))]
    fn emit(&self, py: Python<'_>, folder: PathBuf, crate_name: Option<String>, image_files: bool) -> PyResult<()> {
        py.detach(|| call::emit(&self.plan, &self.folder, &folder, crate_name, image_files)).map_err(failed)
    }

    fn to_json(&self) -> String {
        self.plan.to_json()
    }

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

/// What it would take to meet constraints.
#[pyclass(frozen, module = "csdfc")]
pub struct Remedy(csdfc_plan::remedy::Remedy);

#[pymethods]
impl Remedy {
    #[getter]
    fn means(&self) -> &str {
        &self.0.means
    }

    /// As keywords of `csdfc.plan`.
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

    #[getter]
    fn total(&self) -> u64 {
        self.0.total
    }

    #[getter]
    fn fps(&self) -> BTreeMap<String, f64> {
        self.0.fps.clone()
    }

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

/// A packing.
#[pyclass(frozen, module = "csdfc")]
pub struct Packing(pub Solution);

#[pymethods]
impl Packing {
    #[getter]
    fn offsets(&self) -> Vec<u64> {
        self.0.packing.offsets.clone()
    }

    #[getter]
    fn bytes(&self) -> u64 {
        self.0.packing.bytes
    }

    #[getter]
    fn bound(&self) -> u64 {
        self.0.bound
    }

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
    path: PathBuf,
    frames: usize,
    outputs: BTreeMap<String, f64>,
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
