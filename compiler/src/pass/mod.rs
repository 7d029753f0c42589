//! Passes over a network: the same function from fewer layers.
//!
//! Each pass leaves every ONNX node's name with the layer that now does its work, and a network output's tensor
//! as it was.

use crate::network::Network;

mod before;
mod copies;
mod fold;
mod fuse;
mod recognise;
mod rewrite;

/// Brings a network to the form that planning expects; `fuse: false` keeps the source's layers.
///
/// In this order, each pass leaving what it establishes for the next:
/// 1. padding: no zero padding stands alone before a convolution or a mean that can pad by itself;
/// 2. recognition: an activation spelled out in several layers is one element-wise layer. Before the next pass,
///    which would take the `+ 3` of a spelled-out hard sigmoid for a bias;
/// 3. affine: no batch norm, and no addition or multiplication of per-channel or scalar constants, is the only reader
///    of a convolution or fully connected layer: it is in the filters and the bias;
/// 4. activations: no activation stands alone after a layer that can apply it;
/// 5. pre-activations: no batch norm, activation or per-channel constant stands before convolutions alone: each of these
///    does it as it loads its input.
///
/// Whether it fuses or not, layers that no output depends on are gone, and what no kernel would read as it lies is
/// moved by a layer of its own.
pub fn normalise(mut network: Network, fuse: bool) -> Network {
    type Pass = fn(Network) -> Network;
    let passes: [(&str, Pass); 5] = [
        ("fold_pads", fold::pads),
        ("recognise_activations", recognise::activations),
        ("fold_affine", fold::affine),
        ("fuse_activations", fuse::activations),
        ("fold_before_convolutions", before::convolutions),
    ];
    for (name, pass) in if fuse { &passes[..] } else { &[] } {
        let span = tracing::info_span!("pass", name, layers = network.layers.len());
        network = span.in_scope(|| pass(network));
    }
    copies::copies(rewrite::drop_dead(network))
}

#[cfg(test)]
mod tests;
