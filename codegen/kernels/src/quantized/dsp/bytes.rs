//! What is done with bytes beside products: four of them are in a word.

use super::super::super::arch::PANEL;
use super::super::integers;
use super::{add_bytes, instruction, subtract_bytes, word};

instruction!(
    /// Two numbers of 16 bits, with bytes 0 and 2 added.
    add_even, "uxtab16 {made}, {sums}, {bytes}", sums, bytes
);
instruction!(
    /// Two numbers of 16 bits, with bytes 1 and 3 added.
    add_odd, "uxtab16 {made}, {sums}, {bytes}, ror #8", sums, bytes
);

/// So many bytes leave no 16 bits when they are added.
const PIXELS: usize = 256;

/// [`Integers::add_pixels`](super::super::integers::Integers::add_pixels), two words of each pixel at a time.
///
/// # Safety
/// The processor has the instructions, and each row has so many pixels.
#[inline(always)]
pub(super) unsafe fn add_pixels<'r>(
    sums: &mut [i32; PANEL],
    rows: impl Iterator<Item = &'r [u8]> + Clone,
    (pixels, between): (usize, usize),
    channels: usize,
) {
    let (eights, rest) = sums[..channels].as_chunks_mut::<8>();
    for (i, sums) in eights.iter_mut().enumerate() {
        let (mut twos, mut room) = ([0; 4], PIXELS);
        for row in rows.clone() {
            let (mut pixel, mut left) = (row.as_ptr().wrapping_add(8 * i), pixels);
            while left > 0 {
                let now = left.min(room);
                // SAFETY: the processor has the instructions, and these pixels have 8 bytes from there: `# Safety` of this
                // function.
                unsafe { add_words(&mut twos, pixel, between, now) };
                (pixel, left, room) = (pixel.wrapping_add(now * between), left - now, room - now);
                if room == 0 {
                    add_halves(sums, &twos);
                    (twos, room) = ([0; 4], PIXELS);
                }
            }
        }
        add_halves(sums, &twos);
    }
    if !rest.is_empty() {
        for row in rows {
            integers::add_pixels(rest, &row[channels - rest.len()..], between);
        }
    }
}

/// Adds the even and the odd bytes of two words of so many pixels.
///
/// # Safety
/// The processor has the instructions, and each pixel has the words.
#[inline(never)]
unsafe fn add_words(twos: &mut [u32; 4], mut pixel: *const u8, between: usize, pixels: usize) {
    for _ in 0..pixels {
        // SAFETY: the processor has the instructions, and the pixel has these words: `# Safety` of this function.
        unsafe {
            let [a, b] = [word(pixel), word(pixel.wrapping_add(4))];
            *twos = [add_even(twos[0], a), add_odd(twos[1], a), add_even(twos[2], b), add_odd(twos[3], b)];
        }
        pixel = pixel.wrapping_add(between);
    }
}

/// Adds the halves of sums of even and odd bytes of two words to the sums of eight channels.
#[inline(never)]
fn add_halves(sums: &mut [i32; 8], twos: &[u32; 4]) {
    for (lane, sum) in sums.iter_mut().enumerate() {
        let two = twos[lane / 4 * 2 + lane % 2];
        *sum = sum.wrapping_add((if lane % 4 < 2 { two & 0xffff } else { two >> 16 }).cast_signed());
    }
}

/// [`Integers::keep_largest`](super::super::integers::Integers::keep_largest).
///
/// # Safety
/// The processor has the instructions.
#[inline(never)]
pub(super) unsafe fn keep_largest(largest: &mut [u8], elements: &[u8]) {
    let ((fours, ones), (elements, others)) = (largest.as_chunks_mut::<4>(), elements.as_chunks::<4>());
    for (four, elements) in fours.iter_mut().zip(elements) {
        let [a, b] = [*four, *elements].map(u32::from_le_bytes);
        // SAFETY: the processor has the instructions: `# Safety` of this function.
        *four = unsafe { add_bytes(a, subtract_bytes(b, a)) }.to_le_bytes();
    }
    ones.iter_mut().zip(others).for_each(|(largest, &q)| *largest = q.max(*largest));
}
