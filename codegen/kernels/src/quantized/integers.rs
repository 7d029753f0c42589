//! Vectors of integers: their operations, and a portable implementation.

use core::mem::MaybeUninit;

use super::super::arch::{PANEL, Portable};
use super::Requantize;

/// The fewest sums of a vector: half a panel.
pub(crate) const LANES: usize = 8;

/// Bytes of a bias, and of a multiplier.
pub(crate) const NUMBER: usize = 4;

/// The largest [`Integers::DEPTH`].
pub(crate) const MAX_DEPTH: usize = 4;

/// The lines in which the steps of each pixel lie, as many in each. They begin `between` bytes apart. If there are several,
/// their steps go in fours.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lines {
    pub count: usize,
    pub between: usize,
}

impl Lines {
    /// All steps in one.
    pub const ONE: Lines = Lines { count: 1, between: 0 };
}

/// `round(fixed + a·left + b·right)` of elements `a` and `b`, where each operation rounds, from left to right.
#[derive(Clone, Copy)]
pub(crate) struct ScaledSum {
    pub fixed: f32,
    pub left: f32,
    pub right: f32,
    /// The bounds; its zero point is 0.
    pub how: Requantize,
}

impl ScaledSum {
    /// Of two elements.
    #[inline(always)]
    pub fn of(self, a: u8, b: u8) -> u8 {
        self.how.round(self.fixed + f32::from(a) * self.left + f32::from(b) * self.right)
    }
}

/// Work on integers written for any instruction set. `run` and everything that it calls with `S` must be
/// `#[inline(always)]`. Only then does the compiler generate code for that instruction set.
///
/// It is called where a convolution chooses the instruction set, by [`Integers::call`] and by work of the same
/// `S`, so only where the processor has the instructions of `S`. A `# Safety` that says "in [`Work::run`]" asks for
/// this.
pub(crate) trait Work {
    /// Does the work.
    fn run<S: Integers>(self);
}

