//! Rule 2: each layer's output shape follows from its operator and its inputs, by the definition in ONNX.

use std::borrow::Cow;

use crate::operator::{
    Cell, Conv, ConvTranspose, Function, NonMaxSuppression, Operator, Pad, PadMode, Recurrent, Slice, Where,
};
use crate::shape::{Order, Shape};

use super::index::Index;
use super::shape_error::{ShapeError, fail};
use super::{Findings, MAX_ELEMENTS, Violation, delivery, resample, stream};

/// Largest attribute that shape arithmetic takes.
const MAX_ATTRIBUTE: usize = 1 << 31;

/// Compares every layer's output shape with that of its own operator.
pub(super) fn check(index: &Index<'_>) -> Result<(), Vec<Violation>> {
    let mut findings = Findings::default();
    for cnn in &index.cnns {
        for (l, entry) in cnn.layers.iter().enumerate() {
            let (name, layer) = (cnn.cnn.name.clone(), entry.layer.name.clone());
            let stated = &entry.layer.output_shape;
            let operator: Cow<'_, Operator> = match cnn.is_over_time(l) {
                true => Cow::Owned(stream::of_hop(&entry.layer.operator)),
                false => Cow::Borrowed(&entry.layer.operator),
            };
            match output_shape(&operator, &cnn.seen_all(l), stated) {
                Err(error) => {
                    findings.push(Violation::Operator { cnn: name, layer, why: error.to_string() });
                }
                Ok(expected) if !is_same(&expected, stated) => {
                    let stated = stated.clone();
                    findings.push(Violation::OutputShape { cnn: name, layer, stated, expected });
                }
                Ok(_) => {}
            }
        }
    }
    findings.or(())
}

fn is_same(a: &Shape, b: &Shape) -> bool {
    a.dims == b.dims && (a.rank() != 4 || a.order == b.order)
}

