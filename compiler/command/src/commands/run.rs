//! `csdfc run`: inputs from files or a seed, frames, outputs to files, and comparisons.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use csdfc_network::suggest::{self, clip};
use csdfc_plan::operator::Operator;
use csdfc_plan::plan::{Cnn, Layer, Plan};
use csdfc_plan::timeline;
use csdfc_planner::saved::reload;
use csdfc_runtime::file_name::file_name;
use csdfc_runtime::run::{Fired, Runner, Value, input_dims};
use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;

use super::read::read_plan;
use super::recorder::Recorder;
use super::{frames, output};
use crate::cli::{Format, NamedFile, RunArgs};
use crate::error::{Error, Outcome};
use crate::report::run::{self as report, CnnRun, Comparison, ProfiledLayer};
use crate::{npy, trace};

/// Runs a plan.
///
/// # Errors
/// When the plan, a model, an input or a reference cannot be read or does not fit, or a result cannot be written.
pub fn run(args: &RunArgs) -> Result<Outcome, Error> {
    let (plan, _, folder) = read_plan(&args.plan)?;
    if args.dump.is_some() || args.compare_layers.is_some() {
        expect_whole_layers(&plan)?;
    }
    super::device::warn_if_other(&plan);
    let networks = reload::reload(&plan, &folder)?;
    let inputs: Vec<Vec<Value>> = inputs(args, &plan)?;
    let references = references(args, &plan)?;
    let parameters = |cnn, layer, parameter| networks.parameter(cnn, layer, parameter);
    let mut runner = Runner::new(&plan, &parameters)?;
    drop(networks);
    let mut runs = Vec::new();
    let mut recorder = args.trace.as_ref().map(|_| Recorder::default());
    for (c, cnn) in plan.cnns.iter().enumerate() {
        let of_cnn = |folder: &PathBuf| match plan.cnns.len() {
            1 => folder.clone(),
            _ => folder.join(file_name(&cnn.name)),
        };
        let run = Frames {
            args,
            plan: &plan,
            cnn,
            dump: args.dump.as_ref().map(of_cnn),
            layers: args.compare_layers.as_ref().map(of_cnn),
        };
        let (outputs, mut result) = run.run(&mut runner, c, &inputs[c], recorder.as_mut())?;
        for (stated, value) in cnn.outputs.iter().zip(&outputs) {
            if let Some(folder) = args.output.as_ref().map(of_cnn) {
                write(&folder, &stated.name, value)?;
                let file = file_name(&stated.name);
                if file.contains('~') {
                    tracing::warn!(
                        "the name of output {} is too long for a file: it is {file}.npy",
                        stated.name
                    );
                }
            }
            for (_, name, reference) in
                references.iter().filter(|(of, name, _)| *of == c && *name == stated.name)
            {
                result.comparisons.push(Comparison::new(name, value, reference));
            }
        }
        runs.push(result);
    }
    if let (Some(path), Some(recorder)) = (&args.trace, recorder) {
        let measured = timeline::measured(&plan, recorder.firings, recorder.loads);
        let measured = measured.map_err(|_| Error::Bug("a plan that has run is refused".into()))?;
        output::write(path, &trace::json(&plan, &measured)?)?;
    }
    let report = report::RunReport {
        application: plan.application.clone(),
        arena_bytes: plan.memory.arena,
        cnns: runs,
    };
    output::print(&match args.format {
        Format::Text => report::text(&report),
        Format::Json => output::json(&report)?,
        Format::Ron => output::ron(&report)?,
    })?;
    Ok(if report.is_equal() { Outcome::Yes } else { Outcome::No })
}

/// The frames of one CNN.
struct Frames<'a> {
    args: &'a RunArgs,
    plan: &'a Plan,
    cnn: &'a Cnn,
    dump: Option<PathBuf>,
    layers: Option<PathBuf>,
}

