//! Lines of pixels whose filters are 3 or 5 wide.
//!
//! A line is the part of an output row whose windows have all their columns within the input, and up to two pixels on
//! either side of it. One vector of channels is made for all pixels of the line before the next vector is. The weights
//! of its filters stay in registers, as far as these suffice. Pixels at the borders have code of their own, without
//! branches on taps.
#![allow(unsafe_code, reason = "vector instructions; each block says why it is sound")]

use core::ops::Range;

use super::super::super::arch::{Job, PANEL, Simd};
use super::super::super::element::Element;
use super::super::super::features;
use super::super::super::tile::{Ending, begin, finish};
use super::super::super::weight::{Lanes, Weight};
use super::super::parameters::inside;
use super::work::{Depthwise, activate, columns, lanes};

/// Maximum number of pixels at either side of those whose windows have all columns.
const BORDER: usize = 2;

/// A line of an output row.
pub(super) struct Line<'l, 'a, E, W> {
    conv: &'l Depthwise<'a, E, W>,
    y: usize,
    /// Its panels. Only those of floats may have a narrow one.
    tiles: Range<usize>,
    /// The rows of the filters that lie within the input.
    rows: Range<usize>,
    /// Pixels whose windows have all columns.
    whole: Range<usize>,
    /// How many pixels there are before these, and how many columns the windows of each lack on the left.
    before: usize,
    lack_left: [usize; BORDER],
    /// The same for pixels after these, on the right.
    after: usize,
    lack_right: [usize; BORDER],
}

impl<'l, 'a, E: Element, W: Weight> Line<'l, 'a, E, W> {
    /// The line of row `y`, if there is one. `whole` are the pixels whose windows have all columns.
    #[inline(always)]
    pub fn new(conv: &'l Depthwise<'a, E, W>, y: usize, whole: &Range<usize>) -> Option<Self> {
        let Depthwise { p, tiles, input, output, .. } = conv;
        // Lines of halves have no code for parts of vectors: it takes the compiler longer than all other code of lines.
        let full = if E::IS_FLOAT { tiles.end } else { tiles.end.min(p.filters / PANEL) };
        let tiles = tiles.start..full;
        let width = p.kernel[1];
        let rows = inside(y * p.stride[0], p.pads[0], p.kernel[0], p.dilation[0], input.shape.height);
        // Sums go to the output at once, so elements other than floats must be able to end in registers.
        let may_end = E::IS_FLOAT || Ending::new(p.activation).is_all(p.activation);
        let has_width = features::WIDTH_3 && width == 3 || features::WIDTH_5 && width == 5;
        let has_code = has_width && (1..=width).contains(&rows.len());
        if !may_end || !has_code || whole.is_empty() || tiles.is_empty() {
            return None;
        }
        let columns = |x: usize| columns(p, x, input.shape.width);
        let (mut lack_left, mut before) = ([0; BORDER], 0);
        while before < BORDER.min(whole.start) {
            let there = columns(whole.start - 1 - before);
            if there.end != width || there.start > BORDER {
                break;
            }
            lack_left[before] = there.start;
            before += 1;
        }
        let (mut lack_right, mut after) = ([0; BORDER], 0);
        while after < BORDER.min(output.width() - whole.end) {
            let there = columns(whole.end + after);
            if there.start != 0 || there.end + BORDER < width {
                break;
            }
            lack_right[after] = width - there.end;
            after += 1;
        }
        Some(Line { conv, y, tiles, rows, whole: whole.clone(), before, lack_left, after, lack_right })
    }

    /// The panel after the last one.
    #[inline(always)]
    pub fn end_tile(&self) -> usize {
        self.tiles.end
    }

    /// The first pixel.
    #[inline(always)]
    pub fn begin(&self) -> usize {
        self.whole.start - self.before
    }

    /// The pixel after the last one.
    #[inline(always)]
    pub fn end(&self) -> usize {
        self.whole.end + self.after
    }

