//! The functions.

use std::ffi::OsString;
use std::path::PathBuf;

use csdfc_command::{call, invoke};
use csdfc_packing::{Block, Budget, Life, Meter, lives};
use csdfc_planner::minimalloc::MAX_ROWS;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

use super::classes::{Packing, Plan, Quantized, unmet, with_plan};
use super::errors::{Error, failed};
use super::interrupt::{self, Interrupted};
use super::options::{self, arguments};

#[pyfunction]
#[pyo3(
    signature = (model, **options),
    text_signature = "(model, *, mem=None, ram=None, flash=None, fps=None, latency=None, precision=None, max_error=None, calibrate=None, random=None, weights=None, shape=None, value=None, input=None, no_fuse=False, stream=None, hop=None, window=None, state=None, device=None, threads=None, prefer=None, storage=None, rows=None, method=None, primitives=None, max_primitive_error=None, seed=None, budget=None, without=None, from_front=None, pick=None, pareto=False)"
)]
pub fn plan(py: Python<'_>, model: &Bound<'_, PyAny>, options: Option<&Bound<'_, PyDict>>) -> PyResult<Plan> {
    let mut call = arguments("plan", options::PLAN, options)?;
    call.push("--".into());
    call.extend(models(model)?);
    match interrupt::work(py, move |stop| call::plan(call, stop)) {
        Ok(planned) => {
            let call::Planned { plan, unmet: text } = planned.map_err(failed)?;
            match text {
                None => Plan::here(plan),
                Some(text) => Err(unmet(py, text, plan)),
            }
        }
        Err(Interrupted { error, answer: Some(Ok(planned)) }) => {
            Err(with_plan(py, error, "plan", planned.plan))
        }
        Err(Interrupted { error, .. }) => {
            error.value(py).setattr("plan", py.None())?;
            Err(error)
        }
    }
}

/// One model or application file, or several models.
fn models(model: &Bound<'_, PyAny>) -> PyResult<Vec<OsString>> {
    if model.is_instance_of::<PyString>() || !model.hasattr("__iter__")? {
        return Ok(vec![model.extract::<PathBuf>()?.into_os_string()]);
    }
    model.try_iter()?.map(|model| Ok(model?.extract::<PathBuf>()?.into_os_string())).collect()
}

#[pyfunction]
#[pyo3(
    signature = (model, path, **options),
    text_signature = "(model, path, *, calibrate=None, random=None, seed=1, ranges='min-max', keep_above=None, shape=None)"
)]
pub fn quantize(
    py: Python<'_>,
    model: PathBuf,
    path: PathBuf,
    options: Option<&Bound<'_, PyDict>>,
) -> PyResult<Quantized> {
    let mut call = arguments("quantize", options::QUANTIZE, options)?;
    // The model is written here, and not if somebody has interrupted the work.
    call.extend(["--output=-".into(), "--".into(), model.into_os_string()]);
    let quantized = interrupt::work(py, move |_| call::quantize(call))?.map_err(failed)?;
    py.detach(|| call::write(&path, &quantized.onnx)).map_err(failed)?;
    Ok(Quantized::new(path, &quantized.report))
}

#[pyfunction]
#[pyo3(
    signature = (model, **options),
    text_signature = "(model, *, device_out=None, threads=None, rounds=5, only=None, store=None, shape=None, value=None, no_fuse=False)"
)]
pub fn profile(py: Python<'_>, model: PathBuf, options: Option<&Bound<'_, PyDict>>) -> PyResult<PathBuf> {
    let mut call = arguments("profile", options::PROFILE, options)?;
    call.extend(["--".into(), model.into_os_string()]);
    let profiled = interrupt::work(py, move |stop| call::profile(call, stop))?.map_err(failed)?;
    Ok(profiled.path)
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
    let packed = move |_: &_| csdfc_packing::pack(&problem, &mut Meter::new(Budget::Work(steps)));
    Ok(Packing(interrupt::work(py, packed)?))
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