pub(super) fn output_shape(
    operator: &Operator,
    inputs: &[&Shape],
    stated: &Shape,
) -> Result<Shape, ShapeError> {
    let arity = match operator {
        Operator::Input(_) => 0..=0,
        Operator::MatMul
        | Operator::NonMaxSuppression(_)
        | Operator::GridSample(_)
        | Operator::GatherElements(_)
        | Operator::MaxUnpool(_) => 2..=2,
        Operator::Where(Where { condition, x, y }) => {
            let operands = [condition, x, y].iter().filter(|constant| constant.is_none()).count();
            operands.max(1)..=operands
        }
        Operator::Recurrent(Recurrent { initial: true, cell, .. }) => match cell {
            Cell::Lstm { .. } => 3..=3,
            Cell::Rnn | Cell::Gru { .. } => 2..=2,
        },
        Operator::Binary(binary) if binary.constant.is_some() => 1..=1,
        Operator::Binary(_) => 2..=2,
        Operator::Conv(conv) if conv.residual => 2..=usize::MAX,
        Operator::Conv(_) | Operator::Concat(_) => 1..=usize::MAX,
        _ => 1..=1,
    };
    if !arity.contains(&inputs.len()) {
        return fail(format!("{} with {} inputs", operator.kind(), inputs.len()));
    }
    if let Operator::Input(input) = operator {
        delivery::check(input, stated)?;
        return Ok(stated.clone());
    }
    let Some(&x) = inputs.first() else { return Ok(stated.clone()) };
    let shape = match operator {
        Operator::Input(_) => Ok(stated.clone()),
        Operator::Conv(conv) => self::conv(conv, inputs),
        Operator::ConvTranspose(conv) => conv_transpose(conv, x),
        Operator::Gemm(gemm) => match x.dims.split_last() {
            Some((&last, outer)) if last == gemm.inner => {
                let mut dims: Vec<i128> = outer.iter().map(|&dim| dim as i128).collect();
                dims.push(positive(gemm.units)?);
                Ok(Shape { order: x.order, ..self::dims(&dims)? })
            }
            _ => fail(format!("the last dimension of {x} is not {}", gemm.inner)),
        },
        Operator::MatMul => mat_mul(x, inputs[1]),
        Operator::Recurrent(recurrent) => self::recurrent(recurrent, inputs),
        Operator::BatchNorm(norm) => per_channel(x, norm.channels),
        Operator::InstanceNorm(norm) => match x.rank() {
            3.. => per_channel(x, norm.channels),
            _ => fail(format!("{x} has no height or width")),
        },
        Operator::ElementWise(_) | Operator::Lrn(_) | Operator::Convert => Ok(x.clone()),
        Operator::Binary(binary) => match (&binary.constant, inputs.get(1)) {
            (Some(constant), _) => {
                let dims = broadcast(&x.dims, &constant.dims)?;
                let order = if dims.len() == x.rank() { x.order } else { Order::ChannelsFirst };
                Ok(Shape { dims, order })
            }
            (None, Some(&y)) => {
                let kept = x.order == y.order && x.rank() == y.rank();
                let order = if kept { x.order } else { Order::ChannelsFirst };
                Ok(Shape { dims: broadcast(&x.dims, &y.dims)?, order })
            }
            (None, None) => fail("a function of two tensors with one input"),
        },
        Operator::Where(choice) => {
            let seen = inputs.iter().map(|x| &x.dims);
            let all = seen.chain(&choice.condition).chain(&choice.x).chain(&choice.y);
            let dims = all.into_iter().try_fold(vec![], |dims, each| broadcast(&dims, each))?;
            let kept = inputs.iter().all(|each| each.order == x.order && each.rank() == dims.len());
            Ok(Shape { dims, order: if kept { x.order } else { Order::ChannelsFirst } })
        }
        Operator::Pool(pool) => {
            let [n, c, h, w] = image(x)?;
            let side = |axis: usize, size: i128| {
                windows(
                    size,
                    pool.kernel[axis],
                    pool.stride[axis],
                    pool.dilation[axis],
                    ends(&pool.pads, axis)?,
                    pool.ceil,
                )
            };
            dims(&[n, c, side(0, h)?, side(1, w)?])
        }
        Operator::MaxUnpool(unpool) => {
            let [n, c, _, _] = image(x)?;
            if inputs[1].dims != x.dims {
                return fail(format!("places of {} for {x}", inputs[1]));
            }
            dims(&[n, c, positive(unpool.size[0])?, positive(unpool.size[1])?])
        }
        Operator::Reduce(reduce) => {
            let shape = reduced(x, &reduce.axes, reduce.keep_dims)?;
            Ok(Shape { order: if reduce.keep_dims { x.order } else { Order::ChannelsFirst }, ..shape })
        }
        Operator::ArgMax(arg_max) => reduced(x, &[arg_max.axis], arg_max.keep_dims),
        Operator::NonMaxSuppression(suppression) => suppressed(suppression, x, inputs[1]),
        Operator::GridSample(_) => match (&x.dims[..], &inputs[1].dims[..]) {
            (&[n, c, _, _], &[batch, h, w, 2]) if n == batch => Ok(Shape::new([n, c, h, w])),
            (&[n, c, _, _, _], &[batch, d, h, w, 3]) if n == batch => Ok(Shape::new([n, c, d, h, w])),
            _ => fail(format!("places of {} in {x}", inputs[1])),
        },
        Operator::GatherElements(gather) => {
            let (axis, indices) = (gather.axis, inputs[1]);
            let fits = |at: usize| at == axis || indices.dims[at] <= x.dims[at];
            if indices.rank() != x.rank() || axis >= x.rank() || !(0..x.rank()).all(fits) {
                return fail(format!("indices {indices} along dimension {axis} of {x}"));
            }
            Ok(Shape::new(indices.dims.clone()))
        }
        Operator::TopK(top) => match x.dims.get(top.axis) {
            Some(size) if (1..=*size).contains(&top.count) => {
                let mut dims = x.dims.clone();
                dims[top.axis] = top.count;
                Ok(Shape::new(dims))
            }
            _ => fail(format!("{} elements along dimension {} of {x}", top.count, top.axis)),
        },
        Operator::Concat(concat) => concatenated(inputs, concat.axis),
        Operator::Slice(slice) => sliced(slice, x),
        Operator::Pad(pad) => padded(pad, x),
        Operator::Resize(resize) => {
            let [n, c, h, w] = image(x)?;
            resample::scales(resize, [h, w])?;
            dims(&[n, c, positive(resize.size[0])?, positive(resize.size[1])?])
        }
        Operator::Transpose(transpose) => {
            let mut axes = transpose.perm.clone();
            axes.sort_unstable();
            if axes != (0..x.rank()).collect::<Vec<_>>() {
                return fail(format!("{:?} is no permutation of {} dimensions", transpose.perm, x.rank()));
            }
            let made = transpose.perm.iter().map(|&axis| x.dims[axis]).collect::<Vec<_>>();
            match transpose.order {
                Order::ChannelsLast if made.len() != 4 || made[0] != 1 => fail(format!(
                    "{made:?} are no image's dimensions, of which the last could be the channels"
                )),
                order => Ok(Shape { dims: made, order }),
            }
        }
        Operator::Softmax(softmax) => axes(x, &softmax.axes).map(|()| x.clone()),
        Operator::DepthToSpace(blocks) => {
            let ([n, c, h, w], side) = (image(x)?, positive(blocks.block)?);
            if c % (side * side) != 0 {
                return fail(format!("{c} channels are no multiple of {side}²"));
            }
            dims(&[n, c / (side * side), h * side, w * side])
        }
        Operator::SpaceToDepth(blocks) => {
            let ([n, c, h, w], side) = (image(x)?, positive(blocks.block)?);
            if h % side != 0 || w % side != 0 {
                return fail(format!("{x} is no multiple of {side} high and wide"));
            }
            dims(&[n, c * side * side, h / side, w / side])
        }
    }?;
    let function = match operator {
        Operator::ElementWise(element_wise) => Some(&element_wise.function),
        _ => operator.activation(),
    };
    match function {
        Some(Function::PRelu { slope }) if broadcast(&shape.dims, slope)? != shape.dims => {
            fail(format!("slopes of {slope:?} do not broadcast to {shape}"))
        }
        _ => Ok(shape),
    }
}

