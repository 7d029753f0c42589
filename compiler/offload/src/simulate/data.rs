//! Data to compute on, and the direct convolution of it.

use rand::rngs::ChaCha8Rng;
use rand::{Rng, SeedableRng};

use crate::convolution::Convolution;

/// An input and filters. Elements are integers, so that results do not depend on the order of additions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Data {
    /// The padded input: `[channel, row, column]`.
    pub input: Vec<i64>,
    /// `[filter, channel of the filter's group, row, column]`.
    pub filters: Vec<i64>,
}

impl Data {
    /// Random data of a layer, from −128 to 127. Padding is 0.
    pub fn random(convolution: &Convolution, seed: u64) -> Self {
        let spec = convolution.spec();
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let mut byte = move || i64::from(random.next_u32() >> 24) - 128;
        let [height, width] = convolution.padded();
        let [top, left, _, _] = spec.pads;
        let inside = |first: usize, size: usize, at: usize| (first..first + size).contains(&at);
        let mut input = Vec::with_capacity(spec.channels * height * width);
        for _ in 0..spec.channels {
            for row in 0..height {
                for column in 0..width {
                    let real = inside(top, spec.input[0], row) && inside(left, spec.input[1], column);
                    input.push(if real { byte() } else { 0 });
                }
            }
        }
        let filters = spec.filters * convolution.filter_elements() as usize;
        Data { input, filters: (0..filters).map(|_| byte()).collect() }
    }
}

/// The convolution by its definition (section 3.1): `[filter, row, column]`.
pub fn convolve(convolution: &Convolution, data: &Data) -> Vec<i64> {
    let spec = convolution.spec();
    let ([height, width], [rows, columns]) = (convolution.padded(), convolution.output());
    let per_group = spec.channels / spec.channel_groups;
    let filters_per_group = spec.filters / spec.channel_groups;
    let [filter_rows, filter_columns] = spec.filter;
    let mut results = Vec::with_capacity(spec.filters * rows * columns);
    for filter in 0..spec.filters {
        let first_channel = filter / filters_per_group * per_group;
        for row in 0..rows {
            for column in 0..columns {
                let mut sum = 0;
                for channel in 0..per_group {
                    for y in 0..filter_rows {
                        for x in 0..filter_columns {
                            let at_y = row * spec.stride[0] + y * spec.dilation[0];
                            let at_x = column * spec.stride[1] + x * spec.dilation[1];
                            let input = ((first_channel + channel) * height + at_y) * width + at_x;
                            let weight =
                                ((filter * per_group + channel) * filter_rows + y) * filter_columns + x;
                            sum += data.input[input] * data.filters[weight];
                        }
                    }
                }
                results.push(sum);
            }
        }
    }
    results
}
