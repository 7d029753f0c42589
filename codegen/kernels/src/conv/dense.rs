//! Convolution as a matrix product. The left matrix, with a pixel's window in each row, is never made: the micro-kernel
//! reads the input pixels where they lie.
#![allow(unsafe_code, reason = "vector instructions; each block says why it is sound")]

use core::mem::MaybeUninit;
use core::ops::Range;

use super::super::arch::{Job, Simd};
use super::super::element::Element;
use super::super::features;
use super::super::half::F16;
use super::super::indirect::{InPlace, Load, Sums, Table};
use super::super::panel::Panels;
use super::super::rows::Rows;
use super::super::shared::SharedRows;
use super::super::tile::Ahead;
use super::super::weight::Weight;
use super::parameters::{Conv, inside};
use super::pre::{BLOCK, Loaded, Prologue};
use super::window::{Parts, PixelTile, Window};

/// The convolution's rows `y` and panels `tiles`.
pub(super) struct Dense<'a, E, W> {
    pub p: &'a Conv,
    pub panels: Panels,
    pub y: Range<usize>,
    pub tiles: Range<usize>,
    /// The image, or the parts that hold its channels.
    pub parts: &'a [Rows<'a, E>],
    /// The tensor that is added to the sums.
    pub residual: Option<Rows<'a, E>>,
    /// The prologue, applied to the input as it is loaded.
    pub prologue: Option<Prologue<'a, E>>,
    pub weights: &'a [W],
    pub output: SharedRows<'a, E>,
}

impl<E: Pixels, W: Weight> Job for Dense<'_, E, W> {
    #[inline(always)]
    fn run<S: Simd>(self) {
        // SAFETY: this is in `Job::run`, as `with_parts` asks.
        unsafe {
            if features::PARTS && self.parts.len() > 1 {
                self.with_parts::<S, true>();
            } else {
                self.with_parts::<S, false>();
            }
        }
    }
}

/// Elements as a convolution takes its pixels.
pub(super) trait Pixels: Element {
    /// Makes everything from pixels without a prologue.
    ///
    /// # Safety
    /// In [`Job::run`].
    unsafe fn as_they_are<S: Simd, W: Weight, const PARTS: bool>(dense: Dense<'_, Self, W>);
}

impl Pixels for f32 {
    #[inline(always)]
    unsafe fn as_they_are<S: Simd, W: Weight, const PARTS: bool>(dense: Dense<'_, f32, W>) {
        if PARTS {
            // SAFETY: this is in `Job::run`: `# Safety` of `Pixels::as_they_are`.
            unsafe { S::call(WithoutPrologue(dense)) }
        } else {
            dense.make::<S, _, false>(&mut InPlace);
        }
    }
}

/// Halves are widened once for all output channels.
impl Pixels for F16 {
    #[inline(always)]
    unsafe fn as_they_are<S: Simd, W: Weight, const PARTS: bool>(dense: Dense<'_, F16, W>) {
        // SAFETY: this is in `Job::run`: `# Safety` of `Pixels::as_they_are`.
        unsafe { S::call(WithPrologue::<_, _, PARTS>(dense, Prologue::NONE)) }
    }
}

/// The same for an image in several parts.
struct WithoutPrologue<'a, W>(Dense<'a, f32, W>);

impl<W: Weight> Job for WithoutPrologue<'_, W> {
    #[inline(always)]
    fn run<S: Simd>(self) {
        self.0.make::<S, _, true>(&mut InPlace);
    }
}

/// The same for pixels that are first copied into a block, with the prologue applied. It is a function of its own, so
/// that no other function has the block on its stack.
struct WithPrologue<'a, E, W, const PARTS: bool>(Dense<'a, E, W>, Prologue<'a, E>);

impl<E: Pixels, W: Weight, const PARTS: bool> Job for WithPrologue<'_, E, W, PARTS> {
    #[inline(always)]
    fn run<S: Simd>(self) {
        let WithPrologue(dense, prologue) = self;
        let mut block = [const { MaybeUninit::uninit() }; BLOCK];
        let channels = dense.p.channels / dense.p.groups;
        dense.make::<S, _, PARTS>(&mut Loaded::new(prologue, channels, &mut block));
    }
}

