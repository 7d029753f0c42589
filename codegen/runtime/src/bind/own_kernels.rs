//! Which kernel computes a layer whose operator has a kernel of its own.

use csdfc_kernels::arg_max::{ArgMax, ArgMaxElements};
use csdfc_kernels::binary::Binary;
use csdfc_kernels::concat::{Concat, ConcatElements, ImageAxis};
use csdfc_kernels::depth_space::{DepthToSpace, SpaceToDepth};
use csdfc_kernels::element_wise::{BatchNorm, ElementWise, PRelu};
use csdfc_kernels::elements::{Axes, MAX_RANK};
use csdfc_kernels::gather::GatherElements;
use csdfc_kernels::instance_norm::InstanceNorm;
use csdfc_kernels::lrn::Lrn;
use csdfc_kernels::mat_mul::MatMul;
use csdfc_kernels::max_unpool::{MaxIndex, MaxUnpool};
use csdfc_kernels::pad::{Pad, PadElements, PadMode};
use csdfc_kernels::reduce::{ReduceElements, ReduceFrame, ReduceRows};
use csdfc_kernels::rows::RowShape;
use csdfc_kernels::slice::{Slice, SliceElements};
use csdfc_kernels::softmax::{Softmax, SoftmaxElements};
use csdfc_kernels::suppression::NonMaxSuppression;
use csdfc_kernels::ternary::Where;
use csdfc_kernels::top_k::TopK;
use csdfc_kernels::transpose::Transpose;

use csdfc_plan::format::Element;
use csdfc_plan::operator::{self, Function, Operator, PoolKind};
use csdfc_plan::shape::{Order, Shape};

use crate::error::LayerError;

use super::access::{self, image_rows};
use super::choice::{Choice, ElementFloats, Forms, RowFloats, split};
use super::constants::Packing;
use super::kernel::{ElementCall, Form, Kernel, Operand, Site};
use super::operand_constant::OperandConstant;
use super::translate;
use super::typed::{ByElements, ByRows};

/// Bytes of workspace of a layer whose operator has a kernel of its own.
pub(super) fn workspace_bytes(operator: &Operator, output: &Shape) -> u64 {
    match operator {
        Operator::Recurrent(recurrent) => {
            let columns = output.column_axis().map_or(0, |axis| output.dims[axis]);
            translate::recurrent(recurrent).workspace_len(columns) as u64 * Element::F32.bytes()
        }
        Operator::NonMaxSuppression(suppression) => suppression.most as u64 * Element::F32.bytes(),
        _ => 0,
    }
}

/// Chooses the kernel of a layer whose operator has one, by rows where it can.
pub(super) fn choose(site: &Site<'_>) -> Result<Choice, LayerError> {
    let Some(x) = site.inputs.first() else {
        return Err(LayerError::NoOperands { operator: site.operator.kind() });
    };
    match site.operator {
        Operator::ElementWise(element_wise) => self::element_wise(site, x, &element_wise.function),
        Operator::BatchNorm(norm) => batch_norm(site, x, norm),
        Operator::Binary(binary) => self::binary(site, binary),
        Operator::Where(choice) => self::choice(site, choice),
        Operator::MatMul => site.by_elements(MatMul),
        Operator::Recurrent(recurrent) => self::recurrent(site, recurrent),
        &Operator::NonMaxSuppression(operator::NonMaxSuppression {
            most,
            overlap,
            score,
            centred,
            floats,
        }) => {
            let kernel = NonMaxSuppression { most, overlap, score, centred };
            site.elements(match floats {
                true => Kernel::elements::<f32, f32>(kernel),
                false => Kernel::elements::<i64, f32>(kernel),
            })
        }
        Operator::GridSample(sample) => {
            site.elements(Kernel::elements::<f32, f32>(translate::grid_sample(sample)))
        }
        &Operator::GatherElements(operator::GatherElements { axis }) => {
            site.elements(Kernel::elements::<f32, f32>(GatherElements { axis }))
        }
        Operator::MaxUnpool(_) => site.elements(Kernel::elements::<f32, f32>(MaxUnpool)),
        Operator::InstanceNorm(norm) => instance_norm(site, x, norm),
        Operator::Concat(concat) => self::concat(site, concat.axis),
        _ => unary(site, x),
    }
}

