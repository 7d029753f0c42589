//! What a tensor is made of: its layout in memory, and its elements.
//!
//! A tensor's rows, and the bytes of a row, follow from its [`Shape`] and its [`Format`] together.
//!
//! ```text
//! an image of 2 channels, 2 rows, 3 columns; element c y x is the one of channel c, row y, column x
//!
//! HWC   000 100 001 101 002 102 | 010 110 011 111 012 112     2 rows
//! HCW   000 001 002 100 101 102 | 010 011 012 110 111 112     2 rows
//! CHW   000 001 002 010 011 012 100 101 102 110 111 112       1 row
//! ```
//!
//! An image in CHW counts as one row, because the elements of one y do not lie side by side. So the dataflow graph, the
//! rings and the checker need no special rule for this layout: the image is a tensor of one large row.
//!
//! The elements of a tensor that is not an image lie in the order of its dimensions. Its layout is always HWC.
//!
//! ```
//! use csdfc_plan::format::{Element, Format, Layout};
//! use csdfc_plan::shape::Shape;
//!
//! let image = Shape::image(3, 120, 160);
//! let hwc = Format { layout: Layout::Hwc, element: Element::F16 };
//! assert_eq!((hwc.rows(&image), hwc.row_elements(&image)), (120, 160 * 3));
//! assert_eq!(hwc.row_elements(&image) as u64 * hwc.element.bytes(), 960);
//! let chw = Format { layout: Layout::Chw, ..hwc };
//! assert_eq!((chw.rows(&image), chw.row_elements(&image)), (1, 3 * 120 * 160));
//! ```

use serde::{Deserialize, Serialize};

use crate::shape::Shape;

/// Order in memory of the elements of an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Layout {
    /// Rows of pixels of channels.
    #[default]
    Hwc,
    /// Rows of channels of pixels.
    Hcw,
    /// Planes of channels. The rows of such an image are not contiguous, so it counts as a single row.
    Chw,
}

impl Layout {
    /// All layouts.
    pub const ALL: [Layout; 3] = [Layout::Hwc, Layout::Hcw, Layout::Chw];
}

impl std::fmt::Display for Layout {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Layout::Hwc => "HWC",
            Layout::Hcw => "HCW",
            Layout::Chw => "CHW",
        })
    }
}

/// Type of the elements of a tensor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Element {
    /// 32-bit floats.
    #[default]
    F32,
    /// 16-bit floats. Kernels widen what they read, sum in 32 bits, and narrow what they store.
    F16,
    /// 8-bit integers from 0 to 255, with a [`Quantization`] that says which numbers they stand for.
    U8,
    /// 64-bit integers: indices.
    I64,
}

impl Element {
    /// Bytes of one element. Rings of such elements lie at multiples of it.
    pub const fn bytes(self) -> u64 {
        match self {
            Element::F32 => 4,
            Element::F16 => 2,
            Element::U8 => 1,
            Element::I64 => 8,
        }
    }
}

impl std::fmt::Display for Element {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Element::F32 => "f32",
            Element::F16 => "f16",
            Element::U8 => "u8",
            Element::I64 => "i64",
        })
    }
}

/// The quantization of a tensor, which says which numbers its 8-bit integers stand for: q stands for `scale · (q −
/// zero_point)`.
///
/// A model's tensors of signed integers are stored as unsigned ones. They and their zero point are moved by 128.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Quantization {
    /// Distance of neighbouring numbers; positive.
    pub scale: f32,
    /// The integer that stands for 0.
    pub zero_point: u8,
}

impl Quantization {
    /// Of integers that stand for themselves: masks and classes.
    pub const IDENTITY: Quantization = Quantization { scale: 1.0, zero_point: 0 };

    /// The number that an integer stands for.
    ///
    /// ```
    /// use csdfc_plan::format::Quantization;
    ///
    /// let quantization = Quantization { scale: 0.5, zero_point: 128 };
    /// assert_eq!([0, 128, 255].map(|q| quantization.number(q)), [-64.0, 0.0, 63.5]);
    /// assert_eq!([-1000.0, 0.25, 0.75, 63.3].map(|x| quantization.integer(x)), [0, 128, 130, 255]);
    /// ```
    pub fn number(self, q: u8) -> f32 {
        self.scale * (f32::from(q) - f32::from(self.zero_point))
    }

    /// The integer that stands for the nearest number. Of two equally near ones, it is the one that is even before the
    /// zero point is added (ONNX, QuantizeLinear). Numbers beyond the range become its end.
    pub fn integer(self, x: f32) -> u8 {
        // A conversion to an integer type saturates.
        ((x / self.scale).round_ties_even() + f32::from(self.zero_point)) as u8
    }
}

/// Layout and element of a tensor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Format {
    /// Order of its elements.
    pub layout: Layout,
    /// Type of its elements.
    pub element: Element,
}

impl Format {
    /// Rows of a tensor of this shape.
    ///
    /// ```
    /// use csdfc_plan::format::{Element, Format, Layout};
    /// use csdfc_plan::shape::Shape;
    ///
    /// let image = Shape::image(3, 32, 48);
    /// let rows = |layout| Format { layout, element: Element::F32 }.rows(&image);
    /// assert_eq!(Layout::ALL.map(rows), [32, 32, 1]);
    /// ```
    pub fn rows(self, shape: &Shape) -> usize {
        if self.is_planes_of(shape) { 1 } else { shape.rows() }
    }

    /// Elements of one row of a tensor of this shape.
    pub fn row_elements(self, shape: &Shape) -> usize {
        if self.is_planes_of(shape) { shape.elements() } else { shape.row_elements() }
    }

    /// Bytes of one row of a tensor of this shape; none beyond 64 bits.
    pub fn row_bytes(self, shape: &Shape) -> Option<u64> {
        (self.row_elements(shape) as u64).checked_mul(self.element.bytes())
    }

    fn is_planes_of(self, shape: &Shape) -> bool {
        self.layout == Layout::Chw && shape.is_image()
    }
}

impl std::fmt::Display for Format {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} of {}", self.layout, self.element)
    }
}
