//! Arguments of `csdfc run`.

use std::path::PathBuf;
use std::str::FromStr;

use clap::Args;

use super::Format;

/// Arguments of `csdfc run`.
#[derive(Debug, Clone, Args)]
pub struct RunArgs {
    /// The plan, JSON or RON; `-` for standard input
    pub plan: PathBuf,
    /// A network input: a .npy file in the model's dimensions, or with the channels of an image last; float32 or the integers
    /// of a quantized input, or of a camera's bytes; of a stream also with the rows of many hops. A PNG or JPEG file, of an
    /// input that takes bytes. Or a raw file of frames, `-` for standard input. The only input needs no name
    #[arg(long = "input", value_name = "[CNN/]NAME=FILE")]
    pub inputs: Vec<NamedFile>,
    /// Print the names of the five best classes: a text with a name in each line, of the output with as many elements. With
    /// `--boxes`, the names of the classes of boxes
    #[arg(long, value_name = "FILE")]
    pub labels: Option<PathBuf>,
    /// Print the boxes that a detector found, each with its class, its score and its left, top, right and bottom
    #[arg(long)]
    pub boxes: bool,
    /// Fill inputs that are not given with random numbers from this seed: floats from -1 to 1, or bytes
    #[arg(long, value_name = "SEED")]
    pub random: Option<u64>,
    /// Write each output to a .npy file in this folder, named after the output, as the emitted program does. In the
    /// name, every byte but letters, digits and `._-` becomes `%` and two hexadecimal digits: `/` becomes `%2F`. If
    /// there are several CNNs, each has a folder of its own. With a name, write this output to a raw file, frame after
    /// frame, or to a .npy file; `-` is the only output to standard output
    #[arg(long = "output", value_name = "DIR|[CNN/]NAME=FILE")]
    pub outputs: Vec<NamedFile>,
    /// Make elements of raw outputs bytes: floats times 255, rounded to the nearest; what is below 0 or above 255 becomes
    /// 0 or 255
    #[arg(long)]
    pub bytes: bool,
    /// Compare an output with a reference; exit code 2 if it differs by more than 1e-4 of the largest element
    #[arg(long, value_name = "[CNN/]NAME=FILE.npy")]
    pub compare: Vec<NamedFile>,
    /// Write the tensor of every layer to a file in this folder; the plan must make each tensor in one firing
    #[arg(long, value_name = "DIR")]
    pub dump: Option<PathBuf>,
    /// Compare the tensor of every layer with its file in this folder, if it has one, and name the first that differs
    #[arg(long, value_name = "DIR")]
    pub compare_layers: Option<PathBuf>,
    /// Run at most this many frames, and print their median time: by default one, or as many as raw inputs have. All
    /// other inputs stay the same
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub frames: Option<u64>,
    /// Print the time of each layer, beside the one that the plan states
    #[arg(long)]
    pub profile: bool,
    /// Write a trace of the last frame to this file, for Perfetto or Chrome: it shows when each layer fired
    #[arg(long, value_name = "FILE.json")]
    pub trace: Option<PathBuf>,
    /// What to print
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}

/// `NAME=FILE`, or only a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedFile {
    /// The tensor, perhaps `CNN/NAME`; empty if it has no name.
    pub name: String,
    /// The file.
    pub file: PathBuf,
}

impl FromStr for NamedFile {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.rsplit_once('=') {
            Some((name, file)) if !name.is_empty() && !file.is_empty() => {
                Ok(NamedFile { name: name.into(), file: file.into() })
            }
            None => Ok(NamedFile { name: String::new(), file: text.into() }),
            _ => Err("give a name and a file: `image=x.npy`".into()),
        }
    }
}
