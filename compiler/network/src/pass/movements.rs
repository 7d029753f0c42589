//! Movements of an image's elements that a model spells out become operators that go by rows.
//!
//! Models spell a channel shuffle, a pixel shuffle, a space to depth or a repetition of pixels as `Reshape`, then
//! `Transpose` or `Expand`, then `Reshape`. The layers between see the image in a shape of other rows, and so need it
//! whole. Here, a chain of such layers is read as the image that it makes. If each row of that comes from a few rows of
//! an earlier image ([`numbering`]), operators by rows take the place of the chain.
//!
//! Import asks for the [`Movement`] of each `Reshape`, so that what follows is read as layers on images. The pass finds
//! chains that no `Reshape` closes.

use csdfc_plan::operator::{
    Concat, Coordinates, Operator, Ratio, Resize, ResizeMode, Rounding, Scale, Slice, Transpose,
};
use csdfc_plan::shape::{Order, Shape};

use super::integers::of_moved_integers;
use super::names::Names;
use super::numbering::{self, Axis, Digits, Step};
use super::rewrite::drop_dead;
use crate::operators::{output_shape, runs};
use crate::{Layer, LayerId, Network, Operand};

/// Maximum number of layers of a chain.
const MAX_LAYERS: usize = 16;

/// Maximum number of slices from which reordered channels are put together.
const MAX_SLICES: usize = 32;

/// Replaces the last layer of each chain that moves the elements of an image row by row. Its tensor becomes the image
/// that its readers see.
pub(super) fn by_rows(network: Network) -> Network {
    let images = images(&network);
    if images.iter().all(Option::is_none) {
        return network;
    }
    let mut names = Names::new(&network);
    let mut result = Network { states: network.states.clone(), ..Network::default() };
    // The new place of each layer.
    let mut new: Vec<LayerId> = Vec::new();
    for (id, image) in network.ids().zip(images) {
        let layers = image.and_then(|image| replacement(&network, id, image, &new, &result, &mut names));
        let layers = layers.unwrap_or_else(|| {
            let mut layer = network.layer(id).clone();
            layer.inputs.iter_mut().for_each(|operand| operand.layer = new[operand.layer.0]);
            vec![layer]
        });
        result.layers.extend(layers);
        new.push(LayerId(result.layers.len() - 1));
    }
    result.outputs = network.outputs;
    for output in &mut result.outputs {
        output.operand.layer = new[output.operand.layer.0];
    }
    drop_dead(result)
}

/// For each layer that moves elements: the image that its tensor is to all its readers, or else its tensor if this is an
/// image.
fn images(network: &Network) -> Vec<Option<Shape>> {
    let mut seen: Vec<Vec<&Shape>> = vec![Vec::new(); network.layers.len()];
    let operands = network.layers.iter().flat_map(|layer| &layer.inputs);
    for operand in operands.chain(network.outputs.iter().map(|output| &output.operand)) {
        seen[operand.layer.0].push(&operand.shape);
    }
    let image = |(layer, seen): (&Layer, Vec<&Shape>)| {
        moved(layer)?;
        let is_image = |shape: &&Shape| shape.is_image() && shape.order == Order::ChannelsFirst;
        let one = seen.windows(2).all(|pair| pair[0] == pair[1]).then(|| seen.first().copied()).flatten();
        // All other views of the tensor stay views of it.
        one.filter(is_image).or(Some(&layer.shape).filter(is_image)).cloned()
    };
    network.layers.iter().zip(seen).map(image).collect()
}

/// How a layer moves the elements of its operand.
enum Moved<'a> {
    Permuted(&'a [usize]),
    /// Each row, and each column, of an image is repeated this number of times.
    Repeated([usize; 2]),
}

fn moved(layer: &Layer) -> Option<Moved<'_>> {
    match (&layer.operator, layer.inputs.as_slice()) {
        (Operator::Transpose(Transpose { perm, .. }), [_]) => Some(Moved::Permuted(perm)),
        (Operator::Resize(resize), [x]) => Some(Moved::Repeated(repetition(resize, &x.shape)?)),
        _ => None,
    }
}

/// How often a resize repeats each row and each column, if it does nothing else.
fn repetition(resize: &Resize, x: &Shape) -> Option<[usize; 2]> {
    let &[_, _, height, width] = x.dims.as_slice() else { return None };
    let times = |at: usize, size: usize| match resize.scales[at] {
        Scale::Ratio(Ratio { over, under }) => {
            let times = resize.size[at] / size;
            let is_exact =
                times * size == resize.size[at] && times as u64 * u64::from(under) == u64::from(over);
            is_exact.then_some(times)
        }
        Scale::Float(_) => None,
    };
    let is_floor = resize.mode == ResizeMode::Nearest { rounding: Rounding::Floor };
    let repeats = is_floor && resize.coordinates == Coordinates::Asymmetric;
    repeats.then_some([times(0, height)?, times(1, width)?])
}

