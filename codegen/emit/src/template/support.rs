//! The parts of the program that are not models: arguments, `.npy` files, and the measurement of time and memory.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The content of the command line.
#[derive(Debug)]
pub struct Arguments {
    /// Names and files, in order.
    pub names: Vec<String>,
    /// Frames to run.
    pub frames: usize,
    /// The CNNs to run in turn; none if not asked for.
    #[allow(dead_code, reason = "one CNN has no others to take turns with")]
    pub turns: Vec<String>,
    /// Folder for the outputs of the last frame.
    pub output: Option<PathBuf>,
    /// The file of the weights that are read frame by frame.
    #[allow(dead_code, reason = "not every model reads weights")]
    pub store: PathBuf,
    /// Where to write when each layer fired.
    #[cfg(feature = "trace")]
    pub trace: Option<PathBuf>,
}

impl Arguments {
    /// Reads the command line. The CNNs are those that may take turns.
    ///
    /// # Errors
    /// When an option is unknown or its value is wrong.
    pub fn read(arguments: impl Iterator<Item = String>, cnns: &[&str]) -> Result<Self, String> {
        let mut read = Arguments {
            names: Vec::new(),
            frames: 1,
            turns: Vec::new(),
            output: None,
            store: "store.bin".into(),
            #[cfg(feature = "trace")]
            trace: None,
        };
        let mut arguments = arguments.skip(1);
        while let Some(argument) = arguments.next() {
            let mut value = || arguments.next().ok_or_else(|| format!("`{argument}` needs a value"));
            match argument.as_str() {
                "--frames" => {
                    let frames = value()?.parse().ok().filter(|frames| *frames > 0);
                    read.frames = frames.ok_or("`--frames` needs a number above 0")?;
                }
                "--turns" if !cnns.is_empty() => {
                    read.turns = value()?.split(',').map(str::to_owned).collect();
                    if let Some(other) = read.turns.iter().find(|cnn| !cnns.contains(&cnn.as_str())) {
                        return Err(format!(
                            "`--turns`: there is no CNN `{other}`; the CNNs are {}",
                            cnns.join(", ")
                        ));
                    }
                }
                "--output" => read.output = Some(value()?.into()),
                "--store" => read.store = value()?.into(),
                #[cfg(feature = "trace")]
                "--trace" => read.trace = Some(value()?.into()),
                #[cfg(not(feature = "trace"))]
                "--trace" => {
                    return Err("`--trace` needs a program that is built with `--features trace`".into());
                }
                option if option.starts_with('-') => return Err(format!("there is no option `{option}`")),
                _ => read.names.push(argument),
            }
        }
        Ok(read)
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

/// How a tensor of a file lies in a frame.
#[derive(Debug, Clone, Copy)]
#[allow(dead_code, reason = "not every application has images, or tensors that are none")]
pub enum Layout {
    /// As in the file.
    Plain,
    /// In the frame, rows of pixels of channels; in the file, planes of channels.
    Rows {
        /// Rows.
        height: usize,
        /// Pixels of a row.
        width: usize,
        /// Channels of a pixel.
        channels: usize,
    },
}

impl Layout {
    /// For each element of the file, its place in the frame.
    fn places(self, elements: usize) -> impl Iterator<Item = usize> {
        (0..elements).map(move |i| match self {
            Layout::Plain => i,
            Layout::Rows { height, width, channels } => {
                let (channel, pixel) = (i / (height * width), i % (height * width));
                pixel * channels + channel
            }
        })
    }
}

/// An element of a `.npy` file.
pub trait Element: Copy + Default {
    /// Its name in the file.
    const NAME: &'static str;
    /// Its bytes.
    const BYTES: usize;
    /// From little-endian bytes.
    fn read(bytes: &[u8]) -> Self;
    /// As little-endian bytes.
    fn write(self, file: &mut impl Write) -> std::io::Result<()>;
}

impl Element for f32 {
    const NAME: &'static str = "<f4";
    const BYTES: usize = 4;

    fn read(bytes: &[u8]) -> Self {
        bytes.first_chunk().map_or(0.0, |bytes| f32::from_le_bytes(*bytes))
    }

    fn write(self, file: &mut impl Write) -> std::io::Result<()> {
        file.write_all(&self.to_le_bytes())
    }
}

impl Element for u8 {
    const NAME: &'static str = "|u1";
    const BYTES: usize = 1;

    fn read(bytes: &[u8]) -> Self {
        bytes.first().copied().unwrap_or(0)
    }

    fn write(self, file: &mut impl Write) -> std::io::Result<()> {
        file.write_all(&[self])
    }
}

impl Element for i64 {
    const NAME: &'static str = "<i8";
    const BYTES: usize = 8;

    fn read(bytes: &[u8]) -> Self {
        bytes.first_chunk().map_or(0, |bytes| i64::from_le_bytes(*bytes))
    }

    fn write(self, file: &mut impl Write) -> std::io::Result<()> {
        file.write_all(&self.to_le_bytes())
    }
}

/// Room for a frame.
///
/// # Errors
/// None: the length is right.
pub fn room<T: Element, const N: usize>() -> Result<Box<[T; N]>, String> {
    vec![T::default(); N].try_into().map_err(|_| "a frame has another length than it should".into())
}

/// A frame from a `.npy` file of one of these shapes, in C order.
///
/// # Errors
/// When the file cannot be read or holds something else.
pub fn read<T: Element, const N: usize>(
    path: &str,
    shapes: &[&[usize]],
    layout: Layout,
) -> Result<Box<[T; N]>, String> {
    let wrong = |why: &str| format!("{path}: {why}");
    let bytes = std::fs::read(path).map_err(|error| wrong(&error.to_string()))?;
    let version = bytes.strip_prefix(b"\x93NUMPY").and_then(|rest| rest.first()).copied();
    let (start, length) = match (version, bytes.get(8..12)) {
        (Some(1), Some(&[a, b, _, _])) => (10, usize::from(u16::from_le_bytes([a, b]))),
        (Some(2 | 3), Some(&[a, b, c, d])) => (12, u32::from_le_bytes([a, b, c, d]) as usize),
        _ => return Err(wrong("it is no .npy file")),
    };
    let header =
        bytes.get(start..).and_then(|rest| rest.get(..length)).ok_or_else(|| wrong("it is cut off"))?;
    check_header::<T>(&String::from_utf8_lossy(header), shapes).map_err(|why| wrong(&why))?;
    let data = &bytes[start + length..];
    if data.len() != N * T::BYTES {
        return Err(wrong(&format!("it has {} bytes of data, not {}", data.len(), N * T::BYTES)));
    }
    let mut frame = room::<T, N>()?;
    for (bytes, place) in data.chunks_exact(T::BYTES).zip(layout.places(N)) {
        frame[place] = T::read(bytes);
    }
    Ok(frame)
}

/// Checks that the header of a `.npy` file states these elements, one of these shapes, and C order.
fn check_header<T: Element>(header: &str, shapes: &[&[usize]]) -> Result<(), String> {
    let field = |name: &str| {
        let (_, rest) = header.split_once(&format!("'{name}':"))?;
        Some(rest.trim_start())
    };
    let missing = |name: &str| format!("its header has no `{name}`");
    let descr = field("descr").ok_or_else(|| missing("descr"))?;
    let descr = descr.split('\'').nth(1).unwrap_or(descr);
    if descr != T::NAME {
        return Err(format!("its elements are of type {descr}, not {}", T::NAME));
    }
    if !field("fortran_order").ok_or_else(|| missing("fortran_order"))?.starts_with("False") {
        return Err("it is in Fortran order; numpy.ascontiguousarray brings it into C order".into());
    }
    let stated = field("shape").and_then(|rest| rest.strip_prefix('(')?.split_once(')'));
    let (stated, _) = stated.ok_or_else(|| missing("shape"))?;
    let stated = stated.split(',').map(str::trim).filter(|dim| !dim.is_empty());
    let dims = stated.map(|dim| dim.parse().map_err(|_| format!("its header has a dimension {dim}")));
    let dims: Vec<usize> = dims.collect::<Result<_, String>>()?;
    if !shapes.contains(&&dims[..]) {
        let shapes: Vec<String> = shapes.iter().map(|shape| format!("{shape:?}")).collect();
        return Err(format!("its dimensions are {dims:?}, not {}", shapes.join(" or ")));
    }
    Ok(())
}

/// Writes a frame to a `.npy` file.
///
/// # Errors
/// When the file cannot be written.
pub fn write<T: Element>(path: &Path, dims: &[usize], layout: Layout, frame: &[T]) -> Result<(), String> {
    let shape = match dims {
        [dim] => format!("{dim},"),
        dims => dims.iter().map(ToString::to_string).collect::<Vec<String>>().join(", "),
    };
    let mut header = format!("{{'descr': '{}', 'fortran_order': False, 'shape': ({shape}), }}", T::NAME);
    // The data begins at a multiple of 64 bytes.
    while (10 + header.len() + 1) % 64 != 0 {
        header.push(' ');
    }
    header.push('\n');
    // It writes element by element: a copy of the frame would take memory that no plan counts.
    let written = || {
        let mut file = BufWriter::new(File::create(path)?);
        file.write_all(b"\x93NUMPY\x01\x00")?;
        file.write_all(&(header.len() as u16).to_le_bytes())?;
        file.write_all(header.as_bytes())?;
        layout.places(frame.len()).try_for_each(|place| frame[place].write(&mut file))?;
        file.flush()
    };
    written().map_err(|error: std::io::Error| format!("{}: {error}", path.display()))
}

/// Runs frames of a model. Prints its name, if it has one, the time that frames took, and the most memory that the
/// process had.
///
/// # Errors
/// The first of a frame.
#[allow(dead_code, reason = "a pipeline tells itself when frames end")]
pub fn time(model: &str, frames: usize, mut frame: impl FnMut() -> Result<(), String>) -> Result<(), String> {
    let mut times = vec![Duration::ZERO; frames];
    for time in &mut times {
        let start = Instant::now();
        frame()?;
        *time = start.elapsed();
    }
    report(model, &mut times);
    Ok(())
}

/// Prints the time that frames took, and the most memory that the process had.
pub fn report(model: &str, times: &mut [Duration]) {
    let total: Duration = times.iter().sum();
    times.sort_unstable();
    let peak = peak_memory().unwrap_or_else(|| "not known on this system".into());
    let head = if model.is_empty() { String::new() } else { format!("cnn: {model}\n") };
    tell(&format!(
        "{head}frames: {}\nfps: {:.2}\nmedian: {:.3} ms\npeak memory: {peak}\n",
        times.len(),
        times.len() as f64 / total.as_secs_f64(),
        times[times.len() / 2].as_secs_f64() * 1e3,
    ));
}

/// Prints all lines at once, so that no output of another thread comes between them. If nobody listens any more, that
/// is no error.
pub fn tell(lines: &str) {
    let _ = std::io::stdout().write_all(lines.as_bytes());
}

/// Most memory that the process had so far, as Linux tells it.
fn peak_memory() -> Option<String> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(peak.trim().to_owned())
}
