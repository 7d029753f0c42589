//! Convolution as a matrix product: the windows of some pixels at a time are widened into a room on the stack, and the
//! micro-kernel multiplies them with panel after panel.
//!
//! A sum is exact, so it does not matter into which tiles and spans it is divided.

use core::mem::MaybeUninit;
use core::ops::Range;

use super::super::arch::{Job, PANEL, Simd};
use super::super::conv::Conv;
use super::super::rows::Rows;
use super::super::shared::SharedRows;
use super::Requantise;
use super::conv::QConv;
use super::integers::LANES;
use super::panels::Panel;

/// Numbers that the room holds, 16 KB: half of what is nearest to the core.
const ROOM: usize = 8192;
/// The most pixels of a tile.
const MOST_PIXELS: usize = 6;
/// The most panels whose sums wait for the rest of their windows.
const WAITING: usize = 8;

/// The convolution's rows `y` and panels `tiles`.
pub(super) struct Dense<'a> {
    pub q: &'a QConv,
    pub y: Range<usize>,
    pub tiles: Range<usize>,
    pub input: Rows<'a, u8>,
    pub packed: &'a [u8],
    pub output: SharedRows<'a, u8>,
}

impl Job for Dense<'_> {
    #[inline(always)]
    fn run<S: Simd>(self) {
        let mut room = [const { MaybeUninit::<i16>::uninit() }; ROOM];
        let mut waiting = [const { MaybeUninit::<i32>::uninit() }; MOST_PIXELS * WAITING * PANEL];
        let panels = self.q.panels();
        let steps = panels.stored_steps();
        let all = self.y.len() * self.output.width();
        // As many whole windows as there is room for; if not those of a tile, then parts of them.
        let fit = ROOM / steps / S::TILE * S::TILE;
        let (most, span) = if fit > 0 { (fit, steps) } else { (S::TILE, ROOM / S::TILE / 2 * 2) };
        let blocks = all.div_ceil(most);
        let mut next = self.tiles.start;
        while next < self.tiles.end {
            let group = next / panels.per_group();
            let run = next..self.tiles.end.min((group + 1) * panels.per_group());
            next = run.end;
            for block in 0..blocks {
                let pixels = all * block / blocks..all * (block + 1) / blocks;
                let mut block = Block { dense: &self, group, pixels, span, room: room.as_mut_ptr().cast() };
                // SAFETY: this is within a job of this instruction set. There is room for a span of all pixels; if they are
                // spans of part of a window, no more than a tile of pixels and no more panels at a time than may wait.
                unsafe {
                    if fit > 0 {
                        block.gather::<S>(0..steps);
                        block.make::<S>(run.clone(), 0..steps, None);
                        continue;
                    }
                    let mut run = run.clone();
                    while !run.is_empty() {
                        let part = run.start..run.end.min(run.start + WAITING);
                        for from in (0..steps).step_by(span) {
                            let span = from..steps.min(from + span);
                            block.gather::<S>(span.clone());
                            block.make::<S>(part.clone(), span, Some(waiting.as_mut_ptr().cast()));
                        }
                        run.start = part.end;
                    }
                }
            }
        }
    }
}

/// Pixels whose windows, or parts of them, are in the room at the same time.
struct Block<'b, 'a> {
    dense: &'b Dense<'a>,
    group: usize,
    /// Counted from the first of the firing on.
    pixels: Range<usize>,
    /// Numbers from one pixel to the next.
    span: usize,
    room: *mut i16,
}

impl Block<'_, '_> {
    /// The row and column of a pixel.
    #[inline(always)]
    fn place(&self, pixel: usize) -> (usize, usize) {
        let width = self.dense.output.width();
        (self.dense.y.start + pixel / width, pixel % width)
    }

    /// Widens these steps of the window of each pixel.
    ///
    /// # Safety
    /// In [`Job::run`]; there is room for them.
    #[inline(always)]
    unsafe fn gather<S: Simd>(&mut self, steps: Range<usize>) {
        let (mut y, mut x) = self.place(self.pixels.start);
        for i in 0..self.pixels.len() {
            // SAFETY: the caller's.
            unsafe { self.window::<S>([y, x], &steps, self.room.add(i * self.span)) }
            x += 1;
            if x == self.dense.output.width() {
                (y, x) = (y + 1, 0);
            }
        }
    }