    /// Makes it.
    ///
    /// # Safety
    /// In [`Job::run`].
    #[inline(always)]
    pub unsafe fn call<S: Simd>(&self) {
        // SAFETY: this is in `Job::run`: `# Safety` of this function.
        unsafe {
            if features::WIDTH_3 && self.conv.p.kernel[1] == 3 {
                match self.rows.len() {
                    1 => S::call(Rows::<_, _, 3, 1>(self)),
                    2 => S::call(Rows::<_, _, 3, 2>(self)),
                    _ => S::call(Rows::<_, _, 3, 3>(self)),
                }
            } else if features::WIDTH_5 {
                match self.rows.len() {
                    1 => S::call(Rows::<_, _, 5, 1>(self)),
                    2 => S::call(Rows::<_, _, 5, 2>(self)),
                    3 => S::call(Rows::<_, _, 5, 3>(self)),
                    4 => S::call(Rows::<_, _, 5, 4>(self)),
                    _ => S::call(Rows::<_, _, 5, 5>(self)),
                }
            }
        }
    }
}

/// A line for filters that are `K` wide and have `H` rows within the input.
struct Rows<'r, 'l, 'a, E, W, const K: usize, const H: usize>(&'r Line<'l, 'a, E, W>);

impl<E: Element, W: Weight, const K: usize, const H: usize> Job for Rows<'_, '_, '_, E, W, K, H> {
    #[inline(always)]
    fn run<S: Simd>(self) {
        let line = self.0;
        let Depthwise { p, panels, input, weights, output, .. } = line.conv;
        let shape = &input.shape;
        let first = line.tiles.start * PANEL;
        let channels = (line.tiles.end * PANEL).min(p.filters).saturating_sub(first);
        let weights = &weights[first * panels.channel_len()..][..panels.reach(channels)];
        let mut rows = [core::ptr::null(); H];
        for (i, row) in rows.iter_mut().enumerate() {
            let y = line.y * p.stride[0] + (line.rows.start + i) * p.dilation[0] - p.pads[0];
            let elements = &input.row(y)[..shape.width * shape.channels];
            // Column 0 of a window lies this far before its pixel.
            *row = elements.as_ptr().wrapping_add(first).wrapping_sub(p.pads[1] * shape.channels);
        }
        let (begin_at, count) = (line.begin(), line.end() - line.begin());
        let between = output.pixel_stride();
        let start = output.pixel(output.start(line.y), begin_at) + first;
        let ending = Ending::new(p.activation);
        // SAFETY: this is in `Job::run`. The output's elements are there, as `pointer` asserts, and no one else uses
        // them: `# Safety` of `conv_shared`. Vectors are of channels that have panels; a narrow panel, which is the
        // last one, may be read as far as `Panels::reach` says. Taps are within the input's rows, since `Line::of` has
        // taken them from `columns` and `inside`.
        unsafe {
            let out = output.pointer(start, (count - 1) * between + channels);
            for channel in (0..channels).step_by(S::LANES) {
                let lanes = lanes::<S, W>(weights, panels, channels, channel);
                let mut w = [[S::splat(0.0); K]; H];
                for (r, row) in w.iter_mut().enumerate() {
                    for (c, w) in row.iter_mut().enumerate() {
                        *w = W::load::<S>(lanes.at((line.rows.start + r) * K + c));
                    }
                }
                let mut rows_of = rows;
                for row in &mut rows_of {
                    *row = row.wrapping_add(channel);
                }
                let vector = Vector::<S, E, W, K, H> {
                    w,
                    lanes: [lanes],
                    begin: begin::<S, 1, W>(&[lanes]),
                    slopes: ending.slopes::<S, 1, W>(&[lanes], panels.steps),
                    ending,
                    rows: rows_of,
                    out: out.wrapping_sub(begin_at * between).wrapping_add(channel),
                    step: p.dilation[1] * shape.channels,
                    advance: p.stride[1] * shape.channels,
                    between,
                    count: S::LANES.min(channels - channel),
                };
                if !E::IS_FLOAT || vector.count == S::LANES {
                    vector.all::<false>(line);
                } else {
                    vector.all::<true>(line);
                }
            }
            if E::IS_FLOAT && !ending.is_all(p.activation) {
                activate::<S, E>(output, start, [count, between, channels], p.activation);
            }
        }
    }
}