impl Site<'_> {
    /// The output's rows, if it is an image.
    pub(super) fn image(&self) -> Option<RowShape> {
        image_rows(self.output, self.ring_rows)
    }

    /// The output as `pixels` pixels, divided among its rows, if its elements lie in row-major order.
    pub(super) fn flat(&self, pixels: usize) -> Option<RowShape> {
        let (rows, channels) = (self.output.rows(), self.output.elements() / pixels.max(1));
        let is_flat = access::is_row_major(self.output, self.output.order) && pixels.is_multiple_of(rows);
        is_flat.then(|| RowShape::dense(rows, pixels / rows, channels, self.ring_rows))
    }

    /// A kernel by rows of images, if operand and output are such.
    fn by_rows(&self, x: &Operand<'_>, kernel: impl RowFloats) -> Option<Choice> {
        self.images(x, self.rows_of(kernel))
    }

    /// The same, of elements that were chosen.
    pub(super) fn images(&self, x: &Operand<'_>, kernel: Kernel<ByRows>) -> Option<Choice> {
        Some(Choice::by_rows(kernel, vec![x.image()?], self.image()?))
    }

    /// A kernel on rows of `pixels` pixels, if operand and output lie in row-major order.
    fn by_pixels(&self, x: &Operand<'_>, pixels: usize, kernel: Kernel<ByRows>) -> Option<Choice> {
        let input = x.flat(self.output.rows(), pixels)?;
        Some(Choice::by_rows(kernel, vec![input], self.flat(pixels)?))
    }

    /// A kernel element by element.
    pub(super) fn by_elements(&self, kernel: impl ElementFloats) -> Result<Choice, LayerError> {
        self.elements(self.elements_of(kernel))
    }

    /// The same, of elements that were chosen.
    pub(super) fn elements(&self, kernel: Kernel<ByElements>) -> Result<Choice, LayerError> {
        let inputs =
            self.inputs.iter().map(|x| x.elements(self.operator, self.output)).collect::<Result<_, _>>()?;
        let output = access::elements(self.output, self.output.order, self.output, self.ring_rows)?.shape;
        Ok(Choice::new(Form::Elements(ElementCall { kernel, inputs, output })))
    }

    /// The value of padded elements. For 8-bit integers, it is the integer that stands for the constant.
    fn pad_mode(&self, mode: &operator::PadMode) -> PadMode {
        match (mode, self.quantization) {
            (operator::PadMode::Constant { value }, Some(made)) => {
                PadMode::Constant(f32::from(value.map_or(0, |value| made.integer(value))))
            }
            _ => translate::pad_mode(mode),
        }
    }

    /// The row, column and channel of each dimension of an image, by the order of this shape.
    fn image_axis(shape: &Shape, axis: usize) -> Option<ImageAxis> {
        match (shape.order, axis) {
            (_, 0) => None,
            (Order::ChannelsFirst, 1) | (Order::ChannelsLast, 3) => Some(ImageAxis::Channels),
            (Order::ChannelsFirst, 2) | (Order::ChannelsLast, 1) => Some(ImageAxis::Rows),
            _ => Some(ImageAxis::Columns),
        }
    }

    pub(super) fn unsupported<T>(&self) -> Result<T, LayerError> {
        let inputs = self.inputs.iter().map(|input| [input.own, input.seen].map(Shape::clone)).collect();
        Err(LayerError::NoKernel { operator: self.operator.kind(), inputs, output: self.output.clone() })
    }
}

