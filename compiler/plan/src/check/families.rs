//! Primitives of convolutions that read and write several layouts, by families. A family has a primitive for each pair
//! of a layout that it reads and a layout that it writes. All primitives keep the biases of all filters, or zeros, and
//! then the filters.

use std::sync::LazyLock;

use crate::format::Element::F32;
use crate::format::Layout::{self, Chw, Hcw, Hwc};
use crate::operator::{Conv, Operator};
use crate::shape::Shape;

use super::primitive::{Primitive, plain};
use super::winograd;

/// `<family>-<variant>`, the layouts that it reads, the layouts that it writes, whether it computes an operator, the
/// bytes of its workspace, and the bytes that it keeps of parameters.
type Family = (&'static str, &'static [Layout], &'static [Layout], Computes, Workspace, Stored);
type Computes = fn(&Operator, &[&Shape]) -> bool;
type Workspace = fn(&Operator, &[&Shape], &Shape) -> Option<u64>;
type Stored = fn(&Operator, &[&Shape]) -> Option<u64>;

const ALL: &[Layout] = &[Chw, Hcw, Hwc];
const BY_COLUMNS: &[Layout] = &[Chw, Hcw];

const FAMILIES: &[Family] = &[
    ("direct-sum2d", &[Chw], &[Chw], is_simple, nothing, stored),
    ("direct-shift", &[Chw], &[Chw], is_simple, nothing, stored),
    ("direct-row", BY_COLUMNS, BY_COLUMNS, is_simple, nothing, stored),
    ("direct-columns", BY_COLUMNS, BY_COLUMNS, is_simple, nothing, stored),
    ("direct-filters", ALL, ALL, is_simple, nothing, stored),
    ("direct-pixel", ALL, &[Hwc], is_simple, nothing, stored),
    ("direct-dot", &[Hwc], ALL, is_simple, nothing, stored),
    ("im2col-lines", ALL, BY_COLUMNS, is_simple, windows, stored),
    ("im2col-steps", ALL, ALL, is_simple, windows, stored),
    ("im2col-panels", ALL, &[Hwc], is_simple, windows, stored),
    ("im2col-strip", ALL, BY_COLUMNS, is_simple, windows_of_strip, stored),
    ("im2row-steps", ALL, &[Hwc], is_simple, windows, stored),
    ("im2row-panels", ALL, &[Hwc], is_simple, windows, stored),
    ("im2row-strip", BY_COLUMNS, &[Hwc], is_simple, windows_of_strip, stored),
    ("kn2row-lines", BY_COLUMNS, BY_COLUMNS, is_of_stride_1, nothing, stored),
    ("kn2row-steps", BY_COLUMNS, BY_COLUMNS, is_of_stride_1, nothing, stored),
    ("kn2row-separate", BY_COLUMNS, BY_COLUMNS, is_of_stride_1, products, stored),
    ("kn2col-steps", ALL, &[Hwc], is_of_stride_1, nothing, stored),
    ("kn2col-panels", ALL, &[Hwc], is_of_stride_1, nothing, stored),
    ("mec-a", ALL, BY_COLUMNS, fits_in_lowered, lowered_bytes, stored),
    ("mec-b", ALL, ALL, has_no_rows_between, lowered_bytes, stored),
    ("mec-strip", ALL, ALL, has_no_rows_between, lowered_strip, stored),
    ("fft1d-kept", ALL, ALL, is_simple, spectra, stored_spectra),
    ("fft1d-made", ALL, ALL, is_simple, spectra_with_filter, stored_beside_turns),
    ("fft2d-kept", ALL, &[Chw], has_few_spectra, planes, stored_planes),
    ("fft2d-made", ALL, &[Chw], has_few_spectra, planes_with_filter, stored_beside_more_turns),
    ("pointwise-lines", BY_COLUMNS, BY_COLUMNS, is_pointwise, nothing, stored),
    ("pointwise-steps", BY_COLUMNS, BY_COLUMNS, is_pointwise, nothing, stored),
    ("pointwise-panels", ALL, &[Hwc], is_pointwise, nothing, stored),
];

/// A row of `TILED`.
type Tiled = (&'static str, &'static [[Layout; 2]], Computes, Workspace, Stored);

/// The same for tiles, which have only the listed pairs of layouts.
const TILED: &[Tiled] = &[
    tiled::<2, 2, 3>("winograd-f2x2-3x3"),
    tiled::<4, 4, 3>("winograd-f4x4-3x3"),
    tiled::<6, 6, 3>("winograd-f6x6-3x3"),
    tiled::<2, 2, 5>("winograd-f2x2-5x5"),
    tiled::<1, 2, 3>("winograd-f2-3"),
    tiled::<1, 4, 3>("winograd-f4-3"),
    tiled::<1, 2, 5>("winograd-f2-5"),
];

const fn tiled<const HIGH: usize, const WIDE: usize, const TAPS: usize>(name: &'static str) -> Tiled {
    let pairs: &[[Layout; 2]] = &[[Hwc, Hwc], [Chw, Chw], [Hcw, Hcw], [Chw, Hwc], [Hwc, Chw]];
    let pairs = if HIGH == 1 { pairs.split_at(3).0 } else { pairs };
    let computes: Computes = |operator, inputs| winograd::is_tiled::<HIGH, TAPS>(operator, inputs).is_some();
    (name, pairs, computes, winograd::workspace::<HIGH, WIDE, TAPS>, winograd::stored::<HIGH, WIDE, TAPS>)
}

static PRIMITIVES: LazyLock<Vec<Primitive>> = LazyLock::new(|| {
    let primitive = |name: &str, layouts: [Layout; 2], computes, workspace, stored| {
        let [reads, writes] = layouts;
        let name = format!("{name}-{reads}-{writes}").to_lowercase().leak();
        let (elements, is_mixed, has_offset, scaled) = ([F32; 2], false, false, None);
        Primitive { name, computes, layouts, elements, is_mixed, has_offset, scaled, stored, workspace }
    };
    let mut all = Vec::new();
    for &(name, reads, writes, computes, workspace, stored) in FAMILIES {
        let pairs = reads.iter().flat_map(|read| writes.iter().map(|write| [*read, *write]));
        all.extend(pairs.map(|layouts| primitive(name, layouts, computes, workspace, stored)));
    }
    for &(name, pairs, computes, workspace, stored) in TILED {
        all.extend(pairs.iter().map(|layouts| primitive(name, *layouts, computes, workspace, stored)));
    }
    all
});

/// The primitives of all families.
pub(super) fn all() -> impl Iterator<Item = &'static Primitive> {
    PRIMITIVES.iter()
}

