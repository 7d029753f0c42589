//! The functions.

use std::ffi::OsString;
use std::path::PathBuf;

use csdfc_command::{call, invoke};
use csdfc_packing::{Block, Budget, Life, Meter, lives};
use csdfc_planner::minimalloc::MAX_ROWS;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

use super::classes::{Packing, Plan, Quantized, unmet, with_plan};
use super::errors::{Error, failed, warn};
use super::interrupt::{self, Interrupted};
use super::options::{self, arguments};

/// Plans a model (`FILE.onnx`, `FILE.tflite`, `builtin:NAME`), several models that take turns in one arena, or an
/// application file (`FILE.ron`), and has the plan checked.
///
/// Each option is that of the same name of `csdfc plan`, and `csdfc plan --help` says more about it. Where the command takes
/// `NAME=VALUE` several times, give a dictionary.
///
/// `mem` is the most bytes that parameters, buffers and workspace may take together: a number, a text such as `"2MB"` or
/// `"512KiB"`, or `"min"` for as few as there are with all weights in memory (`weights="streamed"`: fewer). `ram` names
/// the memories of a board that has several, and `flash` is the most flash for the parameters. `fps` is the fewest frames
/// per second and `latency` the longest time of a frame, in seconds or as a text such as `"40ms"`: of every CNN, or of
/// single ones by name. `device` is the device whose times count: a name that csdfc knows, or the file of a profile.
///
/// `precision` is that of weights and tensors. With `"auto"`, `max_error` is the largest error of an output, which is
/// measured on the frames of `calibrate` (`.npy` files or folders), or on `random` ones. `weights` says where weights are.
/// `shape` is that of an input whose dimensions the model leaves open, and `value` makes an input a constant.
/// `batch` is how many frames a call takes, one after another, of every CNN, or of single ones by name.
/// `inputs` and `outputs` are names of tensors at which the part of the model that is planned begins and ends.
/// With `input`, such as `"u8:hwc:rgb,mean=127.5,scale=0.0078"`, an input is handed over as bytes of an image.
///
/// `budget` is how long to search: a time such as `"10s"`, or a number of choices. `from_front` is a front or a plan from
/// which the search starts (`--from`), and `pick` takes one of its plans. With `pareto`, the search also looks for plans
/// that take less memory or less time, for `Plan.front`.
///
/// Raises `Unmet` if no plan meets these, and `Error` if an option is wrong, or the model cannot be read or planned. Ctrl-C
/// raises `KeyboardInterrupt`, which has the best plan so far as `plan`, if there is one. What the command would warn of is a
/// `CsdfcWarning`.
#[pyfunction]
#[pyo3(
    signature = (model, **options),
    text_signature = "(model, *, mem=None, ram=None, flash=None, fps=None, latency=None, precision=None, max_error=None, calibrate=None, random=None, weights=None, shape=None, batch=None, value=None, inputs=None, outputs=None, input=None, no_fuse=False, stream=None, hop=None, window=None, state=None, device=None, threads=None, prefer=None, storage=None, rows=None, method=None, primitives=None, max_primitive_error=None, seed=None, budget=None, without=None, from_front=None, pick=None, pareto=False)"
)]
pub fn plan(py: Python<'_>, model: &Bound<'_, PyAny>, options: Option<&Bound<'_, PyDict>>) -> PyResult<Plan> {
    let mut call = arguments("plan", options::PLAN, options)?;
    call.push("--".into());
    call.extend(models(model)?);
    match interrupt::work(py, move |stop| call::with_warnings(|| call::plan(call, stop))) {
        Ok((planned, warnings)) => {
            warn(py, warnings)?;
            let call::Planned { plan, unmet: text } = planned.map_err(failed)?;
            match text {
                None => Plan::here(plan),
                Some(text) => Err(unmet(py, text, plan)),
            }
        }
        Err(Interrupted { error, answer: Some((Ok(planned), _)) }) => {
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

/// Quantizes a model to 8-bit integers and writes it to `path`, an ONNX file, as `csdfc quantize` does.
///
/// `calibrate` is a `.npy` file of float32 in the model's dimensions, a folder of such files, or several of these; without
/// them, `random` is a number of random frames. Layers whose own error is above `keep_above` keep floats.
///
/// Raises `Error` if an option is wrong, or the model or a frame cannot be read or does not fit.
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
    let (quantized, warnings) = interrupt::work(py, move |_| call::with_warnings(|| call::quantize(call)))?;
    warn(py, warnings)?;
    let quantized = quantized.map_err(failed)?;
    py.detach(|| call::write(&path, &quantized.onnx)).map_err(failed)?;
    Ok(Quantized::new(path, &quantized.report))
}

/// Measures how long the layers of a model take on this machine, as `csdfc profile` does, and returns the path of the device
/// profile, a `pathlib.Path`: `device_out`, or that of this machine, which `plan(…, device="host")` reads. After Ctrl-C,
/// what has been measured so far is saved as soon as the layer under way is done, and the next call goes on there.
#[pyfunction]
#[pyo3(
    signature = (model, **options),
    text_signature = "(model, *, device_out=None, threads=None, rounds=5, only=None, store=None, shape=None, batch=None, value=None, inputs=None, outputs=None, no_fuse=False)"
)]
pub fn profile(py: Python<'_>, model: PathBuf, options: Option<&Bound<'_, PyDict>>) -> PyResult<PathBuf> {
    let mut call = arguments("profile", options::PROFILE, options)?;
    call.extend(["--".into(), model.into_os_string()]);
    let (profiled, warnings) =
        interrupt::work(py, move |stop| call::with_warnings(|| call::profile(call, stop)))?;
    warn(py, warnings)?;
    Ok(profiled.map_err(failed)?.path)
}

/// Packs buffers by address, with proof. Each buffer is `(lower, upper, size)`: when it begins to be in use, when it is
/// in use no more, and its bytes. `steps` limits the search; the default takes some ten seconds at most.
///
/// Raises `Error` if there are more than 5000 buffers, or sizes add up to 2^62 bytes or more.
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

/// The command `csdfc`, with the arguments of this process. It exits.
#[pyfunction]
pub fn main(py: Python<'_>) -> PyResult<()> {
    let arguments: Vec<OsString> = py.import("sys")?.getattr("argv")?.extract()?;
    // Python would only note that somebody wants it to end.
    let signal = py.import("signal")?;
    signal.call_method1("signal", (signal.getattr("SIGINT")?, signal.getattr("SIG_DFL")?))?;
    let code = py.detach(|| invoke(arguments));
    std::process::exit(i32::from(code))
}