fn element_wise(site: &Site<'_>, x: &Operand<'_>, function: &Function) -> Result<Choice, LayerError> {
    match function {
        Function::PRelu { slope } => of_each_element(site, x, site.forms_of(PRelu), Some(slope)),
        _ => {
            let kernel = ElementWise { function: translate::activation(Some(function)) };
            of_each_element(site, x, site.forms_of(kernel), None)
        }
    }
}

/// A function of each element, with slopes perhaps.
pub(super) fn of_each_element(
    site: &Site<'_>,
    x: &Operand<'_>,
    kernel: Forms,
    slope: Option<&Vec<usize>>,
) -> Result<Choice, LayerError> {
    let with_slopes = |choice: Choice| match slope {
        Some(slope) => choice
            .constant(site.output, slope)
            .map(|slopes| choice.with_packing(Packing::Operand(slopes), 0..1)),
        None => Ok(choice),
    };
    let by_rows = site.images(x, kernel.rows.clone()).filter(|_| x.seen.order == site.output.order);
    let last = site.output.dims.last().copied().unwrap_or(1).max(1);
    let by_pixels = || site.by_pixels(x, site.output.elements() / last, kernel.rows);
    match by_rows.or_else(by_pixels).map(with_slopes) {
        Some(Ok(choice)) => Ok(choice),
        _ => with_slopes(site.elements(kernel.elements)?),
    }
}

/// By rows: the images may also be seen as other tensors whose elements lie in the same order.
fn recurrent(site: &Site<'_>, recurrent: &operator::Recurrent) -> Result<Choice, LayerError> {
    let Some(output) = site.image() else { return site.unsupported() };
    let input = |x: &Operand<'_>| {
        let (rows, in_order) = (x.seen.rows(), access::is_row_major(x.seen, x.seen.order));
        let flat = || x.flat(rows, rows * output.width).filter(|_| in_order);
        x.image().or_else(flat)
    };
    let Some(inputs) = site.inputs.iter().map(input).collect() else { return site.unsupported() };
    let choice = Choice::by_f32_rows(translate::recurrent(recurrent), inputs, output);
    let with = |choice: Choice, (i, elements): (usize, usize)| {
        let constant = OperandConstant::Plain { dims: vec![elements] };
        choice.with_packing(Packing::Operand(constant), i..i + 1)
    };
    let &operator::Recurrent { cell, size, .. } = recurrent;
    let beside = match cell {
        operator::Cell::Gru { linear_before_reset: true } => Some(size),
        operator::Cell::Lstm { peepholes: true, .. } => Some(3 * size),
        _ => None,
    };
    Ok([cell.gates() * size * size].into_iter().chain(beside).enumerate().fold(choice, with))
}

fn batch_norm(site: &Site<'_>, x: &Operand<'_>, norm: &operator::BatchNorm) -> Result<Choice, LayerError> {
    let kernel = BatchNorm { activation: translate::fused(norm.activation.as_ref()) };
    let rank_2 = || site.by_pixels(x, x.seen.dims[0], site.rows_of(kernel)).filter(|_| x.seen.rank() == 2);
    let choice = match site.by_rows(x, kernel).or_else(rank_2) {
        Some(choice) => choice,
        None => site.by_elements(kernel)?,
    };
    let dims = || Packing::Operand(OperandConstant::Plain { dims: vec![norm.channels] });
    choice.with_packing(dims(), 0..1).with_packing(dims(), 1..2).with_p_relu(
        site,
        norm.activation.as_ref(),
        2,
    )
}

fn instance_norm(
    site: &Site<'_>,
    x: &Operand<'_>,
    norm: &operator::InstanceNorm,
) -> Result<Choice, LayerError> {
    let kernel = InstanceNorm { epsilon: norm.epsilon };
    let choice = match site.images(x, Kernel::rows::<f32, f32>(kernel)) {
        Some(choice) => choice,
        None => site.elements(Kernel::elements::<f32, f32>(kernel))?,
    };
    let dims = || Packing::Operand(OperandConstant::Plain { dims: vec![norm.channels] });
    Ok(choice.with_packing(dims(), 0..1).with_packing(dims(), 1..2))
}