/// A tensor that layers have made of an earlier one by moving its elements row by row.
pub struct Movement {
    /// The earlier tensor: an image, or lines `[1, C, L]`.
    pub source: LayerId,
    /// What makes the same of it, one after another. If it is lines, only channels change.
    pub steps: Vec<Step>,
    /// The layers that these steps replace, the last first.
    pub chain: Vec<LayerId>,
    /// The tensor as these dimensions show it: an image in either order, or lines.
    pub seen: Shape,
}

/// How the tensor of layer `id`, its elements in the order in which they are, was made, if it is an image or lines in
/// these dimensions.
pub fn movement(network: &Network, id: LayerId, dims: &[usize]) -> Option<Movement> {
    match *dims {
        [1, _, _, _] => [Order::ChannelsFirst, Order::ChannelsLast]
            .into_iter()
            .find_map(|order| made(network, id, dims, Shape { dims: dims.to_vec(), order })),
        // Lines may be images of one column, or of one row.
        [1, channels, length] => [dims, &[1, channels, length, 1], &[1, channels, 1, length]]
            .into_iter()
            .find_map(|as_image| made(network, id, as_image, Shape::new(dims))),
        _ => None,
    }
}

/// The same for a tensor whose dimensions are read as these, in the order of `seen`.
fn made(network: &Network, id: LayerId, dims: &[usize], seen: Shape) -> Option<Movement> {
    let mut chain = vec![id];
    let mut found = None;
    while let Some(first) = chain.last().filter(|_| chain.len() <= MAX_LAYERS) {
        let layer = network.layer(*first);
        if moved(layer).is_none() {
            break;
        }
        let source = layer.inputs[0].layer;
        let from = &network.layer(source).shape;
        // A layer by itself may go by rows already.
        let is_by_rows = chain.len() == 1 && from == &layer.inputs[0].shape && layer.shape.dims == dims;
        if !is_by_rows && let Some(steps) = steps(network, &chain, source, dims, seen.order) {
            found = Some((source, steps, chain.clone()));
        }
        chain.push(source);
    }
    found.map(|(source, steps, chain)| Movement { source, steps, chain, seen })
}

/// The layers that take the place of layer `id`, whose tensor is this image to its readers. `new` has the places of
/// earlier layers in the result.
fn replacement(
    network: &Network,
    id: LayerId,
    image: Shape,
    new: &[LayerId],
    result: &Network,
    names: &mut Names,
) -> Option<Vec<Layer>> {
    let Movement { source, steps, chain, .. } = movement(network, id, &image.dims)?;
    let made = Made { network, names, first: result.layers.len(), layers: Vec::new(), id };
    made.replace(&chain, (new[source.0], &network.layer(source).shape), &steps, image)
}

/// The steps from the tensor of `source` to that of a chain of layers, the last first, in these dimensions: both are images
/// or both lines.
fn steps(
    network: &Network,
    chain: &[LayerId],
    source: LayerId,
    seen_as: &[usize],
    order: Order,
) -> Option<Vec<Step>> {
    let from = &network.layer(source).shape;
    if !matches!((from.dims.as_slice(), seen_as), ([1, _, _, _], [1, _, _, _]) | ([1, _, _], [1, _, _])) {
        return None;
    }
    let [count, height, width] = size(from);
    let mut dims = vec![Digits::new(), numbering::whole(Axis::Channels, count)];
    dims.extend(
        [(Axis::Rows, height), (Axis::Columns, width)].map(|(axis, size)| numbering::whole(axis, size)),
    );
    dims.truncate(from.rank());
    if from.order == Order::ChannelsLast {
        dims = permuted(&dims, &TO_LAST);
    }
    let mut own = from;
    for id in chain.iter().rev() {
        let layer = network.layer(*id);
        dims = view_digits(dims, own, &layer.inputs[0].shape)?;
        dims = match moved(layer)? {
            Moved::Permuted(perm) => permuted(&dims, perm),
            Moved::Repeated(times) => {
                for (dim, size) in dims[2..].iter_mut().zip(times).filter(|(_, size)| *size > 1) {
                    dim.push(numbering::Digit { size, along: None });
                }
                dims
            }
        };
        own = &layer.shape;
    }
    // The elements are those of `own` in its order, whatever the dimensions mean.
    let mut dims = numbering::view(dims.concat(), seen_as)?;
    if dims.len() == 4 && order == Order::ChannelsLast {
        dims = permuted(&dims, &TO_FIRST);
    }
    dims.resize(4, Digits::new());
    let [_, channels, rows, columns] = dims.try_into().ok()?;
    let steps = numbering::steps([channels, rows, columns], [count, height, width])?;
    let is_possible = |step: &Step| match step {
        Step::Channels(places) => runs(places).len() <= MAX_SLICES,
        Step::Operator(_) => from.is_image(),
    };
    steps.iter().all(is_possible).then_some(steps)
}

