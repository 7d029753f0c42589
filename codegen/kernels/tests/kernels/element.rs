//! 16-bit floats against a search among all of them.

use csdfc_kernels::arch::Isa;
use csdfc_kernels::convert::Cast;
use csdfc_kernels::half::F16;
use csdfc_kernels::kernel::{Context, RowKernel};
use csdfc_kernels::rows::{RowShape, Rows, RowsMut};
use csdfc_kernels::span::SpanMut;

use crate::testing::Random;

/// All halves that are numbers, ascending.
fn numbers() -> Vec<(f64, u16)> {
    let value = |bits: u16| {
        let (exponent, fraction) = (i32::from(bits >> 10 & 31), f64::from(bits & 0x3ff));
        let size = match exponent {
            0 => fraction * 2_f64.powi(-24),
            _ => (1024.0 + fraction) * 2_f64.powi(exponent - 25),
        };
        if bits >> 15 == 1 { -size } else { size }
    };
    let mut all: Vec<_> =
        (0..=u16::MAX).filter(|bits| bits >> 10 & 31 != 31).map(|b| (value(b), b)).collect();
    all.sort_by(|a, b| a.0.total_cmp(&b.0));
    all
}

/// The nearest half by search: of two equally near ones that whose last bit is 0, as if there were a number after the
/// largest, which is infinity.
fn nearest(numbers: &[(f64, u16)], x: f32) -> u16 {
    let size = f64::from(x).abs();
    let sign = if x.is_sign_negative() { 0x8000 } else { 0 };
    let positive = &numbers[numbers.len() / 2..];
    let at = positive.partition_point(|(value, _)| *value <= size);
    let below = positive[at - 1];
    let above = positive.get(at).copied().unwrap_or((65536.0, 0x7c00));
    let [down, up] = [size - below.0, above.0 - size];
    let is_up = up < down || (up == down && below.1 & 1 == 1);
    sign | if is_up { above.1 } else { below.1 }
}

/// Floats around every half and every tie, and others.
fn floats() -> Vec<f32> {
    let numbers = numbers();
    let mut all = vec![f32::INFINITY, f32::MAX, f32::MIN_POSITIVE, 1e-40, 65519.996, 65520.0, 65536.0];
    for pair in numbers[numbers.len() / 2..].windows(2) {
        for x in [pair[0].0, (pair[0].0 + pair[1].0) / 2.0] {
            let bits = (x as f32).to_bits();
            all.extend([bits.saturating_sub(1), bits, bits + 1].map(f32::from_bits));
        }
    }
    let mut random = Random(1);
    all.extend((0..200_000).map(|_| f32::from_bits(random.next() as u32 & 0x7fff_ffff)));
    all.extend((0..200_000).map(|_| random.floats(1)[0] * 70_000.0));
    all.retain(|x| !x.is_nan());
    let negative: Vec<f32> = all.iter().map(|x| -x).collect();
    all.extend(negative);
    all
}

#[test]
fn every_half_comes_back() {
    for bits in 0..=u16::MAX {
        let (half, wide) = (F16::from_bits(bits), F16::from_bits(bits).to_f32());
        let again = F16::from_f32(wide);
        if wide.is_nan() {
            assert!(bits >> 10 & 31 == 31 && bits & 0x3ff != 0);
            // Quiet, and else as it was.
            assert_eq!((again.to_bits(), half == again), (bits | 0x200, false));
        } else {
            assert_eq!((again.to_bits(), half == again), (bits, true));
        }
    }
    assert_eq!(F16::from_bits(0x7c00).to_f32(), f32::INFINITY);
    assert!(F16::from_bits(0x7c01).to_f32().is_nan());
    assert!(numbers().iter().all(|(value, bits)| f64::from(F16::from_bits(*bits).to_f32()) == *value));
}

#[test]
fn floats_become_the_nearest_half() {
    let numbers = numbers();
    for x in floats() {
        assert_eq!(F16::from_f32(x).to_bits(), nearest(&numbers, x), "{x:e}");
    }
    for nan in [f32::NAN, -f32::NAN, f32::from_bits(0x7f80_0001), f32::from_bits(0xffff_ffff)] {
        assert!(F16::from_f32(nan).to_f32().is_nan());
        assert_eq!(F16::from_f32(nan).to_f32().is_sign_negative(), nan.is_sign_negative());
    }
}

/// Converts rows of `len` elements each, and a last one of what is left.
fn cast<O: Copy + Default, I: Copy>(isa: Isa, from: &[I], len: usize) -> Vec<O>
where
    Cast: RowKernel<O, I>,
{
    let mut made = vec![O::default(); from.len()];
    let whole = from.len() / len * len;
    for (cells, len) in [(0..whole, len), (whole..from.len(), from.len() - whole)] {
        let rows = cells.len() / len.max(1);
        let shape = RowShape::dense(rows, 1, len, rows);
        let x = Rows { data: (&from[cells.clone()]).into(), shape };
        let output = &mut RowsMut { data: SpanMut::new(&mut made[cells]), shape };
        Cast.rows(&mut Context::alone(isa), 0..rows, &[x], &[], output);
    }
    made
}

#[test]
fn vectors_are_converted_to_the_same_bits() {
    let halves: Vec<F16> = (0..=u16::MAX).map(F16::from_bits).collect();
    let mut floats = floats();
    floats.extend([0x7f80_0001, 0xffff_ffff, 0x7fc0_0000, 0xff80_2001].map(f32::from_bits));
    let wide: Vec<u32> = halves.iter().map(|x| x.to_f32().to_bits()).collect();
    let narrow: Vec<u16> = floats.iter().map(|x| F16::from_f32(*x).to_bits()).collect();
    for isa in Isa::all() {
        // Whole vectors, and parts of every length.
        for len in (1..=17).chain([256, 1 << 20]) {
            let widened: Vec<f32> = cast(isa, &halves, len);
            let narrowed: Vec<F16> = cast(isa, &floats, len);
            let bits = widened.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
            assert!(bits == wide, "{} {len}", isa.name());
            let bits = narrowed.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
            assert!(bits == narrow, "{} {len}", isa.name());
        }
    }
}
