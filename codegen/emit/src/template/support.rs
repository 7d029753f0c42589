//! The parts of the program that are not models: arguments, and the measurement of time and memory.

use std::io::Write;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::files::{Target, is_image, is_npy};

/// A CNN as the command line names it.
#[derive(Debug, Clone, Copy)]
pub struct Cnn {
    /// Its name.
    pub name: &'static str,
    /// Its inputs.
    pub inputs: &'static [&'static str],
    /// Its outputs.
    pub outputs: &'static [&'static str],
}

/// The content of the command line.
#[derive(Debug)]
pub struct Arguments {
    /// The CNN to run, if only one of several.
    #[allow(dead_code, reason = "one CNN has no others beside it")]
    pub only: Option<usize>,
    /// The CNNs to run in turn; none if not asked for.
    #[allow(dead_code, reason = "one CNN has no others to take turns with")]
    pub turns: Vec<usize>,
    /// By CNN and input, its file.
    inputs: Vec<Vec<Option<String>>>,
    /// By CNN and output, its file.
    outputs: Vec<Vec<Option<String>>>,
    /// Folder for the last frame of outputs without a file.
    folder: Option<PathBuf>,
    /// Whether raw outputs are bytes.
    as_bytes: bool,
    /// Frames to run.
    frames: Option<usize>,
    /// The file of the weights that are read frame by frame.
    #[allow(dead_code, reason = "not every model reads weights")]
    pub store: PathBuf,
    /// Where to write when each layer fired.
    #[cfg(feature = "trace")]
    pub trace: Option<PathBuf>,
}

impl Arguments {
    /// Reads the command line.
    ///
    /// # Errors
    /// When an option is unknown or its value is wrong, or an input has no file.
    pub fn read(arguments: impl Iterator<Item = String>, cnns: &[Cnn]) -> Result<Self, String> {
        let none = |names: fn(&Cnn) -> &[&'static str]| {
            cnns.iter().map(|cnn| vec![None; names(cnn).len()]).collect::<Vec<_>>()
        };
        let mut read = Arguments {
            only: None,
            turns: Vec::new(),
            inputs: none(|cnn| cnn.inputs),
            outputs: none(|cnn| cnn.outputs),
            folder: None,
            as_bytes: false,
            frames: None,
            store: "store.bin".into(),
            #[cfg(feature = "trace")]
            trace: None,
        };
        let (mut names, mut inputs, mut outputs) = (Vec::new(), Vec::new(), Vec::new());
        let mut arguments = arguments.skip(1);
        while let Some(argument) = arguments.next() {
            let mut value = || arguments.next().ok_or_else(|| format!("`{argument}` needs a value"));
            match argument.as_str() {
                "--input" => inputs.push(value()?),
                "--output" => outputs.push(value()?),
                "--bytes" => read.as_bytes = true,
                "--frames" => {
                    let frames = value()?.parse().ok().filter(|frames| *frames > 0);
                    read.frames = Some(frames.ok_or("`--frames` needs a number above 0")?);
                }
                "--turns" if cnns.len() > 1 => {
                    for cnn in value()?.split(',') {
                        let place = cnns.iter().position(|other| other.name == cnn);
                        let all: Vec<&str> = cnns.iter().map(|cnn| cnn.name).collect();
                        let other =
                            || format!("`--turns`: there is no CNN `{cnn}`; the CNNs are {}", all.join(", "));
                        read.turns.push(place.ok_or_else(other)?);
                    }
                }
                "--store" => read.store = value()?.into(),
                #[cfg(feature = "trace")]
                "--trace" => read.trace = Some(value()?.into()),
                #[cfg(not(feature = "trace"))]
                "--trace" => {
                    return Err("`--trace` needs a program that is built with `--features trace`".into());
                }
                option if option.starts_with('-') && option != "-" => {
                    return Err(format!("there is no option `{option}`"));
                }
                _ => names.push(argument),
            }
        }
        if cnns.len() > 1 && read.turns.is_empty() {
            read.only = names.first().and_then(|name| cnns.iter().position(|cnn| cnn.name == name));
            names.drain(..usize::from(read.only.is_some()));
        }
        read.assign_inputs(cnns, names, inputs)?;
        read.assign_outputs(cnns, outputs)?;
        Ok(read)
    }