fn binary(site: &Site<'_>, binary: &operator::Binary) -> Result<Choice, LayerError> {
    let kernel = Binary {
        function: translate::binary(binary.function),
        constant_first: binary.constant.as_ref().is_some_and(|constant| constant.left),
        activation: translate::fused(binary.activation.as_ref()),
    };
    let constants: Vec<&[usize]> = binary.constant.iter().map(|constant| constant.dims.as_slice()).collect();
    let finish = |choice: Choice| {
        let choice = with_constants(site, choice, &constants)?;
        choice.with_p_relu(site, binary.activation.as_ref(), constants.len())
    };
    of_several(site, site.forms_of(kernel), &constants, finish)
}

fn choice(site: &Site<'_>, choice: &operator::Where) -> Result<Choice, LayerError> {
    let kernel = Where { constants: [&choice.condition, &choice.x, &choice.y].map(Option::is_some) };
    let constants: Vec<&[usize]> = choice.constants().collect();
    of_several(site, site.forms_of(kernel), &constants, |choice| with_constants(site, choice, &constants))
}

/// The choice with one more constant for each of these lists of dimensions. Constant i is parameter i of the layer.
fn with_constants(site: &Site<'_>, choice: Choice, constants: &[&[usize]]) -> Result<Choice, LayerError> {
    constants.iter().enumerate().try_fold(choice, |choice, (i, dims)| {
        let constant = choice.constant(site.output, dims)?;
        Ok(choice.with_packing(Packing::Operand(constant), i..i + 1))
    })
}

/// A function of one element of each operand, in the first form that fits the tensors. Operands may also be constants
/// of these dimensions.
pub(super) fn of_several(
    site: &Site<'_>,
    kernel: Forms,
    constants: &[&[usize]],
    finish: impl Fn(Choice) -> Result<Choice, LayerError>,
) -> Result<Choice, LayerError> {
    let candidates = [several_by_rows(site, &kernel.rows), several_by_pixels(site, &kernel.rows, constants)];
    for choice in candidates.into_iter().flatten() {
        if let Ok(choice) = finish(choice) {
            return Ok(choice);
        }
    }
    finish(site.elements(kernel.elements)?)
}

fn several_by_rows(site: &Site<'_>, kernel: &Kernel<ByRows>) -> Option<Choice> {
    let output = site.image()?;
    let input = |x: &Operand<'_>| {
        let input = x.image().filter(|_| x.seen.order == site.output.order)?;
        let rows = input.shape;
        let fits = |own: usize, all: usize| own == 1 || own == all;
        let all_fit = fits(rows.height, output.height)
            && fits(rows.width, output.width)
            && fits(rows.channels, output.channels);
        all_fit.then_some(input)
    };
    let inputs = site.inputs.iter().map(input).collect::<Option<_>>()?;
    Some(Choice::by_rows(kernel.clone(), inputs, output))
}

/// As rows of pixels. The dimensions are cut at a place where, before and after it, every operand is whole or a single
/// element, and which lies within no row of the output.
fn several_by_pixels(site: &Site<'_>, kernel: &Kernel<ByRows>, constants: &[&[usize]]) -> Option<Choice> {
    if site.image().is_some() {
        return None;
    }
    let dims = &site.output.dims;
    (0..=dims.len()).find_map(|cut| {
        let channels: usize = dims[cut..].iter().product();
        let input = |x: &Operand<'_>| {
            let [pixels, own] = split(dims, &x.seen.dims, channels)?;
            let input = x.flat(site.output.rows(), pixels)?;
            (input.shape.channels == own).then_some(input)
        };
        let inputs = site.inputs.iter().map(input).collect::<Option<_>>()?;
        for constant in constants {
            split(dims, constant, channels)?;
        }
        let output = site.flat(site.output.elements() / channels)?;
        Some(Choice::by_rows(kernel.clone(), inputs, output))
    })
}

