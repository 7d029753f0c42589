//! `csdfc run`: inputs from files or a seed, frames, outputs to files, and comparisons.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use csdfc_network::suggest::{self, clip};
use csdfc_plan::operator::Operator;
use csdfc_plan::plan::{Cnn, Layer, Plan};
use csdfc_plan::timeline;
use csdfc_planner::saved::reload;
use csdfc_runtime::file_name::file_name;
use csdfc_runtime::run::{Fired, Runner, Value, batch_dims, input_dims};
use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;

use super::boxes::{self, Form};
use super::outputs::outputs_of;
use super::read::{read_plan, read_text};
use super::recorder::Recorder;
use super::rows::{Frame, RawInput, RawOutput, is_raw};
use super::{frames, hops, images, output};
use crate::cli::Format;
use crate::cli::run::{NamedFile, RunArgs};
use crate::error::{Error, Outcome};
use crate::report::run::{self as report, CnnRun, Comparison, ProfiledLayer};
use crate::{npy, trace};

/// Runs a plan.
///
/// # Errors
/// When the plan, a model, an input or a reference cannot be read or does not fit, or a result cannot be written.
pub fn run(args: &RunArgs) -> Result<Outcome, Error> {
    let written =
        args.outputs.iter().filter(|output| !output.name.is_empty()).map(|output| output.file.as_path());
    let read = args.inputs.iter().map(|input| input.file.as_path()).chain([args.plan.as_path()]);
    output::expect_apart(written.chain(args.trace.as_deref()), read.chain(args.labels.as_deref()))?;
    let (plan, _, folder) = read_plan(&args.plan)?;
    if args.dump.is_some() || args.compare_layers.is_some() {
        expect_whole_layers(&plan)?;
    }
    if args.labels.is_some() || args.boxes {
        expect_one_frame(&plan)?;
    }
    super::device::warn_if_other(&plan);
    let networks = reload::reload(&plan, &folder)?;
    let mut files = Files::open(args, &plan)?;
    let references = references(args, &plan)?;
    let labels = args.labels.as_deref().map(Labels::read).transpose()?;
    let names = labels.as_ref().map(|labels| &labels.names[..]);
    let forms = args.boxes.then(|| boxes::forms(&plan, names.map(<[_]>::len))).transpose()?;
    labels.iter().try_for_each(|labels| labels.check(&plan, forms.as_deref()))?;
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
        let (outputs, mut result) = run.run(&mut runner, c, &mut files.cnns[c], recorder.as_mut())?;
        for ((stated, value), path) in cnn.outputs.iter().zip(&outputs).zip(&files.cnns[c].npy) {
            let Some(value) = value else { continue };
            if let Some(path) = path {
                npy::write(path, value)?;
            } else if let Some(folder) = files.folder.as_ref().map(of_cnn) {
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
        if let Some(form) = forms.as_ref().and_then(|forms| forms[c]) {
            result.boxes = Some(form.boxes(cnn, &outputs, names)?);
            result.boxes_read_as = Some(form.text());
        } else if let Some(names) = names {
            result.outputs.iter_mut().for_each(|output| output.classify(names));
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
    let text = match args.format {
        Format::Text => report::text(&report),
        Format::Json => output::json(&report)?,
        Format::Ron => output::ron(&report)?,
    };
    match files.takes_stdout {
        true => output::print_error(&text)?,
        false => output::print(&text)?,
    }
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
        files: &mut CnnFiles,
        mut recorder: Option<&mut Recorder>,
    ) -> Result<(Vec<Option<Value>>, CnnRun), Error> {
        let mut times = vec![Duration::ZERO; self.cnn.layers.len()];
        let mut firings = vec![0; self.cnn.layers.len()];
        let mut frames = Vec::new();
        let mut result = CnnRun { name: self.cnn.name.clone(), ..CnnRun::default() };
        let mut outputs = Vec::new();
        let is_raw = files.raw_inputs.iter().any(Option::is_some);
        // The frames whose outputs are joined.
        let joined =
            if self.cnn.batch > 1 { Some(self.cnn.batch) } else { files.hops().map(|hops| hops as u64) };
        let most = self.args.frames.unwrap_or(if is_raw || joined.is_some() { u64::MAX } else { 1 });
        let most = joined.map_or(most, |joined| most.min(joined));
        // Of each output, what each of them made.
        let mut made = vec![Vec::new(); self.cnn.outputs.len()];
        let mut last = Instant::now();
        for frame in 0..most {
            if !files.next_frame()? {
                break;
            }
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
            last = Instant::now();
            let whole = runner.whole_frame(c, &values(&files.tensors, frame as usize))?;
            let mut rows = Frame { whole, inputs: &mut files.raw_inputs, outputs: &mut files.raw_outputs };
            runner.infer_rows(c, &mut rows, &mut observe)?;
            outputs = rows.whole.outputs();
            if joined.is_some() {
                made.iter_mut().zip(&mut outputs).for_each(|(made, output)| made.extend(output.take()));
            }
            frames.push(last.elapsed());
            files.raw_outputs.iter_mut().flatten().try_for_each(RawOutput::end_frame)?;
            if let Some(error) = failed {
                return Err(error);
            }
        }
        if self.cnn.batch > 1 {
            outputs = made.iter().map(|made| Value::of_frames(made)).collect();
        } else if joined.is_some() {
            let shapes = outputs_of(self.plan, self.cnn).map(|(_, shape)| shape);
            outputs = shapes.zip(&made).map(|(shape, made)| hops::join(made, shape)).collect();
        }
        if let Some(recorder) = recorder {
            recorder.end(self.plan, c, last, runner.loads());
        }
        result.outputs = self
            .cnn
            .outputs
            .iter()
            .zip(&outputs)
            .filter_map(|(output, value)| Some(report::Output::new(&output.name, value.as_ref()?)))
            .collect();
        if self.args.profile || frames.len() > 1 {
            frames.sort_unstable();
            result.milliseconds = Some(milliseconds(frames[frames.len() / 2]));
        }
        if self.args.profile {
            let count = frames.len();
            let time = |((layer, time), firings): ((&Layer, &Duration), &u64)| ProfiledLayer {
                layer: layer.name.clone(),
                operator: layer.operator.kind().into(),
                primitive: layer.primitive.clone(),
                firings: firings / count as u64,
                milliseconds: milliseconds(*time) / count as f64,
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

/// What is handed over as a whole in a frame.
fn values(tensors: &[Option<Vec<Value>>], frame: usize) -> Vec<Option<&Value>> {
    let value = |all: &Vec<Value>| if all.len() > 1 { frame } else { 0 };
    tensors.iter().map(|tensors| tensors.as_ref().and_then(|all| all.get(value(all)))).collect()
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

/// Checks that a call takes one frame of each CNN.
fn expect_one_frame(plan: &Plan) -> Result<(), Error> {
    match plan.cnns.iter().find(|cnn| cnn.batch > 1) {
        None => Ok(()),
        Some(cnn) => Err(Error::Input {
            message: format!(
                "a call takes {} frames of CNN {}: --labels and --boxes are for one frame",
                cnn.batch, cnn.name
            ),
            help: Some("write the outputs to files with --output DIR, or plan with --batch 1".into()),
        }),
    }
}

/// What the inputs of all CNNs come from, and where their outputs go.
struct Files {
    cnns: Vec<CnnFiles>,
    /// Folder for outputs without a file.
    folder: Option<PathBuf>,
    /// Whether an output goes to standard output.
    takes_stdout: bool,
}

/// Those of one CNN.
struct CnnFiles {
    /// By input, what is handed over as a whole: read from a `.npy` file, or drawn. It is the same in every frame, unless it
    /// is the hops of a stream, or the frames of a batch.
    tensors: Vec<Option<Vec<Value>>>,
    /// By input, its raw file.
    raw_inputs: Vec<Option<RawInput>>,
    /// By output, its raw file.
    raw_outputs: Vec<Option<RawOutput>>,
    /// By output, its `.npy` file.
    npy: Vec<Option<PathBuf>>,
}

impl CnnFiles {
    /// The hops that there are tensors for, if one has several.
    fn hops(&self) -> Option<usize> {
        self.tensors.iter().flatten().map(Vec::len).filter(|hops| *hops > 1).min()
    }

    /// Goes on to the next frame; `false` if a raw file has none.
    fn next_frame(&mut self) -> Result<bool, Error> {
        let mut raw = self.raw_inputs.iter_mut().flatten();
        raw.try_fold(true, |is_there, input| Ok(is_there && input.next_frame()?))
    }
}

impl Files {
    /// Opens all files, and draws inputs that have none.
    fn open(args: &RunArgs, plan: &Plan) -> Result<Self, Error> {
        let (mut folder, mut takes_stdout) = (None, false);
        let mut inputs = Vec::new();
        for named in &args.inputs {
            let (cnn, name) = find(plan, named, "--input", "input", &|cnn| cnn.inputs.clone())?;
            inputs.push((cnn, name, &named.file));
        }
        let stdin = inputs.iter().map(|(_, _, file)| *file).chain([&args.plan]);
        if stdin.filter(|file| file.as_os_str() == "-").count() > 1 {
            return Err(Error::Input { message: "only one file can be standard input".into(), help: None });
        }
        let mut outputs = Vec::new();
        for named in &args.outputs {
            let is_stdout = named.file.as_os_str() == "-";
            if named.name.is_empty() && !is_stdout {
                folder = Some(named.file.clone());
                continue;
            }
            let names = |cnn: &Cnn| cnn.outputs.iter().map(|output| output.name.clone()).collect();
            let (cnn, name) = find(plan, named, "--output", "output", &names)?;
            if is_stdout && std::mem::replace(&mut takes_stdout, true) {
                return Err(Error::Input {
                    message: "only one output can go to standard output".into(),
                    help: None,
                });
            }
            outputs.push((cnn, name, &named.file));
        }
        if args.bytes && !outputs.iter().any(|(_, _, file)| is_raw(file)) {
            return Err(Error::Input {
                message: "--bytes is for outputs in raw files, and there is none".into(),
                help: Some("give one with --output NAME=FILE, or --output - for standard output".into()),
            });
        }
        let of_cnn = |(c, cnn)| CnnFiles::open(args, c, cnn, &inputs, &outputs);
        let cnns = plan.cnns.iter().enumerate().map(of_cnn).collect::<Result<_, Error>>()?;
        Ok(Files { cnns, folder, takes_stdout })
    }
}

impl CnnFiles {
    /// Opens the files of one CNN: of its inputs and of its outputs, by CNN and name.
    fn open(
        args: &RunArgs,
        c: usize,
        cnn: &Cnn,
        inputs: &[(usize, String, &PathBuf)],
        outputs: &[(usize, String, &PathBuf)],
    ) -> Result<Self, Error> {
        let file_of = |files: &[(usize, String, &PathBuf)], name: &String| {
            files.iter().find(|(of, other, _)| *of == c && other == name).map(|(_, _, file)| (*file).clone())
        };
        let mut files = CnnFiles {
            tensors: Vec::new(),
            raw_inputs: Vec::new(),
            raw_outputs: Vec::new(),
            npy: Vec::new(),
        };
        for (i, name) in cnn.inputs.iter().enumerate() {
            let input_layer = cnn.layers.iter().find(|layer| layer.name == *name);
            let Some((layer, Operator::Input(input))) = input_layer.map(|layer| (layer, &layer.operator))
            else {
                // The runner's checks refuse such a plan.
                continue;
            };
            let (value, raw) = match (file_of(inputs, name), args.random) {
                (Some(file), _) if images::is_image(&file) && cnn.batch == 1 => {
                    (Some(vec![images::read(&file, name, input, &layer.output_shape)?]), None)
                }
                (Some(file), _) if is_raw(&file) => {
                    (None, Some(RawInput::open(&file, input, &layer.output_shape)?))
                }
                (Some(file), _) if cnn.stream.is_some() => {
                    let signal = frames::taken(input, npy::read(&file)?);
                    let hops = hops::split(input, &layer.output_shape, signal);
                    let hops = hops.map_err(|[all, hop]| Error::Input {
                        message: format!(
                            "{} has {all} rows, which are no whole number of hops of {hop}",
                            file.display()
                        ),
                        help: Some(format!("give {} rows", all - all % hop)),
                    })?;
                    (Some(hops), None)
                }
                (Some(file), _) => {
                    let value = npy::read(&file)?;
                    let values = match cnn.batch {
                        1 => vec![value],
                        batch => frames::of_batch(&file, input, &layer.output_shape, value, batch)?,
                    };
                    let taken =
                        |value| frames::taken(input, images::in_order(input, &layer.output_shape, value));
                    (Some(values.into_iter().map(taken).collect()), None)
                }
                (None, Some(seed)) => {
                    let seed = seed.wrapping_add(((c << 16) + i) as u64);
                    let mut random = ChaCha8Rng::seed_from_u64(seed);
                    let mut draw = || frames::draw(input, &layer.output_shape, &mut random);
                    (Some((0..cnn.batch).map(|_| draw()).collect()), None)
                }
                (None, None) => {
                    let mut dims = input_dims(input, &layer.output_shape);
                    if cnn.batch > 1 {
                        dims = batch_dims(&dims, cnn.batch as usize);
                    }
                    return Err(Error::Input {
                        message: format!(
                            "input {name} of CNN {}, of dimensions {dims:?}, is not given",
                            cnn.name
                        ),
                        help: Some(format!(
                            "give it with --input {name}=FILE, or draw missing inputs with --random SEED"
                        )),
                    });
                }
            };
            files.tensors.push(value);
            files.raw_inputs.push(raw);
        }
        for output in &cnn.outputs {
            let file = file_of(outputs, &output.name);
            let raw = file.as_ref().filter(|file| is_raw(file));
            files.raw_outputs.push(raw.map(|file| RawOutput::new(file, args.bytes)).transpose()?);
            files.npy.push(file.filter(|file| !is_raw(file)));
        }
        Ok(files)
    }
}

/// The names of classes, a line each.
struct Labels {
    /// The file, as messages name it.
    file: PathBuf,
    names: Vec<String>,
}

impl Labels {
    /// Reads a file.
    fn read(file: &Path) -> Result<Self, Error> {
        let (text, file) = read_text(file, "give a text with the name of a class in each line")?;
        Ok(Labels { file, names: text.lines().map(|line| line.trim().to_owned()).collect() })
    }

    /// Checks that an output of the plan has as many elements, or that there are boxes of as many classes.
    fn check(&self, plan: &Plan, forms: Option<&[Option<Form>]>) -> Result<(), Error> {
        let of_cnn = |cnn| outputs_of(plan, cnn).map(|(output, shape)| (&output.name, shape.elements()));
        let outputs: Vec<(&String, usize)> = plan.cnns.iter().flat_map(of_cnn).collect();
        let classes: Vec<Option<usize>> =
            forms.unwrap_or_default().iter().flatten().map(|form| form.classes()).collect();
        let count = self.names.len();
        if classes.iter().any(|classes| classes.is_none_or(|classes| classes == count))
            || outputs.iter().any(|(_, elements)| *elements == count)
        {
            return Ok(());
        }
        let file = self.file.display();
        let message = if classes.is_empty() {
            let have: Vec<String> =
                outputs.iter().map(|(output, elements)| format!("{output} has {elements}")).collect();
            format!("{file} names {count} classes, and no output has as many elements: {}", have.join(", "))
        } else {
            let have: Vec<String> = classes.iter().flatten().map(ToString::to_string).collect();
            format!("{file} names {count} classes, and the boxes have {}", have.join(", "))
        };
        Err(Error::Input { message, help: Some("give as many lines as the network has classes".into()) })
    }
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
    // The only one needs no name.
    let is_it = |name: &String| *name == named.name || named.name.is_empty();
    let in_cnn = |(c, cnn): (usize, &Cnn)| {
        names(cnn).into_iter().filter(is_it).map(move |name| (c, name)).collect::<Vec<_>>()
    };
    let mut alone = plan.cnns.iter().enumerate().flat_map(in_cnn);
    let found = match (of_cnn, alone.next(), alone.next()) {
        (Some((c, name)), _, _) => Some((c, name.to_owned())),
        (None, Some(found), None) => Some(found),
        _ => None,
    };
    let several = plan.cnns.len() > 1;
    let listed = |cnn: &Cnn| -> Vec<String> {
        let names = names(cnn).into_iter();
        if several { names.map(|name| format!("{}/{name}", cnn.name)).collect() } else { names.collect() }
    };
    let all: Vec<String> = plan.cnns.iter().flat_map(listed).collect();
    found.ok_or_else(|| match named.name.as_str() {
        "" => Error::Input {
            message: format!("{option} {}: the plan has several {kind}s", named.file.display()),
            help: Some(format!("write {option} NAME={}; they are {}", named.file.display(), all.join(", "))),
        },
        name => Error::Input {
            message: format!("{option} {}: the plan has no {kind} of that name", clip(name)),
            help: Some(suggest::help(name, &format!("its {kind}s are"), all.iter().map(String::as_str))),
        },
    })
}

fn write(folder: &Path, name: &str, value: &Value) -> Result<(), Error> {
    std::fs::create_dir_all(folder).map_err(|error| Error::write(folder, error))?;
    Ok(npy::write(&folder.join(file_name(name) + ".npy"), value)?)
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
