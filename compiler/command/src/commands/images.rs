//! Images for inputs: the pixels of PNG and JPEG files, and arrays whose channels come first or last.

use std::path::Path;

use csdfc_plan::operator::{Camera, CameraLayout, ColorOrder, Input};
use csdfc_plan::shape::{Order, Shape};
use csdfc_runtime::run::{Data, Value, input_dims};

use crate::error::Error;

/// Extensions of images. Those after the first three are refused: their bytes are no raw frames either.
const EXTENSIONS: [&str; 12] =
    ["png", "jpg", "jpeg", "avif", "bmp", "gif", "heic", "pgm", "ppm", "tif", "tiff", "webp"];

/// Whether a file is an image, by its name.
pub(super) fn is_image(path: &Path) -> bool {
    let extension = path.extension().map(|extension| extension.to_ascii_lowercase());
    extension.is_some_and(|extension| EXTENSIONS.iter().any(|known| extension == *known))
}

/// The pixels of an image for an input of this shape, which takes bytes: in red, green and blue, or in grey if it has one
/// channel. What is transparent counts as opaque.
///
/// # Errors
/// When the file cannot be read or is no image, the input takes other numbers than bytes of 1 or 3 channels, or the image
/// has another size than the input.
pub(super) fn read(path: &Path, name: &str, input: &Input, shape: &Shape) -> Result<Value, Error> {
    let wrong = |message: String, help: &str| Error::Input { message, help: Some(help.into()) };
    let dims = input_dims(input, shape);
    let (Some(camera), channels @ (1 | 3)) = (&input.camera, shape.channels()) else {
        let message = format!(
            "{}: input {name}, of {dims:?}, takes no pixels: the plan does not say how bytes become its numbers",
            path.display()
        );
        let help = "plan with --input u8:hwc:rgb,mean=…,scale=… as the network was trained, or give numbers as a .npy file";
        return Err(wrong(message, help));
    };
    let [height, width] =
        [shape.row_axis(), shape.column_axis()].map(|axis| axis.map_or(1, |axis| shape.dims[axis]));
    let pixels = decoded(path, channels, [width, height])?.map_err(|found| {
        let message = format!(
            "{}: the image has {}×{} pixels, and input {name} takes {width}×{height}",
            path.display(),
            found[0],
            found[1]
        );
        wrong(message, "scale or crop the image as the network was trained")
    })?;
    let value = Value { dims: vec![height, width, channels], data: Data::U8(pixels) };
    Ok(as_camera(camera, value))
}

/// Pixels of red, green and blue as a camera hands them over.
fn as_camera(camera: &Camera, value: Value) -> Value {
    let Value { dims, data: Data::U8(mut pixels) } = value else { return value };
    if camera.order == ColorOrder::Bgr {
        pixels.chunks_exact_mut(3).for_each(|pixel| pixel.reverse());
    }
    let value = Value { dims, data: Data::U8(pixels) };
    match camera.layout {
        CameraLayout::Hwc => value,
        CameraLayout::Chw => moved(value, [2, 0, 1]),
    }
}

/// The pixels of an image of this width and height, row by row, or the width and height that it has.
#[cfg(feature = "images")]
fn decoded(path: &Path, channels: usize, size: [usize; 2]) -> Result<Result<Vec<u8>, [usize; 2]>, Error> {
    use image::{DynamicImage, ImageDecoder, ImageError, ImageReader};

    let failed = |error: ImageError| match error {
        ImageError::IoError(error) if error.kind() != std::io::ErrorKind::UnexpectedEof => {
            Error::read(path, error)
        }
        error => Error::Input {
            message: format!("{}: {error}", path.display()),
            help: Some("give an image of PNG or JPEG".into()),
        },
    };
    // By what the file holds, not by its name.
    let file = ImageReader::open(path).and_then(ImageReader::with_guessed_format);
    let decoder = file.map_err(|error| Error::read(path, error))?.into_decoder().map_err(failed)?;
    // A small file may say that it is a huge image: only one of the right size is decoded.
    let found = <[u32; 2]>::from(decoder.dimensions()).map(|pixels| pixels as usize);
    if found != size {
        return Ok(Err(found));
    }
    let image = DynamicImage::from_decoder(decoder).map_err(failed)?;
    Ok(Ok(if channels == 1 { image.into_luma8().into_raw() } else { image.into_rgb8().into_raw() }))
}

#[cfg(not(feature = "images"))]
fn decoded(path: &Path, _: usize, _: [usize; 2]) -> Result<Result<Vec<u8>, [usize; 2]>, Error> {
    Err(Error::Input {
        message: format!("{}: this csdfc reads no images", path.display()),
        help: Some("give the pixels as a .npy file, or build csdfc with its feature `images`".into()),
    })
}