pub(super) fn concat(site: &Site<'_>, axis: usize) -> Result<Choice, LayerError> {
    let by_rows = || {
        let output = site.image()?;
        let axis = Site::image_axis(site.output, axis)?;
        let input = |x: &Operand<'_>| x.image().filter(|_| x.seen.order == site.output.order);
        let inputs = site.inputs.iter().map(input).collect::<Option<_>>()?;
        Some(Choice::by_rows(site.rows_moved(Concat { axis }), inputs, output))
    };
    let by_pixels = || {
        if site.image().is_some() {
            return None;
        }
        if site.output.row_axis() == Some(axis) {
            // Each row of the output is a row of an operand.
            let input = |x: &Operand<'_>| x.flat(x.seen.dims[axis], x.seen.dims[axis]);
            let inputs = site.inputs.iter().map(input).collect::<Option<_>>()?;
            return Some(Choice::by_rows(
                site.rows_moved(Concat { axis: ImageAxis::Rows }),
                inputs,
                site.flat(site.output.rows())?,
            ));
        }
        let pixels: usize = site.output.dims[..axis].iter().product();
        let rows = site.output.rows();
        let inputs = site.inputs.iter().map(|x| x.flat(rows, pixels)).collect::<Option<_>>()?;
        let kernel = site.rows_moved(Concat { axis: ImageAxis::Channels });
        Some(Choice::by_rows(kernel, inputs, site.flat(pixels)?))
    };
    match by_rows().or_else(by_pixels) {
        Some(choice) => Ok(choice),
        None => site.elements(site.elements_moved(ConcatElements { axis })),
    }
}

/// Operators of one operand and no constants.
pub(super) fn unary(site: &Site<'_>, x: &Operand<'_>) -> Result<Choice, LayerError> {
    let order = x.seen.order;
    let same_order = order == site.output.order;
    let image_axes = |axes: &[usize]| -> Option<[bool; 3]> {
        let mut found = [false; 3];
        for &axis in axes {
            found[Site::image_axis(x.seen, axis)? as usize] = true;
        }
        Some(found)
    };
    // Of `[row, column, channel]`, the dimensions in this order.
    let places = if order == Order::ChannelsFirst { [2, 3, 1] } else { [1, 2, 3] };
    let choice = match site.operator {
        Operator::Pool(pool) if pool.kind != PoolKind::MaxIndex => site.by_rows(x, translate::pool(pool)),
        Operator::Resize(resize) if resize.is_weighted() => {
            site.by_rows(x, self::resized(site, x, |size| translate::resample(resize, size))?)
        }
        Operator::Resize(resize) => {
            let kernel = self::resized(site, x, |size| translate::resize(resize, size))?;
            site.images(x, site.rows_moved(kernel))
        }
        Operator::Lrn(lrn) => site.images(x, Kernel::rows::<f32, f32>(self::lrn(lrn))),
        Operator::DepthToSpace(blocks) => site.images(x, site.rows_moved(depth_to_space(blocks))),
        Operator::SpaceToDepth(blocks) => {
            site.images(x, site.rows_moved(SpaceToDepth { block: blocks.block }))
        }
        Operator::Slice(slice) if same_order && slice.starts.len() == 4 => {
            let starts = places.map(|axis| slice.starts[axis]);
            let kernel = Slice { starts, steps: places.map(|axis| slice.steps[axis]) };
            site.images(x, site.rows_moved(kernel))
        }
        Operator::Pad(pad)
            if same_order && pad.before.len() == 4 && pad.before[0] == 0 && pad.after[0] == 0 =>
        {
            let [before, after] = [&pad.before, &pad.after].map(|pads| places.map(|axis| pads[axis]));
            site.images(x, site.rows_moved(Pad { mode: site.pad_mode(&pad.mode), before, after }))
        }
        Operator::Reduce(reduce) => self::reduce(site, x, reduce, image_axes(&reduce.axes)),
        Operator::ArgMax(arg_max) => {
            let axis = Site::image_axis(x.seen, arg_max.axis).filter(|axis| *axis != ImageAxis::Rows);
            let is_kept = arg_max.keep_dims && same_order && x.seen.rank() == 4;
            axis.filter(|_| is_kept).and_then(|axis| {
                let kernel = ArgMax { axis, select_last: arg_max.select_last };
                site.images(
                    x,
                    match arg_max.floats {
                        true => Kernel::rows::<f32, f32>(kernel),
                        false => Kernel::rows::<i64, f32>(kernel),
                    },
                )
            })
        }
        Operator::Softmax(softmax) => self::softmax(site, x, softmax, image_axes(&softmax.axes)),
        _ => None,
    };
    match choice {
        Some(choice) => Ok(choice),
        None => by_elements(site, x),
    }
}

