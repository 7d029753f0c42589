//! What was measured on a processor: how long a layer takes with each primitive that computes it.
//!
//! Layers of one *scenario* do the same work: the same operator on the same shapes. A measurement is of a scenario, a
//! primitive, a number of workers, and rows per firing. `csdfc profile` makes them, in networks whose other layers run
//! as well, so that caches are as full as they are in a frame.
//!
//! A plan asks for rows per firing that were not measured, and for partitions that share memory with others. So a
//! measurement does not replace the model. It corrects the model: at the measured rows the time is the measured one,
//! and between two measurements it is linear in the number of firings (Eq. 5 of the main paper: a sum over firings).

use std::collections::BTreeMap;

use csdfc_codegen::bind::Primitive;
use csdfc_codegen::operator::Operator;
use csdfc_codegen::shape::Shape;
use serde::{Deserialize, Serialize};

use super::{Processor, Seat};
use crate::frame::lower;
use crate::network::{Layer, LayerId, Network};

/// The times of a scenario.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Measured {
    /// What is computed, as [`scenario`] names it.
    pub scenario: String,
    /// Workers that shared each firing.
    pub threads: u64,
    /// Times by primitive, with rows per firing that ascend.
    pub times: BTreeMap<String, Vec<Sample>>,
}

/// The time of a layer at some number of rows per firing.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sample {
    /// Rows per firing.
    pub rows: u64,
    /// Nanoseconds of all firings of a frame: the median.
    pub ns: f64,
    /// Half the distance between the quartiles, as a share of the median.
    pub spread: f64,
}

impl Measured {
    /// Whether its figures do.
    pub(super) fn makes_sense(&self) -> bool {
        let is_time = |sample: &Sample| sample.ns.is_finite() && sample.ns > 0.0;
        let is_sample = |sample: &Sample| is_time(sample) && sample.spread >= 0.0 && sample.rows > 0;
        let ascends = |samples: &Vec<Sample>| samples.windows(2).all(|pair| pair[0].rows < pair[1].rows);
        self.times.values().all(|samples| samples.iter().all(is_sample) && ascends(samples))
    }
}

/// Where the time of a layer comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Basis {
    /// It was measured with these rows per firing.
    Measured,
    /// It lies between, or beyond, what was measured with other rows per firing.
    Interpolated,
    /// Nothing was measured: the rates of the processor say it.
    Modelled,
}

/// The scenario of a layer: its operator with all attributes, and the shapes of its operands.
pub fn scenario(layer: &Layer) -> String {
    // Operators are plain data, which can always be written.
    let operator = ron::to_string(&layer.operator).unwrap_or_default();
    let shapes: Vec<String> =
        layer.inputs.iter().map(|operand| format!("{:?}", operand.shape.dims)).collect();
    format!("{operator} of {}", shapes.join(" "))
}

/// What was measured of a layer, with its primitive and so many workers. Rows per firing ascend.
pub fn samples<'p>(processor: &'p Processor, layer: &Layer, threads: u64) -> &'p [Sample] {
    if processor.measured.is_empty() || layer.is_input() {
        return &[];
    }
    of_scenario(processor, layer, threads)
        .and_then(|measured| measured.times.get(layer.primitive().name()))
        .map_or(&[], Vec::as_slice)
}

fn of_scenario<'p>(processor: &'p Processor, layer: &Layer, threads: u64) -> Option<&'p Measured> {
    let scenario = scenario(layer);
    processor.measured.iter().find(|measured| measured.threads == threads && measured.scenario == scenario)
}

/// Nanoseconds of a layer in a frame, from what was measured of it, on a processor that it has to itself; and where
/// this comes from. `None` without measurements.
pub fn time(
    samples: &[Sample],
    alone: &Seat<'_>,
    network: &Network,
    id: LayerId,
    rows: u64,
) -> Option<(f64, Basis)> {
    let firings = |rows: u64| lower::firings(network, id, rows) as f64;
    let at = firings(rows);
    // The neighbours in firings, which descend as rows ascend.
    let more = samples.iter().rev().find(|sample| firings(sample.rows) >= at);
    let fewer = samples.iter().find(|sample| firings(sample.rows) <= at);
    let model = |rows: u64| alone.layer(network, id, rows, false).wall_ns;
    let scaled = |sample: &Sample| sample.ns * model(rows) / model(sample.rows);
    match (fewer, more) {
        (Some(fewer), _) if firings(fewer.rows) == at => Some((fewer.ns, Basis::Measured)),
        (Some(fewer), Some(more)) => {
            let [low, high] = [fewer, more].map(|sample| firings(sample.rows));
            let share = (at - low) / (high - low);
            Some((fewer.ns + share * (more.ns - fewer.ns), Basis::Interpolated))
        }
        (Some(only), None) | (None, Some(only)) => Some((scaled(only), Basis::Interpolated)),
        (None, None) => None,
    }
}

/// The primitive that was measured to make all rows of a layer in the shortest time, of those that read and write HWC
/// and err by at most `max_error` ([`Primitive::error`]). `None` if fewer than two of these were measured.
pub fn fastest(processor: &Processor, layer: &Layer, threads: u64, max_error: f64) -> Option<Primitive> {
    if !matches!(layer.operator, Operator::Conv(_)) {
        return None;
    }
    let inputs: Vec<&Shape> = layer.inputs.iter().map(|operand| &operand.shape).collect();
    let [reads, writes] = layer.primitive().layouts();
    let whole = |(name, samples): (&String, &Vec<Sample>)| {
        let primitive = Primitive::find(name)?;
        let suits = primitive.layouts() == [reads, writes]
            && primitive.computes(&layer.operator, &inputs)
            && primitive.error() <= max_error;
        let sample = samples.iter().max_by_key(|sample| sample.rows)?;
        (suits && sample.rows >= layer.rows() as u64).then_some((primitive, sample.ns))
    };
    let measured = of_scenario(processor, layer, threads)?;
    let mut suitable: Vec<(Primitive, f64)> = measured.times.iter().filter_map(whole).collect();
    suitable.sort_by(|a, b| a.1.total_cmp(&b.1));
    suitable.first().filter(|_| suitable.len() > 1).map(|(primitive, _)| *primitive)
}
