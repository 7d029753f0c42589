//! Resampling of height and width.

use csdfc_codegen::operator::{Coordinates, Operator, Resize, ResizeMode, Rounding};

use super::{Builder, Constant, Fault, Node, Tensor, fault};
use crate::import::builder::is_channels_last;
use crate::import::node::axis;

/// `Resize` of opset 10 and up: nearest or linear, over height and width.
pub(super) fn resize(builder: &mut Builder, node: &Node) -> Result<Tensor, Fault> {
    let x = node.tensor(0)?;
    let old = node.opset < 11;
    let coordinates = match node.text("coordinate_transformation_mode", "half_pixel")? {
        _ if old => Coordinates::Asymmetric,
        "half_pixel" => Coordinates::HalfPixel,
        "pytorch_half_pixel" => Coordinates::PytorchHalfPixel,
        "align_corners" => Coordinates::AlignCorners,
        "asymmetric" => Coordinates::Asymmetric,
        "tf_half_pixel_for_nn" => Coordinates::TfHalfPixelForNn,
        other => return fault!("coordinate_transformation_mode {other} is not supported"),
    };
    if node.flag("antialias", false)? {
        return fault!("antialias is not supported");
    }
    let rounding = match node.text("nearest_mode", "round_prefer_floor")? {
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
    let axes = match node.ints("axes")? {
        Some(list) => list.iter().map(|a| axis(*a, x.rank())).collect::<Result<Vec<_>, _>>()?,
        None => (0..x.rank()).collect(),
    };
    let mut scales = vec![1.0; x.rank()];
    let mut sizes = x.dims().to_vec();
    if let Some(constant) = given(sizes_at, "sizes")? {
        sizes_of(node, x.dims(), &axes, &constant.to_ints()?, &mut sizes, &mut scales)?;
    } else {
        let Some(constant) = given(scales_at, "scales")? else {
            return fault!("it has neither scales nor sizes");
        };
        scales_of(x.dims(), &axes, &constant.to_floats()?, &mut sizes, &mut scales)?;
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
    let (mut sizes, mut scales) = (x.dims().to_vec(), vec![1.0; x.rank()]);
    scales_of(x.dims(), &axes, &given, &mut sizes, &mut scales)?;
    layer(builder, node, x, mode(node, Rounding::Floor)?, Coordinates::Asymmetric, &sizes, &scales)
}

fn mode(node: &Node, rounding: Rounding) -> Result<ResizeMode, Fault> {
    match node.text("mode", "nearest")? {
        "nearest" => Ok(ResizeMode::Nearest { rounding }),
        "linear" | "bilinear" => Ok(ResizeMode::Linear),
        other => fault!("mode {other} is not supported; nearest and linear are"),
    }
}

/// Sizes `⌊dim · scale⌋` of scales.
fn scales_of(
    dims: &[usize],
    axes: &[usize],
    given: &[f32],
    sizes: &mut [usize],
    scales: &mut [f32],
) -> Result<(), Fault> {
    if given.len() != axes.len() {
        return fault!("{} scales for {} dimensions", given.len(), axes.len());
    }
    for (&axis, &scale) in axes.iter().zip(given) {
        let size = (dims[axis] as f64 * f64::from(scale)).floor();
        if !(1.0..=f64::from(u32::MAX)).contains(&size) {
            return fault!("a scale of {scale} of dimension {axis}");
        }
        sizes[axis] = size as usize;
        scales[axis] = scale;
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
    scales: &mut [f32],
) -> Result<(), Fault> {
    if given.len() != axes.len() {
        return fault!("{} sizes for {} dimensions", given.len(), axes.len());
    }
    for (&axis, &size) in axes.iter().zip(given) {
        sizes[axis] = match u32::try_from(size) {
            Ok(size) if size > 0 => size as usize,
            _ => return fault!("a size of {size}"),
        };
        scales[axis] = sizes[axis] as f32 / dims[axis] as f32;
    }
    let ratios = axes.iter().map(|axis| scales[*axis]);
    let common = match node.text("keep_aspect_ratio_policy", "stretch")? {
        "stretch" => return Ok(()),
        "not_larger" => ratios.min_by(f32::total_cmp),
        "not_smaller" => ratios.max_by(f32::total_cmp),
        other => return fault!("keep_aspect_ratio_policy {other} is unknown"),
    };
    for &axis in axes {
        let scale = common.unwrap_or(1.0);
        scales[axis] = scale;
        sizes[axis] = (f64::from(scale) * dims[axis] as f64).round() as usize;
    }
    Ok(())
}

fn layer(
    builder: &mut Builder,
    node: &Node,
    x: &Tensor,
    mode: ResizeMode,
    coordinates: Coordinates,
    sizes: &[usize],
    scales: &[f32],
) -> Result<Tensor, Fault> {
    // Nothing to compute: what scales beside equal sizes would ask for, ONNX Runtime does not do either.
    if sizes == x.dims() {
        return builder.identity(node, x);
    }
    // A channels-last image is resized as the channels-first one that it lies like.
    let first = if is_channels_last(&x.operand.shape) { builder.reordered(x) } else { None };
    let [row, column] = if first.is_some() { [1, 2] } else { [2, 3] };
    let spatial = |axis: usize| axis == row || axis == column;
    if x.rank() != 4
        || (0..4).any(|axis| !spatial(axis) && (scales[axis] != 1.0 || sizes[axis] != x.dims()[axis]))
    {
        return fault!("{} is resized by {scales:?}; only height and width may be", x.operand.shape);
    }
    let operator = Operator::Resize(Resize {
        mode,
        coordinates,
        scales: [scales[row], scales[column]],
        size: [sizes[row], sizes[column]],
    });
    let resized = builder.layer(node, operator, &[first.as_ref().unwrap_or(x)], Vec::new())?;
    let back = if first.is_some() { builder.reordered(&resized) } else { None };
    Ok(back.unwrap_or(resized))
}
