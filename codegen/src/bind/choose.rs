//! Which kernel computes a layer.

use csdfc_kernels::activation::Activation;
use csdfc_kernels::binary::Binary;
use csdfc_kernels::concat::ImageAxis;
use csdfc_kernels::depth_space::DepthToSpace;
use csdfc_kernels::lrn::Lrn;
use csdfc_kernels::pad::Pad;
use csdfc_kernels::rows::RowShape;
use csdfc_kernels::slice::Slice;
use csdfc_kernels::softmax::Softmax;

use crate::operator::{self, Function, Operator};
use crate::shape::{Order, Shape};
use crate::weights::{Packing, Part};

use super::access::{self, Access, Input, image_rows};
use super::kernel::{Kernel, Operand, Site};
use super::{products, translate};

/// A kernel with its constants not yet placed; fields as in [`super::Call`].
pub(super) struct Choice {
    pub kernel: Kernel,
    pub inputs: Vec<Input>,
    pub output: Access,
    pub parts: Vec<Part>,
    pub p_relu: bool,
}

/// Chooses the kernel of a layer.
pub(super) fn choose(site: &Site<'_>) -> Result<Choice, String> {
    let Some(x) = site.inputs.first() else {
        return Err(format!("a {} without operands cannot be computed", site.operator.kind()));
    };
    match site.operator {
        Operator::Conv(_) | Operator::ConvTranspose(_) => products::convolution(site),
        Operator::Gemm(gemm) => products::gemm(site, x, gemm),
        Operator::ElementWise(element_wise) => self::element_wise(site, x, &element_wise.function),
        Operator::BatchNorm(norm) => batch_norm(site, x, norm),
        Operator::Binary(binary) => self::binary(site, binary),
        Operator::MatMul => site.by_elements(Kernel::MatMul),
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

    /// The output as so many pixels, dealt out among its rows, if its elements lie in row-major order.
    pub(super) fn flat(&self, pixels: usize) -> Option<Access> {
        let (rows, channels) = (self.output.rows(), self.output.elements() / pixels.max(1));
        let is_flat = access::is_row_major(self.output, self.output.order) && pixels.is_multiple_of(rows);
        let is_line = rows == 1 || !self.output.is_image();
        (is_flat && is_line)
            .then(|| Access::Rows(RowShape::dense(rows, pixels / rows, channels, self.ring_rows)))
    }

    /// A kernel by rows of images, if operand and output are such.
    fn by_rows(&self, x: &Operand<'_>, kernel: impl FnOnce() -> Kernel) -> Option<Choice> {
        let ((_, input), output) = (x.image()?, self.image()?);
        Some(Choice::new(kernel(), vec![input], Access::Rows(output)))
    }

    /// A kernel on rows of `pixels` pixels, if operand and output lie in row-major order.
    fn by_pixels(&self, x: &Operand<'_>, pixels: usize, kernel: impl FnOnce() -> Kernel) -> Option<Choice> {
        Some(Choice::new(kernel(), vec![x.flat(self.output.rows(), pixels)?], self.flat(pixels)?))
    }

    /// A kernel element by element.
    pub(super) fn by_elements(&self, kernel: Kernel) -> Result<Choice, String> {
        let inputs = self.inputs.iter().map(|x| x.elements(self.output)).collect::<Result<_, _>>()?;
        let output = access::elements(self.output, self.output.order, self.output, self.ring_rows)?;
        Ok(Choice::new(kernel, inputs, output))
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

    pub(super) fn unsupported<T>(&self) -> Result<T, String> {
        let shapes: Vec<String> = self
            .inputs
            .iter()
            .map(|input| match input.own == input.seen {
                true => input.own.to_string(),
                false => format!("{} seen as {}", input.own, input.seen),
            })
            .collect();
        let (kind, shapes) = (self.operator.kind(), shapes.join(" and "));
        Err(format!("no kernel computes a {kind} from {shapes} to {}", self.output))
    }
}

impl Choice {
    pub(super) fn new(kernel: Kernel, inputs: Vec<Input>, output: Access) -> Self {
        Choice { kernel, inputs, output, parts: Vec::new(), p_relu: false }
    }

    fn with(mut self, packing: Packing, parameters: std::ops::Range<usize>) -> Self {
        self.parts.push(Part { packing, parameters });
        self
    }

    /// With parameters in panels.
    pub(super) fn with_panels(self, site: &Site<'_>, part: Part, in_place: bool) -> Result<Self, String> {
        let next = part.parameters.end;
        let choice = self.with(part.packing, part.parameters);
        if in_place { choice.with_p_relu(site, site.operator.activation(), next) } else { Ok(choice) }
    }

    /// With the slopes of a fused PRelu, which is parameter `index`, applied in place.
    fn with_p_relu(self, site: &Site<'_>, function: Option<&Function>, index: usize) -> Result<Self, String> {
        let Some(Function::PRelu { slope }) = function else { return Ok(self) };
        let packing = self.constant(site.output, slope)?;
        Ok(Choice { p_relu: true, ..self.with(packing, index..index + 1) })
    }

    /// How a constant of these dimensions, which broadcasts to the output, is packed for this kernel.
    fn constant(&self, output: &Shape, dims: &[usize]) -> Result<Packing, String> {
        let plain = Packing::Plain { dims: dims.to_vec() };
        match self.output {
            Access::Elements(..) if plain.access().is_none() => {
                Err(format!("a constant of {} dimensions has more than kernels know", dims.len()))
            }
            Access::Elements(..) => Ok(plain),
            Access::Rows(rows) => {
                let is_image = output.is_image();
                let packing =
                    if is_image { image_constant(output, dims) } else { row_constant(output, rows, dims) };
                packing.ok_or_else(|| format!("a constant {} does not fit {output}", Shape::new(dims)))
            }
        }
    }
}

/// A constant that broadcasts to an image.
fn image_constant(output: &Shape, dims: &[usize]) -> Option<Packing> {
    let missing = 4usize.checked_sub(dims.len())?;
    let dims: Vec<usize> = std::iter::repeat_n(1, missing).chain(dims.iter().copied()).collect();
    match (output.order, dims.as_slice()) {
        (Order::ChannelsFirst, &[1, c, h, w]) => Some(Packing::Image { rows: RowShape::dense(h, w, c, h) }),
        (Order::ChannelsLast, &[1, h, w, c]) => Some(Packing::Row { rows: RowShape::dense(h, w, c, h) }),
        _ => None,
    }
}

/// A constant that broadcasts to rows of pixels.
fn row_constant(output: &Shape, rows: RowShape, dims: &[usize]) -> Option<Packing> {
    let [pixels, channels] = split(&output.dims, dims, rows.channels)?;
    let height = if pixels == 1 { 1 } else { rows.height };
    Some(Packing::Row { rows: RowShape::dense(height, pixels / height, channels, height) })
}

/// Pixels and channels of an operand of dimensions `dims`, which broadcasts to `output` as pixels of `channels`
/// channels: all of either, or one that repeats.
fn split(output: &[usize], dims: &[usize], channels: usize) -> Option<[usize; 2]> {
    let missing = output.len().checked_sub(dims.len())?;
    let dims: Vec<usize> = std::iter::repeat_n(1, missing).chain(dims.iter().copied()).collect();
    let product = |dims: &[usize]| dims.iter().product::<usize>();
    let cut = (0..=output.len()).find(|&cut| product(&output[cut..]) == channels)?;
    let side = |own: &[usize], all: &[usize]| match product(own) {
        1 => Some(1),
        elements => (own == all).then_some(elements),
    };
    Some([side(&dims[..cut], &output[..cut])?, side(&dims[cut..], &output[cut..])?])
}

fn element_wise(site: &Site<'_>, x: &Operand<'_>, function: &Function) -> Result<Choice, String> {
    let p_relu = match function {
        Function::PRelu { slope } => Some(slope),
        _ => None,
    };
    let kernel = || match p_relu {
        Some(_) => Kernel::PRelu,
        None => Kernel::ElementWise(translate::activation(Some(function))),
    };
    let with_slopes = |choice: Choice| match p_relu {
        Some(slope) => choice.constant(site.output, slope).map(|packing| choice.with(packing, 0..1)),
        None => Ok(choice),
    };
    let by_rows = site.by_rows(x, kernel).filter(|_| x.seen.order == site.output.order);
    let last = site.output.dims.last().copied().unwrap_or(1).max(1);
    let by_pixels = || site.by_pixels(x, site.output.elements() / last, kernel);
    if let Some(Ok(choice)) = by_rows.or_else(by_pixels).map(with_slopes) {
        return Ok(choice);
    }
    let choice = site.by_elements(kernel())?;
    match p_relu {
        Some(slope) => choice.constant(site.output, slope).map(|packing| choice.with(packing, 0..1)),
        None => Ok(choice),
    }
}

fn batch_norm(site: &Site<'_>, x: &Operand<'_>, norm: &operator::BatchNorm) -> Result<Choice, String> {
    let is_p_relu = matches!(norm.activation, Some(Function::PRelu { .. }));
    let activation =
        if is_p_relu { Activation::None } else { translate::activation(norm.activation.as_ref()) };
    let kernel = || Kernel::BatchNorm(activation);
    let rank_2 = || site.by_pixels(x, x.seen.dims[0], kernel).filter(|_| x.seen.rank() == 2);
    let choice = match site.by_rows(x, kernel).or_else(rank_2) {
        Some(choice) => choice,
        None => site.by_elements(kernel())?,
    };
    let dims = || Packing::Plain { dims: vec![norm.channels] };
    choice.with(dims(), 0..1).with(dims(), 1..2).with_p_relu(site, norm.activation.as_ref(), 2)
}

fn instance_norm(site: &Site<'_>, x: &Operand<'_>, norm: &operator::InstanceNorm) -> Result<Choice, String> {
    let kernel = || Kernel::InstanceNorm { epsilon: norm.epsilon };
    let choice = match site.by_rows(x, kernel) {
        Some(choice) => choice,
        None => site.by_elements(kernel())?,
    };
    let dims = || Packing::Plain { dims: vec![norm.channels] };
    Ok(choice.with(dims(), 0..1).with(dims(), 1..2))
}

fn binary(site: &Site<'_>, binary: &operator::Binary) -> Result<Choice, String> {
    let is_p_relu = matches!(binary.activation, Some(Function::PRelu { .. }));
    let activation =
        if is_p_relu { Activation::None } else { translate::activation(binary.activation.as_ref()) };
    let p = Binary { function: translate::binary(binary.function), activation };
    let kernel = match &binary.constant {
        Some(constant) => Kernel::BinaryConstant { binary: p, left: constant.left },
        None => Kernel::Binary(p),
    };
    let constant = binary.constant.as_ref().map(|constant| constant.dims.as_slice());
    let finish = |choice: Choice| {
        let choice = match constant {
            Some(dims) => choice.constant(site.output, dims).map(|packing| choice.with(packing, 0..1))?,
            None => choice,
        };
        choice.with_p_relu(site, binary.activation.as_ref(), usize::from(constant.is_some()))
    };
    let candidates = [binary_by_rows(site, &kernel), binary_by_pixels(site, &kernel, constant)];
    for choice in candidates.into_iter().flatten() {
        if let Ok(choice) = finish(choice) {
            return Ok(choice);
        }
    }
    finish(site.by_elements(kernel)?)
}

fn binary_by_rows(site: &Site<'_>, kernel: &Kernel) -> Option<Choice> {
    let output = site.image()?;
    let input = |x: &Operand<'_>| {
        let (rows, input) = x.image().filter(|_| x.seen.order == site.output.order)?;
        let fits = |own: usize, all: usize| own == 1 || own == all;
        let all_fit = fits(rows.height, output.height)
            && fits(rows.width, output.width)
            && fits(rows.channels, output.channels);
        all_fit.then_some(input)
    };
    let inputs = site.inputs.iter().map(input).collect::<Option<_>>()?;
    Some(Choice::new(kernel.clone(), inputs, Access::Rows(output)))
}

/// As rows of pixels, cut where every operand is whole or one element on both sides, and in no row of the output.
fn binary_by_pixels(site: &Site<'_>, kernel: &Kernel, constant: Option<&[usize]>) -> Option<Choice> {
    if site.image().is_some() {
        return None;
    }
    let dims = &site.output.dims;
    (0..=dims.len()).find_map(|cut| {
        let channels: usize = dims[cut..].iter().product();
        let input = |x: &Operand<'_>| {
            let [pixels, own] = split(dims, &x.seen.dims, channels)?;
            let input = x.flat(site.output.rows(), pixels)?;
            matches!(input.access, Access::Rows(rows) if rows.channels == own).then_some(input)
        };
        let inputs = site.inputs.iter().map(input).collect::<Option<_>>()?;
        if let Some(constant) = constant {
            split(dims, constant, channels)?;
        }
        let output = site.flat(site.output.elements() / channels)?;
        Some(Choice::new(kernel.clone(), inputs, output))
    })
}

