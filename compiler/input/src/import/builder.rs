//! The network under construction: layers with unique names, and views, which are not layers.
//!
//! An operand may see a tensor in a shape other than the tensor's own. The order of dimensions decides what that means:
//!
//! - both shapes are of rank 4 and of different orders: the same rows in the other order, as a `Transpose` makes it;
//! - otherwise: the same elements in the same row-major order, under other dimensions.
//!
//! If a chain of views is neither of the two, an [`Operator::Transpose`] layer moves the data.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use csdfc_network::operators;
use csdfc_network::pass::{self, Step};
use csdfc_network::weights::Weights;
use csdfc_network::{Layer, LayerId, Network, Operand};
use csdfc_plan::format::{Element, Quantization};
use csdfc_plan::operator::{
    ArgMax, Binary, ElementWise, Function, Input, InputElement, NonMaxSuppression, Operator, TopK, Transpose,
};
use csdfc_plan::shape::{Order, Shape};
use csdfc_runtime::bind::{Primitive, Site, bind};
use rten_onnx::onnx::{DataType, TensorProto};

use super::constant::{self, Constant, MAX_READ, count};
use super::error::{Fault, fault};
use super::node::{Node, Tensor};
use super::ops::{gather, line};

/// Maximum number of layers of a network, and nodes of a model.
pub(super) const MAX_LAYERS: usize = 100_000;

/// Maximum number of rows of a tensor.
const MAX_ROWS: usize = 1 << 18;

/// Maximum number of dimensions that every kernel sees.
const MAX_DIMENSIONS: usize = 6;

/// Maximum number of views between two layers.
const MAX_VIEWS: usize = 256;

/// The most elements that import computes in all.
const MAX_FOLDED: usize = MAX_READ;

/// Channels-first dimension of each channels-last one.
pub(super) const FROM_LAST: [usize; 4] = [0, 2, 3, 1];

/// Channels-last dimension of each channels-first one.
pub(super) const CHANNELS_LAST_TO_FIRST: [usize; 4] = [0, 3, 1, 2];

#[derive(Default)]
pub(super) struct Builder {
    pub network: Network,
    /// The nodes, by index.
    nodes: Vec<NodeName>,
    names: Names,
    tensors: Names,
    /// The moved tensors, for tensors seen channels-last that had to be moved.
    moved: BTreeMap<(LayerId, Shape), Tensor>,
    /// The layers that make the same indices as floats, for layers that make indices.
    floats: BTreeMap<LayerId, LayerId>,
    folded: usize,
    /// The tensors that the model stores, by their places in memory.
    stored: BTreeMap<*const TensorProto, Constant>,
}

/// The names of the layers that stand for a node.
pub(super) struct NodeName {
    /// Its name, or that of its first output.
    pub label: String,
    /// Its first output.
    pub output: String,
}

/// Names given so far.
#[derive(Default)]
pub(super) struct Names {
    used: BTreeSet<String>,
    next: BTreeMap<String, usize>,
}

impl Builder {
    pub fn new(nodes: Vec<NodeName>) -> Self {
        Builder { nodes, ..Builder::default() }
    }

    /// Adds a node that layers may stand for, and returns its index.
    pub fn node(&mut self, name: NodeName) -> usize {
        self.nodes.push(name);
        self.nodes.len() - 1
    }

    /// A tensor that the model stores. It is read once, since bodies and functions may be imported many times.
    pub fn stored(&mut self, tensor: &TensorProto, folder: Option<&Path>) -> Result<Constant, Fault> {
        let place = std::ptr::from_ref(tensor);
        if let Some(constant) = self.stored.get(&place) {
            return Ok(constant.clone());
        }
        let constant = constant::read(tensor, folder)?;
        self.stored.insert(place, constant.clone());
        Ok(constant)
    }

    /// Counts elements computed at import against the budget.
    pub fn charge(&mut self, elements: usize) -> Result<(), Fault> {
        self.folded = self.folded.saturating_add(elements);
        if self.folded > MAX_FOLDED {
            return fault!(
                "the model's constants need more than {MAX_FOLDED} elements to be computed at import"
            );
        }
        Ok(())
    }

