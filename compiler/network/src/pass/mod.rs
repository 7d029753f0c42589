//! Passes over a network: the same function from fewer layers.
//!
//! Batch norms, activations, additions and concats become part of neighbouring convolutions, so the tensors between
//! them need no memory. (How a kernel does this: `conv/mod.rs` of `csdfc-kernels`.)
//!
//! [`normalise`] conducts the passes that rewrite a network. Once primitives are chosen, [`legalise`] adds the
//! conversions that they need. [`in_precisions`] chooses primitives of lower precision. [`reorder`], the last pass,
//! needs the network's partitions.
//!
//! Each pass leaves every ONNX node's name with the layer that now does its work, and a network output's tensor as it
//! was.
//!
//! How much is fused is a [`Fusion`] level. Storage model `edges` counts layers as the papers do. Storage model
//! `tensors` also makes residual additions (`residual`) and concats (`parts`) operands of convolutions. A plan does
//! not state its level, so `saved::reload` of `csdfc-planner` tries them all. `inspect` shows each storage model
//! at its own level.
//!
//! A Relu becomes the epilogue of the product before it:
//!
//! ```
//! use csdfc_network::pass::{Fusion, normalise};
//! # use csdfc_network::weights::Weights;
//! # use csdfc_network::{Layer, LayerId, Network, NetworkOutput, Operand};
//! # use csdfc_plan::operator::{ElementWise, Function, Gemm, Input, InputElement, Operator};
//! # use csdfc_plan::shape::Shape;
//! # let [x, y] = [Shape::new([1, 84]), Shape::new([1, 10])];
//! # let read = |at, shape: &Shape| Operand { layer: LayerId(at), shape: shape.clone() };
//! # let layer = |name: &str, operator, inputs, parameters, shape: &Shape| Layer {
//! #     name: name.into(),
//! #     onnx_nodes: Vec::new(),
//! #     operator,
//! #     inputs,
//! #     parameters,
//! #     output: name.into(),
//! #     shape: shape.clone(),
//! #     primitive: None,
//! #     quantization: None,
//! # };
//! # let mut network = Network::default();
//! # let input = Operator::Input(Input { element: InputElement::F32, camera: None });
//! # let gemm = Operator::Gemm(Gemm { inner: 84, units: 10, transposed: true, bias: true, activation: None });
//! # let relu = Operator::ElementWise(ElementWise { function: Function::Relu });
//! # let weights = vec![Weights::new([10, 84], vec![0.5; 840]), Weights::new([10], vec![0.0; 10])];
//! # network.add(layer("x", input, vec![], vec![], &x));
//! # network.add(layer("fc", gemm, vec![read(0, &x)], weights, &y));
//! # network.add(layer("relu", relu, vec![read(1, &y)], vec![], &y));
//! # network.outputs.push(NetworkOutput::new("y", read(2, &y)));
//!
//! // `network` is an input, a Gemm and a Relu.
//! let network = normalise(network, Fusion::Full);
//! assert_eq!(network.layers.len(), 2);
//! assert!(network.layers[1].operator.activation().is_some());
//! ```

use csdfc_plan::plan::StorageModel;

use crate::Network;

mod camera;
mod channels_last;
mod columns;
mod copies;
mod fold;
mod fuse;
mod integer_prologues;
mod integers;
mod legalise;
mod movements;
pub(crate) mod names;
mod narrow;
mod numbering;
mod order;
mod parts;
mod pools;
mod precision;
mod prologues;
mod recognise;
mod reorder;
mod residual;
mod rewrite;
mod transposes;

pub use camera::camera;
pub use integers::{integers, moves_exactly, of_integers, of_moved_integers};
pub use legalise::legalise;
pub use movements::{Movement, movement};
pub use names::Names;
pub use narrow::stored_weights;
pub use numbering::Step;
pub use precision::{Precision, in_precisions, primitive_of};
pub use reorder::{PartitionLayers, reorder};

/// How much passes fuse.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Fusion {
    /// No fusion: the layers of the source.
    None,
    /// Layers as the papers count them: padding, batch norms and activations go into neighbouring layers, while concats
    /// and additions are layers.
    Paper,
    /// All that there is a pass for.
    #[default]
    Full,
}

impl Fusion {
    /// All levels, the highest first.
    pub const ALL: [Fusion; 3] = [Fusion::Full, Fusion::Paper, Fusion::None];

