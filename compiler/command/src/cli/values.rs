//! The names by which the command line knows values of types that know nothing of it.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use csdfc_input::app::names::{Names, PRECISIONS, WEIGHTS};
use csdfc_input::app::primitive_name::UnknownPrimitive;
use csdfc_input::app::spec::{Method, Prefer, Primitives, WeightsPlace};
use csdfc_network::pass::Precision;
use csdfc_offload::Unit;
use csdfc_planner::strategy::Strategy;
use csdfc_precision::quantize::Ranges;
use csdfc_select::Quantity;

const METHODS: Names<Method> = &[
    (Method::None, "none", "Layer by layer, every edge in a buffer of its own"),
    (
        Method::Reuse,
        "reuse",
        "Layer by layer, buffers reused greedily within each CNN (Pisarchyk and Lee 2020, the paper's [23]). \
         Partitions of a CNN run one after another",
    ),
    (
        Method::Parts,
        "parts",
        "Every layer row by row, every edge in a buffer of its own (Minakova and Stefanov 2020, the paper's [17])",
    ),
    (
        Method::Paper,
        "paper",
        "Algorithm 2: a genetic search for the layers that go row by row, buffers reused in the whole application",
    ),
    (
        Method::PaperPrinted,
        "paper-printed",
        "Algorithm 2 and Algorithm 1 as they are printed: the search begins at random, and edges are visited in \
         one order",
    ),
    (Method::Simple, "simple", "No parts, all parts, and every prefix of the layers by parts"),
    (
        Method::Extended,
        "extended",
        "Chooses the rows per firing of each layer and the ends of segments: the exact front over chains of the \
         network's blocks, and a genetic search from there",
    ),
];

const PREFERENCES: Names<Prefer> = &[
    (Prefer::Fps, "fps", "The plan with the most frames per second"),
    (Prefer::Memory, "memory", "The plan that takes the least memory"),
];

const RANGES: Names<Ranges> = &[
    (Ranges::MinMax, "min-max", "From the smallest element to the largest"),
    (Ranges::Percentile, "percentile", "Without the smallest 0.005 % and the largest 0.005 %"),
    (Ranges::Mse, "mse", "The range with the least mean square error of clipping and rounding together"),
];

const UNITS: Names<Unit> = &[
    (
        Unit::Pixels,
        "pixels",
        "2-D pixels with all their channels, as in the paper; a patch written back counts one",
    ),
    (Unit::Elements, "elements", "Every channel of a pixel, and every filter's result of a patch"),
];

const OBJECTIVES: Names<Quantity> = &[
    (Quantity::Time, "time", "Time of all layers and conversions, then memory"),
    (Quantity::Memory, "memory", "Memory, summed over layers, then time"),
    (Quantity::Workspace, "workspace", "Memory of the layer that takes most, then time"),
];

const SELECTIONS: Names<csdfc_select::Method> = &[
    (csdfc_select::Method::Exact, "exact", "The optimum, by elimination of one layout after another"),
    (csdfc_select::Method::Program, "program", "The optimum, by an integer program (TASO); for comparison"),
    (
        csdfc_select::Method::Greedy,
        "greedy",
        "Starts at the time optimum, and replaces the largest primitive by the fastest smaller one until the budget holds",
    ),
    (
        csdfc_select::Method::LocalOptimal,
        "local-optimal",
        "The optimum if all convolutions read and write CHW, so that nothing is converted",
    ),
    (
        csdfc_select::Method::Families,
        "families",
        "For each family, every convolution takes the fastest primitive of the family, or sum2d, whatever \
         conversions that needs; the best family is the answer",
    ),
    (
        csdfc_select::Method::Sum2d,
        "sum2d",
        "Each convolution by the sum of single channels, the papers' baseline",
    ),
];

/// Objectives of `csdfc select`.
pub fn objective() -> impl TypedValueParser<Value = Quantity> {
    one_of(OBJECTIVES)
}

/// Methods of `csdfc select`.
pub fn selection() -> impl TypedValueParser<Value = csdfc_select::Method> {
    one_of(SELECTIONS)
}

/// Methods of `--method`.
pub fn method() -> impl TypedValueParser<Value = Method> {
    one_of(METHODS)
}

/// Preferences of `--prefer`.
pub fn preference() -> impl TypedValueParser<Value = Prefer> {
    one_of(PREFERENCES)
}

/// Strategies of `--without`.
pub fn strategy() -> impl TypedValueParser<Value = Strategy> {
    let value = |strategy: Strategy| PossibleValue::new(strategy.name()).help(strategy.about());
    PossibleValuesParser::new(Strategy::all().map(value)).try_map(|name| name.parse::<Strategy>())
}

/// Primitives of `--primitives`.
pub fn primitives(text: &str) -> Result<Primitives, UnknownPrimitive> {
    match text {
        "auto" => Ok(Primitives::Auto),
        "fixed" => Ok(Primitives::Fixed),
        name => name.parse().map(Primitives::Named),
    }
}

/// Precisions of `--precision`.
pub fn precision() -> impl TypedValueParser<Value = Precision> {
    one_of(PRECISIONS)
}

/// Places of `--weights`.
pub fn weights() -> impl TypedValueParser<Value = WeightsPlace> {
    one_of(WEIGHTS)
}

/// Ways of `--ranges`.
pub fn ranges() -> impl TypedValueParser<Value = Ranges> {
    one_of(RANGES)
}

/// Units of `--unit`.
pub fn unit() -> impl TypedValueParser<Value = Unit> {
    one_of(UNITS)
}

fn one_of<T: Copy + Send + Sync + 'static>(names: Names<T>) -> impl TypedValueParser<Value = T> {
    let value = |&(_, name, help): &(T, &'static str, &'static str)| {
        PossibleValue::new(name).help(help).hide(help.is_empty())
    };
    let values = names.iter().map(value);
    PossibleValuesParser::new(values).try_map(move |given| {
        let found = names.iter().find(|&&(_, name, _)| name == given);
        found.map(|&(value, ..)| value).ok_or("not one of the values")
    })
}