/// Vectors of integers, with the operations that micro-kernels need.
///
/// If lanes are counted, a vector need hold no more than that of a panel; the content of other lanes is unspecified.
/// Unless the set [has parts](Integers::HAS_PARTS), pointers must be good for a whole vector all the same.
///
/// # Safety
/// Whoever calls a method ensures that the processor has the instructions of the set, as it has in [`Work::run`], and
/// that pointers are good for what the method says. They need no alignment.
///
/// Whoever implements it ensures that the constants are as they say, and that no method touches any other memory.
pub(crate) unsafe trait Integers: Copy + 'static {
    /// Integers of 32 bits.
    type Sums: Copy;
    /// For each of them, the factors of as many products as an instruction adds to it.
    type Factors: Copy;
    /// As many floats.
    type Scales: Copy;
    /// The data that [`Requantize`] needs besides sums and scales.
    type Clamp: Copy;
    /// Sums of a vector: [`LANES`], or a panel.
    const LANES: usize;
    /// Whether the set can read and write a vector of only the first lanes directly.
    const HAS_PARTS: bool;
    /// Products that an instruction adds to a sum: 2 or 4.
    const DEPTH: usize;
    /// Bytes of a tensor's element that is gathered.
    const SIZE: usize;
    /// The number that is subtracted from elements as they are loaded: 0, or 128 if products are of signed bytes.
    const MIDDLE: u8 = 0;
    /// Maximum number of pixels of a tile of one panel or two.
    const TILE: usize;
    /// Whether a depthwise convolution adds a column to the sums of all pixels whose windows contain it. If there are few
    /// registers for sums, it goes pixel by pixel, by [`Integers::add_columns`].
    const SLIDES: bool = true;
    /// Panels that are computed together: either one panel of one or more vectors, or at most four panels of one vector
    /// each.
    const PANELS_PER_STEP: usize;

    /// The numbers at `p`, the lowest byte of each first.
    unsafe fn sums(p: *const u8, lanes: usize) -> Self::Sums;
    /// The floats at `p`, the lowest byte of each first.
    unsafe fn scales(p: *const u8, lanes: usize) -> Self::Scales;
    /// The bytes that go together as part `PART`, of the `STEPS` signed bytes (2 or 4) of each lane at `p`.
    unsafe fn weights<const STEPS: usize, const PART: usize>(p: *const u8, lanes: usize) -> Self::Factors;
    /// The next gathered elements of a pixel that go together, no more than `STEPS`, in every lane.
    unsafe fn steps<const STEPS: usize>(p: *const u8) -> Self::Factors;
    /// The numbers of a depthwise convolution's channels, of [`Integers::PANELS_PER_STEP`] panels, in an order of the set's own. `at`
    /// says where those of a panel are, and how many.
    #[inline(always)]
    unsafe fn channels<const V: usize>(at: impl Fn(usize) -> (*const u8, usize)) -> [Self::Sums; V] {
        let (p, lanes) = at(0);
        // SAFETY: the processor has the instructions, and `p` is good for `V` vectors of numbers: `# Safety` of
        // `Integers`.
        unsafe {
            let mut all = [Self::sums(p, lanes); V];
            for (v, sums) in all.iter_mut().enumerate().skip(1) {
                *sums = Self::sums(p.add(NUMBER * Self::LANES * v), lanes);
            }
            all
        }
    }
    /// The same for floats.
    #[inline(always)]
    unsafe fn channel_scales<const V: usize>(at: impl Fn(usize) -> (*const u8, usize)) -> [Self::Scales; V] {
        let (p, lanes) = at(0);
        // SAFETY: the processor has the instructions, and `p` is good for `V` vectors of floats: `# Safety` of
        // `Integers`.
        unsafe {
            let mut all = [Self::scales(p, lanes); V];
            for (v, scales) in all.iter_mut().enumerate().skip(1) {
                *scales = Self::scales(p.add(NUMBER * Self::LANES * v), lanes);
            }
            all
        }
    }
    /// Bytes of these channels, in that order, from each of these rows, at most [`Integers::DEPTH`]. Those of missing rows are
    /// some number.
    /// Only sets that [slide](Integers::SLIDES) or have no `add_columns` of their own need it.
    #[inline(always)]
    unsafe fn rows<const V: usize>(_rows: &[*const u8], _lanes: usize) -> [Self::Factors; V] {
        unreachable!("columns are added another way")
    }
    /// The same for `rows` rows of signed bytes. `at` says where they are, by row and panel. Those of missing rows are
    /// 0; or some number, if the set has an `add_columns` of its own.
    unsafe fn weight_rows<const V: usize>(
        rows: usize,
        at: impl Fn(usize, usize) -> (*const u8, usize),
    ) -> [Self::Factors; V];
    /// Writes to `out` the elements that the sums of these channels, in that order, become.
    #[inline(always)]
    unsafe fn requantize_channels<const V: usize>(
        sums: [Self::Sums; V],
        scales: &[Self::Scales; V],
        clamp: &Self::Clamp,
        out: *mut u8,
        lanes: usize,
    ) {
        // SAFETY: `out` is good for the bytes of `V` vectors, or of `lanes` channels if the set has parts: `# Safety`
        // of `Integers`.
        unsafe { Self::requantize_all(&[sums], scales, clamp, lanes, |_| out) }
    }
    /// Adds to each lane the products of a tensor's elements and weights, whose sum does not leave 32 bits; the lane may
    /// (modulo 2^32).
    unsafe fn add_products(sums: Self::Sums, elements: Self::Factors, weights: Self::Factors) -> Self::Sums;
    /// Whether [`Integers::add_fours`] is faster where no weight is −128.
    const MINDS_LEAST: bool = false;
    /// Adds the products of so many fours of steps of each line of these pixels, in an order of the set's own; `false` if the
    /// set has none.
    /// `at` says where the first weights of a vector are, and how many channels its panel has. There are weights of all these
    /// steps, and each pixel is good for them. In each line, elements of 2 bytes begin at a multiple of 4 bytes. If the set
    /// [minds](Integers::MINDS_LEAST), `has_least` says whether one of the weights is −128.
    #[inline(always)]
    unsafe fn add_fours<const M: usize, const N: usize>(
        _: &mut [[Self::Sums; N]; M],
        _at: impl Fn(usize) -> (*const u8, usize),
        _pixels: &[*const u8; M],
        _lines: Lines,
        _fours: usize,
        _has_least: bool,
    ) -> bool {
        false
    }
    /// Adds the products of the columns of a depthwise convolution's window: those of the upper [`Integers::DEPTH`] rows of
    /// the filter, then those of the next ones. The taps are as [`Integers::rows`] takes them, and the weights are
    /// initialised.
    #[inline(always)]
    unsafe fn add_columns<const V: usize>(
        sums: &mut [Self::Sums; V],
        columns: &[[*const u8; MAX_DEPTH]],
        kernel: [usize; 2],
        weights: &[MaybeUninit<[Self::Factors; V]>],
        lanes: usize,
    ) {
        for (i, (taps, weights)) in columns.iter().zip(weights).enumerate() {
            let rows = Self::DEPTH.min(kernel[0] - i / kernel[1] * Self::DEPTH);
            // SAFETY: the processor has the instructions, each tap is good for what `rows` reads, and the weights are
            // initialised: `# Safety` of `Integers`.
            unsafe {
                let (taps, weights) = (Self::rows::<V>(&taps[..rows], lanes), weights.assume_init_ref());
                for v in 0..V {
                    sums[v] = Self::add_products(sums[v], taps[v], weights[v]);
                }
            }
        }
    }
    /// Adds to each lane the part that products with these weights lack, because [`Integers::MIDDLE`] was subtracted
    /// from their elements.
    #[inline(always)]
    unsafe fn add_middle(sums: Self::Sums, _: Self::Factors) -> Self::Sums {
        sums
    }
    /// The same for so many times four steps of a panel with `width` channels, whose weights for these lanes begin at `p`.
    #[inline(always)]
    unsafe fn add_middle_of_fours(
        mut sums: Self::Sums,
        mut p: *const u8,
        width: usize,
        fours: usize,
    ) -> Self::Sums {
        for _ in 0..fours {
            // SAFETY: the processor has the instructions, and there are weights of all these steps: `# Safety` of `Integers`.
            unsafe {
                sums = Self::add_middle(sums, Self::weights::<4, 0>(p, width));
                if const { Self::DEPTH < 4 } {
                    sums = Self::add_middle(sums, Self::weights::<4, 1>(p, width));
                }
            }
            p = p.wrapping_add(4 * width);
        }
        sums
    }
    /// Adds a number to each lane (modulo 2^32).
    unsafe fn add_to_all(sums: Self::Sums, number: i32) -> Self::Sums;
    /// The data that these parameters give.
    unsafe fn clamp(how: Requantize) -> Self::Clamp;
    /// Writes to `out` the elements that the sums become, a byte each.
    unsafe fn requantize(
        sums: Self::Sums,
        scales: Self::Scales,
        clamp: &Self::Clamp,
        out: *mut u8,
        lanes: usize,
    );
    /// The same for two whole vectors.
    #[inline(always)]
    unsafe fn requantize_two(
        sums: [Self::Sums; 2],
        scales: [Self::Scales; 2],
        clamp: &Self::Clamp,
        out: *mut u8,
    ) {
        // SAFETY: `out` is good for a byte of each lane of two vectors: `# Safety` of `Integers`.
        unsafe {
            Self::requantize(sums[0], scales[0], clamp, out, Self::LANES);
            Self::requantize(sums[1], scales[1], clamp, out.add(Self::LANES), Self::LANES);
        }
    }
    /// The same for the one, two or four vectors of each pixel, of which pixel `i` goes to `out(i)`.
    #[inline(always)]
    unsafe fn requantize_all<const V: usize, const M: usize>(
        sums: &[[Self::Sums; V]; M],
        scales: &[Self::Scales; V],
        clamp: &Self::Clamp,
        lanes: usize,
        out: impl Fn(usize) -> *mut u8,
    ) {
        for (i, sums) in sums.iter().enumerate() {
            // SAFETY: `out(i)` is good for the bytes of two vectors, or, if there is one, for what `requantize` writes
            // of it: `# Safety` of `Integers`.
            unsafe {
                if V == 2 {
                    Self::requantize_two([sums[0], sums[1]], [scales[0], scales[1]], clamp, out(i));
                } else {
                    Self::requantize(sums[0], scales[0], clamp, out(i), lanes);
                }
            }
        }
    }
    /// Adds so many pixels of each row to the sums of their channels, a panel's at most. Beside their number stands the distance
    /// in elements from one to the next. A row ends with the last.
    #[inline(always)]
    unsafe fn add_pixels<'r>(
        sums: &mut [i32; PANEL],
        rows: impl Iterator<Item = &'r [u8]> + Clone,
        (_, between): (usize, usize),
        channels: usize,
    ) {
        for row in rows {
            add_pixels(&mut sums[..channels], row, between);
        }
    }
    /// Keeps the larger of each two elements.
    #[inline(always)]
    unsafe fn keep_largest(largest: &mut [u8], elements: &[u8]) {
        largest.iter_mut().zip(elements).for_each(|(largest, &q)| *largest = q.max(*largest));
    }
    /// Makes the elements that such sums of as many elements of left and right become.
    #[inline(always)]
    unsafe fn add_scaled(sum: &ScaledSum, left: &[u8], right: &[u8], made: &mut [u8]) {
        made.iter_mut().zip(left).zip(right).for_each(|((made, &a), &b)| *made = sum.of(a, b));
    }
    /// Does the work as a function of its own, compiled for this instruction set.
    unsafe fn call<W: Work>(work: W);
    /// Gathers the `count` elements of each of `rows` rows. Beside each address stands the distance in elements from
    /// one row to the next.
    #[inline(always)]
    unsafe fn gather(
        (from, between): (*const u8, usize),
        (to, span): (*mut u8, usize),
        [rows, count]: [usize; 2],
    ) {
        for row in 0..rows {
            let (from, to) = (from.wrapping_add(row * between), to.wrapping_add(row * span * Self::SIZE));
            for i in 0..count {
                // SAFETY: `from` is good for `count` bytes and `to` for as many elements of `SIZE` bytes, in each row:
                // `# Safety` of `Integers`.
                unsafe { Self::fill(to.add(i * Self::SIZE), 1, *from.add(i)) }
            }
        }
    }
    /// Gathers `element` `count` times.
    #[inline(always)]
    unsafe fn fill(to: *mut u8, count: usize, element: u8) {
        // SAFETY: `to` is good for `count` elements, of 1 or 2 bytes as `SIZE` says: `# Safety` of `Integers`.
        unsafe {
            match Self::SIZE {
                1 => to.write_bytes(element, count),
                _ => (0..count).for_each(|i| to.cast::<i16>().add(i).write_unaligned(element.into())),
            }
        }
    }
}

