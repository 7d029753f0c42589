//! Operators that see an image through windows: convolutions, pooling, resampling.

use csdfc_plan::operator::{
    Conv, ConvTranspose, Coordinates, Crop, GridSample, MaxUnpool, Pool, PoolKind, Ratio, Resize, ResizeMode,
    Rounding, SampleMode, SamplePadding, Scale,
};
use rten_onnx::onnx::{AttributeProto, DataType};

use super::nodes::Nodes;
use super::{ExportError, functions};
use crate::import::attribute::{flag, float, int, ints, text};

/// A convolution: a Concat of its parts, its prologue, the convolution itself, an Add of its residual, its activation.
pub(super) fn conv(nodes: &mut Nodes, conv: &Conv, mut operands: Vec<String>) -> Result<String, ExportError> {
    let added = operands.split_off(conv.parts(operands.len()));
    let mut x = match operands.as_slice() {
        [x] => x.clone(),
        _ => nodes.node("Concat", operands, vec![int("axis", 1)]),
    };
    if let Some(pre) = &conv.pre {
        if pre.affine {
            let first = 1 + usize::from(conv.bias);
            let vectors = [nodes.parameter(first, "scale")?, nodes.parameter(first + 1, "shift")?];
            let channels = nodes.layer.parameters[first].elements();
            x = functions::affine(nodes, x, vectors, channels);
        }
        if let Some(activation) = &pre.activation {
            x = functions::function(nodes, activation, x)?;
        }
    }
    let mut attributes = window(conv.kernel, conv.stride, conv.dilation, conv.pads);
    attributes.push(int("group", conv.groups));
    let inputs = weighted(nodes, x, conv.bias)?;
    let mut sum = nodes.node("Conv", inputs, attributes);
    if let Some(added) = added.into_iter().next() {
        sum = nodes.node("Add", [sum, added], Vec::new());
    }
    functions::activated(nodes, sum)
}

pub(super) fn conv_transpose(
    nodes: &mut Nodes,
    conv: &ConvTranspose,
    x: String,
) -> Result<String, ExportError> {
    let mut attributes = window(conv.kernel, conv.stride, conv.dilation, conv.pads);
    attributes.extend([int("group", conv.groups), ints("output_padding", conv.output_padding)]);
    let inputs = weighted(nodes, x, conv.bias)?;
    let sum = nodes.node("ConvTranspose", inputs, attributes);
    functions::activated(nodes, sum)
}

/// A tensor, the layer's weights, and its bias.
pub(super) fn weighted(nodes: &mut Nodes, x: String, bias: bool) -> Result<Vec<String>, ExportError> {
    let mut inputs = vec![x, nodes.parameter(0, "weight")?];
    if bias {
        inputs.push(nodes.parameter(1, "bias")?);
    }
    Ok(inputs)
}

pub(super) fn pool(nodes: &mut Nodes, pool: &Pool, x: String) -> String {
    let mut attributes = window(pool.kernel, pool.stride, pool.dilation, pool.pads);
    attributes.push(flag("ceil_mode", pool.ceil));
    let operator = match pool.kind {
        PoolKind::Max => "MaxPool",
        PoolKind::MaxIndex => {
            let [_, places] = nodes.add_with_two_outputs("MaxPool", [x], attributes);
            return nodes.node("Cast", [places], vec![int("to", DataType::FLOAT.0)]);
        }
        PoolKind::Average { count_include_pad } => {
            attributes.push(flag("count_include_pad", count_include_pad));
            "AveragePool"
        }
        PoolKind::Lp { p } => {
            attributes.push(int("p", p));
            "LpPool"
        }
    };
    nodes.node(operator, [x], attributes)
}

/// The places count in the output, whatever the window.
pub(super) fn max_unpool(nodes: &mut Nodes, unpool: &MaxUnpool, operands: Vec<String>) -> String {
    let [x, places] = <[String; 2]>::try_from(operands).unwrap_or_default();
    let places = nodes.node("Cast", [places], vec![int("to", DataType::INT64.0)]);
    let dims = &nodes.layer.inputs[0].shape.dims;
    // A window that fills the output, by the shape that ONNX infers: (n − 1) · stride + kernel.
    let kernel = [0, 1].map(|axis| (unpool.size[axis] + 1).saturating_sub(dims[axis + 2]));
    let attributes = vec![ints("kernel_shape", kernel), ints("strides", [1, 1])];
    nodes.node("MaxUnpool", [x, places], attributes)
}