/// A state for each row and column, and with it the memory if the output has it.
fn recurrent(recurrent: &Recurrent, inputs: &[&Shape]) -> Result<Shape, ShapeError> {
    let &Recurrent { cell, size, clip, .. } = recurrent;
    let (x, size) = (inputs[0], positive(size)?);
    let with_channels = |channels: i128, rows: Option<usize>| -> Result<Shape, ShapeError> {
        let mut sizes: Vec<i128> = x.dims.iter().map(|&dim| dim as i128).collect();
        let axes = x.channel_axis().zip(x.row_axis()).filter(|_| x.is_image());
        let Some((channel, row)) = axes else { return fail(format!("{x} is no image")) };
        sizes[channel] = channels;
        if let Some(rows) = rows {
            sizes[row] = rows as i128;
        }
        Ok(Shape { order: x.order, ..dims(&sizes)? })
    };
    if !is_same(&with_channels(size * cell.gates() as i128, None)?, x) {
        return fail(format!("{x} does not have {} channels for each of {size}", cell.gates()));
    }
    for initial in &inputs[1..] {
        if !is_same(&with_channels(size, Some(1))?, initial) {
            return fail(format!("a first state {initial} of size {size} for {x}"));
        }
    }
    let has_slopes = |function: &Function| matches!(function, Function::PRelu { .. });
    if recurrent.activations.len() != cell.functions() || recurrent.activations.iter().any(has_slopes) {
        return fail(format!("functions {:?} for a {cell:?}", recurrent.activations));
    }
    if clip.is_some_and(|clip| clip.is_nan() || clip <= 0.0) {
        return fail(format!("it clips at {clip:?}"));
    }
    let has_memory = matches!(cell, Cell::Lstm { memory: true, .. });
    with_channels(if has_memory { 2 * size } else { size }, None)
}