    /// Adds the seat of a network input.
    pub fn input(&mut self, name: &str, operator: Operator, shape: Shape) -> Result<Tensor, Fault> {
        check_limits(&shape)?;
        let layer = Layer {
            name: self.names.unique(name),
            onnx_nodes: Vec::new(),
            operator,
            inputs: Vec::new(),
            parameters: Vec::new(),
            output: self.tensors.unique(name),
            shape: shape.clone(),
            primitive: None,
            quantization: None,
        };
        let operand = Operand { layer: self.network.add(layer), shape };
        Ok(Tensor { operand, views: Vec::new(), integers: None, batch: 1 })
    }

    /// Lets the caller hand over an input as these 8-bit integers.
    pub fn input_of_integers(
        &mut self,
        input: Tensor,
        element: InputElement,
        quantization: Quantization,
    ) -> Tensor {
        let operator = Operator::Input(Input { element, camera: None });
        let layer = &mut self.network.layers[input.operand.layer.0];
        layer.primitive = Some(Primitive::new(&operator, &[]));
        (layer.operator, layer.quantization) = (operator, Some(quantization));
        Tensor { integers: None, ..input }
    }

    /// Adds a layer that stands for `node`.
    pub fn layer(
        &mut self,
        node: &Node,
        operator: Operator,
        inputs: &[&Tensor],
        parameters: Vec<Weights>,
    ) -> Result<Tensor, Fault> {
        let inputs: Vec<Tensor> =
            inputs.iter().map(|input| self.without_indices(input)).collect::<Result<_, _>>()?;
        let inputs = &inputs.iter().collect::<Vec<_>>()[..];
        let integers = inputs.iter().filter(|input| input.integers.is_some()).count();
        if integers > 0 && (integers < inputs.len() || !pass::moves_exactly(&operator)) {
            return Err(Fault::new("it computes on integers, but csdfc can only move these integers")
                .help("put a Cast to float or a DequantizeLinear before it"));
        }
        if let [x] = inputs
            && let Some(image) = self.pixels(x)
            && let Some(operator) = line::on_pixels(&operator, x.dims())
        {
            let made = self.add(node.index, operator, &[&image], parameters)?;
            return self.reshape(node, &made, x.dims().to_vec());
        }
        let own = |input: &Tensor| self.network.layer(input.operand.layer).shape.clone();
        let owns: Vec<Shape> = inputs.iter().map(|input| own(input)).collect();
        let operands: Vec<[&Shape; 2]> =
            owns.iter().zip(inputs).map(|(own, input)| [own, &input.operand.shape]).collect();
        if let Some((operator, parameters, added)) = line::on_images(&operator, &parameters, &operands) {
            let images = inputs.iter().map(|input| line::image(self, node, input, added));
            let images = images.collect::<Result<Vec<_>, _>>()?;
            let made = self.layer(node, operator, &images.iter().collect::<Vec<_>>(), parameters)?;
            return line::line(self, node, &made, added);
        }
        let shapes: Vec<Shape> = inputs.iter().map(|input| input.operand.shape.clone()).collect();
        if let Some(made) = self.layer_of_pixels(node, &operator, inputs, &parameters)? {
            return Ok(made);
        }
        let any_order = operator.keeps_order(&shapes) || matches!(operator, Operator::Transpose(_));
        if any_order || !shapes.iter().any(is_channels_last) {
            return self.add(node.index, operator, inputs, parameters);
        }
        let first: Vec<Tensor> =
            inputs.iter().map(|input| self.channels_first(node, input)).collect::<Result<_, _>>()?;
        self.add(node.index, operator, &first.iter().collect::<Vec<_>>(), parameters)
    }

