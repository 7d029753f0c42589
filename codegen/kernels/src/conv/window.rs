//! The places at which the windows of a tile's pixels are read.

use core::cell::Cell;
use core::ops::Range;

use super::super::element::Element;
use super::super::indirect::{MAX_PIXELS, PADDED_SPAN, Spans, zeros};
use super::super::rows::Rows;
use super::parameters::Conv;

/// Pixels of a tile that follow each other in a row.
#[derive(Clone, Copy)]
pub(super) struct Piece {
    /// Its row, counted from the first row of the tile.
    pub below: usize,
    /// Column of its first pixel.
    pub x: usize,
    /// Place of its first pixel in the tile.
    first: usize,
    pub count: usize,
}

impl Piece {
    /// Their places in the tile.
    #[inline(always)]
    pub fn pixels(&self) -> Range<usize> {
        self.first..self.first + self.count
    }
}

/// The pixels of a tile.
pub(super) struct PixelTile {
    /// First row of the tile.
    y: usize,
    pieces: [Piece; MAX_PIXELS],
    len: usize,
}

impl PixelTile {
    /// `count` pixels from this row and column on, of rows of `width` pixels.
    #[inline(always)]
    pub fn new(width: usize, [y, x]: [usize; 2], count: usize) -> Self {
        let mut tile =
            PixelTile { y, pieces: [Piece { below: 0, x: 0, first: 0, count: 0 }; MAX_PIXELS], len: 0 };
        let (mut first, mut x) = (0, x);
        while first < count {
            let piece = Piece { below: tile.len, x, first, count: (width - x).min(count - first) };
            tile.pieces[tile.len] = piece;
            (first, x) = (first + piece.count, 0);
            tile.len += 1;
        }
        tile
    }

    /// Its pixels, row by row.
    #[inline(always)]
    pub fn pieces(&self) -> &[Piece] {
        &self.pieces[..self.len]
    }

    /// Whether the windows of all its pixels lie within the columns of an image.
    #[inline(always)]
    fn are_within(&self, p: &Conv, width: usize) -> bool {
        let reach = (p.kernel[1] - 1) * p.dilation[1];
        self.pieces().iter().all(|piece| {
            let (left, right) = (piece.x * p.stride[1], (piece.x + piece.count - 1) * p.stride[1]);
            left >= p.pads[1] && right + reach < width + p.pads[1]
        })
    }

    /// The row of an image that is read for a piece of the tile, at this row of the filter.
    #[inline(always)]
    fn row<'a, E>(&self, p: &Conv, image: &Rows<'a, E>, piece: &Piece, ky: usize) -> &'a [E] {
        image.row((self.y + piece.below) * p.stride[0] + ky * p.dilation[0] - p.pads[0])
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
        let mut at = 0;
        let mut row = self.row(p, image, &self.pieces[0], ky);
        move |i| {
            // Pixels are asked for in turn, as a rule.
            while !self.pieces[at].pixels().contains(&i) {
                at = if i < self.pieces[at].first { 0 } else { at + 1 };
                row = self.row(p, image, &self.pieces[at], ky);
            }
            let piece = &self.pieces[at];
            let x = piece.x + i - piece.first;
            let ix = (x * p.stride[1] + right).wrapping_sub(p.pads[1]);
            (ix < shape.width).then(|| &row[ix * shape.channels + offset..])
        }
    }

    /// Addresses of the first `steps` of the elements that [`PixelTile::read`] gives for each pixel; zeros beyond the
    /// columns.
    #[inline(always)]
    fn places<'a, E>(
        &self,
        p: &Conv,
        image: &Rows<'a, E>,
        [ky, kx]: [usize; 2],
        [offset, steps]: [usize; 2],
        places: &mut [*const E],
    ) {
        let Rows { shape, .. } = image;
        for piece in self.pieces() {
            let row = self.row(p, image, piece, ky);
            let places = &mut places[piece.pixels()];
            let left = (piece.x * p.stride[1] + kx * p.dilation[1]).wrapping_sub(p.pads[1]);
            let reach = (piece.count - 1) * p.stride[1];
            if left < shape.width && left + reach < shape.width {
                let pixel_stride = p.stride[1] * shape.channels;
                let elements =
                    &row[left * shape.channels + offset..][..(piece.count - 1) * pixel_stride + steps];
                for (i, place) in places.iter_mut().enumerate() {
                    *place = elements.as_ptr().wrapping_add(i * pixel_stride);
                }
                continue;
            }
            for (i, place) in places.iter_mut().enumerate() {
                let ix = left.wrapping_add(i * p.stride[1]);
                *place = match ix < shape.width {
                    true => row[ix * shape.channels + offset..][..steps].as_ptr(),
                    false => zeros(steps).cast(),
                };
            }
        }
    }
}

