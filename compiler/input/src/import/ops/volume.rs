//! Windows on volumes `[N, C, D, H, W]`: sums, or the largest elements, of what windows of two dimensions make of the planes.
//!
//! Filters of depth k are k filters of two dimensions. Plane z of the output is the sum of what each makes of one plane of the
//! input. All planes share the filters.

use rten_onnx::onnx::NodeProto;

use super::convolution::{self, extent, one_by_one, pads};
use super::layout::joined;
use super::parts::{cut, dims, number, part, reshaped, tensor};
use crate::import::builder::Builder;
use crate::import::error::{Fault, fault};
use crate::import::node::{Node, Tensor, Value};

/// An importer of a node.
type Import = fn(&mut Builder, &Node) -> Result<Tensor, Fault>;

/// Whether a node reads volumes.
pub(super) fn reads(node: &Node) -> bool {
    matches!(node.input(0), Some(Value::Tensor(x)) if x.rank() == 5)
}

/// `Conv`: 3-D, or any other.
pub(super) fn conv(builder: &mut Builder, node: &Node) -> Result<Tensor, Fault> {
    if !reads(node) {
        return convolution::conv(builder, node);
    }
    if let Some(made) = one_by_one(builder, node, conv)? {
        return Ok(made);
    }
    let depth = Depth::new(node, filter_depth(node)?)?;
    let count = depth.windows(false)?;
    let taps = |z: usize| (0..depth.kernel).filter_map(|k| Some((k, depth.plane(z, k)?))).collect();
    sums(builder, node, convolution::conv, (0..count).map(taps).collect())
}

/// `ConvTranspose`: 3-D, or any other.
pub(super) fn conv_transpose(builder: &mut Builder, node: &Node) -> Result<Tensor, Fault> {
    if !reads(node) {
        return convolution::conv_transpose(builder, node);
    }
    if let Some(made) = one_by_one(builder, node, conv_transpose)? {
        return Ok(made);
    }
    let is_stated = node.ints("output_shape")?.is_some_and(|sizes| !sizes.is_empty());
    if is_stated || node.text("auto_pad", "NOTSET")?.starts_with("SAME") {
        return fault!(
            "csdfc takes transposed convolutions of volumes without output_shape and auto_pad SAME"
        );
    }
    let depth = Depth::new(node, filter_depth(node)?)?;
    let added = node.ints("output_padding")?.and_then(|sizes| sizes.first().copied()).unwrap_or(0);
    let last = (depth.planes as i64 - 1) * depth.stride as i64 + depth.extent as i64 - 1 + added;
    let first = depth.before as i64;
    let taps = |z: i64| {
        let of_plane = |plane: usize| {
            let k = z - plane as i64 * depth.stride as i64;
            let k = usize::try_from(k).ok().filter(|k| k.is_multiple_of(depth.dilation))? / depth.dilation;
            (k < depth.kernel).then_some((k, plane))
        };
        (0..depth.planes).filter_map(of_plane).collect()
    };
    sums(builder, node, convolution::conv_transpose, (first..=last - depth.after as i64).map(taps).collect())
}

/// A pooling of a volume, by an importer of those of images.
pub(super) fn pool(builder: &mut Builder, node: &Node, of_image: Import) -> Result<Tensor, Fault> {
    let power = match node.operator {
        "LpPool" => Some(node.int("p", 2)? as f32),
        "MaxPool" | "AveragePool" => None,
        other => return fault!("csdfc takes no {other} of volumes"),
    };
    let Some(&[kernel, ..]) = node.ints("kernel_shape")? else { return fault!("it has no kernel_shape") };
    let depth = Depth::new(node, usize::try_from(kernel).unwrap_or(0))?;
    let count = depth.windows(node.flag("ceil_mode", false)?)?;
    let (proto, planes) = (of_image_proto(node)?, planes(builder, node, 0)?);
    let mut pooled: Vec<Value> = Vec::with_capacity(planes.len());
    for plane in planes {
        let inputs = vec![Some(plane)];
        let mut made = of_image(builder, &Node { proto: &proto, inputs, ..*node })?.into();
        if let Some(power) = power {
            made = part(builder, node, "Pow", [made, number(power)])?;
        }
        pooled.push(made);
    }
    let mut made = Vec::with_capacity(count);
    for z in 0..count {
        let read: Vec<usize> = (0..depth.kernel).filter_map(|k| depth.plane(z, k)).collect();
        let join = if node.operator == "MaxPool" { "Max" } else { "Add" };
        let mut joined = all(builder, node, join, read.iter().map(|plane| pooled[*plane].clone()).collect())?;
        if node.operator == "AveragePool" {
            let counted = match node.flag("count_include_pad", false)? {
                true => (0..depth.kernel).filter(|k| depth.is_padded(z, *k)).count(),
                false => read.len(),
            };
            joined = part(builder, node, "Div", [joined, number(counted as f32)])?;
        }
        if let Some(power) = power {
            joined = part(builder, node, "Pow", [joined, number(power.recip())])?;
        }
        made.push(tensor(joined)?);
    }
    stacked(builder, node, &made)
}

/// Windows along the depth.
struct Depth {
    /// Planes of the input.
    planes: usize,
    kernel: usize,
    stride: usize,
    dilation: usize,
    /// Planes from the first to the last that a window reads.
    extent: usize,
    /// Planes of padding.
    before: usize,
    after: usize,
}