/// A vector of channels, with the weights of its filters.
struct Vector<S: Simd, E, W, const K: usize, const H: usize> {
    w: [[S::V; K]; H],
    lanes: [Lanes<W>; 1],
    begin: [S::V; 1],
    slopes: [S::V; 1],
    ending: Ending,
    /// Column 0 of the windows of pixel 0, of each row; outside the input if it is padded.
    rows: [*const E; H],
    /// Pixel 0.
    out: *mut E,
    /// Elements from tap to tap, and from pixel to pixel, of input and output.
    step: usize,
    advance: usize,
    between: usize,
    /// Channels, fewer than the vector has only if it is a `PART`.
    count: usize,
}

impl<S: Simd, E: Element, W: Weight, const K: usize, const H: usize> Vector<S, E, W, K, H> {
    /// Makes all pixels of the line.
    ///
    /// # Safety
    /// In [`Job::run`]; this is a vector of channels of that line, and its rows and outputs are the line's.
    #[inline(always)]
    unsafe fn all<const PART: bool>(&self, line: &Line<'_, '_, E, W>) {
        // SAFETY: this is in `Job::run`: `# Safety` of this function. These are the pixels of the line, each with the
        // columns that its window lacks.
        unsafe {
            for i in 0..line.before {
                let x = line.whole.start - 1 - i;
                match line.lack_left[i] {
                    1 => self.pixels::<1, 0, 1, PART>(x),
                    _ => self.pixels::<2, 0, 1, PART>(x),
                }
            }
            let mut x = line.whole.start;
            if !PART {
                while x + 4 <= line.whole.end {
                    self.pixels::<0, 0, 4, PART>(x);
                    x += 4;
                }
            }
            while x < line.whole.end {
                self.pixels::<0, 0, 1, PART>(x);
                x += 1;
            }
            for i in 0..line.after {
                match line.lack_right[i] {
                    1 => self.pixels::<0, 1, 1, PART>(x + i),
                    _ => self.pixels::<0, 2, 1, PART>(x + i),
                }
            }
        }
    }

    /// Makes `M` pixels from `x` on, whose windows lack `LEFT` columns on the left and `RIGHT` columns on the right.
    ///
    /// # Safety
    /// As [`Vector::all`]; the pixels are of its line, and their windows lack no other columns.
    #[inline(always)]
    unsafe fn pixels<const LEFT: usize, const RIGHT: usize, const M: usize, const PART: bool>(
        &self,
        x: usize,
    ) {
        // SAFETY: this is in `Job::run`, all other columns are within the input's rows, and the pixels are the line's:
        // `# Safety` of this function.
        unsafe {
            let mut sums = [self.begin; M];
            for r in 0..H {
                let row = self.rows[r].wrapping_add(x * self.advance);
                for c in LEFT..K - RIGHT {
                    for (i, sums) in sums.iter_mut().enumerate() {
                        let at = row.wrapping_add(i * self.advance + c * self.step);
                        let x = if PART { E::load_masked::<S>(at, self.count) } else { E::load::<S>(at) };
                        sums[0] = S::mul_add(x, self.w[r][c], sums[0]);
                    }
                }
            }
            W::end::<S, M, 1>(&self.lanes, &mut sums);
            let count = if PART { self.count } else { S::LANES };
            for (i, sums) in sums.iter().enumerate() {
                let out = self.out.wrapping_add((x + i) * self.between);
                finish::<S, 1, E>(sums, self.ending, &self.slopes, out, count);
            }
        }
    }
}