    /// The level of an application in this storage model, if it fuses at all. `edges` fuses as the papers do, to give
    /// their figures.
    pub fn new(fuse: bool, storage: StorageModel) -> Self {
        match storage {
            _ if !fuse => Fusion::None,
            StorageModel::Edges => Fusion::Paper,
            StorageModel::Tensors => Fusion::Full,
        }
    }
}

/// Brings a network to the form that planning expects.
///
/// The passes run in this order. Each keeps what the passes before it have established:
/// 1. movements: no Reshape, Transpose or Expand spells out what an operator does by rows: a reordering of channels, a
///    DepthToSpace, a SpaceToDepth or a Resize.
/// 2. columns: no layer of windows makes an image of one row, if it can make an image of one column.
/// 3. transposes: no Transpose undoes another one.
/// 4. padding: no zero padding stands alone before a convolution or a mean that can pad by itself.
/// 5. recognition: an activation that is spelled out in several layers is one element-wise layer. (The next pass would
///    take the `+ 3` of a spelled-out hard sigmoid for a bias.)
/// 6. affine: no batch norm, and no addition or multiplication of per-channel or scalar constants, is the only reader
///    of a convolution or fully connected layer. Such layers are now part of the filters and the bias.
/// 7. products: no such constants are read by fully connected layers alone. They are now part of the weights and the bias.
/// 8. activations: no activation stands alone after a layer that can compute it as its epilogue.
/// 9. pre-activations: no batch norm, activation or per-channel constant is read by convolutions alone. It is the
///    prologue of each of these.
///
/// 10. pools: no global pool reads a large image that no other layer reads. It reads what a pooling of rows makes of it.
///
/// With [`Fusion::Full`], there are two more:
///
/// 11. residuals: no addition of whole tensors is the only reader of a convolution that has no activation. The
///     convolution adds to its sums. (This comes after all passes that change filters or find epilogues of additions.)
/// 12. parts: no concat along the channels is read by dense convolutions alone. They read its operands.
///
/// At every level, layers on which no output depends are removed, tensors on which layers work along the last of four
/// dimensions are channels-last, and Transposes that can go by rows do. If no kernel can read an operand as it lies, a layer
/// of its own moves it. Then layers between 8-bit integers compute on integers ([`integers`], [`fuse_integers`]), and other
/// layers keep narrower weights as the model's file has them.
pub fn normalise(mut network: Network, fusion: Fusion) -> Network {
    type Pass = fn(Network) -> Network;
    let passes: [(&str, Pass); 12] = [
        ("move_by_rows", movements::by_rows),
        ("turn_rows", columns::of_rows),
        ("undo_transposes", transposes::undone),
        ("fold_pads", fold::pads),
        ("recognise_activations", recognise::activations),
        ("fold_affine", fold::affine),
        ("fold_before_products", fold::affine_before_products),
        ("fuse_activations", fuse::activations),
        ("fold_before_convolutions", prologues::into_convolutions),
        ("pool_by_rows", pools::in_two),
        ("fuse_additions", residual::additions),
        ("read_parts", parts::concats),
    ];
    let passes = match fusion {
        Fusion::None => &[],
        Fusion::Paper => &passes[..10],
        Fusion::Full => &passes[..],
    };
    for (name, pass) in passes {
        let span = tracing::info_span!("pass", name, layers = network.layers.len());
        network = span.in_scope(|| pass(network));
    }
    let network = channels_last::lines(rewrite::drop_dead(network));
    let network = copies::copies(transposes::by_rows(network));
    let network = integers::integers(network);
    narrow::weights(fuse_integers(network, fusion))
}

/// Applies two passes of [`normalise`] to layers that compute on integers ([`integers`]): prologues (9) and parts (12).
/// Networks without integers stay as they are.
pub fn fuse_integers(network: Network, fusion: Fusion) -> Network {
    if fusion == Fusion::None || network.layers.iter().all(|layer| layer.quantization.is_none()) {
        return network;
    }
    let network = integer_prologues::into_convolutions(network);
    if fusion == Fusion::Full { parts::concats(network) } else { network }
}

/// The network with zero padding, batch norms and other constants in filters and biases, and with activations that are spelled
/// out as one layer each: the first passes of [`normalise`]. Activations stay layers.
pub fn with_constants_folded(network: Network) -> Network {
    let passes = [fold::pads, recognise::activations, fold::affine];
    passes.into_iter().fold(rewrite::drop_dead(network), |network, pass| pass(network))
}

#[cfg(test)]
mod tests;
