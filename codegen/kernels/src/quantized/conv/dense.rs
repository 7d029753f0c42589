//! Convolution as a matrix product. The windows of a block of pixels are gathered in a buffer on the stack. If the
//! instruction set multiplies bytes, they stay bytes; otherwise they are widened. If windows are single pixels and bytes stay
//! as they are, they need not be gathered, and are read where they lie. The micro-kernel multiplies the windows by panel after
//! panel.
//!
//! A sum is exact, so it does not matter into which tiles, blocks and parts it is divided.

use core::mem::MaybeUninit;
use core::ops::Range;

use super::super::super::arch::{PANEL, SMALL_STACK};
use super::super::super::conv::Conv;
use super::super::super::features;
use super::super::super::rows::{RowShape, Rows};
use super::super::super::shared::SharedRows;
use super::super::integers::{Integers, Work};
use super::super::pre::CHUNK;
use super::super::tiles::{MAX_TILE, Tiles, max_pixels};
use super::parameters::QConv;

/// Bytes of the room: at most half of the nearest cache.
const ROOM: usize = if SMALL_STACK { 5 * 512 } else { 16 * 1024 };
/// The most pixels of a block: a multiple of those of every tile.
const MAX_PIXELS: usize = if SMALL_STACK { 24 } else { 96 };
/// The most panels whose sums wait for the rest of their windows.
const WAITING: usize = if SMALL_STACK { 1 } else { 8 };
/// Bytes of weights that should stay in a cache while the kernel goes over all pixels.
const CACHE_BYTES: usize = 256 * 1024;

/// The convolution's rows `y` and panels `tiles`.
pub(super) struct Dense<'a> {
    pub q: &'a QConv,
    pub y: Range<usize>,
    pub tiles: Range<usize>,
    /// The image, or parts of it.
    pub parts: &'a [Rows<'a, u8>],
    pub packed: &'a [u8],
    pub output: SharedRows<'a, u8>,
}

impl Work for Dense<'_> {
    #[inline(always)]
    fn run<S: Integers>(self) {
        let mut room = [const { MaybeUninit::<u8>::uninit() }; ROOM];
        let mut accumulators = [const { MaybeUninit::<i32>::uninit() }; MAX_TILE * WAITING * PANEL];
        let mut outputs = [core::ptr::null_mut(); MAX_PIXELS];
        let panels = self.q.panels();
        let (per_group, steps) = (panels.per_group(), panels.stored_steps());
        let all = self.y.len() * self.output.width();
        // As many tiles of whole windows as there is room for. If there is no room for one, a tile of parts of windows.
        let numbers = ROOM / S::SIZE;
        let fit = (numbers / steps / S::TILE).min(MAX_PIXELS / S::TILE);
        let span = if fit > 0 { steps } else { numbers / S::TILE / 4 * 4 };
        let near = (CACHE_BYTES / (PANEL * panels.channel_bytes())).max(WAITING.div_ceil(2));
        let tiles = all.div_ceil(S::TILE);
        let blocks = tiles.div_ceil(fit.max(1));
        let mut next = self.tiles.start;
        while next < self.tiles.end {
            let group = next / per_group;
            let run = next..self.tiles.end.min((group + 1) * per_group).min(next + near);
            next = run.end;
            for block in 0..blocks {
                let [from, to] = [block, block + 1].map(|block| all.min(tiles * block / blocks * S::TILE));
                let (dense, room) = (&self, room.as_mut_ptr().cast());
                let mut block = Block { dense, group, count: to - from, span, room, outputs: &mut outputs };
                let segments = Segments { dense, next: from, end: to };
                // SAFETY: this is in `Work::run`. There is room for a span of all pixels; if these are parts of
                // windows, then of a tile of pixels, and no more panels go together than may wait. No one else uses
                // these elements of the output: `# Safety` of `make`, which alone makes a `Dense`.
                unsafe {
                    block.places(segments.clone());
                    if let Some(pixels) = dense.as_they_lie::<S>(segments.clone(), group) {
                        block.make::<S>(run.clone(), 0..steps, pixels, None);
                        continue;
                    }
                    let gathered = (block.room.cast_const(), span);
                    // Whole windows serve all panels, parts of windows those whose sums may wait.
                    let (waiting, accumulators) = match fit {
                        1.. => (run.len(), None),
                        0 => (WAITING, Some(accumulators.as_mut_ptr().cast())),
                    };
                    for start in run.clone().step_by(waiting) {
                        let part = start..run.end.min(start + waiting);
                        for from in (0..steps).step_by(span) {
                            let span = from..steps.min(from + span);
                            block.gather::<S>(segments.clone(), span.clone());
                            block.make::<S>(part.clone(), span, gathered, accumulators);
                        }
                    }
                }
            }
        }
    }
}