/// Adds the pixels of a row, which begin `between` elements apart, to the sums of their first channels.
#[inline(always)]
pub(crate) fn add_pixels(sums: &mut [i32], row: &[u8], between: usize) {
    for at in (0..row.len()).step_by(between) {
        let pairs = sums.iter_mut().zip(&row[at..]);
        pairs.for_each(|(sum, &q)| *sum = sum.wrapping_add(q.into()));
    }
}

/// Bytes of `V` portable vectors from each of these rows, each as such a number; those of missing rows are 0.
///
/// # Safety
/// Each row is good for `V` vectors of bytes.
#[inline(always)]
unsafe fn pairs<const V: usize>(rows: &[*const u8], number: impl Fn(u8) -> i16) -> [[[i16; 2]; LANES]; V] {
    core::array::from_fn(|v| {
        core::array::from_fn(|lane| {
            // SAFETY: a row is good for `V` vectors of `LANES` bytes: `# Safety` of this function.
            [0, 1].map(|i| rows.get(i).map_or(0, |row| number(unsafe { *row.add(v * LANES + lane) })))
        })
    })
}

// SAFETY: there are 8 lanes, each method touches what `Integers` says of its pointers and no more, and none needs
// instructions beyond those of the target.
unsafe impl Integers for Portable {
    type Sums = [i32; LANES];
    type Factors = [[i16; 2]; LANES];
    type Scales = [f32; LANES];
    type Clamp = Requantize;
    const LANES: usize = LANES;
    const HAS_PARTS: bool = false;
    const DEPTH: usize = 2;
    const SIZE: usize = 2;
    const TILE: usize = 2;
    const PANELS_PER_STEP: usize = 1;

