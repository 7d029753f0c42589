//! The values that the caller hands over and gets back: whole tensors in the model's own order of dimensions.

use csdfc_kernels::half::F16;

use super::rows::InputRow;
use crate::error::InputError;
use csdfc_plan::format::Element;
use csdfc_plan::operator::{Camera, CameraLayout, ColorOrder, Input, InputElement};
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
    /// Bytes of a camera, or unsigned integers of a quantized network.
    U8(Vec<u8>),
    /// Signed integers of a quantized network.
    I8(Vec<i8>),
    /// Indices, of ArgMax and TopK.
    I64(Vec<i64>),
}

impl Data {
    /// Number of elements.
    pub fn len(&self) -> usize {
        match self {
            Data::F32(values) => values.len(),
            Data::U8(values) => values.len(),
            Data::I8(values) => values.len(),
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
            Data::I8(_) => "int8",
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

/// Name of the element type that a caller hands over for an input.
pub fn element(input: &Input) -> &'static str {
    match input.element {
        InputElement::F32 => "float32",
        InputElement::U8 => "uint8",
        InputElement::I8 => "int8",
    }
}

/// Whether a value can be handed over for an input, and if not, why.
pub(super) fn check_input(input: &Input, shape: &Shape, value: &Value) -> Result<(), InputError> {
    let expected = element(input);
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

/// Fills in row `y` of an input from a value that holds all rows.
pub(super) fn copy_row(input: &Input, shape: &Shape, value: &Value, y: usize, row: InputRow<'_>) {
    match (row, &value.data, &input.camera) {
        (InputRow::F32(row), Data::F32(values), _) => pixels(values, shape, y, row),
        (InputRow::U8(row), Data::U8(bytes), None) => pixels(bytes, shape, y, row),
        (InputRow::I8(row), Data::I8(integers), _) => pixels(integers, shape, y, row),
        (InputRow::U8(row), Data::U8(bytes), Some(camera)) => {
            let planes = match camera.layout {
                CameraLayout::Hwc => 1,
                CameraLayout::Chw => shape.channels().max(1),
            };
            let (len, rows) = (row.len() / planes, shape.rows());
            for (plane, row) in row.chunks_exact_mut(len.max(1)).enumerate() {
                row.copy_from_slice(&bytes[(plane * rows + y) * len..][..len]);
            }
        }
        // The value has been checked.
        _ => {}
    }
}

/// Row `y` of a tensor in the model's order of dimensions, as pixels of channels.
fn pixels<T: Copy>(values: &[T], shape: &Shape, y: usize, row: &mut [T]) {
    match shape.column_axis() {
        Some(column) if shape.order == Order::ChannelsFirst => {
            let (height, width, channels) = (shape.rows(), shape.dims[column], shape.channels());
            for c in 0..channels {
                let plane = &values[(c * height + y) * width..][..width];
                row.chunks_exact_mut(channels).zip(plane).for_each(|(pixel, &x)| pixel[c] = x);
            }
        }
        _ => row.copy_from_slice(&values[y * row.len()..][..row.len()]),
    }
}

/// Makes a row of a camera's bytes elements of the network, by what makes one of a float: pixels of channels.
pub(super) fn convert<T>(
    camera: &Camera,
    channels: usize,
    bytes: &[u8],
    row: &mut [T],
    element: impl Fn(f32) -> T,
) {
    let width = row.len() / channels.max(1);
    for (x, pixel) in row.chunks_exact_mut(channels.max(1)).enumerate() {
        for (c, to) in pixel.iter_mut().enumerate() {
            let color = match camera.order {
                ColorOrder::Rgb => c,
                ColorOrder::Bgr => channels - 1 - c,
            };
            let byte = match camera.layout {
                CameraLayout::Hwc => bytes[x * channels + color],
                CameraLayout::Chw => bytes[color * width + x],
            };
            *to = element((f32::from(byte) - camera.mean[c]) * camera.scale[c]);
        }
    }
}

/// A shape with only `rows` of its `all` rows. What is not made of rows is whole, or has no elements if no row exists.
pub(super) fn of_rows(shape: &Shape, rows: usize, all: usize) -> Shape {
    let mut shape = shape.clone();
    match shape.row_axis() {
        Some(axis) if rows < all => shape.dims[axis] = rows,
        None if rows == 0 => shape.dims.iter_mut().take(1).for_each(|dim| *dim = 0),
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
pub(super) fn collect<T: Copy>(rows: &[T], own: &Shape, seen: &Shape) -> Vec<T> {
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
            copy_row(&f32_input(), &shape, &value, y, InputRow::F32(row));
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
            let (mut taken, mut row) = ([0; 6], [0.0; 6]);
            copy_row(&input, &shape, &value, 0, InputRow::U8(&mut taken));
            convert(input.camera.as_ref().unwrap(), 3, &taken, &mut row, |x| x);
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