impl Depth {
    fn new(node: &Node, kernel: usize) -> Result<Self, Fault> {
        let &[_, _, planes, _, _] = node.tensor(0)?.dims() else { return fault!("it reads no volume") };
        // As those of an image of one column.
        let proto = with_axes(node, |sizes, of_other| vec![sizes[0], of_other])?;
        let of_depth = Node { proto: &proto, inputs: node.inputs.clone(), ..*node };
        let ([stride, _], [dilation, _]) = (of_depth.pair("strides", 1)?, of_depth.pair("dilations", 1)?);
        let [before, _, after, _] = pads(&of_depth, [planes, 1], [kernel, 1], [stride, 1], [dilation, 1])?;
        if stride == 0 {
            return fault!("a stride of 0 is not supported");
        }
        let extent = usize::try_from(extent(kernel, dilation)?).unwrap_or(usize::MAX);
        Ok(Depth { planes, kernel, stride, dilation, extent, before, after })
    }

    /// Number of windows; with `ceil` one may reach beyond the padding.
    fn windows(&self, ceil: bool) -> Result<usize, Fault> {
        let padded = self.before + self.planes + self.after;
        let Some(span) = padded.checked_sub(self.extent) else {
            return fault!("its window of depth {} is larger than the padded input's {padded}", self.extent);
        };
        let steps = if ceil { span.div_ceil(self.stride) } else { span / self.stride };
        // No window begins in the padding behind.
        let begins_behind = ceil && steps * self.stride >= self.before + self.planes;
        Ok(steps + usize::from(!begins_behind))
    }

    /// The plane of the input that element k of window z reads, if it is none of the padding.
    fn plane(&self, z: usize, k: usize) -> Option<usize> {
        (z * self.stride + k * self.dilation).checked_sub(self.before).filter(|plane| *plane < self.planes)
    }

    /// Whether element k of window z is one of the input or its padding.
    fn is_padded(&self, z: usize, k: usize) -> bool {
        z * self.stride + k * self.dilation < self.before + self.planes + self.after
    }
}

/// A volume whose planes are sums: `taps` has, for each, the filters and the planes of the input that they work on.
fn sums(
    builder: &mut Builder,
    node: &Node,
    of_image: Import,
    taps: Vec<Vec<(usize, usize)>>,
) -> Result<Tensor, Fault> {
    let proto = of_image_proto(node)?;
    let (filters, planes) = (planes(builder, node, 1)?, planes(builder, node, 0)?);
    let mut made = Vec::with_capacity(taps.len());
    for taps in taps {
        let mut summands = Vec::with_capacity(taps.len());
        for (i, (k, plane)) in taps.into_iter().enumerate() {
            let mut inputs = node.inputs.clone();
            (inputs[0], inputs[1]) = (Some(planes[plane].clone()), Some(filters[k].clone()));
            // Each plane has the bias once.
            inputs.truncate(if i == 0 { 3 } else { 2 });
            summands.push(of_image(builder, &Node { proto: &proto, inputs, ..*node })?.into());
        }
        made.push(tensor(all(builder, node, "Add", summands)?)?);
    }
    stacked(builder, node, &made)
}

/// The depth of the filters.
fn filter_depth(node: &Node) -> Result<usize, Fault> {
    match node.input(1).map(dims) {
        Some(&[_, _, depth, _, _]) => Ok(depth),
        Some(other) => fault!("its filters have dimensions {other:?}, but it reads a volume"),
        None => fault!("operand 1, its filters, is missing"),
    }
}

/// The planes of a volume that a node reads, as images.
fn planes(builder: &mut Builder, node: &Node, operand: usize) -> Result<Vec<Value>, Fault> {
    let Some(x) = node.input(operand) else { return fault!("operand {operand} is missing") };
    let &[n, channels, depth, height, width] = dims(x) else { return fault!("it reads no volume") };
    let mut planes = Vec::with_capacity(depth);
    for z in 0..depth {
        let plane = cut(builder, node, x, 2, [z, z + 1])?;
        planes.push(reshaped(builder, node, &plane, vec![n, channels, height, width])?);
    }
    Ok(planes)
}

/// Images as the planes of a volume.
fn stacked(builder: &mut Builder, node: &Node, images: &[Tensor]) -> Result<Tensor, Fault> {
    let mut planes = Vec::with_capacity(images.len());
    for image in images {
        let &[n, channels, height, width] = image.dims() else { return fault!("it makes no images") };
        planes.push(builder.reshape(node, image, vec![n, channels, 1, height, width])?);
    }
    joined(builder, node, 2, &planes)
}

/// A function of any number of operands.
fn all(builder: &mut Builder, node: &Node, operator: &str, operands: Vec<Value>) -> Result<Value, Fault> {
    let mut operands = operands.into_iter();
    let Some(mut all) = operands.next() else {
        return fault!("one of its windows reads nothing but padding");
    };
    for operand in operands {
        all = part(builder, node, operator, [all, operand])?;
    }
    Ok(all)
}

/// The node's attributes for images.
fn of_image_proto(node: &Node) -> Result<NodeProto, Fault> {
    with_axes(node, |sizes, _| sizes[1..].to_vec())
}

/// The node with the attributes of other axes. Each list has three numbers, one for each axis of a volume; `pads` has two
/// lists. `choose` gets one and the number that stands for an axis without windows.
fn with_axes(node: &Node, choose: impl Fn(&[i64], i64) -> Vec<i64>) -> Result<NodeProto, Fault> {
    let mut proto = node.proto.clone();
    for attribute in &mut proto.attribute {
        let of_other = match attribute.name.as_deref() {
            Some("kernel_shape" | "strides" | "dilations") => 1,
            Some("output_padding" | "pads") => 0,
            _ => continue,
        };
        if !matches!(attribute.ints.len(), 0 | 3 | 6) {
            return fault!("{:?} for the three axes of a volume", attribute.ints);
        }
        attribute.ints = attribute.ints.chunks(3).flat_map(|sizes| choose(sizes, of_other)).collect();
    }
    Ok(proto)
}