    #[inline(always)]
    unsafe fn sums(p: *const u8, _: usize) -> Self::Sums {
        // SAFETY: `p` is good for 8 numbers of 4 bytes, and bytes need no alignment: `# Safety` of `Integers`.
        unsafe { p.cast::<[[u8; 4]; LANES]>().read() }.map(i32::from_le_bytes)
    }

    #[inline(always)]
    unsafe fn scales(p: *const u8, _: usize) -> Self::Scales {
        // SAFETY: `p` is good for 8 floats of 4 bytes, and bytes need no alignment: `# Safety` of `Integers`.
        unsafe { p.cast::<[[u8; 4]; LANES]>().read() }.map(f32::from_le_bytes)
    }

    #[inline(always)]
    unsafe fn weights<const STEPS: usize, const PART: usize>(p: *const u8, _: usize) -> Self::Factors {
        // SAFETY: `p` is good for `STEPS` bytes of each of 8 lanes: `# Safety` of `Integers`.
        unsafe { p.cast::<[[i8; STEPS]; LANES]>().read() }
            .map(|steps| [0, 1].map(|i| steps[PART + i * (STEPS / 2)].into()))
    }

    #[inline(always)]
    unsafe fn steps<const STEPS: usize>(p: *const u8) -> Self::Factors {
        // SAFETY: `p` is good for two elements of 2 bytes: `# Safety` of `Integers`.
        [unsafe { p.cast::<[i16; 2]>().read_unaligned() }; LANES]
    }