/// Room for the most boxes of each class that may be kept.
fn suppressed(suppression: &NonMaxSuppression, boxes: &Shape, scores: &Shape) -> Result<Shape, ShapeError> {
    let &NonMaxSuppression { most, overlap, .. } = suppression;
    let ([n, count, 4], [batch, classes, each]) = (&boxes.dims[..], &scores.dims[..]) else {
        return fail(format!("boxes {boxes} with scores {scores}"));
    };
    let is_sound = n == batch && count == each && *count <= NonMaxSuppression::MAX_BOXES;
    if !is_sound || !(1..=*count).contains(&most) || !(0.0..=1.0).contains(&overlap) {
        return fail(format!("{most} of boxes {boxes} with scores {scores} that overlap by {overlap}"));
    }
    dims(&[number(*n)? * number(*classes)? * number(most)?, 3])
}

fn number(value: usize) -> Result<i128, ShapeError> {
    if value > MAX_ATTRIBUTE {
        fail(format!("attribute {value} is beyond {MAX_ATTRIBUTE}"))
    } else {
        Ok(value as i128)
    }
}

fn positive(value: usize) -> Result<i128, ShapeError> {
    if value == 0 { fail("an attribute that must be positive is 0") } else { number(value) }
}

fn dims(sizes: &[i128]) -> Result<Shape, ShapeError> {
    let wrong = || ShapeError(format!("it would make a tensor of dimensions {sizes:?}"));
    let mut elements: i128 = 1;
    for &size in sizes {
        elements = elements.checked_mul(size).ok_or_else(wrong)?;
        if size <= 0 || elements > i128::from(MAX_ELEMENTS) {
            return Err(wrong());
        }
    }
    Ok(Shape::new(sizes.iter().map(|&size| size as usize).collect::<Vec<_>>()))
}

/// The dimensions of `[N, C, H, W]`.
fn image(x: &Shape) -> Result<[i128; 4], ShapeError> {
    match x.dims.as_slice() {
        &[n, c, h, w] => Ok([n as i128, c as i128, h as i128, w as i128]),
        _ => fail(format!("{x} is no image")),
    }
}

/// Padding before and after, of axis y (0) or x (1).
fn ends(pads: &[usize; 4], axis: usize) -> Result<[i128; 2], ShapeError> {
    Ok([number(pads[axis])?, number(pads[axis + 2])?])
}

/// How many windows fit.
fn windows(
    size: i128,
    kernel: usize,
    stride: usize,
    dilation: usize,
    pads: [i128; 2],
    ceil: bool,
) -> Result<i128, ShapeError> {
    let (kernel, stride, dilation) = (positive(kernel)?, positive(stride)?, positive(dilation)?);
    let room = size + pads[0] + pads[1] - ((kernel - 1) * dilation + 1);
    if room < 0 {
        return fail(format!("a window of {kernel} by {dilation} does not fit {size}"));
    }
    let mut count = room / stride + 1;
    // A last window that would start in the padding after the tensor is dropped.
    if ceil && room % stride != 0 && count * stride < size + pads[0] {
        count += 1;
    }
    Ok(count)
}