pub(super) fn resize(nodes: &mut Nodes, resize: &Resize, x: String) -> Result<String, ExportError> {
    let coordinates = match resize.coordinates {
        Coordinates::HalfPixel => "half_pixel",
        Coordinates::PytorchHalfPixel => "pytorch_half_pixel",
        Coordinates::AlignCorners => "align_corners",
        Coordinates::Asymmetric => "asymmetric",
        Coordinates::TfHalfPixelForNn => "tf_half_pixel_for_nn",
        Coordinates::HalfPixelSymmetric => "half_pixel_symmetric",
        Coordinates::TfCropAndResize(_) => "tf_crop_and_resize",
    };
    let mut attributes = vec![text("coordinate_transformation_mode", coordinates)];
    match resize.mode {
        ResizeMode::Linear => attributes.push(text("mode", "linear")),
        ResizeMode::Nearest { rounding } => {
            let rounding = match rounding {
                Rounding::RoundPreferFloor => "round_prefer_floor",
                Rounding::RoundPreferCeil => "round_prefer_ceil",
                Rounding::Floor => "floor",
                Rounding::Ceil => "ceil",
            };
            attributes.extend([text("mode", "nearest"), text("nearest_mode", rounding)]);
        }
        ResizeMode::Filter(filter) => {
            attributes.push(text("mode", if filter.cubic.is_some() { "cubic" } else { "linear" }));
            attributes.extend(filter.cubic.map(|a| float("cubic_coeff_a", a)));
            attributes.extend(filter.antialias.then(|| flag("antialias", true)));
            attributes.extend(filter.exclude_outside.then(|| flag("exclude_outside", true)));
        }
    }
    // Without a crop there is no region of interest.
    let mut region = String::new();
    if let Coordinates::TfCropAndResize(Crop { from, to, outside }) = resize.coordinates {
        attributes.push(float("extrapolation_value", outside));
        let corners = [0.0, 0.0, from[0], from[1], 1.0, 1.0, to[0], to[1]];
        let name = nodes.called("region");
        region = nodes.constant(super::constants::of_floats(&name, &[8], &corners));
    }
    let read = &nodes.layer.inputs[0].shape.dims;
    let (read, mut sizes) = ([read[2], read[3]], read.clone());
    sizes[2..].copy_from_slice(&resize.size);
    let floats = resize.scales.map(|scale| match scale {
        Scale::Float(scale) => scale,
        Scale::Ratio(Ratio { over, under }) => over as f32 / under as f32,
    });
    let is_of_sizes = |at: usize| match resize.scales[at] {
        Scale::Ratio(Ratio { over, under }) => (over as usize, under as usize) == (resize.size[at], read[at]),
        Scale::Float(scale) => scale == 1.0 && resize.size[at] == read[at],
    };
    let is_of_scales =
        |at: usize| (read[at] as f64 * f64::from(floats[at])).floor() == resize.size[at] as f64;
    let all_floats = resize.scales.iter().all(|scale| matches!(scale, Scale::Float(_)));
    let mut inputs = vec![x, region];
    if !all_floats && (0..2).all(is_of_sizes) {
        inputs.extend([String::new(), nodes.list("sizes", &sizes)]);
    } else if (0..2).all(is_of_scales) {
        let name = nodes.called("scales");
        let scales = super::constants::of_floats(&name, &[4], &[1.0, 1.0, floats[0], floats[1]]);
        inputs.push(nodes.constant(scales));
    } else {
        let [y, x] = resize.scales;
        return Err(nodes.refused(format!("no Resize has both scales of {y} and {x} and these sizes")));
    }
    Ok(nodes.node("Resize", inputs, attributes))
}

pub(super) fn grid_sample(nodes: &mut Nodes, sample: &GridSample, operands: Vec<String>) -> String {
    let mode = match sample.mode {
        SampleMode::Nearest => "nearest",
        SampleMode::Linear => "linear",
        SampleMode::Cubic => "cubic",
    };
    let padding = match sample.padding {
        SamplePadding::Zeros => "zeros",
        SamplePadding::Border => "border",
        SamplePadding::Reflection => "reflection",
    };
    let attributes =
        vec![text("mode", mode), text("padding_mode", padding), flag("align_corners", sample.align_corners)];
    nodes.node("GridSample", operands, attributes)
}

/// Attributes of a window. Dilations of 1 are left out, because ONNX Runtime's optimiser makes integer operators
/// without dilations.
fn window(
    kernel: [usize; 2],
    stride: [usize; 2],
    dilation: [usize; 2],
    pads: [usize; 4],
) -> Vec<AttributeProto> {
    let mut attributes = vec![ints("kernel_shape", kernel), ints("strides", stride), ints("pads", pads)];
    if dilation != [1, 1] {
        attributes.push(ints("dilations", dilation));
    }
    attributes
}