impl Dense<'_> {
    /// The first step of these pixels, and the distance to the next pixel's, if they can be read where they lie. That
    /// is possible if windows are single pixels in one piece.
    #[inline(always)]
    fn as_they_lie<S: Integers>(
        &self,
        mut segments: Segments<'_, '_>,
        group: usize,
    ) -> Option<(*const u8, usize)> {
        let &Dense { q, parts: &[input], .. } = self else { return None };
        let Conv { channels, kernel, stride, pads, groups, .. } = q.conv;
        let steps = channels / groups;
        let is_pixel = (kernel, stride, pads) == ([1, 1], [1, 1], [0; 4]) && q.pre.is_none();
        if S::SIZE > 1 || !is_pixel || !steps.is_multiple_of(2) {
            return None;
        }
        let between = input.shape.channels;
        let (y, x) = segments.next()?;
        let row = input.row(y);
        let first = row[x.start * between + group * steps..].as_ptr();
        let is_next = |(below, _): (usize, _)| {
            input.row(below).as_ptr() == row.as_ptr().wrapping_add((below - y) * input.shape.width * between)
        };
        segments.all(is_next).then_some((first, between))
    }
}

/// Pixels of a block, row by row: their row and columns.
#[derive(Clone)]
struct Segments<'b, 'a> {
    dense: &'b Dense<'a>,
    /// Counted from the first pixel of the firing on.
    next: usize,
    end: usize,
}

impl Iterator for Segments<'_, '_> {
    type Item = (usize, Range<usize>);

    #[inline(always)]
    fn next(&mut self) -> Option<Self::Item> {
        let width = self.dense.output.width();
        let (y, x) = (self.next / width, self.next % width);
        let columns = x..width.min(x + (self.end - self.next));
        self.next += columns.len();
        (!columns.is_empty()).then_some((self.dense.y.start + y, columns))
    }
}

/// Pixels whose windows, or parts of them, are in the room at the same time.
struct Block<'b, 'a> {
    dense: &'b Dense<'a>,
    group: usize,
    /// How many there are.
    count: usize,
    /// Numbers from one pixel to the next.
    span: usize,
    room: *mut u8,
    /// For each pixel, where the first output channel of the group goes.
    outputs: &'b mut [*mut u8; MAX_PIXELS],
}

impl Block<'_, '_> {
    /// Says where the pixels go.
    #[inline(always)]
    fn places(&mut self, segments: Segments<'_, '_>) {
        let Dense { q, ref output, .. } = *self.dense;
        let filters = q.conv.filters;
        // This is more than the number of filters, if these are some of a layer's.
        let between = output.pixel_stride();
        let mut places = self.outputs.iter_mut();
        for (y, columns) in segments {
            let start = output.pixel(output.start(y), columns.start);
            let first = self.group * (filters / q.conv.groups);
            let reach = (columns.len() - 1) * between + filters;
            let all = output.pointer(start, reach).wrapping_add(first);
            for (i, place) in places.by_ref().take(columns.len()).enumerate() {
                *place = all.wrapping_add(i * between);
            }
        }
    }

    /// Gathers these steps of the window of each pixel. Elements beyond the image are the zero point. The step after
    /// the last one, whose weights are 0, is some number.
    ///
    /// # Safety
    /// In [`Work::run`]; there is room for them.
    #[inline(always)]
    unsafe fn gather<S: Integers>(&mut self, segments: Segments<'_, '_>, steps: Range<usize>) {
        let Dense { q, parts, .. } = self.dense;
        let Conv { kernel, stride, dilation, pads, .. } = q.conv;
        let channels = q.conv.channels / q.conv.groups;
        let columns = kernel[1] * channels;
        let mut to = self.room;
        for (y, x) in segments {
            let count = x.len();
            for ky in 0..kernel[0] {
                let line = Line { block: self, ky, x: x.clone(), steps: &steps, to };
                if ky * columns >= steps.end || (ky + 1) * columns <= steps.start {
                    continue;
                }
                let iy = (y * stride[0] + ky * dilation[0]).wrapping_sub(pads[0]);
                // SAFETY: this is in `Work::run`, and there is room for the steps of all pixels: `# Safety` of this
                // function.
                unsafe {
                    if iy >= parts[0].shape.height {
                        line.put::<S>(0..count, 0, columns, None);
                        continue;
                    }
                    let mut first = 0;
                    for part in *parts {
                        line.gather::<S>(part.row(iy), part.shape, first);
                        first += part.shape.channels;
                    }
                }
            }
            let last = kernel[0] * columns;
            if steps.end > last {
                for i in 0..count {
                    // SAFETY: a pixel has `span` elements of room, and this is the step after the last: `# Safety` of
                    // this function.
                    unsafe { S::fill(to.add((i * self.span + last - steps.start) * S::SIZE), 1, 0) }
                }
            }
            to = to.wrapping_add(count * self.span * S::SIZE);
        }
    }

