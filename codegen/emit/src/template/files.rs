//! Inputs and outputs as files: a `.npy` file holds the frames of a call, an image holds one frame, a raw file holds frame
//! after frame.
//!
//! Raw files are read and written row by row, as the model asks for rows and makes them, so that no frame is held. They
//! have no header: rows from the top, images as pixels of channels, elements in little-endian order.

use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, ErrorKind, Read, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};

/// How a tensor of a `.npy` file lies in a frame.
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

/// An element of a file.
pub trait Element: Copy + Default {
    /// Its name in a `.npy` file.
    const NAME: &'static str;
    /// Its bytes.
    const BYTES: usize;
    /// From little-endian bytes.
    fn read(bytes: &[u8]) -> Self;
    /// As little-endian bytes.
    fn bytes(self) -> impl AsRef<[u8]>;
    /// As one byte: a float times 255, rounded to the nearest, and anything clamped from 0 to 255.
    fn byte(self) -> u8;
}

impl Element for f32 {
    const NAME: &'static str = "<f4";
    const BYTES: usize = 4;

    fn read(bytes: &[u8]) -> Self {
        bytes.first_chunk().map_or(0.0, |bytes| f32::from_le_bytes(*bytes))
    }

    fn bytes(self) -> impl AsRef<[u8]> {
        self.to_le_bytes()
    }

    fn byte(self) -> u8 {
        (self * 255.0).round() as u8
    }
}

impl Element for u8 {
    const NAME: &'static str = "|u1";
    const BYTES: usize = 1;

    fn read(bytes: &[u8]) -> Self {
        bytes.first().copied().unwrap_or(0)
    }

    fn bytes(self) -> impl AsRef<[u8]> {
        [self]
    }

    fn byte(self) -> u8 {
        self
    }
}

impl Element for i8 {
    const NAME: &'static str = "|i1";
    const BYTES: usize = 1;

    fn read(bytes: &[u8]) -> Self {
        bytes.first().map_or(0, |byte| byte.cast_signed())
    }

    fn bytes(self) -> impl AsRef<[u8]> {
        self.to_le_bytes()
    }

    fn byte(self) -> u8 {
        self.max(0).cast_unsigned()
    }
}

impl Element for i64 {
    const NAME: &'static str = "<i8";
    const BYTES: usize = 8;

    fn read(bytes: &[u8]) -> Self {
        bytes.first_chunk().map_or(0, |bytes| i64::from_le_bytes(*bytes))
    }

    fn bytes(self) -> impl AsRef<[u8]> {
        self.to_le_bytes()
    }

    fn byte(self) -> u8 {
        self.clamp(0, 255) as u8
    }
}

/// Whether a file is a `.npy` file. All others are raw, but for images that are inputs.
pub fn is_npy(path: &str) -> bool {
    path.ends_with(".npy")
}

/// Extensions of images. Those after the first three are refused: their bytes are no raw frames either.
const EXTENSIONS: [&str; 12] =
    ["png", "jpg", "jpeg", "avif", "bmp", "gif", "heic", "pgm", "ppm", "tif", "tiff", "webp"];

/// Whether a file is an image, by its name.
pub fn is_image(path: &str) -> bool {
    let extension = Path::new(path).extension().map(|extension| extension.to_ascii_lowercase());
    extension.is_some_and(|extension| EXTENSIONS.iter().any(|known| extension == *known))
}

/// An input: the frames of a `.npy` file or that of an image again and again, or the frames of a raw file.
pub struct Input<T> {
    name: String,
    /// What frames are read from; nothing if all of them are held.
    raw: Option<BufReader<Box<dyn Read + Send>>>,
    /// Rows of a frame, and elements of a row.
    shape: [usize; 2],
    /// The frames of a file without others, or the frame, or the last row of it that was read.
    held: Vec<T>,
    /// A row as it is in the file.
    row: Vec<u8>,
    /// Frames that have begun.
    frames: usize,
    failure: Option<String>,
}

