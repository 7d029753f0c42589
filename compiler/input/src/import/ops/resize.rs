//! Resampling of height and width, or of other dimensions one after another.

use csdfc_plan::operator::{
    Coordinates, Crop, Filter, GridSample, Operator, Ratio, Resize, ResizeMode, Rounding, SampleMode,
    SamplePadding, Scale,
};

use crate::import::builder::{Builder, is_channels_last};
use crate::import::constant::Constant;
use crate::import::error::{Fault, fault};
use crate::import::node::{Node, Tensor, Value, axis};

use super::layout;

/// `Resize` of opset 10 and up.
pub(super) fn resize(builder: &mut Builder, node: &Node) -> Result<Tensor, Fault> {
    let x = node.tensor(0)?;
    let old = node.opset < 11;
    let axes = match node.ints("axes")? {
        Some(list) => list.iter().map(|a| axis(*a, x.rank())).collect::<Result<Vec<_>, _>>()?,
        None => (0..x.rank()).collect(),
    };
    let coordinates = match node.text("coordinate_transformation_mode", "half_pixel")? {
        _ if old => Coordinates::Asymmetric,
        "half_pixel" => Coordinates::HalfPixel,
        "pytorch_half_pixel" => Coordinates::PytorchHalfPixel,
        "align_corners" => Coordinates::AlignCorners,
        "asymmetric" => Coordinates::Asymmetric,
        "tf_half_pixel_for_nn" => Coordinates::TfHalfPixelForNn,
        "half_pixel_symmetric" => Coordinates::HalfPixelSymmetric,
        "tf_crop_and_resize" => Coordinates::TfCropAndResize(crop(node, x, &axes)?),
        other => return fault!("coordinate_transformation_mode {other} is unknown"),
    };
    let rounding = match node.text("nearest_mode", "round_prefer_floor")? {
        // Of the axes that grow.
        _ if old => Rounding::Floor,
        "round_prefer_floor" => Rounding::RoundPreferFloor,
        "round_prefer_ceil" => Rounding::RoundPreferCeil,
        "floor" => Rounding::Floor,
        "ceil" => Rounding::Ceil,
        other => return fault!("nearest_mode {other} is unknown"),
    };
    let mode = mode(node, rounding)?;
    let (scales_at, sizes_at) = if old { (1, usize::MAX) } else { (2, 3) };
    let given = |at: usize, what: &str| -> Result<Option<&Constant>, Fault> {
        Ok(node.optional(at, what)?.filter(|constant| constant.elements() > 0))
    };
    let mut scales = vec![Scale::Float(1.0); x.rank()];
    let mut sizes = x.dims().to_vec();
    if let Some(constant) = given(sizes_at, "sizes")? {
        sizes_of(node, x.dims(), &axes, &constant.to_ints()?, &mut sizes, &mut scales)?;
    } else {
        let Some(constant) = given(scales_at, "scales")? else {
            return fault!("it has neither scales nor sizes");
        };
        scales_of(x.dims(), &axes, &constant.to_floats()?, &mut sizes, &mut scales)?;
    }
    if coordinates == Coordinates::AlignCorners {
        // Corners lie on corners, even if a scale makes no whole size. Sizes are below 2^32.
        let ratio = |(&over, &under): (&usize, &usize)| Ratio { over: over as u32, under: under as u32 };
        scales = sizes.iter().zip(x.dims()).map(ratio).map(Scale::Ratio).collect();
    }
    layer(builder, node, x, mode, coordinates, &sizes, &scales)
}

/// `Upsample`, the Resize of opset 7 to 9.
pub(super) fn upsample(builder: &mut Builder, node: &Node) -> Result<Tensor, Fault> {
    let x = node.tensor(0)?;
    let given = if node.opset < 9 {
        node.attribute("scales").map(|attribute| attribute.floats.clone())
    } else {
        Some(node.constant(1, "scales")?.to_floats()?)
    };
    let Some(given) = given else { return fault!("its scales are missing") };
    let axes: Vec<usize> = (0..x.rank()).collect();
    let (mut sizes, mut scales) = (x.dims().to_vec(), vec![Scale::Float(1.0); x.rank()]);
    scales_of(x.dims(), &axes, &given, &mut sizes, &mut scales)?;
    layer(builder, node, x, mode(node, Rounding::Floor)?, Coordinates::Asymmetric, &sizes, &scales)
}