    /// Makes these panels of all pixels from these steps. The arguments say where the steps of the first pixel are, and
    /// how many numbers further those of the next pixel are. Before the last step, sums wait.
    ///
    /// # Safety
    /// In [`Work::run`]; the steps are there; and if they are not all, those before them have been made, and there is
    /// room for the sums of these panels.
    #[inline(always)]
    unsafe fn make<S: Integers>(
        &self,
        run: Range<usize>,
        steps: Range<usize>,
        (pixels, span): (*const u8, usize),
        accumulators: Option<*mut i32>,
    ) {
        let Dense { q, packed, .. } = *self.dense;
        let panels = q.panels();
        let between = span * S::SIZE;
        let mut additions = [0; MAX_PIXELS];
        if q.has_offset {
            // Σ (w + o) q is Σ w q + o Σ q. The last sum is the same for all output channels, so it is made once for a
            // pixel.
            let steps = steps.len().min(panels.steps - steps.start);
            let windows = additions[..self.count].iter_mut().enumerate();
            let offset = q.offset(packed);
            for (i, addition) in windows {
                // SAFETY: these steps of all pixels are there: `# Safety` of this function.
                let sum = unsafe { sum_of_steps::<S>(pixels.wrapping_add(i * between), steps) };
                *addition = offset.wrapping_mul(sum);
            }
        }
        let additions = q.has_offset.then_some(additions.as_slice());
        let offsets = core::array::from_fn(|i| i * between);
        let mut next = run.start;
        while next < run.end {
            let together = match run.end - next {
                4.. if S::PANELS_PER_STEP == 4 => 4,
                2.. if S::PANELS_PER_STEP == 4 => 2,
                _ => 1,
            };
            let within = next % panels.per_group() * PANEL;
            let accumulators = accumulators.map_or(core::ptr::null_mut(), |accumulators| {
                accumulators.wrapping_add((next - run.start) * MAX_TILE * PANEL)
            });
            next += together;
            // The sizes of tiles differ by one at most, since small tiles leave the processor waiting for sums.
            let tiles = self.count.div_ceil(max_pixels::<S>(together));
            let (size, larger) = (self.count / tiles, self.count % tiles);
            let work = Tiles {
                count: larger,
                panels: &panels,
                packed,
                first: self.group * panels.filters + within,
                lanes: (panels.filters - within).min(together * PANEL),
                pixels,
                offsets: &offsets,
                tile: (size + 1) * between,
                steps: &steps,
                is_last: steps.end == panels.stored_steps(),
                accumulators,
                requantize: q.requantize,
                additions,
                outputs: self.outputs.as_ptr(),
                within,
            };
            // SAFETY: this is in `Work::run`, the steps of all pixels are there, and the sums of these panels if they
            // are not all: `# Safety` of this function. `places` has said where `count` pixels go.
            unsafe {
                if larger > 0 {
                    work.call::<S>(together, size + 1);
                }
                let made = larger * (size + 1);
                let pixels = work.pixels.wrapping_add(larger * work.tile);
                let outputs = work.outputs.wrapping_add(made);
                let accumulators = work.accumulators.wrapping_add(made * together * PANEL);
                let (count, additions) = (tiles - larger, work.additions.map(|additions| &additions[made..]));
                Tiles { count, pixels, outputs, accumulators, additions, tile: size * between, ..work }
                    .call::<S>(together, size);
            }
        }
    }
}

/// The sum of so many gathered elements of a pixel.
///
/// # Safety
/// There are as many elements.
#[inline(always)]
unsafe fn sum_of_steps<S: Integers>(pixel: *const u8, steps: usize) -> i32 {
    // SAFETY: `pixel` has `steps` elements, of which this is one: `# Safety` of this function.
    let element = |step: usize| unsafe {
        match S::SIZE {
            1 => i32::from(pixel.add(step).read()),
            _ => i32::from(pixel.add(step * S::SIZE).cast::<i16>().read_unaligned()),
        }
    };
    (0..steps).map(element).sum()
}

/// A row of the filter, for the pixels of a segment.
struct Line<'l, 'b, 'a> {
    block: &'l Block<'b, 'a>,
    ky: usize,
    /// Columns of the pixels.
    x: Range<usize>,
    /// Steps that are wanted.
    steps: &'l Range<usize>,
    /// Where those of the first pixel go.
    to: *mut u8,
}

