//! The names by which the command line knows values of types that know nothing of it.

use clap::ValueEnum;
use clap::builder::PossibleValue;

use crate::app::spec::{Method, Prefer};
use crate::offload::problem::Unit;

impl ValueEnum for Method {
    fn value_variants<'a>() -> &'a [Self] {
        &[
            Method::None,
            Method::Reuse,
            Method::Parts,
            Method::Paper,
            Method::PaperPrinted,
            Method::Simple,
            Method::Extended,
        ]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        let (name, help) = match self {
            Method::None => ("none", "No reduction: layer by layer, every edge in a buffer of its own"),
            Method::Reuse => (
                "reuse",
                "Layer by layer, buffers reused greedily within each CNN (Pisarchyk and Lee 2020, the paper's [23]). \
                 Partitions of a CNN run one after another",
            ),
            Method::Parts => (
                "parts",
                "Every layer row by row, every edge in a buffer of its own (Minakova and Stefanov 2020, the paper's [17])",
            ),
            Method::Paper => (
                "paper",
                "Algorithm 2: a genetic search for the layers that go row by row, buffers reused in the whole application",
            ),
            Method::PaperPrinted => (
                "paper-printed",
                "Algorithm 2 and Algorithm 1 as they are printed: the search begins at random, and edges are visited in \
                 one order",
            ),
            Method::Simple => ("simple", "No parts, all parts, and every prefix of the layers by parts"),
            Method::Extended => (
                "extended",
                "Rows per firing for each layer, and where runs of layers that are streamed end: the exact front of what \
                 follows the network's blocks, and a genetic search from there",
            ),
        };
        Some(PossibleValue::new(name).help(help))
    }
}

impl ValueEnum for Prefer {
    fn value_variants<'a>() -> &'a [Self] {
        &[Prefer::Fps, Prefer::Memory]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        let (name, help) = match self {
            Prefer::Fps => ("fps", "The plan with the most frames per second"),
            Prefer::Memory => ("memory", "The plan that takes the least memory"),
        };
        Some(PossibleValue::new(name).help(help))
    }
}

impl ValueEnum for Unit {
    fn value_variants<'a>() -> &'a [Self] {
        &[Unit::Pixels, Unit::Elements]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        let (name, help) = match self {
            Unit::Pixels => (
                "pixels",
                "2-D pixels with all their channels, as in the paper; a patch written back counts one",
            ),
            Unit::Elements => ("elements", "Every channel of a pixel, and every filter's result of a patch"),
        };
        Some(PossibleValue::new(name).help(help))
    }
}
