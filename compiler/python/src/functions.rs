//! The functions.

use std::ffi::OsString;
use std::path::PathBuf;

use csdfc_build::Build;
use csdfc_command::invoke;
use csdfc_packing::{Block, Budget, Life, Meter, lives};
use csdfc_planner::minimalloc::MAX_ROWS;
use pyo3::prelude::*;

use super::classes::{Error, Packing, Plan, raised};

/// A limit on memory: bytes, or what the command takes.
#[derive(FromPyObject)]
pub enum Memory {
    Bytes(u64),
    Text(String),
}

#[pyfunction]
#[pyo3(signature = (model, *, mem = None, fps = None, device = None))]
pub fn plan(
    py: Python<'_>,
    model: PathBuf,
    mem: Option<Memory>,
    fps: Option<f64>,
    device: Option<String>,
) -> PyResult<Plan> {
    let mut build = Build::new(model);
    build = match mem {
        Some(Memory::Bytes(bytes)) => build.memory(bytes.to_string()),
        Some(Memory::Text(text)) => build.memory(text),
        None => build,
    };
    build = fps.into_iter().fold(build, Build::fps);
    build = device.into_iter().fold(build, Build::device);
    let planned = py.detach(|| build.plan());
    Plan::here(planned.map_err(|error| raised(py, error))?)
}

#[pyfunction]
#[pyo3(signature = (buffers, *, steps = 1_000_000_000))]
pub fn pack(py: Python<'_>, buffers: &Bound<'_, PyAny>, steps: u64) -> PyResult<Packing> {
    let lives: Vec<Life> = buffers
        .try_iter()?
        .map(|buffer| {
            let (lower, upper, bytes) = buffer?.extract()?;
            Ok(Life { block: Block::of_bytes(bytes), lower, upper, gaps: Vec::new() })
        })
        .collect::<PyResult<_>>()?;
    if lives.len() > MAX_ROWS {
        return Err(Error::new_err(format!(
            "there are {} buffers; csdfc packs up to {MAX_ROWS}",
            lives.len()
        )));
    }
    let problem = lives::problem(&lives).map_err(|error| Error::new_err(error.to_string()))?;
    Ok(Packing(py.detach(|| csdfc_packing::pack(&problem, &mut Meter::new(Budget::Work(steps))))))
}

#[pyfunction]
pub fn main(py: Python<'_>) -> PyResult<()> {
    let arguments: Vec<OsString> = py.import("sys")?.getattr("argv")?.extract()?;
    // Python would only note that somebody wants it to end.
    let signal = py.import("signal")?;
    signal.call_method1("signal", (signal.getattr("SIGINT")?, signal.getattr("SIG_DFL")?))?;
    let code = py.detach(|| invoke(arguments));
    std::process::exit(i32::from(code))
}
