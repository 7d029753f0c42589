//! The micro-kernel of sums of products: tiles of a few pixels by the channels of one, two or four panels, whose sums are in
//! registers.

use core::ops::Range;

use super::super::arch::PANEL;
use super::Requantize;
use super::integers::{Integers, Lines, NUMBER, Work};
use super::panels::Panels;

/// The largest [`most`].
pub(super) const MAX_TILE: usize = 12;

/// The most pixels of a tile of so many panels.
pub(super) const fn max_pixels<S: Integers>(panels: usize) -> usize {
    if panels == 4 { S::TILE / 2 } else { S::TILE }
}

/// Tiles of equally many pixels, by the channels of one, two or four panels.
#[derive(Clone, Copy)]
pub(super) struct Tiles<'b> {
    pub count: usize,
    pub panels: &'b Panels,
    pub packed: &'b [u8],
    /// The first channel, of those of all groups, and how many there are.
    pub first: usize,
    pub lanes: usize,
    /// The first step of each pixel, and how the others lie.
    pub pixels: *const *const u8,
    pub lines: Lines,
    pub steps: &'b Range<usize>,
    /// Whether no steps follow.
    pub is_last: bool,
    /// Where the sums of the tiles wait if they do.
    pub accumulators: *mut i32,
    pub requantize: Requantize,
    /// What is added to the sums of each pixel, if weights have an offset.
    pub additions: Option<&'b [i32]>,
    /// Where the elements of each pixel go, and the offset of the channels there.
    pub outputs: *const *mut u8,
    pub within: usize,
}

impl Tiles<'_> {
    /// Makes them.
    ///
    /// # Safety
    /// In [`Work::run`]. There are `count` tiles of `pixels` pixels, each good for the steps in all lines; as many places in
    /// `outputs`, each good for the channels from `within` on; and, unless the steps are the first and last, room for the
    /// sums of all tiles, with what earlier steps have left there.
    #[inline(always)]
    pub unsafe fn call<S: Integers>(self, panels: usize, pixels: usize) {
        // Constant conditions, so that no code is made for the sizes that an instruction set does not take.
        macro_rules! size {
            ($m:literal) => {
                // SAFETY: this is in `Work::run`, and the tiles, places and sums are there: `# Safety` of this
                // function.
                unsafe {
                    if const { S::PANELS_PER_STEP == 4 && $m <= max_pixels::<S>(4) } && panels == 4 {
                        S::call(Sized::<$m, 4>(self));
                    } else if const { $m <= S::TILE } {
                        if const { S::LANES < PANEL || S::PANELS_PER_STEP > 1 } && self.lanes > S::LANES {
                            S::call(Sized::<$m, 2>(self));
                        } else {
                            S::call(Sized::<$m, 1>(self));
                        }
                    }
                }
            };
        }
        match pixels {
            1 => size!(1),
            2 => size!(2),
            3 => size!(3),
            4 => size!(4),
            5 => size!(5),
            6 => size!(6),
            7 => size!(7),
            8 => size!(8),
            9 => size!(9),
            10 => size!(10),
            11 => size!(11),
            12 => size!(12),
            _ => {}
        }
    }
}

/// [`Tiles`] of `M` pixels and `N` vectors as a job.
struct Sized<'b, const M: usize, const N: usize>(Tiles<'b>);

