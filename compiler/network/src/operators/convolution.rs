//! Convolution and transposed convolution.

use csdfc_plan::operator::{Conv, ConvTranspose, Function};
use csdfc_plan::shape::Shape;

use super::facts::{
    AXES, RowAccess, ShapeError, bounded, check_size, dimension, fail, image, product, window,
};

/// Channels of the image that a convolution reads from operands of these shapes.
pub fn image_channels(conv: &Conv, inputs: &[Shape]) -> usize {
    // Sizes are bounded, and so is the size of the whole image.
    inputs[..conv.parts(inputs.len())].iter().fold(0, |sum, part| sum.saturating_add(part.channels()))
}

/// Whether each of `channels` channels has one filter of its own.
pub fn is_depthwise(conv: &Conv, channels: usize) -> bool {
    conv.groups == channels && conv.groups == conv.filters
}

pub(super) fn conv_shape(conv: &Conv, inputs: &[Shape]) -> Result<Shape, ShapeError> {
    let (parts, residual) = inputs.split_at(conv.parts(inputs.len()));
    let Some(first) = parts.first() else { return fail("conv needs an image".into()) };
    let [n, _, height, width] = image(first, "conv")?;
    for part in parts {
        let [others, _, rows, columns] = image(part, "conv")?;
        if [n, height, width] != [others, rows, columns] {
            return fail(format!("{first} and {part} are no parts of one image"));
        }
    }
    let channels = image_channels(conv, inputs);
    check_size(&Shape::new([n, channels, height, width]))?;
    if conv.residual && is_depthwise(conv, channels) {
        return fail("nothing can be added to a depthwise conv".into());
    }
    check_groups(conv.groups, channels, conv.filters)?;
    let before = conv.pre.as_ref().and_then(|pre| pre.activation.as_ref());
    if matches!(before, Some(Function::PRelu { .. })) {
        return fail("conv has no slopes for a PRelu of its input".into());
    }
    let mut size = [0; 2];
    for axis in 0..2 {
        let window = Window::new(axis, conv.kernel, conv.stride, conv.dilation, conv.pads)?;
        size[axis] = window.floor_count([height, width][axis], AXES[axis])?;
    }
    let output = Shape::new([n, conv.filters, size[0], size[1]]);
    match residual.first() {
        Some(added) if *added != output => {
            fail(format!("{added} cannot be added to a conv of shape {output}"))
        }
        _ => Ok(output),
    }
}

pub(super) fn conv_transpose_shape(conv: &ConvTranspose, x: &Shape) -> Result<Shape, ShapeError> {
    let [n, channels, height, width] = image(x, "conv_transpose")?;
    check_groups(conv.groups, channels, conv.filters)?;
    let mut size = [0; 2];
    for axis in 0..2 {
        let window = Window::new(axis, conv.kernel, conv.stride, conv.dilation, conv.pads)?;
        let added = bounded(conv.output_padding[axis], "output padding")?;
        let full = ([height, width][axis] as i128 - 1) * window.stride + window.extent + added;
        size[axis] = dimension(full - window.before - window.after, &format!("output {}", AXES[axis]))?;
    }
    Ok(Shape::new([n, conv.filters, size[0], size[1]]))
}

pub(super) fn conv_parameters(conv: &Conv, inputs: &[Shape]) -> Vec<Vec<usize>> {
    let [y, x] = conv.kernel;
    let channels = image_channels(conv, inputs);
    let mut dims = vec![vec![conv.filters, channels / conv.groups.max(1), y, x]];
    if conv.bias {
        dims.push(vec![conv.filters]);
    }
    if conv.pre.as_ref().is_some_and(|pre| pre.affine) {
        dims.extend([vec![channels], vec![channels]]);
    }
    dims
}

pub(super) fn conv_transpose_parameters(conv: &ConvTranspose, channels: usize) -> Vec<Vec<usize>> {
    let [y, x] = conv.kernel;
    let mut dims = vec![vec![channels, conv.filters / conv.groups.max(1), y, x]];
    if conv.bias {
        dims.push(vec![conv.filters]);
    }
    dims
}

pub(super) fn conv_macs(conv: &Conv, inputs: &[Shape], output: &Shape) -> u64 {
    let [ky, kx] = conv.kernel;
    product(&[output.elements(), image_channels(conv, inputs) / conv.groups.max(1), ky, kx])
}