fn concat(site: &Site<'_>, axis: usize) -> Result<Choice, String> {
    let starts: Vec<usize> = site
        .inputs
        .iter()
        .scan(0, |next, x| {
            let start = *next;
            *next += x.seen.dims.get(axis).copied().unwrap_or(0);
            Some(start)
        })
        .collect();
    let by_rows = || {
        let output = site.image()?;
        let axis = Site::image_axis(site.output, axis)?;
        let input = |x: &Operand<'_>| {
            let (_, input) = x.image().filter(|_| x.seen.order == site.output.order)?;
            Some(input)
        };
        let inputs = site.inputs.iter().map(input).collect::<Option<_>>()?;
        Some(Choice::new(Kernel::Concat { axis, starts: starts.clone() }, inputs, Access::Rows(output)))
    };
    let by_pixels = || {
        if site.image().is_some() {
            return None;
        }
        if site.output.row_axis() == Some(axis) {
            // Each row is one of an operand.
            let input = |x: &Operand<'_>| x.flat(x.seen.dims[axis], x.seen.dims[axis]);
            let inputs = site.inputs.iter().map(input).collect::<Option<_>>()?;
            let kernel = Kernel::Concat { axis: ImageAxis::Rows, starts: starts.clone() };
            return Some(Choice::new(kernel, inputs, site.flat(site.output.rows())?));
        }
        let pixels: usize = site.output.dims[..axis].iter().product();
        let inner: usize = site.output.dims[axis + 1..].iter().product();
        let rows = site.output.rows();
        let inputs = site.inputs.iter().map(|x| x.flat(rows, pixels)).collect::<Option<_>>()?;
        let starts = starts.iter().map(|start| start * inner).collect();
        Some(Choice::new(Kernel::Concat { axis: ImageAxis::Channels, starts }, inputs, site.flat(pixels)?))
    };
    match by_rows().or_else(by_pixels) {
        Some(choice) => Ok(choice),
        None => site.by_elements(Kernel::ConcatElements { axis, starts: starts.clone() }),
    }
}

