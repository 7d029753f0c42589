//! The outputs of CNNs as their models state them.

use csdfc_plan::plan::{Cnn, Output, Plan, Tensor};
use csdfc_plan::shape::Shape;

/// The outputs of a CNN, each with the shape in which the model states it.
pub(super) fn outputs_of<'p>(plan: &'p Plan, cnn: &'p Cnn) -> impl Iterator<Item = (&'p Output, &'p Shape)> {
    cnn.outputs.iter().filter_map(|output| {
        let is_its = |tensor: &&Tensor| tensor.cnn == cnn.name && tensor.name == output.tensor;
        let own = || plan.tensors.iter().find(is_its).map(|tensor| &tensor.shape);
        Some((output, output.view.as_ref().or_else(own)?))
    })
}
