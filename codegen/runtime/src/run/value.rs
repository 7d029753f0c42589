//! The values that the caller hands over and gets back: whole tensors in the model's own order of dimensions.

use std::ops::Range;

use csdfc_kernels::half::F16;

use crate::error::InputError;
use csdfc_plan::format::Element;
use csdfc_plan::operator::{CameraLayout, ColorOrder, Input, InputElement};
use csdfc_plan::shape::{Order, Shape};

/// A whole tensor, its elements in row-major order.
#[derive(Debug, Clone, PartialEq)]
pub struct Value {
    /// Dimensions.
    pub dims: Vec<usize>,
    /// Elements.
    pub data: Data,
}

/// The elements of a [`Value`].
#[derive(Debug, Clone, PartialEq)]
pub enum Data {
    /// 32-bit floats.
    F32(Vec<f32>),
    /// Bytes of a camera.
    U8(Vec<u8>),
    /// Indices, of ArgMax and TopK.
    I64(Vec<i64>),
}

impl Data {
    /// Number of elements.
    pub fn len(&self) -> usize {
        match self {
            Data::F32(values) => values.len(),
            Data::U8(values) => values.len(),
            Data::I64(values) => values.len(),
        }
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Name of the element type.
    pub fn element(&self) -> &'static str {
        match self {
            Data::F32(_) => "float32",
            Data::U8(_) => "uint8",
            Data::I64(_) => "int64",
        }
    }
}

/// The dimensions of the value that a caller hands over for an input of this shape: the model's dimensions or, for
/// camera bytes, those of the camera, without the batch.
pub fn input_dims(input: &Input, shape: &Shape) -> Vec<usize> {
    let (Some(camera), Some(row), Some(column)) = (&input.camera, shape.row_axis(), shape.column_axis())
    else {
        return shape.dims.clone();
    };
    let (height, width, channels) = (shape.dims[row], shape.dims[column], shape.channels());
    match camera.layout {
        CameraLayout::Hwc => vec![height, width, channels],
        CameraLayout::Chw => vec![channels, height, width],
    }
}

/// Whether a value can be handed over for an input, and if not, why.
pub(super) fn check_input(input: &Input, shape: &Shape, value: &Value) -> Result<(), InputError> {
    let expected = match input.element {
        InputElement::F32 => "float32",
        InputElement::U8 => "uint8",
    };
    let dims = input_dims(input, shape);
    let batched = [&[1], dims.as_slice()].concat();
    if value.data.element() != expected {
        return Err(InputError::Elements { found: value.data.element(), expected });
    }
    if value.dims != dims && !(input.camera.is_some() && value.dims == batched) {
        return Err(InputError::Dimensions { found: value.dims.clone(), expected: dims });
    }
    if value.data.len() != shape.elements() {
        return Err(InputError::Length { found: value.data.len(), expected: shape.elements() });
    }
    Ok(())
}

/// Writes row `y` of an input in the form in which the network keeps it, as pixels of channels.
pub(super) fn deliver(input: &Input, shape: &Shape, value: &Value, y: usize, row: &mut [f32]) {
    let channels_first = shape.order == Order::ChannelsFirst;
    let Some(column) = shape.column_axis() else {
        let start = y * row.len();
        match &value.data {
            Data::F32(values) => row.copy_from_slice(&values[start..][..row.len()]),
            Data::U8(bytes) => {
                row.iter_mut().zip(&bytes[start..]).for_each(|(to, byte)| *to = f32::from(*byte));
            }
            Data::I64(_) => {}
        }
        return;
    };
    let (height, width, channels) = (shape.rows(), shape.dims[column], shape.channels());
    if let Data::F32(values) = &value.data {
        if !channels_first {
            return row.copy_from_slice(&values[y * row.len()..][..row.len()]);
        }
        for c in 0..channels {
            let plane = &values[(c * height + y) * width..][..width];
            row.chunks_exact_mut(channels).zip(plane).for_each(|(pixel, &x)| pixel[c] = x);
        }
        return;
    }
    let planar = |c: usize, x: usize| (c * height + y) * width + x;
    let interleaved = |c: usize, x: usize| (y * width + x) * channels + c;
    for (x, pixel) in row.chunks_exact_mut(channels).enumerate() {
        for (c, to) in pixel.iter_mut().enumerate() {
            *to = match (&value.data, &input.camera) {
                (Data::U8(bytes), Some(camera)) => {
                    let color = match camera.order {
                        ColorOrder::Rgb => c,
                        ColorOrder::Bgr => channels - 1 - c,
                    };
                    let byte = match camera.layout {
                        CameraLayout::Hwc => bytes[interleaved(color, x)],
                        CameraLayout::Chw => bytes[planar(color, x)],
                    };
                    (f32::from(byte) - camera.mean[c]) * camera.scale[c]
                }
                (Data::U8(bytes), None) if channels_first => f32::from(bytes[planar(c, x)]),
                (Data::U8(bytes), None) => f32::from(bytes[interleaved(c, x)]),
                (Data::F32(_) | Data::I64(_), _) => 0.0,
            };
        }
    }
}