/// Operators of one operand and no constants.
fn unary(site: &Site<'_>, x: &Operand<'_>) -> Result<Choice, String> {
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
    let by_rows = |kernel: Kernel| site.by_rows(x, || kernel);
    let choice = match site.operator {
        Operator::Pool(pool) => by_rows(Kernel::Pool(translate::pool(pool))),
        Operator::Resize(resize) => by_rows(self::resize(site, x, resize)?),
        Operator::Lrn(lrn) => {
            let &operator::Lrn { size, alpha, beta, bias } = lrn;
            by_rows(Kernel::Lrn(Lrn { size, alpha, beta, bias }))
        }
        Operator::DepthToSpace(blocks) => {
            let &operator::DepthToSpace { block, depth_first } = blocks;
            by_rows(Kernel::DepthToSpace(DepthToSpace { block, depth_first }))
        }
        Operator::SpaceToDepth(blocks) => by_rows(Kernel::SpaceToDepth { block: blocks.block }),
        Operator::Slice(slice) if same_order && slice.starts.len() == 4 => by_rows(Kernel::Slice(Slice {
            starts: places.map(|axis| slice.starts[axis]),
            steps: places.map(|axis| slice.steps[axis]),
        })),
        Operator::Pad(pad)
            if same_order && pad.before.len() == 4 && pad.before[0] == 0 && pad.after[0] == 0 =>
        {
            by_rows(Kernel::Pad(Pad {
                mode: translate::pad_mode(&pad.mode),
                before: places.map(|axis| pad.before[axis]),
                after: places.map(|axis| pad.after[axis]),
            }))
        }
        Operator::Reduce(reduce) => self::reduce(site, x, reduce, image_axes(&reduce.axes)),
        Operator::ArgMax(arg_max) => {
            let axis = Site::image_axis(x.seen, arg_max.axis).filter(|axis| *axis != ImageAxis::Rows);
            axis.filter(|_| arg_max.keep_dims && same_order && x.seen.rank() == 4)
                .and_then(|axis| by_rows(Kernel::ArgMax { axis, select_last: arg_max.select_last }))
        }
        Operator::Softmax(softmax) => self::softmax(site, x, softmax, image_axes(&softmax.axes)),
        _ => None,
    };
    match choice {
        Some(choice) => Ok(choice),
        None => by_elements(site),
    }
}

