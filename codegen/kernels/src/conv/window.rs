//! Where the windows of a tile's pixels are read.

use core::ops::Range;

use super::super::indirect::{MOST_PIXELS, PADDED_SPAN, Spans};
use super::super::rows::Rows;
use super::super::shared::SharedRows;
use super::Conv;
use super::dense::Dense;

/// The pixels of a tile.
pub(super) struct Pixels {
    /// First row of the tile.
    y: usize,
    count: usize,
    /// Row within the tile, and column, of each pixel.
    pub at: [(usize, usize); MOST_PIXELS],
    /// Where each output row of the tile begins.
    pub starts: [usize; MOST_PIXELS],
}

impl Pixels {
    /// `count` pixels from this row and column on.
    #[inline(always)]
    pub fn new(output: &SharedRows<'_>, [y, x]: [usize; 2], count: usize) -> Self {
        let width = output.width();
        let (mut at, mut starts) = ([(0, 0); MOST_PIXELS], [0; MOST_PIXELS]);
        let (mut row, mut column) = (0, x);
        starts[0] = output.start(y);
        for at in &mut at[..count] {
            if column == width {
                (row, column) = (row + 1, 0);
                starts[row] = output.start(y + row);
            }
            *at = (row, column);
            column += 1;
        }
        Pixels { y, count, at, starts }
    }

    /// Whether the windows of all lie within the columns of an image.
    #[inline(always)]
    fn are_within(&self, p: &Conv, width: usize) -> bool {
        let reach = (p.kernel[1] - 1) * p.dilation[1];
        self.at[..self.count].iter().all(|&(_, x)| {
            let left = x * p.stride[1];
            left >= p.pads[1] && left - p.pads[1] + reach < width
        })
    }

    /// The elements of an image, from `offset` of a pixel on, that are multiplied at a tap; `None` beyond its columns.
    #[inline(always)]
    fn read<'a>(
        &self,
        p: &Conv,
        image: &Rows<'a>,
        [ky, kx]: [usize; 2],
        offset: usize,
    ) -> impl FnMut(usize) -> Option<&'a [f32]> {
        let shape = image.shape;
        let right = kx * p.dilation[1];
        let (mut last, mut row): (usize, &'a [f32]) = (usize::MAX, &[]);
        move |i| {
            let (below, x) = self.at[i];
            if below != last {
                last = below;
                row = image.row((self.y + below) * p.stride[0] + ky * p.dilation[0] - p.pads[0]);
            }
            let ix = (x * p.stride[1] + right).wrapping_sub(p.pads[1]);
            (ix < shape.width).then(|| &row[ix * shape.pixel_stride + offset..])
        }
    }
}

/// The windows of a tile in one image.
pub(super) struct Window<'w, 'a> {
    p: &'w Conv,
    image: &'w Rows<'a>,
    pixels: &'w Pixels,
    /// Rows of the filter that lie within the input.
    taps: Range<usize>,
    /// Spans of a row of a filter, of a pixel, and their longest.
    spans: [usize; 2],
    longest: usize,
    /// Elements of a row of a filter that lie on end.
    run: usize,
    /// First channel of the group.
    offset: usize,
}

impl<'w, 'a> Window<'w, 'a> {
    #[inline(always)]
    pub fn new(conv: &'w Dense<'a>, group: usize, pixels: &'w Pixels, taps: Range<usize>) -> Self {
        let (p, image) = (conv.p, &conv.parts[0]);
        let shape = &image.shape;
        let channels = p.channels / p.groups;
        let within = pixels.are_within(p, shape.width);
        let as_they_are = conv.before.is_none();
        let on_end = p.kernel[1] == 1 || as_they_are && p.dilation[1] == 1 && shape.pixel_stride == channels;
        // A window's row is one run of elements if its pixels lie on end, and are taken as they are.
        let (columns, run) =
            if within && on_end { (1, p.kernel[1] * channels) } else { (p.kernel[1], channels) };
        let longest = if within && as_they_are { run } else { PADDED_SPAN };
        let offset = shape.channel_offset + group * channels;
        Window { p, image, pixels, taps, spans: [columns, run.div_ceil(longest)], longest, run, offset }
    }
}