    /// Widens these steps of the window of a pixel. What is beyond the image is 0, as is the step after the last one.
    ///
    /// # Safety
    /// In [`Job::run`]; there is room for them at `to`.
    #[inline(always)]
    unsafe fn window<S: Simd>(&self, [y, x]: [usize; 2], steps: &Range<usize>, to: *mut i16) {
        let Dense { q, input, .. } = self.dense;
        let Conv { kernel, stride, dilation, pads, .. } = q.conv;
        let (shape, zero_point) = (&input.shape, i16::from(q.zero_point));
        let channels = q.conv.channels / q.conv.groups;
        let offset = self.group * channels;
        let columns = kernel[1] * channels;
        let left = (x * stride[1]).wrapping_sub(pads[1]);
        let reach = (kernel[1] - 1) * dilation[1];
        let lie_on_end = dilation[1] == 1 && shape.channels == channels || kernel[1] == 1;
        let is_whole = lie_on_end && left.checked_add(reach).is_some_and(|last| last < shape.width);
        // Writes the elements of the steps from `step` on that are wanted, or zeros.
        let put = |step: usize, count: usize, elements: Option<&[u8]>| {
            let (from, end) = (step.max(steps.start), (step + count).min(steps.end));
            if from >= end {
                return;
            }
            // SAFETY: the caller's; the elements are there.
            unsafe {
                let to = to.add(from - steps.start);
                match elements {
                    Some(elements) => {
                        let elements = &elements[from - step..end - step];
                        S::widen(elements.as_ptr(), elements.len(), zero_point, to);
                    }
                    None => to.write_bytes(0, end - from),
                }
            }
        };
        for ky in 0..kernel[0] {
            let step = ky * columns;
            let iy = (y * stride[0] + ky * dilation[0]).wrapping_sub(pads[0]);
            if iy >= shape.height || step >= steps.end || step + columns <= steps.start {
                put(step, columns, None);
                continue;
            }
            let row = input.row(iy);
            if is_whole {
                put(step, columns, Some(&row[left * shape.channels + offset..][..columns]));
                continue;
            }
            for kx in 0..kernel[1] {
                let ix = left.wrapping_add(kx * dilation[1]);
                let elements = (ix < shape.width).then(|| &row[ix * shape.channels + offset..][..channels]);
                put(step + kx * channels, channels, elements);
            }
        }
        let last = kernel[0] * columns;
        put(last, steps.end.saturating_sub(last), None);
    }

    /// Makes these panels of all pixels from these steps, which the room holds. Before the last step, sums wait.
    ///
    /// # Safety
    /// In [`Job::run`]; the steps have been gathered; and if they are not all, those before them have been made, and there is
    /// room for the sums of these panels.
    #[inline(always)]
    unsafe fn make<S: Simd>(&self, run: Range<usize>, steps: Range<usize>, waiting: Option<*mut i32>) {
        let Dense { q, packed, ref output, .. } = *self.dense;
        let panels = q.panels();
        let is_last = steps.end == panels.stored_steps();
        let count = self.pixels.len();
        let tiles = count.div_ceil(S::TILE);
        for (place, panel) in run.enumerate() {
            let within = panel % panels.per_group() * PANEL;
            let first = self.group * panels.filters + within;
            let panel = Panel::of(&panels, packed, first);
            for tile in 0..tiles {
                let pixels = count * tile / tiles..count * (tile + 1) / tiles;
                let mut outputs = [core::ptr::null_mut(); MOST_PIXELS];
                for (i, to) in outputs.iter_mut().enumerate().take(pixels.len()) {
                    let (y, x) = self.place(self.pixels.start + pixels.start + i);
                    *to = output.pointer(output.pixel(output.start(y), x) + first, panel.width);
                }
                let work = Tile {
                    panel,
                    pixels: self.room.wrapping_add(pixels.start * self.span),
                    span: self.span,
                    steps: &steps,
                    is_last,
                    waiting: waiting.map_or(core::ptr::null_mut(), |waiting| {
                        waiting.wrapping_add(place * MOST_PIXELS * PANEL)
                    }),
                    requantise: q.requantise,
                    outputs: &outputs,
                };
                // SAFETY: the caller's.
                unsafe { work.call::<S>(pixels.len()) }
            }
        }
    }
}