/// `GridSample` of an image or a volume. Its places are a tensor, or a constant.
pub(super) fn grid_sample(builder: &mut Builder, node: &Node) -> Result<Tensor, Fault> {
    let x = node.tensor(0)?;
    if ![4, 5].contains(&x.rank()) {
        return fault!(
            "it samples {}; csdfc samples images and volumes, of 4 and 5 dimensions",
            x.operand.shape
        );
    }
    let mode = match node.text("mode", "linear")? {
        "nearest" => SampleMode::Nearest,
        "linear" | "bilinear" => SampleMode::Linear,
        "cubic" | "bicubic" if x.rank() == 4 => SampleMode::Cubic,
        other => return fault!("mode {other} of {} is unknown", x.operand.shape),
    };
    let padding = match node.text("padding_mode", "zeros")? {
        "zeros" => SamplePadding::Zeros,
        "border" => SamplePadding::Border,
        "reflection" => SamplePadding::Reflection,
        other => return fault!("padding_mode {other} is unknown"),
    };
    let sample = GridSample { mode, padding, align_corners: node.flag("align_corners", false)? };
    let places = match node.input(1) {
        Some(Value::Constant(constant)) => layout::tensor_of(builder, node, x, constant)?,
        _ => node.tensor(1)?.clone(),
    };
    builder.layer(node, Operator::GridSample(sample), &[x, &places], Vec::new())
}

fn mode(node: &Node, rounding: Rounding) -> Result<ResizeMode, Fault> {
    let antialias = node.flag("antialias", false)?;
    let exclude_outside = node.flag("exclude_outside", false)?;
    let filter = |cubic| Filter { cubic, antialias, exclude_outside };
    match node.text("mode", "nearest")? {
        "nearest" => Ok(ResizeMode::Nearest { rounding }),
        "linear" | "bilinear" if antialias => Ok(ResizeMode::Filter(filter(None))),
        // Outside the image, a neighbour is the element at the edge.
        "linear" | "bilinear" => Ok(ResizeMode::Linear),
        "cubic" => match node.float("cubic_coeff_a", -0.75)? {
            a if a.is_finite() => Ok(ResizeMode::Filter(filter(Some(a)))),
            a => fault!("a cubic_coeff_a of {a} is no coefficient"),
        },
        other => fault!("mode {other} is unknown"),
    }
}

/// The part of height and width that `tf_crop_and_resize` resizes. `axes` are those that its region has.
fn crop(node: &Node, x: &Tensor, axes: &[usize]) -> Result<Crop, Fault> {
    let region = node.constant(1, "region")?.to_floats()?;
    if region.len() != 2 * axes.len() {
        return fault!("its region has {} numbers for {} dimensions", region.len(), axes.len());
    }
    let (mut from, mut to) = (vec![0.0; x.rank()], vec![1.0; x.rank()]);
    for (i, &axis) in axes.iter().enumerate() {
        (from[axis], to[axis]) = (region[i], region[axes.len() + i]);
    }
    let outside = node.float("extrapolation_value", 0.0)?;
    if !outside.is_finite() {
        return fault!("an extrapolation_value of {outside} is not supported");
    }
    match (&from[..], &to[..]) {
        (&[0.0, 0.0, top, left], &[1.0, 1.0, bottom, right]) => {
            Ok(Crop { from: [top, left], to: [bottom, right], outside })
        }
        _ => {
            fault!("it crops {} from {from:?} to {to:?}; csdfc crops only height and width", x.operand.shape)
        }
    }
}