impl Frames<'_> {
    fn run(
        &self,
        runner: &mut Runner<'_>,
        c: usize,
        inputs: &[Value],
        mut recorder: Option<&mut Recorder>,
    ) -> Result<(Vec<Value>, CnnRun), Error> {
        let mut times = vec![Duration::ZERO; self.cnn.layers.len()];
        let mut firings = vec![0; self.cnn.layers.len()];
        let mut frames = Vec::new();
        let mut result = CnnRun { name: self.cnn.name.clone(), ..CnnRun::default() };
        let mut outputs = Vec::new();
        for frame in 0..self.args.frames {
            let mut failed = None;
            recorder.iter_mut().for_each(|recorder| recorder.begin());
            let mut observe = |fired: &Fired<'_>| {
                times[fired.layer] += fired.elapsed;
                firings[fired.layer] += 1;
                recorder.iter_mut().for_each(|recorder| recorder.fired(fired));
                if frame == 0 && failed.is_none() {
                    failed = self.layer(fired, &mut result).err();
                }
            };
            let start = Instant::now();
            outputs = runner.infer_observed(c, inputs, &mut observe)?;
            frames.push(start.elapsed());
            if let Some(recorder) = recorder.as_mut().filter(|_| frame + 1 == self.args.frames) {
                recorder.end(self.plan, c, start, runner.loads());
            }
            if let Some(error) = failed {
                return Err(error);
            }
        }
        result.outputs = self
            .cnn
            .outputs
            .iter()
            .zip(&outputs)
            .map(|(output, value)| report::Output::new(&output.name, value))
            .collect();
        if self.args.profile || self.args.frames > 1 {
            frames.sort_unstable();
            result.milliseconds = Some(milliseconds(frames[frames.len() / 2]));
        }
        if self.args.profile {
            let time = |((layer, time), firings): ((&Layer, &Duration), &u64)| ProfiledLayer {
                layer: layer.name.clone(),
                operator: layer.operator.kind().into(),
                primitive: layer.primitive.clone(),
                firings: firings / self.args.frames,
                milliseconds: milliseconds(*time) / self.args.frames as f64,
                modelled: layer.time.map(|time| time.ns / 1e6),
            };
            result.profile = self.cnn.layers.iter().zip(&times).zip(&firings).map(time).collect();
        }
        Ok((outputs, result))
    }

    /// Writes and compares the tensor of a layer that has fired.
    fn layer(&self, fired: &Fired<'_>, result: &mut CnnRun) -> Result<(), Error> {
        if self.dump.is_none() && self.layers.is_none() {
            return Ok(());
        }
        let Some(value) = fired.tensor() else { return Ok(()) };
        let layer = &self.cnn.layers[fired.layer];
        if let Some(folder) = &self.dump {
            write(folder, &layer.output, &value)?;
        }
        if let Some(folder) = &self.layers {
            let file = folder.join(file_name(&layer.output) + ".npy");
            if file.exists() {
                let reference = npy::read(&file)?;
                result.layers_compared += 1;
                let comparison = Comparison::of_layer(&layer.output, &value, reference);
                if !comparison.is_equal() && result.first_difference.is_none() {
                    result.first_difference =
                        Some(report::LayerDifference { layer: layer.name.clone(), comparison });
                }
            }
        }
        Ok(())
    }
}

/// Checks that every layer makes its tensor in one firing.
fn expect_whole_layers(plan: &Plan) -> Result<(), Error> {
    for cnn in &plan.cnns {
        if let Some(layer) = cnn.layers.iter().find(|layer| layer.firings > 1) {
            return Err(Error::Input {
                message: format!(
                    "layer {} of CNN {} makes its tensor in {} firings: there is no moment at which all of it is there",
                    layer.name, cnn.name, layer.firings
                ),
                help: Some("plan the application with --rows none to look at the tensors of layers".into()),
            });
        }
    }
    Ok(())
}

