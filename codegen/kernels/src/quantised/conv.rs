//! Convolution of bytes.

use core::ops::Range;

use super::super::arch::Isa;
use super::super::conv::Conv;
use super::super::kernel::{Context, RowKernel};
use super::super::rows::{RowShape, Rows, RowsMut};
use super::super::share::Sharing;
use super::super::shared::SharedRows;
use super::Requantise;
use super::dense::Dense;
use super::depthwise::Depthwise;
use super::integers;
use super::panels::Panels;

/// A convolution of bytes: `[H, W, channels]` → `[H', W', filters]`. Beyond the image, pixels are the zero point. It has one
/// operand, and no activation but the bounds of [`Requantise`].
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct QConv {
    /// The convolution, without [`Conv::pre`], [`Conv::residual`] and [`Conv::activation`].
    pub conv: Conv,
    /// The input's element that stands for 0.
    pub zero_point: u8,
    /// What becomes of the sums.
    pub requantise: Requantise,
}

impl QConv {
    pub(super) const fn panels(&self) -> Panels {
        let Conv { channels, filters, kernel, groups, .. } = self.conv;
        let taps = kernel[0] * kernel[1];
        if self.conv.is_depthwise() {
            Panels { groups: 1, filters, steps: taps, in_fours: false }
        } else {
            let steps = taps * (channels / groups);
            Panels { groups, filters: filters / groups, steps, in_fours: true }
        }
    }

    /// Bytes of the packed weights, biases and multipliers.
    pub const fn packed_len(&self) -> usize {
        self.panels().len()
    }

    /// Bytes of an output channel among the packed ones: bias, multiplier and weights.
    pub const fn packed_each(&self) -> usize {
        self.panels().each()
    }

    /// Packs `weights` (`[filters, channels / groups, kernel_y, kernel_x]`), `biases` (`[filters]`, or empty) in units of the
    /// input's scale times that of the filter, and `multipliers` (`[filters]`), these units divided by the output's scale, into
    /// `out`, which holds [`QConv::packed_len`] bytes.
    ///
    /// # Panics
    /// If a slice has another length than is said here.
    pub fn pack(&self, weights: &[i8], biases: &[i32], multipliers: &[f32], out: &mut [u8]) {
        let Conv { channels, kernel, groups, .. } = self.conv;
        let (taps, channels) = (kernel[0] * kernel[1], channels / groups);
        let weight = |filter: usize, step: usize| {
            weights[(filter * channels + step % channels) * taps + step / channels]
        };
        self.panels().pack(self.zero_point, weight, biases, multipliers, out);
    }

    /// Parts into which the output channels may be divided among workers.
    pub const fn tiles(&self) -> usize {
        self.conv.tiles()
    }
}

/// One operand; the constant is packed by [`QConv::pack`].
impl RowKernel<u8, u8> for QConv {
    fn rows(
        &self,
        context: &mut Context<'_>,
        y: Range<usize>,
        operands: &[Rows<'_, u8>],
        constants: &[Rows<'_, u8>],
        output: &mut RowsMut<'_, u8>,
    ) {
        let (isa, input, packed) = (context.isa, operands[0], constants[0].row(0));
        let output = SharedRows::new(output);
        self.conv.deal(context, |tiles| {
            // SAFETY: output channels are each of one call only, and the caller's borrow of the output lasts until all
            // are done.
            unsafe { make(isa, self, y.clone(), tiles, input, packed, output) }
        });
    }

    fn sharing(&self, rows: usize, workers: usize, output: &RowShape) -> Sharing {
        self.conv.shared(rows, workers, output)
    }
}

/// Makes those output channels of rows `y` that belong to `tiles`, of [`QConv::tiles`]. The bytes are the same however rows
/// and tiles are divided.
///
/// # Safety
/// No one else reads or writes these elements of `output` at the same time.
///
/// # Panics
/// As the kernel.
pub(super) unsafe fn make(
    isa: Isa,
    q: &QConv,
    y: Range<usize>,
    tiles: Range<usize>,
    input: Rows<'_, u8>,
    packed: &[u8],
    output: SharedRows<'_, u8>,
) {
    let packed = &packed[..q.packed_len()];
    if q.conv.is_depthwise() {
        integers::run(isa, Depthwise { q, y, tiles, input, packed, output });
    } else {
        integers::run(isa, Dense { q, y, tiles, input, packed, output });
    }
}
