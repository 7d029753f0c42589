//! Global pools of large images, in two layers. The first goes by rows, so that the image need not be kept whole.

use csdfc_plan::operator::{Operator, Pool, PoolKind, ReduceFunction};
use csdfc_plan::shape::Shape;

use super::names::Names;
use super::rewrite;
use crate::{Layer, Network, Operand};

/// A global pool stays one layer if a few rows of its image and the output of the first pool would together take more
/// than one over this number of the image. So the global pools of classifiers, of 7×7 or 14×14, stay one layer.
const PART: usize = 8;

/// A global pool needs its image whole. Here, a mean, maximum or norm of a large image that no other layer reads
/// becomes two layers: a pool whose windows are a few whole rows, which goes by rows, and a global pool of its output.
pub(super) fn in_two(network: Network) -> Network {
    let uses = rewrite::uses(&network);
    let is_alone = |layer: &Layer| layer.inputs.first().is_some_and(|operand| uses[operand.layer.0] == 1);
    let reads_alone: Vec<bool> = network.layers.iter().map(is_alone).collect();
    let mut names = Names::new(&network);
    rewrite::with_layers_before(network, |result, id, layer| {
        let reads_rows = |operand: &Operand| result.layer(operand.layer).shape.keeps_rows(&operand.shape);
        let begins = reads_alone[id.0] && layer.inputs.first().is_some_and(reads_rows);
        // The first pool's output for a very large image is large, too.
        while begins && let Some((pool, seen)) = rows_of(layer) {
            let mut unique = |base: &str| names.unique(format!("{base}_rows"));
            let pool = Layer { name: unique(&layer.name), output: unique(&layer.output), ..pool };
            layer.inputs = vec![Operand { layer: result.add(pool), shape: seen }];
        }
    })
}

/// The first of the two layers that a global pool may become, whose windows are a few whole rows; and the shape in
/// which the global pool then sees its output. The layer has no names yet.
fn rows_of(layer: &Layer) -> Option<(Layer, Shape)> {
    let (Operator::Reduce(reduce), [operand], None) =
        (&layer.operator, layer.inputs.as_slice(), layer.quantization)
    else {
        return None;
    };
    let kind = match reduce.function {
        ReduceFunction::Mean => PoolKind::Average { count_include_pad: false },
        ReduceFunction::Max => PoolKind::Max,
        ReduceFunction::Lp { p } => PoolKind::Lp { p },
        _ => return None,
    };
    let Operand { shape, .. } = operand;
    let (row, column) = (shape.row_axis()?, shape.column_axis()?);
    let [height, width] = [row, column].map(|axis| shape.dims[axis]);
    // What lies there at once: the rows of one window, and all that the windows make.
    let pixels = |rows: usize| rows * width + height / rows;
    let rows = (1..=height).filter(|rows| height % rows == 0).min_by_key(|rows| pixels(*rows))?;
    let is_global = reduce.axes == [row, column] || (reduce.axes == [row] && width == 1);
    if !is_global || pixels(rows) * PART > height * width {
        return None;
    }
    let mut seen = shape.clone();
    (seen.dims[row], seen.dims[column]) = (height / rows, 1);
    let kernel = [rows, width];
    let pool = Pool { kind, kernel, stride: kernel, dilation: [1, 1], pads: [0; 4], ceil: false };
    let image = Shape::image(shape.channels(), height, width);
    let pool = Layer {
        name: String::new(),
        output: String::new(),
        onnx_nodes: Vec::new(),
        operator: Operator::Pool(pool),
        inputs: vec![Operand { layer: operand.layer, shape: image }],
        parameters: Vec::new(),
        shape: Shape::image(shape.channels(), height / rows, 1),
        primitive: None,
        quantization: None,
    };
    Some((pool, seen))
}