    /// The inputs or outputs of the CNNs that run: CNN, place in it, name.
    fn all<'c>(
        &self,
        cnns: &'c [Cnn],
        names: fn(&Cnn) -> &'static [&'static str],
    ) -> Vec<(usize, usize, String)> {
        let running = cnns.iter().enumerate().filter(|(c, _)| self.only.is_none_or(|only| only == *c));
        let of_cnn = |(c, cnn): (usize, &'c Cnn)| {
            let name = move |name: &str| match self.only {
                None if cnns.len() > 1 => format!("{}/{name}", cnn.name),
                _ => name.to_owned(),
            };
            names(cnn).iter().enumerate().map(move |(i, one)| (c, i, name(one)))
        };
        running.flat_map(of_cnn).collect()
    }

    /// Gives each input its file: by order, or by name.
    fn assign_inputs(&mut self, cnns: &[Cnn], files: Vec<String>, named: Vec<String>) -> Result<(), String> {
        let all = self.all(cnns, |cnn| cnn.inputs);
        let needed = || all.iter().map(|(_, _, name)| name.as_str()).collect::<Vec<&str>>().join(", ");
        if named.is_empty() && files.len() != all.len() {
            return Err(match cnns.len() {
                1 => format!("there must be {} input(s): {}", all.len(), needed()),
                _ => format!("name a CNN and give its inputs, or give those of all: {}", needed()),
            });
        }
        if !named.is_empty() && !files.is_empty() {
            return Err("give all inputs with `--input`, or none".into());
        }
        for ((c, i, _), file) in all.iter().zip(files) {
            self.inputs[*c][*i] = Some(file);
        }
        for text in &named {
            let ([c, i], file) = find("--input", text, &all)?;
            self.inputs[c][i] = Some(file.to_owned());
        }
        if let Some((_, _, name)) = all.iter().find(|(c, i, _)| self.inputs[*c][*i].is_none()) {
            return Err(format!("`--input {name}=FILE` is missing; the inputs are {}", needed()));
        }
        self.expect_single("--input", "standard input", &self.inputs, is_raw)
    }

    /// Gives outputs their files.
    fn assign_outputs(&mut self, cnns: &[Cnn], named: Vec<String>) -> Result<(), String> {
        let all = self.all(cnns, |cnn| cnn.outputs);
        for text in named {
            if text != "-" && !text.contains('=') {
                self.folder = Some(text.into());
                continue;
            }
            let ([c, o], file) = find("--output", &text, &all)?;
            self.outputs[c][o] = Some(file.to_owned());
        }
        let raw = self.outputs.iter().flatten().flatten().any(|file| !is_npy(file));
        if self.as_bytes && !raw {
            return Err("`--bytes` needs a raw output: `--output -`, or `--output NAME=FILE`".into());
        }
        self.expect_single("--output", "standard output", &self.outputs, |file| !is_npy(file))
    }

    /// Checks that not two of these files are `-`, and that none is raw if CNNs take turns.
    fn expect_single(
        &self,
        option: &str,
        stream: &str,
        files: &[Vec<Option<String>>],
        is_raw: fn(&str) -> bool,
    ) -> Result<(), String> {
        let mut raw = files.iter().flatten().flatten().filter(|file| is_raw(file));
        if !self.turns.is_empty()
            && let Some(file) = raw.clone().next()
        {
            return Err(format!("`--turns` takes no raw files, as `{option} {file}`"));
        }
        match raw.by_ref().filter(|file| *file == "-").count() {
            0 | 1 => Ok(()),
            _ => Err(format!("`{option}`: only one can be {stream}")),
        }
    }

    /// The file of an input of a CNN.
    pub fn input(&self, c: usize, i: usize) -> &str {
        self.inputs[c][i].as_deref().unwrap_or_default()
    }

    /// Where an output of a CNN goes. `file` is its name in the folder for outputs.
    ///
    /// # Errors
    /// When there can be no such folder.
    pub fn target(&self, c: usize, o: usize, file: &str) -> Result<Target, String> {
        match (&self.outputs[c][o], &self.folder) {
            (Some(path), _) if is_npy(path) => Ok(Target::Npy(path.into())),
            (Some(path), _) => Ok(Target::Raw { path: path.clone(), as_bytes: self.as_bytes }),
            (None, None) => Ok(Target::Nowhere),
            (None, Some(folder)) => {
                let path = folder.join(file);
                let folder = path.parent().unwrap_or(folder);
                std::fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
                Ok(Target::Npy(path))
            }
        }
    }

    /// Most frames of a CNN: those of a call, if they are always the same, or all that there are.
    pub fn frames(&self, c: usize, batch: usize) -> usize {
        let has_raw = self.inputs[c].iter().flatten().any(|file| is_raw(file));
        self.frames.unwrap_or(if has_raw { usize::MAX } else { batch })
    }

    /// Prints all lines at once, so that no output of another thread comes between them: on standard error if an output
    /// goes to standard output. If nobody listens any more, that is no error.
    pub fn tell(&self, lines: &str) {
        let _ = match self.outputs.iter().flatten().flatten().any(|file| file == "-") {
            true => std::io::stderr().write_all(lines.as_bytes()),
            false => std::io::stdout().write_all(lines.as_bytes()),
        };
    }

    /// Writes when each layer fired, if that is asked for.
    ///
    /// # Errors
    /// When the file cannot be written.
    #[cfg(feature = "trace")]
    pub fn write_trace(&self, trace: impl FnOnce() -> String) -> Result<(), String> {
        let Some(path) = &self.trace else { return Ok(()) };
        std::fs::write(path, trace()).map_err(|error| format!("{}: {error}", path.display()))
    }
}

