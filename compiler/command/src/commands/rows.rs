//! The rows of a frame of `csdfc run`: those of raw files, which are read and written row by row, and those of whole
//! tensors. The program of an emitted crate takes the same files.

use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

use csdfc_plan::operator::{CameraLayout, Input, InputElement};
use csdfc_plan::shape::Shape;
use csdfc_planner::error::Error;
use csdfc_runtime::run::{FrameRows, InputRow, OutputRow, WholeFrame};

use super::output;

/// Whether a file holds frames without a header.
pub(super) fn is_raw(path: &Path) -> bool {
    path.extension().is_none_or(|extension| extension != "npy")
}

/// An input whose frames are read row by row.
pub(super) struct RawInput {
    name: String,
    file: BufReader<Box<dyn Read>>,
    rows: usize,
    /// Bytes of a row.
    row: usize,
    /// Planes of a camera. If there are several, the frame is held, since a row lies in all of them.
    planes: usize,
    /// The frame, or the last row of it that was read.
    held: Vec<u8>,
    /// Frames that have begun.
    frames: usize,
}

impl RawInput {
    /// Opens a file for an input of this shape; `-` is standard input.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn open(path: &Path, input: &Input, shape: &Shape) -> Result<Self, Error> {
        let (name, file): (String, Box<dyn Read>) = match path.as_os_str() == "-" {
            true => ("standard input".into(), Box::new(io::stdin())),
            false => {
                let file = File::open(path).map_err(|error| Error::read(path, error))?;
                (path.display().to_string(), Box::new(file))
            }
        };
        let element = if input.element == InputElement::F32 { 4 } else { 1 };
        let is_planar = input.camera.as_ref().is_some_and(|camera| camera.layout == CameraLayout::Chw);
        let planes = if is_planar { shape.channels().max(1) } else { 1 };
        let (rows, row) = (shape.rows(), shape.row_elements() * element);
        let held = vec![0; if planes > 1 { rows * row } else { row }];
        Ok(RawInput { name, file: BufReader::new(file), rows, row, planes, held, frames: 0 })
    }

    /// Goes on to the next frame; `false` if there is none.
    ///
    /// # Errors
    /// When the file cannot be read, or has no frame at all.
    pub fn next_frame(&mut self) -> Result<bool, Error> {
        let failed = |name: &str, error| Error::read(name, error);
        let is_at_end = loop {
            match self.file.fill_buf() {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(failed(&self.name, error)),
                Ok(bytes) => break bytes.is_empty(),
            }
        };
        if is_at_end && self.frames == 0 {
            return Err(Error::Input { message: format!("{}: it holds no frame", self.name), help: None });
        }
        self.frames += usize::from(!is_at_end);
        if !is_at_end && self.planes > 1 {
            self.fill(0).map_err(|error| failed(&self.name, error))?;
        }
        Ok(!is_at_end)
    }

    /// Reads as many bytes as are held, from row `y` of the frame on.
    fn fill(&mut self, y: usize) -> io::Result<()> {
        let (wanted, all) = (self.held.len(), self.rows * self.row);
        self.held.clear();
        let found = (&mut self.file).take(wanted as u64).read_to_end(&mut self.held)?;
        self.held.resize(wanted, 0);
        if found < wanted {
            let (frame, missing) = (self.frames, all - y * self.row - found);
            let why = format!("{} ends in frame {frame}: {missing} of {all} bytes are missing", self.name);
            return Err(io::Error::new(ErrorKind::UnexpectedEof, why));
        }
        Ok(())
    }

    /// Fills in row `y`.
    fn fill_row(&mut self, y: usize, row: InputRow<'_>) -> io::Result<()> {
        if self.planes == 1 {
            self.fill(y)?;
        }
        match row {
            InputRow::F32(row) => {
                let bytes = self.held.as_chunks().0;
                row.iter_mut().zip(bytes).for_each(|(to, bytes)| *to = f32::from_le_bytes(*bytes));
            }
            InputRow::I8(row) => {
                row.iter_mut().zip(&self.held).for_each(|(to, byte)| *to = byte.cast_signed());
            }
            InputRow::U8(row) => {
                let (len, y) = (row.len() / self.planes, if self.planes > 1 { y } else { 0 });
                for (plane, row) in row.chunks_exact_mut(len.max(1)).enumerate() {
                    row.copy_from_slice(&self.held[(plane * self.rows + y) * len..][..len]);
                }
            }
        }
        Ok(())
    }
}

/// An output whose frames are written row by row.
pub(super) struct RawOutput {
    path: PathBuf,
    /// Made when the first row is there: a run that fails before leaves no file.
    file: Option<BufWriter<Box<dyn Write>>>,
    as_bytes: bool,
    /// A row as it is in the file.
    row: Vec<u8>,
}

impl RawOutput {
    /// A file that will be made; `-` is standard output. With `as_bytes`, floats are multiplied by 255 and rounded to the
    /// nearest.
    ///
    /// # Errors
    /// When it could not be made.
    pub fn new(path: &Path, as_bytes: bool) -> Result<Self, Error> {
        output::check(path)?;
        Ok(RawOutput { path: path.to_owned(), file: None, as_bytes, row: Vec::new() })
    }

    fn file(&mut self) -> io::Result<&mut BufWriter<Box<dyn Write>>> {
        let file = match self.file.take() {
            Some(file) => file,
            None if self.path.as_os_str() == "-" => BufWriter::new(Box::new(io::stdout()) as Box<dyn Write>),
            None => BufWriter::new(Box::new(File::create(&self.path)?) as Box<dyn Write>),
        };
        Ok(self.file.insert(file))
    }

    fn write_row(&mut self, row: OutputRow<'_>) -> io::Result<()> {
        self.row.clear();
        match (row, self.as_bytes) {
            (OutputRow::F32(row), false) => self.row.extend(row.iter().flat_map(|x| x.to_le_bytes())),
            (OutputRow::F32(row), true) => self.row.extend(row.iter().map(|x| (x * 255.0).round() as u8)),
            (OutputRow::I64(row), false) => self.row.extend(row.iter().flat_map(|i| i.to_le_bytes())),
            (OutputRow::U8(row), _) => self.row.extend_from_slice(row),
            (OutputRow::I64(row), true) => self.row.extend(row.iter().map(|i| *i.clamp(&0, &255) as u8)),
        }
        let row = std::mem::take(&mut self.row);
        let written = self.file()?.write_all(&row);
        self.row = row;
        written
    }

    /// Ends a frame.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn end_frame(&mut self) -> Result<(), Error> {
        self.file.as_mut().map_or(Ok(()), Write::flush).map_err(|error| Error::write(&self.path, error))
    }
}

/// A frame whose tensors are in files or whole.
pub(super) struct Frame<'a> {
    pub whole: WholeFrame<'a>,
    pub inputs: &'a mut [Option<RawInput>],
    pub outputs: &'a mut [Option<RawOutput>],
}

impl FrameRows for Frame<'_> {
    fn input(&mut self, input: usize, y: usize, row: InputRow<'_>) -> io::Result<()> {
        match &mut self.inputs[input] {
            Some(raw) => raw.fill_row(y, row),
            None => self.whole.input(input, y, row),
        }
    }

    fn output(&mut self, output: usize, y: usize, row: OutputRow<'_>) -> io::Result<()> {
        match &mut self.outputs[output] {
            Some(raw) => raw.write_row(row),
            None => self.whole.output(output, y, row),
        }
    }
}
