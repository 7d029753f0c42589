//! `DeformConv`: for each tap of the kernel, samples of the image at places that the network computes, and their product with
//! the tap's weights.

use csdfc_plan::operator::{Conv, GridSample, Operator, SampleMode, SamplePadding};

use super::layout::{joined, tensor_of};
use super::parts::{cut, dims, number, part, reshaped, tensor};
use crate::import::builder::Builder;
use crate::import::constant::Constant;
use crate::import::error::{Fault, fault};
use crate::import::node::{Node, Tensor, Value, pair};
use csdfc_network::weights::Weights;

/// `DeformConv`.
pub(super) fn deform_conv(builder: &mut Builder, node: &Node) -> Result<Tensor, Fault> {
    let x = node.tensor(0)?.clone();
    let filters = node.constant(1, "filters")?;
    let (&[1, channels, height, width], &[units, of_group, kernel_y, kernel_x]) =
        (x.dims(), filters.dims.as_slice())
    else {
        return fault!("it takes {} with filters {:?}", x.operand.shape, filters.dims);
    };
    let Some(offsets) = node.input(2).cloned() else { return fault!("its offsets are missing") };
    let mask = node.input(4).cloned();
    let counts = ["group", "offset_group"].map(|name| node.int(name, 1));
    let [groups, parts] = counts.map(|count| count.map(|count| usize::try_from(count).unwrap_or(0)));
    let (groups, parts) = (groups?, parts?);
    if groups == 0
        || parts == 0
        || groups.checked_mul(of_group) != Some(channels)
        || channels % parts != 0
        || units % groups != 0
    {
        return fault!("{channels} channels and {units} filters, in {groups} groups and {parts} of offsets");
    }
    let stride = node.ints("strides")?.map_or(Ok([1; 2]), |list| pair(list, "strides"))?;
    let dilation = node.ints("dilations")?.map_or(Ok([1; 2]), |list| pair(list, "dilations"))?;
    let pads = node.ints("pads")?.unwrap_or(&[0; 4]);
    let &[top, left, ..] = pads else { return fault!("it has {} pads", pads.len()) };
    let taps = kernel_y * kernel_x;
    let &[_, of_offsets, rows, columns] = dims(&offsets) else {
        return fault!("its offsets have dimensions {:?}", dims(&offsets));
    };
    if of_offsets != 2 * parts * taps {
        return fault!("it has {of_offsets} offsets of {} taps", parts * taps);
    }
    let values = filters.to_floats()?;
    let bias = node.optional(3, "bias")?.map(Constant::weights).transpose()?;
    let size = channels / parts;
    let cuts = (0..parts).map(|of| cut(builder, node, &x.clone().into(), 1, [of * size, (of + 1) * size]));
    let images = cuts.map(|image| tensor(image?)).collect::<Result<Vec<_>, _>>()?;
    let mut made: Option<Tensor> = None;
    for tap in 0..taps {
        let (tap_y, tap_x) = (tap / kernel_x, tap % kernel_x);
        let mut sampled = Vec::with_capacity(parts);
        for (of, image) in images.iter().enumerate() {
            let at = of * taps + tap;
            let y = positions(rows, [stride[0], tap_y, dilation[0]], top, height);
            let y = place(builder, node, &offsets, 2 * at, &y, 2)?;
            let x_of = positions(columns, [stride[1], tap_x, dilation[1]], left, width);
            let x_of = place(builder, node, &offsets, 2 * at + 1, &x_of, 3)?;
            let grid = grid(builder, node, &x, [x_of, y], [1, rows, columns, 1])?;
            let (mode, padding) = (SampleMode::Linear, SamplePadding::Zeros);
            let sample = GridSample { mode, padding, align_corners: false };
            let mut samples =
                builder.layer(node, Operator::GridSample(sample), &[image, &grid], Vec::new())?;
            if let Some(mask) = &mask {
                let factor = cut(builder, node, mask, 1, [at, at + 1])?;
                samples = tensor(part(builder, node, "Mul", [samples.into(), factor])?)?;
            }
            sampled.push(samples);
        }
        let samples = joined(builder, node, 1, &sampled)?;
        let of_tap: Vec<f32> = values.iter().skip(tap).step_by(taps).copied().collect();
        let bias = bias.clone().filter(|_| tap == 0);
        let conv = Conv {
            filters: units,
            kernel: [1, 1],
            stride: [1, 1],
            dilation: [1, 1],
            pads: [0; 4],
            groups,
            bias: bias.is_some(),
            pre: None,
            residual: false,
            activation: None,
        };
        let weights = Weights::new([units, of_group, 1, 1], of_tap);
        let parameters = [weights].into_iter().chain(bias).collect();
        let product = builder.layer(node, Operator::Conv(conv), &[&samples], parameters)?;
        made = Some(match made {
            None => product,
            Some(sum) => tensor(part(builder, node, "Add", [sum.into(), product.into()])?)?,
        });
    }
    made.map_or_else(|| fault!("its kernel has no tap"), Ok)
}

/// Where a tap is without an offset, for each place of an axis of so many pixels: the middle of pixel p is (2·p + 1) / size − 1
/// of a grid from −1 to 1. Also the step of a pixel there.
fn positions(count: usize, of_window: [usize; 3], pad: i64, size: usize) -> (Vec<f32>, f32) {
    let [stride, tap, dilation] = of_window.map(|value| value as f64);
    let at = |place: usize| place as f64 * stride + tap * dilation - pad as f64;
    let places = (0..count).map(|place| ((2.0 * at(place) + 1.0) / size as f64 - 1.0) as f32);
    (places.collect(), 2.0 / size as f32)
}

/// The places of a tap along an axis of a grid: those without offsets, and the offsets.
fn place(
    builder: &mut Builder,
    node: &Node,
    offsets: &Value,
    channel: usize,
    (positions, step): &(Vec<f32>, f32),
    axis: usize,
) -> Result<Value, Fault> {
    let own = cut(builder, node, offsets, 1, [channel, channel + 1])?;
    let moved = part(builder, node, "Mul", [own, number(*step)])?;
    let mut own_dims = vec![1; 4];
    own_dims[axis] = positions.len();
    let positions = Constant::floats(own_dims, positions.clone());
    part(builder, node, "Add", [moved, positions.into()])
}

/// A grid of these places: the columns and the rows of the samples, each of these dimensions.
fn grid(
    builder: &mut Builder,
    node: &Node,
    x: &Tensor,
    places: [Value; 2],
    seen: [usize; 4],
) -> Result<Tensor, Fault> {
    match places {
        [Value::Constant(columns), Value::Constant(rows)] => {
            let pairs = columns.to_floats()?.into_iter().zip(rows.to_floats()?);
            let dims = [seen[0], seen[1], seen[2], 2];
            tensor_of(builder, node, x, &Constant::floats(dims, pairs.flat_map(|(x, y)| [x, y]).collect()))
        }
        places => {
            let [columns, rows] = places.map(|places| reshaped(builder, node, &places, seen.to_vec()));
            joined(builder, node, 3, &[tensor(columns?)?, tensor(rows?)?])
        }
    }
}