/// If there is a residual, it is the last operand. The others are the image or its parts.
fn conv(conv: &Conv, inputs: &[&Shape]) -> Result<Shape, ShapeError> {
    let (residual, parts) = match inputs.split_last() {
        Some((residual, parts)) if conv.residual => (Some(*residual), parts),
        _ => (None, inputs),
    };
    let first = parts[0];
    let [n, mut c, h, w] = image(first)?;
    for part in &parts[1..] {
        let [part_n, part_c, part_h, part_w] = image(part)?;
        if [part_n, part_h, part_w] != [n, h, w] || part.order != first.order {
            return fail(format!("{first} and {part} are no parts of one image"));
        }
        c += part_c;
    }
    let (groups, filters) = (positive(conv.groups)?, positive(conv.filters)?);
    if parts.len() > 1 && groups > 1 {
        return fail(format!("an image in {} parts for {groups} groups", parts.len()));
    }
    if c % groups != 0 || filters % groups != 0 {
        return fail(format!("{c} channels, {filters} filters and {groups} groups do not divide"));
    }
    let before = conv.pre.as_ref().and_then(|pre| pre.activation.as_ref());
    if matches!(before, Some(Function::PRelu { .. })) {
        return fail("a PRelu of a convolution's input has no slopes");
    }
    let side = |axis: usize, size: i128| {
        let (kernel, stride, dilation) = (conv.kernel[axis], conv.stride[axis], conv.dilation[axis]);
        windows(size, kernel, stride, dilation, ends(&conv.pads, axis)?, false)
    };
    let output = dims(&[n, filters, side(0, h)?, side(1, w)?])?;
    match residual {
        Some(_) if groups == c && groups == filters => {
            fail("a depthwise convolution to which something is added")
        }
        Some(residual) if !is_same(residual, &output) => {
            fail(format!("what is added is {residual}, not {output} as the output"))
        }
        _ => Ok(output),
    }
}

fn conv_transpose(conv: &ConvTranspose, x: &Shape) -> Result<Shape, ShapeError> {
    let [n, c, h, w] = image(x)?;
    let (groups, filters) = (positive(conv.groups)?, positive(conv.filters)?);
    if c % groups != 0 || filters % groups != 0 {
        return fail(format!("{c} channels, {filters} filters and {groups} groups do not divide"));
    }
    let side = |axis: usize, size: i128| -> Result<i128, ShapeError> {
        let [before, after] = ends(&conv.pads, axis)?;
        let (kernel, dilation) = (positive(conv.kernel[axis])?, positive(conv.dilation[axis])?);
        let spread = (size - 1) * positive(conv.stride[axis])? + (kernel - 1) * dilation + 1;
        Ok(spread - before - after + number(conv.output_padding[axis])?)
    };
    dims(&[n, filters, side(0, h)?, side(1, w)?])
}

/// A vector is a matrix of one row on the left, of one column on the right, and that dimension is dropped again.
fn mat_mul(a: &Shape, b: &Shape) -> Result<Shape, ShapeError> {
    let (a_outer, m, k) = match a.dims.as_slice() {
        [outer @ .., m, k] => (outer, Some(*m), *k),
        [k] => (&[][..], None, *k),
        [] => return fail("a scalar is no matrix"),
    };
    let (b_outer, inner, n) = match b.dims.as_slice() {
        [outer @ .., inner, n] => (outer, *inner, Some(*n)),
        [inner] => (&[][..], *inner, None),
        [] => return fail("a scalar is no matrix"),
    };
    if k != inner {
        return fail(format!("{a} cannot be multiplied by {b}"));
    }
    let mut dims = broadcast(a_outer, b_outer)?;
    dims.extend(m);
    dims.extend(n);
    Ok(Shape::new(dims))
}

fn per_channel(x: &Shape, channels: usize) -> Result<Shape, ShapeError> {
    if x.channel_axis().is_some() && x.channels() == channels {
        Ok(x.clone())
    } else {
        fail(format!("{x} does not have {channels} channels"))
    }
}