/// The sizes of a convolution.
struct Sizes {
    channels: u64,
    filters: u64,
    kernel: [u64; 2],
    stride: [u64; 2],
    dilation: [u64; 2],
    /// Height and width of the input with its padding, and without.
    padded: [u64; 2],
    input: [u64; 2],
    output: [u64; 2],
}

impl Sizes {
    fn new(conv: &Conv, input: &Shape) -> Option<Self> {
        let columns = input.dims[input.column_axis()?];
        let input_size = [input.rows() as u64, columns as u64];
        let (mut padded, mut output) = ([0; 2], [0; 2]);
        for axis in 0..2 {
            let pads = (conv.pads[axis] as u64).checked_add(conv.pads[axis + 2] as u64)?;
            padded[axis] = input_size[axis].checked_add(pads)?;
            let between =
                (conv.kernel[axis] as u64).checked_sub(1)?.checked_mul(conv.dilation[axis] as u64)?;
            let steps = padded[axis].checked_sub(between.checked_add(1)?)?;
            output[axis] = steps.checked_div(conv.stride[axis] as u64)? + 1;
        }
        Some(Sizes {
            channels: input.channels() as u64,
            filters: conv.filters as u64,
            kernel: conv.kernel.map(|size| size as u64),
            stride: conv.stride.map(|stride| stride as u64),
            dilation: conv.dilation.map(|dilation| dilation as u64),
            padded,
            input: input_size,
            output,
        })
    }

    /// Points of the transform of a row: the least power of two above 1 for which a window just outside the row covers
    /// none of the row.
    fn points(&self) -> Option<u64> {
        self.points_along(1)
    }

    /// The same for rows or for columns.
    fn points_along(&self, axis: usize) -> Option<u64> {
        let between = (self.kernel[axis] - 1).checked_mul(self.dilation[axis])?;
        Some(self.input[axis].checked_add(between)?.checked_next_power_of_two()?.max(2))
    }

    /// The points of the longer of the two transforms of a plane.
    fn most_points(&self) -> Option<u64> {
        Some(self.points_along(0)?.max(self.points_along(1)?))
    }

    /// Floats of the spectra of `count` planes: half of the complex numbers of each row, and one more.
    fn spectra_of_planes(&self, count: u64) -> Option<u64> {
        product(&[count, self.points_along(0)?, self.points_along(1)?.checked_add(2)?])
    }

