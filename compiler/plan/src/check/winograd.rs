//! The bytes that convolutions by transformed tiles keep, and their workspace, by the formulas of
//! `docs/plan-format.md`.

use crate::operator::{Conv, Operator};
use crate::shape::Shape;

use super::primitive::plain;

/// A plain convolution of stride and dilation 1, with filters of `TAPS` columns and as many rows, or any number of rows for
/// tiles of one row.
pub(super) fn is_tiled<'a, const HIGH: usize, const TAPS: usize>(
    operator: &'a Operator,
    inputs: &[&Shape],
) -> Option<&'a Conv> {
    let conv = plain(operator, inputs)?;
    let Conv { kernel: [rows, columns], stride, dilation, .. } = *conv;
    let fits = columns == TAPS && (HIGH == 1 || rows == TAPS);
    (fits && stride == [1, 1] && dilation == [1, 1]).then_some(conv)
}

fn product(factors: &[usize]) -> Option<u64> {
    factors.iter().try_fold(1u64, |product, &factor| product.checked_mul(factor as u64))
}

/// The values of a tile, and the rows of a filter that are summed at each.
fn values<const HIGH: usize, const WIDE: usize, const TAPS: usize>(conv: &Conv) -> [usize; 2] {
    let a = WIDE + TAPS - 1;
    if HIGH == 1 { [a, conv.kernel[0]] } else { [a * a, 1] }
}

/// A bias for each filter, and for each channel of it the values.
pub(super) fn stored<const HIGH: usize, const WIDE: usize, const TAPS: usize>(
    operator: &Operator,
    inputs: &[&Shape],
) -> Option<u64> {
    let conv = is_tiled::<HIGH, TAPS>(operator, inputs)?;
    let [values, rows] = values::<HIGH, WIDE, TAPS>(conv);
    let filters = product(&[values, rows, inputs[0].channels(), conv.filters])?;
    filters.checked_add(conv.filters as u64)?.checked_mul(4)?.checked_next_multiple_of(64)
}

/// The values of a strip's input, of its sums for 64 filters, and pixels of eight tiles in 16 channels.
pub(super) fn workspace<const HIGH: usize, const WIDE: usize, const TAPS: usize>(
    operator: &Operator,
    inputs: &[&Shape],
    output: &Shape,
) -> Option<u64> {
    let conv = is_tiled::<HIGH, TAPS>(operator, inputs)?;
    let [_, _, height, width] = output.dims[..] else { return None };
    let tiles = width.div_ceil(WIDE).max(1);
    let strip = 32usize.div_ceil(tiles).min(height.div_ceil(HIGH));
    let [values, rows] = values::<HIGH, WIDE, TAPS>(conv);
    let input = product(&[values, (strip + rows).checked_sub(1)?, tiles, inputs[0].channels()])?;
    let sums = product(&[values, strip, tiles, conv.filters.min(64)])?;
    let high = if HIGH == 1 { 1 } else { HIGH + TAPS - 1 };
    let block = product(&[high, 8 * WIDE + TAPS - 1, 16])?;
    input.checked_add(sums)?.checked_add(block)?.checked_mul(4)
}