/// A tensor for an input in its order of dimensions. The tensor of an image may lack the batch, or have its channels last
/// where the input has them first, or the other way round, if its dimensions can be read in one way only. All other
/// tensors stay as they are: the runner says what it takes.
pub(super) fn in_order(input: &Input, shape: &Shape, value: Value) -> Value {
    let wanted = input_dims(input, shape);
    let found: &[usize] = match value.dims.as_slice() {
        [1, image @ ..] if value.dims.len() == 4 => image,
        image => image,
    };
    let (Ok([a, b, c]), true) = (<[usize; 3]>::try_from(found), shape.is_image()) else { return value };
    let is_last = match &input.camera {
        Some(camera) => camera.layout == CameraLayout::Hwc,
        None => shape.order == Order::ChannelsLast,
    };
    let image = &wanted[wanted.len() - 3..];
    let dims = vec![a, b, c];
    let value = match (image == [a, b, c], is_last) {
        (true, _) => Value { dims, data: value.data },
        (false, true) if image == [b, c, a] => moved(Value { dims, data: value.data }, [1, 2, 0]),
        (false, false) if image == [c, a, b] => moved(Value { dims, data: value.data }, [2, 0, 1]),
        _ => return value,
    };
    Value { dims: wanted, data: value.data }
}

/// A tensor of three dimensions with these of its dimensions in turn.
fn moved(value: Value, order: [usize; 3]) -> Value {
    let Ok(from) = <[usize; 3]>::try_from(value.dims.as_slice()) else { return value };
    let dims = order.map(|axis| from[axis]).to_vec();
    let data = match &value.data {
        Data::F32(elements) => Data::F32(elements_moved(elements, from, order)),
        Data::U8(elements) => Data::U8(elements_moved(elements, from, order)),
        Data::I8(elements) => Data::I8(elements_moved(elements, from, order)),
        Data::I64(elements) => Data::I64(elements_moved(elements, from, order)),
    };
    Value { dims, data }
}

fn elements_moved<T: Copy>(elements: &[T], from: [usize; 3], order: [usize; 3]) -> Vec<T> {
    let strides = [from[1] * from[2], from[2], 1];
    let [a, b, c] = order.map(|axis| (from[axis], strides[axis]));
    let mut moved = Vec::with_capacity(elements.len());
    for i in 0..a.0 {
        for j in 0..b.0 {
            moved.extend((0..c.0).map(|k| elements[i * a.1 + j * b.1 + k * c.1]));
        }
    }
    moved
}

#[cfg(test)]
mod tests {
    use csdfc_plan::operator::InputElement;

    use super::*;

    fn floats(dims: &[usize]) -> Value {
        let elements = dims.iter().product::<usize>();
        Value { dims: dims.to_vec(), data: Data::F32((0..elements).map(|i| i as f32).collect()) }
    }

    #[test]
    fn channels_last_are_told_from_the_shape() {
        let (input, shape) = (Input { element: InputElement::F32, camera: None }, Shape::image(2, 3, 4));
        let taken = in_order(&input, &shape, floats(&[1, 3, 4, 2]));
        assert_eq!(taken.dims, [1, 2, 3, 4]);
        let Data::F32(elements) = &taken.data else { panic!("other elements") };
        // The first channel is every second number, the second channel the others.
        assert_eq!(
            (elements[..3].to_vec(), elements[12..14].to_vec()),
            (vec![0.0, 2.0, 4.0], vec![1.0, 3.0])
        );
        assert_eq!(in_order(&input, &shape, floats(&[3, 4, 2])), taken);
        assert_eq!(in_order(&input, &shape, floats(&[2, 3, 4])), floats(&[1, 2, 3, 4]).clone());
        // What fits is taken as it is, and what cannot be read in one way only is left to the runner.
        for dims in [vec![1, 2, 3, 4], vec![1, 4, 3, 2], vec![24], vec![2, 3, 4, 2]] {
            assert_eq!(in_order(&input, &shape, floats(&dims)), floats(&dims));
        }
        let cube = Shape::image(3, 3, 3);
        assert_eq!(in_order(&input, &cube, floats(&[1, 3, 3, 3])), floats(&[1, 3, 3, 3]));
    }

    #[test]
    fn cameras_have_their_order() {
        let camera = |layout, order| Camera { layout, order, mean: vec![0.0; 3], scale: vec![1.0; 3] };
        let pixels = || Value { dims: vec![1, 2, 3], data: Data::U8(vec![1, 2, 3, 4, 5, 6]) };
        let planes = as_camera(&camera(CameraLayout::Chw, ColorOrder::Bgr), pixels());
        assert_eq!(planes, Value { dims: vec![3, 1, 2], data: Data::U8(vec![3, 6, 2, 5, 1, 4]) });
        assert_eq!(as_camera(&camera(CameraLayout::Hwc, ColorOrder::Rgb), pixels()), pixels());
    }
}
