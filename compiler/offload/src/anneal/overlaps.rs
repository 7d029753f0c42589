//! Finds the pixels of a patch that other patches cover too.

use crate::convolution::Convolution;

/// The pixels of a patch, marked by the patches that overlap it.
#[derive(Debug)]
pub struct Overlaps {
    /// Row and column of each patch.
    places: Vec<[u32; 2]>,
    shared: [Shared; 2],
    /// The patch in question.
    place: [u32; 2],
    /// Elements of a row of the filter.
    width: usize,
    /// Marks of its pixels, in the order of the filter's elements.
    found: Vec<u8>,
}

/// Along one axis, the range of filter elements whose pixels a patch shares with another, by how far the other lies
/// behind it, from `-reach` to `reach`.
#[derive(Debug)]
struct Shared {
    reach: u32,
    elements: Vec<[u32; 2]>,
}

impl Shared {
    fn new(convolution: &Convolution, axis: usize) -> Self {
        let spec = convolution.spec();
        // At most 2^23, as the filter lies in the padded input.
        let [filter, stride, dilation] =
            [spec.filter, spec.stride, spec.dilation].map(|pair| pair[axis] as i64);
        let reach = (filter - 1) * dilation / stride;
        let elements = |behind: i64| {
            // Element e of one patch is the same pixel as element e - later of the other.
            let later = behind * stride / dilation;
            match behind * stride % dilation {
                0 => [later.max(0) as u32, (filter + later).clamp(0, filter) as u32],
                _ => [0, 0],
            }
        };
        Shared { reach: reach as u32, elements: (-reach..=reach).map(elements).collect() }
    }

    fn pixels_shared(&self, one: u32, other: u32) -> Option<std::ops::Range<usize>> {
        let [first, end] = *self.elements.get((other + self.reach).wrapping_sub(one) as usize)?;
        Some(first as usize..end as usize)
    }
}

impl Overlaps {
    /// Overlaps of the patches of this convolution.
    pub fn new(convolution: &Convolution) -> Self {
        let columns = convolution.output()[1];
        let place = |patch| [patch / columns, patch % columns].map(|place| place as u32);
        Overlaps {
            places: (0..convolution.patches()).map(place).collect(),
            shared: [0, 1].map(|axis| Shared::new(convolution, axis)),
            place: [0; 2],
            width: convolution.spec().filter[1],
            found: vec![0; convolution.pixels_per_patch()],
        }
    }

    /// Begins with another patch, whose pixels have no marks yet.
    pub fn begin(&mut self, patch: u32) {
        self.place = self.places[patch as usize];
        self.found.fill(0);
    }

    /// Marks the pixels that another patch covers too.
    pub fn add(&mut self, other: u32, mark: u8) {
        let [row, column] = self.places[other as usize];
        let Some(rows) = self.shared[0].pixels_shared(self.place[0], row) else { return };
        let Some(columns) = self.shared[1].pixels_shared(self.place[1], column) else { return };
        for row in rows {
            let row = &mut self.found[row * self.width..][..self.width];
            row[columns.clone()].iter_mut().for_each(|found| *found |= mark);
        }
    }

    /// The marks of the patch's pixels, in the order of the filter's elements.
    pub fn found(&self) -> &[u8] {
        &self.found
    }
}