/// Whether an input's file holds frame after frame.
fn is_raw(file: &str) -> bool {
    !is_npy(file) && !is_image(file)
}

/// The CNN and the place of what an option names, `NAME=FILE`, and the file. If there is only one, it needs no name.
fn find<'t>(
    option: &str,
    text: &'t str,
    all: &[(usize, usize, String)],
) -> Result<([usize; 2], &'t str), String> {
    let names = || all.iter().map(|(_, _, name)| name.as_str()).collect::<Vec<&str>>().join(", ");
    match (text.rsplit_once('='), all) {
        (None, [(c, i, _)]) => Ok(([*c, *i], text)),
        (None, _) => Err(format!("`{option} {text}`: write NAME=FILE; the names are {}", names())),
        (Some((name, file)), _) => match all.iter().find(|(_, _, other)| other == name) {
            Some((c, i, _)) => Ok(([*c, *i], file)),
            None => Err(format!("`{option} {text}`: there is no `{name}`; the names are {}", names())),
        },
    }
}

/// The number of frames that may still begin.
pub struct Frames(AtomicUsize);

impl Frames {
    /// Frames of which at most this many begin.
    pub fn new(most: usize) -> Self {
        Frames(AtomicUsize::new(most))
    }

    /// Begins a frame; `false` if there may be none.
    pub fn begin(&self) -> bool {
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok()
    }

    /// Lets no frame begin any more.
    pub fn stop(&self) {
        self.0.store(0, Ordering::Relaxed);
    }
}

/// The times at which frames ended.
pub struct Ends {
    start: Instant,
    ended: Vec<Duration>,
}

impl Ends {
    /// No ends yet.
    pub fn new() -> Self {
        Ends { start: Instant::now(), ended: Vec::new() }
    }

    /// A frame ends.
    pub fn now(&mut self) {
        self.ended.push(self.start.elapsed());
    }

    /// Says how long it took from frame to frame, and the most memory that the process had. If there are several models,
    /// each has a name.
    pub fn report(&self, model: &str) -> String {
        let starts = [Duration::ZERO].into_iter().chain(self.ended.iter().copied());
        let mut times: Vec<Duration> =
            self.ended.iter().zip(starts).map(|(end, start)| *end - start).collect();
        let total: Duration = times.iter().sum();
        times.sort_unstable();
        let median = times.get(times.len() / 2).copied().unwrap_or_default();
        let peak = peak_memory().unwrap_or_else(|| "not known on this system".into());
        let head = if model.is_empty() { String::new() } else { format!("cnn: {model}\n") };
        format!(
            "{head}frames: {}\nfps: {:.2}\nmedian: {:.3} ms\npeak memory: {peak}\n",
            times.len(),
            times.len() as f64 / total.as_secs_f64(),
            median.as_secs_f64() * 1e3,
        )
    }
}

/// Most memory that the process had so far, as Linux tells it.
fn peak_memory() -> Option<String> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(peak.trim().to_owned())
}