/// Sizes `⌊dim · scale⌋` of scales, whose product is a 32-bit float, as in ONNX Runtime: 20 · 0.7 is 14.
fn scales_of(
    dims: &[usize],
    axes: &[usize],
    given: &[f32],
    sizes: &mut [usize],
    scales: &mut [Scale],
) -> Result<(), Fault> {
    if given.len() != axes.len() {
        return fault!("it has {} scales for {} dimensions", given.len(), axes.len());
    }
    for (&axis, &scale) in axes.iter().zip(given) {
        let size = f64::from((dims[axis] as f32 * scale).floor());
        if !(1.0..=f64::from(u32::MAX)).contains(&size) {
            return fault!("a scale of {scale} for dimension {axis} makes a size that is out of range");
        }
        sizes[axis] = size as usize;
        scales[axis] = Scale::Float(scale);
    }
    Ok(())
}

/// Scales `size / dim` of sizes, as the policy on the aspect ratio has them.
fn sizes_of(
    node: &Node,
    dims: &[usize],
    axes: &[usize],
    given: &[i64],
    sizes: &mut [usize],
    scales: &mut [Scale],
) -> Result<(), Fault> {
    if given.len() != axes.len() {
        return fault!("it has {} sizes for {} dimensions", given.len(), axes.len());
    }
    let mut ratios = Vec::with_capacity(axes.len());
    for (&axis, &size) in axes.iter().zip(given) {
        let ratio = match (u32::try_from(size), u32::try_from(dims[axis])) {
            // No tensor of the network is empty.
            (Ok(over), Ok(under)) if over > 0 => Ratio { over, under },
            _ => return fault!("a dimension of {} cannot be resized to {size}", dims[axis]),
        };
        sizes[axis] = ratio.over as usize;
        scales[axis] = Scale::Ratio(ratio);
        ratios.push(ratio);
    }
    let by_value = |a: &Ratio, b: &Ratio| {
        (u64::from(a.over) * u64::from(b.under)).cmp(&(u64::from(b.over) * u64::from(a.under)))
    };
    let common = match node.text("keep_aspect_ratio_policy", "stretch")? {
        "stretch" => return Ok(()),
        "not_larger" => ratios.into_iter().min_by(by_value),
        "not_smaller" => ratios.into_iter().max_by(by_value),
        other => return fault!("keep_aspect_ratio_policy {other} is unknown"),
    };
    let Some(common) = common else { return Ok(()) };
    for &axis in axes {
        scales[axis] = Scale::Ratio(common);
        // To the nearest, halves up.
        let [over, under] = [common.over, common.under].map(u128::from);
        sizes[axis] = ((2 * over * dims[axis] as u128 + under) / (2 * under)) as usize;
    }
    Ok(())
}

/// One axis that is resized.
#[derive(Clone)]
struct Along {
    axis: usize,
    mode: ResizeMode,
    scale: Scale,
    size: usize,
}

impl Along {
    /// The axis as [`resize`] finds it. Before opset 11, a nearest neighbour is sought upwards where an axis shrinks, and
    /// the scale is the fraction that was meant: ONNX Runtime divides in 32 bits, where 7 / 0.7 is 10.
    fn new(node: &Node, axis: usize, mode: &ResizeMode, scale: Scale, size: usize) -> Along {
        match (mode, scale) {
            (ResizeMode::Nearest { .. }, Scale::Float(factor)) if node.opset < 11 => {
                let rounding = if factor < 1.0 { Rounding::Ceil } else { Rounding::Floor };
                let is_other =
                    |ratio: &Ratio| f64::from(ratio.over) / f64::from(ratio.under) != f64::from(factor);
                let scale = first_ratio(factor).filter(is_other).map_or(scale, Scale::Ratio);
                Along { axis, mode: ResizeMode::Nearest { rounding }, scale, size }
            }
            _ => Along { axis, mode: mode.clone(), scale, size },
        }
    }

    /// An axis that is not resized.
    fn none(mode: &ResizeMode, size: usize) -> Along {
        Along { axis: 0, mode: mode.clone(), scale: Scale::Float(1.0), size }
    }
}

