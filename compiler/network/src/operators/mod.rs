//! What the compiler knows of each operator: its output's shape, its multiplications, which rows it reads.
//!
//! There is one file for each family of operators. Every function here matches all variants of [`Operator`], so that
//! rustc points out what a new operator needs. The checker has a row table of its own and shares none of this.
//!
//! The first layer of LeNet-5:
//!
//! ```
//! use csdfc_network::operators::{macs, output_shape, parameter_dims};
//! use csdfc_plan::operator::{Conv, Operator};
//! use csdfc_plan::shape::Shape;
//!
//! let (kernel, stride, dilation, pads) = ([5; 2], [1; 2], [1; 2], [0; 4]);
//! let (filters, groups, bias) = (6, 1, true);
//! let (pre, residual, activation) = (None, false, None);
//! let conv = Conv { filters, kernel, stride, dilation, pads, groups, bias, pre, residual, activation };
//! let conv = Operator::Conv(conv);
//! let inputs = [Shape::image(1, 32, 32)];
//! let output = output_shape(&conv, &inputs)?;
//! assert_eq!(output, Shape::image(6, 28, 28));
//! assert_eq!(parameter_dims(&conv, &inputs), [vec![6, 1, 5, 5], vec![6]]);
//! assert_eq!(macs(&conv, &inputs, &output), 6 * 28 * 28 * 25);
//! # Ok::<(), csdfc_network::operators::ShapeError>(())
//! ```

use csdfc_plan::operator::{Function, Operator};
use csdfc_plan::shape::{Order, Shape};

pub use convolution::{image_channels, is_depthwise};
pub use element_wise::broadcast;
pub use layout::{Run, runs};

mod convolution;
mod dense;
mod element_wise;
mod facts;
mod layout;
mod normalisation;
mod pool;
mod recurrent;
mod reduce;
mod resize;
mod rows;

pub use facts::{MAX_ELEMENTS, MAX_ROWS, RowAccess, ShapeError, check_size};
use facts::{fail, product, window};
pub use rows::{acquire_release, acquire_release_in_hop, row_keep, row_need};

/// The shape of the operator's output, by the ONNX definition.
///
/// # Errors
/// When it cannot take inputs of these shapes, or the output would be empty or beyond [`MAX_ELEMENTS`]. The shape
/// of an [`Operator::Input`] is the model's, so that asking for it is an error too.
pub fn output_shape(operator: &Operator, inputs: &[Shape]) -> Result<Shape, ShapeError> {
    for input in inputs {
        check_size(input)?;
    }
    expect_inputs(operator, inputs)?;
    let x = inputs.first();
    let output = match (operator, x) {
        (Operator::Conv(conv), Some(_)) => convolution::conv_shape(conv, inputs),
        (Operator::ConvTranspose(conv), Some(x)) => convolution::conv_transpose_shape(conv, x),
        (Operator::Gemm(gemm), Some(x)) => dense::gemm_shape(gemm, x),
        (Operator::MatMul, _) => dense::mat_mul_shape(inputs),
        (Operator::Recurrent(recurrent), _) => recurrent::shape(recurrent, inputs),
        (Operator::BatchNorm(norm), Some(x)) => normalisation::per_channel_shape(norm.channels, x),
        (Operator::InstanceNorm(norm), Some(x)) => normalisation::instance_norm_shape(norm, x),
        (Operator::Softmax(softmax), Some(x)) => normalisation::softmax_shape(softmax, x),
        (Operator::Lrn(lrn), Some(x)) => normalisation::lrn_shape(lrn, x),
        (Operator::ElementWise(element_wise), Some(x)) => {
            element_wise::function_shape(&element_wise.function, x)
        }
        (Operator::Binary(binary), _) => element_wise::binary_shape(binary, inputs),
        (Operator::Where(choice), _) => element_wise::where_shape(choice, inputs),
        (Operator::Pool(pool), Some(x)) => pool::pool_shape(pool, x),
        (Operator::MaxUnpool(unpool), _) => pool::max_unpool_shape(unpool, inputs),
        (Operator::Reduce(reduce), Some(x)) => reduce::reduce_shape(reduce, x),
        (Operator::ArgMax(arg_max), Some(x)) => reduce::arg_max_shape(arg_max, x),
        (Operator::NonMaxSuppression(suppression), _) => reduce::suppression_shape(suppression, inputs),
        (Operator::GridSample(_), _) => resize::grid_sample_shape(inputs),
        (Operator::GatherElements(gather), _) => reduce::gather_elements_shape(gather, inputs),
        (Operator::TopK(top), Some(x)) => reduce::top_k_shape(top, x),
        (Operator::Concat(concat), _) => layout::concat_shape(concat, inputs),
        (Operator::Slice(slice), Some(x)) => layout::slice_shape(slice, x),
        (Operator::Pad(pad), Some(x)) => layout::pad_shape(pad, x),
        (Operator::Transpose(transpose), Some(x)) => layout::transpose_shape(transpose, x),
        (Operator::DepthToSpace(d2s), Some(x)) => layout::depth_to_space_shape(d2s.block, x),
        (Operator::SpaceToDepth(s2d), Some(x)) => layout::space_to_depth_shape(s2d.block, x),
        (Operator::Resize(resize), Some(x)) => resize::resize_shape(resize, x),
        (Operator::Convert, Some(x)) => Ok(x.clone()),
        (Operator::Input(_), _) | (_, None) => {
            Err(ShapeError("the shape of a network input is the model's".into()))
        }
    }?;
    if let Some(activation) = operator.activation() {
        element_wise::function_shape(activation, &output)?;
    }
    check_size(&output)?;
    Ok(output)
}