    /// If channels-first tensors are seen channels-last, a function of their elements as a layer on the tensors as they
    /// are, so that it can become a part of neighbouring layers.
    fn layer_of_pixels(
        &mut self,
        node: &Node,
        operator: &Operator,
        inputs: &[&Tensor],
        parameters: &[Weights],
    ) -> Result<Option<Tensor>, Fault> {
        let is_moved = |input: &&Tensor| {
            let own = &self.network.layer(input.operand.layer).shape;
            is_channels_last(&input.operand.shape) && own.order == Order::ChannelsFirst
        };
        let dims = match operator {
            Operator::ElementWise(element_wise) => match &element_wise.function {
                Function::PRelu { slope } => Some(slope),
                _ => None,
            },
            Operator::Binary(binary) => binary.constant.as_ref().map(|constant| &constant.dims),
            _ => return Ok(None),
        };
        // A constant of several channels has one element for each.
        let last = dims.and_then(|dims| dims.last().copied()).unwrap_or(1);
        if !inputs.iter().all(is_moved) || dims.is_some_and(|dims| dims.iter().product::<usize>() != last) {
            return Ok(None);
        }
        let Some(first) = inputs.iter().map(|input| self.reordered(input)).collect::<Option<Vec<_>>>() else {
            return Ok(None);
        };
        let moved = dims.map(|_| if last > 1 { vec![last, 1, 1] } else { Vec::new() });
        let mut operator = operator.clone();
        match (&mut operator, &moved) {
            (Operator::ElementWise(ElementWise { function: Function::PRelu { slope } }), Some(moved)) => {
                slope.clone_from(moved);
            }
            (Operator::Binary(Binary { constant: Some(constant), .. }), Some(moved)) => {
                constant.dims.clone_from(moved);
            }
            _ => {}
        }
        let parameters = parameters
            .iter()
            .map(|weights| Weights { dims: moved.clone().unwrap_or_default(), ..weights.clone() });
        let made = self.layer(node, operator, &first.iter().collect::<Vec<_>>(), parameters.collect())?;
        Ok(Some(self.reordered(&made).unwrap_or(made)))
    }

    /// Whether a tensor has indices of 64 bits.
    pub fn has_indices(&self, tensor: &Tensor) -> bool {
        self.network.layer(tensor.operand.layer).format().element == Element::I64
    }

    /// The tensor itself; if it has indices of 64 bits, the same indices as floats that hold integers.
    pub fn without_indices(&mut self, tensor: &Tensor) -> Result<Tensor, Fault> {
        let layer = self.network.layer(tensor.operand.layer);
        match &layer.operator {
            Operator::NonMaxSuppression(_) if self.has_indices(tensor) => {
                let name = &layer.name;
                let reason =
                    format!("it reads the indices of {name}, whose number is known only after a run");
                Err(Fault::new(reason).help(format!(
                    "a plan needs tensors of known sizes: end the model with {name} or before it, and compute the rest \
                     after the run"
                )))
            }
            _ => self.padded_indices(tensor),
        }
    }

    /// The same, also for those of a `NonMaxSuppression`, which are padded with rows of −1.
    pub fn padded_indices(&mut self, tensor: &Tensor) -> Result<Tensor, Fault> {
        let id = tensor.operand.layer;
        if !self.has_indices(tensor) {
            return Ok(tensor.clone());
        }
        let layer = self.network.layer(id);
        let mut operator = layer.operator.clone();
        match &mut operator {
            Operator::ArgMax(ArgMax { floats, .. })
            | Operator::TopK(TopK { floats, .. })
            | Operator::NonMaxSuppression(NonMaxSuppression { floats, .. }) => *floats = true,
            other => return fault!("csdfc reads no indices of {}", other.kind()),
        }
        let made = match self.floats.get(&id) {
            Some(made) => *made,
            None => {
                let layer = Layer {
                    name: self.names.unique(&layer.name),
                    output: self.tensors.unique(&layer.output),
                    operator,
                    ..layer.clone()
                };
                *self.floats.entry(id).or_insert(self.network.add(layer))
            }
        };
        let operand = Operand { layer: made, shape: tensor.operand.shape.clone() };
        Ok(Tensor { operand, integers: Some(DataType::INT64), ..tensor.clone() })
    }

    /// Adds a conversion that stands for `node`, with the primitive of this name. It converts to integers of this
    /// quantization, or to floats.
    pub fn convert(
        &mut self,
        node: &Node,
        primitive: &str,
        x: &Tensor,
        quantization: Option<Quantization>,
    ) -> Result<Tensor, Fault> {
        let made = self.add(node.index, Operator::Convert, &[x], Vec::new())?;
        let layer = &mut self.network.layers[made.operand.layer.0];
        (layer.primitive, layer.quantization) = (Primitive::find(primitive), quantization);
        Ok(made)
    }

    /// Which numbers the elements of a tensor stand for, if they are 8-bit integers.
    pub fn quantization(&self, tensor: &Tensor) -> Option<Quantization> {
        self.network.layer(tensor.operand.layer).quantization
    }