/// The first convergent of the continued fraction of a number that rounds to it.
fn first_ratio(factor: f32) -> Option<Ratio> {
    let (mut rest, mut last, mut ratio) = (f64::from(factor), [0.0, 1.0], [1.0, 0.0]);
    loop {
        let whole = rest.floor();
        let next = [0, 1].map(|i| whole * ratio[i] + last[i]);
        (last, ratio) = (ratio, next);
        let [over, under] = ratio;
        if over.max(under) > f64::from(u32::MAX) {
            return None;
        }
        if (over / under) as f32 == factor {
            return Some(Ratio { over: over as u32, under: under as u32 });
        }
        rest = 1.0 / (rest - whole);
    }
}

fn is_one(scale: Scale) -> bool {
    match scale {
        Scale::Float(scale) => scale == 1.0,
        Scale::Ratio(Ratio { over, under }) => over == under,
    }
}

fn layer(
    builder: &mut Builder,
    node: &Node,
    x: &Tensor,
    mode: ResizeMode,
    coordinates: Coordinates,
    sizes: &[usize],
    scales: &[Scale],
) -> Result<Tensor, Fault> {
    let is_crop = matches!(coordinates, Coordinates::TfCropAndResize(_));
    // There is nothing to compute. If scales are given in addition to equal sizes, ONNX Runtime ignores them too.
    if sizes == x.dims() && !is_crop {
        return builder.identity(node, x);
    }
    let stays = |axis: usize| is_one(scales[axis]) && sizes[axis] == x.dims()[axis];
    let along = |axis: usize| Along::new(node, axis, &mode, scales[axis], sizes[axis]);
    // A channels-last image is resized as the channels-first image that has the same elements in memory, unless its
    // channels are resized.
    let lies_so = is_channels_last(&x.operand.shape) && stays(3) && !is_crop;
    let first = if lies_so { builder.reordered(x) } else { None };
    let [row, column] = if first.is_some() { [1, 2] } else { [2, 3] };
    let resized: Vec<Along> = (0..x.rank()).filter(|axis| !stays(*axis)).map(along).collect();
    let is_image = x.rank() == 4 && resized.iter().all(|along| [row, column].contains(&along.axis));
    if is_image && resized.windows(2).all(|pair| pair[0].mode == pair[1].mode) {
        let mode = resized.first().map_or_else(|| mode.clone(), |along| along.mode.clone());
        let [rows, columns] = [row, column].map(along);
        let made = image(builder, node, first.as_ref().unwrap_or(x), mode, coordinates, [rows, columns])?;
        let back = if first.is_some() { builder.reordered(&made) } else { None };
        return Ok(back.unwrap_or(made));
    }
    if is_crop {
        return fault!("it crops {}; csdfc crops only height and width", x.operand.shape);
    }
    // The weights of a place are products of those along the axes.
    let mut x = x.clone();
    for along in resized {
        let mut dims = x.dims().to_vec();
        let [outer, inner] = [&dims[..along.axis], &dims[along.axis + 1..]].map(|dims| dims.iter().product());
        dims[along.axis] = along.size;
        let rows = builder.reshape(node, &x, vec![1, outer, x.dims()[along.axis], inner])?;
        let (mode, columns) = (along.mode.clone(), Along::none(&along.mode, inner));
        let made = image(builder, node, &rows, mode, coordinates, [along, columns])?;
        x = builder.reshape(node, &made, dims)?;
    }
    Ok(x)
}

/// Resizes the height and width of an image.
fn image(
    builder: &mut Builder,
    node: &Node,
    x: &Tensor,
    mode: ResizeMode,
    coordinates: Coordinates,
    along: [Along; 2],
) -> Result<Tensor, Fault> {
    let [rows, columns] = along;
    let operator = Operator::Resize(Resize {
        mode,
        coordinates,
        scales: [rows.scale, columns.scale],
        size: [rows.size, columns.size],
    });
    builder.layer(node, operator, &[x], Vec::new())
}