impl Line<'_, '_, '_> {
    /// Gathers the pixels' windows of this row of the image, or of a part of it whose channels are those from `first` on.
    ///
    /// # Safety
    /// As [`Block::gather`], for the pixels of the line.
    #[inline(always)]
    unsafe fn gather<S: Integers>(&self, row: &[u8], shape: RowShape, first: usize) {
        let Dense { q, .. } = self.block.dense;
        let Conv { kernel, stride, dilation, pads, .. } = q.conv;
        let width = shape.width;
        // Of all parts, and of this one.
        let all = q.conv.channels / q.conv.groups;
        let channels = all.min(shape.channels);
        let offset = self.block.group * channels;
        let between = stride[1] * shape.channels;
        let (lie_on_end, wide) = match kernel[1] {
            1 => (true, channels),
            taps => (dilation[1] == 1 && shape.channels == all, taps * channels),
        };
        // The pixels whose windows lie within the columns.
        let reach = (kernel[1] - 1) * dilation[1];
        let left = |x: usize| (x * stride[1]).wrapping_sub(pads[1]);
        let whole = match lie_on_end {
            true => {
                let first = pads[1].div_ceil(stride[1]).clamp(self.x.start, self.x.end);
                let end = (width + pads[1]).saturating_sub(reach).div_ceil(stride[1]);
                first..end.clamp(first, self.x.end)
            }
            false => self.x.start..self.x.start,
        };
        // SAFETY: this is in `Work::run`, and there is room for the steps of these pixels: `# Safety` of this function.
        // The elements are slices of the row, which have as many.
        unsafe {
            if !whole.is_empty() {
                let last = (whole.len() - 1) * between + wide;
                let elements = &row[left(whole.start) * shape.channels + offset..][..last];
                let at = whole.start - self.x.start..whole.end - self.x.start;
                self.put::<S>(at, first, wide, Some((elements, between)));
            }
            for x in self.x.clone().filter(|x| !whole.contains(x)) {
                let at = x - self.x.start;
                for kx in 0..kernel[1] {
                    let ix = left(x).wrapping_add(kx * dilation[1]);
                    let elements =
                        (ix < width).then(|| (&row[ix * shape.channels + offset..][..channels], between));
                    self.put::<S>(at..at + 1, kx * all + first, channels, elements);
                }
            }
        }
    }

    /// For each of these pixels, writes `count` steps from `first` of the line on, as far as they are wanted: elements, which
    /// lie so far apart from pixel to pixel, or zero points.
    /// # Safety
    /// As [`Block::gather`]; each pixel has `count` elements, if there are any.
    /// As [`Block::gather`]; there are as many elements.
    #[inline(always)]
    unsafe fn put<S: Integers>(
        &self,
        pixels: Range<usize>,
        first: usize,
        count: usize,
        elements: Option<(&[u8], usize)>,
    ) {
        let q = self.block.dense.q;
        let step = self.ky * q.conv.kernel[1] * (q.conv.channels / q.conv.groups) + first;
        let (from, end) = (step.max(self.steps.start), (step + count).min(self.steps.end));
        if from >= end {
            return;
        }
        let (span, count) = (self.block.span, end - from);
        let to = self.to.wrapping_add((pixels.start * span + (from - self.steps.start)) * S::SIZE);
        // SAFETY: this is in `Work::run`, and there is room for the steps of these pixels: `# Safety` of this function.
        // Each has `count` elements, of which those that are wanted are read.
        unsafe {
            match (elements, &q.pre) {
                (Some((elements, between)), Some(pre)) if features::PROLOGUES => {
                    let channels = q.conv.channels;
                    let beside = &self.block.dense.packed[q.panels().len()..][..pre.len(channels)];
                    let mut made = [0; CHUNK];
                    for i in 0..pixels.len() {
                        let pixel = &elements[i * between + (from - step)..][..count];
                        let mut at = 0;
                        while at < count {
                            let channel = (from + at) % channels;
                            let some = CHUNK.min(count - at).min(channels - channel);
                            pre.apply(&pixel[at..at + some], channel, beside, &mut made);
                            let to = to.add((i * span + at) * S::SIZE);
                            S::gather((made.as_ptr(), 0), (to, 0), [1, some]);
                            at += some;
                        }
                    }
                }
                (Some((elements, between)), _) => {
                    let from = elements.as_ptr().wrapping_add(from - step);
                    let shape = match between == count && span == count {
                        true => [1, pixels.len() * count],
                        false => [pixels.len(), count],
                    };
                    S::gather((from, between), (to, span), shape);
                }
                (None, _) => {
                    for i in 0..pixels.len() {
                        S::fill(to.add(i * span * S::SIZE), count, q.zero_point);
                    }
                }
            }
        }
    }
}
