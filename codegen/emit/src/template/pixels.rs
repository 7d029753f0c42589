//! The pixels of PNG and JPEG files, for inputs that take bytes.

use crate::files::is_image;

/// The image that an input takes.
#[derive(Debug, Clone, Copy)]
pub struct Image {
    /// Pixels of a row.
    pub width: usize,
    /// Rows.
    pub height: usize,
    /// Channels of a pixel: 3, red, green and blue, or 1, grey.
    pub channels: usize,
    /// Whether blue comes first in the bytes.
    pub is_bgr: bool,
    /// Whether the bytes are planes `[C, H, W]`, and not pixels `[H, W, C]`.
    pub is_planar: bool,
}

impl Image {
    /// The bytes of an image as a camera hands them over; nothing if the file's name is not that of an image. What is
    /// transparent counts as opaque.
    ///
    /// # Errors
    /// When the program is built without the feature `image`, the file cannot be read or is no image, or the image has
    /// another size than the input.
    pub fn read(self, path: &str) -> Result<Option<Vec<u8>>, String> {
        if !is_image(path) {
            return Ok(None);
        }
        let decoded = decoded(path, self.channels, [self.width, self.height]);
        let mut pixels = decoded.map_err(|why| format!("{path}: {why}"))?;
        if self.is_bgr {
            pixels.chunks_exact_mut(self.channels).for_each(<[u8]>::reverse);
        }
        if self.is_planar {
            let plane = |channel: usize| pixels.iter().skip(channel).step_by(self.channels).copied();
            pixels = (0..self.channels).flat_map(plane).collect();
        }
        Ok(Some(pixels))
    }
}

/// The pixels of an image of this width and height, row by row, red first.
#[cfg(feature = "image")]
fn decoded(path: &str, channels: usize, size: [usize; 2]) -> Result<Vec<u8>, String> {
    use image::{DynamicImage, ImageDecoder, ImageReader};

    // By what the file holds, not by its name.
    let file = ImageReader::open(path).and_then(ImageReader::with_guessed_format);
    let decoder = file.map_err(|error| error.to_string())?.into_decoder();
    let decoder = decoder.map_err(|error| format!("{error}; give an image of PNG or JPEG"))?;
    // A small file may say that it is a huge image: only one of the right size is decoded.
    let found = <[u32; 2]>::from(decoder.dimensions()).map(|pixels| pixels as usize);
    if found != size {
        return Err(format!(
            "the image has {}×{} pixels, and the input takes {}×{}: scale or crop it as the network was trained",
            found[0], found[1], size[0], size[1]
        ));
    }
    let image = DynamicImage::from_decoder(decoder);
    let image = image.map_err(|error| format!("{error}; give an image of PNG or JPEG"))?;
    Ok(if channels == 1 { image.into_luma8().into_raw() } else { image.into_rgb8().into_raw() })
}

#[cfg(not(feature = "image"))]
fn decoded(_: &str, _: usize, _: [usize; 2]) -> Result<Vec<u8>, String> {
    Err("an image: build the program with `--features image`, or give the pixels as a .npy file".into())
}