fn lrn(lrn: &operator::Lrn) -> Lrn {
    let &operator::Lrn { size, alpha, beta, bias } = lrn;
    Lrn { size, alpha, beta, bias }
}

fn depth_to_space(blocks: &operator::DepthToSpace) -> DepthToSpace {
    let &operator::DepthToSpace { block, depth_first } = blocks;
    DepthToSpace { block, depth_first }
}

/// The kernel of a resize of height and width, if it has one.
fn resized<K>(
    site: &Site<'_>,
    x: &Operand<'_>,
    kernel: impl FnOnce([usize; 2]) -> Option<K>,
) -> Result<K, LayerError> {
    match x.seen.dims[..] {
        [_, _, height, width] => kernel([height, width]),
        _ => None,
    }
    .map_or_else(|| site.unsupported(), Ok)
}

fn reduce(
    site: &Site<'_>,
    x: &Operand<'_>,
    reduce: &operator::Reduce,
    image: Option<[bool; 3]>,
) -> Option<Choice> {
    let function = translate::reduce(&reduce.function);
    if let (Some(input), Some(image)) = (x.image(), image.filter(|_| x.seen.rank() == 4)) {
        let channels_of_all = input.shape.channels;
        let [channels, columns] = [image[ImageAxis::Channels as usize], image[ImageAxis::Columns as usize]];
        if image[ImageAxis::Rows as usize] {
            // One pixel of channels, whatever its dimensions.
            let output = RowShape::dense(1, 1, channels_of_all, site.ring_rows);
            let is_frame = columns && !channels && site.output.elements() == channels_of_all;
            return is_frame
                .then(|| Choice::by_rows(site.rows_of(ReduceFrame { function }), vec![input], output));
        }
        let is_kept = reduce.keep_dims && x.seen.order == site.output.order;
        return site.by_rows(x, ReduceRows { function, columns, channels }).filter(|_| is_kept);
    }
    let pixels = trailing(&x.seen.dims, &reduce.axes)?;
    let (input, output) = (x.flat(site.output.rows(), pixels)?, site.flat(pixels)?);
    let kernel = site.rows_of(ReduceRows { function, columns: false, channels: true });
    Some(Choice::by_rows(kernel, vec![input], output))
}

fn softmax(
    site: &Site<'_>,
    x: &Operand<'_>,
    softmax: &operator::Softmax,
    image: Option<[bool; 3]>,
) -> Option<Choice> {
    let log = softmax.log;
    if let Some(image) = image.filter(|image| !image[ImageAxis::Rows as usize] && x.seen.rank() == 4)
        && x.image().is_some()
    {
        let [channels, columns] = [image[ImageAxis::Channels as usize], image[ImageAxis::Columns as usize]];
        let by_rows = site.by_rows(x, Softmax { log, columns, channels });
        return by_rows.filter(|_| x.seen.order == site.output.order);
    }
    let pixels = trailing(&x.seen.dims, &softmax.axes)?;
    site.by_pixels(x, pixels, site.rows_of(Softmax { log, columns: false, channels: true }))
}

