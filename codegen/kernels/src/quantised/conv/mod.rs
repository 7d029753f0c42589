//! Convolution of bytes.

mod dense;
mod depthwise;
mod parameters;

pub use parameters::QConv;

use core::ops::Range;

use super::super::arch::{Isa, Kind, Portable};
#[cfg(target_arch = "x86_64")]
use super::super::arch::{MAY_BE_AVX2, MAY_BE_AVX512};
use super::super::kernel::{Context, RowKernel, Sharing};
use super::super::rows::{RowShape, Rows, RowsMut};
use super::super::shared::SharedRows;
use super::integers::Work;
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
            // SAFETY: output channels are each of one call only, and the caller's borrow of the output lasts until all
            // are done.
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
        // SAFETY: an `Isa` of these kinds is made only where the processor has these instructions.
        #[cfg(target_arch = "x86_64")]
        Kind::Avx2 | Kind::Avx512 if MAY_BE_AVX2 || MAY_BE_AVX512 => unsafe { avx2::run(work) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        Kind::Vnni if MAY_BE_AVX512 => unsafe { avx512::run(work) },
        // SAFETY: as above.
        #[cfg(target_arch = "aarch64")]
        Kind::Neon => unsafe { neon::run(work) },
        // SAFETY: as above.
        #[cfg(target_arch = "aarch64")]
        Kind::Dot => unsafe { dotprod::run(work) },
        _ => work.run::<Portable>(),
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
    let packed = &packed[..q.packed_len()];
    if q.conv.is_depthwise() {
        run(isa, Depthwise { q, y, tiles, input: parts[0], packed, output });
    } else {
        run(isa, Dense { q, y, tiles, parts, packed, output });
    }
}
