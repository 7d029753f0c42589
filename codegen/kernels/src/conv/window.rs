//! Where the windows of a tile's pixels are read.

use core::cell::Cell;
use core::ops::Range;

use super::super::indirect::{MOST_PIXELS, PADDED_SPAN, Spans};
use super::super::rows::Rows;
use super::super::shared::SharedRows;
use super::super::weight::Weight;
use super::Conv;
use super::dense::{Dense, Pixels};

/// The pixels of a tile.
pub(super) struct Tile {
    /// First row of the tile.
    y: usize,
    count: usize,
    /// Row within the tile, and column, of each pixel.
    pub at: [(usize, usize); MOST_PIXELS],
    /// Where each output row of the tile begins.
    pub starts: [usize; MOST_PIXELS],
}

impl Tile {
    /// `count` pixels from this row and column on.
    #[inline(always)]
    pub fn new<E>(output: &SharedRows<'_, E>, [y, x]: [usize; 2], count: usize) -> Self {
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
        Tile { y, count, at, starts }
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
    fn read<'a, E>(
        &self,
        p: &Conv,
        image: &Rows<'a, E>,
        [ky, kx]: [usize; 2],
        offset: usize,
    ) -> impl FnMut(usize) -> Option<&'a [E]> {
        let shape = image.shape;
        let right = kx * p.dilation[1];
        let (mut last, mut row): (usize, &'a [E]) = (usize::MAX, &[]);
        move |i| {
            let (below, x) = self.at[i];
            if below != last {
                last = below;
                row = image.row((self.y + below) * p.stride[0] + ky * p.dilation[0] - p.pads[0]);
            }
            let ix = (x * p.stride[1] + right).wrapping_sub(p.pads[1]);
            (ix < shape.width).then(|| &row[ix * shape.channels + offset..])
        }
    }
}

/// The windows of a tile in one image.
pub(super) struct Window<'w, 'a, E> {
    p: &'w Conv,
    image: &'w Rows<'a, E>,
    pixels: &'w Tile,
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

impl<'w, 'a, E: Pixels> Window<'w, 'a, E> {
    #[inline(always)]
    pub fn new<W: Weight>(
        conv: &'w Dense<'a, E, W>,
        group: usize,
        pixels: &'w Tile,
        taps: Range<usize>,
    ) -> Self {
        let (p, image) = (conv.p, &conv.parts[0]);
        let shape = &image.shape;
        let channels = p.channels / p.groups;
        let within = pixels.are_within(p, shape.width);
        let as_they_are = conv.before.is_none();
        let on_end = p.kernel[1] == 1 || as_they_are && p.dilation[1] == 1 && shape.channels == channels;
        // A window's row is one run of elements if its pixels lie on end, and are taken as they are.
        let (columns, run) =
            if within && on_end { (1, p.kernel[1] * channels) } else { (p.kernel[1], channels) };
        let longest = if within && conv.is_in_place() { run } else { PADDED_SPAN };
        let offset = group * channels;
        Window { p, image, pixels, taps, spans: [columns, run.div_ceil(longest)], longest, run, offset }
    }
}

impl<'a, E: Pixels> Spans<'a, E> for Window<'_, 'a, E> {
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
    fn pixels(&self, span: usize) -> impl FnMut(usize) -> Option<&'a [E]> {
        let [columns, pieces] = self.spans;
        let (tap, piece) = (span / pieces, span % pieces * self.longest);
        let tap = [self.taps.start + tap / columns, tap % columns];
        self.pixels.read(self.p, self.image, tap, self.offset + piece)
    }
}

/// The windows of a tile in several parts of an image: tap by tap, the parts one after the other.
pub(super) struct Parts<'w, 'a, E> {
    p: &'w Conv,
    parts: &'w [Rows<'a, E>],
    pixels: &'w Tile,
    /// Rows of the filter that lie within the input.
    taps: Range<usize>,
    /// Spans of a tap, and their longest.
    spans: usize,
    longest: usize,
    /// The piece that was asked for last: as a rule the next is asked for after it.
    last: Cell<Piece>,
}

/// A span: elements of one part that a pixel is multiplied from.
#[derive(Clone, Copy)]
struct Piece {
    span: usize,
    tap: [usize; 2],
    part: usize,
    /// First element among those of the part, and the part's first channel.
    start: usize,
    channel: usize,
}

impl<'w, 'a, E: Pixels> Parts<'w, 'a, E> {
    #[inline(always)]
    pub fn new<W: Weight>(conv: &'w Dense<'a, E, W>, pixels: &'w Tile, taps: Range<usize>) -> Self {
        let (p, parts) = (conv.p, conv.parts);
        let as_they_are = conv.is_in_place() && pixels.are_within(p, parts[0].shape.width);
        let longest = if as_they_are { p.channels } else { PADDED_SPAN };
        let spans = match as_they_are {
            true => parts.len(),
            false => parts.iter().map(|part| part.shape.channels.div_ceil(longest).max(1)).sum(),
        };
        let first = Piece { span: 0, tap: [taps.start, 0], part: 0, start: 0, channel: 0 };
        Parts { p, parts, pixels, taps, spans, longest, last: Cell::new(first) }
    }

    #[inline(always)]
    fn piece(&self, span: usize) -> Piece {
        let mut piece = self.last.get();
        if piece.span > span {
            piece = Piece { span: 0, tap: [self.taps.start, 0], part: 0, start: 0, channel: 0 };
        }
        while piece.span < span {
            self.advance(&mut piece);
        }
        self.last.set(piece);
        piece
    }

    #[inline(always)]
    fn advance(&self, piece: &mut Piece) {
        let channels = self.parts[piece.part].shape.channels;
        piece.span += 1;
        piece.start += self.longest;
        if piece.start < channels {
            return;
        }
        (piece.part, piece.start, piece.channel) = (piece.part + 1, 0, piece.channel + channels);
        if piece.part < self.parts.len() {
            return;
        }
        (piece.part, piece.channel) = (0, 0);
        piece.tap[1] += 1;
        if piece.tap[1] == self.p.kernel[1] {
            piece.tap = [piece.tap[0] + 1, 0];
        }
    }
}

impl<'a, E: Pixels> Spans<'a, E> for Parts<'_, 'a, E> {
    #[inline(always)]
    fn len(&self) -> usize {
        self.taps.len() * self.p.kernel[1] * self.spans
    }

    #[inline(always)]
    fn steps(&self, span: usize) -> (usize, usize) {
        let Piece { tap: [ky, kx], part, start, channel, .. } = self.piece(span);
        let steps = self.longest.min(self.parts[part].shape.channels - start);
        ((ky * self.p.kernel[1] + kx) * self.p.channels + channel + start, steps)
    }

    #[inline(always)]
    fn pixels(&self, span: usize) -> impl FnMut(usize) -> Option<&'a [E]> {
        let Piece { tap, part, start, .. } = self.piece(span);
        let part = &self.parts[part];
        self.pixels.read(self.p, part, tap, start)
    }
}