fn resize(site: &Site<'_>, x: &Operand<'_>, resize: &operator::Resize) -> Result<Kernel, String> {
    match x.seen.dims[..] {
        [_, _, height, width] => translate::resize(resize, [height, width]).map(Kernel::Resize),
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
    if let (Some((rows, input)), Some(image)) = (x.image(), image.filter(|_| x.seen.rank() == 4)) {
        let [channels, columns] = [image[ImageAxis::Channels as usize], image[ImageAxis::Columns as usize]];
        if image[ImageAxis::Rows as usize] {
            // One pixel of channels, whatever its dimensions.
            let output = RowShape::dense(1, 1, rows.channels, site.ring_rows);
            let is_frame = columns && !channels && site.output.elements() == rows.channels;
            let kernel = Kernel::ReduceFrame(function);
            return is_frame.then(|| Choice::new(kernel, vec![input], Access::Rows(output)));
        }
        let is_kept = reduce.keep_dims && x.seen.order == site.output.order;
        return site.by_rows(x, || Kernel::ReduceRows { function, columns, channels }).filter(|_| is_kept);
    }
    let pixels = trailing(&x.seen.dims, &reduce.axes)?;
    let (input, output) = (x.flat(site.output.rows(), pixels)?, site.flat(pixels)?);
    Some(Choice::new(Kernel::ReduceRows { function, columns: false, channels: true }, vec![input], output))
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
        let by_rows = site.by_rows(x, || Kernel::Softmax(Softmax { log, columns, channels }));
        return by_rows.filter(|_| x.seen.order == site.output.order);
    }
    let pixels = trailing(&x.seen.dims, &softmax.axes)?;
    site.by_pixels(x, pixels, || Kernel::Softmax(Softmax { log, columns: false, channels: true }))
}