/// The dimensions of a channels-first image in the order of a channels-last one, and the other way round.
const TO_LAST: [usize; 4] = [0, 2, 3, 1];
const TO_FIRST: [usize; 4] = [0, 3, 1, 2];

/// The digits of the dimensions of a view of a tensor.
fn view_digits(dims: Vec<Digits>, own: &Shape, view: &Shape) -> Option<Vec<Digits>> {
    let dims = match (own.order, view.order) {
        _ if own.rank() != 4 || view.rank() != 4 || own.order == view.order => dims,
        (Order::ChannelsFirst, _) => permuted(&dims, &TO_LAST),
        (Order::ChannelsLast, _) => permuted(&dims, &TO_FIRST),
    };
    numbering::view(dims.concat(), &view.dims)
}

fn permuted(dims: &[Digits], perm: &[usize]) -> Vec<Digits> {
    perm.iter().map(|axis| dims[*axis].clone()).collect()
}

/// Channels, height and width of an image; of lines, their number, their length and 1.
fn size(from: &Shape) -> [usize; 3] {
    match from.dims.as_slice() {
        &[_, channels, length] => [channels, length, 1],
        _ => [from.channels(), from.rows(), from.row_elements() / from.channels()],
    }
}

/// Layers in the place of another.
struct Made<'a> {
    network: &'a Network,
    names: &'a mut Names,
    /// The place of the first of them.
    first: usize,
    layers: Vec<Layer>,
    /// The layer that they replace.
    id: LayerId,
}

impl Made<'_> {
    /// The layers of these steps from `source`, a tensor and its shape. The last one has the name of the layer replaced,
    /// and stands for the nodes of the chain.
    fn replace(
        mut self,
        chain: &[LayerId],
        (source, from): (LayerId, &Shape),
        steps: &[Step],
        image: Shape,
    ) -> Option<Vec<Layer>> {
        if steps.is_empty() {
            return None;
        }
        let [channels, height, width] = size(from);
        let mut operand = Operand { layer: source, shape: Shape::image(channels, height, width) };
        for step in steps {
            operand = match step {
                Step::Operator(operator) => self.add(operator.clone(), vec![operand])?,
                Step::Channels(places) => self.reorder(&operand, places)?,
            };
        }
        let (replaced, last) = (self.network.layer(self.id), self.layers.last_mut()?);
        (last.name, last.output) = (replaced.name.clone(), replaced.output.clone());
        for node in chain.iter().rev().flat_map(|id| &self.network.layer(*id).onnx_nodes) {
            if !last.onnx_nodes.contains(node) {
                last.onnx_nodes.push(node.clone());
            }
        }
        (last.shape == image).then_some(self.layers)
    }

    /// Adds slices of channels, and their concat.
    fn reorder(&mut self, x: &Operand, places: &[usize]) -> Option<Operand> {
        let mut slices = Vec::new();
        for run in runs(places) {
            let (mut starts, mut steps, mut lengths) = (vec![0; 4], vec![1; 4], x.shape.dims.clone());
            (starts[1], steps[1], lengths[1]) = (run.start, run.step, run.length);
            slices.push(self.add(Operator::Slice(Slice { starts, steps, lengths }), vec![x.clone()])?);
        }
        match slices.as_slice() {
            [one] => Some(one.clone()),
            _ => self.add(Operator::Concat(Concat { axis: 1 }), slices),
        }
    }

    fn add(&mut self, operator: Operator, inputs: Vec<Operand>) -> Option<Operand> {
        let shapes: Vec<Shape> = inputs.iter().map(|operand| operand.shape.clone()).collect();
        let shape = output_shape(&operator, &shapes).ok()?;
        let replaced = self.network.layer(self.id);
        let mut unique = |base: &str| self.names.unique(format!("{base}_{}", operator.kind()));
        let mut layer = Layer {
            name: unique(&replaced.name),
            output: unique(&replaced.output),
            onnx_nodes: Vec::new(),
            operator: operator.clone(),
            inputs,
            parameters: Vec::new(),
            shape: shape.clone(),
            primitive: None,
            quantization: replaced.quantization,
        };
        if replaced.primitive.is_some() {
            layer.primitive = Some(of_moved_integers(&layer)?);
        }
        self.layers.push(layer);
        Some(Operand { layer: LayerId(self.first + self.layers.len() - 1), shape })
    }
}