impl<const M: usize, const N: usize> Work for Sized<'_, M, N> {
    #[inline(always)]
    fn run<S: Integers>(self) {
        let Tiles { lines, panels, packed, first, lanes, steps, requantize: how, .. } = self.0;
        let accumulators = self.0.accumulators.cast::<[[S::Sums; N]; M]>();
        // One or two steps may follow the fours, if there is one line.
        let fours = steps.len() / lines.count / 4;
        let vectors = Vectors::<N>::new::<S>(panels, packed, first, lanes);
        // SAFETY: this is in `Work::run`. Only `Tiles::call` makes this, so pixels, places and sums are there: its
        // `# Safety`. `Vectors::of` has asserted that the panels are there, and vectors of a narrow panel reach no
        // further beyond it than `Panels::reach` says.
        unsafe {
            let mut scales = [S::scales(vectors.multipliers::<S>(0), vectors.lanes::<S>(0)); N];
            for (v, scales) in scales.iter_mut().enumerate().skip(1) {
                *scales = S::scales(vectors.multipliers::<S>(v), vectors.lanes::<S>(v));
            }
            let clamp = S::clamp(how);
            let mut biases = [S::sums(vectors.biases::<S>(0), vectors.lanes::<S>(0)); N];
            for (v, biases) in biases.iter_mut().enumerate().skip(1) {
                *biases = S::sums(vectors.biases::<S>(v), vectors.lanes::<S>(v));
            }
            if S::MIDDLE > 0 && steps.start == 0 {
                add_middle::<S, N>(&mut biases, vectors.weights(0), panels.stored_steps());
            }
            let has_least = S::MINDS_LEAST && vectors.weights(steps.start).has_least(steps.len());
            for tile in 0..self.0.count {
                let pixels = self.0.pixels.add(tile * M).cast::<[*const u8; M]>().read();
                let mut weights = vectors.weights(steps.start);
                let mut sums =
                    if steps.start == 0 { [biases; M] } else { accumulators.add(tile).read_unaligned() };
                if let Some(additions) = self.0.additions {
                    for (sums, &addition) in sums.iter_mut().zip(&additions[tile * M..]) {
                        for sums in sums {
                            *sums = S::add_to_all(*sums, addition);
                        }
                    }
                }
                let at = |v| weights.steps::<S, 4>(v);
                if S::add_fours(&mut sums, at, &pixels, lines, fours, has_least) {
                    weights = weights.advanced_by(4 * fours * lines.count);
                } else {
                    for line in 0..lines.count {
                        for four in 0..fours {
                            let at = line * lines.between + 4 * S::SIZE * four;
                            add_steps::<S, M, N, 4>(&mut sums, &weights, &pixels, at);
                            weights = weights.advanced_by(4);
                        }
                    }
                }
                if steps.len() % 4 > 0 {
                    add_steps::<S, M, N, 2>(&mut sums, &weights, &pixels, 4 * S::SIZE * fours);
                }
                if !self.0.is_last {
                    accumulators.add(tile).write_unaligned(sums);
                    continue;
                }
                let out = |i: usize| self.0.outputs.add(tile * M + i).read().add(self.0.within);
                if S::HAS_PARTS || lanes == N * S::LANES {
                    S::requantize_all(&sums, &scales, &clamp, lanes, out);
                    continue;
                }
                let mut bytes = [[0; PANEL]; M];
                let first = bytes.as_mut_ptr();
                S::requantize_all(&sums, &scales, &clamp, lanes, |i| first.add(i).cast());
                for (i, bytes) in bytes.iter().enumerate() {
                    out(i).copy_from_nonoverlapping(bytes.as_ptr(), lanes);
                }
            }
        }
    }
}

/// Where `N` vectors of channels find their data. They belong to one panel, or each belongs to a panel of its own.
#[derive(Clone, Copy)]
struct Vectors<const N: usize> {
    /// The first panel, and the last one.
    whole: *const u8,
    last: *const u8,
    /// Bytes from a panel to the next.
    between: usize,
    /// Channels of the last panel; the others are whole.
    width: usize,
}

impl<const N: usize> Vectors<N> {
    #[inline(always)]
    fn new<S: Integers>(panels: &Panels, packed: &[u8], first: usize, lanes: usize) -> Self {
        let before = const { (N * S::LANES).div_ceil(PANEL) - 1 };
        let between = PANEL * panels.channel_bytes();
        let width = lanes - before * PANEL;
        let bytes = &packed[first * panels.channel_bytes()..][..before * between + panels.reach(width)];
        Vectors { whole: bytes.as_ptr(), last: bytes[before * between..].as_ptr(), between, width }
    }

    /// The panel of a vector, its channels, and the vector's first among them.
    #[inline(always)]
    fn panel<S: Integers>(&self, v: usize) -> (*const u8, usize, usize) {
        let (panel, lane) = (v * S::LANES / PANEL, v * S::LANES % PANEL);
        if panel == (N * S::LANES).div_ceil(PANEL) - 1 {
            (self.last, self.width, lane)
        } else {
            (self.whole.wrapping_add(panel * self.between), PANEL, lane)
        }
    }

    #[inline(always)]
    fn lanes<S: Integers>(&self, v: usize) -> usize {
        self.panel::<S>(v).1
    }

    #[inline(always)]
    fn biases<S: Integers>(&self, v: usize) -> *const u8 {
        let (panel, _, lane) = self.panel::<S>(v);
        panel.wrapping_add(NUMBER * lane)
    }

