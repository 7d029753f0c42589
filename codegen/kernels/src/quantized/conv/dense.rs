//! Convolution as a matrix product: the micro-kernel multiplies the windows of a block of pixels by panel after panel. It reads
//! them
//! - where they lie, if they are single pixels and elements stay bytes;
//! - from lines of the image in a buffer on the stack, with what lies beyond the image, if a line of a window is long enough.
//!   Windows share these elements;
//! - else from that buffer, where each window is gathered.
//!
//! If the instruction set multiplies bytes, elements in the buffer are bytes; otherwise they are widened.
//!
//! A sum is exact, so it does not matter into which tiles, blocks and parts it is divided.

use core::mem::MaybeUninit;
use core::ops::Range;

use super::super::super::arch::{PANEL, SMALL_STACK};
use super::super::super::conv::Conv;
use super::super::super::features;
use super::super::super::rows::{RowShape, Rows};
use super::super::super::shared::SharedRows;
use super::super::integers::{Integers, Lines, Work};
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

/// The room for gathered elements. Fours of steps, of 2 bytes each, are read as words.
#[repr(align(4))]
struct Room([MaybeUninit<u8>; ROOM]);

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
        let mut room = Room([const { MaybeUninit::uninit() }; ROOM]);
        let mut accumulators = [const { MaybeUninit::<i32>::uninit() }; MAX_TILE * WAITING * PANEL];
        let mut pixels = [const { MaybeUninit::<*const u8>::uninit() }; MAX_PIXELS];
        let mut outputs = [const { MaybeUninit::<*mut u8>::uninit() }; MAX_PIXELS];
        let panels = self.q.panels();
        let (per_group, steps) = (panels.per_group(), panels.stored_steps());
        let (rows, width) = (self.y.len(), self.output.width());
        // As many tiles of whole windows as there is room for. If there is no room for one, a tile of parts of windows.
        let numbers = ROOM / S::SIZE;
        let fit = (numbers / steps / S::TILE).min(MAX_PIXELS / S::TILE);
        let span = if fit > 0 { steps } else { numbers / S::TILE / 4 * 4 };
        let near = (CACHE_BYTES / (PANEL * panels.channel_bytes())).max(WAITING.div_ceil(2));
        let (reads_image, lines) = (self.reads_image::<S>(), self.lines::<S>(numbers));
        let tiles = (rows * width).div_ceil(S::TILE);
        let blocks = match &lines {
            Some(lines) => rows.div_ceil(lines.rows) * lines.pieces,
            None => tiles.div_ceil(fit.max(1)),
        };
        let of_block = |block: usize| match &lines {
            Some(lines) => lines.block(block, rows, width),
            None => {
                let [from, to] = [block, block + 1].map(|b| tiles * b / blocks * S::TILE);
                from..to.min(rows * width)
            }
        };
        let mut next = self.tiles.start;
        while next < self.tiles.end {
            let group = next / per_group;
            let run = next..self.tiles.end.min((group + 1) * per_group).min(next + near);
            next = run.end;
            for block in 0..blocks {
                let (dense, room, Range { start, end }) =
                    (&self, room.0.as_mut_ptr().cast(), of_block(block));
                let (pixels, outputs) = (&mut pixels, &mut outputs);
                let mut block = Block { dense, group, count: end - start, span, room, pixels, outputs };
                let segments = Segments { dense, next: start, end };
                // SAFETY: this is in `Work::run`. There is room for the lines of a block, or for a span of all pixels; if
                // these are parts of windows, then of a tile of pixels, and no more panels go together than may wait. No
                // one else uses these elements of the output: `# Safety` of `make`, which alone makes a `Dense`.
                unsafe {
                    block.places(segments.clone());
                    if reads_image {
                        block.point_at_image(segments);
                        block.make::<S>(run.clone(), 0..steps, Lines::ONE, None);
                        continue;
                    }
                    if lines.is_some() {
                        let lines = block.copy_lines::<S>(segments);
                        block.make::<S>(run.clone(), 0..steps, lines, None);
                        continue;
                    }
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
                            block.make::<S>(part.clone(), span, Lines::ONE, accumulators);
                        }
                    }
                }
            }
        }
    }
}

