//! Frames of a plan on arrays of NumPy.
//!
//! A thread owns the runner of a plan, with its weights and its arena, as long as the plan lives. So only the first frame
//! waits for weights, streams and states go on from call to call, and Python is free meanwhile.

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex, PoisonError};

use csdfc_network::suggest;
use csdfc_plan::operator::{Input, Operator};
use csdfc_plan::plan::{Cnn, Plan};
use csdfc_plan::shape::Shape;
use csdfc_planner::error::{Error as PlannerError, explained};
use csdfc_planner::saved::reload;
use csdfc_runtime::run::{Data, RunError, Runner, Value, element, input_dims};
use numpy::{Element, PyArray1, PyArrayDyn, PyArrayMethods, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyMapping};

use super::errors::Error;
use super::interrupt;

/// What a thread does with its runner, or with the reason why there is none.
type Job = Box<dyn FnOnce(Result<&mut Runner<'_>, &str>) + Send>;

/// The thread of a plan, once there is one.
#[derive(Default)]
pub struct Frames(Mutex<Option<Thread>>);

struct Thread {
    jobs: Sender<Job>,
    /// The process in which it lives: a process that was forked has none of its parent's threads.
    process: u32,
}

impl Frames {
    /// Runs a frame of a CNN, or as many as a call of it takes, along the first dimension. `inputs` is an array if the CNN has one input, or arrays by name.
    ///
    /// # Errors
    /// When an input is missing, is none of the CNN's, or is of another type or shape than the CNN takes, or the model
    /// cannot be read.
    pub fn run<'py>(
        &self,
        plan: &Arc<Plan>,
        folder: &Path,
        inputs: &Bound<'py, PyAny>,
        cnn: Option<&str>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let py = inputs.py();
        let (number, cnn) = find(plan, cnn)?;
        let values = values(cnn, inputs)?;
        let outputs = self.ask(py, plan, folder, move |runner| runner.infer_batch(number, &values))?;
        let named = PyDict::new(py);
        for (output, value) in cnn.outputs.iter().zip(outputs) {
            named.set_item(&output.name, array(py, value)?)?;
        }
        Ok(named)
    }

    /// Forgets what a stream or states keep of the frames so far.
    ///
    /// # Errors
    /// When the model cannot be read.
    pub fn reset(&self, py: Python<'_>, plan: &Arc<Plan>, folder: &Path) -> PyResult<()> {
        let cnns = plan.cnns.len();
        self.ask(py, plan, folder, move |runner| {
            (0..cnns).for_each(|cnn| runner.reset(cnn));
            Ok(())
        })
    }

    /// Has the thread do something, and waits for it.
    fn ask<T: Send + 'static>(
        &self,
        py: Python<'_>,
        plan: &Arc<Plan>,
        folder: &Path,
        job: impl FnOnce(&mut Runner<'_>) -> Result<T, RunError> + Send + 'static,
    ) -> PyResult<T> {
        let (sender, answer) = mpsc::channel();
        let job: Job = Box::new(move |runner| {
            let answer = match runner {
                Ok(runner) => job(runner).map_err(|error| error.to_string()),
                Err(why) => Err(why.to_owned()),
            };
            // If nobody waits any more, the answer is not needed.
            let _ = sender.send(answer);
        });
        self.send(job, plan, folder)?;
        let answer = interrupt::wait(py, answer, &AtomicBool::new(false))?;
        answer.map_err(Error::new_err)
    }

    /// Hands a job to the thread, which is started if there is none.
    fn send(&self, mut job: Job, plan: &Arc<Plan>, folder: &Path) -> PyResult<()> {
        let mut thread = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let here = std::process::id();
        if let Some(Thread { jobs, .. }) = thread.as_ref().filter(|thread| thread.process == here) {
            match jobs.send(job) {
                Ok(()) => return Ok(()),
                // It has panicked.
                Err(mpsc::SendError(unsent)) => job = unsent,
            }
        }
        let (jobs, received) = mpsc::channel::<Job>();
        let (plan, folder) = (Arc::clone(plan), folder.to_path_buf());
        interrupt::spawn(move || {
            let networks = match reload::reload(&plan, &folder) {
                Ok(networks) => networks,
                Err(why) => return received.iter().for_each(|job| job(Err(&explained(&why)))),
            };
            let parameters = |cnn, layer, parameter| networks.parameter(cnn, layer, parameter);
            let runner = Runner::new(&plan, &parameters).map_err(PlannerError::from);
            match runner {
                Ok(mut runner) => received.iter().for_each(|job| job(Ok(&mut runner))),
                Err(why) => received.iter().for_each(|job| job(Err(&explained(&why)))),
            }
        })?;
        // The thread receives until this sender is gone.
        let _ = jobs.send(job);
        *thread = Some(Thread { jobs, process: here });
        Ok(())
    }
}

/// The only CNN of a plan, or the one of this name.
fn find<'p>(plan: &'p Plan, name: Option<&str>) -> PyResult<(usize, &'p Cnn)> {
    let mut cnns = plan.cnns.iter().enumerate();
    let names = || plan.cnns.iter().map(|cnn| cnn.name.as_str());
    match (name, plan.cnns.as_slice()) {
        (None, [cnn]) => Ok((0, cnn)),
        (None, _) => {
            let all: Vec<&str> = names().collect();
            Err(Error::new_err(format!("the plan has several CNNs: give cnn=, one of {}", all.join(", "))))
        }
        (Some(name), _) => cnns.find(|(_, cnn)| cnn.name == name).ok_or_else(|| {
            let help = suggest::help(name, "its CNNs are", names());
            Error::new_err(format!("the plan has no CNN `{}`: {help}", suggest::clip(name)))
        }),
    }
}