    /// Gives a tensor its name in the model, if its layer belongs to the node that was just imported. The layers of
    /// that node begin at `first_layer`.
    pub fn name_tensor(&mut self, id: LayerId, name: &str, first_layer: usize) {
        let Some(layers) = self.network.layers.get_mut(first_layer..) else { return };
        let Some(index) = id.0.checked_sub(first_layer) else { return };
        if layers[index].output == name {
            return;
        }
        match layers.iter().position(|layer| layer.output == name) {
            // An earlier layer of the same node took the name.
            Some(other) => {
                let spare = std::mem::replace(&mut layers[index].output, name.to_string());
                layers[other].output = spare;
            }
            None => layers[index].output = self.tensors.unique(name),
        }
    }

    /// The tensor seen in these dimensions, its elements in the same row-major order.
    pub fn reshape(&mut self, node: &Node, tensor: &Tensor, dims: Vec<usize>) -> Result<Tensor, Fault> {
        let elements = count(&dims)?;
        if elements != tensor.operand.shape.elements() {
            return fault!(
                "{} ({} elements) cannot be seen as {} ({elements})",
                tensor.operand.shape,
                tensor.operand.shape.elements(),
                Shape::new(dims)
            );
        }
        if dims == tensor.dims() {
            return self.view(node, tensor, tensor.operand.shape.clone());
        }
        let tensor = &self.unmoved(tensor, &dims);
        let own = &self.network.layer(tensor.operand.layer).shape;
        let is_reordered = is_reordered(own, &tensor.operand.shape);
        // Rank 4 over a channels-last tensor would be taken for the other order of its rows.
        let confusing = is_channels_last(own) && dims.len() == 4;
        if !is_reordered && let Some(moved) = self.by_rows(node, tensor, &dims)? {
            return Ok(moved);
        }
        if is_reordered || confusing {
            let moved = self.channels_first(node, tensor)?;
            return self.view(node, &moved, Shape::new(dims));
        }
        self.view(node, tensor, Shape::new(dims))
    }

    /// The tensor from which another one was copied, if these dimensions can be a view of it.
    fn unmoved(&self, tensor: &Tensor, dims: &[usize]) -> Tensor {
        let copied = self.moved.iter().find(|(_, moved)| moved.operand.layer == tensor.operand.layer);
        match copied {
            Some(((layer, shape), _)) if dims.len() != 4 && self.network.layer(*layer).shape == *shape => {
                let operand = Operand { layer: *layer, shape: shape.clone() };
                Tensor { operand, ..tensor.clone() }
            }
            _ => tensor.clone(),
        }
    }

    /// The tensor in these dimensions, made row by row of an earlier image or earlier lines, if it is one of these and
    /// layers have only moved its elements since.
    fn by_rows(&mut self, node: &Node, tensor: &Tensor, dims: &[usize]) -> Result<Option<Tensor>, Fault> {
        let Some(movement) = pass::movement(&self.network, tensor.operand.layer, dims) else {
            return Ok(None);
        };
        let moves = |step: &Step| match step {
            Step::Operator(operator) => pass::moves_exactly(operator),
            Step::Channels(_) => true,
        };
        if tensor.integers.is_some() && !movement.steps.iter().all(moves) {
            return Ok(None);
        }
        let chain = movement.chain.iter().rev().flat_map(|id| &self.network.layer(*id).onnx_nodes);
        let index = |label: &String| self.nodes.iter().position(|node| node.label == *label);
        let views: Vec<usize> = chain.filter_map(index).chain(tensor.views.iter().copied()).collect();
        let own = &self.network.layer(movement.source).shape;
        let first = match own.order {
            Order::ChannelsLast if own.is_image() => Shape::image(own.channels(), own.dims[1], own.dims[2]),
            _ => own.clone(),
        };
        let operand = Operand { layer: movement.source, shape: first };
        let mut made = Tensor { operand, views, ..tensor.clone() };
        for step in &movement.steps {
            made = match step {
                Step::Operator(operator) => self.layer(node, operator.clone(), &[&made], Vec::new())?,
                Step::Channels(places) => gather::taken(self, node, &made, 1, places)?,
            };
        }
        self.view(node, &made, movement.seen).map(Some)
    }