/// Whether the micro-kernel reads pixels where they lie: they are floats and have no prologue.
#[inline(always)]
fn is_read_in_place<E: Element>(is_plain: bool) -> bool {
    E::IS_FLOAT && is_plain
}

/// The windows of a tile in one image.
pub(super) struct Window<'w, 'a, E> {
    p: &'w Conv,
    image: &'w Rows<'a, E>,
    pixels: &'w PixelTile,
    /// Rows of the filter that lie within the input.
    taps: Range<usize>,
    /// Spans of a row of a filter, of a pixel, and their longest.
    spans: [usize; 2],
    longest: usize,
    /// Elements of a row of a filter that are contiguous.
    run: usize,
    /// Channels of the group, and the first.
    channels: usize,
    offset: usize,
}

impl<'w, 'a, E: Element> Window<'w, 'a, E> {
    /// The windows of a group; `is_plain` if the convolution has no prologue.
    #[inline(always)]
    pub fn new(
        p: &'w Conv,
        image: &'w Rows<'a, E>,
        is_plain: bool,
        group: usize,
        pixels: &'w PixelTile,
        taps: Range<usize>,
    ) -> Self {
        let shape = &image.shape;
        let channels = p.channels / p.groups;
        let within = pixels.are_within(p, shape.width);
        let on_end = p.kernel[1] == 1 || is_plain && p.dilation[1] == 1 && shape.channels == channels;
        // A window's row is one run of elements if its pixels are contiguous and have no prologue.
        let (columns, run) =
            if within && on_end { (1, p.kernel[1] * channels) } else { (p.kernel[1], channels) };
        let longest = if within && is_read_in_place::<E>(is_plain) { run } else { PADDED_SPAN };
        let offset = group * channels;
        let pieces = if run <= longest { 1 } else { run.div_ceil(longest) };
        Window { p, image, pixels, taps, spans: [columns, pieces], longest, run, channels, offset }
    }

    /// The tap of a span, and its first element of the tap's. Divisions take long, and most windows need none.
    #[inline(always)]
    fn place(&self, span: usize) -> ([usize; 2], usize) {
        let [columns, pieces] = self.spans;
        let (tap, piece) = if pieces == 1 { (span, 0) } else { (span / pieces, span % pieces) };
        let (ky, kx) = if columns == 1 { (tap, 0) } else { (tap / columns, tap % columns) };
        ([self.taps.start + ky, kx], piece * self.longest)
    }
}

impl<'a, E: Element> Spans<'a, E> for Window<'_, 'a, E> {
    #[inline(always)]
    fn len(&self) -> usize {
        self.taps.len() * self.spans[0] * self.spans[1]
    }

    #[inline(always)]
    fn steps(&self, span: usize) -> (usize, usize) {
        let ([ky, kx], element) = self.place(span);
        let step = (ky * self.p.kernel[1] + kx) * self.channels + element;
        (step, self.longest.min(self.run - element))
    }

    #[inline(always)]
    fn pixels(&self, span: usize) -> impl FnMut(usize) -> Option<&'a [E]> {
        let (tap, element) = self.place(span);
        self.pixels.read(self.p, self.image, tap, self.offset + element)
    }

    #[inline(always)]
    fn places(&self, span: usize, steps: usize, places: &mut [*const E]) {
        let (tap, element) = self.place(span);
        self.pixels.places(self.p, self.image, tap, [self.offset + element, steps], places);
    }
}