    /// Floats of the spectra of all channels of the input and of `more` further planes, and of a transform.
    fn transforms_of_planes(&self, more: u64) -> Option<u64> {
        let spectra = self.spectra_of_planes(self.channels.checked_add(more)?)?;
        spectra.checked_add(self.most_points()?.checked_mul(2)?)
    }

    /// Floats of the spectra of all rows and channels of the input, of `more` further rows and of a sum, and of a
    /// transform.
    fn transforms(&self, more: u64) -> Option<u64> {
        let rows = product(&[self.channels, self.input[0]])?;
        let spectra = self.spectra(rows.checked_add(more)?.checked_add(1)?)?;
        spectra.checked_add(self.points()?.checked_mul(2)?)
    }

    /// Floats of `count` spectra of n points, each of n / 2 + 1 complex numbers.
    fn spectra(&self, count: u64) -> Option<u64> {
        count.checked_mul(self.points()?.checked_add(2)?)
    }

    /// Rows of a strip: of 64 pixels, or all.
    fn strip(&self) -> u64 {
        self.output[0].min(64u64.div_ceil(self.output[1]))
    }

    /// Elements of the lowered matrix: `o_w · i_h · k_w · i_c`, i_h with the padding.
    fn lowered(&self) -> Option<u64> {
        product(&[self.output[1], self.padded[0], self.kernel[1], self.channels])
    }

    /// Elements of the windows of some rows of the output.
    fn windows_of(&self, rows: u64) -> Option<u64> {
        product(&[self.channels, self.kernel[0], self.kernel[1], self.output[1], rows])
    }
}

fn product(factors: &[u64]) -> Option<u64> {
    factors.iter().try_fold(1u64, |product, factor| product.checked_mul(*factor))
}

fn simple<'a>(operator: &'a Operator, inputs: &[&Shape]) -> Option<(&'a Conv, Sizes)> {
    let conv = plain(operator, inputs)?;
    Some((conv, Sizes::new(conv, inputs[0])?))
}

fn is_simple(operator: &Operator, inputs: &[&Shape]) -> bool {
    simple(operator, inputs).is_some()
}

fn is_of_stride_1(operator: &Operator, inputs: &[&Shape]) -> bool {
    simple(operator, inputs).is_some_and(|(conv, _)| conv.stride == [1, 1])
}

fn is_pointwise(operator: &Operator, inputs: &[&Shape]) -> bool {
    let is_of_pixels = |conv: &Conv| conv.kernel == [1, 1] && conv.pads == [0; 4];
    is_of_stride_1(operator, inputs) && simple(operator, inputs).is_some_and(|(conv, _)| is_of_pixels(conv))
}

/// A window's rows follow each other.
fn has_no_rows_between(operator: &Operator, inputs: &[&Shape]) -> bool {
    simple(operator, inputs).is_some_and(|(conv, _)| conv.dilation[0] == 1)
}

/// The output has no more columns than 100, and no more elements than the lowered matrix.
fn fits_in_lowered(operator: &Operator, inputs: &[&Shape]) -> bool {
    let Some((_, sizes)) = simple(operator, inputs) else { return false };
    let elements = product(&[sizes.filters, sizes.output[0], sizes.output[1]]);
    let fits = elements.zip(sizes.lowered()).is_some_and(|(elements, lowered)| elements <= lowered);
    has_no_rows_between(operator, inputs) && sizes.output[1] <= 100 && fits
}

/// Bytes that are kept of a layer's parameters: a bias and the weights of each filter.
fn stored(operator: &Operator, inputs: &[&Shape]) -> Option<u64> {
    let (_, Sizes { channels, filters, kernel, .. }) = simple(operator, inputs)?;
    let each = product(&[channels, kernel[0], kernel[1]])?.checked_add(1)?;
    product(&[filters, each, 4])?.checked_next_multiple_of(64)
}

/// A bias for each filter, a half-turn's cosines and sines, and the spectra of all rows of filters.
fn stored_spectra(operator: &Operator, inputs: &[&Shape]) -> Option<u64> {
    let (_, sizes) = simple(operator, inputs)?;
    let spectra = sizes.spectra(product(&[sizes.filters, sizes.channels, sizes.kernel[0]])?)?;
    let all = spectra.checked_add(sizes.points()?)?.checked_add(sizes.filters)?;
    all.checked_mul(4)?.checked_next_multiple_of(64)
}

/// The same with the filters as they are.
fn stored_beside_turns(operator: &Operator, inputs: &[&Shape]) -> Option<u64> {
    let (_, sizes) = simple(operator, inputs)?;
    let filters = product(&[sizes.filters, sizes.channels, sizes.kernel[0], sizes.kernel[1]])?;
    let all = filters.checked_add(sizes.points()?)?.checked_add(sizes.filters)?;
    all.checked_mul(4)?.checked_next_multiple_of(64)
}