    /// A tensor `[steps, batch, channels]` as an image `[1, steps, batch, channels]`, channels last, whose rows are the steps.
    pub fn steps(&mut self, node: &Node, tensor: &Tensor) -> Result<Tensor, Fault> {
        let shape = Shape { dims: [&[1], tensor.dims()].concat(), order: Order::ChannelsLast };
        let own = &self.network.layer(tensor.operand.layer).shape;
        // Rank 4 over any other tensor of rank 4 would be taken for the other order of its dimensions.
        let tensor = match own.rank() != 4 || *own == shape {
            true => tensor.clone(),
            false => {
                let perm: Vec<usize> = (0..tensor.rank()).collect();
                self.add(node.index, Operator::Transpose(Transpose::new(perm)), &[tensor], Vec::new())?
            }
        };
        self.view(node, &tensor, shape)
    }

    /// An image `[1, C, steps, W]`, if each step of a tensor `[steps, 1, C · W]` is a row of it: its channels one after
    /// another.
    pub fn rows_of_image(&self, tensor: &Tensor) -> Option<Tensor> {
        let &[steps, 1, _] = tensor.dims() else { return None };
        let layer = self.network.layer(tensor.operand.layer);
        let (from, perm, replaced) = match (&layer.operator, layer.inputs.as_slice()) {
            (Operator::Transpose(Transpose { perm, .. }), [from]) => {
                (from, perm.clone(), layer.onnx_nodes.as_slice())
            }
            _ => (&tensor.operand, (0..tensor.rank()).collect(), &[][..]),
        };
        let own = &self.network.layer(from.layer).shape;
        let is_image = own.is_image() && own.order == Order::ChannelsFirst && own.rows() == steps;
        if !is_image || is_reordered(own, &from.shape) {
            return None;
        }
        // The image's dimensions of more than one element, in the order in which the tensor has them.
        let many = |axis: &usize| own.dims[*axis] > 1;
        let mut axes = (1..4).filter(many);
        let axis_of =
            |dim: &usize| if *dim > 1 { axes.next().filter(|axis| own.dims[*axis] == *dim) } else { None };
        let seen: Vec<Option<usize>> = from.shape.dims.iter().map(axis_of).collect();
        let moved = perm.iter().filter_map(|axis| seen[*axis]);
        if !moved.eq([2, 1, 3].into_iter().filter(many)) {
            return None;
        }
        let index = |label: &String| self.nodes.iter().position(|node| node.label == *label);
        let views = replaced.iter().filter_map(index).chain(tensor.views.iter().copied()).collect();
        let operand = Operand { layer: from.layer, shape: own.clone() };
        Some(Tensor { operand, views, ..tensor.clone() })
    }

    /// The channels-last image that a tensor is, if it is seen in fewer or more dimensions, the last of which are its
    /// channels.
    pub fn pixels(&self, tensor: &Tensor) -> Option<Tensor> {
        let own = &self.network.layer(tensor.operand.layer).shape;
        let is_seen_so = tensor.rank() != 4 && tensor.dims().last() == own.dims.last();
        let operand = Operand { layer: tensor.operand.layer, shape: own.clone() };
        (is_channels_last(own) && own.is_image() && is_seen_so).then(|| Tensor { operand, ..tensor.clone() })
    }

    /// The tensor with its dimensions permuted. This is a view if it moves nothing, else a layer.
    pub fn transpose(&mut self, node: &Node, tensor: &Tensor, perm: Vec<usize>) -> Result<Tensor, Fault> {
        let seen = &tensor.operand.shape;
        let mut sorted = perm.clone();
        sorted.sort_unstable();
        if !sorted.iter().copied().eq(0..seen.rank()) {
            return fault!("perm {perm:?} does not permute the dimensions of {seen}");
        }
        if sorted == perm {
            return self.view(node, tensor, seen.clone());
        }
        if let Some(other) = self.other_order(tensor) {
            let to_other = if is_channels_last(seen) { CHANNELS_LAST_TO_FIRST } else { FROM_LAST };
            if perm == to_other {
                return self.view(node, tensor, other);
            }
        }
        let moving: Vec<usize> = perm.iter().copied().filter(|axis| seen.dims[*axis] != 1).collect();
        if moving.is_sorted() && seen.order == Order::ChannelsFirst {
            let dims = perm.iter().map(|axis| seen.dims[*axis]).collect();
            return self.reshape(node, tensor, dims);
        }
        self.layer(node, Operator::Transpose(Transpose::new(perm)), &[tensor], Vec::new())
    }

