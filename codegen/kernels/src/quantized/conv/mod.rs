//! Convolution of bytes.
//!
//! # Example
//!
//! ```
//! use csdfc_kernels::conv::Conv;
//! use csdfc_kernels::quantized::Requantize;
//! use csdfc_kernels::quantized::conv::QConv;
//! use csdfc_kernels::rows::RowShape;
//! use csdfc_kernels::span::{Span, SpanMut};
//! use csdfc_kernels::{Activation, Context, Isa, RowKernel, Rows, RowsMut};
//!
//! let conv = Conv {
//!     channels: 1, filters: 1, kernel: [2, 2], stride: [1, 1], dilation: [1, 1], pads: [0; 4],
//!     groups: 1, pre: None, residual: false, activation: Activation::None,
//! };
//! let requantize = Requantize { zero_point: 0, low: 0, high: 255 };
//! let conv = QConv { conv, pre: None, zero_point: 0, has_offset: false, requantize };
//! let mut packed = vec![0; conv.packed_len()];
//! conv.pack((&[1; 4], 0), &[], &[0.5], [&[], &[]], &mut packed); // four weights of 1, and a multiplier
//! let input = Rows { data: Span::new(&[1, 2, 3, 4, 5, 6, 7, 8, 9]), shape: RowShape::dense(3, 3, 1, 3) }; // [3, 3, 1]
//! let mut made = [0_u8; 4];
//! let mut output = RowsMut { data: SpanMut::new(&mut made), shape: RowShape::dense(2, 2, 1, 2) }; // [2, 2, 1]
//! conv.rows(&mut Context::alone(Isa::PORTABLE), 0..2, &[input], &[Rows::line(&packed)], &mut output);
//! assert_eq!(made, [6, 8, 12, 14]);
//! ```

mod dense;
mod depthwise;
mod parameters;

pub use parameters::QConv;

use core::ops::Range;

use super::super::arch::Isa;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
use super::super::arch::IsaLevel;
#[cfg(target_arch = "x86_64")]
use super::super::arch::{MAY_BE_AVX2, MAY_BE_AVX512};
use super::super::features;
use super::super::kernel::{Context, RowKernel, Sharing};
use super::super::rows::{RowShape, Rows, RowsMut};
use super::super::shared::SharedRows;
use super::Baseline;
use super::integers::{Integers, Work};
#[cfg(target_arch = "x86_64")]
use super::{avx2, avx512};
#[cfg(target_arch = "aarch64")]
use super::{dotprod, neon};
use dense::Dense;
use depthwise::Depthwise;

/// The operands are the image or its parts; the constant is packed by [`QConv::pack`].
impl RowKernel<u8, u8> for QConv {
    fn rows(
        &self,
        context: &mut Context<'_>,
        y: Range<usize>,
        operands: &[Rows<'_, u8>],
        constants: &[Rows<'_, u8>],
        output: &mut RowsMut<'_, u8>,
    ) {
        let (isa, packed) = (context.isa, constants[0].row(0));
        let output = SharedRows::new(output);
        self.conv.deal(context, |tiles| {
            // SAFETY: `deal` gives each output channel to one call, and returns when all calls have. As long, `output`
            // borrows the rows.
            unsafe { make(isa, self, y.clone(), tiles, operands, packed, output) }
        });
    }

    fn sharing(&self, rows: usize, workers: usize, output: &RowShape) -> Sharing {
        self.conv.shared(rows, workers, output)
    }
}

/// Does the work with these instructions. AVX2 serves also where longer vectors have no products of bytes.
#[inline]
fn run<W: Work>(isa: Isa, work: W) {
    match isa.kind() {
        // SAFETY: an `Isa` of these kinds is made only where the processor has AVX2, FMA and F16C, which come with
        // AVX-512F.
        #[cfg(target_arch = "x86_64")]
        IsaLevel::Avx2 | IsaLevel::Avx512 if MAY_BE_AVX2 || MAY_BE_AVX512 => unsafe { avx2::run(work) },
        // SAFETY: an `Isa` of this kind is made only where the processor has AVX-512F, BW, VL and VNNI.
        #[cfg(target_arch = "x86_64")]
        IsaLevel::Vnni if MAY_BE_AVX512 => unsafe { avx512::run(work) },
        // SAFETY: an `Isa` of this kind is made only where the processor has NEON.
        #[cfg(target_arch = "aarch64")]
        IsaLevel::Neon => unsafe { neon::run(work) },
        // SAFETY: an `Isa` of this kind is made only where the processor has NEON with products of bytes.
        #[cfg(target_arch = "aarch64")]
        IsaLevel::Dot => unsafe { dotprod::run(work) },
        // SAFETY: every processor has these. It is a function of its own, so that depthwise convolutions do not have the room of
        // others on the stack.
        _ => unsafe { Baseline::call(work) },
    }
}

/// Makes those output channels of rows `y` that belong to `tiles`, of [`QConv::tiles`]. The bytes do not depend on how
/// rows and tiles are divided.
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
    parts: &[Rows<'_, u8>],
    packed: &[u8],
    output: SharedRows<'_, u8>,
) {
    assert!(features::PROLOGUES || q.pre.is_none(), "a convolution with a prologue");
    let packed = &packed[..q.packed_len()];
    if features::DEPTHWISE && q.conv.is_depthwise() {
        run(isa, Depthwise { q, y, tiles, input: parts[0], packed, output });
    } else if features::QUANTIZED_DENSE && !q.conv.is_depthwise() {
        run(isa, Dense { q, y, tiles, parts, packed, output });
    } else {
        unreachable!("a convolution of another kind");
    }
}