impl<T: Element> Input<T> {
    /// Opens a file; `-` is standard input. A `.npy` file has one of these shapes, and its elements lie as `layout` says.
    /// A frame has `rows` rows of `row` elements each. If it is asked for as a whole, and not by rows, it is held.
    /// `image` is the frame of a file that is an image.
    ///
    /// # Errors
    /// When the file cannot be read, is a `.npy` file that holds something else, or an image that the input does not take.
    pub fn open(
        path: &str,
        image: Option<Vec<T>>,
        shapes: &[&[usize]],
        layout: Layout,
        [rows, row]: [usize; 2],
        is_whole: bool,
    ) -> Result<Self, String> {
        let (mut name, mut raw, mut held) = (path.to_owned(), None, Vec::new());
        if let Some(frame) = image {
            held = frame;
        } else if is_image(path) {
            return Err(format!(
                "{path}: the input takes no image file; give a .npy file, or, if it takes pixels, emit the crate with \
                 `csdfc emit --image-files`"
            ));
        } else if is_npy(path) {
            held = read(path, shapes, layout, rows * row)?;
        } else {
            let file: Box<dyn Read + Send> = match path {
                "-" => {
                    name = "standard input".into();
                    Box::new(std::io::stdin())
                }
                _ => Box::new(File::open(path).map_err(|error| format!("{path}: {error}"))?),
            };
            raw = Some(BufReader::new(file));
            held.resize(if is_whole { rows * row } else { row }, T::default());
        }
        Ok(Input { name, raw, shape: [rows, row], held, row: Vec::new(), frames: 0, failure: None })
    }

    /// Goes on to the next frame; `false` if there is none, or if it cannot be read.
    pub fn next_frame(&mut self) -> bool {
        let Some(raw) = &mut self.raw else {
            self.frames += 1;
            return true;
        };
        let is_at_end = loop {
            match raw.fill_buf() {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => break Err(error.to_string()),
                Ok([]) if self.frames == 0 => break Err("it holds no frame".into()),
                Ok(bytes) => break Ok(bytes.is_empty()),
            }
        };
        match is_at_end {
            Err(why) => self.fail(&why),
            Ok(true) => return false,
            Ok(false) => self.frames += 1,
        }
        let [rows, row] = self.shape;
        if self.held.len() == rows * row {
            (0..rows).for_each(|y| self.read_row(y, y * row));
        }
        self.failure.is_none()
    }

    /// Part `i` of a frame in parts of `N` elements: a row, or a row of a plane.
    #[allow(dead_code, reason = "not every model reads rows")]
    pub fn part<const N: usize>(&mut self, i: usize) -> &[T; N] {
        let [rows, row] = self.shape;
        let is_held = self.held.len() >= rows * row;
        if !is_held {
            self.read_row(i, 0);
        }
        &self.held[if is_held { self.start() } else { 0 }..].as_chunks().0[if is_held { i } else { 0 }]
    }

    /// The frame.
    #[allow(dead_code, reason = "not every model reads a frame as a whole")]
    pub fn frame<const N: usize>(&self) -> &[T; N] {
        &self.held[self.start()..].as_chunks().0[0]
    }

    /// Where the frame begins among those that are held.
    fn start(&self) -> usize {
        let frame = self.shape[0] * self.shape[1];
        self.frames.saturating_sub(1) % (self.held.len() / frame) * frame
    }

    /// Reads row `y` of the frame to this place.
    fn read_row(&mut self, y: usize, place: usize) {
        let ([rows, row], Some(raw)) = (self.shape, &mut self.raw) else { return };
        if self.failure.is_some() {
            return;
        }
        self.row.clear();
        let bytes = row * T::BYTES;
        match raw.take(bytes as u64).read_to_end(&mut self.row) {
            Err(error) => return self.fail(&error.to_string()),
            Ok(found) if found < bytes => {
                let (all, frame) = (rows * bytes, self.frames);
                let missing = (rows - y) * bytes - found;
                let why = format!(
                    "it ends in row {} of {rows} of frame {frame}: {missing} of {all} bytes are missing",
                    y + 1
                );
                return self.fail(&why);
            }
            Ok(_) => {}
        }
        for (to, bytes) in self.held[place..].iter_mut().zip(self.row.chunks_exact(T::BYTES)) {
            *to = T::read(bytes);
        }
    }