/// The windows of a tile in several parts of an image: tap by tap, the parts one after the other.
pub(super) struct Parts<'w, 'a, E> {
    p: &'w Conv,
    parts: &'w [Rows<'a, E>],
    pixels: &'w PixelTile,
    /// Rows of the filter that lie within the input.
    taps: Range<usize>,
    /// Spans of a tap, and their longest.
    spans: usize,
    longest: usize,
    /// The span that was asked for last. The next one is usually asked for after it.
    last: Cell<PartOfTap>,
}

/// A span: elements of one part that enter the products of a pixel.
#[derive(Clone, Copy)]
struct PartOfTap {
    span: usize,
    tap: [usize; 2],
    part: usize,
    /// First element among those of the part, and the part's first channel.
    start: usize,
    channel: usize,
}

impl<'w, 'a, E: Element> Parts<'w, 'a, E> {
    /// The windows of all parts; `is_plain` if the convolution has no prologue.
    #[inline(always)]
    pub fn new(
        p: &'w Conv,
        parts: &'w [Rows<'a, E>],
        is_plain: bool,
        pixels: &'w PixelTile,
        taps: Range<usize>,
    ) -> Self {
        let as_they_are = is_read_in_place::<E>(is_plain) && pixels.are_within(p, parts[0].shape.width);
        let longest = if as_they_are { p.channels } else { PADDED_SPAN };
        let spans = match as_they_are {
            true => parts.len(),
            false => parts.iter().map(|part| part.shape.channels.div_ceil(longest).max(1)).sum(),
        };
        let first = PartOfTap { span: 0, tap: [taps.start, 0], part: 0, start: 0, channel: 0 };
        Parts { p, parts, pixels, taps, spans, longest, last: Cell::new(first) }
    }

    #[inline(always)]
    fn part_of_tap(&self, span: usize) -> PartOfTap {
        let mut at = self.last.get();
        if at.span > span {
            at = PartOfTap { span: 0, tap: [self.taps.start, 0], part: 0, start: 0, channel: 0 };
        }
        while at.span < span {
            self.advance(&mut at);
        }
        self.last.set(at);
        at
    }

    #[inline(always)]
    fn advance(&self, at: &mut PartOfTap) {
        let channels = self.parts[at.part].shape.channels;
        at.span += 1;
        at.start += self.longest;
        if at.start < channels {
            return;
        }
        (at.part, at.start, at.channel) = (at.part + 1, 0, at.channel + channels);
        if at.part < self.parts.len() {
            return;
        }
        (at.part, at.channel) = (0, 0);
        at.tap[1] += 1;
        if at.tap[1] == self.p.kernel[1] {
            at.tap = [at.tap[0] + 1, 0];
        }
    }
}

impl<'a, E: Element> Spans<'a, E> for Parts<'_, 'a, E> {
    #[inline(always)]
    fn len(&self) -> usize {
        self.taps.len() * self.p.kernel[1] * self.spans
    }

    #[inline(always)]
    fn steps(&self, span: usize) -> (usize, usize) {
        let PartOfTap { tap: [ky, kx], part, start, channel, .. } = self.part_of_tap(span);
        let steps = self.longest.min(self.parts[part].shape.channels - start);
        ((ky * self.p.kernel[1] + kx) * self.p.channels + channel + start, steps)
    }

    #[inline(always)]
    fn pixels(&self, span: usize) -> impl FnMut(usize) -> Option<&'a [E]> {
        let PartOfTap { tap, part, start, .. } = self.part_of_tap(span);
        self.pixels.read(self.p, &self.parts[part], tap, start)
    }

    #[inline(always)]
    fn places(&self, span: usize, steps: usize, places: &mut [*const E]) {
        let PartOfTap { tap, part, start, .. } = self.part_of_tap(span);
        self.pixels.places(self.p, &self.parts[part], tap, [start, steps], places);
    }
}