/// ONNX broadcasting: aligned at the last dimension, a 1 stretches.
fn broadcast(a: &[usize], b: &[usize]) -> Result<Vec<usize>, ShapeError> {
    let rank = a.len().max(b.len());
    let dim = |dims: &[usize], i: usize| (i + dims.len()).checked_sub(rank).map_or(1, |at| dims[at]);
    (0..rank)
        .map(|i| match (dim(a, i), dim(b, i)) {
            (x, y) if x == y || y == 1 => Ok(x),
            (1, y) => Ok(y),
            _ => fail(format!("{a:?} and {b:?} do not broadcast")),
        })
        .collect()
}

fn axes(x: &Shape, axes: &[usize]) -> Result<(), ShapeError> {
    if axes.iter().all(|&axis| axis < x.rank()) && axes.windows(2).all(|pair| pair[0] < pair[1]) {
        Ok(())
    } else {
        fail(format!("{axes:?} are no ascending dimensions of {x}"))
    }
}

fn reduced(x: &Shape, over: &[usize], keep_dims: bool) -> Result<Shape, ShapeError> {
    axes(x, over)?;
    let kept = x.dims.iter().enumerate().filter(|(axis, _)| keep_dims || !over.contains(axis));
    Ok(Shape::new(kept.map(|(axis, &dim)| if over.contains(&axis) { 1 } else { dim }).collect::<Vec<_>>()))
}

fn concatenated(inputs: &[&Shape], axis: usize) -> Result<Shape, ShapeError> {
    let first = inputs[0];
    let mut sum: i128 = 0;
    for x in inputs {
        let alike = x.rank() == first.rank()
            && axis < x.rank()
            && (0..x.rank()).all(|at| at == axis || x.dims[at] == first.dims[at]);
        if !alike {
            return fail(format!("{x} does not follow {first} along dimension {axis}"));
        }
        sum += x.dims[axis] as i128;
    }
    let mut sizes: Vec<i128> = first.dims.iter().map(|&dim| dim as i128).collect();
    sizes[axis] = sum;
    let kept = inputs.iter().all(|x| x.order == first.order);
    Ok(Shape { order: if kept { first.order } else { Order::ChannelsFirst }, ..dims(&sizes)? })
}

fn sliced(slice: &Slice, x: &Shape) -> Result<Shape, ShapeError> {
    let rank = x.rank();
    if slice.starts.len() != rank || slice.steps.len() != rank || slice.lengths.len() != rank {
        return fail(format!("it does not slice {rank} dimensions"));
    }
    for (axis, &size) in x.dims.iter().enumerate() {
        let (start, step) = (number(slice.starts[axis])?, i128::from(slice.steps[axis]));
        let last = start + (positive(slice.lengths[axis])? - 1) * step;
        if step == 0 || !(0..size as i128).contains(&start) || !(0..size as i128).contains(&last) {
            return fail(format!("it takes indices {start}, … {last} of the {size} in dimension {axis}"));
        }
    }
    let sizes: Vec<i128> = slice.lengths.iter().map(|&length| length as i128).collect();
    Ok(Shape { order: x.order, ..dims(&sizes)? })
}

fn padded(pad: &Pad, x: &Shape) -> Result<Shape, ShapeError> {
    if pad.before.len() != x.rank() || pad.after.len() != x.rank() {
        return fail(format!("it does not pad {} dimensions", x.rank()));
    }
    let mut sizes = Vec::new();
    for (axis, &dim) in x.dims.iter().enumerate() {
        let (before, after, size) = (i128::from(pad.before[axis]), i128::from(pad.after[axis]), dim as i128);
        let kept = size + before.min(0) + after.min(0);
        let mirrored = pad.mode == PadMode::Reflect && before.max(after) >= kept.max(1);
        if kept <= 0 || mirrored {
            return fail(format!("it pads {size} in dimension {axis} by {before} and {after}"));
        }
        sizes.push(size + before + after);
    }
    Ok(Shape { order: x.order, ..dims(&sizes)? })
}