    fn fail(&mut self, why: &str) {
        self.failure.get_or_insert(format!("{}: {why}", self.name));
    }

    /// Ends the input.
    ///
    /// # Errors
    /// The first that happened.
    pub fn finish(self) -> Result<(), String> {
        self.failure.map_or(Ok(()), Err)
    }
}

/// Where an output goes.
pub enum Target {
    /// Nobody wants it.
    Nowhere,
    /// The frames of the last call, to a `.npy` file.
    Npy(PathBuf),
    /// Every frame, to a raw file; `-` is standard output.
    Raw {
        /// The file.
        path: String,
        /// Whether its elements are bytes.
        as_bytes: bool,
    },
}

/// An output.
pub struct Output<T> {
    name: String,
    /// The file to which rows are written; none if all rows are kept, or none.
    raw: Option<BufWriter<Box<dyn Write + Send>>>,
    as_bytes: bool,
    /// The file to which the frames of the last call are written.
    npy: Option<PathBuf>,
    /// Frames of a call, rows of a frame, and elements of a row.
    shape: [usize; 3],
    /// The frames, or room for the rows of a firing.
    held: Vec<T>,
    /// Frames that have ended.
    frames: usize,
    /// Whether rows are in the making there that are not written yet.
    is_pending: bool,
    /// Rows as they are in the file.
    bytes: Vec<u8>,
    failure: Option<String>,
}

impl<T: Element> Output<T> {
    /// Opens the target of an output: a call makes `batch` frames of `rows` rows of `row` elements each.
    ///
    /// # Errors
    /// When a raw file cannot be made.
    pub fn open(target: Target, [batch, rows, row]: [usize; 3]) -> Result<Self, String> {
        let (mut name, mut raw, mut as_bytes) = (String::new(), None, false);
        let (mut npy, mut held) = (None, Vec::new());
        match target {
            Target::Nowhere => {}
            Target::Npy(path) => {
                npy = Some(path);
                held.resize(batch * rows * row, T::default());
            }
            Target::Raw { path, as_bytes: wanted } => {
                let file: Box<dyn Write + Send> = match path.as_str() {
                    "-" => Box::new(std::io::stdout()),
                    path => Box::new(File::create(path).map_err(|error| format!("{path}: {error}"))?),
                };
                name = if path == "-" { "standard output".into() } else { path };
                (raw, as_bytes) = (Some(BufWriter::new(file)), wanted);
            }
        }
        let (is_pending, bytes) = (false, Vec::new());
        let shape = [batch, rows, row];
        Ok(Output { name, raw, as_bytes, npy, shape, held, frames: 0, is_pending, bytes, failure: None })
    }

    /// Room for rows `y`. They are complete when the next rows are asked for, or the frame ends.
    #[allow(dead_code, reason = "not every output is made in room of the caller")]
    pub fn room(&mut self, y: Range<usize>) -> &mut [T] {
        self.write_pending();
        let row = self.shape[2];
        if self.npy.is_some() {
            let start = self.start();
            return &mut self.held[start + y.start * row..start + y.end * row];
        }
        self.is_pending = true;
        self.held.resize(y.len() * row, T::default());
        &mut self.held
    }

    /// Takes row `y`.
    #[allow(dead_code, reason = "not every output is taken by rows")]
    pub fn take(&mut self, y: usize, row: &[T]) {
        match self.npy {
            Some(_) => {
                let start = self.start() + y * row.len();
                self.held[start..][..row.len()].copy_from_slice(row);
            }
            None => self.write(row),
        }
    }

    /// Where the frame begins among those of the call.
    fn start(&self) -> usize {
        let [batch, rows, row] = self.shape;
        self.frames % batch * rows * row
    }

