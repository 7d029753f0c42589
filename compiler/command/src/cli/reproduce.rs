//! The command line of `csdfc reproduce`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::effort::SearchBudget;
use crate::reproduce::selection::DEVICE;

/// Arguments of `csdfc reproduce`.
#[derive(Debug, Clone, Args)]
pub struct ReproduceArgs {
    /// The paper: s1 is "CNN offloading in steps: S1 strategies"; table12 is Tables 1, 8, 9 and 12 of "Memory-throughput
    /// trade-off for CNN-based applications at the edge", and precision its Tables 4 to 7 and 13; mec is "MEC:
    /// Memory-efficient convolution for deep neural network"; pbqp is "Optimal DNN primitive selection with partitioned
    /// boolean quadratic programming"; taso is "TASO: Time and space optimization for memory-constrained DNN
    /// inference". joint and paging are no papers: joint compares plans whose primitives and rows are chosen together
    /// with plans that choose one after the other, and paging shows memory and frame rates of networks that read their
    /// weights from stores
    #[arg(value_enum)]
    pub paper: Paper,
    /// Folder of the page and its figures; files of the same names are replaced
    #[arg(short, long, value_name = "DIR")]
    pub output: PathBuf,
    /// How long to search for each strategy: changes that each annealing chain proposes, or seconds
    #[arg(long, value_name = "N|10s")]
    pub budget: Option<SearchBudget>,
    /// Seed of the searches' random choices
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Device profile of pbqp and taso: a name or a file
    #[arg(long, value_name = "NAME|FILE.ron", default_value = DEVICE)]
    pub device: String,
    /// For mec: leave out all measured times, so that the page is the same on every machine
    #[arg(long)]
    pub no_times: bool,
}

/// A paper whose tables and figures are made again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Paper {
    /// "CNN offloading in steps: S1 strategies".
    S1,
    /// "Memory-throughput trade-off for CNN-based applications at the edge".
    #[value(name = "table12", aliases = ["table1", "table8", "table9"])]
    Table12,
    /// Tables 4 to 7 and 13 of the same paper.
    #[value(name = "precision", aliases = ["table4", "table5", "table6", "table7", "table13"])]
    Precision,
    /// "MEC: Memory-efficient convolution for deep neural network".
    Mec,
    /// "Optimal DNN primitive selection with partitioned boolean quadratic programming".
    Pbqp,
    /// "TASO: Time and space optimization for memory-constrained DNN inference".
    Taso,
    /// Primitives, rows and segments chosen together, beside one after the other.
    Joint,
    /// Memory and frame rate of networks whose weights are read from slow and fast stores.
    Paging,
}
