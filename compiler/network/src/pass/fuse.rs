//! Activations move into the layer before them.

use csdfc_plan::operator::Operator;

use super::rewrite::Rewrite;
use crate::{LayerId, Network};

/// Makes each activation the epilogue of the convolution, fully connected layer, batch norm, addition or multiplication
/// before it, if nothing else reads that layer's tensor and it has no activation yet.
pub(super) fn activations(network: Network) -> Network {
    let mut rewrite = Rewrite::new(network);
    for id in rewrite.network.ids() {
        rewrite.visit(id);
        if let Some(producer) = rewrite.sole_producer(id) {
            fuse(&mut rewrite, producer, id);
        }
    }
    rewrite.finish()
}

fn fuse(rewrite: &mut Rewrite, producer: LayerId, id: LayerId) {
    let layer = rewrite.network.layer(id);
    let function = match &layer.operator {
        Operator::ElementWise(element_wise) if element_wise.function.is_activation() => {
            element_wise.function.clone()
        }
        _ => return,
    };
    let slope = layer.parameters.clone();
    let before = &mut rewrite.network.layers[producer.0];
    let Some(place @ None) = before.operator.activation_mut() else { return };
    *place = Some(function);
    before.parameters.extend(slope);
    rewrite.fuse_with_reader(producer, id);
}