    /// A frame has ended: `false` if it could not be written.
    pub fn end_frame(&mut self) -> bool {
        self.write_pending();
        self.frames += 1;
        if let Some(Err(error)) = self.raw.as_mut().map(Write::flush) {
            self.fail(&error);
        }
        self.failure.is_none()
    }

    fn write_pending(&mut self) {
        if std::mem::take(&mut self.is_pending) {
            let rows = std::mem::take(&mut self.held);
            self.write(&rows);
            self.held = rows;
        }
    }

    fn write(&mut self, elements: &[T]) {
        let (Some(raw), None) = (&mut self.raw, &self.failure) else { return };
        self.bytes.clear();
        match self.as_bytes {
            true => self.bytes.extend(elements.iter().map(|element| element.byte())),
            false => {
                elements.iter().for_each(|element| self.bytes.extend_from_slice(element.bytes().as_ref()))
            }
        }
        if let Err(error) = raw.write_all(&self.bytes) {
            self.fail(&error);
        }
    }

    fn fail(&mut self, error: &std::io::Error) {
        self.failure.get_or_insert(format!("{}: {error}", self.name));
    }

    /// Ends the output. A `.npy` file of all frames has these dimensions, and their elements lie as `layout` says.
    ///
    /// # Errors
    /// The first that happened.
    pub fn finish(mut self, dims: &[usize], layout: Layout) -> Result<(), String> {
        let [batch, rows, row] = self.shape;
        let mut dims = dims.to_vec();
        if batch > 1 && !self.frames.is_multiple_of(batch) {
            // The last call ended early.
            dims[0] = self.frames % batch;
            self.held.truncate(dims[0] * rows * row);
        }
        match (self.failure, self.npy) {
            (Some(failure), _) => Err(failure),
            (None, None) => Ok(()),
            (None, Some(path)) => write(&path, &dims, layout, &self.held, rows * row),
        }
    }
}

/// Frames of so many elements from a `.npy` file of one of these shapes, in C order.
///
/// # Errors
/// When the file cannot be read or holds something else.
fn read<T: Element>(
    path: &str,
    shapes: &[&[usize]],
    layout: Layout,
    elements: usize,
) -> Result<Vec<T>, String> {
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
    let all = check_header::<T>(&String::from_utf8_lossy(header), shapes).map_err(|why| wrong(&why))?;
    let data = &bytes[start + length..];
    if data.len() != all * T::BYTES {
        return Err(wrong(&format!("it has {} bytes of data, not {}", data.len(), all * T::BYTES)));
    }
    let mut frames = vec![T::default(); all];
    let bytes = data.chunks_exact(elements * T::BYTES);
    for (bytes, frame) in bytes.zip(frames.chunks_exact_mut(elements)) {
        for (bytes, place) in bytes.chunks_exact(T::BYTES).zip(layout.places(elements)) {
            frame[place] = T::read(bytes);
        }
    }
    Ok(frames)
}

/// Checks that the header of a `.npy` file states these elements, one of these shapes, and C order. The number of its elements.
fn check_header<T: Element>(header: &str, shapes: &[&[usize]]) -> Result<usize, String> {
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
    Ok(dims.iter().product())
}

/// Writes frames of so many elements to a `.npy` file.
///
/// # Errors
/// When the file cannot be written.
fn write<T: Element>(
    path: &Path,
    dims: &[usize],
    layout: Layout,
    frames: &[T],
    elements: usize,
) -> Result<(), String> {
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
    // It writes element by element: a copy of the frames would take memory that no plan counts.
    let written = || {
        let mut file = BufWriter::new(File::create(path)?);
        file.write_all(b"\x93NUMPY\x01\x00")?;
        file.write_all(&(header.len() as u16).to_le_bytes())?;
        file.write_all(header.as_bytes())?;
        for frame in frames.chunks_exact(elements) {
            layout.places(elements).try_for_each(|place| file.write_all(frame[place].bytes().as_ref()))?;
        }
        file.flush()
    };
    written().map_err(|error: std::io::Error| format!("{}: {error}", path.display()))
}