    /// The tensor as it is.
    pub fn identity(&mut self, node: &Node, tensor: &Tensor) -> Result<Tensor, Fault> {
        self.view(node, tensor, tensor.operand.shape.clone())
    }

    /// The other order of the same rows as a shape, if the tensor is seen in one of the two.
    pub fn other_order(&self, tensor: &Tensor) -> Option<Shape> {
        let seen = &tensor.operand.shape;
        let own = &self.network.layer(tensor.operand.layer).shape;
        let whole = seen == own || is_reordered(own, seen);
        let &[1, a, b, c] = seen.dims.as_slice() else { return None };
        match seen.order {
            _ if !whole => None,
            Order::ChannelsFirst => Some(Shape { dims: vec![1, b, c, a], order: Order::ChannelsLast }),
            Order::ChannelsLast => Some(Shape::new([1, c, a, b])),
        }
    }

    /// The tensor seen in the other order of its rows, with no node between.
    pub fn reordered(&self, tensor: &Tensor) -> Option<Tensor> {
        let shape = self.other_order(tensor)?;
        let operand = Operand { layer: tensor.operand.layer, shape };
        Some(Tensor { operand, ..tensor.clone() })
    }

    /// The tensor in a channels-first shape of the same dimensions, moved there if need be.
    fn channels_first(&mut self, node: &Node, tensor: &Tensor) -> Result<Tensor, Fault> {
        let own = &self.network.layer(tensor.operand.layer).shape;
        if !is_channels_last(own) && !is_channels_last(&tensor.operand.shape) {
            return Ok(tensor.clone());
        }
        let key = (tensor.operand.layer, tensor.operand.shape.clone());
        if let Some(moved) = self.moved.get(&key) {
            return Ok(Tensor { integers: tensor.integers, batch: tensor.batch, ..moved.clone() });
        }
        let perm: Vec<usize> = (0..tensor.rank()).collect();
        // The layer does the work of the last view.
        let index = tensor.views.last().copied().unwrap_or(node.index);
        let moved = self.add(index, Operator::Transpose(Transpose::new(perm)), &[tensor], Vec::new())?;
        self.moved.insert(key, moved.clone());
        Ok(moved)
    }

    fn add(
        &mut self,
        index: usize,
        operator: Operator,
        inputs: &[&Tensor],
        parameters: Vec<Weights>,
    ) -> Result<Tensor, Fault> {
        if self.network.layers.len() >= MAX_LAYERS {
            return fault!("the network has more than {MAX_LAYERS} layers");
        }
        let shapes: Vec<Shape> = inputs.iter().map(|input| input.operand.shape.clone()).collect();
        let shape = operators::output_shape(&operator, &shapes)?;
        check_limits(&shape)?;
        self.check_dimensions(&operator, inputs, &shape)?;
        let stored: Vec<Vec<usize>> = parameters.iter().map(|weights| weights.dims.clone()).collect();
        let needed = operators::parameter_dims(&operator, &shapes);
        if stored != needed {
            let text = |all: &[Vec<usize>]| {
                let each = all.iter().map(|dims| Shape::new(dims.as_slice()).to_string());
                each.collect::<Vec<_>>().join(" and ")
            };
            let seen: Vec<String> = shapes.iter().map(Shape::to_string).collect();
            let (stored, needed, seen) = (text(&stored), text(&needed), seen.join(" and "));
            let reason = format!("its weights are {stored}, but an input of {seen} asks for {needed}");
            return Err(Fault::new(reason)
                .help("export the model anew, or give the shape that it was made for with --shape"));
        }
        // The builder was made with the graph's nodes, and views have indices of these.
        let NodeName { label, output } = &self.nodes[index];
        let mut onnx_nodes: Vec<String> = Vec::new();
        for index in inputs.iter().flat_map(|input| &input.views).chain([&index]) {
            let label = &self.nodes[*index].label;
            if !onnx_nodes.contains(label) {
                onnx_nodes.push(label.clone());
            }
        }
        let layer = Layer {
            name: self.names.unique(label),
            onnx_nodes,
            operator,
            inputs: inputs.iter().map(|input| input.operand.clone()).collect(),
            parameters,
            output: self.tensors.unique(output),
            shape: shape.clone(),
            primitive: None,
            quantization: None,
        };
        let layer = self.of_integers(layer, inputs)?;
        let integers = inputs.first().and_then(|input| input.integers);
        let batch = inputs.iter().map(|input| input.batch).max().unwrap_or(1);
        let operand = Operand { layer: self.network.add(layer), shape };
        Ok(Tensor { operand, views: Vec::new(), integers, batch })
    }

