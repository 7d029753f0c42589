//! The command line of `csdfc offload`.

use std::path::PathBuf;

use clap::Args;
use csdfc_offload::Unit;

use super::budget::SearchBudget;
use super::{Format, values};

/// Arguments of `csdfc offload`.
#[derive(Debug, Clone, Args)]
pub struct OffloadArgs {
    /// An application or model, to map every convolution of it; for a single layer, give --input and --filter instead
    #[arg(value_name = "APP|MODEL", conflicts_with_all = ["input", "filter"])]
    pub app: Option<String>,
    /// Height, width and channels of the layer's input
    #[arg(long, value_name = "HxW[xC]", required_unless_present = "app", value_parser = sizes)]
    pub input: Option<Sizes>,
    /// Height and width of its filters, and how many there are
    #[arg(long, value_name = "HxW[xN]", required_unless_present = "app", value_parser = sizes)]
    pub filter: Option<Sizes>,
    /// Pixels from one patch to the next
    #[arg(long, value_name = "S|SYxSX", default_value = "1", value_parser = pair, conflicts_with = "app")]
    pub stride: [usize; 2],
    /// Zeros around the input; they are loaded like other pixels
    #[arg(long, value_name = "P|T,L,B,R", default_value = "0", value_parser = pads, conflicts_with = "app")]
    pub pad: [usize; 4],
    /// Most patches in a group [default: as many as --pe allows, which must be given then]
    #[arg(long, value_name = "N")]
    pub group: Option<usize>,
    /// How often a pixel may be loaded [default: any number]
    #[arg(long, value_name = "N")]
    pub reload: Option<u32>,
    /// How patches are grouped: row, zigzag, column, comb, baseline, exact, program, best, or a strategy's file
    #[arg(long, value_name = "NAME|FILE", default_value = "best")]
    pub strategy: String,
    /// Filters in memory at a time; the others are loaded in later passes [default: all, or as many as fit]
    #[arg(long, value_name = "N")]
    pub filters_at_once: Option<usize>,
    /// How long to search: changes that each annealing chain proposes, or seconds; the default depends on the layer's size
    #[arg(long, value_name = "N|10s")]
    pub budget: Option<SearchBudget>,
    /// Seed of the search's random choices
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Execute the strategy on random data, step by step, and compare with the direct convolution
    #[arg(long, conflicts_with = "app")]
    pub simulate: bool,
    /// Write the strategy to this file: .json, .ron or .csv
    #[arg(short, long, value_name = "FILE", conflicts_with = "app")]
    pub output: Option<PathBuf>,
    /// Write what every step loads, frees, computes, writes and holds to this file, as JSON
    #[arg(long, value_name = "FILE", conflicts_with = "app")]
    pub trace: Option<PathBuf>,
    /// Draw the steps: a picture (.svg), or a page that plays them (.html)
    #[arg(long, value_name = "FILE", conflicts_with = "app")]
    pub picture: Option<PathBuf>,
    /// What to print
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
    /// Options of the models.
    #[command(flatten)]
    pub load: super::load::LoadArgs,
    /// What the accelerator is like.
    #[command(flatten)]
    pub accelerator: AcceleratorArgs,
    /// What is counted.
    #[command(flatten)]
    pub count: CountArgs,
}

/// The accelerator. Options win over the file.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Accelerator")]
pub struct AcceleratorArgs {
    /// A file that describes the accelerator: (name: "vta", pe: 1024, mem_elements: 65536, tl: 1, tw: 1, tacc: 1)
    #[arg(long, value_name = "FILE.ron")]
    pub accelerator: Option<PathBuf>,
    /// Most multiply-accumulates in a step [default: any number]
    #[arg(long, value_name = "N")]
    pub pe: Option<u64>,
    /// How many elements its memory holds, of any type, as the paper counts it [default: any number]
    #[arg(long, value_name = "N")]
    pub mem_elements: Option<u64>,
    /// Cycles to load an element [default: 1]
    #[arg(long, value_name = "CYCLES")]
    pub tl: Option<u64>,
    /// Cycles to write an element back [default: 1]
    #[arg(long, value_name = "CYCLES")]
    pub tw: Option<u64>,
    /// Cycles to compute a step [default: 1]
    #[arg(long, value_name = "CYCLES")]
    pub tacc: Option<u64>,
}

/// What durations count.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Durations")]
pub struct CountArgs {
    /// Count writing results back too
    #[arg(long)]
    pub count_writes: bool,
    /// Count pixels once, or every channel of them [default: pixels for a layer, elements for a model]
    #[arg(long, value_parser = values::unit())]
    pub unit: Option<Unit>,
}

/// Height, width, and perhaps a number of channels or filters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sizes {
    /// Height and width.
    pub plane: [usize; 2],
    /// Channels or filters; 1 if not given.
    pub depth: usize,
}

fn sizes(text: &str) -> Result<Sizes, String> {
    match numbers(text, 'x').as_deref() {
        Some([height, width]) => Ok(Sizes { plane: [*height, *width], depth: 1 }),
        Some([height, width, depth]) => Ok(Sizes { plane: [*height, *width], depth: *depth }),
        _ => Err("give height and width, and a number if it is not 1: `32x32`, `5x5x6`".into()),
    }
}

fn pair(text: &str) -> Result<[usize; 2], String> {
    match numbers(text, 'x').as_deref() {
        Some([both]) => Ok([*both; 2]),
        Some([y, x]) => Ok([*y, *x]),
        _ => Err("give one number, or one for each direction: `2`, `2x1`".into()),
    }
}

fn pads(text: &str) -> Result<[usize; 4], String> {
    match numbers(text, ',').as_deref() {
        Some([all]) => Ok([*all; 4]),
        Some([top, left, bottom, right]) => Ok([*top, *left, *bottom, *right]),
        _ => Err("give one number, or top, left, bottom and right: `1`, `0,0,1,1`".into()),
    }
}

fn numbers(text: &str, between: char) -> Option<Vec<usize>> {
    text.split(between).map(|number| number.trim().parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read() {
        assert_eq!(sizes("32x28"), Ok(Sizes { plane: [32, 28], depth: 1 }));
        assert_eq!(sizes("5x5x6"), Ok(Sizes { plane: [5, 5], depth: 6 }));
        assert_eq!((pair("2"), pair("2x1")), (Ok([2, 2]), Ok([2, 1])));
        assert_eq!((pads("1"), pads("0,1,2,3")), (Ok([1; 4]), Ok([0, 1, 2, 3])));
        for text in ["", "x", "5", "5x", "5x5x5x5", "-1x5", "5x5.0", "99999999999999999999x1"] {
            assert!(sizes(text).is_err(), "{text}");
        }
        assert!(pads("1,2").is_err() && pair("1x2x3").is_err());
    }
}
