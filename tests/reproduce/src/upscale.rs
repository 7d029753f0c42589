//! A picture that ESPCN makes larger, for the guide. There are no trained weights here. So the network gets weights that
//! make it a filter that everyone knows: the cubic one by which image viewers enlarge. Its first layer interpolates along
//! lines, the two others down columns, and the shuffle puts the pixels in their places.
//!
//! Between the layers is a hyperbolic tangent, which hardly changes small numbers. So the first layer makes all numbers
//! small, and the last makes them large again.

use std::fmt::Write;

use csdfc_input::app::resolve::{Application, RowsChoice};
use csdfc_input::builtin;
use csdfc_input::device::DeviceProfile;
use csdfc_network::Network;
use csdfc_planner::driver;
use csdfc_runtime::run::{Data, Runner, Value};

/// The name of the picture.
pub const FILE: &str = "upscaled.svg";

/// Pixels of the frame, and of the part of it that the picture shows, from which pixel on: width and height.
const FRAME: [usize; 2] = [960, 540];
const PART: [usize; 2] = [48, 32];
const FROM: [usize; 2] = [456, 250];

/// How many times larger.
const SCALE: usize = 4;

/// What numbers are multiplied by between the layers.
const SMALL: f32 = 1.0 / 128.0;

/// Points in a row and in a column that are seen of each pixel of the drawing.
const POINTS: usize = 8;

/// Pixels of three colours from 0 to 1, row by row, and their width.
#[derive(Debug, Clone, PartialEq)]
pub struct Image {
    /// Red, green and blue of each pixel.
    pub pixels: Vec<[f32; 3]>,
    /// Pixels in a row.
    pub width: usize,
}

/// The picture, before and after.
///
/// # Errors
/// Why the network does not run. There is no reason that it should not.
pub fn files() -> Result<Vec<(String, String)>, String> {
    Ok(vec![(FILE.into(), beginning() + &end(&enlarged()?))])
}

/// The picture up to what the network makes.
pub fn beginning() -> String {
    let [width, height] = PART.map(|pixels| pixels * 8);
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\" font-family=\"sans-serif\" font-size=\"13\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n",
        2 * width + 30,
        height + 40
    );
    text += &panel(&drawing(), 10, &format!("before: {}×{} pixels", PART[0], PART[1]));
    text
}

fn end(after: &Image) -> String {
    let [width, height] = PART.map(|pixels| pixels * SCALE);
    let label = format!("after: {width}×{height}, by ESPCN as a cubic filter, not trained");
    panel(after, PART[0] * 8 + 20, &label) + "</svg>\n"
}

/// An image at a place of the picture, with its label.
fn panel(image: &Image, x: usize, label: &str) -> String {
    let [width, height] = PART.map(|pixels| pixels * 8);
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = write!(
        text,
        "<text x=\"{x}\" y=\"22\">{label}</text>\n\
         <image x=\"{x}\" y=\"30\" width=\"{width}\" height=\"{height}\" style=\"image-rendering:pixelated\" \
         href=\"data:image/bmp;base64,{}\"/>\n",
        base64(&bitmap(image))
    );
    text
}

/// The part of the drawing that the picture shows.
pub fn drawing() -> Image {
    let pixel = |at: usize| point_sum([FROM[0] + at % PART[0], FROM[1] + at / PART[0]]);
    Image { pixels: (0..PART[0] * PART[1]).map(pixel).collect(), width: PART[0] }
}

/// A pixel of the drawing: the mean of its points. All of it is exact, so that it is the same on every machine.
fn point_sum(pixel: [usize; 2]) -> [f32; 3] {
    let mut sum = [0; 3];
    for at in 0..POINTS * POINTS {
        let at = [at % POINTS, at / POINTS];
        // From the centre of the part, in units of an eighth of a pixel.
        let [x, y] = [0, 1]
            .map(|d| (pixel[d] * POINTS + at[d]) as i64 - ((FROM[d] * 2 + PART[d]) * POINTS / 2) as i64);
        let colour = point(x, y);
        sum.iter_mut().zip(colour).for_each(|(sum, colour)| *sum += colour);
    }
    sum.map(|sum| sum as f32 / (255 * POINTS * POINTS) as f32)
}

/// The colour of a point: a ball with a ring, before stripes and a thin line.
fn point(x: i64, y: i64) -> [usize; 3] {
    let distance = (x + 70) * (x + 70) + y * y;
    let gleam = (x + 88) * (x + 88) + (y + 28) * (y + 28);
    let stripe = (3 * x + 2 * y).rem_euclid(132) < 66;
    match () {
        () if gleam < 18 * 18 => [255, 236, 214],
        () if distance < 74 * 74 => [205, 52, 40],
        () if distance < 90 * 90 => [250, 250, 245],
        () if (2 * x - 5 * y + 90).abs() < 26 => [28, 60, 92],
        () if x > 36 && stripe => [40, 88, 70],
        () if x > 36 => [238, 214, 120],
        () => [150, 188, 216],
    }
}