/// Floats of a bias for each filter, a half-turn's cosines and sines, and the spectra of all channels of filters.
fn kept_planes(operator: &Operator, inputs: &[&Shape]) -> Option<u64> {
    let (_, sizes) = simple(operator, inputs)?;
    let spectra = sizes.spectra_of_planes(product(&[sizes.filters, sizes.channels])?)?;
    spectra.checked_add(sizes.most_points()?)?.checked_add(sizes.filters)
}

/// These are at most 2^22.
fn has_few_spectra(operator: &Operator, inputs: &[&Shape]) -> bool {
    kept_planes(operator, inputs).is_some_and(|floats| floats <= 1 << 22)
}

fn stored_planes(operator: &Operator, inputs: &[&Shape]) -> Option<u64> {
    kept_planes(operator, inputs)?.checked_mul(4)?.checked_next_multiple_of(64)
}

/// The same with the filters as they are.
fn stored_beside_more_turns(operator: &Operator, inputs: &[&Shape]) -> Option<u64> {
    let (_, sizes) = simple(operator, inputs)?;
    let filters = product(&[sizes.filters, sizes.channels, sizes.kernel[0], sizes.kernel[1]])?;
    let all = filters.checked_add(sizes.most_points()?)?.checked_add(sizes.filters)?;
    all.checked_mul(4)?.checked_next_multiple_of(64)
}

/// Spectra of all channels, of a sum, and a transform.
fn planes(operator: &Operator, inputs: &[&Shape], _: &Shape) -> Option<u64> {
    bytes(operator, inputs, |sizes| sizes.transforms_of_planes(1))
}

/// The same with the spectrum of a filter's channel.
fn planes_with_filter(operator: &Operator, inputs: &[&Shape], _: &Shape) -> Option<u64> {
    bytes(operator, inputs, |sizes| sizes.transforms_of_planes(2))
}

/// Spectra of the rows of all channels, of a sum, and a transform of n complex numbers.
fn spectra(operator: &Operator, inputs: &[&Shape], _: &Shape) -> Option<u64> {
    bytes(operator, inputs, |sizes| sizes.transforms(0))
}

/// The same with the spectra of a filter.
fn spectra_with_filter(operator: &Operator, inputs: &[&Shape], _: &Shape) -> Option<u64> {
    bytes(operator, inputs, |sizes| sizes.transforms(sizes.channels.checked_mul(sizes.kernel[0])?))
}

fn nothing(_: &Operator, _: &[&Shape], _: &Shape) -> Option<u64> {
    Some(0)
}

/// Bytes of this many elements.
fn bytes(operator: &Operator, inputs: &[&Shape], elements: fn(&Sizes) -> Option<u64>) -> Option<u64> {
    let (_, sizes) = simple(operator, inputs)?;
    elements(&sizes)?.checked_mul(4)
}

/// `i_c · k_h · k_w · o_h · o_w`.
fn windows(operator: &Operator, inputs: &[&Shape], _: &Shape) -> Option<u64> {
    bytes(operator, inputs, |sizes| sizes.windows_of(sizes.output[0]))
}

fn windows_of_strip(operator: &Operator, inputs: &[&Shape], _: &Shape) -> Option<u64> {
    bytes(operator, inputs, |sizes| sizes.windows_of(sizes.strip()))
}

/// `k_w · o_c · i_w`.
fn products(operator: &Operator, inputs: &[&Shape], _: &Shape) -> Option<u64> {
    bytes(operator, inputs, |sizes| product(&[sizes.kernel[1], sizes.filters, sizes.input[1]]))
}

fn lowered_bytes(operator: &Operator, inputs: &[&Shape], _: &Shape) -> Option<u64> {
    bytes(operator, inputs, Sizes::lowered)
}

/// `o_w · ((r − 1) · s + k_h) · k_w · i_c` for r rows that are not all.
fn lowered_strip(operator: &Operator, inputs: &[&Shape], _: &Shape) -> Option<u64> {
    bytes(operator, inputs, |sizes| {
        let rows = sizes.strip();
        if rows == sizes.output[0] {
            return sizes.lowered();
        }
        let read = (rows - 1).checked_mul(sizes.stride[0])?.checked_add(sizes.kernel[0])?;
        product(&[sizes.output[1], read, sizes.kernel[1], sizes.channels])
    })
}