/// All parts of the image are read by the same window, and the added tensor row by row.
pub(super) fn conv_rows(conv: &Conv, operands: usize, index: usize) -> RowAccess {
    if index < conv.parts(operands) {
        window(conv.kernel[0], conv.stride[0], conv.dilation[0], conv.pads[0])
    } else {
        window(1, 1, 1, 0)
    }
}

pub(super) fn conv_transpose_macs(conv: &ConvTranspose, x: &Shape) -> u64 {
    let [ky, kx] = conv.kernel;
    product(&[x.elements(), conv.filters / conv.groups.max(1), ky, kx])
}

/// Input row i adds to output rows `i·stride − top + k·dilation`, k below the kernel's height. With a dilation, rows
/// that lie between rows read count as read. Output rows behind the last that any input row adds to need nothing more.
pub(super) fn conv_transpose_rows(conv: &ConvTranspose, [rows_in, rows_out]: [usize; 2]) -> RowAccess {
    let (stride, top) = (conv.stride[0].max(1) as i128, conv.pads[0] as i128);
    let reach = (conv.kernel[0] as i128 - 1) * conv.dilation[0] as i128;
    if let (1, Ok(top)) = (stride, i64::try_from(reach - top)) {
        return RowAccess::Window { kernel: conv.kernel[0], stride: 1, dilation: conv.dilation[0], top };
    }
    // Both are at least 0 and at most rows_in, so they fit.
    let cut = |row: i128| row.clamp(0, rows_in as i128) as usize;
    let span = |y: i128| (-(reach - y - top).div_euclid(stride), (y + top).div_euclid(stride) + 1);
    let is_made = |y: &i128| span(*y).0 < span(*y).1;
    let end = (0..rows_out as i128).rev().find(is_made).map_or(0, |last| last + 1);
    let table = (0..rows_out as i128).map(|y| match span(y) {
        (first, last) if y < end => cut(first)..cut(last),
        _ => rows_in..rows_in,
    });
    RowAccess::Rows(table.collect())
}

/// A window along one axis, with checked attributes.
pub(super) struct Window {
    /// Elements from its first to its last: `(kernel − 1)·dilation + 1`.
    pub(super) extent: i128,
    /// Elements between windows.
    pub(super) stride: i128,
    /// Padding before the input.
    pub(super) before: i128,
    /// Padding after it.
    pub(super) after: i128,
}

impl Window {
    pub(super) fn new(
        axis: usize,
        kernel: [usize; 2],
        stride: [usize; 2],
        dilation: [usize; 2],
        pads: [usize; 4],
    ) -> Result<Self, ShapeError> {
        for (value, what) in [(kernel, "kernel"), (stride, "stride"), (dilation, "dilation")] {
            if value[axis] == 0 {
                return fail(format!("{what} {} is 0", AXES[axis]));
            }
        }
        let kernel = bounded(kernel[axis], "kernel")?;
        Ok(Window {
            extent: (kernel - 1) * bounded(dilation[axis], "dilation")? + 1,
            stride: bounded(stride[axis], "stride")?,
            before: bounded(pads[axis], "padding")?,
            after: bounded(pads[axis + 2], "padding")?,
        })
    }

    /// Padded input beyond the first window.
    pub(super) fn slack(&self, input: usize, axis: &str) -> Result<i128, ShapeError> {
        let padded = input as i128 + self.before + self.after;
        if padded < self.extent {
            return fail(format!("kernel {axis} {} is larger than the padded input's {padded}", self.extent));
        }
        Ok(padded - self.extent)
    }

    fn floor_count(&self, input: usize, axis: &str) -> Result<usize, ShapeError> {
        dimension(self.slack(input, axis)? / self.stride + 1, axis)
    }
}

fn check_groups(groups: usize, channels: usize, filters: usize) -> Result<(), ShapeError> {
    if groups == 0 || !channels.is_multiple_of(groups) {
        return fail(format!("{channels} input channels cannot be divided into {groups} groups"));
    }
    if filters == 0 || !filters.is_multiple_of(groups) {
        return fail(format!("{filters} filters cannot be divided into {groups} groups"));
    }
    Ok(())
}