    #[inline(always)]
    unsafe fn rows<const V: usize>(rows: &[*const u8], _: usize) -> [Self::Factors; V] {
        // SAFETY: each row is good for `V` vectors of bytes: `# Safety` of `Integers`.
        unsafe { pairs(rows, i16::from) }
    }

    #[inline(always)]
    unsafe fn weight_rows<const V: usize>(
        rows: usize,
        at: impl Fn(usize, usize) -> (*const u8, usize),
    ) -> [Self::Factors; V] {
        // SAFETY: each row is good for `V` vectors of bytes: `# Safety` of `Integers`. The others are cut off.
        unsafe { pairs(&[at(0, 0).0, at(1, 0).0][..rows], |byte| byte.cast_signed().into()) }
    }

    #[inline(always)]
    unsafe fn add_products(mut sums: Self::Sums, a: Self::Factors, b: Self::Factors) -> Self::Sums {
        for ((sum, a), b) in sums.iter_mut().zip(a).zip(b) {
            let [first, second] = [0, 1].map(|i| i32::from(a[i]) * i32::from(b[i]));
            *sum = sum.wrapping_add(first.wrapping_add(second));
        }
        sums
    }

    #[inline(always)]
    unsafe fn add_to_all(sums: Self::Sums, number: i32) -> Self::Sums {
        sums.map(|sum| sum.wrapping_add(number))
    }

    #[inline(always)]
    unsafe fn clamp(how: Requantize) -> Self::Clamp {
        how
    }

    #[inline(always)]
    unsafe fn requantize(
        sums: Self::Sums,
        scales: Self::Scales,
        clamp: &Self::Clamp,
        out: *mut u8,
        _: usize,
    ) {
        let mut bytes = [0; LANES];
        for ((byte, sum), scale) in bytes.iter_mut().zip(sums).zip(scales) {
            *byte = clamp.apply(sum, scale);
        }
        // SAFETY: `out` is good for 8 bytes: `# Safety` of `Integers`.
        unsafe { out.cast::<[u8; LANES]>().write(bytes) }
    }

    #[inline(never)]
    unsafe fn call<W: Work>(work: W) {
        work.run::<Portable>();
    }
}