/// The inputs of a CNN in their order.
fn values(cnn: &Cnn, inputs: &Bound<'_, PyAny>) -> PyResult<Vec<Value>> {
    let names = || cnn.inputs.iter().map(String::as_str);
    let Ok(named) = inputs.cast::<PyMapping>() else {
        let [name] = cnn.inputs.as_slice() else {
            let all: Vec<&str> = names().collect();
            let takes = match all.as_slice() {
                [] => "no input".into(),
                all => format!("{} inputs, {}", all.len(), all.join(", ")),
            };
            return Err(Error::new_err(format!(
                "CNN {} takes {takes}: give a dictionary of arrays by name",
                cnn.name
            )));
        };
        return Ok(vec![value(cnn, name, inputs)?]);
    };
    // `plan.inputs` names inputs with their CNN, if there are several.
    let with_cnn = |name: &str| format!("{}/{name}", cnn.name);
    for key in named.keys()? {
        let key: String = key.extract()?;
        if !names().any(|name| name == key || with_cnn(name) == key) {
            let help = suggest::help(&key, "its inputs are", names());
            return Err(Error::new_err(format!(
                "CNN {} has no input `{}`: {help}",
                cnn.name,
                suggest::clip(&key)
            )));
        }
    }
    let given = |name: &str| match [name.to_owned(), with_cnn(name)]
        .into_iter()
        .find_map(|key| named.get_item(key).ok())
    {
        Some(array) => value(cnn, name, &array),
        None => Err(Error::new_err(match input_of(cnn, name) {
            Some((input, shape)) => format!(
                "input {name} of CNN {} is not given: it takes {} of {:?}",
                cnn.name,
                element(input),
                input_dims(input, shape)
            ),
            None => format!("input {name} of CNN {} is not given", cnn.name),
        })),
    };
    names().map(given).collect()
}

/// How an input is handed over, and the shape of its tensor.
pub fn input_of<'c>(cnn: &'c Cnn, name: &str) -> Option<(&'c Input, &'c Shape)> {
    cnn.layers.iter().find(|layer| layer.name == name).and_then(|layer| match &layer.operator {
        Operator::Input(input) => Some((input, &layer.output_shape)),
        _ => None,
    })
}

/// An array for an input. The runner looks at its shape.
fn value(cnn: &Cnn, name: &str, array: &Bound<'_, PyAny>) -> PyResult<Value> {
    let numpy = array.py().import("numpy")?;
    let is_list = !array.hasattr("dtype")?;
    let array = numpy.call_method1("asarray", (array,))?;
    let array = array.cast::<PyUntypedArray>().map_err(PyErr::from)?;
    // What a model of 16-bit floats takes, and numbers of Python, which have no type of NumPy's yet.
    let of = array.dtype().to_string();
    let wide = match of == "float16" || is_list && of == "float64" {
        true => Some(array.call_method1("astype", ("float32",))?),
        false => None,
    };
    let array = wide.as_ref().map_or(Ok(array), |wide| wide.cast::<PyUntypedArray>()).map_err(PyErr::from)?;
    let data = None
        .or_else(|| elements(array).map(Data::F32))
        .or_else(|| elements(array).map(Data::U8))
        .or_else(|| elements(array).map(Data::I8))
        .or_else(|| elements(array).map(Data::I64));
    let Some(data) = data else {
        let takes = input_of(cnn, name).map_or_else(String::new, |(input, shape)| {
            let element = element(input);
            let dims = input_dims(input, shape);
            format!(", and it takes {element} of {dims:?}: hand over x.astype(\"{element}\")")
        });
        return Err(Error::new_err(format!(
            "input {name} of CNN {}: its elements are {}, of {:?}{takes}",
            cnn.name,
            array.dtype(),
            array.shape()
        )));
    };
    Ok(Value { dims: array.shape().to_vec(), data })
}

/// The elements of an array of this type, in the order of its dimensions.
fn elements<T: Element + Copy>(array: &Bound<'_, PyUntypedArray>) -> Option<Vec<T>> {
    let array = array.cast::<PyArrayDyn<T>>().ok()?.try_readonly().ok()?;
    Some(match array.as_slice() {
        Ok(elements) => elements.to_vec(),
        Err(_) => array.as_array().iter().copied().collect(),
    })
}

/// A value as an array, which takes over its elements.
fn array(py: Python<'_>, value: Value) -> PyResult<Bound<'_, PyAny>> {
    let flat = match value.data {
        Data::F32(elements) => PyArray1::from_vec(py, elements).into_any(),
        Data::U8(elements) => PyArray1::from_vec(py, elements).into_any(),
        Data::I8(elements) => PyArray1::from_vec(py, elements).into_any(),
        Data::I64(elements) => PyArray1::from_vec(py, elements).into_any(),
    };
    flat.call_method1("reshape", (value.dims,))
}