/// A shape with only some of its `all` rows. What is not made of rows is whole, or has no elements if no row exists.
pub(super) fn of_rows(shape: &Shape, rows: &Range<u64>, all: u64) -> Shape {
    let mut shape = shape.clone();
    let len = (rows.end - rows.start) as usize;
    match shape.row_axis() {
        Some(axis) if len < all as usize => shape.dims[axis] = len,
        None if len == 0 => shape.dims.iter_mut().take(1).for_each(|dim| *dim = 0),
        _ => {}
    }
    shape
}

/// A whole tensor of these elements and of shape `own`, stored as rows, as `seen`, the shape of the tensor itself or of a
/// view of it, has its elements.
pub fn read(rows: &[u8], element: Element, own: &Shape, seen: &Shape) -> Value {
    let data = match element {
        Element::F32 => {
            let values: Vec<f32> =
                rows.as_chunks().0.iter().map(|bytes| f32::from_ne_bytes(*bytes)).collect();
            Data::F32(collect(&values, own, seen))
        }
        Element::F16 => {
            let value = |bytes: &[u8; 2]| F16::from_bits(u16::from_ne_bytes(*bytes)).to_f32();
            let values: Vec<f32> = rows.as_chunks().0.iter().map(value).collect();
            Data::F32(collect(&values, own, seen))
        }
        Element::U8 => Data::U8(collect(rows, own, seen)),
        Element::I64 => {
            let values: Vec<i64> =
                rows.as_chunks().0.iter().map(|bytes| i64::from_ne_bytes(*bytes)).collect();
            Data::I64(collect(&values, own, seen))
        }
    };
    Value { dims: seen.dims.clone(), data }
}

/// The elements of a whole tensor of shape `own`, stored as rows, in the row-major order in which `seen`, the tensor
/// itself or a view of it, has them.
fn collect<T: Copy>(rows: &[T], own: &Shape, seen: &Shape) -> Vec<T> {
    let is_reordered = own.rank() == 4 && seen.rank() == 4 && own.order != seen.order;
    let order = if is_reordered { seen.order } else { own.order };
    match (own.column_axis(), order) {
        (Some(column), Order::ChannelsFirst) => {
            let (height, width, channels) = (own.rows(), own.dims[column], own.channels());
            let pixels = |c: usize| (0..height * width).map(move |pixel| rows[pixel * channels + c]);
            (0..channels).flat_map(pixels).collect()
        }
        _ => rows.to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use csdfc_plan::operator::Camera;

    fn f32_input() -> Input {
        Input { element: InputElement::F32, camera: None }
    }

    #[test]
    fn images_go_in_and_come_out() {
        let shape = Shape::image(2, 3, 4);
        let values: Vec<f32> = (0..24u8).map(f32::from).collect();
        let value = Value { dims: shape.dims.clone(), data: Data::F32(values.clone()) };
        let mut rows = vec![0.0; 24];
        for (y, row) in rows.chunks_exact_mut(8).enumerate() {
            deliver(&f32_input(), &shape, &value, y, row);
        }
        assert_eq!(rows[..4], [0.0, 12.0, 1.0, 13.0]);
        assert_eq!(collect(&rows, &shape, &shape), values);
        // The channels of a flattened image vary slowest; those of a reordered image come last.
        assert_eq!(collect(&rows, &shape, &Shape::new([1, 24])), values);
        let last = Shape { dims: vec![1, 3, 4, 2], order: Order::ChannelsLast };
        assert_eq!(collect(&rows, &shape, &last), rows);
        assert_eq!(collect(&rows, &last, &shape), values);
        assert_eq!(collect(&rows, &last, &Shape::new([24])), rows);
    }

    #[test]
    fn cameras_are_converted() {
        let shape = Shape::image(3, 1, 2);
        let camera = |layout, order| {
            let (mean, scale) = (vec![1.0, 2.0, 3.0], vec![1.0, 0.5, 2.0]);
            Input { element: InputElement::U8, camera: Some(Camera { layout, order, mean, scale }) }
        };
        let check = |layout, order, dims: &[usize], bytes: [u8; 6]| {
            let value = Value { dims: dims.to_vec(), data: Data::U8(bytes.to_vec()) };
            let input = camera(layout, order);
            check_input(&input, &shape, &value).unwrap();
            let mut row = [0.0; 6];
            deliver(&input, &shape, &value, 0, &mut row);
            assert_eq!(row, [9.0, 9.0, 54.0, 39.0, 24.0, 114.0]);
        };
        use CameraLayout::{Chw, Hwc};
        use ColorOrder::{Bgr, Rgb};
        check(Hwc, Rgb, &[1, 2, 3], [10, 20, 30, 40, 50, 60]);
        check(Hwc, Bgr, &[1, 1, 2, 3], [30, 20, 10, 60, 50, 40]);
        check(Chw, Rgb, &[3, 1, 2], [10, 40, 20, 50, 30, 60]);
        check(Chw, Bgr, &[3, 1, 2], [30, 60, 20, 50, 10, 40]);
        let value = Value { dims: vec![3, 1, 2], data: Data::F32(vec![0.0; 6]) };
        assert!(check_input(&camera(Hwc, Rgb), &shape, &value).is_err());
        assert!(check_input(&f32_input(), &shape, &value).is_err());
    }
}
