//! Operators on images: convolutions, pools, and resizes.

use crate::import::attribute::{float, int, ints, text};
use crate::import::error::{Fault, fault};
use crate::import::node::Value;
use crate::import::tflite::dilated::{Part, Window};
use crate::import::tflite::op::{Op, dims, list};

/// Filters as ONNX has them, `[outputs, inputs, rows, columns]`, of TFLite's `[outputs, rows, columns, inputs]`.
const OF_CONV: [usize; 4] = [0, 3, 1, 2];

/// `[inputs, outputs, rows, columns]` of TFLite's `[outputs, rows, columns, inputs]`; of a depthwise convolution's
/// `[1, rows, columns, outputs]`, those of ONNX.
const OF_TRANSPOSED: [usize; 4] = [3, 0, 1, 2];

pub(super) fn conv(op: &mut Op) -> Result<Vec<Value>, Fault> {
    convolution(op, OF_CONV, [3, 4, 5])
}

/// `DEPTHWISE_CONV_2D`: each group is a channel.
pub(super) fn depthwise_conv(op: &mut Op) -> Result<Vec<Value>, Fault> {
    convolution(op, OF_TRANSPOSED, [4, 5, 6])
}

fn convolution(
    op: &mut Op,
    perm: [usize; 4],
    [activation, across, down]: [usize; 3],
) -> Result<Vec<Value>, Fault> {
    let x = image(op, 0)?;
    let filters = op.weights(1, &perm)?;
    let (&[_, channels, ..], &[_, inputs, ..]) = (dims(&x).as_slice(), dims(&filters).as_slice()) else {
        return fault!("its operands are no images");
    };
    if inputs == 0 || channels % inputs != 0 {
        return fault!("{channels} channels are no multiple of its filters' {inputs}");
    }
    let (pads, dilations) = match op.part {
        Some(Part::Convolution(Window { dilations, before, after })) => {
            (ints("pads", [before, after].into_iter().flatten().copied().collect::<Vec<_>>()), *dilations)
        }
        _ => (padding(op, 0)?, [op.int(down, 1)?, op.int(across, 1)?]),
    };
    let attributes = vec![
        pads,
        ints("strides", [op.int(2, 0)?, op.int(1, 0)?]),
        ints("dilations", dilations),
        int("group", (channels / inputs) as i64),
    ];
    let bias = if op.has(2) { Some(op.weights(2, &[0])?) } else { None };
    let y = op.node("Conv", [Some(x), Some(filters), bias], attributes)?;
    let y = op.activated(y, activation)?;
    Ok(vec![op.last(y)?])
}

/// `TRANSPOSE_CONV`: the shape of its output, its filters, its input, and perhaps a bias.
pub(super) fn transpose_conv(op: &mut Op) -> Result<Vec<Value>, Fault> {
    let shape = op.ints(0, "output_shape")?;
    let (is_same, stride) = (is_same(op.code(0)?)?, [op.int(2, 0)?, op.int(1, 0)?]);
    transposed(op, [2, 1, 3], Some(&shape), is_same, stride, true)
}

/// MediaPipe's operator: a `TRANSPOSE_CONV` with a bias. The size of its output follows from its input.
pub(super) fn transpose_conv_bias(op: &mut Op) -> Result<Vec<Value>, Fault> {
    let number = |at: usize| -> Result<i32, Fault> {
        let bytes = op.custom.get(4 * at..4 * at + 4).and_then(|bytes| <[u8; 4]>::try_from(bytes).ok());
        bytes.map(i32::from_le_bytes).map_or_else(|| fault!("its options are missing"), Ok)
    };
    // 1 is SAME, 2 is VALID.
    let (padding, stride) = (number(0)? - 1, [i64::from(number(2)?), i64::from(number(1)?)]);
    let is_same = is_same(i8::try_from(padding).unwrap_or(-1))?;
    transposed(op, [0, 1, 2], None, is_same, stride, false)
}

fn transposed(
    op: &mut Op,
    [x, filters, bias]: [usize; 3],
    shape: Option<&[i64]>,
    is_same: bool,
    stride: [i64; 2],
    has_activation: bool,
) -> Result<Vec<Value>, Fault> {
    let x = image(op, x)?;
    let filters = op.weights(filters, &OF_TRANSPOSED)?;
    let (&[_, _, rows, columns], &[_, _, ky, kx]) = (dims(&x).as_slice(), dims(&filters).as_slice()) else {
        return fault!("its operands are no images");
    };
    if stride.iter().any(|stride| !(1..=1 << 16).contains(stride)) {
        return fault!("a stride of {stride:?} is not supported");
    }
    // The extent of all windows, and how much of it is cut off or added.
    let covered = |size: usize, stride: i64, kernel: usize| (size as i64 - 1) * stride + kernel as i64;
    let covered = [covered(rows, stride[0], ky), covered(columns, stride[1], kx)];
    let made = match shape {
        Some(&[_, rows, columns, _]) if rows.max(columns) < 1 << 31 => [rows, columns],
        Some(shape) => return fault!("its output_shape {shape:?} is no image's"),
        None if is_same => [rows as i64 * stride[0], columns as i64 * stride[1]],
        None => covered,
    };
    let (mut pads, mut added) = ([0; 4], [0; 2]);
    for i in 0..2 {
        let surplus = covered[i] - made[i];
        pads[i] = if is_same { surplus.max(0) / 2 } else { 0 };
        pads[i + 2] = (surplus - pads[i]).max(0);
        added[i] = (pads[i] - surplus).max(0);
    }
    let attributes = vec![ints("strides", stride), ints("pads", pads), ints("output_padding", added)];
    let bias = if op.has(bias) { Some(op.weights(bias, &[0])?) } else { None };
    let y = op.node("ConvTranspose", [Some(x), Some(filters), bias], attributes)?;
    let y = if has_activation { op.activated(y, 3)? } else { y };
    Ok(vec![op.last(y)?])
}