/// Dimensions of the layer's parameters, in the order that the operator's documentation states; the slope of a
/// fused PRelu is the last. Meaningful for inputs that [`output_shape`] accepts.
pub fn parameter_dims(operator: &Operator, inputs: &[Shape]) -> Vec<Vec<usize>> {
    let channels = inputs.first().map_or(0, Shape::channels);
    let mut dims = match operator {
        Operator::Conv(conv) => convolution::conv_parameters(conv, inputs),
        Operator::ConvTranspose(conv) => convolution::conv_transpose_parameters(conv, channels),
        Operator::Gemm(gemm) => dense::gemm_parameters(gemm),
        Operator::Recurrent(recurrent) => recurrent::parameters(recurrent),
        Operator::BatchNorm(norm) => vec![vec![norm.channels]; 2],
        Operator::InstanceNorm(norm) => vec![vec![norm.channels]; 2],
        Operator::Binary(binary) => binary.constant.iter().map(|constant| constant.dims.clone()).collect(),
        Operator::Where(choice) => choice.constants().map(<[usize]>::to_vec).collect(),
        Operator::ElementWise(element_wise) => slope_dims(&element_wise.function),
        Operator::Input(_)
        | Operator::MatMul
        | Operator::Pool(_)
        | Operator::Reduce(_)
        | Operator::ArgMax(_)
        | Operator::TopK(_)
        | Operator::NonMaxSuppression(_)
        | Operator::GridSample(_)
        | Operator::GatherElements(_)
        | Operator::MaxUnpool(_)
        | Operator::Concat(_)
        | Operator::Slice(_)
        | Operator::Pad(_)
        | Operator::Resize(_)
        | Operator::Transpose(_)
        | Operator::Softmax(_)
        | Operator::Lrn(_)
        | Operator::DepthToSpace(_)
        | Operator::SpaceToDepth(_)
        | Operator::Convert => Vec::new(),
    };
    dims.extend(operator.activation().into_iter().flat_map(slope_dims));
    dims
}

/// Multiply-accumulates of one frame, counted as in published figures. Convolutions and matrix products count. Biases,
/// activations, pooling and functions of elements do not.
pub fn macs(operator: &Operator, inputs: &[Shape], output: &Shape) -> u64 {
    let Some(x) = inputs.first() else { return 0 };
    match operator {
        Operator::Conv(conv) => convolution::conv_macs(conv, inputs, output),
        Operator::ConvTranspose(conv) => convolution::conv_transpose_macs(conv, x),
        Operator::Gemm(gemm) => product(&[x.elements(), gemm.units]),
        Operator::MatMul => product(&[output.elements(), x.dims.last().copied().unwrap_or(1)]),
        // Each product of the inputs is one of the state, too.
        Operator::Recurrent(recurrent) => product(&[x.elements(), recurrent.size]),
        Operator::Input(_)
        | Operator::BatchNorm(_)
        | Operator::ElementWise(_)
        | Operator::Binary(_)
        | Operator::Where(_)
        | Operator::Pool(_)
        | Operator::Reduce(_)
        | Operator::ArgMax(_)
        | Operator::TopK(_)
        | Operator::NonMaxSuppression(_)
        | Operator::GridSample(_)
        | Operator::GatherElements(_)
        | Operator::MaxUnpool(_)
        | Operator::Concat(_)
        | Operator::Slice(_)
        | Operator::Pad(_)
        | Operator::Resize(_)
        | Operator::Transpose(_)
        | Operator::Softmax(_)
        | Operator::Lrn(_)
        | Operator::InstanceNorm(_)
        | Operator::DepthToSpace(_)
        | Operator::SpaceToDepth(_)
        | Operator::Convert => 0,
    }
}

