//! What the tests of kernels share.

use core::num::NonZeroUsize;

use csdfc_kernels::rows::RowShape;

/// A small generator of reproducible numbers (splitmix64).
pub(crate) struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number from `low` to `high`, both included.
    pub fn within(&mut self, low: usize, high: usize) -> usize {
        low + (self.next() % (high - low + 1) as u64) as usize
    }

    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.within(0, from.len() - 1)]
    }

    /// Numbers from −1 to 1.
    pub fn floats(&mut self, count: usize) -> Vec<f32> {
        (0..count).map(|_| (self.next() >> 40) as f32 / (1 << 23) as f32 - 1.0).collect()
    }
}

/// So many rounds of a test. Under valgrind all of them take many minutes: `CSDFC_ROUNDS=7` in the environment asks for
/// every seventh.
pub(crate) fn rounds(count: usize) -> impl Iterator<Item = usize> {
    let step = std::env::var("CSDFC_ROUNDS").ok().and_then(|step| step.parse().ok());
    (0..count).step_by(step.map_or(1, NonZeroUsize::get))
}

/// Panics unless each element is near the wanted one.
pub(crate) fn close(got: &[f32], want: &[f32], what: impl Fn() -> String) {
    assert_eq!(got.len(), want.len(), "{}", what());
    let largest = want.iter().fold(1.0_f32, |m, x| m.max(x.abs()));
    for (i, (g, w)) in got.iter().zip(want).enumerate() {
        assert!((g - w).abs() <= 1e-5 * largest, "{}: element {i} is {g}, not {w}", what());
    }
}

/// A ring of rows that holds `tensor`'s (`[height, width, channels]`) rows `first .. first + rows` and NaN elsewhere.
pub(crate) fn ring(
    random: &mut Random,
    tensor: &[f32],
    [height, width, channels]: [usize; 3],
    first: usize,
    rows: usize,
) -> (Vec<f32>, RowShape) {
    let ring_rows = rows.min(height) + random.within(0, 1);
    let mut shape = RowShape::dense(height, width, channels, ring_rows);
    shape.first = random.within(0, ring_rows - 1);
    let mut data = vec![f32::NAN; ring_rows * shape.row_stride()];
    for y in first..height.min(first + rows) {
        let stride = shape.row_stride();
        data[shape.start(y)..][..stride].copy_from_slice(&tensor[y * stride..][..stride]);
    }
    (data, shape)
}