pub(super) fn max_pool(op: &mut Op) -> Result<Vec<Value>, Fault> {
    pool(op, "MaxPool")
}

/// `AVERAGE_POOL_2D`: padding does not count.
pub(super) fn average_pool(op: &mut Op) -> Result<Vec<Value>, Fault> {
    pool(op, "AveragePool")
}

/// `L2_POOL_2D`: the root of the mean of squares.
pub(super) fn l2_pool(op: &mut Op) -> Result<Vec<Value>, Fault> {
    let x = image(op, 0)?;
    let squares = op.node("Mul", [x.clone(), x], Vec::new())?;
    let attributes = window(op)?;
    let mean = op.node("AveragePool", [squares], attributes)?;
    let y = op.node("Sqrt", [mean], Vec::new())?;
    let y = op.activated(y, 5)?;
    Ok(vec![op.last(y)?])
}

fn pool(op: &mut Op, operator: &str) -> Result<Vec<Value>, Fault> {
    let x = image(op, 0)?;
    let attributes = window(op)?;
    let y = op.node(operator, [x], attributes)?;
    let y = op.activated(y, 5)?;
    Ok(vec![op.last(y)?])
}

/// The attributes of a pool.
fn window(op: &Op) -> Result<Vec<rten_onnx::onnx::AttributeProto>, Fault> {
    Ok(vec![
        padding(op, 0)?,
        ints("strides", [op.int(2, 0)?, op.int(1, 0)?]),
        ints("kernel_shape", [op.int(4, 0)?, op.int(3, 0)?]),
    ])
}

/// `LOCAL_RESPONSE_NORMALIZATION`: ONNX divides alpha by the number of channels.
pub(super) fn local_response_normalization(op: &mut Op) -> Result<Vec<Value>, Fault> {
    let x = image(op, 0)?;
    let size = 2 * op.int(0, 0)? + 1;
    let attributes = vec![
        int("size", size),
        float("bias", op.float(1, 0.0)?),
        float("alpha", op.float(2, 0.0)? * size as f32),
        float("beta", op.float(3, 0.0)?),
    ];
    let y = op.node("LRN", [x], attributes)?;
    Ok(vec![op.last(y)?])
}

pub(super) fn resize_bilinear(op: &mut Op) -> Result<Vec<Value>, Fault> {
    let coordinates = match (op.flag(2)?, op.flag(3)?) {
        (false, false) => "asymmetric",
        (true, false) => "align_corners",
        (false, true) => "half_pixel",
        (true, true) => return fault!("it both aligns corners and has half-pixel centres"),
    };
    resize(op, vec![text("mode", "linear"), text("coordinate_transformation_mode", coordinates)])
}

pub(super) fn resize_nearest(op: &mut Op) -> Result<Vec<Value>, Fault> {
    let (coordinates, rounding) = match (op.flag(0)?, op.flag(1)?) {
        (false, false) => ("asymmetric", "floor"),
        (true, false) => ("align_corners", "round_prefer_ceil"),
        (false, true) => ("tf_half_pixel_for_nn", "floor"),
        (true, true) => return fault!("it both aligns corners and has half-pixel centres"),
    };
    let attributes = vec![
        text("mode", "nearest"),
        text("coordinate_transformation_mode", coordinates),
        text("nearest_mode", rounding),
    ];
    resize(op, attributes)
}

fn resize(op: &mut Op, attributes: Vec<rten_onnx::onnx::AttributeProto>) -> Result<Vec<Value>, Fault> {
    let x = image(op, 0)?;
    let &[batch, channels, ..] = dims(&x).as_slice() else { return fault!("its operand is no image") };
    let &[rows, columns] = op.ints(1, "size")?.as_slice() else { return fault!("its size has no 2 numbers") };
    let sizes = list(vec![batch as i64, channels as i64, rows, columns]);
    let y = op.node("Resize", [Some(x), None, None, Some(sizes)], attributes)?;
    Ok(vec![op.last(y)?])
}

/// Operand `index`, an image, channels-first.
fn image(op: &mut Op, index: usize) -> Result<Value, Fault> {
    let x = op.number(index)?;
    match dims(&x).len() {
        4 => op.first(x),
        rank => fault!("its operand {index} has rank {rank}, and is no image"),
    }
}

/// Option `id` as the attribute of a window. TFLite pads after the image, if the padding is odd.
fn padding(op: &Op, id: usize) -> Result<rten_onnx::onnx::AttributeProto, Fault> {
    Ok(text("auto_pad", if is_same(op.code(id)?)? { "SAME_UPPER" } else { "VALID" }))
}

fn is_same(padding: i8) -> Result<bool, Fault> {
    match padding {
        0 => Ok(true),
        1 => Ok(false),
        other => fault!("its padding {other} is unknown"),
    }
}