    /// Checks that a kernel computes a layer, if it sees more dimensions than most kernels do.
    fn check_dimensions(&self, operator: &Operator, inputs: &[&Tensor], output: &Shape) -> Result<(), Fault> {
        let own = |input: &&Tensor| &self.network.layer(input.operand.layer).shape;
        let [own, seen]: [Vec<&Shape>; 2] =
            [inputs.iter().map(own).collect(), inputs.iter().map(|input| &input.operand.shape).collect()];
        let has_few = own.iter().chain(&seen).chain([&output]).all(|shape| shape.rank() <= MAX_DIMENSIONS);
        if has_few || matches!(operator, Operator::Convert) {
            return Ok(());
        }
        let site = Site::whole(operator, own.into_iter().zip(seen.iter().copied()), output);
        match bind(Primitive::new(operator, &seen), &site) {
            Ok(_) => Ok(()),
            Err(why) => Err(Fault::new(why.to_string()).help(format!(
                "reshape it to at most {MAX_DIMENSIONS} dimensions, merging some that lie side by side"
            ))),
        }
    }

    /// The layer. If it reads 8-bit integers, it makes 8-bit integers, since it only moves them.
    fn of_integers(&self, layer: Layer, inputs: &[&Tensor]) -> Result<Layer, Fault> {
        let quantizations: Vec<_> = inputs.iter().map(|input| self.quantization(input)).collect();
        let Some(Some(first)) = quantizations.iter().find(|read| read.is_some()).copied() else {
            return Ok(layer);
        };
        if matches!(layer.operator, Operator::Convert) {
            return Ok(layer);
        }
        match pass::of_moved_integers(&layer) {
            Some(primitive) if quantizations.iter().all(|read| *read == Some(first)) => {
                Ok(Layer { primitive: Some(primitive), quantization: Some(first), ..layer })
            }
            _ => Err(Fault::new("it computes on 8-bit integers, but csdfc can only move these integers")
                .help("put a DequantizeLinear before it and a QuantizeLinear after it")),
        }
    }

    fn view(&mut self, node: &Node, tensor: &Tensor, shape: Shape) -> Result<Tensor, Fault> {
        check_limits(&shape)?;
        if tensor.views.len() >= MAX_VIEWS {
            return fault!("more than {MAX_VIEWS} views in a row");
        }
        let mut views = tensor.views.clone();
        views.push(node.index);
        let operand = Operand { layer: tensor.operand.layer, shape };
        Ok(Tensor { operand, views, ..tensor.clone() })
    }
}

/// Whether the shape reads as rows of pixels of channels.
pub(super) fn is_channels_last(shape: &Shape) -> bool {
    shape.rank() == 4 && shape.order == Order::ChannelsLast
}

/// Whether `seen` is the other order of the rows of `own`.
fn is_reordered(own: &Shape, seen: &Shape) -> bool {
    own.rank() == 4 && seen.rank() == 4 && own.order != seen.order
}

/// Checks that a tensor of the network is no larger than csdfc can plan.
fn check_limits(shape: &Shape) -> Result<(), Fault> {
    if shape.dims.contains(&0) {
        return fault!("a tensor of shape {shape} is empty");
    }
    count(&shape.dims)?;
    if shape.rows() > MAX_ROWS {
        return fault!("a tensor of shape {shape} has more than {MAX_ROWS} rows");
    }
    Ok(())
}

impl Names {
    /// No other name is taken.
    pub fn taken(names: impl Iterator<Item = String>) -> Self {
        Names { used: names.collect(), next: BTreeMap::new() }
    }

    /// The name itself, or with a number after it if it is taken.
    pub fn unique(&mut self, name: &str) -> String {
        let mut unique = name.to_string();
        while !self.used.insert(unique.clone()) {
            let next = self.next.entry(name.to_string()).or_insert(2);
            unique = format!("{name}_{next}");
            *next += 1;
        }
        unique
    }
}