/// The inputs of each CNN, given or drawn.
fn inputs(args: &RunArgs, plan: &Plan) -> Result<Vec<Vec<Value>>, Error> {
    let inputs_of = |cnn: &Cnn| -> Vec<String> { cnn.inputs.clone() };
    let mut given = Vec::new();
    for named in &args.inputs {
        let (cnn, name) = find(plan, named, "--input", "input", &inputs_of)?;
        given.push((cnn, name, npy::read(&named.file)?));
    }
    let mut all = Vec::new();
    for (c, cnn) in plan.cnns.iter().enumerate() {
        let mut values = Vec::new();
        for (i, name) in cnn.inputs.iter().enumerate() {
            let input_layer = cnn.layers.iter().find(|layer| layer.name == *name);
            let Some((layer, Operator::Input(input))) = input_layer.map(|layer| (layer, &layer.operator))
            else {
                // The runner's checks refuse such a plan.
                continue;
            };
            let value = match (given.iter().find(|(of, given, _)| *of == c && given == name), args.random) {
                (Some((_, _, value)), _) => value.clone(),
                (None, Some(seed)) => {
                    let seed = seed.wrapping_add(((c << 16) + i) as u64);
                    frames::draw(input, &layer.output_shape, &mut ChaCha8Rng::seed_from_u64(seed))
                }
                (None, None) => {
                    let dims = input_dims(input, &layer.output_shape);
                    return Err(Error::Input {
                        message: format!(
                            "input {name} of CNN {}, of dimensions {dims:?}, is not given",
                            cnn.name
                        ),
                        help: Some(format!(
                            "give it with --input {name}=FILE.npy, or draw missing inputs with --random SEED"
                        )),
                    });
                }
            };
            values.push(value);
        }
        all.push(values);
    }
    Ok(all)
}

/// The references of outputs: CNN, output, value.
fn references(args: &RunArgs, plan: &Plan) -> Result<Vec<(usize, String, Value)>, Error> {
    let outputs =
        |cnn: &Cnn| -> Vec<String> { cnn.outputs.iter().map(|output| output.name.clone()).collect() };
    let mut references = Vec::new();
    for named in &args.compare {
        let (cnn, name) = find(plan, named, "--compare", "output", &outputs)?;
        references.push((cnn, name, npy::read(&named.file)?));
    }
    Ok(references)
}

/// The CNN and the input or output that an option names.
fn find(
    plan: &Plan,
    named: &NamedFile,
    option: &str,
    kind: &str,
    names: &dyn Fn(&Cnn) -> Vec<String>,
) -> Result<(usize, String), Error> {
    let of_cnn = plan.cnns.iter().enumerate().find_map(|(c, cnn)| {
        Some((c, named.name.strip_prefix(&cnn.name)?.strip_prefix('/')?))
            .filter(|(_, name)| names(cnn).iter().any(|other| other == name))
    });
    let alone = plan.cnns.iter().enumerate().filter(|(_, cnn)| names(cnn).contains(&named.name));
    let mut alone = alone.map(|(c, _)| (c, named.name.as_str()));
    let found = match (of_cnn, alone.next(), alone.next()) {
        (Some(found), _, _) | (None, Some(found), None) => Some(found),
        _ => None,
    };
    let several = plan.cnns.len() > 1;
    let listed = |cnn: &Cnn| -> Vec<String> {
        let names = names(cnn).into_iter();
        if several { names.map(|name| format!("{}/{name}", cnn.name)).collect() } else { names.collect() }
    };
    let all: Vec<String> = plan.cnns.iter().flat_map(listed).collect();
    found.map(|(c, name)| (c, name.to_owned())).ok_or_else(|| Error::Input {
        message: format!("{option} {}: the plan has no {kind} of that name", clip(&named.name)),
        help: Some(suggest::help(&named.name, &format!("its {kind}s are"), all.iter().map(String::as_str))),
    })
}

fn write(folder: &Path, name: &str, value: &Value) -> Result<(), Error> {
    std::fs::create_dir_all(folder).map_err(|error| Error::write(folder, error))?;
    Ok(npy::write(&folder.join(file_name(name) + ".npy"), value)?)
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