impl Dense<'_> {
    /// Whether windows can be read where they lie in the image: they are single pixels in one piece.
    #[inline(always)]
    fn reads_image<S: Integers>(&self) -> bool {
        let Conv { channels, kernel, pads, groups, .. } = self.q.conv;
        let is_pixel = (kernel, pads) == ([1, 1], [0; 4]) && self.q.pre.is_none();
        S::SIZE == 1 && is_pixel && self.parts.len() == 1 && (channels / groups).is_multiple_of(2)
    }

    /// Into which blocks the pixels are divided, if so many numbers have room for the lines of the image that a block reads,
    /// and it takes fewer than all windows.
    #[inline(always)]
    fn lines<S: Integers>(&self, numbers: usize) -> Option<LineBlocks> {
        let Conv { channels, kernel, stride, dilation, groups, .. } = self.q.conv;
        let is_one = self.parts.len() == 1 && groups == 1 && dilation == [1; 2] && self.q.pre.is_none();
        let overlap = (0..2).all(|i| stride[i] <= kernel[i]) && kernel != stride;
        // Steps go in fours, and a pixel's begin at a multiple of 4 bytes.
        let is_whole = (kernel[1] * channels).is_multiple_of(4) && (stride[1] * channels).is_multiple_of(2);
        if !(is_one && overlap && is_whole) {
            return None;
        }
        let width = self.output.width();
        let tall = numbers / (((width - 1) * stride[1] + kernel[1]) * channels);
        let rows = (tall + stride[0]).saturating_sub(kernel[0]) / stride[0];
        let rows = rows.min(MAX_PIXELS / width);
        if rows > 0 {
            return Some(LineBlocks { rows, pieces: 1 });
        }
        let columns = (numbers / kernel[0] / channels + stride[1]).saturating_sub(kernel[1]) / stride[1];
        let columns = columns.min(MAX_PIXELS);
        (columns >= S::TILE).then(|| LineBlocks { rows: 1, pieces: width.div_ceil(columns) })
    }
}

/// Blocks of so many rows, or of one of these pieces of a row.
struct LineBlocks {
    rows: usize,
    pieces: usize,
}

