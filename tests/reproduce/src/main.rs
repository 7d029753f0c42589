//! Writes the page of a paper and its figures into a folder: `cargo run --release -p csdfc-reproduce -- s1 -o docs/s1`.

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};

use clap::{Parser, ValueEnum};
use csdfc_command::error::Error;
use csdfc_input::device::DeviceProfile;
use csdfc_offload::Budget;
use csdfc_reproduce::{joint, mec, precision, s1, selection, strategies, streaming, table12, upscale};

/// Makes the tables and figures of a paper again, from csdfc's own data.
#[derive(Debug, Parser)]
struct Arguments {
    /// Which page to make
    #[arg(value_enum)]
    page: Page,
    /// Folder of the page and its figures; files of the same names are replaced
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,
    /// For s1: how many changes each annealing chain proposes
    #[arg(long, value_name = "N")]
    steps: Option<u64>,
    /// Seed of the searches' random choices
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// For pbqp and taso: the device profile, a name or a file
    #[arg(long, value_name = "NAME|FILE.ron", default_value = selection::DEVICE)]
    device: String,
    /// For mec: leave out all measured times, so that the page is the same on every machine
    #[arg(long)]
    no_times: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Page {
    /// "CNN offloading in steps: S1 strategies"
    S1,
    /// Tables 1, 8, 9 and 12 of "Memory-throughput trade-off for CNN-based applications at the edge"
    #[value(name = "table12")]
    Table12,
    /// Tables 4 to 7 and 13 of the same paper
    Precision,
    /// "MEC: Memory-efficient convolution for deep neural network"
    Mec,
    /// "Optimal DNN primitive selection with partitioned boolean quadratic programming"
    Pbqp,
    /// "TASO: Time and space optimization for memory-constrained DNN inference"
    Taso,
    /// Plans whose primitives and rows are chosen together, beside plans that choose one after the other
    Joint,
    /// Memory and frame rates of networks that read their weights from slow and fast stores
    Streaming,
    /// What each strategy of the planner is worth, in bytes, frames per second and planning time
    Strategies,
    /// A picture for the guide (`-o docs/guide/src`): before and after a network made it larger
    Upscale,
}

fn main() -> miette::Result<()> {
    let arguments = Arguments::parse();
    let (files, said) = make(&arguments)?;
    let mut stdout = std::io::stdout().lock();
    for (name, content) in files {
        let path = arguments.output.join(name);
        let folders = path.parent().map_or(Ok(()), std::fs::create_dir_all);
        folders.and_then(|()| std::fs::write(&path, content)).map_err(|error| Error::write(&path, error))?;
        say(&mut stdout, &format!("{}\n", path.display()))?;
    }
    say(&mut stdout, &said)
}

/// The files of a page, and what is not the same twice and so in no file.
fn make(arguments: &Arguments) -> Result<(Vec<(String, String)>, String), Error> {
    let device = || DeviceProfile::find(&arguments.device, Path::new(""));
    let budget = arguments.steps.map_or(Budget::Default, Budget::Work);
    let files = match arguments.page {
        Page::S1 => s1::files(budget, arguments.seed, &tell)?,
        Page::Table12 => table12::files(arguments.seed, &tell)?,
        Page::Precision => precision::files(arguments.seed, &tell)?,
        Page::Mec => mec::files(!arguments.no_times, &tell),
        Page::Pbqp => selection::pbqp::files(&device()?, &tell)?,
        Page::Taso => return selection::taso::files(&device()?, &tell),
        Page::Joint => joint::files(&tell)?,
        Page::Streaming => streaming::files(&tell)?,
        Page::Strategies => strategies::files(&tell)?,
        Page::Upscale => upscale::files().map_err(Error::Bug)?,
    };
    Ok((files, String::new()))
}

/// Shows how far the work is, if there is a terminal.
fn tell(progress: &str) {
    let mut stderr = std::io::stderr();
    if stderr.is_terminal() {
        // A terminal that is gone needs no line.
        let _ = write!(stderr, "\r\x1b[K{progress}");
    }
}

fn say(stdout: &mut impl Write, text: &str) -> miette::Result<()> {
    stdout.write_all(text.as_bytes()).map_err(|error| Error::write("standard output", error).into())
}