impl<'a> Spans<'a> for Window<'_, 'a> {
    #[inline(always)]
    fn len(&self) -> usize {
        self.taps.len() * self.spans[0] * self.spans[1]
    }

    #[inline(always)]
    fn steps(&self, span: usize) -> (usize, usize) {
        let p = self.p;
        let [columns, pieces] = self.spans;
        let (tap, piece) = (span / pieces, span % pieces * self.longest);
        let (ky, kx) = (self.taps.start + tap / columns, tap % columns);
        let step = (ky * p.kernel[1] + kx) * (p.channels / p.groups) + piece;
        (step, self.longest.min(self.run - piece))
    }

    #[inline(always)]
    fn pixels(&self, span: usize) -> impl FnMut(usize) -> Option<&'a [f32]> {
        let [columns, pieces] = self.spans;
        let (tap, piece) = (span / pieces, span % pieces * self.longest);
        let tap = [self.taps.start + tap / columns, tap % columns];
        self.pixels.read(self.p, self.image, tap, self.offset + piece)
    }
}

/// The windows of a tile in several parts of an image: tap by tap, the parts one after the other.
pub(super) struct Parts<'w, 'a> {
    p: &'w Conv,
    parts: &'w [Rows<'a>],
    pixels: &'w Pixels,
    /// Rows of the filter that lie within the input.
    taps: Range<usize>,
    /// Spans of a tap, and their longest.
    spans: usize,
    longest: usize,
}

/// Elements of one part that a pixel is multiplied from.
struct Piece {
    tap: [usize; 2],
    part: usize,
    /// First element among those of the part, and among those of the whole.
    start: usize,
    channel: usize,
    len: usize,
}

impl<'w, 'a> Parts<'w, 'a> {
    #[inline(always)]
    pub fn new(conv: &'w Dense<'a>, pixels: &'w Pixels, taps: Range<usize>) -> Self {
        let (p, parts) = (conv.p, conv.parts);
        let as_they_are = conv.before.is_none() && pixels.are_within(p, parts[0].shape.width);
        let longest = if as_they_are { p.channels } else { PADDED_SPAN };
        let spans = parts.iter().map(|part| part.shape.channels.div_ceil(longest)).sum();
        Parts { p, parts, pixels, taps, spans, longest }
    }

    #[inline(always)]
    fn piece(&self, span: usize) -> Piece {
        let (tap, mut left) = (span / self.spans, span % self.spans);
        let tap = [self.taps.start + tap / self.p.kernel[1], tap % self.p.kernel[1]];
        let (mut part, mut channel) = (0, 0);
        loop {
            let channels = self.parts[part].shape.channels;
            let pieces = channels.div_ceil(self.longest);
            if left < pieces {
                let start = left * self.longest;
                let len = self.longest.min(channels - start);
                return Piece { tap, part, start, channel: channel + start, len };
            }
            left -= pieces;
            channel += channels;
            part += 1;
        }
    }
}

impl<'a> Spans<'a> for Parts<'_, 'a> {
    #[inline(always)]
    fn len(&self) -> usize {
        self.taps.len() * self.p.kernel[1] * self.spans
    }

    #[inline(always)]
    fn steps(&self, span: usize) -> (usize, usize) {
        let Piece { tap: [ky, kx], channel, len, .. } = self.piece(span);
        ((ky * self.p.kernel[1] + kx) * self.p.channels + channel, len)
    }

    #[inline(always)]
    fn pixels(&self, span: usize) -> impl FnMut(usize) -> Option<&'a [f32]> {
        let Piece { tap, part, start, .. } = self.piece(span);
        let part = &self.parts[part];
        self.pixels.read(self.p, part, tap, part.shape.channel_offset + start)
    }
}