/// The same part as the network makes it of the whole frame.
///
/// # Errors
/// Why the network does not run.
pub fn enlarged() -> Result<Image, String> {
    let network = builtin::network("espcn").map_err(|error| error.to_string())?;
    let application = Application::of_network("espcn", network.clone(), RowsChoice::All);
    let device =
        DeviceProfile::find("generic", std::path::Path::new("")).map_err(|error| error.to_string())?;
    let planned = driver::plan(&application, &device, vec!["builtin:espcn".into()])
        .map_err(|error| error.to_string())?;
    let parameters =
        |_: usize, layer: usize, parameter: usize| Ok(weights(&network, layer, parameter).into());
    let mut runner = Runner::new(&planned.plan, &parameters).map_err(|error| error.to_string())?;
    let [width, height] = FRAME;
    let pixels: Vec<[f32; 3]> = (0..width * height).map(|at| point_sum([at % width, at / width])).collect();
    let planes = (0..3).flat_map(|colour| pixels.iter().map(move |pixel| pixel[colour])).collect();
    let frame = Value { dims: vec![1, 3, height, width], data: Data::F32(planes) };
    let made = runner.infer(0, &[frame]).map_err(|error| error.to_string())?;
    let Some(Value { data: Data::F32(made), .. }) = made.into_iter().next() else {
        return Err("the network makes no floats".into());
    };
    let [width, height] = FRAME.map(|pixels| pixels * SCALE);
    let [from, part] = [FROM, PART].map(|pixels| pixels.map(|pixels| pixels * SCALE));
    let pixel = |at: usize| {
        let place = (from[1] + at / part[0]) * width + from[0] + at % part[0];
        [0, 1, 2].map(|colour| made[colour * width * height + place])
    };
    Ok(Image { pixels: (0..part[0] * part[1]).map(pixel).collect(), width: part[0] })
}

/// The same by the filter's definition, without a network.
pub fn filtered() -> Image {
    let [width, height] = PART.map(|pixels| pixels * SCALE);
    let pixel = |at: usize| {
        let [x, y] = [at % width, at / width];
        let mut sum = [0.0; 3];
        for tap in 0..25 {
            let [dx, dy] = [tap % 5, tap / 5].map(|tap| tap as i64 - 2);
            let from = |at: usize, d: usize, by: i64| (FROM[d] + at / SCALE).wrapping_add_signed(by as isize);
            let seen = point_sum([from(x, 0, dx), from(y, 1, dy)]);
            let weight = tap_of(x % SCALE, dx) * tap_of(y % SCALE, dy);
            sum.iter_mut().zip(seen).for_each(|(sum, seen)| *sum += weight * f64::from(seen));
        }
        sum.map(|sum| sum as f32)
    };
    Image { pixels: (0..width * height).map(pixel).collect(), width }
}

/// The weight of the pixel `by` pixels further, for pixel `phase` of the four that a pixel becomes: Keys' cubic filter
/// with the parameter −1/2.
fn tap_of(phase: usize, by: i64) -> f64 {
    // The centres of the four are 3/8 and 1/8 before and behind that of the pixel.
    let x = (by as f64 - (2.0 * phase as f64 - 3.0) / 8.0).abs();
    match x {
        _ if x < 1.0 => (1.5 * x - 2.5) * x * x + 1.0,
        _ if x < 2.0 => ((2.5 - 0.5 * x) * x - 4.0) * x + 2.0,
        _ => 0.0,
    }
}

/// The weights that make ESPCN this filter: no biases, and filters that are mostly zeros.
///
/// The channels after `conv1` are the four pixels of each colour along a line; after `conv2`, each of them from the row
/// above and from the row below. So the 3×3 filters of `conv3` see the five rows that the filter needs.
fn weights(network: &Network, layer: usize, parameter: usize) -> Vec<f32> {
    let layer = &network.layers[layer];
    let dims = &layer.parameters[parameter].dims;
    let mut all = vec![0.0; dims.iter().product()];
    if parameter > 0 {
        return all;
    }
    let [_, channels, height, width] = dims[..] else { return all };
    let mut set = |filter: usize, channel: usize, [y, x]: [usize; 2], value: f64| {
        all[((filter * channels + channel) * height + y) * width + x] = value as f32;
    };
    for (colour, along) in (0..3).flat_map(|colour| (0..SCALE).map(move |along| (colour, along))) {
        let line = colour * SCALE + along;
        match layer.name.as_str() {
            "conv1" => {
                (0..5)
                    .for_each(|x| set(line, colour, [2, x], tap_of(along, x as i64 - 2) * f64::from(SMALL)));
            }
            "conv2" => [0, 2].into_iter().for_each(|y| set(2 * line + y / 2, line, [y, 1], 1.0)),
            _ => {
                for (down, row) in (0..SCALE).flat_map(|down| (0..5).map(move |row| (down, row))) {
                    let filter = (colour * SCALE + down) * SCALE + along;
                    let (channel, y) = if row < 3 { (2 * line, row) } else { (2 * line + 1, row - 2) };
                    set(filter, channel, [y, 1], tap_of(down, row as i64 - 2) / f64::from(SMALL));
                }
            }
        }
    }
    all
}

/// An image as a file of Windows bitmaps: bytes of blue, green and red, from the bottom row.
fn bitmap(image: &Image) -> Vec<u8> {
    let (width, height) = (image.width, image.pixels.len() / image.width);
    // Rows of both images are multiples of four bytes, as the format asks for.
    let bytes = (image.pixels.len() * 3) as u32;
    let mut file = b"BM".to_vec();
    for number in [54 + bytes, 0, 54, 40, width as u32, height as u32, 1 | 24 << 16, 0, bytes, 0, 0, 0, 0] {
        file.extend(number.to_le_bytes());
    }
    for row in image.pixels.chunks(width).rev() {
        let byte = |x: f32| (x * 255.0).round().clamp(0.0, 255.0) as u8;
        file.extend(row.iter().flat_map(|[red, green, blue]| [byte(*blue), byte(*green), byte(*red)]));
    }
    file
}

/// Bytes as text.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for three in bytes.chunks(3) {
        let number =
            three.iter().fold(0, |number, byte| number << 8 | usize::from(*byte)) << (8 * (3 - three.len()));
        let digit = |place: usize| match place <= three.len() {
            true => char::from(DIGITS[number >> (18 - 6 * place) & 63]),
            false => '=',
        };
        text.extend((0..4).map(digit));
    }
    text
}