impl<E: Pixels, W: Weight> Dense<'_, E, W> {
    /// Makes all outputs, from one image or, with `PARTS`, from an image in several parts.
    ///
    /// # Safety
    /// In [`Job::run`].
    #[inline(always)]
    unsafe fn with_parts<S: Simd, const PARTS: bool>(self) {
        // SAFETY: this is in `Job::run`: `# Safety` of this function.
        unsafe {
            if features::PROLOGUES
                && let Some(prologue) = self.prologue
            {
                S::call(WithPrologue::<_, _, PARTS>(self, prologue));
            } else {
                E::as_they_are::<S, W, PARTS>(self);
            }
        }
    }

    /// Makes everything from elements that the micro-kernel gets by `load`, of one image or several `PARTS`.
    #[inline(always)]
    fn make<S: Simd, L: Load<E>, const PARTS: bool>(&self, load: &mut L) {
        let Dense { p, panels, parts, weights, output, .. } = *self;
        let is_plain = self.prologue.is_none();
        let sums = Sums { panels, weights, activation: p.activation, output };
        let mut table = Table::new();
        let pixels = self.y.len() * output.width();
        for run in sums.runs::<S>(self.tiles.clone(), pixels) {
            let group = run.start / sums.panels.per_group();
            // The weights of the next run lie after those of a run.
            table.ahead = Ahead { tile: 0, distance: run.len() * panels.stride() };
            self.tiles::<S>(|y, x, count, taps| {
                let pixels = PixelTile::new(output.width(), [y, x], count);
                table.start();
                for piece in pixels.pieces() {
                    let start = output.start(y + piece.below);
                    table.add_pixels(piece.count, output.pixel(start, piece.x), output.pixel_stride());
                    if let Some(residual) = self.residual {
                        let pixel_stride = residual.shape.channels;
                        let start = residual.shape.start(y + piece.below) + piece.x * pixel_stride;
                        // In a slice of the channels, the last pixel has only the channels of the slice.
                        let elements =
                            residual.data.slice(start, (piece.count - 1) * pixel_stride + p.filters);
                        table.add_residuals(piece.pixels(), elements, pixel_stride, p.filters);
                    }
                }
                // SAFETY: this is in `Job::run`. Spans are parts of a window, of which a panel has all steps, and
                // residuals have been added for all pixels or for none. No one else uses these elements of the output:
                // `# Safety` of `conv_shared`, which makes all `Dense`.
                unsafe {
                    if PARTS {
                        let parts = Parts::new(p, parts, is_plain, &pixels, taps);
                        sums.make::<S, _>(&run, &mut table, &parts, load);
                    } else {
                        let window = Window::new(p, &parts[0], is_plain, group, &pixels, taps);
                        sums.make::<S, _>(&run, &mut table, &window, load);
                    }
                }
                table.ahead.tile += 1;
            });
        }
    }

    /// Calls `f` with the first row and column, the number of pixels, and the rows of the filter that lie within the
    /// input of each tile. Rows with the same rows of the filter form one tile.
    #[inline(always)]
    fn tiles<S: Simd>(&self, mut f: impl FnMut(usize, usize, usize, Range<usize>)) {
        let Dense { p, y, parts, output, .. } = self;
        let height = parts[0].shape.height;
        let taps = |y: usize| inside(y * p.stride[0], p.pads[0], p.kernel[0], p.dilation[0], height);
        let width = output.width();
        let mut row = y.start;
        while row < y.end {
            let here = taps(row);
            let mut end = row + 1;
            while end < y.end && taps(end) == here {
                end += 1;
            }
            let pixels = (end - row) * width;
            let tiles = pixels.div_ceil(S::PIXELS);
            // The first tiles have one pixel more than the rest.
            let (each, more) = (pixels / tiles, pixels % tiles);
            let (mut y, mut x) = (row, 0);
            for tile in 0..tiles {
                let count = each + usize::from(tile < more);
                f(y, x, count, here.clone());
                x += count;
                while x >= width {
                    (y, x) = (y + 1, x - width);
                }
            }
            row = end;
        }
    }
}