/// The rows of operand `index` that each output row reads. `own` is the shape of the operand's tensor. `inputs` are the
/// shapes in which the layer sees its operands, which [`output_shape`] must accept, and `output` is the shape that it
/// returns.
pub fn row_access(
    operator: &Operator,
    own: &Shape,
    inputs: &[Shape],
    output: &Shape,
    index: usize,
) -> RowAccess {
    let Some(x) = inputs.get(index) else { return RowAccess::Whole };
    let (Some(row), Some(source)) = (x.row_axis(), operator.row_source(output)) else {
        return RowAccess::Whole;
    };
    if row != source || !own.keeps_rows(x) {
        return RowAccess::Whole;
    }
    let rows = [x.rows(), output.rows()];
    match operator {
        Operator::Conv(conv) => convolution::conv_rows(conv, inputs.len(), index),
        Operator::Pool(pool) => window(pool.kernel[0], pool.stride[0], pool.dilation[0], pool.pads[0]),
        Operator::ConvTranspose(conv) => convolution::conv_transpose_rows(conv, rows),
        Operator::MatMul | Operator::Recurrent(_) if index > 0 => RowAccess::Whole,
        // Dimensions are broadcast from the last one. If the operand has fewer of them, another one counts the rows.
        Operator::MatMul | Operator::Binary(_) | Operator::Where(_) if x.rank() != output.rank() => {
            RowAccess::Whole
        }
        // The neighbours of a channel are other rows.
        Operator::Lrn(_) if x.channel_axis() == Some(row) => RowAccess::Whole,
        // A channel is a row.
        Operator::InstanceNorm(_) if x.channel_axis() == Some(row) => row_local(rows),
        Operator::ElementWise(_)
        | Operator::BatchNorm(_)
        | Operator::Lrn(_)
        | Operator::Gemm(_)
        | Operator::MatMul
        | Operator::Recurrent(_)
        | Operator::Binary(_)
        | Operator::Where(_)
        | Operator::Transpose(_)
        | Operator::Convert => row_local(rows),
        Operator::Reduce(reduce) => along_axes(&reduce.axes, row, rows),
        Operator::ArgMax(arg_max) => along_axes(&[arg_max.axis], row, rows),
        Operator::TopK(top) => along_axes(&[top.axis], row, rows),
        Operator::GatherElements(gather) => along_axes(&[gather.axis], row, rows),
        Operator::Softmax(softmax) => along_axes(&softmax.axes, row, rows),
        Operator::Concat(concat) if concat.axis == row => layout::concat_rows(inputs, rows, index),
        Operator::Concat(_) => row_local(rows),
        Operator::Slice(slice) => layout::slice_rows(slice, row),
        Operator::Pad(pad) => layout::pad_rows(pad, row, rows),
        Operator::DepthToSpace(d2s) => layout::depth_to_space_rows(d2s.block, rows),
        Operator::SpaceToDepth(s2d) => window(s2d.block, s2d.block, 1, 0),
        Operator::Resize(resize) => resize::resize_rows(resize, rows),
        Operator::Input(_)
        | Operator::InstanceNorm(_)
        | Operator::NonMaxSuppression(_)
        | Operator::GridSample(_)
        | Operator::MaxUnpool(_) => RowAccess::Whole,
    }
}

/// Checks the number of inputs, and the order of their dimensions.
fn expect_inputs(operator: &Operator, inputs: &[Shape]) -> Result<(), ShapeError> {
    let (least, most) = match operator {
        Operator::Input(_) => (0, 0),
        Operator::MatMul
        | Operator::NonMaxSuppression(_)
        | Operator::GridSample(_)
        | Operator::GatherElements(_)
        | Operator::MaxUnpool(_) => (2, 2),
        Operator::Where(choice) => {
            let operands = 3 - choice.constants().count();
            (operands, operands)
        }
        Operator::Recurrent(recurrent) => {
            let operands = 1 + if recurrent.initial { recurrent.cell.states() } else { 0 };
            (operands, operands)
        }
        Operator::Binary(binary) if binary.constant.is_none() => (2, 2),
        Operator::Concat(_) => (1, usize::MAX),
        Operator::Conv(conv) => {
            let added = usize::from(conv.residual);
            (1 + added, if conv.groups == 1 { usize::MAX } else { 1 + added })
        }
        _ => (1, 1),
    };
    if !(least..=most).contains(&inputs.len()) {
        return fail(format!("{} takes {least} inputs, got {}", operator.kind(), inputs.len()));
    }
    // A Transpose accepts any order, since it states that of its output.
    let any_order = operator.keeps_order(inputs) || matches!(operator, Operator::Transpose(_));
    let last = inputs.iter().find(|shape| shape.rank() == 4 && shape.order == Order::ChannelsLast);
    match last {
        Some(shape) if !any_order => {
            fail(format!("{} needs channels-first inputs, got channels-last {shape}", operator.kind()))
        }
        _ => Ok(()),
    }
}

fn slope_dims(function: &Function) -> Vec<Vec<usize>> {
    match function {
        Function::PRelu { slope } => vec![slope.clone()],
        _ => Vec::new(),
    }
}

/// Output row y reads row y, if the operand has as many rows as the output. An operand that is repeated over rows is
/// held whole.
fn row_local(rows: [usize; 2]) -> RowAccess {
    if rows[0] == rows[1] { window(1, 1, 1, 0) } else { RowAccess::Whole }
}

/// An operator that works along these dimensions.
fn along_axes(axes: &[usize], row: usize, rows: [usize; 2]) -> RowAccess {
    if axes.contains(&row) { RowAccess::Whole } else { row_local(rows) }
}

#[cfg(test)]
mod row_tests;
#[cfg(test)]
mod tests;
