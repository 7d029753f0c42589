//! Which range of numbers the integers of a tensor stand for.

use std::collections::BTreeMap;

use csdfc_network::Network;
use csdfc_plan::format::Quantization;
use csdfc_runtime::run::Value;

use super::simulate::Simulation;
use crate::error::Error;

/// How the range of a tensor follows from its elements in all frames. Every range has 0 in it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Ranges {
    /// From the least element to the greatest.
    #[default]
    MinMax,
    /// Without the 0.005 % of the elements that are least, and as many that are greatest: 99.99 % are within.
    Percentile,
    /// With the least mean square of the changes by clipping and rounding.
    Mse,
}

/// Share of the elements beyond each end of [`Ranges::Percentile`].
const BEYOND: f64 = 0.000_05;

/// Bins of a histogram, between the least element and the greatest.
const BINS: usize = 2048;

/// The number of points on the way from 0 to the least and to the greatest element at which [`Ranges::Mse`] tries to
/// clip.
const STEPS: usize = 32;

/// The elements of a tensor in all frames.
#[derive(Debug, Clone)]
pub(super) struct Histogram {
    pub low: f32,
    pub high: f32,
    /// How many there are in each bin.
    pub bins: Vec<u64>,
}

impl Histogram {
    /// Of elements from `low` to `high`; 0 is one of them.
    fn with_range([low, high]: [f32; 2]) -> Self {
        Histogram { low: low.min(0.0), high: high.max(0.0), bins: vec![0; BINS] }
    }

    fn width(&self) -> f64 {
        (f64::from(self.high) - f64::from(self.low)) / BINS as f64
    }

    pub fn count(&mut self, values: &[f32]) {
        let width = self.width();
        for value in values {
            let bin = (f64::from(*value) - f64::from(self.low)) / width;
            // A conversion to an integer type saturates. If the width is 0, all elements are in the first bin.
            self.bins[(bin as usize).min(BINS - 1)] += 1;
        }
    }

    /// The range of the integers.
    pub fn range(&self, ranges: Ranges) -> [f32; 2] {
        match ranges {
            Ranges::MinMax => [self.low, self.high],
            Ranges::Percentile => self.percentile(),
            Ranges::Mse => self.least_error(),
        }
    }

    fn percentile(&self) -> [f32; 2] {
        let total: u64 = self.bins.iter().sum();
        let beyond = total as f64 * BEYOND;
        let inner = |bins: &mut dyn Iterator<Item = &u64>| {
            let mut left = beyond;
            bins.take_while(|count| {
                left -= **count as f64;
                left >= 0.0
            })
            .count()
        };
        let (below, above) = (inner(&mut self.bins.iter()), inner(&mut self.bins.iter().rev()));
        let low = f64::from(self.low) + below as f64 * self.width();
        let high = f64::from(self.high) - above as f64 * self.width();
        [(low as f32).min(0.0), (high as f32).max(0.0)]
    }

    fn least_error(&self) -> [f32; 2] {
        let parts = |end: f32| (0..=STEPS).map(move |part| end * (part as f32 / STEPS as f32));
        let ends = parts(self.low).flat_map(|low| parts(self.high).map(move |high| [low, high]));
        let ends = ends.filter(|[low, high]| low < high || self.low == self.high);
        let errors = ends.map(|range| (self.error(quantization(range)), range));
        errors.min_by(|(a, _), (b, _)| a.total_cmp(b)).map_or([self.low, self.high], |(_, range)| range)
    }

    /// Sum of the squares of the changes by integers, with each element at the middle of its bin.
    fn error(&self, quantization: Quantization) -> f64 {
        let middle = |bin: usize| f64::from(self.low) + (bin as f64 + 0.5) * self.width();
        let filled = self.bins.iter().enumerate().filter(|(_, count)| **count > 0);
        filled
            .map(|(bin, count)| {
                let x = middle(bin) as f32;
                let change = f64::from(quantization.number(quantization.integer(x)) - x);
                *count as f64 * change * change
            })
            .sum()
    }
}

/// The quantization of integers that reach from `low` to `high`. 0 lies between the two.
pub(super) fn quantization([low, high]: [f32; 2]) -> Quantization {
    let scale = ((f64::from(high) - f64::from(low)) / 255.0) as f32;
    if !scale.is_normal() {
        // All elements are 0, or next to it.
        return Quantization { scale: 1.0, zero_point: 0 };
    }
    let zero_point = (-f64::from(low) / f64::from(scale)).round().clamp(0.0, 255.0) as u8;
    Quantization { scale, zero_point }
}

/// The quantization of each layer's tensor; `None` if its elements are no floats.
pub(super) fn ranges(
    network: &Network,
    reference: &Simulation,
    frames: &[Vec<Value>],
    ranges: Ranges,
) -> Result<Vec<Option<Quantization>>, Error> {
    let mut runner = reference.runner()?;
    let mut ends: BTreeMap<String, [f32; 2]> = BTreeMap::new();
    for (number, frame) in (1..).zip(frames) {
        let mut odd = None;
        reference.frame(&mut runner, frame, &mut |layer, values| {
            let ends = ends.entry(layer.output.clone()).or_insert([0.0, 0.0]);
            for &value in values {
                *ends = [ends[0].min(value), ends[1].max(value)];
                if !value.is_finite() {
                    odd.get_or_insert((layer.name.clone(), value));
                }
            }
        })?;
        if let Some((layer, value)) = odd {
            return Err(Error::InfiniteLayer { frame: number, layer, value });
        }
    }
    let mut elements: BTreeMap<String, Histogram> =
        ends.into_iter().map(|(tensor, ends)| (tensor, Histogram::with_range(ends))).collect();
    if ranges != Ranges::MinMax {
        for frame in frames {
            reference.frame(&mut runner, frame, &mut |layer, values| {
                if let Some(elements) = elements.get_mut(&layer.output) {
                    elements.count(values);
                }
            })?;
        }
    }
    let of_layer = |tensor: &String| Some(quantization(elements.get(tensor)?.range(ranges)));
    Ok(network.layers.iter().map(|layer| of_layer(&layer.output)).collect())
}