/// Some pixels by the channels of a panel, whose sums are in registers.
#[derive(Clone, Copy)]
struct Tile<'b> {
    panel: Panel<'b>,
    /// The first step of the first pixel, and numbers from one pixel to the next.
    pixels: *const i16,
    span: usize,
    steps: &'b Range<usize>,
    /// Whether no steps follow.
    is_last: bool,
    /// Where the sums wait if they do.
    waiting: *mut i32,
    requantise: Requantise,
    /// Where the elements of each pixel go.
    outputs: &'b [*mut u8; MOST_PIXELS],
}

impl Tile<'_> {
    /// Makes it.
    ///
    /// # Safety
    /// In [`Job::run`]. There are as many pixels, of as many steps, places for their elements, and for sums that wait.
    #[inline(always)]
    unsafe fn call<S: Simd>(self, pixels: usize) {
        // Constant conditions, so that no code is made for the sizes that an instruction set does not take.
        macro_rules! size {
            ($m:literal) => {
                if const { $m <= S::TILE } {
                    // SAFETY: the caller's.
                    unsafe {
                        match self.panel.width > LANES {
                            true => S::call(Sized::<$m, 2>(self)),
                            false => S::call(Sized::<$m, 1>(self)),
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
            _ => {}
        }
    }
}

/// A [`Tile`] of `M` pixels and `N` vectors as a job.
struct Sized<'b, const M: usize, const N: usize>(Tile<'b>);

impl<const M: usize, const N: usize> Job for Sized<'_, M, N> {
    #[inline(always)]
    fn run<S: Simd>(self) {
        let Tile { panel, pixels, span, steps, is_last, waiting, requantise, outputs } = self.0;
        let waiting = waiting.cast::<[[S::Sums; N]; M]>();
        let step = 2 * panel.width;
        // SAFETY: this is within a job of this instruction set; the rest is the caller's. Vectors of a narrow panel reach no
        // further beyond it than `Panels::reach` says.
        unsafe {
            let mut sums = if steps.start == 0 {
                let biases = panel.bytes.as_ptr();
                [core::array::from_fn(|v| S::sums(biases.add(4 * LANES * v))); M]
            } else {
                waiting.read_unaligned()
            };
            let mut weights = panel.weights().as_ptr().add(steps.start / 2 * step);
            for k in (0..steps.len()).step_by(2) {
                let w: [S::Pairs; N] = core::array::from_fn(|v| S::weights(weights.add(2 * LANES * v)));
                for (i, sums) in sums.iter_mut().enumerate() {
                    let x = S::pair(pixels.add(i * span + k));
                    for v in 0..N {
                        sums[v] = S::add_products(sums[v], w[v], x);
                    }
                }
                weights = weights.wrapping_add(step);
            }
            if !is_last {
                return waiting.write_unaligned(sums);
            }
            let scales: [S::Scales; N] =
                core::array::from_fn(|v| S::scales(panel.multipliers().add(4 * LANES * v)));
            for (sums, &out) in sums.iter().zip(outputs) {
                let mut bytes = [0; PANEL];
                let is_whole = panel.width == N * LANES;
                let to = if is_whole { out } else { bytes.as_mut_ptr() };
                match (&sums[..], &scales[..]) {
                    (&[first, second], scales) => {
                        S::requantise_two([first, second], [scales[0], scales[1]], requantise, to);
                    }
                    _ => S::requantise(sums[0], scales[0], requantise, to),
                }
                if !is_whole {
                    out.copy_from_nonoverlapping(bytes.as_ptr(), panel.width);
                }
            }
        }
    }
}