/// The product of the dimensions before the last, if these axes are the last ones.
fn trailing(dims: &[usize], axes: &[usize]) -> Option<usize> {
    let start = dims.len().checked_sub(axes.len())?;
    axes.iter().copied().eq(start..dims.len()).then(|| dims[..start].iter().product())
}

fn by_elements(site: &Site<'_>, x: &Operand<'_>) -> Result<Choice, LayerError> {
    match site.operator {
        Operator::Pool(pool) if pool.kind == PoolKind::MaxIndex => {
            site.elements(Kernel::elements::<f32, f32>(MaxIndex { window: translate::pool(pool) }))
        }
        Operator::Pool(pool) => site.by_elements(translate::pool(pool)),
        Operator::Resize(resize) if resize.is_weighted() => {
            site.by_elements(self::resized(site, x, |size| translate::resample(resize, size))?)
        }
        Operator::Resize(resize) => {
            let kernel = self::resized(site, x, |size| translate::resize(resize, size))?;
            site.elements(site.elements_moved(kernel))
        }
        Operator::Lrn(lrn) => site.elements(Kernel::elements::<f32, f32>(self::lrn(lrn))),
        Operator::DepthToSpace(blocks) => site.elements(site.elements_moved(depth_to_space(blocks))),
        Operator::SpaceToDepth(blocks) => {
            site.elements(site.elements_moved(SpaceToDepth { block: blocks.block }))
        }
        Operator::Slice(slice) => site.elements(site.elements_moved(SliceElements {
            starts: per_axis(&slice.starts, 0)?,
            steps: per_axis(&slice.steps, 1)?,
        })),
        Operator::Pad(pad) => site.elements(site.elements_moved(PadElements {
            mode: site.pad_mode(&pad.mode),
            before: per_axis(&pad.before, 0)?,
            after: per_axis(&pad.after, 0)?,
        })),
        Operator::Reduce(reduce) => site.by_elements(ReduceElements {
            function: translate::reduce(&reduce.function),
            axes: axes(&reduce.axes)?,
            keep_dims: reduce.keep_dims,
        }),
        Operator::ArgMax(arg_max) => {
            let &operator::ArgMax { axis, keep_dims, select_last, floats } = arg_max;
            let kernel = ArgMaxElements { axis, keep_dims, select_last };
            site.elements(match floats {
                true => Kernel::elements::<f32, f32>(kernel),
                false => Kernel::elements::<i64, f32>(kernel),
            })
        }
        Operator::TopK(top) => {
            let kernel = TopK { axis: top.axis, largest: top.largest, indices: top.indices };
            site.elements(match top.indices && !top.floats {
                true => Kernel::elements::<i64, f32>(kernel),
                false => Kernel::elements::<f32, f32>(kernel),
            })
        }
        Operator::Transpose(transpose) => {
            site.elements(site.elements_moved(Transpose { perm: per_axis(&transpose.perm, 0)? }))
        }
        Operator::Softmax(softmax) => {
            site.by_elements(SoftmaxElements { log: softmax.log, axes: axes(&softmax.axes)? })
        }
        _ => site.unsupported(),
    }
}

/// A value for each dimension. Places beyond the rank hold `beyond`.
fn per_axis<T: Copy>(values: &[T], beyond: T) -> Result<[T; MAX_RANK], LayerError> {
    fits(values.len())?;
    Ok(std::array::from_fn(|axis| values.get(axis).copied().unwrap_or(beyond)))
}

fn axes(list: &[usize]) -> Result<Axes, LayerError> {
    fits(list.len()).map(|()| Axes::new(list))
}

fn fits(dimensions: usize) -> Result<(), LayerError> {
    match dimensions {
        0..=MAX_RANK => Ok(()),
        _ => Err(LayerError::AttributeRank { rank: dimensions }),
    }
}