impl LineBlocks {
    /// The pixels of a block of an output of `rows` rows.
    fn block(&self, block: usize, rows: usize, width: usize) -> Range<usize> {
        let (group, piece) = (block / self.pieces, block % self.pieces);
        let groups = rows.div_ceil(self.rows);
        let [first, last] = [rows * group / groups, rows * (group + 1) / groups - 1];
        let [from, to] = [piece, piece + 1].map(|piece| width * piece / self.pieces);
        first * width + from..last * width + to
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
    /// Numbers from one gathered pixel to the next.
    span: usize,
    room: *mut u8,
    /// For each pixel, where its steps begin.
    pixels: &'b mut [MaybeUninit<*const u8>; MAX_PIXELS],
    /// For each pixel, where the first output channel of the group goes.
    outputs: &'b mut [MaybeUninit<*mut u8>; MAX_PIXELS],
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
                place.write(all.wrapping_add(i * between));
            }
        }
    }

    /// Says where the pixels lie in the image.
    ///
    /// # Panics
    /// If one is not there.
    #[inline(always)]
    fn point_at_image(&mut self, segments: Segments<'_, '_>) {
        let (q, input) = (self.dense.q, self.dense.parts[0]);
        let Conv { channels, stride, groups, .. } = q.conv;
        let (steps, between) = (channels / groups, stride[1] * input.shape.channels);
        let mut pixels = self.pixels.iter_mut();
        for (y, columns) in segments {
            let first = input.shape.start(y * stride[0]) + columns.start * between + self.group * steps;
            let row = input.data.slice(first, (columns.len() - 1) * between + steps).as_ptr();
            for (i, pixel) in pixels.by_ref().take(columns.len()).enumerate() {
                pixel.write(row.wrapping_add(i * between));
            }
        }
    }

    /// Copies the lines of the image that the windows read. Elements beyond the image are the zero point.
    ///
    /// # Safety
    /// In [`Work::run`]; there is room for them, and the pixels are whole rows or lie in one.
    #[inline(always)]
    unsafe fn copy_lines<S: Integers>(&mut self, segments: Segments<'_, '_>) -> Lines {
        let (q, input) = (self.dense.q, self.dense.parts[0]);
        let Conv { channels, kernel, stride, pads, .. } = q.conv;
        let (mut first, mut last) = (usize::MAX, 0);
        let mut columns = 0..0;
        for (y, x) in segments.clone() {
            (first, last, columns) = (first.min(y), y, x);
        }
        let wide = (columns.len() - 1) * stride[1] + kernel[1];
        let left = columns.start * stride[1];
        let before = pads[1].saturating_sub(left).min(wide);
        let start = left.saturating_sub(pads[1]);
        let within = (wide - before).min(input.shape.width.saturating_sub(start));
        let between = wide * channels;
        for line in 0..(last - first) * stride[0] + kernel[0] {
            let y = (first * stride[0] + line).wrapping_sub(pads[0]);
            let to = |pixel: usize| self.room.wrapping_add((line * between + pixel * channels) * S::SIZE);
            // SAFETY: this is in `Work::run`, and there is room for the lines: `# Safety` of this function.
            unsafe {
                if y >= input.shape.height {
                    S::fill(to(0), between, q.zero_point);
                    continue;
                }
                let elements = &input.row(y)[start * channels..][..within * channels];
                S::fill(to(0), before * channels, q.zero_point);
                S::gather((elements.as_ptr(), 0), (to(before), 0), [1, elements.len()]);
                S::fill(to(before + within), (wide - before - within) * channels, q.zero_point);
            }
        }
        let mut pixels = self.pixels.iter_mut();
        for (y, x) in segments {
            let at = (y - first) * stride[0] * wide + (x.start * stride[1] - left);
            let row = self.room.wrapping_add(at * channels * S::SIZE).cast_const();
            for (i, pixel) in pixels.by_ref().take(x.len()).enumerate() {
                pixel.write(row.wrapping_add(i * stride[1] * channels * S::SIZE));
            }
        }
        Lines { count: kernel[0], between: between * S::SIZE }
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
        for (i, pixel) in self.pixels[..self.count].iter_mut().enumerate() {
            pixel.write(to.wrapping_add(i * self.span * S::SIZE));
        }
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

    /// Makes these panels of all pixels from these steps. Before the last step, sums wait.
    ///
    /// # Safety
    /// In [`Work::run`]; the steps are there; and if they are not all, those before them have been made, and there is
    /// room for the sums of these panels.
    #[inline(always)]
    unsafe fn make<S: Integers>(
        &self,
        run: Range<usize>,
        steps: Range<usize>,
        lines: Lines,
        accumulators: Option<*mut i32>,
    ) {
        let Dense { q, packed, .. } = *self.dense;
        let panels = q.panels();
        let pixels = self.pixels.as_ptr().cast::<*const u8>();
        let mut additions = [0; MAX_PIXELS];
        if q.has_offset {
            // Σ (w + o) q is Σ w q + o Σ q. The last sum is the same for all output channels, so it is made once for a
            // pixel.
            let steps = steps.len().min(panels.steps - steps.start);
            let weight = q.offset(packed);
            for (i, addition) in additions[..self.count].iter_mut().enumerate() {
                // SAFETY: these steps of all pixels are there: `# Safety` of this function.
                let sum = |line| unsafe {
                    let line = pixels.add(i).read().wrapping_add(line * lines.between);
                    sum_of_steps::<S>(line, steps / lines.count)
                };
                *addition = weight.wrapping_mul((0..lines.count).map(sum).sum());
            }
        }
        let additions = q.has_offset.then_some(additions.as_slice());
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
                lines,
                steps: &steps,
                is_last: steps.end == panels.stored_steps(),
                accumulators,
                requantize: q.requantize,
                additions,
                outputs: self.outputs.as_ptr().cast(),
                within,
            };
            // SAFETY: this is in `Work::run`, the steps of all pixels are there, and the sums of these panels if they
            // are not all: `# Safety` of this function. `places` has said where `count` pixels go.
            unsafe {
                if larger > 0 {
                    work.call::<S>(together, size + 1);
                }
                let made = larger * (size + 1);
                let pixels = work.pixels.wrapping_add(made);
                let outputs = work.outputs.wrapping_add(made);
                let accumulators = work.accumulators.wrapping_add(made * together * PANEL);
                let (count, additions) = (tiles - larger, work.additions.map(|additions| &additions[made..]));
                Tiles { count, pixels, outputs, accumulators, additions, ..work }.call::<S>(together, size);
            }
        }
    }
}

/// The sum of so many elements of a pixel.
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
