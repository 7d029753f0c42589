//! What the functions return and raise.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use csdfc_build::BuildError;
use csdfc_build::plan::Plan as Data;
use csdfc_packing::Solution;
use csdfc_planner::saved::identity;
use pyo3::create_exception;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;

create_exception!(csdfc, Error, PyException);
create_exception!(csdfc, Unmet, Error);

/// A plan, and the folder from which the paths of its models start.
#[pyclass(frozen, module = "csdfc")]
pub struct Plan {
    plan: Data,
    folder: PathBuf,
}

#[pymethods]
impl Plan {
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

    fn to_json(&self) -> String {
        self.plan.to_json()
    }

    fn save(&self, path: PathBuf) -> PyResult<()> {
        let mut plan = self.plan.clone();
        let folder = path.parent().unwrap_or(Path::new(""));
        for model in plan.cnns.iter_mut().map(|cnn| &mut cnn.model) {
            if !model.path.starts_with("builtin:") {
                model.path = identity::file_from(folder, &self.folder.join(&model.path));
            }
        }
        Ok(std::fs::write(path, plan.to_json())?)
    }

    fn __repr__(&self) -> String {
        let memory = &self.plan.memory;
        format!(
            "<csdfc.Plan of {}: {} bytes, arena of {}>",
            self.plan.application, memory.total, memory.arena
        )
    }
}

impl Plan {
    /// A plan that was made in the current folder.
    pub fn here(plan: Data) -> PyResult<Self> {
        Ok(Plan { plan, folder: std::env::current_dir()? })
    }
}

/// An error as one of Python's.
pub fn raised(py: Python<'_>, error: BuildError) -> PyErr {
    let text = error.to_string();
    let BuildError::Unmet { nearest, .. } = error else { return Error::new_err(text) };
    let raised = Unmet::new_err(text);
    let nearest =
        Plan::here(*nearest).and_then(|plan| raised.value(py).setattr("nearest", Py::new(py, plan)?));
    nearest.map_or_else(|error| error, |()| raised)
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
