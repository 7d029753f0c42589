//! The plan with every name resolved. All later checks work on it.

use crate::plan::{Cnn, Layer, Partition, Plan, Tensor};
use crate::shape::Shape;

/// A plan with its names resolved.
pub struct Index<'a> {
    /// The plan.
    pub plan: &'a Plan,
    /// As in the plan.
    pub cnns: Vec<CnnIndex<'a>>,
    /// As in the plan.
    pub partitions: Vec<PartitionIndex<'a>>,
    /// For each partition, the other partitions that may run at the same time: those of a common element of `parallel`,
    /// and those of its own CNN that such elements connect to it through others.
    pub concurrent: Vec<Vec<bool>>,
}

/// A CNN. Its tensors have the index of the layer that produces them.
pub struct CnnIndex<'a> {
    /// As the plan has it.
    pub cnn: &'a Cnn,
    /// In the order of the plan, which is topological.
    pub layers: Vec<LayerIndex<'a>>,
    /// Its partitions, in order.
    pub partitions: Vec<usize>,
    /// The same, grouped by partitions that run at the same time. Each group is in order, and groups are ordered by
    /// their first partition.
    pub groups: Vec<Vec<usize>>,
    /// By layer, whether it works along the time of a stream. Empty if the CNN is no stream.
    pub(super) over_time: Vec<bool>,
}

/// A layer and the tensor that it produces.
pub struct LayerIndex<'a> {
    /// As the plan has it.
    pub layer: &'a Layer,
    /// What it makes.
    pub tensor: &'a Tensor,
    /// The layers whose tensors it reads, by operand.
    pub inputs: Vec<usize>,
    /// The layers that read its tensor, ascending, each once.
    pub readers: Vec<usize>,
    /// Index in the plan's partitions.
    pub partition: usize,
    /// The earlier layer whose parameters it uses, if it keeps none of its own.
    pub parameters_of: Option<usize>,
    /// Whether its tensor is a network output, or one seen through a view.
    pub is_output: bool,
    /// Whether it delivers the input of a state.
    pub is_state: bool,
    /// Whether its tensor is the output of a state, which is the input in the next frame.
    pub is_kept: bool,
}

/// A partition.
pub struct PartitionIndex<'a> {
    /// As the plan has it.
    pub partition: &'a Partition,
    /// Index of its CNN.
    pub cnn: usize,
}

impl<'a> Index<'a> {
    /// Whether some reader of the tensor runs at the same time as its producer, in another partition.
    pub fn is_cut(&self, cnn: usize, tensor: usize) -> bool {
        let producer = &self.cnns[cnn].layers[tensor];
        producer.readers.iter().any(|reader| self.is_cut_edge(cnn, tensor, *reader))
    }

    /// Whether this reader of the tensor runs at the same time as its producer, in another partition.
    pub fn is_cut_edge(&self, cnn: usize, tensor: usize, reader: usize) -> bool {
        let layers = &self.cnns[cnn].layers;
        self.concurrent[layers[tensor].partition][layers[reader].partition]
    }
}

impl<'a> CnnIndex<'a> {
    /// Whether a layer works along the time of a stream: its rows, and those that it reads, are counted from the start of
    /// the stream. Any other layer computes each hop, or each frame, by itself.
    pub fn is_over_time(&self, layer: usize) -> bool {
        self.over_time.get(layer).is_some_and(|over_time| *over_time)
    }

    /// The shape in which a layer sees one of its operands.
    pub fn viewed_shape(&self, layer: usize, operand: usize) -> &'a Shape {
        let LayerIndex { layer, inputs, .. } = &self.layers[layer];
        let own = &self.layers[inputs[operand]].tensor.shape;
        layer.inputs[operand].view.as_ref().unwrap_or(own)
    }

    /// The shapes in which a layer sees its operands.
    pub fn seen_all(&self, layer: usize) -> Vec<&'a Shape> {
        (0..self.layers[layer].inputs.len()).map(|operand| self.viewed_shape(layer, operand)).collect()
    }

    /// `cnn/layer`.
    pub fn layer_name(&self, layer: usize) -> String {
        format!("{}/{}", self.cnn.name, self.layers[layer].layer.name)
    }

    /// `cnn/tensor`.
    pub fn tensor_name(&self, tensor: usize) -> String {
        format!("{}/{}", self.cnn.name, self.layers[tensor].tensor.name)
    }
}

impl LayerIndex<'_> {
    /// Rows of its tensor.
    pub fn rows(&self) -> u64 {
        self.tensor.rows() as u64
    }

    /// Rows of its tensor that firing `p` of a frame makes.
    pub fn rows_of_firing(&self, p: u64) -> std::ops::Range<u64> {
        let first = p.saturating_mul(self.layer.rows_per_firing);
        first..first.saturating_add(self.layer.rows_per_firing).min(self.rows())
    }

    /// Whether its weights come in several tiles. If so, a firing makes some channels of all its rows, then the next
    /// channels.
    pub fn is_tiled(&self) -> bool {
        self.layer.streamed.as_ref().is_some_and(|streamed| streamed.filters.is_some())
    }

    /// Bytes of its whole tensor.
    pub fn whole_bytes(&self) -> u64 {
        self.rows() * self.tensor.row_bytes
    }
}