    #[inline(always)]
    fn multipliers<S: Integers>(&self, v: usize) -> *const u8 {
        let (panel, width, lane) = self.panel::<S>(v);
        panel.wrapping_add(NUMBER * (width + lane))
    }

    /// The same with the weights of a step where panels begin.
    #[inline(always)]
    fn weights(self, step: usize) -> Self {
        let whole = self.whole.wrapping_add((2 * NUMBER + step) * PANEL);
        Vectors { whole, last: self.last.wrapping_add((2 * NUMBER + step) * self.width), ..self }
    }

    /// Where the next weights of a vector are, two or four steps of each channel, and the channels of its panel.
    #[inline(always)]
    fn steps<S: Integers, const STEPS: usize>(&self, v: usize) -> (*const u8, usize) {
        let (panel, width, lane) = self.panel::<S>(v);
        (panel.wrapping_add(STEPS * lane), width)
    }

    /// Whether one of the next weights of the last panel is −128.
    ///
    /// # Safety
    /// There are weights of so many steps.
    #[inline(always)]
    unsafe fn has_least(&self, steps: usize) -> bool {
        // SAFETY: there are weights of these steps for each channel: `# Safety` of this function.
        let weights = unsafe { core::slice::from_raw_parts(self.last.cast::<i8>(), steps * self.width) };
        weights.iter().fold(0, |least, &weight| weight.min(least)) == i8::MIN
    }

    /// The place `steps` steps after this one.
    #[inline(always)]
    fn advanced_by(self, steps: usize) -> Self {
        let whole = self.whole.wrapping_add(steps * PANEL);
        Vectors { whole, last: self.last.wrapping_add(steps * self.width), ..self }
    }
}

/// Adds to the biases of the channels what the products with their first weights lack, since elements are less
/// [`Integers::MIDDLE`].
///
/// # Safety
/// In [`Work::run`]. From the vectors on there are weights of as many steps.
#[inline(always)]
unsafe fn add_middle<S: Integers, const N: usize>(
    biases: &mut [S::Sums; N],
    mut weights: Vectors<N>,
    steps: usize,
) {
    // SAFETY: this is in `Work::run`, and there are weights of all steps, each four or two of which take `after`
    // further: `# Safety` of this function.
    unsafe {
        for (v, sums) in biases.iter_mut().enumerate() {
            let (p, width) = weights.steps::<S, 4>(v);
            *sums = S::add_middle_of_fours(*sums, p, width, steps / 4);
        }
        weights = weights.advanced_by(steps / 4 * 4);
        if !steps.is_multiple_of(4) {
            for (v, sums) in biases.iter_mut().enumerate() {
                let (p, width) = weights.steps::<S, 2>(v);
                *sums = S::add_middle(*sums, S::weights::<2, 0>(p, width));
            }
        }
    }
}

/// Adds the products of two or four steps, which lie together, `at` bytes from where these pixels begin.
///
/// # Safety
/// In [`Work::run`]. There are weights of the steps, and each pixel is good for them.
#[inline(always)]
unsafe fn add_steps<S: Integers, const M: usize, const N: usize, const STEPS: usize>(
    sums: &mut [[S::Sums; N]; M],
    weights: &Vectors<N>,
    pixels: &[*const u8; M],
    at: usize,
) {
    let in_two = const { S::DEPTH < STEPS };
    // SAFETY: this is in `Work::run`, there are weights of the steps, and each pixel is good for them: `# Safety` of
    // this function.
    unsafe {
        let (p, width) = weights.steps::<S, STEPS>(0);
        let mut first = [S::weights::<STEPS, 0>(p, width); N];
        let mut second = first;
        for v in 0..N {
            let (p, width) = weights.steps::<S, STEPS>(v);
            first[v] = S::weights::<STEPS, 0>(p, width);
            if in_two {
                second[v] = S::weights::<STEPS, 1>(p, width);
            }
        }
        for i in 0..M {
            let pixel = pixels[i].add(at);
            let x = S::steps::<STEPS>(pixel);
            let y = if in_two { S::steps::<STEPS>(pixel.add(S::DEPTH * S::SIZE)) } else { x };
            for v in 0..N {
                sums[i][v] = S::add_products(sums[i][v], x, first[v]);
                if in_two {
                    sums[i][v] = S::add_products(sums[i][v], y, second[v]);
                }
            }
        }
    }
}