/// The product of the dimensions before the last, if these axes are the last ones.
fn trailing(dims: &[usize], axes: &[usize]) -> Option<usize> {
    let start = dims.len().checked_sub(axes.len())?;
    axes.iter().copied().eq(start..dims.len()).then(|| dims[..start].iter().product())
}

fn by_elements(site: &Site<'_>) -> Result<Choice, String> {
    let kernel = match site.operator {
        Operator::Pool(pool) => Kernel::Pool(translate::pool(pool)),
        Operator::Resize(resize) => self::resize(site, &site.inputs[0], resize)?,
        Operator::Lrn(lrn) => {
            let &operator::Lrn { size, alpha, beta, bias } = lrn;
            Kernel::Lrn(Lrn { size, alpha, beta, bias })
        }
        Operator::DepthToSpace(blocks) => {
            let &operator::DepthToSpace { block, depth_first } = blocks;
            Kernel::DepthToSpace(DepthToSpace { block, depth_first })
        }
        Operator::SpaceToDepth(blocks) => Kernel::SpaceToDepth { block: blocks.block },
        Operator::Slice(slice) => {
            Kernel::SliceElements { starts: slice.starts.clone(), steps: slice.steps.clone() }
        }
        Operator::Pad(pad) => Kernel::PadElements {
            mode: translate::pad_mode(&pad.mode),
            before: pad.before.clone(),
            after: pad.after.clone(),
        },
        Operator::Reduce(reduce) => Kernel::ReduceElements {
            function: translate::reduce(&reduce.function),
            axes: reduce.axes.clone(),
            keep_dims: reduce.keep_dims,
        },
        Operator::ArgMax(arg_max) => Kernel::ArgMaxElements {
            axis: arg_max.axis,
            keep_dims: arg_max.keep_dims,
            select_last: arg_max.select_last,
        },
        Operator::Transpose(transpose) => Kernel::TransposeElements { perm: transpose.perm.clone() },
        Operator::Softmax(softmax) => {
            Kernel::SoftmaxElements { log: softmax.log, axes: softmax.axes.clone() }
        }
        _ => return site.unsupported(),
    };
    site.by_elements(kernel)
}
